/* The scans that are matched, with the truth. */
#ifndef BENCH_INPUT_H
#define BENCH_INPUT_H

#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/pose.h"
#include "ndt/preprocess.h"
#include "ndtd/samples.h"

struct bench_scan {
    uint64_t seq;
    struct ndt_cloud raw;
    struct ndt_pose T_map_sensor; /* truth at the stamp */
    struct ndt_twist twist;       /* the true motion there */
};
struct bench_input {
    struct bench_scan *scans;
    size_t count;
};

/* `limit` scans of those with truth, evenly spread. A damaged bag is used up to the damage. */
NDT_MUST_CHECK enum ndt_status bench_input_from_bag(struct bench_input *out, const char *path, size_t limit,
                                                    struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_input_from_files(struct bench_input *out, const char *const *paths,
                                                      size_t count, const struct ndt_pose *T_map_sensor,
                                                      struct ndt_error *err);
void bench_input_free(struct bench_input *input);

/* A scan as it is matched. */
struct bench_points {
    struct ndt_cloud cloud;
    struct ndt_pose T_map_sensor; /* truth at mid-sweep, where the points are */
};
struct bench_filtered {
    uint32_t wanted;            /* points asked for; 0 = all */
    double voxel_m;             /* finest filter needed to have that many */
    struct bench_points *scans; /* as many as the input has */
    size_t count;
    struct ndtd_samples used;    /* points per scan */
    struct ndtd_samples took_us; /* per scan, median of some repeats */
};
/* Filters and samples every scan, its motion undone with the true motion. Where the filter of `params` leaves
 * fewer points than wanted, its cells are halved until it does not, and switched off below 2 cm. */
NDT_MUST_CHECK enum ndt_status bench_filter(struct bench_filtered *out, const struct bench_input *input,
                                            const struct ndt_preprocess_params *params, uint32_t wanted,
                                            struct ndt_error *err);
void bench_filtered_free(struct bench_filtered *filtered);

#endif
