#include "ndt_track/input_check.h"

#include <math.h>
#include <string.h>

#include "track_internal.h"

/* Motion or turn at which an interval ends; without it the interval ends after LONGEST_S. */
static const double MOVED_M = 1, TURNED_RAD = 0.1, LONGEST_S = 3;
/* Limits of the difference of two motions: part of the longer one, and the effect of noise, lever arms and biases.
 */
static const double MOVE_PART = 0.3, MOVE_M = 0.15, TURN_PART = 0.4, TURN_RAD = 0.02, BIAS_RADPS = 0.02;
/* Least intervals of NDT_TRACK_COMPARED that make a fault, and newest ones that name it. */
enum { OFF_LEAST = 3, NAMED_BY = 2 };
/* Part of the other motion below which a motion counts as none: the first in any case, the second where the two
 * have no common factor. */
static const double STILL_PART = 0.08, NOISE_PART = 0.3;
/* Part of the motions that a common factor has to explain to name the fault. */
static const double COHERENT = 0.8;
/* Largest angle from a direction that counts as along it [rad]. */
static const double ALONG_RAD = 0.35;

void ndt_track_input_check_break(struct ndt_track_input_check *check)
{
    check->moves.has_from = check->turns.has_from = 0;
}

static double norm(const double v[3])
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* ---- comparing ---- */

static void keep(struct ndt_track_compared *list, const double scan[3], const double told[3], double allowed)
{
    const uint32_t at = list->count++ % NDT_TRACK_COMPARED;
    const double off[3] = {told[0] - scan[0], told[1] - scan[1], told[2] - scan[2]};
    memcpy(list->motion[at][0], scan, sizeof(list->motion[at][0]));
    memcpy(list->motion[at][1], told, sizeof(list->motion[at][1]));
    list->is_off[at] = norm(off) > allowed;
}

/* Number of the last comparisons that are off. */
static int count_off(const struct ndt_track_compared *list)
{
    int count = 0;
    for (uint32_t i = 0; i < NDT_TRACK_COMPARED && i < list->count; i++)
        count += list->is_off[i];
    return count;
}

static int told_between(const struct ndt_track *track, enum ndt_track_input input, int64_t from_ns,
                        const struct ndt_track_state *to, struct ndt_track_motion *out)
{
    const double none[3] = {0}, *bias = to->bias_of_gyro ? to->bias_radps : none;
    return input == NDT_TRACK_INPUT_ODOMETRY
               ? ndt_track_odometry_between(track, from_ns, to->stamp_ns, out)
               : ndt_track_gyro_between(track, from_ns, to->stamp_ns, bias, none, out);
}

/* Computes both motions since the interval of a list began. Returns 0 where the input does not reach. */
static int motions_since(const struct ndt_track_compared *list, const struct ndt_track *track,
                         enum ndt_track_input input, const struct ndt_track_state *confirmed, struct ndt_pose *scan,
                         struct ndt_pose *told)
{
    const double age_s = ndt_track_seconds(list->from_ns, confirmed->stamp_ns);
    struct ndt_track_motion motion;
    if (!list->has_from || age_s <= 0 || age_s > LONGEST_S ||
        !told_between(track, input, list->from_ns, confirmed, &motion))
        return 0;
    *scan = ndt_pose_between(&list->T_map_base, &confirmed->T_map_base);
    *told = motion.D;
    return 1;
}

static void begin(struct ndt_track_compared *list, const struct ndt_track_state *confirmed)
{
    list->has_from = 1;
    list->from_ns = confirmed->stamp_ns;
    list->T_map_base = confirmed->T_map_base;
}

static void compare_moves(struct ndt_track_compared *list, const struct ndt_track *track,
                          enum ndt_track_input input, const struct ndt_track_state *confirmed)
{
    struct ndt_pose scan, told;
    if (motions_since(list, track, input, confirmed, &scan, &told)) {
        const double moved_m = fmax(norm(scan.t_m), norm(told.t_m));
        if (moved_m < MOVED_M)
            return;
        keep(list, scan.t_m, told.t_m, MOVE_PART * moved_m + MOVE_M);
    }
    begin(list, confirmed);
}

