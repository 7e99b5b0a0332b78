#include "top_view.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <msgpack.h>
#include <string.h>

#include "ndt/quantile.h"
#include "result_print.h"

enum { BUCKETS = 9, BAR = 40, LABEL = 12, MAX_REPLY_BYTES = 65536 };

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

/* ---- the reply to a status request ---- */

static int is_key(const msgpack_object *key, const char *name)
{
    return key->type == MSGPACK_OBJECT_STR && key->via.str.size == strlen(name) &&
           memcmp(key->via.str.ptr, name, strlen(name)) == 0;
}

/* Untrusted input: only printable characters reach the terminal. */
static int print_bytes(FILE *file, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        fputc(isprint((unsigned char)text[i]) ? text[i] : '?', file);
    return (int)size;
}

static void print_scalar(FILE *file, const msgpack_object *value)
{
    switch (value->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        fputs(value->via.boolean ? "yes" : "no", file);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        fprintf(file, "%" PRIu64, value->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        fprintf(file, "%" PRId64, value->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        fprintf(file, "%.4g", value->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        print_bytes(file, value->via.str.ptr, value->via.str.size);
        break;
    default:
        fputs("...", file); /* deeper levels are omitted */
    }
}

static void print_value(FILE *file, const msgpack_object *value)
{
    if (value->type != MSGPACK_OBJECT_MAP) {
        print_scalar(file, value);
        return;
    }
    for (uint32_t i = 0; i < value->via.map.size; i++) {
        const msgpack_object_kv *pair = &value->via.map.ptr[i];
        if (pair->key.type != MSGPACK_OBJECT_STR)
            continue;
        fputs(i ? "  " : "", file);
        print_bytes(file, pair->key.via.str.ptr, pair->key.via.str.size);
        fputc(' ', file);
        print_scalar(file, &pair->val);
    }
}

static enum ndt_status print_reply(FILE *file, const msgpack_object *reply, struct ndt_error *err)
{
    if (reply->type != MSGPACK_OBJECT_MAP)
        return ndt_fail(err, NDT_ERR_FORMAT, "the reply is not a map");
    const msgpack_object_map *map = &reply->via.map;
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *key = &map->ptr[i].key;
        if (key->type != MSGPACK_OBJECT_STR || is_key(key, "v") || is_key(key, "type") || is_key(key, "id") ||
            is_key(key, "ok"))
            continue;
        const int used = print_bytes(file, key->via.str.ptr, key->via.str.size);
        fprintf(file, "%*s", used < LABEL ? LABEL - used : 1, "");
        print_value(file, &map->ptr[i].val);
        fputc('\n', file);
    }
    return NDT_OK;
}

/* The unpacker allocates what the headers of the reply declare, hence the limit of its size. */
enum ndt_status top_view_status(FILE *file, const uint8_t *data, size_t size, struct ndt_error *err)
{
    msgpack_unpacked unpacked;
    size_t at = 0;
    if (size > MAX_REPLY_BYTES)
        return ndt_fail(err, NDT_ERR_LIMIT, "the reply has %zu bytes, more than %d", size, MAX_REPLY_BYTES);
    msgpack_unpacked_init(&unpacked);
    enum ndt_status status;
    if (msgpack_unpack_next(&unpacked, (const char *)data, size, &at) == MSGPACK_UNPACK_SUCCESS)
        status = print_reply(file, &unpacked.data, err);
    else
        status = ndt_fail(err, NDT_ERR_FORMAT, "the reply is not msgpack");
    msgpack_unpacked_destroy(&unpacked);
    return status;
}
