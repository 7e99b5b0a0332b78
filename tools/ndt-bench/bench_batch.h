/* Many alignments at once against one after the other: guesses for one scan, and scans that waited in a queue.
 * Needs the core and the backends only. */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include <stdio.h>

#include "ndt/align.h"

enum { BENCH_BATCH_SIZES = 12, BENCH_BATCH_ROWS = 512, BENCH_BATCH_MOST = 4096, BENCH_BATCH_NAME = 64 };
/* Several scans come together only as often as a queue holds them. */
enum { BENCH_BATCH_SCANS = 3 };
/* What is wanted of so many guesses for a scan of so many points on a data-centre GPU. */
enum { BENCH_BATCH_TARGET_ITEMS = 200, BENCH_BATCH_TARGET_POINTS = 1500 };
#define BENCH_BATCH_TARGET_MS 5.0

/* One backend and pipeline. */
struct bench_batch_candidate {
    char name[BENCH_BATCH_NAME]; /* "cpu, 1 thread", "cuda resident" */
    struct ndt_backend *backend;
    struct ndt_aligner *aligner; /* of it, its map is there; NULL: does not work here */
    const struct ndt_align_params *params;
    struct ndt_error why; /* when it does not */
};
struct bench_batch_scan {
    const struct ndt_cloud *points;
    struct ndt_pose T_map_sensor; /* truth */
};
struct bench_batch_request {
    const struct bench_batch_candidate *candidates;
    size_t candidate_count;
    const struct bench_batch_scan *scans; /* of about as many points each */
    size_t scan_count;
    size_t points;       /* for the table */
    const size_t *sizes; /* items per batch, 1 to BENCH_BATCH_MOST */
    size_t size_count;
    int rounds; /* medians over so many batches, after one that warms up; 1 to 1000 */
    uint64_t seed;
    double shift_m, turn_rad; /* how far guesses are off, at most */
    double success_m, success_rad;
};

enum bench_batch_kind {
    BENCH_GUESSES, /* for one scan */
    BENCH_SCANS    /* with a guess each */
};
struct bench_batch_row {
    char what[BENCH_BATCH_NAME];
    enum bench_batch_kind kind;
    size_t items, points;
    int is_here;
    int has_failed;             /* it was here, and is not any more */
    int is_same;                /* every result bit for bit that of the item alone, in every round */
    double together_ms, p95_ms; /* a whole ndt_align_batch by the caller's clock, uploads included */
    double alone_ms;            /* the same items by ndt_align, one after the other */
    double launches;            /* per batch together; 0: no device */
    double evaluations;         /* mean per item */
    size_t recovered, tried;    /* items, over all rounds */
    struct ndt_error why;       /* when it is not here, or failed on the way */
};
struct bench_batch {
    struct bench_batch_row rows[BENCH_BATCH_ROWS];
    size_t count;
};

/* Adds its rows to those there are. Every way in turn, together and alone, round by round, over the same guesses.
 * A way that fails is told by its row. */
NDT_MUST_CHECK enum ndt_status bench_batch_run(struct bench_batch *out, const struct bench_batch_request *request,
                                               struct ndt_error *err);
void bench_batch_print(const struct bench_batch *all, FILE *file);
void bench_batch_markdown(const struct bench_batch *all, FILE *file);
/* An array. */
void bench_batch_json(const struct bench_batch *all, FILE *file);

#endif
