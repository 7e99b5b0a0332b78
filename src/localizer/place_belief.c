#include "place_belief.h"

#include <math.h>

#include "guesses.h"

/* Largest evidence of one scan against a place: the map may have changed there, or the alignment failed. */
static const double MOST_AGAINST = 10;
/* Least logarithm of the odds that a place which was not found before is another place. */
static const double LEAST_OTHERS = 9;
/* The motion was measured or short: logarithm of the factor by which the right place lies elsewhere, where the scan
 * fits at a place that the motion leads to; and evidence up to which that is the place: against the motion, and of
 * the best fit. */
static const double MEASURED_ELSEWHERE = -9, MEASURED_THERE = 5, FITS_THERE = 6;

/* Logarithm of the least probability of a place that is carried: the list has room for few. */
static const double LEAST_CARRIED = -12;

static double log_sum(double a, double b)
{
    const double most = fmax(a, b);
    return isinf(most) ? most : most + log(exp(a - most) + exp(b - most));
}

void ndtd_belief_begin(struct ndtd_belief *belief, const struct ndt_pose *T_map_base, double log_unfound)
{
    belief->count = 1;
    belief->places[0] = (struct ndtd_place){.T_map_base = *T_map_base, .log_missed = -INFINITY};
    belief->log_unfound = log_unfound;
}

/* The number of the place at a pose; count: there is none. */
static size_t number_of(const struct ndtd_belief *belief, const struct ndt_pose *T_map_base)
{
    size_t i = 0;
    while (i < belief->count && ndtd_are_distinct(&belief->places[i].T_map_base, T_map_base))
        i++;
    return i;
}

const struct ndtd_place *ndtd_belief_at(const struct ndtd_belief *belief, const struct ndt_pose *T_map_base)
{
    const size_t i = number_of(belief, T_map_base);
    return i < belief->count ? &belief->places[i] : NULL;
}

void ndtd_belief_add(struct ndtd_belief *belief, const struct ndt_pose *T_map_base, double log_fit)
{
    const size_t i = number_of(belief, T_map_base);
    if (i == NDTD_PLACES_MAX || (i < belief->count && belief->places[i].log_fit >= log_fit))
        return;
    belief->count += i == belief->count;
    belief->places[i] = (struct ndtd_place){.T_map_base = *T_map_base, .log_fit = log_fit, .log_missed = -INFINITY};
}

/* ---- arrival ---- */

/* Evidence against a motion, see ndtd_surprise; INFINITY: the motion is out of reach. */
static double surprise_of(const struct ndtd_motion_limit *limit, const struct ndt_pose *from,
                          const struct ndt_pose *to)
{
    const struct ndt_pose start = limit->T_before_now ? ndt_pose_compose(from, limit->T_before_now) : *from;
    const double moved_m = ndt_pose_distance_m(&start, to), turned_rad = ndt_pose_angle_rad(&start, to);
    if (moved_m > limit->most_m || turned_rad > limit->most_rad)
        return INFINITY;
    const double squares = pow(moved_m / limit->usual_m, 2) + pow(turned_rad / limit->usual_rad, 2);
    return ndtd_surprise(squares);
}

static double best_fit(const struct ndtd_belief *belief)
{
    double most = -INFINITY;
    for (size_t i = 0; i < belief->count; i++)
        most = fmax(most, belief->places[i].log_fit);
    return most;
}

/* Whether the scan fits at a place to which a measured or a short motion leads. */
static int is_arrival_found(const struct ndtd_belief *belief, const struct ndtd_motion_limit *limit,
                            const struct ndt_pose *from)
{
    const double least = best_fit(belief) - FITS_THERE;
    for (size_t i = 0; (limit->is_exact || limit->is_short) && i < belief->count; i++)
        if (belief->places[i].log_fit >= least &&
            surprise_of(limit, from, &belief->places[i].T_map_base) <= MEASURED_THERE)
            return 1;
    return 0;
}

/* Carries a place of the view before to where the measured motion leads, if it may be right and there is room. */
static void carry(struct ndtd_belief *belief, const struct ndtd_place *from, const struct ndtd_motion_limit *limit)
{
    const struct ndt_pose T_map_base = ndt_pose_compose(&from->T_map_base, limit->T_before_now);
    const size_t i = number_of(belief, &T_map_base);
    if (i == belief->count && from->log_weight >= LEAST_CARRIED)
        ndtd_belief_add(belief, &T_map_base, -INFINITY);
    if (i == belief->count)
        return;
    double *log_missed = &belief->places[i].log_missed;
    *log_missed = log_sum(*log_missed, from->log_weight + (from->is_carried ? belief->log_missed_again : 0));
}

