/* From a raw scan to the points that are matched: drop non-finite points, crop by range and box,
 * undo the motion during the sweep, voxel-grid filter, seeded sampling of one
 * point from each of as many equal parts of the scan as are kept.
 *
 * Order of the output and the sample depend only on the input, the parameters and the seed. One owner, one
 * thread; allocates only when a scan is larger than any before, with the filter or without it. The raw cloud is
 * read in whole vectors, up to the padding that every cloud has. */
#ifndef NDT_PREPROCESS_H
#define NDT_PREPROCESS_H

#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where in the sweep a point was measured. time: the cloud's time field. azimuth_cw / ccw: a full turn per
 * sweep that starts and ends behind the sensor, seen from above; the stamp is the middle of the sweep. */
enum ndt_deskew_mode { NDT_DESKEW_OFF, NDT_DESKEW_TIME, NDT_DESKEW_AZIMUTH_CW, NDT_DESKEW_AZIMUTH_CCW };

struct ndt_preprocess_params {
    double min_range_m, max_range_m;
    double crop_min_m[3], crop_max_m[3]; /* points outside are dropped, sensor frame */
    double voxel_m;                      /* edge of the filter's cells; 0 = off */
    uint32_t sample_count;               /* points kept, one at random of each of as many equal parts; 0 = all */
    uint64_t seed;
    enum ndt_deskew_mode deskew;
    double sweep_s; /* duration of a sweep for the azimuth modes */
};
void ndt_preprocess_params_default(struct ndt_preprocess_params *params);

struct ndt_preprocessor;
NDT_MUST_CHECK enum ndt_status ndt_preprocessor_create(struct ndt_preprocessor **out, struct ndt_error *err);
void ndt_preprocessor_destroy(struct ndt_preprocessor *pre);

/* twist: the motion of the sensor during the sweep (NULL = standing still). Points are moved to where
 * they would be seen at mid-sweep; *reference_s is that moment relative to the scan's stamp.
 * `sequence` varies the random sample from scan to scan. The result is borrowed until the next call. */
NDT_MUST_CHECK enum ndt_status ndt_preprocess(struct ndt_preprocessor *pre,
                                              const struct ndt_preprocess_params *params,
                                              const struct ndt_cloud *raw, uint64_t sequence,
                                              const struct ndt_twist *twist, const struct ndt_cloud **out,
                                              double *reference_s, struct ndt_error *err);
/* The same points once more, with another motion (second pass); cheap: only the kept points are moved. */
NDT_MUST_CHECK enum ndt_status ndt_preprocess_again(struct ndt_preprocessor *pre, const struct ndt_twist *twist,
                                                    const struct ndt_cloud **out, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
