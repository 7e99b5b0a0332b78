/** @file
 * @brief The table of options: one row each, in the order in which they are printed.
 *
 * Columns: name, member of struct ndtd_settings, use, limits, unit, help; is_common: users decide the option, and
 * config/ndtd.yaml shows it. A new option needs a row here, a member of struct ndtd_settings, a default in
 * settings.c unless a *_default function of the core sets it, and its use. */
#include "option_table.h"

#include <stdint.h>

#include "backends.h"
#include "ndt/names.h"
#include "ndtd/config_file.h"

/* Values of the column "use". */
enum { FIXED, RELOAD };

/* Rows are easier to read as a table. */
/* clang-format off */
#define AT(member)   offsetof(struct ndtd_settings, member)
#define SIZE(member) sizeof(((struct ndtd_settings *)0)->member)
#define NO_COUNT     SIZE_MAX

#define ROW(kind, label, member, use, line)                                                                      \
    .name = label, .type = kind, .offset = AT(member), .help = line, .reloadable = (use) == RELOAD
#define SCALAR(kind, label, member, use, line) ROW(kind, label, member, use, line), .count_offset = NO_COUNT
#define NUMBER(kind, label, member, use, low, high, units, line)                                                 \
    SCALAR(kind, label, member, use, line), .min = low, .max = high, .unit = units
#define REAL(label, member, use, low, high, units, line)                                                         \
    NUMBER(NDTD_REAL, label, member, use, low, high, units, line)
#define DEGREES(label, member, use, low, high, line)                                                             \
    REAL(label, member, use, low, high, "deg", line), .scale = NDTD_DEGREES
#define MILLISECONDS(label, member, use, low, high, line)                                                        \
    REAL(label, member, use, low, high, "ms", line), .scale = NDTD_MILLISECONDS
#define INT(label, member, use, low, high, units, line)                                                          \
    NUMBER(NDTD_INT, label, member, use, low, high, units, line)
#define BOOL(label, member, use, line) SCALAR(NDTD_BOOL, label, member, use, line), .unit = ""
#define LABELS(kind, label, member, use, pairs, line)                                                            \
    SCALAR(kind, label, member, use, line), .unit = "", .labels = pairs
#define TEXT(kind, label, member, use, line)                                                                     \
    SCALAR(kind, label, member, use, line), .unit = "", .size = SIZE(member)
#define CORNER(label, member, line)                                                                              \
    NUMBER(NDTD_REAL_LIST, label, member, RELOAD, -1e6, 1e6, "m", line), .size = sizeof(double),                 \
    .min_items = 3, .max_items = 3
#define TRANSFORM(label, member, line)                                                                           \
    SCALAR(NDTD_TRANSFORM, label, member, FIXED, line), .unit = "m, rad", .size = sizeof(double)
#define OFFSETS(label, member, count, line)                                                                      \
    ROW(NDTD_REAL_LIST, label, member, RELOAD, line), .min = -100, .max = 100, .unit = "m", .size = sizeof(double), \
    .min_items = 1, .max_items = NDT_POSE_COVARIANCE_OFFSETS, .count_offset = AT(count)
#define LEVELS(label, most, line)                                                                                \
    ROW(NDTD_REAL_LIST, label, align.levels[0].leaf_m, FIXED, line), .min = 0.1, .max = 100, .unit = "m",         \
    .size = sizeof(struct ndt_align_level), .min_items = 1, .max_items = most,                                   \
    .count_offset = AT(align.level_count)

/* Labels of an option of type NDTD_CHOICE, whose value is the name itself. */
static const struct ndt_label isas[] = {{"auto", 0}, {"baseline", 0}, {"avx2", 0}, {"avx512", 0}, {"neon", 0},
                                        {NULL, 0}};
static const struct ndt_label device_preprocessing[] = {{"auto", 0}, {"on", 1}, {"off", 2}, {NULL, 0}};
static const struct ndt_label device_waits[] = {{"auto", NDT_WAIT_AUTO}, {"spin", NDT_WAIT_SPIN},
                                                {"yield", NDT_WAIT_YIELD}, {"block", NDT_WAIT_BLOCK}, {NULL, 0}};
static const struct ndt_label receivers[] = {{"sub", NDTD_SCANS_SUB}, {"pull", NDTD_SCANS_PULL}, {NULL, 0}};
static const struct ndt_label modes[] = {{"0600", NDTD_MODE_0600}, {"0660", NDTD_MODE_0660}, {NULL, 0}};
static const struct ndt_label isolations[] = {{"off", NDTD_ISOLATION_OFF}, {"on", NDTD_ISOLATION_ON},
                                              {"gpu", NDTD_ISOLATION_GPU}, {NULL, 0}};
