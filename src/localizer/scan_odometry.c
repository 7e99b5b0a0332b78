#include "scan_odometry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extension.h"
#include "ndt/clock.h"
#include "odometry_mode.h"
#include "pipeline_state.h"

/* Longest interval between scans over which odometry is sure of the motion, and the one of views that do not show
 * all around: in offices, at 5 Hz, 5 % of the motions of a view of 120 deg are wrong by 0.15 m or 3 deg. */
static const double LONGEST_S = 0.35, LONGEST_NARROW_S = 0.15;
/* Octants around the sensor that points are in where a view shows all around. */
enum { LEAST_OCTANTS = 6 };
/* Least fit with the local map and least part of the information along any direction, and largest deviation, of a
 * motion that it is sure of. */
static const double LEAST_FIT = 0.25, LEAST_PART = 0.006, LARGEST_M = 0.03;
/* Number of hard scans among the last RECENT ones at which odometry begins: a single one, as the first after a
 * given pose, is found without it. */
enum { RECENT = 10, BEGINNING = 2 };
/* Scans in a row that one guess suffices for after which odometry ends; at most 64. */
enum { SETTLED = 50 };
/* Time for which a sample of wheels or of an IMU vouches for the motion. */
static const double VOUCHED_S = 1;
static const double TIME_GAIN = 0.2;

/* Time of a scan before the first one is measured [us]. */
static const double FIRST_US = 1e4;

struct ndtd_scan_odometry {
    struct ndtd_odometry_mode *mode;
    int is_running;
    /* A bit for each of the last 64 scans, the lowest of the newest: it needed more than one guess. */
    uint64_t hard;
    /* The last scan, and while odometry runs the last one that it took: others are of another sensor. */
    int64_t stamp_ns;
    char frame_id[NDTD_FRAME_ID_MAX];
    double us; /* mean time per scan */
    struct ndtd_scan_record record;
};

enum ndt_status ndtd_scan_odometry_create(struct ndtd_scan_odometry **out, const struct ndtd_settings *settings,
                                          struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_scan_odometry *odometry = calloc(1, sizeof(*odometry));
    if (!odometry)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the odometry of scans");
    odometry->us = FIRST_US;
    const enum ndt_status status = ndtd_odometry_mode_create(&odometry->mode, settings, 1, err);
    if (status == NDT_OK)
        *out = odometry;
    else
        ndtd_scan_odometry_destroy(odometry);
    return status;
}

void ndtd_scan_odometry_destroy(struct ndtd_scan_odometry *odometry)
{
    if (!odometry)
        return;
    ndtd_odometry_mode_destroy(odometry->mode);
    free(odometry);
}

int ndtd_scan_odometry_runs(const struct ndtd_scan_odometry *odometry)
{
    return odometry && odometry->is_running;
}

static void end(struct ndtd_pipeline *pipeline)
{
    pipeline->scan_odometry->is_running = 0;
    ndt_track_forget_scans(&pipeline->track);
}

void ndtd_scan_odometry_release(struct ndtd_pipeline *pipeline)
{
    if (!pipeline->scan_odometry)
        return;
    end(pipeline);
    ndtd_odometry_mode_restart(pipeline->scan_odometry->mode);
}

/* Whether points are in enough octants around the sensor, in the axes of the base. */
static int sees_around(const struct ndt_cloud *points, const struct ndt_pose *T_base_sensor)
{
    double R[9];
    unsigned seen = 0;
    int octants = 0;
    ndt_pose_rotation(T_base_sensor, R);
    for (size_t i = 0; i < points->count; i++) {
        const double p[3] = {(double)points->x_m[i], (double)points->y_m[i], (double)points->z_m[i]};
        const double x = R[0] * p[0] + R[1] * p[1] + R[2] * p[2], y = R[3] * p[0] + R[4] * p[1] + R[5] * p[2];
        seen |= 1u << ((x < 0) + 2 * (y < 0) + 4 * (fabs(x) < fabs(y)));
    }
    for (int k = 0; k < 8; k++)
        octants += (int)(seen >> k & 1);
    return octants >= LEAST_OCTANTS;
}

/* Whether odometry is sure of the motion to the last scan. */
static int is_sure(const struct ndtd_scan_odometry *odometry)
{
    const struct ndt_odometry_result *found = ndtd_odometry_mode_found(odometry->mode);
    if (found->guesses == 0) /* the first one is where it is */
        return 1;
    return found->outcome == NDT_CONVERGED && found->fit >= LEAST_FIT && found->weakest >= LEAST_PART &&
           found->deviation_m <= LARGEST_M;
}

