/** @file
 * @brief The messages on the wire and in bags: one msgpack map each, described in SCHEMA.md.
 *
 * Decoders are pure functions: no state, no clock, no log. They refuse trailing bytes, wrong types, missing fields,
 * depths and sizes beyond the limits below, and numbers beyond the limits of ndt/limits.h; the error names the
 * field. Unknown keys are ignored. On failure a decoder leaves its outputs unchanged and an encoder leaves the
 * frame empty. Encoders write keys in the order of SCHEMA.md: equal messages have equal bytes. Names are printable
 * ASCII because they reach logs and terminals.
 *
 * Errors: NDT_ERR_FORMAT (malformed), NDT_ERR_LIMIT (too large), NDT_ERR_UNSUPPORTED (version or type),
 * NDT_ERR_ARGUMENT (an encoder was given an invalid message), NDT_ERR_MEMORY. Threads: functions may run at the
 * same time on different objects. Source: message.c (version, type), wire_check.c (limits), scan_message.c,
 * pose_message.c (poses, GNSS, IMU), result_message.c, points_message.c, moment_message.c. */
#ifndef NDT_PROTO_MESSAGE_H
#define NDT_PROTO_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ndt/align.h"
#include "ndt/cloud.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_PROTO_VERSION    1                   /**< key "v" of every message */
#define NDT_PROTO_MAX_FRAME  ((size_t)268435456) /**< bytes of a message */
#define NDT_PROTO_MAX_FIELDS 32                  /**< fields of a point */
#define NDT_PROTO_MAX_NAME   63                  /**< bytes of a name */

/** Types of messages; the numbers are those of bag records. */
enum ndt_message_type {
    NDT_MESSAGE_SCAN = 1,
    NDT_MESSAGE_INITIAL_POSE = 2,
    NDT_MESSAGE_ODOMETRY = 3,
    NDT_MESSAGE_TRUTH = 4,
    NDT_MESSAGE_RESULT = 5,
    NDT_MESSAGE_GNSS = 6,
    NDT_MESSAGE_REQUEST = 7, /**< control socket, see control_message.h */
    NDT_MESSAGE_REPLY = 8,
    NDT_MESSAGE_IMU = 9,
    NDT_MESSAGE_TRANSFORM = 10,
    NDT_MESSAGE_POINTS = 11,
    NDT_MESSAGE_POSE = 12,
    NDT_MESSAGE_END /**< one past the last */
};
/** Name of a type: "scan", "initial_pose", ...; "unknown" for other numbers. */
const char *ndt_message_name(enum ndt_message_type type);

/** A buffer to which encoders write. It grows as needed and is reused. */
struct ndt_buffer {
    uint8_t *data;
    size_t size, capacity;
};
/** Makes an empty frame that owns no memory. */
void ndt_buffer_init(struct ndt_buffer *frame);
/** Frees the memory; allowed on an empty frame. */
void ndt_buffer_free(struct ndt_buffer *frame);
/** Reserves memory, so that messages of up to `size` bytes need no more. NDT_ERR_MEMORY leaves the frame as it is.
 */
NDT_MUST_CHECK enum ndt_status ndt_buffer_reserve(struct ndt_buffer *frame, size_t size, struct ndt_error *err);

/** Reads only the keys "v" (version) and "type". */
NDT_MUST_CHECK enum ndt_status ndt_message_peek(const uint8_t *data, size_t size, enum ndt_message_type *type,
                                                struct ndt_error *err);

/** Prints the values of a message as the members of a JSON object, `"key":value,...`, without braces, `v` and
 * `type`. Numbers that are not finite are null. NDT_ERR_UNSUPPORTED: a value is binary data. After a failure a part
 * has been printed. Threads, errors: as the decoders. */
NDT_MUST_CHECK enum ndt_status ndt_message_print_json(FILE *file, const uint8_t *data, size_t size,
                                                      struct ndt_error *err);

/** @name Scan
 * Points travel as one little-endian blob with named fields, as in PointCloud2. Any field types and paddings are
 * accepted; x, y, z (float32 or float64), intensity and a time field are used (see SCHEMA.md).
 * @{ */

/** A scan without its points. */
struct ndt_scan_message {
    uint64_t seq;
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
};

/** Datatypes, with the numbers of sensor_msgs/PointField. */
enum ndt_datatype {
    NDT_DATATYPE_NONE = 0, /**< the field is absent */
    NDT_DATATYPE_INT8 = 1,
    NDT_DATATYPE_UINT8,
    NDT_DATATYPE_INT16,
    NDT_DATATYPE_UINT16,
    NDT_DATATYPE_INT32,
    NDT_DATATYPE_UINT32,
    NDT_DATATYPE_FLOAT32,
    NDT_DATATYPE_FLOAT64
};

