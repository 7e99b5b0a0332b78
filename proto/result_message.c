/** @file
 * @brief The result message. */
#include "wire.h"

#include <math.h>
#include <string.h>

enum { MAX_WEAK_AXES = 3, LEVELS = 4 };

/* The message and the presence of its optional keys. A pose whose quaternion is all zero was never set and is left
 * out. Keys added after the first version may be missing; the first three of these are always written. */
struct result_wire {
    struct ndt_result_message message;
    int has_pose;
    int has_config_hash, has_queue_depth, has_drop_counter;
};

static enum ndt_status read_outcome(struct ndt_wire_reader *reader, void *wire)
{
    struct ndt_result_message *message = &((struct result_wire *)wire)->message;
    char name[NDT_PROTO_MAX_NAME + 1];
    const enum ndt_status status = ndt_wire_read_name(reader, name, sizeof(name));
    if (status != NDT_OK)
        return status;
    for (int i = 0; i < NDT_OUTCOME_COUNT; i++) {
        if (strcmp(ndt_outcome_name((enum ndt_outcome)i), name) == 0) {
            message->result.outcome = (enum ndt_outcome)i;
            return NDT_OK;
        }
    }
    return ndt_fail(reader->err, NDT_ERR_FORMAT, "'%s' is not an outcome", name);
}

static void write_outcome(struct ndt_wire_writer *writer, const void *wire)
{
    const struct ndt_result_message *message = &((const struct result_wire *)wire)->message;
    ndt_wire_put_text(writer, ndt_outcome_name(message->result.outcome));
}

const char *ndt_state_name(enum ndt_state state)
{
    static const char *const names[NDT_STATE_COUNT] = {
        [NDT_STATE_INITIALISING] = "initialising", [NDT_STATE_TRACKING] = "tracking",
        [NDT_STATE_COASTING] = "coasting",         [NDT_STATE_LOST] = "lost",
        [NDT_STATE_RECOVERING] = "recovering",     [NDT_STATE_EXTENDING] = "extending",
    };
    return (unsigned)state < NDT_STATE_COUNT ? names[state] : "unknown";
}

int ndt_state_is_trusted(enum ndt_state state)
{
    return state == NDT_STATE_TRACKING || state == NDT_STATE_COASTING || state == NDT_STATE_EXTENDING;
}

int ndt_state_name_is_trusted(const char *name)
{
    for (int i = 0; i < NDT_STATE_COUNT; i++)
        if (strcmp(ndt_state_name((enum ndt_state)i), name) == 0)
            return ndt_state_is_trusted((enum ndt_state)i);
    return 0;
}

enum ndt_status ndt_wire_read_state(struct ndt_wire_reader *reader, enum ndt_state *out)
{
    char name[NDT_PROTO_MAX_NAME + 1];
    const enum ndt_status status = ndt_wire_read_name(reader, name, sizeof(name));
    if (status != NDT_OK)
        return status;
    for (int i = 0; i < NDT_STATE_COUNT; i++) {
        if (strcmp(ndt_state_name((enum ndt_state)i), name) == 0) {
            *out = (enum ndt_state)i;
            return NDT_OK;
        }
    }
    return ndt_fail(reader->err, NDT_ERR_FORMAT, "'%s' is not a state", name);
}

static enum ndt_status read_state(struct ndt_wire_reader *reader, void *wire)
{
    return ndt_wire_read_state(reader, &((struct result_wire *)wire)->message.state);
}

static void write_state(struct ndt_wire_writer *writer, const void *wire)
{
    ndt_wire_put_text(writer, ndt_state_name(((const struct result_wire *)wire)->message.state));
}

static enum ndt_status read_weak_axes(struct ndt_wire_reader *reader, void *wire)
{
    struct ndt_align_result *result = &((struct result_wire *)wire)->message.result;
    size_t count;
    enum ndt_status status = ndt_wire_read_array(reader, &count);
    if (status == NDT_OK && count > MAX_WEAK_AXES)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "%zu axes are above the limit of %d", count, MAX_WEAK_AXES);
    for (size_t i = 0; status == NDT_OK && i < count; i++)
        status = ndt_wire_read_numbers(reader, result->weak_axes[i], 6);
    if (status == NDT_OK)
        result->weak_count = (int)count;
    return status;
}

