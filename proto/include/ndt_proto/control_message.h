/* Requests and replies of the control socket (SCHEMA.md): one msgpack map each, paired by id.
 *
 * request: {v, type: "request", id, op, ...arguments}; reply: {v, type: "reply", id, ok, error?, ...values}. Pure
 * functions of bytes, as in message.h. One table of operations: adding one is a row here and a handler in the
 * daemon. */
#ifndef NDT_PROTO_CONTROL_MESSAGE_H
#define NDT_PROTO_CONTROL_MESSAGE_H

#include "ndt_proto/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_PROTO_MAX_PATH 1023

enum ndt_operation {
    NDT_OP_HELLO, /* versions, capabilities */
    NDT_OP_STATUS,
    NDT_OP_INITIAL_POSE, /* pose, twist? */
    NDT_OP_START,        /* localise again */
    NDT_OP_STOP,         /* answer scans as rejected */
    NDT_OP_LOAD_MAP,     /* path */
    NDT_OP_UNLOAD_MAP,
    NDT_OP_LOAD_TILE,       /* path */
    NDT_OP_UNLOAD_TILE,     /* path */
    NDT_OP_RELOAD,          /* configuration */
    NDT_OP_START_RECORDING, /* path */
    NDT_OP_STOP_RECORDING,
    NDT_OP_TIMINGS, /* count */
    NDT_OP_SHUTDOWN,
    NDT_OP_COUNT
};
const char *ndt_operation_name(enum ndt_operation op); /* "hello", "initial_pose", ... */

struct ndt_request_message {
    uint64_t id;
    enum ndt_operation op;
    char path[NDT_PROTO_MAX_PATH + 1]; /* load, tile, recording: not empty */
    uint32_t count;                    /* timings; default 100 */
    struct ndt_pose_message pose;      /* initial_pose: stamp_ns 0 (default) = from the next scan on; frame `map` */
};
/* Arguments that the operation does not have mean nothing: checked and filled in by the decoder, left out by the
 * encoder. */
/* An unknown op or a missing argument is an error that names it; *id is set as soon as it could be read (else 0),
 * so that even a bad request can be answered. */
NDT_MUST_CHECK enum ndt_status ndt_request_decode(const uint8_t *data, size_t size,
                                                  struct ndt_request_message *message, uint64_t *id,
                                                  struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_request_encode(struct ndt_frame *frame,
                                                  const struct ndt_request_message *message, struct ndt_error *err);

/* A reply is written value by value; `finish` sets the counts. Values may nest: maps (named values) and arrays,
 * eight deep with the reply itself. Texts are made printable ASCII ('?' for the rest) and cut to NDT_PROTO_MAX_PATH
 * bytes, keys to NDT_PROTO_MAX_NAME. The frame must not be touched between begin and finish; after a failure it is
 * empty. */
struct ndt_reply_writer {
    struct ndt_frame *frame;
    enum ndt_status status; /* the first failure (memory, depth); checked by finish */
    int depth;
    struct {
        size_t at; /* where the 32-bit count is patched */
        uint32_t count;
    } open[8];
};
/* error: NULL = ok. */
void ndt_reply_begin(struct ndt_reply_writer *writer, struct ndt_frame *frame, uint64_t id, const char *error);
void ndt_reply_text(struct ndt_reply_writer *writer, const char *key,
                    const char *value); /* key NULL inside arrays */
void ndt_reply_uint(struct ndt_reply_writer *writer, const char *key, uint64_t value);
void ndt_reply_int(struct ndt_reply_writer *writer, const char *key, int64_t value);
void ndt_reply_real(struct ndt_reply_writer *writer, const char *key, double value);
void ndt_reply_bool(struct ndt_reply_writer *writer, const char *key, int value);
void ndt_reply_open_map(struct ndt_reply_writer *writer, const char *key);
void ndt_reply_open_array(struct ndt_reply_writer *writer, const char *key);
void ndt_reply_close(struct ndt_reply_writer *writer);
NDT_MUST_CHECK enum ndt_status ndt_reply_finish(struct ndt_reply_writer *writer, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
