/* What many starts amount to. */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stdint.h>

#include "ndt/pose.h"
#include "ndtd/samples.h"

/* A start is recovered when it ends this near the truth. */
#define BENCH_SUCCESS_M   0.15
#define BENCH_SUCCESS_DEG 0.6

struct bench_tally {
    uint64_t starts, recovered;
    uint64_t believed_wrong; /* not recovered, and yet said to have converged */
    struct ndtd_samples align_ms, evaluations, iterations;
    struct ndtd_samples error_m, error_deg; /* of the recovered ones */
};

struct bench_found {
    struct ndt_pose T_map_sensor;
    int converged; /* says so itself */
    int evaluations, iterations;
    double took_us;
};
NDT_MUST_CHECK enum ndt_status bench_tally_add(struct bench_tally *tally, const struct bench_found *found,
                                               const struct ndt_pose *truth, struct ndt_error *err);
void bench_tally_free(struct bench_tally *tally);
/* Part of the starts that was recovered, 0..1. */
double bench_tally_success(const struct bench_tally *tally);

#endif
