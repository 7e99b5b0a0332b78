/* Appends msgpack items to a frame, through msgpack-c's packer. The first failure is kept and everything after
 * it ignored, so that an encoder asks once, at the end. Every number takes its shortest form, so the same
 * message gives the same bytes. */
#ifndef NDT_WIRE_WRITER_H
#define NDT_WIRE_WRITER_H

#include <msgpack.h>

#include "ndt_proto/message.h"

struct ndt_wire_writer {
    msgpack_packer packer;
    struct ndt_frame *frame;
    struct ndt_error *err;
    enum ndt_status status;
};

/* Empties the frame and starts in it. */
void ndt_wire_begin(struct ndt_wire_writer *writer, struct ndt_frame *frame, struct ndt_error *err);
/* Goes on behind what the frame holds. */
void ndt_wire_resume(struct ndt_wire_writer *writer, struct ndt_frame *frame, struct ndt_error *err);
/* What went wrong, if anything; the frame is then empty. */
NDT_MUST_CHECK enum ndt_status ndt_wire_end(struct ndt_wire_writer *writer);

void ndt_wire_put_map(struct ndt_wire_writer *writer, size_t pairs);
void ndt_wire_put_array(struct ndt_wire_writer *writer, size_t items);
/* The same with counts that come later: writes a 32-bit one of 0 and returns where it is in the frame. */
enum ndt_wire_head { NDT_WIRE_HEAD_ARRAY = 0xdd, NDT_WIRE_HEAD_MAP = 0xdf };
size_t ndt_wire_put_head(struct ndt_wire_writer *writer, enum ndt_wire_head head);
void ndt_wire_patch_count(struct ndt_frame *frame, size_t at, uint32_t count);
void ndt_wire_put_bool(struct ndt_wire_writer *writer, int value);
void ndt_wire_put_uint(struct ndt_wire_writer *writer, uint64_t value);
void ndt_wire_put_int(struct ndt_wire_writer *writer, int64_t value);
void ndt_wire_put_number(struct ndt_wire_writer *writer, double value);
/* Refuses what is not finite, for the reader would. */
void ndt_wire_put_numbers(struct ndt_wire_writer *writer, const double *values, size_t count);
void ndt_wire_put_text(struct ndt_wire_writer *writer, const char *text);
/* Room for a blob of `size` bytes, to be filled at once; NULL after a failure. */
uint8_t *ndt_wire_put_blob(struct ndt_wire_writer *writer, size_t size);

#endif
