/* Samples of odometry and IMU: rings, interpolation, integration. */
#include <math.h>
#include <string.h>

#include "ndt/limits.h"
#include "track_internal.h"

/* Largest age of a sample that is extrapolated with its last rate. */
static const double REACH_S = 0.3;
/* Longest gap between two gyro samples that is integrated over. */
static const double GYRO_GAP_S = 0.2;
static const double GRAVITY_MPS2 = 9.81;
/* Distance, angle and accelerations above which odometry that differs from its own velocity jumps. Nothing
 * accelerates like this for longer than JUMP_S. */
static const double JUMP_M = 1.0, JUMP_MPS2 = 20.0, JUMP_RAD = 0.35, JUMP_RADPS2 = 50.0, JUMP_S = 1.0;
/* Speed above which a motion is a jump where the velocity is not known. */
static const double FASTEST_MPS = 100.0;
/* Pause after which a pose this near the origin of the odometry is that of a restarted source. */
static const double PAUSE_S = 0.3, ORIGIN_M = 1.0, ORIGIN_RAD = 0.2;
/* Time [s] over which the error of a carried-on gyro rate is measured. */
static const double ASTRAY_S = 2;
enum { ASTRAY_STARTS = 64, ASTRAY_LEAST = 8 };
/* Longest pause that twists are integrated over. */
static const double TWIST_GAP_S = 10.0;

double ndt_track_seconds(int64_t from_ns, int64_t to_ns)
{
    return ((double)(to_ns / 1000000000) - (double)(from_ns / 1000000000)) +
           ((double)(to_ns % 1000000000) - (double)(from_ns % 1000000000)) * 1e-9;
}

static uint32_t index_at(uint32_t head, uint32_t age)
{
    return (head + NDT_TRACK_SAMPLES - 1 - age) % NDT_TRACK_SAMPLES;
}

static const struct ndt_track_odometry_sample *odometry_at_age(const struct ndt_track *track, uint32_t age)
{
    return &track->odometry.samples[index_at(track->odometry.head, age)];
}

static const struct ndt_track_imu_sample *imu_at_age(const struct ndt_track *track, uint32_t age)
{
    return &track->imu.samples[index_at(track->imu.head, age)];
}

/* Place of a sample among those of its ring. */
enum placing {
    IS_NEWEST,
    IS_LATE,    /* between others */
    IS_ASIDE,   /* so old that the next sample decides: it is late, or time restarted */
    IS_RESTART, /* the second one in a row that old */
    IS_REPEATED
};

static enum placing placing_of(const struct ndt_track *track, const struct ndt_track_aside *aside, uint32_t count,
                               int64_t newest_ns, int64_t stamp_ns)
{
    const double dt_s = ndt_track_seconds(newest_ns, stamp_ns);
    if (count == 0 || dt_s > 0)
        return IS_NEWEST;
    if (dt_s == 0)
        return IS_REPEATED;
    if (dt_s >= -track->params.max_prediction_s)
        return IS_LATE;
    const double aside_s = ndt_track_seconds(aside->stamp_ns, stamp_ns);
    return aside->is_used && aside_s > 0 && aside_s <= NDT_TRACK_LATE_S ? IS_RESTART : IS_ASIDE;
}

/* Whether a late sample still has a place in its ring; counts those that have none. */
static int is_kept(struct ndt_track *track, uint32_t place, int64_t newest_ns, int64_t stamp_ns)
{
    const double late_s = ndt_track_seconds(stamp_ns, newest_ns);
    if (late_s <= NDT_TRACK_LATE_S && place < NDT_TRACK_SAMPLES)
        return 1;
    track->too_late.count++;
    track->too_late.last_s = late_s;
    return 0;
}

