#include "cloud_reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "number_text.h"

/* ---- the sink: stores double values in a cloud, chooses its origin and the reference of its times ----
 *
 * Origin: the first finite point, rounded to a multiple of 1024 m; zero when no coordinate reaches 2048 m, where a
 * float resolves 0.1 mm. This is known only at the end, so the points may have to be passed a second time
 * (sink_again). Times of 10 s and more are those of a clock and become relative to the first point's; smaller ones
 * are kept. */

static const double origin_step_m = 1024.0;
static const double float_range_m = 2048.0; /* a float below it is exact to 0.06 mm */
static const double clock_s = 10.0;         /* longer than any sweep */

struct cloud_sink {
    struct ndt_cloud *cloud; /* borrowed */
    int has_origin;
    double largest_m; /* largest absolute coordinate of a finite point */
    int has_base;
    int64_t base_ns;
    double base_s;
};

/* Makes `cloud` hold `count` points with at least the optional arrays `fields`; intensity and time are zero. */
static enum ndt_status sink_open(struct cloud_sink *out, struct ndt_cloud *cloud, size_t count, unsigned fields,
                                 struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->cloud = cloud;
    cloud->count = 0;
    memset(cloud->origin_m, 0, sizeof(cloud->origin_m));
    enum ndt_status status = ndt_cloud_reserve(cloud, count, fields, err);
    if (status != NDT_OK)
        return status;
    if (cloud->intensity && count)
        memset(cloud->intensity, 0, count * sizeof(float));
    if (cloud->time_s && count)
        memset(cloud->time_s, 0, count * sizeof(float));
    cloud->count = count;
    return NDT_OK;
}

static int is_finite_point(double x, double y, double z)
{
    return isfinite(x) && isfinite(y) && isfinite(z);
}

static double round_to_step(double value_m)
{
    return rint(value_m / origin_step_m) * origin_step_m + 0.0; /* no minus zero */
}

static void choose_origin(struct cloud_sink *sink, size_t count, const double *x_m, const double *y_m,
                          const double *z_m)
{
    for (size_t i = 0; i < count && !sink->has_origin; i++) {
        if (!is_finite_point(x_m[i], y_m[i], z_m[i]))
            continue;
        sink->cloud->origin_m[0] = round_to_step(x_m[i]);
        sink->cloud->origin_m[1] = round_to_step(y_m[i]);
        sink->cloud->origin_m[2] = round_to_step(z_m[i]);
        sink->has_origin = 1;
    }
}

/* Takes points at .. at + count - 1, in the order of the file. A point that is not finite becomes NaN NaN NaN. */
static void sink_coordinates(struct cloud_sink *sink, size_t at, size_t count, const double *x_m, const double *y_m,
                             const double *z_m)
{
    struct ndt_cloud *cloud = sink->cloud;
    choose_origin(sink, count, x_m, y_m, z_m);
    for (size_t i = 0; i < count; i++) {
        if (is_finite_point(x_m[i], y_m[i], z_m[i])) {
            const double largest_m = fmax(fabs(x_m[i]), fmax(fabs(y_m[i]), fabs(z_m[i])));
            sink->largest_m = fmax(sink->largest_m, largest_m);
            cloud->x_m[at + i] = (float)(x_m[i] - cloud->origin_m[0]);
            cloud->y_m[at + i] = (float)(y_m[i] - cloud->origin_m[1]);
            cloud->z_m[at + i] = (float)(z_m[i] - cloud->origin_m[2]);
        } else {
            cloud->x_m[at + i] = cloud->y_m[at + i] = cloud->z_m[at + i] = NAN;
        }
    }
}

static void sink_times_s(struct cloud_sink *sink, size_t at, size_t count, const double *time_s)
{
    for (size_t i = 0; i < count; i++) {
        if (!sink->has_base && isfinite(time_s[i])) {
            sink->base_s = fabs(time_s[i]) >= clock_s ? time_s[i] : 0.0;
            sink->has_base = 1;
        }
        sink->cloud->time_s[at + i] = (float)(time_s[i] - sink->base_s);
    }
}

static void sink_times_ns(struct cloud_sink *sink, size_t at, size_t count, const int64_t *time_ns)
{
    for (size_t i = 0; i < count; i++) {
        if (!sink->has_base) {
            sink->base_ns = fabs((double)time_ns[i]) >= clock_s * 1e9 ? time_ns[i] : 0;
            sink->has_base = 1;
        }
        /* unsigned: the difference of hostile times may exceed int64 */
        const int64_t since_ns = (int64_t)((uint64_t)time_ns[i] - (uint64_t)sink->base_ns);
        sink->cloud->time_s[at + i] = (float)((double)since_ns * 1e-9);
    }
}

/* Ends a pass over the points; returns 1 if all points must be passed again, at most once. */
static int sink_again(struct cloud_sink *sink)
{
    double *origin_m = sink->cloud->origin_m;
    if ((origin_m[0] == 0.0 && origin_m[1] == 0.0 && origin_m[2] == 0.0) || sink->largest_m >= float_range_m)
        return 0;
    memset(origin_m, 0, sizeof(sink->cloud->origin_m));
    sink->has_base = 0;
    return 1;
}

/* ---- the points ---- */

enum { BATCH = 512, CHUNK_SIZE = 262144, POINTS_AT_ONCE = 1 << 20 };

/* A batch of points between the file and the sink. */
struct batch {
    double value[NDT_SLOT_COUNT][BATCH];
    int64_t time_ns[BATCH];
};

/* Checks fields, limits, and the bytes behind the header, before anything is allocated. */
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
                        "%s: the header announces %" PRIu64 " points, at least %" PRIu64 " bytes, but only %" PRIu64
                        " follow it at byte %" PRIu64,
                        input->path, body->count, body->count * point_bytes, rest, body->offset);
    return NDT_OK;
}

