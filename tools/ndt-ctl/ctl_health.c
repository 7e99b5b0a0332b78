/** @file
 * @brief ndt-ctl health: one line and an exit code for supervisors. */
#include "ctl.h"

#include <string.h>

#include "ndt/clock.h"
#include "reply_view.h"

enum expected_state { ALIVE, MAP, POSE };
static const char *const expectations[] = {[ALIVE] = "alive", [MAP] = "map", [POSE] = "pose", NULL};

static int expected = POSE;
static int64_t scans_within_ns; /* 0: not checked */

static enum ndt_status ask_status(struct control_client *client, struct reply_view **view, struct ndt_error *err)
{
    size_t size;
    const struct ndt_request_message request = {.op = NDT_OP_STATUS};
    reply_view_free(*view);
    *view = NULL;
    const enum ndt_status status = control_ask(client, &request, err);
    if (status != NDT_OK)
        return status;
    const uint8_t *data = control_reply(client, &size);
    return reply_view_read(view, data, size, err);
}

/* The state may have been `tracking` when the sensor fell silent: asks until a scan arrives. */
static enum ndt_status wait_for_scan(struct control_client *client, struct reply_view **view, struct ndt_error *err)
{
    const double end_us = ndt_clock_us() + (double)scans_within_ns * 1e-3;
    const double before = reply_view_number(*view, "receiver.scans");
    enum ndt_status status = NDT_OK;
    while (status == NDT_OK && reply_view_number(*view, "receiver.scans") <= before) {
        if (ndt_clock_us() > end_us || tool_interrupted()) {
            ctl_say_no("no scan arrived within %.3g s", (double)scans_within_ns * 1e-9);
            break;
        }
        ctl_nap();
        status = ask_status(client, view, err);
    }
    return status;
}

static void check(const struct reply_view *view)
{
    char state[64], pose[64], reason[200];
    reply_view_text(view, "state", state, sizeof(state));
    reply_view_text(view, "localisation.state", pose, sizeof(pose));
    reply_view_text(view, "localisation.reason", reason, sizeof(reason));
    if (expected >= MAP && (strcmp(state, "loading") == 0 || strcmp(state, "no_map") == 0))
        ctl_say_no("the daemon has no map: its state is %s", state);
    else if (expected >= POSE && strcmp(state, "localising") != 0)
        ctl_say_no("the daemon does not localise: its state is %s%s", state,
                   strcmp(state, "no_guess") == 0
                       ? ", no pose is known: scans find it, or ndt-ctl pose x,y,z,yaw gives it"
                       : "");
    else if (expected >= POSE && !ndt_state_name_is_trusted(pose))
        ctl_say_no("the pose is not trusted: it is %s%s%s", pose, *reason ? ": " : "", reason);
    else if (!ctl.json)
        printf("%s, %s; %.0f scans, latency p99 %.1f ms\n", state, pose, reply_view_number(view, "scans"),
               reply_view_number(view, "latency_ms.p99"));
}

static enum ndt_status health(struct ndt_error *err)
{
    struct control_client *client;
    struct reply_view *view = NULL;
    enum ndt_status status = ctl_open(&client, err);
    if (status == NDT_OK)
        status = ask_status(client, &view, err);
    if (status == NDT_OK && scans_within_ns > 0)
        status = wait_for_scan(client, &view, err);
    if (status == NDT_OK && !ctl.is_no)
        check(view);
    if (status == NDT_OK && ctl.json)
        status = control_print_json(client, stdout, err);
    reply_view_free(view);
    control_close(client);
    return status;
}

static const struct tool_option options[] = {
    {"expect", "WHAT", TOOL_CHOICE, &expected, .choices = expectations,
     .help = "alive: the daemon answers; map: it has a map; pose: it localises, and the pose is trusted (tracking, "
             "coasting or extending)"},
    {"scans-within", "S", TOOL_SECONDS, &scans_within_ns, 0, 3600,
     .help = "a scan has to arrive within S seconds, too; 0: none needs to"},
    CTL_OPTIONS,
};

const struct tool_command ctl_health_command = {
    .name = "health",
    .summary = "tells by its exit status whether the daemon is well",
    .details = "Exit status 0: as expected; 1: it answers and is not, one line on standard error says why; 3: no "
               "answer.",
    TOOL_OPTIONS(options),
    .run = health};
