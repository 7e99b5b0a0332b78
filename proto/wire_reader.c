/** @file
 * @brief The reader of wire.h. */
#include "wire.h"

#include <math.h>
#include <string.h>

enum wire_kind { UNUSED_TAG, NIL, BOOLEAN, UNSIGNED, NEGATIVE, FLOAT, TEXT, BLOB, ARRAY, MAP, EXTENSION };

static const char *const kind_names[] = {"an unused tag", "nil",      "a boolean",   "an integer",
                                         "an integer",    "a number", "a string",    "binary data",
                                         "an array",      "a map",    "an extension"};

/* Tags: a byte, followed by a big-endian number of 0, 1, 2, 4 or 8 bytes, whose meaning depends on the kind. */
struct wire_tag {
    uint8_t kind, bytes;
};
static const struct wire_tag tags_c0_df[32] = {
    {NIL, 0},       {UNUSED_TAG, 0}, {BOOLEAN, 0},   {BOOLEAN, 0},   {BLOB, 1},     {BLOB, 2},     {BLOB, 4},
    {EXTENSION, 1}, {EXTENSION, 2},  {EXTENSION, 4}, {FLOAT, 4},     {FLOAT, 8},    {UNSIGNED, 1}, {UNSIGNED, 2},
    {UNSIGNED, 4},  {UNSIGNED, 8},   {NEGATIVE, 1},  {NEGATIVE, 2},  {NEGATIVE, 4}, {NEGATIVE, 8}, {EXTENSION, 0},
    {EXTENSION, 0}, {EXTENSION, 0},  {EXTENSION, 0}, {EXTENSION, 0}, {TEXT, 1},     {TEXT, 2},     {TEXT, 4},
    {ARRAY, 2},     {ARRAY, 4},      {MAP, 2},       {MAP, 4}};

enum { FIXEXT_FIRST = 0xd4, FIXEXT_LAST = 0xd8 };

/* One item; for arrays and maps only the head. */
struct wire_item {
    enum wire_kind kind;
    size_t at;           /* offset of its tag */
    uint64_t value;      /* integer (two's complement when NEGATIVE), bits of a float, length, count */
    uint8_t bytes;       /* width of a float */
    const uint8_t *body; /* bytes of texts, blobs and extensions: `value` of them */
};

enum ndt_status ndt_wire_open(struct ndt_wire_reader *reader, const uint8_t *data, size_t size,
                              struct ndt_error *err)
{
    *reader = (struct ndt_wire_reader){.data = data, .size = size, .at = 0, .err = err};
    if (size > NDT_PROTO_MAX_FRAME)
        return ndt_fail(err, NDT_ERR_LIMIT, "a message of %zu bytes is above the limit of %zu", size,
                        NDT_PROTO_MAX_FRAME);
    return NDT_OK;
}

static enum ndt_status cut_short(const struct ndt_wire_reader *reader, size_t at)
{
    return ndt_fail(reader->err, NDT_ERR_FORMAT,
                    "the item at byte %zu goes beyond the end of the message at byte %zu", at, reader->size);
}

static enum ndt_status read_big_endian(struct ndt_wire_reader *reader, size_t bytes, uint64_t *out)
{
    *out = 0;
    if (reader->size - reader->at < bytes)
        return cut_short(reader, reader->at);
    for (size_t i = 0; i < bytes; i++)
        *out = *out << 8 | reader->data[reader->at++];
    return NDT_OK;
}

static enum ndt_status read_tag(struct ndt_wire_reader *reader, struct wire_item *item)
{
    *item = (struct wire_item){.kind = UNSIGNED, .at = reader->at};
    if (reader->at >= reader->size)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "the message ends at byte %zu, in the middle", reader->size);
    const uint8_t tag = reader->data[reader->at++];
    item->value = tag;
    if (tag < 0x80)
        return NDT_OK;
    if (tag >= 0xe0) {
        item->kind = NEGATIVE;
        item->value = (uint64_t)(int64_t)(int8_t)tag;
        return NDT_OK;
    }
    if (tag < 0xc0) {
        item->kind = tag < 0x90 ? MAP : tag < 0xa0 ? ARRAY : TEXT;
        item->value = tag & (tag < 0xa0 ? 0x0fu : 0x1fu);
        return NDT_OK;
    }
    item->kind = tags_c0_df[tag - 0xc0].kind;
    item->bytes = tags_c0_df[tag - 0xc0].bytes;
    if (tag >= FIXEXT_FIRST && tag <= FIXEXT_LAST)
        item->value = (uint64_t)1 << (tag - FIXEXT_FIRST);
    if (item->kind == UNUSED_TAG)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "byte %zu is 0x%02x, which is not a msgpack item", item->at,
                        tag);
    return NDT_OK;
}

