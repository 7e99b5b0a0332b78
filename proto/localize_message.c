/** @file
 * @brief The report of a search for the pose (the map `search` of a reply), and the decoder of replies. */
#include "ndt_proto/control_message.h"

#include <stddef.h>
#include <string.h>

#include "wire.h"

/* ---- writer ---- */

static void put_pose(struct ndt_reply_writer *writer, const struct ndt_localize_pose *found)
{
    const struct ndt_pose *pose = &found->T_map_base;
    const double *t = pose->t_m, *q = pose->q_xyzw;
    ndt_reply_numbers(writer, "pose", (const double[]){t[0], t[1], t[2], q[0], q[1], q[2], q[3]}, 7);
    ndt_reply_real(writer, "confidence", found->confidence);
}

static void put_result(struct ndt_reply_writer *writer, const struct ndt_localize_report *report)
{
    ndt_reply_bool(writer, "accepted", report->accepted);
    ndt_reply_bool(writer, "applied", report->applied);
    ndt_reply_text(writer, "reason", report->reason);
    ndt_reply_uint(writer, "seq", report->seq);
    ndt_reply_int(writer, "stamp_ns", report->stamp_ns);
    if (report->has_pose)
        put_pose(writer, &report->best);
    if (report->has_covariance)
        ndt_reply_numbers(writer, "covariance", report->covariance, 36);
    ndt_reply_open_array(writer, "alternatives");
    for (size_t i = 0; i < report->alternative_count && i < NDT_LOCALIZE_MAX_ALTERNATIVES; i++) {
        ndt_reply_open_map(writer, NULL);
        put_pose(writer, &report->alternatives[i]);
        ndt_reply_close(writer);
    }
    ndt_reply_close(writer);
    ndt_reply_real(writer, "queue_ms", report->queue_ms);
    ndt_reply_real(writer, "search_ms", report->search_ms);
    ndt_reply_real(writer, "verification_ms", report->verification_ms);
}

void ndt_reply_search(struct ndt_reply_writer *writer, const struct ndt_localize_report *report)
{
    ndt_reply_open_map(writer, "search");
    ndt_reply_uint(writer, "search_id", report->search_id);
    ndt_reply_bool(writer, "running", report->running);
    ndt_reply_uint(writer, "percent", report->percent);
    ndt_reply_real(writer, "elapsed_ms", report->elapsed_ms);
    if (report->has_result)
        put_result(writer, report);
    ndt_reply_close(writer);
}

/* ---- decoder ---- */

static const struct ndt_wire_field pose_rows[] = {
    {"pose", NDT_WIRE_NUMBERS, offsetof(struct ndt_localize_pose, T_map_base), 7, NDT_WIRE_REQUIRED, NULL, NULL},
    {"confidence", NDT_WIRE_NUMBER, offsetof(struct ndt_localize_pose, confidence), 0, NDT_WIRE_REQUIRED, NULL,
     NULL},
};
enum { POSE_ROWS = sizeof(pose_rows) / sizeof(pose_rows[0]) };

static enum ndt_status check_found(struct ndt_localize_pose *found, struct ndt_error *err)
{
    if (!(found->confidence >= 0 && found->confidence <= 1))
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'confidence': %.6g is not from 0 to 1", found->confidence);
    return ndt_wire_check_pose("pose", &found->T_map_base, err);
}

static enum ndt_status read_alternatives(struct ndt_wire_reader *reader, void *values)
{
    struct ndt_localize_report *report = values;
    size_t count = 0;
    enum ndt_status status = ndt_wire_read_array(reader, &count);
    if (status == NDT_OK && count > NDT_LOCALIZE_MAX_ALTERNATIVES)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "%zu poses are above the limit of %d", count,
                        NDT_LOCALIZE_MAX_ALTERNATIVES);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        status = ndt_wire_read_fields(reader, pose_rows, POSE_ROWS, &report->alternatives[i]);
        if (status == NDT_OK)
            status = check_found(&report->alternatives[i], reader->err);
    }
    report->alternative_count = status == NDT_OK ? count : 0;
    return status;
}

/* The map `search`; the keys of a result may be missing while the search runs. */
struct search_wire {
    struct ndt_localize_report report;
    int has_applied, has_reason, has_seq, has_stamp, has_confidence, has_alternatives;
    int has_queue, has_search, has_verification;
};
_Static_assert(offsetof(struct search_wire, report) == 0, "read_alternatives takes the one for the other");

