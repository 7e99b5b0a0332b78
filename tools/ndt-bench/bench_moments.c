/** @file
 * @brief moments: replays a bag as it would arrive, asks for the pose at random moments before, at and after that
 * of the question, and compares with the truth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_consistency.h"
#include "ndt/clock.h"
#include "ndt/random.h"
#include "ndt_io/bag.h"
#include "ndt_io/map_file.h"
#include "ndtd/pipeline.h"
#include "ndtd/replay_sinks.h"

/* Latency from the end of the sweep to the result. */
static const int64_t LATENCY_NS = 45000000;
/* Questions come at random, 50 per second. */
static const double LEAST_GAP_S = 0.005, MOST_GAP_S = 0.035;
/* The first scans initialise. */
static const int64_t BEGIN_NS = 2000000000;

enum { HELD = 4, MOMENTS = 4 };
static const struct {
    const char *name;
    int64_t after_ns; /* the question */
} moments[MOMENTS] = {{"1 s ago", -1000000000}, {"80 ms ago", -80000000}, {"now", 0}, {"100 ms ahead", 100000000}};

/* The answers about one moment. */
struct answers {
    struct bench_samples errors[CONSISTENCY_AXES], us;
    size_t within[CONSISTENCY_AXES][3], asked, answered;
    double nees;
};

/* A scan that is not answered yet. */
struct held_scan {
    int64_t ready_ns;
    size_t size, capacity;
    uint8_t *data;
};

struct course {
    struct ndt_bag_reader *bag;
    struct ndt_map *map;
    struct ndtd_pipeline *pipeline;
    struct ndtd_trajectory_error truth;
    struct held_scan held[HELD]; /* oldest first */
    size_t held_count;
    struct ndt_random random;
    int64_t question_ns; /* the next one; 0: none yet */
    struct answers answers[MOMENTS];
    struct bench_samples steps_m, steps_rad; /* jumps of the current pose when a scan arrives */
};

static enum ndt_status process(struct course *course, enum ndt_message_type type, const uint8_t *data, size_t size,
                               struct ndt_error *err)
{
    struct ndtd_message frame = {.type = type, .data = data, .size = size};
    struct ndtd_scan_record ignored;
    enum ndt_status status = NDT_OK;
    if (type == NDT_MESSAGE_SCAN)
        status = ndt_scan_header_decode(data, size, &frame.scan, err);
    return status == NDT_OK ? ndtd_pipeline_process(course->pipeline, &frame, &ignored, err) : status;
}

/* ---- questions ---- */

static void ask(struct course *course, int which)
{
    struct answers *answers = &course->answers[which];
    struct ndt_moment_message found;
    struct ndt_pose truth;
    double sigma[CONSISTENCY_AXES], nees;
    const int64_t stamp_ns = course->question_ns + moments[which].after_ns;
    if (!ndtd_trajectory_error_truth_at(&course->truth, stamp_ns, &truth, NULL))
        return;
    answers->asked++;
    const double begin_us = ndt_clock_us();
    if (ndtd_pipeline_pose_at(course->pipeline, stamp_ns, &found, NULL) != NDT_OK)
        return;
    bench_samples_add(&answers->us, ndt_clock_us() - begin_us);
    const struct ndt_pose off = ndt_pose_between(&truth, &found.T_map_base);
    const struct ndt_twist d = ndt_pose_log(&off, 1);
    const double error[CONSISTENCY_AXES] = {d.v_mps[0],   d.v_mps[1],   d.v_mps[2],
                                            d.w_radps[0], d.w_radps[1], d.w_radps[2]};
    if (!consistency_sigmas(&found.T_map_base, found.covariance, error, sigma, &nees))
        return;
    answers->answered++;
    answers->nees += nees;
    for (int axis = 0; axis < CONSISTENCY_AXES; axis++) {
        bench_samples_add(&answers->errors[axis], fabs(error[axis]));
        for (int k = 0; k < 3; k++)
            answers->within[axis][k] += fabs(error[axis]) <= (k + 1) * sigma[axis];
    }
}

static void ask_all(struct course *course)
{
    for (int i = 0; i < MOMENTS; i++)
        ask(course, i);
    course->question_ns += (int64_t)llround(ndt_random_between(&course->random, LEAST_GAP_S, MOST_GAP_S) * 1e9);
}

/* ---- time ---- */

