/** @file
 * live_ask CONTROL OPERATION [PATH]: sends one request and prints the reply, one value per line: `key value`, or
 * `map.key value`. Exit code 1: the daemon refuses it; 3: no reply within 20 s. */
#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "ndt_proto/control_message.h"

enum { WAIT_MS = 20000 };

static int is_ok;

static void print_map(const char *prefix, const msgpack_object_map *map);

static void print_value(const char *name, const msgpack_object *value)
{
    if (value->type == MSGPACK_OBJECT_MAP)
        print_map(name, &value->via.map);
    else if (value->type == MSGPACK_OBJECT_STR)
        printf("%s %.*s\n", name, (int)value->via.str.size, value->via.str.ptr);
    else if (value->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        printf("%s %" PRIu64 "\n", name, value->via.u64);
    else if (value->type == MSGPACK_OBJECT_BOOLEAN)
        printf("%s %d\n", name, value->via.boolean);
    else if (value->type == MSGPACK_OBJECT_FLOAT64)
        printf("%s %g\n", name, value->via.f64);
    if (strcmp(name, "ok") == 0 && value->type == MSGPACK_OBJECT_BOOLEAN)
        is_ok = value->via.boolean;
}

static void print_map(const char *prefix, const msgpack_object_map *map)
{
    char name[200];
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *key = &map->ptr[i].key;
        if (key->type != MSGPACK_OBJECT_STR)
            continue;
        snprintf(name, sizeof(name), "%.99s%s%.*s", prefix, *prefix ? "." : "",
                 key->via.str.size < 64 ? (int)key->via.str.size : 64, key->via.str.ptr);
        print_value(name, &map->ptr[i].val);
    }
}

static int print_reply(const void *data, size_t size)
{
    msgpack_unpacked reply;
    size_t at = 0;
    msgpack_unpacked_init(&reply);
    if (msgpack_unpack_next(&reply, data, size, &at) == MSGPACK_UNPACK_SUCCESS &&
        reply.data.type == MSGPACK_OBJECT_MAP)
        print_map("", &reply.data.via.map);
    msgpack_unpacked_destroy(&reply);
    return is_ok ? 0 : 1;
}

static int find_operation(const char *name, enum ndt_operation *op)
{
    for (int i = 0; i < NDT_OP_COUNT; i++)
        if (strcmp(ndt_operation_name((enum ndt_operation)i), name) == 0) {
            *op = (enum ndt_operation)i;
            return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    struct ndt_request_message request = {.id = 1, .count = 10};
    struct ndt_buffer frame;
    struct ndt_error err = {""};
    zmq_msg_t reply;
    const int wait_ms = WAIT_MS, none = 0;
    int code = 3;
    if (argc < 3 || argc > 4 || !find_operation(argv[2], &request.op)) {
        fprintf(stderr, "usage: live_ask CONTROL OPERATION [PATH]\n");
        return 2;
    }
    snprintf(request.path, sizeof(request.path), "%s", argc == 4 ? argv[3] : "");
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    ndt_buffer_init(&frame);
    zmq_msg_init(&reply);
    if (zmq_connect(socket, argv[1]) == 0 && ndt_request_encode(&frame, &request, &err) == NDT_OK &&
        zmq_send(socket, frame.data, frame.size, 0) >= 0 && zmq_msg_recv(&reply, socket, 0) > 0)
        code = print_reply(zmq_msg_data(&reply), zmq_msg_size(&reply));
    else
        fprintf(stderr, "live_ask: %s: %s\n", argv[2], *err.text ? err.text : zmq_strerror(zmq_errno()));
    zmq_msg_close(&reply);
    ndt_buffer_free(&frame);
    zmq_close(socket);
    zmq_ctx_term(context);
    return code;
}