/** Point fields in use. */
enum ndt_point_part { NDT_POINT_X, NDT_POINT_Y, NDT_POINT_Z, NDT_POINT_INTENSITY, NDT_POINT_TIME, NDT_POINT_PARTS };

/** Type and position of a point field. */
struct ndt_point_field {
    enum ndt_datatype datatype;
    uint32_t offset; /**< offset in the record of a point [bytes] */
};

/** Position and layout of the points in a message. */
struct ndt_point_layout {
    struct ndt_point_field fields[NDT_POINT_PARTS];
    uint64_t fields_end; /**< least number of bytes of a record */
    uint64_t count;      /**< number of points */
    uint64_t step;       /**< bytes of a record */
    size_t data_at;      /**< offset of the first record in the message [bytes] */
    size_t data_size;    /**< bytes of all records; count * step, unless the scan was thinned */
};

/** The decoded part of a scan before its points are copied. Valid for the message it was decoded from and for
 * byte-wise copies of it. */
struct ndt_scan_header {
    uint64_t seq;
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    struct ndt_point_layout points;
};

/** Decodes and checks everything except the points, which it does not touch: microseconds, whatever their number.
 * ndt_scan_points succeeds for every header that this function accepts, unless memory is exhausted. */
NDT_MUST_CHECK enum ndt_status ndt_scan_header_decode(const uint8_t *data, size_t size,
                                                      struct ndt_scan_header *scan, struct ndt_error *err);
/** Copies the points of a message into `cloud`, according to its header. The cloud is reused: no allocation once it
 * has held as many points with the same fields. Afterwards it has exactly the optional arrays that the scan has,
 * and an origin when float64 coordinates need one. deadline_us: the moment, by ndt_clock_us(), at which it gives up
 * with NDT_ERR_CANCELLED and a cloud of no points; 0: never. */
NDT_MUST_CHECK enum ndt_status ndt_scan_points(const uint8_t *data, size_t size, const struct ndt_scan_header *scan,
                                               double deadline_us, struct ndt_cloud *cloud, struct ndt_error *err);
/** Keeps every k-th point with the least odd k that leaves `most` or fewer, so that all rings of a sensor, whose
 * number is even, keep points. ndt_scan_points then reads only the kept points. Returns the number of points left
 * out. */
uint64_t ndt_scan_thin(struct ndt_scan_header *scan, uint64_t most);
/** Decodes seq, stamp and frame and ignores the bytes after the last of the three: a damaged scan that
 * ndt_scan_header_decode refuses may still be answered. */
NDT_MUST_CHECK enum ndt_status ndt_scan_identify(const uint8_t *data, size_t size, struct ndt_scan_message *message,
                                                 struct ndt_error *err);
/** Decodes a whole scan: header and points. */
NDT_MUST_CHECK enum ndt_status ndt_scan_decode(const uint8_t *data, size_t size, struct ndt_scan_message *message,
                                               struct ndt_cloud *cloud, struct ndt_error *err);
/** Replaces the contents of `frame`. Writes x y z as float32 (float64 when the cloud has an origin), then intensity
 * and time when the cloud has them. */
NDT_MUST_CHECK enum ndt_status ndt_scan_encode(struct ndt_buffer *frame, const struct ndt_scan_message *message,
                                               const struct ndt_cloud *cloud, struct ndt_error *err);
/** @} */

/** gnss: a position of the antenna in the map frame. */
struct ndt_gnss_message {
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    double position_m[3];
    int has_deviation;
    double deviation_m[3]; /**< standard deviations of x y z, above 0 */
    int has_antenna;
    char antenna[NDT_PROTO_MAX_NAME + 1]; /**< frame of the antenna: the frame_id of its transform */
};
/** Decodes a gnss message. */
NDT_MUST_CHECK enum ndt_status ndt_gnss_decode(const uint8_t *data, size_t size, struct ndt_gnss_message *message,
                                               struct ndt_error *err);
/** Replaces the contents of `frame` by the encoded message. */
NDT_MUST_CHECK enum ndt_status ndt_gnss_encode(struct ndt_buffer *frame, const struct ndt_gnss_message *message,
                                               struct ndt_error *err);

/** Message of an initial pose, truth or odometry: a stamped pose, a twist, or both; or of a transform: the pose of
 * a sensor. */
struct ndt_pose_message {
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    int has_pose, has_twist, has_covariance;
    /** initial pose, truth: T_map_base; odometry: T_odom_base; transform: T_base_frame, of the frame of a sensor */
    struct ndt_pose pose;
    struct ndt_twist twist; /**< twist of the base, in the base frame */
    double covariance[36];
};
/** Decodes a pose message. type: INITIAL_POSE, ODOMETRY, TRUTH or TRANSFORM. Odometry requires a pose or a twist,
 * the others a pose. */
