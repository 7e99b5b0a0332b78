#include "ndtd/scan_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "pipeline_state.h"

static const double DEG = 0.017453292519943295;

enum ndt_state ndtd_scan_state_next(enum ndt_state before, const struct ndtd_scan_facts *scan)
{
    if (!scan->has_pose)
        return NDT_STATE_INITIALISING;
    if (scan->outcome == NDT_CONVERGED)
        return NDT_STATE_TRACKING;
    const int is_doubtful = ndtd_state_is_trusted(before) &&
                            (scan->deviation_rad > NDTD_LOST_RAD || scan->is_contradicted || scan->has_left_track);
    if (scan->is_extending && scan->deviation_m <= scan->lost_deviation_m && scan->deviation_rad <= NDTD_LOST_RAD)
        return NDT_STATE_EXTENDING;
    if (scan->outcome == NDT_LOST || scan->outcome == NDT_OFF_MAP || scan->deviation_m > scan->lost_deviation_m ||
        is_doubtful)
        return scan->is_recovering ? NDT_STATE_RECOVERING : NDT_STATE_LOST;
    return before == NDT_STATE_TRACKING ? NDT_STATE_COASTING : before;
}

int ndtd_outcome_has_pose(enum ndt_outcome outcome)
{
    return outcome != NDT_DROPPED && outcome != NDT_REJECTED && outcome != NDT_NO_MAP && outcome != NDT_NO_GUESS;
}

int ndtd_state_is_trusted(enum ndt_state state)
{
    return ndt_state_is_trusted(state);
}

int ndtd_scan_is_untrusted(const struct ndtd_scan_record *record)
{
    return !ndtd_state_is_trusted(record->state) && record->result.outcome != NDT_MERGED;
}

int ndtd_scan_has_trusted_pose(const struct ndtd_scan_record *record)
{
    return ndtd_outcome_has_pose(record->result.outcome) && ndtd_state_is_trusted(record->state);
}

/* Whether a scan that was aligned in vain leaves a prediction without wheels that is not certain enough: a gyro
 * knows no way, and odometry of scans finds the next room as well. */
static int is_contradicted(const struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                           const struct ndtd_scan_record *record)
{
    const enum ndt_track_source source = alignment->predicted.source;
    if (record->result.evaluations == 0 || !ndtd_has_prior(pipeline->settings))
        return 0;
    return (source == NDT_TRACK_TWIST || source == NDT_TRACK_POSE || source == NDT_TRACK_GYRO) &&
           (alignment->predicted.is_of_scans ||
            ndtd_prediction_confidence(&alignment->predicted) < pipeline->settings->min_confidence);
}

void ndtd_pipeline_follow_state(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                                struct ndtd_scan_record *record)
{
    const struct ndtd_relocalizer *relocalizer = pipeline->relocalizer;
    const struct ndtd_scan *now = &pipeline->matcher.scan;
    const struct ndtd_scan_facts facts = {.has_pose = pipeline->track.has_pose,
                                          .is_recovering = ndtd_relocalizer_is_active(relocalizer) &&
                                                           ndtd_relocalizer_has_hypotheses(relocalizer),
                                          .outcome = now->is_late ? NDT_REJECTED : record->result.outcome,
                                          .deviation_m = ndt_track_position_deviation(&pipeline->track.state),
                                          .lost_deviation_m = pipeline->settings->track.lost_deviation_m,
                                          .deviation_rad = ndt_track_attitude_deviation(&pipeline->track.state),
                                          .is_extending = ndtd_extension_is_extending(pipeline->extension),
                                          .has_left_track = ndtd_relocalizer_has_left_track(relocalizer),
                                          .is_contradicted = is_contradicted(pipeline, alignment, record)};
    struct ndt_track_state at_stamp;
    const enum ndt_state next = ndtd_scan_state_next(pipeline->state, &facts);
    if (!now->is_late || !ndtd_state_is_trusted(next)) /* a late scan changes nothing */
        pipeline->state = next;
    record->state = pipeline->state;
    record->has_guess = record->hypotheses > 0;
    if (!record->has_guess)
        return;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&now->T_base_sensor);
    struct ndt_track_state guess = alignment->predicted;
    guess.T_map_base = ndt_pose_compose(&alignment->prior.T_map_sensor, &T_sensor_base);
    ndt_track_shift(&pipeline->track, &guess, -now->sweep.reference_s, &at_stamp);
    record->T_map_guess = at_stamp.T_map_base;
}

/* ---- changes ---- */

static void describe(const struct ndtd_scan_record *record, char *text, size_t size)
{
    const char *outcome = ndt_outcome_name(record->result.outcome);
    if (*record->result.reason)
        snprintf(text, size, "%s: %s", outcome, record->result.reason);
    else if (!isnan(record->confidence))
        snprintf(text, size, "%s, confidence %.3f", outcome, record->confidence);
    else
        snprintf(text, size, "%s", outcome);
}

int ndtd_state_change_update(struct ndtd_state_change *last, const struct ndtd_scan_record *record)
{
    if (record->state == last->to)
        return 0;
    *last = (struct ndtd_state_change){.from = last->to,
                                       .to = record->state,
                                       .seq = record->seq,
                                       .stamp_ns = record->stamp_ns,
                                       .has_pose = ndtd_outcome_has_pose(record->result.outcome),
                                       .T_map_base = record->result.T_map_sensor};
    describe(record, last->reason, sizeof(last->reason));
    return 1;
}

const char *ndtd_state_change_line(const struct ndtd_state_change *change, char *text, size_t size)
{
    const double *t = change->T_map_base.t_m;
    char where[128] = "no pose";
    if (change->has_pose)
        snprintf(where, sizeof(where), "x %.2f y %.2f z %.2f m yaw %.1f deg", t[0], t[1], t[2],
                 ndt_pose_heading_rad(&change->T_map_base) / DEG);
    snprintf(text, size, "state: %s -> %s at scan %" PRIu64 ", stamp %" PRId64 " ns, %s: %s",
             ndt_state_name(change->from), ndt_state_name(change->to), change->seq, change->stamp_ns, where,
             change->reason);
    return text;
}