int ndt_track_is_plausible(const struct ndt_pose *pose, const struct ndt_twist *twist)
{
    int plausible = !pose || ndt_pose_is_finite(pose);
    for (int i = 0; i < 3; i++) {
        plausible = plausible && (!pose || fabs(pose->t_m[i]) <= NDT_LIMIT_POSITION_M);
        plausible = plausible && (!twist || (fabs(twist->v_mps[i]) <= NDT_LIMIT_SPEED_MPS &&
                                             fabs(twist->w_radps[i]) <= NDT_LIMIT_TURN_RADPS));
    }
    return plausible;
}

/* Largest difference between a motion and the expected one after dt_s. */
static double allowance(double at_once, double per_s2, double dt_s)
{
    return at_once + 0.5 * per_s2 * dt_s * fmin(dt_s, JUMP_S);
}

static int is_at_origin(const struct ndt_pose *pose)
{
    const struct ndt_pose origin = ndt_pose_identity();
    return ndt_pose_distance_m(&origin, pose) <= ORIGIN_M && ndt_pose_angle_rad(&origin, pose) <= ORIGIN_RAD;
}

/* Whether odometry moved farther than its velocity and any acceleration of a vehicle allow, which means that its
 * source restarted. seen: mean twist since the last sample. */
static int has_jumped(const struct ndt_track_odometry_sample *last, const struct ndt_track_odometry_sample *sample,
                      const struct ndt_twist *seen, double dt_s)
{
    const struct ndt_twist *expected = sample->has_twist ? &sample->twist : &last->twist;
    double move2 = 0, turn2 = 0;
    if (!sample->has_twist && !last->has_twist)
        return !(ndt_pose_distance_m(&last->T_odom_base, &sample->T_odom_base) <= JUMP_M + FASTEST_MPS * dt_s);
    for (int i = 0; i < 3; i++) {
        move2 += (seen->v_mps[i] - expected->v_mps[i]) * (seen->v_mps[i] - expected->v_mps[i]);
        turn2 += (seen->w_radps[i] - expected->w_radps[i]) * (seen->w_radps[i] - expected->w_radps[i]);
    }
    const double off_m = sqrt(move2) * dt_s, off_rad = sqrt(turn2) * dt_s;
    const int is_back = dt_s > PAUSE_S && !is_at_origin(&last->T_odom_base) && is_at_origin(&sample->T_odom_base);
    return !(off_m <= (is_back ? JUMP_M : allowance(JUMP_M, JUMP_MPS2, dt_s)) &&
             off_rad <= (is_back ? JUMP_RAD : allowance(JUMP_RAD, JUMP_RADPS2, dt_s)));
}

static void note_restart(struct ndt_track *track, const struct ndt_track_odometry_sample *last,
                         const struct ndt_track_odometry_sample *sample)
{
    track->odometry_restarts =
        (struct ndt_track_restarts){.count = track->odometry_restarts.count + 1,
                                    .stamp_ns = sample->stamp_ns,
                                    .moved_m = ndt_pose_distance_m(&last->T_odom_base, &sample->T_odom_base),
                                    .turned_rad = ndt_pose_angle_rad(&last->T_odom_base, &sample->T_odom_base),
                                    .gap_s = ndt_track_seconds(last->stamp_ns, sample->stamp_ns)};
}

/* Completes a sample from the previous one. Returns 0 where the sample does not continue that. */
static int complete(const struct ndt_track_odometry_sample *last, struct ndt_track_odometry_sample *sample)
{
    const double dt_s = ndt_track_seconds(last->stamp_ns, sample->stamp_ns);
    if (!sample->has_pose) {
        const struct ndt_pose step = ndt_pose_exp(&sample->twist, dt_s);
        sample->T_odom_base = ndt_pose_compose(&last->T_odom_base, &step);
        return dt_s <= TWIST_GAP_S && ndt_track_is_plausible(&sample->T_odom_base, NULL);
    }
    const struct ndt_pose step = ndt_pose_between(&last->T_odom_base, &sample->T_odom_base);
    const struct ndt_twist seen = ndt_pose_log(&step, dt_s);
    const int jumps = has_jumped(last, sample, &seen, dt_s);
    if (sample->has_twist)
        return !jumps;
    sample->twist = jumps || !ndt_track_is_plausible(NULL, &seen) ? last->twist : seen;
    sample->has_twist = !jumps; /* after a jump the twist is expected to stay, but not known */
    return !jumps;
}

