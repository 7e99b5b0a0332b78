/** @file
 * @brief A message as JSON. */
#include "wire.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum kind { OTHER, NIL, BOOLEAN, UNSIGNED, SIGNED, REAL, TEXT, ARRAY, MAP };

/* Kind of the next item, by its tag. */
static enum kind next_kind(const struct ndt_wire_reader *reader)
{
    static const uint8_t tagged[32] = {NIL,    OTHER,  BOOLEAN, BOOLEAN, OTHER,    OTHER,    OTHER,    OTHER,
                                       OTHER,  OTHER,  REAL,    REAL,    UNSIGNED, UNSIGNED, UNSIGNED, UNSIGNED,
                                       SIGNED, SIGNED, SIGNED,  SIGNED,  OTHER,    OTHER,    OTHER,    OTHER,
                                       OTHER,  TEXT,   TEXT,    TEXT,    ARRAY,    ARRAY,    MAP,      MAP};
    const uint8_t tag = reader->at < reader->size ? reader->data[reader->at] : 0xc1;
    if (tag < 0x80 || tag >= 0xe0)
        return tag < 0x80 ? UNSIGNED : SIGNED;
    if (tag < 0xc0)
        return tag < 0x90 ? MAP : tag < 0xa0 ? ARRAY : TEXT;
    return (enum kind)tagged[tag - 0xc0];
}

static void print_text(FILE *file, const char *text, size_t length)
{
    fputc('"', file);
    for (size_t i = 0; i < length; i++) {
        const char c = (char)(text[i] < 0x20 || text[i] > 0x7e ? '?' : text[i]);
        if (c == '"' || c == '\\')
            fputc('\\', file);
        fputc(c, file);
    }
    fputc('"', file);
}

/* Reads a scalar and prints it. 17 digits restore every double exactly. */
static enum ndt_status print_scalar(struct ndt_wire_reader *reader, enum kind kind, FILE *file)
{
    uint64_t large = 0;
    int64_t wide = 0;
    double real = 0;
    const char *text = "";
    size_t length = 0;
    enum ndt_status status;
    switch (kind) {
    case UNSIGNED:
        status = ndt_wire_read_uint(reader, UINT64_MAX, &large);
        fprintf(file, "%" PRIu64, large);
        return status;
    case SIGNED:
        status = ndt_wire_read_int(reader, &wide);
        fprintf(file, "%" PRId64, wide);
        return status;
    case REAL:
        status = ndt_wire_read_number(reader, &real);
        if (isfinite(real))
            fprintf(file, "%.17g", real);
        else
            fputs("null", file);
        return status;
    case TEXT:
        status = ndt_wire_read_text(reader, NDT_PROTO_MAX_FRAME, &text, &length);
        print_text(file, text, length);
        return status;
    case BOOLEAN:
        fputs(reader->data[reader->at] == 0xc3 ? "true" : "false", file);
        return ndt_wire_skip(reader);
    case NIL:
        fputs("null", file);
        return ndt_wire_skip(reader);
    default:
        return ndt_fail(reader->err, NDT_ERR_UNSUPPORTED, "byte %zu begins a value that JSON does not have",
                        reader->at);
    }
}

static enum ndt_status print_key(struct ndt_wire_reader *reader, FILE *file)
{
    const char *key = "";
    size_t length = 0;
    const enum ndt_status status = ndt_wire_read_text(reader, NDT_PROTO_MAX_FRAME, &key, &length);
    print_text(file, key, length);
    fputc(':', file);
    return status;
}

/* Prints a value; it calls itself for the items of arrays and maps, at most NDT_WIRE_MAX_DEPTH deep. */
static enum ndt_status print_value(struct ndt_wire_reader *reader, FILE *file, int depth)
{
    const enum kind kind = next_kind(reader);
    size_t count = 0;
    if (kind != ARRAY && kind != MAP)
        return print_scalar(reader, kind, file);
    if (depth == NDT_WIRE_MAX_DEPTH)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "nested deeper than %d", NDT_WIRE_MAX_DEPTH);
    enum ndt_status status = kind == MAP ? ndt_wire_read_map(reader, &count) : ndt_wire_read_array(reader, &count);
    fputc(kind == MAP ? '{' : '[', file);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        if (i)
            fputc(',', file);
        if (kind == MAP)
            status = print_key(reader, file);
        if (status == NDT_OK)
            status = print_value(reader, file, depth + 1);
    }
    fputc(kind == MAP ? '}' : ']', file);
    return status;
}

static int is_one_of(const char *const *names, const char *key, size_t length)
{
    for (; *names; names++)
        if (strlen(*names) == length && memcmp(*names, key, length) == 0)
            return 1;
    return 0;
}

static enum ndt_status print_members(FILE *file, const uint8_t *data, size_t size, const char *const *left_out,
                                     struct ndt_error *err)
{
    struct ndt_wire_reader reader;
    size_t pairs = 0;
    int is_first = 1;
    enum ndt_status status = ndt_wire_open(&reader, data, size, err);
    if (status == NDT_OK)
        status = ndt_wire_read_map(&reader, &pairs);
    for (size_t i = 0; status == NDT_OK && i < pairs; i++) {
        const char *key = NULL;
        size_t length = 0;
        status = ndt_wire_read_text(&reader, NDT_PROTO_MAX_FRAME, &key, &length);
        if (status == NDT_OK && is_one_of(left_out, key, length)) {
            status = ndt_wire_skip(&reader);
            continue;
        }
        if (status != NDT_OK)
            break;
        if (!is_first)
            fputc(',', file);
        is_first = 0;
        print_text(file, key, length);
        fputc(':', file);
        status = print_value(&reader, file, 0);
    }
    return status;
}

enum ndt_status ndt_message_print_json(FILE *file, const uint8_t *data, size_t size, struct ndt_error *err)
{
    static const char *const head[] = {"v", "type", NULL};
    return print_members(file, data, size, head, err);
}

enum ndt_status ndt_points_print_json(FILE *file, const uint8_t *data, size_t size, struct ndt_error *err)
{
    static const char *const points[] = {"v", "type", "count", "point_step", "fields", "data", NULL};
    return print_members(file, data, size, points, err);
}
