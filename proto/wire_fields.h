/* A message as a table: one row per key, in the order of SCHEMA.md, read by the decoder and the encoder alike.
 * "v" and "type" come first in every message and need no row. */
#ifndef NDT_WIRE_FIELDS_H
#define NDT_WIRE_FIELDS_H

#include "wire_reader.h"
#include "wire_writer.h"

enum ndt_wire_type {
    NDT_WIRE_UINT64,
    NDT_WIRE_INT64,
    NDT_WIRE_UINT32,
    NDT_WIRE_COUNT,   /* int32_t or int, 0 or more */
    NDT_WIRE_NUMBER,  /* double; may be NaN (a score that does not exist) */
    NDT_WIRE_NUMBERS, /* double[size], finite */
    NDT_WIRE_NAME,    /* char[size], printable ASCII */
    NDT_WIRE_CUSTOM   /* read and write do it */
};

#define NDT_WIRE_REQUIRED SIZE_MAX
#define NDT_WIRE_MAX_ROWS 62

struct ndt_wire_field {
    const char *key;
    enum ndt_wire_type type;
    size_t offset;  /* of the value in the message's struct */
    size_t size;    /* of NUMBERS and NAME */
    size_t present; /* offset of the int that says whether the key is there, or NDT_WIRE_REQUIRED */
    enum ndt_status (*read)(struct ndt_wire_reader *reader, void *message);
    void (*write)(struct ndt_wire_writer *writer, const void *message);
};

/* Decodes a whole message into `message`, which the caller has zeroed. Checks version and type, refuses missing
 * and repeated keys and trailing bytes, skips unknown keys, names the message and the field in the error. */
NDT_MUST_CHECK enum ndt_status ndt_wire_decode(const uint8_t *data, size_t size, enum ndt_message_type type,
                                               const struct ndt_wire_field *rows, size_t row_count, void *message,
                                               struct ndt_error *err);
/* The same, but it stops looking as soon as every row (all of them required) was read: what follows may be broken.
 */
NDT_MUST_CHECK enum ndt_status ndt_wire_decode_head(const uint8_t *data, size_t size, enum ndt_message_type type,
                                                    const struct ndt_wire_field *rows, size_t row_count,
                                                    void *message, struct ndt_error *err);
/* Replaces the contents of `frame`; on failure the frame is empty. */
NDT_MUST_CHECK enum ndt_status ndt_wire_encode(struct ndt_frame *frame, enum ndt_message_type type,
                                               const struct ndt_wire_field *rows, size_t row_count,
                                               const void *message, struct ndt_error *err);

#endif
