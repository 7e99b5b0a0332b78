/** @file
 * @brief ndt-ctl: every request of the control socket as a sub-command. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "ndt/names.h"
#include "status_view.h"

static const double RAD_PER_DEG = 0.017453292519943295;

static uint64_t timings = 10;
static int all;

/* ---- requests without more to them ---- */

static enum ndt_status ask(enum ndt_operation op, struct ndt_error *err)
{
    return ctl_request(&(struct ndt_request_message){.op = op}, err);
}

static enum ndt_status hello(struct ndt_error *err)
{
    return ask(NDT_OP_HELLO, err);
}

static enum ndt_status status(struct ndt_error *err)
{
    struct control_client *client;
    struct reply_view *view;
    size_t size;
    const struct ndt_request_message request = {.op = NDT_OP_STATUS};
    if (all || ctl.json)
        return ctl_request(&request, err);
    enum ndt_status answer = ctl_open(&client, err);
    if (answer == NDT_OK)
        answer = control_ask(client, &request, err);
    if (answer == NDT_OK) {
        const uint8_t *data = control_reply(client, &size);
        answer = reply_view_read(&view, data, size, err);
        if (answer == NDT_OK)
            status_view_print(view);
        reply_view_free(view);
    }
    control_close(client);
    return answer;
}

static enum ndt_status start(struct ndt_error *err)
{
    return ask(NDT_OP_START, err);
}

static enum ndt_status stop(struct ndt_error *err)
{
    return ask(NDT_OP_STOP, err);
}

static enum ndt_status reload(struct ndt_error *err)
{
    return ask(NDT_OP_RELOAD, err);
}

static enum ndt_status search(struct ndt_error *err)
{
    return ask(NDT_OP_SEARCH, err);
}

static enum ndt_status cancel(struct ndt_error *err)
{
    return ask(NDT_OP_CANCEL_SEARCH, err);
}

static enum ndt_status shut_down(struct ndt_error *err)
{
    return ask(NDT_OP_SHUTDOWN, err);
}

static enum ndt_status show_timings(struct ndt_error *err)
{
    return ctl_request(&(struct ndt_request_message){.op = NDT_OP_TIMINGS, .count = (uint32_t)timings}, err);
}

static enum ndt_status pose(struct ndt_error *err)
{
    struct ndt_request_message request = {.op = NDT_OP_INITIAL_POSE, .pose = {.has_pose = 1}};
    const enum ndt_status parsed = tool_parse_pose(ctl.operands.words[0], &request.pose.pose, err);
    return parsed == NDT_OK ? ctl_request(&request, err) : parsed;
}

static void print_moment(const struct ndt_moment_message *moment)
{
    const double *t = moment->T_map_base.t_m, *P = moment->covariance;
    printf(
        "%s, %s: x %.3f y %.3f z %.3f m yaw %.2f deg, one sigma x %.3f y %.3f z %.3f m yaw %.2f deg; stamp %" PRId64
        " ns, %.0f ms after a scan\n",
        ndt_pose_kind_name(moment->kind), ndt_state_name(moment->state), t[0], t[1], t[2],
        ndt_pose_heading_rad(&moment->T_map_base) / RAD_PER_DEG, sqrt(P[0]), sqrt(P[7]), sqrt(P[14]),
        sqrt(P[35]) / RAD_PER_DEG, moment->stamp_ns, (double)(moment->stamp_ns - moment->scan_ns) * 1e-6);
}

static enum ndt_status pose_at(struct ndt_error *err)
{
    struct ndt_request_message request = {.op = NDT_OP_POSE_AT};
    const char *stamp = ctl.operands.words[0];
    char *end;
    errno = 0;
    request.pose.stamp_ns = strtoll(stamp, &end, 10);
    if (strcmp(stamp, "now") != 0 && (end == stamp || *end || errno || request.pose.stamp_ns == 0))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "STAMP '%.40s' is neither a stamp in nanoseconds nor 'now'", stamp);
    struct control_client *client;
    enum ndt_status status = ctl_open(&client, err);
    if (status == NDT_OK)
        status = control_ask(client, &request, err);
    if (status == NDT_OK && ctl.json)
        status = control_print_json(client, stdout, err);
    else if (status == NDT_OK && control_message(client)->has_moment)
        print_moment(&control_message(client)->moment);
    control_close(client);
    return status;
}

static enum ndt_status record(struct ndt_error *err)
{
    struct ndt_request_message request = {.op = NDT_OP_START_RECORDING};
    const char *file = ctl.operands.words[0];
    if (strcmp(file, "stop") == 0)
        request.op = NDT_OP_STOP_RECORDING;
    else if (strlen(file) >= sizeof(request.path))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the name has more than %zu bytes", sizeof(request.path) - 1);
    else
        memcpy(request.path, file, strlen(file) + 1);
    return ctl_request(&request, err);
}

/* ---- the commands ---- */

