#include "pose_hypotheses.h"

#include <math.h>
#include <string.h>

#include "guesses.h"

/* Number of scans over which the fit is averaged, and of scans in a row without a fit after which a hypothesis is
 * given up. */
enum { FIT_SCANS = 5, MISSES_MOST = 3 };
/* Probability from searches of several views above which a hypothesis needs no scan that fits as in good maps. */
static const double CERTAIN = 0.999;
/* Part of the best fit above which a second hypothesis leaves the choice open. */
static const double RIVAL_RATIO = 0.95;

void ndtd_hypothesis_follow(struct ndtd_hypothesis *hypothesis, const struct ndt_track_state *state, double fit,
                            double confidence)
{
    const uint32_t scans = hypothesis->scans < FIT_SCANS ? hypothesis->scans + 1 : FIT_SCANS;
    hypothesis->fit += (fit - hypothesis->fit) / scans;
    hypothesis->confidence = confidence;
    hypothesis->scans++;
    hypothesis->misses = fit > 0 ? 0 : hypothesis->misses + 1;
    hypothesis->state = *state;
}

/* Whether a is the better hypothesis: by agreements, then by the fit. */
static int is_better(const struct ndtd_hypothesis *a, const struct ndtd_hypothesis *b)
{
    return a->agreements != b->agreements ? a->agreements > b->agreements : a->fit > b->fit;
}

struct ndtd_hypothesis *ndtd_hypotheses_best(struct ndtd_hypotheses *hypotheses)
{
    struct ndtd_hypothesis *best = NULL;
    for (size_t i = 0; i < hypotheses->count; i++)
        if (!best || is_better(&hypotheses->list[i], best))
            best = &hypotheses->list[i];
    return best;
}

static struct ndtd_hypothesis *worst_of(struct ndtd_hypotheses *hypotheses)
{
    struct ndtd_hypothesis *worst = &hypotheses->list[0];
    for (size_t i = 1; i < hypotheses->count; i++)
        if (is_better(worst, &hypotheses->list[i]))
            worst = &hypotheses->list[i];
    return worst;
}

struct ndtd_hypothesis *ndtd_hypotheses_insert(struct ndtd_hypotheses *hypotheses,
                                               const struct ndtd_hypothesis *hypothesis)
{
    struct ndtd_hypothesis *place =
        hypotheses->count < NDTD_HYPOTHESES_MAX ? &hypotheses->list[hypotheses->count++] : worst_of(hypotheses);
    *place = *hypothesis;
    return place;
}

void ndtd_hypotheses_add(struct ndtd_hypotheses *hypotheses, const struct ndtd_hypothesis *hypothesis)
{
    if (hypotheses->count < NDTD_HYPOTHESES_MAX || is_better(hypothesis, worst_of(hypotheses)))
        (void)ndtd_hypotheses_insert(hypotheses, hypothesis);
}

void ndtd_hypotheses_prune(struct ndtd_hypotheses *hypotheses)
{
    int is_kept[NDTD_HYPOTHESES_MAX];
    size_t kept = 0;
    for (size_t i = 0; i < hypotheses->count; i++) {
        const struct ndtd_hypothesis *a = &hypotheses->list[i];
        is_kept[i] = a->misses < MISSES_MOST;
        for (size_t k = 0; is_kept[i] && k < hypotheses->count; k++) {
            const struct ndtd_hypothesis *b = &hypotheses->list[k];
            const int is_worse = is_better(b, a) || (!is_better(a, b) && k < i);
            is_kept[i] = k == i || !is_worse || ndtd_are_distinct(&a->state.T_map_base, &b->state.T_map_base);
        }
    }
    for (size_t i = 0; i < hypotheses->count; i++)
        if (is_kept[i])
            hypotheses->list[kept++] = hypotheses->list[i];
    hypotheses->count = kept;
}

void ndtd_hypothesis_forget(struct ndtd_hypothesis *hypothesis)
{
    hypothesis->agreements = hypothesis->contradictions = hypothesis->scans = 0;
    hypothesis->test = (struct ndt_hypothesis_test){0};
    hypothesis->fit = 0;
}

