#include "ndt_odometry/odometry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local_map.h"
#include "ndt/clock.h"
#include "ndt/limits.h"
#include "odometry_match.h"

static const double DEG = 0.017453292519943295;
/* Deviations above which a pose is a guess. */
static const double DEGENERATE_M = 0.5, DEGENERATE_RAD = 5 * 0.017453292519943295;
/* Part of the information below which a direction is not observed: its apparent information comes from the noise of
 * normals. Medians in simulated tunnels are 2e-4 to 4e-4, in streets and halls 6e-3 to 8e-2. */
static const double DEGENERATE_RATIO = 2e-3;
/* Deviations of the first pose, which is exact by definition, for the inverse of its covariance. */
static const double START_M = 1e-3, START_RAD = 1e-4;
/* Part of the path to a keyframe below which scans do not count. */
static const double LEAST_MOTION = 0.1;
/* Multiple of the path to a keyframe up to which a scan that fits badly does not become one. */
static const double LATEST_KEYFRAME = 2;
/* Part of a scan that meets the local map below which the scan shows a new place and becomes a keyframe at once. */
static const double KNOWN_PART = 0.85;

/* Points along the edge of the smallest voxel: with fewer, most voxels of a single keyframe would have too few
 * points. */
static const double LEAST_CELLS = 4;

/* Number of old scans in a row that mean a restart of time; a single one is a stray. */
enum { RESTART_SCANS = 3 };

/* The first scans of a segment, which give the velocity at its start. */
struct start {
    struct ndt_pose T_odom_base[NDT_ODOMETRY_START_SCANS];
    int64_t stamp_ns[NDT_ODOMETRY_START_SCANS];
    size_t count;
    int has_twist;
    struct ndt_twist twist;
};

struct ndt_odometry {
    struct ndt_odometry_params params;
    struct ndt_aligner *aligner;
    struct ndt_track track;
    struct ndt_local_map local;
    struct ndt_odometry_scan scan;
    struct ndt_odometry_batch batch;
    struct ndt_recent_fits fits;
    struct start start;
    int is_placed; /* `track` gives the pose of the first scan */
    struct ndt_cloud no_points;
    int64_t stamp_ns; /* stamp of the last scan */
    int has_stamp;
    int old_scans; /* scans in a row as old as after a restart of time */
    uint64_t scans;
    uint32_t segment, missed; /* missed: scans without a pose since the last one that has one */
    double path_m;
    struct ndt_pose last_pose;     /* pose at the last used scan */
    struct ndt_pose keyframe_pose; /* pose of the last keyframe */
    struct ndt_pose counted_pose;  /* pose of the last scan that counts among the fits */
    uint32_t since_keyframe;
};

void ndt_odometry_params_default(struct ndt_odometry_params *params)
{
    memset(params, 0, sizeof(*params));
    params->T_base_sensor = ndt_pose_identity();
    ndt_preprocess_params_default(&params->preprocess);
    params->preprocess.deskew = NDT_DESKEW_AUTO;
    ndt_map_config_default(&params->map);
    params->map.threads = 1;
    ndt_align_params_default(&params->align);
    params->align.score_threshold = 0;
    ndt_track_params_default(&params->track);
    params->map_voxel_m = 0.2;
    params->keyframe_m = 1;
    params->keyframe_rad = 15 * DEG;
    params->keyframe_scans = 10;
    params->window = 20;
    params->near_m = 15;
    params->near_path_m = 100;
    params->max_keyframes = 200;
    params->lost_scans = 10;
}

