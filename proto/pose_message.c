/** @file
 * @brief Stamped poses (initial pose, odometry, truth, transform), positions (GNSS) and motion (IMU). */
#include "wire.h"

#include "ndt/limits.h"

/* The structs have the layout of the arrays on the wire: x y z qx qy qz qw, and vx vy vz wx wy wz. */
_Static_assert(sizeof(struct ndt_pose) == 7 * sizeof(double), "a pose is seven doubles");
_Static_assert(sizeof(struct ndt_twist) == 6 * sizeof(double), "a twist is six doubles");

#define AT(member) offsetof(struct ndt_pose_message, member)
static const struct ndt_wire_field pose_rows[] = {
    {"stamp_ns", NDT_WIRE_STAMP, AT(stamp_ns), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"frame_id", NDT_WIRE_NAME, AT(frame_id), NDT_PROTO_MAX_NAME + 1, NDT_WIRE_REQUIRED, NULL, NULL},
    {"pose", NDT_WIRE_NUMBERS, AT(pose), 7, AT(has_pose), NULL, NULL},
    {"twist", NDT_WIRE_NUMBERS, AT(twist), 6, AT(has_twist), NULL, NULL},
    {"covariance", NDT_WIRE_NUMBERS, AT(covariance), 36, AT(has_covariance), NULL, NULL},
};
#undef AT
enum { POSE_ROWS = sizeof(pose_rows) / sizeof(pose_rows[0]) };

static enum ndt_status check_parts(enum ndt_message_type type, const struct ndt_pose_message *message,
                                   struct ndt_error *err)
{
    if (type == NDT_MESSAGE_ODOMETRY && !message->has_pose && !message->has_twist)
        return ndt_fail(err, NDT_ERR_FORMAT, "fields 'pose' and 'twist' are both missing, one is needed");
    if (type != NDT_MESSAGE_ODOMETRY && !message->has_pose)
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'pose' is missing");
    return NDT_OK;
}

static enum ndt_status check_type(enum ndt_message_type type, struct ndt_error *err)
{
    if (type == NDT_MESSAGE_INITIAL_POSE || type == NDT_MESSAGE_ODOMETRY || type == NDT_MESSAGE_TRUTH ||
        type == NDT_MESSAGE_TRANSFORM)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_ARGUMENT, "a %s message is no pose message", ndt_message_name(type));
}

enum ndt_status ndt_pose_message_decode(const uint8_t *data, size_t size, enum ndt_message_type type,
                                        struct ndt_pose_message *message, struct ndt_error *err)
{
    struct ndt_pose_message found = {0};
    enum ndt_status status = check_type(type, err);
    if (status == NDT_OK)
        status = ndt_wire_decode(data, size, type, pose_rows, POSE_ROWS, &found, err);
    if (status != NDT_OK)
        return status;
    status = check_parts(type, &found, err);
    if (status == NDT_OK)
        status = ndt_wire_check_motion(&found, type == NDT_MESSAGE_INITIAL_POSE, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s message", ndt_message_name(type));
    *message = found;
    return NDT_OK;
}

enum ndt_status ndt_pose_message_encode(struct ndt_buffer *frame, enum ndt_message_type type,
                                        const struct ndt_pose_message *message, struct ndt_error *err)
{
    frame->size = 0;
    enum ndt_status status = check_type(type, err);
    if (status == NDT_OK)
        status = check_parts(type, message, err);
    struct ndt_pose_message checked = *message; /* the quaternion is sent unchanged */
    if (status == NDT_OK)
        status = ndt_wire_check_motion(&checked, type == NDT_MESSAGE_INITIAL_POSE, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, NDT_ERR_ARGUMENT, "%s message", ndt_message_name(type));
    return ndt_wire_encode(frame, type, pose_rows, POSE_ROWS, message, err);
}

/* ---- gnss ---- */

#define AT(member) offsetof(struct ndt_gnss_message, member)
static const struct ndt_wire_field gnss_rows[] = {
    {"stamp_ns", NDT_WIRE_STAMP, AT(stamp_ns), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"frame_id", NDT_WIRE_NAME, AT(frame_id), NDT_PROTO_MAX_NAME + 1, NDT_WIRE_REQUIRED, NULL, NULL},
    {"position", NDT_WIRE_NUMBERS, AT(position_m), 3, NDT_WIRE_REQUIRED, NULL, NULL},
    {"deviation", NDT_WIRE_NUMBERS, AT(deviation_m), 3, AT(has_deviation), NULL, NULL},
    {"antenna", NDT_WIRE_NAME, AT(antenna), NDT_PROTO_MAX_NAME + 1, AT(has_antenna), NULL, NULL},
};
#undef AT
enum { GNSS_ROWS = sizeof(gnss_rows) / sizeof(gnss_rows[0]) };

/* Checks a position. A deviation of zero would mean that it is exact; an unknown deviation is absent. */
static enum ndt_status check_gnss(const struct ndt_gnss_message *message, struct ndt_error *err)
{
    enum ndt_status status = ndt_wire_check_sizes("position", message->position_m, 3, NDT_LIMIT_POSITION_M, err);
    for (int i = 0; status == NDT_OK && message->has_deviation && i < 3; i++)
        if (!(message->deviation_m[i] > 0))
            status = ndt_fail(err, NDT_ERR_FORMAT, "field 'deviation': number %d is %.6g, not above 0", i,
                              message->deviation_m[i]);
    if (status == NDT_OK && message->has_deviation)
        status = ndt_wire_check_sizes("deviation", message->deviation_m, 3, NDT_LIMIT_DEVIATION_M, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "gnss message");
}

enum ndt_status ndt_gnss_decode(const uint8_t *data, size_t size, struct ndt_gnss_message *message,
                                struct ndt_error *err)
{
    struct ndt_gnss_message found = {0};
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_GNSS, gnss_rows, GNSS_ROWS, &found, err);
    if (status == NDT_OK)
        status = check_gnss(&found, err);
    if (status == NDT_OK)
        *message = found;
    return status;
}