/* Completes a sample that no other one precedes. */
static void complete_first(struct ndt_track_odometry_sample *sample)
{
    if (!sample->has_pose)
        sample->T_odom_base = ndt_pose_identity();
    if (!sample->has_twist)
        sample->twist = (struct ndt_twist){0};
}

/* Appends a sample. Twists without a pose are integrated. */
static void append_odometry(struct ndt_track *track, struct ndt_track_odometry_sample sample)
{
    struct ndt_track_odometry_ring *ring = &track->odometry;
    const struct ndt_track_odometry_sample *last = odometry_at_age(track, 0);
    const int has_own_twist = sample.has_twist;
    if (ring->count > 0 && last->is_of_scans != sample.is_of_scans)
        ring->count = 0;
    if (ring->count > 0 && !complete(last, &sample)) {
        if (sample.has_pose && !sample.is_of_scans)
            note_restart(track, last, &sample);
        ring->count = 0;
    }
    if (ring->count == 0)
        complete_first(&sample);
    ring->samples[ring->head] = sample;
    ring->has_own_twist[ring->head] = (uint8_t)has_own_twist;
    ring->head = (ring->head + 1) % NDT_TRACK_SAMPLES;
    if (ring->count < NDT_TRACK_SAMPLES)
        ring->count++;
}

/* Completes the sample of an age anew, whose previous one has changed. */
static int complete_again(const struct ndt_track *track, uint32_t age, const struct ndt_track_odometry_sample *last,
                          struct ndt_track_odometry_sample *sample)
{
    *sample = *odometry_at_age(track, age);
    sample->has_twist = track->odometry.has_own_twist[index_at(track->odometry.head, age)];
    return complete(last, sample);
}

/* Puts a late sample in its place, and completes those after it as if it had come in time. One that jumps from its
 * neighbours is of another time, or of another source, and is left out. */
static void insert_odometry(struct ndt_track *track, struct ndt_track_odometry_sample sample)
{
    struct ndt_track_odometry_ring *ring = &track->odometry;
    struct ndt_track_odometry_sample next;
    uint32_t place = 0;
    while (place < ring->count && odometry_at_age(track, place)->stamp_ns > sample.stamp_ns)
        place++;
    const int is_repeated = place < ring->count && odometry_at_age(track, place)->stamp_ns == sample.stamp_ns;
    if (place == 0 || is_repeated || odometry_at_age(track, 0)->is_of_scans != sample.is_of_scans ||
        !is_kept(track, place, odometry_at_age(track, 0)->stamp_ns, sample.stamp_ns))
        return;
    const int has_own_twist = sample.has_twist;
    if (place == ring->count)
        complete_first(&sample);
    else if (!complete(odometry_at_age(track, place), &sample))
        return;
    if (!complete_again(track, place - 1, &sample, &next))
        return;
    ring->head = (ring->head + 1) % NDT_TRACK_SAMPLES;
    if (ring->count < NDT_TRACK_SAMPLES)
        ring->count++;
    for (uint32_t age = 0; age < place; age++) {
        ring->samples[index_at(ring->head, age)] = *odometry_at_age(track, age + 1);
        ring->has_own_twist[index_at(ring->head, age)] = ring->has_own_twist[index_at(ring->head, age + 1)];
    }
    ring->samples[index_at(ring->head, place)] = sample;
    ring->has_own_twist[index_at(ring->head, place)] = (uint8_t)has_own_twist;
    for (uint32_t age = place; age-- > 0;) {
        (void)complete_again(track, age, odometry_at_age(track, age + 1), &next);
        ring->samples[index_at(ring->head, age)] = next;
        if (next.has_pose) /* those after it follow from its pose, which has not changed */
            break;
    }
}

