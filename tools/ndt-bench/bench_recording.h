/** @file
 * @brief Scans of a bag or of cloud files with their true poses. The functions are not part of the build with
 * NDT_BENCH_CORE. */
#ifndef BENCH_RECORDING_H
#define BENCH_RECORDING_H

#include "bench_options.h"
#include "bench_sampler.h"
#include "ndt/cloud.h"

/** A preprocessed scan. */
struct bench_scan {
    struct ndt_cloud cloud;       /**< sensor frame */
    struct ndt_pose T_map_sensor; /**< ground truth at the time of the points */
};
/** Scans with about equal numbers of points. */
struct bench_scans {
    size_t points, wanted; /**< median; requested (0: all) */
    size_t count;
    struct bench_scan *items;
    double voxel_m;                     /**< finest filter cell needed for that number */
    struct bench_samples used, took_us; /**< points per scan; preprocessing, median of some repeats. Files only */
};

/** A raw scan. */
struct bench_raw_scan {
    uint64_t seq;
    struct ndt_cloud cloud;
    struct ndt_pose T_map_sensor; /**< ground truth at the stamp */
    struct ndt_twist twist;       /**< the true motion there */
};
struct bench_recording {
    struct bench_raw_scan *scans;
    size_t count;
};

/** The scans of --bag with ground truth, --scans of them evenly spread, up to the first damage; or those of --scan.
 */
NDT_MUST_CHECK enum ndt_status bench_recording_open(struct bench_recording **out,
                                                    const struct bench_options *options, struct ndt_error *err);
void bench_recording_close(struct bench_recording *recording); /**< may be NULL */
/** Deskews every scan with the true motion, filters and samples it to out->wanted points. If the filter of `params`
 * leaves fewer points, its cells are halved until it does not; below 2 cm the filter is disabled. `out` holds the
 * scans made so far also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_recording_scans(const struct bench_recording *recording,
                                                     const struct ndt_preprocess_params *params,
                                                     struct bench_scans *out, struct ndt_error *err);

#endif
