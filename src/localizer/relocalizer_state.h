/* Private to the relocaliser (relocalizer.c, multistart.c, degeneracy.c, previous_track.c, recovery.c,
 * recovery_places.c, localize.c): its state, which no other file writes, and the steps of a scan. */
#ifndef NDTD_RELOCALIZER_STATE_H
#define NDTD_RELOCALIZER_STATE_H

#include "redeskew.h"
#include "relocalizer.h"
#include "place_belief.h"
#include "window.h"

/* Rivals of a pose that get a motion of their own: each costs an alignment. */
enum { NDTD_RIVALS_MOVED = 3 };

/* The way back to the pose, or to the first one. */
struct ndtd_recovery {
    int is_active;                  /* the last scan was not accepted */
    uint32_t scans;                 /* since then */
    uint32_t searches;              /* since then, of every pose that is possible */
    uint32_t gnss_searches;         /* since then, that a GNSS position could limit */
    struct ndtd_hypothesis leading; /* the one that the estimator follows */
    struct ndtd_hypotheses others;

    int has_view;   /* `view`: where the vehicle was at the last view, `view_ns`, probably at `T_map_view` */
    uint32_t views; /* that were kept */
    struct ndtd_belief view;
    int64_t view_ns;
    struct ndt_pose T_map_view;
    int has_places; /* `places`: where it is at this scan */
    struct ndtd_belief places;
};

/* The track that an initial pose has ended, see previous_track.c. */
struct ndtd_previous_track {
    struct ndtd_hypotheses track;    /* one, or none */
    struct ndt_track_state verified; /* of it */
};

/* The search for the pose on request. */
struct ndtd_localize {
    int is_active;
    int serial; /* of the request; that of its searches */
    struct ndt_request_message request;
    struct ndtd_hypotheses hypotheses;
    int is_near;      /* a position was told */
    int is_searching; /* the answer of the searcher is awaited */
    uint64_t seq;     /* of the last scan that was searched */
    int scans, empty; /* scans since the first hypothesis; searches without one */
    double begun_us, started_us, silent_us, search_us;
    int is_applied; /* the estimator has to go on from `applied` */
    struct ndt_track_state applied;
    struct ndt_localize_report report;
};

/* What a search of the window has found for the scan. */
struct ndtd_proposals {
    int is_searched;
    const struct ndt_search_result *found;
    double us;
    int evaluations; /* as many as its alignments are worth, of all points of the scan */
};

struct ndtd_relocalizer {
    struct ndtd_relocalizer_parts parts;
    const struct ndtd_settings *settings;
    struct ndtd_points_view *view;

    int has_given; /* `given` is an initial pose that no scan has confirmed yet */
    struct ndt_track_state given;
    int is_verified; /* `verified` is the estimate at the last scan that was accepted */
    struct ndt_track_state verified;
    int is_extending;            /* `verified` is that of odometry beyond the edge of the map */
    double fastest_mps;          /* of the verified scans */
    struct ndtd_usual_fit usual; /* of the verified scans */
    struct ndtd_previous_track previous;
    struct ndtd_recovery recovery;
    struct ndtd_localize localize;

    struct ndtd_window *window; /* NULL: there is nothing to search with */
    struct ndtd_proposals proposals;
    struct ndtd_guesses guesses;
    struct ndtd_optima optima; /* of the scan */
};

/* One scan on its way through the relocaliser: everything that its steps pass on. */
struct ndtd_relocalization {
    struct ndtd_relocalizer *relocalizer;
    struct ndtd_matcher *matcher;
    const struct ndtd_scan *scan;
    struct ndtd_alignment *alignment;
    struct ndtd_decision *decision;
    struct ndt_prior expected; /* the prediction, while the prior of the alignment is that of a guess */
    int has_evidence;          /* it follows a pose that was verified */
    int has_first; /* guesses were aligned, deskewed as `first`, before the motion of the best was found */
    struct ndtd_deskewing first;
};

/* ---- the steps, in their order ---- */

/* Aligns from other guesses, all of a list together; the best fit becomes the alignment. Nothing happens where the
 * scan confirms a prediction that is trusted. */
