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
    NDT_OP_TIMINGS, /**< count */
    NDT_OP_SHUTDOWN,
    NDT_OP_COUNT
};
/** "hello", "initial_pose", ...; "unknown" for other numbers. */
const char *ndt_operation_name(enum ndt_operation op);

/** A request: operation and arguments. */
struct ndt_request_message {
    uint64_t id;
    enum ndt_operation op;
    char path[NDT_PROTO_MAX_PATH + 1]; /**< load, tile, recording: not empty */
    uint32_t count;                    /**< timings; default 100 */
    struct ndt_pose_message pose;      /**< initial_pose: stamp_ns 0 (default) = the next scan's; frame `map` */
};
/** Arguments that the operation does not have are decoded and ignored. An unknown op or a missing argument is an
 * error that names it. *id is set as soon as it could be read (else 0), so that a malformed request can be
 * answered.
 */
NDT_MUST_CHECK enum ndt_status ndt_request_decode(const uint8_t *data, size_t size,
                                                  struct ndt_request_message *message, uint64_t *id,
                                                  struct ndt_error *err);
/** Writes only the arguments that the operation has. */
NDT_MUST_CHECK enum ndt_status ndt_request_encode(struct ndt_frame *frame,
                                                  const struct ndt_request_message *message, struct ndt_error *err);

/** Writes a reply value by value; ndt_reply_finish sets the counts. Values may nest: maps (named values) and
 * arrays, eight levels with the reply itself. Texts become printable ASCII ('?' for other bytes) and are cut to
 * NDT_PROTO_MAX_PATH bytes, keys to NDT_PROTO_MAX_NAME. Between begin and finish the frame belongs to the writer;
 * after a failure it is empty. */
struct ndt_reply_writer {
    struct ndt_frame *frame;
    enum ndt_status status; /**< the first failure (memory, depth), returned by ndt_reply_finish */
    int depth;
    struct {
        size_t at; /**< offset of the 32-bit count */
        uint32_t count;
    } open[8];
};
/** Begins a reply. error: the reason of a failed request; NULL for success. */
void ndt_reply_begin(struct ndt_reply_writer *writer, struct ndt_frame *frame, uint64_t id, const char *error);
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
/** Begins a nested map; end it with ndt_reply_close. */
void ndt_reply_open_map(struct ndt_reply_writer *writer, const char *key);
/** Begins a nested array; end it with ndt_reply_close. */
void ndt_reply_open_array(struct ndt_reply_writer *writer, const char *key);
/** Ends the innermost map or array. */
void ndt_reply_close(struct ndt_reply_writer *writer);
/** Ends the reply and returns the first failure, if any. */
NDT_MUST_CHECK enum ndt_status ndt_reply_finish(struct ndt_reply_writer *writer, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