static enum ndt_status check_params(const struct ndt_odometry_params *params, struct ndt_error *err)
{
    struct row {
        const char *name;
        double value, least, most;
    } const rows[] = {
        {"map_voxel_m", params->map_voxel_m, 0.01, 10},
        {"keyframe_m", params->keyframe_m, 0, 100},
        {"keyframe_rad", params->keyframe_rad, 0, 2 * M_PI},
        {"window", params->window, 1, 10000},
        {"near_m", params->near_m, 0, 1000},
        {"near_path_m", params->near_path_m, 0, 1e6},
        {"max_keyframes", params->max_keyframes, params->window, 100000},
        {"lost_scans", params->lost_scans, 1, 1e9},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!(rows[i].value >= rows[i].least && rows[i].value <= rows[i].most))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "odometry: %s %g is outside %g .. %g", rows[i].name,
                            rows[i].value, rows[i].least, rows[i].most);
    for (size_t i = 0; i < params->map.level_count && i < NDT_MAX_LEVELS; i++)
        if (!(params->map.leaf_m[i] >= LEAST_CELLS * params->map_voxel_m))
            return ndt_fail(err, NDT_ERR_ARGUMENT,
                            "odometry: cells of %g m need points thinned to %g m or less, not map_voxel_m %g",
                            params->map.leaf_m[i], params->map.leaf_m[i] / LEAST_CELLS, params->map_voxel_m);
    if (!ndt_pose_is_finite(&params->T_base_sensor))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "odometry: T_base_sensor is not finite");
    return NDT_OK;
}

enum ndt_status ndt_odometry_create(struct ndt_odometry **out, const struct ndt_odometry_params *params,
                                    struct ndt_backend *backend, struct ndt_error *err)
{
    *out = NULL;
    enum ndt_status status = check_params(params, err);
    if (status != NDT_OK)
        return status;
    struct ndt_odometry *odometry = calloc(1, sizeof(*odometry));
    if (!odometry)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for odometry");
    odometry->params = *params;
    ndt_cloud_init(&odometry->no_points);
    ndt_track_init(&odometry->track, &params->track);
    odometry->scan.map_points = &odometry->no_points;
    status = ndt_local_map_create(&odometry->local, &odometry->params, err);
    if (status == NDT_OK)
        status = ndt_preprocessor_create(&odometry->scan.for_map, err);
    if (status == NDT_OK)
        status = ndt_preprocessor_create(&odometry->scan.for_match, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&odometry->aligner, backend, err);
    if (status == NDT_OK)
        *out = odometry;
    else
        ndt_odometry_destroy(odometry);
    return status;
}

void ndt_odometry_destroy(struct ndt_odometry *odometry)
{
    if (!odometry)
        return;
    ndt_aligner_destroy(odometry->aligner);
    ndt_preprocessor_destroy(odometry->scan.for_map);
    ndt_preprocessor_destroy(odometry->scan.for_match);
    ndt_local_map_free(&odometry->local);
    free(odometry);
}

enum ndt_status ndt_odometry_set_sensor(struct ndt_odometry *odometry, const struct ndt_pose *T_base_sensor,
                                        enum ndt_deskew_mode deskew, struct ndt_error *err)
{
    if (odometry->scans > 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "odometry: its sensor cannot change after the first scan");
    if (!ndt_pose_is_finite(T_base_sensor))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "odometry: T_base_sensor is not finite");
    odometry->params.T_base_sensor = *T_base_sensor;
    odometry->params.preprocess.deskew = deskew;
    return NDT_OK;
}

void ndt_odometry_add_imu(struct ndt_odometry *odometry, const struct ndt_track_imu_sample *sample)
{
    ndt_track_imu(&odometry->track, sample);
}

void ndt_odometry_add_wheels(struct ndt_odometry *odometry, const struct ndt_track_odometry_sample *sample)
{
    ndt_track_odometry(&odometry->track, sample);
}

const struct ndt_track_state *ndt_odometry_state(const struct ndt_odometry *odometry)
{
    return &odometry->track.state;
}

const struct ndt_cloud *ndt_odometry_points(const struct ndt_odometry *odometry)
{
    return odometry->scan.map_points;
}

struct ndt_map *ndt_odometry_map(const struct ndt_odometry *odometry)
{
    return odometry->local.map;
}

/* ---- results ---- */

