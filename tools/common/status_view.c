#include "status_view.h"

#include <math.h>
#include <string.h>

#include "ndt/align.h"
#include "ndt/names.h"
#include "ndt/pose.h"

static const double DEG_PER_RAD = 57.29577951308232;

/* Counters of what went wrong: shown where they are not 0. */
static const char *const troubles[] = {"frames_refused",       "send_failures",      "scans_thinned",
                                       "odometry_restarts",    "results_not_finite", "poses_far",
                                       "estimates_not_finite", "log_lines_lost",     "scans_slow",
                                       "connections_refused",  "receiver.bad",       "receiver.record_failures",
                                       "recorder.dropped",     "recorder.missing",   "publisher.lost",
                                       "points.lost",          "motion.lost",        "queue.dropped",
                                       "queue.messages_lost",  "fits_elsewhere",     NULL};

static void label(const char *name)
{
    printf("%-11s ", name);
}

/* Text of the reply behind `before`, where there is any. */
static void say(const struct reply_view *view, const char *path, const char *before)
{
    char text[300];
    if (*reply_view_text(view, path, text, sizeof(text)))
        printf("%s%s", before, text);
}

static double number(const struct reply_view *view, const char *path)
{
    return reply_view_number(view, path);
}

static void print_daemon(const struct reply_view *view)
{
    const double up_s = number(view, "uptime_s");
    label("ndtd");
    say(view, "version", "");
    if (up_s < 120)
        printf(", up for %.0f s", up_s);
    else
        printf(", up for %.0f h %02.0f min", floor(up_s / 3600), floor(fmod(up_s, 3600) / 60));
    printf(", %.0f MB, %.1f s of CPU\n", number(view, "process.resident_bytes") * 1e-6,
           number(view, "process.cpu_s"));
    label("backend");
    say(view, "backend", "");
    if (reply_view_has(view, "route.meets_budget") && number(view, "route.meets_budget") == 0)
        printf("; too slow for the budget of %g ms as measured", number(view, "route.budget_ms"));
    putchar('\n');
}

static void print_map(const struct reply_view *view)
{
    char path[300];
    label("map");
    if (!*reply_view_text(view, "map.path", path, sizeof(path)))
        fputs("none", stdout);
    else
        printf("%s, %.0f points, %.0f of %.0f tiles", path, number(view, "map.points"),
               number(view, "map.tiles_loaded"), number(view, "map.tiles_known"));
    if (number(view, "map.busy") != 0)
        fputs("; loading", stdout);
    say(view, "map.error", "; failed: ");
    putchar('\n');
}

static void print_state(const struct reply_view *view)
{
    label("state");
    say(view, "state", "");
    say(view, "localisation.state", "; ");
    say(view, "localisation.reason", ": ");
    putchar('\n');
    if (number(view, "search.running") != 0)
        printf("%-11s %.0f %% done, %.1f s\n", "search", number(view, "search.percent"),
               number(view, "search.elapsed_ms") * 1e-3);
}

static void print_pose(const struct reply_view *view)
{
    double row[7];
    struct ndt_pose pose;
    if (!reply_view_reals(view, "pose", row, 7))
        return;
    memcpy(pose.t_m, row, sizeof(pose.t_m));
    memcpy(pose.q_xyzw, row + 3, sizeof(pose.q_xyzw));
    printf("%-11s x %.3f  y %.3f  z %.3f m  yaw %.2f deg\n", "pose", row[0], row[1], row[2],
           ndt_pose_heading_rad(&pose) * DEG_PER_RAD);
}

static void print_scans(const struct reply_view *view)
{
    char path[64];
    label("scans");
    printf("%.0f", number(view, "scans"));
    for (int i = 0; i < NDT_OUTCOME_COUNT; i++) {
        const char *name = ndt_outcome_name((enum ndt_outcome)i);
        snprintf(path, sizeof(path), "outcomes.%s", name);
        if (number(view, path) > 0)
            printf("  %s %.0f", name, number(view, path));
    }
    putchar('\n');
    if (number(view, "latency_ms.scans") > 0)
        printf("%-11s median %.1f  p90 %.1f  p99 %.1f  most %.1f ms, of a budget of %g ms\n", "latency",
               number(view, "latency_ms.p50"), number(view, "latency_ms.p90"), number(view, "latency_ms.p99"),
               number(view, "latency_ms.max"), number(view, "latency_ms.budget"));
    printf("%-11s %.0f frames, %.1f MB\n", "received", number(view, "receiver.frames"),
           number(view, "receiver.bytes") * 1e-6);
    printf("%-11s %.0f of %.0f scans wait; subscribers of poses %.0f, points %.0f, motion %.0f\n", "queue",
           number(view, "queue.waiting"), number(view, "queue.depth"), number(view, "publisher.subscribers"),
           number(view, "points.subscribers"), number(view, "motion.subscribers"));
}

static void print_recording(const struct reply_view *view)
{
    char state[40], file[300];
    reply_view_text(view, "recorder.state", state, sizeof(state));
    if (!*state || strcmp(state, "idle") == 0)
        return;
    printf("%-11s %s, %s, %.0f frames, %.1f MB", "recording", state,
           reply_view_text(view, "recorder.file", file, sizeof(file)), number(view, "recorder.frames"),
           number(view, "recorder.bytes") * 1e-6);
    say(view, "recorder.error", "; failed: ");
    putchar('\n');
}

static void print_troubles(const struct reply_view *view)
{
    int any = 0;
    for (const char *const *name = troubles; *name; name++) {
        if (!(number(view, *name) > 0))
            continue;
        if (!any++)
            label("attention");
        printf("%s%s %.0f", any > 1 ? "  " : "", *name, number(view, *name));
    }
    if (any)
        putchar('\n');
    char options[300];
    if (*reply_view_text(view, "needs_restart", options, sizeof(options)))
        printf("%-11s for %s\n", "restart", options);
}

void status_view_print(const struct reply_view *view)
{
    print_daemon(view);
    print_map(view);
    print_state(view);
    print_pose(view);
    print_scans(view);
    print_recording(view);
    print_troubles(view);
}
