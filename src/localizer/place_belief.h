/* Private: a hidden Markov model of the vehicle's place, over all views since its pose was known or given.
 *
 * One scan of a small room, an aisle or a narrow view fits at many places, and the next scan at others. The states
 * are the places that were found for the scan, and one state for the right place in case it was not found. The
 * vehicle moves only so far from view to view, so the weight of a place is the likelihood of the scan there times
 * the weight of the places from which the vehicle can have come. A place that fits by chance has no past; a true
 * alias has one, and stays a rival for ever. Forward algorithm: Rabiner 1989, eq. 19 to 21; the places are the
 * cells of a Markov localisation (Fox, Burgard and Thrun 1999) at which the scan fits.
 *
 * A view may miss the place where the vehicle is: it faces a wall, or a person stands in the way. Where the motion
 * was measured, that place is carried: it stays among the places, where the motion leads from the view before.
 *
 * Views of the same scene are not independent: the owner uses a belief as the past of the next one only when the
 * vehicle has moved on. Pure functions without allocation. */
#ifndef NDTD_PLACE_BELIEF_H
#define NDTD_PLACE_BELIEF_H

#include <stddef.h>

#include "ndt/pose.h"

enum { NDTD_PLACES_MAX = 48 };

struct ndtd_place {
    struct ndt_pose T_map_base;
    double log_fit;     /* logarithm of the likelihood of the scan here; only differences count */
    double log_arrival; /* logarithm of the probability that the vehicle comes here, without the scan */
    double log_missed;  /* logarithm of the probability that a measured motion leads here; -INFINITY: none does */
    double log_weight;  /* logarithm of the probability that the vehicle is here */
    int is_carried;     /* the weight is that of a place which the view has missed */
};

struct ndtd_belief {
    size_t count;
    struct ndtd_place places[NDTD_PLACES_MAX]; /* no two are views of one optimum */
    /* The right place, in case none of the places is; log_fit_unfound is relative to the best of them. */
    double log_fit_unfound, log_arrival_unfound, log_unfound;
    /* Logarithm of the factor by which this view misses the right place more often after a view that has missed it:
     * the map has changed there, or the view is poor. */
    double log_missed_again;
};

/* Distance and angle that the vehicle moves between two views: largest, and usual (more than 0). Of a measured
 * motion they are its errors; is_exact: those of the measurement alone. */
struct ndtd_motion_limit {
    double most_m, most_rad, usual_m, usual_rad;
    const struct ndt_pose *T_before_now; /* the measured motion; NULL: none */
    int is_exact;
    int is_short; /* all places within the largest motion were tried */
};

/* Starts at one place. log_unfound: logarithm of the weight of all other places. */
void ndtd_belief_begin(struct ndtd_belief *belief, const struct ndt_pose *T_map_base, double log_unfound);
/* Adds a place at which the scan fits so well, or improves the fit of one that is there already. */
void ndtd_belief_add(struct ndtd_belief *belief, const struct ndt_pose *T_map_base, double log_fit);
/* Sets the arrivals from the view before, by log_missed_again, and adds places to which an exact motion leads.
 * region: where searches look for what was not found; of it only the most counts. */
void ndtd_belief_arrive(struct ndtd_belief *belief, const struct ndtd_belief *before,
                        const struct ndtd_motion_limit *limit, const struct ndtd_motion_limit *region);
/* Sets the weights from fits and arrivals. */
void ndtd_belief_weigh(struct ndtd_belief *belief);
/* Logarithm of the odds, by this scan alone, of the place where it fits best over the other places. */
double ndtd_belief_stands_out(const struct ndtd_belief *belief);
/* The most probable place; NULL: there is none. */
const struct ndtd_place *ndtd_belief_best(const struct ndtd_belief *belief);
/* The place at this pose; NULL: there is none. */
const struct ndtd_place *ndtd_belief_at(const struct ndtd_belief *belief, const struct ndt_pose *T_map_base);
/* Adds the places of the belief to the covariance of a pose (6 x 6, axes of the map, m and rad): each with its
 * weight, in position and heading. A place that was not found lies anywhere within radius_m of centre_m, with any
 * heading. */
void ndtd_belief_spread(const struct ndtd_belief *belief, const struct ndt_pose *T_map_base,
                        const double centre_m[3], double radius_m, double covariance[36]);
/* Logarithm of the odds of a place of the belief over everything else. */
double ndtd_belief_margin(const struct ndtd_belief *belief, const struct ndtd_place *place);

#endif