static void refuse(struct ndt_odometry_result *result, enum ndt_outcome outcome, const char *reason)
{
    result->outcome = outcome;
    snprintf(result->reason, sizeof(result->reason), "%.*s", (int)sizeof(result->reason) - 1, reason);
}

/* Reports the estimate, at the stamp and at the reference moment. */
static void report_state(const struct ndt_odometry *odometry, const struct ndt_track_state *state,
                         struct ndt_odometry_result *result)
{
    struct ndt_track_state at_stamp;
    ndt_track_shift(&odometry->track, state, ndt_track_seconds(state->stamp_ns, result->stamp_ns), &at_stamp);
    result->reference_ns = state->stamp_ns;
    result->T_odom_base = at_stamp.T_map_base;
    result->T_odom_reference = state->T_map_base;
    result->twist = state->twist;
    ndt_track_map_covariance(state, result->covariance);
    result->deviation_m = ndt_track_position_deviation(state);
    result->deviation_rad = ndt_track_attitude_deviation(state);
    result->is_degenerate = (result->deviation_m > DEGENERATE_M && !ndt_odometry_has_wheels(state)) ||
                            result->deviation_rad > DEGENERATE_RAD;
    result->segment = odometry->segment;
}

static void report_match(const struct ndt_odometry_match *match, struct ndt_odometry_result *result)
{
    result->outcome = match->result.outcome;
    memcpy(result->reason, match->result.reason, sizeof(result->reason));
    result->weakest = match->weakest;
    result->innovation = isfinite(match->innovation) ? match->innovation : 0;
    result->scores = match->result.scores;
    result->fit = match->fit;
    result->guesses = match->guesses;
    result->points = match->result.points;
}

/* ---- the velocity of the start ---- */

static void note_start(struct start *start, const struct ndt_track_state *state)
{
    if (start->count == NDT_ODOMETRY_START_SCANS)
        return;
    start->T_odom_base[start->count] = state->T_map_base;
    start->stamp_ns[start->count++] = state->stamp_ns;
}

/* Mean twist between two scans of the start; 0: their stamps do not give one. */
static int mean_twist(const struct start *start, size_t from, size_t to, struct ndt_twist *twist)
{
    const double dt_s = ndt_track_seconds(start->stamp_ns[from], start->stamp_ns[to]);
    const struct ndt_pose step = ndt_pose_between(&start->T_odom_base[from], &start->T_odom_base[to]);
    if (!(dt_s > 0.01 && dt_s < 10))
        return 0;
    *twist = ndt_pose_log(&step, dt_s);
    return 1;
}

/* Twist at the first scan, assuming that the velocity changes evenly. */
static int start_twist(const struct start *start, struct ndt_twist *twist)
{
    enum { MIDDLE = NDT_ODOMETRY_START_SCANS / 2, LAST = NDT_ODOMETRY_START_SCANS - 1 };
    struct ndt_twist first, second;
    if (start->count < NDT_ODOMETRY_START_SCANS || !mean_twist(start, 0, MIDDLE, &first) ||
        !mean_twist(start, MIDDLE, LAST, &second))
        return 0;
    for (int i = 0; i < 3; i++) {
        twist->v_mps[i] = 1.5 * first.v_mps[i] - 0.5 * second.v_mps[i];
        twist->w_radps[i] = 1.5 * first.w_radps[i] - 0.5 * second.w_radps[i];
    }
    return 1;
}

int ndt_odometry_restart(struct ndt_odometry *odometry)
{
    struct start start = {0};
    struct ndt_error err;
    start.has_twist = start_twist(&odometry->start, &start.twist);
    odometry->start = start;
    ndt_track_init(&odometry->track, &odometry->params.track);
    odometry->fits = (struct ndt_recent_fits){.count = 0};
    odometry->has_stamp = odometry->old_scans = 0;
    odometry->scans = 0;
    odometry->is_placed = 0;
    odometry->segment = odometry->missed = 0;
    odometry->path_m = 0;
    odometry->scan.map_points = &odometry->no_points;
    /* The next scan creates a builder that could not be created here. */
    return ndt_local_map_clear(&odometry->local, &err) == NDT_OK && start.has_twist;
}

