/* What an alignment costs on each backend and where its time goes: whole alignments from wrong starts, everything
 * in turn; and searches that are cut off after more and more iterations, whose times lie on a line: its slope is
 * what an evaluation costs with all that belongs to it, and what it begins with is paid once per alignment. */
#ifndef GPU_ALIGN_H
#define GPU_ALIGN_H

#include <stdint.h>
#include <stdio.h>

#include "gpu_candidates.h"

enum { GPU_ALIGN_ROWS = 256, GPU_ALIGN_SCANS = 4 };

/* One level of 2 m with `radius`, which other figures are about, or the chain of ndtd's defaults. */
enum gpu_align_chain { GPU_ALIGN_ONE_LEVEL, GPU_ALIGN_CHAIN, GPU_ALIGN_CHAINS };

struct gpu_align_row {
    char name[GPU_CANDIDATE_NAME];
    enum gpu_align_chain chain;
    size_t points;
    int is_here, is_broken;
    struct ndt_error why;
    double align_us, p95_us; /* a whole ndt_align by the caller's clock */
    double upload_us;        /* of it, to hand over the scan */
    double kernel_us;        /* of it, kernels by the device's clock; of the CPU: its evaluations */
    double evaluations;      /* mean */
    size_t recovered, tried; /* within 0.15 m and 0.6 deg */
    uint64_t hash;           /* of all poses */
    double off_m, off_deg;   /* from the poses of the first row of this size, at most */
    int is_shape, is_other;  /* a resident one; and its poses are not bit for bit those of the others */
    double wanted_us;        /* on a data-centre GPU; 0: nothing is */
    /* Of searches that are cut off; one level only. */
    int has_line;
    double per_evaluation_us, once_us, kernel_per_evaluation_us, kernel_once_us;
};
struct gpu_aligns {
    struct gpu_align_row rows[GPU_ALIGN_ROWS];
    size_t count;
};

struct gpu_align_request {
    struct ndt_map *map;
    size_t points;
    int threads, starts;  /* starts: 3 to 1000 */
    const char *pipeline; /* see gpu_candidates.h */
};
/* Adds the rows of one number of points. */
NDT_MUST_CHECK enum ndt_status gpu_align_run(struct gpu_aligns *out, const struct gpu_align_request *request,
                                             struct ndt_error *err);
void gpu_align_markdown(const struct gpu_aligns *all, FILE *file);
void gpu_align_json(const struct gpu_aligns *all, FILE *file);
/* Rows of a device that were measured; *bad: failures, and shapes that differ. */
size_t gpu_align_assess(const struct gpu_aligns *all, size_t *bad);

#endif
