#include "ndtd/scan_times.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sweeps last 2 ms to 1.2 s; the units are a factor of 1000 apart, so at most one of them fits. */
static const double SHORTEST_S = 2e-3, LONGEST_S = 1.2, UNITS_S[] = {1, 1e-3, 1e-6, 1e-9};
/* Factor by which a sweep may exceed the time between stamps, which are not exact. */
static const double GAP_MARGIN = 1.25;
/* Largest distance of the stamp from the sweep, in sweeps; for a part of a turn, in turns up to the usual one. */
static const double STAMP_MARGIN = 1.1, USUAL_TURN_S = 0.1;
/* Part of stray points above which the times have another meaning than assumed. */
static const double MOST_STRAYS = 0.1;
/* Number of gaps that have to be known, so that an odd one does not decide. */
enum { LEAST_GAPS = 4 };

/* ---- what is known of a sensor ---- */

static size_t kept_sensors(const struct ndtd_scan_times *times)
{
    return times->sensor_count < NDTD_TIMED_SENSORS ? (size_t)times->sensor_count : NDTD_TIMED_SENSORS;
}

static struct ndtd_sensor_times *find_sensor(struct ndtd_scan_times *times, const char *frame_id)
{
    for (size_t i = 0; i < kept_sensors(times); i++)
        if (strcmp(times->sensors[i].frame_id, frame_id) == 0)
            return &times->sensors[i];
    struct ndtd_sensor_times *sensor = &times->sensors[times->sensor_count++ % NDTD_TIMED_SENSORS];
    *sensor = (struct ndtd_sensor_times){.scans = 0};
    snprintf(sensor->frame_id, sizeof(sensor->frame_id), "%s", frame_id);
    return sensor;
}

/* Notes the gap before a scan; stamps that stand still or run backwards tell nothing. */
static void note_gap(struct ndtd_sensor_times *sensor, int64_t stamp_ns)
{
    int64_t gap_ns;
    if (sensor->scans++ > 0 && !__builtin_sub_overflow(stamp_ns, sensor->stamp_ns, &gap_ns) && gap_ns > 0)
        sensor->gaps_s[sensor->gap_count++ % NDTD_GAPS] = (double)gap_ns * 1e-9;
    sensor->stamp_ns = stamp_ns;
}

/* Largest time between scans: the second longest of the last gaps, because a scan may be missing, and scans may
 * come in pairs. INFINITY: not known yet. */
static double period_s(const struct ndtd_sensor_times *sensor)
{
    const uint64_t count = sensor->gap_count < NDTD_GAPS ? sensor->gap_count : NDTD_GAPS;
    double first_s = 0, second_s = 0;
    if (count < LEAST_GAPS)
        return INFINITY;
    for (uint64_t i = 0; i < count; i++) {
        second_s = fmax(second_s, fmin(sensor->gaps_s[i], first_s));
        first_s = fmax(first_s, sensor->gaps_s[i]);
    }
    return second_s;
}

static double longest_s(const struct ndtd_sensor_times *sensor)
{
    return fmin(GAP_MARGIN * period_s(sensor), LONGEST_S);
}

static int is_near_stamp(const struct ndtd_sensor_times *sensor, double first_s, double last_s)
{
    const double away_s = fmax(first_s, -last_s); /* below 0: the stamp lies within */
    return away_s <= STAMP_MARGIN * fmax(last_s - first_s, fmin(period_s(sensor), USUAL_TURN_S));
}

/* ---- times ---- */

/* Whether the times can stay as they are. */
static int is_plausible(const struct ndtd_sensor_times *sensor, const struct ndt_cloud *points,
                        const struct ndt_sweep *sweep)
{
    const double first_s = sweep->reference_s + sweep->begin_s, last_s = sweep->reference_s + sweep->end_s;
    return points->time_offset_s == 0 && (sensor->unit_s == 0 || sensor->unit_s == 1) &&
           (double)sweep->strays <= MOST_STRAYS * (double)sweep->points && last_s - first_s <= longest_s(sensor) &&
           is_near_stamp(sensor, first_s, last_s);
}

static int fits(const struct ndtd_sensor_times *sensor, double span_s)
{
    return span_s >= SHORTEST_S && span_s <= longest_s(sensor);
}

/* The unit of times with this span; 0: none fits. The unit of earlier scans is kept while it fits. */
static double find_unit_s(const struct ndtd_sensor_times *sensor, double span)
{
    const double before_s = sensor->unit_s > 0 ? sensor->unit_s : 1;
    if (fits(sensor, span * before_s))
        return before_s;
    for (size_t i = 0; i < sizeof(UNITS_S) / sizeof(UNITS_S[0]); i++)
        if (fits(sensor, span * UNITS_S[i]))
            return UNITS_S[i];
    return span * before_s <= longest_s(sensor) ? before_s : 0; /* span of a scan of few points */
}

