/* Private to the core: which points of a scan are used, and when in the sweep each was seen. */
#ifndef NDT_CROP_H
#define NDT_CROP_H

#include "ndt/preprocess.h"
#include "point_block.h"

/* The limits of the parameters as floats. A point's range is judged in float where that is beyond doubt, and
 * in double between `certain` and `possible`. */
struct ndt_crop {
    const struct ndt_preprocess_params *params;
    float low_m[3], high_m[3];
    float certain_low_m2, certain_high_m2;
    float possible_low_m2, possible_high_m2;
};

/* `params` is borrowed for as long as the crop is used. */
void ndt_crop_set(struct ndt_crop *crop, const struct ndt_preprocess_params *params);
/* Puts the usable ones of `raw`'s points first .. first + NDT_BLOCK_POINTS (or its last) into `block`, in their
 * order, with their times: 0 without deskewing. Points without a finite time are not usable. */
void ndt_crop_block(const struct ndt_crop *crop, const struct ndt_cloud *raw, size_t first,
                    struct ndt_point_block *block);
/* When the first and the last of the usable points of `raw`, which has times, were seen; 0: none is usable. */
int ndt_crop_times(const struct ndt_crop *crop, const struct ndt_cloud *raw, float *first_s, float *last_s);

/* When a sweep began and ended and the moment to which its points are moved, relative to the stamp. */
struct ndt_deskew_span {
    double start_s, end_s, reference_s;
};
/* By times: from the first usable point to the last. By azimuth: a whole turn. Without deskewing: all 0. */
struct ndt_deskew_span ndt_crop_span(const struct ndt_crop *crop, const struct ndt_cloud *raw);
/* NDT_ERR_FORMAT: times are needed and `raw` has none. */
NDT_MUST_CHECK enum ndt_status ndt_crop_check(const struct ndt_preprocess_params *params,
                                              const struct ndt_cloud *raw, struct ndt_error *err);

#endif