void ndt_odometry_begin_at(struct ndt_odometry *odometry, const struct ndt_track *track)
{
    (void)ndt_odometry_restart(odometry);
    odometry->track = *track;
    odometry->track.params = odometry->params.track;
    odometry->is_placed = 1;
}

/* ---- keyframes ---- */

static int is_keyframe_due(const struct ndt_odometry *odometry, const struct ndt_odometry_match *match)
{
    const struct ndt_pose *T_odom_base = &match->updated.T_map_base;
    const struct ndt_odometry_params *params = &odometry->params;
    const double moved_m = ndt_pose_distance_m(&odometry->keyframe_pose, T_odom_base),
                 turned_rad = ndt_pose_angle_rad(&odometry->keyframe_pose, T_odom_base);
    const int has_moved =
        moved_m >= LEAST_MOTION * params->keyframe_m || turned_rad >= LEAST_MOTION * params->keyframe_rad;
    if (match->is_doubtful)
        return moved_m >= LATEST_KEYFRAME * params->keyframe_m ||
               turned_rad >= LATEST_KEYFRAME * params->keyframe_rad;
    return moved_m >= params->keyframe_m || turned_rad >= params->keyframe_rad ||
           (match->result.scores.match_ratio < KNOWN_PART && match->innovation < odometry->params.track.gate) ||
           (params->keyframe_scans > 0 && odometry->since_keyframe >= params->keyframe_scans && has_moved);
}

static enum ndt_status add_keyframe(struct ndt_odometry *odometry, struct ndt_odometry_result *result,
                                    struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    const struct ndt_pose *T_odom_base = &odometry->track.state.T_map_base;
    enum ndt_status status =
        ndt_local_map_add(&odometry->local, odometry->scan.map_points, T_odom_base, odometry->path_m, err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(odometry->aligner, odometry->local.map, err);
    odometry->keyframe_pose = *T_odom_base;
    odometry->since_keyframe = 0;
    result->is_keyframe = 1;
    result->map_us = ndt_clock_us() - start_us;
    return status;
}

/* ---- a scan ---- */

/* Takes in a scan before any motion is known; 0, with the reason in the result, where it cannot be used. */
static int begin_scan(struct ndt_odometry *odometry, int64_t stamp_ns, const struct ndt_cloud *raw,
                      struct ndt_odometry_result *result)
{
    struct ndt_odometry_scan *scan = &odometry->scan;
    struct ndt_error err = {""};
    const double step_s = odometry->has_stamp ? ndt_track_seconds(odometry->stamp_ns, stamp_ns) : 1;
    if (stamp_ns > NDT_LIMIT_STAMP_NS || stamp_ns < -NDT_LIMIT_STAMP_NS) {
        refuse(result, NDT_REJECTED, "its stamp is no time");
        return 0;
    }
    const int has_restarted = step_s < -odometry->params.track.max_prediction_s;
    odometry->old_scans = has_restarted ? odometry->old_scans + 1 : 0;
    if (step_s <= 0 && odometry->old_scans < RESTART_SCANS) {
        refuse(result, NDT_REJECTED, "its stamp is not newer than that of the scan before");
        return 0;
    }
    scan->preprocess = odometry->params.preprocess;
    scan->preprocess.deskew = ndt_deskew_mode_of(scan->preprocess.deskew, raw);
    scan->preprocess.deadline_us = 0;
    scan->sequence = odometry->scans;
    if (ndt_preprocess_sweep(&scan->preprocess, raw, &scan->sweep, &err) != NDT_OK) {
        refuse(result, NDT_REJECTED, err.text);
        return 0;
    }
    scan->reference_ns = stamp_ns + llround(scan->sweep.reference_s * 1e9);
    if (odometry->has_stamp && ndt_track_is_late(&odometry->track, scan->reference_ns)) {
        refuse(result, NDT_REJECTED, "its points are not newer than those of the scan before");
        return 0;
    }
    return 1;
}

/* Forgets the local map: the next scan begins a new one, at the estimated pose of the base. */
static enum ndt_status begin_segment(struct ndt_odometry *odometry, struct ndt_error *err)
{
    odometry->segment++;
    odometry->missed = 0;
    odometry->fits = (struct ndt_recent_fits){.count = 0};
    return ndt_local_map_clear(&odometry->local, err);
}

/* Places the first scan where the other estimator predicts it: exact by definition, like any first pose. */
static void place_first(struct ndt_odometry *odometry, struct ndt_track_state *predicted)
{
    enum { N = NDT_TRACK_STATES };
    (void)ndt_track_predict(&odometry->track, odometry->scan.reference_ns, predicted);
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < N; k++)
            predicted->P[N * i + k] = predicted->P[N * k + i] = 0;
        predicted->P[(N + 1) * i] = i < 3 ? START_M * START_M : START_RAD * START_RAD;
    }
    memset(predicted->distortion, 0, sizeof(predicted->distortion));
    odometry->is_placed = 0;
}

