/** @file
 * @brief The table of parameters of Autoware's ndt_scan_matcher that are no options: those of today, and those of
 * releases before 2024-02, which had no sections. */
#include "ndtd/foreign_keys.h"

#include <string.h>

#include "option_table.h"

#define COVARIANCE "covariance."
#define ESTIMATION "covariance.covariance_estimation."

static const struct ndt_label searches[] = {
    {"radius", 0}, {"direct27", 1}, {"direct7", 2}, {"direct1", 3}, {NULL, 0}};

#define SETS(key, row)   .name = key, .option = row
#define NOTED(key, line) .name = key, .note = line
#define COUNTS_AS_TYPE(key)                                                                                        \
    .name = key, .is_switch = 1,                                                                                   \
    .note = "off is covariance_estimation_type 0; on is the type, counted from laplace, or multi_ndt"

/* Rows are easier to read as a table. */
/* clang-format off */
static const struct ndtd_foreign_key keys[] = {
    {NOTED("frame.base_frame", "poses are of the base, which frames.T_base_sensor places; names of frames have no effect")},
    {NOTED("frame.ndt_base_frame", "no tf is sent; ndt-ros2-bridge names the frame of its own")},
    {NOTED("frame.map_frame", "results say 'map'; ndt-ros2-bridge names the frame of its messages")},
    {NOTED("sensor_points.timeout_sec", "warns there; here live.budget_ms bounds the time from a scan to its result")},
    {NOTED("initial_pose_estimation.particles_num", "the first pose has to be given; ndt.variant robust searches for it, exhaustively")},
    {NOTED("initial_pose_estimation.n_startup_trials", "as initial_pose_estimation.particles_num")},
    {NOTED("validation.initial_pose_timeout_sec", "the guess is the prediction of the estimator, see estimator.max_prediction_s")},
    {NOTED("validation.initial_pose_distance_tolerance_m", "the guess is not interpolated between poses of an EKF")},
    {NOTED("validation.lidar_topic_timeout_sec", "warns there; here live.budget_ms bounds the time from a scan to its result")},
    {SETS("validation.critical_upper_bound_processing_time_ms", "validation.critical_upper_bound_exe_time_ms")},
    {NOTED("score_estimation.no_ground_points.enable", "a second score for display; not computed")},
    {NOTED("score_estimation.no_ground_points.z_margin_for_ground_removal", "belongs to no_ground_points.enable")},
    {NOTED("dynamic_map_loading.publish_loaded_map", "the map is not published; ndt-web shows it")},
    {COUNTS_AS_TYPE(ESTIMATION "enable")},

    {NOTED("base_frame", "as frame.base_frame")},
    {NOTED("ndt_base_frame", "as frame.ndt_base_frame")},
    {NOTED("map_frame", "as frame.map_frame")},
    {NOTED("input_sensor_points_queue_size", "see live.queue_depth")},
    {NOTED("lidar_topic_timeout_sec", "as sensor_points.timeout_sec")},
    {SETS("required_distance", "sensor_points.required_distance")},
    {SETS("trans_epsilon", "ndt.trans_epsilon")},
    {SETS("step_size", "ndt.step_size")},
    {SETS("resolution", "ndt.resolution")},
    {SETS("max_iterations", "ndt.max_iterations")},
    {SETS("num_threads", "ndt.num_threads")},
    {SETS("neighborhood_search_method", "ndt.neighbours"), .words = searches},
    {NOTED("ndt_implement_type", "there is one implementation; see backend.name")},
    {SETS("omp_neighborhood_search_method", "ndt.neighbours"), .words = searches},
    {SETS("omp_num_threads", "ndt.num_threads")},
    {SETS("regularization_enabled", "ndt.regularization.enable")},
    {SETS("regularization_scale_factor", "ndt.regularization.scale_factor")},
    {NOTED("initial_estimate_particles_num", "as initial_pose_estimation.particles_num")},
    {NOTED("n_startup_trials", "as initial_pose_estimation.n_startup_trials")},
    {NOTED("initial_pose_timeout_sec", "as validation.initial_pose_timeout_sec")},
    {NOTED("initial_pose_distance_tolerance_m", "as validation.initial_pose_distance_tolerance_m")},
    {SETS("initial_to_result_distance_tolerance_m", "validation.initial_to_result_distance_tolerance_m")},
    {SETS("critical_upper_bound_exe_time_ms", "validation.critical_upper_bound_exe_time_ms")},
    {SETS("converged_param_type", "score_estimation.converged_param_type")},
    {SETS("converged_param_transform_probability", "score_estimation.converged_param_transform_probability")},
    {SETS("converged_param_nearest_voxel_transformation_likelihood",
          "score_estimation.converged_param_nearest_voxel_transformation_likelihood")},
    {NOTED("estimate_scores_for_degrounded_scan", "as score_estimation.no_ground_points.enable")},
    {NOTED("estimate_scores_by_no_ground_points", "as score_estimation.no_ground_points.enable")},
    {NOTED("z_margin_for_ground_removal", "belongs to no_ground_points.enable")},
    {SETS("output_pose_covariance", COVARIANCE "output_pose_covariance")},
    {COUNTS_AS_TYPE("use_covariance_estimation")},
    {SETS("initial_pose_offset_model_x", ESTIMATION "initial_pose_offset_model_x")},
    {SETS("initial_pose_offset_model_y", ESTIMATION "initial_pose_offset_model_y")},
    {SETS("offset_array_x", ESTIMATION "initial_pose_offset_model_x")},
    {SETS("offset_array_y", ESTIMATION "initial_pose_offset_model_y")},
    {SETS("use_dynamic_map_loading", "dynamic_map_loading.enable")},
    {SETS("dynamic_map_loading_update_distance", "dynamic_map_loading.update_distance")},
    {SETS("dynamic_map_loading_map_radius", "dynamic_map_loading.map_radius")},
    {SETS("lidar_radius", "dynamic_map_loading.lidar_radius")},
};
/* clang-format on */
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };
_Static_assert(KEY_COUNT <= NDTD_FOREIGN_KEYS_MAX, "NDTD_FOREIGN_KEYS_MAX is too small");

