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
/* Factor over the best p95 at which a row is given up by its fastest alignment: after three turns, since other load
 * may have affected one of them, or at once when that takes very long. */
static const double BEATEN = 1.1, LONG_US = 20e3;
enum { TURN = 5, MIN_TURNS = 3, SAMPLES_ALONE = 15 };
/* Alignments after a rest: their number, their part of the time, and the factor over the best row of the backend up
 * to which a row is timed this way. */
enum { RESTS = 5 };
static const double REST_PART = 0.5, REST_BEATEN = 2;

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

/* Whether a pipeline is a candidate: `staged` is for inspection, and `resident` finds its shape without a
 * measurement. */
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
        for (const char *const *name = ops->pipelines; name && *name; name++)
            if (wanted ? strcmp(*name, wanted) == 0 : can_win(*name))
                add(rows, &count, ops->name, *name, 0);
    }
    return count;
}

/* ---- decision ---- */

static int is_measured(const struct ndtd_autotune_row *row)
{
    return row->samples > 0 && row->p95_us > 0;
}

/* The time that decides; 0: the row takes no part, because it was not among the rows timed after rests. */
static double deciding_us(const struct ndtd_autotune_row *row, int by_rests)
{
    return !is_measured(row) ? 0 : by_rests ? row->rested_us : row->p95_us;
}

static int was_rested(const struct ndtd_autotune_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_measured(&rows[i]) && rows[i].rested_us > 0)
            return 1;
    return 0;
}

struct ndtd_autotune_choice ndtd_autotune_decide(const struct ndtd_autotune_row *rows, size_t count,
                                                 double budget_us)
{
    struct ndtd_autotune_choice choice = {.row = -1, .reason = "nothing could be measured"};
    const size_t size = sizeof(choice.reason);
    const int by_rests = was_rested(rows, count);
    const char *least = by_rests ? "smallest median after a rest" : "smallest p95";
    size_t measured = 0;
    int best = -1;
    char name[80];
    for (size_t i = 0; i < count; i++) {
        const double us = deciding_us(&rows[i], by_rests);
        measured += us > 0;
        if (us > 0 && (best < 0 || us < deciding_us(&rows[best], by_rests)))
            best = (int)i;
    }
    if (best < 0)
        return choice;
    const double best_us = deciding_us(&rows[best], by_rests);
    choice.meets_budget = best_us <= budget_us;
    const double limit_us = choice.meets_budget ? fmin(TIE * best_us, budget_us) : best_us;
    choice.row = 0;
    while (deciding_us(&rows[choice.row], by_rests) <= 0 || deciding_us(&rows[choice.row], by_rests) > limit_us)
        choice.row++;
    if (!choice.meets_budget)
        snprintf(choice.reason, size, "the %s of %zu, but none meets the budget of %g ms", least, measured,
                 budget_us * 1e-3);
    else if (measured == 1)
        snprintf(choice.reason, size, "the only one that was measured");
    else if (choice.row == best)
        snprintf(choice.reason, size, "the %s of %zu", least, measured);
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
        char rested[40] = "";
        if (row->rested_us > 0)
            snprintf(rested, sizeof(rested), ", %.4g after a rest", row->rested_us * 1e-3);
        if (row->samples > 0)
            used += (size_t)snprintf(text + used, size - used, "%s %s %.4g/%.4g%s", separator, name,
                                     row->p50_us * 1e-3, row->p95_us * 1e-3, rested);
        else
            used += (size_t)snprintf(text + used, size - used, "%s %s unavailable: %s", separator, name, row->why);
    }
    if (used < size)
        snprintf(text + used, size - used, ")");
    return text;
}

