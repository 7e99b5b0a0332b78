/** @file
 * @brief Preprocessing: from a raw scan to the points that are matched.
 *
 * In this order: drop points that are not finite, crop by range and box, correct the ranges, undo the motion of the
 * sensor during the sweep (deskewing), voxel filter (mean of the points of each cell), stratified random sampling.
 *
 * Ranges: a sensor that measures every range some centimetres short bends what it maps, because a wall is seen
 * nearer from either side: drives come out shorter, and rooms narrower. range_offset_m is added to the range of
 * each point, along its ray from the origin of the cloud. A negative one has to be smaller than min_range_m: points
 * that would pass the origin end there.
 *
 * Times of points: ndt_preprocess_sweep finds the reference moment of the sweep, its middle. Points are moved to
 * where the sensor would have measured them at that moment, and the times of the result are relative to it, in
 * whole microseconds for the field of times. So a recording gives the same points whether its stamps lie at the
 * begin, in the middle or at the end of the sweeps, up to the resolution of its times. A point without a finite
 * time within NDT_PREPROCESS_TIME_LIMIT_S of the stamp is dropped, and so is a stray: one whose time lies far from
 * those of the other points, see ndt_preprocess_told_times.
 *
 * Determinism: the points and their order depend only on the input, the parameters and the seed. One owner, one
 * thread. Memory: allocates only when a scan is larger than any before, or than any since the last release. The raw
 * cloud is read in whole vectors, up to the padding that every cloud has. */
#ifndef NDT_PREPROCESS_H
#define NDT_PREPROCESS_H

#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the time of a point within the sweep is known. */
enum ndt_deskew_mode {
    NDT_DESKEW_OFF,
    NDT_DESKEW_TIME,        /**< from the time field of the cloud */
    NDT_DESKEW_AZIMUTH_CW,  /**< from the azimuth: one turn per sweep, clockwise seen from above, that starts and
                               ends behind the sensor */
    NDT_DESKEW_AZIMUTH_CCW, /**< the same, counter-clockwise */
    NDT_DESKEW_AUTO /**< to be decided by scan, see ndt_deskew_mode_of; functions that take points refuse it */
};

/** Where in the sweep the stamp lies; times of points, where they are used, tell it themselves. */
enum ndt_sweep_stamp { NDT_STAMP_MIDDLE, NDT_STAMP_BEGIN, NDT_STAMP_END };

enum {
    NDT_PREPROCESS_SEGMENTS = 64,    /**< of a sweep; points within one interpolate linearly between its ends */
    NDT_PREPROCESS_TIME_LIMIT_S = 10 /**< no sweep lasts longer */
};

/** Parameters; ndt_preprocess_params_default gives the values in brackets. Coordinates are in the sensor frame. */
struct ndt_preprocess_params {
    double min_range_m, max_range_m;     /**< [1, 200] */
    double crop_min_m[3], crop_max_m[3]; /**< points outside are dropped [-1000, 1000] */
    double range_offset_m;               /**< added to each range after the crop, by the range as measured [0] */
    double voxel_m;                      /**< edge of the filter's cells; 0: no filter [0.5] */
    uint32_t sample_count;       /**< points kept, one at random from each of as many equal parts; 0: all [1500] */
    uint64_t seed;               /**< of the sample [1] */
    enum ndt_deskew_mode deskew; /**< [NDT_DESKEW_OFF] */
    double sweep_s;              /**< duration of a sweep, for the azimuth modes, and what is near in time [0.1] */
    enum ndt_sweep_stamp sweep_stamp; /**< for the azimuth modes [NDT_STAMP_MIDDLE] */
    double deadline_us; /**< when ndt_preprocess gives up, by ndt_clock_us(); 0: never, the same bits always [0] */
};
/** Sets the defaults. */
void ndt_preprocess_params_default(struct ndt_preprocess_params *params);

/** Resolves NDT_DESKEW_AUTO for the points of one scan alone: their time field where they have one, else off.
 * Other modes are returned as they are. Pure. */
enum ndt_deskew_mode ndt_deskew_mode_of(enum ndt_deskew_mode mode, const struct ndt_cloud *raw);

