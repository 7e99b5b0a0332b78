#include "ndtd/autotune_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndtd/samples.h"

/* Two ways this close cannot be told apart by a short measurement; then cores are left to others. */
static const double SAME = 1.05;
/* This much slower than at first, this often: no longer the machine that was measured. */
static const double DRIFT_RATIO = 1.5, BASE_MOST = 3;
enum { DRIFT_SCANS = 50, DRIFT_RELIEF = 2, BASE_SCANS = 50 };
enum { BLOCK = 25 };

const char *ndtd_backend_candidate_name(const struct ndtd_backend_candidate *candidate, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s%s%s", candidate->backend, *candidate->pipeline ? " " : "",
                                   candidate->pipeline);
    if (candidate->threads > 0 && used < size)
        used += (size_t)snprintf(text + used, size - used, ", %d thread%s", candidate->threads,
                                 candidate->threads == 1 ? "" : "s");
    if (candidate->batch > 1 && used < size)
        snprintf(text + used, size - used, ", %d at once", candidate->batch);
    return text;
}

int ndtd_backend_candidate_is(const struct ndtd_backend_candidate *a, const struct ndtd_backend_candidate *b)
{
    return strcmp(a->backend, b->backend) == 0 && strcmp(a->pipeline, b->pipeline) == 0 &&
           a->threads == b->threads && a->batch == b->batch;
}

/* Quantile of `count` values, at most 2 * BLOCK of them. */
static double quantile(const double *us, size_t count, double q)
{
    double copy[2 * BLOCK];
    struct ndtd_samples samples = {.values = copy, .count = count};
    memcpy(copy, us, count * sizeof(double));
    return ndtd_samples_quantile(&samples, q);
}

/* Over blocks of neighbouring samples, and then the median of the blocks: something else that runs for a while (a
 * machine that is just starting) spoils some of them, and what disturbs always is in all of them. */
static double block_quantile(const double *us, size_t count, double q)
{
    double of_blocks[2 * BLOCK];
    const size_t blocks = count / BLOCK; /* at most 40, see autotune_sampler.h */
    if (count < 2 * BLOCK)
        return quantile(us, count, q);
    for (size_t i = 0; i < blocks; i++)
        of_blocks[i] = quantile(us + i * BLOCK, i + 1 < blocks ? BLOCK : count - i * BLOCK, q);
    return quantile(of_blocks, blocks, 0.5);
}

void ndtd_autotune_summarize(struct ndtd_autotune_row *row, const double *us, size_t count)
{
    row->is_here = count > 0;
    row->samples = count;
    row->p50_us = block_quantile(us, count, 0.5);
    row->p95_us = block_quantile(us, count, 0.95);
}

static int is_usable(const struct ndtd_autotune_row *row)
{
    return row->is_here && row->samples > 0 && isfinite(row->p95_us) && row->p95_us > 0;
}

static int find_least(const struct ndtd_autotune_row *rows, size_t count, size_t *usable)
{
    int least = -1;
    *usable = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_usable(&rows[i]))
            continue;
        ++*usable;
        if (least < 0 || rows[i].p95_us < rows[least].p95_us)
            least = (int)i;
    }
    return least;
}

static void give_reason(struct ndtd_autotune_choice *choice, const struct ndtd_autotune_row *rows, int least,
                        size_t usable, double budget_us)
{
    char name[80];
    if (!choice->meets_budget)
        snprintf(choice->reason, sizeof(choice->reason),
                 "the smallest p95 of %zu, but none meets the budget of %g ms", usable, budget_us * 1e-3);
    else if (usable == 1)
        snprintf(choice->reason, sizeof(choice->reason), "the only one that was measured");
    else if (choice->row == least)
        snprintf(choice->reason, sizeof(choice->reason), "the smallest p95 of %zu", usable);
    else
        snprintf(choice->reason, sizeof(choice->reason), "as good as %s (%.4g ms) and needs less",
                 ndtd_backend_candidate_name(&rows[least].candidate, name, sizeof(name)),
                 rows[least].p95_us * 1e-3);
}

struct ndtd_autotune_choice ndtd_autotune_decide(const struct ndtd_autotune_row *rows, size_t count,
                                                 double budget_us)
{
    size_t usable;
    struct ndtd_autotune_choice choice = {.row = find_least(rows, count, &usable)};
    const int least = choice.row;
    if (least < 0) {
        snprintf(choice.reason, sizeof(choice.reason), "nothing could be measured");
        return choice;
    }
    choice.meets_budget = rows[least].p95_us <= budget_us;
    const double limit_us = choice.meets_budget ? fmin(SAME * rows[least].p95_us, budget_us) : rows[least].p95_us;
    for (int i = 0; i < choice.row; i++)
        if (is_usable(&rows[i]) && rows[i].p95_us <= limit_us)
            choice.row = i;
    give_reason(&choice, rows, least, usable, budget_us);
    return choice;
}

