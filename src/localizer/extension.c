#include "extension.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guesses.h"
#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "ndtd/scan_state.h"
#include "odometry_mode.h"
#include "pipeline_state.h"

/* Shares of the points of a verified scan that meet the map, relative to the usual share, below which odometry
 * begins and above which it ends. The usual share is 0.5 to 0.95, and scans failed at edges with 0.25 to 0.85 of
 * that. While odometry runs, a scan below BEYOND_PART that is not accepted is beyond the edge; where cars, goods
 * and doors have changed, scans still meet ground and walls. */
static const double BEYOND_PART = 0.85, END_PART = 0.92;
/* Relative share above which a scan is aligned with the map, and the one above which it has to fit. */
static const double MET_PART = 0.4, INSIDE_PART = 0.7;
/* Gains of the usual share, which follows better maps soon and sparser ones slowly: an edge comes within some ten
 * scans. */
static const double RISE_GAIN = 0.05, FALL_GAIN = 0.01;
/* Scans in a row that attach the track, that refute it by fitting elsewhere, and that contradict it by fitting
 * nowhere. */
enum { ATTACHING = 3, REFUTING = 3, CONTRADICTING = 20 };
/* Verified scans in a row after which odometry may end: along an edge it is soon needed again. */
enum { SETTLED = 10 };
/* Distances within which accepted scans agree about the base, and odometry agrees with a verified scan. */
static const double AGREE_M = 0.3, AGREE_RAD = 2 * 0.017453292519943295;
/* Drift of odometry as a random walk: deviations after a metre. */
static const double DRIFT_M = 0.02, DRIFT_RAD = 0.0003;
static const double ODOMETRY_US_GAIN = 0.2;

/* A verified scan as it was received, with its state. */
struct kept_scan {
    int is_known;
    struct ndtd_scan scan;
    int has_frame;
    char frame_id[NDTD_FRAME_ID_MAX];
    struct ndt_cloud points;
    struct ndt_track_state state;
};

struct ndtd_extension {
    struct ndtd_odometry_mode *mode;
    /* The last two verified scans, with which odometry begins. The next scan may be beyond the edge already, as
     * around a corner, and a wrong pose may fit a single scan as well as usual. */
    struct kept_scan kept[2];
    struct ndt_track track; /* estimator with which odometry begins */
    int is_running;
    struct ndtd_edge edge;
    struct ndt_pose T_map_odom;    /* its error is that of the base at the last scan: */
    double covariance[36];         /* covariance of the error d in the base frame */
    struct ndt_pose T_odom_before; /* the base at the last scan */
    int has_now;                   /* odometry has located the scan at `now`: */
    struct ndt_track_state now;    /* pose of odometry in the map */
    int verified;                  /* verified scans in a row while odometry runs */
    double share;                  /* share of the points of the scan that meet the map there */
    double usual_share;            /* usual share of verified scans inside; 0: not known */
    double way_m;                  /* length of the path beyond the edge */
    double odometry_us;            /* mean time of odometry per scan */
    struct ndtd_scan_record record;
};

/* ---- the decision ---- */

int ndtd_edge_is_met(double part)
{
    return part >= MET_PART;
}

/* Whether an accepted scan gives the T_map_odom of the first accepted scan. */
static int agrees(const struct ndtd_edge *edge, const struct ndtd_edge_facts *facts)
{
    const struct ndt_pose expected = ndt_pose_compose(&edge->T_map_odom, &facts->T_odom_base);
    return ndt_pose_distance_m(&expected, &facts->T_map_base) <= AGREE_M &&
           ndt_pose_angle_rad(&expected, &facts->T_map_base) <= AGREE_RAD;
}

