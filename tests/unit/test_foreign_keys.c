/** @file
 * @brief Tests of parameter files of Autoware: today's keys, older ones, and what such a file takes for granted. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/config_file.h"
#include "ndtd/foreign_keys.h"
#include "run_tests.h"

static struct ndtd_settings settings;
static struct ndt_error err;

static void setup(void)
{
    ndtd_settings_default(&settings);
    err.text[0] = '\0';
}

static enum ndt_status parse(const char *text)
{
    setup();
    return ndtd_config_parse(&settings, "a.yaml", text, strlen(text), &err);
}

/* Reads text in flow style in the outer sections of a ROS parameter file. */
static void must_read(const char *text)
{
    char whole[4000];
    snprintf(whole, sizeof(whole), "/**:\n  ros__parameters: {%s}\n", text);
    must(parse(whole));
    must(ndtd_settings_finish(&settings, &err));
}

static void must_refuse(const char *text, const char *reason)
{
    char whole[4000];
    snprintf(whole, sizeof(whole), "/**:\n  ros__parameters: {%s}\n", text);
    ck_assert_msg(parse(whole) == NDT_ERR_ARGUMENT, "taken: %s", text);
    ck_assert_str_eq(err.text, reason);
}

FIXTURE(setup, NULL)

TEST(table_is_well_formed)
{
    for (size_t i = 0; ndtd_foreign_key_at(i); i++) {
        const struct ndtd_foreign_key *key = ndtd_foreign_key_at(i);
        ck_assert_ptr_eq(ndtd_foreign_key_find(key->name), key); /* names are unique */
        ck_assert_msg(!ndtd_option_find(key->name), "%s", key->name);
        ck_assert_msg(!key->option || ndtd_option_find(key->option), "%s", key->name);
        ck_assert_msg((key->option != NULL) != (key->note != NULL), "%s", key->name);
        ck_assert_msg(!key->note || key->note[strlen(key->note) - 1] != '.', "%s", key->name);
        ck_assert_msg(!key->note || strncmp(key->note, "as ", 3) != 0 || ndtd_foreign_key_find(key->note + 3), "%s",
                      key->name);
    }
    for (size_t i = 0; ndtd_foreign_default_at(i); i++) {
        const struct ndtd_foreign_default *given = ndtd_foreign_default_at(i);
        must(ndtd_option_set_text(&settings, given->option, given->value, &err));
    }
}

/* Every key of Autoware 1.9. */
TEST(the_keys_of_today)
{
    must_read("frame: {base_frame: base_link, ndt_base_frame: ndt_base_link, map_frame: map},\n"
              "sensor_points: {timeout_sec: 1.0, required_distance: 12.5},\n"
              "ndt: {trans_epsilon: 0.02, step_size: 0.2, resolution: 1.5, max_iterations: 25, num_threads: 3,\n"
              "  regularization: {enable: true, scale_factor: 0.03}},\n"
              "initial_pose_estimation: {particles_num: 200, n_startup_trials: 100},\n"
              "validation: {initial_pose_timeout_sec: 1.0, initial_pose_distance_tolerance_m: 10.0,\n"
              "  initial_to_result_distance_tolerance_m: 3.5, critical_upper_bound_exe_time_ms: 80.0,\n"
              "  skipping_publish_num: 6},\n"
              "score_estimation: {converged_param_type: 1, converged_param_transform_probability: 3.5,\n"
              "  converged_param_nearest_voxel_transformation_likelihood: 2.4,\n"
              "  no_ground_points: {enable: false, z_margin_for_ground_removal: 0.8}},\n"
              "covariance: {output_pose_covariance: [1,0,0,0,0,0, 0,2,0,0,0,0, 0,0,3,0,0,0, 0,0,0,4,0,0,\n"
              "    0,0,0,0,5,0, 0,0,0,0,0,6],\n"
              "  covariance_estimation: {covariance_estimation_type: 3,\n"
              "    initial_pose_offset_model_x: [0.0, 0.5], initial_pose_offset_model_y: [0.5, 0.0],\n"
              "    temperature: 0.06, scale_factor: 1.5}},\n"
              "dynamic_map_loading: {update_distance: 21.0, map_radius: 151.0, lidar_radius: 101.0,\n"
              "  publish_loaded_map: false}");
    ck_assert_int_eq(settings.align.variant, NDT_AUTOWARE);
    ck_assert_int_eq(settings.map.covariance, NDT_COVARIANCE_AUTOWARE);
    ck_assert_int_eq(settings.align.levels[0].neighbours, NDT_RADIUS);
    ck_assert_uint_eq(settings.align.level_count, 1);
    ck_assert_double_eq(settings.align.levels[0].leaf_m, 1.5);
    ck_assert_double_eq(settings.align.trans_epsilon, 0.02);
    ck_assert_double_eq(settings.align.step_size, 0.2);
    ck_assert_int_eq(settings.align.max_iterations, 25);
    ck_assert_int_eq(settings.compute.threads, 3);
    ck_assert_int_eq(settings.use_gnss, 1);
    ck_assert_double_eq(settings.align.gnss_scale, 0.03);
    ck_assert_double_eq(settings.align.min_nvtl, 2.4);
    ck_assert_double_eq(settings.align.min_transform_probability, 0);
    ck_assert_double_eq(settings.required_distance_m, 12.5);
    ck_assert_double_eq(settings.validation.moved_m, 3.5);
    ck_assert_double_eq(settings.validation.align_s, 0.08);
    ck_assert_int_eq(settings.validation.skipped, 6);
    ck_assert_int_eq(settings.pose_covariance.kind, NDT_POSE_COVARIANCE_MULTI_NDT_SCORE);
    ck_assert_double_eq(settings.pose_covariance.fixed[35], 6);
    ck_assert_uint_eq(settings.pose_covariance.offset_x_count, 2);
    ck_assert_double_eq(settings.align.covariance_scale, 1.5);
    ck_assert_double_eq(settings.map_radius_m, 151);
    ck_assert_int_eq(settings.dynamic_map, 1);
}