const char *ndtd_autotune_source_name(enum ndtd_autotune_source source)
{
    static const char *const names[] = {"default", "measured", "cached"};
    return names[source];
}

static void add(char *text, size_t size, const char *more)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

/* Each reason is told once, for all rows in a line that share it. */
static void add_row(char *text, size_t size, const struct ndtd_autotune_result *tuned, size_t i)
{
    const struct ndtd_autotune_row *row = &tuned->rows[i];
    char name[80], part[300];
    ndtd_backend_candidate_name(&row->candidate, name, sizeof(name));
    if (row->is_here)
        snprintf(part, sizeof(part), "%s%s %.4g/%.4g", i ? "; " : "", name, row->p50_us * 1e-3, row->p95_us * 1e-3);
    else
        snprintf(part, sizeof(part), "%s%s not here: %s", i ? "; " : "", name, row->why);
    add(text, size, part);
}

const char *ndtd_autotune_line(const struct ndtd_autotune_result *tuned, char *text, size_t size)
{
    char name[80];
    if (tuned->choice.row < 0 || tuned->row_count == 0) {
        snprintf(text, size, "not measured: %s", *tuned->choice.reason ? tuned->choice.reason : "the default");
        return text;
    }
    const struct ndtd_autotune_row *row = &tuned->rows[tuned->choice.row];
    snprintf(text, size, "%s: p95 %.4g ms of %g ms at %zu points, %s (%s in %.4g ms; p50/p95 in ms: ",
             ndtd_backend_candidate_name(&row->candidate, name, sizeof(name)), row->p95_us * 1e-3,
             tuned->budget_us * 1e-3, tuned->points, tuned->choice.reason, ndtd_autotune_source_name(tuned->source),
             tuned->took_us * 1e-3);
    for (size_t i = 0; i < tuned->row_count; i++)
        add_row(text, size, tuned, i);
    add(text, size, ")");
    return text;
}

static double cost_us(const struct ndt_cost *cost, size_t points)
{
    return cost->fixed_us + cost->point_us * (double)points;
}

/* Of the dearest level: which ones a scan will use is not known. */
static double scale(const struct ndtd_autotune_result *tuned, size_t points)
{
    double here_us = 0, there_us = 0;
    for (int i = 0; i < NDT_MAX_LEVELS; i++) {
        here_us = fmax(here_us, cost_us(&tuned->costs.levels[i], points));
        there_us = fmax(there_us, cost_us(&tuned->costs.levels[i], tuned->points));
    }
    return there_us > 0 ? here_us / there_us : 1;
}

double ndtd_autotune_evaluation_us(const struct ndtd_autotune_result *tuned, size_t points)
{
    return tuned->evaluation_us * scale(tuned, points);
}

double ndtd_autotune_align_us(const struct ndtd_autotune_result *tuned, size_t points, int evaluations)
{
    if (tuned->row_count == 0 || tuned->choice.row < 0)
        return 0;
    const double usual_us = tuned->rows[tuned->choice.row].p50_us;
    return fmax(usual_us, evaluations * tuned->evaluation_us) * scale(tuned, points);
}

/* The slowness to be expected; before enough was seen, the most. */
static double base_ratio(const struct ndtd_drift *drift)
{
    return drift->seen < BASE_SCANS ? BASE_MOST : fmin(fmax(drift->sum_of_ratios / drift->seen, 1), BASE_MOST);
}

int ndtd_drift_see(struct ndtd_drift *drift, double seen_us, double expected_us)
{
    if (!(expected_us > 0) || !(seen_us > 0))
        return 0;
    const double ratio = seen_us / expected_us;
    drift->slow += ratio > DRIFT_RATIO * base_ratio(drift) ? 1 : -DRIFT_RELIEF;
    if (drift->slow < 0)
        drift->slow = 0;
    if (drift->seen < BASE_SCANS) {
        drift->sum_of_ratios += fmin(ratio, 2 * BASE_MOST);
        drift->seen++;
    }
    if (drift->slow < DRIFT_SCANS)
        return 0;
    drift->slow = 0;
    return 1;
}