enum ndtd_edge_step ndtd_edge_decide(struct ndtd_edge *edge, const struct ndtd_edge_facts *facts)
{
    if (!edge->is_beyond) {
        if (facts->part >= BEYOND_PART)
            return ++edge->contradicted < CONTRADICTING ? NDTD_EDGE_STAY : NDTD_EDGE_GIVE_UP;
        *edge = (struct ndtd_edge){.is_beyond = 1};
        return NDTD_EDGE_LEAVE;
    }
    if (!facts->is_accepted) {
        edge->accepted = 0;
        edge->contradicted = facts->part >= INSIDE_PART ? edge->contradicted + 1 : 0;
    } else {
        if (edge->accepted == 0 || !agrees(edge, facts)) {
            const struct ndt_pose T_base_odom = ndt_pose_inverse(&facts->T_odom_base);
            edge->T_map_odom = ndt_pose_compose(&facts->T_map_base, &T_base_odom);
            edge->accepted = 0;
        }
        edge->accepted++;
        edge->contradicted = 0;
    }
    edge->refuted = facts->is_refuted ? edge->refuted + 1 : 0;
    edge->is_beyond = edge->accepted < ATTACHING && edge->refuted < REFUTING && edge->contradicted < CONTRADICTING;
    return edge->is_beyond ? NDTD_EDGE_STAY : edge->accepted > 0 ? NDTD_EDGE_ATTACH : NDTD_EDGE_GIVE_UP;
}

void ndtd_edge_carry(const struct ndt_pose *D, double covariance[36])
{
    const struct ndt_pose back = ndt_pose_inverse(D);
    const double way_m = sqrt(D->t_m[0] * D->t_m[0] + D->t_m[1] * D->t_m[1] + D->t_m[2] * D->t_m[2]);
    double Ad[36], transposed[36], carried[36];
    ndt_pose_adjoint(&back, Ad);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            transposed[6 * i + j] = Ad[6 * j + i];
    ndt_congruence(6, 6, transposed, covariance, carried);
    for (int i = 0; i < 6; i++)
        carried[7 * i] += way_m * (i < 3 ? DRIFT_M * DRIFT_M : DRIFT_RAD * DRIFT_RAD);
    memcpy(covariance, carried, sizeof(carried));
}

/* ---- life ---- */

enum ndt_status ndtd_extension_create(struct ndtd_extension **out, const struct ndtd_settings *settings,
                                      struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_extension *extension = calloc(1, sizeof(*extension));
    if (!extension)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the extension of the map");
    for (int i = 0; i < 2; i++)
        ndt_cloud_init(&extension->kept[i].points);
    const enum ndt_status status =
        ndtd_odometry_mode_create(&extension->mode, settings, settings->compute.threads, err);
    if (status == NDT_OK)
        *out = extension;
    else
        ndtd_extension_destroy(extension);
    return status;
}

void ndtd_extension_destroy(struct ndtd_extension *extension)
{
    if (!extension)
        return;
    ndtd_odometry_mode_destroy(extension->mode);
    ndtd_extension_release(extension);
    free(extension);
}

void ndtd_extension_release(struct ndtd_extension *extension)
{
    if (!extension)
        return;
    for (int i = 0; i < 2; i++) {
        ndt_cloud_free(&extension->kept[i].points);
        extension->kept[i].is_known = 0;
    }
}

void ndtd_extension_stop(struct ndtd_extension *extension)
{
    if (!extension)
        return;
    extension->is_running = extension->has_now = 0;
    extension->kept[0].is_known = extension->kept[1].is_known = 0;
    extension->edge = (struct ndtd_edge){.is_beyond = 0};
}

int ndtd_extension_runs(const struct ndtd_extension *extension)
{
    return extension && extension->is_running;
}

int ndtd_extension_is_extending(const struct ndtd_extension *extension)
{
    return extension && extension->edge.is_beyond;
}

void ndtd_extension_imu(struct ndtd_extension *extension, const struct ndt_track_imu_sample *sample)
{
    if (ndtd_extension_runs(extension))
        ndtd_odometry_mode_imu(extension->mode, sample);
}

void ndtd_extension_wheels(struct ndtd_extension *extension, const struct ndt_track_odometry_sample *sample)
{
    if (ndtd_extension_runs(extension))
        ndtd_odometry_mode_wheels(extension->mode, sample);
}

/* ---- the pose ---- */

static void get_pose_block(const struct ndt_track_state *state, double out[36])
{
    for (int i = 0; i < 6; i++)
        memcpy(out + 6 * i, state->P + NDT_TRACK_STATES * i, 6 * sizeof(*out));
}

