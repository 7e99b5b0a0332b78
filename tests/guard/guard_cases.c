/** @file
 * @brief guard_cases CASE | --list | --key: runs one hot path on synthetic input, for tools/dev/instruction-guard.
 *
 * A case prepares its input and then runs inside guard_measured(), the only function whose instructions count:
 * valgrind --tool=callgrind --toggle-collect=guard_measured. --list: the cases that this processor can run, one per
 * line. --key: the environment on which instruction counts depend, in one line; run under valgrind it names the
 * processor that valgrind emulates. Exit codes: 0 done, 1 the case failed, 2 usage, 77 this build is not suitable
 * for counting (with the reason).
 */
#include <gnu/libc-version.h>
#include <math.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/align.h"
#include "ndt/preprocess.h"
#include "ndt_io/bag.h"
#include "ndt_proto/message.h"
#include "street_world.h"

/* ---- inputs: seeded, single-threaded, without files, so that every run takes the same instructions ---- */

enum { GUARD_STARTS = 8 };

struct guard_work;

struct guard_case {
    const char *name;
    enum ndt_status (*prepare)(struct guard_work *work, struct ndt_error *err);
    /* Fails when the work was not done, so that missing work does not count as fast. */
    enum ndt_status (*run)(struct guard_work *work, struct ndt_error *err);
    int once; /* no warm-up run: the result must not exist before */
    /* Parameters of the cases that have them. */
    const char *isa;
    double leaf_m;
    enum ndt_neighbours neighbours;
    enum ndt_variant variant;
    enum ndt_deskew_mode deskew;
};

/* Inputs and objects of a case. */
struct guard_work {
    const struct guard_case *item;
    struct ndt_cloud map_points; /* map frame */
    struct ndt_cloud scan;       /* sensor frame */
    struct ndt_pose T_map_sensor;
    struct ndt_pose T_map_guess[GUARD_STARTS]; /* up to 0.5 m and 2 deg off */
    struct ndt_map *map;
    struct ndt_map_builder *builder;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_align_params align;
    struct ndt_align_item *items;     /* items of a batch */
    struct ndt_align_result *results; /* theirs */
    struct ndt_preprocessor *preprocessor;
    struct ndt_preprocess_params preprocess;
    struct ndt_sweep_motion motion;
    struct ndt_buffer frame;
    struct ndt_result_message result;
};

static const struct world street = {.kind = WORLD_STREET, .seed = 6, .length_m = 120.0, .noise_m = 0.02};
static const double ORIGIN_M[3] = {0, 0, 0};
static const double RANGE_M = 50.0;
static const double PI = 3.14159265358979323846;

static void guard_work_init(struct guard_work *work, const struct guard_case *item)
{
    *work = (struct guard_work){.item = item};
    ndt_cloud_init(&work->map_points);
    ndt_cloud_init(&work->scan);
    ndt_buffer_init(&work->frame);
}

static void guard_work_free(struct guard_work *work)
{
    free(work->items);
    free(work->results);
    ndt_aligner_destroy(work->aligner);
    if (work->backend)
        work->backend->ops->close(work->backend);
    ndt_map_release(work->map);
    ndt_map_builder_destroy(work->builder);
    ndt_preprocessor_destroy(work->preprocessor);
    ndt_cloud_free(&work->map_points);
    ndt_cloud_free(&work->scan);
    ndt_buffer_free(&work->frame);
}

/* Points of a street, 120 m long, and a scan of `count` of them from its middle. */
static enum ndt_status guard_street_map(struct guard_work *work, size_t count, struct ndt_error *err)
{
    return world_map(&work->map_points, &street, count, ORIGIN_M, err);
}

static enum ndt_status guard_street_scan(struct guard_work *work, size_t count, struct ndt_error *err)
{
    struct ndt_random random = {1};
    work->T_map_sensor = world_pose(&street, 0.5, 0.1);
    for (int i = 0; i < GUARD_STARTS; i++)
        work->T_map_guess[i] = world_perturb(&random, &work->T_map_sensor, 0.5, 2 * PI / 180);
    return world_scan(&work->scan, &street, 1, count, &work->T_map_sensor, RANGE_M, err);
}

