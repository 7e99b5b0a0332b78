#include "doubts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndtd/scan_state.h"
#include "pipeline_state.h"

/* Number of scans that were aligned without one that is trusted, and time since the first of them, after which the
 * map or the mounting is doubted: twice the scans after which a search on request gives up, and longer than a
 * search of a large map or the first views of a place that looks alike take. */
enum { UNPLACED_SCANS = 30 };
static const double UNPLACED_S = 10;
/* Number of scans that the vehicle moved within, by at least DISTORTED_M. */
enum { DISTORTED_SCANS = 20 };
static const double DISTORTED_M = 0.1;
/* Time between scans below that of any lidar: 500 turns per second. */
static const double TIGHT_S = 2e-3;
enum { TIGHT_SCANS = 5 };

/* Time over which the IMU is compared with the poses, and longest time between the scans of it: within that, a hand
 * that moves about is described by the poses of the scans. */
static const double LEAN_S = 4, LEAN_GAP_S = 0.6;
/* Angle between the vertical of the IMU and that of the poses that is told: more than a bias of 0.5 m/s^2 and the
 * sway of a hand make. Force that no bias explains: in g, 1 in place of 9.81. */
static const double GRAVITY_MPS2 = 9.81, LEAN_RAD = 6 * 0.017453292519943295, WEIGHTLESS_MPS2 = 5;

/* ---- a scan without points ---- */

static double range_m(const struct ndt_cloud *points, size_t i)
{
    return sqrt((double)points->x_m[i] * (double)points->x_m[i] + (double)points->y_m[i] * (double)points->y_m[i] +
                (double)points->z_m[i] * (double)points->z_m[i]);
}

void ndtd_explain_no_points(const struct ndtd_pipeline *pipeline, struct ndt_align_result *result)
{
    const struct ndtd_matcher *matcher = &pipeline->matcher;
    const struct ndt_preprocess_params *params = &matcher->scan.preprocess;
    const struct ndt_cloud *raw = &matcher->raw;
    double nearest_m = INFINITY, farthest_m = 0;
    size_t finite = 0;
    if (!matcher->points || matcher->points->count > 0 ||
        (result->outcome != NDT_NO_GUESS && result->outcome != NDT_REJECTED))
        return;
    for (size_t i = 0; i < raw->count; i++) {
        const double r_m = range_m(raw, i);
        if (!isfinite(r_m))
            continue;
        finite++;
        nearest_m = fmin(nearest_m, r_m);
        farthest_m = fmax(farthest_m, r_m);
    }
    if (raw->count == 0)
        snprintf(result->reason, sizeof(result->reason), "the scan has no points");
    else if (finite == 0)
        snprintf(result->reason, sizeof(result->reason), "none of %zu points is finite", raw->count);
    else if (farthest_m < params->min_range_m)
        snprintf(result->reason, sizeof(result->reason),
                 "all points are nearer than preprocess.min_range_m, %g m: up to %.3g m", params->min_range_m,
                 farthest_m);
    else if (nearest_m > params->max_range_m)
        snprintf(result->reason, sizeof(result->reason),
                 "all points are beyond preprocess.max_range_m, %g m: from %.5g m on", params->max_range_m,
                 nearest_m);
    else
        snprintf(result->reason, sizeof(result->reason),
                 "none of %zu points is within preprocess.*_range_m and the crop box", raw->count);
}

/* ---- several scans ---- */

static void doubt_points(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    const struct ndtd_matcher *matcher = &pipeline->matcher;
    if (!matcher->points || matcher->points->count > 0 || pipeline->settings->frames.merge_sensors)
        return;
    pipeline->events.pointless++;
    snprintf(pipeline->events.pointless_why, sizeof(pipeline->events.pointless_why), "%s", record->result.reason);
}

/* A first pose that nobody looks for. */
static void doubt_start(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    const struct ndtd_settings *settings = pipeline->settings;
    if (record->result.outcome != NDT_NO_GUESS)
        pipeline->events.poseless = 0; /* it has come */
    if (record->result.outcome != NDT_NO_GUESS || pipeline->events.poseless ||
        ndtd_relocalizer_can_recover(pipeline->relocalizer, 0))
        return;
    pipeline->events.poseless = 1;
    pipeline->events.poseless_why =
        settings->align.variant != NDT_ROBUST ? "ndt.variant autoware does not search for one (robust does)"
        : !ndtd_has_prior(settings)           ? "with ndt.prior off none is searched for"
        : !settings->recovery.enable          ? "with recovery.enable false none is searched for"
                                              : "with initial_pose.mode given none is searched for";
}

