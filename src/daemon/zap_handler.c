#include "zap_handler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "ndtd/log.h"
#include "socket_thread.h"

/* The parts of a request, in their order. */
enum { VERSION, REQUEST_ID, DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS, PARTS };

struct ndtd_zap_handler {
    void *socket;
    struct ndtd_client_list clients;
    struct ndtd_socket_thread thread;
};

static int is_text(zmq_msg_t *part, const char *text)
{
    return zmq_msg_size(part) == strlen(text) && memcmp(zmq_msg_data(part), text, strlen(text)) == 0;
}

/* Reads a whole request; parts beyond those that count are dropped. Returns how many there were. */
static int receive_request(void *socket, zmq_msg_t *parts)
{
    int count = 0, more = 1;
    while (more) {
        zmq_msg_t extra;
        zmq_msg_t *part = count < PARTS ? &parts[count] : &extra;
        if (part == &extra)
            zmq_msg_init(&extra);
        if (zmq_msg_recv(part, socket, ZMQ_DONTWAIT) < 0)
            return -1;
        more = zmq_msg_more(part);
        if (part == &extra)
            zmq_msg_close(&extra);
        count++;
    }
    return count;
}

static int may_connect(const struct ndtd_zap_handler *handler, zmq_msg_t *parts, char *key_text)
{
    if (!is_text(&parts[MECHANISM], "CURVE") || zmq_msg_size(&parts[CREDENTIALS]) != NDTD_KEY_BYTES)
        return 0;
    const uint8_t *key = zmq_msg_data(&parts[CREDENTIALS]);
    zmq_z85_encode(key_text, key, NDTD_KEY_BYTES);
    return ndtd_client_list_has(&handler->clients, key);
}

static void reply(void *socket, zmq_msg_t *request_id, int allowed, const char *user)
{
    const char *code = allowed ? "200" : "400", *text = allowed ? "OK" : "not in the list of clients";
    zmq_send_const(socket, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(socket, zmq_msg_data(request_id), zmq_msg_size(request_id), ZMQ_SNDMORE);
    zmq_send(socket, code, 3, ZMQ_SNDMORE);
    zmq_send(socket, text, strlen(text), ZMQ_SNDMORE);
    zmq_send(socket, user, strlen(user), ZMQ_SNDMORE);
    zmq_send(socket, "", 0, 0);
}

static void answer(const struct ndtd_zap_handler *handler)
{
    zmq_msg_t parts[PARTS];
    char key[NDTD_KEY_TEXT + 1] = "";
    for (int i = 0; i < PARTS; i++)
        zmq_msg_init(&parts[i]);
    const int count = receive_request(handler->socket, parts);
    if (count >= 0) {
        const int allowed = count == PARTS && is_text(&parts[VERSION], "1.0") && may_connect(handler, parts, key);
        if (!allowed)
            ndtd_log(NDTD_LOG_WARNING, "a client at %.*s is refused: its key %s is not in the list of clients",
                     (int)zmq_msg_size(&parts[ADDRESS]), (const char *)zmq_msg_data(&parts[ADDRESS]), key);
        reply(handler->socket, &parts[REQUEST_ID], allowed, allowed ? key : "");
    }
    for (int i = 0; i < PARTS; i++)
        zmq_msg_close(&parts[i]);
}

static void *run(void *argument)
{
    const struct ndtd_zap_handler *handler = argument;
    while (ndtd_socket_thread_wait(&handler->thread, handler->socket))
        answer(handler);
    return NULL;
}

enum ndt_status ndtd_zap_start(struct ndtd_zap_handler **out, void *context, struct ndtd_client_list *clients,
                               struct ndt_error *err)
{
    const int no_linger = 0;
    struct ndtd_zap_handler *handler = calloc(1, sizeof(*handler));
    if (!handler)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the handler of keys");
    enum ndt_status status = NDT_OK;
    handler->socket = zmq_socket(context, ZMQ_REP);
    if (!handler->socket || zmq_setsockopt(handler->socket, ZMQ_LINGER, &no_linger, sizeof(no_linger)) != 0 ||
        zmq_bind(handler->socket, "inproc://zeromq.zap.01") != 0)
        status = ndt_fail(err, NDT_ERR_IO, "the handler of keys: %s", zmq_strerror(errno));
    handler->clients = *clients;
    if (status == NDT_OK)
        status = ndtd_socket_thread_start(&handler->thread, "ndt-keys", run, handler, err);
    if (status != NDT_OK) {
        if (handler->socket)
            zmq_close(handler->socket);
        free(handler);
        return status;
    }
    *clients = (struct ndtd_client_list){NULL, 0};
    *out = handler;
    return NDT_OK;
}

void ndtd_zap_stop(struct ndtd_zap_handler *handler)
{
    if (!handler)
        return;
    ndtd_socket_thread_stop(&handler->thread);
    zmq_close(handler->socket);
    ndtd_client_list_free(&handler->clients);
    free(handler);
}
