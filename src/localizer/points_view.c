/* The points of a scan as a viewer lays them on the map, and the poses that were tried to align it. */
#include "points_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline_state.h"

/* Largest range [m] of any sensor. */
static const double MOST_M = 1e5;

struct ndtd_points_view {
    int has_scan;
    struct ndt_preprocess_params params; /* parameters that only move points */
    struct ndt_sweep sweep;
    int has_motion;
    enum ndtd_pass pass;               /* pass whose motion is undone */
    struct ndt_pose T_base_sensor;     /* pose of the sensor of the points */
    int has_pose;                      /* the two poses below are known, of the base */
    struct ndt_pose T_map_reference;   /* pose at the reference moment */
    struct ndt_pose T_reference_stamp; /* motion from there to the stamp */
    struct ndt_points_message message; /* poses of candidates: at the reference moment */
    struct ndt_cloud thinned;          /* the points that are read */
    struct ndt_preprocessor *preprocessor;
};

enum ndt_status ndtd_points_view_create(struct ndtd_points_view **out, struct ndt_error *err)
{
    struct ndtd_points_view *view = *out = calloc(1, sizeof(*view));
    if (!view)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for what viewers get");
    ndt_cloud_init(&view->thinned);
    return ndt_preprocessor_create(&view->preprocessor, err);
}

void ndtd_points_view_release(struct ndtd_points_view *view)
{
    view->has_scan = 0;
    ndt_cloud_free(&view->thinned);
    ndt_preprocessor_release(view->preprocessor);
}

void ndtd_points_view_destroy(struct ndtd_points_view *view)
{
    if (!view)
        return;
    ndt_cloud_free(&view->thinned);
    ndt_preprocessor_destroy(view->preprocessor);
    free(view);
}

/* ---- while the scan is processed ---- */

void ndtd_points_view_begin(struct ndtd_points_view *view)
{
    view->has_scan = 0;
    view->message.iteration_count = view->message.candidate_count = 0;
    view->message.has_gnss = 0;
}

static void add_candidate(struct ndt_points_message *message, const struct ndt_pose *T_map_base, double confidence,
                          enum ndt_candidate_kind kind)
{
    if (message->candidate_count == NDT_POINTS_MAX_ITEMS || !ndt_pose_is_finite(T_map_base))
        return;
    for (size_t i = 0; i < message->candidate_count; i++)
        if (!ndtd_are_distinct(T_map_base, &message->candidates[i].T_map_base))
            return;
    message->candidates[message->candidate_count++] =
        (struct ndt_points_candidate){.kind = kind, .T_map_base = *T_map_base, .confidence = confidence};
}

void ndtd_points_view_tried(struct ndtd_points_view *view, const struct ndt_pose *T_base_sensor,
                            const struct ndt_align_result *results, size_t count)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(T_base_sensor);
    for (size_t i = 0; i < count; i++) {
        const struct ndt_pose T_map_base = ndt_pose_compose(&results[i].T_map_sensor, &T_sensor_base);
        if (ndtd_fit(&results[i]) > 0)
            add_candidate(&view->message, &T_map_base, NAN, NDT_CANDIDATE_HYPOTHESIS);
    }
}

static void add_hypotheses(struct ndt_points_message *message, const struct ndtd_hypotheses *hypotheses,
                           enum ndt_candidate_kind kind)
{
    for (size_t i = 0; hypotheses && i < hypotheses->count; i++)
        add_candidate(message, &hypotheses->list[i].state.T_map_base,
                      fmin(fmax(hypotheses->list[i].confidence, 0), 1), kind);
}

static void set_gnss(const struct ndtd_pipeline *pipeline, struct ndt_points_message *message)
{
    const struct ndt_gnss_message *gnss = &pipeline->gnss.message;
    message->has_gnss = ndtd_gnss_reaches(&pipeline->gnss, message->stamp_ns);
    message->has_gnss_deviation = gnss->has_deviation;
    memcpy(message->gnss_position_m, gnss->position_m, sizeof(message->gnss_position_m));
    memcpy(message->gnss_deviation_m, gnss->deviation_m, sizeof(message->gnss_deviation_m));
}

