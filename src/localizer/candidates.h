/* Private: places where the vehicle may be, followed from scan to scan until one is believed. Pure functions. */
#ifndef NDTD_CANDIDATES_H
#define NDTD_CANDIDATES_H

#include "ndt_search/evidence.h"
#include "ndt_track/track.h"

enum { NDTD_CANDIDATES_MAX = 12 };

/* One place, and what speaks for it. */
struct ndtd_candidate {
    struct ndt_track_state before; /* the prediction at the last scan */
    struct ndt_track_state state;  /* after it */
    uint32_t scans;                /* that it was aligned with */
    double fit;                    /* nvtl_normalized * match_ratio, mean over the last scans */
    double confidence;             /* of the last scan: it fits, and nothing is left open */
    uint32_t agreements;           /* searches that found it best, without looking there first */
    uint32_t contradictions;       /* searches that found another place best, since the last agreement */
    struct ndt_evidence evidence;  /* of the searches over all that is possible */
    uint32_t misses;               /* scans in a row that do not fit */
};

/* The places, in no order. */
struct ndtd_candidates {
    size_t count;
    struct ndtd_candidate list[NDTD_CANDIDATES_MAX];
};

/* Takes in a scan that was aligned there. */
void ndtd_candidate_follow(struct ndtd_candidate *candidate, const struct ndt_track_state *state, double fit,
                           double confidence);
/* More agreements, then the better fit. */
int ndtd_candidate_is_better(const struct ndtd_candidate *a, const struct ndtd_candidate *b);
/* Forgets what searches and scans have told about it: the map of that time is no longer in use. */
void ndtd_candidate_forget(struct ndtd_candidate *candidate);
/* The best one, or NULL. */
struct ndtd_candidate *ndtd_candidates_best(struct ndtd_candidates *candidates);
/* Adds a place; in a full list it replaces the worst, if that is worse. */
void ndtd_candidates_add(struct ndtd_candidates *candidates, const struct ndtd_candidate *candidate);
/* Removes what does not fit any more, and all but the best of those that have met. */
void ndtd_candidates_prune(struct ndtd_candidates *candidates);
/* The best fit of a place that is distinct from this pose; 0: there is none. */
double ndtd_candidates_second(const struct ndtd_candidates *candidates, const struct ndt_pose *T_map_base);
/* The places of a search over everything that is possible. */
struct ndtd_found {
    const struct ndt_search_result *result;
    int64_t stamp_ns; /* of the scan that was searched */
    struct ndt_pose T_base_sensor;
    const struct ndt_search_window *doubted; /* NULL, or all that was searched, by a hint that may be wrong */
};
/* Takes in the places of a search: those that are known, and the one that the estimator follows (lead; NULL: none),
 * gain or lose; up to `most` others are added. By a doubted hint places elsewhere lose nothing, and none gains an
 * agreement. */
void ndtd_candidates_take(struct ndtd_candidates *candidates, struct ndtd_candidate *lead,
                          const struct ndt_track *track, const struct ndtd_found *found, uint32_t most);
/* Whether the place is believed: the searches leave no other, the last scan fits (min_confidence), and no other
 * place that is followed fits as well. is_near: it is where the vehicle can be for certain, within reach of the
 * last verified pose. */
int ndtd_candidate_is_believed(const struct ndtd_candidate *candidate, double second_fit, double min_confidence,
                               int is_near);

#endif
