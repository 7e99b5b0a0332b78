/** @file
 * @brief The tracker: prediction by odometry or constant velocity, and the update by a result. */
#include "ndtd/tracker.h"

#include <math.h>
#include <string.h>

/* Odometry at most this much older than the scan is extrapolated with its last twist. */
static const double ODOMETRY_REACH_S = 0.3;

void ndtd_tracker_init(struct ndtd_tracker *tracker, double max_prediction_s)
{
    memset(tracker, 0, sizeof(*tracker));
    tracker->max_prediction_s = max_prediction_s;
    tracker->T_map_sensor = ndt_pose_identity();
}

void ndtd_tracker_reset(struct ndtd_tracker *tracker, int64_t stamp_ns, const struct ndt_pose *T_map_sensor,
                        const struct ndt_twist *twist)
{
    tracker->has_pose = 1;
    tracker->stamp_ns = stamp_ns;
    tracker->T_map_sensor = *T_map_sensor;
    tracker->has_twist = twist != NULL;
    tracker->twist = twist ? *twist : (struct ndt_twist){0};
}

/* Differences of int64 stamps, exact to well below a microsecond for all gaps that matter. */
static double seconds_between(int64_t from_ns, int64_t to_ns)
{
    return ((double)(to_ns / 1000000000) - (double)(from_ns / 1000000000)) +
           ((double)(to_ns % 1000000000) - (double)(from_ns % 1000000000)) * 1e-9;
}

static const struct ndtd_odometry *sample_at(const struct ndtd_tracker *tracker, uint32_t age)
{
    return &tracker->odometry[(tracker->odometry_head + NDTD_TRACKER_ODOMETRY - 1 - age) % NDTD_TRACKER_ODOMETRY];
}

/* Every stored sample has a pose: twists without one are integrated. */
void ndtd_tracker_odometry(struct ndtd_tracker *tracker, const struct ndtd_odometry *odometry)
{
    struct ndtd_odometry sample = *odometry;
    if (tracker->odometry_count > 0) {
        const struct ndtd_odometry *last = sample_at(tracker, 0);
        const double dt_s = seconds_between(last->stamp_ns, sample.stamp_ns);
        if (dt_s < -tracker->max_prediction_s) { /* time restarted */
            tracker->odometry_count = 0;
            ndtd_tracker_odometry(tracker, odometry);
            return;
        }
        if (dt_s <= 0)
            return;
        if (!sample.has_pose) {
            const struct ndt_pose step = ndt_pose_exp(&sample.twist, dt_s);
            sample.T_odom_sensor = ndt_pose_compose(&last->T_odom_sensor, &step);
        } else if (!sample.has_twist) {
            const struct ndt_pose step = ndt_pose_between(&last->T_odom_sensor, &sample.T_odom_sensor);
            sample.twist = ndt_pose_log(&step, dt_s);
        }
    } else if (!sample.has_pose) {
        sample.T_odom_sensor = ndt_pose_identity();
    }
    tracker->odometry[tracker->odometry_head] = sample;
    tracker->odometry_head = (tracker->odometry_head + 1) % NDTD_TRACKER_ODOMETRY;
    if (tracker->odometry_count < NDTD_TRACKER_ODOMETRY)
        tracker->odometry_count++;
}

/* Odometry at a stamp: interpolated, or extrapolated from the last sample. 0 when out of reach. */
static int odometry_at(const struct ndtd_tracker *tracker, int64_t stamp_ns, struct ndt_pose *T_odom_sensor,
                       struct ndt_twist *twist)
{
    for (uint32_t age = 0; age < tracker->odometry_count; age++) {
        const struct ndtd_odometry *sample = sample_at(tracker, age);
        const double dt_s = seconds_between(sample->stamp_ns, stamp_ns);
        if (dt_s < 0)
            continue;
        *twist = sample->twist;
        if (age == 0) {
            const struct ndt_pose step = ndt_pose_exp(&sample->twist, dt_s);
            *T_odom_sensor = ndt_pose_compose(&sample->T_odom_sensor, &step);
            return dt_s <= ODOMETRY_REACH_S;
        }
        const struct ndtd_odometry *next = sample_at(tracker, age - 1);
        const double gap_s = seconds_between(sample->stamp_ns, next->stamp_ns);
        *T_odom_sensor = ndt_pose_interpolate(&sample->T_odom_sensor, &next->T_odom_sensor, dt_s / gap_s);
        *twist = next->twist;
        return 1;
    }
    return 0;
}

