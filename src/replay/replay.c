/** @file
 * @brief The replay: passes the scans of a bag to the sinks, then prints the table. */
#include "ndtd/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ndt/clock.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"
#include "ndtd/bag_run.h"
#include "ndtd/process_memory.h"
#include "ndtd/progress_line.h"
#include "ndtd/replay_folder.h"
#include "ndtd/report.h"
#include "replay_report.h"

struct replay {
    const struct ndtd_settings *settings;
    const struct ndtd_replay_options *options;
    struct ndtd_bag_run *bag;
    struct ndtd_run_inputs inputs;
    struct ndtd_sinks sinks;
    struct ndtd_sink_paths files;
    struct ndtd_replay_folder *folder; /* NULL: none */
    char reporter[PATH_MAX];           /* the program of --report */
    char bag_path[NDTD_PATH_MAX];      /* path of the bag, as written into the folder */
    char map_path[NDTD_PATH_MAX];
    int has_dumped;
};

void ndtd_replay_stop(void)
{
    ndtd_bag_run_stop();
}

/* Writes the intermediate values of the scan that --dump-scan names. */
static enum ndt_status dump(struct replay *replay, const struct ndtd_scan_record *record, struct ndt_error *err)
{
    const struct ndtd_replay_options *options = replay->options;
    struct ndt_output output = {0};
    if (!options->dump || replay->has_dumped || record->seq != options->dump_scan)
        return NDT_OK;
    if (options->dump_iteration >= record->trace_count)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--dump-iteration %" PRIu64 ": scan %" PRIu64 " has %zu iterations",
                        options->dump_iteration, record->seq, record->trace_count);
    enum ndt_status status = ndt_output_open(&output, options->dump, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_dump(ndtd_bag_run_pipeline(replay->bag), (size_t)options->dump_iteration,
                                    output.file, err);
    if (status == NDT_OK)
        status = ndt_output_commit(&output, err);
    ndt_output_discard(&output);
    replay->has_dumped = status == NDT_OK;
    return status;
}

static enum ndt_status emit(struct replay *replay, struct ndtd_scan_record *record, struct ndt_error *err)
{
    enum ndt_status status = dump(replay, record, err);
    if (status == NDT_OK)
        status = ndtd_sinks_emit(&replay->sinks, record, err);
    if (status == NDT_OK && replay->folder)
        status = ndtd_replay_folder_add(replay->folder, ndtd_bag_run_pipeline(replay->bag), err);
    return status;
}

static void show_progress(const struct replay *replay, struct ndtd_progress_line *line)
{
    char detail[80];
    const uint64_t scans = replay->sinks.summary.scans;
    if (!ndtd_progress_line_is_due(line))
        return;
    snprintf(detail, sizeof(detail), "%" PRIu64 " scans  %.0f scans/s", scans,
             (double)scans / ((ndt_clock_us() - line->start_us) * 1e-6));
    ndtd_progress_line_put(line, ndtd_bag_run_done(replay->bag), detail);
}

static enum ndt_status run(struct replay *replay, struct ndt_error *err)
{
    struct ndtd_scan_record record;
    struct ndtd_progress_line line;
    enum ndt_status status;
    ndtd_progress_line_begin(&line, "", NULL);
    while ((status = ndtd_bag_run_next(replay->bag, &record, err)) == NDT_OK &&
           (status = emit(replay, &record, err)) == NDT_OK)
        show_progress(replay, &line);
    ndtd_progress_line_end(&line);
    return status == NDT_END ? NDT_OK : status;
}

/* Checks that the run had a scan, and the scan to dump. */
static enum ndt_status check_ran(const struct replay *replay, struct ndt_error *err)
{
    if (replay->sinks.summary.scans && replay->options->dump && !replay->has_dumped)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--dump-scan %" PRIu64 ": no such scan was replayed",
                        replay->options->dump_scan);
    return ndtd_bag_run_check(replay->bag, err);
}