/* Sets the motion that moves the points to where the alignment had them; no measured point is left out. */
static void set_motion(struct ndtd_points_view *view, const struct ndtd_matcher *matcher, enum ndt_outcome outcome)
{
    struct ndt_preprocess_params *params = &view->params;
    *params = matcher->scan.preprocess;
    params->min_range_m = params->voxel_m = params->deadline_us = 0;
    params->max_range_m = 4 * MOST_M;
    params->sample_count = 0;
    for (int i = 0; i < 3; i++) {
        params->crop_min_m[i] = -2 * MOST_M;
        params->crop_max_m[i] = 2 * MOST_M;
    }
    view->sweep = matcher->scan.sweep;
    if (!(view->sweep.end_s > view->sweep.begin_s) || params->deskew == NDT_DESKEW_AUTO) /* points without times */
        params->deskew = NDT_DESKEW_OFF;
    view->has_motion = outcome != NDT_NO_GUESS;
    view->pass = matcher->pass;
    view->T_base_sensor = matcher->scan.T_base_sensor;
}

static void set_pose(struct ndtd_points_view *view, const struct ndtd_scan_record *record)
{
    view->has_pose = record->result.outcome != NDT_NO_GUESS && ndt_pose_is_finite(&record->T_map_reference) &&
                     ndt_pose_is_finite(&record->result.T_map_sensor);
    view->T_map_reference = view->has_pose ? record->T_map_reference : ndt_pose_identity();
    view->T_reference_stamp = view->has_pose
                                  ? ndt_pose_between(&record->T_map_reference, &record->result.T_map_sensor)
                                  : ndt_pose_identity();
}

void ndtd_points_view_keep(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    struct ndtd_points_view *view = pipeline->view;
    struct ndt_points_message *message = &view->message;
    const size_t steps = record->trace ? record->trace_count : 0;
    message->seq = record->seq;
    message->stamp_ns = record->stamp_ns;
    strcpy(message->frame_id, "base");
    message->iteration_count = steps < NDT_POINTS_MAX_ITEMS ? steps : NDT_POINTS_MAX_ITEMS;
    if (message->iteration_count > 0)
        memcpy(message->iterations, record->trace, message->iteration_count * sizeof(*record->trace));
    add_hypotheses(message, ndtd_relocalizer_alternatives(pipeline->relocalizer), NDT_CANDIDATE_RECOVERY);
    set_gnss(pipeline, message);
    set_motion(view, &pipeline->matcher, record->result.outcome);
    set_pose(view, record);
    view->has_scan = 1;
}

/* ---- when it is answered ---- */

/* Time of a point limited to the sweep, since points of any range may lie shortly before or after the aligned ones;
 * NaN: a stray, or no time. */
static float time_of(const struct ndtd_points_view *view, float time_s)
{
    const struct ndt_sweep *sweep = &view->sweep;
    const double span_s = sweep->end_s - sweep->begin_s, since_s = (double)time_s - sweep->reference_s;
    if (!(since_s >= sweep->begin_s - span_s && since_s <= sweep->end_s + span_s))
        return NAN;
    return (float)(sweep->reference_s + fmin(fmax(since_s, sweep->begin_s), sweep->end_s));
}

/* Whether a point is a return: (0, 0, 0) stands for none. */
static int is_measured(const struct ndt_cloud *scan, size_t i)
{
    const float most_m = (float)MOST_M;
    return fabsf(scan->x_m[i]) <= most_m && fabsf(scan->y_m[i]) <= most_m && fabsf(scan->z_m[i]) <= most_m &&
           (scan->x_m[i] != 0 || scan->y_m[i] != 0);
}