static void extend_sign(struct wire_item *item)
{
    const unsigned shift = 64u - 8u * item->bytes;
    const int64_t value = (int64_t)(item->value << shift) >> shift;
    item->value = (uint64_t)value;
    if (value >= 0)
        item->kind = UNSIGNED;
}

static enum ndt_status check_extent(struct ndt_wire_reader *reader, struct wire_item *item)
{
    const size_t left = reader->size - reader->at;
    const int has_body = item->kind == TEXT || item->kind == BLOB || item->kind == EXTENSION;
    const uint64_t needed = item->kind == MAP                 ? 2 * item->value
                            : item->kind == EXTENSION         ? item->value + 1 /* one more for the type */
                            : item->kind == ARRAY || has_body ? item->value
                                                              : 0;
    if (needed > left)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "%s at byte %zu declares %llu, but only %zu bytes are left",
                        kind_names[item->kind], item->at, (unsigned long long)item->value, left);
    item->body = reader->data + reader->at;
    if (has_body)
        reader->at += (size_t)needed;
    return NDT_OK;
}

static enum ndt_status read_item(struct ndt_wire_reader *reader, struct wire_item *item)
{
    enum ndt_status status = read_tag(reader, item);
    if (status == NDT_OK && item->bytes > 0)
        status = read_big_endian(reader, item->bytes, &item->value);
    if (status != NDT_OK)
        return status;
    if (item->kind == NEGATIVE && item->bytes > 0)
        extend_sign(item);
    return check_extent(reader, item);
}

static enum ndt_status wrong_kind(const struct ndt_wire_reader *reader, const struct wire_item *item,
                                  const char *expected)
{
    return ndt_fail(reader->err, NDT_ERR_FORMAT, "byte %zu holds %s where %s is expected", item->at,
                    kind_names[item->kind], expected);
}

enum ndt_status ndt_wire_read_uint(struct ndt_wire_reader *reader, uint64_t max, uint64_t *out)
{
    struct wire_item item;
    const enum ndt_status status = read_item(reader, &item);
    if (status != NDT_OK)
        return status;
    if (item.kind == NEGATIVE)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "%lld is below 0", (long long)item.value);
    if (item.kind != UNSIGNED)
        return wrong_kind(reader, &item, "an integer");
    if (item.value > max)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "%llu is above the limit of %llu",
                        (unsigned long long)item.value, (unsigned long long)max);
    *out = item.value;
    return NDT_OK;
}

enum ndt_status ndt_wire_read_int(struct ndt_wire_reader *reader, int64_t *out)
{
    struct wire_item item;
    const enum ndt_status status = read_item(reader, &item);
    if (status != NDT_OK)
        return status;
    if (item.kind != UNSIGNED && item.kind != NEGATIVE)
        return wrong_kind(reader, &item, "an integer");
    if (item.kind == UNSIGNED && item.value > INT64_MAX)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "%llu is above the limit of %lld",
                        (unsigned long long)item.value, (long long)INT64_MAX);
    *out = (int64_t)item.value;
    return NDT_OK;
}

static double float_value(const struct wire_item *item)
{
    if (item->bytes == 8) {
        double wide;
        memcpy(&wide, &item->value, sizeof(wide));
        return wide;
    }
    const uint32_t bits = (uint32_t)item->value;
    float narrow;
    memcpy(&narrow, &bits, sizeof(narrow));
    return narrow;
}

enum ndt_status ndt_wire_read_number(struct ndt_wire_reader *reader, double *out)
{
    struct wire_item item;
    const enum ndt_status status = read_item(reader, &item);
    if (status != NDT_OK)
        return status;
    switch (item.kind) {
    case UNSIGNED:
        *out = (double)item.value;
        return NDT_OK;
    case NEGATIVE:
        *out = (double)(int64_t)item.value;
        return NDT_OK;
    case FLOAT:
        *out = float_value(&item);
        return NDT_OK;
    default:
        return wrong_kind(reader, &item, "a number");
    }
}

