#include "integrity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guesses.h"
#include "ndt/clock.h"
#include "ndt/part_observer.h"
#include "ndtd/scan_state.h"
#include "pipeline_state.h"

/* Parts of a scan: octants of the azimuth, each in two by the range. Estimates without a window of two octants, and
 * without the near and the far points. */
enum { OCTANTS = 8, WINDOW = 2, PARTS = 2 * OCTANTS, SUBSETS = OCTANTS + 2 };
/* Components of the error of a pose, in the order of the message: lateral, longitudinal, vertical, heading. */
enum { AXES = 4 };
static const int AXIS[AXES] = {1, 0, 2, 5};

struct ndtd_integrity {
    double risk, factor;
    struct ndt_part_observer *observer;
    uint8_t *part_of; /* part of each point */
    size_t capacity;
    int is_begun; /* the estimates below follow the track since its start number `starts`: */
    uint32_t starts;
    struct ndt_track_state subsets[SUBSETS];
    struct ndt_observation parts[PARTS];
    double share;     /* share of the last scan that fits */
    int populated;    /* octants of it with points that meet the map */
    double update_us; /* time that a scan took to inform the estimates, halved by each one that has no time */
};

/* ---- the factor ---- */

/* Probability that |t| is larger, with 8 degrees of freedom: 1 - sine times the first four terms a_k c2^k of the
 * series of 1 / sine, with c2 = 1 - sine^2 (Abramowitz and Stegun 1964, 26.7.4). Far out it is the rest of that
 * series: the difference would cancel, and below a risk of 1e-20 the level would be too small. */
static double tail(double t)
{
    const double sine = t / sqrt(8 + t * t), c2 = 8 / (8 + t * t);
    double term = 35.0 / 128 * c2 * c2 * c2 * c2, rest = 0;
    if (c2 > 0.25)
        return 1 - sine * (1 + c2 * (0.5 + c2 * (0.375 + c2 * 0.3125)));
    for (int k = 4; k < 32; k++) {
        rest += term;
        term *= c2 * (2 * k + 1) / (2 * k + 2);
    }
    return sine * rest;
}