/* Distance along a unit direction from the sensor, 1.7 m above the floor of a yard of 80 m x 30 m with high walls.
 */
static double yard_range_m(const double direction[3])
{
    const double half_m[2] = {40.0, 15.0};
    double range_m = direction[2] < 0 ? 1.7 / -direction[2] : INFINITY;
    for (int i = 0; i < 2; i++)
        range_m = fmin(range_m, half_m[i] / fmax(fabs(direction[i]), 1e-9));
    return range_m;
}

/* Makes one revolution of a 64-beam LiDAR in a yard, ring by ring: 120 000 points with times. */
static enum ndt_status guard_lidar_turn(struct guard_work *work, struct ndt_error *err)
{
    enum { RINGS = 64, COLUMNS = 1875 };
    struct ndt_cloud *scan = &work->scan;
    struct ndt_random random = {2};
    enum ndt_status status = ndt_cloud_reserve(scan, RINGS * COLUMNS, NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    for (int ring = 0; ring < RINGS; ring++) {
        const double elevation = (-25.0 + 28.0 * ring / (RINGS - 1)) * PI / 180;
        for (int column = 0; column < COLUMNS; column++) {
            const double part = (double)column / COLUMNS, azimuth = PI - 2 * PI * part;
            const double direction[3] = {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth),
                                         sin(elevation)};
            const double range_m = yard_range_m(direction) + 0.02 * world_normal(&random);
            const size_t at = scan->count++;
            scan->x_m[at] = (float)(range_m * direction[0]);
            scan->y_m[at] = (float)(range_m * direction[1]);
            scan->z_m[at] = (float)(range_m * direction[2]);
            scan->time_s[at] = (float)(0.1 * part);
        }
    }
    work->motion.twist = (struct ndt_twist){.v_mps = {10.0, 0.1, 0.0}, .w_radps = {0.0, 0.02, 0.3}};
    return NDT_OK;
}

/* ---- evaluations and whole alignments ---- */

enum { MAP_POINTS = 60000, EVAL_POINTS = 5000, ALIGN_POINTS = 1500, EVALUATIONS = 4, BATCH_ITEMS = 40 };