void ndt_track_odometry(struct ndt_track *track, const struct ndt_track_odometry_sample *sample)
{
    struct ndt_track_odometry_ring *ring = &track->odometry;
    struct ndt_track_aside *aside = &ring->aside;
    if (!ndt_track_is_plausible(sample->has_pose ? &sample->T_odom_base : NULL,
                                sample->has_twist ? &sample->twist : NULL))
        return;
    const enum placing placing =
        placing_of(track, aside, ring->count, odometry_at_age(track, 0)->stamp_ns, sample->stamp_ns);
    if (placing == IS_RESTART) {
        ring->count = 0;
        append_odometry(track, ring->aside_sample);
    } else if (aside->is_used) {
        insert_odometry(track, ring->aside_sample);
    }
    *aside = (struct ndt_track_aside){placing == IS_ASIDE, placing == IS_ASIDE ? sample->stamp_ns : 0};
    if (placing == IS_ASIDE)
        ring->aside_sample = *sample;
    else if (placing == IS_LATE)
        insert_odometry(track, *sample);
    else if (placing != IS_REPEATED)
        append_odometry(track, *sample);
}

double ndt_track_input_age_s(const struct ndt_track *track, int64_t stamp_ns)
{
    double age_s = INFINITY;
    if (track->odometry.count > 0 && !odometry_at_age(track, 0)->is_of_scans)
        age_s = ndt_track_seconds(odometry_at_age(track, 0)->stamp_ns, stamp_ns);
    if (track->imu.count > 0)
        age_s = fmin(age_s, ndt_track_seconds(imu_at_age(track, 0)->stamp_ns, stamp_ns));
    return age_s;
}

void ndt_track_forget_scans(struct ndt_track *track)
{
    if (track->odometry.count > 0 && odometry_at_age(track, 0)->is_of_scans)
        track->odometry.count = 0;
}

static void append_imu(struct ndt_track *track, const struct ndt_track_imu_sample *sample)
{
    struct ndt_track_imu_ring *ring = &track->imu;
    ring->samples[ring->head] = *sample;
    ring->head = (ring->head + 1) % NDT_TRACK_SAMPLES;
    if (ring->count < NDT_TRACK_SAMPLES)
        ring->count++;
}

/* Puts a late sample in its place. */
static void insert_imu(struct ndt_track *track, const struct ndt_track_imu_sample *sample)
{
    struct ndt_track_imu_ring *ring = &track->imu;
    uint32_t place = 0;
    while (place < ring->count && imu_at_age(track, place)->stamp_ns > sample->stamp_ns)
        place++;
    const int is_repeated = place < ring->count && imu_at_age(track, place)->stamp_ns == sample->stamp_ns;
    if (place == 0 || is_repeated || !is_kept(track, place, imu_at_age(track, 0)->stamp_ns, sample->stamp_ns))
        return;
    ring->head = (ring->head + 1) % NDT_TRACK_SAMPLES;
    if (ring->count < NDT_TRACK_SAMPLES)
        ring->count++;
    for (uint32_t age = 0; age < place; age++)
        ring->samples[index_at(ring->head, age)] = *imu_at_age(track, age + 1);
    ring->samples[index_at(ring->head, place)] = *sample;
}

