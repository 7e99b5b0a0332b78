/** @file
 * @brief The way of a scan from the bytes of a message to a pose.
 *
 * A scan passes, in this order:
 *
 *   decode       the points of the message become a cloud: matcher.raw
 *   extend       beyond the edge of the map odometry carries the estimator on (extension.h), and while scans are
 *                hard to localise it tells the motion since the scan before (scan_odometry.h)
 *   predict      the estimator predicts pose and motion at the reference moment of the sweep
 *   preprocess   crop, deskew, voxel filter and sampling on the host, or a plan for a backend that does it
 *   align        the aligner refines the predicted pose, with the prediction as prior
 *   relocalise   decides whether that is the pose of the vehicle, and finds it where it is not (relocalizer.h)
 *   update       the estimator has taken the alignment in; a second pass deskews with the motion that was found
 *   assess       the confidence of the result
 *   answer       the estimator goes on from the estimate, which becomes the result, carried to the stamp
 *
 * The state of the estimator is always at the reference moment. A pose that was carried to the stamp is output
 * only: fed back, an error of the velocity would grow from scan to scan where stamps lie at the begin of the sweep.
 *
 * The raw points are copied once, from the message into matcher.raw: the message itself is moved from the socket
 * into the queue and read there (a replay reads it in the buffer of the bag), and recording writes the same bytes.
 * Of the sample that preprocessing selects (preprocess.sample_count points) there are three copies: the
 * preprocessor's, the aligner's, which is rotated by the guess, and the backend's. Nothing here allocates once the
 * buffers have held the largest scan, but odometry, for its keyframes. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "doubts.h"
#include "ndt/clock.h"
#include "ndtd/scan_state.h"
#include "pipeline_state.h"
#include "redeskew.h"
#include "scan_order.h"

/* Gain of the running mean of the scan time. */
static const double SCAN_US_GAIN = 0.2;
/* Number of points below which the time of a scan is not determined by its points. */
enum { LEAST_POINTS_TIMED = 5000 };

/* ---- decode ---- */

/* Number of scans that are preprocessed together: one per merged sensor. */
static size_t sensors_together(const struct ndtd_pipeline *pipeline)
{
    const struct ndtd_extrinsics *frames = &pipeline->settings->frames;
    return frames->merge_sensors ? frames->sensor_count : 1;
}

/* Raises the time per point after the deadline has passed `us` after the first point was read: a point takes longer
 * than `us / points`. Doubled, it gives the next scan a quarter of the points if reading took all of the time. */
static void read_fewer(struct ndtd_pipeline *pipeline, double us, uint64_t points)
{
    if (points >= LEAST_POINTS_TIMED)
        pipeline->matcher.point_us = fmax(pipeline->matcher.point_us, 2 * us / (double)points);
}

static enum ndt_status decode(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                              struct ndtd_scan_record *record, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    struct ndt_cloud *raw = &pipeline->matcher.raw;
    enum ndt_status status = NDT_OK;
    record->points_raw = frame->scan.points.count;
    if (!ndtd_lookahead_take_points(pipeline->lookahead, frame, &pipeline->matcher, record)) {
        const struct ndt_scan_header scan =
            ndtd_matcher_thinned(&pipeline->matcher, &frame->scan, sensors_together(pipeline));
        status = ndt_scan_points(frame->data, frame->size, &scan, pipeline->matcher.deadline_us, raw, err);
        record->decode_us = ndt_clock_us() - start_us;
        if (status == NDT_ERR_CANCELLED) /* without points, the scan is answered with the prediction */
            read_fewer(pipeline, record->decode_us, scan.points.count);
    }
    if (status != NDT_OK && status != NDT_ERR_CANCELLED)
        return status;
    record->points_thinned = record->points_raw - raw->count;
    if (record->points_thinned > 0) {
        pipeline->events.thinned++;
        pipeline->events.thinned_points = record->points_raw;
        pipeline->events.thinned_read = raw->count;
    }
    return NDT_OK;
}

/* Updates the time per point, which follows slower scans at once and faster ones slowly. Small scans do not count.
 */
