/** @file
 * @brief Candidates, decision and sampling in turns; on this machine or on recorded times.
 */
#define _GNU_SOURCE /* CPU sets */
#include "ndtd/autotune.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "backends.h"
#include "ndtd/samples.h"

/* Times within this factor cannot be told apart by a short measurement. */
static const double TIE = 1.05;
/* A row whose fastest alignment is slower than the best p95 by this factor is given up after three turns, since
 * other load may have affected one of them, or at once when it takes very long. */
static const double BEATEN = 1.1, LONG_US = 20e3;
enum { TURN = 5, MIN_TURNS = 3, SAMPLES_ALONE = 15 };

/* ---- candidates ---- */

const char *ndtd_backend_candidate_name(const struct ndtd_backend_candidate *candidate, char *text, size_t size)
{
    char threads[32] = "";
    if (candidate->threads > 0)
        snprintf(threads, sizeof(threads), ", %d thread%s", candidate->threads, candidate->threads == 1 ? "" : "s");
    snprintf(text, size, "%s%s%s%s", candidate->backend, *candidate->pipeline ? " " : "", candidate->pipeline,
             threads);
    return text;
}

const struct ndt_backend_ops *ndtd_backend_candidate_config(const struct ndtd_backend_candidate *candidate,
                                                            struct ndt_backend_config *config)
{
    const struct ndt_backend_ops *ops;
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        if (strcmp(ops->name, candidate->backend) == 0)
            break;
    config->threads = candidate->threads;
    config->pipeline = *candidate->pipeline ? candidate->pipeline : NULL;
    return ops;
}

static void add(struct ndtd_autotune_row *rows, size_t *count, const char *backend, const char *pipeline,
                int threads)
{
    if (*count < NDTD_AUTOTUNE_ROWS)
        rows[(*count)++] = (struct ndtd_autotune_row){.candidate = {backend, pipeline, threads}};
}

