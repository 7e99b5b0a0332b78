/** @file
 * @brief The writer of replies. */
#include "ndt_proto/control_message.h"

#include <string.h>

#include "wire.h"

enum { MAX_OPEN = sizeof(((struct ndt_reply_writer *)0)->open) / sizeof(((struct ndt_reply_writer *)0)->open[0]) };

/* Writes a text cut at the limit. Texts of a reply come from files, options and errors, and are converted to
 * printable ASCII. */
static void put_bounded(struct ndt_wire_writer *wire, const char *text, size_t limit)
{
    char clean[NDT_PROTO_MAX_PATH + 1];
    size_t length = 0;
    for (; length < limit && text[length]; length++)
        clean[length] = (char)(text[length] < 0x20 || text[length] > 0x7e ? '?' : text[length]);
    if (length == limit && text[length])
        memcpy(clean + length - 3, "...", 3);
    clean[length] = '\0';
    ndt_wire_put_text(wire, clean);
}

static int in_map(const struct ndt_reply_writer *writer)
{
    return writer->frame->data[writer->open[writer->depth - 1].at - 1] == NDT_WIRE_HEAD_MAP;
}

/* Counts a value and writes its key, which values have in a map and not in an array. */
static void begin_value(struct ndt_reply_writer *writer, struct ndt_wire_writer *wire, const char *key)
{
    ndt_wire_resume(wire, writer->frame, NULL);
    if (writer->status == NDT_OK && (writer->depth == 0 || in_map(writer) != (key != NULL)))
        writer->status = NDT_ERR_ARGUMENT;
    wire->status = writer->status;
    if (writer->status != NDT_OK)
        return;
    writer->open[writer->depth - 1].count++;
    if (key)
        put_bounded(wire, key, NDT_PROTO_MAX_NAME);
}

static void open_level(struct ndt_reply_writer *writer, struct ndt_wire_writer *wire, enum ndt_wire_head head)
{
    if (wire->status == NDT_OK && writer->depth == MAX_OPEN)
        wire->status = NDT_ERR_LIMIT;
    const size_t at = ndt_wire_put_head(wire, head);
    writer->status = wire->status;
    if (writer->status != NDT_OK)
        return;
    writer->open[writer->depth].at = at;
    writer->open[writer->depth].count = 0;
    writer->depth++;
}

void ndt_reply_begin(struct ndt_reply_writer *writer, struct ndt_buffer *frame, uint64_t id, const char *error)
{
    struct ndt_wire_writer wire;
    *writer = (struct ndt_reply_writer){.frame = frame, .status = NDT_OK};
    ndt_wire_begin(&wire, frame, NULL);
    open_level(writer, &wire, NDT_WIRE_HEAD_MAP);
    ndt_reply_uint(writer, "v", NDT_PROTO_VERSION);
    ndt_reply_text(writer, "type", ndt_message_name(NDT_MESSAGE_REPLY));
    ndt_reply_uint(writer, "id", id);
    ndt_reply_bool(writer, "ok", error == NULL);
    if (error)
        ndt_reply_text(writer, "error", error);
}

void ndt_reply_text(struct ndt_reply_writer *writer, const char *key, const char *value)
{
    struct ndt_wire_writer wire;
    begin_value(writer, &wire, key);
    put_bounded(&wire, value, NDT_PROTO_MAX_PATH);
    writer->status = wire.status;
}

void ndt_reply_uint(struct ndt_reply_writer *writer, const char *key, uint64_t value)
{
    struct ndt_wire_writer wire;
    begin_value(writer, &wire, key);
    ndt_wire_put_uint(&wire, value);
    writer->status = wire.status;
}

void ndt_reply_int(struct ndt_reply_writer *writer, const char *key, int64_t value)
{
    struct ndt_wire_writer wire;
    begin_value(writer, &wire, key);
    ndt_wire_put_int(&wire, value);
    writer->status = wire.status;
}

void ndt_reply_real(struct ndt_reply_writer *writer, const char *key, double value)
{
    struct ndt_wire_writer wire;
    begin_value(writer, &wire, key);
    ndt_wire_put_number(&wire, value);
    writer->status = wire.status;
}

void ndt_reply_bool(struct ndt_reply_writer *writer, const char *key, int value)
{
    struct ndt_wire_writer wire;
    begin_value(writer, &wire, key);
    ndt_wire_put_bool(&wire, value);
    writer->status = wire.status;
}

void ndt_reply_open_map(struct ndt_reply_writer *writer, const char *key)
{
    struct ndt_wire_writer wire;
    begin_value(writer, &wire, key);
    open_level(writer, &wire, NDT_WIRE_HEAD_MAP);
}

void ndt_reply_open_array(struct ndt_reply_writer *writer, const char *key)
{
    struct ndt_wire_writer wire;
    begin_value(writer, &wire, key);
    open_level(writer, &wire, NDT_WIRE_HEAD_ARRAY);
}

static void close_level(struct ndt_reply_writer *writer)
{
    writer->depth--;
    ndt_wire_patch_count(writer->frame, writer->open[writer->depth].at, writer->open[writer->depth].count);
}

/* The outermost map is closed by ndt_reply_finish. */
void ndt_reply_close(struct ndt_reply_writer *writer)
{
    if (writer->status == NDT_OK && writer->depth < 2)
        writer->status = NDT_ERR_ARGUMENT;
    if (writer->status == NDT_OK)
        close_level(writer);
}

void ndt_reply_numbers(struct ndt_reply_writer *writer, const char *key, const double *values, size_t count)
{
    ndt_reply_open_array(writer, key);
    for (size_t i = 0; i < count; i++)
        ndt_reply_real(writer, NULL, values[i]);
    ndt_reply_close(writer);
}

enum ndt_status ndt_reply_finish(struct ndt_reply_writer *writer, struct ndt_error *err)
{
    if (writer->status == NDT_OK && writer->depth == 1) {
        close_level(writer);
        return NDT_OK;
    }
    writer->frame->size = 0;
    if (writer->status == NDT_ERR_MEMORY)
        return ndt_fail(err, NDT_ERR_MEMORY, "reply message: no memory");
    if (writer->status == NDT_ERR_LIMIT)
        return ndt_fail(err, NDT_ERR_LIMIT, "reply message: nested deeper than %d, or above the limit of %zu bytes",
                        MAX_OPEN, NDT_PROTO_MAX_FRAME);
    return ndt_fail(err, NDT_ERR_ARGUMENT,
                    "reply message: keys, or what was opened and closed, do not fit together");
}
