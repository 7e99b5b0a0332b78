#include "top_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ndt/quantile.h"
#include "result_print.h"

enum { BUCKETS = 9, BAR = 40 };

/* ---- results ---- */

static const double bucket_ms[BUCKETS] = {1, 2, 5, 10, 20, 50, 100, 200, INFINITY}; /* upper ends */
static const char *const stage_names[TOP_STAGES] = {"decode", "queue", "preprocess", "align", "publish"};

void top_view_add(struct top_view *view, const struct ndt_result_message *message)
{
    const double stages_us[TOP_STAGES] = {message->decode_us, message->queue_us, message->preprocess_us,
                                          message->result.align_us, message->publish_us};
    if (view->results > 0 && message->seq > view->last.seq + 1)
        view->missing += message->seq - view->last.seq - 1;
    view->results++;
    if ((unsigned)message->result.outcome < NDT_OUTCOME_COUNT)
        view->outcomes[message->result.outcome]++;
    if (message->has_state)
        view->states[message->state]++;
    if (message->queue_depth > view->most_waiting)
        view->most_waiting = message->queue_depth;
    view->latency_ms[view->next] = result_latency_us(message) * 1e-3;
    for (size_t i = 0; i < TOP_STAGES; i++)
        view->stages_ms[i][view->next] = isfinite(stages_us[i]) ? stages_us[i] * 1e-3 : 0;
    view->next = (view->next + 1) % TOP_WINDOW;
    view->kept += view->kept < TOP_WINDOW;
    view->last = *message;
}

static void show_latency(const struct top_view *view, FILE *file)
{
    double sorted[TOP_WINDOW];
    const size_t count = view->kept;
    memcpy(sorted, view->latency_ms, count * sizeof(*sorted));
    ndt_quantile_sort(sorted, count);
    fprintf(file, "latency     median %.1f  p90 %.1f  p99 %.1f  most %.1f ms, of the last %zu\n",
            ndt_quantile_sorted(sorted, count, 0.5), ndt_quantile_sorted(sorted, count, 0.9),
            ndt_quantile_sorted(sorted, count, 0.99), ndt_quantile_sorted(sorted, count, 1), count);
    for (size_t i = 0, from = 0; i < BUCKETS; i++) {
        size_t to = from;
        while (to < count && (sorted[to] < bucket_ms[i] || i + 1 == BUCKETS))
            to++;
        const size_t bar = ((to - from) * BAR + count - 1) / (count ? count : 1);
        if (i + 1 < BUCKETS)
            fprintf(file, "  < %4.0f ms %6zu ", bucket_ms[i], to - from);
        else
            fprintf(file, "  longer    %6zu ", to - from);
        for (size_t j = 0; j < bar; j++)
            fputc('#', file);
        fputc('\n', file);
        from = to;
    }
}

static void show_stages(const struct top_view *view, FILE *file)
{
    double sorted[TOP_WINDOW];
    fprintf(file, "stages     ");
    for (size_t i = 0; i < TOP_STAGES; i++) {
        memcpy(sorted, view->stages_ms[i], view->kept * sizeof(*sorted));
        fprintf(file, " %s %.2f", stage_names[i], ndt_quantile(sorted, view->kept, 0.5));
    }
    fprintf(file, " ms (medians)\n");
}

static void show_outcomes(const struct top_view *view, FILE *file)
{
    fprintf(file, "outcomes   ");
    for (int i = 0; i < NDT_OUTCOME_COUNT; i++)
        if (view->outcomes[i])
            fprintf(file, " %s %" PRIu64, ndt_outcome_name((enum ndt_outcome)i), view->outcomes[i]);
    fputc('\n', file);
}

static void show_states(const struct top_view *view, FILE *file)
{
    if (!view->last.has_state)
        return;
    fprintf(file, "state       %s; results", ndt_state_name(view->last.state));
    for (int i = 0; i < NDT_STATE_COUNT; i++)
        if (view->states[i])
            fprintf(file, " %s %" PRIu64, ndt_state_name((enum ndt_state)i), view->states[i]);
    fputc('\n', file);
}

static void show_last(const struct top_view *view, FILE *file)
{
    const struct ndt_scores *scores = &view->last.result.scores;
    fprintf(file, "scores      nvtl %.3f  normalised %.3f  transform probability %.3f  matched %.3f\n",
            scores->nvtl, scores->nvtl_normalized, scores->transform_probability, scores->match_ratio);
    fprintf(file, "last        ");
    result_print_text(file, &view->last);
}

void top_view_show(struct top_view *view, FILE *file, double seconds)
{
    const uint64_t fresh = view->results - view->at_last_show;
    fprintf(file, "rate        %.1f results/s, %" PRIu64 " in all", seconds > 0 ? (double)fresh / seconds : 0,
            view->results);
    if (view->missing)
        fprintf(file, ", %" PRIu64 " missing by their seq", view->missing);
    fputc('\n', file);
    if (view->results) {
        fprintf(file, "queue       %" PRIu32 " waiting, at most %" PRIu32 "; dropped %" PRIu64 "\n",
                view->last.queue_depth, view->most_waiting, view->last.drop_counter);
        show_states(view, file);
        show_outcomes(view, file);
        show_latency(view, file);
        show_stages(view, file);
        show_last(view, file);
    }
    view->at_last_show = view->results;
    view->most_waiting = 0;
}
