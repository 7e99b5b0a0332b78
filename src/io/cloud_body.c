#include "cloud_body.h"

#include <inttypes.h>
#include <stdlib.h>

#include "line_reader.h"
#include "number_text.h"

enum { BATCH = 512, CHUNK_SIZE = 262144 };

/* Points on their way from the file into the sink. */
struct batch {
    double value[NDT_SLOT_COUNT][BATCH];
    int64_t time_ns[BATCH];
};

/* Nothing is allocated before this: fields, limits, and enough bytes behind the header for what it says. */
static enum ndt_status check_body(const struct ndt_cloud_body *body, uint64_t point_bytes, struct ndt_error *err)
{
    const struct ndt_input *input = body->input;
    const uint64_t rest = input->size > body->offset ? input->size - body->offset : 0;
    const char *missing = ndt_layout_missing(&body->layout);
    if (missing)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: the points have no field '%s'", input->path, missing);
    if (body->count > NDT_CLOUD_MAX_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s: %" PRIu64 " points are more than the limit of %zu", input->path,
                        body->count, NDT_CLOUD_MAX_POINTS);
    if (body->size > NDT_POINT_SIZE_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s: a point of %zu bytes or words is beyond the limit of %zu",
                        input->path, body->size, NDT_POINT_SIZE_MAX);
    if (body->count * point_bytes > rest)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: the header says %" PRIu64 " points, at least %" PRIu64 " bytes, but only %" PRIu64
                        " follow it at byte %" PRIu64,
                        input->path, body->count, body->count * point_bytes, rest, body->offset);
    return NDT_OK;
}

static enum ndt_status open_sink(const struct ndt_cloud_body *body, struct ndt_cloud_sink *sink,
                                 struct ndt_cloud *cloud, struct ndt_error *err)
{
    enum ndt_status status = ndt_sink_open(sink, cloud, (size_t)body->count, ndt_layout_fields(&body->layout), err);
    return status == NDT_OK ? status : ndt_fail_prefix(err, status, "%s", body->input->path);
}

static void put_time(const struct ndt_point_slot *slot, const uint8_t *base, size_t at, size_t count,
                     struct batch *batch, struct ndt_cloud_sink *sink)
{
    if (ndt_scalar_is_whole(slot->type)) {
        ndt_column_to_whole(slot, base, count, batch->time_ns);
        ndt_sink_times_ns(sink, at, count, batch->time_ns);
    } else if (slot->type != NDT_SCALAR_NONE) {
        ndt_column_to_double(slot, base, count, batch->value[NDT_SLOT_TIME]);
        ndt_sink_times_s(sink, at, count, batch->value[NDT_SLOT_TIME]);
    }
}

/* One batch of points from memory, the first of them `skip` points behind `data`. */
static void put_batch(const struct ndt_cloud_body *body, const uint8_t *data, size_t skip, size_t at, size_t count,
                      struct batch *batch, struct ndt_cloud_sink *sink)
{
    const struct ndt_point_slot *slots = body->layout.slots;
    struct ndt_cloud *cloud = sink->cloud;
    float *const exact[] = {cloud->x_m, cloud->y_m, cloud->z_m};
    const int is_float = ndt_layout_is_float(&body->layout);
    for (size_t i = NDT_SLOT_X; i <= NDT_SLOT_Z; i++) {
        const uint8_t *base = data + skip * slots[i].stride;
        if (is_float)
            ndt_column_to_float(&slots[i], base, count, exact[i] + at);
        else
            ndt_column_to_double(&slots[i], base, count, batch->value[i]);
    }
    if (!is_float)
        ndt_sink_coordinates(sink, at, count, batch->value[0], batch->value[1], batch->value[2]);
    const struct ndt_point_slot *intensity = &slots[NDT_SLOT_INTENSITY];
    if (intensity->type != NDT_SCALAR_NONE)
        ndt_column_to_float(intensity, data + skip * intensity->stride, count, cloud->intensity + at);
    put_time(&slots[NDT_SLOT_TIME], data + skip * slots[NDT_SLOT_TIME].stride, at, count, batch, sink);
}