static void follow_point_time(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    const double points = (double)(record->points_raw - record->points_thinned),
                 together = (double)pipeline->matcher.raw.count; /* includes the points of other sensors */
    if (points < LEAST_POINTS_TIMED || together < points)
        return;
    const double own_us = record->preprocess_us - pipeline->odometry_us; /* odometry does not read all points */
    const double point_us = record->decode_us / points + own_us / together;
    pipeline->matcher.point_us =
        fmax(point_us, pipeline->matcher.point_us + SCAN_US_GAIN * (point_us - pipeline->matcher.point_us));
}

/* ---- sensors that are merged ---- */

/* Answers a held scan with the prediction at its stamp. */
static void answer_merged(const struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record)
{
    struct ndtd_alignment nothing = {.is_updated = 0};
    if (!ndt_track_predict(&pipeline->track, record->stamp_ns, &nothing.predicted)) {
        ndtd_refuse(&record->result, NDT_NO_GUESS, "no initial pose yet");
        return;
    }
    ndtd_refuse(&record->result, NDT_MERGED, "its points go with the scan that completes the sweep");
    ndtd_pipeline_report_estimate(pipeline, &nothing, &nothing.predicted, record);
}

/* Finds the point times of one of several merged sensors; faults of the times are reported with the merged scan. */
static void find_times(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan)
{
    const struct ndtd_timed_scan part = {
        .frame_id = scan->frame_id, .stamp_ns = scan->stamp_ns, .is_part = 1, .points = &pipeline->matcher.raw};
    struct ndt_preprocess_params params = pipeline->settings->preprocess;
    struct ndt_sweep sweep;
    for (int k = 0; k < 3; k++) { /* the box of the option is in the base frame */
        params.crop_min_m[k] = -INFINITY;
        params.crop_max_m[k] = INFINITY;
    }
    if (params.deskew == NDT_DESKEW_OFF)
        return;
    if (ndtd_scan_times_find(&pipeline->times, &part, &params, &sweep, &pipeline->events.times, NULL) == NDT_OK &&
        params.deskew == NDT_DESKEW_OFF)
        ndtd_scan_times_drop(&pipeline->matcher.raw);
}

/* Holds the points until the other sensors have sent theirs, or adds those of the others. */
static enum ndt_status merge_sensors(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *header,
                                     int *is_complete, struct ndt_error *err)
{
    struct ndtd_scan *scan = &pipeline->matcher.scan;
    find_times(pipeline, header);
    const enum ndt_status status =
        ndtd_scan_merge_add(pipeline->merge, pipeline->settings, header, &pipeline->matcher.raw, is_complete, err);
    if (status != NDT_OK)
        return status;
    scan->frame_id = NULL;
    scan->T_base_sensor = ndt_pose_identity();
    scan->preprocess = ndtd_scan_merge_params(&pipeline->settings->preprocess);
    return NDT_OK;
}

/* ---- predict ---- */

/* Sets the sweep and the mode of deskewing. */
static enum ndt_status find_sweep(struct ndtd_pipeline *pipeline, struct ndt_error *err)
{
    struct ndtd_scan *scan = &pipeline->matcher.scan;
    struct ndt_cloud *raw = &pipeline->matcher.raw;
    const struct ndtd_timed_scan timed = {.frame_id = scan->frame_id, .stamp_ns = scan->stamp_ns, .points = raw};
    const int is_auto = scan->preprocess.deskew == NDT_DESKEW_AUTO; /* with `off` there is no motion to undo */
    enum ndt_status status;
    if (scan->frame_id) {
        status = ndtd_scan_times_find(&pipeline->times, &timed, &scan->preprocess, &scan->sweep,
                                      &pipeline->events.times, err);
    } else {
        scan->preprocess.deskew = ndt_deskew_mode_of(scan->preprocess.deskew, raw);
        status = ndt_preprocess_sweep(&scan->preprocess, raw, &scan->sweep, err);
    }
    if (is_auto && scan->preprocess.deskew == NDT_DESKEW_OFF)
        scan->distorted_s = ndtd_scan_times_sweep_s(&pipeline->times, scan->frame_id, scan->preprocess.sweep_s);
    return status;
}

/* Sets the result to the predicted pose. Returns 0 when the scan is answered with it, because no pose is known yet
 * or the deadline has passed. */
