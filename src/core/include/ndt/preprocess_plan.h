/** @file
 * @brief Preprocessing as plain data, for backends that preprocess on a device.
 *
 * The plan holds everything that ndt_preprocess (ndt/preprocess.h) derives from its parameters, the sweep and the
 * motion before it processes points. A backend that follows it produces points bit-identical to those
 * of ndt_preprocess; the arithmetic per point is in ndt/preprocess_math.h.
 *
 * No pointers: a plan can be copied to a device. The functions are pure, allocate nothing and may be called from
 * any thread. */
#ifndef NDT_PREPROCESS_PLAN_H
#define NDT_PREPROCESS_PLAN_H

#include <stdint.h>

#include "ndt/preprocess.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Ends of segments, and one extra for a point at the end of the sweep. */
enum { NDT_PREPROCESS_BOUNDARIES = NDT_PREPROCESS_SEGMENTS + 2 };

/** The times of a sweep as fixed-point numbers for the voxel filter; times outside count as its ends. */
struct ndt_filter_times {
    double begin_s, length_s;
    float first_s, parts_per_s; /**< parts = (time - first_s) * parts_per_s; see NDT_FILTER_PARTS */
};

/** Preprocessing of one scan. Coordinates are in the sensor frame, times relative to the reference moment. */
struct ndt_preprocess_plan {
    int32_t deskew;   /**< enum ndt_deskew_mode */
    int32_t filtered; /**< 0: no voxel filter */
    uint32_t wanted;  /**< points of the sample; 0: all */
    float voxel_m;    /**< edge of the filter's cells */
    uint64_t seed;    /**< of the sample of this scan */

    float low_m[3], high_m[3]; /**< crop box */
    /** Squared ranges that are decided in float; in double between `certain` and `possible`. */
    float certain_low_m2, certain_high_m2, possible_low_m2, possible_high_m2;
    double near_m2, far_m2; /**< squared range limits */
    float range_offset_m;   /**< added to each range; 0: nothing is done */

    float sweep_s;        /**< duration of a turn of the sensor, for the azimuth modes */
    float reference_us;   /**< the reference moment relative to the stamp; for the times of the scan */
    float begin_s, end_s; /**< of the sweep: points with times outside are left out */
    struct ndt_filter_times times;
    float start_s, segments_per_s; /**< segment = (time - start_s) * segments_per_s */
    /** Transforms to the reference moment at the begin of each segment: the columns of the rotation and the
     * translation [m], each padded by 0. */
    float boundaries[NDT_PREPROCESS_BOUNDARIES][4][4];
};

/** Writes the plan that ndt_preprocess follows for the same arguments. */
void ndt_preprocess_plan_set(struct ndt_preprocess_plan *out, const struct ndt_preprocess_params *params,
                             const struct ndt_sweep *sweep, uint64_t sequence,
                             const struct ndt_sweep_motion *motion);

/** Replaces the motion by the correction of ndt_preprocess_again: from points deskewed with `from`, as
 * ndt_preprocess_plan_set was given it, to points deskewed with `to`. Either may be NULL (standing still). */
void ndt_preprocess_plan_set_motion(struct ndt_preprocess_plan *plan, const struct ndt_sweep *sweep,
                                    const struct ndt_sweep_motion *from, const struct ndt_sweep_motion *to);

#ifdef __cplusplus
}
#endif
#endif