/* Before 2024-02 there were no sections. */
TEST(keys_without_sections)
{
    must_read("use_dynamic_map_loading: false, base_frame: base_link, ndt_base_frame: b, map_frame: map,\n"
              "input_sensor_points_queue_size: 1, trans_epsilon: 0.02, step_size: 0.2, resolution: 3.0,\n"
              "max_iterations: 29, converged_param_type: 0, converged_param_transform_probability: 3.25,\n"
              "converged_param_nearest_voxel_transformation_likelihood: 2.3, initial_estimate_particles_num: 100,\n"
              "n_startup_trials: 20, lidar_topic_timeout_sec: 1.0, initial_pose_timeout_sec: 1.0,\n"
              "initial_pose_distance_tolerance_m: 10.0, critical_upper_bound_exe_time_ms: 90,\n"
              "neighborhood_search_method: 2, num_threads: 4,\n"
              "output_pose_covariance: [1,0,0,0,0,0, 0,2,0,0,0,0, 0,0,3,0,0,0, 0,0,0,4,0,0, 0,0,0,0,5,0,\n"
              "  0,0,0,0,0,6],\n"
              "use_covariance_estimation: false, offset_array_x: [0.0, 0.5], offset_array_y: [0.5, 0.0],\n"
              "regularization_enabled: true, regularization_scale_factor: 0.02,\n"
              "dynamic_map_loading_update_distance: 22.0, dynamic_map_loading_map_radius: 152.0,\n"
              "lidar_radius: 102.0, estimate_scores_for_degrounded_scan: false, z_margin_for_ground_removal: 0.8");
    ck_assert_int_eq(settings.align.variant, NDT_AUTOWARE);
    ck_assert_double_eq(settings.align.levels[0].leaf_m, 3);
    ck_assert_int_eq(settings.align.levels[0].neighbours, NDT_DIRECT7);
    ck_assert_int_eq(settings.align.max_iterations, 29);
    ck_assert_double_eq(settings.align.min_transform_probability, 3.25);
    ck_assert_double_eq(settings.align.min_nvtl, 0);
    ck_assert_double_eq(settings.validation.align_s, 0.09);
    ck_assert_int_eq(settings.pose_covariance.kind, NDT_POSE_COVARIANCE_FIXED);
    ck_assert_uint_eq(settings.pose_covariance.offset_y_count, 2);
    ck_assert_int_eq(settings.use_gnss, 1);
    ck_assert_int_eq(settings.dynamic_map, 0);
    ck_assert_double_eq(settings.lidar_radius_m, 102);
    must_read("neighborhood_search_method: 0");
    ck_assert_int_eq(settings.align.levels[0].neighbours, NDT_RADIUS);
    must_read("ndt_implement_type: 2, omp_neighborhood_search_method: 3, omp_num_threads: 7");
    ck_assert_int_eq(settings.align.levels[0].neighbours, NDT_DIRECT1);
    ck_assert_int_eq(settings.compute.threads, 7);
    must_refuse("neighborhood_search_method: 4", "a.yaml:2: ndt.neighbours: '4' is not one of radius, direct1, "
                                                 "direct7, direct27");
}