enum ndt_status ndt_gnss_encode(struct ndt_buffer *frame, const struct ndt_gnss_message *message,
                                struct ndt_error *err)
{
    frame->size = 0;
    return check_gnss(message, err) == NDT_OK
               ? ndt_wire_encode(frame, NDT_MESSAGE_GNSS, gnss_rows, GNSS_ROWS, message, err)
               : NDT_ERR_ARGUMENT;
}

/* ---- imu ---- */

#define AT(member) offsetof(struct ndt_imu_message, member)
static const struct ndt_wire_field imu_rows[] = {
    {"stamp_ns", NDT_WIRE_STAMP, AT(stamp_ns), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"frame_id", NDT_WIRE_NAME, AT(frame_id), NDT_PROTO_MAX_NAME + 1, NDT_WIRE_REQUIRED, NULL, NULL},
    {"angular_velocity", NDT_WIRE_NUMBERS, AT(angular_velocity_radps), 3, NDT_WIRE_REQUIRED, NULL, NULL},
    {"linear_acceleration", NDT_WIRE_NUMBERS, AT(linear_acceleration_mps2), 3, AT(has_acceleration), NULL, NULL},
    {"angular_velocity_covariance", NDT_WIRE_NUMBERS, AT(angular_velocity_covariance), 9,
     AT(has_angular_velocity_covariance), NULL, NULL},
    {"linear_acceleration_covariance", NDT_WIRE_NUMBERS, AT(linear_acceleration_covariance), 9,
     AT(has_linear_acceleration_covariance), NULL, NULL},
};
#undef AT
enum { IMU_ROWS = sizeof(imu_rows) / sizeof(imu_rows[0]) };

/* Checks variances. Zeros and -1 mean unknown in ROS; here an unknown covariance is absent. */
static enum ndt_status check_variances(const char *key, const double covariance[9], struct ndt_error *err)
{
    for (int i = 0; i < 9; i += 4)
        if (!(covariance[i] > 0))
            return ndt_fail(err, NDT_ERR_FORMAT, "field '%s': number %d is %.6g, not above 0", key, i,
                            covariance[i]);
    return NDT_OK;
}

/* Checks an imu message. Absent arrays are ignored: an encoder may leave anything in them. */
static enum ndt_status check_imu(const struct ndt_imu_message *message, struct ndt_error *err)
{
    enum ndt_status status =
        ndt_wire_check_sizes("angular_velocity", message->angular_velocity_radps, 3, NDT_LIMIT_RATE_RADPS, err);
    if (status == NDT_OK && message->has_acceleration)
        status = ndt_wire_check_sizes("linear_acceleration", message->linear_acceleration_mps2, 3,
                                      NDT_LIMIT_ACCELERATION_MPS2, err);
    if (status == NDT_OK && message->has_angular_velocity_covariance)
        status = check_variances("angular_velocity_covariance", message->angular_velocity_covariance, err);
    if (status == NDT_OK && message->has_linear_acceleration_covariance)
        status = check_variances("linear_acceleration_covariance", message->linear_acceleration_covariance, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "imu message");
}

enum ndt_status ndt_imu_decode(const uint8_t *data, size_t size, struct ndt_imu_message *message,
                               struct ndt_error *err)
{
    struct ndt_imu_message found = {0};
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_IMU, imu_rows, IMU_ROWS, &found, err);
    if (status == NDT_OK)
        status = check_imu(&found, err);
    if (status == NDT_OK)
        *message = found;
    return status;
}

enum ndt_status ndt_imu_encode(struct ndt_buffer *frame, const struct ndt_imu_message *message,
                               struct ndt_error *err)
{
    frame->size = 0;
    return check_imu(message, err) == NDT_OK
               ? ndt_wire_encode(frame, NDT_MESSAGE_IMU, imu_rows, IMU_ROWS, message, err)
               : NDT_ERR_ARGUMENT;
}