static const struct ndt_label log_levels[] = {{"error", NDTD_LEVEL_ERROR}, {"warning", NDTD_LEVEL_WARNING},
                                              {"info", NDTD_LEVEL_INFO}, {"debug", NDTD_LEVEL_DEBUG}, {NULL, 0}};
static const struct ndt_label pose_modes[] = {{"auto", NDTD_POSE_AUTO}, {"given", NDTD_POSE_GIVEN},
                                              {"search", NDTD_POSE_SEARCH}, {NULL, 0}};
static const struct ndt_label priors[] = {{"auto", NDTD_PRIOR_AUTO}, {"off", NDTD_PRIOR_OFF}, {NULL, 0}};
/* Labels with numbers, because Autoware's parameter is a number. */
static const struct ndt_label pose_covariances[] = {{"posterior", NDT_POSE_COVARIANCE_POSTERIOR},
                                                    {"fixed", NDT_POSE_COVARIANCE_FIXED},
                                                    {"laplace", NDT_POSE_COVARIANCE_LAPLACE},
                                                    {"multi_ndt", NDT_POSE_COVARIANCE_MULTI_NDT},
                                                    {"multi_ndt_score", NDT_POSE_COVARIANCE_MULTI_NDT_SCORE},
                                                    {"0", NDT_POSE_COVARIANCE_FIXED},
                                                    {"1", NDT_POSE_COVARIANCE_LAPLACE},
                                                    {"2", NDT_POSE_COVARIANCE_MULTI_NDT},
                                                    {"3", NDT_POSE_COVARIANCE_MULTI_NDT_SCORE},
                                                    {NULL, 0}};
/* Labels with numbers, because Autoware's parameter is a number. */
static const struct ndt_label score_conditions[] = {{"off", NDTD_SCORE_OFF},
                                                    {"transform_probability", NDTD_SCORE_TRANSFORM_PROBABILITY},
                                                    {"nvtl", NDTD_SCORE_NVTL},
                                                    {"0", NDTD_SCORE_TRANSFORM_PROBABILITY},
                                                    {"1", NDTD_SCORE_NVTL},
                                                    {NULL, 0}};