static void put_points(const struct ndt_cloud_body *body, const uint8_t *data, size_t at, size_t count,
                       struct ndt_cloud_sink *sink)
{
    struct batch batch;
    for (size_t done = 0; done < count; done += BATCH)
        put_batch(body, data, done, at + done, count - done < BATCH ? count - done : BATCH, &batch, sink);
}

enum ndt_status ndt_body_read_memory(const struct ndt_cloud_body *body, const uint8_t *data,
                                     struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct ndt_cloud_sink sink;
    enum ndt_status status = check_body(body, 0, err);
    if (status == NDT_OK)
        status = open_sink(body, &sink, cloud, err);
    if (status != NDT_OK)
        return status;
    do
        put_points(body, data, 0, cloud->count, &sink);
    while (ndt_sink_again(&sink));
    return NDT_OK;
}

static enum ndt_status read_chunks(const struct ndt_cloud_body *body, uint8_t *chunk, struct ndt_cloud_sink *sink,
                                   struct ndt_error *err)
{
    const size_t chunk_points = CHUNK_SIZE / body->size;
    const size_t total = sink->cloud->count;
    for (size_t at = 0; at < total; at += chunk_points) {
        const size_t count = total - at < chunk_points ? total - at : chunk_points;
        enum ndt_status status =
            ndt_input_read(body->input, body->offset + at * body->size, chunk, count * body->size, err);
        if (status != NDT_OK)
            return status;
        put_points(body, chunk, at, count, sink);
    }
    return NDT_OK;
}

enum ndt_status ndt_body_read_binary(const struct ndt_cloud_body *body, struct ndt_cloud *cloud,
                                     struct ndt_error *err)
{
    struct ndt_cloud_sink sink;
    enum ndt_status status = check_body(body, body->size, err);
    if (status == NDT_OK)
        status = open_sink(body, &sink, cloud, err);
    if (status != NDT_OK)
        return status;
    uint8_t *chunk = malloc(CHUNK_SIZE);
    if (!chunk)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for a buffer", body->input->path);
    do
        status = read_chunks(body, chunk, &sink, err);
    while (status == NDT_OK && ndt_sink_again(&sink));
    free(chunk);
    return status;
}

/* The slots in the order of their words. */
struct text_plan {
    size_t count;
    enum ndt_slot slots[NDT_SLOT_COUNT];
};

static void plan_text(struct text_plan *plan, const struct ndt_point_layout *layout)
{
    plan->count = 0;
    for (unsigned slot = 0; slot < NDT_SLOT_COUNT; slot++) {
        if (layout->slots[slot].type == NDT_SCALAR_NONE)
            continue;
        size_t at = plan->count++;
        for (; at > 0 && layout->slots[plan->slots[at - 1]].offset > layout->slots[slot].offset; at--)
            plan->slots[at] = plan->slots[at - 1];
        plan->slots[at] = (enum ndt_slot)slot;
    }
}

static int skip_words(const char **at, const char *end, size_t count)
{
    const char *word;
    size_t length;
    while (count > 0 && ndt_text_word(at, end, &word, &length))
        count--;
    return count == 0;
}

static int parse_line(const struct ndt_cloud_body *body, const struct text_plan *plan, const char *at,
                      const char *end, struct batch *batch, size_t row)
{
    size_t words = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const enum ndt_slot slot = plan->slots[i];
        const struct ndt_point_slot *source = &body->layout.slots[slot];
        if (!skip_words(&at, end, source->offset - words))
            return 0;
        const int is_ns = slot == NDT_SLOT_TIME && ndt_scalar_is_whole(source->type);
        if (!(is_ns ? ndt_text_whole(&at, end, &batch->time_ns[row])
                    : ndt_text_real(&at, end, &batch->value[slot][row])))
            return 0;
        words = source->offset + 1;
    }
    return skip_words(&at, end, body->size - words) && ndt_text_done(at, end);
}