static void compare_turns(struct ndt_track_compared *list, const struct ndt_track *track,
                          enum ndt_track_input input, const struct ndt_track_state *confirmed)
{
    const double age_s = ndt_track_seconds(list->from_ns, confirmed->stamp_ns);
    struct ndt_pose scan, told;
    if (motions_since(list, track, input, confirmed, &scan, &told)) {
        const struct ndt_twist by_scan = ndt_pose_log(&scan, 1), by_input = ndt_pose_log(&told, 1);
        const double turned_rad = fmax(norm(by_scan.w_radps), norm(by_input.w_radps));
        if (turned_rad < TURNED_RAD)
            return;
        keep(list, by_scan.w_radps, by_input.w_radps, TURN_PART * turned_rad + TURN_RAD + BIAS_RADPS * age_s);
    }
    begin(list, confirmed);
}

/* ---- naming ---- */

/* Sums over the newest intervals: an older one may have begun before the fault. */
struct sums {
    double scan2, told2; /* squared motions */
    double along;        /* sum of their scalar products */
    double across;       /* about z: scan x told */
};

static struct sums sum_up(const struct ndt_track_compared *list)
{
    struct sums sums = {0};
    for (uint32_t age = 1; age <= NAMED_BY; age++) {
        const uint32_t i = (list->count - age) % NDT_TRACK_COMPARED;
        const double *s = list->motion[i][0], *t = list->motion[i][1];
        for (int k = 0; k < 3; k++) {
            sums.scan2 += s[k] * s[k];
            sums.told2 += t[k] * t[k];
            sums.along += s[k] * t[k];
        }
        sums.across += s[0] * t[1] - s[1] * t[0];
    }
    return sums;
}

static int is_part(double motion2, double part, double of2)
{
    return motion2 < part * part * of2;
}

static void name_move(struct ndt_track_input_check *check)
{
    const struct sums sums = sum_up(&check->moves);
    const double common = hypot(sums.along, sums.across), angle_rad = atan2(sums.across, sums.along);
    check->value = common / fmax(sums.scan2, 1e-12);
    const int is_common = common >= COHERENT * sqrt(sums.scan2 * sums.told2);
    if (is_part(sums.told2, is_common ? STILL_PART : NOISE_PART, sums.scan2))
        check->fault = NDT_TRACK_STANDS_STILL;
    else if (is_part(sums.scan2, is_common ? STILL_PART : NOISE_PART, sums.told2))
        check->fault = NDT_TRACK_MOVES_ALONE;
    else if (!is_common)
        check->fault = NDT_TRACK_OTHER_MOTION;
    else if (fabs(angle_rad) < ALONG_RAD)
        check->fault = NDT_TRACK_WRONG_SCALE;
    else if (fabs(angle_rad) > M_PI - ALONG_RAD)
        check->fault = NDT_TRACK_BACKWARDS;
    else {
        check->fault = NDT_TRACK_TURNED;
        check->value = angle_rad;
    }
}

static void name_turn(struct ndt_track_input_check *check)
{
    const struct sums sums = sum_up(&check->turns);
    check->value = fabs(sums.along) / fmax(sums.scan2, 1e-12);
    const int is_common = fabs(sums.along) >= COHERENT * sqrt(sums.scan2 * sums.told2);
    if (is_part(sums.told2, is_common ? STILL_PART : NOISE_PART, sums.scan2))
        check->fault = NDT_TRACK_TURN_STANDS_STILL;
    else if (is_part(sums.scan2, is_common ? STILL_PART : NOISE_PART, sums.told2))
        check->fault = NDT_TRACK_TURNS_ALONE;
    else if (!is_common)
        check->fault = NDT_TRACK_OTHER_TURN;
    else
        check->fault = sums.along > 0 ? NDT_TRACK_WRONG_TURN_SCALE : NDT_TRACK_OPPOSITE_TURN;
}

void ndt_track_input_check_scan(struct ndt_track_input_check *check, struct ndt_track *track,
                                enum ndt_track_input input, const struct ndt_track_state *confirmed,
                                const struct ndt_twist *seen)
{
    if (input == NDT_TRACK_INPUT_ODOMETRY)
        compare_moves(&check->moves, track, input, confirmed);
    compare_turns(&check->turns, track, input, confirmed);
    const int moves_off = count_off(&check->moves), turns_off = count_off(&check->turns);
    if (check->fault) {
        if (moves_off + turns_off == 0) {
            check->fault = NDT_TRACK_NO_FAULT;
            ndt_track_ignore(track, input, 0, NULL);
        }
        return;
    }
    if (moves_off < OFF_LEAST && turns_off < OFF_LEAST)
        return;
    if (moves_off >= OFF_LEAST)
        name_move(check);
    else
        name_turn(check);
    check->faults++;
    ndt_track_ignore(track, input, 1, seen);
}