/* Keeps every k-th point, k odd, as for a scan that is thinned. */
static enum ndt_status thin(struct ndtd_points_view *view, const struct ndt_cloud *scan, size_t most,
                            struct ndt_error *err)
{
    struct ndt_cloud *out = &view->thinned;
    const int needs_time = view->params.deskew == NDT_DESKEW_TIME;
    const size_t every = scan->count > most ? ((scan->count + most - 1) / most) | 1 : 1;
    const size_t room = (scan->count + every - 1) / every;
    const enum ndt_status status = ndt_cloud_reserve(out, room, NDT_CLOUD_INTENSITY | NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    size_t count = 0;
    for (size_t i = 0; i < scan->count; i += every) {
        const float time_s = needs_time ? time_of(view, scan->time_s[i]) : 0;
        if (!is_measured(scan, i) || isnan(time_s))
            continue;
        out->x_m[count] = scan->x_m[i];
        out->y_m[count] = scan->y_m[i];
        out->z_m[count] = scan->z_m[i];
        out->intensity[count] = scan->intensity ? scan->intensity[i] : 0;
        out->time_s[count++] = time_s;
    }
    out->count = count;
    return NDT_OK;
}

/* Carries points of the sensor at the reference moment to the base at the stamp. */
static void carry(const struct ndtd_points_view *view, const struct ndt_cloud *from, struct ndt_cloud *to)
{
    const struct ndt_pose T_stamp_reference = ndt_pose_inverse(&view->T_reference_stamp);
    const struct ndt_pose T = ndt_pose_compose(&T_stamp_reference, &view->T_base_sensor);
    double R[9];
    ndt_pose_rotation(&T, R);
    for (size_t i = 0; i < from->count; i++) {
        const double x = (double)from->x_m[i], y = (double)from->y_m[i], z = (double)from->z_m[i];
        to->x_m[i] = (float)(R[0] * x + R[1] * y + R[2] * z + T.t_m[0]);
        to->y_m[i] = (float)(R[3] * x + R[4] * y + R[5] * z + T.t_m[1]);
        to->z_m[i] = (float)(R[6] * x + R[7] * y + R[8] * z + T.t_m[2]);
    }
    to->count = from->count;
}

static enum ndt_status make_points(struct ndtd_pipeline *pipeline, size_t most, struct ndt_cloud *points,
                                   struct ndt_error *err)
{
    struct ndtd_points_view *view = pipeline->view;
    const struct ndt_cloud *scan = &pipeline->matcher.raw, *moved = NULL;
    const struct ndt_sweep_motion *motion = view->has_motion ? &pipeline->matcher.motion[view->pass].sensor : NULL;
    enum ndt_status status = thin(view, scan, most > 0 ? most : 1, err);
    if (status == NDT_OK)
        status = ndt_preprocess(view->preprocessor, &view->params, &view->thinned, &view->sweep, view->message.seq,
                                motion, &moved, err);
    if (status != NDT_OK)
        return status;
    const int has_intensity = scan->intensity && moved->count == view->thinned.count; /* in the same order */
    status = ndt_cloud_reserve(points, moved->count, has_intensity ? NDT_CLOUD_INTENSITY : 0, err);
    if (status != NDT_OK)
        return status;
    carry(view, moved, points);
    memset(points->origin_m, 0, sizeof(points->origin_m));
    if (has_intensity) {
        memcpy(points->intensity, view->thinned.intensity, moved->count * sizeof(*points->intensity));
    } else { /* motion of the previous scan */
        points->fields = 0;
        points->intensity = NULL;
    }
    return NDT_OK;
}

/* Candidates other than the result, carried to the stamp. */
static void finish_candidates(const struct ndtd_points_view *view, struct ndt_points_message *message)
{
    size_t kept = 0;
    for (size_t i = 0; i < message->candidate_count; i++) {
        struct ndt_points_candidate candidate = message->candidates[i];
        if (view->has_pose && !ndtd_are_distinct(&candidate.T_map_base, &view->T_map_reference))
            continue;
        candidate.T_map_base = ndt_pose_compose(&candidate.T_map_base, &view->T_reference_stamp);
        message->candidates[kept++] = candidate;
    }
    message->candidate_count = kept;
}

void ndtd_pipeline_watch(struct ndtd_pipeline *pipeline, int is_watched)
{
    pipeline->is_watched = is_watched;
    ndtd_relocalizer_set_view(pipeline->relocalizer, is_watched ? pipeline->view : NULL);
}

enum ndt_status ndtd_pipeline_points(struct ndtd_pipeline *pipeline, size_t most,
                                     struct ndt_points_message *message, struct ndt_cloud *points,
                                     struct ndt_error *err)
{
    const struct ndtd_points_view *view = pipeline->view;
    if (!pipeline->is_watched || !view->has_scan)
        return NDT_END;
    *message = view->message;
    add_hypotheses(message, ndtd_relocalizer_requested(pipeline->relocalizer), NDT_CANDIDATE_SEARCH);
    finish_candidates(view, message);
    return make_points(pipeline, most, points, err);
}