double ndtd_hypotheses_second(const struct ndtd_hypotheses *hypotheses, const struct ndt_pose *T_map_base)
{
    double second = 0;
    for (size_t i = 0; i < hypotheses->count; i++)
        if (ndtd_are_distinct(&hypotheses->list[i].state.T_map_base, T_map_base))
            second = fmax(second, hypotheses->list[i].fit);
    return second;
}

static int is_searched(const struct ndtd_found *found, const struct ndt_pose *T_map_sensor)
{
    const struct ndt_search_region *region = found->doubted;
    return !region || hypot(T_map_sensor->t_m[0] - region->position_m[0],
                            T_map_sensor->t_m[1] - region->position_m[1]) <= region->radius_m;
}

/* Adds the evidence of a search to a hypothesis. i: its candidate; result->count or more: it was not found. */
static void weigh(struct ndtd_hypothesis *hypothesis, const struct ndtd_found *found, uint32_t i,
                  const struct ndt_pose *T_map_sensor)
{
    struct ndt_hypothesis_features features;
    ndt_hypothesis_features_of(found->result, i, &features);
    if (features.points < NDT_HYPOTHESIS_LEAST || !is_searched(found, T_map_sensor))
        return;
    hypothesis->agreements += i == 0 && !found->doubted;
    hypothesis->contradictions = i == 0 ? 0 : hypothesis->contradictions + 1;
    ndt_hypothesis_test_add(&hypothesis->test, &features, T_map_sensor);
}

/* The pose of the sensor at the moment of the search, according to the hypothesis. */
static struct ndt_pose sensor_then(const struct ndt_track *track, const struct ndtd_hypothesis *hypothesis,
                                   const struct ndtd_found *found)
{
    struct ndt_track_state then;
    ndt_track_shift(track, &hypothesis->state, ndt_track_seconds(hypothesis->state.stamp_ns, found->stamp_ns),
                    &then);
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

static void weigh_known(struct ndtd_hypothesis *hypothesis, const struct ndt_track *track,
                        const struct ndtd_found *found, int is_known[NDT_SEARCH_CANDIDATES])
{
    const struct ndt_pose T_map_sensor = sensor_then(track, hypothesis, found);
    const uint32_t i = index_at(found->result, &T_map_sensor);
    weigh(hypothesis, found, i, &T_map_sensor);
    if (i < found->result->count)
        is_known[i] = 1;
}

void ndtd_hypotheses_take(struct ndtd_hypotheses *hypotheses, struct ndtd_hypothesis *leading,
                          const struct ndt_track *track, const struct ndtd_found *found, uint32_t most)
{
    const struct ndt_search_result *result = found->result;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&found->T_base_sensor);
    int is_known[NDT_SEARCH_CANDIDATES] = {0};
    if (leading)
        weigh_known(leading, track, found, is_known);
    for (size_t k = 0; k < hypotheses->count; k++)
        weigh_known(&hypotheses->list[k], track, found, is_known);
    for (uint32_t i = 0; i < result->count && i < most; i++) {
        const struct ndt_pose *T_map_sensor = &result->candidates[i].T_map_sensor;
        struct ndtd_hypothesis fresh = {.fit = result->candidates[i].fit, .scans = 1, .is_found = 1};
        const struct ndt_pose T_map_base = ndt_pose_compose(T_map_sensor, &T_sensor_base);
        if (is_known[i])
            continue;
        ndt_track_start_state(track, found->stamp_ns, &T_map_base, NULL, NULL, &fresh.state);
        fresh.before = fresh.state;
        weigh(&fresh, found, i, T_map_sensor);
        ndtd_hypotheses_add(hypotheses, &fresh);
    }
}

int ndtd_hypothesis_is_accepted(const struct ndtd_hypothesis *hypothesis, double second_fit, double min_confidence,
                                int is_near)
{
    const struct ndt_hypothesis_test *test = &hypothesis->test;
    const int is_certain = test->views >= NDT_HYPOTHESIS_VIEWS && ndt_hypothesis_test_probability(test) >= CERTAIN;
    return (hypothesis->confidence >= min_confidence || is_certain) && hypothesis->misses == 0 &&
           second_fit < RIVAL_RATIO * hypothesis->fit && ndt_hypothesis_test_accepts(test, !is_near);
}
