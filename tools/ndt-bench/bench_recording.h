/** @file
 * @brief Scans, and those of a bag or of cloud files with their true poses. The functions are not part of the build
 * with NDT_BENCH_CORE. */
#ifndef BENCH_RECORDING_H
#define BENCH_RECORDING_H

#include "bench_options.h"
#include "bench_sampler.h"
#include "ndt/cloud.h"

/** A scan as it is matched. */
struct bench_scan {
    struct ndt_cloud cloud;       /**< sensor frame */
    struct ndt_pose T_map_sensor; /**< truth, where the points are */
};
/** Scans of about as many points each. */
struct bench_scans {
    size_t points, wanted; /**< median; asked for, 0: all of them */
    size_t count;
    struct bench_scan *items;
    double voxel_m;                     /**< finest filter needed to have that many */
    struct bench_samples used, took_us; /**< points per scan; preprocessing, median of some repeats. Files only */
};

/** A scan as it was recorded. */
struct bench_raw_scan {
    uint64_t seq;
    struct ndt_cloud cloud;
    struct ndt_pose T_map_sensor; /**< truth at the stamp */
    struct ndt_twist twist;       /**< the true motion there */
};
struct bench_recording {
    struct bench_raw_scan *scans;
    size_t count;
};

/** Those of --bag that have truth, --scans of them evenly spread, up to the first damage; or those of --scan. */
NDT_MUST_CHECK enum ndt_status bench_recording_open(struct bench_recording **out,
                                                    const struct bench_options *options, struct ndt_error *err);
void bench_recording_close(struct bench_recording *recording); /**< NULL allowed */
/** Filters and samples every scan to out->wanted points, its motion undone with the true motion. Where the filter
 * of `params` leaves fewer points than wanted, its cells are halved until it does not, and switched off below 2 cm.
 * `out` holds what was made also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_recording_scans(const struct bench_recording *recording,
                                                     const struct ndt_preprocess_params *params,
                                                     struct bench_scans *out, struct ndt_error *err);

#endif
