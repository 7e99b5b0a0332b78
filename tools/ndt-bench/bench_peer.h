/** @file
 * @brief Another implementation of the matcher, measured in the same run. Included by C and C++. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bench_peer_points {
    const float *x_m, *y_m, *z_m;
    size_t count;
};
/** Poses are 4x4, row-major, relative to the origin of the map's points. */
struct bench_peer_result {
    double T[16];
    double took_us; /**< time from the scan to the pose */
    int iterations, converged;
};

struct bench_peer_ops {
    const char *name;
    const char *about; /**< one line: implementation and settings */
    /** Prepares the map. NULL, with the reason in `why`, on failure. */
    void *(*open)(const struct bench_peer_points *map, double leaf_m, char *why, size_t why_size);
    void (*close)(void *state);
    /** 0, with the reason in `why`, on failure. */
    int (*align)(void *state, const struct bench_peer_points *scan, const double guess[16],
                 struct bench_peer_result *out, char *why, size_t why_size);
};
extern const struct bench_peer_ops bench_peer_pcl; /**< only with NDT_HAVE_PCL */

#ifdef __cplusplus
}
#endif
#endif
