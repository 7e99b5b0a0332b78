#include "gpu_align.h"

#include <stdlib.h>
#include <string.h>

#include "bench_start.h"
#include "gpu_drive.h"
#include "ndt/clock.h"
#include "ndt/hash.h"

enum { MOST_STARTS = 1000, WARM_UPS = 3, CUTS = 6, SEED = 1 };
static const double SHIFT_M = 0.5, DEG = 3.14159265358979323846 / 180.0, TURN_DEG = 2, GOOD_M = 0.15,
                    GOOD_DEG = 0.6;

/* Whole alignments on a data-centre GPU, one level. */
static const struct {
    size_t points;
    double us;
} wanted[] = {{756, 100}, {5000, 150}, {20000, 300}};

/* What is measured of one way. */
struct sample {
    double *align_us, *upload_us, *kernel_us;
    struct ndt_pose *poses;
    double evaluations;
};
struct scene {
    const struct gpu_align_request *request;
    struct ndt_cloud scans[GPU_ALIGN_SCANS];
    struct ndt_pose truths[GPU_ALIGN_SCANS];
    struct gpu_candidates candidates;
    struct sample samples[GPU_CANDIDATES];
};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, size_t count, double part)
{
    qsort(values, count, sizeof(double), ascending);
    return values[(size_t)(part * (double)(count - 1) + 0.5)];
}

static void set_params(struct ndt_align_params *params, enum gpu_align_chain chain)
{
    ndt_align_params_default(params);
    if (chain == GPU_ALIGN_CHAIN)
        return;
    params->level_count = 1;
    params->levels[0] = (struct ndt_align_level){.leaf_m = 2.0, .neighbours = NDT_RADIUS};
}

static double kernel_us(const struct gpu_candidate *candidate)
{
    struct ndt_backend_counters counters = {0};
    if (candidate->backend->ops->counters)
        candidate->backend->ops->counters(candidate->backend, &counters);
    return counters.kernel_us;
}

static void align(struct scene *scene, struct gpu_candidate *candidate, const struct ndt_align_params *params,
                  size_t start, struct ndt_align_result *result, double took_us[3])
{
    const size_t scan = start % GPU_ALIGN_SCANS;
    const struct ndt_pose guess = bench_start(SEED, start, &scene->truths[scan], SHIFT_M, TURN_DEG * DEG);
    const double kernels_us = kernel_us(candidate), start_us = ndt_clock_us();
    enum ndt_status status =
        ndt_align(candidate->aligner, params, &scene->scans[scan], &guess, result, &candidate->why);
    took_us[0] = ndt_clock_us() - start_us;
    took_us[1] = result->upload_us;
    took_us[2] = kernel_us(candidate) - kernels_us;
    candidate->is_broken |= status != NDT_OK;
}

static int works(const struct gpu_candidate *candidate)
{
    return candidate->aligner && !candidate->is_broken;
}

/* Start by start, everything in turn; the first ones warm up. */
static void align_all(struct scene *scene, const struct ndt_align_params *params)
{
    const size_t starts = (size_t)scene->request->starts;
    for (size_t i = 0; i < WARM_UPS + starts; i++)
        for (size_t k = 0; k < scene->candidates.count; k++) {
            const size_t w = (i + k) % scene->candidates.count;
            struct sample *sample = &scene->samples[w];
            struct ndt_align_result result;
            double took_us[3];
            if (!works(&scene->candidates.items[w]))
                continue;
            align(scene, &scene->candidates.items[w], params, i, &result, took_us);
            if (i < WARM_UPS)
                continue;
            sample->align_us[i - WARM_UPS] = took_us[0];
            sample->upload_us[i - WARM_UPS] = took_us[1];
            sample->kernel_us[i - WARM_UPS] = took_us[2];
            sample->poses[i - WARM_UPS] = result.T_map_sensor;
            sample->evaluations += (double)result.evaluations / (double)starts;
        }
}

