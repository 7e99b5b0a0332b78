/** @file
 * @brief The points message: the points of a scan without the motion of the sensor, and the course of its
 * alignment. */
#include "point_blob.h"

#include <string.h>

#include "ndt/limits.h"

/* The message for its table of fields; `cloud` for the encoder only. */
struct points_wire {
    struct ndt_points_message message;
    struct ndt_point_layout points;
    const struct ndt_cloud *cloud;
};

static const char *const kind_names[NDT_CANDIDATE_KINDS] = {
    [NDT_CANDIDATE_HYPOTHESIS] = "hypothesis",
    [NDT_CANDIDATE_RECOVERY] = "recovery",
    [NDT_CANDIDATE_SEARCH] = "search",
};

const char *ndt_candidate_kind_name(enum ndt_candidate_kind kind)
{
    return (unsigned)kind < NDT_CANDIDATE_KINDS ? kind_names[kind] : "unknown";
}

/* ---- iterations ---- */

#define AT(member)     offsetof(struct ndt_iteration, member)
#define COUNT(member)  #member, NDT_WIRE_COUNT, AT(member), 0, NDT_WIRE_REQUIRED, NULL, NULL
#define NUMBER(member) #member, NDT_WIRE_NUMBER, AT(member), 0, NDT_WIRE_REQUIRED, NULL, NULL
#define ROWS(table)    (sizeof(table) / sizeof((table)[0]))
static const struct ndt_wire_field iteration_rows[] = {
    {COUNT(iteration)},      {COUNT(level)},    {COUNT(evaluations)}, {NUMBER(score)},
    {NUMBER(gradient_norm)}, {NUMBER(step_m)},  {NUMBER(step_rad)},   {NUMBER(matched)},
    {NUMBER(pairs)},         {NUMBER(eval_us)}, {NUMBER(solve_us)},   {NUMBER(kernel_us)},
};
#undef NUMBER
#undef COUNT
#undef AT

static enum ndt_status read_array(struct ndt_wire_reader *reader, size_t most, size_t *count)
{
    const enum ndt_status status = ndt_wire_read_array(reader, count);
    if (status == NDT_OK && *count > most)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "%zu items are above the limit of %zu", *count, most);
    return status;
}

static enum ndt_status read_iterations(struct ndt_wire_reader *reader, void *wire)
{
    struct ndt_points_message *message = &((struct points_wire *)wire)->message;
    enum ndt_status status = read_array(reader, NDT_POINTS_MAX_ITEMS, &message->iteration_count);
    for (size_t i = 0; status == NDT_OK && i < message->iteration_count; i++) {
        status = ndt_wire_read_fields(reader, iteration_rows, ROWS(iteration_rows), &message->iterations[i]);
        if (status != NDT_OK)
            return ndt_fail_prefix(reader->err, status, "iteration %zu", i);
    }
    return status;
}

static void write_iterations(struct ndt_wire_writer *writer, const void *wire)
{
    const struct ndt_points_message *message = &((const struct points_wire *)wire)->message;
    ndt_wire_put_array(writer, message->iteration_count);
    for (size_t i = 0; i < message->iteration_count; i++)
        ndt_wire_put_fields(writer, iteration_rows, ROWS(iteration_rows), &message->iterations[i]);
}

/* ---- candidates ---- */

static enum ndt_status read_kind(struct ndt_wire_reader *reader, void *candidate)
{
    char name[NDT_PROTO_MAX_NAME + 1];
    const enum ndt_status status = ndt_wire_read_name(reader, name, sizeof(name));
    if (status != NDT_OK)
        return status;
    for (int i = 0; i < NDT_CANDIDATE_KINDS; i++) {
        if (strcmp(kind_names[i], name) == 0) {
            ((struct ndt_points_candidate *)candidate)->kind = (enum ndt_candidate_kind)i;
            return NDT_OK;
        }
    }
    return ndt_fail(reader->err, NDT_ERR_FORMAT, "'%s' is not a kind of candidate", name);
}

static void write_kind(struct ndt_wire_writer *writer, const void *candidate)
{
    ndt_wire_put_text(writer, ndt_candidate_kind_name(((const struct ndt_points_candidate *)candidate)->kind));
}

#define AT(member) offsetof(struct ndt_points_candidate, member)
static const struct ndt_wire_field candidate_rows[] = {
    {"pose", NDT_WIRE_NUMBERS, AT(T_map_base), 7, NDT_WIRE_REQUIRED, NULL, NULL},
    {"confidence", NDT_WIRE_NUMBER, AT(confidence), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"kind", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_kind, write_kind},
};
#undef AT

/* Checks a candidate; an unknown confidence is NaN. */
static enum ndt_status check_candidate(struct ndt_points_candidate *candidate, struct ndt_error *err)
{
    if (candidate->confidence < 0 || candidate->confidence > 1)
        return ndt_fail(err, NDT_ERR_LIMIT, "field 'confidence': %.6g is not within 0 and 1",
                        candidate->confidence);
    return ndt_wire_check_pose("pose", &candidate->T_map_base, err);
}

static enum ndt_status read_candidates(struct ndt_wire_reader *reader, void *wire)
{
    struct ndt_points_message *message = &((struct points_wire *)wire)->message;
    enum ndt_status status = read_array(reader, NDT_POINTS_MAX_ITEMS, &message->candidate_count);
    for (size_t i = 0; status == NDT_OK && i < message->candidate_count; i++) {
        struct ndt_points_candidate *candidate = &message->candidates[i];
        status = ndt_wire_read_fields(reader, candidate_rows, ROWS(candidate_rows), candidate);
        if (status == NDT_OK)
            status = check_candidate(candidate, reader->err);
        if (status != NDT_OK)
            return ndt_fail_prefix(reader->err, status, "candidate %zu", i);
    }
    return status;
}

