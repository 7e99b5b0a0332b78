/* Private to the relocaliser (relocalizer.c, multistart.c, degeneracy.c, previous_track.c, recovery.c,
 * recovery_places.c, watch.c, localize.c): its state, which no other file writes, and the steps of a scan. */
#ifndef NDTD_RELOCALIZER_STATE_H
#define NDTD_RELOCALIZER_STATE_H

#include "redeskew.h"
#include "relocalizer.h"
#include "place_belief.h"
#include "search_request.h"
#include "window.h"

/* Number of rivals that are deskewed with their own motion, by each way to rank them: each costs an alignment. */
enum { NDTD_RIVALS_MOVED = 3 };

/* State of recovery: finding the lost pose again, or the first one. */
struct ndtd_recovery {
    int is_active;                  /* the last scan was not accepted */
    uint32_t scans;                 /* scans since it became active */
    uint32_t searches;              /* searches of every possible pose since it became active */
    uint32_t against_odometry;      /* scans since then that speak against odometry, less those that speak for it */
    uint32_t gnss_searches;         /* searches since then that a GNSS position could limit */
    struct ndtd_hypothesis leading; /* hypothesis that the estimator follows */
    struct ndtd_hypotheses others;

    int has_view; /* `view` holds the places at the last view, `view_ns`; `T_map_view` is the most probable */
    struct ndt_track_state view_state; /* from which the motion since then is predicted */
    uint32_t views;                    /* number of views kept */
    struct ndtd_belief view;
    int64_t view_ns;
    struct ndt_pose T_map_view;
    int has_places; /* `places` holds the places at the last scan that had time for them, `places_ns` */
    struct ndtd_belief places;
    int64_t places_ns;
};

/* The track that an initial pose has ended, see previous_track.c. */
struct ndtd_previous_track {
    struct ndtd_hypotheses track;    /* one track, or none */
    struct ndt_track_state verified; /* its last verified state */
};

/* The search for the pose on request. */
struct ndtd_localize {
    int is_active;
    int serial; /* number of the request, which its searches carry */
    struct ndt_request_message request;
    struct ndtd_hypotheses hypotheses;
    int is_near;      /* the request has a position */
    int is_searching; /* the answer of the searcher is awaited */
    uint64_t seq;     /* number of the last scan that was searched for */
    int scans, empty; /* scans since the first hypothesis; searches without one */
    double begun_us, started_us, silent_us, search_us;
    int is_applied; /* the estimator has to go on from `applied` */
    struct ndt_track_state applied;
    struct ndt_localize_report report;
};

/* Largest number of candidates beside the place that is followed. */
enum { NDTD_NEAR_MOST = 2 };

/* Candidates that a search of the window has found for the scan. */
struct ndtd_proposals {
    int is_searched;
    const struct ndt_search_result *found;
    struct ndt_pose T_map_near[NDTD_NEAR_MOST]; /* sensor poses near the one that was followed */
    size_t near_count;
};

/* The search for a better place while the pose is accepted, see watch.c. */
struct ndtd_watch {
    int has_started; /* a search was started: */
    int64_t started_ns;
    struct ndt_pose T_map_searched; /* accepted pose at the scan that was searched for */
    int has_seen;                   /* the last scan, so that none counts twice: */
    int64_t seen_ns;
    struct ndtd_hypotheses rivals; /* places elsewhere that every scan since has fitted significantly better */
    int is_doubted;                /* one of them is convincing */
    struct ndtd_watch_report report;
};

struct ndtd_relocalizer {
    struct ndtd_relocalizer_parts parts;
    const struct ndtd_settings *settings;
    struct ndtd_points_view *view;

