#include "relocalizer_state.h"

#include <math.h>

#include "redeskew.h"

/* Scans against odometry, less those for it, from which on it is contradicted. */
enum { AGAINST_SCANS = 2 };

/* Largest error of a heading given without a covariance, where turns since then are unknown. */
static const double GIVEN_RAD = 45 * 0.017453292519943295, SIGMAS = 5;

/* Verified scans after which the height above the ground is known. */
enum { KNOWN_GROUNDS = 3 };
/* Height above the ground up to which a sensor is carried; higher up it flies, and at any height. */
static const double MOST_ABOVE_M = 10;

/* Logarithm of the probability of the leading place below which it is another one, more likely than not. */
static const double MOST_DOUBTED = -0.69;

/* Room for motion beyond the vehicle's speed so far. */
static const double LIKELY_M = 3, LEAST_SPEED_MPS = 2;
/* Usual way: one that every vehicle moves, and the usual part of the likely speed, which is 1.5 times the highest
 * so far. */
static const double USUAL_M = 0.3, USUAL_SPEED_PART = 1 / 1.5;
/* Room for a change of height: floors look alike, and stairs and streets are slow and flat. */
static const double CLIMB_M = 1, CLIMB_MPS = 0.4, SLOPE = 0.15;
/* More than any map has, after a gap of years: a clock that began at 1970, and was set then. */
static const double MOST_CLIMB_M = 1e6;

void ndtd_relocalizer_set_view(struct ndtd_relocalizer *relocalizer, struct ndtd_points_view *view)
{
    relocalizer->view = view;
}

int ndtd_relocalizer_can_recover(const struct ndtd_relocalizer *relocalizer, int has_pose)
{
    const struct ndtd_settings *settings = relocalizer->settings;
    const int is_wanted = settings->recovery.enable && (has_pose || settings->initial_pose_mode != NDTD_POSE_GIVEN);
    return is_wanted && relocalizer->parts.searcher && ndtd_has_prior(settings);
}

/* ---- for others ---- */

const struct ndt_track_state *ndtd_relocalizer_verified(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->is_verified ? &relocalizer->verified : NULL;
}

const struct ndt_track_state *ndtd_relocalizer_reference(const struct ndtd_relocalizer *relocalizer)
{
    if (relocalizer->is_verified)
        return &relocalizer->verified;
    return relocalizer->has_given ? &relocalizer->given : NULL;
}

double ndtd_relocalizer_usual_fit(const struct ndtd_relocalizer *relocalizer)
{
    return ndtd_usual_fit(&relocalizer->usual);
}

int ndtd_relocalizer_is_active(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->recovery.is_active;
}

int ndtd_relocalizer_has_left_track(const struct ndtd_relocalizer *relocalizer)
{
    const struct ndtd_recovery *recovery = &relocalizer->recovery;
    if (!recovery->is_active || recovery->leading.is_found || ndtd_is_odometry_contradicted(relocalizer))
        return recovery->is_active;
    if (!recovery->has_places)
        return 0;
    const struct ndtd_place *place = ndtd_belief_at(&recovery->places, &recovery->leading.state.T_map_base);
    return place && (place->is_carried || place->log_weight < MOST_DOUBTED);
}

int ndtd_relocalizer_has_hypotheses(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->recovery.others.count > 0 || relocalizer->recovery.leading.agreements > 0;
}

const struct ndtd_hypotheses *ndtd_relocalizer_alternatives(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->recovery.is_active ? &relocalizer->recovery.others : NULL;
}

const struct ndtd_hypotheses *ndtd_relocalizer_requested(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->localize.is_active ? &relocalizer->localize.hypotheses : NULL;
}

/* ---- used by several steps ---- */

void ndtd_take_from_batch(struct ndtd_relocalization *now, size_t number)
{
    struct ndtd_matcher *matcher = now->matcher;
    struct ndtd_alignment *alignment = now->alignment;
    const struct ndt_align_result before = alignment->result;
    alignment->result = matcher->batch.results[number];
    ndtd_set_costs(&alignment->result, &before);
    alignment->prior = matcher->batch.priors[number];
    alignment->has_trace = alignment->is_updated = 0;
    if (ndtd_outcome_is_usable(alignment->result.outcome))
        ndtd_alignment_update(alignment, now->scan, matcher->track, &matcher->motion[matcher->pass].twist);
}