NDT_MUST_CHECK enum ndt_status ndt_pose_message_decode(const uint8_t *data, size_t size, enum ndt_message_type type,
                                                       struct ndt_pose_message *message, struct ndt_error *err);
/** Replaces the contents of `frame` by the encoded message. */
NDT_MUST_CHECK enum ndt_status ndt_pose_message_encode(struct ndt_buffer *frame, enum ndt_message_type type,
                                                       const struct ndt_pose_message *message,
                                                       struct ndt_error *err);

/** imu: one measurement of an inertial measurement unit, in its frame. */
struct ndt_imu_message {
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    double angular_velocity_radps[3];
    int has_acceleration;
    double linear_acceleration_mps2[3]; /**< specific force, as in sensor_msgs/Imu: +9.81 on z at rest */
    int has_angular_velocity_covariance, has_linear_acceleration_covariance;
    double angular_velocity_covariance[9];    /**< row-major [rad^2/s^2]; diagonal above 0 */
    double linear_acceleration_covariance[9]; /**< row-major [m^2/s^4]; diagonal above 0 */
};
/** Decodes an imu message. */
NDT_MUST_CHECK enum ndt_status ndt_imu_decode(const uint8_t *data, size_t size, struct ndt_imu_message *message,
                                              struct ndt_error *err);
/** Replaces the contents of `frame` by the encoded message. */
NDT_MUST_CHECK enum ndt_status ndt_imu_encode(struct ndt_buffer *frame, const struct ndt_imu_message *message,
                                              struct ndt_error *err);

/** State of the localisation after a scan; docs/operations.md tells what to do in each state. */
enum ndt_state {
    NDT_STATE_INITIALISING, /**< no pose is known, or no scan has confirmed the given one */
    NDT_STATE_TRACKING,     /**< the scan confirms the pose */
    NDT_STATE_COASTING,     /**< the scan does not confirm the pose, but the prediction is still certain enough */
    NDT_STATE_LOST,         /**< the pose is not known any more */
    NDT_STATE_RECOVERING,   /**< the pose is not known, and pose hypotheses are followed from scan to scan */
    NDT_STATE_EXTENDING,    /**< beyond the edge of the map: odometry carries the pose on in the map's frame */
    NDT_STATE_COUNT
};
/** Name of a state: "initialising", "tracking", ...; "unknown" for other numbers. */
const char *ndt_state_name(enum ndt_state state);
/** Whether a pose in this state may be used: in tracking, coasting and extending its covariance is honest and
 * within estimator.lost_deviation_m. */
int ndt_state_is_trusted(enum ndt_state state);
/** ndt_state_is_trusted by the name of the state; 0 for unknown names. */
int ndt_state_name_is_trusted(const char *name);

/** Bounds of the error of a pose: each error is within its level but with the probability that integrity.risk says,
 * see docs/integrity.md. */
struct ndt_protection {
    double level[4]; /**< lateral, longitudinal, vertical [m], heading [rad], of the base; INFINITY: no bound */
    int is_unsafe;   /**< the horizontal level is above integrity.alert_limit_m, or there is none; 0 without a limit
                      */
    char reason[96]; /**< why there is no level, or why the pose is unsafe; else empty */
};

/** result: the answer to one scan. A pose whose quaternion is all zero is unknown: it is not sent. config_hash,
 * queue_depth and drop_counter are always sent; older bags without them decode to 0. The members with has_* are
 * sent where they are known; a confidence, innovation or margin of NaN is not sent. */
struct ndt_result_message {
    uint64_t seq;
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    struct ndt_align_result result;
    uint64_t map_id;
    uint64_t config_hash;  /**< hash of the configuration in force */
    uint32_t queue_depth;  /**< scans that waited when this one was processed */
    uint64_t drop_counter; /**< scans dropped since the start */
    int has_twist, has_confidence, has_innovation;
    struct ndt_twist twist; /**< twist of the base, in the base frame */
    double confidence;      /**< probability that the pose is right, 0 to 1 */
    double innovation;      /**< Mahalanobis distance of the pose from the prediction [sigmas], 0 or more */
    int has_state, has_margin, has_guess, has_hypotheses, has_sensor, has_T_base_sensor;
    enum ndt_state state;                /**< state after this scan */
    double margin;                       /**< probability of the pose against all others tried, 0 to 1 */
    struct ndt_pose T_map_guess;         /**< initial guess of the alignment: the base at the stamp */
    int32_t hypotheses;                  /**< guesses that were aligned, 0 or more */
    char sensor[NDT_PROTO_MAX_NAME + 1]; /**< frame_id of the scan */
    struct ndt_pose T_base_sensor;       /**< pose of that sensor on the vehicle, as it was used */
    int has_protection;
    struct ndt_protection protection;
    double decode_us, queue_us, preprocess_us, upload_us, publish_us; /**< align_us is in result */
};
/** Decodes a result. */
NDT_MUST_CHECK enum ndt_status ndt_result_decode(const uint8_t *data, size_t size,
                                                 struct ndt_result_message *message, struct ndt_error *err);
