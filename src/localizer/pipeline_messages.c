/* The pipeline's handling of messages that are no scans, and of given poses. */
#include <string.h>

#include "ndtd/motion_sample.h"
#include "ndtd/scan_state.h"
#include "pipeline_state.h"
#include "scan_order.h"

void ndtd_pipeline_break_intervals(struct ndtd_pipeline *pipeline)
{
    for (int i = 0; i < NDT_TRACK_INPUT_COUNT; i++)
        ndt_track_input_check_break(&pipeline->inputs[i]);
    pipeline->lean.last_ns = 0;
}

void ndtd_pipeline_set_pose_at(struct ndtd_pipeline *pipeline, const struct ndt_pose_message *start,
                               int64_t stamp_ns)
{
    pipeline->has_start = 0;
    if (!ndt_pose_is_finite(&start->pose))
        return;
    /* The motion does not depend on the pose, so the twist of the track stays. */
    const struct ndt_twist *twist =
        ndtd_relocalizer_keep_track(pipeline->relocalizer, stamp_ns, ndtd_state_is_trusted(pipeline->state));
    ndtd_pipeline_break_intervals(pipeline);
    ndtd_scan_order_forget(pipeline);
    ndt_track_reset(&pipeline->track, stamp_ns, &start->pose, start->has_twist ? &start->twist : twist,
                    start->has_covariance ? start->covariance : NULL);
    ndtd_extension_stop(pipeline->extension);
    pipeline->state = NDT_STATE_INITIALISING; /* until a scan confirms the pose */
    ndtd_relocalizer_start_at(pipeline->relocalizer, &pipeline->track.state);
    ndtd_lookahead_forget(pipeline->lookahead);
}

void ndtd_pipeline_set_initial_pose(struct ndtd_pipeline *pipeline, const struct ndt_pose_message *start)
{
    if (pipeline->odometry) {
        ndtd_odometry_mode_restart(pipeline->odometry);
        return;
    }
    if (start->stamp_ns != 0) {
        ndtd_pipeline_set_pose_at(pipeline, start, start->stamp_ns);
        return;
    }
    pipeline->start = *start;
    pipeline->has_start = 1;
}

/* Notes motion from before the last scan. Samples of its stamp or later belong to the next one. */
static void note_late(struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    pipeline->has_late |= pipeline->last_scan.is_known && stamp_ns < pipeline->last_scan.stamp_ns;
}

void ndtd_pipeline_take_late(struct ndtd_pipeline *pipeline)
{
    if (pipeline->has_late && pipeline->state == NDT_STATE_TRACKING &&
        !ndtd_relocalizer_is_active(pipeline->relocalizer))
        ndt_track_window_renew(&pipeline->window, &pipeline->track);
    pipeline->has_late = 0;
}

static enum ndt_status process_pose(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                                    struct ndt_error *err)
{
    struct ndt_pose_message message;
    enum ndt_status status = ndt_pose_message_decode(frame->data, frame->size, frame->type, &message, err);
    if (status != NDT_OK)
        return status;
    if (frame->type == NDT_MESSAGE_INITIAL_POSE && pipeline->odometry) {
        ndtd_odometry_mode_restart(pipeline->odometry);
    } else if (frame->type == NDT_MESSAGE_INITIAL_POSE) {
        ndtd_pipeline_set_pose_at(pipeline, &message, message.stamp_ns);
    } else {
        const struct ndt_track_odometry_sample sample = ndtd_odometry_sample(&message);
        ndt_track_odometry(&pipeline->track, &sample);
        note_late(pipeline, sample.stamp_ns);
        if (pipeline->odometry)
            ndtd_odometry_mode_wheels(pipeline->odometry, &sample);
        ndtd_extension_wheels(pipeline->extension, &sample);
    }
    return NDT_OK;
}

static enum ndt_status process_gnss(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                                    struct ndt_error *err)
{
    struct ndtd_gnss_fix *gnss = &pipeline->gnss;
    const struct ndt_gnss_message *message = &gnss->message;
    const enum ndt_status status = ndt_gnss_decode(frame->data, frame->size, &gnss->message, err);
    if (status != NDT_OK)
        return status;
    struct ndt_track_gnss_sample sample = {.stamp_ns = message->stamp_ns};
    const double *antenna_m = ndtd_transforms_antenna(&pipeline->transforms, &pipeline->settings->frames,
                                                      message->has_antenna ? message->antenna : NULL);
    memcpy(gnss->antenna_m, antenna_m, sizeof(gnss->antenna_m));
    memcpy(sample.antenna_m, antenna_m, sizeof(sample.antenna_m));
    gnss->is_known = 1;
    memcpy(sample.position_m, message->position_m, sizeof(sample.position_m));
    memcpy(sample.deviation_m, message->deviation_m, sizeof(sample.deviation_m));
    if (message->has_deviation)
        ndt_track_gnss(&pipeline->track, &sample);
    return NDT_OK;
}

static enum ndt_status process_imu(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                                   struct ndt_error *err)
{
    struct ndt_imu_message message;
    const enum ndt_status status = ndt_imu_decode(frame->data, frame->size, &message, err);
    if (status != NDT_OK)
        return status;
    const struct ndt_track_imu_sample sample =
        ndtd_imu_sample(&message, &pipeline->transforms, &pipeline->settings->frames);
    ndt_track_imu(&pipeline->track, &sample);
    note_late(pipeline, sample.stamp_ns);
    if (pipeline->odometry)
        ndtd_odometry_mode_imu(pipeline->odometry, &sample);
    ndtd_extension_imu(pipeline->extension, &sample);
    return NDT_OK;
}

/* Sets a transform for the following scans; lookahead takes no scan that follows one. */
static enum ndt_status process_transform(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                                         struct ndt_error *err)
{
    struct ndt_pose_message message;
    const enum ndt_status status = ndt_pose_message_decode(frame->data, frame->size, frame->type, &message, err);
    return status == NDT_OK ? ndtd_transforms_put(&pipeline->transforms, &message, err) : status;
}

enum ndt_status ndtd_pipeline_take_in(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
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
