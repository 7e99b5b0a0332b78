/* The messages on the wire and in bags: one msgpack map each (SCHEMA.md).
 *
 * Decoders are pure functions of bytes: no state, no clock, no log. They refuse trailing bytes, wrong types,
 * missing fields, depths and sizes beyond the limits below, and name the field in the error. Unknown keys
 * are ignored. Encoders write keys in the order of SCHEMA.md, so the same message gives the same bytes.
 * On failure a decoder leaves message and cloud as they were, and an encoder leaves the frame empty.
 * Names are printable ASCII: they reach logs and terminals.
 * One file per message: scan_message.c, pose_message.c, ... and one row in the table of message.c. */
#ifndef NDT_PROTO_MESSAGE_H
#define NDT_PROTO_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/align.h"
#include "ndt/cloud.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_PROTO_VERSION    1
#define NDT_PROTO_MAX_FRAME  ((size_t)268435456)
#define NDT_PROTO_MAX_FIELDS 32 /* fields of a point */
#define NDT_PROTO_MAX_NAME   63 /* bytes of a name */

enum ndt_message_type {
    NDT_MESSAGE_SCAN = 1,
    NDT_MESSAGE_INITIAL_POSE = 2,
    NDT_MESSAGE_ODOMETRY = 3,
    NDT_MESSAGE_TRUTH = 4,
    NDT_MESSAGE_RESULT = 5,
    NDT_MESSAGE_GNSS = 6,
    NDT_MESSAGE_REQUEST = 7, /* control socket, see control_message.h */
    NDT_MESSAGE_REPLY = 8,
    NDT_MESSAGE_LAST = NDT_MESSAGE_REPLY
};
const char *ndt_message_name(enum ndt_message_type type); /* "scan", ... ; "unknown" */

/* A buffer that encoders append to; grows, is reused. */
struct ndt_frame {
    uint8_t *data;
    size_t size, capacity;
};
void ndt_frame_init(struct ndt_frame *frame);
void ndt_frame_free(struct ndt_frame *frame);

/* Looks only at the keys "v" (version) and "type". */
NDT_MUST_CHECK enum ndt_status ndt_message_peek(const uint8_t *data, size_t size, enum ndt_message_type *type,
                                                struct ndt_error *err);

/* scan: the header; the points go straight into a cloud. */
struct ndt_scan_message {
    uint64_t seq;
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
};
/* Points travel as one little-endian blob with named fields, as in PointCloud2: any field types and paddings
 * are accepted; x, y, z (float32 or float64), intensity and a time field are taken (SCHEMA.md says how).
 * The cloud is reused: no allocation once it has held as many points with the same fields. It afterwards has
 * exactly the optional arrays that the scan has, and an origin when float64 coordinates need one. */
NDT_MUST_CHECK enum ndt_status ndt_scan_decode(const uint8_t *data, size_t size, struct ndt_scan_message *message,
                                               struct ndt_cloud *cloud, struct ndt_error *err);
/* Replaces the contents of `frame`. float32 x y z (float64 when the cloud has an origin), then intensity and
 * time when the cloud has them. */
NDT_MUST_CHECK enum ndt_status ndt_scan_encode(struct ndt_frame *frame, const struct ndt_scan_message *message,
                                               const struct ndt_cloud *cloud, struct ndt_error *err);

/* Only the header of a scan, without looking at the points: seq, stamp, frame. For those who answer a scan that
 * they do not match. It stops at the last of the three: what is behind it may be broken, so that a scan that
 * ndt_scan_decode refuses can still be answered. */
NDT_MUST_CHECK enum ndt_status ndt_scan_header_decode(const uint8_t *data, size_t size,
                                                      struct ndt_scan_message *message, struct ndt_error *err);

/* Whether ndt_scan_decode would take the message, without touching the points: microseconds whatever their number.
 */
NDT_MUST_CHECK enum ndt_status ndt_scan_check(const uint8_t *data, size_t size, struct ndt_error *err);

/* gnss: a position of the sensor in the map frame. */
struct ndt_gnss_message {
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    double position_m[3];
    int has_deviation;
    double deviation_m[3]; /* standard deviations x y z, above 0 */
};
NDT_MUST_CHECK enum ndt_status ndt_gnss_decode(const uint8_t *data, size_t size, struct ndt_gnss_message *message,
                                               struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_gnss_encode(struct ndt_frame *frame, const struct ndt_gnss_message *message,
                                               struct ndt_error *err);

/* initial pose, truth, odometry: a stamped pose, a twist, or both. */
struct ndt_pose_message {
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    int has_pose, has_twist, has_covariance;
    struct ndt_pose pose;   /* initial pose, truth: T_map_sensor; odometry: T_odom_sensor */
    struct ndt_twist twist; /* of the sensor, in the sensor frame */
    double covariance[36];
};
/* type: one of INITIAL_POSE, ODOMETRY, TRUTH. Initial pose and truth need a pose; odometry needs one of both. */
NDT_MUST_CHECK enum ndt_status ndt_pose_message_decode(const uint8_t *data, size_t size, enum ndt_message_type type,
                                                       struct ndt_pose_message *message, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_pose_message_encode(struct ndt_frame *frame, enum ndt_message_type type,
                                                       const struct ndt_pose_message *message,
                                                       struct ndt_error *err);

/* result: what one scan got. A pose whose quaternion is all zero was never set: it is not sent, and decoded so.
 * config_hash, queue_depth and drop_counter are always sent; bags from before they existed give 0. */
struct ndt_result_message {
    uint64_t seq;
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    struct ndt_align_result result;
    uint64_t map_id;
    uint64_t config_hash;  /* of the configuration in force */
    uint32_t queue_depth;  /* scans that waited when this one was taken */
    uint64_t drop_counter; /* scans dropped since the start */
    double decode_us, queue_us, preprocess_us, upload_us, publish_us; /* align_us is in result */
};
NDT_MUST_CHECK enum ndt_status ndt_result_decode(const uint8_t *data, size_t size,
                                                 struct ndt_result_message *message, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_result_encode(struct ndt_frame *frame, const struct ndt_result_message *message,
                                                 struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
