/* Private: pose hypotheses, each followed from scan to scan until one is accepted. Pure functions. */
#ifndef NDTD_POSE_HYPOTHESES_H
#define NDTD_POSE_HYPOTHESES_H

#include "ndt_search/hypothesis_test.h"
#include "ndt_track/track.h"

enum { NDTD_HYPOTHESES_MAX = 12 };

/* One pose hypothesis, with the evidence for and against it. */
struct ndtd_hypothesis {
    struct ndt_track_state before;   /* prediction at the last scan */
    struct ndt_track_state state;    /* estimate after the last scan */
    uint32_t scans;                  /* number of scans that were aligned with it */
    double fit;                      /* nvtl_normalized * match_ratio, mean over the last scans */
    double confidence;               /* confidence in the alignment of the last scan; 0: the scan did not fit */
    uint32_t agreements;             /* searches that found it best without having started from it */
    uint32_t contradictions;         /* searches since the last agreement that found another hypothesis best */
    struct ndt_hypothesis_test test; /* test with the searches over every possible pose */
    uint32_t misses;                 /* scans in a row that do not fit */
    int is_found;                    /* a search has found it */
};

/* Pose hypotheses, in no order. */
struct ndtd_hypotheses {
    size_t count;
    struct ndtd_hypothesis list[NDTD_HYPOTHESES_MAX];
};

/* Takes in a scan that was aligned at the hypothesis. */
void ndtd_hypothesis_follow(struct ndtd_hypothesis *hypothesis, const struct ndt_track_state *state, double fit,
                            double confidence);
/* Forgets the evidence from searches and scans, because it belongs to a map that is no longer in use. */
void ndtd_hypothesis_forget(struct ndtd_hypothesis *hypothesis);
/* The best hypothesis; NULL: there is none. */
struct ndtd_hypothesis *ndtd_hypotheses_best(struct ndtd_hypotheses *hypotheses);
/* Adds a hypothesis; in a full list it replaces the worst one if it is better. */
void ndtd_hypotheses_add(struct ndtd_hypotheses *hypotheses, const struct ndtd_hypothesis *hypothesis);
/* Adds a hypothesis, in a full list in place of the worst one in any case; returns it. */
struct ndtd_hypothesis *ndtd_hypotheses_insert(struct ndtd_hypotheses *hypotheses,
                                               const struct ndtd_hypothesis *hypothesis);
/* Removes hypotheses that do not fit any more, and all but the best of those at one pose. */
void ndtd_hypotheses_prune(struct ndtd_hypotheses *hypotheses);
/* The best fit among the hypotheses that are distinct from this pose; 0: there is none. */
double ndtd_hypotheses_second(const struct ndtd_hypotheses *hypotheses, const struct ndt_pose *T_map_base);
/* The candidates of a search over every possible pose. */
struct ndtd_found {
    const struct ndt_search_result *result;
    int64_t stamp_ns; /* stamp of the scan that was searched for */
    struct ndt_pose T_base_sensor;
    const struct ndt_search_region
        *doubted; /* region of a hint that may be wrong, to which the search was limited; NULL: none */
};
/* Takes in a search: all hypotheses, and the leading one that the estimator follows (NULL: none), gain or lose
 * evidence; up to `most` new ones are added. A search near a doubted hint counts neither against hypotheses outside
 * of its region nor as an agreement. */
void ndtd_hypotheses_take(struct ndtd_hypotheses *hypotheses, struct ndtd_hypothesis *leading,
                          const struct ndt_track *track, const struct ndtd_found *found, uint32_t most);
/* Whether a hypothesis is accepted: the searches leave no other, the last scan fits (min_confidence) unless
 * searches from several views are certain, and no other hypothesis fits as well. is_near: the searched poses
 * certainly include the right one, because they lie within reach of the last verified pose. */
int ndtd_hypothesis_is_accepted(const struct ndtd_hypothesis *hypothesis, double second_fit, double min_confidence,
                                int is_near);

#endif
