/** @file
 * @brief ndt-top: shows rate, latency, queue and status of a running daemon. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "live_connection.h"
#include "ndt_proto/control_message.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "ndt/clock.h"
#include "status_view.h"
#include "tool_options.h"
#include "top_view.h"

enum { STATUS_BYTES = 65536, ANSWER_US = 50000, ONCE_ANSWER_US = 500000 };

static struct {
    const char *endpoint, *control;
    int once;
    int64_t interval_ns;
    struct live_keys keys;
} args = {.endpoint = "", .control = "", .interval_ns = 1000000000};

struct top {
    struct live_connection poses, control;
    char poses_address[NDTD_ENDPOINT_MAX], control_address[NDTD_ENDPOINT_MAX];
    struct top_view view;
    uint64_t bad; /* frames that are not results */
    uint64_t request_id;
    struct ndt_buffer request;
    uint8_t status[STATUS_BYTES]; /* the last reply */
    size_t status_size;
};

/* Never waits for the daemon. */
static enum ndt_status request_status(struct top *top, struct ndt_error *err)
{
    const struct ndt_request_message request = {.id = ++top->request_id, .op = NDT_OP_STATUS};
    const enum ndt_status status = ndt_request_encode(&top->request, &request, err);
    if (status == NDT_OK)
        (void)zmq_send(top->control.socket, top->request.data, top->request.size, ZMQ_DONTWAIT);
    return status;
}

static void receive_results(struct top *top)
{
    zmq_msg_t frame;
    struct ndt_result_message message;
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, top->poses.socket, ZMQ_DONTWAIT) >= 0) {
        if (ndt_result_decode(zmq_msg_data(&frame), zmq_msg_size(&frame), &message, NULL) == NDT_OK)
            top_view_add(&top->view, &message);
        else
            top->bad++;
    }
    zmq_msg_close(&frame);
}

static void receive_replies(struct top *top)
{
    int size;
    while ((size = zmq_recv(top->control.socket, top->status, sizeof(top->status), ZMQ_DONTWAIT)) >= 0)
        top->status_size = (size_t)size < sizeof(top->status) ? (size_t)size : sizeof(top->status);
}

/* Receives until the interval ends or a signal arrives. */
static void watch(struct top *top, double until_us)
{
    zmq_pollitem_t items[] = {{.socket = top->poses.socket, .events = ZMQ_POLLIN},
                              {.socket = top->control.socket, .events = ZMQ_POLLIN}};
    for (double left_us = until_us - ndt_clock_us(); left_us > 0 && !tool_interrupted();
         left_us = until_us - ndt_clock_us()) {
        zmq_poll(items, 2, (long)(left_us * 1e-3) + 1);
        receive_results(top);
        receive_replies(top);
    }
}

static void show_status(const struct top *top)
{
    struct ndt_error err = {""};
    struct reply_view *reply;
    if (reply_view_read(&reply, top->status, top->status_size, &err) == NDT_OK)
        status_view_print(reply);
    else
        printf("status      %s\n", err.text);
    reply_view_free(reply);
}

static void show(struct top *top, double seconds)
{
    if (!args.once)
        printf("\033[H\033[J"); /* home, clear */
    printf("ndt-top     %s\n", top->poses_address);
    top_view_show(&top->view, stdout, seconds);
    if (top->bad)
        printf("bad         %llu messages that are not results\n", (unsigned long long)top->bad);
    if (top->status_size == 0)
        printf("status      no answer from %s\n", top->control_address);
    else
        show_status(top);
    top->status_size = 0;
    fflush(stdout);
}

static enum ndt_status watch_all(struct top *top, struct ndt_error *err)
{
    const double interval_us = (double)args.interval_ns * 1e-3;
    /* A late reply is shown in the next report; with --once there is no next report. */
    const double answer_us = args.once ? fmin(0.5 * interval_us, ONCE_ANSWER_US) : ANSWER_US;
    do {
        const double start_us = ndt_clock_us();
        watch(top, start_us + interval_us - answer_us); /* sends the request late, so that the reply is recent */
        const enum ndt_status status = request_status(top, err);
        if (status != NDT_OK)
            return status;
        watch(top, start_us + interval_us);
        if (args.once && top->view.results == 0 && top->status_size == 0)
            return ndt_fail(err, NDT_ERR_IO, "no daemon: no result from %s and no answer from %s within %.3g s",
                            top->poses_address, top->control_address, interval_us * 1e-6);
        if (!tool_interrupted() || args.once)
            show(top, (ndt_clock_us() - start_us) * 1e-6);
    } while (!args.once && !tool_interrupted() && !ferror(stdout));
    return NDT_OK;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct top *top = calloc(1, sizeof(*top));
    if (!top)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    args.once |= !isatty(STDOUT_FILENO);
    ndt_buffer_init(&top->request);
    enum ndt_status status =
        ndtd_default_address(top->poses_address, sizeof(top->poses_address), args.endpoint, "poses", 0, err);
    if (status == NDT_OK)
        status = ndtd_default_address(top->control_address, sizeof(top->control_address), args.control, "control",
                                      0, err);
    if (status == NDT_OK)
        status = live_open(&top->poses, ZMQ_SUB, top->poses_address, &args.keys, 0, err);
    if (status == NDT_OK)
        status = live_open(&top->control, ZMQ_DEALER, top->control_address, &args.keys, 0, err);
    if (status == NDT_OK)
        status = watch_all(top, err);
    live_close(&top->poses, 0);
    live_close(&top->control, 0);
    ndt_buffer_free(&top->request);
    free(top);
    return status;
}

static const struct tool_option options[] = {
    {"endpoint", "ADDRESS", TOOL_TEXT, &args.endpoint,
     .help = "the poses socket (default: poses.ipc in the runtime directory)"},
    LIVE_CONTROL_OPTION(args.control),
    {"once", NULL, TOOL_FLAG, &args.once,
     .help = "watch for one interval, print one report and exit; implied if the output is not a terminal"},
    {"interval", "S", TOOL_SECONDS, &args.interval_ns, 0.1, 3600, .help = "seconds between two reports"},
    LIVE_KEY_OPTIONS(args.keys),
};

static const struct tool_command command = {
    .name = "ndt-top",
    .summary = "shows rate, latency, queue and status of a running ndtd",
    .details =
        "Prints rate, queue, drops, outcomes, latency from arrival to publication (quantiles and histogram of "
        "the last 1000 results), scores and the last result, then the status that the daemon reports on its "
        "control socket. Updates the terminal until interrupted. With --once, exit status 3 and one line when "
        "no daemon answers.",
    TOOL_OPTIONS(options),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
