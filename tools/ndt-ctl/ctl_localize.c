/** @file
 * @brief ndt-ctl localize: has the daemon search for its pose, and waits for the outcome. */
#include "ctl.h"

#include <math.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndtd/progress_line.h"

static const double RAD_PER_DEG = 0.017453292519943295;
static const int64_t REPLY_NS = 5000000000;

static struct {
    struct tool_reals position, deviation;
    double heading_deg, heading_deviation_deg; /* NAN: not given */
    int search_only, no_wait;
    int64_t timeout_ns;
} args = {.heading_deg = NAN, .heading_deviation_deg = NAN, .timeout_ns = 60000000000};

static enum ndt_status set_triple(const struct tool_reals *reals, const char *option, double out[3], int *given,
                                  struct ndt_error *err)
{
    *given = reals->count > 0;
    if (reals->count != 0 && reals->count != 3)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: %zu numbers, but x,y,z are three", option, reals->count);
    memcpy(out, reals->values, *given ? 3 * sizeof(*out) : 0);
    return NDT_OK;
}

static enum ndt_status fill(struct ndt_request_message *request, struct ndt_error *err)
{
    struct ndt_localize_hint *hint = &request->hint;
    enum ndt_status status = NDT_OK;
    request->op = NDT_OP_LOCALIZE;
    request->pose.has_pose = ctl.operands.count > 0;
    hint->apply = !args.search_only;
    hint->has_heading = !isnan(args.heading_deg);
    hint->has_heading_deviation = !isnan(args.heading_deviation_deg);
    hint->heading_rad = args.heading_deg * RAD_PER_DEG;
    hint->heading_deviation_rad = args.heading_deviation_deg * RAD_PER_DEG;
    if (request->pose.has_pose)
        status = tool_parse_pose(ctl.operands.words[0], &request->pose.pose, err);
    if (status == NDT_OK)
        status = set_triple(&args.position, "position", hint->position_m, &hint->has_position, err);
    if (status == NDT_OK)
        status = set_triple(&args.deviation, "deviation", hint->deviation_m, &hint->has_deviation, err);
    return status;
}

/* Cancels the search, which serves nothing without a client that waits. */
static enum ndt_status give_up(struct control_client *client, const char *why, struct ndt_error *err)
{
    const struct ndt_request_message request = {.op = NDT_OP_CANCEL_SEARCH};
    const enum ndt_status status = control_ask(client, &request, err);
    return status == NDT_OK ? ndt_fail(err, NDT_ERR_IO, "%s: the search is cancelled", why) : status;
}

static enum ndt_status wait_for_outcome(struct control_client *client, struct ndt_error *err)
{
    const struct ndt_request_message request = {.op = NDT_OP_SEARCH};
    const struct ndt_localize_report *report = &control_message(client)->search;
    const double end_us = ndt_clock_us() + (double)args.timeout_ns * 1e-3;
    const uint64_t search_id = report->search_id;
    struct ndtd_progress_line line;
    enum ndt_status status = NDT_OK;
    ndtd_progress_line_begin(&line, "searching", "%");
    while (status == NDT_OK && report->running) {
        const int is_late = ndt_clock_us() > end_us;
        if (is_late || tool_interrupted()) {
            char late[80];
            snprintf(late, sizeof(late), "no result within %.3g s; a search begins with the next scan",
                     (double)args.timeout_ns * 1e-9);
            status = give_up(client, is_late ? late : "interrupted", err);
            break;
        }
        ctl_nap();
        status = control_ask(client, &request, err);
        if (tool_interrupted())
            status = NDT_OK; /* a reply that was not waited for; the search is cancelled next */
        ndtd_progress_line_show(&line, report->percent, 100);
    }
    ndtd_progress_line_end(&line);
    if (status == NDT_OK && report->search_id != search_id)
        return ndt_fail(err, NDT_ERR_IO, "another search has begun, the result of this one is not known");
    return status;
}

static void print_pose(const char *label, const struct ndt_localize_pose *found)
{
    const double *t = found->T_map_base.t_m;
    printf("%-9s x %.3f y %.3f z %.3f m yaw %.2f deg  confidence %.4f\n", label, t[0], t[1], t[2],
           ndt_pose_heading_rad(&found->T_map_base) / RAD_PER_DEG, found->confidence);
}

static enum ndt_status print(struct control_client *client, struct ndt_error *err)
{
    const struct ndt_localize_report *report = &control_message(client)->search;
    enum ndt_status status = NDT_OK;
    if (ctl.json)
        status = control_print_json(client, stdout, err);
    else if (report->has_pose)
        print_pose(report->applied ? "applied" : report->accepted ? "accepted" : "best", &report->best);
    for (size_t i = 0; !ctl.json && i < report->alternative_count; i++)
        print_pose("other", &report->alternatives[i]);
    if (report->has_result && !report->accepted)
        ctl_say_no("the pose is not accepted: %.200s", report->reason);
    return status;
}

static enum ndt_status localize(struct ndt_error *err)
{
    struct ndt_request_message request = {0};
    struct control_client *client = NULL;
    enum ndt_status status = fill(&request, err);
    ctl.timeout_ns = args.timeout_ns < REPLY_NS ? args.timeout_ns : REPLY_NS; /* limit of each reply */
    if (status == NDT_OK)
        status = ctl_open(&client, err);
    if (status == NDT_OK)
        status = control_ask(client, &request, err);
    if (status == NDT_OK && !control_message(client)->has_search)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: a reply without a search", control_address(client));
    if (status == NDT_OK && !args.no_wait)
        status = wait_for_outcome(client, err);
    if (status == NDT_OK)
        status = print(client, err);
    control_close(client);
    return status;
}

static const struct tool_option options[] = {
    {"position", "X,Y,Z", TOOL_REALS, &args.position, .help = "search around this GNSS position [m]"},
    {"deviation", "X,Y,Z", TOOL_REALS, &args.deviation, .help = "its standard deviations [m]"},
    {"heading", "DEG", TOOL_REAL, &args.heading_deg, -360, 360, .help = "heading of the base in the map"},
    {"heading-deviation", "DEG", TOOL_REAL, &args.heading_deviation_deg, 1e-3, 180,
     .help = "its standard deviation"},
    {"search-only", NULL, TOOL_FLAG, &args.search_only, .help = "do not use the pose that is found"},
    {"no-wait", NULL, TOOL_FLAG, &args.no_wait,
     .help = "begin the search and exit; 'ndt-ctl search' tells the rest"},
    {"json", NULL, TOOL_FLAG, &ctl.json, .help = "print the reply as it is, as one JSON object"},
    {"timeout", "S", TOOL_SECONDS, &args.timeout_ns, 1e-3, 2e6,
     .help = "wait S seconds for the outcome, then cancel the search"},
    LIVE_CONTROL_OPTION(ctl.control),
    LIVE_KEY_OPTIONS(ctl.keys),
};

const struct tool_command ctl_localize_command = {
    .name = "localize",
    .summary = "has the daemon find its pose, from the next scans",
    .details =
        "Searches around POSE, which is x,y,z,yaw (m, degrees) or x,y,z,qx,qy,qz,qw, around a GNSS position, "
        "for a heading, or in the whole loaded map. Prints the pose and the other places that fit, with "
        "their probabilities. Exit status 1 and one line when no pose is accepted.",
    TOOL_OPERANDS("POSE", 0, 1, &ctl.operands),
    .takes_numbers = 1,
    TOOL_OPTIONS(options),
    .run = localize};
