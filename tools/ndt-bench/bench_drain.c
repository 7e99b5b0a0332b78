/** @file
 * @brief drain: scans that wait, aligned together or one after the other, by two pipelines of the daemon that
 * follow the same drive. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ndt/clock.h"
#include "ndt_io/bag.h"
#include "ndt_io/map_file.h"
#include "ndtd/pipeline.h"
#include "ndtd/trajectory_error.h"

enum { ALONE, TOGETHER, MODES, MOST_SCANS = NDTD_QUEUE_MAX_DEPTH, MOST_FRAMES = 1024 };

/* The frames that wait, with bytes of their own: the bag reuses its buffer. */
struct group {
    size_t frames, scans;
    struct ndtd_message frame[MOST_FRAMES], *list[MOST_FRAMES];
    uint8_t *bytes[MOST_FRAMES];
    size_t room[MOST_FRAMES];
};

struct drain {
    struct ndt_bag_reader *bag;
    struct ndt_map *map;
    struct ndtd_pipeline *pipelines[MODES];
    struct group group;
    size_t waiting; /* scans per group */
    struct ndtd_trajectory_error *truth;
    /* Results. */
    struct ndtd_scan_record records[MODES][MOST_SCANS];
    struct bench_samples took_ms[MODES];
    uint64_t launches[MODES];
    size_t groups, scans, ahead, converged[MODES], other_outcomes, same_bits;
    double off_m, off_rad;
    struct bench_samples error_m[MODES]; /* against the truth, where the bag has one */
};

static enum ndt_status add_frame(struct group *group, const struct ndt_bag_record *record, struct ndt_error *err)
{
    const size_t i = group->frames;
    if (i == MOST_FRAMES)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d messages between the scans", MOST_FRAMES);
    if (group->room[i] < record->length) {
        uint8_t *bytes = realloc(group->bytes[i], record->length);
        if (!bytes)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a message");
        group->bytes[i] = bytes;
        group->room[i] = record->length;
    }
    memcpy(group->bytes[i], record->payload, record->length);
    group->list[i] = &group->frame[i];
    group->frame[i] = (struct ndtd_message){
        .type = (enum ndt_message_type)record->type, .data = group->bytes[i], .size = record->length};
    if (record->type == NDT_MESSAGE_SCAN &&
        ndt_scan_header_decode(group->bytes[i], record->length, &group->frame[i].scan, NULL) != NDT_OK)
        return NDT_OK; /* the scan is left out */
    group->scans += record->type == NDT_MESSAGE_SCAN;
    group->frames++;
    return NDT_OK;
}

static uint64_t count_launches(const struct ndtd_pipeline *pipeline)
{
    const struct ndt_backend *backend = ndtd_pipeline_backend(pipeline);
    struct ndt_backend_counters counters = {0};
    if (backend->ops->counters)
        backend->ops->counters(backend, &counters);
    return counters.launches;
}

static enum ndt_status process(struct drain *drain, int mode, struct ndt_error *err)
{
    const struct group *group = &drain->group;
    const uint64_t launches = count_launches(drain->pipelines[mode]);
    const double start_us = ndt_clock_us();
    size_t scans = 0;
    if (mode == TOGETHER)
        ndtd_pipeline_expect(drain->pipelines[mode], group->list, group->frames);
    for (size_t i = 0; i < group->frames; i++) {
        struct ndtd_scan_record record;
        const enum ndt_status status = ndtd_pipeline_process(drain->pipelines[mode], group->list[i], &record, err);
        if (status == NDT_ERR_MEMORY || status == NDT_ERR_DEVICE)
            return status;
        if (group->frame[i].type == NDT_MESSAGE_SCAN)
            drain->records[mode][scans++] = record;
    }
    bench_samples_add(&drain->took_ms[mode], (ndt_clock_us() - start_us) * 1e-3);
    drain->launches[mode] += count_launches(drain->pipelines[mode]) - launches;
    return NDT_OK;
}

