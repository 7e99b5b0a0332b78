/** @file
 * @brief The path of a scan from the bytes of a message to a pose, and the objects it uses.
 *
 * A scan passes, in this order:
 *
 *   decode_points   the points of the message become the cloud pipeline->scan
 *                   in scan_match.c:
 *   predict         the estimator predicts pose and motion at the reference moment of the sweep
 *   preprocess      crop, deskew, voxel filter and sampling on the host, or a plan for a backend that does it
 *   follow_former   the track that an initial pose in mid-drive has ended is aligned, too (scan_former.c)
 *   first_pass      the aligner refines the predicted pose, with the prediction as prior; the estimator is updated
 *   seek            other guesses and motions, where the prediction is not trusted or not confirmed (scan_seek.c)
 *   rivals          other places along directions that the scan hardly observes (scan_rivals.c)
 *   compare_former  the former track or the pose that was given, or neither yet (scan_former.c)
 *   recover         while the pose is not confirmed: places are searched, followed and believed (scan_recover.c)
 *   second_pass     with deskew_passes = 2: deskews with the motion that the first pass found, aligns again
 *   assess          the confidence of the result (scan_estimate.c)
 *   doubt           a place that is not believed yet is reported as lost (scan_recover.c)
 *                   and here again:
 *   conclude        the state of the estimator follows; the result is the estimate, carried to the stamp
 *
 * The state of the estimator is always at the reference moment. A pose that was carried to the stamp is output
 * only: fed back, an error of the velocity would grow from scan to scan where stamps lie at the begin of the sweep.
 *
 * The raw points are copied once, from the message into pipeline->scan: the message itself is moved from the socket
 * into the queue and read there (a replay reads it in the buffer of the bag), and recording writes the same bytes.
 * Of the sample that preprocessing selects (preprocess.sample_count points) there are three copies: the
 * preprocessor's, the aligner's, which is rotated by the guess, and the backend's. Nothing here allocates once the
 * buffers have held the largest scan. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "drain.h"
#include "hypotheses.h"
#include "ndtd/scan_result.h"
#include "scan_former.h"
#include "scan_localize.h"
#include "scan_match.h"
#include "scan_order.h"
#include "scan_points.h"

/* Gain of the running mean of the scan time. */
static const double SCAN_US_GAIN = 0.2;
/* Below, the time of a scan is not that of its points. */
enum { LEAST_POINTS_TIMED = 5000 };

/* ---- one scan ---- */

/* Scans whose points are preprocessed with those of this one. */
static size_t sensors_together(const struct ndtd_pipeline *pipeline)
{
    const struct ndtd_frames *frames = &pipeline->settings->frames;
    return frames->merge_sensors ? frames->sensor_count : 1;
}

/* The deadline has passed `us` after the first of the points was read: each takes longer than that. Twice as long,
 * and the next scan has a quarter of the points where all of the time went into these. */
static void read_fewer(struct ndtd_pipeline *pipeline, double us, uint64_t points)
{
    if (points >= LEAST_POINTS_TIMED)
        pipeline->point_us = fmax(pipeline->point_us, 2 * us / (double)points);
}

static enum ndt_status decode_points(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                                     struct ndtd_scan_record *record, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    record->points_raw = frame->scan.points.count;
    if (!ndtd_drain_take_points(pipeline, frame, record)) {
        const struct ndt_scan_header scan = ndtd_scan_thinned(pipeline, &frame->scan, sensors_together(pipeline));
        status = ndt_scan_points(frame->data, frame->size, &scan, pipeline->deadline_us, &pipeline->scan, err);
        record->decode_us = ndt_clock_us() - start_us;
        if (status == NDT_ERR_CANCELLED) /* goes on without points: it is answered with the prediction */
            read_fewer(pipeline, record->decode_us, scan.points.count);
    }
    if (status != NDT_OK && status != NDT_ERR_CANCELLED)
        return status;
    record->points_thinned = record->points_raw - pipeline->scan.count;
    if (record->points_thinned > 0) {
        pipeline->events.thinned++;
        pipeline->events.thinned_points = record->points_raw;
        pipeline->events.thinned_read = pipeline->scan.count;
    }
    return NDT_OK;
}