    int has_given; /* `given` is an initial pose that no scan has confirmed yet */
    struct ndt_track_state given;
    int is_verified; /* `verified` is the estimate at the last scan that was accepted */
    struct ndt_track_state verified;
    int is_extending;            /* `verified` is the pose of odometry beyond the edge of the map */
    double odometry_lead_sum;    /* sum of the leads of poses beside those that odometry holds, see degeneracy.c */
    double fastest_mps;          /* highest speed of verified scans */
    struct ndtd_usual_fit usual; /* usual fit of verified scans */
    double above_ground_m;       /* mean height of the base above the ground of the map, if `grounds` are enough */
    uint32_t grounds;            /* verified scans in a row whose height agrees with the mean */
    struct ndtd_previous_track previous;
    struct ndtd_recovery recovery;
    struct ndtd_localize localize;
    struct ndtd_watch watch;

    struct ndtd_window *window; /* NULL: searches are not possible */
    struct ndtd_proposals proposals;
    struct ndtd_guesses guesses;
    struct ndtd_optima optima; /* optima of the scan */
};

/* One scan on its way through the relocaliser: the data that its steps pass on. */
struct ndtd_relocalization {
    struct ndtd_relocalizer *relocalizer;
    struct ndtd_matcher *matcher;
    const struct ndtd_scan *scan;
    struct ndtd_alignment *alignment;
    struct ndtd_decision *decision;
    struct ndt_prior expected; /* the prediction, while the prior of the alignment is that of a guess */
    int has_evidence;          /* `expected` counts as evidence: it follows from a verified pose */
    int has_first; /* guesses were aligned, deskewed as `first`, before the motion of the best one was found */
    struct ndtd_deskewing first;
};

/* Sum of leads from which on the scans contradict odometry, 20 : 1. Corridors, tunnels and rows with honest
 * odometry, 2040 scans, 16 and 32 beams: at most 2.0. */
#define NDTD_CONTRADICTION 3.0

/* Usual errors of a given pose: a distance, and an angle. */
#define NDTD_GIVEN_USUAL_M   2.0
#define NDTD_GIVEN_USUAL_RAD 0.6

/* Radius of the window of a scan around its prediction. */
double ndtd_window_radius_m(const struct ndtd_relocalizer *relocalizer, const struct ndtd_alignment *alignment);
/* Whether odometry tells the way of a prediction. */
int ndtd_has_odometry(const struct ndt_track_state *predicted);
/* Whether scans contradict odometry: it measures no motion then, and vouches for no pose. */
int ndtd_is_odometry_contradicted(const struct ndtd_relocalizer *relocalizer);

/* ---- the steps, in their order ---- */

/* Aligns from other guesses, all of a list together; the best fit becomes the alignment. Nothing happens where the
 * scan confirms a prediction that is trusted. */
NDT_MUST_CHECK enum ndt_status ndtd_try_multistart(struct ndtd_relocalization *now, struct ndt_error *err);
/* Moves the alignment to an optimum along a degenerate direction that fits significantly better, and removes from
 * its observation the directions along which other poses fit as well. */
NDT_MUST_CHECK enum ndt_status ndtd_resolve_degeneracy(struct ndtd_relocalization *now, struct ndt_error *err);
/* Compares the given pose with the previous track. The estimator returns to the track where the scan fits only
 * there, or significantly better there; the track ends where the scan fits only at the given pose. The decision is
 * ambiguous where both fit alike. */
NDT_MUST_CHECK enum ndt_status ndtd_compare_previous_track(struct ndtd_relocalization *now, struct ndt_error *err);
/* Aligns the scan with the previous track. */
NDT_MUST_CHECK enum ndt_status ndtd_follow_previous_track(struct ndtd_relocalizer *relocalizer,
                                                          struct ndt_error *err);
/* Runs recovery while the pose is not accepted: the hypotheses follow the scan, a search begins or ends, and the
 * best hypothesis becomes the estimate. */
NDT_MUST_CHECK enum ndt_status ndtd_recover(struct ndtd_relocalization *now, struct ndt_error *err);

/* Starts the places of the vehicle at the last verified pose, or at the given one; see recovery_places.c. */
void ndtd_places_begin(struct ndtd_relocalizer *relocalizer);
/* Sets recovery.places from the optima of the scan and the hypotheses. */
void ndtd_places_update(const struct ndtd_relocalization *now);
/* Computes the logarithm of the odds of the leading hypothesis over all other places; the strongest places are
 * deskewed with their own motion. */