/* Least squares y = once + slope * x. */
static int fit(const double x[CUTS], const double y[CUTS], double *once, double *slope)
{
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
    for (int i = 0; i < CUTS; i++) {
        mean_x += x[i] / CUTS;
        mean_y += y[i] / CUTS;
    }
    for (int i = 0; i < CUTS; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    if (!(xx > 0))
        return 0;
    *slope = xy / xx;
    *once = mean_y - *slope * mean_x;
    return 1;
}

/* One start, nothing that ends the search early, one step length: 2, 5, 8 .. iterations. */
static void cut_off(struct scene *scene, size_t w, struct gpu_align_row *row)
{
    const size_t rounds = (size_t)scene->request->starts;
    struct sample *sample = &scene->samples[w];
    struct ndt_align_params params;
    double evaluations[CUTS], align_us[CUTS], kernels_us[CUTS];
    set_params(&params, GPU_ALIGN_ONE_LEVEL);
    params.fine_stop_m = params.fine_stop_rad = params.fine_stop_gain = 0;
    params.max_line_search_steps = 1;
    for (int cut = 0; cut < CUTS; cut++) {
        params.max_iterations = 2 + 3 * cut;
        for (size_t i = 0; i < 1 + rounds; i++) {
            struct ndt_align_result result;
            double took_us[3];
            align(scene, &scene->candidates.items[w], &params, 0, &result, took_us);
            if (!works(&scene->candidates.items[w]))
                return;
            sample->align_us[i > 0 ? i - 1 : 0] = took_us[0];
            sample->kernel_us[i > 0 ? i - 1 : 0] = took_us[2];
            evaluations[cut] = result.evaluations;
        }
        align_us[cut] = quantile(sample->align_us, rounds, 0.5);
        kernels_us[cut] = quantile(sample->kernel_us, rounds, 0.5);
    }
    row->has_line = fit(evaluations, align_us, &row->once_us, &row->per_evaluation_us) &&
                    fit(evaluations, kernels_us, &row->kernel_once_us, &row->kernel_per_evaluation_us);
}

static double wanted_us(const struct gpu_candidate *candidate, enum gpu_align_chain chain, size_t points)
{
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (wanted[i].points == points && chain == GPU_ALIGN_ONE_LEVEL && candidate->is_resident &&
            strncmp(candidate->name, "cuda ", 5) == 0) /* not what is emulated */
            return wanted[i].us;
    return 0;
}

static void compare(struct gpu_align_row *row, const struct scene *scene, const struct sample *sample)
{
    const struct sample *first = &scene->samples[0];
    for (size_t i = 0; i < (size_t)scene->request->starts; i++) {
        const struct ndt_pose *truth = &scene->truths[(i + WARM_UPS) % GPU_ALIGN_SCANS], *pose = &sample->poses[i];
        const double off_m = ndt_pose_distance_m(pose, &first->poses[i]);
        const double off_deg = ndt_pose_angle_rad(pose, &first->poses[i]) / DEG;
        row->off_m = off_m > row->off_m ? off_m : row->off_m;
        row->off_deg = off_deg > row->off_deg ? off_deg : row->off_deg;
        row->recovered +=
            ndt_pose_distance_m(pose, truth) <= GOOD_M && ndt_pose_angle_rad(pose, truth) <= GOOD_DEG * DEG;
    }
    row->tried = (size_t)scene->request->starts;
    row->hash = ndt_hash64(sample->poses, row->tried * sizeof(*sample->poses), 0);
}

static void fill_row(struct gpu_align_row *row, struct scene *scene, size_t w, enum gpu_align_chain chain)
{
    struct gpu_candidate *candidate = &scene->candidates.items[w];
    struct sample *sample = &scene->samples[w];
    const size_t starts = (size_t)scene->request->starts;
    *row = (struct gpu_align_row){
        .chain = chain, .points = scene->request->points, .is_shape = candidate->is_resident};
    memcpy(row->name, candidate->name, sizeof(row->name));
    if (works(candidate)) {
        compare(row, scene, sample);
        row->align_us = quantile(sample->align_us, starts, 0.5);
        row->p95_us = quantile(sample->align_us, starts, 0.95);
        row->upload_us = quantile(sample->upload_us, starts, 0.5);
        row->kernel_us = quantile(sample->kernel_us, starts, 0.5);
        row->evaluations = sample->evaluations;
        row->wanted_us = wanted_us(candidate, chain, row->points);
        if (chain == GPU_ALIGN_ONE_LEVEL)
            cut_off(scene, w, row);
    }
    row->is_here = works(candidate);
    row->is_broken = candidate->is_broken;
    row->why = candidate->why;
}

/* Shapes of one number of points have to give the same bits. */
static void compare_shapes(struct gpu_align_row *rows, size_t count)
{
    const struct gpu_align_row *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].is_here || !rows[i].is_shape)
            continue;
        first = first ? first : &rows[i];
        rows[i].is_other = rows[i].hash != first->hash;
    }
}