static enum ndt_status open_matcher(struct guard_work *work, const struct ndt_map_config *config,
                                    size_t scan_points, struct ndt_error *err)
{
    struct ndt_backend_config backend;
    ndt_backend_config_default(&backend);
    backend.threads = 1;
    backend.pin_threads = 0;
    backend.isa = work->item->isa;
    enum ndt_status status = guard_street_map(work, MAP_POINTS, err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(&work->map, config, &work->map_points, err);
    if (status == NDT_OK)
        status = guard_street_scan(work, scan_points, err);
    if (status == NDT_OK)
        status = ndt_cpu_backend.open(&work->backend, &backend, err);
    return status;
}

static enum ndt_status guard_eval_prepare(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    config.level_count = 1;
    config.leaf_m[0] = work->item->leaf_m;
    enum ndt_status status = open_matcher(work, &config, EVAL_POINTS, err);
    if (status == NDT_OK)
        status = work->backend->ops->set_map(work->backend, work->map, err);
    if (status == NDT_OK)
        status = work->backend->ops->set_scan(work->backend, &work->scan, err);
    return status;
}

/* Prepares a scan with the time of a sweep on every point. */
static enum ndt_status guard_inform_prepare(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = guard_eval_prepare(work, err);
    if (status == NDT_OK)
        status = ndt_cloud_reserve(&work->scan, work->scan.count, NDT_CLOUD_TIME, err);
    for (size_t i = 0; status == NDT_OK && i < work->scan.count; i++)
        work->scan.time_s[i] = (float)(0.1 * (double)i / (double)work->scan.count);
    return status == NDT_OK ? work->backend->ops->set_scan(work->backend, &work->scan, err) : status;
}

/* Evaluates at poses a step apart, as in an alignment. */
static enum ndt_status guard_eval_run(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_eval_request request = {.level = 0, .neighbours = work->item->neighbours};
    struct ndt_eval sums;
    ndt_pose_to_euler(&work->T_map_guess[0], request.p);
    for (int i = 0; i < EVALUATIONS; i++) {
        enum ndt_status status = work->backend->ops->eval(work->backend, &request, &sums, err);
        if (status != NDT_OK)
            return status;
        if (sums.matched < EVAL_POINTS * 0.4 || !(sums.score > 0))
            return ndt_fail(err, NDT_ERR_LIMIT, "only %g of %d points matched", sums.matched, EVAL_POINTS);
        request.p[0] += 0.05;
        request.p[5] += 0.002;
    }
    return NDT_OK;
}

static enum ndt_status guard_inform_run(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_eval_request request = {.level = 0, .neighbours = work->item->neighbours};
    struct ndt_information sums;
    ndt_pose_to_euler(&work->T_map_guess[0], request.p);
    for (int i = 0; i < EVALUATIONS; i++) {
        enum ndt_status status = work->backend->ops->inform(work->backend, &request, &sums, err);
        if (status != NDT_OK)
            return status;
        for (int power = 0; power < 3; power++)
            if (!(sums.information[power][0] > 0))
                return ndt_fail(err, NDT_ERR_LIMIT, "no information with the times to the power %d", power);
        request.p[0] += 0.05;
        request.p[5] += 0.002;
    }
    return NDT_OK;
}

static enum ndt_status guard_align_prepare(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    ndt_align_params_default(&work->align);
    work->align.variant = work->item->variant;
    if (work->align.variant == NDT_AUTOWARE) {
        work->align.level_count = 1;
        work->align.levels[0] = (struct ndt_align_level){2.0, NDT_RADIUS};
        config.covariance = NDT_COVARIANCE_AUTOWARE;
    }
    enum ndt_status status = open_matcher(work, &config, ALIGN_POINTS, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&work->aligner, work->backend, err);
    return status == NDT_OK ? ndt_aligner_set_map(work->aligner, work->map, err) : status;
}

static enum ndt_status check_result(const struct guard_work *work, const struct ndt_align_result *result,
                                    struct ndt_error *err)
{
    const double off_m = ndt_pose_distance_m(&work->T_map_sensor, &result->T_map_sensor);
    if (result->outcome != NDT_CONVERGED || off_m > 0.1)
        return ndt_fail(err, NDT_ERR_LIMIT, "the alignment ended as %s, %.3f m off",
                        ndt_outcome_name(result->outcome), off_m);
    return NDT_OK;
}

static enum ndt_status align_from(struct guard_work *work, const struct ndt_pose *guess, struct ndt_error *err)
{
    struct ndt_align_result result;
    enum ndt_status status = ndt_align(work->aligner, &work->align, &work->scan, guess, &result, err);
    return status == NDT_OK ? check_result(work, &result, err) : status;
}

static enum ndt_status guard_align_run(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < GUARD_STARTS; i++)
        status = align_from(work, &work->T_map_guess[i], err);
    return status;
}

/* The starts of align_robust again and again, so that the two compare per item. The first batch, a small one, is
 * not counted: it opens the lane. */
static enum ndt_status guard_batch_prepare(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = guard_align_prepare(work, err);
    work->items = calloc(BATCH_ITEMS, sizeof(*work->items));
    work->results = calloc(BATCH_ITEMS, sizeof(*work->results));
    if (!work->items || !work->results)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %d items", BATCH_ITEMS);
    for (int i = 0; i < BATCH_ITEMS; i++)
        work->items[i] =
            (struct ndt_align_item){.scan = &work->scan, .T_map_guess = work->T_map_guess[i % GUARD_STARTS]};
    if (status == NDT_OK)
        status = ndt_align_batch(work->aligner, &work->align, work->items, 2, work->results, err);
    return status;
}

static enum ndt_status guard_batch_run(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status =
        ndt_align_batch(work->aligner, &work->align, work->items, BATCH_ITEMS, work->results, err);
    for (int i = 0; status == NDT_OK && i < BATCH_ITEMS; i++)
        status = check_result(work, &work->results[i], err);
    return status;
}