/* The fastest measured row of a backend, else its first one; -1: it has none. */
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
    const int by_rests = row->rested_us > 0 && chosen->rested_us > 0;
    snprintf(text, size, "%s %.4g ms (%s), %.4g ms with %s", by_rests ? "after a scan period of rest" : "p95",
             (by_rests ? row->rested_us : row->p95_us) * 1e-3,
             ndtd_backend_candidate_name(&row->candidate, name, sizeof(name)),
             (by_rests ? chosen->rested_us : chosen->p95_us) * 1e-3,
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

/* Times a row once per alignment of a turn. The first alignment finds cold caches and counts only if there is time
 * for no other. */
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

static int is_device(const struct ndtd_autotune_row *row)
{
    return *row->candidate.pipeline != '\0';
}

/* Times the rows back to back, in turns. */
static void sample_in_turns(struct sampling *sampling)
{
    const size_t count = sampling->count;
    for (size_t round = 0, worked = 1; worked; round++) {
        worked = 0;
        for (size_t k = 0; k < count; k++) {
            const size_t i = (k + round) % count; /* each round begins with another row */
            if (sampling->is_done[i] || sampling->rows[i].samples >= sampling->wanted)
                continue;
            if (!is_over(sampling)) {
                take_turn(sampling, i);
                worked = 1;
            } else if (sampling->rows[i].samples == 0)
                disqualify(sampling, i, "the time for measuring was over before its turn");
        }
        summarize_and_prune(sampling);
    }
}

/* ---- after rests ---- */

/* Chooses the rows to be timed after rests: if a device has won, the devices near the best one, and the best of the
 * others. Returns their number; fewer than two leave nothing to decide. */
static size_t choose_rested(const struct sampling *sampling, size_t chosen[NDTD_AUTOTUNE_ROWS])
{
    const struct ndtd_autotune_row *rows = sampling->rows;
    const int best = ndtd_autotune_decide(rows, sampling->count, INFINITY).row;
    size_t count = 0, other = sampling->count;
    if (best < 0 || !is_device(&rows[best]))
        return 0;
    for (size_t i = 0; i < sampling->count; i++) {
        if (!is_measured(&rows[i]))
            continue;
        if (is_device(&rows[i]) && rows[i].p95_us <= REST_BEATEN * rows[best].p95_us)
            chosen[count++] = i;
        else if (!is_device(&rows[i]) && (other == sampling->count || rows[i].p95_us < rows[other].p95_us))
            other = i;
    }
    if (other < sampling->count)
        chosen[count++] = other;
    return count;
}

/* Takes one more time per row. The alignment before the rest opens a row that another one has closed, and warms it.
 */
static enum ndt_status take_rested_round(struct sampling *sampling, const size_t *chosen, size_t count,
                                         size_t round)
{
    const struct ndtd_autotune_target *target = sampling->target;
    struct ndt_error why = {""};
    double unused_us;
    for (size_t k = 0; k < count; k++) {
        double *us = &sampling->us[chosen[k]][round];
        enum ndt_status status = target->align(target->context, chosen[k], round, &unused_us, &why);
        if (status == NDT_OK) {
            target->rest(target->context);
            status = target->align(target->context, chosen[k], round, us, &why);
        }
        if (status != NDT_OK) {
            disqualify(sampling, chosen[k], *why.text ? why.text : ndt_status_name(status));
            return status;
        }
    }
    return NDT_OK;
}

/* Times the rows after rests; a round begins while it is expected to end in time. */
static void sample_after_rests(struct sampling *sampling)
{
    size_t chosen[NDTD_AUTOTUNE_ROWS], round = 0;
    const size_t count = choose_rested(sampling, chosen);
    const struct ndtd_autotune_target *target = sampling->target;
    double now_us = target->now_us(target->context), round_us = (double)count * NDTD_SCAN_PERIOD_S * 1e6;
    enum ndt_status status = count > 1 ? NDT_OK : NDT_ERR_UNSUPPORTED;
    while (status == NDT_OK && round < RESTS && now_us + round_us <= sampling->end_us) {
        const double before_us = now_us;
        status = take_rested_round(sampling, chosen, count, round);
        now_us = target->now_us(target->context);
        round_us = now_us - before_us;
        round += status == NDT_OK;
    }
    for (size_t k = 0; round > 0 && k < count; k++) {
        struct ndtd_samples samples = {.values = sampling->us[chosen[k]], .count = round};
        sampling->rows[chosen[k]].rested_us = ndtd_samples_quantile(&samples, 0.5);
    }
}

void ndtd_autotune_take_samples(struct ndtd_autotune_row *rows, size_t count,
                                const struct ndtd_autotune_target *target, double time_us)
{
    const double end_us = target->now_us(target->context) + time_us;
    struct sampling sampling = {.rows = rows,
                                .count = count,
                                .wanted = count > 1 ? NDTD_AUTOTUNE_SAMPLES : SAMPLES_ALONE,
                                .target = target,
                                .end_us = end_us};
    int has_devices = 0, has_others = 0;
    for (size_t i = 0; i < count; i++) {
        has_devices |= is_device(&rows[i]);
        has_others |= !is_device(&rows[i]);
    }
    const int can_rest = target->rest && has_devices && has_others;
    sampling.end_us -= can_rest ? REST_PART * time_us : 0;
    sample_in_turns(&sampling);
    sampling.end_us = end_us;
    if (can_rest)
        sample_after_rests(&sampling);
}
