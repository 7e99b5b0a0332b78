#include "ndt_track/input_check.h"

#include <math.h>
#include <string.h>

#include "track_internal.h"

/* Distance at which an interval of moves ends; without it, it ends after LONGEST_S. */
static const double MOVED_M = 1, LONGEST_S = 3;
/* Angle at which an interval of turns ends. Scans of a turn that the input tells wrong may all be declined: the
 * next confirmed one tells what was turned, up to LONGEST_TURN_S later. */
static const double TURNED_RAD = 0.35, LONGEST_TURN_S = 20;
/* Turn of the scans, found at its end only, that may as well be one the other way. */
static const double SENSELESS_RAD = 2.6;
/* Time after which an interval ends in which the scans turn by less: it tells the bias. */
static const double QUIET_S = 2, QUIET_RAD = 0.1;
/* Limits of the difference of two moves: part of the longer one, and the effect of noise and lever arms. */
static const double MOVE_PART = 0.3, MOVE_M = 0.15;
/* Least moves of NDT_TRACK_COMPARED that make a fault, and newest ones that name it. */
enum { OFF_LEAST = 3, NAMED_BY = 2 };
/* Part of a turn by which scale and mounting of a working gyro, or odometry, may be wrong. */
static const double TURN_PART = 0.3;
/* Deviation of the attitude of a confirmed scan, per axis [rad], and least one of a bias, which drifts. */
static const double ATTITUDE_RAD = 0.005, BIAS_LEAST_RADPS = 0.002;
/* Deviations of noise and bias that a difference of turns has to exceed: 99.9 % of a chi-square of 3 axes. */
static const double CERTAIN = 4;
/* Limits of the difference of two turns that agree: part of the longer one, and the effect of noise and bias. */
static const double AGREE_PART = 0.2, AGREE_RAD = 0.02, AGREE_RADPS = 0.02;
/* Part of the other motion below which a motion counts as none: the first in any case, the second where the two
 * have no common factor. */
static const double STILL_PART = 0.08, NOISE_PART = 0.3;
/* Part of the motions that a common factor has to explain to name the fault. */
static const double COHERENT = 0.8;
/* Difference of a scale from 1 that counts as none. */
static const double SAME_SCALE = 0.25;
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

/* Keeps two motions that differ by `off`. */
static void keep(struct ndt_track_compared *list, const double scan[3], const double told[3], double off,
                 double allowed, double noise2)
{
    const uint32_t at = list->count++ % NDT_TRACK_COMPARED;
    memcpy(list->motion[at][0], scan, sizeof(list->motion[at][0]));
    memcpy(list->motion[at][1], told, sizeof(list->motion[at][1]));
    list->off[at] = off;
    list->noise2[at] = noise2;
    list->is_off[at] = off > allowed;
}

/* Number of the last comparisons that are off. */
static int count_off(const struct ndt_track_compared *list)
{
    int count = 0;
    for (uint32_t i = 0; i < NDT_TRACK_COMPARED && i < list->count; i++)
        count += list->is_off[i];
    return count;
}

/* Whether the last turns differ by more than a working input explains. By the triangle inequality the root of the
 * summed squares of the differences is at most TURN_PART of that of the turns, plus that of noise and bias: a turn
 * of 60 deg counts by its size, as many small ones do together. */
static int are_turns_off(const struct ndt_track_compared *list)
{
    double off2 = 0, turned2 = 0, noise2 = 0;
    for (uint32_t i = 0; i < NDT_TRACK_COMPARED && i < list->count; i++) {
        const double turned_rad = fmin(fmax(norm(list->motion[i][0]), norm(list->motion[i][1])), M_PI);
        off2 += list->off[i] * list->off[i];
        turned2 += turned_rad * turned_rad;
        noise2 += list->noise2[i];
    }
    return sqrt(off2) > TURN_PART * sqrt(turned2) + CERTAIN * sqrt(noise2);
}

/* Adds what the input tells up to a stamp to the interval of a list, without its bias. The small turns are also
 * summed up, which may be more than half a turn: a gyro that doubles 100 deg does not turn by 160 deg the other
 * way. Where the input does not reach the interval ends. */
static void follow(struct ndt_track_compared *list, const struct ndt_track *track, enum ndt_track_input input,
                   int64_t stamp_ns)
{
    static const double none[3] = {0};
    const double *bias = list->bias_radps, dt_s = ndt_track_seconds(list->told_ns, stamp_ns);
    struct ndt_track_motion motion;
    if (!list->has_from || dt_s <= 0)
        return;
    list->has_from = input == NDT_TRACK_INPUT_ODOMETRY
                         ? ndt_track_odometry_between(track, list->told_ns, stamp_ns, &motion)
                         : ndt_track_gyro_between(track, list->told_ns, stamp_ns, none, none, &motion);
    list->has_from = list->has_from && !motion.is_of_scans; /* it is no input */
    if (!list->has_from)
        return;
    const struct ndt_pose back = ndt_pose_exp(&(struct ndt_twist){.w_radps = {-bias[0], -bias[1], -bias[2]}}, dt_s);
    const struct ndt_pose step = ndt_pose_compose(&motion.D, &back);
    const struct ndt_twist turned = ndt_pose_log(&step, 1);
    list->told_ns = stamp_ns;
    list->told = ndt_pose_compose(&list->told, &step);
    for (int i = 0; i < 3; i++)
        list->told_rad[i] += turned.w_radps[i];
}

