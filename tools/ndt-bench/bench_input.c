#include "bench_input.h"

#include <stdlib.h>

#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_proto/message.h"
#include "ndtd/trajectory_error.h"
#include "ndt/clock.h"

enum { REPEATS = 3 };
static const double FINEST_FILTER_M = 0.02;

static enum ndt_status reserve(struct bench_input *out, size_t count, struct ndt_error *err)
{
    out->scans = calloc(count ? count : 1, sizeof(*out->scans));
    return out->scans ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu scans", count);
}

void bench_input_free(struct bench_input *input)
{
    for (size_t i = 0; i < input->count; i++)
        ndt_cloud_free(&input->scans[i].raw);
    free(input->scans);
    *input = (struct bench_input){0};
}

enum ndt_status bench_input_from_files(struct bench_input *out, const char *const *paths, size_t count,
                                       const struct ndt_pose *T_map_sensor, struct ndt_error *err)
{
    enum ndt_status status = reserve(out, count, err);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        struct bench_scan *scan = &out->scans[out->count++];
        scan->seq = i;
        scan->T_map_sensor = *T_map_sensor;
        status = ndt_cloud_read(&scan->raw, paths[i], err);
    }
    if (status != NDT_OK)
        bench_input_free(out);
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
    struct ndtd_trajectory_error truth;
    size_t with_truth, seen, limit;
    struct bench_input *out;
    struct ndt_cloud cloud;
};

static enum ndt_status take_truth(void *context, const struct ndt_bag_record *record, struct ndt_error *err)
{
    struct bag_input *input = context;
    struct ndt_pose_message truth;
    enum ndt_status status =
        ndt_pose_message_decode(record->payload, record->length, NDT_MESSAGE_TRUTH, &truth, err);
    return status == NDT_OK ? ndtd_trajectory_error_add_truth(&input->truth, truth.stamp_ns, &truth.pose, err) : status;
}

static enum ndt_status count_scan(void *context, const struct ndt_bag_record *record, struct ndt_error *err)
{
    struct bag_input *input = context;
    struct ndt_scan_message message;
    struct ndt_pose pose;
    enum ndt_status status = ndt_scan_decode(record->payload, record->length, &message, &input->cloud, err);
    if (status == NDT_OK && ndtd_trajectory_error_truth_at(&input->truth, message.stamp_ns, &pose, NULL))
        input->with_truth++;
    return status;
}

/* Every with_truth/limit-th scan that has truth. */
static enum ndt_status take_scan(void *context, const struct ndt_bag_record *record, struct ndt_error *err)
{
    struct bag_input *input = context;
    struct ndt_scan_message message;
    struct bench_scan *scan = &input->out->scans[input->out->count];
    enum ndt_status status = ndt_scan_decode(record->payload, record->length, &message, &input->cloud, err);
    if (status != NDT_OK ||
        !ndtd_trajectory_error_truth_at(&input->truth, message.stamp_ns, &scan->T_map_sensor, &scan->twist))
        return status;
    const size_t number = input->seen++;
    if (input->out->count == input->limit || number * input->limit / input->with_truth < input->out->count)
        return NDT_OK;
    scan->seq = message.seq;
    input->out->count++;
    return ndt_cloud_copy(&scan->raw, &input->cloud, err);
}

