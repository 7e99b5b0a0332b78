#include "reply_view.h"

#include <ctype.h>
#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 12, MAX_REPLY_BYTES = 1048576 };

struct reply_view {
    msgpack_unpacked unpacked;
};

/* The unpacker allocates what the heads of the reply declare, hence the limit of its size. */
enum ndt_status reply_view_read(struct reply_view **out, const uint8_t *data, size_t size, struct ndt_error *err)
{
    size_t at = 0;
    *out = NULL;
    if (size > MAX_REPLY_BYTES)
        return ndt_fail(err, NDT_ERR_LIMIT, "the reply has %zu bytes, more than %d", size, MAX_REPLY_BYTES);
    struct reply_view *view = calloc(1, sizeof(*view));
    if (!view)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    msgpack_unpacked_init(&view->unpacked);
    enum ndt_status status = NDT_OK;
    if (msgpack_unpack_next(&view->unpacked, (const char *)data, size, &at) != MSGPACK_UNPACK_SUCCESS)
        status = ndt_fail(err, NDT_ERR_FORMAT, "the reply is not msgpack");
    else if (view->unpacked.data.type != MSGPACK_OBJECT_MAP)
        status = ndt_fail(err, NDT_ERR_FORMAT, "the reply is not a map");
    if (status == NDT_OK)
        *out = view;
    else
        reply_view_free(view);
    return status;
}

void reply_view_free(struct reply_view *view)
{
    if (view)
        msgpack_unpacked_destroy(&view->unpacked);
    free(view);
}

static int is_key(const msgpack_object *key, const char *name, size_t length)
{
    return key->type == MSGPACK_OBJECT_STR && key->via.str.size == length &&
           memcmp(key->via.str.ptr, name, length) == 0;
}

/* ---- text ---- */

/* Untrusted input: only printable characters reach the terminal. */
static int print_bytes(FILE *file, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        fputc(isprint((unsigned char)text[i]) ? text[i] : '?', file);
    return (int)size;
}

static void print_scalar(FILE *file, const msgpack_object *value)
{
    switch (value->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        fputs(value->via.boolean ? "yes" : "no", file);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        fprintf(file, "%" PRIu64, value->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        fprintf(file, "%" PRId64, value->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        fprintf(file, "%.4g", value->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        print_bytes(file, value->via.str.ptr, value->via.str.size);
        break;
    default:
        fputs("...", file); /* deeper levels are omitted */
    }
}

static void print_map(FILE *file, const msgpack_object_map *map)
{
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *key = &map->ptr[i].key;
        if (key->type != MSGPACK_OBJECT_STR)
            continue;
        fputs(i ? "  " : "", file);
        print_bytes(file, key->via.str.ptr, key->via.str.size);
        fputc(' ', file);
        print_scalar(file, &map->ptr[i].val);
    }
}

static void print_array(FILE *file, const msgpack_object_array *array)
{
    for (uint32_t i = 0; i < array->size; i++) {
        const msgpack_object *item = &array->ptr[i];
        if (item->type == MSGPACK_OBJECT_MAP) {
            fputs("\n  ", file);
            print_map(file, &item->via.map);
            continue;
        }
        fputs(i ? " " : "", file);
        print_scalar(file, item);
    }
}

static void print_value(FILE *file, const msgpack_object *value)
{
    if (value->type == MSGPACK_OBJECT_MAP)
        print_map(file, &value->via.map);
    else if (value->type == MSGPACK_OBJECT_ARRAY)
        print_array(file, &value->via.array);
    else
        print_scalar(file, value);
}

static int is_in_every_reply(const msgpack_object *key)
{
    return is_key(key, "v", 1) || is_key(key, "type", 4) || is_key(key, "id", 2) || is_key(key, "ok", 2);
}

void reply_view_print(const struct reply_view *view, FILE *file)
{
    const msgpack_object_map *map = &view->unpacked.data.via.map;
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *key = &map->ptr[i].key;
        if (key->type != MSGPACK_OBJECT_STR || is_in_every_reply(key))
            continue;
        const int used = print_bytes(file, key->via.str.ptr, key->via.str.size);
        fprintf(file, "%*s", used < LABEL ? LABEL - used : 1, "");
        print_value(file, &map->ptr[i].val);
        fputc('\n', file);
    }
}

/* ---- values ---- */

static const msgpack_object *find(const struct reply_view *view, const char *path)
{
    const msgpack_object *at = &view->unpacked.data;
    for (const char *name = path; at && *name;) {
        const size_t length = strcspn(name, ".");
        const msgpack_object *next = NULL;
        for (uint32_t i = 0; at->type == MSGPACK_OBJECT_MAP && i < at->via.map.size; i++)
            if (is_key(&at->via.map.ptr[i].key, name, length))
                next = &at->via.map.ptr[i].val;
        at = next;
        name += length + (name[length] == '.');
    }
    return at;
}

const char *reply_view_text(const struct reply_view *view, const char *path, char *out, size_t size)
{
    const msgpack_object *value = find(view, path);
    const int is_text = value && value->type == MSGPACK_OBJECT_STR;
    const char *text = is_text ? value->via.str.ptr : "";
    size_t length = is_text ? value->via.str.size : 0;
    if (length >= size)
        length = size - 1;
    for (size_t i = 0; i < length; i++)
        out[i] = (char)(isprint((unsigned char)text[i]) ? text[i] : '?');
    out[length] = '\0';
    return out;
}

static int as_number(const msgpack_object *value, double *out)
{
    *out = 0;
    if (!value)
        return 0;
    switch (value->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        *out = value->via.boolean;
        return 1;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        *out = (double)value->via.u64;
        return 1;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        *out = (double)value->via.i64;
        return 1;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        *out = value->via.f64;
        return 1;
    default:
        return 0;
    }
}

int reply_view_find_number(const struct reply_view *view, const char *path, double *out)
{
    return as_number(find(view, path), out);
}

int reply_view_reals(const struct reply_view *view, const char *path, double *out, uint32_t count)
{
    const msgpack_object *value = find(view, path);
    if (!value || value->type != MSGPACK_OBJECT_ARRAY || value->via.array.size != count)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (!as_number(&value->via.array.ptr[i], &out[i]))
            return 0;
    return 1;
}

double reply_view_number(const struct reply_view *view, const char *path)
{
    double value;
    (void)reply_view_find_number(view, path, &value);
    return value;
}

int reply_view_has(const struct reply_view *view, const char *path)
{
    return find(view, path) != NULL;
}

const char *reply_view_digits(const struct reply_view *view, const char *path, char *out, size_t size)
{
    const msgpack_object *value = find(view, path);
    out[0] = '\0';
    if (value && value->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        snprintf(out, size, "%" PRIu64, value->via.u64);
    return out;
}
