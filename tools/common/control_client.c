#include "control_client.h"

#include <errno.h>
#include <stdlib.h>
#include <zmq.h>

#include "ndt/clock.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "tool_options.h"

struct control_client {
    struct live_connection connection;
    char address[NDTD_ENDPOINT_MAX];
    int64_t timeout_ns;
    double end_us;       /* end of the waiting for the current reply */
    int was_interrupted; /* interrupted before its request, which may be one that cleans up */
    uint64_t id;
    struct ndt_buffer frame;
    zmq_msg_t reply;
    struct ndt_reply_message message; /* the reply, decoded */
};

enum ndt_status control_open(struct control_client **out, const char *address, const struct live_keys *keys,
                             int64_t timeout_ns, struct ndt_error *err)
{
    struct control_client *client = calloc(1, sizeof(*client));
    *out = NULL;
    if (!client)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    client->timeout_ns = timeout_ns;
    ndt_buffer_init(&client->frame);
    zmq_msg_init(&client->reply);
    enum ndt_status status =
        ndtd_default_address(client->address, sizeof(client->address), address, "control", 0, err);
    if (status == NDT_OK)
        status =
            live_open(&client->connection, ZMQ_DEALER, client->address, keys, (int)(timeout_ns / 1000000 + 1), err);
    if (status == NDT_OK)
        *out = client;
    else
        control_close(client);
    return status;
}

void control_close(struct control_client *client)
{
    if (!client)
        return;
    live_close(&client->connection, 0);
    zmq_msg_close(&client->reply);
    ndt_buffer_free(&client->frame);
    free(client);
}

const char *control_address(const struct control_client *client)
{
    return client->address;
}

const struct ndt_reply_message *control_message(const struct control_client *client)
{
    return &client->message;
}

const uint8_t *control_reply(const struct control_client *client, size_t *size)
{
    *size = zmq_msg_size(&client->reply);
    return zmq_msg_data((zmq_msg_t *)&client->reply);
}

/* Replies to other requests neither prolong the waiting nor keep a signal out. */
static enum ndt_status receive(struct control_client *client, struct ndt_error *err)
{
    const int is_late = ndt_clock_us() > client->end_us;
    const int is_stopped = tool_interrupted() && !client->was_interrupted;
    if (!is_late && !is_stopped && zmq_msg_recv(&client->reply, client->connection.socket, 0) >= 0)
        return NDT_OK;
    if (!is_stopped && (is_late || errno == EAGAIN))
        return ndt_fail(err, NDT_ERR_IO, "%s: no answer within %.3g s; is ndtd running%s?", client->address,
                        (double)client->timeout_ns * 1e-9,
                        strncmp(client->address, "tcp:", 4) == 0 ? ", and are these its keys" : "");
    return ndt_fail(err, NDT_ERR_IO, "%s: %s", client->address,
                    tool_interrupted() ? "interrupted" : zmq_strerror(errno));
}

enum ndt_status control_ask(struct control_client *client, const struct ndt_request_message *request,
                            struct ndt_error *err)
{
    struct ndt_request_message sent = *request;
    size_t size;
    client->end_us = ndt_clock_us() + (double)client->timeout_ns * 1e-3;
    client->was_interrupted = tool_interrupted();
    sent.id = ++client->id;
    enum ndt_status status = ndt_request_encode(&client->frame, &sent, err);
    if (status == NDT_OK &&
        zmq_send(client->connection.socket, client->frame.data, client->frame.size, ZMQ_DONTWAIT) < 0)
        status = ndt_fail(err, NDT_ERR_IO, "%s: %s", client->address, zmq_strerror(errno));
    while (status == NDT_OK) {
        status = receive(client, err);
        if (status != NDT_OK)
            return status;
        const uint8_t *data = control_reply(client, &size);
        status = ndt_reply_decode(data, size, &client->message, err);
        if (status != NDT_OK)
            return ndt_fail_prefix(err, status, "%s", client->address);
        if (client->message.id == sent.id)
            break;
    }
    if (status == NDT_OK && !client->message.ok)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%.400s", client->message.error);
    return status;
}

enum ndt_status control_print_json(const struct control_client *client, FILE *file, struct ndt_error *err)
{
    size_t size;
    const uint8_t *data = control_reply(client, &size);
    fputc('{', file);
    const enum ndt_status status = ndt_message_print_json(file, data, size, err);
    fputs("}\n", file);
    return status;
}