static void write_weak_axes(struct ndt_wire_writer *writer, const void *wire)
{
    const struct ndt_align_result *result = &((const struct result_wire *)wire)->message.result;
    const size_t count = (size_t)result->weak_count;
    ndt_wire_put_array(writer, count);
    for (size_t i = 0; i < count; i++)
        ndt_wire_put_numbers(writer, result->weak_axes[i], 6);
}

#define LEVEL(key, i)                                                                                              \
    key, NDT_WIRE_NUMBER, offsetof(struct ndt_protection, level) + (i) * sizeof(double), 0, NDT_WIRE_REQUIRED,     \
        NULL, NULL
static const struct ndt_wire_field protection_rows[] = {
    {LEVEL("lateral", 0)},
    {LEVEL("longitudinal", 1)},
    {LEVEL("vertical", 2)},
    {LEVEL("heading", 3)},
    {"unsafe", NDT_WIRE_BOOL, offsetof(struct ndt_protection, is_unsafe), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"reason", NDT_WIRE_NAME, offsetof(struct ndt_protection, reason), sizeof(((struct ndt_protection *)0)->reason),
     NDT_WIRE_REQUIRED, NULL, NULL},
};
#undef LEVEL
enum { PROTECTION_ROWS = sizeof(protection_rows) / sizeof(protection_rows[0]) };

static enum ndt_status read_protection(struct ndt_wire_reader *reader, void *wire)
{
    return ndt_wire_read_fields(reader, protection_rows, PROTECTION_ROWS,
                                &((struct result_wire *)wire)->message.protection);
}

static void write_protection(struct ndt_wire_writer *writer, const void *wire)
{
    ndt_wire_put_fields(writer, protection_rows, PROTECTION_ROWS,
                        &((const struct result_wire *)wire)->message.protection);
}

#define AT(member)             offsetof(struct result_wire, message.member)
#define SIZE(member)           sizeof(((struct result_wire *)0)->message.member)
#define ROW(key, type, member) key, type, AT(member), SIZE(member), NDT_WIRE_REQUIRED, NULL, NULL
#define LATER(type, member)    #member, type, AT(member), 0, offsetof(struct result_wire, has_##member), NULL, NULL
static const struct ndt_wire_field rows[] = {
    {ROW("seq", NDT_WIRE_UINT64, seq)},
    {ROW("stamp_ns", NDT_WIRE_INT64, stamp_ns)},
    {ROW("frame_id", NDT_WIRE_NAME, frame_id)},
    {"outcome", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_outcome, write_outcome},
    {ROW("reason", NDT_WIRE_NAME, result.reason)},
    {"pose", NDT_WIRE_NUMBERS, AT(result.T_map_sensor), 7, offsetof(struct result_wire, has_pose), NULL, NULL},
    {"covariance", NDT_WIRE_NUMBERS, AT(result.covariance), 36, AT(result.has_covariance), NULL, NULL},
    {"weak_axes", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_weak_axes, write_weak_axes},
    {ROW("transform_probability", NDT_WIRE_NUMBER, result.scores.transform_probability)},
    {ROW("nvtl", NDT_WIRE_NUMBER, result.scores.nvtl)},
    {ROW("nvtl_normalized", NDT_WIRE_NUMBER, result.scores.nvtl_normalized)},
    {ROW("match_ratio", NDT_WIRE_NUMBER, result.scores.match_ratio)},
    {ROW("coverage", NDT_WIRE_NUMBER, result.scores.coverage)},
    {ROW("iterations", NDT_WIRE_COUNT, result.iterations)},
    {ROW("evaluations", NDT_WIRE_COUNT, result.evaluations)},
    {ROW("oscillation", NDT_WIRE_COUNT, result.oscillation)},
    {ROW("map_id", NDT_WIRE_UINT64, map_id)},
    {ROW("decode_us", NDT_WIRE_NUMBER, decode_us)},
    {ROW("queue_us", NDT_WIRE_NUMBER, queue_us)},
    {ROW("preprocess_us", NDT_WIRE_NUMBER, preprocess_us)},
    {ROW("upload_us", NDT_WIRE_NUMBER, upload_us)},
    {ROW("align_us", NDT_WIRE_NUMBER, result.align_us)},
    {ROW("publish_us", NDT_WIRE_NUMBER, publish_us)},
    {LATER(NDT_WIRE_UINT64, config_hash)},
    {LATER(NDT_WIRE_UINT32, queue_depth)},
    {LATER(NDT_WIRE_UINT64, drop_counter)},
    {"twist", NDT_WIRE_NUMBERS, AT(twist), 6, AT(has_twist), NULL, NULL},
    {"confidence", NDT_WIRE_NUMBER, AT(confidence), 0, AT(has_confidence), NULL, NULL},
    {"innovation", NDT_WIRE_NUMBER, AT(innovation), 0, AT(has_innovation), NULL, NULL},
    {"state", NDT_WIRE_CUSTOM, 0, 0, AT(has_state), read_state, write_state},
    {"margin", NDT_WIRE_NUMBER, AT(margin), 0, AT(has_margin), NULL, NULL},
    {"guess", NDT_WIRE_NUMBERS, AT(T_map_guess), 7, AT(has_guess), NULL, NULL},
    {"hypotheses", NDT_WIRE_COUNT, AT(hypotheses), 0, AT(has_hypotheses), NULL, NULL},
    {"sensor", NDT_WIRE_NAME, AT(sensor), SIZE(sensor), AT(has_sensor), NULL, NULL},
    {"T_base_sensor", NDT_WIRE_NUMBERS, AT(T_base_sensor), 7, AT(has_T_base_sensor), NULL, NULL},
    {"protection_level", NDT_WIRE_CUSTOM, 0, 0, AT(has_protection), read_protection, write_protection},
};
#undef LATER
#undef ROW
#undef SIZE
#undef AT
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };
_Static_assert(ROW_COUNT <= NDT_WIRE_MAX_ROWS, "the set of keys seen is 64 bits wide");