static void doubt_map(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    struct ndtd_pipeline_events *events = &pipeline->events;
    if (ndtd_state_is_trusted(record->state)) {
        events->is_placed = 1;
        events->unplaced = 0;
    }
    if (events->is_placed || events->unplaced || record->result.evaluations == 0)
        return;
    if (events->unplaced_row++ == 0)
        events->unplaced_ns = record->stamp_ns;
    if (events->unplaced_row >= UNPLACED_SCANS &&
        ndt_track_seconds(events->unplaced_ns, record->stamp_ns) >= UNPLACED_S)
        events->unplaced = 1;
}

static void doubt_deskewing(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    struct ndtd_pipeline_events *events = &pipeline->events;
    const double *v = record->twist.v_mps,
                 moved_m = pipeline->matcher.scan.distorted_s * sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    if (record->state != NDT_STATE_TRACKING || !record->has_twist || moved_m < DISTORTED_M ||
        !pipeline->matcher.scan.frame_id) /* merged scans have no azimuth */
        return;
    events->distorted_m = fmax(events->distorted_m, moved_m);
    events->distorted += ++events->distorted_scans == DISTORTED_SCANS;
}

static void doubt_stamps(struct ndtd_pipeline *pipeline)
{
    struct ndtd_pipeline_events *events = &pipeline->events;
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    const double period_s =
        scan->frame_id ? ndtd_scan_times_sweep_s(&pipeline->times, scan->frame_id, INFINITY) : INFINITY;
    events->tight_row = period_s < TIGHT_S ? events->tight_row + 1 : 0;
    if (events->tight_row == TIGHT_SCANS) {
        events->tight++;
        events->tight_s = period_s;
    }
}

/* The specific force at the pose of the estimate, but for the change of its velocity: R^T g e_z + w x v. */
static void expected_force(const struct ndt_track_state *state, double mps2[3])
{
    const double *v = state->twist.v_mps, *w = state->twist.w_radps;
    double R[9];
    ndt_pose_rotation(&state->T_map_base, R);
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        mps2[i] = GRAVITY_MPS2 * R[6 + i] + w[j] * v[k] - w[k] * v[j];
    }
}

/* Adds the interval between the last scan and that of the estimate, if the IMU describes it. */
static void add_force(struct ndtd_lean *lean, const struct ndt_track *track, const double expected[3])
{
    const struct ndt_track_state *state = &track->state;
    const double dt_s = ndt_track_seconds(lean->last_ns, state->stamp_ns);
    double force[3];
    if (lean->last_ns == 0 || dt_s <= 0 || dt_s > LEAN_GAP_S ||
        !ndt_track_specific_force(track, lean->last_ns, state->stamp_ns, force))
        return;
    for (int i = 0; i < 3; i++)
        lean->sum_mps[i] += dt_s * (force[i] - 0.5 * (expected[i] + lean->expected[i])) -
                            (state->twist.v_mps[i] - lean->last_mps[i]);
    lean->duration_s += dt_s;
}

static void judge_lean(struct ndtd_pipeline_events *events, const struct ndtd_lean *lean)
{
    const double x = lean->sum_mps[0] / lean->duration_s, y = lean->sum_mps[1] / lean->duration_s,
                 z = lean->sum_mps[2] / lean->duration_s + GRAVITY_MPS2;
    const double force_mps2 = sqrt(x * x + y * y + z * z), lean_rad = atan2(hypot(x, y), z);
    if (fabs(force_mps2 - GRAVITY_MPS2) > WEIGHTLESS_MPS2) {
        events->weightless++;
        events->force_mps2 = force_mps2;
    } else if (lean_rad > LEAN_RAD) {
        events->leans++;
        events->lean_rad = lean_rad;
    }
}

/* Gravity that contradicts the vertical of the poses: a mounting that is not that of the configuration. */
static void doubt_vertical(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    const struct ndt_track *track = &pipeline->track;
    const struct ndt_track_state *state = &track->state;
    struct ndtd_lean *lean = &pipeline->lean;
    double expected[3];
    if (record->state != NDT_STATE_TRACKING || !state->has_twist) {
        lean->last_ns = 0;
        return;
    }
    expected_force(state, expected);
    add_force(lean, track, expected);
    if (lean->duration_s >= LEAN_S) {
        judge_lean(&pipeline->events, lean);
        lean->duration_s = 0;
        memset(lean->sum_mps, 0, sizeof(lean->sum_mps));
    }
    lean->last_ns = state->stamp_ns;
    memcpy(lean->expected, expected, sizeof(expected));
    memcpy(lean->last_mps, state->twist.v_mps, sizeof(lean->last_mps));
}

void ndtd_doubt_scan(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    doubt_points(pipeline, record);
    doubt_start(pipeline, record);
    doubt_map(pipeline, record);
    doubt_deskewing(pipeline, record);
    doubt_stamps(pipeline);
    doubt_vertical(pipeline, record);
}