/** Replaces the contents of `frame` by the encoded result. */
NDT_MUST_CHECK enum ndt_status ndt_result_encode(struct ndt_buffer *frame, const struct ndt_result_message *message,
                                                 struct ndt_error *err);

/** Pose message: the pose of the base at any moment, between, before or after scans. */
struct ndt_moment_message {
    int64_t stamp_ns;                      /**< stamp of the moment */
    char frame_id[NDT_PROTO_MAX_NAME + 1]; /**< `map` */
    struct ndt_pose T_map_base;
    double covariance[36]; /**< covariance of the pose, as in a result */
    int has_twist;
    struct ndt_twist twist; /**< twist of the base, in the base frame */
    enum ndt_pose_kind kind;
    enum ndt_state state; /**< state of the localisation after the newest scan */
    int64_t scan_ns;      /**< reference moment of the newest scan at or before the stamp */
};
/** Decodes a pose. */
NDT_MUST_CHECK enum ndt_status ndt_moment_decode(const uint8_t *data, size_t size,
                                                 struct ndt_moment_message *message, struct ndt_error *err);
/** Replaces the contents of `frame` by the encoded pose. */
NDT_MUST_CHECK enum ndt_status ndt_moment_encode(struct ndt_buffer *frame, const struct ndt_moment_message *message,
                                                 struct ndt_error *err);

/** @name Points The data of a scan that a viewer needs besides its result: its points without the motion of the
 * sensor, and the poses that were tried.
 * @{ */
enum { NDT_POINTS_MAX_ITEMS = 64 /**< iterations, and candidates, of a points message */ };
/** Origin of a candidate. */
enum ndt_candidate_kind {
    NDT_CANDIDATE_HYPOTHESIS, /**< a guess that was aligned because the prediction was not confirmed */
    NDT_CANDIDATE_RECOVERY,   /**< a place that is followed while the pose is not known */
    NDT_CANDIDATE_SEARCH,     /**< a place that a requested search has found */
    NDT_CANDIDATE_KINDS
};
/** Name of a kind: "hypothesis", "recovery", "search"; "unknown" for other numbers. */
const char *ndt_candidate_kind_name(enum ndt_candidate_kind kind);

/** A pose that was tried and is not that of the result. */
struct ndt_points_candidate {
    enum ndt_candidate_kind kind;
    struct ndt_pose T_map_base; /**< base at the stamp of the scan */
    double confidence;          /**< probability that the pose is right, 0 to 1; NaN: unknown */
};

/** Points message: a scan as it was aligned, without its points. */
struct ndt_points_message {
    uint64_t seq;
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1]; /**< "base": T_map_base of the result lays the points on the map */
    size_t iteration_count, candidate_count;
    /** iterations of the final alignment; the hessian, the counters of the device and the pose are not sent */
    struct ndt_iteration iterations[NDT_POINTS_MAX_ITEMS];
    struct ndt_points_candidate candidates[NDT_POINTS_MAX_ITEMS];
    int has_gnss, has_gnss_deviation;
    double gnss_position_m[3]; /**< last position of the antenna that the estimator was given, map frame */
    double gnss_deviation_m[3];
};
/** Decodes points and message; the cloud is reused as by ndt_scan_points. */
NDT_MUST_CHECK enum ndt_status ndt_points_decode(const uint8_t *data, size_t size,
                                                 struct ndt_points_message *message, struct ndt_cloud *cloud,
                                                 struct ndt_error *err);
/** Replaces the contents of `frame`; the points are written as by ndt_scan_encode. */
NDT_MUST_CHECK enum ndt_status ndt_points_encode(struct ndt_buffer *frame, const struct ndt_points_message *message,
                                                 const struct ndt_cloud *cloud, struct ndt_error *err);
/** Prints a points message as ndt_message_print_json does, without `count`, `point_step`, `fields` and `data`. */
NDT_MUST_CHECK enum ndt_status ndt_points_print_json(FILE *file, const uint8_t *data, size_t size,
                                                     struct ndt_error *err);
/** @} */

/** A key of a message, for help texts. */
struct ndt_message_key {
    const char *name;
    const char *unit; /**< empty when it has none */
    const char *about;
};
/** The keys of a result in their order, without `v` and `type`; NULL after the last. */
const struct ndt_message_key *ndt_result_key_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