/* ---- decoding, preprocessing, and the encoded result ---- */

enum { TURN_POINTS = 120000, AGAIN_TIMES = 8, RESULTS = 100 };

static enum ndt_status guard_preprocess_prepare(struct guard_work *work, struct ndt_error *err)
{
    ndt_preprocess_params_default(&work->preprocess);
    work->preprocess.deskew = work->item->deskew;
    enum ndt_status status = guard_lidar_turn(work, err);
    return status == NDT_OK ? ndt_preprocessor_create(&work->preprocessor, err) : status;
}

static enum ndt_status guard_preprocess_run(struct guard_work *work, struct ndt_error *err)
{
    const struct ndt_cloud *points;
    struct ndt_sweep sweep;
    enum ndt_status status = ndt_preprocess_sweep(&work->preprocess, &work->scan, &sweep, err);
    if (status == NDT_OK)
        status = ndt_preprocess(work->preprocessor, &work->preprocess, &work->scan, &sweep, 1, &work->motion,
                                &points, err);
    if (status == NDT_OK && points->count != work->preprocess.sample_count)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu points are left, not %u", points->count,
                        work->preprocess.sample_count);
    return status;
}

static enum ndt_status guard_again_prepare(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = guard_preprocess_prepare(work, err);
    return status == NDT_OK ? guard_preprocess_run(work, err) : status;
}

static enum ndt_status guard_again_run(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_sweep_motion motion = work->motion;
    for (int i = 0; i < AGAIN_TIMES; i++) {
        const struct ndt_cloud *points;
        motion.twist.v_mps[0] += 0.1;
        enum ndt_status status = ndt_preprocess_again(work->preprocessor, &motion, &points, err);
        if (status != NDT_OK)
            return status;
        if (points->count != work->preprocess.sample_count)
            return ndt_fail(err, NDT_ERR_LIMIT, "the second pass left %zu points", points->count);
    }
    return NDT_OK;
}

static enum ndt_status guard_scan_prepare(struct guard_work *work, struct ndt_error *err)
{
    const struct ndt_scan_message message = {
        .seq = 7, .stamp_ns = INT64_C(1700000000000000000), .frame_id = "lidar"};
    enum ndt_status status = guard_lidar_turn(work, err);
    return status == NDT_OK ? ndt_scan_encode(&work->frame, &message, &work->scan, err) : status;
}

