/* Private: where else the vehicle may be, when the prediction of a scan is not confirmed.
 *
 * Pure functions: lists of guesses, and the choice among the alignments that began there. */
#ifndef NDTD_HYPOTHESES_H
#define NDTD_HYPOTHESES_H

#include "ndt/align.h"
#include "ndt_track/track.h"

enum { NDTD_HYPOTHESES_MAX = 64 };

/* Poses of the base at the reference moment of the sweep; no two are within reach of the same optimum. */
struct ndtd_hypotheses {
    size_t count;
    struct ndt_pose T_map_base[NDTD_HYPOTHESES_MAX];
};

/* What is known besides the prediction. */
struct ndtd_hypothesis_sources {
    const struct ndt_track_state *before; /* the state from which the prediction starts */
    const struct ndt_track_state *predicted;
    const struct ndt_track_state *verified; /* of the last scan that was confirmed; NULL: none */
};

/* Begins with the obvious ones: the prediction, no motion, constant velocity, the last verified pose. */
void ndtd_hypotheses_obvious(struct ndtd_hypotheses *out, const struct ndtd_hypothesis_sources *sources);
/* Replaces them by a spread, up to `most`: turned about the vertical on the spot, and samples of the predicted
 * covariance in a fixed order. reach_m: how far the vehicle can have come. */
void ndtd_hypotheses_spread(struct ndtd_hypotheses *out, const struct ndtd_hypothesis_sources *sources,
                            double reach_m, size_t most);

/* The choice among alignments of one scan. */
struct ndtd_choice {
    int best;      /* index of the best fit; -1: none found an optimum */
    double margin; /* 1 - fit of the second best different optimum / fit of the best; 1: there is no second */
};

/* Length of the velocity. */
double ndtd_speed_mps(const struct ndt_twist *twist);
/* nvtl_normalized * match_ratio; 0 without an optimum. */
double ndtd_fit(const struct ndt_align_result *result);
/* Whether two poses are different optima, not two views of one. */
int ndtd_are_distinct(const struct ndt_pose *a, const struct ndt_pose *b);
/* The best fit; ties: the first. */
struct ndtd_choice ndtd_hypotheses_choose(const struct ndt_align_result *results, size_t count);

#endif
