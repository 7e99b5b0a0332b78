/** @file
 * @brief Private to the schema: reading and writing msgpack, and messages described as tables of fields.
 *
 * Writing goes through msgpack-c; reading does not. The unpacker of msgpack-c allocates 24 bytes for every element
 * that an array or map head declares before it has seen one: the five bytes dd ff ff ff ff request 96 GiB
 * (msgpack-c issues 985 and 1013, open), and every message needs a zone from malloc. The reader below allocates
 * nothing, copies no blob, and its work is bounded by the number of bytes: every item takes at least one byte, and
 * a count is compared with the bytes that are left before it is used. */
#ifndef NDT_WIRE_H
#define NDT_WIRE_H

#include <msgpack.h>
#include <stddef.h>
#include <stdint.h>

#include "ndt_proto/message.h"

/* ---- reader: a cursor over the bytes of one message ----
 *
 * Every function reads one item and advances. On failure it writes one line into `err` that names the byte, and the
 * cursor is undefined. What is read points into the data and lives as long. One thread per reader. */

#define NDT_WIRE_MAX_DEPTH 8 /* nesting of arrays and maps in items that are skipped */

struct ndt_wire_reader {
    const uint8_t *data;
    size_t size;
    size_t at; /* offset of the next byte */
    struct ndt_error *err;
};

/* Opens a message; fails with NDT_ERR_LIMIT above NDT_PROTO_MAX_FRAME. */
NDT_MUST_CHECK enum ndt_status ndt_wire_open(struct ndt_wire_reader *reader, const uint8_t *data, size_t size,
                                             struct ndt_error *err);
/* Reads an integer of any width and sign in [0, max] or [INT64_MIN, INT64_MAX]. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_uint(struct ndt_wire_reader *reader, uint64_t max, uint64_t *out);
NDT_MUST_CHECK enum ndt_status ndt_wire_read_int(struct ndt_wire_reader *reader, int64_t *out);
/* Reads a float32, float64 or integer; NaN and infinity are accepted. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_number(struct ndt_wire_reader *reader, double *out);
/* Reads an array of exactly `count` finite numbers. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_numbers(struct ndt_wire_reader *reader, double *out, size_t count);
NDT_MUST_CHECK enum ndt_status ndt_wire_read_bool(struct ndt_wire_reader *reader, int *out);
/* Reads a string of at most `max` bytes, not terminated. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_text(struct ndt_wire_reader *reader, size_t max, const char **text,
                                                  size_t *length);
/* Reads a string of printable ASCII into out[capacity], terminated. Other characters are refused because names
 * reach logs and terminals. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_name(struct ndt_wire_reader *reader, char *out, size_t capacity);
NDT_MUST_CHECK enum ndt_status ndt_wire_read_blob(struct ndt_wire_reader *reader, const uint8_t **data,
                                                  size_t *size);
/* Reads the head of an array or map; `count` items or pairs follow, of at least one byte each. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_array(struct ndt_wire_reader *reader, size_t *count);
NDT_MUST_CHECK enum ndt_status ndt_wire_read_map(struct ndt_wire_reader *reader, size_t *count);
/* Skips one item of any kind, nested at most NDT_WIRE_MAX_DEPTH deep. */
NDT_MUST_CHECK enum ndt_status ndt_wire_skip(struct ndt_wire_reader *reader);

/* ---- writer: appends items to a frame ----
 *
 * The first failure is kept and every later call does nothing, so that an encoder checks once, at the end. Every
 * number takes its shortest form: equal messages have equal bytes. */

struct ndt_wire_writer {
    msgpack_packer packer;
    struct ndt_buffer *frame;
    struct ndt_error *err;
    enum ndt_status status;
};

/* Empties the frame and starts writing to it. */
void ndt_wire_begin(struct ndt_wire_writer *writer, struct ndt_buffer *frame, struct ndt_error *err);
/* Continues after the current contents of the frame. */
void ndt_wire_resume(struct ndt_wire_writer *writer, struct ndt_buffer *frame, struct ndt_error *err);
/* Returns the first failure, if any; the frame is then empty. */
NDT_MUST_CHECK enum ndt_status ndt_wire_end(struct ndt_wire_writer *writer);

void ndt_wire_put_map(struct ndt_wire_writer *writer, size_t pairs);
void ndt_wire_put_array(struct ndt_wire_writer *writer, size_t items);
/* Heads with an unknown count: ndt_wire_put_head writes a 32-bit count of 0 and returns its offset in the frame. */
enum ndt_wire_head { NDT_WIRE_HEAD_ARRAY = 0xdd, NDT_WIRE_HEAD_MAP = 0xdf };
size_t ndt_wire_put_head(struct ndt_wire_writer *writer, enum ndt_wire_head head);
void ndt_wire_patch_count(struct ndt_buffer *frame, size_t at, uint32_t count);
void ndt_wire_put_bool(struct ndt_wire_writer *writer, int value);
void ndt_wire_put_uint(struct ndt_wire_writer *writer, uint64_t value);
void ndt_wire_put_int(struct ndt_wire_writer *writer, int64_t value);
void ndt_wire_put_number(struct ndt_wire_writer *writer, double value);
/* Writes an array of numbers; fails for numbers that are not finite, as the reader does. */
void ndt_wire_put_numbers(struct ndt_wire_writer *writer, const double *values, size_t count);
void ndt_wire_put_text(struct ndt_wire_writer *writer, const char *text);
/* Reserves space for a blob of `size` bytes, to be filled before the next call; NULL after a failure. */
uint8_t *ndt_wire_put_blob(struct ndt_wire_writer *writer, size_t size);

