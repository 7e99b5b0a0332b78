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
    const uint32_t scans = candidate->scans < FIT_SCANS ? candidate->scans + 1 : FIT_SCANS;
    candidate->fit += (fit - candidate->fit) / scans;
    candidate->confidence = confidence;
    candidate->scans++;
    candidate->misses = fit > 0 ? 0 : candidate->misses + 1;
    candidate->state = *state;
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

static int is_searched(const struct ndtd_found *found, const struct ndt_pose *T_map_sensor)
{
    const struct ndt_search_window *window = found->doubted;
    return !window || hypot(T_map_sensor->t_m[0] - window->position_m[0],
                            T_map_sensor->t_m[1] - window->position_m[1]) <= window->radius_m;
}

/* Adds what a search says about a place. i: its candidate; result->count or more: it was not found. */
static void weigh(struct ndtd_candidate *candidate, const struct ndtd_found *found, uint32_t i,
                  const struct ndt_pose *T_map_sensor)
{
    struct ndt_evidence_features features;
    ndt_evidence_of(found->result, i, &features);
    if (features.points < NDT_EVIDENCE_LEAST || !is_searched(found, T_map_sensor))
        return;
    candidate->agreements += i == 0 && !found->doubted;
    candidate->contradictions = i == 0 ? 0 : candidate->contradictions + 1;
    ndt_evidence_add(&candidate->evidence, &features, T_map_sensor);
}

/* Where the sensor was at the moment of the search, if the place is right. */
static struct ndt_pose sensor_then(const struct ndt_track *track, const struct ndtd_candidate *candidate,
                                   const struct ndtd_found *found)
{
    struct ndt_track_state then;
    ndt_track_shift(track, &candidate->state, ndt_track_seconds(candidate->state.stamp_ns, found->stamp_ns), &then);
    return ndt_pose_compose(&then.T_map_base, &found->T_base_sensor);
}

/* The candidate of the result at this pose; result->count: none. */
static uint32_t index_at(const struct ndt_search_result *result, const struct ndt_pose *T_map_sensor)
{
    uint32_t i = 0;
    while (i < result->count && ndtd_are_distinct(&result->candidates[i].T_map_sensor, T_map_sensor))
        i++;
    return i;
}

static void weigh_known(struct ndtd_candidate *candidate, const struct ndt_track *track,
                        const struct ndtd_found *found, int is_known[NDT_SEARCH_CANDIDATES])
{
    const struct ndt_pose T_map_sensor = sensor_then(track, candidate, found);
    const uint32_t i = index_at(found->result, &T_map_sensor);
    weigh(candidate, found, i, &T_map_sensor);
    if (i < found->result->count)
        is_known[i] = 1;
}

void ndtd_candidates_take(struct ndtd_candidates *candidates, struct ndtd_candidate *lead,
                          const struct ndt_track *track, const struct ndtd_found *found, uint32_t most)
{
    const struct ndt_search_result *result = found->result;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&found->T_base_sensor);
    int is_known[NDT_SEARCH_CANDIDATES] = {0};
    if (lead)
        weigh_known(lead, track, found, is_known);
    for (size_t k = 0; k < candidates->count; k++)
        weigh_known(&candidates->list[k], track, found, is_known);
    for (uint32_t i = 0; i < result->count && i < most; i++) {
        const struct ndt_pose *T_map_sensor = &result->candidates[i].T_map_sensor;
        struct ndtd_candidate fresh = {.fit = result->candidates[i].q, .scans = 1};
        const struct ndt_pose T_map_base = ndt_pose_compose(T_map_sensor, &T_sensor_base);
        if (is_known[i])
            continue;
        ndt_track_start_state(track, found->stamp_ns, &T_map_base, NULL, NULL, &fresh.state);
        fresh.before = fresh.state;
        weigh(&fresh, found, i, T_map_sensor);
        ndtd_candidates_add(candidates, &fresh);
    }
}

int ndtd_candidate_is_believed(const struct ndtd_candidate *candidate, double second_fit, double min_confidence,
                               int is_near)
{
    return candidate->confidence >= min_confidence && candidate->misses == 0 &&
           second_fit < RIVAL_RATIO * candidate->fit && ndt_evidence_is_believed(&candidate->evidence, !is_near);
}
