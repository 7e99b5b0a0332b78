/* Private: initial guesses for a multi-start alignment, and the choice among the optima that they lead to.
 *
 * Pure functions. */
#ifndef NDTD_GUESSES_H
#define NDTD_GUESSES_H

#include "ndt/align.h"
#include "ndt_track/track.h"

enum { NDTD_GUESSES_MAX = 16, NDTD_OPTIMA_MAX = 32 };

/* Poses of the base at the reference moment of the sweep, each in the basin of another optimum. */
struct ndtd_guesses {
    size_t count;
    struct ndt_pose T_map_base[NDTD_GUESSES_MAX];
};

/* Sources of guesses besides the prediction. */
struct ndtd_guess_sources {
    const struct ndt_track_state *before; /* the state from which the prediction starts */
    const struct ndt_track_state *predicted;
    const struct ndt_track_state *verified; /* state at the last confirmed scan; NULL: none */
};

/* Writes the obvious guesses: the prediction, no motion, constant velocity, the last verified pose. */
void ndtd_guesses_obvious(struct ndtd_guesses *out, const struct ndtd_guess_sources *sources);
/* Poses at which the scan fits. */
struct ndtd_optima {
    size_t count;
    struct ndt_pose T_map_sensor[NDTD_OPTIMA_MAX];
};

/* Length of the velocity. */
double ndtd_speed_mps(const struct ndt_twist *twist);
/* nvtl_normalized * match_ratio; 0 without an optimum. */
double ndtd_fit(const struct ndt_align_result *result);
/* Usual fit of scans at verified poses: mean and variance of ndtd_fit, which depend on the sensor, the map and its
 * age. */
struct ndtd_usual_fit {
    uint32_t scans;
    double mean, variance;
    double matched; /* mean of nvtl_normalized: the fit of those points that meet the map */
};
void ndtd_usual_fit_add(struct ndtd_usual_fit *usual, double fit, double matched);
/* Mean of the usual fit; 0: not known yet. */
double ndtd_usual_fit(const struct ndtd_usual_fit *usual);
int ndtd_usual_fit_is_known(const struct ndtd_usual_fit *usual);
/* Number of standard deviations by which a fit is worse than usual; 0: it is not worse, or the usual fit is not
 * known yet. */
double ndtd_fit_deficit(const struct ndtd_usual_fit *usual, double fit);

/* Whether two poses are different optima, not two views of one. */
int ndtd_are_distinct(const struct ndt_pose *a, const struct ndt_pose *b);
/* Evidence against a pose at a squared Mahalanobis distance from its mean: the logarithm of a t distribution of 6
 * degrees of freedom in 6 dimensions, (6 + 6) / 2 ln(1 + d^2 / 6). Of the poses of people who carry a sensor and
 * look around, 95 % are within 22, 99 % within 40. */
double ndtd_surprise(double deviations2);
/* Number of places, one for each square metre and 5 degrees of heading, within reach of a pose. */
double ndtd_places_within(double reach_m, double turn_rad);
/* Adds an optimum; a full list stays as it is. */
void ndtd_optima_add(struct ndtd_optima *optima, const struct ndt_pose *T_map_sensor);

#endif