static enum ndt_status fail_line(const struct ndt_cloud_body *body, size_t number, const char *at, const char *end,
                                 struct ndt_error *err)
{
    const char *word;
    size_t length, words = 0;
    while (ndt_text_word(&at, end, &word, &length))
        words++;
    if (words == body->size)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: a value is not a number of its field's type",
                        body->input->path, number);
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: %zu values, where the header says %zu", body->input->path,
                    number, words, body->size);
}

/* The next line that is not blank. */
static enum ndt_status next_line(struct ndt_line_reader *reader, const char **line, const char **end,
                                 struct ndt_error *err)
{
    enum ndt_status status;
    do
        status = ndt_line_next(reader, line, end, err);
    while (status == NDT_OK && ndt_text_done(*line, *end));
    return status;
}

static enum ndt_status parse_batch(const struct ndt_cloud_body *body, const struct text_plan *plan,
                                   struct ndt_line_reader *reader, size_t at, size_t count, struct batch *batch,
                                   struct ndt_error *err)
{
    for (size_t row = 0; row < count; row++) {
        const char *line, *end;
        enum ndt_status status = next_line(reader, &line, &end, err);
        if (status == NDT_END)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: ends after line %zu with %zu of %" PRIu64 " points",
                            body->input->path, reader->number, at + row, body->count);
        if (status != NDT_OK)
            return status;
        if (!parse_line(body, plan, line, end, batch, row))
            return fail_line(body, reader->number, line, end, err);
    }
    return NDT_OK;
}

static void put_text(const struct ndt_cloud_body *body, const struct batch *batch, size_t at, size_t count,
                     struct ndt_cloud_sink *sink)
{
    const struct ndt_point_slot *slots = body->layout.slots;
    ndt_sink_coordinates(sink, at, count, batch->value[0], batch->value[1], batch->value[2]);
    if (slots[NDT_SLOT_INTENSITY].type != NDT_SCALAR_NONE)
        for (size_t i = 0; i < count; i++)
            sink->cloud->intensity[at + i] = (float)batch->value[NDT_SLOT_INTENSITY][i];
    if (ndt_scalar_is_whole(slots[NDT_SLOT_TIME].type))
        ndt_sink_times_ns(sink, at, count, batch->time_ns);
    else if (slots[NDT_SLOT_TIME].type != NDT_SCALAR_NONE)
        ndt_sink_times_s(sink, at, count, batch->value[NDT_SLOT_TIME]);
}

static enum ndt_status read_lines(const struct ndt_cloud_body *body, struct ndt_line_reader *reader,
                                  struct ndt_cloud_sink *sink, struct ndt_error *err)
{
    struct batch batch;
    struct text_plan plan;
    const size_t total = sink->cloud->count;
    plan_text(&plan, &body->layout);
    for (size_t at = 0; at < total; at += BATCH) {
        const size_t count = total - at < BATCH ? total - at : BATCH;
        enum ndt_status status = parse_batch(body, &plan, reader, at, count, &batch, err);
        if (status != NDT_OK)
            return status;
        put_text(body, &batch, at, count, sink);
    }
    const char *line, *end;
    enum ndt_status status = body->is_last ? next_line(reader, &line, &end, err) : NDT_END;
    if (status == NDT_OK)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: more than the %" PRIu64 " points of the header",
                        body->input->path, reader->number, body->count);
    return status == NDT_END ? NDT_OK : status;
}

enum ndt_status ndt_body_read_text(const struct ndt_cloud_body *body, struct ndt_cloud *cloud,
                                   struct ndt_error *err)
{
    struct ndt_cloud_sink sink;
    /* A digit and a blank or line end per word; the last line need not be ended. */
    enum ndt_status status = check_body(body, 2 * (uint64_t)body->size - 1, err);
    if (status == NDT_OK)
        status = open_sink(body, &sink, cloud, err);
    if (status != NDT_OK)
        return status;
    do {
        struct ndt_line_reader reader;
        status = ndt_line_reader_open(&reader, body->input, body->offset, body->lines_before, err);
        if (status == NDT_OK)
            status = read_lines(body, &reader, &sink, err);
        ndt_line_reader_close(&reader);
    } while (status == NDT_OK && ndt_sink_again(&sink));
    return status;
}