/* ---- fields: a message as a table ----
 *
 * One row per key, in the order of SCHEMA.md, used by the decoder and the encoder. "v" and "type" come first in
 * every message and have no row. */

enum ndt_wire_type {
    NDT_WIRE_UINT64,
    NDT_WIRE_INT64,
    NDT_WIRE_STAMP, /* int64_t within NDT_LIMIT_STAMP_NS */
    NDT_WIRE_UINT32,
    NDT_WIRE_COUNT,   /* int32_t or int, 0 or more */
    NDT_WIRE_NUMBER,  /* double; may be NaN (a score that does not exist) */
    NDT_WIRE_NUMBERS, /* double[size], finite */
    NDT_WIRE_NAME,    /* char[size], printable ASCII */
    NDT_WIRE_BOOL,    /* int, 0 or 1 */
    NDT_WIRE_CUSTOM   /* handled by `read` and `write` */
};

#define NDT_WIRE_REQUIRED SIZE_MAX
#define NDT_WIRE_MAX_ROWS 62

struct ndt_wire_field {
    const char *key;
    enum ndt_wire_type type;
    size_t offset;  /* offset of the value in the message's struct */
    size_t size;    /* size of NUMBERS and NAME */
    size_t present; /* offset of the int that is 1 when the key is present, or NDT_WIRE_REQUIRED */
    enum ndt_status (*read)(struct ndt_wire_reader *reader, void *message);
    void (*write)(struct ndt_wire_writer *writer, const void *message);
};

/* Decodes a whole message into `message`, which the caller has zeroed. Checks version and type, refuses missing
 * and repeated keys and trailing bytes, skips unknown keys. The error names the message and the field. */
NDT_MUST_CHECK enum ndt_status ndt_wire_decode(const uint8_t *data, size_t size, enum ndt_message_type type,
                                               const struct ndt_wire_field *rows, size_t row_count, void *message,
                                               struct ndt_error *err);
/* Reads the next item, a map within a message, as ndt_wire_decode does, without version and type. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_fields(struct ndt_wire_reader *reader,
                                                    const struct ndt_wire_field *rows, size_t row_count,
                                                    void *values);
/* Decodes as ndt_wire_decode, but stops as soon as every row (all of them required) has been read: the remaining
 * bytes may be damaged. */
NDT_MUST_CHECK enum ndt_status ndt_wire_decode_head(const uint8_t *data, size_t size, enum ndt_message_type type,
                                                    const struct ndt_wire_field *rows, size_t row_count,
                                                    void *message, struct ndt_error *err);
/* Writes a map within a message, as ndt_wire_read_fields reads it. */
void ndt_wire_put_fields(struct ndt_wire_writer *writer, const struct ndt_wire_field *rows, size_t row_count,
                         const void *values);
/* Encodes a message and replaces the contents of `frame`; on failure the frame is empty. */
NDT_MUST_CHECK enum ndt_status ndt_wire_encode(struct ndt_buffer *frame, enum ndt_message_type type,
                                               const struct ndt_wire_field *rows, size_t row_count,
                                               const void *message, struct ndt_error *err);

/* Reads a state by its name. In result_message.c. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_state(struct ndt_wire_reader *reader, enum ndt_state *out);

/* Reads a map with the keys of a pose message. In moment_message.c. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_moment(struct ndt_wire_reader *reader, struct ndt_moment_message *out);

/* Fails with NDT_ERR_LIMIT, naming the field and the number, if a value is larger than the limit, or NaN. */
NDT_MUST_CHECK enum ndt_status ndt_wire_check_sizes(const char *key, const double *values, size_t count,
                                                    double limit, struct ndt_error *err);
/* Fails with NDT_ERR_LIMIT if a stamp exceeds NDT_LIMIT_STAMP_NS. */
NDT_MUST_CHECK enum ndt_status ndt_wire_check_stamp(int64_t stamp_ns, struct ndt_error *err);
/* Accepts a position within NDT_LIMIT_POSITION_M and a quaternion whose length is within 1 % of 1, which it
 * normalises. `key` names the pose in the error. */
NDT_MUST_CHECK enum ndt_status ndt_wire_check_pose(const char *key, struct ndt_pose *pose, struct ndt_error *err);
/* Checks pose, twist and covariance of a message, where present. The covariance of odometry and truth is not used:
 * any finite one is accepted. */
NDT_MUST_CHECK enum ndt_status ndt_wire_check_motion(struct ndt_pose_message *message, int uses_covariance,
                                                     struct ndt_error *err);

#endif