/* Sets T_map_odom and its covariance from an estimate. */
static void anchor(struct ndtd_extension *extension, const struct ndt_track *track,
                   const struct ndt_track_state *estimate)
{
    const struct ndt_track_state *found = ndtd_odometry_mode_state(extension->mode);
    struct ndt_track_state at_estimate;
    ndt_track_shift(track, found, ndt_track_seconds(found->stamp_ns, estimate->stamp_ns), &at_estimate);
    const struct ndt_pose T_base_odom = ndt_pose_inverse(&at_estimate.T_map_base);
    extension->T_map_odom = ndt_pose_compose(&estimate->T_map_base, &T_base_odom);
    get_pose_block(estimate, extension->covariance);
    for (int i = 0; i < 6; i++)
        extension->covariance[7 * i] += estimate->distortion[i];
}

/* Lets the estimator go on from the extended pose. */
static void extend(struct ndtd_pipeline *pipeline)
{
    struct ndtd_extension *extension = pipeline->extension;
    if (ndt_track_use_gnss(&pipeline->track, &extension->now) == 1)
        anchor(extension, &pipeline->track, &extension->now);
    ndt_track_commit(&pipeline->track, &extension->now);
    ndtd_relocalizer_extend(pipeline->relocalizer, &extension->now);
}

/* Ends odometry and makes the pose unknown. */
static void give_up(struct ndtd_pipeline *pipeline)
{
    ndtd_extension_stop(pipeline->extension);
    ndtd_relocalizer_start_at(pipeline->relocalizer, NULL);
}

/* Sets the pose of odometry in the map, with the uncertainty of odometry and of T_map_odom. */
static void locate(struct ndtd_pipeline *pipeline)
{
    struct ndtd_extension *extension = pipeline->extension;
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    const int64_t reference_ns = scan->stamp_ns + llround(scan->sweep.reference_s * 1e9);
    const struct ndt_track_state *found = ndtd_odometry_mode_state(extension->mode);
    const struct ndt_pose D = ndt_pose_between(&extension->T_odom_before, &found->T_map_base);
    extension->T_odom_before = found->T_map_base;
    extension->way_m += ndt_pose_distance_m(&D, &(struct ndt_pose){.q_xyzw = {0, 0, 0, 1}});
    ndtd_edge_carry(&D, extension->covariance);
    extension->now = *found;
    extension->now.T_map_base = ndt_pose_compose(&extension->T_map_odom, &found->T_map_base);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            extension->now.P[NDT_TRACK_STATES * i + j] += extension->covariance[6 * i + j];
    if (extension->now.stamp_ns != reference_ns) { /* odometry takes the times of the points differently */
        const struct ndt_track_state at_odometry = extension->now;
        ndt_track_shift(&pipeline->track, &at_odometry, ndt_track_seconds(at_odometry.stamp_ns, reference_ns),
                        &extension->now);
        extension->now.stamp_ns = reference_ns;
    }
    extension->has_now = 1;
}

/* Whether the time suffices; inside, the scan itself comes first. A duration that prevents odometry is halved each
 * time. */
static int has_time(struct ndtd_pipeline *pipeline)
{
    struct ndtd_extension *extension = pipeline->extension;
    const double deadline_us = pipeline->matcher.deadline_us,
                 needs_us = extension->odometry_us + (extension->edge.is_beyond ? 0 : pipeline->scan_us);
    if (deadline_us <= 0 || deadline_us - ndt_clock_us() >= needs_us)
        return 1;
    extension->odometry_us /= 2;
    return 0;
}

/* Gives a scan to odometry; 0: odometry did not locate it. */
static int take_scan(struct ndtd_pipeline *pipeline, const struct ndtd_scan *scan, struct ndt_cloud *points)
{
    struct ndtd_extension *extension = pipeline->extension;
    const double start_us = ndt_clock_us();
    struct ndt_error ignored;
    memset(&extension->record, 0, sizeof(extension->record));
    const enum ndt_status status =
        ndtd_odometry_mode_scan(extension->mode, pipeline->settings, scan, points, &extension->record, &ignored);
    extension->odometry_us += ODOMETRY_US_GAIN * (ndt_clock_us() - start_us - extension->odometry_us);
    if (status != NDT_OK) /* localisation goes on without odometry */
        extension->record.state = NDT_STATE_LOST;
    return status == NDT_OK && extension->record.result.outcome != NDT_REJECTED;
}