/* The time of a point follows slower scans at once and faster ones slowly. Small scans say nothing about it. */
static void follow_point_time(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    const double points = (double)(record->points_raw - record->points_thinned),
                 together = (double)pipeline->scan.count; /* with those of other sensors */
    if (points < LEAST_POINTS_TIMED || together < points)
        return;
    const double point_us = record->decode_us / points + record->preprocess_us / together;
    pipeline->point_us = fmax(point_us, pipeline->point_us + SCAN_US_GAIN * (point_us - pipeline->point_us));
}

/* Turns the covariance of the sensor, as an alignment without a prior gives it, into that of the base: both in the
 * axes of the map, about points that are `arm` apart. */
static void carry_covariance(struct ndt_align_result *result, const double arm_m[3])
{
    const double cross[9] = {0, -arm_m[2], arm_m[1], arm_m[2], 0, -arm_m[0], -arm_m[1], arm_m[0], 0};
    double transposed[36] = {0}, covariance[36];
    for (int i = 0; i < 6; i++)
        transposed[7 * i] = 1;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            transposed[6 * (3 + j) + i] = -cross[3 * i + j]; /* moved by phi x arm */
    ndt_congruence(6, 6, transposed, result->covariance, covariance);
    memcpy(result->covariance, covariance, sizeof(covariance));
}

/* Writes an estimate as the result, carried from the reference moment to the stamp. */
static void report_estimate(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                            const struct ndt_track_state *estimate)
{
    struct ndtd_scan_record *record = job->record;
    struct ndt_track_state at_stamp;
    double arm_m[3];
    for (int i = 0; i < 3; i++)
        arm_m[i] = estimate->T_map_base.t_m[i] - record->result.T_map_sensor.t_m[i];
    ndt_track_shift(&pipeline->track, estimate, -job->sweep.reference_s, &at_stamp);
    record->result.T_map_sensor = at_stamp.T_map_base;
    record->T_map_reference = estimate->T_map_base;
    record->twist = estimate->twist;
    record->has_twist = estimate->has_twist;
    if (job->has_covariance)
        memcpy(record->result.covariance, job->covariance, sizeof(job->covariance));
    else if (ndtd_scan_has_prior(pipeline))
        ndt_track_map_covariance(&at_stamp, record->result.covariance);
    else if (record->result.has_covariance)
        carry_covariance(&record->result, arm_m);
    record->result.has_covariance |= job->has_covariance || ndtd_scan_has_prior(pipeline);
}

/* An alignment that the prior vouches for in vain: what the scan does not observe is not known either. */
static void check_certainty(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const double deviation_m = ndt_track_position_deviation(&job->updated);
    char reason[96];
    if (!ndtd_scan_has_prior(pipeline) || deviation_m <= pipeline->settings->track.lost_deviation_m)
        return;
    snprintf(reason, sizeof(reason), "the position is known to %.1f m (one sigma), limit %.1f m", deviation_m,
             pipeline->settings->track.lost_deviation_m);
    ndtd_scan_refuse(job->record, NDT_LOST, reason);
}

/* Reports the pose of an alignment that is not trusted, as a pose of the base at the stamp. */
static void report_alignment(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    struct ndt_align_result *result = &job->record->result;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(job->T_base_sensor);
    struct ndt_track_state found = job->predicted, at_stamp;
    found.T_map_base = ndt_pose_compose(&result->T_map_sensor, &T_sensor_base);
    ndt_track_shift(&pipeline->track, &found, -job->sweep.reference_s, &at_stamp);
    job->record->T_map_reference = found.T_map_base;
    result->T_map_sensor = at_stamp.T_map_base;
}

