/** @file
 * @brief Candidates: a backend with an aligner and a map, for every combination of the lists of the command line.
 * Needs the core and the backends only. */
#ifndef BENCH_CANDIDATE_H
#define BENCH_CANDIDATE_H

#include "bench_source.h"

enum { BENCH_CANDIDATE_NAME = 64 };

struct bench_candidate {
    char name[BENCH_CANDIDATE_NAME]; /**< "cpu avx2, 1 thread", "cuda resident" */
    char about[160];                 /**< as the backend describes itself */
    struct bench_setup setup;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner; /**< of the backend, with its map; NULL if it is not available */
    struct ndt_map *map;         /**< borrowed from the source */
    int is_device, is_resident;  /**< resident: whole solves on the device */
    int is_broken;               /**< required but not available, or failed during the measurement */
    struct ndt_error why;        /**< the reason if it is not available */
};
struct bench_candidates {
    size_t count, capacity;
    struct bench_candidate *items;
};

/** Opens every combination of --variant, --levels, --neighbours, --backend and --threads. The backend `all` selects
 * the CPU with one thread and with all, and every pipeline of every device backend; those that are not available
 * are listed with the reason, while a backend given by name is required. usual: the backends for an empty
 * --backend; NULL: that of the settings. max_points: of a scan or a batch. `out` is zeroed by the caller; close it
 * also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_candidates_open(struct bench_candidates *out, struct bench_source *source,
                                                     const char *usual, size_t max_points, struct ndt_error *err);
/** Adds a required candidate with this setup. */
NDT_MUST_CHECK enum ndt_status bench_candidates_add(struct bench_candidates *out, struct bench_source *source,
                                                    const struct bench_setup *setup, struct ndt_error *err);
void bench_candidates_close(struct bench_candidates *candidates);

/** Whether it can be measured. */
int bench_candidate_works(const struct bench_candidate *candidate);
/** Excludes it with the reason of its last failure. */
void bench_candidate_fail(struct bench_candidate *candidate, enum ndt_status status);
/** Writes the columns that identify it and counts it among the device rows or the failures. 0: it is not available;
 * the column "why" has the reason. */
int bench_candidate_columns(const struct bench_candidate *candidate, struct bench_report *report,
                            struct bench_table *table);
void bench_candidate_counters(const struct bench_candidate *candidate, struct ndt_backend_counters *out);
/** One evaluation on the finest level at a pose of the map. */
struct ndt_eval_request bench_candidate_request(const struct bench_candidate *candidate,
                                                const struct ndt_pose *T_map_sensor);
const char *bench_neighbours_text(const struct ndt_align_params *params, char *text, size_t size);

#endif