/* Follows the scan of the matcher. */
static void follow_scan(struct ndtd_pipeline *pipeline)
{
    struct ndtd_extension *extension = pipeline->extension;
    struct ndtd_matcher *matcher = &pipeline->matcher;
    extension->has_now = 0;
    const int is_located = has_time(pipeline) && take_scan(pipeline, &matcher->scan, &matcher->raw);
    if (extension->record.state == NDT_STATE_LOST) /* a search begins at the last known pose */
        ndtd_extension_stop(extension);
    else if (is_located)
        locate(pipeline);
}

static void keep_scan(struct ndtd_pipeline *pipeline)
{
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    struct kept_scan *kept = pipeline->extension->kept;
    const struct kept_scan older = kept[0];
    struct ndt_error ignored;
    kept[0] = kept[1];
    kept[1] = older; /* reuses its memory */
    kept[1].is_known = ndt_cloud_copy(&kept[1].points, &pipeline->matcher.raw, &ignored) == NDT_OK;
    kept[1].scan = *scan;
    kept[1].has_frame = scan->frame_id != NULL;
    snprintf(kept[1].frame_id, sizeof(kept[1].frame_id), "%s", scan->frame_id ? scan->frame_id : "");
    kept[1].state = pipeline->track.state;
}

static int take_kept(struct ndtd_pipeline *pipeline, struct kept_scan *kept)
{
    kept->scan.frame_id = kept->has_frame ? kept->frame_id : NULL;
    return take_scan(pipeline, &kept->scan, &kept->points);
}

/* Starts odometry at the estimate of the older kept scan and takes both scans in; it runs if it finds the newer one
 * where that was verified. */
static void begin(struct ndtd_pipeline *pipeline)
{
    struct ndtd_extension *extension = pipeline->extension;
    struct kept_scan *kept = extension->kept;
    const double apart_s = ndt_track_seconds(kept[0].state.stamp_ns, kept[1].state.stamp_ns);
    struct ndt_error ignored;
    if (!kept[0].is_known || !kept[1].is_known || !(apart_s > 0) ||
        apart_s > pipeline->track.params.max_prediction_s || !has_time(pipeline))
        return;
    extension->track = pipeline->track; /* with the inputs of other sensors since then */
    extension->track.state = kept[0].state;
    if (ndtd_odometry_mode_begin_at(extension->mode, pipeline->settings, NULL, &extension->track, &ignored) !=
            NDT_OK ||
        !take_kept(pipeline, &kept[0]) || !take_kept(pipeline, &kept[1]))
        return;
    const struct ndt_pose *found = &ndtd_odometry_mode_state(extension->mode)->T_map_base;
    extension->is_running = ndt_pose_distance_m(found, &kept[1].state.T_map_base) <= AGREE_M &&
                            ndt_pose_angle_rad(found, &kept[1].state.T_map_base) <= AGREE_RAD;
    extension->verified = 0;
    extension->T_odom_before = *found;
    anchor(extension, &pipeline->track, &kept[1].state);
}

void ndtd_extension_follow(struct ndtd_pipeline *pipeline)
{
    struct ndtd_extension *extension = pipeline->extension;
    if (ndtd_extension_runs(extension))
        follow_scan(pipeline);
    if (ndtd_extension_is_extending(extension) && extension->has_now)
        extend(pipeline);
    if (!ndtd_extension_is_extending(extension))
        ndtd_relocalizer_extend(pipeline->relocalizer, NULL);
}

/* ---- the edge ---- */

static void refuse(const struct ndtd_extension *extension, struct ndtd_alignment *alignment)
{
    char reason[96];
    snprintf(reason, sizeof(reason), "%.0f m beyond the edge of the map, which %.0f %% of the points meet",
             extension->way_m, 100 * extension->share);
    ndtd_refuse(&alignment->result, NDT_OFF_MAP, reason);
    alignment->result.scores.match_ratio = extension->share;
    alignment->is_updated = alignment->has_innovation = alignment->has_covariance = 0;
}

/* Share at the extended pose, relative to the usual one. */
static double part_of(const struct ndtd_extension *extension)
{
    return extension->share / extension->usual_share;
}