static int predict(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment)
{
    struct ndtd_scan *scan = &pipeline->matcher.scan;
    struct ndt_align_result *result = &alignment->result;
    const double deadline_us = pipeline->matcher.deadline_us;
    ndtd_scan_predict(scan, &pipeline->track, ndtd_has_prior(pipeline->settings));
    ndtd_matcher_begin(&pipeline->matcher);
    ndtd_alignment_begin(alignment, scan, scan->has_prediction ? &pipeline->track.state : NULL, &scan->predicted);
    pipeline->is_followed = ndt_track_window_ends_at(&pipeline->window, &pipeline->track);
    alignment->step = (struct ndt_track_step){
        .before_ns = pipeline->track.state.stamp_ns, .has_gnss = scan->uses_gnss, .gnss = pipeline->track.gnss};
    if (!scan->has_prediction) {
        result->T_map_sensor = ndt_pose_identity();
        ndtd_refuse(result, NDT_NO_GUESS, "no initial pose yet");
        if (!ndtd_relocalizer_can_recover(pipeline->relocalizer, 0) &&
            !ndtd_relocalizer_is_requested(pipeline->relocalizer))
            return 0;
    }
    scan->is_late = ndt_track_is_late(&pipeline->track, scan->predicted.stamp_ns);
    if (deadline_us > 0 && ndt_clock_us() >= deadline_us) {
        ndtd_refuse(result, NDT_DEADLINE, "no time left to align it: the pose is the prediction");
        return 0;
    }
    return 1;
}

/* Applies sensor_points.required_distance. Returns 0 when the scan is refused. */
static int reaches_far(const struct ndtd_pipeline *pipeline, struct ndt_align_result *result)
{
    const double required_m = pipeline->settings->required_distance_m;
    const struct ndt_cloud *raw = &pipeline->matcher.raw;
    double farthest_m = 0;
    char reason[96];
    if (required_m <= 0)
        return 1;
    for (size_t i = 0; i < raw->count; i++) {
        const double of_sensor[3] = {(double)raw->x_m[i], (double)raw->y_m[i], (double)raw->z_m[i]};
        double of_base[3];
        ndt_pose_apply(&pipeline->matcher.scan.T_base_sensor, of_sensor, of_base);
        farthest_m =
            fmax(farthest_m, sqrt(of_base[0] * of_base[0] + of_base[1] * of_base[1] + of_base[2] * of_base[2]));
        if (farthest_m >= required_m)
            return 1;
    }
    snprintf(reason, sizeof(reason), "the farthest point is %.2f m away, sensor_points.required_distance is %g m",
             farthest_m, required_m);
    ndtd_refuse(result, NDT_REJECTED, reason);
    return 0;
}

/* ---- align ---- */

/* Applies debug.align_delay_ms: simulates a slow machine, but not beyond the deadline. Returns the delay [us]. */
static double delay(const struct ndtd_pipeline *pipeline)
{
    const double start_us = ndt_clock_us(), deadline_us = pipeline->matcher.deadline_us;
    double delay_us = pipeline->settings->align_delay_s * 1e6;
    if (delay_us <= 0)
        return 0;
    if (deadline_us > 0)
        delay_us = fmin(delay_us, deadline_us - start_us);
    const long long ns = (long long)(fmax(delay_us, 0) * 1e3);
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}, NULL);
    return ndt_clock_us() - start_us;
}

/* Scales the time of an evaluation to the points of this scan. */
static void scale_evaluation(struct ndtd_matcher *matcher)
{
    if (matcher->evaluation_points == 0 || matcher->points_used == 0)
        return;
    matcher->evaluation_us *= (double)matcher->points_used / (double)matcher->evaluation_points;
    matcher->evaluation_points = matcher->points_used;
}

static enum ndt_status align(struct ndtd_pipeline *pipeline, struct ndt_align_params *params,
                             struct ndtd_alignment *alignment, struct ndt_error *err)
{
    struct ndtd_matcher *matcher = &pipeline->matcher;
    const struct ndt_align_result *result = &alignment->result;
    struct ndt_pose guess = alignment->prior.T_map_sensor;
    enum ndt_status status = NDT_OK;
    int is_proposed = 0;
    if (!matcher->is_aligned_ahead && !matcher->scan.is_late)
        status = ndtd_relocalizer_propose(pipeline->relocalizer, alignment, &guess, &is_proposed, err);
    if (status != NDT_OK)
        return status;
    if (is_proposed)
        ndtd_use_finest_level(params);
    if (matcher->is_aligned_ahead)
        matcher->guesses++;
    else
        status = ndtd_matcher_align(matcher, FIRST_PASS, params, &guess, alignment, err);
    if (matcher->preprocessed == ON_BACKEND)
        matcher->points_used = result->points;
    if (result->evaluations > 0) {
        matcher->evaluation_us = result->align_us / result->evaluations;
        matcher->evaluation_points = matcher->points_used;
    }
    if (status == NDT_OK && ndtd_outcome_is_usable(result->outcome))
        ndtd_alignment_update(alignment, &matcher->scan, matcher->track, &matcher->motion[FIRST_PASS].twist);
    return status;
}

