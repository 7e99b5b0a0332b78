#include "echo_localize.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <zmq.h>

#include "ndt/clock.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "tool_options.h"

enum { REPLY_MS = 5000, POLL_MS = 20 };

struct asking {
    struct live_connection connection;
    char address[NDTD_ENDPOINT_MAX];
    struct ndt_frame frame;
    zmq_msg_t reply;
    struct ndt_reply_message message;
};

/* Sends a request and waits for its reply; replies to others are skipped. */
static enum ndt_status ask(struct asking *asking, struct ndt_request_message *request, struct ndt_error *err)
{
    request->id++;
    enum ndt_status status = ndt_request_encode(&asking->frame, request, err);
    if (status == NDT_OK &&
        zmq_send(asking->connection.socket, asking->frame.data, asking->frame.size, ZMQ_DONTWAIT) < 0)
        status = ndt_fail(err, NDT_ERR_IO, "%s: %s", asking->address, zmq_strerror(errno));
    while (status == NDT_OK) {
        if (zmq_msg_recv(&asking->reply, asking->connection.socket, 0) < 0)
            return ndt_fail(err, NDT_ERR_IO, "%s: %s", asking->address,
                            errno == EAGAIN ? "no answer within 5 s" : zmq_strerror(errno));
        status =
            ndt_reply_decode(zmq_msg_data(&asking->reply), zmq_msg_size(&asking->reply), &asking->message, err);
        if (status != NDT_OK || asking->message.id == request->id)
            break;
    }
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s", asking->address);
    if (!asking->message.ok)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%.200s", asking->message.error);
    return asking->message.has_search
               ? NDT_OK
               : ndt_fail(err, NDT_ERR_FORMAT, "%s: a reply without a search", asking->address);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
}

static enum ndt_status wait_for_result(struct asking *asking, struct ndt_request_message *request,
                                       int64_t timeout_ns, struct ndt_error *err)
{
    const double end_us = ndt_clock_us() + (double)timeout_ns * 1e-3;
    const uint64_t search_id = asking->message.search.search_id;
    enum ndt_status status = NDT_OK;
    request->op = NDT_OP_SEARCH;
    while (status == NDT_OK && asking->message.search.running) {
        const int is_late = timeout_ns > 0 && ndt_clock_us() > end_us;
        if (is_late || tool_interrupted()) {
            request->op = NDT_OP_CANCEL_SEARCH;
            status = ask(asking, request, err);
            return status == NDT_OK ? ndt_fail(err, NDT_ERR_IO, "%s: the search is cancelled",
                                               is_late ? "no result in time" : "interrupted")
                                    : status;
        }
        nap();
        status = ask(asking, request, err);
    }
    if (status == NDT_OK && asking->message.search.search_id != search_id)
        return ndt_fail(err, NDT_ERR_IO, "another search has begun, the result of this one is not known");
    return status;
}

static enum ndt_status print(const struct asking *asking, struct ndt_error *err)
{
    const struct ndt_localize_report *found = &asking->message.search;
    putchar('{');
    const enum ndt_status status = ndt_message_print_json(stdout, zmq_msg_data((zmq_msg_t *)&asking->reply),
                                                          zmq_msg_size(&asking->reply), err);
    puts("}");
    if (status == NDT_OK && !found->accepted)
        return ndt_fail(err, NDT_ERR_IO, "the pose is not accepted: %.200s", found->reason);
    return status;
}

enum ndt_status echo_localize(const struct echo_localize *how, struct ndt_error *err)
{
    struct asking asking = {.frame = {0}};
    struct ndt_request_message request = how->request;
    request.op = NDT_OP_LOCALIZE;
    ndt_frame_init(&asking.frame);
    zmq_msg_init(&asking.reply);
    enum ndt_status status =
        ndtd_default_address(asking.address, sizeof(asking.address), how->control, "control", 0, err);
    if (status == NDT_OK)
        status = live_open(&asking.connection, ZMQ_DEALER, asking.address, how->keys, REPLY_MS, err);
    if (status == NDT_OK)
        status = ask(&asking, &request, err);
    if (status == NDT_OK)
        status = wait_for_result(&asking, &request, how->timeout_ns, err);
    if (status == NDT_OK)
        status = print(&asking, err);
    live_close(&asking.connection, 0);
    zmq_msg_close(&asking.reply);
    ndt_frame_free(&asking.frame);
    return status;
}
