#include "ndtd/scan_result.h"

#include <math.h>
#include <string.h>

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
                                           .decode_us = record->decode_us,
                                           .queue_us = record->queue_us,
                                           .preprocess_us = record->preprocess_us,
                                           .upload_us = record->upload_us,
                                           .publish_us = record->publish_us};
    if (record->result.outcome == NDT_NO_GUESS) /* an unknown pose has a zero quaternion and is not sent */
        memset(&message->result.T_map_sensor, 0, sizeof(message->result.T_map_sensor));
    if (record->result.evaluations == 0)
        message->result.scores.coverage = -1; /* unknown */
}