const struct ndtd_option ndtd_option_table[] = {
    {TEXT(NDTD_STRING, "backend.name", backend, FIXED,
          "Backend of the matcher: auto = the fastest that autotune.* finds (replay: cpu); see ndtd --list-backends"), .is_common = 1},
    {NUMBER(NDTD_SIZE, "backend.max_points", compute.max_points, FIXED, 1, 268435456, "points",
            "Scans with more points than this after preprocessing are rejected")},

    {INT("cpu.threads", compute.threads, FIXED, 0, 64, "threads",
         "Threads of the CPU backend; 0 = number of cores, at most 4, or what autotune.* finds to be fastest"), .is_common = 1},
    {REAL("cpu.spin_us", compute.spin_us, FIXED, 0, 100000, "us",
          "Time an idle worker thread spins before it sleeps")},
    {BOOL("cpu.pin_threads", compute.pin_threads, FIXED, "Pin each worker thread to one core")},
    {LABELS(NDTD_CHOICE, "cpu.isa", compute.isa, FIXED, isas,
            "Instruction set; auto = environment variable NDT_CPU_ISA, else the best this CPU has")},

    {LABELS(NDTD_CHOICE, "cuda.pipeline", cuda_pipeline, FIXED, ndt_pipeline_labels,
            "Pipeline of the CUDA backend: fused = one kernel per evaluation, staged = one kernel per step for "
            "inspection, resident = whole alignments on the device; auto = what autotune.* finds, also where "
            "backend.name is the device; else fused")},
    {LABELS(NDTD_CHOICE, "cuda.shape", cuda_shape, FIXED, ndt_shape_labels,
            "How resident spreads an alignment over the device; auto = what fits device and scan")},
    {INT("cuda.device", compute.device, FIXED, 0, 63, "", "Index of the CUDA device, as the driver counts them")},
    {LABELS(NDTD_ENUM, "cuda.preprocess", compute.preprocess, FIXED, device_preprocessing,
            "Crop, deskew, filter and sample on the device, for resident pipelines and raw scans of up to "
            "backend.max_points; auto = off")},
    {LABELS(NDTD_ENUM, "cuda.wait", compute.wait, FIXED, device_waits,
            "How a thread waits for the device: spin = at once, with a core of its own; yield = likewise, but others may use "
            "the core; block = asleep, up to 70 us later; auto = as yield")},

    {BOOL("autotune.enable", autotune, FIXED,
          "Measure at the start, on the map, how long every backend and thread count takes, for auto and for deadlines")},
    {MILLISECONDS("autotune.limit_ms", autotune_limit_s, FIXED, 10, 600000, "Time limit of the measurement")},
    {INT("autotune.max_threads", max_threads, FIXED, 0, 64, "threads",
         "Largest number of CPU threads to try; 0 = number of cores")},

    {TEXT(NDTD_PATH, "map.path", map_path, FIXED,
          "The prior map: compiled (.ndtmap), a cloud (.pcd, .ply, .bin), or a directory of tiles; none = there is none: "
          "odometry, with poses in the frame odom"), .is_common = 1},
    {BOOL("map.extend", extend_map, FIXED,
          "Beyond the edge of the map odometry carries the pose on in its frame (state extending), until the map is met "
          "again"), .is_common = 1},
    {INT("map.threads", map.threads, FIXED, 0, 64, "threads",
         "Threads that build the map; 0 = number of cores, at most 4. The map does not depend on it")},
    {LABELS(NDTD_ENUM, "initial_pose.mode", initial_pose_mode, FIXED, pose_modes,
            "auto = the first pose is the one that is given, and searched for where none is; given = wait for it; "
            "search = search for it in any case"), .is_common = 1},
    {ROW(NDTD_POSE, "initial_pose.pose", initial_pose, FIXED,
         "Pose of the base in the map at the first scan, [x, y, z, qx, qy, qz, qw] or [x, y, z, yaw in deg]; [] = none, or "
         "as a message"),
     .unit = "m", .size = sizeof(double), .count_offset = AT(has_initial_pose), .is_common = 1},

    {TRANSFORM("frames.T_base_sensor", frames.T_base_sensor,
               "Pose of the sensor in the base frame: x y z and qx qy qz qw or roll pitch yaw (Rz Ry Rx), or 16 "
               "numbers of a 4x4 matrix by rows"), .is_common = 1},
    {TRANSFORM("frames.T_base_imu", frames.T_base_imu, "Pose of the IMU in the base frame, likewise"), .is_common = 1},
    {NUMBER(NDTD_REAL_LIST, "frames.gnss_antenna_m", frames.gnss_antenna_m, FIXED, -1000, 1000, "m",
            "Position of the GNSS antenna in the base frame"),
     .size = sizeof(double), .min_items = 3, .max_items = 3, .is_common = 1},
    {ROW(NDTD_SENSORS, "frames.sensors", frames.sensors, RELOAD,
         "Sensors with poses of their own, by the frame_id of their scans: "
         "[left 0 0.5 1.8 0 0 1.57, right 0 -0.5 1.8 0 0 -1.57]"),
     .unit = "m, rad", .size = sizeof(struct ndtd_sensor_frame), .max_items = NDTD_EXTRINSICS_SENSORS,
     .count_offset = AT(frames.sensor_count), .is_common = 1},
    {BOOL("frames.merge_sensors", frames.merge_sensors, RELOAD,
          "Match the scans of all frames.sensors as one when their stamps lie within preprocess.sweep_s"), .is_common = 1},

    {LABELS(NDTD_ENUM, "ndt.variant", align.variant, FIXED, ndt_variant_labels,
            "Optimiser: saddle-free Newton with line search, or Autoware's step rule on one level")},
    {LEVELS("ndt.levels", NDT_MAX_LEVELS, "Cell edges of the map, from coarse to fine, matched in this order")},
    {LEVELS("ndt.resolution", 1, "One level only, under Autoware's name"), .alias_of = "ndt.levels"},
    {ROW(NDTD_ENUM_LIST, "ndt.neighbours", neighbours, RELOAD,
         "Voxels that a point is compared with, per level, aligned at the finest; the first also serves all coarser"),
     .unit = "", .labels = ndt_neighbours_labels, .size = sizeof(enum ndt_neighbours), .min_items = 1,
     .max_items = NDT_MAX_LEVELS, .count_offset = AT(neighbours_count)},
    {LABELS(NDTD_ENUM, "ndt.covariance", map.covariance, FIXED, ndt_covariance_labels,
            "Covariance of a voxel: unbiased sample covariance, or larger by I/(n-1) as in Autoware")},
    {NUMBER(NDTD_UINT32, "ndt.min_points", map.min_points, FIXED, 3, 1000000, "points",
            "Voxels with fewer points are left out")},
    {REAL("ndt.min_eigenvalue_ratio", map.min_eigenvalue_ratio, FIXED, 1e-6, 1, "",
          "Smallest eigenvalue of a voxel's covariance, as a fraction of its largest; smaller ones are raised to it")},
    {REAL("ndt.outlier_ratio", map.outlier_ratio, FIXED, 0.01, 0.99, "",
          "Expected fraction of points without a match in the map, for the mixture constants")},
    {INT("ndt.max_iterations", align.max_iterations, RELOAD, 1, NDT_MAX_ITERATIONS, "iterations",
         "Limit over all levels together")},
    {REAL("ndt.step_limit_m", align.step_limit_m, RELOAD, 1e-6, 100, "m",
          "Largest translation of one iteration (robust)")},
    {DEGREES("ndt.step_limit_deg", align.step_limit_rad, RELOAD, 1e-6, 180,
             "Largest rotation of one iteration (robust)")},
    {REAL("ndt.eigenvalue_floor", align.eigenvalue_floor, RELOAD, 1e-15, 1, "",
          "Smallest curvature used, as a fraction of the largest (robust)")},
    {INT("ndt.max_line_search_steps", align.max_line_search_steps, RELOAD, 1, 32, "steps",
         "Step lengths tried per iteration (robust)")},
    {REAL("ndt.coarse_stop_m", align.coarse_stop_m, RELOAD, 0, 10, "m",
          "A coarse level ends after a step that moves less than this and rotates less than coarse_stop_deg (robust)")},
    {DEGREES("ndt.coarse_stop_deg", align.coarse_stop_rad, RELOAD, 0, 90,
             "A coarse level ends after a step that turns less than this and moves less than coarse_stop_m (robust)")},
    {REAL("ndt.coarse_stop_gain", align.coarse_stop_gain, RELOAD, 0, 1, "",
          "A coarse level also ends when a step changes the score by less than this fraction of it (robust)")},
    {REAL("ndt.fine_stop_m", align.fine_stop_m, RELOAD, 0, 10, "m",
          "The last level ends after a step below this and fine_stop_deg, without another evaluation (robust)")},
    {DEGREES("ndt.fine_stop_deg", align.fine_stop_rad, RELOAD, 0, 90, "See fine_stop_m (robust)")},
    {REAL("ndt.fine_stop_gain", align.fine_stop_gain, RELOAD, 0, 1, "",
          "As coarse_stop_gain, for the last level (robust)")},
    {REAL("ndt.trans_epsilon", align.trans_epsilon, RELOAD, 1e-9, 10, "",
          "Steps shorter than this end the iteration; metres and radians mixed (autoware)")},
    {REAL("ndt.step_size", align.step_size, RELOAD, 1e-9, 10, "",
          "Longest step; metres and radians mixed (autoware)")},
    {MILLISECONDS("ndt.deadline_ms", align.deadline_s, RELOAD, 0, 60000,
                  "Stop an alignment after this time with the best pose so far; 0 = never")},
    {LABELS(NDTD_ENUM, "ndt.prior", prior, RELOAD, priors,
            "auto = the prediction of the estimator takes part in the search, with its covariance (robust); "
            "off = it is the start only")},
    {BOOL("ndt.choose_levels", align.choose_levels, RELOAD,
          "Begin at the finest level whose basin holds the predicted pose (three sigma), with ndt.prior auto; end "
          "before a level that the map leaves nearly empty")},
    {REAL("ndt.basin", align.basin, RELOAD, 1e-3, 100, "",
          "Reach of a level for choose_levels, as a fraction of its cell edge")},
    {BOOL("ndt.regularization.enable", use_gnss, RELOAD,
          "Pull the pose along the heading towards the newest GNSS position")},
    {REAL("ndt.regularization.scale_factor", align.gnss_scale, RELOAD, 0, 1e6, "",
          "Weight: this times the number of pairs times the squared distance is subtracted from the score")},
    {INT("ndt.num_threads", compute.threads, FIXED, 0, 64, "threads", "cpu.threads under Autoware's name"),
     .alias_of = "cpu.threads"},

    {REAL("score_estimation.score_threshold", align.score_threshold, RELOAD, 0, 1, "",
          "Scores below this give the outcome low_score; score = normalised NVTL times match ratio; 0 = the confidence decides, and 0.35 where there is none (ndt.prior off, ndt.variant autoware)")},
    {REAL("score_estimation.min_match_ratio", align.min_match_ratio, RELOAD, 0, 1, "",
          "Match ratios below this give the outcome degenerate; ratio = points that match a voxel over all points")},
    {REAL("score_estimation.min_confidence", min_confidence, RELOAD, 0, 1, "",
          "Poses with less confidence (probability of being within 0.5 m and 3 deg) get the outcome low_score; 0 = none")},
    {LABELS(NDTD_ENUM, "score_estimation.converged_param_type", score_condition, RELOAD, score_conditions,
            "One more condition for the outcome converged: this score, not normalised, is above the threshold of its "
            "name; or Autoware's number")},
    {REAL("score_estimation.converged_param_transform_probability", min_transform_probability, RELOAD, 0, 1e6, "",
          "Threshold of transform_probability, on the finest level; its scale depends on the cell edge and on ndt.covariance")},
    {REAL("score_estimation.converged_param_nearest_voxel_transformation_likelihood", min_nvtl, RELOAD, 0, 1e6, "",
          "Threshold of nvtl, likewise")},

    {REAL("sensor_points.required_distance", required_distance_m, RELOAD, 0, 1e6, "m",
          "Scans without a point as far from the base as this are rejected; 0 = any scan will do")},
    {REAL("validation.initial_to_result_distance_tolerance_m", validation.moved_m, RELOAD, 0, 1e6, "m",
          "The log warns of poses farther than this from where the alignment began; 0 = never")},
    {MILLISECONDS("validation.critical_upper_bound_exe_time_ms", validation.align_s, RELOAD, 0, 1e6,
                  "The log warns of scans that take longer than this from decoding to the pose; 0 = never")},
    {INT("validation.skipping_publish_num", validation.skipped, RELOAD, 0, 1000000, "scans",
         "The log warns when as many scans in a row have not converged; 0 = never")},

    {REAL("covariance.weak_eigenvalue_ratio", align.weak_eigenvalue_ratio, RELOAD, 0, 1, "",
          "Directions with less than this fraction of the best one's information are reported as weak")},
    {NUMBER(NDTD_REAL_LIST, "covariance.output_pose_covariance", pose_covariance.fixed, RELOAD, -1e6, 1e6, "",
            "6x6 covariance by rows, x y z rx ry rz in the axes of the base [m, rad]: that of covariance_estimation_type "
            "fixed, and the smallest variances of laplace and multi_ndt"),
     .size = sizeof(double), .min_items = 36, .max_items = 36},
    {LABELS(NDTD_ENUM, "covariance.covariance_estimation.covariance_estimation_type", pose_covariance.kind, RELOAD,
            pose_covariances,
            "Covariance of results: posterior = of the estimator (without ndt.prior, of the alignment); laplace = inverse "
            "Hessian; multi_ndt = spread of alignments from the offsets; multi_ndt_score = of their scores; or Autoware's "
            "number")},
    {OFFSETS("covariance.covariance_estimation.initial_pose_offset_model_x", pose_covariance.offset_x_m,
             pose_covariance.offset_x_count, "Offsets of multi_ndt, forward")},
    {OFFSETS("covariance.covariance_estimation.initial_pose_offset_model_y", pose_covariance.offset_y_m,
             pose_covariance.offset_y_count, "Offsets of multi_ndt, to the left; as many")},
    {REAL("covariance.covariance_estimation.temperature", pose_covariance.temperature, RELOAD, 1e-6, 1e6, "",
          "Temperature of the softmax over the NVTL, for multi_ndt_score")},
    {REAL("covariance.covariance_estimation.scale_factor", align.covariance_scale, RELOAD, 0, 1e6, "",
          "Multiplies the covariances of laplace and multi_ndt")},

    {NUMBER(NDTD_UINT32, "preprocess.max_points", max_points, RELOAD, 1000, 268435456, "points",
            "Of a scan with more points only every k-th is read, k odd; live, fewer still where time would not suffice")},
    {REAL("preprocess.min_range_m", preprocess.min_range_m, RELOAD, 0, 1e6, "m", "Nearer points are dropped"), .is_common = 1},
    {REAL("preprocess.max_range_m", preprocess.max_range_m, RELOAD, 0, 1e6, "m", "Farther points are dropped"), .is_common = 1},
    {REAL("preprocess.range_offset_m", preprocess.range_offset_m, RELOAD, -1, 1, "m",
          "Added to every range, by which the sensor measures too little; ndt-map build finds it")},
    {CORNER("preprocess.crop_min_m", preprocess.crop_min_m,
            "Lower corner of the box outside of which points are dropped, sensor frame"), .is_common = 1},
    {CORNER("preprocess.crop_max_m", preprocess.crop_max_m, "Upper corner of the crop box, sensor frame"), .is_common = 1},
    {REAL("preprocess.voxel_m", preprocess.voxel_m, RELOAD, 0, 100, "m",
          "Cell edge of the voxel-grid filter; 0 = no filter"), .is_common = 1},
    {NUMBER(NDTD_UINT32, "preprocess.sample_count", preprocess.sample_count, RELOAD, 0, 16777216, "points",
            "Points kept at random after the filter; 0 = all")},
    {SCALAR(NDTD_UINT64, "preprocess.seed", preprocess.seed, RELOAD, "Seed of the random sample of points"), .unit = ""},
    {LABELS(NDTD_ENUM, "preprocess.deskew", preprocess.deskew, RELOAD, ndt_deskew_labels,
            "Source of a point's time within the sweep: its time field, or the azimuth of a rotating sensor; auto = the field "
            "where it is plausible, else the azimuth where the order of the points tells the sense of rotation, else off"), .is_common = 1},
    {REAL("preprocess.sweep_s", preprocess.sweep_s, RELOAD, 1e-6, 10, "s",
          "Duration of a sweep, for the azimuth modes and the covariance where nothing undoes the motion; "
          "times of points beyond its double are checked for strays")},
    {LABELS(NDTD_ENUM, "preprocess.sweep_stamp", preprocess.sweep_stamp, RELOAD, ndt_sweep_stamp_labels,
            "Where in the sweep the stamp of a scan lies, for the azimuth modes and for times of another clock; else a time "
            "field says it itself"), .is_common = 1},
    {INT("preprocess.deskew_passes", deskew_passes, RELOAD, 1, 2, "passes",
         "2 = deskew and align again with the motion just estimated")},

    {REAL("estimator.acceleration_noise", track.acceleration_noise, RELOAD, 1e-3, 1000, "m/s^1.5",
          "White noise on the linear velocity between scans: what it changes by in a second (one sigma)")},
    {REAL("estimator.turn_noise", track.turn_noise, RELOAD, 1e-4, 100, "rad/s^1.5",
          "The same for the angular velocity")},
    {MILLISECONDS("estimator.stamp_deviation_ms", track.stamp_deviation_s, RELOAD, 0, 1000,
                  "Error of the stamps of scans, times the velocity (one sigma)")},
    {REAL("estimator.odometry_noise_m", track.odometry_noise_m, RELOAD, 0, 100, "m/s^0.5",
          "Error of the odometry's distances after a second (one sigma)")},
    {REAL("estimator.odometry_noise_rad", track.odometry_noise_rad, RELOAD, 0, 10, "rad/s^0.5",
          "Error of the odometry's rotation after a second (one sigma)")},
    {REAL("estimator.twist_noise_m", track.twist_noise_m, RELOAD, 0, 100, "m/s^0.5",
          "As odometry_noise_m, for odometry that has twists only")},
    {REAL("estimator.twist_noise_rad", track.twist_noise_rad, RELOAD, 0, 10, "rad/s^0.5",
          "As odometry_noise_rad, for odometry that has twists only")},
    {REAL("estimator.odometry_scale", track.scale_deviation, RELOAD, 0, 1, "",
          "Error of the odometry's scale at first (one sigma); it is estimated")},
    {REAL("estimator.gyro_noise_rad", track.gyro_noise_rad, RELOAD, 0, 10, "rad/s^0.5",
          "Error of the integrated gyro after a second, without its bias (one sigma)")},
    {REAL("estimator.gyro_bias_radps", track.gyro_bias_radps, RELOAD, 0, 10, "rad/s",
          "Bias of the gyro at first (one sigma); it is estimated")},
    {REAL("estimator.initial_deviation_m", track.pose_deviation_m, RELOAD, 1e-3, 1000, "m",
          "Error of an initial pose without a covariance (one sigma)")},
    {DEGREES("estimator.initial_deviation_deg", track.pose_deviation_rad, RELOAD, 1e-2, 180,
             "Error of its attitude (one sigma)")},
    {REAL("estimator.initial_speed_mps", track.start_mps, RELOAD, 1e-3, 1000, "m/s",
          "Velocity that is possible before it is known (one sigma)")},
    {REAL("estimator.floor_m", track.noise.floor_m, RELOAD, 0, 10, "m",
          "Error that all points of a scan have in common, of the map and the sensor, per axis (one sigma)")},
    {DEGREES("estimator.floor_deg", track.noise.floor_rad, RELOAD, 0, 10, "The same for rotations")},
    {REAL("estimator.lost_deviation_m", track.lost_deviation_m, RELOAD, 1e-3, 1e6, "m",
          "A pose whose position is less certain than this along any axis (one sigma) has the outcome lost")},
    {REAL("estimator.max_prediction_s", track.max_prediction_s, RELOAD, 0, 3600, "s",
          "After longer gaps between scans the last pose is kept and the velocity is unknown")},

    {BOOL("recovery.enable", recovery.enable, FIXED,
          "Look for the pose when it is lost, and for the first one when none is given, with ndt.prior auto"), .is_common = 1},
    {REAL("recovery.radius_m", recovery.radius_m, RELOAD, 1, 10000, "m",
          "Around the last verified pose; beyond it the whole map is searched")},
    {REAL("recovery.max_speed_mps", recovery.max_speed_mps, RELOAD, 0.1, 1000, "m/s",
          "Speed that the vehicle never exceeds: how far it can have come since it was last seen"), .is_common = 1},
    {REAL("recovery.max_acceleration_mps2", recovery.max_acceleration_mps2, RELOAD, 0.1, 1000, "m/s^2",
          "Acceleration that it never exceeds")},
    {REAL("recovery.check_s", recovery.check_s, RELOAD, 0, 86400, "s",
          "Time between searches of the whole map for a place that fits better, at the lowest priority, while the pose "
          "is accepted; the log and the status tell of one. 0 = none; a replay has none, nor has recovery.enable false")},

    {REAL("integrity.risk", integrity_risk, FIXED, 0, 0.1, "",
          "Results carry protection levels: bounds that the error of a scan exceeds with this probability, such as 1e-5; "
          "0 = none")},
    {REAL("integrity.alert_limit_m", alert_limit_m, RELOAD, 0, 1000, "m",
          "Results whose horizontal protection level is larger are marked as unsafe; 0 = none")},

    {REAL("output.rate_hz", output_rate_hz, FIXED, 0, 200, "Hz",
          "Poses between scans, on the socket sockets.motion: at the stamps of odometry and IMU, at most so many per "
          "second; 0 = only one result per scan"), .is_common = 1},
    {REAL("output.max_ahead_s", max_ahead_s, RELOAD, 0, 1, "s",
          "How far the pose at a stamp is predicted beyond all scans and motion that have come")},

    {TEXT(NDTD_STRING, "sockets.scans", scans_address, FIXED,
          "Input of scans, ipc://PATH or tcp://HOST:PORT; empty = scans.ipc in the runtime directory"), .is_common = 1},
    {LABELS(NDTD_ENUM, "sockets.scans_kind", scans_kind, FIXED, receivers,
            "Type of that socket: sub for publishers (PUB), pull for senders that block (PUSH)")},
    {TEXT(NDTD_STRING, "sockets.poses", poses_address, FIXED,
          "Output of results (XPUB); empty = poses.ipc in the runtime directory"), .is_common = 1},
    {TEXT(NDTD_STRING, "sockets.points", points_address, FIXED,
          "Output of points for viewers (XPUB), made only while somebody listens; empty = points.ipc in the runtime "
          "directory or, where sockets.poses is an ipc path, that path with .points behind it; off = none")},
    {NUMBER(NDTD_UINT32, "sockets.points_max", points_max, RELOAD, 100, 1048576, "points",
            "Of a scan with more points every k-th goes to viewers, k odd")},
    {TEXT(NDTD_STRING, "sockets.motion", motion_address, FIXED,
          "Output of poses between scans (XPUB), with output.rate_hz; empty = motion.ipc in the runtime directory or, "
          "where sockets.poses is an ipc path, that path with .motion behind it; off = none")},
    {TEXT(NDTD_STRING, "sockets.control", control_address, FIXED,
          "Requests and replies (ROUTER); empty = control.ipc in the runtime directory"), .is_common = 1},
    {LABELS(NDTD_ENUM, "sockets.ipc_mode", ipc_mode, FIXED, modes,
            "Permissions of ipc sockets: the user only, or the group too")},
    {INT("sockets.high_water_mark", high_water_mark, FIXED, 1, 100000, "messages",
         "Results that wait for a subscriber before it loses some")},
    {INT("sockets.max_senders", max_senders, FIXED, 1, 1024, "connections",
         "Connections to the input of scans; further ones are closed at once")},
    {INT("sockets.max_connections", max_connections, FIXED, 1, 1024, "connections",
         "Connections to the output of results, and to the requests; further ones are closed at once")},
    {NUMBER(NDTD_UINT64, "sockets.max_message_bytes", max_message_bytes, FIXED, 1024, 268435456, "bytes",
            "A longer message closes the connection that sent it")},
    {TEXT(NDTD_PATH, "sockets.server_secret_key_file", server_secret_key_file, FIXED,
          "CURVE secret key, as written by ndtd --make-keys; required for tcp beyond this machine")},
    {TEXT(NDTD_PATH, "sockets.allowed_clients_file", allowed_clients_file, FIXED,
          "Public keys of the clients that may connect, one per line")},

    {TEXT(NDTD_PATH, "recording.directory", recording.directory, FIXED,
          "Where start_recording writes, by plain file names; empty = recordings in $STATE_DIRECTORY or in the working "
          "directory"), .is_common = 1},
    {NUMBER(NDTD_UINT32, "recording.queue_mb", recording.queue_mb, FIXED, 1, 100000, "MB",
            "Frames that wait for the disk; those that do not fit are missing in the recording")},
    {NUMBER(NDTD_UINT32, "recording.max_file_mb", recording.max_file_mb, FIXED, 0, 100000000, "MB",
            "A recording ends before it is larger; 0 = no limit")},
    {NUMBER(NDTD_UINT32, "recording.min_free_mb", recording.min_free_mb, FIXED, 0, 100000000, "MB",
            "A recording ends when less than this is free on its disk; 0 = no limit")},

    {LABELS(NDTD_ENUM, "security.isolation", isolation, FIXED, isolations,
            "The daemon gives up system calls (seccomp) and files (Landlock) that it does not need; on excludes CUDA devices, "
            "gpu keeps what they need")},
    {TEXT(NDTD_STRING, "security.map_paths", map_paths, FIXED,
          "With isolation: directories that may be read for load_map and load_tile besides that of map.path, "
          "separated by ':'")},

    {MILLISECONDS("live.budget_ms", budget_s, RELOAD, 1, 60000,
                  "Time from the last byte of a scan to its result; an alignment that would exceed it ends early "
                  "with the best pose so far. auto = 100 ms, and where scans come more seldom, up to 0.8 of the time "
                  "between them"),
     .word_for_zero = "auto", .is_common = 1},
    {INT("live.queue_depth", queue_depth, FIXED, 1, 8, "scans",
         "Largest number of waiting scans; another one drops the oldest")},
    {INT("batch.max", batch_max, FIXED, 1, 8, "scans",
         "Scans taken from the queue at once; they are no longer dropped for newer ones")},
    {BOOL("batch.together", batch_together, RELOAD,
          "Preprocess and align the scans that were taken at once together, each from its predicted pose, and again "
          "where the prediction was wrong; needs two threads of the CPU, or cuda.preprocess: off. Their poses then "
          "differ from those of a replay by millimetres")},
    {BOOL("dynamic_map_loading.enable", dynamic_map, FIXED,
          "For a map in tiles: keep only the tiles around the sensor in memory")},
    {REAL("dynamic_map_loading.update_distance", update_distance_m, FIXED, 0.1, 100000, "m",
          "Distance travelled after which tiles are loaded and unloaded")},
    {REAL("dynamic_map_loading.map_radius", map_radius_m, FIXED, 1, 100000, "m",
          "Radius of the map around the sensor")},
    {REAL("dynamic_map_loading.lidar_radius", lidar_radius_m, FIXED, 0, 100000, "m", "Range of the LiDAR, added to map_radius")},
    {NUMBER(NDTD_UINT32, "dynamic_map_loading.search_limit_mb", search_limit_mb, FIXED, 0, 1000000, "MB",
            "While the position is unknown all tiles are loaded, to search in them, if their files are not larger; 0 = never")},

    {LABELS(NDTD_ENUM, "log.level", log_level, RELOAD, log_levels, "Messages of this severity or higher are logged"), .is_common = 1},
    {INT("rt.priority", rt_priority, FIXED, 0, 99, "", "SCHED_FIFO priority of the matching threads; 0 = off")},
    {TEXT(NDTD_STRING, "rt.cpus", rt_cpus, FIXED, "Cores for the matching threads, such as 2,4-5; empty = any")},
    {BOOL("rt.lock_memory", rt_lock_memory, FIXED, "Lock the memory of the process (mlockall)")},

    {MILLISECONDS("debug.align_delay_ms", align_delay_s, RELOAD, 0, 60000,
                  "For overload tests: every scan takes this much longer, within its budget")},
};
const size_t ndtd_option_table_count = sizeof(ndtd_option_table) / sizeof(ndtd_option_table[0]);
_Static_assert(sizeof(ndtd_option_table) / sizeof(ndtd_option_table[0]) <= NDTD_CONFIG_MAX_OPTIONS,
               "NDTD_CONFIG_MAX_OPTIONS is too small");