NDT_MUST_CHECK enum ndt_status ndtd_try_multistart(struct ndtd_relocalization *now, struct ndt_error *err);
/* Moves the alignment to an optimum along a degenerate direction that fits significantly better, and removes from
 * its observation the directions along which other poses fit as well. */
NDT_MUST_CHECK enum ndt_status ndtd_resolve_degeneracy(struct ndtd_relocalization *now, struct ndt_error *err);
/* The estimator returns to the previous track where the scan fits there and not at the pose that was given, or
 * significantly better; the track ends where the scan fits here only. The decision is ambiguous where both fit
 * alike. */
NDT_MUST_CHECK enum ndt_status ndtd_compare_previous_track(struct ndtd_relocalization *now, struct ndt_error *err);
/* Aligns the scan with the previous track. */
NDT_MUST_CHECK enum ndt_status ndtd_follow_previous_track(struct ndtd_relocalizer *relocalizer,
                                                          struct ndt_error *err);
/* While the pose is not accepted: the hypotheses follow the scan, a search begins or ends, and the best hypothesis
 * becomes the estimate. */
NDT_MUST_CHECK enum ndt_status ndtd_recover(struct ndtd_relocalization *now, struct ndt_error *err);

/* Places where the vehicle may be, while the pose is not accepted; see recovery_places.c. From the last verified
 * pose on: */
void ndtd_places_begin(struct ndtd_relocalizer *relocalizer);
/* The scan: sets recovery.places from its optima and the hypotheses. */
void ndtd_places_update(const struct ndtd_relocalization *now);
/* Logarithm of the odds of the leading hypothesis over all other places, of which the strongest get a motion of
 * their own. */
NDT_MUST_CHECK enum ndt_status ndtd_places_weigh(const struct ndtd_relocalization *now, double *margin,
                                                 struct ndt_error *err);
/* The scan has decided nothing: it becomes the last view where it is a new one. */
void ndtd_places_keep(const struct ndtd_relocalization *now);

/* ---- used by several steps ---- */

/* Aligns the scan of the matcher at each of the hypotheses; those that it does not fit any more are removed. */
NDT_MUST_CHECK enum ndt_status ndtd_follow_hypotheses(struct ndtd_relocalizer *relocalizer,
                                                      struct ndtd_hypotheses *hypotheses, struct ndt_error *err);
/* The estimator goes on from another hypothesis; the scan is aligned there again. *next becomes the leading one
 * before, or without a pose is taken off the list of hypotheses. */
NDT_MUST_CHECK enum ndt_status ndtd_change_leading(struct ndtd_relocalization *now, struct ndtd_hypothesis *next,
                                                   struct ndt_error *err);
/* The result of a batch becomes that of the alignment, which began at the prior of that number. */
void ndtd_take_from_batch(struct ndtd_relocalization *now, size_t number);
/* Logarithm of the likelihood of the scan at a place that was not found, over that at the one where it fits best,
 * which stands out by so much. */
double ndtd_log_fit_unfound(const struct ndtd_relocalization *now, double stands_out);
/* Angle by which a sensor turns in dt_s at most. */
double ndtd_turn_reach_rad(double dt_s);
/* Speed half as high again as the highest that was verified. */
double ndtd_likely_speed_mps(const struct ndtd_relocalizer *relocalizer);
/* Distance that it has probably come since it was verified, at most. */
double ndtd_likely_reach_m(const struct ndtd_relocalizer *relocalizer, int64_t stamp_ns);
/* Confidence in the alignment, as in ndtd_alignment_confidence. */
double ndtd_confidence_now(const struct ndtd_relocalization *now, int *fits);
/* Whether a pose heads where the initial pose that no scan has confirmed yet does, as far as that can be wrong: a
 * hall looks much the same to who has turned around. 1 without such a pose. */
int ndtd_heads_as_given(const struct ndtd_relocalizer *relocalizer, const struct ndt_pose *T_map_base);
/* Distance that the vehicle can come in dt_s, by recovery.max_speed_mps and max_acceleration_mps2. */
double ndtd_reach_m(const struct ndtd_settings *settings, double speed_mps, double dt_s);
/* Position of the GNSS antenna in the base frame. */
const double *ndtd_antenna_m(const struct ndtd_relocalizer *relocalizer);

#endif