/* Measures the share with the base at a state. */
static enum ndt_status measure_share(struct ndtd_pipeline *pipeline, const struct ndt_track_state *state,
                                     struct ndt_error *err)
{
    struct ndtd_matcher *matcher = &pipeline->matcher;
    const struct ndt_pose T_map_sensor = ndt_pose_compose(&state->T_map_base, &matcher->scan.T_base_sensor);
    const enum ndt_status status = ndtd_matcher_need_points(matcher, err);
    if (status == NDT_OK)
        pipeline->extension->share = ndtd_matcher_share(matcher, &T_map_sensor);
    return status;
}

enum ndt_status ndtd_extension_meets_map(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment,
                                         int *meets, struct ndt_error *err)
{
    struct ndtd_extension *extension = pipeline->extension;
    *meets = 1;
    if (!ndtd_extension_is_extending(extension))
        return NDT_OK;
    const enum ndt_status status = measure_share(pipeline, &alignment->predicted, err);
    if (status != NDT_OK || ndtd_edge_is_met(part_of(extension)))
        return status;
    (void)ndtd_edge_decide(&extension->edge, &(struct ndtd_edge_facts){.part = part_of(extension)});
    refuse(extension, alignment);
    *meets = 0;
    return NDT_OK;
}

/* Whether a pose is within the error of the extended pose: by its covariance, or within AGREE_M and AGREE_RAD. */
static int is_within(const struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                     const struct ndt_pose *T_map_base)
{
    const struct ndt_pose *extended = &alignment->predicted.T_map_base;
    double block[36];
    get_pose_block(&alignment->predicted, block);
    return ndt_pose_squared_mahalanobis(extended, block, T_map_base) <= pipeline->settings->track.gate ||
           (ndt_pose_distance_m(extended, T_map_base) <= AGREE_M &&
            ndt_pose_angle_rad(extended, T_map_base) <= AGREE_RAD);
}

/* Judges an alignment beyond the edge: accepted under the conditions that hold inside, or refuted if it fits too
 * far away. */
static void weigh(const struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                  const struct ndtd_decision *decision, struct ndtd_edge_facts *facts)
{
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&scan->T_base_sensor),
                          aligned = ndt_pose_compose(&alignment->result.T_map_sensor, &T_sensor_base);
    int fits;
    (void)ndtd_alignment_confidence(alignment, scan, pipeline->settings, &fits);
    facts->is_refuted = fits && !is_within(pipeline, alignment, &aligned);
    facts->is_accepted = alignment->is_updated && alignment->result.outcome == NDT_CONVERGED &&
                         !decision->is_ambiguous && !decision->is_cut_short &&
                         !(decision->is_multistart && decision->margin < NDTD_LEAST_MARGIN) &&
                         is_within(pipeline, alignment, &alignment->updated.T_map_base);
    facts->T_map_base = alignment->updated.T_map_base;
}

/* Drops the alignment and keeps the prediction, which is the extended pose. */
static void keep_extended(struct ndtd_extension *extension, struct ndtd_alignment *alignment,
                          struct ndtd_decision *decision, struct ndtd_scan_record *record)
{
    decision->is_replaced = 0;
    decision->margin = decision->certainty = record->confidence = NAN;
    record->is_doubted = 0;
    refuse(extension, alignment);
}

/* Starts odometry with a scan that meets the map no more, if the scan before was still verified as any inside. */
static enum ndt_status begin_late(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                                  struct ndt_error *err)
{
    struct ndtd_extension *extension = pipeline->extension;
    const struct kept_scan *kept = &extension->kept[1];
    if (extension->is_running || !kept->is_known || kept->state.stamp_ns != pipeline->track.state.stamp_ns)
        return NDT_OK;
    const enum ndt_status status = measure_share(pipeline, &alignment->predicted, err);
    if (status != NDT_OK || part_of(extension) >= BEYOND_PART)
        return status;
    begin(pipeline);
    if (extension->is_running)
        follow_scan(pipeline);
    return NDT_OK;
}

