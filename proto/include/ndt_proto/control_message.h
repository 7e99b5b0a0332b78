/** @file
 * @brief Requests and replies of the control socket (SCHEMA.md): one msgpack map each, paired by id.
 *
 * request: {v, type: "request", id, op, ...arguments}; reply: {v, type: "reply", id, ok, error?, ...values}. Pure
 * functions, with the errors of message.h. A new operation is a row in the table of request_message.c and a
 * handler in the daemon. Source: request_message.c, reply_message.c. */
#ifndef NDT_PROTO_CONTROL_MESSAGE_H
#define NDT_PROTO_CONTROL_MESSAGE_H

#include "ndt_proto/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_PROTO_MAX_PATH 1023 /**< bytes of a path */

/** The operations; SCHEMA.md describes them. */
enum ndt_operation {
    NDT_OP_HELLO, /**< versions, capabilities */
    NDT_OP_STATUS,
    NDT_OP_INITIAL_POSE, /**< pose, twist? */
    NDT_OP_START,        /**< resume localisation */
    NDT_OP_STOP,         /**< answer scans as rejected */
    NDT_OP_LOAD_MAP,     /**< path */
    NDT_OP_UNLOAD_MAP,
    NDT_OP_LOAD_TILE,       /**< path */
    NDT_OP_UNLOAD_TILE,     /**< path */
    NDT_OP_RELOAD,          /**< configuration */
    NDT_OP_START_RECORDING, /**< path */
    NDT_OP_STOP_RECORDING,
    NDT_OP_TIMINGS,  /**< count */
    NDT_OP_LOCALIZE, /**< pose?, position?, heading?, apply: begin a search for the pose */
    NDT_OP_SEARCH,   /**< progress and result of the last search */
    NDT_OP_CANCEL_SEARCH,
    NDT_OP_POSE_AT, /**< stamp_ns?: the pose at that moment */
    NDT_OP_SHUTDOWN,
    NDT_OP_COUNT
};
/** Name of an operation: "hello", "initial_pose", ...; "unknown" for other numbers. */
const char *ndt_operation_name(enum ndt_operation op);

/** Hint where to search for the pose; without any of the three the whole map is searched. The pose (T_map_base,
 * with a covariance if known, as in Autoware's align service) is pose.pose of the request. */
struct ndt_localize_hint {
    int has_position, has_deviation;
    double position_m[3];  /**< position of the GNSS antenna, map frame */
    double deviation_m[3]; /**< standard deviations, above 0 */
    int has_heading, has_heading_deviation;
    double heading_rad;           /**< angle of the x axis of the base about the z axis of the map */
    double heading_deviation_rad; /**< standard deviation, above 0 */
    int apply;                    /**< an accepted pose becomes the pose of the estimator */
};

/** A request: operation and arguments. */
struct ndt_request_message {
    uint64_t id;
    enum ndt_operation op;
    char path[NDT_PROTO_MAX_PATH + 1]; /**< load, tile, recording: not empty */
    uint32_t count;                    /**< timings; default 100 */
    /** initial_pose: stamp_ns 0 (default) = the next scan's; frame `map`. localize: only pose and covariance.
     * pose_at: only stamp_ns, 0 (default) = now */
    struct ndt_pose_message pose;
    struct ndt_localize_hint hint; /**< localize; apply is 1 by default */
};
/** Decodes a request. Arguments that the operation does not have are decoded and ignored. An unknown op or a
 * missing argument is an error that names it. *id is set as soon as it could be read (else 0), so that a malformed
 * request can be answered. */
NDT_MUST_CHECK enum ndt_status ndt_request_decode(const uint8_t *data, size_t size,
                                                  struct ndt_request_message *message, uint64_t *id,
                                                  struct ndt_error *err);
/** Encodes a request with only the arguments of its operation. */
NDT_MUST_CHECK enum ndt_status ndt_request_encode(struct ndt_buffer *frame,
                                                  const struct ndt_request_message *message, struct ndt_error *err);

/** Describes a request as one line for a log: the operation, and its path or place, [m] and [deg]. Longer text is
 * cut at `size`. */
void ndt_request_describe(const struct ndt_request_message *message, char *text, size_t size);

/** @name Search for the pose
 * `localize` begins a search and is answered at once; `search` tells its progress and its result. A search that
 * runs is not replaced: a second `localize` is refused.
 * @{ */

enum { NDT_LOCALIZE_MAX_ALTERNATIVES = 10 };