/* Descriptions of the rows, in their order. */
static const struct ndt_message_key keys[] = {
    {"seq", "", "number of the scan"},
    {"stamp_ns", "ns", "stamp of the scan"},
    {"frame_id", "", "frame of the pose: map"},
    {"outcome", "", "outcome of the scan"},
    {"reason", "", "one line; empty when converged"},
    {"pose", "m", "x y z qx qy qz qw: T_map_base at the stamp"},
    {"covariance", "m^2, rad^2", "6x6 by rows, x y z rx ry rz, axes of the map"},
    {"weak_axes", "", "directions that the scan does not determine"},
    {"transform_probability", "", "score per point"},
    {"nvtl", "", "mean score of the nearest voxels"},
    {"nvtl_normalized", "", "the same over its largest value"},
    {"match_ratio", "", "matched points over all"},
    {"coverage", "", "part of the directions that meet the map; below 0: unknown"},
    {"iterations", "", "Newton steps"},
    {"evaluations", "", "evaluations of the score"},
    {"oscillation", "", "longest run of reversing steps"},
    {"map_id", "", "of the map"},
    {"decode_us", "us", "frame to points"},
    {"queue_us", "us", "waiting; 0 in a replay"},
    {"preprocess_us", "us", "crop, filter, sample, motion"},
    {"upload_us", "us", "points to the backend; part of align_us"},
    {"align_us", "us", "matching"},
    {"publish_us", "us", "handing a result on: the one before, in a replay this one"},
    {"config_hash", "", "of the configuration"},
    {"queue_depth", "", "scans that waited; 0 in a replay"},
    {"drop_counter", "", "scans dropped since the start; 0 in a replay"},
    {"twist", "m/s, rad/s", "vx vy vz wx wy wz of the base"},
    {"confidence", "", "probability that the pose is right"},
    {"innovation", "sigma", "distance of the pose from the prediction"},
    {"state", "", "state of the localisation after the scan"},
    {"margin", "", "probability of the pose against all others that were tried"},
    {"guess", "m", "x y z qx qy qz qw: T_map_base where the alignment began"},
    {"hypotheses", "", "guesses that were aligned"},
    {"sensor", "", "frame_id of the scan"},
    {"T_base_sensor", "m", "x y z qx qy qz qw: where that sensor is on the vehicle"},
    {"protection_level", "m, rad", "bounds of the error: lateral, longitudinal, vertical, heading; unsafe; reason"},
};
_Static_assert(sizeof(keys) / sizeof(keys[0]) == ROW_COUNT, "every key is described");

const struct ndt_message_key *ndt_result_key_at(size_t i)
{
    return i < ROW_COUNT ? &keys[i] : NULL;
}