/* ---- assess ---- */

/* Sets the covariance of the final alignment where it is not the estimator's. Without time it is the fixed one. */
static enum ndt_status estimate_covariance(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                           struct ndt_error *err)
{
    struct ndt_pose_covariance_params how = matcher->settings->pose_covariance;
    struct ndt_align_params params = ndtd_matcher_params(matcher, &alignment->prior);
    struct ndt_align_result *result = &alignment->result;
    const int is_multi =
        how.kind == NDT_POSE_COVARIANCE_MULTI_NDT || how.kind == NDT_POSE_COVARIANCE_MULTI_NDT_SCORE;
    enum ndt_status status = NDT_OK;
    if (how.kind == NDT_POSE_COVARIANCE_POSTERIOR || !alignment->is_updated)
        return NDT_OK;
    if (is_multi && !ndtd_matcher_has_time(matcher, &params)) {
        how.kind = NDT_POSE_COVARIANCE_FIXED;
    } else if (is_multi) {
        status = ndtd_matcher_need_points(matcher, err);
        if (status == NDT_ERR_CANCELLED) {
            how.kind = NDT_POSE_COVARIANCE_FIXED;
            status = NDT_OK;
        }
    }
    const struct ndt_aligned_pose pose = {&params, matcher->points, &matcher->scan.T_base_sensor};
    if (status == NDT_OK)
        status = ndt_pose_covariance_estimate(matcher->aligner, &how, &pose, result, err);
    memcpy(alignment->covariance, result->covariance, sizeof(alignment->covariance));
    alignment->has_covariance = status == NDT_OK;
    return status;
}

/* Sets the confidence of the result; below the minimum it is not accepted. The estimator takes the result all the
 * same where the scan fits, regardless of degenerate directions and of the distance from the prediction: a scan in
 * a tunnel or in a sudden turn informs the estimator, but a wrong match must not. */
static void assess(const struct ndtd_pipeline *pipeline, const struct ndtd_decision *decision,
                   struct ndtd_alignment *alignment, struct ndtd_scan_record *record)
{
    const double least = pipeline->settings->min_confidence;
    struct ndt_align_result *result = &alignment->result;
    int fits;
    record->confidence = ndtd_alignment_confidence(alignment, &pipeline->matcher.scan, pipeline->settings, &fits);
    if (!isnan(decision->margin))
        record->confidence *= 1 / (1 + exp(-decision->margin));
    if (!decision->is_unproven && decision->certainty > record->confidence) { /* false for NAN */
        record->confidence = decision->certainty;
        fits = ndtd_outcome_is_usable(result->outcome);
    }
    if (result->outcome == NDT_DEADLINE) /* NaN stays NaN */
        record->confidence *=
            fmin(1, ndtd_prediction_confidence(&alignment->predicted) / fmax(record->confidence, 1e-9));
    record->is_doubted = record->confidence < least;
    if (!record->is_doubted)
        return;
    alignment->is_updated = alignment->is_updated && fits;
    if (result->outcome != NDT_CONVERGED)
        return;
    if (decision->is_cut_short) {
        result->outcome = NDT_DEADLINE;
        snprintf(result->reason, sizeof(result->reason),
                 "confidence %.3f: no time left to compare the pose with other places", record->confidence);
    } else {
        result->outcome = NDT_LOW_SCORE;
        snprintf(result->reason, sizeof(result->reason), "confidence %.3f is below the minimum %.3f",
                 record->confidence, least);
    }
}