/* Sets the state before the first scan of a segment. */
static void start_segment(struct ndt_odometry *odometry, struct ndt_track_state *predicted)
{
    const struct start *start = &odometry->start;
    const struct ndt_pose origin = ndt_pose_identity();
    const struct ndt_pose *at = odometry->segment > 0 ? &odometry->last_pose : &origin;
    double covariance[36] = {0};
    for (int i = 0; i < 6; i++)
        covariance[7 * i] = i < 3 ? START_M * START_M : START_RAD * START_RAD;
    if (odometry->segment > 0 && ndt_track_predict(&odometry->track, odometry->scan.reference_ns, predicted))
        at = &predicted->T_map_base;
    const struct ndt_pose T_odom_base = *at;
    ndt_track_reset(&odometry->track, odometry->scan.reference_ns, &T_odom_base,
                    odometry->segment == 0 && start->has_twist ? &start->twist : NULL, covariance);
    *predicted = odometry->track.state;
}

/* Takes the first scan of a local map at its predicted pose, without an alignment. */
static enum ndt_status take_first(struct ndt_odometry *odometry, const struct ndt_track_state *predicted,
                                  struct ndt_odometry_result *result, struct ndt_error *err)
{
    ndt_track_adopt(&odometry->track, predicted, 1);
    result->outcome = NDT_CONVERGED;
    odometry->last_pose = predicted->T_map_base;
    report_state(odometry, predicted, result);
    note_start(&odometry->start, predicted);
    return add_keyframe(odometry, result, err);
}

/* Counts the fit of a scan among the usual ones if the base has moved since the last one that counts: while it
 * stands, scans meet the very points that they were measured at, and fit as none does along the way. */
static void count_fit(struct ndt_odometry *odometry, const struct ndt_odometry_match *match)
{
    const struct ndt_odometry_params *params = &odometry->params;
    const struct ndt_pose *T_odom_base = &match->updated.T_map_base;
    if (odometry->fits.count > 0 &&
        ndt_pose_distance_m(&odometry->counted_pose, T_odom_base) < LEAST_MOTION * params->keyframe_m &&
        ndt_pose_angle_rad(&odometry->counted_pose, T_odom_base) < LEAST_MOTION * params->keyframe_rad)
        return;
    ndt_recent_fits_add(&odometry->fits, match->fit);
    odometry->counted_pose = *T_odom_base;
}

static enum ndt_status take_match(struct ndt_odometry *odometry, const struct ndt_odometry_match *match,
                                  struct ndt_odometry_result *result, struct ndt_error *err)
{
    const struct ndt_track_state *state = &match->updated;
    ndt_track_commit(&odometry->track, state);
    count_fit(odometry, match);
    odometry->missed = 0;
    odometry->since_keyframe++;
    odometry->path_m += ndt_pose_distance_m(&odometry->last_pose, &state->T_map_base);
    odometry->last_pose = state->T_map_base;
    report_state(odometry, state, result);
    result->is_weak = match->weakest < DEGENERATE_RATIO;
    result->is_degenerate |= result->is_weak && !ndt_odometry_has_wheels(state);
    note_start(&odometry->start, state);
    return is_keyframe_due(odometry, match) ? add_keyframe(odometry, result, err) : NDT_OK;
}