/* Leaves out unknown values, which are NaN, like absent keys. */
static void drop_unknown(struct ndt_result_message *message)
{
    message->has_confidence = message->has_confidence && !isnan(message->confidence);
    message->has_innovation = message->has_innovation && !isnan(message->innovation);
    message->has_margin = message->has_margin && !isnan(message->margin);
    if (!message->has_confidence)
        message->confidence = 0;
    if (!message->has_innovation)
        message->innovation = 0;
    if (!message->has_margin)
        message->margin = 0;
}

static enum ndt_status check_estimate(const struct ndt_result_message *message, enum ndt_status status,
                                      struct ndt_error *err)
{
    if (message->has_confidence && !(message->confidence >= 0 && message->confidence <= 1))
        return ndt_fail(err, status, "result message: field 'confidence': %.6g is not from 0 to 1",
                        message->confidence);
    if (message->has_innovation && !(message->innovation >= 0))
        return ndt_fail(err, status, "result message: field 'innovation': %.6g is below 0", message->innovation);
    if (message->has_margin && !(message->margin >= 0 && message->margin <= 1))
        return ndt_fail(err, status, "result message: field 'margin': %.6g is not from 0 to 1", message->margin);
    for (int i = 0; message->has_protection && i < LEVELS; i++)
        if (!(message->protection.level[i] >= 0))
            return ndt_fail(err, status, "result message: field 'protection_level': %.6g is not 0 or more",
                            message->protection.level[i]);
    if (message->has_state && (unsigned)message->state >= NDT_STATE_COUNT)
        return ndt_fail(err, status, "result message: field 'state': there is no state %d", (int)message->state);
    return NDT_OK;
}

/* Normalises the quaternions of the present poses. */
static enum ndt_status check_poses(struct result_wire *wire, enum ndt_status status, struct ndt_error *err)
{
    struct ndt_result_message *message = &wire->message;
    if ((wire->has_pose && ndt_wire_check_pose("pose", &message->result.T_map_sensor, err) != NDT_OK) ||
        (message->has_guess && ndt_wire_check_pose("guess", &message->T_map_guess, err) != NDT_OK) ||
        (message->has_T_base_sensor &&
         ndt_wire_check_pose("T_base_sensor", &message->T_base_sensor, err) != NDT_OK))
        return ndt_fail_prefix(err, status, "result message");
    return NDT_OK;
}

enum ndt_status ndt_result_decode(const uint8_t *data, size_t size, struct ndt_result_message *message,
                                  struct ndt_error *err)
{
    struct result_wire wire = {0};
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_RESULT, rows, ROW_COUNT, &wire, err);
    if (status == NDT_OK)
        status = check_poses(&wire, NDT_ERR_FORMAT, err);
    if (status != NDT_OK)
        return status;
    drop_unknown(&wire.message);
    status = check_estimate(&wire.message, NDT_ERR_FORMAT, err);
    if (status == NDT_OK)
        *message = wire.message;
    return status;
}

static int was_set(const struct ndt_pose *pose)
{
    return pose->q_xyzw[0] != 0 || pose->q_xyzw[1] != 0 || pose->q_xyzw[2] != 0 || pose->q_xyzw[3] != 0;
}

enum ndt_status ndt_result_encode(struct ndt_buffer *frame, const struct ndt_result_message *message,
                                  struct ndt_error *err)
{
    struct result_wire wire = {.message = *message,
                               .has_pose = was_set(&message->result.T_map_sensor),
                               .has_config_hash = 1,
                               .has_queue_depth = 1,
                               .has_drop_counter = 1};
    const struct ndt_align_result *result = &message->result;
    frame->size = 0;
    drop_unknown(&wire.message);
    if (check_estimate(&wire.message, NDT_ERR_ARGUMENT, err) != NDT_OK)
        return NDT_ERR_ARGUMENT;
    if (check_poses(&wire, NDT_ERR_ARGUMENT, err) != NDT_OK)
        return NDT_ERR_ARGUMENT;
    wire.message.result.T_map_sensor = result->T_map_sensor; /* poses are sent unchanged, not normalised */
    wire.message.T_map_guess = message->T_map_guess;
    wire.message.T_base_sensor = message->T_base_sensor;
    if (result->weak_count < 0 || result->weak_count > MAX_WEAK_AXES)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "result message: field 'weak_axes': %d axes, the limit is %d",
                        result->weak_count, MAX_WEAK_AXES);
    return ndt_wire_encode(frame, NDT_MESSAGE_RESULT, rows, ROW_COUNT, &wire, err);
}