static enum ndt_status measure(struct gpu_aligns *out, struct scene *scene, struct ndt_error *err)
{
    if (out->count + GPU_ALIGN_CHAINS * scene->candidates.count > GPU_ALIGN_ROWS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d rows", GPU_ALIGN_ROWS);
    for (int chain = 0; chain < GPU_ALIGN_CHAINS; chain++) {
        struct gpu_align_row *rows = &out->rows[out->count];
        struct ndt_align_params params;
        set_params(&params, (enum gpu_align_chain)chain);
        for (size_t w = 0; w < scene->candidates.count; w++)
            scene->samples[w].evaluations = 0;
        align_all(scene, &params);
        for (size_t w = 0; w < scene->candidates.count; w++)
            fill_row(&out->rows[out->count++], scene, w, (enum gpu_align_chain)chain);
        compare_shapes(rows, scene->candidates.count);
    }
    return NDT_OK;
}

static enum ndt_status prepare(struct scene *scene, struct ndt_error *err)
{
    const size_t starts = (size_t)scene->request->starts;
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; i < GPU_ALIGN_SCANS; i++)
        ndt_cloud_init(&scene->scans[i]);
    for (size_t i = 0; status == NDT_OK && i < GPU_ALIGN_SCANS; i++)
        status = gpu_drive_scan(&scene->scans[i], &scene->truths[i], 20 * i, scene->request->points, err);
    for (size_t w = 0; status == NDT_OK && w < GPU_CANDIDATES; w++) {
        struct sample *sample = &scene->samples[w];
        sample->align_us = calloc(starts, sizeof(double));
        sample->upload_us = calloc(starts, sizeof(double));
        sample->kernel_us = calloc(starts, sizeof(double));
        sample->poses = calloc(starts, sizeof(*sample->poses));
        if (!sample->align_us || !sample->upload_us || !sample->kernel_us || !sample->poses)
            status = ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu starts", starts);
    }
    return status;
}

static void free_scene(struct scene *scene)
{
    for (size_t w = 0; w < GPU_CANDIDATES; w++) {
        free(scene->samples[w].align_us);
        free(scene->samples[w].upload_us);
        free(scene->samples[w].kernel_us);
        free(scene->samples[w].poses);
    }
    for (size_t i = 0; i < GPU_ALIGN_SCANS; i++)
        ndt_cloud_free(&scene->scans[i]);
}

enum ndt_status gpu_align_run(struct gpu_aligns *out, const struct gpu_align_request *request,
                              struct ndt_error *err)
{
    static struct scene scene;
    if (request->starts < 3 || request->starts > MOST_STARTS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%d starts; 3 to %d are possible", request->starts, MOST_STARTS);
    memset(&scene, 0, sizeof(scene));
    scene.request = request;
    enum ndt_status status = prepare(&scene, err);
    if (status == NDT_OK) {
        const struct gpu_candidates_request candidates = {request->map, request->points, request->threads,
                                                          request->pipeline};
        gpu_candidates_open(&scene.candidates, &candidates);
        status = measure(out, &scene, err);
        gpu_candidates_close(&scene.candidates);
    }
    free_scene(&scene);
    return status;
}

size_t gpu_align_assess(const struct gpu_aligns *all, size_t *bad)
{
    size_t here = 0;
    for (size_t i = 0; i < all->count; i++) {
        here += all->rows[i].is_here && strncmp(all->rows[i].name, "cpu", 3) != 0;
        *bad += all->rows[i].is_broken || all->rows[i].is_other;
    }
    return here;
}
