/* Private: where the vehicle may be, after all views since its pose was known: a hidden Markov model.
 *
 * One scan of a small room, an aisle or a narrow view fits at many places, each time at others. The states are the
 * places that were found for the scan, and one state for the right place if none of these is. From view to view the
 * vehicle comes only so far, so a place counts as much as the scan fits there times as much as the places count
 * that it can have come from. A place that fits by chance has no past; one that is alike everywhere has one, and
 * stays a rival for ever. Forward algorithm: Rabiner 1989, eq. 19 to 21; the places are the cells of a Markov
 * localisation (Fox, Burgard and Thrun 1999) at which the scan fits.
 *
 * Views of the same thing are one experiment: the owner takes a belief for the past of the next one only when the
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
    double log_weight;  /* logarithm of the probability that it is here */
};

struct ndtd_belief {
    size_t count;
    struct ndtd_place places[NDTD_PLACES_MAX]; /* no two are views of one optimum */
    /* The right place if none of these is; log_fit relative to the best of them. */
    double log_fit_unfound, log_arrival_unfound, log_unfound;
};

/* Distance and angle that the vehicle moves between two views: at most, and usually (more than 0). */
struct ndtd_motion_limit {
    double most_m, most_rad, usual_m, usual_rad;
};

/* All at one place. */
void ndtd_belief_begin(struct ndtd_belief *belief, const struct ndt_pose *T_map_base);
/* Adds a place where the scan fits so well, or a better fit to one that is there. */
void ndtd_belief_add(struct ndtd_belief *belief, const struct ndt_pose *T_map_base, double log_fit);
/* Sets the arrivals from the view before. region: where searches look for what was not found; of it only the most
 * counts. */
void ndtd_belief_arrive(struct ndtd_belief *belief, const struct ndtd_belief *before,
                        const struct ndtd_motion_limit *limit, const struct ndtd_motion_limit *region);
/* Sets the weights from fits and arrivals. */
void ndtd_belief_weigh(struct ndtd_belief *belief);
/* Logarithm of the odds of the place where the scan fits best over the other places, of the scan alone. */
double ndtd_belief_stands_out(const struct ndtd_belief *belief);
/* The most probable place; NULL: there is none. */
const struct ndtd_place *ndtd_belief_best(const struct ndtd_belief *belief);
/* The one at this pose; NULL: there is none. */
struct ndtd_place *ndtd_belief_at(struct ndtd_belief *belief, const struct ndt_pose *T_map_base);
/* Logarithm of the odds of one of its places over everything else. */
double ndtd_belief_margin(const struct ndtd_belief *belief, const struct ndtd_place *place);

#endif
