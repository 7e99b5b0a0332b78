/* Private: initial guesses for a multi-start alignment, and the choice among the optima that they lead to.
 *
 * Pure functions. */
#ifndef NDTD_GUESSES_H
#define NDTD_GUESSES_H

#include "ndt/align.h"
#include "ndt_track/track.h"

enum { NDTD_GUESSES_MAX = 64, NDTD_OPTIMA_MAX = 128 };

/* Poses of the base at the reference moment of the sweep; no two are within reach of the same optimum. */
struct ndtd_guesses {
    size_t count;
    struct ndt_pose T_map_base[NDTD_GUESSES_MAX];
};

/* Knowledge besides the prediction. */
struct ndtd_guess_sources {
    const struct ndt_track_state *before; /* the state from which the prediction starts */
    const struct ndt_track_state *predicted;
    const struct ndt_track_state *verified; /* of the last scan that was confirmed; NULL: none */
};

/* The obvious ones: the prediction, no motion, constant velocity, the last verified pose. */
void ndtd_guesses_obvious(struct ndtd_guesses *out, const struct ndtd_guess_sources *sources);
/* Turned and moved about the prediction and about the state before, as far as a fast turn takes. */
void ndtd_guesses_near(struct ndtd_guesses *out, const struct ndtd_guess_sources *sources);
/* Turned all around, and spread over a disc of reach_m about the state before; `most` in all. */
void ndtd_guesses_spread(struct ndtd_guesses *out, const struct ndtd_guess_sources *sources, double reach_m,
                         size_t most);

/* Optima of one scan, and what speaks for them: the fit and the prediction, as a logarithm of a probability. */
struct ndtd_optima {
    size_t count;
    struct ndt_pose T_map_sensor[NDTD_OPTIMA_MAX];
    double score[NDTD_OPTIMA_MAX];
};

/* Length of the velocity. */
double ndtd_speed_mps(const struct ndt_twist *twist);
/* nvtl_normalized * match_ratio; 0 without an optimum. */
double ndtd_fit(const struct ndt_align_result *result);
/* Whether two poses are different optima, not two views of one. */
int ndtd_are_distinct(const struct ndt_pose *a, const struct ndt_pose *b);
/* Squared Mahalanobis distance of a pose from a mean with a covariance of its error log(mean^-1 pose), translation
 * first, axes of the body; INFINITY where the covariance is not positive definite. */
double ndtd_squared_mahalanobis(const struct ndt_pose *mean, const double covariance[36],
                                const struct ndt_pose *pose);
/* Score of a result among others: its fit, and its distance from the prior (0: none) in sigmas, up to a limit: a
 * vehicle may always do what it never did before. -INFINITY: no optimum. */
double ndtd_optimum_score(const struct ndt_align_result *result, const struct ndt_prior *prior);
/* Adds a result; without room or without an optimum: nothing. */
void ndtd_optima_add(struct ndtd_optima *optima, const struct ndt_align_result *result,
                     const struct ndt_prior *prior);
/* The score over that of the best optimum that is distinct from T_map_sensor; INFINITY: there is none. */
double ndtd_optima_margin(const struct ndtd_optima *optima, const struct ndt_pose *T_map_sensor, double score);

#endif
