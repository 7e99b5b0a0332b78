#include "guesses.h"

#include <math.h>
#include <string.h>

#include "ndt/linalg.h"

/* Weight of a unit of fit in the logarithm of the probability of a pose, as in the confidence of a single one
 * (ndt_track/confidence.h). */
static const double FIT_WEIGHT = 25;
/* Squared sigmas from the prediction beyond which nothing more speaks against an optimum. */
static const double MOST_DISTANCE = 3;
static const double DEG = 0.017453292519943295;
/* Guesses closer than this lead to the same optimum: alignments from 3 m and 20 deg off all succeed. */
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

static void add(struct ndtd_guesses *list, const struct ndt_pose *T_map_base)
{
    if (list->count == NDTD_GUESSES_MAX || !ndt_pose_is_finite(T_map_base))
        return;
    for (size_t i = 0; i < list->count; i++)
        if (distance_m(&list->T_map_base[i], T_map_base) < SAME_M &&
            ndt_pose_angle_rad(&list->T_map_base[i], T_map_base) < SAME_RAD)
            return;
    list->T_map_base[list->count++] = *T_map_base;
}

void ndtd_guesses_obvious(struct ndtd_guesses *out, const struct ndtd_guess_sources *sources)
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

void ndtd_guesses_near(struct ndtd_guesses *out, const struct ndtd_guess_sources *sources)
{
    static const double TURNS_DEG[] = {10, -10, 20, -20, 35, -35, 50, -50};
    const struct ndt_pose *centres[] = {&sources->predicted->T_map_base, &sources->before->T_map_base};
    const double step_m = fmin(fmax(1, 2 * ndt_track_position_deviation(sources->predicted)), 3);
    out->count = 0;
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < sizeof(TURNS_DEG) / sizeof(TURNS_DEG[0]); i++) {
            const struct ndt_pose guess = turned(centres[c], TURNS_DEG[i] * DEG);
            add(out, &guess);
        }
    for (int side = 0; side < 4; side++) {
        struct ndt_pose step = ndt_pose_identity();
        step.t_m[side / 2] = side % 2 ? -step_m : step_m;
        step = ndt_pose_compose(centres[0], &step);
        add(out, &step);
    }
}

void ndtd_guesses_spread(struct ndtd_guesses *out, const struct ndtd_guess_sources *sources, double reach_m,
                         size_t most)
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

double ndtd_squared_mahalanobis(const struct ndt_pose *mean, const double covariance[36],
                                const struct ndt_pose *pose)
{
    const struct ndt_pose off = ndt_pose_between(mean, pose);
    const struct ndt_twist error = ndt_pose_log(&off, 1);
    double factor[36], z[6], solved[6], sum = 0;
    memcpy(z, error.v_mps, sizeof(error.v_mps));
    memcpy(z + 3, error.w_radps, sizeof(error.w_radps));
    memcpy(factor, covariance, sizeof(factor));
    memcpy(solved, z, sizeof(solved));
    if (!ndt_factor_cholesky(6, factor))
        return INFINITY;
    ndt_solve_cholesky(6, factor, solved);
    for (int i = 0; i < 6; i++)
        sum += z[i] * solved[i];
    return sum;
}

double ndtd_optimum_score(const struct ndt_align_result *result, const struct ndt_prior *prior)
{
    const double fit = ndtd_fit(result);
    if (!(fit > 0))
        return -INFINITY;
    return FIT_WEIGHT * fit - (prior ? 0.5 * fmin(ndtd_squared_mahalanobis(&prior->T_map_sensor, prior->covariance,
                                                                           &result->T_map_sensor),
                                                  MOST_DISTANCE)
                                     : 0);
}

void ndtd_optima_add(struct ndtd_optima *optima, const struct ndt_align_result *result,
                     const struct ndt_prior *prior)
{
    const double score = ndtd_optimum_score(result, prior);
    if (optima->count == NDTD_OPTIMA_MAX || !isfinite(score))
        return;
    optima->T_map_sensor[optima->count] = result->T_map_sensor;
    optima->score[optima->count++] = score;
}

double ndtd_optima_margin(const struct ndtd_optima *optima, const struct ndt_pose *T_map_sensor, double score)
{
    double second = -INFINITY;
    for (size_t i = 0; i < optima->count; i++)
        if (ndtd_are_distinct(&optima->T_map_sensor[i], T_map_sensor))
            second = fmax(second, optima->score[i]);
    return score - second;
}