static int most_threads(const struct ndtd_settings *settings)
{
    cpu_set_t cores;
    if (settings->max_threads > 0)
        return settings->max_threads;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

/* `staged` is for inspection, and `resident` finds its shape without a measurement. */
static int can_win(const char *pipeline)
{
    return strcmp(pipeline, "fused") == 0 || strcmp(pipeline, "resident") == 0;
}

size_t ndtd_autotune_candidates(const struct ndtd_settings *settings,
                                struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS])
{
    static const int steps[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    const int is_auto = strcmp(settings->backend, "auto") == 0, threads = settings->compute.threads;
    const char *wanted = settings->compute.pipeline;
    const struct ndt_backend_ops *ops;
    size_t count = 0;
    for (size_t b = 0; (ops = ndt_backend_at(b)); b++) {
        if (is_auto ? ops == &ndt_reference_backend : strcmp(settings->backend, ops->name) != 0)
            continue;
        if (!ndtd_settings_allow_backend(settings, ops->name))
            continue;
        if (ops == &ndt_cpu_backend && is_auto && threads == 0) {
            for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
                if (i == 0 || steps[i] <= most_threads(settings))
                    add(rows, &count, ops->name, "", steps[i]);
        } else if (!ops->pipelines)
            add(rows, &count, ops->name, "", ops == &ndt_cpu_backend ? threads : 0);
        for (const char *const *name = ops->pipelines; name && *name; name++) {
            if (wanted ? strcmp(*name, wanted) != 0 : !can_win(*name))
                continue;
            add(rows, &count, ops->name, *name, 0);
            if (!is_auto) /* the first one is the default */
                break;
        }
    }
    return count;
}

/* ---- decision ---- */

static int is_measured(const struct ndtd_autotune_row *row)
{
    return row->samples > 0 && row->p95_us > 0;
}

struct ndtd_autotune_choice ndtd_autotune_decide(const struct ndtd_autotune_row *rows, size_t count,
                                                 double budget_us)
{
    struct ndtd_autotune_choice choice = {.row = -1, .reason = "nothing could be measured"};
    const size_t size = sizeof(choice.reason);
    size_t measured = 0;
    int best = -1;
    char name[80];
    for (size_t i = 0; i < count; i++) {
        if (!is_measured(&rows[i]))
            continue;
        measured++;
        if (best < 0 || rows[i].p95_us < rows[best].p95_us)
            best = (int)i;
    }
    if (best < 0)
        return choice;
    const double best_us = rows[best].p95_us;
    choice.meets_budget = best_us <= budget_us;
    const double limit_us = choice.meets_budget ? fmin(TIE * best_us, budget_us) : best_us;
    choice.row = 0;
    while (!is_measured(&rows[choice.row]) || rows[choice.row].p95_us > limit_us)
        choice.row++;
    if (!choice.meets_budget)
        snprintf(choice.reason, size, "the smallest p95 of %zu, but none meets the budget of %g ms", measured,
                 budget_us * 1e-3);
    else if (measured == 1)
        snprintf(choice.reason, size, "the only one that was measured");
    else if (choice.row == best)
        snprintf(choice.reason, size, "the smallest p95 of %zu", measured);
    else
        snprintf(choice.reason, size, "as good as %s (%.4g ms) and needs less",
                 ndtd_backend_candidate_name(&rows[best].candidate, name, sizeof(name)), best_us * 1e-3);
    return choice;
}

int ndtd_autotune_together(const double *us, size_t count, int has_lanes)
{
    double best_us = INFINITY;
    size_t together = 1;
    for (size_t k = 1; k <= count; k++)
        best_us = fmin(best_us, us[k - 1] / (double)k);
    while (together < count && us[together - 1] / (double)together > TIE * best_us)
        together++;
    for (size_t k = together + 1; has_lanes && k <= count; k++)
        if (us[k - 1] / (double)k <= TIE * best_us)
            together = k;
    return (int)together;
}

const char *ndtd_autotune_line(const struct ndtd_autotune_result *tuned, char *text, size_t size)
{
    char name[80];
    if (tuned->choice.row < 0 || tuned->row_count == 0) {
        snprintf(text, size, "not measured: %s", *tuned->choice.reason ? tuned->choice.reason : "the default");
        return text;
    }
    const struct ndtd_autotune_row *chosen = &tuned->rows[tuned->choice.row];
    char together[48] = "";
    if (tuned->together == 1)
        snprintf(together, sizeof(together), ", waiting scans one after the other");
    else if (tuned->together > 1)
        snprintf(together, sizeof(together), ", up to %d waiting scans together", tuned->together);
    size_t used = (size_t)snprintf(
        text, size, "%s: p95 %.4g ms of %g ms at %zu points, %s%s (measured in %.4g ms; p50/p95 in ms",
        ndtd_backend_candidate_name(&chosen->candidate, name, sizeof(name)), chosen->p95_us * 1e-3,
        tuned->budget_us * 1e-3, tuned->points, tuned->choice.reason, together, tuned->took_us * 1e-3);
    for (size_t i = 0; i < tuned->row_count && used < size; i++) {
        const struct ndtd_autotune_row *row = &tuned->rows[i];
        const char *separator = i ? ";" : ":";
        ndtd_backend_candidate_name(&row->candidate, name, sizeof(name));
        if (row->samples > 0)
            used += (size_t)snprintf(text + used, size - used, "%s %s %.4g/%.4g", separator, name,
                                     row->p50_us * 1e-3, row->p95_us * 1e-3);
        else
            used += (size_t)snprintf(text + used, size - used, "%s %s unavailable: %s", separator, name, row->why);
    }
    if (used < size)
        snprintf(text + used, size - used, ")");
    return text;
}

/* The fastest row of a backend that was measured, else its first one; -1: it has none. */
static int row_of(const struct ndtd_autotune_result *tuned, const char *backend)
{
    int found = -1;
    for (size_t i = 0; i < tuned->row_count; i++) {
        const struct ndtd_autotune_row *row = &tuned->rows[i];
        if (strcmp(row->candidate.backend, backend) != 0)
            continue;
        if (found < 0 ||
            (is_measured(row) && (!is_measured(&tuned->rows[found]) || row->p95_us < tuned->rows[found].p95_us)))
            found = (int)i;
    }
    return found;
}

const char *ndtd_autotune_why_unused(const struct ndtd_settings *settings, const struct ndtd_autotune_result *tuned,
                                     const char *device, char *text, size_t size)
{
    char name[80], chosen_name[80];
    if (strcmp(settings->backend, "auto") != 0)
        return NULL;
    if (!ndtd_settings_allow_backend(settings, device))
        return "security.isolation leaves no way to it (gpu does)";
    if (!tuned)
        return "autotune.enable is off, and without a measurement auto means the CPU";
    const int found = row_of(tuned, device);
    if (found < 0 || tuned->choice.row < 0)
        return "it was not measured";
    const struct ndtd_autotune_row *row = &tuned->rows[found], *chosen = &tuned->rows[tuned->choice.row];
    if (strcmp(chosen->candidate.backend, device) == 0)
        return NULL;
    if (!is_measured(row))
        return row->why;
    snprintf(text, size, "p95 %.4g ms (%s), %.4g ms with %s", row->p95_us * 1e-3,
             ndtd_backend_candidate_name(&row->candidate, name, sizeof(name)), chosen->p95_us * 1e-3,
             ndtd_backend_candidate_name(&chosen->candidate, chosen_name, sizeof(chosen_name)));
    return text;
}

/* ---- sampling ---- */

struct sampling {
    struct ndtd_autotune_row *rows;
    size_t count, wanted;
    const struct ndtd_autotune_target *target;
    double end_us;
    int is_done[NDTD_AUTOTUNE_ROWS];
    double us[NDTD_AUTOTUNE_ROWS][NDTD_AUTOTUNE_SAMPLES];
};

static int is_over(const struct sampling *sampling)
{
    return sampling->target->now_us(sampling->target->context) >= sampling->end_us;
}

static void disqualify(struct sampling *sampling, size_t i, const char *why)
{
    struct ndtd_autotune_row *row = &sampling->rows[i];
    sampling->is_done[i] = 1;
    row->samples = 0;
    snprintf(row->why, sizeof(row->why), "%.*s", (int)sizeof(row->why) - 1, why);
}

/* The first alignment of a turn finds cold caches: it does not count unless there is time for no other. */
static void take_turn(struct sampling *sampling, size_t i)
{
    const struct ndtd_autotune_target *target = sampling->target;
    struct ndtd_autotune_row *row = &sampling->rows[i];
    struct ndt_error why = {""};
    for (int k = 0, is_last = 0; k <= TURN && row->samples < sampling->wanted && !is_last; k++) {
        double us = 0;
        enum ndt_status status = target->align(target->context, i, row->samples, &us, &why);
        if (status != NDT_OK) {
            disqualify(sampling, i, *why.text ? why.text : ndt_status_name(status));
            return;
        }
        is_last = is_over(sampling);
        if (us > 0 && (k > 0 || (is_last && row->samples == 0)))
            sampling->us[i][row->samples++] = us;
    }
}

static void summarize_and_prune(struct sampling *sampling)
{
    double best_us = INFINITY;
    for (size_t i = 0; i < sampling->count; i++) {
        struct ndtd_autotune_row *row = &sampling->rows[i];
        struct ndtd_samples samples = {.values = sampling->us[i], .count = row->samples};
        row->p50_us = ndtd_samples_quantile(&samples, 0.5);
        row->p95_us = ndtd_samples_quantile(&samples, 0.95);
        if (row->samples > 0)
            best_us = fmin(best_us, row->p95_us);
    }
    for (size_t i = 0; i < sampling->count; i++) {
        const double fastest_us = sampling->us[i][0]; /* sorted by the quantiles */
        const size_t samples = sampling->rows[i].samples;
        if (samples > 0 && fastest_us > BEATEN * best_us && (samples >= TURN * MIN_TURNS || fastest_us > LONG_US))
            sampling->is_done[i] = 1;
    }
}

void ndtd_autotune_take_samples(struct ndtd_autotune_row *rows, size_t count,
                                const struct ndtd_autotune_target *target, double time_us)
{
    struct sampling sampling = {.rows = rows,
                                .count = count,
                                .wanted = count > 1 ? NDTD_AUTOTUNE_SAMPLES : SAMPLES_ALONE,
                                .target = target,
                                .end_us = target->now_us(target->context) + time_us};
    for (size_t round = 0, worked = 1; worked; round++) {
        worked = 0;
        for (size_t k = 0; k < count; k++) {
            const size_t i = (k + round) % count; /* each round begins with another row */
            if (sampling.is_done[i] || rows[i].samples >= sampling.wanted)
                continue;
            if (!is_over(&sampling)) {
                take_turn(&sampling, i);
                worked = 1;
            } else if (rows[i].samples == 0)
                disqualify(&sampling, i, "the time for measuring was over before its turn");
        }
        summarize_and_prune(&sampling);
    }
}