static void compare(struct drain *drain)
{
    for (size_t i = 0; i < drain->group.scans; i++) {
        const struct ndtd_scan_record *alone = &drain->records[ALONE][i], *together = &drain->records[TOGETHER][i];
        const struct ndt_pose *a = &alone->result.T_map_sensor, *b = &together->result.T_map_sensor;
        for (int mode = 0; mode < MODES; mode++) {
            const struct ndt_align_result *result = &drain->records[mode][i].result;
            struct ndt_pose truth;
            drain->converged[mode] += result->outcome == NDT_CONVERGED;
            if (ndtd_trajectory_error_truth_at(drain->truth, alone->stamp_ns, &truth, NULL))
                bench_samples_add(&drain->error_m[mode], ndt_pose_distance_m(&truth, &result->T_map_sensor));
        }
        drain->ahead += together->is_ahead != 0;
        drain->other_outcomes += alone->result.outcome != together->result.outcome;
        drain->same_bits += memcmp(a, b, sizeof(*a)) == 0;
        drain->off_m = fmax(drain->off_m, ndt_pose_distance_m(a, b));
        drain->off_rad = fmax(drain->off_rad, ndt_pose_angle_rad(a, b));
    }
    drain->scans += drain->group.scans;
}

/* The order alternates, so that neither always finds warm caches. */
static enum ndt_status run_group(struct drain *drain, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (size_t k = 0; k < MODES && status == NDT_OK; k++)
        status = process(drain, (int)((drain->groups + k) % MODES), err);
    if (status == NDT_OK)
        compare(drain);
    drain->groups++;
    drain->group.frames = drain->group.scans = 0;
    return status;
}

/* Follows the bag up to its end or the first damage; scans that do not fill a group are left out. */
static enum ndt_status follow(struct drain *drain, struct ndt_error *err)
{
    struct ndt_bag_record record;
    enum ndt_status status = NDT_OK;
    ndt_bag_rewind(drain->bag);
    while (status == NDT_OK && ndt_bag_next(drain->bag, &record, NULL) == NDT_OK) {
        if (record.type == NDT_MESSAGE_TRUTH || record.type >= NDT_MESSAGE_END)
            continue;
        status = add_frame(&drain->group, &record, err);
        if (status == NDT_OK && drain->group.scans == drain->waiting)
            status = run_group(drain, err);
    }
    return status;
}

static enum ndt_status read_truth(struct ndt_bag_reader *bag, struct ndtd_trajectory_error *out,
                                  struct ndt_error *err)
{
    struct ndt_bag_record record;
    struct ndt_pose_message truth;
    enum ndt_status status = NDT_OK;
    while (status == NDT_OK && ndt_bag_next(bag, &record, NULL) == NDT_OK) {
        if (record.type != NDT_MESSAGE_TRUTH)
            continue;
        status = ndt_pose_message_decode(record.payload, record.length, NDT_MESSAGE_TRUTH, &truth, err);
        if (status == NDT_OK)
            status = ndtd_trajectory_error_add_truth(out, truth.stamp_ns, &truth.pose, err);
    }
    return status;
}

static enum ndt_status open_pipelines(struct drain *drain, const struct ndtd_settings *settings,
                                      struct ndt_error *err)
{
    const struct ndtd_settings_snapshot *snapshot = NULL;
    struct ndtd_settings mine = *settings;
    mine.batch_together = 1;
    enum ndt_status status = ndtd_settings_snapshot_create(&snapshot, &mine, err);
    for (int mode = 0; mode < MODES && status == NDT_OK; mode++)
        status = ndtd_pipeline_create(&drain->pipelines[mode], snapshot, drain->map, 0, err);
    ndtd_settings_snapshot_release(snapshot);
    return status;
}

