#include "alignment.h"

#include <math.h>
#include <stdio.h>

#include "guesses.h"
#include "ndt/linalg.h"
#include "ndt_track/confidence.h"

/* Squared distance from the prediction in sigmas, of which 6 are expected, and part of the usual fit: beyond both,
 * the motion within the sweep is doubted. */
static const double CONTRADICTED = 9, WORSE_PART = 0.85;

void ndtd_alignment_begin(struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                          const struct ndt_track_state *before, const struct ndt_track_state *predicted)
{
    alignment->before = before;
    alignment->predicted = *predicted;
    ndtd_scan_prior(scan, predicted, &alignment->prior);
    alignment->is_updated = alignment->degenerate_count = 0;
}

void ndtd_refuse(struct ndt_align_result *result, enum ndt_outcome outcome, const char *reason)
{
    result->outcome = outcome;
    snprintf(result->reason, sizeof(result->reason), "%.*s", (int)sizeof(result->reason) - 1, reason);
}

int ndtd_outcome_is_usable(enum ndt_outcome outcome)
{
    return outcome == NDT_CONVERGED || outcome == NDT_ITERATION_LIMIT;
}

void ndtd_alignment_measure(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                            const struct ndt_twist *motion, struct ndt_observation *observation,
                            struct ndt_observation *of_base, struct ndt_track_measurement *out)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&scan->T_base_sensor);
    for (int i = 0; observation && i < alignment->degenerate_count; i++)
        ndt_observation_forget(observation, alignment->degenerate[i].axis, alignment->degenerate[i].step);
    if (observation)
        ndt_observation_to_body(observation, &scan->T_base_sensor, of_base);
    *out = (struct ndt_track_measurement){.T_map_base =
                                              ndt_pose_compose(&alignment->result.T_map_sensor, &T_sensor_base),
                                          .observation = observation ? of_base : NULL,
                                          .twist = *motion,
                                          .sweep_s = scan->sweep.end_s - scan->sweep.begin_s,
                                          .distorted_s = scan->distorted_s,
                                          .is_converged = alignment->result.outcome == NDT_CONVERGED};
}

void ndtd_alignment_update(struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                           const struct ndt_track *track, const struct ndt_twist *motion)
{
    struct ndt_align_result *result = &alignment->result;
    struct ndt_track_step *step = &alignment->step;
    struct ndt_track_measurement measurement;
    ndtd_alignment_measure(alignment, scan, motion, result->has_observation ? &result->observation : NULL,
                           &step->observation, &measurement);
    ndt_track_update_from(track, alignment->before, &alignment->predicted, &measurement, &alignment->updated,
                          &alignment->innovation, &alignment->weakest);
    step->is_measured = 1;
    step->has_observation = measurement.observation != NULL;
    step->measurement = measurement;
    step->measurement.observation = NULL; /* the step outlives this alignment */
    alignment->found = alignment->updated;
    alignment->is_updated = ndt_track_state_is_plausible(&alignment->updated);
    alignment->has_innovation = measurement.observation != NULL && alignment->is_updated;
    if (!alignment->is_updated)
        ndtd_refuse(result, NDT_LOST, "the estimate that follows from it is not plausible");
}

double ndtd_alignment_confidence(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                                 const struct ndtd_settings *settings, int *fits)
{
    const struct ndt_align_result *result = &alignment->result;
    struct ndt_confidence_features features;
    struct ndt_pose moved = ndt_pose_identity();
    *fits = ndtd_outcome_is_usable(result->outcome);
    if (!result->has_observation || settings->map.covariance != NDT_COVARIANCE_UNBIASED)
        return NAN;
    ndt_confidence_set_scores(&features, &result->scores, &settings->align);
    features.usual_quality = scan->usual_fit;
    if (alignment->is_updated) {
        const struct ndt_pose estimate = ndt_pose_compose(&alignment->updated.T_map_base, &scan->T_base_sensor);
        moved = ndt_pose_between(&result->T_map_sensor, &estimate);
        features.innovation = alignment->innovation;
    }
    const struct ndt_twist step = ndt_pose_log(&moved, 1);
    ndt_confidence_set_hold(&features, &result->observation, alignment->prior.covariance, &step);
    const double confidence = ndt_confidence(&features);
    features.slack_m = 0;
    features.innovation = 0;
    *fits = *fits && ndt_confidence(&features) >= settings->min_confidence;
    return confidence;
}

/* Whether the scan was likely deskewed with a wrong motion: it contradicts its prediction, which no sensor has
 * measured, and fits worse than usual. A person who begins to turn is followed 5 to 6 deg behind otherwise, with
 * 0.7 of the usual fit, for three scans. */
static int moves_otherwise(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan)
{
    const enum ndt_track_source source = alignment->predicted.source;
    return scan->preprocess.deskew != NDT_DESKEW_OFF && source != NDT_TRACK_GYRO && source != NDT_TRACK_ODOMETRY &&
           source != NDT_TRACK_ODOMETRY_TWIST && alignment->innovation > CONTRADICTED &&
           ndtd_fit(&alignment->result) < WORSE_PART * scan->usual_fit;
}

int ndtd_alignment_is_confirmed(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                                const struct ndtd_settings *settings)
{
    int fits;
    const double confidence = ndtd_alignment_confidence(alignment, scan, settings, &fits);
    const int is_held = !(confidence < settings->min_confidence) ||
                        ndt_track_position_deviation(&alignment->predicted) < NDT_CONFIDENCE_RIGHT_M;
    return fits && is_held && alignment->is_updated && alignment->result.outcome == NDT_CONVERGED &&
           alignment->innovation <= settings->track.gate && !moves_otherwise(alignment, scan);
}

double ndtd_prediction_confidence(const struct ndt_track_state *predicted)
{
    const double deviation_m = fmax(ndt_track_position_deviation(predicted), 1e-6),
                 deviation_deg = fmax(ndt_track_attitude_deviation(predicted) * (180 / M_PI), 1e-6);
    return erf(NDT_CONFIDENCE_RIGHT_M / (sqrt(2) * deviation_m)) *
           erf(NDT_CONFIDENCE_RIGHT_DEG / (sqrt(2) * deviation_deg));
}
