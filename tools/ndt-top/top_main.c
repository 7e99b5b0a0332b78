/* ndt-top: how a running daemon is doing, once a second. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "live_connection.h"
#include "ndt_proto/control_message.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "ndtd/stopwatch.h"
#include "tool_main.h"
#include "top_status.h"
#include "top_view.h"

enum top_option { ENDPOINT, CONTROL, ONCE, INTERVAL, SERVER_KEY, KEYS };
enum { STATUS_BYTES = 65536, ANSWER_US = 50000 };

static const struct bag_option options[] = {
    [ENDPOINT] = {"endpoint", "ADDRESS", "the poses socket (poses.ipc in the runtime directory)", 0},
    [CONTROL] = {"control", "ADDRESS", "the control socket (control.ipc in the runtime directory)", 0},
    [ONCE] = {"once", NULL, "watch for one interval, print one report, exit; so it is without a terminal", 0},
    [INTERVAL] = {"interval", "S", "seconds between two pictures, 0.1 to 3600 (1)", 0},
    [SERVER_KEY] = LIVE_SERVER_KEY_OPTION,
    [KEYS] = LIVE_KEYS_OPTION,
};

struct top {
    struct live_connection poses, control;
    char poses_address[NDTD_ENDPOINT_MAX], control_address[NDTD_ENDPOINT_MAX];
    struct top_view view;
    uint64_t bad; /* frames that are no results */
    uint64_t request_id;
    struct ndt_frame request;
    uint8_t status[STATUS_BYTES]; /* the last reply */
    size_t status_size;
    int once;
    double interval_us;
};

static enum ndt_status parse(struct top *top, const struct bag_args *args, struct ndt_error *err)
{
    const char *const *values = args->values;
    int64_t interval_ns = 1000000000;
    top->once = values[ONCE] != NULL || !isatty(STDOUT_FILENO);
    enum ndt_status status = NDT_OK;
    if (values[INTERVAL])
        status = bag_parse_seconds("interval", values[INTERVAL], &interval_ns, err);
    if (status == NDT_OK && (interval_ns < 100000000 || interval_ns > 3600000000000))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--interval: %s is not from 0.1 to 3600 seconds", values[INTERVAL]);
    top->interval_us = (double)interval_ns * 1e-3;
    if (status == NDT_OK)
        status = ndtd_default_address(top->poses_address, sizeof(top->poses_address),
                                      values[ENDPOINT] ? values[ENDPOINT] : "", "poses", 0, err);
    if (status == NDT_OK)
        status = ndtd_default_address(top->control_address, sizeof(top->control_address),
                                      values[CONTROL] ? values[CONTROL] : "", "control", 0, err);
    return status;
}

/* A daemon that does not answer must not hold anything up. */
static enum ndt_status request_status(struct top *top, struct ndt_error *err)
{
    const struct ndt_request_message request = {.id = ++top->request_id, .op = NDT_OP_STATUS};
    const enum ndt_status status = ndt_request_encode(&top->request, &request, err);
    if (status == NDT_OK)
        (void)zmq_send(top->control.socket, top->request.data, top->request.size, ZMQ_DONTWAIT);
    return status;
}

static void take_results(struct top *top)
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

static void take_replies(struct top *top)
{
    int size;
    while ((size = zmq_recv(top->control.socket, top->status, sizeof(top->status), ZMQ_DONTWAIT)) >= 0)
        top->status_size = (size_t)size; /* beyond the buffer: the reader refuses it */
}

/* Gathers until the time is over or a signal comes. */
static void watch(struct top *top, double until_us)
{
    zmq_pollitem_t items[] = {{.socket = top->poses.socket, .events = ZMQ_POLLIN},
                              {.socket = top->control.socket, .events = ZMQ_POLLIN}};
    for (double left_us = until_us - ndtd_now_us(); left_us > 0 && !tool_interrupted();
         left_us = until_us - ndtd_now_us()) {
        zmq_poll(items, 2, (long)(left_us * 1e-3) + 1);
        take_results(top);
        take_replies(top);
    }
}

static void show(struct top *top, double seconds)
{
    struct ndt_error err = {""};
    if (!top->once)
        printf("\033[H\033[J"); /* home, clear */
    printf("ndt-top     %s\n", top->poses_address);
    top_view_show(&top->view, stdout, seconds);
    if (top->bad)
        printf("bad         %llu messages that are no results\n", (unsigned long long)top->bad);
    if (top->status_size == 0)
        printf("status      no answer from %s\n", top->control_address);
    else if (top_status_print(stdout, top->status, top->status_size, &err) != NDT_OK)
        printf("status      %s\n", err.text);
    top->status_size = 0;
    fflush(stdout);
}

static enum ndt_status watch_all(struct top *top, struct ndt_error *err)
{
    do {
        const double start_us = ndtd_now_us();
        watch(top, start_us + top->interval_us - ANSWER_US); /* asked late, so that the answer is fresh */
        const enum ndt_status status = request_status(top, err);
        if (status != NDT_OK)
            return status;
        watch(top, start_us + top->interval_us);
        if (!tool_interrupted() || top->once)
            show(top, (ndtd_now_us() - start_us) * 1e-6);
    } while (!top->once && !tool_interrupted() && !ferror(stdout));
    return NDT_OK;
}

static enum ndt_status run(const struct bag_args *args, struct ndt_error *err)
{
    const struct live_keys keys = {args->values[SERVER_KEY], args->values[KEYS]};
    struct top *top = calloc(1, sizeof(*top));
    if (!top)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    ndt_frame_init(&top->request);
    enum ndt_status status = parse(top, args, err);
    if (status == NDT_OK)
        status = live_open(&top->poses, ZMQ_SUB, top->poses_address, &keys, 0, err);
    if (status == NDT_OK)
        status = live_open(&top->control, ZMQ_DEALER, top->control_address, &keys, 0, err);
    if (status == NDT_OK)
        status = watch_all(top, err);
    live_close(&top->poses, 0);
    live_close(&top->control, 0);
    ndt_frame_free(&top->request);
    free(top);
    return status;
}

static const struct bag_command command = {
    .name = "ndt-top",
    .summary = "shows how a running ndtd is doing",
    .details =
        "\n"
        "Rate, queue, drops, outcomes, latency from arrival to publication (median, quantiles, histogram over\n"
        "the last 1000 results), scores and the last result; below what the daemon says of itself, where its\n"
        "control socket answers. Rewritten every second until interrupted; in a pipe one report.\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
