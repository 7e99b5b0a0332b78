/** @file
 * @brief ndt-echo: prints the results of a running daemon. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "echo_localize.h"
#include "live_connection.h"
#include "ndt_io/trajectory.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "result_print.h"
#include "tool_options.h"

static const double DEG = 0.017453292519943295;

enum echo_format { TEXT, JSON, TUM };
static const char *const format_names[] = {[TEXT] = "text", [JSON] = "json", [TUM] = "tum", NULL};

static struct {
    const char *endpoint;
    int format;
    uint64_t count;
    int64_t timeout_ns; /* 0: none */
    struct live_keys keys;
    /* --localize */
    int localize, has_pose, search_only;
    const char *control;
    struct ndt_pose pose;
    struct tool_reals position, deviation;
    double heading_deg, heading_deviation_deg; /* NAN: not given */
} args = {.endpoint = "", .count = UINT64_MAX, .control = "", .heading_deg = NAN, .heading_deviation_deg = NAN};

struct echo {
    struct live_connection connection;
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

/* The next result; NDT_END when interrupted. */
static enum ndt_status next(struct echo *echo, zmq_msg_t *frame, struct ndt_result_message *message,
                            struct ndt_error *err)
{
    while (zmq_msg_recv(frame, echo->connection.socket, 0) < 0) {
        if (tool_interrupted())
            return NDT_END;
        if (errno == EAGAIN)
            return ndt_fail(err, NDT_ERR_IO, "%s: no result within %.3g s", echo->endpoint,
                            (double)args.timeout_ns * 1e-9);
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
    uint64_t left = args.count;
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (left > 0 && !ferror(stdout) && !tool_interrupted() &&
           (status = next(echo, &frame, &message, err)) == NDT_OK)
        left -= (uint64_t)print(&message);
    zmq_msg_close(&frame);
    return status == NDT_END ? NDT_OK : status;
}

static enum ndt_status set_triple(const struct tool_reals *reals, const char *option, double out[3], int *given,
                                  struct ndt_error *err)
{
    *given = reals->count > 0;
    if (reals->count != 0 && reals->count != 3)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: %zu numbers, but x,y,z are three", option, reals->count);
    memcpy(out, reals->values, *given ? 3 * sizeof(*out) : 0);
    return NDT_OK;
}

static enum ndt_status localize(struct ndt_error *err)
{
    struct echo_localize ask = {.control = args.control, .timeout_ns = args.timeout_ns, .keys = &args.keys};
    struct ndt_localize_hint *hint = &ask.request.hint;
    ask.request.pose.has_pose = args.has_pose;
    ask.request.pose.pose = args.pose;
    hint->apply = !args.search_only;
    hint->has_heading = !isnan(args.heading_deg);
    hint->has_heading_deviation = !isnan(args.heading_deviation_deg);
    hint->heading_rad = args.heading_deg * DEG;
    hint->heading_deviation_rad = args.heading_deviation_deg * DEG;
    enum ndt_status status = set_triple(&args.position, "position", hint->position_m, &hint->has_position, err);
    if (status == NDT_OK)
        status = set_triple(&args.deviation, "deviation", hint->deviation_m, &hint->has_deviation, err);
    return status == NDT_OK ? echo_localize(&ask, err) : status;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct echo echo = {0};
    if (args.localize)
        return localize(err);
    const int wait_ms = args.timeout_ns ? (int)(args.timeout_ns / 1000000 + 1) : -1;
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
    {"localize", NULL, TOOL_FLAG, &args.localize,
     .help = "ask the daemon to find its pose from the next scan, print the answer (JSON) and exit"},
    {"control", "ADDRESS", TOOL_TEXT, &args.control,
     .help = "with --localize: the control socket (default: control.ipc in the runtime directory)"},
    {"pose", "POSE", TOOL_POSE, &args.pose, .given = &args.has_pose,
     .help = "with --localize: search around this pose, x,y,z,qx,qy,qz,qw"},
    {"position", "X,Y,Z", TOOL_REALS, &args.position,
     .help = "with --localize: search around this GNSS position [m]"},
    {"deviation", "X,Y,Z", TOOL_REALS, &args.deviation, .help = "its standard deviations [m]"},
    {"heading", "DEG", TOOL_REAL, &args.heading_deg, -360, 360, .help = "with --localize: heading in the map"},
    {"heading-deviation", "DEG", TOOL_REAL, &args.heading_deviation_deg, 1e-3, 180,
     .help = "its standard deviation"},
    {"search-only", NULL, TOOL_FLAG, &args.search_only,
     .help = "with --localize: do not use the pose that is found"},
    LIVE_KEY_OPTIONS(args.keys),
};

static const struct tool_command command = {
    .name = "ndt-echo",
    .summary = "prints the results of a running ndtd",
    .details = "The first line is the last result before the start, if there was one. json has the keys of "
               "proto/SCHEMA.md; numbers that are not finite are null. The time at the end of a line of text is "
               "that from arrival to publication. Waits for the daemon when it does not run yet.\n\n"
               "With --localize: exit status 3 and one line when the pose is not accepted or there is no answer.",
    TOOL_OPTIONS(options),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
