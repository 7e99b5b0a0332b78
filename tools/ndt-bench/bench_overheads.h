/* What an evaluation costs on each backend and, on a device, how much of that is no work: the kernels alone, the
 * copies alone, an empty launch, an idle wait. Needs the core and the backends only. */
#ifndef BENCH_OVERHEADS_H
#define BENCH_OVERHEADS_H

#include <stdio.h>

#include "ndt/backend.h"

enum { BENCH_OVERHEAD_SIZES = 12, BENCH_OVERHEAD_ROWS = 512, BENCH_OVERHEAD_NAME = 64 };

struct bench_overheads_request {
    struct ndt_map *map;
    struct ndt_eval_request where;      /* level, neighbours and pose of every evaluation */
    const struct ndt_cloud *points;     /* sensor frame, at least one */
    size_t sizes[BENCH_OVERHEAD_SIZES]; /* points per scan */
    size_t size_count;
    struct ndt_backend_config config; /* pipeline and max_points are chosen per row */
    int rounds;                       /* medians over so many, 1 to 1000 */
    uint64_t seed;
};

enum bench_overhead_kind {
    BENCH_EVALUATION,  /* a whole evaluation by the caller's clock */
    BENCH_KERNEL_ONLY, /* its kernels, by the device's clock */
    BENCH_COPY_ONLY,
    BENCH_LAUNCH_ONLY,
    BENCH_SYNCHRONISE_ONLY,
    BENCH_OVERHEAD_KINDS
};
const char *bench_overhead_kind_name(enum bench_overhead_kind kind);

struct bench_overhead {
    char what[BENCH_OVERHEAD_NAME]; /* "cpu", "cuda staged" */
    enum bench_overhead_kind kind;
    size_t points;
    size_t measured_points; /* those of the scan; the others are repeats of them */
    int is_here;
    double median_us;
    struct ndt_error why; /* when it is not here */
};
struct bench_overheads {
    struct bench_overhead rows[BENCH_OVERHEAD_ROWS];
    size_t count;
    int is_lacking_device; /* no backend with overheads is compiled in */
};

/* The CPU backend and every pipeline of every backend on a device, evaluation by evaluation in turn; of those with
 * whole searches, which evaluate alike, the first. A pipeline that does not work here has rows that say why. */
NDT_MUST_CHECK enum ndt_status bench_overheads_run(struct bench_overheads *out,
                                                   const struct bench_overheads_request *request,
                                                   struct ndt_error *err);
/* `count` points of `from`: evenly picked, or all of them again and again, each time moved by up to 2 cm along each
 * axis. */
NDT_MUST_CHECK enum ndt_status bench_overheads_scan(struct ndt_cloud *out, const struct ndt_cloud *from,
                                                    size_t count, uint64_t seed, struct ndt_error *err);
void bench_overheads_print(const struct bench_overheads *all, FILE *file);
void bench_overheads_markdown(const struct bench_overheads *all, FILE *file);
/* An array. */
void bench_overheads_json(const struct bench_overheads *all, FILE *file);

#endif
