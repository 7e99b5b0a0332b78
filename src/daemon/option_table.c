/* The table of options: one row each, in the order in which they are printed. Columns: name, member of struct
 * ndtd_settings, default, min, max, unit, help. The defaults are those of the core's *_default functions;
 * test_options compares them. */
#include "option_table.h"

#include <stdint.h>

#include "backends.h"

/* Rows are easier to read as a table. */
/* clang-format off */
#define AT(member)   offsetof(struct ndtd_settings, member)
#define SIZE(member) sizeof(((struct ndtd_settings *)0)->member)
#define NO_COUNT     SIZE_MAX

#define NUMBER(kind, label, member, standard, low, high, units, line)                                            \
    {.name = label, .type = kind, .text = standard, .min = low, .max = high, .unit = units, .help = line,        \
     .offset = AT(member), .count_offset = NO_COUNT}
#define REAL(label, member, standard, low, high, units, line)                                                    \
    NUMBER(NDTD_REAL, label, member, standard, low, high, units, line)
#define SCALED(how, label, member, standard, low, high, units, line)                                             \
    {.name = label, .type = NDTD_REAL, .text = standard, .min = low, .max = high, .unit = units, .help = line,   \
     .scale = how, .offset = AT(member), .count_offset = NO_COUNT}
#define DEGREES(label, member, standard, low, high, line)                                                        \
    SCALED(NDTD_DEGREES, label, member, standard, low, high, "deg", line)
#define INT(label, member, standard, low, high, units, line)                                                     \
    NUMBER(NDTD_INT, label, member, standard, low, high, units, line)
#define BOOL(label, member, standard, line) NUMBER(NDTD_BOOL, label, member, standard, 0, 0, "", line)
#define ENUM(label, member, standard, words, line)                                                               \
    {.name = label, .type = NDTD_ENUM, .text = standard, .unit = "", .help = line, .names = words,               \
     .offset = AT(member), .count_offset = NO_COUNT}
#define TEXT(kind, label, member, standard, words, line)                                                         \
    {.name = label, .type = kind, .text = standard, .unit = "", .help = line, .names = words,                    \
     .offset = AT(member), .size = SIZE(member), .count_offset = NO_COUNT}
#define CORNER(label, member, standard, line)                                                                    \
    {.name = label, .type = NDTD_REAL_LIST, .text = standard, .min = -1e6, .max = 1e6, .unit = "m", .help = line, \
     .offset = AT(member), .size = sizeof(double), .min_items = 3, .max_items = 3, .count_offset = NO_COUNT}

static const char *const isas[] = {"auto", "baseline", "avx2", "avx512", "neon", NULL};
static const char *const device_work[] = {"auto", "on", "off", NULL};
static const char *const variants[] = {"robust", "autoware", NULL};               /* enum ndt_variant */
static const char *const neighbourhoods[] = {"radius", "direct1", "direct7", "direct27", NULL}; /* ndt_neighbours */
static const char *const covariances[] = {"unbiased", "autoware", NULL};          /* enum ndt_covariance_kind */
static const char *const receivers[] = {"sub", "pull", NULL};
static const char *const modes[] = {"0600", "0660", NULL};
static const char *const log_levels[] = {"error", "warning", "info", "debug", NULL}; /* enum ndtd_log_level */
static const char *const autotune_caches[] = {"on", "off", "refresh", NULL};
static const char *const deskews[] = {"off", "time", "azimuth_cw", "azimuth_ccw", NULL}; /* enum ndt_deskew */