static enum ndt_status guard_scan_decode_run(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_scan_message message;
    enum ndt_status status = ndt_scan_decode(work->frame.data, work->frame.size, &message, &work->scan, err);
    if (status == NDT_OK && work->scan.count != TURN_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu points were decoded", work->scan.count);
    return status;
}

static enum ndt_status guard_checksum_run(struct guard_work *work, struct ndt_error *err)
{
    const uint32_t whole = ndt_crc32c(0, work->frame.data, work->frame.size);
    return whole != 0 ? NDT_OK : ndt_fail(err, NDT_ERR_LIMIT, "the checksum is 0");
}

static enum ndt_status guard_result_prepare(struct guard_work *work, struct ndt_error *err)
{
    (void)err;
    struct ndt_result_message *message = &work->result;
    *message = (struct ndt_result_message){
        .seq = 7, .stamp_ns = INT64_C(1700000000000000000), .map_id = 1, .config_hash = 2, .decode_us = 100.5};
    snprintf(message->frame_id, sizeof(message->frame_id), "map");
    message->result.outcome = NDT_CONVERGED;
    message->result.T_map_sensor = ndt_pose_identity();
    message->result.has_covariance = 1;
    for (int i = 0; i < 36; i++)
        message->result.covariance[i] = i % 7 == 0 ? 1e-4 : 1e-6;
    message->result.scores = (struct ndt_scores){5.0, 4.0, 0.7, 0.9, 0.8};
    message->result.iterations = 6;
    message->result.evaluations = 9;
    return NDT_OK;
}

static enum ndt_status guard_result_encode_run(struct guard_work *work, struct ndt_error *err)
{
    for (int i = 0; i < RESULTS; i++) {
        work->result.seq++;
        enum ndt_status status = ndt_result_encode(&work->frame, &work->result, err);
        if (status != NDT_OK)
            return status;
        if (work->frame.size < 36 * sizeof(double))
            return ndt_fail(err, NDT_ERR_LIMIT, "a result of %zu bytes", work->frame.size);
    }
    return NDT_OK;
}

/* ---- building a map of three levels ---- */

enum { BUILD_POINTS = 200000, FEWEST_VOXELS = 100 };

static enum ndt_status guard_sums_prepare(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    config.threads = 1; /* only the calling thread is counted */
    enum ndt_status status = guard_street_map(work, BUILD_POINTS, err);
    return status == NDT_OK ? ndt_map_builder_create(&work->builder, &config, err) : status;
}

static enum ndt_status guard_sums_run(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = ndt_map_builder_add(work->builder, &work->map_points, err);
    if (status == NDT_OK && ndt_map_builder_points(work->builder) != BUILD_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "the map does not hold every point");
    return status;
}

static enum ndt_status guard_build_prepare(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = guard_sums_prepare(work, err);
    return status == NDT_OK ? guard_sums_run(work, err) : status;
}

static enum ndt_status guard_build_run(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = ndt_map_build(&work->map, work->builder, err);
    for (size_t i = 0; status == NDT_OK && i < work->map->level_count; i++)
        if (work->map->levels[i].voxel_count < FEWEST_VOXELS)
            return ndt_fail(err, NDT_ERR_LIMIT, "level %zu has %u voxels", i, work->map->levels[i].voxel_count);
    return status;
}

/* ---- the table ---- */

/* Cases, one row each, without AVX-512, which valgrind does not support. */
static const struct guard_case cases[] = {
#define EVAL .prepare = guard_eval_prepare, .run = guard_eval_run
    {.name = "eval_radius_4m_avx2", EVAL, .isa = "avx2", .leaf_m = 4, .neighbours = NDT_RADIUS},
    {.name = "eval_radius_2m_avx2", EVAL, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_RADIUS},
    {.name = "eval_radius_1m_avx2", EVAL, .isa = "avx2", .leaf_m = 1, .neighbours = NDT_RADIUS},
    {.name = "eval_direct1_2m_avx2", EVAL, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_DIRECT1},
    {.name = "eval_direct7_2m_avx2", EVAL, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_DIRECT7},
    {.name = "eval_direct27_2m_avx2", EVAL, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_DIRECT27},
    {.name = "eval_radius_4m_baseline", EVAL, .isa = "baseline", .leaf_m = 4, .neighbours = NDT_RADIUS},
    {.name = "eval_radius_2m_baseline", EVAL, .isa = "baseline", .leaf_m = 2, .neighbours = NDT_RADIUS},
    {.name = "eval_radius_1m_baseline", EVAL, .isa = "baseline", .leaf_m = 1, .neighbours = NDT_RADIUS},
    {.name = "eval_direct1_2m_baseline", EVAL, .isa = "baseline", .leaf_m = 2, .neighbours = NDT_DIRECT1},
    {.name = "eval_direct7_2m_baseline", EVAL, .isa = "baseline", .leaf_m = 2, .neighbours = NDT_DIRECT7},
    {.name = "eval_direct27_2m_baseline", EVAL, .isa = "baseline", .leaf_m = 2, .neighbours = NDT_DIRECT27},
#undef EVAL
#define INFORM .prepare = guard_inform_prepare, .run = guard_inform_run
    {.name = "inform_radius_2m_avx2", INFORM, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_RADIUS},
    {.name = "inform_radius_1m_avx2", INFORM, .isa = "avx2", .leaf_m = 1, .neighbours = NDT_RADIUS},
    {.name = "inform_radius_1m_baseline", INFORM, .isa = "baseline", .leaf_m = 1, .neighbours = NDT_RADIUS},
#undef INFORM
    {.name = "align_robust",
     .prepare = guard_align_prepare,
     .run = guard_align_run,
     .isa = "avx2",
     .variant = NDT_ROBUST},
    {.name = "align_autoware",
     .prepare = guard_align_prepare,
     .run = guard_align_run,
     .isa = "avx2",
     .variant = NDT_AUTOWARE},
    {.name = "align_batch_40",
     .prepare = guard_batch_prepare,
     .run = guard_batch_run,
     .once = 1,
     .isa = "avx2",
     .variant = NDT_ROBUST},
    {.name = "preprocess_120k", .prepare = guard_preprocess_prepare, .run = guard_preprocess_run},
    {.name = "preprocess_time_120k",
     .prepare = guard_preprocess_prepare,
     .run = guard_preprocess_run,
     .deskew = NDT_DESKEW_TIME},
    {.name = "preprocess_azimuth_120k",
     .prepare = guard_preprocess_prepare,
     .run = guard_preprocess_run,
     .deskew = NDT_DESKEW_AZIMUTH_CW},
    {.name = "preprocess_again", .prepare = guard_again_prepare, .run = guard_again_run, .deskew = NDT_DESKEW_TIME},
    {.name = "scan_decode_120k", .prepare = guard_scan_prepare, .run = guard_scan_decode_run},
    {.name = "bag_checksum_120k", .prepare = guard_scan_prepare, .run = guard_checksum_run},
    {.name = "result_encode", .prepare = guard_result_prepare, .run = guard_result_encode_run},
    {.name = "map_sums_200k", .prepare = guard_sums_prepare, .run = guard_sums_run, .once = 1},
    {.name = "map_build_200k", .prepare = guard_build_prepare, .run = guard_build_run, .once = 1},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* ---- running ---- */

enum { DONE = 0, FAILED = 1, USAGE = 2, UNFIT = 77 };

/* Neither static nor inlined: callgrind searches for the name. */
enum ndt_status guard_measured(struct guard_work *work, struct ndt_error *err);
__attribute__((noinline)) enum ndt_status guard_measured(struct guard_work *work, struct ndt_error *err)
{
    const enum ndt_status status = work->item->run(work, err);
    __asm__ volatile("" : : : "memory"); /* no tail call: callgrind must see the return */
    return status;
}

static int run_case(const struct guard_case *item)
{
    struct guard_work work;
    struct ndt_error err = {""};
    guard_work_init(&work, item);
    enum ndt_status status = item->prepare(&work, &err);
    if (status == NDT_OK && !item->once)
        status = item->run(&work, &err);
    if (status == NDT_OK)
        status = guard_measured(&work, &err);
    guard_work_free(&work);
    if (status != NDT_OK)
        fprintf(stderr, "guard_cases: %s: %s\n", item->name, err.text);
    return status == NDT_OK ? DONE : FAILED;
}

static int runs_here(const struct guard_case *item)
{
    char variants[128], *rest = variants;
    if (!item->isa)
        return 1;
    ndt_cpu_variants(variants, sizeof(variants));
    for (const char *name = strtok_r(variants, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, item->isa) == 0)
            return 1;
    return 0;
}

static int list_cases(void)
{
    for (size_t i = 0; i < CASES; i++)
        if (runs_here(&cases[i]))
            puts(cases[i].name);
    return DONE;
}

static int print_key(void)
{
    char variants[128];
#if defined(__clang__)
    const char *compiler = "clang " __clang_version__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    const int length = (int)strcspn(compiler + 6, " ") + 6; /* up to the version number */
    if (NDT_GUARD_UNFIT[0]) {
        puts(NDT_GUARD_UNFIT);
        return UNFIT;
    }
    ndt_cpu_variants(variants, sizeof(variants));
    printf("%.*s, glibc %s, msgpack %s, %s: %s\n", length, compiler, gnu_get_libc_version(), msgpack_version(),
           NDT_GUARD_MACHINE, variants);
    return DONE;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list_cases();
    if (argc == 2 && strcmp(argv[1], "--key") == 0)
        return print_key();
    for (size_t i = 0; argc == 2 && i < CASES; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            return run_case(&cases[i]);
    fprintf(stderr, "usage: guard_cases CASE | --list | --key\n");
    return USAGE;
}