static enum ndt_status open_sink(const struct ndt_cloud_body *body, struct cloud_sink *sink,
                                 struct ndt_cloud *cloud, struct ndt_error *err)
{
    enum ndt_status status = sink_open(sink, cloud, (size_t)body->count, ndt_layout_fields(&body->layout), err);
    return status == NDT_OK ? status : ndt_fail_prefix(err, status, "%s", body->input->path);
}

static void put_time(const struct ndt_point_slot *slot, const uint8_t *base, size_t at, size_t count,
                     struct batch *batch, struct cloud_sink *sink)
{
    if (ndt_scalar_is_whole(slot->type)) {
        ndt_column_to_whole(slot, base, count, batch->time_ns);
        sink_times_ns(sink, at, count, batch->time_ns);
    } else if (slot->type != NDT_SCALAR_NONE) {
        ndt_column_to_double(slot, base, count, batch->value[NDT_SLOT_TIME]);
        sink_times_s(sink, at, count, batch->value[NDT_SLOT_TIME]);
    }
}

/* Puts one batch of points from memory, the first of them `skip` points behind `data`. */
static void put_batch(const struct ndt_cloud_body *body, const uint8_t *data, size_t skip, size_t at, size_t count,
                      struct batch *batch, struct cloud_sink *sink)
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
        sink_coordinates(sink, at, count, batch->value[0], batch->value[1], batch->value[2]);
    const struct ndt_point_slot *intensity = &slots[NDT_SLOT_INTENSITY];
    if (intensity->type != NDT_SCALAR_NONE)
        ndt_column_to_float(intensity, data + skip * intensity->stride, count, cloud->intensity + at);
    put_time(&slots[NDT_SLOT_TIME], data + skip * slots[NDT_SLOT_TIME].stride, at, count, batch, sink);
}

/* Puts points, the first of which is `skip` points behind `data`. */
static void put_points(const struct ndt_cloud_body *body, const uint8_t *data, size_t skip, size_t at, size_t count,
                       struct cloud_sink *sink)
{
    struct batch batch;
    for (size_t done = 0; done < count; done += BATCH)
        put_batch(body, data, skip + done, at + done, count - done < BATCH ? count - done : BATCH, &batch, sink);
}

static enum ndt_status put_memory(const struct ndt_cloud_body *body, const uint8_t *data, struct cloud_sink *sink,
                                  struct ndt_error *err)
{
    const size_t total = sink->cloud->count;
    for (size_t at = 0; at < total; at += POINTS_AT_ONCE) {
        enum ndt_status status = ndt_progress_check(body->input->progress, err);
        if (status != NDT_OK)
            return status;
        put_points(body, data, at, at, total - at < POINTS_AT_ONCE ? total - at : POINTS_AT_ONCE, sink);
    }
    return NDT_OK;
}

enum ndt_status ndt_body_read_memory(const struct ndt_cloud_body *body, const uint8_t *data,
                                     struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct cloud_sink sink;
    enum ndt_status status = check_body(body, 0, err);
    if (status == NDT_OK)
        status = open_sink(body, &sink, cloud, err);
    if (status != NDT_OK)
        return status;
    do
        status = put_memory(body, data, &sink, err);
    while (status == NDT_OK && sink_again(&sink));
    return status;
}

static enum ndt_status read_chunks(const struct ndt_cloud_body *body, uint8_t *chunk, struct cloud_sink *sink,
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
        put_points(body, chunk, 0, at, count, sink);
    }
    return NDT_OK;
}

enum ndt_status ndt_body_read_binary(const struct ndt_cloud_body *body, struct ndt_cloud *cloud,
                                     struct ndt_error *err)
{
    struct cloud_sink sink;
    enum ndt_status status = check_body(body, body->size, err);
    if (status == NDT_OK)
        status = open_sink(body, &sink, cloud, err);
    if (status != NDT_OK)
        return status;
    uint8_t *chunk = malloc(CHUNK_SIZE);
    if (!chunk)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: out of memory for a read buffer", body->input->path);
    do
        status = read_chunks(body, chunk, &sink, err);
    while (status == NDT_OK && sink_again(&sink));
    free(chunk);
    return status;
}

/* Slots in the order of their words. */
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
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: a value is not a number of the type of its field",
                        body->input->path, number);
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: %zu values, but the header announces %zu",
                    body->input->path, number, words, body->size);
}

/* Reads the next line that is not blank. */
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
                     struct cloud_sink *sink)
{
    const struct ndt_point_slot *slots = body->layout.slots;
    sink_coordinates(sink, at, count, batch->value[0], batch->value[1], batch->value[2]);
    if (slots[NDT_SLOT_INTENSITY].type != NDT_SCALAR_NONE)
        for (size_t i = 0; i < count; i++)
            sink->cloud->intensity[at + i] = (float)batch->value[NDT_SLOT_INTENSITY][i];
    if (ndt_scalar_is_whole(slots[NDT_SLOT_TIME].type))
        sink_times_ns(sink, at, count, batch->time_ns);
    else if (slots[NDT_SLOT_TIME].type != NDT_SCALAR_NONE)
        sink_times_s(sink, at, count, batch->value[NDT_SLOT_TIME]);
}

static enum ndt_status read_lines(const struct ndt_cloud_body *body, struct ndt_line_reader *reader,
                                  struct cloud_sink *sink, struct ndt_error *err)
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
    struct cloud_sink sink;
    /* Each word has at least a digit and a blank or line end; the last line need not be ended. */
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
    } while (status == NDT_OK && sink_again(&sink));
    return status;
}