/* The path from the root, for a folder that is read from elsewhere. "-" stays, and so does a path that has no room.
 */
static const char *from_root(const char *path, char *out, size_t size)
{
    char here[PATH_MAX];
    if (*path == '/' || strcmp(path, "-") == 0 || !getcwd(here, sizeof(here)) ||
        (size_t)snprintf(out, size, "%s/%s", here, path) >= size)
        return path;
    return out;
}

/* The id of the overlay at this path; 0: the map is no overlay. */
static uint64_t overlay_id(const char *map_path)
{
    struct ndt_map_overlay overlay;
    return ndt_map_is_overlay(map_path) && ndt_map_overlay_open(&overlay, map_path, NULL) == NDT_OK ? overlay.id
                                                                                                    : 0;
}

static void describe(struct replay *replay, double replay_us)
{
    struct ndtd_summary *summary = &replay->sinks.summary;
    const struct ndt_backend *backend = ndtd_pipeline_backend(ndtd_bag_run_pipeline(replay->bag));
    const struct ndt_map *map = ndtd_bag_run_map(replay->bag);
    replay->inputs = replay->options->inputs;
    replay->inputs.bag = replay->options->bag;
    replay->inputs.map = replay->settings->map_path;
    if (replay->folder) {
        replay->inputs.bag = from_root(replay->inputs.bag, replay->bag_path, sizeof(replay->bag_path));
        replay->inputs.map = from_root(replay->inputs.map, replay->map_path, sizeof(replay->map_path));
    }
    summary->inputs = &replay->inputs;
    summary->hints = ndtd_bag_run_hints(replay->bag);
    memcpy(summary->messages, ndtd_bag_run_messages(replay->bag), sizeof(summary->messages));
    summary->backend = backend->ops->name;
    snprintf(summary->description, sizeof(summary->description), "%s", backend->ops->name);
    if (backend->ops->describe)
        backend->ops->describe(backend, summary->description, sizeof(summary->description));
    summary->threads =
        strcmp(backend->ops->name, ndt_cpu_backend.name) == 0 ? ndtd_settings_threads(replay->settings) : 1;
    summary->variant = ndt_variant_name(replay->settings->align.variant);
    summary->map_id = map ? map->id : 0;
    summary->map_points = map ? map->points : 0;
    summary->overlay_id = overlay_id(replay->settings->map_path);
    summary->replay_s = replay_us * 1e-6;
    summary->peak_memory_bytes = ndtd_peak_resident_bytes();
}

static void warn_line(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "ndtd: warning: %s\n", text);
}

static void warn(const struct replay *replay)
{
    ndtd_bag_run_warnings(replay->bag, warn_line, NULL);
}

/* Checks the conditions of the exit code: --expect and --max-untrusted. */
static int has_failed(struct replay *replay)
{
    struct ndtd_sinks *sinks = &replay->sinks;
    const struct ndtd_summary *summary = &sinks->summary;
    const int differs =
        sinks->expects && !ndtd_reference_trajectory_matches(&sinks->reference, summary->trajectory_hash);
    const int has_more = summary->untrusted > replay->options->max_untrusted;
    if (differs)
        fprintf(stderr, "ndtd: %s: differs: %s\n", replay->options->files.expect, sinks->reference.difference);
    if (has_more)
        fprintf(stderr,
                "ndtd: --max-untrusted %" PRIu64 ": %" PRIu64 " scans ended without a trusted pose: %" PRIu64
                " initialising, %" PRIu64 " lost, %" PRIu64 " recovering\n",
                replay->options->max_untrusted, summary->untrusted, summary->states[NDT_STATE_INITIALISING],
                summary->states[NDT_STATE_LOST], summary->states[NDT_STATE_RECOVERING]);
    return differs || has_more;
}