static const struct ndtd_foreign_default defaults[] = {
    {"ndt.variant", "autoware"}, {"ndt.covariance", "autoware"},     {"ndt.neighbours", "radius"},
    {"ndt.resolution", "2.0"},   {NDTD_FOREIGN_COVARIANCE, "fixed"}, {ESTIMATION "scale_factor", "1.0"},
};

const struct ndtd_foreign_key *ndtd_foreign_key_find(const char *name)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

const struct ndtd_foreign_key *ndtd_foreign_key_at(size_t i)
{
    return i < KEY_COUNT ? &keys[i] : NULL;
}

const char *ndtd_foreign_key_value(const struct ndtd_foreign_key *key, const char *text)
{
    if (key->words && strlen(text) == 1)
        for (const struct ndt_label *word = key->words; word->name; word++)
            if (*text - '0' == word->value)
                return word->name;
    return text;
}

const struct ndtd_foreign_default *ndtd_foreign_default_at(size_t i)
{
    return i < sizeof(defaults) / sizeof(defaults[0]) ? &defaults[i] : NULL;
}

void ndtd_foreign_covariance(struct ndtd_settings *settings, int is_on, int has_type)
{
    enum ndt_pose_covariance_kind *kind = &settings->pose_covariance.kind;
    if (!is_on)
        *kind = NDT_POSE_COVARIANCE_FIXED;
    else if (!has_type)
        *kind = NDT_POSE_COVARIANCE_MULTI_NDT;
    else if (*kind < NDT_POSE_COVARIANCE_MULTI_NDT_SCORE)
        *kind = (enum ndt_pose_covariance_kind)((int)*kind + 1);
}