void ndt_track_imu(struct ndt_track *track, const struct ndt_track_imu_sample *sample)
{
    struct ndt_track_imu_ring *ring = &track->imu;
    struct ndt_track_aside *aside = &ring->aside;
    struct ndt_twist turn = {0};
    memcpy(turn.w_radps, sample->angular_velocity_radps, sizeof(turn.w_radps));
    if (!ndt_track_is_plausible(NULL, &turn))
        return;
    const enum placing placing =
        placing_of(track, aside, ring->count, imu_at_age(track, 0)->stamp_ns, sample->stamp_ns);
    if (placing == IS_RESTART) {
        ring->count = 0;
        append_imu(track, &ring->aside_sample);
    } else if (aside->is_used) {
        insert_imu(track, &ring->aside_sample);
    }
    *aside = (struct ndt_track_aside){placing == IS_ASIDE, placing == IS_ASIDE ? sample->stamp_ns : 0};
    if (placing == IS_ASIDE)
        ring->aside_sample = *sample;
    else if (placing == IS_LATE)
        insert_imu(track, sample);
    else if (placing != IS_REPEATED)
        append_imu(track, sample);
}

void ndt_track_gnss(struct ndt_track *track, const struct ndt_track_gnss_sample *sample)
{
    track->gnss = *sample;
    track->has_gnss = 1;
}

/* Odometry at a stamp: interpolated, or extrapolated from the last sample. */
static int odometry_at(const struct ndt_track *track, int64_t stamp_ns, struct ndt_pose *T_odom_base,
                       struct ndt_track_motion *out)
{
    for (uint32_t age = 0; age < track->odometry.count; age++) {
        const struct ndt_track_odometry_sample *sample = odometry_at_age(track, age);
        const double dt_s = ndt_track_seconds(sample->stamp_ns, stamp_ns);
        if (dt_s < 0)
            continue;
        out->twist = sample->twist;
        out->has_pose = sample->has_pose;
        out->is_of_scans = sample->is_of_scans;
        out->extrapolated_s = age == 0 ? dt_s : 0;
        if (age == 0) {
            const struct ndt_pose step = ndt_pose_exp(&sample->twist, dt_s);
            *T_odom_base = ndt_pose_compose(&sample->T_odom_base, &step);
            /* The first pose of scans tells no velocity; the scan after it does. */
            return dt_s <= REACH_S && (dt_s == 0 || sample->has_twist || !sample->is_of_scans);
        }
        const struct ndt_track_odometry_sample *next = odometry_at_age(track, age - 1);
        const double gap_s = ndt_track_seconds(sample->stamp_ns, next->stamp_ns);
        *T_odom_base = ndt_pose_interpolate(&sample->T_odom_base, &next->T_odom_base, dt_s / gap_s);
        out->twist = next->twist;
        return 1;
    }
    return 0;
}

int ndt_track_odometry_between(const struct ndt_track *track, int64_t from_ns, int64_t to_ns,
                               struct ndt_track_motion *out)
{
    struct ndt_pose before, now;
    struct ndt_track_motion ignored;
    if (!odometry_at(track, to_ns, &now, out) || !odometry_at(track, from_ns, &before, &ignored))
        return 0;
    out->D = ndt_pose_between(&before, &now);
    return 1;
}

/* Adds the motion of `dt_s` at a constant rate and velocity. */
static void integrate(struct ndt_pose *D, const double rate[3], const double bias[3], const double v_mps[3],
                      double dt_s)
{
    struct ndt_twist twist;
    for (int i = 0; i < 3; i++) {
        twist.w_radps[i] = rate[i] - bias[i];
        twist.v_mps[i] = v_mps[i];
    }
    const struct ndt_pose step = ndt_pose_exp(&twist, dt_s);
    *D = ndt_pose_compose(D, &step);
}

/* Rate at a stamp between two samples, linear. */
static void rate_at(const struct ndt_track_imu_sample *a, const struct ndt_track_imu_sample *b, int64_t stamp_ns,
                    double rate[3])
{
    const double s = ndt_track_seconds(a->stamp_ns, stamp_ns) / ndt_track_seconds(a->stamp_ns, b->stamp_ns);
    for (int i = 0; i < 3; i++)
        rate[i] = a->angular_velocity_radps[i] + s * (b->angular_velocity_radps[i] - a->angular_velocity_radps[i]);
}