TEST(types_of_covariance_before_the_fixed_one)
{
    static const struct {
        const char *text;
        enum ndt_pose_covariance_kind kind;
    } cases[] = {{"enable: false", NDT_POSE_COVARIANCE_FIXED},
                 {"enable: true", NDT_POSE_COVARIANCE_MULTI_NDT},
                 {"enable: true, covariance_estimation_type: 0", NDT_POSE_COVARIANCE_LAPLACE},
                 {"covariance_estimation_type: 1, enable: true", NDT_POSE_COVARIANCE_MULTI_NDT},
                 {"enable: true, covariance_estimation_type: 2", NDT_POSE_COVARIANCE_MULTI_NDT_SCORE},
                 {"enable: true, covariance_estimation_type: 3", NDT_POSE_COVARIANCE_MULTI_NDT_SCORE},
                 {"covariance_estimation_type: 2, enable: false", NDT_POSE_COVARIANCE_FIXED}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), "covariance: {covariance_estimation: {%s}}", cases[i].text);
        must_read(text);
        ck_assert_msg(settings.pose_covariance.kind == cases[i].kind, "%s", cases[i].text);
    }
    must_read("use_covariance_estimation: true");
    ck_assert_int_eq(settings.pose_covariance.kind, NDT_POSE_COVARIANCE_MULTI_NDT);
}

/* Values of the file itself count, wherever they stand. */
TEST(defaults_of_such_a_file)
{
    must_read("frame.map_frame: map");
    ck_assert_int_eq(settings.align.variant, NDT_AUTOWARE);
    ck_assert_double_eq(settings.align.levels[0].leaf_m, 2);
    ck_assert_int_eq(settings.pose_covariance.kind, NDT_POSE_COVARIANCE_FIXED);
    ck_assert_double_eq(settings.align.covariance_scale, 1);
    ck_assert_double_eq(settings.align.min_nvtl, 0);
    must_read("ndt.variant: robust, frame.map_frame: map, ndt.levels: [4.0, 2.0], ndt.covariance: unbiased");
    ck_assert_int_eq(settings.align.variant, NDT_ROBUST);
    ck_assert_uint_eq(settings.align.level_count, 2);
    ck_assert_int_eq(settings.map.covariance, NDT_COVARIANCE_UNBIASED);
    /* Wrapped, but without a key that only Autoware has. */
    must_read("ndt: {trans_epsilon: 0.01, levels: [2.0, 1.0]}");
    ck_assert_int_eq(settings.align.variant, NDT_ROBUST);
    ck_assert_int_eq(parse("/a/ndt_scan_matcher:\n  ros__parameters:\n    frame: {map_frame: map}\n"), NDT_OK);
    ck_assert_int_eq(settings.align.variant, NDT_AUTOWARE);
}

/* Unknown keys, as of another release of Autoware, are warnings. A file without a key that only Autoware has is one
 * of ours. */
TEST(unknown_keys)
{
    must_read("ndt: {step_size: 0.2}, frame: {map_frame: map}, later: {number: 1, list: [1, 2], deep: {text: a}}");
    ck_assert_double_eq(settings.align.step_size, 0.2);
    ck_assert_int_eq(settings.align.variant, NDT_AUTOWARE);
    must_read("later: 1, frame.map_frame: map"); /* also before it */
    must_refuse("ndt: {step_sise: 0.2}",
                "a.yaml:2: 'ndt.step_sise' is not an option; did you mean 'ndt.step_size'?");
    must_refuse("a: 1, b: 2", "a.yaml:2: 'a' is not an option (and 1 more)");
    must_refuse("later: 1, frame.map_frame: map, ndt.step_size: high",
                "a.yaml:2: ndt.step_size: 'high' is not a number");
    ck_assert_int_eq(parse("frame_id: 1\n"), NDT_ERR_ARGUMENT);
}

TEST(mistakes_in_such_a_file)
{
    must_refuse("frame: {map_fram: map}",
                "a.yaml:2: 'frame.map_fram' is not an option; did you mean 'frame.map_frame'?");
    must_refuse("frame: {map_frame: map}, frame.map_frame: map",
                "a.yaml:2: frame.map_frame was already set in line 2");
    must_refuse("step_size: 0.1, ndt: {step_size: 0.1}", "a.yaml:2: ndt.step_size was already set in line 2");
    must_refuse("step_size: [0.1]", "a.yaml:2: ndt.step_size: expected one value, not a list");
    must_refuse("frame: 3", "a.yaml:2: 'frame' is a section, not an option");
    must_refuse(
        "score_estimation: {converged_param_type: 2}",
        "a.yaml:2: score_estimation.converged_param_type: '2' is not one of off, transform_probability, nvtl, "
        "0, 1");
    must_read("frame: , validation: ");
    ck_assert_int_eq(settings.align.variant, NDT_ROBUST);
    ck_assert_int_eq(parse("frame: {map_frame: map}\n"), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(err.text,
                     "a.yaml:1: 'frame.map_frame' is a parameter of Autoware, whose files begin with /**: "
                     "and ros__parameters:");
}
