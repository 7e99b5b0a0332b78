#include <stdlib.h>

#include "bench.h"
#include "ndt/clock.h"
#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_proto/message.h"
#include "ndtd/trajectory_error.h"

enum { REPEATS = 3 };
static const double FINEST_FILTER_M = 0.02;

void bench_recording_close(struct bench_recording *recording)
{
    for (size_t i = 0; recording && i < recording->count; i++)
        ndt_cloud_free(&recording->scans[i].cloud);
    if (recording)
        free(recording->scans);
    free(recording);
}

static enum ndt_status reserve(struct bench_recording *out, size_t count, struct ndt_error *err)
{
    out->scans = calloc(count ? count : 1, sizeof(*out->scans));
    return out->scans ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu scans", count);
}

static enum ndt_status read_files(struct bench_recording *out, const struct bench_options *options,
                                  struct ndt_error *err)
{
    enum ndt_status status = reserve(out, 1 + options->operands.count, err);
    for (size_t i = 0; status == NDT_OK && i <= options->operands.count; i++) {
        struct bench_raw_scan *scan = &out->scans[out->count++];
        scan->seq = i;
        scan->T_base_sensor = ndt_pose_identity();
        scan->T_map_sensor = options->pose;
        status = ndt_cloud_read(&scan->cloud, i ? options->operands.words[i - 1] : options->scan, err);
    }
    return status;
}

/* Calls `take` for every record of one type, up to the end or the first damage. */
static enum ndt_status each(struct ndt_bag_reader *bag, enum ndt_message_type type,
                            enum ndt_status (*take)(void *context, const struct ndt_bag_record *record,
                                                    struct ndt_error *err),
                            void *context, struct ndt_error *err)
{
    struct ndt_bag_record record;
    enum ndt_status status = NDT_OK;
    ndt_bag_rewind(bag);
    while (status == NDT_OK && ndt_bag_next(bag, &record, NULL) == NDT_OK)
        if (record.type == (uint32_t)type)
            status = take(context, &record, err);
    return status;
}

struct bag_input {
    const struct ndtd_extrinsics *frames;
    struct ndtd_trajectory_error truth;
    size_t with_truth, seen, limit;
    struct bench_recording *out;
    struct ndt_cloud cloud;
};

static enum ndt_status take_truth(void *context, const struct ndt_bag_record *record, struct ndt_error *err)
{
    struct bag_input *input = context;
    struct ndt_pose_message truth;
    enum ndt_status status =
        ndt_pose_message_decode(record->payload, record->length, NDT_MESSAGE_TRUTH, &truth, err);
    return status == NDT_OK ? ndtd_trajectory_error_add_truth(&input->truth, truth.stamp_ns, &truth.pose, err)
                            : status;
}

/* The truth is that of the base. */
static void mount(struct bench_raw_scan *scan, const struct ndt_pose *T_base_sensor)
{
    scan->twist = ndt_pose_carried_twist(T_base_sensor, &scan->twist);
    scan->T_base_sensor = *T_base_sensor;
    scan->T_map_sensor = ndt_pose_compose(&scan->T_map_sensor, T_base_sensor);
}

/* Takes a scan. Without out->scans it counts the scans that have truth; then it keeps every with_truth/limit-th of
 * them. */
static enum ndt_status take_scan(void *context, const struct ndt_bag_record *record, struct ndt_error *err)
{
    struct bag_input *input = context;
    struct ndt_scan_message message;
    struct bench_raw_scan scan = {0};
    enum ndt_status status = ndt_scan_decode(record->payload, record->length, &message, &input->cloud, err);
    if (status != NDT_OK ||
        !ndtd_trajectory_error_truth_at(&input->truth, message.stamp_ns, &scan.T_map_sensor, &scan.twist))
        return status;
    if (!input->out->scans) {
        input->with_truth++;
        return NDT_OK;
    }
    const size_t number = input->seen++, kept = input->out->count;
    if (kept == input->limit || number * input->limit / input->with_truth < kept)
        return NDT_OK;
    scan.seq = message.seq;
    scan.stamp_ns = message.stamp_ns;
    mount(&scan, ndtd_extrinsics_of(input->frames, message.frame_id));
    input->out->scans[input->out->count++] = scan;
    return ndt_cloud_copy(&input->out->scans[kept].cloud, &input->cloud, err);
}

