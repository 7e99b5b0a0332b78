#include "ndtd/hints.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double DEG = 0.017453292519943295;

/* ---- thresholds: each far from what a run that is right has ---- */

static const double LEAST_SWEEP_S = 5e-3;                    /* span of the point times of a scan */
static const double BEYOND_SENSOR_M = 5000;                  /* range beyond that of any lidar */
static const double OUTSIDE_M = 100, BELOW_OR_ABOVE_M = 200; /* distances from the box of the map */
static const double SAME_M = 0.3, SAME_RAD = 0.05;           /* limits within which transforms are the same */
static const double OFF_M = 0.5, OFF_RAD = 0.1;              /* limits, one of which other ones exceed */
static const double SAME_PART = 0.7;                         /* part of the scans */
static const double PAIR_S = 0.15;                           /* from a position to the scan after it */
static const double TURNED_RAD = 0.17, LEAST_SPREAD_M = 20;  /* of the positions, about their mean */
static const double LEAST_GAIN = 2; /* deviations of positions from poses, before over after a rotation */
enum { LEAST_PAIRS = 10, LEAST_POINTS = 500, LEAST_SCANS = 10 };

__attribute__((format(printf, 2, 3))) static void add(struct ndtd_hints *hints, const char *format, ...)
{
    va_list values;
    if (hints->count == NDTD_HINTS_MAX)
        return;
    va_start(values, format);
    vsnprintf(hints->text[hints->count++], NDTD_HINT_BYTES, format, values);
    va_end(values);
}

/* ---- the first scan ---- */

static void look_at_times(struct ndtd_hints *hints, const struct ndt_cloud *cloud,
                          const struct ndtd_settings *settings)
{
    float first_s = INFINITY, last_s = -INFINITY;
    if (!cloud->time_s || settings->preprocess.deskew != NDT_DESKEW_OFF)
        return;
    for (size_t i = 0; i < cloud->count; i++)
        if (isfinite(cloud->time_s[i])) {
            first_s = fminf(first_s, cloud->time_s[i]);
            last_s = fmaxf(last_s, cloud->time_s[i]);
        }
    if ((double)last_s - (double)first_s >= LEAST_SWEEP_S)
        add(hints,
            "the points have times, %.3f s in a scan, and preprocess.deskew is off: auto, the default, takes the "
            "motion of the vehicle out of the scans",
            (double)last_s - (double)first_s);
}