/* Integrates the pieces between samples with the rate in their middle, forwards only. */
static int integrate_gyro(const struct ndt_track *track, int64_t from_ns, int64_t to_ns, const double bias[3],
                          const double v_mps[3], struct ndt_track_motion *out)
{
    const uint32_t count = track->imu.count;
    uint32_t age = 0;
    int64_t at_ns = from_ns;
    if (count < 2)
        return 0;
    const struct ndt_track_imu_sample *last = imu_at_age(track, 0);
    out->extrapolated_s = fmax(0, ndt_track_seconds(last->stamp_ns, to_ns));
    while (age < count && imu_at_age(track, age)->stamp_ns > from_ns)
        age++;
    if (age == count || out->extrapolated_s > REACH_S)
        return 0;
    /* imu_at_age(age) <= from < imu_at_age(age - 1), unless `from` lies behind all samples */
    for (; at_ns < to_ns && age >= 1; age--) {
        const struct ndt_track_imu_sample *b = imu_at_age(track, age - 1);
        const struct ndt_track_imu_sample *a = imu_at_age(track, age);
        const int64_t end_ns = b->stamp_ns < to_ns ? b->stamp_ns : to_ns;
        double first[3], second[3], rate[3];
        if (ndt_track_seconds(a->stamp_ns, b->stamp_ns) > GYRO_GAP_S)
            return 0;
        rate_at(a, b, at_ns, first);
        rate_at(a, b, end_ns, second);
        for (int i = 0; i < 3; i++)
            rate[i] = 0.5 * (first[i] + second[i]);
        integrate(&out->D, rate, bias, v_mps, ndt_track_seconds(at_ns, end_ns));
        at_ns = end_ns;
    }
    if (at_ns < to_ns)
        integrate(&out->D, last->angular_velocity_radps, bias, v_mps, ndt_track_seconds(at_ns, to_ns));
    return 1;
}

int ndt_track_gyro_between(const struct ndt_track *track, int64_t from_ns, int64_t to_ns, const double bias[3],
                           const double v_mps[3], struct ndt_track_motion *out)
{
    *out = (struct ndt_track_motion){.D = ndt_pose_identity()};
    const int is_backwards = to_ns < from_ns;
    if (!integrate_gyro(track, is_backwards ? to_ns : from_ns, is_backwards ? from_ns : to_ns, bias, v_mps, out))
        return 0;
    if (is_backwards)
        out->D = ndt_pose_inverse(&out->D);
    for (uint32_t age = 0; age < track->imu.count; age++) {
        const struct ndt_track_imu_sample *sample = imu_at_age(track, age);
        memcpy(out->twist.w_radps, sample->angular_velocity_radps, sizeof(out->twist.w_radps));
        if (sample->stamp_ns <= to_ns) {
            if (age > 0)
                rate_at(sample, imu_at_age(track, age - 1), to_ns, out->twist.w_radps);
            break;
        }
    }
    return 1;
}

/* Angle between the measured motion after a sample, for ahead_s, and that at its rate. Returns 0 where the samples
 * end before. */
static int angle_astray(const struct ndt_track *track, uint32_t age, double ahead_s, double angle[3])
{
    const struct ndt_track_imu_sample *from = imu_at_age(track, age);
    double before_s = 0;
    memset(angle, 0, 3 * sizeof(*angle));
    while (age > 0 && before_s < ahead_s) {
        const struct ndt_track_imu_sample *sample = imu_at_age(track, --age);
        const double after_s = ndt_track_seconds(from->stamp_ns, sample->stamp_ns);
        for (int i = 0; i < 3; i++)
            angle[i] +=
                (sample->angular_velocity_radps[i] - from->angular_velocity_radps[i]) * (after_s - before_s);
        before_s = after_s;
    }
    return before_s >= ahead_s;
}

