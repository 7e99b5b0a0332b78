/* Reports the estimate after a scan as its result, and informs the parts of the pipeline about the scan. */
#include <stdio.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndtd/scan_result.h"
#include "ndtd/scan_state.h"
#include "pipeline_state.h"
#include "scan_order.h"

/* Turns the covariance of the sensor pose, from an alignment without a prior, into that of the base: both in the
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

void ndtd_pipeline_report_estimate(const struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                                   const struct ndt_track_state *estimate, struct ndtd_scan_record *record)
{
    struct ndt_align_result *result = &record->result;
    struct ndt_track_state at_stamp;
    double arm_m[3];
    for (int i = 0; i < 3; i++)
        arm_m[i] = estimate->T_map_base.t_m[i] - result->T_map_sensor.t_m[i];
    ndt_track_shift(&pipeline->track, estimate, -pipeline->matcher.scan.sweep.reference_s, &at_stamp);
    result->T_map_sensor = at_stamp.T_map_base;
    record->T_map_reference = estimate->T_map_base;
    record->twist = estimate->twist;
    record->has_twist = estimate->has_twist;
    if (alignment->has_covariance)
        memcpy(result->covariance, alignment->covariance, sizeof(alignment->covariance));
    else if (ndtd_has_prior(pipeline->settings))
        ndt_track_map_covariance(&at_stamp, result->covariance);
    else if (result->has_covariance)
        carry_covariance(result, arm_m);
    result->has_covariance |= alignment->has_covariance || ndtd_has_prior(pipeline->settings);
}

/* Refuses a result whose estimate is too uncertain: a direction that the scan does not observe rests on the prior
 * alone. */
static void check_certainty(const struct ndtd_pipeline *pipeline, const struct ndt_track_state *estimate,
                            struct ndt_align_result *result)
{
    const double deviation_m = ndt_track_position_deviation(estimate);
    char reason[96];
    if (!ndtd_has_prior(pipeline->settings) || deviation_m <= pipeline->settings->track.lost_deviation_m)
        return;
    snprintf(reason, sizeof(reason), "the position is known to %.1f m (one sigma), limit %.1f m", deviation_m,
             pipeline->settings->track.lost_deviation_m);
    ndtd_refuse(result, NDT_LOST, reason);
}

/* Reports the pose of an alignment that is not trusted, as a pose of the base at the stamp. */
static void report_alignment(const struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                             struct ndtd_scan_record *record)
{
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&scan->T_base_sensor);
    struct ndt_track_state found = alignment->predicted, at_stamp;
    found.T_map_base = ndt_pose_compose(&record->result.T_map_sensor, &T_sensor_base);
    ndt_track_shift(&pipeline->track, &found, -scan->sweep.reference_s, &at_stamp);
    record->T_map_reference = found.T_map_base;
    record->result.T_map_sensor = at_stamp.T_map_base;
}

/* Checks odometry and gyro against the motion that the scans found since the previous verified one. */
static void check_inputs(struct ndtd_pipeline *pipeline, const struct ndt_track_state *before,
                         const struct ndt_track_state *verified)
{
    struct ndt_twist seen = {0};
    int is_seen = 0;
    if (before) {
        const double dt_s = ndt_track_seconds(before->stamp_ns, verified->stamp_ns);
        const struct ndt_pose D = ndt_pose_between(&before->T_map_base, &verified->T_map_base);
        is_seen = dt_s > 0 && dt_s <= pipeline->track.params.max_prediction_s;
        if (is_seen)
            seen = ndt_pose_log(&D, dt_s);
    }
    for (int i = 0; i < NDT_TRACK_INPUT_COUNT; i++) {
        ndt_track_input_check_scan(&pipeline->inputs[i], &pipeline->track, (enum ndt_track_input)i, verified,
                                   is_seen ? &seen : NULL);
        pipeline->events.inputs[i] = (struct ndtd_input_fault){
            pipeline->inputs[i].faults, pipeline->inputs[i].fault, pipeline->inputs[i].value};
    }
}