static enum ndt_status read_bag(struct bag_input *input, struct ndt_bag_reader *bag, const char *path,
                                struct ndt_error *err)
{
    enum ndt_status status = each(bag, NDT_MESSAGE_TRUTH, take_truth, input, err);
    if (status == NDT_OK)
        status = each(bag, NDT_MESSAGE_SCAN, count_scan, input, err);
    if (status == NDT_OK && input->with_truth == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: no scan in it has a truth", path);
    if (input->limit == 0 || input->limit > input->with_truth)
        input->limit = input->with_truth;
    if (status == NDT_OK)
        status = reserve(input->out, input->limit + 1, err);
    if (status == NDT_OK)
        status = each(bag, NDT_MESSAGE_SCAN, take_scan, input, err);
    return status;
}

enum ndt_status bench_input_from_bag(struct bench_input *out, const char *path, size_t limit, struct ndt_error *err)
{
    struct bag_input input = {.out = out, .limit = limit};
    struct ndt_bag_reader *bag;
    enum ndt_status status = ndt_bag_open(&bag, path, err);
    if (status != NDT_OK)
        return status;
    ndt_cloud_init(&input.cloud);
    status = read_bag(&input, bag, path, err);
    ndt_bag_close(bag);
    ndt_cloud_free(&input.cloud);
    ndtd_trajectory_error_free(&input.truth);
    if (status != NDT_OK)
        bench_input_free(out);
    return status;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct ndt_pose moved(const struct bench_scan *scan, double dt_s)
{
    const struct ndt_pose step = ndt_pose_exp(&scan->twist, dt_s);
    return ndt_pose_compose(&scan->T_map_sensor, &step);
}

static enum ndt_status filter_one(struct bench_filtered *out, struct ndt_preprocessor *pre,
                                  const struct bench_scan *scan, const struct ndt_preprocess_params *params,
                                  struct ndt_error *err)
{
    struct bench_points *to = &out->scans[out->count];
    const struct ndt_cloud *points;
    double took_us[REPEATS], reference_s = 0;
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < REPEATS; i++) {
        const double start_us = ndt_clock_us();
        status = ndt_preprocess(pre, params, &scan->raw, scan->seq, &scan->twist, &points, &reference_s, err);
        took_us[i] = ndt_clock_us() - start_us;
    }
    if (status == NDT_OK)
        status = ndt_cloud_copy(&to->cloud, points, err);
    if (status != NDT_OK)
        return status;
    to->T_map_sensor = moved(scan, reference_s);
    out->count++;
    qsort(took_us, REPEATS, sizeof(double), ascending);
    status = ndtd_samples_add(&out->took_us, took_us[REPEATS / 2], err);
    return status == NDT_OK ? ndtd_samples_add(&out->used, (double)to->cloud.count, err) : status;
}

/* The finest cell any scan needs: found on the first scan, where the others are alike. */
static enum ndt_status choose_filter(struct ndt_preprocess_params *params, struct ndt_preprocessor *pre,
                                     const struct bench_input *input, struct ndt_error *err)
{
    for (size_t i = 0; i < input->count; i++) {
        const struct ndt_cloud *points;
        double reference_s;
        for (;;) {
            enum ndt_status status = ndt_preprocess(pre, params, &input->scans[i].raw, input->scans[i].seq,
                                                    &input->scans[i].twist, &points, &reference_s, err);
            if (status != NDT_OK)
                return status;
            if (points->count >= params->sample_count || params->voxel_m == 0)
                break;
            params->voxel_m = params->voxel_m / 2 < FINEST_FILTER_M ? 0 : params->voxel_m / 2;
        }
    }
    return NDT_OK;
}

enum ndt_status bench_filter(struct bench_filtered *out, const struct bench_input *input,
                             const struct ndt_preprocess_params *params, uint32_t wanted, struct ndt_error *err)
{
    struct ndt_preprocess_params mine = *params;
    struct ndt_preprocessor *pre;
    *out = (struct bench_filtered){.wanted = wanted};
    mine.sample_count = wanted;
    enum ndt_status status = ndt_preprocessor_create(&pre, err);
    if (status != NDT_OK)
        return status;
    out->scans = calloc(input->count, sizeof(*out->scans));
    if (!out->scans)
        status = ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu scans", input->count);
    if (status == NDT_OK)
        status = choose_filter(&mine, pre, input, err);
    out->voxel_m = mine.voxel_m;
    for (size_t i = 0; status == NDT_OK && i < input->count; i++)
        status = filter_one(out, pre, &input->scans[i], &mine, err);
    ndt_preprocessor_destroy(pre);
    if (status != NDT_OK)
        bench_filtered_free(out);
    return status;
}

void bench_filtered_free(struct bench_filtered *filtered)
{
    for (size_t i = 0; i < filtered->count; i++)
        ndt_cloud_free(&filtered->scans[i].cloud);
    free(filtered->scans);
    ndtd_samples_free(&filtered->used);
    ndtd_samples_free(&filtered->took_us);
    *filtered = (struct bench_filtered){0};
}
