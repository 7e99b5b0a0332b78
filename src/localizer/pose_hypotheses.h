/* Private: poses that the vehicle may have, each followed from scan to scan until one is accepted. Pure functions.
 */
#ifndef NDTD_POSE_HYPOTHESES_H
#define NDTD_POSE_HYPOTHESES_H

#include "ndt_search/hypothesis_test.h"
#include "ndt_track/track.h"

enum { NDTD_HYPOTHESES_MAX = 12 };

/* One hypothesis, and what speaks for it. */
struct ndtd_hypothesis {
    struct ndt_track_state before;   /* the prediction at the last scan */
    struct ndt_track_state state;    /* after it */
    uint32_t scans;                  /* scans that it was aligned with */
    double fit;                      /* nvtl_normalized * match_ratio, mean over the last scans */
    double confidence;               /* of the alignment of the last scan; 0: it did not fit */
    uint32_t agreements;             /* searches that found it best, without looking there first */
    uint32_t contradictions;         /* searches that found another one best, since the last agreement */
    struct ndt_hypothesis_test test; /* of the searches over every pose that is possible */
    uint32_t misses;                 /* scans in a row that do not fit */
    int is_found;                    /* a search has found it */
};

/* The hypotheses, in no order. */
struct ndtd_hypotheses {
    size_t count;
    struct ndtd_hypothesis list[NDTD_HYPOTHESES_MAX];
};

/* Takes in a scan that was aligned there. */
void ndtd_hypothesis_follow(struct ndtd_hypothesis *hypothesis, const struct ndt_track_state *state, double fit,
                            double confidence);
/* Forgets what searches and scans have told about it: the map of that time is no longer in use. */
void ndtd_hypothesis_forget(struct ndtd_hypothesis *hypothesis);
/* The best one; NULL: there is none. */
struct ndtd_hypothesis *ndtd_hypotheses_best(struct ndtd_hypotheses *hypotheses);
/* Adds a hypothesis; in a full list it replaces the worst, if that is worse. */
void ndtd_hypotheses_add(struct ndtd_hypotheses *hypotheses, const struct ndtd_hypothesis *hypothesis);
/* The same in any case; returns it. */
struct ndtd_hypothesis *ndtd_hypotheses_insert(struct ndtd_hypotheses *hypotheses,
                                               const struct ndtd_hypothesis *hypothesis);
/* Removes hypotheses that do not fit any more, and all but the best of those that have met. */
void ndtd_hypotheses_prune(struct ndtd_hypotheses *hypotheses);
/* The best fit of a hypothesis that is distinct from this pose; 0: there is none. */
double ndtd_hypotheses_second(const struct ndtd_hypotheses *hypotheses, const struct ndt_pose *T_map_base);
/* The candidates of a search over every pose that is possible. */
struct ndtd_found {
    const struct ndt_search_result *result;
    int64_t stamp_ns; /* of the scan that was searched */
    struct ndt_pose T_base_sensor;
    const struct ndt_search_region
        *doubted; /* NULL, or the region of a hint that may be wrong: nothing else was searched */
};
/* Takes in a search: the hypotheses, and the leading one that the estimator follows (NULL: none), gain or lose; up
 * to `most` new ones are added. A doubted hint takes nothing from hypotheses outside of its region, and gives none
 * an agreement. */
void ndtd_hypotheses_take(struct ndtd_hypotheses *hypotheses, struct ndtd_hypothesis *leading,
                          const struct ndt_track *track, const struct ndtd_found *found, uint32_t most);
/* Whether a hypothesis is accepted: the searches leave no other, the last scan fits (min_confidence), unless
 * searches from several views are certain, and no other hypothesis fits as well. is_near: the vehicle is certain to
 * be among the poses that were searched, as within reach of the last verified pose. */
int ndtd_hypothesis_is_accepted(const struct ndtd_hypothesis *hypothesis, double second_fit, double min_confidence,
                                int is_near);

#endif