static enum ndt_status process_oldest(struct course *course, struct ndt_error *err)
{
    struct held_scan oldest = course->held[0];
    struct ndt_moment_message before, after;
    const int has_before = ndtd_pipeline_pose_at(course->pipeline, oldest.ready_ns, &before, NULL) == NDT_OK;
    const enum ndt_status status = process(course, NDT_MESSAGE_SCAN, oldest.data, oldest.size, err);
    if (has_before && ndtd_pipeline_pose_at(course->pipeline, oldest.ready_ns, &after, NULL) == NDT_OK) {
        bench_samples_add(&course->steps_m, ndt_pose_distance_m(&before.T_map_base, &after.T_map_base));
        bench_samples_add(&course->steps_rad, ndt_pose_angle_rad(&before.T_map_base, &after.T_map_base));
    }
    memmove(course->held, course->held + 1, (HELD - 1) * sizeof(*course->held));
    course->held[HELD - 1] = oldest; /* reuses its memory */
    course->held_count--;
    if (course->question_ns == 0)
        course->question_ns = oldest.ready_ns + BEGIN_NS;
    return status;
}

/* Processes all events before a moment: scans that are ready, and questions. */
static enum ndt_status advance(struct course *course, int64_t until_ns, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    while (status == NDT_OK) {
        const int64_t ready_ns = course->held_count > 0 ? course->held[0].ready_ns : INT64_MAX;
        const int64_t question_ns = course->question_ns != 0 ? course->question_ns : INT64_MAX;
        if (ready_ns > until_ns && question_ns > until_ns)
            return NDT_OK;
        if (ready_ns <= question_ns)
            status = process_oldest(course, err);
        else
            ask_all(course);
    }
    return status;
}

static enum ndt_status hold(struct course *course, const struct ndt_bag_record *record, struct ndt_error *err)
{
    enum ndt_status status = course->held_count == HELD ? process_oldest(course, err) : NDT_OK;
    struct held_scan *held = &course->held[course->held_count];
    if (status == NDT_OK && held->capacity < record->length) {
        uint8_t *data = realloc(held->data, record->length);
        if (!data)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a scan of %u bytes", (unsigned)record->length);
        held->data = data;
        held->capacity = record->length;
    }
    if (status != NDT_OK)
        return status;
    memcpy(held->data, record->payload, record->length);
    held->size = record->length;
    held->ready_ns = record->receive_time_ns + LATENCY_NS;
    course->held_count++;
    return NDT_OK;
}

static enum ndt_status take(struct course *course, const struct ndt_bag_record *record, struct ndt_error *err)
{
    const enum ndt_status status = advance(course, record->receive_time_ns, err);
    if (status != NDT_OK || record->type == NDT_MESSAGE_TRUTH || record->type >= NDT_MESSAGE_END)
        return status;
    return record->type == NDT_MESSAGE_SCAN
               ? hold(course, record, err)
               : process(course, (enum ndt_message_type)record->type, record->payload, record->length, err);
}

/* ---- the course ---- */

static enum ndt_status read_truth(struct course *course, struct ndt_error *err)
{
    struct ndt_bag_record record;
    enum ndt_status status = NDT_OK;
    while (status == NDT_OK && ndt_bag_next(course->bag, &record, NULL) == NDT_OK) {
        struct ndt_pose_message truth;
        if (record.type != NDT_MESSAGE_TRUTH)
            continue;
        status = ndt_pose_message_decode(record.payload, record.length, NDT_MESSAGE_TRUTH, &truth, err);
        if (status == NDT_OK)
            status = ndtd_trajectory_error_add_truth(&course->truth, truth.stamp_ns, &truth.pose, err);
    }
    if (status == NDT_OK && course->truth.truth.count == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "no truth in the bag");
    return status;
}

