/* Private: decides whether the pose of an alignment is the pose of the vehicle, and finds it where it is not.
 *
 * A scan that fits is not enough: it may fit at another place as well, or better. For every scan the relocaliser
 * takes the alignment that began at the prediction and answers with a decision; the pipeline and the estimator
 * follow it. While a pose is not accepted, pose hypotheses are followed from scan to scan.
 *
 *                       initial pose                 scan accepted
 *        UNKNOWN ------------------------> GIVEN ---------------------> VERIFIED <--+
 *           |                               |  ^                        |  |  |     | scan accepted
 *           | no pose, but searches         |  |      initial pose      |  |  +-----+
 *           |                               |  +------------------------+  |
 *           v      scan not accepted        v                              | scan not accepted
 *       RECOVERING <------------------------+                              |
 *         |     ^                                                          |
 *         |     +----------------------------------------------------------+
 *         +---> VERIFIED: one hypothesis is accepted
 *
 *   UNKNOWN      no pose was given or found
 *   GIVEN        the estimator starts at an initial pose that no scan has confirmed; the track before it, if scans
 *                had confirmed that one, is followed as a rival until a scan decides between the two
 *   VERIFIED     the last scan was accepted near the pose before
 *   RECOVERING   it was not: multi-start alignments, searches of the map and the hypotheses that they found
 *
 * One scan passes these steps; each ends the rest where it settles the pose:
 *
 *   multistart.c      aligns from other guesses, where the prediction is not trusted or the scan does not confirm
 * it degeneracy.c      looks for other optima along degenerate directions, and forgets what the scan does not tell
 *   previous_track.c  decides between an initial pose in mid-drive and the track that it has ended
 *   recovery.c        follows hypotheses, searches the map, and accepts a hypothesis when nothing else is left, by
 *                     searches or by several views together (recovery_places.c)
 *
 * After the answer, a request to localize (localize.c) searches and follows hypotheses of its own beside the
 * estimator; without one, watch.c looks for a better place in the whole map while the pose is accepted.
 *
 * The estimator is read, never changed: where it has to go on from another pose, the decision says so. One owner,
 * one thread; searches run in a thread of their own, see ndtd/searcher.h. */
#ifndef NDTD_RELOCALIZER_H
#define NDTD_RELOCALIZER_H

#include "matcher.h"
#include "ndt_proto/control_message.h"
#include "ndtd/searcher.h"
#include "pose_hypotheses.h"

struct ndtd_points_view;
struct ndtd_relocalizer;

/* Parts that the relocaliser uses; all borrowed for its life. */
struct ndtd_relocalizer_parts {
    struct ndtd_matcher *matcher;
    const struct ndt_track *track;
    const struct ndtd_gnss_fix *gnss;
    struct ndtd_searcher *searcher;           /* NULL: searches are not possible */
    const struct ndt_backend_config *compute; /* compute configuration of searches; borrowed during create */
    int is_watched; /* 1: the map is searched now and then while the pose is accepted (recovery.check_s) */
};

/* Counts of the searches of the whole map while the pose is accepted. */
struct ndtd_watch_report {
    uint64_t checks;    /* searches */
    uint64_t elsewhere; /* times that scans in a row fitted another place significantly better */
    double elsewhere_m; /* distance of the last such place */
};

/* Logarithm of the least odds, 99 : 1, of an accepted pose over all others that were tried. */
#define NDTD_LEAST_MARGIN 4.6

/* The decision about the alignment of a scan. */
struct ndtd_decision {
    int is_unproven;   /* later scans have to confirm the pose; until then it is reported as lost */
    int is_replaced;   /* the estimator goes on from `replacement`, and so does the alignment */
    int is_refused;    /* the initial pose is replaced by the previous track */
    double refused_m;  /* distance of the refused initial pose from that track */
    int is_ambiguous;  /* other poses may fit as well, and were not tried */
    int is_cut_short;  /* no time was left to try other poses */
    int is_multistart; /* the pose is the best of several aligned guesses */
    double margin;     /* logarithm of the odds over all other optima that were tried; NAN: not known */
    double certainty;  /* probability of the pose, from searches; NAN: none was needed */
    struct ndt_track_state replacement;
};