double ndtd_integrity_factor(double risk)
{
    double low = 0, high = 1;
    while (tail(high) > risk)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        const double middle = 0.5 * (low + high);
        if (tail(middle) > risk)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* ---- life cycle ---- */

enum ndt_status ndtd_integrity_create(struct ndtd_integrity **out, double risk, const char *isa,
                                      struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_integrity *integrity = calloc(1, sizeof(*integrity));
    if (!integrity)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for protection levels");
    integrity->risk = risk;
    integrity->factor = ndtd_integrity_factor(risk / AXES);
    const enum ndt_status status = ndt_part_observer_create(&integrity->observer, isa, err);
    if (status == NDT_OK)
        *out = integrity;
    else
        ndtd_integrity_destroy(integrity);
    return status;
}

void ndtd_integrity_destroy(struct ndtd_integrity *integrity)
{
    if (!integrity)
        return;
    ndt_part_observer_destroy(integrity->observer);
    free(integrity->part_of);
    free(integrity);
}

void ndtd_integrity_set_map(struct ndtd_integrity *integrity, struct ndt_map *map)
{
    if (integrity)
        ndt_part_observer_set_map(integrity->observer, map);
}

/* ---- parts of the scan ---- */

/* Octant of a direction, in the order of the azimuth. */
static unsigned octant_of(float x, float y)
{
    static const uint8_t octants[8] = {0, 3, 7, 4, 1, 2, 6, 5};
    return octants[(x < 0 ? 1u : 0u) | (y < 0 ? 2u : 0u) | (fabsf(y) > fabsf(x) ? 4u : 0u)];
}

/* Near are the points within the mean range. */
static int divide(struct ndtd_integrity *integrity, const struct ndt_cloud *points)
{
    double sum = 0;
    if (points->count > integrity->capacity) {
        uint8_t *grown = realloc(integrity->part_of, points->count);
        if (!grown)
            return 0;
        integrity->part_of = grown;
        integrity->capacity = points->count;
    }
    for (size_t i = 0; i < points->count; i++)
        sum += sqrt((double)(points->x_m[i] * points->x_m[i] + points->y_m[i] * points->y_m[i]));
    const double mean_m = points->count > 0 ? sum / (double)points->count : 0;
    for (size_t i = 0; i < points->count; i++) {
        const float x = points->x_m[i], y = points->y_m[i];
        integrity->part_of[i] = (uint8_t)(2 * octant_of(x, y) + ((double)(x * x + y * y) > mean_m * mean_m));
    }
    return 1;
}

static int is_in_subset(int part, int subset)
{
    if (subset >= OCTANTS)
        return part % 2 != subset - OCTANTS;
    return (part / 2 - subset + OCTANTS) % OCTANTS >= WINDOW;
}

static enum ndt_status observe_parts(struct ndtd_integrity *integrity, const struct ndtd_matcher *matcher,
                                     const struct ndtd_alignment *alignment, struct ndt_error *err)
{
    const struct ndt_align_params *align = &matcher->settings->align;
    const struct ndt_align_level *finest = &align->levels[align->level_count - 1];
    const struct ndt_parts parts = {.scan = matcher->points,
                                    .part_of = integrity->part_of,
                                    .count = PARTS,
                                    .T_map_sensor = alignment->result.T_map_sensor,
                                    .leaf_m = finest->leaf_m,
                                    .neighbours = finest->neighbours};
    const enum ndt_status status = ndt_part_observer_observe(integrity->observer, &parts, integrity->parts, err);
    integrity->populated = 0;
    for (int k = 0; status == NDT_OK && k < OCTANTS; k++)
        integrity->populated +=
            integrity->parts[2 * k].information[0][0] > 0 || integrity->parts[2 * k + 1].information[0][0] > 0;
    return status;
}

/* ---- the estimates ---- */

/* Share of the scan that fits the map: points that met a voxel, and how well, compared with the usual fit. */
static double share_of(const struct ndtd_pipeline *pipeline, const struct ndt_align_result *result)
{
    const double usual = ndtd_relocalizer_usual_fit(pipeline->relocalizer), fit = ndtd_fit(result);
    const double worse = usual > 0 ? fmin(1, fit / usual) : 1;
    return fmax(1e-3, result->scores.match_ratio * worse);
}

/* Starts the estimates at the pose of the scan, as uncertain as a given pose: no scan has informed them yet. */
static void begin(struct ndtd_integrity *integrity, const struct ndtd_pipeline *pipeline,
                  const struct ndtd_alignment *alignment)
{
    const struct ndt_track_state *at = &alignment->updated;
    for (int i = 0; i < SUBSETS; i++)
        ndt_track_start_state(&pipeline->track, at->stamp_ns, &at->T_map_base, at->has_twist ? &at->twist : NULL,
                              NULL, &integrity->subsets[i]);
    integrity->is_begun = 1;
    integrity->starts = pipeline->track.starts;
}

/* Takes the scan into all estimates. 0: they cannot follow it. */
static int update(struct ndtd_integrity *integrity, struct ndtd_pipeline *pipeline,
                  const struct ndtd_alignment *alignment)
{
    struct ndtd_matcher *matcher = &pipeline->matcher;
    const struct ndt_twist *motion = &matcher->motion[matcher->pass].twist;
    struct ndt_error ignored;
    if (ndtd_matcher_need_points(matcher, &ignored) != NDT_OK || !divide(integrity, matcher->points) ||
        observe_parts(integrity, matcher, alignment, &ignored) != NDT_OK)
        return 0;
    if (!integrity->is_begun)
        begin(integrity, pipeline, alignment);
    integrity->share = share_of(pipeline, &alignment->result);
    for (int i = 0; i < SUBSETS; i++) {
        struct ndt_track_state *state = &integrity->subsets[i];
        const struct ndt_track_state before = *state;
        struct ndt_track_state predicted;
        struct ndt_track_measurement measurement;
        struct ndt_observation of_base, sum = {.gradient = {0}};
        for (int part = 0; part < PARTS; part++)
            if (is_in_subset(part, i))
                ndt_observation_add(&sum, 1, &integrity->parts[part]);
        ndt_track_predict_from(&pipeline->track, &before, alignment->updated.stamp_ns, &predicted);
        ndtd_alignment_measure(alignment, &matcher->scan, motion, &sum, &of_base, &measurement);
        ndt_track_update_from(&pipeline->track, &before, &predicted, &measurement, state, NULL, NULL);
        if (!ndt_track_state_is_plausible(state))
            return 0;
    }
    return 1;
}

/* Whether the deadline leaves time for an update. Without one the estimates are predicted: levels grow, but hold.
 */
static int has_time(struct ndtd_integrity *integrity, const struct ndtd_matcher *matcher)
{
    if (matcher->deadline_us <= 0 || matcher->deadline_us - ndt_clock_us() > integrity->update_us)
        return 1;
    integrity->update_us /= 2;
    return 0;
}

static void predict(struct ndtd_integrity *integrity, const struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    for (int i = 0; i < SUBSETS; i++) {
        const struct ndt_track_state before = integrity->subsets[i];
        ndt_track_predict_from(&pipeline->track, &before, stamp_ns, &integrity->subsets[i]);
    }
}

/* ---- the levels ---- */

struct separation {
    double distance[AXES], variance[AXES];
};

/* Distance of another estimate from this pose, and its variance, both at the stamp of the scan. */
static void separate(const struct ndtd_pipeline *pipeline, const struct ndt_pose *T_map_base,
                     const struct ndt_track_state *estimate, struct separation *out)
{
    struct ndt_track_state there;
    ndt_track_shift(&pipeline->track, estimate, -pipeline->matcher.scan.sweep.reference_s, &there);
    const struct ndt_pose off = ndt_pose_between(T_map_base, &there.T_map_base);
    const struct ndt_twist d = ndt_pose_log(&off, 1);
    for (int k = 0; k < AXES; k++) {
        const int i = AXIS[k];
        out->distance[k] = fabs(i < 3 ? d.v_mps[i] : d.w_radps[i - 3]);
        out->variance[k] = there.P[(NDT_TRACK_STATES + 1) * i] + there.distortion[i];
    }
}

/* Variance of the mean of n blocks of which each window leaves out l: (n - l)^2 / (l n) times the mean square of
 * the distances. */
static double jackknife(const struct separation separations[SUBSETS], int axis, int populated)
{
    const double n = fmax(populated, WINDOW + 1), l = WINDOW;
    double squares = 0;
    for (int i = 0; i < OCTANTS; i++)
        squares += separations[i].distance[axis] * separations[i].distance[axis];
    return (n - l) * (n - l) / (l * n) * squares / n;
}

/* Sets the levels; returns the estimate that is farthest from that of all points, in its deviations. */
static int bound(const struct ndtd_integrity *integrity, const struct ndtd_pipeline *pipeline,
                 const struct ndt_track_state *estimate, struct ndt_protection *out, double *farthest_m)
{
    struct separation separations[SUBSETS + 1];
    struct ndt_track_state there;
    double most = -1;
    int farthest = 0;
    ndt_track_shift(&pipeline->track, estimate, -pipeline->matcher.scan.sweep.reference_s, &there);
    for (int i = 0; i <= SUBSETS; i++)
        separate(pipeline, &there.T_map_base, i < SUBSETS ? &integrity->subsets[i] : estimate, &separations[i]);
    for (int k = 0; k < AXES; k++) {
        const double spread = jackknife(separations, k, integrity->populated);
        out->level[k] = 0;
        for (int i = 0; i <= SUBSETS; i++) {
            const double sigma = sqrt(separations[i].variance[k] + spread) / integrity->share;
            const double level = separations[i].distance[k] + integrity->factor * sigma;
            out->level[k] = isnan(level) ? INFINITY : fmax(out->level[k], level); /* fmax drops a NaN */
        }
    }
    for (int i = 0; i < SUBSETS; i++) {
        const double *d = separations[i].distance, *v = separations[i].variance;
        const double deviations2 = fmax(d[0] * d[0] / v[0], d[1] * d[1] / v[1]);
        if (deviations2 <= most)
            continue;
        most = deviations2;
        *farthest_m = hypot(d[0], d[1]);
        farthest = i;
    }
    return farthest;
}

void ndtd_integrity_begin(struct ndtd_scan_record *record)
{
    for (int k = 0; k < AXES; k++)
        record->protection.level[k] = INFINITY;
}

static const char *name_of(int subset)
{
    static const char *const names[SUBSETS] = {"azimuth 0 to 90 deg",
                                               "azimuth 45 to 135 deg",
                                               "azimuth 90 to 180 deg",
                                               "azimuth 135 to 225 deg",
                                               "azimuth 180 to 270 deg",
                                               "azimuth 225 to 315 deg",
                                               "azimuth 270 to 0 deg",
                                               "azimuth 315 to 45 deg",
                                               "near points",
                                               "far points"};
    return names[subset];
}

/* Sets the levels, and compares them with the alert limit. */
static void protect(const struct ndtd_integrity *integrity, const struct ndtd_pipeline *pipeline,
                    const struct ndt_track_state *estimate, struct ndt_protection *out)
{
    const double limit_m = pipeline->settings->alert_limit_m;
    char text[256];
    double farthest_m;
    const int farthest = bound(integrity, pipeline, estimate, out, &farthest_m);
    const double level_m = hypot(out->level[0], out->level[1]);
    out->is_unsafe = limit_m > 0 && !(level_m <= limit_m);
    if (!out->is_unsafe)
        return;
    snprintf(text, sizeof(text), "level %.2f m, limit %g m; without %s the pose moves by %.2f m", level_m, limit_m,
             name_of(farthest), farthest_m);
    snprintf(out->reason, sizeof(out->reason), "%.*s", (int)sizeof(out->reason) - 1, text);
}

/* Why there is no level; NULL: there is one. */
static const char *reason_without(const struct ndtd_integrity *integrity, const struct ndtd_pipeline *pipeline,
                                  const struct ndtd_scan_record *record)
{
    if (record->state != NDT_STATE_TRACKING && record->state != NDT_STATE_COASTING)
        return "the state is not tracking or coasting";
    if (pipeline->matcher.scan.is_late)
        return "the scan is older than the estimate";
    if (!integrity->is_begun)
        return "no scan has confirmed the pose since it was set";
    if (ndtd_relocalizer_is_active(pipeline->relocalizer))
        return "the pose is not proven against other places";
    if (!isnan(record->margin) && 1 - record->margin > integrity->risk)
        return "another place is more probable than the risk";
    return NULL;
}

void ndtd_integrity_follow(struct ndtd_integrity *integrity, struct ndtd_pipeline *pipeline,
                           const struct ndtd_alignment *alignment, struct ndtd_scan_record *record)
{
    struct ndt_protection *out = &record->protection;
    const struct ndtd_scan *scan = &pipeline->matcher.scan;
    if (!integrity)
        return;
    if (integrity->starts != pipeline->track.starts)
        integrity->is_begun = 0;
    const double start_us = ndt_clock_us();
    const int is_informing = alignment->is_updated && alignment->result.has_observation && !scan->is_late;
    if (is_informing && has_time(integrity, &pipeline->matcher)) {
        integrity->is_begun = update(integrity, pipeline, alignment);
        integrity->update_us = ndt_clock_us() - start_us;
    } else if (integrity->is_begun && !scan->is_late) {
        predict(integrity, pipeline, alignment->predicted.stamp_ns);
    }
    record->has_protection = 1;
    const char *reason = reason_without(integrity, pipeline, record);
    if (reason) {
        snprintf(out->reason, sizeof(out->reason), "%s", reason);
        out->is_unsafe = pipeline->settings->alert_limit_m > 0;
    } else {
        protect(integrity, pipeline, alignment->is_updated ? &alignment->updated : &alignment->predicted, out);
    }
    const double took_us = ndt_clock_us() - start_us; /* a part of matching */
    record->result.align_us += took_us;
    record->align_us += took_us;
}