/* Place of the middle of the sweep, relative to the stamp. */
static double place_s(const struct ndtd_sensor_times *sensor, enum ndt_sweep_stamp stamp, double span_s)
{
    if (sensor->has_place)
        return sensor->place_s;
    return stamp == NDT_STAMP_MIDDLE ? 0 : stamp == NDT_STAMP_BEGIN ? span_s / 2 : -span_s / 2;
}

/* Rewrites times as seconds relative to the stamp; strays get none. */
static void rewrite(struct ndt_cloud *points, const struct ndt_told_times *told, double unit_s, double moved_s)
{
    for (size_t i = 0; i < points->count; i++) {
        const float t = points->time_s[i];
        const int is_stray = !(t >= told->first_s && t <= told->last_s);
        points->time_s[i] = is_stray ? NAN : (float)((double)t * unit_s + moved_s);
    }
    points->time_offset_s = 0;
}

/* Makes implausible times plausible. Returns 0 where that is not possible. */
static int mend(struct ndtd_sensor_times *sensor, const struct ndt_preprocess_params *params,
                struct ndt_cloud *points, struct ndtd_time_events *events)
{
    const int was_moved = sensor->is_moved, was_refused = sensor->is_refused;
    struct ndt_told_times told;
    ndt_preprocess_told_times(params, points, (double)FLT_MAX, &told);
    if (!(told.first_s <= told.last_s))
        return 0;
    const double span = (double)told.last_s - (double)told.first_s, unit_s = find_unit_s(sensor, span);
    sensor->is_refused = unit_s == 0;
    events->refusals += sensor->is_refused && !was_refused;
    if (sensor->is_refused) {
        events->span_s = span;
        events->longest_s = longest_s(sensor);
        return 0;
    }
    double moved_s = points->time_offset_s * unit_s;
    const double first_s = (double)told.first_s * unit_s + moved_s, last_s = (double)told.last_s * unit_s + moved_s;
    sensor->is_moved = !is_near_stamp(sensor, first_s, last_s);
    events->moves += sensor->is_moved && !was_moved;
    if (sensor->is_moved) {
        events->moved_s = place_s(sensor, params->sweep_stamp, last_s - first_s) - (first_s + last_s) / 2;
        events->place = params->sweep_stamp;
        events->is_known_place = sensor->has_place;
        moved_s += events->moved_s;
    }
    events->units += unit_s != 1 && unit_s != sensor->unit_s;
    events->unit_s = unit_s;
    sensor->unit_s = unit_s;
    sensor->is_mended = 1;
    rewrite(points, &told, unit_s, moved_s);
    return 1;
}

static void note_times(struct ndtd_sensor_times *sensor, const struct ndt_sweep *sweep,
                       struct ndtd_time_events *events)
{
    const int had_strays = sensor->has_strays;
    sensor->has_strays = sweep->strays > 0;
    events->strays += sensor->has_strays && !had_strays;
    events->stray_points += sweep->strays;
    if (sweep->points > sweep->strays && !sensor->is_moved && !sensor->is_refused) {
        sensor->unit_s = sensor->unit_s > 0 ? sensor->unit_s : 1;
        sensor->has_place = 1;
        sensor->place_s = sweep->reference_s;
    }
}

/* Finds the sweep by times, as ndt_preprocess_sweep does. *is_useless: the values are no times; then the status
 * does not matter. */
static enum ndt_status find_by_time(struct ndtd_sensor_times *sensor, const struct ndt_preprocess_params *params,
                                    struct ndt_cloud *points, struct ndt_sweep *sweep, int *is_useless,
                                    struct ndtd_time_events *events, struct ndt_error *err)
{
    enum ndt_status status = ndt_preprocess_sweep(params, points, sweep, err);
    const int is_read = points->count > 0 && points->time_s && (status != NDT_OK || sweep->points > 0);
    *is_useless = 0;
    if (is_read && (status != NDT_OK || !is_plausible(sensor, points, sweep))) {
        if (mend(sensor, params, points, events))
            status = ndt_preprocess_sweep(params, points, sweep, err);
        else
            *is_useless = 1;
    } else {
        sensor->is_moved = sensor->is_refused = 0;
        *is_useless = is_read && !sensor->has_place && sweep->end_s <= sweep->begin_s; /* all equal: never set */
    }
    if (status == NDT_OK && !*is_useless)
        note_times(sensor, sweep, events);
    return status;
}