void ndt_track_gyro_astray(const struct ndt_track *track, double ahead_s, double square[3])
{
    const uint32_t count = track->imu.count;
    uint32_t within = 0;
    int starts = 0;
    memset(square, 0, 3 * sizeof(*square));
    while (within < count &&
           ndt_track_seconds(imu_at_age(track, within)->stamp_ns, imu_at_age(track, 0)->stamp_ns) <= ASTRAY_S)
        within++;
    const uint32_t step = within / ASTRAY_STARTS + 1;
    for (uint32_t age = 0; age < within; age += step) {
        double angle[3];
        if (!angle_astray(track, age, ahead_s, angle))
            continue;
        starts++;
        for (int i = 0; i < 3; i++)
            square[i] += angle[i] * angle[i];
    }
    for (int i = 0; i < 3; i++)
        square[i] = starts >= ASTRAY_LEAST ? square[i] / starts : 0;
}

int ndt_track_ring_ends_after(const struct ndt_track *track, int64_t stamp_ns)
{
    const uint32_t age = NDT_TRACK_SAMPLES / 4 * 3;
    return (track->odometry.count == NDT_TRACK_SAMPLES && odometry_at_age(track, age)->stamp_ns > stamp_ns) ||
           (track->imu.count == NDT_TRACK_SAMPLES && imu_at_age(track, age)->stamp_ns > stamp_ns);
}

int64_t ndt_track_newest_sample_ns(const struct ndt_track *track)
{
    int64_t newest_ns = INT64_MIN;
    if (track->odometry.count > 0 && !odometry_at_age(track, 0)->is_of_scans &&
        !track->ignores[NDT_TRACK_INPUT_ODOMETRY])
        newest_ns = odometry_at_age(track, 0)->stamp_ns;
    if (track->imu.count > 0 && !track->ignores[NDT_TRACK_INPUT_GYRO] && imu_at_age(track, 0)->stamp_ns > newest_ns)
        newest_ns = imu_at_age(track, 0)->stamp_ns;
    return newest_ns;
}

int ndt_track_gravity(const struct ndt_track *track, int64_t stamp_ns, double up[3])
{
    double sum[3] = {0}, norm2 = 0;
    int count = 0;
    if (track->ignores[NDT_TRACK_INPUT_GYRO]) /* the whole IMU may be faulty */
        return 0;
    for (uint32_t age = 0; age < track->imu.count; age++) {
        const struct ndt_track_imu_sample *sample = imu_at_age(track, age);
        const double *w = sample->angular_velocity_radps;
        if (fabs(ndt_track_seconds(sample->stamp_ns, stamp_ns)) > 0.5 || !sample->has_acceleration)
            continue;
        if (w[0] * w[0] + w[1] * w[1] + w[2] * w[2] > 0.2 * 0.2)
            return 0;
        for (int i = 0; i < 3; i++)
            sum[i] += sample->acceleration_mps2[i];
        count++;
    }
    for (int i = 0; i < 3 && count > 0; i++)
        norm2 += sum[i] / count * (sum[i] / count);
    const double norm = sqrt(norm2);
    if (count == 0 || fabs(norm - GRAVITY_MPS2) > 0.3)
        return 0;
    for (int i = 0; i < 3; i++)
        up[i] = sum[i] / count / norm;
    return 1;
}

int ndt_track_specific_force(const struct ndt_track *track, int64_t after_ns, int64_t to_ns, double mean_mps2[3])
{
    int count = 0;
    memset(mean_mps2, 0, 3 * sizeof(*mean_mps2));
    for (uint32_t age = 0; age < track->imu.count; age++) {
        const struct ndt_track_imu_sample *sample = imu_at_age(track, age);
        if (sample->stamp_ns <= after_ns)
            break;
        if (sample->stamp_ns > to_ns || !sample->has_acceleration)
            continue;
        for (int i = 0; i < 3; i++)
            mean_mps2[i] += sample->acceleration_mps2[i];
        count++;
    }
    for (int i = 0; i < 3 && count > 0; i++)
        mean_mps2[i] /= count;
    return count > 0;
}