int ndtd_tracker_predict(const struct ndtd_tracker *tracker, int64_t stamp_ns, struct ndt_pose *T_map_sensor,
                         struct ndt_twist *twist)
{
    struct ndt_pose before, now;
    struct ndt_twist ignored;
    *twist = (struct ndt_twist){0};
    *T_map_sensor = tracker->T_map_sensor;
    if (!tracker->has_pose)
        return 0;
    if (odometry_at(tracker, stamp_ns, &now, twist) && odometry_at(tracker, tracker->stamp_ns, &before, &ignored)) {
        const struct ndt_pose step = ndt_pose_between(&before, &now);
        *T_map_sensor = ndt_pose_compose(&tracker->T_map_sensor, &step);
        return 1;
    }
    *twist = (struct ndt_twist){0};
    const double dt_s = seconds_between(tracker->stamp_ns, stamp_ns);
    if (!tracker->has_twist || fabs(dt_s) > tracker->max_prediction_s)
        return 1;
    const struct ndt_pose step = ndt_pose_exp(&tracker->twist, dt_s);
    *T_map_sensor = ndt_pose_compose(&tracker->T_map_sensor, &step);
    *twist = tracker->twist;
    return 1;
}

static int is_trusted(enum ndt_outcome outcome)
{
    return outcome == NDT_CONVERGED || outcome == NDT_ITERATION_LIMIT || outcome == NDT_DEADLINE;
}

/* The velocity is not known across such a gap. */
static int has_jumped(const struct ndtd_tracker *tracker, double dt_s)
{
    return fabs(dt_s) > tracker->max_prediction_s;
}

/* An out-of-order scan changes nothing. */
static int is_late(const struct ndtd_tracker *tracker, double dt_s)
{
    return dt_s < 0 && !has_jumped(tracker, dt_s);
}

int ndtd_tracker_motion(const struct ndtd_tracker *tracker, int64_t stamp_ns, const struct ndt_align_result *result,
                        struct ndt_twist *twist)
{
    const double dt_s = seconds_between(tracker->stamp_ns, stamp_ns);
    *twist = tracker->twist;
    if (!tracker->has_pose || is_late(tracker, dt_s))
        return tracker->has_twist;
    if (has_jumped(tracker, dt_s))
        return 0;
    if (!is_trusted(result->outcome) || dt_s == 0)
        return tracker->has_twist;
    const struct ndt_pose step = ndt_pose_between(&tracker->T_map_sensor, &result->T_map_sensor);
    *twist = ndt_pose_log(&step, dt_s);
    return 1;
}

void ndtd_tracker_update(struct ndtd_tracker *tracker, int64_t stamp_ns, const struct ndt_align_result *result)
{
    struct ndt_pose T_map_sensor = result->T_map_sensor;
    struct ndt_twist twist, ignored;
    if (!tracker->has_pose || is_late(tracker, seconds_between(tracker->stamp_ns, stamp_ns)))
        return;
    const int has_twist = ndtd_tracker_motion(tracker, stamp_ns, result, &twist);
    if (!is_trusted(result->outcome)) /* keeps the prediction and the previous velocity */
        (void)ndtd_tracker_predict(tracker, stamp_ns, &T_map_sensor, &ignored);
    tracker->T_map_sensor = T_map_sensor;
    tracker->stamp_ns = stamp_ns;
    tracker->twist = twist;
    tracker->has_twist = has_twist;
}