/* ---- the mode ---- */

static void find_turn(struct ndtd_sensor_times *sensor, const struct ndt_cloud *points,
                      struct ndt_preprocess_params *params, struct ndtd_time_events *events)
{
    const enum ndtd_turn turn = ndtd_scan_turn(points);
    const int is_same = turn != NDTD_TURN_UNKNOWN && turn == sensor->turn;
    sensor->turns = is_same ? sensor->turns + (sensor->turns < NDTD_TURNS_NEEDED) : turn != NDTD_TURN_UNKNOWN;
    sensor->turn = turn;
    if (sensor->turns < NDTD_TURNS_NEEDED)
        return;
    params->deskew = turn == NDTD_TURN_CLOCKWISE ? NDT_DESKEW_AZIMUTH_CW : NDT_DESKEW_AZIMUTH_CCW;
    params->sweep_s = fmin(params->sweep_s, period_s(sensor));
    events->turns += sensor->deskew != params->deskew;
    events->turn = turn;
    events->sweep_s = params->sweep_s;
}

static enum ndt_status decide(struct ndtd_sensor_times *sensor, const struct ndtd_timed_scan *scan,
                              struct ndt_preprocess_params *params, struct ndt_sweep *sweep,
                              struct ndtd_time_events *events, struct ndt_error *err)
{
    struct ndt_cloud *points = scan->points;
    int is_useless = 0;
    if (params->deskew == NDT_DESKEW_TIME)
        return find_by_time(sensor, params, points, sweep, &is_useless, events, err);
    if (params->deskew != NDT_DESKEW_AUTO)
        return ndt_preprocess_sweep(params, points, sweep, err);
    if (points->count > 0 ? points->time_s != NULL : sensor->has_place) {
        params->deskew = NDT_DESKEW_TIME;
        const enum ndt_status status = find_by_time(sensor, params, points, sweep, &is_useless, events, err);
        if (!is_useless)
            return status;
    }
    params->deskew = NDT_DESKEW_OFF;
    if (!scan->is_part && !sensor->is_refused && !sensor->has_place)
        find_turn(sensor, points, params, events);
    return ndt_preprocess_sweep(params, points, sweep, err);
}

enum ndt_status ndtd_scan_times_find(struct ndtd_scan_times *times, const struct ndtd_timed_scan *scan,
                                     struct ndt_preprocess_params *params, struct ndt_sweep *sweep,
                                     struct ndtd_time_events *events, struct ndt_error *err)
{
    struct ndtd_sensor_times *sensor = find_sensor(times, scan->frame_id);
    const struct ndtd_time_events before = *events;
    note_gap(sensor, scan->stamp_ns);
    sensor->is_mended = 0;
    const enum ndt_status status = decide(sensor, scan, params, sweep, events, err);
    sensor->deskew = params->deskew;
    sensor->sweep_s = params->sweep_s;
    if (events->units + events->moves + events->refusals + events->strays + events->turns >
        before.units + before.moves + before.refusals + before.strays + before.turns)
        memcpy(events->frame_id, sensor->frame_id, sizeof(events->frame_id));
    return status;
}

int ndtd_scan_times_expect(const struct ndtd_scan_times *times, const char *frame_id,
                           struct ndt_preprocess_params *params)
{
    const int is_auto = params->deskew == NDT_DESKEW_AUTO;
    if (!is_auto && params->deskew != NDT_DESKEW_TIME)
        return 1;
    for (size_t i = 0; i < kept_sensors(times); i++) {
        const struct ndtd_sensor_times *sensor = &times->sensors[i];
        if (strcmp(sensor->frame_id, frame_id) != 0)
            continue;
        if (is_auto) {
            params->deskew = sensor->deskew;
            params->sweep_s = sensor->sweep_s;
        }
        return !sensor->is_mended && params->deskew != NDT_DESKEW_AUTO;
    }
    return !is_auto;
}

double ndtd_scan_times_sweep_s(const struct ndtd_scan_times *times, const char *frame_id, double sweep_s)
{
    for (size_t i = 0; frame_id && i < kept_sensors(times); i++)
        if (strcmp(times->sensors[i].frame_id, frame_id) == 0)
            return fmin(sweep_s, period_s(&times->sensors[i]));
    return sweep_s;
}

void ndtd_scan_times_drop(struct ndt_cloud *points)
{
    points->fields &= ~(unsigned)NDT_CLOUD_TIME;
    points->time_s = NULL;
}