double ndtd_confidence_now(const struct ndtd_relocalization *now, int *fits)
{
    return ndtd_alignment_confidence(now->alignment, now->scan, now->relocalizer->settings, fits);
}

int ndtd_heads_as_given(const struct ndtd_relocalizer *relocalizer, const struct ndt_pose *T_map_base)
{
    const struct ndt_track_state *given = &relocalizer->given;
    if (relocalizer->is_verified || !relocalizer->has_given)
        return 1;
    const double deviation_rad = sqrt(given->P[(NDT_TRACK_STATES + 1) * 5]);
    return ndt_pose_angle_rad(&given->T_map_base, T_map_base) <= fmax(GIVEN_RAD, SIGMAS * deviation_rad);
}

double ndtd_reach_m(const struct ndtd_settings *settings, double speed_mps, double dt_s)
{
    return fmin(speed_mps * dt_s + 0.5 * settings->recovery.max_acceleration_mps2 * dt_s * dt_s,
                settings->recovery.max_speed_mps * dt_s);
}

const double *ndtd_antenna_m(const struct ndtd_relocalizer *relocalizer)
{
    const struct ndtd_gnss_fix *gnss = relocalizer->parts.gnss;
    return gnss->is_known ? gnss->antenna_m : relocalizer->settings->frames.gnss_antenna_m;
}

double ndtd_likely_speed_mps(const struct ndtd_relocalizer *relocalizer)
{
    const int is_given = relocalizer->has_given && !relocalizer->is_verified;
    const double given_mps = fmin(is_given ? ndtd_speed_mps(&relocalizer->given.twist) : 0,
                                  relocalizer->settings->recovery.max_speed_mps);
    return fmax(1.5 * fmax(relocalizer->fastest_mps, given_mps), LEAST_SPEED_MPS);
}

double ndtd_likely_way_m(const struct ndtd_relocalizer *relocalizer, double dt_s)
{
    return LIKELY_M + ndtd_likely_speed_mps(relocalizer) * dt_s;
}

double ndtd_above_ground_m(const struct ndtd_relocalizer *relocalizer)
{
    const struct ndtd_scan *scan = &relocalizer->parts.matcher->scan;
    const struct ndt_pose T_map_sensor = ndt_pose_compose(&relocalizer->verified.T_map_base, &scan->T_base_sensor);
    const double mounted_m = T_map_sensor.t_m[2] - relocalizer->verified.T_map_base.t_m[2];
    const double above_m = relocalizer->above_ground_m + mounted_m;
    return relocalizer->grounds >= KNOWN_GROUNDS && above_m > 0 && above_m <= MOST_ABOVE_M ? above_m : 0;
}

double ndtd_usual_way_m(const struct ndtd_relocalizer *relocalizer, double dt_s)
{
    return USUAL_M + USUAL_SPEED_PART * ndtd_likely_speed_mps(relocalizer) * dt_s;
}

double ndtd_likely_climb_m(const struct ndtd_relocalizer *relocalizer, double dt_s)
{
    return fmin(MOST_CLIMB_M, CLIMB_M + dt_s * fmax(CLIMB_MPS, SLOPE * ndtd_likely_speed_mps(relocalizer)));
}

double ndtd_likely_reach_m(const struct ndtd_relocalizer *relocalizer, int64_t stamp_ns)
{
    const struct ndt_track_state *from = ndtd_relocalizer_reference(relocalizer);
    return ndtd_likely_way_m(relocalizer, from ? fabs(ndt_track_seconds(from->stamp_ns, stamp_ns)) : 0);
}

int ndtd_has_odometry(const struct ndt_track_state *predicted)
{
    return predicted->source == NDT_TRACK_ODOMETRY || predicted->source == NDT_TRACK_ODOMETRY_TWIST;
}

int ndtd_is_odometry_contradicted(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->recovery.against_odometry >= AGAINST_SCANS ||
           relocalizer->odometry_lead_sum >= NDTD_CONTRADICTION;
}
