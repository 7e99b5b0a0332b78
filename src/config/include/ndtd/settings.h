/** @file
 * @brief The settings: all options in one struct; options.h reads and prints it. */
#ifndef NDTD_SETTINGS_H
#define NDTD_SETTINGS_H

#include <stdint.h>

#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndt/pose_covariance.h"
#include "ndt/preprocess.h"
#include "ndt_track/track.h"
#include "ndtd/faults.h"
#include "ndtd/extrinsics.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_PATH_MAX     1024 /**< bytes of a path, with the final zero */
#define NDTD_ADDRESS_MAX  256  /**< bytes of an address, with the final zero */
#define NDTD_CPU_LIST_MAX 128  /**< bytes of rt.cpus, with the final zero */

/** All options; the names in the comments are those of the option table. */
struct ndtd_settings {
    char backend[32];                       /**< backend.name: auto, cpu, reference, cuda */
    struct ndt_backend_config compute;      /**< cpu.*, cuda.*, backend.max_points */
    const char *cuda_pipeline, *cuda_shape; /**< cuda.*; NULL: auto. Both together make compute.pipeline. */
    struct ndt_map_config map;     /**< ndt.covariance, ndt.min_points ...; leaves are derived from ndt.levels */
    char map_path[NDTD_PATH_MAX];  /**< map.path */
    int extend_map;                /**< map.extend */
    struct ndt_align_params align; /**< ndt.*; neighbours of the levels are derived from ndt.neighbours */
    /** ndt.neighbours as configured, from coarse to fine */
    enum ndt_neighbours neighbours[NDT_MAX_LEVELS];
    size_t neighbours_count;
    struct ndt_preprocess_params preprocess; /**< preprocess.* */
    int deskew_passes;                       /**< preprocess.deskew_passes: 1 or 2 */
    struct ndtd_extrinsics frames;           /**< frames.* */
    int has_initial_pose;                    /**< initial_pose.pose is not [] */
    double initial_pose[7];                  /**< x y z qx qy qz qw */
    uint32_t max_points; /**< preprocess.max_points: larger scans are thinned to every k-th point */
    enum { NDTD_POSE_AUTO, NDTD_POSE_GIVEN, NDTD_POSE_SEARCH } initial_pose_mode; /**< initial_pose.mode */
    enum { NDTD_PRIOR_AUTO, NDTD_PRIOR_OFF } prior;                               /**< ndt.prior */
    struct ndt_track_params track;                                                /**< estimator.* */
    struct ndt_pose_covariance_params pose_covariance;                            /**< covariance.* */
    struct {
        int enable;                   /**< recovery.enable */
        double radius_m;              /**< recovery.radius_m */
        double max_speed_mps;         /**< recovery.max_speed_mps */
        double max_acceleration_mps2; /**< recovery.max_acceleration_mps2 */
        double check_s;               /**< recovery.check_s; 0 = none */
    } recovery;
    double min_confidence; /**< score_estimation.min_confidence */
    /** score_estimation.converged_param_type */
    enum { NDTD_SCORE_OFF, NDTD_SCORE_TRANSFORM_PROBABILITY, NDTD_SCORE_NVTL } score_condition;
    double min_transform_probability; /**< score_estimation.converged_param_transform_probability */
    double min_nvtl;            /**< score_estimation.converged_param_nearest_voxel_transformation_likelihood */
    double required_distance_m; /**< sensor_points.required_distance; 0 = none */
    struct {
        double moved_m;      /**< validation.initial_to_result_distance_tolerance_m */
        double align_s;      /**< validation.critical_upper_bound_exe_time_ms */
        int skipped;         /**< validation.skipping_publish_num */
    } validation;            /**< limits of the log's warnings; 0 = none */
    int use_gnss;            /**< ndt.regularization.enable; the scale is align.gnss_scale */
    int autotune;            /**< autotune.enable: measure at the start of the live daemon */
    double autotune_limit_s; /**< autotune.limit_ms */
    int max_threads;         /**< autotune.max_threads; 0 = cores */
    double align_delay_s;    /**< debug.align_delay_ms: every scan takes this much longer */

    double integrity_risk; /**< integrity.risk: of each scan; 0: no protection levels */
    double alert_limit_m;  /**< integrity.alert_limit_m; 0 = off */

    double max_ahead_s; /**< output.max_ahead_s: how far poses are predicted beyond all data */