/* Fills in the record with the facts of the alignment besides its result. */
static void describe(const struct ndtd_pipeline *pipeline, const struct ndtd_decision *decision,
                     const struct ndtd_alignment *alignment, struct ndtd_scan_record *record)
{
    const struct ndtd_matcher *matcher = &pipeline->matcher;
    if (!isnan(decision->margin))
        record->margin = 1 / (1 + exp(-decision->margin));
    record->is_ahead = matcher->is_aligned_ahead && matcher->pass == FIRST_PASS && !decision->is_multistart;
    if (alignment->has_trace)
        record->trace = ndt_aligner_trace(matcher->aligner, &record->trace_count);
    record->upload_us = alignment->result.upload_us;
    record->align_us = alignment->result.align_us - record->upload_us;
}

/* ---- the way ---- */

/* Aligns the scan and decides about the alignment. *is_aligned: the scan has an alignment to assess. */
static enum ndt_status align_and_relocalise(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment,
                                            struct ndtd_decision *decision, int *is_aligned, struct ndt_error *err)
{
    struct ndtd_matcher *matcher = &pipeline->matcher;
    struct ndtd_relocalizer *relocalizer = pipeline->relocalizer;
    int meets_map = 1;
    enum ndt_status status = ndtd_relocalizer_begin(relocalizer, decision, err);
    if (status == NDT_OK)
        status = ndtd_extension_meets_map(pipeline, alignment, &meets_map, err);
    if (status != NDT_OK || !meets_map)
        return status;
    struct ndt_align_params params = ndtd_matcher_params(matcher, &alignment->prior);
    if (!ndtd_matcher_has_time(matcher, &params)) {
        ndtd_refuse(&alignment->result, NDT_DEADLINE, "no time left to align it: the pose is the prediction");
        return ndtd_relocalizer_decide_unaligned(relocalizer, alignment, decision, err);
    }
    if (alignment->before)
        status = align(pipeline, &params, alignment, err);
    if (status == NDT_OK && matcher->scan.is_late)
        ndtd_scan_end_late(pipeline, alignment);
    else if (status == NDT_OK)
        status = ndtd_relocalizer_decide(relocalizer, alignment, decision, err);
    *is_aligned = status == NDT_OK && alignment->before;
    return status;
}

/* Runs a scan from its points to the final alignment, assessed. */
static enum ndt_status localise(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment,
                                struct ndtd_decision *decision, struct ndtd_scan_record *record,
                                struct ndt_error *err)
{
    struct ndtd_matcher *matcher = &pipeline->matcher;
    int is_aligned = 0;
    enum ndt_status status = ndtd_lookahead_take(pipeline->lookahead, matcher, alignment, err);
    if (status == NDT_OK)
        status = ndtd_matcher_preprocess(matcher, err);
    if (status != NDT_OK)
        return status;
    const double delay_us = delay(pipeline);
    scale_evaluation(matcher);
    status = align_and_relocalise(pipeline, alignment, decision, &is_aligned, err);
    if (!is_aligned)
        return status;
    if (!decision->is_multistart)
        status = ndtd_deskew_passes(matcher, alignment, err);
    if (status == NDT_OK)
        status = estimate_covariance(matcher, alignment, err);
    assess(pipeline, decision, alignment, record);
    ndtd_relocalizer_report(pipeline->relocalizer, decision, &alignment->result);
    if (decision->is_unproven && record->confidence > decision->certainty) /* the scan fits elsewhere, too */
        record->confidence = decision->certainty;
    if (status == NDT_OK)
        status = ndtd_extension_judge(pipeline, alignment, decision, record, err);
    alignment->result.align_us += delay_us;
    describe(pipeline, decision, alignment, record);
    return status;
}

/* Moves the estimator to the pose of the relocaliser's decision. */
static void follow_decision(struct ndtd_pipeline *pipeline, const struct ndtd_decision *decision)
{
    if (decision->is_replaced)
        ndt_track_adopt(&pipeline->track, &decision->replacement, 0);
    if (!decision->is_refused)
        return;
    pipeline->events.refused_poses++;
    pipeline->events.refused_m = decision->refused_m;
}

