/* Preprocessing as plain data, for backends that do it on a device: everything that ndt_preprocess (see
 * ndt/preprocess.h) derives from its parameters, the motion and the times of the scan, before it looks at the
 * points one by one. What a backend makes of it is bit for bit what ndt_preprocess gives; the arithmetic of a point
 * is in ndt/preprocess_math.h.
 *
 * No pointers: can be copied to a device. Pure functions but for the read of `raw`; no allocation; any thread. */
#ifndef NDT_PREPROCESS_PLAN_H
#define NDT_PREPROCESS_PLAN_H

#include <stdint.h>

#include "ndt/preprocess.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Knots of a sweep: the motion between two neighbours is linear; see deskew.h. */
enum { NDT_PREPROCESS_SEGMENTS = 64 };

/* A sweep in whole numbers; times outside count as its ends. */
struct ndt_filter_times {
    double begin_s, length_s;
    float first_s, parts_per_s; /* parts = (time - first) * parts_per_s */
};

struct ndt_preprocess_plan {
    int32_t deskew;   /* enum ndt_deskew_mode */
    int32_t filtered; /* 0: no voxel filter */
    uint32_t wanted;  /* points of the sample; 0: all */
    float voxel_m;
    uint64_t seed; /* of this scan's sample */
    /* Crop. Squared ranges: in float beyond doubt, in double between `certain` and `possible`. */
    float low_m[3], high_m[3];
    float certain_low_m2, certain_high_m2, possible_low_m2, possible_high_m2;
    double near_m2, far_m2;
    float sweep_s; /* a turn of the sensor, for the azimuth modes */
    struct ndt_filter_times times;
    /* Motion: knot = (time - start) * per_s, and the columns of its rotation and its translation, padded by 0. */
    float start_s, per_s;
    float segments[NDT_PREPROCESS_SEGMENTS + 2][4][4];
    /* Where the knots came from; for the host. */
    struct ndt_twist twist;
    double begin_s, end_s, reference_s; /* as ndt_preprocess tells it */
};

/* Arguments and errors as ndt_preprocess: NDT_ERR_FORMAT when times are needed and `raw` has none. By times, reads
 * all of `raw` once; else only whether it has them. */
NDT_MUST_CHECK enum ndt_status ndt_preprocess_plan_set(struct ndt_preprocess_plan *out,
                                                       const struct ndt_preprocess_params *params,
                                                       const struct ndt_cloud *raw, uint64_t sequence,
                                                       const struct ndt_twist *twist, struct ndt_error *err);
/* As ndt_preprocess_again: from now on the motion of `front` is the one that leads from points that were moved with
 * its twist to those moved with another; that twist itself stays. */
void ndt_preprocess_plan_set_motion(struct ndt_preprocess_plan *plan, const struct ndt_twist *twist);

#ifdef __cplusplus
}
#endif
#endif
