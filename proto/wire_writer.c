/** @file
 * @brief The writer of wire.h. */
#include "wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 512 };

void ndt_buffer_init(struct ndt_buffer *frame)
{
    memset(frame, 0, sizeof(*frame));
}

void ndt_buffer_free(struct ndt_buffer *frame)
{
    free(frame->data);
    ndt_buffer_init(frame);
}

enum ndt_status ndt_buffer_reserve(struct ndt_buffer *frame, size_t size, struct ndt_error *err)
{
    if (size <= frame->capacity)
        return NDT_OK;
    uint8_t *grown = realloc(frame->data, size);
    if (!grown)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a message of %zu bytes", size);
    frame->data = grown;
    frame->capacity = size;
    return NDT_OK;
}

/* Appends `more` bytes to the frame; NULL, with the reason in the writer, after a failure. */
static uint8_t *extend(struct ndt_wire_writer *writer, size_t more)
{
    struct ndt_buffer *frame = writer->frame;
    if (more > NDT_PROTO_MAX_FRAME - frame->size) {
        writer->status = ndt_fail(writer->err, NDT_ERR_LIMIT, "the message is above the limit of %zu bytes",
                                  NDT_PROTO_MAX_FRAME);
        return NULL;
    }
    const size_t needed = frame->size + more;
    if (needed > frame->capacity) {
        const size_t doubled = frame->capacity ? 2 * frame->capacity : FIRST_CAPACITY;
        writer->status = ndt_buffer_reserve(frame, needed > doubled ? needed : doubled, writer->err);
        if (writer->status != NDT_OK)
            return NULL;
    }
    uint8_t *end = frame->data + frame->size;
    frame->size = needed;
    return end;
}

static int append(void *context, const char *bytes, size_t count)
{
    struct ndt_wire_writer *writer = context;
    uint8_t *end = writer->status == NDT_OK && count > 0 ? extend(writer, count) : NULL;
    if (end)
        memcpy(end, bytes, count);
    return writer->status == NDT_OK ? 0 : -1;
}

void ndt_wire_resume(struct ndt_wire_writer *writer, struct ndt_buffer *frame, struct ndt_error *err)
{
    *writer = (struct ndt_wire_writer){.frame = frame, .err = err, .status = NDT_OK};
    msgpack_packer_init(&writer->packer, writer, append);
}

void ndt_wire_begin(struct ndt_wire_writer *writer, struct ndt_buffer *frame, struct ndt_error *err)
{
    ndt_wire_resume(writer, frame, err);
    frame->size = 0;
}

enum ndt_status ndt_wire_end(struct ndt_wire_writer *writer)
{
    if (writer->status != NDT_OK)
        writer->frame->size = 0;
    return writer->status;
}

/* The return values of the packer repeat `status`. */
void ndt_wire_put_map(struct ndt_wire_writer *writer, size_t pairs)
{
    (void)msgpack_pack_map(&writer->packer, pairs);
}

void ndt_wire_put_array(struct ndt_wire_writer *writer, size_t items)
{
    (void)msgpack_pack_array(&writer->packer, items);
}

size_t ndt_wire_put_head(struct ndt_wire_writer *writer, enum ndt_wire_head head)
{
    const char bytes[5] = {(char)head, 0, 0, 0, 0};
    const size_t at = writer->frame->size + 1;
    (void)append(writer, bytes, sizeof(bytes));
    return at;
}

void ndt_wire_patch_count(struct ndt_buffer *frame, size_t at, uint32_t count)
{
    for (size_t i = 0; i < 4; i++)
        frame->data[at + i] = (uint8_t)(count >> (24 - 8 * i));
}

void ndt_wire_put_bool(struct ndt_wire_writer *writer, int value)
{
    (void)(value ? msgpack_pack_true(&writer->packer) : msgpack_pack_false(&writer->packer));
}

void ndt_wire_put_uint(struct ndt_wire_writer *writer, uint64_t value)
{
    (void)msgpack_pack_uint64(&writer->packer, value);
}

void ndt_wire_put_int(struct ndt_wire_writer *writer, int64_t value)
{
    (void)msgpack_pack_int64(&writer->packer, value);
}

void ndt_wire_put_number(struct ndt_wire_writer *writer, double value)
{
    (void)msgpack_pack_double(&writer->packer, value);
}

void ndt_wire_put_numbers(struct ndt_wire_writer *writer, const double *values, size_t count)
{
    ndt_wire_put_array(writer, count);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]) && writer->status == NDT_OK)
            writer->status = ndt_fail(writer->err, NDT_ERR_ARGUMENT, "number %zu is not finite", i);
        ndt_wire_put_number(writer, values[i]);
    }
}

void ndt_wire_put_text(struct ndt_wire_writer *writer, const char *text)
{
    (void)msgpack_pack_str_with_body(&writer->packer, text, strlen(text));
}

uint8_t *ndt_wire_put_blob(struct ndt_wire_writer *writer, size_t size)
{
    (void)msgpack_pack_bin(&writer->packer, size);
    return writer->status == NDT_OK ? extend(writer, size) : NULL;
}
