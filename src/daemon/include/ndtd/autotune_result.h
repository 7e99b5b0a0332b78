/* Which backend, pipeline and number of threads: a decision from measured times, and when to doubt it. Pure
 * functions, no clock, no allocation: any thread; the same rows give the same choice.
 *
 * A way is one of the possibilities; a row is a way with what it took. The smallest 95th percentile wins: a budget
 * is about the slow scans. Where it is met, ways within 5 % of it that also meet it count as equal, and the first
 * of the list is taken: rows go from what needs little of the machine to what needs much. */
#ifndef NDTD_AUTOTUNE_RESULT_H
#define NDTD_AUTOTUNE_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/align.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_AUTOTUNE_ROWS = 32, NDTD_AUTOTUNE_NAME = 32, NDTD_AUTOTUNE_WHY = 160 };

struct ndtd_backend_candidate {
    char backend[NDTD_AUTOTUNE_NAME];
    char pipeline[NDTD_AUTOTUNE_NAME]; /* empty where a backend has none */
    int threads;                       /* of the CPU backend; 0 where a backend has none */
    int batch;                         /* scans aligned at once, 1 */
};

struct ndtd_autotune_row {
    struct ndtd_backend_candidate candidate;
    int is_here; /* it was measured; else `why` says in one line why not */
    char why[NDTD_AUTOTUNE_WHY];
    size_t samples;
    double p50_us, p95_us; /* whole alignments, per scan of a batch */
    double open_us;        /* from nothing to ready with the map */
};

/* "cpu, 2 threads", "cuda fused", "cuda resident, 3 at once"; returns `text`. */
const char *ndtd_backend_candidate_name(const struct ndtd_backend_candidate *candidate, char *text, size_t size);
int ndtd_backend_candidate_is(const struct ndtd_backend_candidate *a, const struct ndtd_backend_candidate *b);
/* Fills samples, p50 and p95 of the row, which is here from then on unless there are no samples. us: in the order
 * of measurement, at most 1000. From 50 samples on the quantiles are medians over those of blocks of 25: what runs
 * beside for a while only is not counted, what disturbs all the time is. */
void ndtd_autotune_summarize(struct ndtd_autotune_row *row, const double *us, size_t count);

struct ndtd_autotune_choice {
    int row; /* -1: none of them could be measured */
    int meets_budget;
    char reason[NDTD_AUTOTUNE_WHY];
};
struct ndtd_autotune_choice ndtd_autotune_decide(const struct ndtd_autotune_row *rows, size_t count,
                                                 double budget_us);

enum ndtd_autotune_source { NDTD_AUTOTUNE_DEFAULT, NDTD_AUTOTUNE_MEASURED, NDTD_AUTOTUNE_CACHED };
const char *ndtd_autotune_source_name(enum ndtd_autotune_source source); /* "default", "measured", "cached" */

/* What was decided, and from what. All zero: nothing was, the default is in use. */
struct ndtd_autotune_result {
    enum ndtd_autotune_source source;
    int64_t measured_s; /* wall clock, for people */
    uint64_t map_id;
    size_t points; /* of the scans that were aligned */
    double budget_us;
    double took_us; /* the measuring */
    struct ndtd_autotune_choice choice;
    double evaluation_us;         /* whole alignments over their evaluations, median, of the chosen way */
    struct ndt_align_costs costs; /* of the chosen way */
    struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
    size_t row_count;
};
/* "cpu, 2 threads: p95 0.31 ms of 100 ms at 1500 points ...; cut at `size`; returns `text`. */
const char *ndtd_autotune_line(const struct ndtd_autotune_result *tuned, char *text, size_t size);
/* What an evaluation is expected to take on the average over its alignment, whose other parts are shared out. */
double ndtd_autotune_evaluation_us(const struct ndtd_autotune_result *tuned, size_t points);
/* What an alignment with so many evaluations is expected to take; 0 = not known. Other sizes than the measured one
 * in proportion to the costs. */
double ndtd_autotune_align_us(const struct ndtd_autotune_result *tuned, size_t points, int evaluations);

/* Watches whether scans begin to take much longer. How much slower than measured they are from the start (10 Hz
 * leaves caches cold) is learnt from the first 50, up to three times. All zero is the beginning. */
struct ndtd_drift {
    int seen, slow;
    double sum_of_ratios;
};
/* One more scan. 1: 50 slow ones have come together, which take 1.5 times as long as the first ones did; every
 * other scan takes two of them back. The count then begins anew. */
int ndtd_drift_see(struct ndtd_drift *drift, double seen_us, double expected_us);

#ifdef __cplusplus
}
#endif
#endif