static void put_row(struct drain *drain, struct bench_report *report, struct bench_table *table)
{
    const struct ndt_backend *backend = ndtd_pipeline_backend(drain->pipelines[TOGETHER]);
    char about[160] = "";
    if (backend->ops->describe)
        backend->ops->describe(backend, about, sizeof(about));
    const double alone_ms = bench_median(&drain->took_ms[ALONE]);
    const double together_ms = bench_median(&drain->took_ms[TOGETHER]);
    bench_row(report, table);
    bench_text(table, "backend", "%.60s", about[0] ? about : backend->ops->name);
    bench_number(table, "waiting", 0, (double)drain->waiting);
    bench_number(table, "groups", 0, (double)drain->groups);
    bench_number(table, "scans", 0, (double)drain->scans);
    bench_number(table, "together_ms", 2, together_ms);
    bench_number(table, "alone_ms", 2, alone_ms);
    bench_number(table, "ratio", 2, alone_ms / together_ms);
    bench_number(table, "best_together_ms", 2, bench_quantile(&drain->took_ms[TOGETHER], 0));
    bench_number(table, "best_alone_ms", 2, bench_quantile(&drain->took_ms[ALONE], 0));
    if (drain->launches[ALONE] > 0) {
        bench_number(table, "launches_together", 1, (double)drain->launches[TOGETHER] / (double)drain->groups);
        bench_number(table, "launches_alone", 1, (double)drain->launches[ALONE] / (double)drain->groups);
    }
    bench_number(table, "ahead", 0, (double)drain->ahead);
    bench_number(table, "same_bits", 0, (double)drain->same_bits);
    bench_number(table, "off_mm", 2, 1e3 * drain->off_m);
    bench_number(table, "off_deg", 4, drain->off_rad / BENCH_DEG);
    bench_number(table, "p95_cm", 2, 1e2 * bench_quantile(&drain->error_m[TOGETHER], 0.95));
    bench_number(table, "p95_alone_cm", 2, 1e2 * bench_quantile(&drain->error_m[ALONE], 0.95));
    bench_number(table, "max_cm", 2, 1e2 * bench_quantile(&drain->error_m[TOGETHER], 1));
    bench_number(table, "max_alone_cm", 2, 1e2 * bench_quantile(&drain->error_m[ALONE], 1));
    bench_number(table, "other_outcomes", 0, (double)drain->other_outcomes);
    bench_number(table, "converged", 0, (double)drain->converged[TOGETHER]);
    bench_number(table, "converged_alone", 0, (double)drain->converged[ALONE]);
    report->failures += drain->other_outcomes;
}

static enum ndt_status measure(struct drain *drain, const struct bench_options *options,
                               struct bench_report *report, struct bench_table *table, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (drain->waiting > MOST_SCANS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--sizes: at most %d scans wait", MOST_SCANS);
    status = open_pipelines(drain, &options->settings, err);
    if (status == NDT_OK)
        status = follow(drain, err);
    if (status == NDT_OK)
        put_row(drain, report, table);
    for (int mode = 0; mode < MODES; mode++)
        ndtd_pipeline_destroy(drain->pipelines[mode]);
    bench_samples_free(drain->took_ms, MODES);
    bench_samples_free(drain->error_m, MODES);
    for (size_t i = 0; i < MOST_FRAMES; i++)
        free(drain->group.bytes[i]);
    return status;
}

enum ndt_status bench_drain(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    struct ndt_bag_reader *bag = NULL;
    struct ndt_map *map = NULL;
    struct ndtd_trajectory_error truth = {0};
    struct drain *drain = calloc(1, sizeof(*drain));
    enum ndt_status status = drain ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    if (status == NDT_OK)
        status = ndt_bag_open(&bag, options->bag, err);
    if (status == NDT_OK)
        status = ndt_map_load(&map, options->map, &options->settings.map, err);
    if (status == NDT_OK)
        status = read_truth(bag, &truth, err);
    struct bench_table *table =
        bench_report_table(report, "drain",
                           "Scans that wait: decoded, preprocessed and aligned together, or one after the other; "
                           "medians per group. ahead: scans whose alignment ahead of their turn counts");
    for (size_t i = 0; drain && status == NDT_OK && i < options->sizes.count; i++) {
        *drain = (struct drain){.bag = bag, .map = map, .truth = &truth, .waiting = options->sizes.values[i]};
        status = measure(drain, options, report, table, err);
    }
    ndtd_trajectory_error_free(&truth);
    free(drain);
    ndt_map_release(map);
    if (bag)
        ndt_bag_close(bag);
    return status;
}