/* Goes on with the prediction, until too many scans were missed. */
static enum ndt_status miss_scan(struct ndt_odometry *odometry, const struct ndt_track_state *predicted,
                                 struct ndt_odometry_result *result, struct ndt_error *err)
{
    ndt_track_coast(&odometry->track, predicted);
    if (result->outcome == NDT_CONVERGED || result->outcome == NDT_ITERATION_LIMIT)
        refuse(result, NDT_LOW_SCORE, "it fits the local map far worse than the scans before");
    report_state(odometry, predicted, result);
    odometry->last_pose = predicted->T_map_base;
    return ++odometry->missed >= odometry->params.lost_scans ? begin_segment(odometry, err) : NDT_OK;
}

static enum ndt_status locate(struct ndt_odometry *odometry, const struct ndt_track_state *predicted,
                              struct ndt_odometry_result *result, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    const struct ndt_odometry_matcher matcher = {&odometry->params, odometry->aligner, &odometry->track,
                                                 &odometry->fits, &odometry->batch};
    struct ndt_odometry_match match;
    const enum ndt_status status = ndt_odometry_match(&matcher, &odometry->scan, predicted, &match, err);
    if (status != NDT_OK)
        return status;
    result->align_us = ndt_clock_us() - start_us;
    report_match(&match, result);
    return match.is_usable ? take_match(odometry, &match, result, err)
                           : miss_scan(odometry, predicted, result, err);
}

/* Reports the last pose of the base for a scan that was not used. */
static void report_last(const struct ndt_odometry *odometry, struct ndt_odometry_result *result)
{
    const struct ndt_pose origin = ndt_pose_identity();
    result->T_odom_base = result->T_odom_reference = odometry->scans > 0 ? odometry->last_pose : origin;
    result->segment = odometry->segment;
}

enum ndt_status ndt_odometry_add_scan(struct ndt_odometry *odometry, int64_t stamp_ns, const struct ndt_cloud *raw,
                                      struct ndt_odometry_result *result, struct ndt_error *err)
{
    struct ndt_track_state predicted;
    enum ndt_status status = NDT_OK;
    const double start_us = ndt_clock_us();
    *result = (struct ndt_odometry_result){.stamp_ns = stamp_ns, .reference_ns = stamp_ns};
    odometry->scan.map_points = &odometry->no_points;
    report_last(odometry, result);
    if (!begin_scan(odometry, stamp_ns, raw, result))
        return NDT_OK;
    if (odometry->has_stamp && stamp_ns < odometry->stamp_ns)
        status = begin_segment(odometry, err);
    if (status != NDT_OK)
        return status;
    if (odometry->is_placed)
        place_first(odometry, &predicted);
    else if (!odometry->local.map)
        start_segment(odometry, &predicted);
    else
        (void)ndt_track_predict(&odometry->track, odometry->scan.reference_ns, &predicted);
    status = ndt_odometry_scan_prepare(&odometry->scan, &odometry->params, &odometry->track, &predicted, raw, err);
    result->preprocess_us = ndt_clock_us() - start_us;
    if (status != NDT_OK)
        return status;
    if (odometry->scan.points->count == 0) {
        refuse(result, NDT_REJECTED, "no point of it is finite and within range");
        return NDT_OK;
    }
    odometry->has_stamp = 1;
    odometry->old_scans = 0;
    odometry->stamp_ns = stamp_ns;
    odometry->scans++;
    return odometry->local.map ? locate(odometry, &predicted, result, err)
                               : take_first(odometry, &predicted, result, err);
}