#define AT(member)  offsetof(struct search_wire, report.member)
#define HAS(member) offsetof(struct search_wire, has_##member)
static const struct ndt_wire_field search_rows[] = {
    {"search_id", NDT_WIRE_UINT64, AT(search_id), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"running", NDT_WIRE_BOOL, AT(running), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"percent", NDT_WIRE_UINT32, AT(percent), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"elapsed_ms", NDT_WIRE_NUMBER, AT(elapsed_ms), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"accepted", NDT_WIRE_BOOL, AT(accepted), 0, AT(has_result), NULL, NULL},
    {"applied", NDT_WIRE_BOOL, AT(applied), 0, HAS(applied), NULL, NULL},
    {"reason", NDT_WIRE_NAME, AT(reason), NDT_PROTO_MAX_PATH + 1, HAS(reason), NULL, NULL},
    {"seq", NDT_WIRE_UINT64, AT(seq), 0, HAS(seq), NULL, NULL},
    {"stamp_ns", NDT_WIRE_INT64, AT(stamp_ns), 0, HAS(stamp), NULL, NULL},
    {"pose", NDT_WIRE_NUMBERS, AT(best.T_map_base), 7, AT(has_pose), NULL, NULL},
    {"confidence", NDT_WIRE_NUMBER, AT(best.confidence), 0, HAS(confidence), NULL, NULL},
    {"covariance", NDT_WIRE_NUMBERS, AT(covariance), 36, AT(has_covariance), NULL, NULL},
    {"alternatives", NDT_WIRE_CUSTOM, 0, 0, HAS(alternatives), read_alternatives, NULL},
    {"queue_ms", NDT_WIRE_NUMBER, AT(queue_ms), 0, HAS(queue), NULL, NULL},
    {"search_ms", NDT_WIRE_NUMBER, AT(search_ms), 0, HAS(search), NULL, NULL},
    {"verification_ms", NDT_WIRE_NUMBER, AT(verification_ms), 0, HAS(verification), NULL, NULL},
};
#undef HAS
#undef AT
enum { SEARCH_ROWS = sizeof(search_rows) / sizeof(search_rows[0]) };

static enum ndt_status read_search(struct ndt_wire_reader *reader, void *message)
{
    struct search_wire wire = {0};
    struct ndt_localize_report *report = &wire.report;
    enum ndt_status status = ndt_wire_read_fields(reader, search_rows, SEARCH_ROWS, &wire);
    if (status == NDT_OK && report->percent > 100)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "field 'percent': %u is above 100", (unsigned)report->percent);
    if (status == NDT_OK && report->has_pose)
        status = check_found(&report->best, reader->err);
    if (status == NDT_OK)
        ((struct ndt_reply_message *)message)->search = *report;
    return status;
}

static enum ndt_status read_moment(struct ndt_wire_reader *reader, void *message)
{
    return ndt_wire_read_moment(reader, &((struct ndt_reply_message *)message)->moment);
}

struct reply_wire {
    struct ndt_reply_message message;
    int has_error;
};
_Static_assert(offsetof(struct reply_wire, message) == 0, "read_search and read_moment take the one for the other");

#define AT(member) offsetof(struct reply_wire, message.member)
static const struct ndt_wire_field reply_rows[] = {
    {"id", NDT_WIRE_UINT64, AT(id), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"ok", NDT_WIRE_BOOL, AT(ok), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"error", NDT_WIRE_NAME, AT(error), NDT_PROTO_MAX_PATH + 1, offsetof(struct reply_wire, has_error), NULL, NULL},
    {"search", NDT_WIRE_CUSTOM, 0, 0, AT(has_search), read_search, NULL},
    {"pose_at", NDT_WIRE_CUSTOM, 0, 0, AT(has_moment), read_moment, NULL},
};
#undef AT
enum { REPLY_ROWS = sizeof(reply_rows) / sizeof(reply_rows[0]) };

enum ndt_status ndt_reply_decode(const uint8_t *data, size_t size, struct ndt_reply_message *message,
                                 struct ndt_error *err)
{
    struct reply_wire wire = {0};
    const enum ndt_status status =
        ndt_wire_decode(data, size, NDT_MESSAGE_REPLY, reply_rows, REPLY_ROWS, &wire, err);
    if (status == NDT_OK)
        *message = wire.message;
    return status;
}
