/* ndt-echo: prints the results of a running daemon. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "live_connection.h"
#include "ndt_io/trajectory.h"
#include "ndtd/nearest_name.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "result_print.h"
#include "tool_main.h"

enum echo_option { ENDPOINT, FORMAT, COUNT, TIMEOUT, SERVER_KEY, KEYS };

static const struct bag_option options[] = {
    [ENDPOINT] = {"endpoint", "ADDRESS", "the poses socket (poses.ipc in the runtime directory)", 0},
    [FORMAT] = {"format", "NAME", "text, json (a line each) or tum (results with a pose only) (text)", 0},
    [COUNT] = {"count", "N", "stop after N lines", 0},
    [TIMEOUT] = {"timeout", "S", "give up when no result comes for S seconds", 0},
    [SERVER_KEY] = LIVE_SERVER_KEY_OPTION,
    [KEYS] = LIVE_KEYS_OPTION,
};

enum echo_format { TEXT, JSON, TUM };
static const char *const format_names[] = {[TEXT] = "text", [JSON] = "json", [TUM] = "tum"};

struct echo {
    struct live_connection connection;
    char endpoint[NDTD_ENDPOINT_MAX];
    enum echo_format format;
    uint64_t count;
    int64_t timeout_ns; /* 0: none */
};

static enum ndt_status parse_format(const char *text, enum echo_format *format, struct ndt_error *err)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(text);
    char hint[128];
    for (size_t i = 0; i < sizeof(format_names) / sizeof(format_names[0]); i++) {
        ndtd_nearest_offer(&nearest, format_names[i]);
        if (strcmp(text, format_names[i]) == 0) {
            *format = (enum echo_format)i;
            return NDT_OK;
        }
    }
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "--format: '%s' is neither text, json nor tum%s", text, hint);
}

static enum ndt_status parse(struct echo *echo, const struct bag_args *args, struct ndt_error *err)
{
    const char *const *values = args->values;
    const char *address = values[ENDPOINT] ? values[ENDPOINT] : "";
    *echo = (struct echo){.count = UINT64_MAX};
    enum ndt_status status = NDT_OK;
    if (values[FORMAT])
        status = parse_format(values[FORMAT], &echo->format, err);
    if (status == NDT_OK && values[COUNT])
        status = bag_parse_count("count", values[COUNT], 1, UINT64_MAX, &echo->count, err);
    if (status == NDT_OK && values[TIMEOUT])
        status = bag_parse_seconds("timeout", values[TIMEOUT], &echo->timeout_ns, err);
    if (status == NDT_OK && echo->timeout_ns > INT64_C(2000000) * 1000000000)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--timeout: at most 2000000 seconds");
    if (status == NDT_OK)
        status = ndtd_default_address(echo->endpoint, sizeof(echo->endpoint), address, "poses", 0, err);
    return status;
}

/* Returns whether a line was written. */
static int print(const struct echo *echo, const struct ndt_result_message *message)
{
    if (echo->format == TUM && !result_has_pose(message))
        return 0;
    if (echo->format == TEXT)
        result_print_text(stdout, message);
    else if (echo->format == JSON)
        result_print_json(stdout, message);
    else
        ndt_trajectory_write_pose(stdout, NDT_TUM, message->stamp_ns, &message->result.T_map_sensor);
    fflush(stdout); /* whoever reads a pipe wants it now */
    return 1;
}

/* The next result; NDT_END when interrupted. */
static enum ndt_status next(struct echo *echo, zmq_msg_t *frame, struct ndt_result_message *message,
                            struct ndt_error *err)
{
    while (zmq_msg_recv(frame, echo->connection.socket, 0) < 0) {
        if (tool_interrupted())
            return NDT_END;
        if (errno == EAGAIN)
            return ndt_fail(err, NDT_ERR_IO, "%s: no result within %.3g s", echo->endpoint,
                            (double)echo->timeout_ns * 1e-9);
        if (errno != EINTR)
            return ndt_fail(err, NDT_ERR_IO, "%s: %s", echo->endpoint, zmq_strerror(errno));
    }
    const enum ndt_status status = ndt_result_decode(zmq_msg_data(frame), zmq_msg_size(frame), message, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "%s", echo->endpoint);
}

static enum ndt_status print_all(struct echo *echo, struct ndt_error *err)
{
    struct ndt_result_message message = {0};
    enum ndt_status status = NDT_OK;
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (echo->count > 0 && !ferror(stdout) && !tool_interrupted() &&
           (status = next(echo, &frame, &message, err)) == NDT_OK)
        echo->count -= (uint64_t)print(echo, &message);
    zmq_msg_close(&frame);
    return status == NDT_END ? NDT_OK : status;
}

static enum ndt_status run(const struct bag_args *args, struct ndt_error *err)
{
    struct echo echo;
    const struct live_keys keys = {args->values[SERVER_KEY], args->values[KEYS]};
    enum ndt_status status = parse(&echo, args, err);
    if (status != NDT_OK)
        return status;
    const int wait_ms = echo.timeout_ns ? (int)(echo.timeout_ns / 1000000 + 1) : -1;
    status = live_open(&echo.connection, ZMQ_SUB, echo.endpoint, &keys, wait_ms, err);
    if (status == NDT_OK)
        status = print_all(&echo, err);
    live_close(&echo.connection, 0);
    return status;
}

static const struct bag_command command = {
    .name = "ndt-echo",
    .summary = "prints the results of a running ndtd",
    .details =
        "\n"
        "The first line is the last result before the start, if there was one. json has the keys of\n"
        "proto/SCHEMA.md, numbers that do not exist are null. The time at the end of a line of text is that\n"
        "from arrival to publication. Waits for the daemon if it does not run yet.\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