static void write_candidates(struct ndt_wire_writer *writer, const void *wire)
{
    const struct ndt_points_message *message = &((const struct points_wire *)wire)->message;
    ndt_wire_put_array(writer, message->candidate_count);
    for (size_t i = 0; i < message->candidate_count; i++)
        ndt_wire_put_fields(writer, candidate_rows, ROWS(candidate_rows), &message->candidates[i]);
}

/* ---- GNSS ---- */

#define AT(member) offsetof(struct ndt_points_message, member)
static const struct ndt_wire_field gnss_rows[] = {
    {"position", NDT_WIRE_NUMBERS, AT(gnss_position_m), 3, NDT_WIRE_REQUIRED, NULL, NULL},
    {"deviation", NDT_WIRE_NUMBERS, AT(gnss_deviation_m), 3, AT(has_gnss_deviation), NULL, NULL},
};
#undef AT

static enum ndt_status read_gnss(struct ndt_wire_reader *reader, void *wire)
{
    return ndt_wire_read_fields(reader, gnss_rows, ROWS(gnss_rows), &((struct points_wire *)wire)->message);
}

static void write_gnss(struct ndt_wire_writer *writer, const void *wire)
{
    ndt_wire_put_fields(writer, gnss_rows, ROWS(gnss_rows), &((const struct points_wire *)wire)->message);
}

static enum ndt_status check_gnss(const struct ndt_points_message *message, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (message->has_gnss)
        status = ndt_wire_check_sizes("position", message->gnss_position_m, 3, NDT_LIMIT_POSITION_M, err);
    if (status == NDT_OK && message->has_gnss && message->has_gnss_deviation)
        status = ndt_wire_check_sizes("deviation", message->gnss_deviation_m, 3, NDT_LIMIT_DEVIATION_M, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "field 'gnss'");
}

/* ---- the message ---- */

static enum ndt_status read_fields(struct ndt_wire_reader *reader, void *wire)
{
    return ndt_points_read_fields(reader, &((struct points_wire *)wire)->points);
}

static void write_fields(struct ndt_wire_writer *writer, const void *wire)
{
    ndt_points_put_fields(writer, &((const struct points_wire *)wire)->points);
}

static enum ndt_status read_data(struct ndt_wire_reader *reader, void *wire)
{
    return ndt_points_read_data(reader, &((struct points_wire *)wire)->points);
}

static void write_data(struct ndt_wire_writer *writer, const void *wire)
{
    const struct points_wire *points = wire;
    ndt_points_put_data(writer, &points->points, points->cloud);
}

#define AT(member)             offsetof(struct points_wire, member)
#define SIZE(member)           sizeof(((struct points_wire *)0)->member)
#define ROW(key, type, member) key, type, AT(member), SIZE(member), NDT_WIRE_REQUIRED, NULL, NULL
#define CUSTOM(name)           #name, NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_##name, write_##name
static const struct ndt_wire_field rows[] = {
    {ROW("seq", NDT_WIRE_UINT64, message.seq)},
    {ROW("stamp_ns", NDT_WIRE_STAMP, message.stamp_ns)},
    {ROW("frame_id", NDT_WIRE_NAME, message.frame_id)},
    {ROW("count", NDT_WIRE_UINT64, points.count)},
    {ROW("point_step", NDT_WIRE_UINT64, points.step)},
    {CUSTOM(fields)},
    {CUSTOM(data)},
    {CUSTOM(iterations)},
    {CUSTOM(candidates)},
    {"gnss", NDT_WIRE_CUSTOM, 0, 0, AT(message.has_gnss), read_gnss, write_gnss},
};
#undef CUSTOM
#undef ROW
#undef SIZE
#undef AT

enum ndt_status ndt_points_decode(const uint8_t *data, size_t size, struct ndt_points_message *message,
                                  struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct points_wire wire = {0};
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_POINTS, rows, ROWS(rows), &wire, err);
    if (status != NDT_OK)
        return status;
    status = ndt_points_check_layout(&wire.points, err);
    if (status == NDT_OK)
        status = check_gnss(&wire.message, err);
    if (status == NDT_OK)
        status = ndt_points_to_cloud(data, size, &wire.points, wire.message.stamp_ns, 0, cloud, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "points message");
    *message = wire.message;
    return NDT_OK;
}

static enum ndt_status check_message(const struct ndt_points_message *message, struct ndt_error *err)
{
    enum ndt_status status = ndt_wire_check_stamp(message->stamp_ns, err);
    if (status == NDT_OK &&
        (message->iteration_count > NDT_POINTS_MAX_ITEMS || message->candidate_count > NDT_POINTS_MAX_ITEMS))
        status = ndt_fail(err, NDT_ERR_LIMIT, "%zu iterations and %zu candidates, at most %d of each are possible",
                          message->iteration_count, message->candidate_count, NDT_POINTS_MAX_ITEMS);
    for (size_t i = 0; status == NDT_OK && i < message->candidate_count; i++) {
        struct ndt_points_candidate checked = message->candidates[i]; /* the quaternion is sent unchanged */
        status = check_candidate(&checked, err);
    }
    if (status == NDT_OK)
        status = check_gnss(message, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, NDT_ERR_ARGUMENT, "points message");
}

enum ndt_status ndt_points_encode(struct ndt_buffer *frame, const struct ndt_points_message *message,
                                  const struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct points_wire wire = {.message = *message, .cloud = cloud};
    frame->size = 0;
    if (check_message(message, err) != NDT_OK)
        return NDT_ERR_ARGUMENT;
    ndt_points_choose_layout(&wire.points, cloud);
    return ndt_wire_encode(frame, NDT_MESSAGE_POINTS, rows, ROWS(rows), &wire, err);
}