const struct ndtd_option ndtd_option_table[] = {
    TEXT(NDTD_STRING, "backend.name", backend, "auto", NULL,
         "What computes: auto takes what routing.* measures to be best (a replay: cpu); ndtd --list-backends names them"),
    NUMBER(NDTD_SIZE, "backend.max_points", compute.max_points, "1048576", 1, 268435456, "points",
           "Scans with more points than this after preprocessing are refused"),

    INT("cpu.threads", compute.threads, "0", 0, 64, "threads",
        "Threads of the CPU backend; 0 = as many as there are cores, at most 4, or what routing.* measures to be best"),
    REAL("cpu.spin_us", compute.spin_us, "100.0", 0, 100000, "us",
         "How long an idle worker watches for the next piece of work before it sleeps"),
    BOOL("cpu.pin_threads", compute.pin_threads, "true", "Keep each worker on one core"),
    TEXT(NDTD_STRING, "cpu.isa", isa, "auto", isas,
         "Instruction set to use; auto = environment variable NDT_CPU_ISA, else the best this CPU has"),

    TEXT(NDTD_STRING, "cuda.pipeline", cuda_pipeline, "auto", ndt_pipeline_names,
         "How the CUDA backend works: fused = one kernel per evaluation, staged = a kernel per step for looking inside, "
         "resident = whole searches on the device, in the shape that fits (-block, -cluster, -graph, -chain force one); "
         "auto = fused"),
    INT("cuda.device", compute.device, "0", 0, 63, "", "Which of the CUDA devices, as the driver counts them"),
    ENUM("cuda.preprocess", compute.preprocess, "auto", device_work,
         "Crop, motion, filter and sample on the device, for resident pipelines and raw scans of up to backend.max_points; "
         "auto = off"),

    BOOL("routing.calibrate", autotune, "true",
         "The daemon measures at its start, on the map, what every way of computing takes, for auto and for deadlines"),
    ENUM("routing.cache", autotune_cache, "on", autotune_caches,
         "Keep what was measured for the next start; refresh = measure again and keep that"),
    SCALED(NDTD_MILLISECONDS, "routing.limit_ms", autotune_limit_s, "1200.0", 10, 600000, "ms",
           "Time for measuring"),
    REAL("routing.recheck_s", recheck_s, "60.0", 0, 86400, "s",
         "Measure again, between scans, when scans take much longer than measured, but not within this time, which "
         "doubles each time up to an hour; 0 = never"),
    INT("routing.max_threads", max_threads, "0", 0, 64, "threads",
        "Most threads of the CPU backend that are tried; 0 = as many as cores"),

    TEXT(NDTD_PATH, "map.path", map_path, "", NULL,
         "The prior map: compiled (.ndtmap), a cloud (.pcd, .ply, .bin), or a directory of tiles"),
    INT("map.threads", map.threads, "0", 0, 64, "threads",
        "Threads that build the map; 0 = as many as there are cores, at most 4. The map is the same for any"),
    {.name = "initial_pose", .type = NDTD_POSE, .text = "[]", .unit = "m", .size = sizeof(double),
     .help = "Where the sensor is at the first scan, [x, y, z, qx, qy, qz, qw] in the map; [] = told later",
     .offset = AT(initial_pose), .count_offset = AT(has_initial_pose)},

    ENUM("ndt.variant", align.variant, "robust", variants,
         "Optimiser: saddle-free Newton with line search, or Autoware's step rule on one level"),
    {.name = "ndt.levels", .type = NDTD_REAL_LIST, .text = "[4.0, 2.0, 1.0]", .min = 0.1, .max = 100, .unit = "m",
     .help = "Edges of the map's cells, from coarse to fine, matched in this order",
     .offset = AT(align.levels[0].leaf_m), .size = sizeof(struct ndt_align_level), .min_items = 1,
     .max_items = NDT_MAX_LEVELS, .count_offset = AT(align.level_count)},
    {.name = "ndt.resolution", .alias_of = "ndt.levels", .type = NDTD_REAL_LIST, .text = "[2.0]", .min = 0.1,
     .max = 100, .unit = "m", .help = "One level only, under Autoware's name for it",
     .offset = AT(align.levels[0].leaf_m), .size = sizeof(struct ndt_align_level), .min_items = 1, .max_items = 1,
     .count_offset = AT(align.level_count)},
    {.name = "ndt.neighbours", .type = NDTD_ENUM_LIST, .text = "[direct7, direct7, radius]", .unit = "",
     .help = "Voxels that a point meets, per level, counted from the finest; the first also serves all coarser",
     .names = neighbourhoods, .offset = AT(neighbours), .size = sizeof(enum ndt_neighbours), .min_items = 1,
     .max_items = NDT_MAX_LEVELS, .count_offset = AT(neighbours_count)},
    ENUM("ndt.covariance", map.covariance, "unbiased", covariances,
         "Covariance of a voxel: of the sample, or larger by I/(n-1) as Autoware has it"),
    NUMBER(NDTD_UINT32, "ndt.min_points", map.min_points, "6", 3, 1000000, "points",
           "Voxels with fewer points are left out"),
    REAL("ndt.min_eigenvalue_ratio", map.min_eigenvalue_ratio, "0.01", 1e-6, 1, "",
         "Thin voxels are made this thick, as a part of their largest eigenvalue"),
    REAL("ndt.outlier_ratio", map.outlier_ratio, "0.55", 0.01, 0.99, "",
         "Part of the points that meets nothing of the map, for the mixture constants"),
    INT("ndt.max_iterations", align.max_iterations, "30", 1, NDT_MAX_ITERATIONS, "iterations",
        "Over all levels together"),
    REAL("ndt.step_limit_m", align.step_limit_m, "0.75", 1e-6, 100, "m", "Longest move of one iteration (robust)"),
    DEGREES("ndt.step_limit_deg", align.step_limit_rad, "3.0", 1e-6, 180, "Largest turn of one iteration (robust)"),
    REAL("ndt.eigenvalue_floor", align.eigenvalue_floor, "1.0e-06", 1e-15, 1, "",
         "Smallest curvature used, as a part of the largest (robust)"),
    INT("ndt.max_trials", align.max_line_search_steps, "2", 1, 32, "trials", "Step lengths tried per iteration (robust)"),
    REAL("ndt.coarse_stop_m", align.coarse_stop_m, "0.05", 0, 10, "m",
         "A coarse level ends after a step that moves less than this and turns less than coarse_stop_deg (robust)"),
    DEGREES("ndt.coarse_stop_deg", align.coarse_stop_rad, "0.2", 0, 90, "See coarse_stop_m (robust)"),
    REAL("ndt.coarse_stop_gain", align.coarse_stop_gain, "0.0001", 0, 1, "",
         "A coarse level also ends when a step changes the score by less than this part of it (robust)"),
    REAL("ndt.fine_stop_m", align.fine_stop_m, "0.005", 0, 10, "m",
         "The last level ends after a step below this and fine_stop_deg, made without evaluating again (robust)"),
    DEGREES("ndt.fine_stop_deg", align.fine_stop_rad, "0.05", 0, 90, "See fine_stop_m (robust)"),
    REAL("ndt.fine_stop_gain", align.fine_stop_gain, "1.0e-06", 0, 1, "",
         "As coarse_stop_gain, for the last level (robust)"),
    REAL("ndt.trans_epsilon", align.trans_epsilon, "0.01", 1e-9, 10, "",
         "Steps shorter than this end the iteration; metres and radians mixed (autoware)"),
    REAL("ndt.step_size", align.step_size, "0.1", 1e-9, 10, "",
         "Longest step; metres and radians mixed (autoware)"),
    SCALED(NDTD_MILLISECONDS, "ndt.deadline_ms", align.deadline_s, "0.0", 0, 60000, "ms",
           "Stop a scan after this time with the best pose so far; 0 = never"),
    BOOL("ndt.regularization.enable", use_gnss, "false",
         "Draw the pose along the heading towards the newest GNSS position"),
    REAL("ndt.regularization.scale_factor", align.gnss_scale, "0.01", 0, 1e6, "",
         "How strongly: this times the number of pairs times the squared distance is taken off the score"),
    {.name = "ndt.num_threads", .alias_of = "cpu.threads", .type = NDTD_INT, .text = "0", .min = 0, .max = 64,
     .unit = "threads", .help = "cpu.threads under Autoware's name", .offset = AT(compute.threads),
     .count_offset = NO_COUNT},

    REAL("score_estimation.score_threshold", align.score_threshold, "0.35", 0, 1, "",
         "Below it a pose is low_score: NVTL over its largest value, times the match ratio"),
    REAL("score_estimation.min_match_ratio", align.min_match_ratio, "0.1", 0, 1, "",
         "Below it a pose is degenerate: part of the points that meet a voxel"),
    REAL("covariance.weak_eigenvalue_ratio", align.weak_eigenvalue_ratio, "0.0125", 0, 1, "",
         "Directions with less than this part of the best one's information are reported as weak"),
    REAL("covariance.covariance_estimation.scale_factor", align.covariance_scale, "10.0", 0, 1e6, "",
         "Multiplies the covariance of the pose"),

    REAL("preprocess.min_range_m", preprocess.min_range_m, "1.0", 0, 1e6, "m", "Nearer points are dropped"),
    REAL("preprocess.max_range_m", preprocess.max_range_m, "200.0", 0, 1e6, "m", "Farther points are dropped"),
    CORNER("preprocess.crop_min_m", preprocess.crop_min_m, "[-1000.0, -1000.0, -1000.0]",
           "Lower corner of the box outside of which points are dropped, sensor frame"),
    CORNER("preprocess.crop_max_m", preprocess.crop_max_m, "[1000.0, 1000.0, 1000.0]", "Upper corner of that box"),
    REAL("preprocess.voxel_m", preprocess.voxel_m, "0.5", 0, 100, "m",
         "Edge of the voxel-grid filter's cells; 0 = no filter"),
    NUMBER(NDTD_UINT32, "preprocess.sample_count", preprocess.sample_count, "1500", 0, 16777216, "points",
           "Points kept at random after the filter; 0 = all"),
    NUMBER(NDTD_UINT64, "preprocess.seed", preprocess.seed, "1", 0, 0, "", "Seed of that choice"),
    ENUM("preprocess.deskew", preprocess.deskew, "off", deskews,
         "How the time of a point within the sweep is known: time field, or azimuth of a turning sensor"),
    REAL("preprocess.sweep_s", preprocess.sweep_s, "0.1", 1e-6, 10, "s",
         "Duration of a sweep, for the azimuth modes"),
    INT("preprocess.deskew_passes", deskew_passes, "1", 1, 2, "passes",
        "2 = align again, with the motion just found"),

    REAL("tracker.max_prediction_s", max_prediction_s, "1.0", 0, 3600, "s",
         "After longer gaps between scans the last pose is kept and the velocity forgotten"),

    TEXT(NDTD_STRING, "sockets.scans", scans_address, "", NULL,
         "Where scans come in, ipc://PATH or tcp://HOST:PORT; empty = scans.ipc in the runtime directory"),
    ENUM("sockets.scans_kind", scans_kind, "sub", receivers,
         "Type of that socket: sub for publishers (PUB), pull for senders that wait (PUSH)"),
    TEXT(NDTD_STRING, "sockets.poses", poses_address, "", NULL,
         "Where results go out (XPUB); empty = poses.ipc in the runtime directory"),
    TEXT(NDTD_STRING, "sockets.control", control_address, "", NULL,
         "Where requests are answered (ROUTER); empty = control.ipc in the runtime directory"),
    ENUM("sockets.ipc_mode", ipc_mode, "0600", modes,
         "Permissions of ipc sockets: the user's only, or the group's too"),
    INT("sockets.high_water_mark", high_water_mark, "64", 1, 100000, "messages",
        "Messages that a socket holds per peer before it loses some"),
    NUMBER(NDTD_UINT64, "sockets.max_message_bytes", max_message_bytes, "67108864", 1024, 268435456, "bytes",
           "Longer messages end the connection that sent them"),
    TEXT(NDTD_PATH, "sockets.server_secret_key_file", server_secret_key_file, "", NULL,
         "CURVE secret key, as ndtd --make-keys writes it; needed for tcp beyond this machine"),
    TEXT(NDTD_PATH, "sockets.allowed_clients_file", allowed_clients_file, "", NULL,
         "Public keys of the clients that may connect, one per line"),

    SCALED(NDTD_MILLISECONDS, "live.budget_ms", budget_s, "100.0", 1, 60000, "ms",
           "Time from the last byte of a scan to its result; then the best pose so far is told"),
    INT("live.queue_depth", queue_depth, "3", 1, 8, "scans", "Scans that wait at most; then the oldest is dropped"),
    INT("batch.max", batch_max, "3", 1, 8, "scans", "Waiting scans that are taken at once"),
    BOOL("dynamic_map_loading.enable", dynamic_map, "true",
         "Where the map is a folder of tiles, keep those around the sensor"),
    REAL("dynamic_map_loading.update_distance", update_distance_m, "20.0", 0.1, 100000, "m",
         "Distance moved after which tiles are loaded and unloaded"),
    REAL("dynamic_map_loading.map_radius", map_radius_m, "150.0", 1, 100000, "m",
         "Radius of the map around the sensor"),
    REAL("dynamic_map_loading.lidar_radius", lidar_radius_m, "100.0", 0, 100000, "m", "Added to that radius"),

    ENUM("log.level", log_level, "info", log_levels, "Lines that are written: this level and those before it"),
    INT("rt.priority", rt_priority, "0", 0, 99, "", "SCHED_FIFO priority of the matching threads; 0 = off"),
    TEXT(NDTD_STRING, "rt.cpus", rt_cpus, "", NULL, "Cores for the matching threads, such as 2,4-5; empty = any"),
    BOOL("rt.lock_memory", rt_lock_memory, "false", "Keep the whole process in memory (mlockall)"),

    SCALED(NDTD_MILLISECONDS, "debug.align_delay_ms", align_delay_s, "0.0", 0, 60000, "ms",
           "For tests of overload: every scan takes this much longer, but not longer than its budget"),
};
const size_t ndtd_option_table_count = sizeof(ndtd_option_table) / sizeof(ndtd_option_table[0]);
