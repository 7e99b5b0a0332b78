/* Where else the vehicle may be. */
#include "hypotheses.h"

#include <math.h>
#include <string.h>

static const double DEG = 0.017453292519943295;
/* Guesses closer than this lead to the same optimum: alignments from 3 m and 20 deg off all come home. */
static const double SAME_M = 0.5, SAME_RAD = 0.1;
/* Optima farther apart than this are different. */
static const double DISTINCT_M = 1, DISTINCT_RAD = 5 * 0.017453292519943295;

double ndtd_speed_mps(const struct ndt_twist *twist)
{
    return hypot(hypot(twist->v_mps[0], twist->v_mps[1]), twist->v_mps[2]);
}

double ndtd_fit(const struct ndt_align_result *result)
{
    const int is_optimum = result->outcome == NDT_CONVERGED || result->outcome == NDT_ITERATION_LIMIT ||
                           result->outcome == NDT_DEADLINE || result->outcome == NDT_LOW_SCORE;
    return is_optimum ? result->scores.nvtl_normalized * result->scores.match_ratio : 0;
}

static double distance_m(const struct ndt_pose *a, const struct ndt_pose *b)
{
    return hypot(hypot(a->t_m[0] - b->t_m[0], a->t_m[1] - b->t_m[1]), a->t_m[2] - b->t_m[2]);
}

int ndtd_are_distinct(const struct ndt_pose *a, const struct ndt_pose *b)
{
    return distance_m(a, b) > DISTINCT_M || ndt_pose_angle_rad(a, b) > DISTINCT_RAD;
}

static void add(struct ndtd_hypotheses *list, const struct ndt_pose *T_map_base)
{
    if (list->count == NDTD_HYPOTHESES_MAX || !ndt_pose_is_finite(T_map_base))
        return;
    for (size_t i = 0; i < list->count; i++)
        if (distance_m(&list->T_map_base[i], T_map_base) < SAME_M &&
            ndt_pose_angle_rad(&list->T_map_base[i], T_map_base) < SAME_RAD)
            return;
    list->T_map_base[list->count++] = *T_map_base;
}

void ndtd_hypotheses_obvious(struct ndtd_hypotheses *out, const struct ndtd_hypothesis_sources *sources)
{
    const struct ndt_track_state *before = sources->before;
    const double dt_s = ndt_track_seconds(before->stamp_ns, sources->predicted->stamp_ns);
    out->count = 0;
    add(out, &sources->predicted->T_map_base);
    add(out, &before->T_map_base);
    if (before->has_twist) {
        const struct ndt_pose step = ndt_pose_exp(&before->twist, dt_s);
        const struct ndt_pose moved = ndt_pose_compose(&before->T_map_base, &step);
        add(out, &moved);
    }
    if (sources->verified)
        add(out, &sources->verified->T_map_base);
}

/* Turned about the vertical of the map where it stands. */
static struct ndt_pose turned(const struct ndt_pose *T, double angle_rad)
{
    struct ndt_pose turn = ndt_pose_from_rpy((double[3]){0, 0, 0}, (double[3]){0, 0, angle_rad});
    struct ndt_pose out = ndt_pose_compose(&turn, T);
    memcpy(out.t_m, T->t_m, sizeof(out.t_m));
    return out;
}

/* Radical inverse: evenly spread in [0, 1), the same in every run. */
static double halton(size_t index, size_t base)
{
    double fraction = 1, sum = 0;
    for (; index > 0; index /= base) {
        fraction /= (double)base;
        sum += fraction * (double)(index % base);
    }
    return sum;
}

void ndtd_hypotheses_spread(struct ndtd_hypotheses *out, const struct ndtd_hypothesis_sources *sources,
                            double reach_m, size_t most)
{
    static const double TURNS_DEG[] = {25, -25, 50, -50, 80, -80, 120, -120, 180};
    const struct ndt_pose *stand = &sources->before->T_map_base;
    out->count = 0;
    for (size_t i = 0; i < sizeof(TURNS_DEG) / sizeof(TURNS_DEG[0]) && out->count < most; i++) {
        const struct ndt_pose guess = turned(stand, TURNS_DEG[i] * DEG);
        add(out, &guess);
    }
    /* a disc of the reach around it, half of them ahead of the others in time: the order is that of the sequence */
    for (size_t i = 1; out->count < most && i < 4 * most; i++) {
        const double r = reach_m * sqrt(halton(i, 2)), bearing = 2 * M_PI * halton(i, 3);
        struct ndt_pose guess = turned(stand, (halton(i, 5) - 0.5) * 2 * 60 * DEG);
        guess.t_m[0] += r * cos(bearing);
        guess.t_m[1] += r * sin(bearing);
        add(out, &guess);
    }
}

struct ndtd_choice ndtd_hypotheses_choose(const struct ndt_align_result *results, size_t count)
{
    struct ndtd_choice choice = {.best = -1, .margin = 1};
    double best = 0, second = 0;
    for (size_t i = 0; i < count; i++)
        if (ndtd_fit(&results[i]) > best) {
            best = ndtd_fit(&results[i]);
            choice.best = (int)i;
        }
    for (size_t i = 0; choice.best >= 0 && i < count; i++)
        if (ndtd_are_distinct(&results[i].T_map_sensor, &results[choice.best].T_map_sensor))
            second = fmax(second, ndtd_fit(&results[i]));
    if (choice.best >= 0)
        choice.margin = 1 - second / best;
    return choice;
}
