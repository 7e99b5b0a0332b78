#include "odometry_mode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndt/linalg.h"
#include "ndt_odometry/odometry.h"
#include "ndtd/scan_times.h"

/* Limits of a step: uncertainty of a pose, and the largest acceleration of a person or a vehicle over a second. A
 * scan beyond them was matched with another place that looks alike. */
static const double JUMP_M = 0.35, MOST_MPS2 = 3.0;
/* Length of unknown path after which odometry is lost. */
static const double MOST_UNKNOWN_M = 0.5;

/* Reference moments and positions of the last scans that were located. */
struct way {
    int count;
    int64_t stamp_ns[2]; /* newer one last */
    double t_m[2][3];
    double v_mps[3]; /* velocity at the newer one, in the axes of the odometry */
};

struct ndtd_odometry_mode {
    struct ndt_backend *backend;
    const struct ndtd_settings *settings;
    struct ndt_odometry *odometry; /* NULL: the next message starts it */
    struct ndt_odometry_result found;
    int has_sensor; /* the first scan has set frame_id and T_base_sensor */
    char frame_id[NDTD_FRAME_ID_MAX];
    struct ndt_pose T_base_sensor;
    struct way way;
    int has_speed;
    double speed_mps;  /* speed at the last scan that was not degenerate */
    double unknown_m;  /* path at this speed since then */
    int64_t known_ns;  /* reference moment of the last scan */
    char why_lost[96]; /* empty: the path is known since the first scan */
    enum ndt_state state;
};

enum ndt_status ndtd_odometry_mode_create(struct ndtd_odometry_mode **out, const struct ndtd_settings *settings,
                                          int threads, struct ndt_error *err)
{
    struct ndt_backend_config compute = settings->compute;
    compute.threads = threads;
    *out = NULL;
    struct ndtd_odometry_mode *mode = calloc(1, sizeof(*mode));
    if (!mode)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for odometry");
    mode->settings = settings;
    mode->state = NDT_STATE_INITIALISING;
    const enum ndt_status status = ndt_backend_open(&mode->backend, "cpu", &compute, err);
    if (status == NDT_OK)
        *out = mode;
    else
        ndtd_odometry_mode_destroy(mode);
    return status;
}

void ndtd_odometry_mode_destroy(struct ndtd_odometry_mode *mode)
{
    if (!mode)
        return;
    ndt_odometry_destroy(mode->odometry);
    if (mode->backend)
        mode->backend->ops->close(mode->backend);
    free(mode);
}

void ndtd_odometry_mode_restart(struct ndtd_odometry_mode *mode)
{
    ndt_odometry_destroy(mode->odometry);
    mode->odometry = NULL;
    mode->has_sensor = mode->has_speed = 0;
    mode->way.count = 0;
    mode->unknown_m = 0;
    mode->why_lost[0] = '\0';
    mode->state = NDT_STATE_INITIALISING;
}

/* Starts odometry, if it does not run yet. preprocess: of its points; NULL: that of the settings. */
static enum ndt_status begin(struct ndtd_odometry_mode *mode, const struct ndt_preprocess_params *preprocess,
                             struct ndt_error *err)
{
    struct ndt_odometry_params params;
    if (mode->odometry)
        return NDT_OK;
    ndt_odometry_params_default(&params);
    params.preprocess = preprocess ? *preprocess : mode->settings->preprocess;
    params.track = mode->settings->track;
    return ndt_odometry_create(&mode->odometry, &params, mode->backend, err);
}

enum ndt_status ndtd_odometry_mode_begin_at(struct ndtd_odometry_mode *mode, const struct ndtd_settings *settings,
                                            const struct ndt_preprocess_params *preprocess,
                                            const struct ndt_track *track, struct ndt_error *err)
{
    ndtd_odometry_mode_restart(mode);
    mode->settings = settings;
    const enum ndt_status status = begin(mode, preprocess, err);
    if (status == NDT_OK)
        ndt_odometry_begin_at(mode->odometry, track);
    return status;
}

const struct ndt_track_state *ndtd_odometry_mode_state(const struct ndtd_odometry_mode *mode)
{
    return ndt_odometry_state(mode->odometry);
}

const struct ndt_odometry_result *ndtd_odometry_mode_found(const struct ndtd_odometry_mode *mode)
{
    return &mode->found;
}

void ndtd_odometry_mode_imu(struct ndtd_odometry_mode *mode, const struct ndt_track_imu_sample *sample)
{
    if (begin(mode, NULL, NULL) == NDT_OK)
        ndt_odometry_add_imu(mode->odometry, sample);
}

