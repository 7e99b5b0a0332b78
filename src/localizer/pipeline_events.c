#include "ndtd/pipeline_events.h"

#include <inttypes.h>
#include <math.h>

static const double DEG = 0.017453292519943295;

/* Whether odometry restarted since `told`; writes the text of the event. */
static int odometry_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                          char text[NDTD_EVENT_BYTES])
{
    const struct ndt_track_restarts *jump = &now->odometry_restarts;
    snprintf(text, NDTD_EVENT_BYTES,
             "it begins anew (%" PRIu64 " so far): its pose jumped by %.3g m and %.3g deg within %.3g s",
             jump->count, jump->moved_m, jump->turned_rad / DEG, jump->gap_s);
    return jump->count != told->odometry_restarts.count;
}

static int too_late_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                          char text[NDTD_EVENT_BYTES])
{
    snprintf(
        text, NDTD_EVENT_BYTES,
        "samples of odometry and IMU are dropped, %" PRIu64
        " so far, the last %.3g s behind the newest; up to %g s they count, where the samples beside them are kept",
        now->too_late.count, now->too_late.last_s, NDT_TRACK_LATE_S);
    return now->too_late.count != told->too_late.count;
}

/* Writes one line for each fault, and one when it is over. */
static int input_event(const struct ndtd_input_fault *now, const struct ndtd_input_fault *told,
                       char text[NDTD_EVENT_BYTES])
{
    static const char *const faults[] = {[NDT_TRACK_STANDS_STILL] = "it stands still while they move",
                                         [NDT_TRACK_MOVES_ALONE] = "it moves while they stand still",
                                         [NDT_TRACK_WRONG_SCALE] = "scale",
                                         [NDT_TRACK_BACKWARDS] = "it runs backwards, scale",
                                         [NDT_TRACK_TURNED] = "its direction is turned by",
                                         [NDT_TRACK_OTHER_MOTION] = "its motion is another one",
                                         [NDT_TRACK_TURN_STANDS_STILL] = "it does not turn while they turn",
                                         [NDT_TRACK_TURNS_ALONE] = "it turns while they do not",
                                         [NDT_TRACK_WRONG_TURN_SCALE] = "scale of the rotation",
                                         [NDT_TRACK_OPPOSITE_TURN] = "it turns the other way, scale",
                                         [NDT_TRACK_OTHER_TURN] = "its rotation is another one: another frame?"};
    char value[32] = "";
    if (now->fault == NDT_TRACK_NO_FAULT) {
        snprintf(text, NDTD_EVENT_BYTES, "agrees with the scans again and is used");
        return told->fault != NDT_TRACK_NO_FAULT;
    }
    if (now->fault == NDT_TRACK_TURNED)
        snprintf(value, sizeof(value), " %.0f deg", now->value / DEG);
    else if (now->fault == NDT_TRACK_WRONG_SCALE || now->fault == NDT_TRACK_BACKWARDS ||
             now->fault == NDT_TRACK_WRONG_TURN_SCALE || now->fault == NDT_TRACK_OPPOSITE_TURN)
        snprintf(value, sizeof(value), " %.2g", now->value);
    snprintf(text, NDTD_EVENT_BYTES,
             "disagrees with the scans: %s%s; it is not used until it agrees (%" PRIu64 " times so far)",
             faults[now->fault], value, now->count);
    return now->count != told->count;
}

static int wrong_odometry_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                                char text[NDTD_EVENT_BYTES])
{
    return input_event(&now->inputs[NDT_TRACK_INPUT_ODOMETRY], &told->inputs[NDT_TRACK_INPUT_ODOMETRY], text);
}

static int wrong_imu_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                           char text[NDTD_EVENT_BYTES])
{
    return input_event(&now->inputs[NDT_TRACK_INPUT_GYRO], &told->inputs[NDT_TRACK_INPUT_GYRO], text);
}

static int thinned_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                         char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "they are thinned (%" PRIu64 " so far), the last from %" PRIu64 " to %" PRIu64
             " points, see preprocess.max_points",
             now->thinned, now->thinned_points, now->thinned_read);
    return now->thinned != told->thinned;
}

static int unsound_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                         char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES, "it was not finite (%" PRIu64 " so far), the scan is rejected", now->unsound);
    return now->unsound != told->unsound;
}