enum ndt_status ndt_wire_read_numbers(struct ndt_wire_reader *reader, double *out, size_t count)
{
    size_t found = 0;
    enum ndt_status status = ndt_wire_read_array(reader, &found);
    if (status == NDT_OK && found != count)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "%zu numbers where %zu are expected", found, count);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        status = ndt_wire_read_number(reader, &out[i]);
        if (status == NDT_OK && !isfinite(out[i]))
            return ndt_fail(reader->err, NDT_ERR_FORMAT, "number %zu is not finite", i);
    }
    return status;
}

enum ndt_status ndt_wire_read_bool(struct ndt_wire_reader *reader, int *out)
{
    struct wire_item item;
    const enum ndt_status status = read_item(reader, &item);
    if (status != NDT_OK)
        return status;
    if (item.kind != BOOLEAN)
        return wrong_kind(reader, &item, "a boolean");
    *out = reader->data[item.at] == 0xc3;
    return NDT_OK;
}

enum ndt_status ndt_wire_read_text(struct ndt_wire_reader *reader, size_t max, const char **text, size_t *length)
{
    struct wire_item item;
    const enum ndt_status status = read_item(reader, &item);
    if (status != NDT_OK)
        return status;
    if (item.kind != TEXT)
        return wrong_kind(reader, &item, "a string");
    if (item.value > max)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "a string of %llu bytes is above the limit of %zu",
                        (unsigned long long)item.value, max);
    *text = (const char *)item.body;
    *length = (size_t)item.value;
    return NDT_OK;
}

enum ndt_status ndt_wire_read_name(struct ndt_wire_reader *reader, char *out, size_t capacity)
{
    const char *text = "";
    size_t length = 0;
    const enum ndt_status status = ndt_wire_read_text(reader, capacity - 1, &text, &length);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < length; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            return ndt_fail(reader->err, NDT_ERR_FORMAT,
                            "character %zu of the string is not printable ASCII (0x%02x)", i,
                            (unsigned)(uint8_t)text[i]);
    memcpy(out, text, length);
    out[length] = '\0';
    return NDT_OK;
}

enum ndt_status ndt_wire_read_blob(struct ndt_wire_reader *reader, const uint8_t **data, size_t *size)
{
    struct wire_item item;
    const enum ndt_status status = read_item(reader, &item);
    if (status != NDT_OK)
        return status;
    if (item.kind != BLOB)
        return wrong_kind(reader, &item, "binary data");
    *data = item.body;
    *size = (size_t)item.value;
    return NDT_OK;
}

static enum ndt_status read_head(struct ndt_wire_reader *reader, enum wire_kind kind, size_t *count)
{
    struct wire_item item;
    const enum ndt_status status = read_item(reader, &item);
    if (status != NDT_OK)
        return status;
    if (item.kind != kind)
        return wrong_kind(reader, &item, kind_names[kind]);
    *count = (size_t)item.value;
    return NDT_OK;
}

enum ndt_status ndt_wire_read_array(struct ndt_wire_reader *reader, size_t *count)
{
    return read_head(reader, ARRAY, count);
}

enum ndt_status ndt_wire_read_map(struct ndt_wire_reader *reader, size_t *count)
{
    return read_head(reader, MAP, count);
}

/* Skips an item; counts the items left on every open level, without recursion on untrusted bytes. */
enum ndt_status ndt_wire_skip(struct ndt_wire_reader *reader)
{
    uint64_t left[NDT_WIRE_MAX_DEPTH + 1] = {1};
    size_t depth = 0;
    for (;;) {
        while (left[depth] == 0) {
            if (depth-- == 0)
                return NDT_OK;
        }
        left[depth]--;
        struct wire_item item;
        const enum ndt_status status = read_item(reader, &item);
        if (status != NDT_OK)
            return status;
        if (item.kind != ARRAY && item.kind != MAP)
            continue;
        if (depth == NDT_WIRE_MAX_DEPTH)
            return ndt_fail(reader->err, NDT_ERR_LIMIT, "%s at byte %zu is nested deeper than the limit of %d",
                            kind_names[item.kind], item.at, NDT_WIRE_MAX_DEPTH);
        left[++depth] = item.kind == MAP ? 2 * item.value : item.value;
    }
}