void ndtd_odometry_mode_wheels(struct ndtd_odometry_mode *mode, const struct ndt_track_odometry_sample *sample)
{
    if (begin(mode, NULL, NULL) == NDT_OK)
        ndt_odometry_add_wheels(mode->odometry, sample);
}

/* ---- the first scan ---- */

/* The mode of deskewing: that of the settings; for auto by times, or by azimuth where there are none. */
static enum ndt_deskew_mode deskew_of(const struct ndtd_settings *settings, const struct ndt_cloud *raw)
{
    if (settings->preprocess.deskew != NDT_DESKEW_AUTO || raw->time_s)
        return settings->preprocess.deskew;
    const enum ndtd_turn turn = ndtd_scan_turn(raw);
    return turn == NDTD_TURN_CLOCKWISE           ? NDT_DESKEW_AZIMUTH_CW
           : turn == NDTD_TURN_COUNTER_CLOCKWISE ? NDT_DESKEW_AZIMUTH_CCW
                                                 : NDT_DESKEW_OFF;
}

/* Sets the sensor from the first scan. */
static enum ndt_status take_sensor(struct ndtd_odometry_mode *mode, const struct ndtd_scan *scan,
                                   const struct ndt_cloud *raw, struct ndt_error *err)
{
    mode->has_sensor = 1;
    mode->T_base_sensor = scan->T_base_sensor;
    snprintf(mode->frame_id, sizeof(mode->frame_id), "%s", scan->frame_id ? scan->frame_id : "");
    return ndt_odometry_set_sensor(mode->odometry, &mode->T_base_sensor, deskew_of(mode->settings, raw), err);
}

/* The reason why a scan is not one of odometry's sensor; NULL: it is one. */
static const char *why_foreign(const struct ndtd_odometry_mode *mode, const struct ndtd_scan *scan)
{
    if (strcmp(mode->frame_id, scan->frame_id ? scan->frame_id : "") != 0)
        return "odometry uses the scans of the frame of the first one alone";
    if (memcmp(&mode->T_base_sensor, &scan->T_base_sensor, sizeof(scan->T_base_sensor)) != 0)
        return "the pose of its sensor has changed since odometry began; an initial pose begins anew";
    return NULL;
}

/* ---- the way ---- */

/* Whether a step takes an acceleration that no person or vehicle has. A slip to the next door that takes several
 * scans is half of it by the way; then the velocity decides, which alone may be that of a scan deformed by a turn.
 */
static int has_jumped(struct way *way, const struct ndt_odometry_result *found)
{
    const double *t_m = found->T_odom_reference.t_m;
    double R[9], v_mps[3];
    int jumps = 0;
    ndt_pose_rotation(&found->T_odom_reference, R);
    ndt_multiply(3, 3, 1, R, found->twist.v_mps, v_mps);
    if (way->count == 2) {
        const double before_s = fmax(ndt_track_seconds(way->stamp_ns[0], way->stamp_ns[1]), 1e-3),
                     now_s = fmax(ndt_track_seconds(way->stamp_ns[1], found->reference_ns), 1e-3);
        double off2 = 0, faster2 = 0;
        for (int i = 0; i < 3; i++) {
            off2 += pow(t_m[i] - way->t_m[1][i] - (way->t_m[1][i] - way->t_m[0][i]) * now_s / before_s, 2);
            faster2 += pow(v_mps[i] - way->v_mps[i], 2);
        }
        const double most_m = JUMP_M + MOST_MPS2 * now_s * (now_s + before_s) / 2,
                     most_mps = JUMP_M / now_s + MOST_MPS2 * now_s;
        jumps = sqrt(off2) > most_m || (sqrt(off2) > most_m / 2 && sqrt(faster2) > most_mps);
    }
    memcpy(way->v_mps, v_mps, sizeof(way->v_mps));
    if (way->count == 2) {
        way->stamp_ns[0] = way->stamp_ns[1];
        memcpy(way->t_m[0], way->t_m[1], sizeof(way->t_m[0]));
    }
    const int at = way->count < 2 ? way->count++ : 1;
    way->stamp_ns[at] = found->reference_ns;
    memcpy(way->t_m[at], t_m, sizeof(way->t_m[at]));
    return jumps;
}

/* Whether degenerate scans have left too much of the path unknown: at the last known speed, or at once where no
 * speed was known yet. */