/* Whether the time suffices beside the scan itself. A duration that prevents odometry is halved each time. */
static int has_time(struct ndtd_pipeline *pipeline)
{
    struct ndtd_scan_odometry *odometry = pipeline->scan_odometry;
    const double deadline_us = pipeline->matcher.deadline_us;
    if (deadline_us <= 0 || deadline_us - ndt_clock_us() >= odometry->us + pipeline->scan_us)
        return 1;
    odometry->us /= 2;
    return 0;
}

static const char *frame_of(const struct ndtd_scan *scan)
{
    return scan->frame_id ? scan->frame_id : ""; /* merged sensors */
}

static int is_of_same_sensor(const struct ndtd_scan_odometry *odometry, const struct ndtd_scan *scan)
{
    return strcmp(odometry->frame_id, frame_of(scan)) == 0;
}

/* Whether odometry may tell the motion of this scan since the last one. Wheels tell it better, a gyro the turn, and
 * a step that is too long for the view would cost its time in vain. */
static int is_wanted(struct ndtd_pipeline *pipeline, double step_s)
{
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    return step_s > 0 && step_s <= LONGEST_S && scan->preprocess.deskew != NDT_DESKEW_OFF &&
           ndt_track_input_age_s(&pipeline->track, scan->stamp_ns) > VOUCHED_S &&
           !ndtd_extension_runs(pipeline->extension) && has_time(pipeline) &&
           (step_s <= LONGEST_NARROW_S || sees_around(&pipeline->matcher.raw, &scan->T_base_sensor));
}

/* Gives the scan of the matcher to odometry, and its pose to the estimator where odometry is sure. */
static void take_scan(struct ndtd_pipeline *pipeline)
{
    struct ndtd_scan_odometry *odometry = pipeline->scan_odometry;
    struct ndtd_matcher *matcher = &pipeline->matcher;
    struct ndt_error ignored; /* localisation goes on without odometry */
    const double start_us = ndt_clock_us();
    memset(&odometry->record, 0, sizeof(odometry->record));
    odometry->stamp_ns = matcher->scan.stamp_ns;
    if (ndtd_odometry_mode_scan(odometry->mode, pipeline->settings, &matcher->scan, &matcher->raw,
                                &odometry->record, &ignored) != NDT_OK ||
        odometry->record.result.outcome == NDT_REJECTED) {
        end(pipeline);
        return;
    }
    const struct ndt_odometry_result *found = ndtd_odometry_mode_found(odometry->mode);
    const struct ndt_track_odometry_sample sample = {
        .stamp_ns = found->reference_ns, .has_pose = 1, .is_of_scans = 1, .T_odom_base = found->T_odom_reference};
    if (is_sure(odometry))
        ndt_track_odometry(&pipeline->track, &sample);
    else
        ndt_track_forget_scans(&pipeline->track);
    odometry->us += TIME_GAIN * (ndt_clock_us() - start_us - odometry->us);
}

double ndtd_scan_odometry_follow(struct ndtd_pipeline *pipeline)
{
    struct ndtd_scan_odometry *odometry = pipeline->scan_odometry;
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    const double start_us = ndt_clock_us();
    if (!ndtd_scan_odometry_runs(odometry) || !is_of_same_sensor(odometry, scan))
        return 0;
    if (is_wanted(pipeline, ndt_track_seconds(odometry->stamp_ns, scan->stamp_ns)))
        take_scan(pipeline);
    else
        end(pipeline);
    return ndt_clock_us() - start_us;
}

/* Number of hard scans among the last ones. */
static int hard_of_last(const struct ndtd_scan_odometry *odometry, int scans)
{
    int count = 0;
    for (int i = 0; i < scans; i++)
        count += (int)(odometry->hard >> i & 1);
    return count;
}

void ndtd_scan_odometry_watch(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    struct ndtd_scan_odometry *odometry = pipeline->scan_odometry;
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    struct ndt_error ignored;
    const int is_hard = record->hypotheses > 1 || !ndt_state_is_trusted(record->state);
    if (!odometry || scan->is_late)
        return;
    odometry->hard = odometry->hard << 1 | (is_hard ? 1 : 0);
    if (odometry->is_running && hard_of_last(odometry, SETTLED) == 0)
        end(pipeline);
    if (odometry->is_running)
        return;
    const double step_s =
        is_of_same_sensor(odometry, scan) ? ndt_track_seconds(odometry->stamp_ns, scan->stamp_ns) : INFINITY;
    odometry->stamp_ns = scan->stamp_ns;
    snprintf(odometry->frame_id, sizeof(odometry->frame_id), "%s", frame_of(scan));
    if (!is_hard || hard_of_last(odometry, RECENT) < BEGINNING || !pipeline->track.has_pose ||
        !is_wanted(pipeline, step_s))
        return;
    odometry->is_running = ndtd_odometry_mode_begin_at(odometry->mode, pipeline->settings, &scan->preprocess,
                                                       &pipeline->track, &ignored) == NDT_OK;
    if (odometry->is_running)
        take_scan(pipeline);
}