void ndt_track_input_check_follow(struct ndt_track_input_check *check, const struct ndt_track *track,
                                  enum ndt_track_input input, int64_t stamp_ns)
{
    follow(&check->moves, track, input, stamp_ns);
    follow(&check->turns, track, input, stamp_ns);
}

/* Age of the interval of a list at a confirmed scan, to which its input is followed; 0: there is none. */
static double age_at(struct ndt_track_compared *list, const struct ndt_track *track, enum ndt_track_input input,
                     const struct ndt_track_state *confirmed)
{
    follow(list, track, input, confirmed->stamp_ns);
    const int reaches = list->has_from && list->told_ns == confirmed->stamp_ns;
    return reaches ? ndt_track_seconds(list->from_ns, confirmed->stamp_ns) : 0;
}

static void begin(struct ndt_track_compared *list, const struct ndt_track_state *confirmed)
{
    list->has_from = 1;
    list->from_ns = confirmed->stamp_ns;
    list->T_map_base = confirmed->T_map_base;
    list->told_ns = confirmed->stamp_ns;
    list->told = ndt_pose_identity();
    memset(list->told_rad, 0, sizeof(list->told_rad));
}

static void compare_moves(struct ndt_track_compared *list, const struct ndt_track *track,
                          enum ndt_track_input input, const struct ndt_track_state *confirmed)
{
    const double age_s = age_at(list, track, input, confirmed), *told_m = list->told.t_m;
    if (age_s > 0 && age_s <= LONGEST_S) {
        const struct ndt_pose scan = ndt_pose_between(&list->T_map_base, &confirmed->T_map_base);
        const double moved_m = fmax(norm(scan.t_m), norm(told_m));
        const double off_m[3] = {told_m[0] - scan.t_m[0], told_m[1] - scan.t_m[1], told_m[2] - scan.t_m[2]};
        if (moved_m < MOVED_M)
            return;
        keep(list, scan.t_m, told_m, norm(off_m), MOVE_PART * moved_m + MOVE_M, 0);
    }
    begin(list, confirmed);
}

/* Variance of the difference of two turns by the noise of scans and input. */
static double noise_of_turns(const struct ndt_track *track, double age_s)
{
    const double noise_rad = track->params.gyro_noise_rad;
    return 2 * ATTITUDE_RAD * ATTITUDE_RAD + noise_rad * noise_rad * age_s;
}

static double bias_deviation(const struct ndt_track_compared *list, const struct ndt_track *track)
{
    return list->bias_deviation_radps > 0 ? list->bias_deviation_radps : track->params.gyro_bias_radps;
}

/* Learns the bias from an interval in which the scans hardly turn: what the input turns there is bias, whatever its
 * scale, but for that turn. The estimator's bias is another one: it also takes in the turns of a wrong scale. */
static void learn_bias(struct ndt_track_compared *list, const struct ndt_track *track, const double scan_rad[3],
                       double age_s)
{
    const double known = pow(bias_deviation(list, track), 2), turned_rad = norm(scan_rad);
    const double seen = (noise_of_turns(track, age_s) + turned_rad * turned_rad) / (age_s * age_s);
    for (int i = 0; i < 3; i++)
        list->bias_radps[i] += known / (known + seen) * (list->told_rad[i] - scan_rad[i]) / age_s;
    list->bias_deviation_radps = fmax(sqrt(known * seen / (known + seen)), BIAS_LEAST_RADPS);
}

/* Turns a turn of the scans the way of the input where it is about half a turn, which has no sense of its own. */
static void find_sense(const double told_rad[3], double scan_rad[3])
{
    const double angle_rad = norm(scan_rad);
    const double along = told_rad[0] * scan_rad[0] + told_rad[1] * scan_rad[1] + told_rad[2] * scan_rad[2];
    for (int i = 0; i < 3 && angle_rad > SENSELESS_RAD && along < 0; i++)
        scan_rad[i] *= 1 - 2 * M_PI / angle_rad;
}

/* Keeps the turns since an interval began. Their difference is that of the rotations, not of the vectors: near half
 * a turn a small one turns the vector around. */