static enum ndt_status finish(struct replay *replay, int *failed, struct ndt_error *err)
{
    struct ndtd_sinks *sinks = &replay->sinks;
    struct ndtd_settings told = *replay->settings;
    snprintf(told.map_path, sizeof(told.map_path), "%s", replay->inputs.map);
    enum ndt_status status =
        replay->folder ? ndtd_replay_folder_finish(replay->folder, &told, &sinks->trajectory_error.truth, err)
                       : NDT_OK;
    if (status == NDT_OK)
        status = ndtd_sinks_finish(sinks, err);
    if (status != NDT_OK)
        return status;
    warn(replay);
    ndtd_report_table(stdout, &sinks->summary);
    *failed = has_failed(replay);
    return NDT_OK;
}

/* Sets the names of the files, those of a folder where one is asked for. */
static enum ndt_status prepare_files(struct replay *replay, struct ndt_error *err)
{
    const struct ndtd_replay_options *options = replay->options;
    enum ndt_status status = NDT_OK;
    replay->files = options->files;
    if (options->report)
        status = ndtd_replay_report_find(replay->reporter, err);
    if (status == NDT_OK && (options->output || options->report))
        status = ndtd_replay_folder_open(&replay->folder, options->output, &replay->files, err);
    if (status == NDT_OK && options->report)
        status = ndtd_replay_report_check(options->report, err);
    return status;
}

static enum ndt_status prepare(struct replay *replay, struct ndt_error *err)
{
    const struct ndtd_replay_options *options = replay->options;
    const struct ndtd_bag_run_options bag = {.bag = options->bag,
                                             .skip = options->skip,
                                             .limit = options->limit,
                                             .import_args = options->import_args,
                                             .import_arg_count = options->import_arg_count};
    struct ndtd_sinks *sinks = &replay->sinks;
    if (!*replay->settings->map_path)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s", NDTD_NO_MAP_TEXT);
    enum ndt_status status = prepare_files(replay, err);
    if (status == NDT_OK)
        status = ndtd_sinks_open(sinks, &replay->files, err);
    if (status == NDT_OK)
        status = ndtd_bag_run_open(&replay->bag, replay->settings, &bag, &sinks->trajectory_error, err);
    if (status != NDT_OK)
        return status;
    ndtd_pipeline_watch(ndtd_bag_run_pipeline(replay->bag), replay->folder != NULL);
    if (ndtd_bag_run_map(replay->bag))
        sinks->map_id = ndtd_bag_run_map(replay->bag)->id;
    sinks->config_hash = ndtd_bag_run_config_hash(replay->bag);
    sinks->summary.map_load_ms = ndtd_bag_run_map_load_ms(replay->bag);
    return NDT_OK;
}

enum ndt_status ndtd_replay(const struct ndtd_settings *settings, const struct ndtd_replay_options *options,
                            int *failed, struct ndt_error *err)
{
    struct ndtd_settings timed = *settings;
    struct replay replay = {.settings = &timed, .options = options};
    timed.compute.kernel_times = options->files.timing || options->output || options->report;
    *failed = 0;
    enum ndt_status status = prepare(&replay, err);
    double start_us = ndt_clock_us();
    if (status == NDT_OK)
        status = run(&replay, err);
    if (status == NDT_OK)
        status = check_ran(&replay, err);
    if (status == NDT_OK) {
        describe(&replay, ndt_clock_us() - start_us);
        status = finish(&replay, failed, err);
    }
    const int is_complete = status == NDT_OK;
    if (is_complete && options->report)
        status =
            ndtd_replay_report_run(replay.reporter, ndtd_replay_folder_path(replay.folder), options->report, err);
    if (status == NDT_ERR_CANCELLED) /* stopped while the map was read, or later */
        status = ndt_fail(err, NDT_ERR_IO, "stopped after %" PRIu64 " scans; nothing was written",
                          replay.sinks.summary.scans);
    ndtd_bag_run_close(replay.bag);
    ndtd_sinks_close(&replay.sinks);
    ndtd_replay_folder_close(replay.folder, is_complete);
    return status;
}