static enum ndt_status read_bag(struct bag_input *input, struct ndt_bag_reader *bag, const char *path,
                                struct ndt_error *err)
{
    enum ndt_status status = each(bag, NDT_MESSAGE_TRUTH, take_truth, input, err);
    if (status == NDT_OK)
        status = each(bag, NDT_MESSAGE_SCAN, take_scan, input, err);
    if (status == NDT_OK && input->with_truth == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: no scan in it has a truth", path);
    if (input->limit == 0 || input->limit > input->with_truth)
        input->limit = input->with_truth;
    if (status == NDT_OK)
        status = reserve(input->out, input->limit, err);
    if (status == NDT_OK)
        status = each(bag, NDT_MESSAGE_SCAN, take_scan, input, err);
    return status;
}

enum ndt_status bench_recording_open(struct bench_recording **out, const struct bench_options *options,
                                     struct ndt_error *err)
{
    struct bench_recording *recording = *out = calloc(1, sizeof(*recording));
    struct bag_input input = {
        .frames = &options->settings.frames, .out = recording, .limit = (size_t)options->scan_limit};
    struct ndt_bag_reader *bag;
    if (!recording)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a recording");
    if (!options->bag)
        return read_files(recording, options, err);
    enum ndt_status status = ndt_bag_open(&bag, options->bag, err);
    if (status != NDT_OK)
        return status;
    ndt_cloud_init(&input.cloud);
    status = read_bag(&input, bag, options->bag, err);
    ndt_bag_close(bag);
    ndt_cloud_free(&input.cloud);
    ndtd_trajectory_error_free(&input.truth);
    return status;
}

static struct ndt_pose moved(const struct bench_raw_scan *scan, double dt_s)
{
    const struct ndt_pose step = ndt_pose_exp(&scan->twist, dt_s);
    return ndt_pose_compose(&scan->T_map_sensor, &step);
}

static enum ndt_status preprocess(struct ndt_preprocessor *pre, const struct ndt_preprocess_params *given,
                                  const struct bench_raw_scan *scan, struct ndt_sweep *sweep,
                                  const struct ndt_cloud **points, struct ndt_error *err)
{
    const struct ndt_sweep_motion motion = {.twist = scan->twist};
    struct ndt_preprocess_params params = *given;
    params.deskew = ndt_deskew_mode_of(given->deskew, &scan->cloud);
    const enum ndt_status status = ndt_preprocess_sweep(&params, &scan->cloud, sweep, err);
    return status == NDT_OK ? ndt_preprocess(pre, &params, &scan->cloud, sweep, scan->seq, &motion, points, err)
                            : status;
}

static enum ndt_status filter_one(struct bench_scans *out, struct ndt_preprocessor *pre,
                                  const struct bench_raw_scan *scan, const struct ndt_preprocess_params *params,
                                  struct ndt_error *err)
{
    struct bench_scan *to = &out->items[out->count];
    const struct ndt_cloud *points;
    struct bench_samples took_us = {0};
    struct ndt_sweep sweep = {0};
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < REPEATS; i++) {
        const double start_us = ndt_clock_us();
        status = preprocess(pre, params, scan, &sweep, &points, err);
        bench_samples_add(&took_us, ndt_clock_us() - start_us);
    }
    if (status == NDT_OK)
        status = ndt_cloud_copy(&to->cloud, points, err);
    if (status == NDT_OK) {
        to->T_map_sensor = moved(scan, sweep.reference_s);
        out->count++;
        bench_samples_add(&out->took_us, bench_median(&took_us));
        bench_samples_add(&out->used, (double)to->cloud.count);
    }
    bench_samples_free(&took_us, 1);
    return status;
}

/* Halves the cells of the filter until every scan keeps enough points. */
static enum ndt_status choose_filter(struct ndt_preprocess_params *params, struct ndt_preprocessor *pre,
                                     const struct bench_recording *recording, struct ndt_error *err)
{
    for (size_t i = 0; i < recording->count; i++) {
        const struct bench_raw_scan *scan = &recording->scans[i];
        const struct ndt_cloud *points;
        struct ndt_sweep sweep;
        for (;;) {
            enum ndt_status status = preprocess(pre, params, scan, &sweep, &points, err);
            if (status != NDT_OK)
                return status;
            if (points->count >= params->sample_count || params->voxel_m == 0)
                break;
            params->voxel_m = params->voxel_m / 2 < FINEST_FILTER_M ? 0 : params->voxel_m / 2;
        }
    }
    return NDT_OK;
}

enum ndt_status bench_recording_scans(const struct bench_recording *recording,
                                      const struct ndt_preprocess_params *params, struct bench_scans *out,
                                      struct ndt_error *err)
{
    struct ndt_preprocess_params mine = *params;
    struct ndt_preprocessor *pre;
    mine.sample_count = (uint32_t)out->wanted;
    out->items = calloc(recording->count, sizeof(*out->items));
    if (!out->items)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu scans", recording->count);
    enum ndt_status status = ndt_preprocessor_create(&pre, err);
    if (status != NDT_OK)
        return status;
    status = choose_filter(&mine, pre, recording, err);
    out->voxel_m = mine.voxel_m;
    for (size_t i = 0; status == NDT_OK && i < recording->count; i++)
        status = filter_one(out, pre, &recording->scans[i], &mine, err);
    ndt_preprocessor_destroy(pre);
    if (status == NDT_OK)
        out->points = (size_t)(bench_median(&out->used) + 0.5);
    return status;
}