/* Whether odometry and gyro told the motion that the scans found since the one that was verified before. */
static void check_inputs(struct ndtd_pipeline *pipeline, const struct ndt_track_state *before)
{
    const double dt_s = ndt_track_seconds(before->stamp_ns, pipeline->verified.stamp_ns);
    const struct ndt_pose D = ndt_pose_between(&before->T_map_base, &pipeline->verified.T_map_base);
    const int is_seen = pipeline->is_verified && dt_s > 0 && dt_s <= pipeline->track.params.max_prediction_s;
    const struct ndt_twist seen = is_seen ? ndt_pose_log(&D, dt_s) : (struct ndt_twist){0};
    for (int i = 0; i < NDT_TRACK_INPUT_COUNT; i++) {
        ndt_track_input_check_scan(&pipeline->inputs[i], &pipeline->track, (enum ndt_track_input)i,
                                   &pipeline->verified, is_seen ? &seen : NULL);
        pipeline->events.inputs[i] = (struct ndtd_input_fault){
            pipeline->inputs[i].faults, pipeline->inputs[i].fault, pipeline->inputs[i].value};
    }
}

static void forget_intervals(struct ndtd_pipeline *pipeline)
{
    for (int i = 0; i < NDT_TRACK_INPUT_COUNT; i++)
        ndt_track_input_check_break(&pipeline->inputs[i]);
}

/* The state of the estimator follows the scan, and the result is the estimate. */
static void conclude(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    const struct ndt_track_state *estimate = job->is_updated ? &job->updated : &job->predicted;
    if (job->record->result.outcome == NDT_NO_GUESS)
        return;
    if (job->is_updated) {
        ndt_track_commit(&pipeline->track, &job->updated);
        check_certainty(pipeline, job);
        if (job->record->result.outcome == NDT_CONVERGED && !job->is_late) {
            const struct ndt_track_state before = pipeline->verified;
            pipeline->verified = job->updated;
            check_inputs(pipeline, &before);
            pipeline->is_verified = 1;
            pipeline->fastest_mps = fmax(pipeline->fastest_mps, fmin(ndtd_speed_mps(&job->updated.twist),
                                                                     pipeline->settings->recovery.max_speed_mps));
            pipeline->has_told = 0;
            ndtd_former_forget(pipeline);
        }
    } else {
        ndt_track_coast(&pipeline->track, &job->predicted);
    }
    if (job->is_updated || job->record->result.evaluations == 0)
        report_estimate(pipeline, job, estimate);
    else
        report_alignment(pipeline, job);
}

/* A scan that is held is answered with the prediction at its stamp. */
static void answer_merged(const struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    if (!ndt_track_predict(&pipeline->track, job->record->stamp_ns, &job->predicted)) {
        ndtd_scan_refuse(job->record, NDT_NO_GUESS, "no initial pose yet");
        return;
    }
    ndtd_scan_refuse(job->record, NDT_MERGED, "its points go with the scan that completes the sweep");
    report_estimate(pipeline, job, &job->predicted);
}

static void set_pose_at(struct ndtd_pipeline *pipeline, const struct ndt_pose_message *start, int64_t stamp_ns)
{
    pipeline->has_start = 0;
    if (!ndt_pose_is_finite(&start->pose))
        return;
    ndtd_former_keep(pipeline, stamp_ns);
    forget_intervals(pipeline);
    ndtd_scan_order_forget(pipeline);
    /* Wherever it is, it moves as before. */
    const struct ndt_twist *twist =
        pipeline->former.track.count > 0 ? &pipeline->former.track.list[0].state.twist : NULL;
    ndt_track_reset(&pipeline->track, stamp_ns, &start->pose, start->has_twist ? &start->twist : twist,
                    start->has_covariance ? start->covariance : NULL);
    pipeline->state = NDT_STATE_INITIALISING; /* until a scan confirms it */
    pipeline->is_verified = pipeline->recovery.is_active = 0;
    pipeline->has_told = 1;
    pipeline->told = pipeline->track.state;
    ndtd_drain_forget(pipeline->drain);
}

/* The times of one of several sensors that are merged; what is wrong with them is found with all. */
static void find_times(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan)
{
    const struct ndtd_timed_scan part = {
        .frame_id = scan->frame_id, .stamp_ns = scan->stamp_ns, .is_part = 1, .points = &pipeline->scan};
    struct ndt_preprocess_params params = pipeline->settings->preprocess;
    struct ndt_sweep sweep;
    for (int k = 0; k < 3; k++) { /* that box is in the base frame */
        params.crop_min_m[k] = -INFINITY;
        params.crop_max_m[k] = INFINITY;
    }
    if (params.deskew == NDT_DESKEW_OFF)
        return;
    if (ndtd_scan_times_find(&pipeline->times, &part, &params, &sweep, &pipeline->events.times, NULL) == NDT_OK &&
        params.deskew == NDT_DESKEW_OFF)
        ndtd_scan_times_drop(&pipeline->scan);
}

