/* Places where the vehicle may be. */
#include "candidates.h"

#include <math.h>
#include <string.h>

#include "hypotheses.h"

/* Scans over which the fit is averaged, and scans in a row without a fit after which a place is given up. */
enum { FIT_SCANS = 5, MISSES_MOST = 3 };
/* A second place with more than this part of the fit leaves the choice open. */
static const double RIVAL_RATIO = 0.95;

void ndtd_candidate_follow(struct ndtd_candidate *candidate, const struct ndt_track_state *state, double fit,
                           double confidence)
{
    const struct ndt_pose step = ndt_pose_between(&candidate->state.T_map_base, &state->T_map_base);
    const uint32_t scans = candidate->scans < FIT_SCANS ? candidate->scans + 1 : FIT_SCANS;
    candidate->fit += (fit - candidate->fit) / scans;
    candidate->confidence = confidence;
    candidate->scans++;
    candidate->misses = fit > 0 ? 0 : candidate->misses + 1;
    candidate->moved_m += hypot(hypot(step.t_m[0], step.t_m[1]), step.t_m[2]);
    candidate->moved_rad += ndt_pose_angle_rad(&candidate->state.T_map_base, &state->T_map_base);
    candidate->state = *state;
}

struct ndtd_candidate *ndtd_candidates_at(struct ndtd_candidates *candidates, const struct ndt_pose *T_map_base)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (!ndtd_are_distinct(&candidates->list[i].state.T_map_base, T_map_base))
            return &candidates->list[i];
    return NULL;
}

int ndtd_candidate_is_better(const struct ndtd_candidate *a, const struct ndtd_candidate *b)
{
    return a->agreements != b->agreements ? a->agreements > b->agreements : a->fit > b->fit;
}

struct ndtd_candidate *ndtd_candidates_best(struct ndtd_candidates *candidates)
{
    struct ndtd_candidate *best = NULL;
    for (size_t i = 0; i < candidates->count; i++)
        if (!best || ndtd_candidate_is_better(&candidates->list[i], best))
            best = &candidates->list[i];
    return best;
}

void ndtd_candidates_add(struct ndtd_candidates *candidates, const struct ndtd_candidate *candidate)
{
    struct ndtd_candidate *worst = &candidates->list[0];
    if (candidates->count < NDTD_CANDIDATES_MAX) {
        candidates->list[candidates->count++] = *candidate;
        return;
    }
    for (size_t i = 1; i < candidates->count; i++)
        if (ndtd_candidate_is_better(worst, &candidates->list[i]))
            worst = &candidates->list[i];
    if (ndtd_candidate_is_better(candidate, worst))
        *worst = *candidate;
}

void ndtd_candidates_prune(struct ndtd_candidates *candidates)
{
    int is_kept[NDTD_CANDIDATES_MAX];
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        const struct ndtd_candidate *a = &candidates->list[i];
        is_kept[i] = a->misses < MISSES_MOST;
        for (size_t k = 0; is_kept[i] && k < candidates->count; k++) {
            const struct ndtd_candidate *b = &candidates->list[k];
            const int is_worse = ndtd_candidate_is_better(b, a) || (!ndtd_candidate_is_better(a, b) && k < i);
            is_kept[i] = k == i || !is_worse || ndtd_are_distinct(&a->state.T_map_base, &b->state.T_map_base);
        }
    }
    for (size_t i = 0; i < candidates->count; i++)
        if (is_kept[i])
            candidates->list[kept++] = candidates->list[i];
    candidates->count = kept;
}

void ndtd_candidate_forget(struct ndtd_candidate *candidate)
{
    candidate->agreements = candidate->contradictions = candidate->scans = 0;
    candidate->evidence = (struct ndt_evidence){0};
    candidate->fit = 0;
}

double ndtd_candidates_second(const struct ndtd_candidates *candidates, const struct ndt_pose *T_map_base)
{
    double second = 0;
    for (size_t i = 0; i < candidates->count; i++)
        if (ndtd_are_distinct(&candidates->list[i].state.T_map_base, T_map_base))
            second = fmax(second, candidates->list[i].fit);
    return second;
}

void ndtd_candidate_weigh(struct ndtd_candidate *candidate, const struct ndt_search_result *result, uint32_t i,
                          const struct ndt_pose *T_map_sensor, int is_all)
{
    struct ndt_evidence_features features;
    candidate->is_weighed = 1;
    ndt_evidence_of(result, i, &features);
    if (features.points < NDT_EVIDENCE_LEAST)
        return;
    candidate->agreements += i == 0;
    candidate->contradictions = i == 0 ? 0 : candidate->contradictions + 1;
    /* A search around a place does not see its twins; it can only speak against it. */
    if (is_all || i > 0)
        ndt_evidence_add(&candidate->evidence, &features, T_map_sensor);
}

void ndtd_candidates_weigh_rest(struct ndtd_candidates *candidates, const struct ndt_search_result *result,
                                const struct ndt_pose *T_base_sensor, int is_all)
{
    for (size_t i = 0; i < candidates->count; i++) {
        struct ndtd_candidate *candidate = &candidates->list[i];
        const struct ndt_pose T_map_sensor = ndt_pose_compose(&candidate->state.T_map_base, T_base_sensor);
        if (is_all && !candidate->is_weighed)
            ndtd_candidate_weigh(candidate, result, result->count, &T_map_sensor, 1);
        candidate->is_weighed = 0;
    }
}

int ndtd_candidate_is_believed(const struct ndtd_candidate *candidate, double second_fit, double min_confidence,
                               int is_near)
{
    return candidate->confidence >= min_confidence && candidate->misses == 0 &&
           second_fit < RIVAL_RATIO * candidate->fit && ndt_evidence_is_believed(&candidate->evidence, !is_near);
}
