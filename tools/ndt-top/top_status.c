#include "top_status.h"

#include <ctype.h>
#include <inttypes.h>
#include <msgpack.h>
#include <string.h>

enum { LABEL = 12, MAX_REPLY_BYTES = 65536 };

static int is_key(const msgpack_object *key, const char *name)
{
    return key->type == MSGPACK_OBJECT_STR && key->via.str.size == strlen(name) &&
           memcmp(key->via.str.ptr, name, strlen(name)) == 0;
}

/* Bytes from outside: only what can be printed reaches the terminal. */
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
        fputs("...", file); /* what is nested deeper has no place in a line */
    }
}

static void print_value(FILE *file, const msgpack_object *value)
{
    if (value->type != MSGPACK_OBJECT_MAP) {
        print_scalar(file, value);
        return;
    }
    for (uint32_t i = 0; i < value->via.map.size; i++) {
        const msgpack_object_kv *pair = &value->via.map.ptr[i];
        if (pair->key.type != MSGPACK_OBJECT_STR)
            continue;
        fputs(i ? "  " : "", file);
        print_bytes(file, pair->key.via.str.ptr, pair->key.via.str.size);
        fputc(' ', file);
        print_scalar(file, &pair->val);
    }
}

static enum ndt_status print_reply(FILE *file, const msgpack_object *reply, struct ndt_error *err)
{
    if (reply->type != MSGPACK_OBJECT_MAP)
        return ndt_fail(err, NDT_ERR_FORMAT, "the reply is no map");
    const msgpack_object_map *map = &reply->via.map;
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *key = &map->ptr[i].key;
        if (key->type != MSGPACK_OBJECT_STR || is_key(key, "v") || is_key(key, "type") || is_key(key, "id") ||
            is_key(key, "ok"))
            continue;
        const int used = print_bytes(file, key->via.str.ptr, key->via.str.size);
        fprintf(file, "%*s", used < LABEL ? LABEL - used : 1, "");
        print_value(file, &map->ptr[i].val);
        fputc('\n', file);
    }
    return NDT_OK;
}

/* The unpacker asks for memory by what headers claim; a reply that short cannot hold much, and one that claims more
 * is refused for lack of memory. */
enum ndt_status top_status_print(FILE *file, const uint8_t *data, size_t size, struct ndt_error *err)
{
    msgpack_unpacked unpacked;
    size_t at = 0;
    if (size > MAX_REPLY_BYTES)
        return ndt_fail(err, NDT_ERR_LIMIT, "the reply has %zu bytes, more than %d", size, MAX_REPLY_BYTES);
    msgpack_unpacked_init(&unpacked);
    enum ndt_status status;
    if (msgpack_unpack_next(&unpacked, (const char *)data, size, &at) == MSGPACK_UNPACK_SUCCESS)
        status = print_reply(file, &unpacked.data, err);
    else
        status = ndt_fail(err, NDT_ERR_FORMAT, "the reply cannot be understood");
    msgpack_unpacked_destroy(&unpacked);
    return status;
}