/* Holds the points until the other sensors have sent theirs, or adds those of the others. */
static enum ndt_status merge_sensors(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                     const struct ndt_scan_header *scan, int *is_complete, struct ndt_error *err)
{
    static const struct ndt_pose in_base = {.q_xyzw = {0, 0, 0, 1}};
    find_times(pipeline, scan);
    const enum ndt_status status =
        ndtd_scan_merge_add(pipeline->merge, pipeline->settings, scan, &pipeline->scan, is_complete, err);
    if (status != NDT_OK)
        return status;
    job->frame_id = NULL;
    if (!*is_complete)
        answer_merged(pipeline, job);
    job->T_base_sensor = &in_base;
    job->preprocess = ndtd_scan_merge_params(&pipeline->settings->preprocess);
    return NDT_OK;
}

/* An estimate that is not finite would silence the scans for ever. Functions of the estimator never store one; this
 * is for what was not thought of. */
static void reinitialise(struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    const struct ndt_track_restarts restarts = pipeline->track.odometry_restarts;
    const struct ndt_track_state *from = pipeline->is_verified ? &pipeline->verified : &pipeline->told;
    const int has_pose = (pipeline->is_verified || pipeline->has_told) && ndt_track_state_is_plausible(from);
    ndt_track_init(&pipeline->track, &pipeline->settings->track);
    pipeline->track.odometry_restarts = restarts;
    for (int i = 0; i < NDT_TRACK_INPUT_COUNT; i++)
        pipeline->inputs[i] = (struct ndt_track_input_check){.faults = pipeline->inputs[i].faults};
    if (has_pose)
        ndt_track_reset(&pipeline->track, stamp_ns, &from->T_map_base, NULL, NULL);
    pipeline->is_verified = pipeline->recovery.is_active = 0;
    pipeline->has_told = has_pose;
    pipeline->told = pipeline->track.state;
    pipeline->state = NDT_STATE_INITIALISING;
    ndtd_drain_forget(pipeline->drain);
    ndtd_scan_order_forget(pipeline);
    pipeline->events.reinitialised++;
}

/* Makes what leaves the pipeline, and what stays in it, finite. */
static void make_sound(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record)
{
    if (pipeline->track.has_pose && !ndt_track_state_is_plausible(&pipeline->track.state)) {
        reinitialise(pipeline, record->stamp_ns);
        record->state = pipeline->state;
    }
    if (ndtd_scan_record_is_sound(record))
        return;
    pipeline->events.unsound++;
    ndtd_scan_record_reject(record, "the result is not finite");
}

/* Notes what Autoware's node warns of; changes nothing. */
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