void ndtd_belief_arrive(struct ndtd_belief *belief, const struct ndtd_belief *before,
                        const struct ndtd_motion_limit *limit, const struct ndtd_motion_limit *region)
{
    const double others = fmax(LEAST_OTHERS, log(ndtd_places_within(region->most_m, region->most_rad) /
                                                 ndtd_places_within(limit->most_m, limit->most_rad)));
    double known = -INFINITY;
    for (size_t k = 0; k < before->count; k++) {
        const int is_found = is_arrival_found(belief, limit, &before->places[k].T_map_base);
        if (limit->is_exact && !is_found)
            carry(belief, &before->places[k], limit);
        known = log_sum(known, before->places[k].log_weight + (is_found ? MEASURED_ELSEWHERE : 0));
    }
    belief->log_arrival_unfound = log_sum(known, before->log_unfound + belief->log_missed_again);
    for (size_t i = 0; i < belief->count; i++) {
        struct ndtd_place *place = &belief->places[i];
        place->log_arrival = before->log_unfound - others;
        for (size_t k = 0; k < before->count; k++)
            place->log_arrival = log_sum(place->log_arrival,
                                         before->places[k].log_weight -
                                             surprise_of(limit, &before->places[k].T_map_base, &place->T_map_base));
    }
}

/* ---- weights ---- */

void ndtd_belief_weigh(struct ndtd_belief *belief)
{
    const double most = best_fit(belief);
    double total = belief->log_unfound = belief->log_fit_unfound + belief->log_arrival_unfound;
    for (size_t i = 0; i < belief->count; i++) {
        struct ndtd_place *place = &belief->places[i];
        const int is_found = !isinf(place->log_fit);
        const double seen = is_found ? fmax(place->log_fit - most, -MOST_AGAINST) + place->log_arrival : -INFINITY;
        const double missed = belief->log_fit_unfound + place->log_missed;
        place->is_carried = !is_found || missed > seen;
        place->log_weight = fmax(seen, missed);
        total = log_sum(total, place->log_weight);
    }
    for (size_t i = 0; i < belief->count; i++)
        belief->places[i].log_weight -= total;
    belief->log_unfound -= total;
}

double ndtd_belief_stands_out(const struct ndtd_belief *belief)
{
    double most = -INFINITY, others = -INFINITY;
    for (size_t i = 0; i < belief->count; i++) {
        const double fit = belief->places[i].log_fit;
        others = log_sum(others, fmin(fit, most));
        most = fmax(most, fit);
    }
    return most - others;
}

const struct ndtd_place *ndtd_belief_best(const struct ndtd_belief *belief)
{
    const struct ndtd_place *best = NULL;
    for (size_t i = 0; i < belief->count; i++)
        if (!best || belief->places[i].log_weight > best->log_weight)
            best = &belief->places[i];
    return best;
}

double ndtd_belief_margin(const struct ndtd_belief *belief, const struct ndtd_place *place)
{
    double rest = belief->log_unfound;
    for (size_t i = 0; i < belief->count; i++)
        if (&belief->places[i] != place)
            rest = log_sum(rest, belief->places[i].log_weight);
    return place->log_weight - rest;
}

/* Adds the second moment of a distance in position and heading. */
static void add_moment(double weight, const double from_m[3], const double to_m[3], double turn_rad,
                       double covariance[36])
{
    const double off[6] = {to_m[0] - from_m[0], to_m[1] - from_m[1], to_m[2] - from_m[2], 0, 0, turn_rad};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            covariance[6 * i + j] += weight * (off[i] * off[j]);
}

void ndtd_belief_spread(const struct ndtd_belief *belief, const struct ndt_pose *T_map_base,
                        const double centre_m[3], double radius_m, double covariance[36])
{
    const double heading_rad = ndt_pose_heading_rad(T_map_base), unfound = exp(belief->log_unfound);
    for (size_t k = 0; k < belief->count; k++) {
        const struct ndtd_place *place = &belief->places[k];
        const double turn_rad = remainder(ndt_pose_heading_rad(&place->T_map_base) - heading_rad, 2 * M_PI);
        add_moment(exp(place->log_weight), T_map_base->t_m, place->T_map_base.t_m, turn_rad, covariance);
    }
    add_moment(unfound, T_map_base->t_m, centre_m, 0, covariance);
    covariance[0] += unfound * radius_m * radius_m / 4; /* variances of a point in a disc, and of any angle */
    covariance[7] += unfound * radius_m * radius_m / 4;
    covariance[35] += unfound * M_PI * M_PI / 3;
}