static void follow_inputs(struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    for (int i = 0; i < NDT_TRACK_INPUT_COUNT; i++)
        ndt_track_input_check_follow(&pipeline->inputs[i], &pipeline->track, (enum ndt_track_input)i, stamp_ns);
}

/* Commits the alignment to the estimator; if it converged, the pose is verified. */
static void take_over(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                      struct ndt_align_result *result)
{
    const struct ndt_track_state *known = ndtd_relocalizer_verified(pipeline->relocalizer);
    const int is_verified = known != NULL;
    const struct ndt_track_state before = is_verified ? *known : alignment->updated;
    ndt_track_commit(&pipeline->track, &alignment->updated);
    check_certainty(pipeline, &alignment->updated, result);
    if (result->outcome != NDT_CONVERGED || pipeline->matcher.scan.is_late)
        return;
    ndtd_relocalizer_verify(pipeline->relocalizer, &alignment->updated, result);
    check_inputs(pipeline, is_verified ? &before : NULL, &alignment->updated);
}

void ndtd_pipeline_conclude(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                            struct ndtd_scan_record *record)
{
    const struct ndt_align_result *result = &record->result;
    if (result->outcome == NDT_NO_GUESS)
        return;
    if (!pipeline->matcher.scan.is_late)
        follow_inputs(pipeline, alignment->predicted.stamp_ns);
    if (alignment->is_updated)
        take_over(pipeline, alignment, &record->result);
    else
        ndt_track_coast(&pipeline->track, &alignment->predicted);
    const int is_refused = !alignment->is_updated && result->evaluations > 0 && result->outcome != NDT_DEADLINE &&
                           !ndtd_state_is_trusted(pipeline->state) &&
                           !ndtd_extension_is_extending(pipeline->extension);
    if (!is_refused)
        ndtd_pipeline_report_estimate(pipeline, alignment,
                                      alignment->is_updated ? &alignment->updated : &alignment->predicted, record);
    else
        report_alignment(pipeline, alignment, record);
}

void ndtd_pipeline_keep_state(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment)
{
    const struct ndt_track_state *state = &pipeline->track.state;
    const int is_updated =
        alignment->is_updated && alignment->step.is_measured && ndt_track_is_same_state(&alignment->found, state);
    const int is_followed = pipeline->is_followed && alignment->before == state &&
                            (is_updated || ndt_track_is_same_state(&alignment->predicted, state));
    struct ndt_track_step step = alignment->step;
    step.is_measured = is_updated;
    ndt_track_window_add(&pipeline->window, &pipeline->track, is_followed ? &step : NULL,
                         ndtd_state_is_trusted(pipeline->state));
}

/* Resets an estimate that is not finite, which would reject all scans for ever. The estimator never stores one;
 * this is a last defence. */
static void reinitialise(struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    const struct ndt_track_restarts restarts = pipeline->track.odometry_restarts;
    const struct ndt_track_too_late too_late = pipeline->track.too_late;
    const uint32_t starts = pipeline->track.starts;
    const struct ndt_track_state *from = ndtd_relocalizer_reference(pipeline->relocalizer);
    const int has_pose = from && ndt_track_state_is_plausible(from);
    ndt_track_init(&pipeline->track, &pipeline->settings->track);
    ndt_track_window_clear(&pipeline->window);
    pipeline->track.odometry_restarts = restarts;
    pipeline->track.too_late = too_late;
    pipeline->track.starts = starts + 1; /* whoever followed the track sees that it began anew */
    for (int i = 0; i < NDT_TRACK_INPUT_COUNT; i++)
        pipeline->inputs[i] = (struct ndt_track_input_check){.faults = pipeline->inputs[i].faults};
    if (has_pose)
        ndt_track_reset(&pipeline->track, stamp_ns, &from->T_map_base, NULL, NULL);
    ndtd_relocalizer_start_at(pipeline->relocalizer, has_pose ? &pipeline->track.state : NULL);
    ndtd_extension_stop(pipeline->extension);
    pipeline->state = NDT_STATE_INITIALISING;
    ndtd_lookahead_forget(pipeline->lookahead);
    ndtd_scan_order_forget(pipeline);
    pipeline->events.reinitialised++;
}

void ndtd_pipeline_make_sound(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record)
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