/** The times of the usable points of a scan, as they are told. */
struct ndt_told_times {
    size_t points; /**< usable: finite, within the ranges and the crop box */
    size_t strays; /**< of them: without a finite time within the limit, or with one far outside the sweep */
    float first_s, last_s; /**< of the others; first_s > last_s: there is none */
};
/** Finds the sweep among the times of `raw`, which has times, within limit_s of zero.
 *
 * Where they span more than 2 sweep_s, those farther than the distance of their 10 and 90 % quantiles + sweep_s
 * outside these quantiles are strays. The quantiles are exact, by radix selection. The order of the points does not
 * matter; nothing is allocated. Reads all points, once or five times. Pure. */
void ndt_preprocess_told_times(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw,
                               double limit_s, struct ndt_told_times *out);

/** When a scan was measured. */
struct ndt_sweep {
    double reference_s;    /**< the reference moment relative to the stamp; whole microseconds */
    double begin_s, end_s; /**< relative to the reference moment */
    size_t points, strays; /**< by times: see struct ndt_told_times; strays are left out */
};
/** The sweep of `raw`, before any motion is known. By times: from the first usable point to the last. By azimuth: a
 * turn of sweep_s. Without deskewing: all 0. NDT_DESKEW_TIME reads all points, the other modes none.
 * NDT_ERR_FORMAT: times are needed, and `raw` has none or none within NDT_PREPROCESS_TIME_LIMIT_S of the stamp.
 * Pure; any thread. */
NDT_MUST_CHECK enum ndt_status ndt_preprocess_sweep(const struct ndt_preprocess_params *params,
                                                    const struct ndt_cloud *raw, struct ndt_sweep *sweep,
                                                    struct ndt_error *err);

/** The motion of the sensor during a sweep: a constant twist, or poses that an estimator integrates from a gyro. */
struct ndt_sweep_motion {
    struct ndt_twist twist; /**< used unless is_piecewise */
    int is_piecewise;
    /** Poses of the sensor at the ends of the segments, in the frame of the sensor at the reference moment;
     * T_reference_at[i] belongs to ndt_sweep_boundary_s(sweep, i). Read only if is_piecewise. */
    struct ndt_pose T_reference_at[NDT_PREPROCESS_SEGMENTS + 1];
};
/** When segment i = 0 .. NDT_PREPROCESS_SEGMENTS - 1 begins, relative to the reference moment; with
 * i = NDT_PREPROCESS_SEGMENTS the end of the sweep. */
double ndt_sweep_boundary_s(const struct ndt_sweep *sweep, int i);

/** Memory that is reused from scan to scan. */
struct ndt_preprocessor;
/** Creates a preprocessor. */
NDT_MUST_CHECK enum ndt_status ndt_preprocessor_create(struct ndt_preprocessor **out, struct ndt_error *err);
/** `pre` may be NULL. */
void ndt_preprocessor_destroy(struct ndt_preprocessor *pre);

/** Gives the memory of the largest scan back; the next scan allocates what it needs. What ndt_preprocess returned
 * is gone. */
void ndt_preprocessor_release(struct ndt_preprocessor *pre);

/** Preprocesses `raw`.
 *
 * sweep: what ndt_preprocess_sweep found for the same parameters and points. sequence: number of the scan, varies
 * the sample. motion: of the sensor during the sweep; may be NULL (standing still). *out is borrowed until the next
 * call. NDT_ERR_FORMAT: times are needed and `raw` has none. */
NDT_MUST_CHECK enum ndt_status ndt_preprocess(struct ndt_preprocessor *pre,
                                              const struct ndt_preprocess_params *params,
                                              const struct ndt_cloud *raw, const struct ndt_sweep *sweep,
                                              uint64_t sequence, const struct ndt_sweep_motion *motion,
                                              const struct ndt_cloud **out, struct ndt_error *err);
/** The points of the last ndt_preprocess with another motion, for a second pass. Cheap: only the kept points are
 * moved. */
NDT_MUST_CHECK enum ndt_status ndt_preprocess_again(struct ndt_preprocessor *pre,
                                                    const struct ndt_sweep_motion *motion,
                                                    const struct ndt_cloud **out, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