static enum ndt_status process_scan(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                                    struct ndtd_scan_record *record, struct ndt_error *err)
{
    const struct ndtd_frames *frames = &pipeline->settings->frames;
    struct ndtd_scan_job job = {.record = record,
                                .frame_id = frame->scan.frame_id,
                                .preprocess = pipeline->settings->preprocess,
                                .T_base_sensor =
                                    ndtd_transforms_sensor(&pipeline->transforms, frames, frame->scan.frame_id)};
    struct ndt_error why = {0};
    record->seq = frame->scan.seq;
    record->stamp_ns = frame->scan.stamp_ns;
    record->confidence = record->margin = NAN;
    record->state = pipeline->state;
    record->has_sensor = 1;
    record->sensor.T_base_sensor = *job.T_base_sensor;
    memcpy(record->sensor.frame_id, frame->scan.frame_id, sizeof(record->sensor.frame_id));
    if (pipeline->is_stopped) {
        ndtd_scan_refuse(record, NDT_REJECTED, "localising is stopped");
        return NDT_OK;
    }
    if (ndtd_scan_is_repeated(pipeline, &frame->scan, record))
        return NDT_OK;
    enum ndt_status status = decode_points(pipeline, frame, record, err);
    int is_complete = 1;
    if (status == NDT_OK && frames->merge_sensors)
        status = merge_sensors(pipeline, &job, &frame->scan, &is_complete, err);
    if (status != NDT_OK || !is_complete)
        return status;
    if (pipeline->has_start)
        set_pose_at(pipeline, &pipeline->start, record->stamp_ns);
    job.preprocess.deadline_us = pipeline->deadline_us;
    status = ndtd_scan_match(pipeline, &job, &why);
    if (status == NDT_ERR_MEMORY || status == NDT_ERR_DEVICE) { /* the next scan would fail as well */
        if (err)
            *err = why;
        return status;
    }
    ndtd_scan_order_keep(pipeline, &frame->scan);
    if (status != NDT_OK)
        ndtd_scan_refuse(record, status == NDT_ERR_CANCELLED ? NDT_DEADLINE : NDT_REJECTED, why.text);
    conclude(pipeline, &job);
    ndtd_scan_follow_state(pipeline, &job);
    ndtd_scan_keep(pipeline, &job);
    if (pipeline->is_watched)
        ndtd_scan_points_keep(pipeline, &job);
    if (status == NDT_ERR_CANCELLED)
        read_fewer(pipeline, record->decode_us + record->preprocess_us, pipeline->scan.count);
    else
        follow_point_time(pipeline, record);
    const double took_us = record->decode_us + record->preprocess_us + record->result.align_us;
    pipeline->scan_us += (pipeline->scan_us > 0 ? SCAN_US_GAIN : 1) * (took_us - pipeline->scan_us);
    validate(pipeline, record, took_us);
    return NDT_OK;
}

static void release_memory(struct ndtd_pipeline *pipeline)
{
    ndt_cloud_free(&pipeline->scan);
    ndt_preprocessor_release(pipeline->preprocessor);
    ndtd_scan_merge_release(pipeline->merge);
    ndtd_drain_release(pipeline->drain);
    ndtd_scan_points_release(pipeline->view);
    pipeline->last_points = NULL;
    pipeline->localize.has_scan = 0;
}

/* Where memory does not suffice, the buffers of larger scans are given back and the scan is tried once more: one
 * that is too large must not keep the memory of those that follow. */