NDT_MUST_CHECK enum ndt_status ndtd_places_weigh(const struct ndtd_relocalization *now, double *margin,
                                                 struct ndt_error *err);
/* Whether the vehicle, which is at this pose, has moved on since the last view; needs recovery.has_places. */
int ndtd_places_is_new_view(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_base);
/* Keeps a scan that has decided nothing as the last view, if the vehicle has moved on since the view before. */
void ndtd_places_keep(const struct ndtd_relocalization *now);

/* ---- used by several steps ---- */

/* Aligns the matcher's scan at each hypothesis and removes hypotheses that it does not fit any more. */
NDT_MUST_CHECK enum ndt_status ndtd_follow_hypotheses(struct ndtd_relocalizer *relocalizer,
                                                      struct ndtd_hypotheses *hypotheses, struct ndt_error *err);
/* Makes another hypothesis the leading one, from which the estimator goes on, and aligns the scan there. *next
 * becomes the previous leading hypothesis, or without a pose is removed from the list. */
NDT_MUST_CHECK enum ndt_status ndtd_change_leading(struct ndtd_relocalization *now, struct ndtd_hypothesis *next,
                                                   struct ndt_error *err);
/* Makes a result of the batch that of the alignment, and the prior of that number its prior; the costs stay. */
void ndtd_take_from_batch(struct ndtd_relocalization *now, size_t number);
/* Logarithm of the likelihood of the scan at a place that was not found, over that at the place where it fits best.
 * stands_out: logarithm of the odds of that place over the other ones found. */
double ndtd_log_fit_unfound(const struct ndtd_relocalization *now, double stands_out);
/* Whether the scan observes all directions of the position; where it does not, equal places may stand in a row. */
int ndtd_observes_all(const struct ndtd_relocalization *now);
/* Logarithm of the factor by which a view misses the right place more often after one that has missed it. */
double ndtd_log_missed_again(const struct ndtd_relocalizer *relocalizer);
/* Whether the window was searched with a view wide enough for the right place to stand out. */
int ndtd_is_wide_view(const struct ndtd_relocalizer *relocalizer);
/* Largest angle that a sensor turns in dt_s. */
double ndtd_turn_reach_rad(double dt_s);
/* Likely speed: 1.5 times the highest speed that was verified, or that a given pose came with. */
double ndtd_likely_speed_mps(const struct ndtd_relocalizer *relocalizer);
/* Largest distance that the vehicle likely comes in dt_s. */
double ndtd_likely_way_m(const struct ndtd_relocalizer *relocalizer, double dt_s);
/* Height of the sensor of this scan above the ground, as at the verified scans; 0: not known yet. */
double ndtd_above_ground_m(const struct ndtd_relocalizer *relocalizer);
/* Usual distance that the vehicle comes in dt_s. */
double ndtd_usual_way_m(const struct ndtd_relocalizer *relocalizer, double dt_s);
/* Largest height that the vehicle likely climbs or descends in dt_s. */
double ndtd_likely_climb_m(const struct ndtd_relocalizer *relocalizer, double dt_s);
/* Largest distance that the vehicle has likely come since it was verified, or its pose was given. */
double ndtd_likely_reach_m(const struct ndtd_relocalizer *relocalizer, int64_t stamp_ns);
/* Confidence in the alignment, as in ndtd_alignment_confidence. */
double ndtd_confidence_now(const struct ndtd_relocalization *now, int *fits);
/* Whether a pose has the heading of the initial pose that no scan has confirmed yet, within the error of that: a
 * hall looks much the same after a half turn. 1 without such a pose. */
int ndtd_heads_as_given(const struct ndtd_relocalizer *relocalizer, const struct ndt_pose *T_map_base);
/* Largest distance that the vehicle can come in dt_s, by recovery.max_speed_mps and max_acceleration_mps2. */
double ndtd_reach_m(const struct ndtd_settings *settings, double speed_mps, double dt_s);
/* Position of the GNSS antenna in the base frame. */
const double *ndtd_antenna_m(const struct ndtd_relocalizer *relocalizer);

#endif