static const struct tool_option common[] = {CTL_OPTIONS};
static const struct tool_option timings_options[] = {
    {"count", "N", TOOL_COUNT, &timings, 1, 1000, .help = "the last N scans"}, CTL_OPTIONS};

static const struct tool_option status_options[] = {
    {"all", NULL, TOOL_FLAG, &all, .help = "print every value of the reply"}, CTL_OPTIONS};
static const struct tool_command status_command = {
    .name = "status",
    .summary = "prints the state of the daemon: map, pose, queue, what went wrong",
    .details =
        "Lines appear where there is something to say: search, recording, attention (counters that should be "
        "0), restart (options that wait for one). proto/SCHEMA.md explains all values.",
    TOOL_OPTIONS(status_options),
    .run = status};
static const struct tool_command hello_command = {
    .name = "hello", .summary = "prints version, operations and endpoints", TOOL_OPTIONS(common), .run = hello};
static const struct tool_command pose_command = {
    .name = "pose",
    .summary = "gives the daemon the pose of the base in the map, at the next scan",
    .details = "POSE is x,y,z,yaw (m, and degrees about the z axis of the map) or x,y,z,qx,qy,qz,qw. At most about "
               "3 m and 20 degrees off; otherwise the daemon searches around it. See localize for a pose that is "
               "not known.",
    TOOL_OPERANDS("POSE", 1, 1, &ctl.operands),
    .takes_numbers = 1,
    TOOL_OPTIONS(common),
    .run = pose};
static const struct tool_command pose_at_command = {
    .name = "pose-at",
    .summary = "prints the pose at any time: smoothed in the past, now, predicted ahead",
    .details =
        "STAMP is in nanoseconds, of the clock of the scans, or 'now': the newest stamp of all scans, odometry "
        "and IMU that have come. The last seconds are kept; how far ahead: output.max_ahead_s.",
    TOOL_OPERANDS("STAMP", 1, 1, &ctl.operands),
    .takes_numbers = 1,
    TOOL_OPTIONS(common),
    .run = pose_at};
static const struct tool_command record_command = {
    .name = "record",
    .summary = "records what the daemon receives into FILE; FILE 'stop' ends the recording",
    .details =
        "FILE is a plain name in the recording directory of the daemon (recording.directory). 'stop' returns "
        "when the recording is complete and on the disk.",
    TOOL_OPERANDS("FILE", 1, 1, &ctl.operands),
    TOOL_OPTIONS(common),
    .run = record};
static const struct tool_command start_command = {
    .name = "start", .summary = "resumes the localisation", TOOL_OPTIONS(common), .run = start};
static const struct tool_command stop_command = {
    .name = "stop",
    .summary = "pauses the localisation: scans are answered as rejected until start",
    TOOL_OPTIONS(common),
    .run = stop};
static const struct tool_command reload_command = {.name = "reload",
                                                   .summary = "has the daemon read its configuration again",
                                                   .details =
                                                       "Prints the options that need a restart (needs_restart).",
                                                   TOOL_OPTIONS(common),
                                                   .run = reload};
static const struct tool_command search_command = {.name = "search",
                                                   .summary =
                                                       "prints progress or result of the last search for the pose",
                                                   TOOL_OPTIONS(common),
                                                   .run = search};
static const struct tool_command cancel_command = {
    .name = "cancel", .summary = "ends the search for the pose", TOOL_OPTIONS(common), .run = cancel};
static const struct tool_command timings_command = {.name = "timings",
                                                    .summary = "prints the times of the last scans",
                                                    TOOL_OPTIONS(timings_options),
                                                    .run = show_timings};
static const struct tool_command shutdown_command = {.name = "shutdown",
                                                     .summary =
                                                         "has the daemon answer the scans that wait, and exit",
                                                     TOOL_OPTIONS(common),
                                                     .run = shut_down};

static const struct tool_command *const commands[] = {&status_command,
                                                      &ctl_health_command,
                                                      &pose_command,
                                                      &pose_at_command,
                                                      &ctl_localize_command,
                                                      &search_command,
                                                      &cancel_command,
                                                      &ctl_map_command,
                                                      &ctl_tile_command,
                                                      &record_command,
                                                      &start_command,
                                                      &stop_command,
                                                      &reload_command,
                                                      &timings_command,
                                                      &hello_command,
                                                      &shutdown_command,
                                                      NULL};
static const struct tool_command program = {
    .name = "ndt-ctl",
    .summary = "controls a running ndtd",
    .details = "Sends one request to the control socket of the daemon and prints the reply. Exit status 3 and one "
               "line when there is no answer or the daemon refuses; health and localize end with 1 when the answer "
               "is no.",
    .commands = commands,
};

int main(int argc, char **argv)
{
    const int code = tool_main(&program, argc, argv);
    return code == TOOL_DONE && ctl.is_no ? CTL_NO : code;
}