static int reinitialised_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                               char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES, "it was not finite (%" PRIu64 " so far) and begins anew", now->reinitialised);
    return now->reinitialised != told->reinitialised;
}

static int refused_pose_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                              char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "it is refused (%" PRIu64
             " so far): the scan does not fit there, but at the former track, %.3g m away",
             now->refused_poses, now->refused_m);
    return now->refused_poses != told->refused_poses;
}

static int repeated_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                          char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "they stand still: %" PRIu64
             " scans so far have that of the scan before and are rejected; a clock that stands still, or a scan "
             "sent twice",
             now->repeated);
    return now->repeated != told->repeated;
}

static int late_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                      char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "they run backwards: %" PRIu64
             " scans so far are older than the estimate, the last by %.3g s, and change nothing",
             now->late, now->late_s);
    return now->late != told->late;
}

static int memory_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                        char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "it did not suffice for a scan of %" PRIu64 " points (%" PRIu64 " so far), buffers were given back",
             now->memory_points, now->memory_released);
    return now->memory_released != told->memory_released;
}

static int changed_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                         char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES, "that of '%s' changed (%" PRIu64 " so far), as from the next scan",
             now->transforms.changed_frame, now->transforms.changed);
    return now->transforms.changed != told->transforms.changed;
}

static int unused_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                        char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES, "that of '%s' is not used: %s of the configuration is another one, and wins",
             now->transforms.unused_frame, now->transforms.unused_option);
    return now->transforms.unused != told->transforms.unused;
}

static int elsewhere_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                           char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "the scans fit better at another one, %.0f m away (%" PRIu64 " times in %" PRIu64
             " searches of the whole map): the pose may be wrong",
             now->elsewhere_m, now->fits_elsewhere, now->map_checks);
    return now->fits_elsewhere != told->fits_elsewhere;
}

static int far_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                     char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "it is far from where the alignment began (%" PRIu64 " so far), the last by %.2f m, "
             "validation.initial_to_result_distance_tolerance_m is %g m",
             now->far, now->far_m, now->far_limit_m);
    return now->far != told->far;
}

static int slow_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                      char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "they take long (%" PRIu64
             " so far), the last %.1f ms, validation.critical_upper_bound_exe_time_ms is %g",
             now->slow, now->slow_us / 1e3, now->slow_limit_us / 1e3);
    return now->slow != told->slow;
}

static int row_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                     char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "several in a row have not converged (%" PRIu64 " times so far; the longest row: %" PRIu64
             " scans), as many as validation.skipping_publish_num",
             now->rows, now->longest_row);
    return now->rows != told->rows;
}

static int pointless_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                           char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES, "%" PRIu64 " so far, the last: %s", now->pointless, now->pointless_why);
    return now->pointless != told->pointless;
}

static int poseless_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                          char text[NDTD_EVENT_BYTES])
{
    if (now->poseless <= told->poseless)
        return 0;
    snprintf(
        text, NDTD_EVENT_BYTES,
        "there is none, and %s: give it by --initial-pose, ndt-ctl pose x,y,z,yaw, or the message initial_pose",
        now->poseless_why);
    return 1;
}

static int unplaced_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                          char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "none of the first %" PRIu64
             " scans fits: is it of this place, in metres, not mirrored, z up? Is the sensor mounted as "
             "frames.T_base_sensor says (one that hangs: roll 3.14159)?",
             now->unplaced_row);
    return now->unplaced > told->unplaced;
}

static int distorted_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                           char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "up to %.2f m of it stay in a scan, whose points have no times and no order that tells them: "
             "preprocess.deskew azimuth_cw or azimuth_ccw for full turns, off where it was undone before",
             now->distorted_m);
    return now->distorted != told->distorted;
}

static int tight_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                       char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "scans follow one another by %.3g ms: are the stamps milli- or microseconds instead of nanoseconds?",
             now->tight_s * 1e3);
    return now->tight != told->tight;
}

static int lean_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                      char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "that of the IMU is %.0f deg off that of the poses: is the sensor mounted as frames.T_base_sensor "
             "says, the IMU as frames.T_base_imu, and the map level?",
             now->lean_rad * 57.29577951308232);
    return now->leans != told->leans;
}

static int weightless_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                            char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "the IMU tells %.3g m/s^2 on average in place of gravity's 9.81: is it in g, or without gravity?",
             now->force_mps2);
    return now->weightless != told->weightless;
}