NDT_MUST_CHECK enum ndt_status ndtd_relocalizer_create(struct ndtd_relocalizer **out,
                                                       const struct ndtd_relocalizer_parts *parts,
                                                       struct ndt_error *err);
/* `relocalizer` may be NULL. */
void ndtd_relocalizer_destroy(struct ndtd_relocalizer *relocalizer);
/* Tells a change of the map, from NULL or to NULL as well: hypotheses from another map have to be found again. */
void ndtd_relocalizer_set_map(struct ndtd_relocalizer *relocalizer, const struct ndt_map *before,
                              struct ndt_map *map);
/* Sets the settings; borrowed until the next call. */
void ndtd_relocalizer_set_settings(struct ndtd_relocalizer *relocalizer, const struct ndtd_settings *settings);
/* Sets the viewer's store of guesses that were tried; NULL: none. */
void ndtd_relocalizer_set_view(struct ndtd_relocalizer *relocalizer, struct ndtd_points_view *view);

/* ---- a scan ---- */

/* Whether a scan without a pose, or without an accepted one, is worth aligning: a search is possible. */
int ndtd_relocalizer_can_recover(const struct ndtd_relocalizer *relocalizer, int has_pose);
/* Starts with a preprocessed scan, before its first alignment. The rival of an initial pose is aligned first, so
 * that it has time regardless of the costs of the given pose. */
NDT_MUST_CHECK enum ndt_status ndtd_relocalizer_begin(struct ndtd_relocalizer *relocalizer,
                                                      struct ndtd_decision *decision, struct ndt_error *err);
/* Proposes the sensor pose at which the first alignment starts, on the finest level, where the prediction is not
 * trusted. *is_proposed = 0: the alignment starts at the prediction. */
NDT_MUST_CHECK enum ndt_status ndtd_relocalizer_propose(struct ndtd_relocalizer *relocalizer,
                                                        const struct ndtd_alignment *alignment,
                                                        struct ndt_pose *T_map_sensor, int *is_proposed,
                                                        struct ndt_error *err);
/* Decides about an alignment from the prediction; `alignment` becomes that of the pose that was found. Without a
 * pose (alignment->before is NULL) there is only the prediction. */
NDT_MUST_CHECK enum ndt_status ndtd_relocalizer_decide(struct ndtd_relocalizer *relocalizer,
                                                       struct ndtd_alignment *alignment,
                                                       struct ndtd_decision *decision, struct ndt_error *err);
/* Decides about a scan without an alignment, for lack of time; the rival of an initial pose may have been aligned.
 */
NDT_MUST_CHECK enum ndt_status ndtd_relocalizer_decide_unaligned(struct ndtd_relocalizer *relocalizer,
                                                                 struct ndtd_alignment *alignment,
                                                                 struct ndtd_decision *decision,
                                                                 struct ndt_error *err);
/* Sets the outcome of an alignment that is not accepted, after its assessment and regardless of its fit. */
void ndtd_relocalizer_report(const struct ndtd_relocalizer *relocalizer, const struct ndtd_decision *decision,
                             struct ndt_align_result *result);

/* ---- what happened to the estimate ---- */

/* Tells that the estimator has taken a converged pose; result: of the scan there. */
void ndtd_relocalizer_verify(struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *state,
                             const struct ndt_align_result *result);
/* Keeps the current track as a rival of an initial pose that is about to become the estimate, if scans have
 * confirmed the track up to now. is_trusted: the pose of the track was trusted. Returns the twist of that track;
 * NULL: there is none. */
const struct ndt_twist *ndtd_relocalizer_keep_track(struct ndtd_relocalizer *relocalizer, int64_t stamp_ns,
                                                    int is_trusted);
/* Tells that the vehicle is beyond the edge of the map: `state`, to which odometry has carried the estimate, counts
 * as verified, scans are not recovered, and a decision is about the alignment alone. NULL: the vehicle is inside
 * again. */
void ndtd_relocalizer_extend(struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *state);
/* Tells that the estimator starts at a given pose. NULL: no pose is known. */
void ndtd_relocalizer_start_at(struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *given);

/* ---- for others ---- */

