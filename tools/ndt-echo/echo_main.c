/** @file
 * @brief ndt-echo: prints the results of a running daemon. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "live_connection.h"
#include "ndt_io/trajectory.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "result_print.h"
#include "tool_options.h"

enum echo_format { TEXT, JSON, TUM };
static const char *const format_names[] = {[TEXT] = "text", [JSON] = "json", [TUM] = "tum", NULL};

static struct {
    const char *endpoint;
    int format;
    uint64_t count;
    int64_t timeout_ns; /* 0: none */
    struct live_keys keys;
} args = {.endpoint = "", .count = UINT64_MAX};

/* How long nothing is said while no result comes. */
enum { SILENT_MS = 3000 };

struct echo {
    struct live_connection connection;
    int has_told; /* that no result comes */
    char endpoint[NDTD_ENDPOINT_MAX];
};

static void print_json(const struct ndt_result_message *message)
{
    putchar('{');
    result_print_json(stdout, message);
    puts("}");
}

/* Returns whether a line was written. */
static int print(const struct ndt_result_message *message)
{
    if (args.format == TUM && !result_has_pose(message))
        return 0;
    if (args.format == TEXT)
        result_print_text(stdout, message);
    else if (args.format == JSON)
        print_json(message);
    else
        ndt_trajectory_write_pose(stdout, NDT_TUM, message->stamp_ns, &message->result.T_map_sensor);
    fflush(stdout); /* flushes each line for readers of a pipe */
    return 1;
}

/* Says once that no result has come, and waits on, for ever. */
static void tell_wait(struct echo *echo)
{
    fprintf(stderr,
            "ndt-echo: no result from %s so far; waiting. Does ndtd run, and do scans come? ndt-ctl status\n",
            echo->endpoint);
    zmq_setsockopt(echo->connection.socket, ZMQ_RCVTIMEO, &(int){-1}, sizeof(int));
    echo->has_told = 1;
}

/* The next result; NDT_END when interrupted. */
static enum ndt_status next(struct echo *echo, zmq_msg_t *frame, struct ndt_result_message *message,
                            struct ndt_error *err)
{
    while (zmq_msg_recv(frame, echo->connection.socket, 0) < 0) {
        if (tool_interrupted())
            return NDT_END;
        if (errno == EAGAIN && args.timeout_ns == 0) {
            tell_wait(echo);
            continue;
        }
        if (errno == EAGAIN)
            return ndt_fail(err, NDT_ERR_IO, "%s: no result within %.3g s", echo->endpoint,
                            (double)args.timeout_ns * 1e-9);
        if (errno != EINTR)
            return ndt_fail(err, NDT_ERR_IO, "%s: %s", echo->endpoint, zmq_strerror(errno));
    }
    if (!echo->has_told && args.timeout_ns == 0) /* results come: later pauses are those of the sender */
        zmq_setsockopt(echo->connection.socket, ZMQ_RCVTIMEO, &(int){-1}, sizeof(int));
    echo->has_told = 1;
    const enum ndt_status status = ndt_result_decode(zmq_msg_data(frame), zmq_msg_size(frame), message, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "%s", echo->endpoint);
}

static enum ndt_status print_all(struct echo *echo, struct ndt_error *err)
{
    struct ndt_result_message message = {0};
    enum ndt_status status = NDT_OK;
    uint64_t left = args.count;
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (left > 0 && !ferror(stdout) && !tool_interrupted() &&
           (status = next(echo, &frame, &message, err)) == NDT_OK)
        left -= (uint64_t)print(&message);
    zmq_msg_close(&frame);
    return status == NDT_END ? NDT_OK : status;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct echo echo = {0};
    const int wait_ms = args.timeout_ns ? (int)(args.timeout_ns / 1000000 + 1) : SILENT_MS;
    enum ndt_status status =
        ndtd_default_address(echo.endpoint, sizeof(echo.endpoint), args.endpoint, "poses", 0, err);
    if (status == NDT_OK)
        status = live_open(&echo.connection, ZMQ_SUB, echo.endpoint, &args.keys, wait_ms, err);
    if (status == NDT_OK)
        status = print_all(&echo, err);
    live_close(&echo.connection, 0);
    return status;
}

static const struct tool_option options[] = {
    {"endpoint", "ADDRESS", TOOL_TEXT, &args.endpoint,
     .help = "the poses socket (default: poses.ipc in the runtime directory)"},
    {"format", "NAME", TOOL_CHOICE, &args.format, .choices = format_names,
     .help = "text, json (one object per line) or tum (only results with a pose)"},
    {"count", "N", TOOL_COUNT, &args.count, 1, INFINITY, .help = "stop after N lines"},
    {"timeout", "S", TOOL_SECONDS, &args.timeout_ns, 0, 2e6,
     .help = "fail when no result comes for S seconds; 0 waits forever"},
    LIVE_KEY_OPTIONS(args.keys),
};

static const struct tool_command command = {
    .name = "ndt-echo",
    .summary = "prints the results of a running ndtd",
    .details = "The first line is the last result before the start, if there was one. json has the keys of "
               "proto/SCHEMA.md; numbers that are not finite are null. The time at the end of a line of text is "
               "that from arrival to publication. Waits for the daemon when it does not run yet.",
    TOOL_OPTIONS(options),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