static enum ndt_status process_in_memory(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
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

/* ---- other frames ---- */

static enum ndt_status process_pose(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                                    struct ndt_error *err)
{
    struct ndt_pose_message message;
    enum ndt_status status = ndt_pose_message_decode(frame->data, frame->size, frame->type, &message, err);
    if (status != NDT_OK)
        return status;
    if (frame->type == NDT_MESSAGE_INITIAL_POSE) {
        set_pose_at(pipeline, &message, message.stamp_ns);
    } else {
        const struct ndt_track_odometry_sample sample = {.stamp_ns = message.stamp_ns,
                                                         .has_pose = message.has_pose,
                                                         .has_twist = message.has_twist,
                                                         .T_odom_base = message.pose,
                                                         .twist = message.twist};
        ndt_track_odometry(&pipeline->track, &sample);
    }
    return NDT_OK;
}

static enum ndt_status process_gnss(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                                    struct ndt_error *err)
{
    const enum ndt_status status = ndt_gnss_decode(frame->data, frame->size, &pipeline->gnss, err);
    if (status != NDT_OK)
        return status;
    const struct ndt_gnss_message *message = &pipeline->gnss;
    struct ndt_track_gnss_sample sample = {.stamp_ns = message->stamp_ns};
    const double *antenna_m = ndtd_transforms_antenna(&pipeline->transforms, &pipeline->settings->frames,
                                                      message->has_antenna ? message->antenna : NULL);
    memcpy(pipeline->antenna_m, antenna_m, sizeof(pipeline->antenna_m));
    memcpy(sample.antenna_m, antenna_m, sizeof(sample.antenna_m));
    pipeline->has_gnss = 1;
    memcpy(sample.position_m, message->position_m, sizeof(sample.position_m));
    memcpy(sample.deviation_m, message->deviation_m, sizeof(sample.deviation_m));
    if (message->has_deviation)
        ndt_track_gnss(&pipeline->track, &sample);
    return NDT_OK;
}

static enum ndt_status process_imu(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                                   struct ndt_error *err)
{
    struct ndt_imu_message message;
    const enum ndt_status status = ndt_imu_decode(frame->data, frame->size, &message, err);
    if (status != NDT_OK)
        return status;
    struct ndt_track_imu_sample sample = {.stamp_ns = message.stamp_ns,
                                          .has_acceleration = message.has_acceleration};
    struct ndt_pose turn =
        *ndtd_transforms_imu(&pipeline->transforms, &pipeline->settings->frames, message.frame_id);
    memset(turn.t_m, 0, sizeof(turn.t_m));
    ndt_pose_apply(&turn, message.angular_velocity_radps, sample.angular_velocity_radps);
    ndt_pose_apply(&turn, message.linear_acceleration_mps2, sample.acceleration_mps2);
    ndt_track_imu(&pipeline->track, &sample);
    return NDT_OK;
}

/* From the next scan on; the drain lets no scan behind it go ahead. */
static enum ndt_status process_transform(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                                         struct ndt_error *err)
{
    struct ndt_pose_message message;
    const enum ndt_status status = ndt_pose_message_decode(frame->data, frame->size, frame->type, &message, err);
    return status == NDT_OK ? ndtd_transforms_put(&pipeline->transforms, &message, err) : status;
}

static enum ndt_status process_other(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                                     struct ndt_error *err)
{
    switch (frame->type) {
    case NDT_MESSAGE_INITIAL_POSE:
    case NDT_MESSAGE_ODOMETRY:
        return process_pose(pipeline, frame, err);
    case NDT_MESSAGE_GNSS:
        return process_gnss(pipeline, frame, err);
    case NDT_MESSAGE_IMU:
        return process_imu(pipeline, frame, err);
    case NDT_MESSAGE_TRANSFORM:
        return process_transform(pipeline, frame, err);
    default:
        return NDT_OK;
    }
}

enum ndt_status ndtd_pipeline_frame(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                                    struct ndtd_scan_record *record, struct ndt_error *err)
{
    memset(record, 0, sizeof(*record));
    if (pipeline->is_watched)
        ndtd_scan_points_begin(pipeline->view);
    pipeline->last_points = NULL;
    pipeline->localize.has_scan = 0;
    const enum ndt_status status = frame->type == NDT_MESSAGE_SCAN ? process_in_memory(pipeline, frame, record, err)
                                                                   : process_other(pipeline, frame, err);
    if (frame->type == NDT_MESSAGE_SCAN && status == NDT_OK)
        make_sound(pipeline, record);
    pipeline->events.odometry_restarts = pipeline->track.odometry_restarts;
    pipeline->events.transforms = pipeline->transforms.events;
    return status;
}

size_t ndtd_pipeline_expect(struct ndtd_pipeline *pipeline, struct ndtd_frame *const *frames, size_t count)
{
    const size_t together = ndtd_drain_begin(pipeline, frames, count);
    struct ndt_error ignored; /* each frame has its turn */
    for (size_t i = 0; i < together; i++)
        if (frames[i]->type == NDT_MESSAGE_SCAN)
            ndtd_drain_predict(pipeline, frames[i]);
        else
            (void)process_other(pipeline, frames[i], &ignored);
    if (together > 0)
        ndtd_drain_align(pipeline);
    return together;
}

void ndtd_pipeline_set_initial_pose(struct ndtd_pipeline *pipeline, const struct ndt_pose_message *start)
{
    if (start->stamp_ns != 0) {
        set_pose_at(pipeline, start, start->stamp_ns);
        return;
    }
    pipeline->start = *start;
    pipeline->has_start = 1;
}

int ndtd_pipeline_last_scan(const struct ndtd_pipeline *pipeline, const struct ndt_cloud **points,
                            struct ndt_pose *T_map_sensor)
{
    *points = pipeline->last_points;
    *T_map_sensor = pipeline->T_map_last;
    return pipeline->last_points != NULL;
}
