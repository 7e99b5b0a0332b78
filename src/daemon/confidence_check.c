#include "confidence_check.h"

#include <stdio.h>

#include "ndt_track/confidence.h"

int ndtd_check_confidence(const struct ndtd_settings *settings, const double prior[36],
                          const struct ndt_pose *estimate, struct ndtd_scan_record *record)
{
    struct ndt_align_result *result = &record->result;
    struct ndt_confidence_features features;
    struct ndt_twist moved = {0};
    /* With Autoware's covariances wrong poses score nearly as high as right ones: nothing is fitted to them. */
    if (!result->has_observation || settings->map.covariance != NDT_COVARIANCE_UNBIASED)
        return 1;
    ndt_confidence_set_scores(&features, &result->scores, &settings->align);
    if (estimate) {
        const struct ndt_pose step = ndt_pose_between(&result->T_map_sensor, estimate);
        moved = ndt_pose_log(&step, 1);
        features.innovation = record->innovation;
    }
    ndt_confidence_set_hold(&features, &result->observation, prior, &moved);
    record->confidence = ndt_confidence(&features);
    record->is_doubted = record->confidence < settings->min_confidence;
    if (!record->is_doubted)
        return 1;
    if (result->outcome == NDT_CONVERGED) {
        result->outcome = NDT_LOW_SCORE;
        snprintf(result->reason, sizeof(result->reason), "confidence %.3f is below the minimum %.3f",
                 record->confidence, settings->min_confidence);
    }
    features.slack_m = 0;
    return ndt_confidence(&features) >= settings->min_confidence;
}
