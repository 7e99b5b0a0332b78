#include "guesses.h"

#include <math.h>

/* Running mean of the fit: its gain, the scans after which it is known, and the least deviation from it. */
static const double USUAL_GAIN = 0.05, LEAST_DEVIATION = 0.03;
enum { USUAL_SCANS = 3 };
/* Guesses closer than this lead to the same optimum: alignments from 3 m and 20 deg off all succeed. */
static const double SAME_M = 0.5, SAME_RAD = 0.1;
/* Optima farther apart than this are different. */
static const double DISTINCT_M = 1, DISTINCT_RAD = 5 * 0.017453292519943295;

/* t distribution of the error of a prediction: its degrees of freedom, and half the sum of these and the
 * dimensions. */
static const double TAIL = 6, TAIL_WEIGHT = 6;
/* Extent of a place: area and heading. */
static const double PLACE_M2 = 1, PLACE_RAD = 5 * 0.017453292519943295;

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

void ndtd_usual_fit_add(struct ndtd_usual_fit *usual, double fit, double matched)
{
    const double off = fit - usual->mean;
    usual->scans++;
    const double gain = fmax(1.0 / usual->scans, USUAL_GAIN);
    usual->mean += gain * off;
    usual->variance = (1 - gain) * (usual->variance + gain * off * off);
    usual->matched += gain * (matched - usual->matched);
}

double ndtd_usual_fit(const struct ndtd_usual_fit *usual)
{
    return usual->mean; /* 0 before the first scan */
}

int ndtd_usual_fit_is_known(const struct ndtd_usual_fit *usual)
{
    return usual->scans >= USUAL_SCANS;
}

double ndtd_fit_deficit(const struct ndtd_usual_fit *usual, double fit)
{
    const double deviation = sqrt(usual->variance + LEAST_DEVIATION * LEAST_DEVIATION);
    return !ndtd_usual_fit_is_known(usual) ? 0 : fmax(0, usual->mean - fit) / deviation;
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

double ndtd_surprise(double deviations2)
{
    return TAIL_WEIGHT * log1p(deviations2 / TAIL);
}

double ndtd_places_within(double reach_m, double turn_rad)
{
    return 1 + M_PI * reach_m * reach_m / PLACE_M2 * 2 * fmin(turn_rad, M_PI) / PLACE_RAD;
}

void ndtd_optima_add(struct ndtd_optima *optima, const struct ndt_pose *T_map_sensor)
{
    if (optima->count < NDTD_OPTIMA_MAX)
        optima->T_map_sensor[optima->count++] = *T_map_sensor;
}