static const char *name_of(const char *frame_id)
{
    return *frame_id ? frame_id : "scans";
}

static const char *unit_name(double unit_s)
{
    return unit_s < 1e-8   ? "nanoseconds"
           : unit_s < 1e-5 ? "microseconds"
           : unit_s < 1e-2 ? "milliseconds"
                           : "seconds";
}

static int unit_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                      char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES, "those of '%.40s' span too much for seconds: taken for %s",
             name_of(now->times.frame_id), unit_name(now->times.unit_s));
    return now->times.units != told->times.units;
}

static int moved_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                       char text[NDTD_EVENT_BYTES])
{
    static const char *const places[] = {"in the middle", "at the begin", "at the end"};
    const struct ndtd_time_events *times = &now->times;
    snprintf(text, NDTD_EVENT_BYTES,
             "those of '%.40s' lie %.3g s %s the stamps: moved, as if the stamp were %s (%s)",
             name_of(times->frame_id), fabs(times->moved_s), times->moved_s > 0 ? "before" : "after",
             times->is_known_place ? "where it was" : places[times->place],
             times->is_known_place ? "in scans before" : "preprocess.sweep_stamp");
    return now->times.moves != told->times.moves;
}

static int refused_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                         char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "those of '%.40s' span %.3g, in no unit a sweep of up to %.3g s, the time between scans: not used",
             name_of(now->times.frame_id), now->times.span_s, now->times.longest_s);
    return now->times.refusals != told->times.refusals;
}

static int stray_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                       char text[NDTD_EVENT_BYTES])
{
    snprintf(text, NDTD_EVENT_BYTES,
             "%" PRIu64 " points so far have none, or one far outside the sweep of their scan, and are left out",
             now->times.stray_points);
    return now->times.strays != told->times.strays;
}

static int turn_event(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                      char text[NDTD_EVENT_BYTES])
{
    const int is_clockwise = now->times.turn == NDTD_TURN_CLOCKWISE;
    snprintf(text, NDTD_EVENT_BYTES,
             "points of '%.40s' have no times; their order tells that it turns %s, once in %.3g s: as "
             "preprocess.deskew=%s",
             name_of(now->times.frame_id), is_clockwise ? "clockwise" : "counter-clockwise", now->times.sweep_s,
             is_clockwise ? "azimuth_cw" : "azimuth_ccw");
    return now->times.turns != told->times.turns;
}

static const struct {
    const char *format; /* one per kind: the log throttles by format */
    int (*happened)(const struct ndtd_pipeline_events *now, const struct ndtd_pipeline_events *told,
                    char text[NDTD_EVENT_BYTES]);
} kinds[] = {{"odometry: %s", odometry_event},
             {"late motion: %s", too_late_event},
             {"odometry %s", wrong_odometry_event},
             {"imu %s", wrong_imu_event},
             {"large scans: %s", thinned_event},
             {"result: %s", unsound_event},
             {"estimate: %s", reinitialised_event},
             {"initial pose: %s", refused_pose_event},
             {"stamps: %s", repeated_event},
             {"order of stamps: %s", late_event},
             {"memory: %s", memory_event},
             {"pose: %s", far_event},
             {"place: %s", elsewhere_event},
             {"slow scans: %s", slow_event},
             {"scans: %s", row_event},
             {"transform: %s", changed_event},
             {"transform message: %s", unused_event},
             {"unit of point times: %s", unit_event},
             {"clock of point times: %s", moved_event},
             {"point times: %s", refused_event},
             {"stray point times: %s", stray_event},
             {"deskewing: %s", turn_event},
             {"scans without a usable point: %s", pointless_event},
             {"first pose: %s", poseless_event},
             {"map: %s", unplaced_event},
             {"motion: %s", distorted_event},
             {"time between scans: %s", tight_event},
             {"vertical: %s", lean_event},
             {"acceleration: %s", weightless_event}};

const char *ndtd_pipeline_event(const struct ndtd_pipeline_events *now, struct ndtd_pipeline_events *told,
                                size_t *kind, char text[NDTD_EVENT_BYTES])
{
    while (*kind < sizeof(kinds) / sizeof(kinds[0])) {
        const size_t i = (*kind)++;
        if (kinds[i].happened(now, told, text))
            return kinds[i].format;
    }
    *told = *now;
    return NULL;
}