static void keep_turns(struct ndt_track_compared *list, const struct ndt_track *track, const struct ndt_pose *scan,
                       double scan_rad[3], double age_s)
{
    const double drift_rad = bias_deviation(list, track) * age_s;
    find_sense(list->told_rad, scan_rad);
    const double turned_rad = fmin(fmax(norm(scan_rad), norm(list->told_rad)), M_PI);
    keep(list, scan_rad, list->told_rad, ndt_pose_angle_rad(scan, &list->told),
         AGREE_PART * turned_rad + AGREE_RAD + AGREE_RADPS * age_s,
         noise_of_turns(track, age_s) + drift_rad * drift_rad);
}

static void compare_turns(struct ndt_track_compared *list, const struct ndt_track *track,
                          enum ndt_track_input input, const struct ndt_track_state *confirmed)
{
    const double age_s = age_at(list, track, input, confirmed);
    if (age_s > 0 && age_s <= LONGEST_TURN_S) {
        const struct ndt_pose scan = ndt_pose_between(&list->T_map_base, &confirmed->T_map_base);
        struct ndt_twist by_scan = ndt_pose_log(&scan, 1);
        const double turned_rad = norm(by_scan.w_radps), most_rad = fmax(turned_rad, norm(list->told_rad));
        if (most_rad < TURNED_RAD && (age_s < QUIET_S || turned_rad > QUIET_RAD))
            return;
        if (most_rad >= TURNED_RAD)
            keep_turns(list, track, &scan, by_scan.w_radps, age_s);
        else
            learn_bias(list, track, by_scan.w_radps, age_s);
    }
    begin(list, confirmed);
}

/* ---- naming ---- */

/* Sums over the newest intervals. */
struct sums {
    double scan2, told2; /* squared motions */
    double along;        /* sum of their scalar products */
    double across;       /* about z: scan x told */
};

static struct sums sum_up(const struct ndt_track_compared *list, uint32_t newest)
{
    struct sums sums = {0};
    for (uint32_t age = 1; age <= newest && age <= list->count; age++) {
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
    const struct sums sums = sum_up(&check->moves, NAMED_BY);
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
    const struct sums sums = sum_up(&check->turns, NAMED_BY), last = sum_up(&check->turns, 1);
    check->value = fabs(last.along) / fmax(last.scan2, 1e-12); /* the one before may have begun before the fault */
    const int is_common = fabs(sums.along) >= COHERENT * sqrt(sums.scan2 * sums.told2);
    if (is_part(last.told2, STILL_PART, last.scan2) ||
        is_part(sums.told2, is_common ? STILL_PART : NOISE_PART, sums.scan2))
        check->fault = NDT_TRACK_TURN_STANDS_STILL;
    else if (is_part(sums.scan2, is_common ? STILL_PART : NOISE_PART, sums.told2))
        check->fault = NDT_TRACK_TURNS_ALONE;
    else if (!is_common)
        check->fault = NDT_TRACK_OTHER_TURN;
    else
        check->fault = sums.along > 0 ? NDT_TRACK_WRONG_TURN_SCALE : NDT_TRACK_OPPOSITE_TURN;
}

/* Number of turns that a fault needs before it is named. Without a common factor the first may have begun before
 * it, and scans that turn the other way by another angle may have turned by more than half a turn. */
static int least_off(const struct ndt_track_input_check *check)
{
    if (check->fault == NDT_TRACK_OTHER_TURN)
        return OFF_LEAST;
    return check->fault == NDT_TRACK_OPPOSITE_TURN && fabs(check->value - 1) > SAME_SCALE ? NAMED_BY : 1;
}

/* Sets the fault of the last intervals. Returns 0 where there is none. */
static int find_fault(struct ndt_track_input_check *check)
{
    if (count_off(&check->moves) >= OFF_LEAST) {
        name_move(check);
        return 1;
    }
    if (!are_turns_off(&check->turns))
        return 0;
    name_turn(check);
    if (count_off(&check->turns) < least_off(check))
        check->fault = NDT_TRACK_NO_FAULT;
    return check->fault != NDT_TRACK_NO_FAULT;
}

void ndt_track_input_check_scan(struct ndt_track_input_check *check, struct ndt_track *track,
                                enum ndt_track_input input, const struct ndt_track_state *confirmed,
                                const struct ndt_twist *seen)
{
    if (input == NDT_TRACK_INPUT_ODOMETRY)
        compare_moves(&check->moves, track, input, confirmed);
    compare_turns(&check->turns, track, input, confirmed);
    if (check->fault) {
        if (count_off(&check->moves) + count_off(&check->turns) == 0) {
            check->fault = NDT_TRACK_NO_FAULT;
            ndt_track_ignore(track, input, 0, NULL);
        }
        return;
    }
    if (!find_fault(check))
        return;
    check->faults++;
    ndt_track_ignore(track, input, 1, seen);
}