/* Judges a scan inside that was not accepted: it may be beyond the edge. */
static enum ndt_status judge_inside(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment,
                                    struct ndtd_decision *decision, struct ndtd_scan_record *record,
                                    struct ndt_error *err)
{
    struct ndtd_extension *extension = pipeline->extension;
    enum ndt_status status = begin_late(pipeline, alignment, err);
    if (status == NDT_OK && extension->has_now)
        status = measure_share(pipeline, &extension->now, err);
    if (status != NDT_OK || !extension->has_now)
        return status;
    extension->verified = 0;
    const struct ndtd_edge_facts facts = {.part = part_of(extension)};
    const enum ndtd_edge_step step = ndtd_edge_decide(&extension->edge, &facts);
    if (step == NDTD_EDGE_GIVE_UP)
        ndtd_extension_stop(extension);
    if (step != NDTD_EDGE_LEAVE)
        return NDT_OK;
    extension->way_m = 0;
    extend(pipeline);
    (void)ndt_track_predict(&pipeline->track, alignment->predicted.stamp_ns, &alignment->predicted);
    ndtd_lookahead_forget(pipeline->lookahead);
    keep_extended(extension, alignment, decision, record);
    return NDT_OK;
}

static void judge_beyond(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment,
                         struct ndtd_decision *decision, struct ndtd_scan_record *record)
{
    struct ndtd_extension *extension = pipeline->extension;
    struct ndtd_edge_facts facts = {.part = part_of(extension)};
    facts.T_odom_base = extension->T_odom_before;
    if (extension->has_now)
        weigh(pipeline, alignment, decision, &facts);
    const enum ndtd_edge_step step = ndtd_edge_decide(&extension->edge, &facts);
    if (step == NDTD_EDGE_ATTACH) { /* the estimator has taken this scan in by odometry already */
        ndt_track_adopt(&pipeline->track, &alignment->predicted, 0);
        return;
    }
    keep_extended(extension, alignment, decision, record);
    if (step == NDTD_EDGE_GIVE_UP) {
        ndtd_refuse(&alignment->result, NDT_LOST,
                    "back in the map after the way beyond its edge, and nothing fits");
        give_up(pipeline);
    }
}

enum ndt_status ndtd_extension_judge(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment,
                                     struct ndtd_decision *decision, struct ndtd_scan_record *record,
                                     struct ndt_error *err)
{
    const struct ndtd_extension *extension = pipeline->extension;
    if (!extension || pipeline->matcher.scan.is_late)
        return NDT_OK;
    if (extension->edge.is_beyond)
        judge_beyond(pipeline, alignment, decision, record);
    else if (alignment->result.outcome != NDT_CONVERGED)
        return judge_inside(pipeline, alignment, decision, record, err);
    return NDT_OK;
}

/* ---- after the answer ---- */

/* Sets T_map_odom anew from the verified estimate. */
static void attach(struct ndtd_extension *extension, const struct ndt_track *track)
{
    extension->edge.contradicted = 0;
    extension->verified++;
    if (extension->has_now)
        anchor(extension, track, &track->state);
}

static void follow_usual_share(struct ndtd_extension *extension, double share)
{
    const double off = share - extension->usual_share;
    if (extension->usual_share > 0)
        extension->usual_share += (off > 0 ? RISE_GAIN : FALL_GAIN) * off;
    else
        extension->usual_share = share;
}

void ndtd_extension_watch(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                          const struct ndtd_scan_record *record)
{
    struct ndtd_extension *extension = pipeline->extension;
    if (!extension || pipeline->matcher.scan.is_late)
        return;
    const int is_verified =
        record->state == NDT_STATE_TRACKING && alignment->is_updated && record->result.outcome == NDT_CONVERGED;
    if (extension->edge.is_beyond && record->state != NDT_STATE_EXTENDING) /* the extended pose is too uncertain */
        give_up(pipeline);
    if (!is_verified)
        return;
    follow_usual_share(extension, record->result.scores.match_ratio);
    const double part = record->result.scores.match_ratio / extension->usual_share;
    if (extension->is_running)
        attach(extension, &pipeline->track);
    if (extension->is_running && part > END_PART && extension->verified >= SETTLED)
        ndtd_extension_stop(extension);
    if (extension->is_running)
        return;
    keep_scan(pipeline);
    if (part < BEYOND_PART)
        begin(pipeline);
}