/* Runs a scan from the prediction to the pose. Its failures are of the scan, of memory or of the device. */
static enum ndt_status match(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment,
                             struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct ndtd_matcher *matcher = &pipeline->matcher;
    struct ndtd_decision decision = {.margin = NAN, .certainty = NAN};
    const double start_us = ndt_clock_us();
    enum ndt_status status = find_sweep(pipeline, err);
    const double sweep_us = ndt_clock_us() - start_us;
    pipeline->odometry_us = 0;
    if (status != NDT_OK) {
        matcher->scan.sweep = (struct ndt_sweep){0};
    } else {
        ndtd_extension_follow(pipeline);
        pipeline->odometry_us = ndtd_scan_odometry_follow(pipeline);
    }
    if (!predict(pipeline, alignment) || !reaches_far(pipeline, &alignment->result))
        status = NDT_OK; /* answered in any case, even without a usable sweep */
    else if (status == NDT_OK)
        status = localise(pipeline, alignment, &decision, record, err);
    follow_decision(pipeline, &decision);
    ndtd_explain_no_points(pipeline, &alignment->result);
    record->reference_s = matcher->scan.sweep.reference_s;
    record->preprocess_us = sweep_us + pipeline->odometry_us + matcher->preprocess_us;
    record->points_used = matcher->points_used;
    record->hypotheses = matcher->guesses;
    record->has_innovation = alignment->has_innovation;
    record->innovation = alignment->innovation;
    record->weakest = alignment->weakest;
    return status;
}

/* Keeps the facts of an answered scan for a request, whose search follows. */
static void keep_for_request(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                             const struct ndtd_scan_record *record)
{
    struct ndtd_matcher *matcher = &pipeline->matcher;
    const int has_points = matcher->points != NULL || matcher->preprocessed == ON_BACKEND;
    if (!has_points || !ndtd_relocalizer_is_requested(pipeline->relocalizer))
        return;
    pipeline->has_answered = 1;
    pipeline->answered =
        (struct ndtd_answered_scan){.seq = record->seq,
                                    .stamp_ns = record->stamp_ns,
                                    .reference_s = record->reference_s,
                                    .is_trusted = ndtd_state_is_trusted(record->state),
                                    .is_tracked = record->state == NDT_STATE_TRACKING && alignment->is_updated,
                                    .T_map_base = alignment->updated.T_map_base,
                                    .fit = ndtd_fit(&record->result)};
    matcher->scan.preprocess.deadline_us = 0; /* the deadline is that of the answer, not of the search */
}

static void follow_scan_time(struct ndtd_pipeline *pipeline, double took_us)
{
    pipeline->scan_us += (pipeline->scan_us > 0 ? SCAN_US_GAIN : 1) * (took_us - pipeline->scan_us);
}

/* Counts the events that Autoware's node warns of; changes no result. */
static void validate(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record, double took_us)
{
    const struct ndtd_settings *settings = pipeline->settings;
    struct ndtd_pipeline_events *events = &pipeline->events;
    const double *to = record->result.T_map_sensor.t_m, *from = record->T_map_guess.t_m;
    const double moved_m = record->has_guess ? hypot(hypot(to[0] - from[0], to[1] - from[1]), to[2] - from[2]) : 0;
    if (settings->validation.moved_m > 0 && moved_m > settings->validation.moved_m) {
        events->far++;
        events->far_m = moved_m;
        events->far_limit_m = settings->validation.moved_m;
    }
    if (settings->validation.align_s > 0 && took_us > settings->validation.align_s * 1e6) {
        events->slow++;
        events->slow_us = took_us;
        events->slow_limit_us = settings->validation.align_s * 1e6;
    }
    events->row = record->result.outcome == NDT_CONVERGED ? 0 : events->row + 1;
    if (settings->validation.skipped > 0 && events->row >= (uint64_t)settings->validation.skipped) {
        events->rows += events->row == (uint64_t)settings->validation.skipped;
        events->longest_row = events->row > events->longest_row ? events->row : events->longest_row;
    }
}

/* Fills in the record from the header of the scan. */
static void begin(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *header,
                  struct ndtd_scan_record *record)
{
    const struct ndtd_settings *settings = pipeline->settings;
    struct ndtd_scan *scan = &pipeline->matcher.scan;
    *scan = (struct ndtd_scan){
        .usual_fit = ndtd_relocalizer_usual_fit(pipeline->relocalizer),
        .seq = header->seq,
        .stamp_ns = header->stamp_ns,
        .frame_id = header->frame_id,
        .preprocess = settings->preprocess,
        .T_base_sensor = *ndtd_transforms_sensor(&pipeline->transforms, &settings->frames, header->frame_id)};
    record->seq = header->seq;
    record->stamp_ns = header->stamp_ns;
    record->confidence = record->margin = NAN;
    ndtd_integrity_begin(record);
    record->state = pipeline->state;
    record->has_sensor = 1;
    record->sensor.T_base_sensor = scan->T_base_sensor;
    memcpy(record->sensor.frame_id, header->frame_id, sizeof(record->sensor.frame_id));
}