static void look_at_variant(struct ndtd_hints *hints, const struct ndtd_settings *settings)
{
    struct ndt_align_params usual;
    ndt_align_params_default(&usual);
    if (settings->align.variant == NDT_ROBUST && settings->align.step_size != usual.step_size)
        add(hints,
            "ndt.step_size has no effect with ndt.variant robust, whose limit of a step is ndt.step_limit_m");
    if (settings->align.variant == NDT_ROBUST && settings->align.trans_epsilon != usual.trans_epsilon)
        add(hints, "ndt.trans_epsilon has no effect with ndt.variant robust, which ends by ndt.fine_stop_m");
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Whether a scan is upside down. A road is the layer with the most points, with next to nothing below it; upside
 * down, above it. */
static int is_upside_down(float *z_m, size_t count)
{
    size_t best = 0, best_count = 0;
    qsort(z_m, count, sizeof(*z_m), by_value);
    for (size_t from = 0, to = 0; from < count; from++) {
        while (to < count && z_m[to] - z_m[from] <= 0.4f)
            to++;
        if (to - from > best_count) {
            best_count = to - from;
            best = from;
        }
    }
    size_t below = 0, above = 0;
    const float low_m = z_m[best] - 0.6f, high_m = z_m[best] + 1.0f;
    for (size_t i = 0; i < count; i++) {
        below += z_m[i] < low_m;
        above += z_m[i] > high_m;
    }
    return best_count * 10 >= count && above * 33 <= count && below * 5 >= count;
}

static void look_at_heights(struct ndtd_hints *hints, const struct ndt_cloud *cloud,
                            const struct ndt_pose *T_base_sensor)
{
    float *z_m = malloc((cloud->count ? cloud->count : 1) * sizeof(*z_m));
    double farthest_m = 0, R[9];
    size_t count = 0;
    for (size_t i = 0; z_m && i < cloud->count; i++) {
        const double point_m[3] = {cloud->origin_m[0] + (double)cloud->x_m[i],
                                   cloud->origin_m[1] + (double)cloud->y_m[i],
                                   cloud->origin_m[2] + (double)cloud->z_m[i]};
        const double range_m = hypot(point_m[0], point_m[1]);
        double base_m[3];
        if (!isfinite(range_m) || !isfinite(point_m[2]))
            continue;
        farthest_m = fmax(farthest_m, range_m);
        ndt_pose_apply(T_base_sensor, point_m, base_m);
        if (range_m > 2 && range_m < 40)
            z_m[count++] = (float)base_m[2];
    }
    ndt_pose_rotation(T_base_sensor, R);
    hints->is_turned = R[8] < 0;
    hints->looks_upside_down = z_m && count >= LEAST_POINTS && is_upside_down(z_m, count);
    free(z_m);
    if (farthest_m >= BEYOND_SENSOR_M)
        add(hints,
            "points of the first scan are up to %.0f km from the sensor: a scan is in the frame of its sensor, not "
            "in that of the map",
            farthest_m * 1e-3);
}

void ndtd_hints_scan(struct ndtd_hints *hints, const uint8_t *data, size_t size,
                     const struct ndtd_settings *settings, const struct ndt_pose *T_base_sensor)
{
    struct ndt_scan_message message;
    struct ndt_cloud cloud;
    if (hints->has_scan)
        return;
    ndt_cloud_init(&cloud);
    if (ndt_scan_decode(data, size, &message, &cloud, NULL) == NDT_OK) {
        hints->has_scan = 1;
        look_at_times(hints, &cloud, settings);
        look_at_variant(hints, settings);
        look_at_heights(hints, &cloud, T_base_sensor);
    }
    ndt_cloud_free(&cloud);
}

/* ---- where it starts ---- */

/* Finds the corners of the box of all voxels of the coarsest level. Returns 0 for an empty map. */
static int box_of(const struct ndt_map *map, double low_m[3], double high_m[3])
{
    const struct ndt_map_level *level = &map->levels[0];
    for (uint32_t i = 1; i < level->voxel_count; i++) /* 0 is the null voxel */
        for (int axis = 0; axis < 3; axis++) {
            const double at_m = map->origin_m[axis] + level->leaf_m * (double)level->voxels[i].cell[axis];
            low_m[axis] = i == 1 ? at_m : fmin(low_m[axis], at_m);
            high_m[axis] = fmax(i == 1 ? at_m : high_m[axis], at_m + level->leaf_m);
        }
    return level->voxel_count > 1;
}

static double beyond_m(double value_m, double low_m, double high_m)
{
    return fmax(0, fmax(low_m - value_m, value_m - high_m));
}

void ndtd_hints_start(struct ndtd_hints *hints, const struct ndt_map *map, const char *what, const double t_m[3])
{
    double low_m[3], high_m[3];
    int *seen = strcmp(what, "initial pose") == 0 ? &hints->has_start : &hints->has_position;
    if (*seen || !box_of(map, low_m, high_m))
        return;
    *seen = 1;
    const double away_m = hypot(beyond_m(t_m[0], low_m[0], high_m[0]), beyond_m(t_m[1], low_m[1], high_m[1]));
    const double off_m = beyond_m(t_m[2], low_m[2], high_m[2]);
    hints->is_outside |= away_m > OUTSIDE_M || off_m > BELOW_OR_ABOVE_M;
    if (away_m > OUTSIDE_M)
        add(hints,
            "the first %s, x %.1f y %.1f, is %.0f m outside the map (x %.0f to %.0f, y %.0f to %.0f): another "
            "frame, "
            "projection or offset than that of the map?",
            what, t_m[0], t_m[1], away_m, low_m[0], high_m[0], low_m[1], high_m[1]);
    else if (off_m > BELOW_OR_ABOVE_M)
        add(hints,
            "the first %s, z %.1f, is %.0f m outside the map (z %.0f to %.0f): another height, of the ellipsoid or "
            "the "
            "geoid, than that of the map?",
            what, t_m[2], off_m, low_m[2], high_m[2]);
}

/* ---- the errors ---- */

struct pair {
    struct ndt_pose T_truth_result; /* difference in the frame of the vehicle */
    struct ndt_pose T_result_truth; /* difference in the frame of the map: takes the truth to the result */
};

static size_t find_pairs(struct ndtd_trajectory_error *error, struct pair *pairs)
{
    size_t count = 0;
    for (size_t i = 0; i < error->results.count; i++) {
        const struct ndtd_timed_pose *result = &error->results.items[i];
        struct ndt_pose truth;
        if (!result->has_pose || !ndtd_trajectory_error_truth_at(error, result->stamp_ns, &truth, NULL))
            continue;
        const struct ndt_pose T_base_map = ndt_pose_inverse(&truth);
        pairs[count++] = (struct pair){ndt_pose_between(&truth, &result->T_map_sensor),
                                       ndt_pose_compose(&result->T_map_sensor, &T_base_map)};
    }
    return count;
}

/* Finds the transform that most pairs share, if it is not the identity; returns their part, or 0. */
static double shared(const struct pair *pairs, size_t count, size_t offset, struct ndt_pose *out)
{
    const struct ndt_pose identity = ndt_pose_identity();
    for (size_t k = 1; k <= 3; k++) { /* several candidates: one of three scans is not an outlier */
        memcpy(out, (const char *)&pairs[k * count / 4] + offset, sizeof(*out));
        size_t same = 0;
        for (size_t i = 0; i < count; i++) {
            struct ndt_pose one;
            memcpy(&one, (const char *)&pairs[i] + offset, sizeof(one));
            same += ndt_pose_distance_m(out, &one) <= SAME_M && ndt_pose_angle_rad(out, &one) <= SAME_RAD;
        }
        if ((double)same >= SAME_PART * (double)count)
            return ndt_pose_distance_m(out, &identity) > OFF_M || ndt_pose_angle_rad(out, &identity) > OFF_RAD
                       ? (double)same / (double)count
                       : 0;
    }
    return 0;
}

static const char *pose_text(const struct ndt_pose *pose, char *text, size_t size)
{
    double R[9];
    ndt_pose_rotation(pose, R);
    snprintf(text, size, "x %.2f y %.2f z %.2f m, roll %.1f pitch %.1f yaw %.1f deg", pose->t_m[0], pose->t_m[1],
             pose->t_m[2], atan2(R[7], R[8]) / DEG, asin(fmax(-1, fmin(1, -R[6]))) / DEG, atan2(R[3], R[0]) / DEG);
    return text;
}

static void look_at_errors(struct ndtd_hints *hints, struct ndtd_trajectory_error *error)
{
    struct pair *pairs = error->results.count ? malloc(error->results.count * sizeof(*pairs)) : NULL;
    const size_t count = pairs ? find_pairs(error, pairs) : 0;
    struct ndt_pose off;
    char text[160];
    double part = 0;
    if (count >= LEAST_PAIRS && (part = shared(pairs, count, offsetof(struct pair, T_truth_result), &off)) > 0)
        add(hints,
            "results and ground truth differ by one transform of the vehicle in %.0f %% of the scans: %s. Is the "
            "truth that of another frame, or frames.T_base_sensor missing or wrong?",
            100 * part, pose_text(&off, text, sizeof(text)));
    else if (count >= LEAST_PAIRS && (part = shared(pairs, count, offsetof(struct pair, T_result_truth), &off)) > 0)
        add(hints,
            "results and ground truth differ by one transform of the map in %.0f %% of the scans: %s. Is the truth "
            "in the frame of another map? So are initial poses of the recording then: --set "
            "initial_pose.mode=search leaves them aside",
            100 * part, pose_text(&off, text, sizeof(text)));
    free(pairs);
}

/* ---- GNSS ---- */

void ndtd_hints_gnss(struct ndtd_hints *hints, int64_t stamp_ns, const double position_m[3])
{
    struct ndtd_gnss_track *track = &hints->gnss;
    track->stamp_ns = stamp_ns;
    memcpy(track->position_m, position_m, sizeof(track->position_m));
    track->is_new = 1;
}

void ndtd_hints_pose(struct ndtd_hints *hints, int64_t stamp_ns, const double t_m[3])
{
    struct ndtd_gnss_track *track = &hints->gnss;
    double position_m[2], pose_m[2];
    if (!track->is_new || fabs((double)stamp_ns - (double)track->stamp_ns) > PAIR_S * 1e9)
        return;
    track->is_new = 0;
    if (track->pairs++ == 0) {
        memcpy(track->first_position_m, track->position_m, sizeof(track->position_m));
        memcpy(track->first_pose_m, t_m, sizeof(track->first_pose_m));
    }
    for (int k = 0; k < 2; k++) {
        position_m[k] = track->position_m[k] - track->first_position_m[k];
        pose_m[k] = t_m[k] - track->first_pose_m[k];
        track->position_sum_m[k] += position_m[k];
        track->pose_sum_m[k] += pose_m[k];
        track->position_m2 += position_m[k] * position_m[k];
        track->pose_m2 += pose_m[k] * pose_m[k];
        track->dot_m2 += position_m[k] * pose_m[k];
    }
    track->cross_m2 += position_m[0] * pose_m[1] - position_m[1] * pose_m[0];
}

/* The rotation that fits best takes positions to poses, about their means: its squared deviations are the sum of
 * both spreads minus twice the length of (dot, cross). */
static void look_at_gnss(struct ndtd_hints *hints)
{
    const struct ndtd_gnss_track *track = &hints->gnss;
    const double count = (double)track->pairs, *g = track->position_sum_m, *p = track->pose_sum_m;
    if (track->pairs < LEAST_PAIRS)
        return;
    const double position_m2 = track->position_m2 - (g[0] * g[0] + g[1] * g[1]) / count;
    const double pose_m2 = track->pose_m2 - (p[0] * p[0] + p[1] * p[1]) / count;
    const double dot_m2 = track->dot_m2 - (g[0] * p[0] + g[1] * p[1]) / count;
    const double cross_m2 = track->cross_m2 - (g[0] * p[1] - g[1] * p[0]) / count;
    const double turn_rad = atan2(cross_m2, dot_m2), spread_m = sqrt(fmax(0, pose_m2 / count));
    const double before_m = sqrt(fmax(0, position_m2 + pose_m2 - 2 * dot_m2) / count);
    const double after_m = sqrt(fmax(0, position_m2 + pose_m2 - 2 * hypot(dot_m2, cross_m2)) / count);
    if (spread_m >= LEAST_SPREAD_M && fabs(turn_rad) >= TURNED_RAD && before_m > LEAST_GAIN * after_m)
        add(hints,
            "poses are turned by %.0f deg against GNSS positions (%zu of them; they differ by %.1f m, turned by "
            "%.1f "
            "m): is the map turned against east and north, or is its projection another one?",
            turn_rad / DEG, track->pairs, before_m, after_m);
}

static void look_at_map(struct ndtd_hints *hints, const struct ndt_map *map)
{
    double low_m[3] = {0}, high_m[3] = {0};
    if (!box_of(map, low_m, high_m)) {
        add(hints, "no cell of the map has enough points for a Gaussian, of %zu points in all: is it in metres?",
            (size_t)map->points);
        return;
    }
    add(hints,
        "none of the scans fits the map. Is it the map of this place, in metres, z up, not mirrored? Taken for "
        "metres "
        "it is %.4g x %.4g x %.4g m. Is the sensor mounted as frames.T_base_sensor says? One that hangs has a roll "
        "of "
        "3.14159. `ndt-map picture` shows the map",
        high_m[0] - low_m[0], high_m[1] - low_m[1], high_m[2] - low_m[2]);
}

void ndtd_hints_finish(struct ndtd_hints *hints, const struct ndt_map *map, struct ndtd_trajectory_error *error,
                       uint64_t scans, uint64_t untrusted)
{
    const int is_turned_over = hints->looks_upside_down && 2 * untrusted > scans;
    look_at_errors(hints, error);
    look_at_gnss(hints);
    if (is_turned_over)
        add(hints,
            "the first scan looks upside down, with the ground above everything else: z points up in the base "
            "frame; "
            "frames.T_base_sensor %s",
            hints->is_turned ? "turns the sensor over: does it hang, or are its points turned already?"
                             : "with a roll of pi turns a sensor that hangs");
    else if (map && !hints->is_outside && scans >= LEAST_SCANS && untrusted == scans)
        look_at_map(hints, map);
}
