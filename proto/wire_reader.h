/* A cursor over the bytes of one msgpack message.
 *
 * Writing goes through msgpack-c (wire_writer.h); reading does not. Its unpacker allocates 24 bytes for every
 * element an array or map header *declares* before it has seen one: the five bytes dd ff ff ff ff ask for 96 GiB
 * (msgpack-c issues 985 and 1013, open), and it needs a zone from malloc for every message. This cursor allocates
 * nothing, copies no blob, and its work is bounded by the number of bytes: every item takes at least one, and
 * a count is held against the bytes that are left before it is believed.
 *
 * Every function reads one item and moves on, or writes one line into `err` that names the byte, and leaves the
 * cursor anywhere. One thread per reader; what is read points into the data and lives as long. */
#ifndef NDT_WIRE_READER_H
#define NDT_WIRE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

#define NDT_WIRE_MAX_DEPTH 8 /* arrays and maps inside each other, in what is skipped */

struct ndt_wire_reader {
    const uint8_t *data;
    size_t size;
    size_t at; /* the next byte */
    struct ndt_error *err;
};

/* Fails with NDT_ERR_LIMIT beyond NDT_PROTO_MAX_FRAME. */
NDT_MUST_CHECK enum ndt_status ndt_wire_open(struct ndt_wire_reader *reader, const uint8_t *data, size_t size,
                                             struct ndt_error *err);
/* Integers of any width and sign in [0, max] or [INT64_MIN, INT64_MAX]. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_uint(struct ndt_wire_reader *reader, uint64_t max, uint64_t *out);
NDT_MUST_CHECK enum ndt_status ndt_wire_read_int(struct ndt_wire_reader *reader, int64_t *out);
/* float32, float64 or integer; NaN and infinity pass. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_number(struct ndt_wire_reader *reader, double *out);
/* An array of exactly `count` finite numbers. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_numbers(struct ndt_wire_reader *reader, double *out, size_t count);
/* A string of at most `max` bytes, not terminated. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_text(struct ndt_wire_reader *reader, size_t max, const char **text,
                                                  size_t *length);
/* A string of printable ASCII into out[capacity], terminated. Anything else would reach logs and terminals. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_name(struct ndt_wire_reader *reader, char *out, size_t capacity);
NDT_MUST_CHECK enum ndt_status ndt_wire_read_blob(struct ndt_wire_reader *reader, const uint8_t **data,
                                                  size_t *size);
/* The head of an array or map; `count` items or pairs follow and have at least a byte each. */
NDT_MUST_CHECK enum ndt_status ndt_wire_read_array(struct ndt_wire_reader *reader, size_t *count);
NDT_MUST_CHECK enum ndt_status ndt_wire_read_map(struct ndt_wire_reader *reader, size_t *count);
/* Passes over one item of any kind, nested at most NDT_WIRE_MAX_DEPTH deep. */
NDT_MUST_CHECK enum ndt_status ndt_wire_skip(struct ndt_wire_reader *reader);

#endif
