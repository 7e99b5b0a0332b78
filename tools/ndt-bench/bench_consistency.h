/** @file
 * @brief consistency: what a replay of a drive with several seeds gave, next to the truth. */
#ifndef BENCH_CONSISTENCY_H
#define BENCH_CONSISTENCY_H

#include "bench.h"
#include "ndt/align.h"

enum { CONSISTENCY_AXES = 6 };

/** Result of one scan. Errors are d = Log(T_true^-1 T_found), in the axes of the base: along, across, up [m], roll,
 * pitch, yaw [rad]. */
struct consistency_scan {
    uint64_t seed;
    double time_s; /**< time since the first scan */
    enum ndt_outcome outcome;
    int has_error, has_nees; /**< the bag has a truth for it; there is a covariance too */
    double error[CONSISTENCY_AXES], sigma[CONSISTENCY_AXES];
    double nees; /**< d^T covariance^-1 d */
    double off_m, off_deg, innovation, score;
    double confidence; /**< NAN: unknown */
    int evaluations;
};

/** The results of all seeds, one seed after the other; per_seed of each. */
struct consistency {
    struct consistency_scan *scans;
    size_t count, capacity, per_seed;
    uint64_t seeds;
};

/** Adds the tables. With a JSON file, `with_scans`, every result too. */
void consistency_report(const struct consistency *results, int with_scans, struct bench_report *report);

#endif