/* Adds the other places to the covariance of a pose that is not trusted, where that is the estimator's. */
static void spread_covariance(const struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                              struct ndtd_scan_record *record)
{
    struct ndt_align_result *result = &record->result;
    if (!ndtd_state_is_trusted(pipeline->state) && result->outcome != NDT_CONVERGED && result->has_covariance &&
        !alignment->has_covariance && ndtd_has_prior(pipeline->settings))
        ndtd_relocalizer_spread(pipeline->relocalizer, &record->T_map_reference, alignment->predicted.stamp_ns,
                                result->covariance);
}

/* Answers a scan: the estimator follows its alignment, and the record gets the result. */
static void answer(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                   struct ndtd_scan_record *record)
{
    record->result = alignment->result;
    ndtd_pipeline_conclude(pipeline, alignment, record);
    ndtd_pipeline_follow_state(pipeline, alignment, record);
    spread_covariance(pipeline, alignment, record);
    ndtd_pipeline_keep_state(pipeline, alignment);
    ndtd_integrity_follow(pipeline->integrity, pipeline, alignment, record);
    ndtd_extension_watch(pipeline, alignment, record);
    ndtd_scan_odometry_watch(pipeline, record);
    keep_for_request(pipeline, alignment, record);
    if (pipeline->is_watched)
        ndtd_points_view_keep(pipeline, record);
}

/* Answers a scan without a map, by odometry. */
static enum ndt_status answer_by_odometry(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record,
                                          struct ndt_error *err)
{
    struct ndtd_matcher *matcher = &pipeline->matcher;
    struct ndt_error why = {""};
    if (find_sweep(pipeline, &why) != NDT_OK)
        matcher->scan.sweep = (struct ndt_sweep){0};
    const enum ndt_status status =
        ndtd_odometry_mode_scan(pipeline->odometry, pipeline->settings, &matcher->scan, &matcher->raw, record, err);
    pipeline->state = record->state;
    return status;
}

static enum ndt_status process_scan(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                                    struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct ndtd_alignment alignment = {.is_updated = 0};
    struct ndt_error why = {0};
    int is_complete = 1;
    begin(pipeline, &frame->scan, record);
    if (pipeline->is_stopped) {
        ndtd_refuse(&record->result, NDT_REJECTED, "localising is stopped");
        return NDT_OK;
    }
    if (ndtd_scan_is_repeated(pipeline, &frame->scan, record))
        return NDT_OK;
    enum ndt_status status = decode(pipeline, frame, record, err);
    if (status == NDT_OK && pipeline->settings->frames.merge_sensors)
        status = merge_sensors(pipeline, &frame->scan, &is_complete, err);
    if (status == NDT_OK && !is_complete)
        answer_merged(pipeline, record);
    if (status != NDT_OK || !is_complete)
        return status;
    if (pipeline->odometry)
        return answer_by_odometry(pipeline, record, err);
    if (pipeline->has_start)
        ndtd_pipeline_set_pose_at(pipeline, &pipeline->start, record->stamp_ns);
    ndtd_pipeline_take_late(pipeline);
    pipeline->matcher.scan.preprocess.deadline_us = pipeline->matcher.deadline_us;
    status = match(pipeline, &alignment, record, &why);
    if (status == NDT_ERR_MEMORY || status == NDT_ERR_DEVICE) { /* the next scan would fail as well */
        if (err)
            *err = why;
        return status;
    }
    ndtd_scan_order_keep(pipeline, &frame->scan);
    if (status != NDT_OK)
        ndtd_refuse(&alignment.result, status == NDT_ERR_CANCELLED ? NDT_DEADLINE : NDT_REJECTED, why.text);
    answer(pipeline, &alignment, record);
    if (status == NDT_ERR_CANCELLED)
        read_fewer(pipeline, record->decode_us + record->preprocess_us, pipeline->matcher.raw.count);
    else
        follow_point_time(pipeline, record);
    const double took_us = record->decode_us + record->preprocess_us + record->result.align_us;
    follow_scan_time(pipeline, took_us - pipeline->odometry_us);
    validate(pipeline, record, took_us);
    ndtd_doubt_scan(pipeline, record);
    return NDT_OK;
}