/** A pose that a search has found. */
struct ndt_localize_pose {
    struct ndt_pose T_map_base; /**< base at the stamp of the scan */
    double confidence;          /**< probability that the pose is right, 0 to 1 */
};

/** The last search: its progress, and its result once it has ended. */
struct ndt_localize_report {
    uint64_t search_id; /**< number of the search, from 1; 0: none since the start of the daemon */
    int running;
    uint32_t percent;  /**< progress, 0 to 100 */
    double elapsed_ms; /**< time from the request to the result, or to now while the search runs */
    int has_result;    /**< the search has ended, and the members below are set */
    int accepted;      /**< the best pose is accepted */
    int applied;       /**< the best pose became that of the estimator */
    char reason[NDT_PROTO_MAX_PATH + 1]; /**< reason why the pose is not accepted; may be empty */
    uint64_t seq;                        /**< number of the scan that was localised */
    int64_t stamp_ns;
    int has_pose, has_covariance;
    struct ndt_localize_pose best; /**< with has_pose: set even if the pose is not accepted */
    double covariance[36];         /**< covariance of the best pose, as in a result */
    size_t alternative_count;
    struct ndt_localize_pose alternatives[NDT_LOCALIZE_MAX_ALTERNATIVES]; /**< other places, most probable first */
    double queue_ms, search_ms, verification_ms;                          /**< parts of elapsed_ms */
};

/** The parts of a reply that clients need. */
struct ndt_reply_message {
    uint64_t id;
    int ok;
    char error[NDT_PROTO_MAX_PATH + 1]; /**< empty when ok */
    int has_search, has_moment;
    struct ndt_localize_report search;
    struct ndt_moment_message moment; /**< values of pose_at */
};
/** Decodes a reply; values of other operations are ignored. */
NDT_MUST_CHECK enum ndt_status ndt_reply_decode(const uint8_t *data, size_t size, struct ndt_reply_message *message,
                                                struct ndt_error *err);
/** @} */

/** Writes a reply value by value; ndt_reply_finish sets the counts. Values may nest: maps (named values) and
 * arrays, eight levels with the reply itself. Texts become printable ASCII ('?' for other bytes) and are cut to
 * NDT_PROTO_MAX_PATH bytes, keys to NDT_PROTO_MAX_NAME. Between begin and finish the frame belongs to the writer;
 * after a failure it is empty. */
struct ndt_reply_writer {
    struct ndt_buffer *frame;
    enum ndt_status status; /**< the first failure (memory, depth), returned by ndt_reply_finish */
    int depth;
    struct {
        size_t at; /**< offset of the 32-bit count */
        uint32_t count;
    } open[8];
};
/** Begins a reply. error: the reason of a failed request; NULL for success. */
void ndt_reply_begin(struct ndt_reply_writer *writer, struct ndt_buffer *frame, uint64_t id, const char *error);
/** Writes a text. key, here and in the following functions: the name in a map; NULL in an array. */
void ndt_reply_text(struct ndt_reply_writer *writer, const char *key, const char *value);
/** Writes an unsigned integer. */
void ndt_reply_uint(struct ndt_reply_writer *writer, const char *key, uint64_t value);
/** Writes an integer. */
void ndt_reply_int(struct ndt_reply_writer *writer, const char *key, int64_t value);
/** Writes a float64; may be NaN. */
void ndt_reply_real(struct ndt_reply_writer *writer, const char *key, double value);
/** Writes a boolean. */
void ndt_reply_bool(struct ndt_reply_writer *writer, const char *key, int value);
/** Writes an array of float64. */
void ndt_reply_numbers(struct ndt_reply_writer *writer, const char *key, const double *values, size_t count);
/** Begins a nested map; end it with ndt_reply_close. */
void ndt_reply_open_map(struct ndt_reply_writer *writer, const char *key);
/** Begins a nested array; end it with ndt_reply_close. */
void ndt_reply_open_array(struct ndt_reply_writer *writer, const char *key);
/** Ends the innermost map or array. */
void ndt_reply_close(struct ndt_reply_writer *writer);
/** Writes a report as the map `search`. */
void ndt_reply_search(struct ndt_reply_writer *writer, const struct ndt_localize_report *report);
/** Writes a pose as the map `pose_at`, with the keys of a pose message. */
void ndt_reply_moment(struct ndt_reply_writer *writer, const struct ndt_moment_message *moment);
/** Ends the reply and returns the first failure, if any. */
NDT_MUST_CHECK enum ndt_status ndt_reply_finish(struct ndt_reply_writer *writer, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
