/** @file
 * @brief Conditions on scans and poses under Autoware's names: scores, the reach of a scan, what the log warns of.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "ndtd/options.h"
#include "ndtd/pipeline.h"
#include "run_tests.h"
#include "street_drive.h"

static struct ndtd_pipeline *open_at_start(void)
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
    return pipeline;
}

static struct ndtd_scan_record feed_scan(struct ndtd_pipeline *pipeline, size_t i)
{
    return street_drive_feed(pipeline, NDT_MESSAGE_SCAN, &drive.scans[i]);
}

FIXTURE(street_drive_make, street_drive_free)

/* One more condition for converged; the threshold has to be exceeded. */
TEST(scores_are_one_more_condition)
{
    static const char *const types[] = {"transform_probability", "nvtl"};
    static const char *const thresholds[] = {
        "score_estimation.converged_param_transform_probability",
        "score_estimation.converged_param_nearest_voxel_transformation_likelihood"};
    for (int type = 0; type < 2; type++) {
        double score = 0;
        street_drive_set("score_estimation.converged_param_type", types[type]);
        for (int run = 0; run < 3; run++) { /* no threshold, one just below the score, one above all guesses */
            char text[40];
            snprintf(text, sizeof(text), "%.17g", run == 1 ? score * (1 - 1e-12) : score * 1.01);
            street_drive_set(thresholds[type], text);
            struct ndtd_pipeline *pipeline = open_at_start();
            const struct ndt_align_result result = feed_scan(pipeline, 0).result;
            ck_assert_int_eq(result.outcome, run < 2 ? NDT_CONVERGED : NDT_LOW_SCORE);
            ck_assert_int_eq(strstr(result.reason, "is not above the threshold") != NULL, run == 2);
            score = type == 0 ? result.scores.transform_probability : result.scores.nvtl;
            ck_assert_double_gt(score, 1);
            ndtd_pipeline_destroy(pipeline);
        }
    }
    street_drive_set("score_estimation.converged_param_type", "off");
    struct ndtd_pipeline *pipeline = open_at_start();
    ck_assert_int_eq(feed_scan(pipeline, 0).result.outcome, NDT_CONVERGED);
    ndtd_pipeline_destroy(pipeline);
}

/* The farthest point is 40 m from the sensor. */
TEST(near_scans_are_rejected)
{
    street_drive_set("sensor_points.required_distance", "20");
    struct ndtd_pipeline *pipeline = open_at_start();
    ck_assert_int_eq(feed_scan(pipeline, 0).result.outcome, NDT_CONVERGED);
    ndtd_pipeline_destroy(pipeline);

    street_drive_set("sensor_points.required_distance", "60");
    pipeline = street_drive_pipeline(drive.map);
    ck_assert_int_eq(feed_scan(pipeline, 0).result.outcome, NDT_REJECTED); /* nor is it searched for */
    ck_assert_int_eq(ndtd_pipeline_state(pipeline), NDT_STATE_INITIALISING);
    street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
    const struct ndtd_scan_record record = feed_scan(pipeline, 1);
    ck_assert_int_eq(record.result.outcome, NDT_REJECTED);
    ck_assert_ptr_nonnull(strstr(record.result.reason, "sensor_points.required_distance is 60 m"));
    ck_assert_int_eq(record.result.evaluations, 0);
    ndtd_pipeline_destroy(pipeline);

    street_drive_set("frames.T_base_sensor", "50 0 0 0 0 0"); /* it counts from the base */
    pipeline = open_at_start();
    ck_assert_int_ne(feed_scan(pipeline, 0).result.outcome, NDT_REJECTED);
    ndtd_pipeline_destroy(pipeline);
}

static void run_all(struct ndt_pose poses[DRIVE_SCANS])
{
    struct ndtd_pipeline *pipeline = open_at_start();
    for (size_t i = 0; i < DRIVE_SCANS; i++)
        poses[i] = feed_scan(pipeline, i).result.T_map_sensor;
    ndtd_pipeline_destroy(pipeline);
}

/* Limits of validation.* change no result. */
TEST(limits_are_told)
{
    struct ndt_pose without[DRIVE_SCANS], with[DRIVE_SCANS];
    struct ndtd_pipeline_events told = {0};
    char text[NDTD_EVENT_BYTES], all[1000] = "";
    const char *format;
    run_all(without);
    street_drive_set("validation.initial_to_result_distance_tolerance_m", "1e-6");
    street_drive_set("validation.critical_upper_bound_exe_time_ms", "1e-6");
    street_drive_set("validation.skipping_publish_num", "3");
    run_all(with);
    ck_assert_mem_eq(without, with, sizeof(with));
    street_drive_set("score_estimation.score_threshold", "1");
    struct ndtd_pipeline *pipeline = open_at_start();
    const struct ndtd_pipeline_events *events = ndtd_pipeline_events(pipeline);
    for (size_t i = 0; i < 5; i++)
        feed_scan(pipeline, i);
    ck_assert_uint_ge(events->far, 1);
    ck_assert_uint_eq(events->slow, 5);
    ck_assert_uint_eq(events->rows, 1);
    ck_assert_uint_eq(events->longest_row, 5);
    for (size_t kind = 0; (format = ndtd_pipeline_event(events, &told, &kind, text)) != NULL;)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), format, text);
    ck_assert_ptr_nonnull(strstr(all, "pose: it is far from where the alignment began"));
    ck_assert_ptr_nonnull(strstr(all, "slow scans: they take long (5 so far)"));
    ck_assert_ptr_nonnull(
        strstr(all, "scans: several in a row have not converged (1 times so far; the longest row: 5 scans)"));
    ndtd_pipeline_destroy(pipeline);
}