static void release_memory(struct ndtd_pipeline *pipeline)
{
    ndt_cloud_free(&pipeline->matcher.raw);
    ndt_preprocessor_release(pipeline->matcher.preprocessor);
    ndtd_scan_merge_release(pipeline->merge);
    ndtd_lookahead_release(pipeline->lookahead);
    ndtd_points_view_release(pipeline->view);
    ndtd_extension_release(pipeline->extension);
    ndtd_scan_odometry_release(pipeline);
    pipeline->has_answered = 0;
}

/* Processes a scan in memory that may not suffice. If it does not, the buffers of larger scans are given back and
 * the scan is tried once more: a scan that is too large must not keep the memory of later ones. */
static enum ndt_status process_in_memory(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                                         struct ndtd_scan_record *record, struct ndt_error *err)
{
    enum ndt_status status = process_scan(pipeline, frame, record, err);
    if (status != NDT_ERR_MEMORY)
        return status;
    pipeline->events.memory_released++;
    pipeline->events.memory_points = frame->scan.points.count;
    release_memory(pipeline);
    memset(record, 0, sizeof(*record));
    status = process_scan(pipeline, frame, record, err);
    if (status == NDT_ERR_MEMORY)
        release_memory(pipeline);
    return status;
}

enum ndt_status ndtd_pipeline_process(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                                      struct ndtd_scan_record *record, struct ndt_error *err)
{
    memset(record, 0, sizeof(*record));
    if (pipeline->is_watched)
        ndtd_points_view_begin(pipeline->view);
    pipeline->has_answered = 0;
    const enum ndt_status status = frame->type == NDT_MESSAGE_SCAN ? process_in_memory(pipeline, frame, record, err)
                                                                   : ndtd_pipeline_take_in(pipeline, frame, err);
    if (frame->type == NDT_MESSAGE_SCAN && status == NDT_OK)
        ndtd_pipeline_make_sound(pipeline, record);
    pipeline->events.odometry_restarts = pipeline->track.odometry_restarts;
    pipeline->events.too_late = pipeline->track.too_late;
    pipeline->events.transforms = pipeline->transforms.events;
    return status;
}

size_t ndtd_pipeline_expect(struct ndtd_pipeline *pipeline, struct ndtd_message *const *frames, size_t count)
{
    const int is_alone = pipeline->odometry != NULL || ndtd_extension_runs(pipeline->extension) ||
                         ndtd_scan_odometry_runs(pipeline->scan_odometry);
    const size_t together = is_alone ? 0 : ndtd_lookahead_begin(pipeline, frames, count);
    const int had_late = pipeline->has_late;
    struct ndt_error ignored; /* the frame is processed again in its turn */
    for (size_t i = 0; i < together; i++)
        if (frames[i]->type == NDT_MESSAGE_SCAN)
            ndtd_lookahead_predict(pipeline, frames[i]);
        else
            (void)ndtd_pipeline_take_in(pipeline, frames[i], &ignored);
    pipeline->has_late = had_late;
    if (together > 0)
        ndtd_lookahead_align(pipeline);
    return together;
}

/* Looks for a better place, and counts. */
static enum ndt_status watch_scan(struct ndtd_pipeline *pipeline, struct ndt_error *err)
{
    const struct ndtd_watch_report *report = ndtd_relocalizer_watch(pipeline->relocalizer);
    const enum ndt_status status = ndtd_relocalizer_watch_scan(pipeline->relocalizer, err);
    pipeline->events.map_checks = report->checks;
    pipeline->events.fits_elsewhere = report->elsewhere;
    pipeline->events.elsewhere_m = report->elsewhere_m;
    return status;
}

enum ndt_status ndtd_pipeline_follow_up(struct ndtd_pipeline *pipeline, struct ndt_error *err)
{
    const struct ndt_track_state *applied;
    if (!pipeline->has_answered)
        return watch_scan(pipeline, err);
    pipeline->has_answered = 0;
    const enum ndt_status status =
        ndtd_relocalizer_follow_up(pipeline->relocalizer, &pipeline->answered, &applied, err);
    if (!applied)
        return status;
    ndt_track_adopt(&pipeline->track, applied, 1);
    ndtd_pipeline_break_intervals(pipeline);
    ndtd_extension_stop(pipeline->extension);
    pipeline->has_start = 0;
    return status;
}