    /* The live daemon only. Empty addresses: the default, see runtime_dir.h. Empty files: no CURVE. */
    char scans_address[NDTD_ADDRESS_MAX], poses_address[NDTD_ADDRESS_MAX], control_address[NDTD_ADDRESS_MAX],
        points_address[NDTD_ADDRESS_MAX], motion_address[NDTD_ADDRESS_MAX];
    double output_rate_hz;                               /**< output.rate_hz; 0: one result per scan, no more */
    uint32_t points_max;                                 /**< sockets.points_max */
    enum { NDTD_SCANS_SUB, NDTD_SCANS_PULL } scans_kind; /**< sockets.scans_kind */
    enum { NDTD_MODE_0600, NDTD_MODE_0660 } ipc_mode;    /**< sockets.ipc_mode */
    int high_water_mark;                                 /**< sockets.high_water_mark */
    uint64_t max_message_bytes;                          /**< sockets.max_message_bytes */
    int max_senders, max_connections;                    /**< sockets.max_senders, sockets.max_connections */
    char server_secret_key_file[NDTD_PATH_MAX], allowed_clients_file[NDTD_PATH_MAX];
    struct {
        char directory[NDTD_PATH_MAX]; /**< recording.directory; empty: the default, see recorder.h */
        uint32_t queue_mb;             /**< recording.queue_mb */
        uint32_t max_file_mb;          /**< recording.max_file_mb; 0 = no limit */
        uint32_t min_free_mb;          /**< recording.min_free_mb */
    } recording;
    double budget_s;                     /**< live.budget_ms: from the last byte of a scan to its result; 0: auto */
    int queue_depth;                     /**< live.queue_depth: largest number of waiting scans */
    int batch_max;                       /**< batch.max: frames taken from the queue at once */
    int batch_together;                  /**< batch.together */
    int dynamic_map;                     /**< dynamic_map_loading.enable */
    double update_distance_m;            /**< dynamic_map_loading.*, see map_loader.h */
    double map_radius_m, lidar_radius_m; /**< dynamic_map_loading.* */
    uint32_t search_limit_mb;            /**< dynamic_map_loading.search_limit_mb */
    enum { NDTD_LEVEL_ERROR, NDTD_LEVEL_WARNING, NDTD_LEVEL_INFO, NDTD_LEVEL_DEBUG } log_level;
    int rt_priority;                 /**< rt.priority: SCHED_FIFO of the matching thread; 0 = off */
    char rt_cpus[NDTD_CPU_LIST_MAX]; /**< rt.cpus, such as "0,2-3"; empty = any core */
    int rt_lock_memory;              /**< rt.lock_memory */
    enum { NDTD_ISOLATION_OFF, NDTD_ISOLATION_ON, NDTD_ISOLATION_GPU } isolation; /**< security.isolation */
    char map_paths[NDTD_PATH_MAX]; /**< security.map_paths: directories, separated by ':' */
};

/** Sets the defaults: of the core's *_default functions, and of the daemon. */
void ndtd_settings_default(struct ndtd_settings *settings);
/** Checks options that depend on each other (order of levels and ranges, names of backends and cores); adds one
 * line per fault. */
void ndtd_settings_check(const struct ndtd_settings *settings, struct ndtd_faults *faults);
/** Checks as ndtd_settings_check, with the first fault as the error, and derives the map's leaves from ndt.levels
 * and the neighbours per level from ndt.neighbours. */
NDT_MUST_CHECK enum ndt_status ndtd_settings_finish(struct ndtd_settings *settings, struct ndt_error *err);
/** Whether the first scan starts at the configured pose. */
int ndtd_settings_starts_at_pose(const struct ndtd_settings *settings);
/** Whether map.path is `none`: the poses are those of odometry, in a frame of its own. */
int ndtd_settings_has_no_map(const struct ndtd_settings *settings);
/** Budget of a scan with live.budget_ms = auto [s]; it is larger where scans are rare. */
#define NDTD_BUDGET_S 0.1
/** The budget that every scan has at least [s]. */
double ndtd_settings_budget_s(const struct ndtd_settings *settings);
/** Number of CPU threads by cpu.threads on this machine. */
int ndtd_settings_threads(const struct ndtd_settings *settings);
/** Whether security.isolation allows a backend: a CUDA device needs files and system calls that only `gpu` allows.
 */
int ndtd_settings_allow_backend(const struct ndtd_settings *settings, const char *name);

#ifdef __cplusplus
}
#endif
#endif
