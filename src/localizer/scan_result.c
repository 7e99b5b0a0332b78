#include "ndtd/scan_result.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/limits.h"

_Static_assert(sizeof(((struct ndt_result_message *)0)->sensor) == NDTD_FRAME_ID_MAX, "one name in both");

static int are_within(const double *values, size_t count, double limit)
{
    int are = 1;
    for (size_t i = 0; i < count; i++)
        are &= fabs(values[i]) <= limit; /* false for NaN */
    return are;
}

static int is_pose(const struct ndt_pose *pose)
{
    return are_within(pose->t_m, 3, NDT_LIMIT_POSITION_M) && are_within(pose->q_xyzw, 4, 1.01);
}

int ndtd_scan_record_is_sound(const struct ndtd_scan_record *record)
{
    const struct ndt_align_result *result = &record->result;
    return is_pose(&result->T_map_sensor) && are_within(result->weak_axes[0], 18, DBL_MAX) &&
           (!result->has_covariance || are_within(result->covariance, 36, DBL_MAX)) &&
           (!record->has_twist || are_within(record->twist.v_mps, 6, DBL_MAX)) &&
           (!record->has_guess || is_pose(&record->T_map_guess));
}

void ndtd_scan_record_reject(struct ndtd_scan_record *record, const char *reason)
{
    record->result = (struct ndt_align_result){.outcome = NDT_REJECTED};
    snprintf(record->result.reason, sizeof(record->result.reason), "%.*s", (int)sizeof(record->result.reason) - 1,
             reason);
    record->T_map_reference = (struct ndt_pose){.t_m = {0}};
    record->twist = (struct ndt_twist){.v_mps = {0}};
    record->confidence = record->margin = NAN;
    record->innovation = record->weakest = 0;
    record->has_twist = record->has_innovation = record->has_guess = 0;
    record->is_doubted = record->is_ahead = record->has_protection = 0;
    record->trace = NULL;
    record->trace_count = 0;
}

void ndtd_scan_result(const struct ndtd_scan_record *record, struct ndt_result_message *message)
{
    *message = (struct ndt_result_message){.seq = record->seq,
                                           .stamp_ns = record->stamp_ns,
                                           .frame_id = "map",
                                           .result = record->result,
                                           .has_twist = record->has_twist,
                                           .twist = record->twist,
                                           .has_confidence = !isnan(record->confidence),
                                           .confidence = record->confidence,
                                           .has_innovation = record->has_innovation,
                                           .innovation = sqrt(record->innovation),
                                           .has_state = 1,
                                           .state = record->state,
                                           .has_margin = !isnan(record->margin),
                                           .margin = record->margin,
                                           .has_guess = record->has_guess,
                                           .T_map_guess = record->T_map_guess,
                                           .has_hypotheses = 1,
                                           .hypotheses = record->hypotheses,
                                           .has_sensor = record->has_sensor,
                                           .has_T_base_sensor = record->has_sensor,
                                           .T_base_sensor = record->sensor.T_base_sensor,
                                           .has_protection = record->has_protection,
                                           .protection = record->protection,
                                           .decode_us = record->decode_us,
                                           .queue_us = record->queue_us,
                                           .preprocess_us = record->preprocess_us,
                                           .upload_us = record->upload_us,
                                           .publish_us = record->publish_us};
    if (record->is_odometry)
        snprintf(message->frame_id, sizeof(message->frame_id), "odom");
    memcpy(message->sensor, record->sensor.frame_id, sizeof(message->sensor));
    if (record->result.outcome == NDT_NO_GUESS) /* an unknown pose has a zero quaternion and is not sent */
        memset(&message->result.T_map_sensor, 0, sizeof(message->result.T_map_sensor));
    if (record->result.evaluations == 0)
        message->result.scores.coverage = -1; /* unknown */
}