static int is_way_unknown(struct ndtd_odometry_mode *mode, const struct ndt_odometry_result *found)
{
    const double *v = found->twist.v_mps;
    const double step_s = mode->has_speed ? fmax(ndt_track_seconds(mode->known_ns, found->reference_ns), 0) : 0;
    mode->known_ns = found->reference_ns;
    if (!found->is_degenerate) {
        mode->has_speed = found->guesses > 0 || mode->has_speed; /* the first scan has no speed */
        mode->speed_mps = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        mode->unknown_m = 0;
        return 0;
    }
    mode->unknown_m += mode->has_speed ? mode->speed_mps * step_s : INFINITY;
    return mode->unknown_m > MOST_UNKNOWN_M;
}

/* The reason why the path is lost for good with this scan; NULL: it is not lost. */
static const char *why_lost(struct ndtd_odometry_mode *mode, const struct ndt_odometry_result *found)
{
    const int jumps = has_jumped(&mode->way, found), is_unknown = is_way_unknown(mode, found);
    if (found->segment > 0)
        return "the way was lost: too many scans fitted nothing";
    if (jumps)
        return "the way was lost: the pose jumped to a place that looks alike";
    return is_unknown ? "the way was lost: scans do not tell it along one direction, and no wheels do" : NULL;
}

/* Sets the outcome of a scan and the state after it. */
static void judge(struct ndtd_odometry_mode *mode, const struct ndt_odometry_result *found,
                  struct ndt_align_result *result)
{
    const int is_located = found->outcome == NDT_CONVERGED || found->outcome == NDT_ITERATION_LIMIT,
              is_unsure = found->is_degenerate || found->is_weak;
    result->outcome = found->outcome;
    memcpy(result->reason, found->reason, sizeof(result->reason));
    if (found->outcome == NDT_REJECTED)
        return;
    const char *why = *mode->why_lost ? NULL : why_lost(mode, found);
    if (why)
        snprintf(mode->why_lost, sizeof(mode->why_lost), "%s", why);
    if (*mode->why_lost) {
        result->outcome = NDT_LOST;
        memcpy(result->reason, mode->why_lost, sizeof(result->reason));
    } else if (is_unsure && is_located) {
        result->outcome = NDT_DEGENERATE;
        snprintf(result->reason, sizeof(result->reason), "the scan does not tell the way along one direction%s",
                 found->is_degenerate ? "" : ", wheels do");
    }
    mode->state = *mode->why_lost            ? NDT_STATE_LOST
                  : is_located && !is_unsure ? NDT_STATE_TRACKING
                                             : NDT_STATE_COASTING;
}

static void report(const struct ndt_odometry_result *found, struct ndtd_scan_record *record)
{
    struct ndt_align_result *result = &record->result;
    const int is_used = found->outcome != NDT_REJECTED;
    result->T_map_sensor = found->T_odom_base;
    result->has_covariance = is_used;
    memcpy(result->covariance, found->covariance, sizeof(result->covariance));
    result->scores = found->scores;
    result->points = found->points;
    record->reference_s = ndt_track_seconds(found->stamp_ns, found->reference_ns);
    record->T_map_reference = found->T_odom_reference;
    record->has_twist = is_used;
    record->twist = found->twist;
    record->has_innovation = found->guesses > 0;
    record->innovation = found->innovation;
    record->weakest = found->weakest;
    record->hypotheses = found->guesses;
    record->points_used = found->points;
    record->preprocess_us = found->preprocess_us;
    record->align_us = found->align_us + found->map_us;
    result->align_us = record->align_us;
}

enum ndt_status ndtd_odometry_mode_scan(struct ndtd_odometry_mode *mode, const struct ndtd_settings *settings,
                                        const struct ndtd_scan *scan, struct ndt_cloud *raw,
                                        struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct ndt_odometry_result *found = &mode->found;
    enum ndt_status status;
    record->is_odometry = 1;
    if (scan->preprocess.deskew == NDT_DESKEW_OFF && settings->preprocess.deskew == NDT_DESKEW_AUTO && raw->time_s)
        ndtd_scan_times_drop(raw); /* implausible times */
    mode->settings = settings;
    status = begin(mode, NULL, err);
    if (status == NDT_OK && !mode->has_sensor)
        status = take_sensor(mode, scan, raw, err);
    if (status != NDT_OK)
        return status;
    const char *foreign = why_foreign(mode, scan);
    if (foreign) {
        record->result.outcome = NDT_REJECTED;
        record->result.T_map_sensor = ndt_pose_identity();
        snprintf(record->result.reason, sizeof(record->result.reason), "%s", foreign);
        record->state = mode->state;
        return NDT_OK;
    }
    status = ndt_odometry_add_scan(mode->odometry, scan->stamp_ns, raw, found, err);
    if (status != NDT_OK)
        return status;
    judge(mode, found, &record->result);
    report(found, record);
    record->state = mode->state;
    return NDT_OK;
}
