#include "web_metrics_table.h"

#include "ndt_proto/message.h"

/* ---- labels ---- */

/* The values of a label that are no enum of the protocol. */
#define LABEL(identifier, label, ...)                                                                              \
    static const char *const identifier##_values[] = {__VA_ARGS__};                                                \
    static const char *identifier##_at(size_t i)                                                                   \
    {                                                                                                              \
        return identifier##_values[i];                                                                             \
    }                                                                                                              \
    static const struct web_label identifier = {                                                                   \
        label, sizeof(identifier##_values) / sizeof(identifier##_values[0]), identifier##_at}

static const char *outcome_at(size_t i)
{
    return ndt_outcome_name((enum ndt_outcome)i);
}

static const char *pose_state_at(size_t i)
{
    return ndt_state_name((enum ndt_state)i);
}

static const struct web_label outcomes = {"outcome", NDT_OUTCOME_COUNT, outcome_at};
static const struct web_label pose_states = {"state", NDT_STATE_COUNT, pose_state_at};
LABEL(stages, "stage", "decode", "queue", "preprocess", "upload", "align", "publish");
LABEL(axes, "axis", "x", "y", "z");
LABEL(levels, "axis", "lateral", "longitudinal", "vertical");
LABEL(daemon_states, "state", "loading", "stopped", "no_map", "no_guess", "localising");
LABEL(recorder_states, "state", "idle", "starting", "recording", "finishing");
LABEL(codes, "code", "200", "204", "206", "304", "400", "401", "403", "404", "405", "408", "411", "413", "415",
      "421", "429", "431", "500", "503", "504", "other");

LABEL(queues, "queue", "scans", "small", "results", "points", "recording");
static const char *const drop_paths[] = {"queue.dropped", "queue.messages_lost", "publisher.lost", "points.lost",
                                         "recorder.dropped"};
LABEL(out_sockets, "socket", "poses", "points");
static const char *const subscriber_paths[] = {"publisher.subscribers", "points.subscribers"};

/* ---- buckets ---- */

#define BOUNDS(values) .bounds = (values), .bound_count = sizeof(values) / sizeof((values)[0])

/* A sweep of 10 Hz has to be answered within 100 ms: finest below that. */
static const double latency_s[] = {0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03,
                                   0.04,   0.05,  0.06,  0.08,  0.1,   0.12,  0.15, 0.2,   0.5};
static const double stage_s[] = {0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005,
                                 0.007,   0.01,   0.015,  0.02,   0.03,  0.05,  0.1,   0.2};
static const double iterations[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 50};
static const double confidences[] = {0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999};
static const double ratios[] = {0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95};
/* Bounds in sigmas: with six degrees of freedom 95 % of good predictions stay below 3.5, and all but one in 1000
 * below 4.7. */
static const double sigmas[] = {0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.7, 6, 8, 12, 20};
static const double distances_m[] = {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5};

/* ---- rows ---- */

/* Rows of the status: a number, one number per value of the label, a text that is one of the values of the label, a
 * text that is there. */
#define NUMBER(path_)         .path = (path_)
#define EACH(label_, path_)   .label = &(label_), .path = (path_)
#define EQUALS(label_, path_) .label = &(label_), .path = (path_), .source = WEB_FROM_CHOICE
#define IS_SET(path_)         .path = (path_), .source = WEB_FROM_TEXT
#define SERVER(member)        .source = WEB_FROM_SERVER, .offset = offsetof(struct web_metrics_server, member)

const struct web_metric web_metric_table[] = {
    [WEB_UP] = {"ndtd_up", WEB_GAUGE, "", .help = "1 while the daemon answers, else 0."},

    [WEB_LATENCY] = {"ndtd_scan_latency_seconds", WEB_HISTOGRAM, "seconds",
                     .help = "From the last byte of a scan to its result, by outcome.", .label = &outcomes,
                     BOUNDS(latency_s)},
    [WEB_STAGES] = {"ndtd_scan_stage_seconds", WEB_HISTOGRAM, "seconds",
                    .help = "Time that a scan spends in a stage; upload is a part of align.", .label = &stages,
                    BOUNDS(stage_s)},
    [WEB_ITERATIONS] = {"ndtd_scan_iterations", WEB_HISTOGRAM, "",
                        .help = "Newton iterations of a scan that was aligned.", BOUNDS(iterations)},
    [WEB_CONFIDENCE] = {"ndtd_scan_confidence_ratio", WEB_HISTOGRAM, "ratio",
                        .help = "Probability that the pose of a scan is right.", BOUNDS(confidences)},
    [WEB_NVTL] = {"ndtd_scan_nvtl_ratio", WEB_HISTOGRAM, "ratio",
                  .help = "Nearest voxel transformation likelihood of a scan, normalised to 0..1.", BOUNDS(ratios)},
    [WEB_MATCH_RATIO] = {"ndtd_scan_match_ratio", WEB_HISTOGRAM, "ratio",
                         .help = "Matched points over all points of a scan.", BOUNDS(ratios)},
    [WEB_INNOVATION] = {"ndtd_scan_innovation_sigmas", WEB_HISTOGRAM, "sigmas",
                        .help = "Distance of the pose of a scan from its prediction.", BOUNDS(sigmas)},
    [WEB_CORRECTION] = {"ndtd_scan_correction_meters", WEB_HISTOGRAM, "meters",
                        .help = "Distance from the guess to the pose of a scan.", BOUNDS(distances_m)},

    [WEB_LAST_CONFIDENCE] = {"ndtd_confidence_ratio", WEB_GAUGE, "ratio",
                             .help = "Probability that the pose of the last scan is right."},
    [WEB_LAST_PROBABILITY] = {"ndtd_transform_probability", WEB_GAUGE, "",
                              .help = "Score of the last scan over all of its points."},
    [WEB_LAST_NVTL] = {"ndtd_nvtl", WEB_GAUGE, "",
                       .help = "Nearest voxel transformation likelihood of the last scan, not normalised."},
    [WEB_LAST_MATCH_RATIO] = {"ndtd_match_ratio", WEB_GAUGE, "ratio",
                              .help = "Matched points over all points of the last scan."},
    [WEB_LAST_COVERAGE] = {"ndtd_coverage_ratio", WEB_GAUGE, "ratio",
                           .help = "Part of the azimuth of the last scan with matched points."},
    [WEB_LAST_MARGIN] = {"ndtd_margin_ratio", WEB_GAUGE, "ratio",
                         .help = "Probability of the last pose against all others that were tried."},
    [WEB_LAST_INNOVATION] = {"ndtd_innovation_sigmas", WEB_GAUGE, "sigmas",
                             .help = "Distance of the last pose from its prediction."},
    [WEB_LAST_ITERATIONS] = {"ndtd_iterations", WEB_GAUGE, "", .help = "Newton iterations of the last scan."},
    [WEB_LAST_OSCILLATION] =
        {"ndtd_oscillation", WEB_GAUGE, "",
         .help = "Longest run of reversing steps in the last scan; above 10 the pose is doubtful."},
    [WEB_LAST_HYPOTHESES] = {"ndtd_hypotheses", WEB_GAUGE, "",
                             .help = "Guesses that were aligned for the last scan."},
    [WEB_LAST_LATENCY] = {"ndtd_latency_seconds", WEB_GAUGE, "seconds",
                          .help = "From the last byte of the last scan to its result."},
    [WEB_LAST_AGE] = {"ndtd_result_age_seconds", WEB_GAUGE, "seconds",
                      .help = "Since ndt-web received the last result."},
    [WEB_LAST_DELAY] = {"ndtd_pose_delay_seconds", WEB_GAUGE, "seconds",
                        .help = "From the stamp of the last scan until ndt-web had its result, by the clock of "
                                "ndt-web; absent for stamps of another clock."},
    [WEB_POSITION_DEVIATION] = {"ndtd_position_deviation_meters", WEB_GAUGE, "meters",
                                .help = "Standard deviation of the last position along an axis of the map.",
                                .label = &axes},
    [WEB_WORST_DEVIATION] = {"ndtd_position_worst_deviation_meters", WEB_GAUGE, "meters",
                             .help = "Standard deviation of the last position in its worst direction."},
    [WEB_ROTATION_DEVIATION] = {"ndtd_rotation_deviation_radians", WEB_GAUGE, "radians",
                                .help = "Standard deviation of the last rotation about an axis of the map.",
                                .label = &axes},
    [WEB_PROTECTION] = {"ndtd_protection_level_meters", WEB_GAUGE, "meters",
                        .help =
                            "Bound of the error of the last position along an axis of the vehicle; absent where "
                            "there is none.",
                        .label = &levels},
    [WEB_UNSAFE] = {"ndtd_unsafe", WEB_GAUGE, "",
                    .help =
                        "1: the horizontal protection level of the last scan is above integrity.alert_limit_m."},
    [WEB_WEAK_AXES] = {"ndtd_weak_axes", WEB_GAUGE, "",
                       .help = "Directions that the last scan does not determine, 0 to 3."},
    [WEB_SPEED] = {"ndtd_speed_meters_per_second", WEB_GAUGE, "",
                   .help = "Speed of the base by the twist of the last result."},
    [WEB_UNTRUSTED] = {"ndtd_untrusted_scans", WEB_GAUGE, "",
                       .help = "Scans in a row, up to the last one, after which the pose was not trusted."},

    [WEB_OWN_INFO] = {"ndt_web_build_info", WEB_INFO, "", .help = "Version of ndt-web.",
                      .texts = {{"version", NULL}}},
    [WEB_RESULTS] = {"ndt_web_results_total", WEB_COUNTER, "", .help = "Results that ndt-web received."},
    [WEB_CONNECTS] = {"ndt_web_daemon_connections_total", WEB_COUNTER, "",
                      .help = "How often the daemon began to answer: the first time and after it was away."},
    [WEB_RESTARTS] = {"ndt_web_daemon_restarts_total", WEB_COUNTER, "",
                      .help = "Restarts of the daemon, by its uptime."},
    [WEB_RESPONSES] = {"ndt_web_responses_total", WEB_COUNTER, "", .help = "HTTP responses by status code.",
                       .label = &codes},
    [WEB_RESPONSE_BYTES] = {"ndt_web_response_bytes_total", WEB_COUNTER, "bytes",
                            .help = "Bytes of bodies sent over HTTP."},

    [WEB_FIRST_PROCESS + WEB_PROCESS_START] = {"process_start_time_seconds", WEB_GAUGE, "seconds",
                                               .help = "Unix time at which ndt-web started."},
    [WEB_FIRST_PROCESS + WEB_PROCESS_CPU] = {"process_cpu_seconds_total", WEB_COUNTER, "seconds",
                                             .help = "Processor time of ndt-web, user and system."},
    [WEB_FIRST_PROCESS + WEB_PROCESS_RESIDENT] = {"process_resident_memory_bytes", WEB_GAUGE, "bytes",
                                                  .help = "Resident memory of ndt-web."},
    [WEB_FIRST_PROCESS + WEB_PROCESS_VIRTUAL] = {"process_virtual_memory_bytes", WEB_GAUGE, "bytes",
                                                 .help = "Virtual memory of ndt-web."},
    [WEB_FIRST_PROCESS +
        WEB_PROCESS_FDS] = {"process_open_fds", WEB_GAUGE, "", .help = "Open file descriptors of ndt-web."},
    [WEB_FIRST_PROCESS +
        WEB_PROCESS_MAX_FDS] = {"process_max_fds", WEB_GAUGE, "", .help = "Limit of file descriptors of ndt-web."},

    /* Rows of ndt-web. */
    {"ndt_web_connections", WEB_GAUGE, "", .help = "Open HTTP connections.", SERVER(connections)},
    {"ndt_web_event_streams", WEB_GAUGE, "", .help = "Browsers that listen to events.", SERVER(streams)},
    {"ndt_web_connections_evicted_total", WEB_COUNTER, "",
     .help = "HTTP connections closed because they were too slow, or to make room.", SERVER(evicted)},
    {"ndt_web_events_total", WEB_COUNTER, "", .help = "Events handed to browsers, each browser counted.",
     SERVER(events)},
    {"ndt_web_events_lost_total", WEB_COUNTER, "",
     .help = "Events that browsers missed because they did not keep up.", SERVER(events_lost)},
    {"ndt_web_frames_bad_total", WEB_COUNTER, "", .help = "Messages of the daemon that could not be decoded.",
     SERVER(frames_bad)},
    {"ndt_web_scans_total", WEB_COUNTER, "", .help = "Scans whose points ndt-web received.", SERVER(scans)},
    {"ndt_web_results_kept", WEB_GAUGE, "", .help = "Results in the history.", SERVER(results_kept)},
    {"ndt_web_scans_kept", WEB_GAUGE, "", .help = "Scans whose points are kept for browsers.", SERVER(scans_kept)},
    {"ndt_web_control_sent_total", WEB_COUNTER, "", .help = "Control requests passed on to the daemon.",
     SERVER(control_sent)},
    {"ndt_web_control_refused_total", WEB_COUNTER, "",
     .help = "Control requests that ndt-web refused: no or a wrong token, another origin, malformed.",
     SERVER(control_refused)},
    {"ndt_web_map_points", WEB_GAUGE, "", .help = "Points of the map that the page shows.", SERVER(map_points)},
    {"ndt_web_map_nodes", WEB_GAUGE, "", .help = "Tiles of the map that the page shows: nodes of its octree.",
     SERVER(map_nodes)},
    {"ndt_web_map_bytes", WEB_GAUGE, "bytes", .help = "Memory of the map that the page shows.", SERVER(map_bytes)},
    {"ndt_web_map_nodes_served_total", WEB_COUNTER, "", .help = "Tiles sent to browsers.",
     SERVER(map_nodes_served)},
    {"ndt_web_map_loading", WEB_GAUGE, "", .help = "1 while ndt-web reads the map, else 0.", SERVER(map_loading)},
    {"ndt_web_map_failed", WEB_GAUGE, "", .help = "1 if ndt-web could not read the map, else 0.",
     SERVER(map_failed)},

    /* Rows of the status. */
    {"ndtd_build_info", WEB_INFO, "", .help = "Version of the daemon and its backend.",
     .texts = {{"version", "version"}, {"backend", "backend"}}},
    {"ndtd_config_info", WEB_INFO, "", .help = "Hash of the configuration in force.",
     .texts = {{"hash", "config_hash"}}},
    {"ndtd_config_needs_restart", WEB_GAUGE, "",
     .help = "1 if a reloaded option needs a restart of the daemon, else 0.", IS_SET("needs_restart")},
    {"ndtd_processing_info", WEB_INFO, "", .help = "How scans are processed, and whether that was measured.",
     .texts = {{"source", "route.source"},
               {"backend", "route.backend"},
               {"pipeline", "route.pipeline"},
               {"threads", "route.threads"},
               {"batch", "route.batch"}}},
    {"ndtd_budget_seconds", WEB_GAUGE, "seconds", .help = "Time that the last scan had, see live.budget_ms.",
     NUMBER("latency_ms.budget"), .scale = 1e-3},
    {"ndtd_uptime_seconds", WEB_GAUGE, "seconds", .help = "Since the daemon started.", NUMBER("uptime_s")},
    {"ndtd_resident_memory_bytes", WEB_GAUGE, "bytes", .help = "Resident memory of the daemon.",
     NUMBER("process.resident_bytes")},
    {"ndtd_peak_resident_memory_bytes", WEB_GAUGE, "bytes", .help = "Most resident memory that the daemon had.",
     NUMBER("process.peak_resident_bytes")},
    {"ndtd_cpu_seconds_total", WEB_COUNTER, "seconds", .help = "Processor time of the daemon, on all cores.",
     NUMBER("process.cpu_s")},

    {"ndtd_state", WEB_GAUGE, "", .help = "1 for the state of the daemon, 0 for the others.",
     EQUALS(daemon_states, "state")},
    {"ndtd_localisation_state", WEB_GAUGE, "", .help = "1 for the state of the localisation, 0 for the others.",
     EQUALS(pose_states, "localisation.state")},
    {"ndtd_localisation_changes_total", WEB_COUNTER, "", .help = "Changes of the state of the localisation.",
     NUMBER("localisation.changes")},
    {"ndtd_localisation_scans_total", WEB_COUNTER, "", .help = "Scans by the state of the localisation after them.",
     EACH(pose_states, "states.%s")},
    {"ndtd_scans_total", WEB_COUNTER, "", .help = "Scans by outcome.", EACH(outcomes, "outcomes.%s")},
    {"ndtd_scans_thinned_total", WEB_COUNTER, "", .help = "Scans with too many points, of which a part was read.",
     NUMBER("scans_thinned")},
    {"ndtd_unconverged_scans", WEB_GAUGE, "",
     .help = "Scans in a row, up to the last one, that have not converged.", NUMBER("row_not_converged")},
    {"ndtd_poses_far_total", WEB_COUNTER, "",
     .help = "Poses farther from the guess than validation.initial_to_result_distance_tolerance_m, if that is set.",
     NUMBER("poses_far")},
    {"ndtd_scans_slow_total", WEB_COUNTER, "",
     .help = "Scans that took longer than validation.critical_upper_bound_exe_time_ms, if that is set.",
     NUMBER("scans_slow")},
    {"ndtd_map_checks_total", WEB_COUNTER, "",
     .help = "Searches of the whole map while the pose was accepted (recovery.check_s).", NUMBER("map_checks")},
    {"ndtd_fits_elsewhere_total", WEB_COUNTER, "",
     .help = "Times that scans in a row fitted another place of the map better than the accepted pose.",
     NUMBER("fits_elsewhere")},
    {"ndtd_searches_total", WEB_COUNTER, "", .help = "Searches for the pose that were requested.",
     NUMBER("search.search_id")},
    {"ndtd_search_running", WEB_GAUGE, "", .help = "1 while a requested search runs, else 0.",
     NUMBER("search.running")},
    {"ndtd_odometry_restarts_total", WEB_COUNTER, "", .help = "Jumps after which odometry began anew.",
     NUMBER("odometry_restarts")},
    {"ndtd_results_not_finite_total", WEB_COUNTER, "",
     .help = "Results that were not finite and were answered as rejected.", NUMBER("results_not_finite")},
    {"ndtd_estimates_not_finite_total", WEB_COUNTER, "",
     .help = "Estimates that were not finite: the estimator began anew.", NUMBER("estimates_not_finite")},

    {"ndtd_received_frames_total", WEB_COUNTER, "", .help = "Messages that arrived on the socket scans.",
     NUMBER("receiver.frames")},
    {"ndtd_received_scans_total", WEB_COUNTER, "", .help = "Scans that arrived on the socket scans.",
     NUMBER("receiver.scans")},
    {"ndtd_received_bytes_total", WEB_COUNTER, "bytes", .help = "Bytes that arrived on the socket scans.",
     NUMBER("receiver.bytes")},
    {"ndtd_received_malformed_total", WEB_COUNTER, "",
     .help = "Messages of unknown types or without a readable head.", NUMBER("receiver.bad")},
    {"ndtd_frames_refused_total", WEB_COUNTER, "", .help = "Messages whose content was refused.",
     NUMBER("frames_refused")},
    {"ndtd_queue_scans", WEB_GAUGE, "", .help = "Scans that wait.", NUMBER("queue.waiting")},
    {"ndtd_queue_messages", WEB_GAUGE, "", .help = "Messages that wait, scans included.", NUMBER("queue.depth")},
    {"ndtd_drops_total", WEB_COUNTER, "", .help = "Messages dropped because a queue was full, by queue.",
     .label = &queues, .paths = drop_paths},
    {"ndtd_results_published_total", WEB_COUNTER, "", .help = "Results handed to the socket poses.",
     NUMBER("publisher.published")},
    {"ndtd_send_failures_total", WEB_COUNTER, "", .help = "Results that could not be handed over.",
     NUMBER("send_failures")},
    {"ndtd_subscribers", WEB_GAUGE, "", .help = "Subscribers of a socket.", .label = &out_sockets,
     .paths = subscriber_paths},
    {"ndtd_points_published_total", WEB_COUNTER, "", .help = "Scans handed to the socket points.",
     NUMBER("points.published")},
    {"ndtd_connections_refused_total", WEB_COUNTER, "", .help = "Connections that the daemon refused.",
     NUMBER("connections_refused")},
    {"ndtd_log_lines_lost_total", WEB_COUNTER, "", .help = "Lines of the log that were left out.",
     NUMBER("log_lines_lost")},
    {"ndtd_memory_released_total", WEB_COUNTER, "", .help = "Scans for which memory did not suffice.",
     NUMBER("memory_released")},

    {"ndtd_map_info", WEB_INFO, "", .help = "The map in use.",
     .texts = {{"path", "map.path"}, {"map_id", "map.map_id"}}},
    {"ndtd_map_points", WEB_GAUGE, "", .help = "Points of the map in use.", NUMBER("map.points")},
    {"ndtd_map_tiles_loaded", WEB_GAUGE, "", .help = "Tiles of the map that are loaded.",
     NUMBER("map.tiles_loaded")},
    {"ndtd_map_tiles_known", WEB_GAUGE, "", .help = "Tiles of the map.", NUMBER("map.tiles_known")},
    {"ndtd_map_loading", WEB_GAUGE, "", .help = "1 while a map or a tile is loaded, else 0.", NUMBER("map.busy")},
    {"ndtd_map_loading_elapsed_seconds", WEB_GAUGE, "seconds",
     .help = "Since the load that runs began; absent while nothing is loaded.", NUMBER("map.loading.elapsed_s")},
    {"ndtd_map_load_failed", WEB_GAUGE, "", .help = "1 if the last load of a map or a tile failed, else 0.",
     NUMBER("map.failed")},
    {"ndtd_map_loads_total", WEB_COUNTER, "", .help = "Loads of maps and sets of tiles that are complete.",
     NUMBER("map.loads")},
    {"ndtd_map_last_load_seconds", WEB_GAUGE, "seconds", .help = "Duration of the last load.",
     NUMBER("map.last_load_ms"), .scale = 1e-3},

    {"ndtd_recorder_state", WEB_GAUGE, "", .help = "1 for the state of the recorder, 0 for the others.",
     EQUALS(recorder_states, "recorder.state")},
    {"ndtd_recorder_failed", WEB_GAUGE, "", .help = "1 if the last recording ended by an error or a limit, else 0.",
     IS_SET("recorder.error")},
    {"ndtd_recorder_failures_total", WEB_COUNTER, "", .help = "Recordings that ended by an error or a limit.",
     NUMBER("receiver.record_failures")},
    {"ndtd_recorder_frames_total", WEB_COUNTER, "", .help = "Frames written to recordings.",
     NUMBER("receiver.recorded")},
    {"ndtd_recorder_file_bytes", WEB_GAUGE, "bytes", .help = "Size of the current or last recording.",
     NUMBER("recorder.bytes")},
    {"ndtd_recorder_missing_frames", WEB_GAUGE, "", .help = "Frames that the current or last recording lacks.",
     NUMBER("recorder.missing")},
    {"ndtd_recorder_waiting_bytes", WEB_GAUGE, "bytes", .help = "Frames that wait for the disk.",
     NUMBER("recorder.waiting_bytes")},
};

const size_t web_metric_count = sizeof(web_metric_table) / sizeof(web_metric_table[0]);
_Static_assert(sizeof(web_metric_table) / sizeof(web_metric_table[0]) <= WEB_MAX_METRICS, "room for every metric");

const char *web_metric_type_name(enum web_metric_type type)
{
    static const char *const names[] = {"counter", "gauge", "histogram", "info"};
    return names[type];
}

size_t web_metric_info_slot(size_t row)
{
    size_t slot = 0;
    for (size_t i = 0; i < row; i++)
        slot += web_metric_table[i].type == WEB_INFO;
    return slot;
}