static enum ndt_status follow(struct course *course, const struct ndtd_settings *settings, struct ndt_error *err)
{
    const struct ndtd_settings_snapshot *snapshot = NULL;
    struct ndt_bag_record record;
    enum ndt_status status = ndtd_settings_snapshot_create(&snapshot, settings, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_create(&course->pipeline, snapshot, course->map, 0, err);
    ndtd_settings_snapshot_release(snapshot);
    ndt_bag_rewind(course->bag);
    while (status == NDT_OK && ndt_bag_next(course->bag, &record, NULL) == NDT_OK)
        status = take(course, &record, err);
    ndtd_pipeline_destroy(course->pipeline);
    return status;
}

static double percent(size_t part, size_t of)
{
    return of > 0 ? 100.0 * (double)part / (double)of : NAN;
}

static void put_axis(struct answers *answers, const char *when, int axis, struct bench_report *report,
                     struct bench_table *table)
{
    static const char *const axes[CONSISTENCY_AXES] = {"along", "across", "up", "roll", "pitch", "yaw"};
    const double unit = axis < 3 ? 100 : 1 / BENCH_DEG;
    bench_row(report, table);
    bench_text(table, "moment", "%s", when);
    bench_text(table, "axis", "%s", axes[axis]);
    bench_text(table, "unit", "%s", axis < 3 ? "cm" : "deg");
    bench_number(table, "median", 3, unit * bench_quantile(&answers->errors[axis], 0.5));
    bench_number(table, "q95", 3, unit * bench_quantile(&answers->errors[axis], 0.95));
    bench_number(table, "within_1", 1, percent(answers->within[axis][0], answers->answered));
    bench_number(table, "within_2", 1, percent(answers->within[axis][1], answers->answered));
    bench_number(table, "within_3", 1, percent(answers->within[axis][2], answers->answered));
}

static void report_moments(struct course *course, struct bench_report *report)
{
    struct bench_table *summary = bench_report_table(
        report, "moments",
        "Moments: questions, the share with an answer in percent, the mean of d^T covariance^-1 d "
        "(6 is right), and the time of an answer");
    struct bench_table *table =
        bench_report_table(report, "axes",
                           "Axes: errors in the axes of the base, and the share within 1, 2 and 3 sigma in percent "
                           "(nominal: 68.3, 95.4, 99.7)");
    for (int i = 0; i < MOMENTS; i++) {
        struct answers *answers = &course->answers[i];
        bench_row(report, summary);
        bench_text(summary, "moment", "%s", moments[i].name);
        bench_number(summary, "questions", 0, (double)answers->asked);
        bench_number(summary, "answered", 2, percent(answers->answered, answers->asked));
        bench_number(summary, "nees", 2, answers->nees / (double)answers->answered);
        bench_number(summary, "median_us", 1, bench_median(&answers->us));
        for (int axis = 0; axis < CONSISTENCY_AXES; axis++)
            put_axis(answers, moments[i].name, axis, report, table);
    }
}

static void put_steps(struct bench_samples *steps, const char *what, double unit, struct bench_report *report,
                      struct bench_table *table)
{
    bench_row(report, table);
    bench_text(table, "step", "%s", what);
    bench_number(table, "median", 3, unit * bench_quantile(steps, 0.5));
    bench_number(table, "q95", 3, unit * bench_quantile(steps, 0.95));
    bench_number(table, "most", 3, unit * bench_quantile(steps, 1));
}

static void report_steps(struct course *course, struct bench_report *report)
{
    struct bench_table *table =
        bench_report_table(report, "steps", "Steps: of the pose of now, when a scan is answered");
    put_steps(&course->steps_m, "position, cm", 100, report, table);
    put_steps(&course->steps_rad, "attitude, deg", 1 / BENCH_DEG, report, table);
}

static void free_course(struct course *course)
{
    for (int i = 0; i < MOMENTS; i++) {
        bench_samples_free(course->answers[i].errors, CONSISTENCY_AXES);
        bench_samples_free(&course->answers[i].us, 1);
    }
    bench_samples_free(&course->steps_m, 1);
    bench_samples_free(&course->steps_rad, 1);
    for (int i = 0; i < HELD; i++)
        free(course->held[i].data);
    ndtd_trajectory_error_free(&course->truth);
    ndt_map_release(course->map);
    if (course->bag)
        ndt_bag_close(course->bag);
}

enum ndt_status bench_moments(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    struct course course = {.random = {options->seed}};
    enum ndt_status status = ndt_bag_open(&course.bag, options->bag, err);
    if (status == NDT_OK)
        status = ndt_map_load(&course.map, options->map, &options->settings.map, err);
    if (status == NDT_OK)
        status = read_truth(&course, err);
    if (status == NDT_OK)
        status = follow(&course, &options->settings, err);
    if (status == NDT_OK) {
        report_moments(&course, report);
        report_steps(&course, report);
    }
    free_course(&course);
    return status;
}