/* The last verified state, otherwise the given one, otherwise NULL. */
const struct ndt_track_state *ndtd_relocalizer_reference(const struct ndtd_relocalizer *relocalizer);
/* The last verified state; NULL: none. */
const struct ndt_track_state *ndtd_relocalizer_verified(const struct ndtd_relocalizer *relocalizer);
/* Follows, after its answer, an accepted scan whose points the matcher still holds: the whole map is searched now
 * and then, and counted where scans fit another place better. Nothing else changes; a failure costs that scan. */
NDT_MUST_CHECK enum ndt_status ndtd_relocalizer_watch_scan(struct ndtd_relocalizer *relocalizer,
                                                           struct ndt_error *err);
/* Counts of the searches for a better place. */
const struct ndtd_watch_report *ndtd_relocalizer_watch(const struct ndtd_relocalizer *relocalizer);
/* Usual fit of verified scans, see ndtd_fit; 0: not known yet. */
double ndtd_relocalizer_usual_fit(const struct ndtd_relocalizer *relocalizer);
/* Whether the pose followed is not the track's any more but that of a place found since, which is not accepted, or
 * the vehicle is more likely at another place, or odometry alone has led to a place where the scan does not fit, or
 * the scans contradict odometry. */
int ndtd_relocalizer_has_left_track(const struct ndtd_relocalizer *relocalizer);
/* Whether the last scan was not accepted. */
int ndtd_relocalizer_is_active(const struct ndtd_relocalizer *relocalizer);
/* Adds the other places of the vehicle to the covariance of a pose that is not accepted, in position and heading:
 * those that fit, by their odds, and what the views leave to a place that was not found. Where no scan of the last
 * second had time for places, the hypotheses that fit this scan count alike. T_map_base: the pose at the reference
 * moment of the scan with this stamp. covariance: 6 x 6, axes of the map. */
void ndtd_relocalizer_spread(const struct ndtd_relocalizer *relocalizer, const struct ndt_pose *T_map_base,
                             int64_t stamp_ns, double covariance[36]);
/* Whether there are hypotheses that may be right while recovery is active. */
int ndtd_relocalizer_has_hypotheses(const struct ndtd_relocalizer *relocalizer);
/* The hypotheses besides the leading one, and those of a request; NULL: none. */
const struct ndtd_hypotheses *ndtd_relocalizer_alternatives(const struct ndtd_relocalizer *relocalizer);
const struct ndtd_hypotheses *ndtd_relocalizer_requested(const struct ndtd_relocalizer *relocalizer);

/* ---- localize: the search for the pose on request, see ndtd_pipeline_localize ---- */

/* The facts of an answered scan that a request needs. */
struct ndtd_answered_scan {
    uint64_t seq;
    int64_t stamp_ns;
    double reference_s;
    int is_trusted; /* the state after the scan is trusted */
    int is_tracked; /* the state is tracking, with a pose that the scan has updated: */
    struct ndt_pose T_map_base;
    double fit;
};

void ndtd_relocalizer_request(struct ndtd_relocalizer *relocalizer, const struct ndt_request_message *request);
void ndtd_relocalizer_cancel(struct ndtd_relocalizer *relocalizer);
int ndtd_relocalizer_is_requested(const struct ndtd_relocalizer *relocalizer);
/* Whether a search of the request runs. */
int ndtd_relocalizer_is_searching(const struct ndtd_relocalizer *relocalizer);
/* Copies the answer; returns 0 while there is none. */
int ndtd_relocalizer_answer(const struct ndtd_relocalizer *relocalizer, struct ndt_localize_report *out);
/* Searches for an answered scan, whose points the matcher still holds, and lets the hypotheses of the request
 * follow it. *applied: the state that the estimator has to go on from; NULL: the estimator goes on as it is. */
NDT_MUST_CHECK enum ndt_status ndtd_relocalizer_follow_up(struct ndtd_relocalizer *relocalizer,
                                                          const struct ndtd_answered_scan *scan,
                                                          const struct ndt_track_state **applied,
                                                          struct ndt_error *err);
/* Ends a search that nothing confirms for some seconds, without an accepted pose; called while no scan comes. */
void ndtd_relocalizer_idle(struct ndtd_relocalizer *relocalizer);

#endif
