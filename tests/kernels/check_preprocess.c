/** @file
 * @brief Compares preprocessing on a device with ndt_preprocess.
 *
 * Both give the same points, bit for bit and in the same order, for every mode and for clouds with unusual values;
 * the same again with another motion; and the same second moments, added in the order of the lanes. --quick: fewer
 * sizes, and without the case "backend". */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_harness.h"
#include "cuda_preprocess.h"
#include "ndt_cuda/cuda_backend.h"
#include "ndt/preprocess_math.h"
#include "ndt/preprocess.h"
#include "ndt/random.h"

enum { MOST = 20000 };

static struct ndt_error err;
static struct ndt_cuda_device device;
static struct ndt_cuda_plan plan;
static struct ndt_cuda_preprocess preprocess;
static struct ndt_preprocessor *pre;
static struct ndt_preprocess_params params;
static struct ndt_cloud raw;
static float *scan; /* scan in the layout of the device */
static struct ndt_gpu_preprocess_state *state;
static struct ndt_random random_state = {1};
static uint64_t sequence;
static int compared, is_quick;

static void must(enum ndt_status status)
{
    if (status == NDT_OK)
        return;
    fprintf(stderr, "check_preprocess: %s\n", err.text);
    exit(1);
}

static double uniform(double low, double high)
{
    return ndt_random_between(&random_state, low, high);
}

/* ---- clouds ---- */

static void fill_scan(size_t count)
{
    raw.count = count;
    for (size_t i = 0; i < count; i++) {
        const double turn = (double)(i / 16 * 16) / (double)count, azimuth_rad = M_PI - 2 * M_PI * turn;
        const double elevation_rad = -0.4 + 0.03 * (double)(i % 16);
        const double range_m =
            fmin(2 / fmax(1e-3, -sin(elevation_rad)), 8 + 20 * fabs(sin(3 * azimuth_rad))) + uniform(-0.02, 0.02);
        raw.x_m[i] = (float)(range_m * cos(elevation_rad) * cos(azimuth_rad));
        raw.y_m[i] = (float)(range_m * cos(elevation_rad) * sin(azimuth_rad));
        raw.z_m[i] = (float)(range_m * sin(elevation_rad));
        raw.time_s[i] = (float)(0.1 * turn - 0.05);
    }
}

static void fill_box(size_t count, double low_m, double high_m)
{
    raw.count = count;
    for (size_t i = 0; i < count; i++) {
        raw.x_m[i] = (float)uniform(low_m, high_m);
        raw.y_m[i] = (float)uniform(low_m, high_m);
        raw.z_m[i] = (float)uniform(low_m, high_m);
        raw.time_s[i] = (float)uniform(0, 0.1);
    }
}

/* Values that arithmetic trips over, among ordinary ones. */
static void fill_odd(size_t count)
{
    static const float odd[] = {NAN,     INFINITY, -INFINITY, 0,        -0.0f,   FLT_MAX, -FLT_MAX,
                                FLT_MIN, 1e30f,    1e-45f,    2.5e5f,   -1e-40f, 0.5f,    -0.5f,
                                1,       200,      -200,      199.999f, 1e19f};
    fill_box(count, -30, 30);
    for (size_t i = 0; i < count; i++) {
        float *const values[] = {&raw.x_m[i], &raw.y_m[i], &raw.z_m[i], &raw.time_s[i]};
        for (int k = 0; k < 4; k++)
            if (uniform(0, 1) < 0.15)
                *values[k] = odd[(size_t)uniform(0, sizeof(odd) / sizeof(odd[0]))];
    }
}

/* Within a few units in the last place of both ranges, where float cannot tell. */
static void fill_limits(size_t count)
{
    fill_box(count, 0, 1);
    for (size_t i = 0; i < count; i++) {
        const double azimuth_rad = uniform(-M_PI, M_PI),
                     range_m = (i % 2 ? params.min_range_m : params.max_range_m) * (1 + uniform(-3e-7, 3e-7));
        raw.x_m[i] = (float)(range_m * cos(azimuth_rad) * 0.8);
        raw.y_m[i] = (float)(range_m * sin(azimuth_rad) * 0.8);
        raw.z_m[i] = (float)(range_m * 0.6);
    }
}

/* ---- comparing ---- */

static void complain(const char *what, size_t number, double ours, double theirs)
{
    check_fail("%zu raw points, deskew %d, voxel %g, sample %u: %s %zu is %.9g, on the CPU %.9g", raw.count,
               (int)params.deskew, params.voxel_m, params.sample_count, what, number, ours, theirs);
    if (check.failed == 10) {
        printf("FAIL the rest is left out after %zu differences\n", check.failed);
        exit(CHECK_FAILED);
    }
}

/* Columns of the scan on the device, whole blocks each. */
static void compare_scan(const char *what, const struct ndt_cloud *want)
{
    const float *const columns[] = {want->x_m, want->y_m, want->z_m};
    const size_t column = (size_t)state->scan.blocks * NDT_GPU_BLOCK;
    if (state->scan.count != want->count ||
        state->scan.blocks != (want->count ? ndt_cuda_blocks(want->count) : 1)) {
        complain(what, 0, state->scan.count, (double)want->count);
        return;
    }
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < want->count; i++)
            if (memcmp(&scan[k * column + i], &columns[k][i], sizeof(float)) != 0) {
                complain(what, i, (double)scan[k * column + i], (double)columns[k][i]);
                return;
            }
    compared++;
    check_pass();
}

static void compare_moments(const struct ndt_cloud *want)
{
    double lanes[NDT_MOMENT_LANES][7] = {{0}}, sum[7] = {0};
    for (size_t i = 0; i < want->count; i++)
        ndt_moments_add(lanes[i % NDT_MOMENT_LANES], want->x_m[i], want->y_m[i], want->z_m[i]);
    for (int lane = 0; lane < NDT_MOMENT_LANES; lane++)
        for (int i = 0; i < 7; i++)
            sum[i] += lanes[lane][i];
    for (size_t i = 0; i < 6; i++) {
        const double moment = sum[6] > 0 ? sum[i] / sum[6] : 0;
        if (memcmp(&moment, &state->scan.second_m2[i], sizeof(moment)) != 0)
            complain("second moment", i, state->scan.second_m2[i], moment);
    }
}

static void fetch(void)
{
    const struct ndt_gpu_preprocess_state *on_device = (const void *)(preprocess.memory + plan.preprocess_state);
    must(ndt_cuda_download(&device, state, on_device, sizeof(*state), &err));
    must(ndt_cuda_wait(&device, &err));
    const float *from = (const void *)(preprocess.memory + plan.scan);
    const size_t column = (size_t)state->scan.blocks * NDT_GPU_BLOCK, bytes = state->scan.count * sizeof(float);
    for (size_t at = 0; at < 3 * column && bytes > 0; at += column) /* nothing writes what is behind the points */
        must(ndt_cuda_download(&device, scan + at, from + at, bytes, &err));
    must(ndt_cuda_wait(&device, &err));
}

/* A twist whose turning changes by bend_radps2 during the sweep. */
static struct ndt_sweep_motion motion_of(const struct ndt_sweep *sweep, const struct ndt_twist *twist,
                                         double bend_radps2)
{
    struct ndt_sweep_motion motion = {.twist = *twist, .is_piecewise = bend_radps2 != 0};
    for (int i = 0; i <= NDT_PREPROCESS_SEGMENTS; i++) {
        const double t_s = ndt_sweep_boundary_s(sweep, i);
        struct ndt_twist bent = *twist;
        bent.w_radps[2] += bend_radps2 * t_s;
        motion.T_reference_at[i] = ndt_pose_exp(&bent, t_s);
    }
    return motion;
}

static void compare(void)
{
    const struct ndt_twist twist = {{15, -0.5, 0.2}, {0.05, -0.03, 0.8}};
    const struct ndt_twist others[] = {{{14, 0, 0.3}, {0, 0.01, 0.7}}, {{-3, 1, 0}, {0, 0, -0.2}}};
    const double bends_radps2[] = {0, 20};
    const struct ndt_cloud *want;
    struct ndt_preprocess_plan rules;
    struct ndt_sweep sweep;
    if (ndt_preprocess_sweep(&params, &raw, &sweep, &err) != NDT_OK)
        return; /* no point has a time */
    const struct ndt_sweep_motion first = motion_of(&sweep, &twist, sequence % 2 ? -30 : 0);
    must(ndt_preprocess(pre, &params, &raw, &sweep, sequence, &first, &want, &err));
    ndt_preprocess_plan_set(&rules, &params, &sweep, sequence++, &first);
    must(ndt_cuda_preprocess_load(&preprocess, &rules, &raw, &err));
    fetch();
    compare_scan("point", want);
    compare_moments(want);
    for (size_t i = 0; i < 2; i++) { /* each from the points of the first motion */
        const struct ndt_sweep_motion other = motion_of(&sweep, &others[i], bends_radps2[i]);
        must(ndt_preprocess_again(pre, &other, &want, &err));
        ndt_preprocess_plan_set_motion(&rules, &sweep, &first, &other);
        must(ndt_cuda_preprocess_again(&preprocess, &rules, &err));
        fetch();
        compare_scan("point again", want);
        compare_moments(want);
    }
}

static void compare_modes(int thorough)
{
    static const enum ndt_deskew_mode modes[] = {NDT_DESKEW_OFF, NDT_DESKEW_TIME, NDT_DESKEW_AZIMUTH_CW,
                                                 NDT_DESKEW_AZIMUTH_CCW};
    static const double voxels_m[] = {0, 0.5, 0.3};
    static const uint32_t samples[] = {0, 1500, 100, 1};
    for (size_t m = 0; m < 4; m++)
        for (size_t v = 0; v < 3; v++)
            for (size_t s = 0; s < (thorough ? 4 : 2); s++) {
                params.deskew = modes[m];
                params.voxel_m = voxels_m[v];
                params.sample_count = samples[s];
                compare();
            }
}

static void check_scans(void)
{
    static const size_t counts[] = {0, 1, 2, 31, 32, 33, 127, 128, 129, 1000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i += is_quick ? 3 : 1) {
        fill_scan(counts[i]);
        compare_modes(1);
        fill_odd(counts[i]);
        compare_modes(0);
    }
    fill_box(3000, 3.01, 3.29); /* one cell */
    compare_modes(0);
    fill_box(3000, -100, 100); /* a cell per point */
    compare_modes(0);
    fill_box(3000, 0, 1000); /* most points beyond the limits */
    compare_modes(0);
    fill_limits(1000);
    compare_modes(0);
    params.range_offset_m = 0.06;
    fill_scan(1000);
    compare_modes(0);
    params.range_offset_m = -1;
    fill_odd(1000);
    compare_modes(0);
    params.range_offset_m = 0;
    fill_scan(0); /* after others */
    compare_modes(0);
    if (is_quick)
        return;
    fill_scan(MOST);
    compare_modes(0);
}

/* The table is cleared when its rounds have run out. */
static void check_rounds(void)
{
    preprocess.round = UINT32_MAX - 1;
    fill_scan(1000);
    compare_modes(0);
}

/* ---- through the backend: cost and errors ---- */

static void expect(int good, const char *what)
{
    check_expect(good, what, "");
}

/* A plane with a wall, so that an alignment converges. */
static struct ndt_map *make_map(void)
{
    struct ndt_map_config config;
    struct ndt_map *map;
    ndt_map_config_default(&config);
    fill_scan(MOST);
    must(ndt_map_from_cloud(&map, &config, &raw, &err));
    return map;
}

/* The cost of `preprocess`, or with cloud NULL `preprocess_again`, and a solve together. */
static struct ndt_backend_counters cost(struct ndt_backend *backend, const struct ndt_preprocess_plan *rules,
                                        const struct ndt_cloud *cloud, struct ndt_solve_item *item)
{
    const struct ndt_newton_rules newton = {
        .level_count = 1, .max_iterations = 5, .step_limit_m = 1, .step_limit_rad = 0.1, .eigenvalue_floor = 1e-6};
    struct ndt_backend_counters before, after;
    backend->ops->counters(backend, &before);
    must(cloud ? backend->ops->preprocess(backend, rules, cloud, &err)
               : backend->ops->preprocess_again(backend, rules, &err));
    backend->ops->counters(backend, &after);
    expect(after.synchronisations == before.synchronisations && after.d2h_bytes == before.d2h_bytes,
           "preprocessing does not synchronise and downloads nothing");
    *item = (struct ndt_solve_item){.newton = {.R0 = {1, 0, 0, 0, 1, 0, 0, 0, 1}}};
    must(backend->ops->solve(backend, &newton, item, 1, 0, &err));
    backend->ops->counters(backend, &after);
    after.h2d_copies -= before.h2d_copies;
    after.h2d_bytes -= before.h2d_bytes;
    after.d2h_copies -= before.d2h_copies;
    after.d2h_bytes -= before.d2h_bytes;
    after.synchronisations -= before.synchronisations;
    after.launches -= before.launches;
    after.allocations -= before.allocations;
    return after;
}

/* The information at the answer, for the scan that the backend has. */
static struct ndt_information inform(struct ndt_backend *backend)
{
    const struct ndt_newton_rules newton = {.level_count = 1,
                                            .max_iterations = 5,
                                            .step_limit_m = 1,
                                            .step_limit_rad = 0.1,
                                            .eigenvalue_floor = 1e-6,
                                            .wants_information = 1};
    struct ndt_solve_item item = {.newton = {.R0 = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                             .rotation_scale_m = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                             .inverse_rotation_scale = {1, 0, 0, 0, 1, 0, 0, 0, 1}}};
    must(backend->ops->solve(backend, &newton, &item, 1, 0, &err));
    return item.information;
}

/* The times of the sampled points stay on the device; the solve finds them as if they had come with the scan. */
static void check_information(struct ndt_backend *backend, const struct ndt_preprocess_plan *rules,
                              const struct ndt_cloud *want)
{
    must(backend->ops->preprocess(backend, rules, &raw, &err));
    const struct ndt_information first = inform(backend);
    must(backend->ops->preprocess_again(backend, rules, &err)); /* the same motion */
    const struct ndt_information again = inform(backend);
    must(backend->ops->set_scans(backend, &want, 1, &err));
    const struct ndt_information given = inform(backend);
    expect(given.eval.pairs > 0 && given.information[1][0] != 0 && given.time_gradient[0] != 0,
           "the information depends on the times");
    expect(memcmp(&first, &given, sizeof(given)) == 0, "preprocessed on the device it has the same bits");
    expect(memcmp(&again, &given, sizeof(given)) == 0, "moved again too");
}

static void check_cost(struct ndt_backend *backend)
{
    struct ndt_preprocess_plan rules;
    struct ndt_solve_item item;
    const struct ndt_cloud *want;
    struct ndt_sweep sweep;
    const size_t head = NDT_CUDA_PREPROCESS_HEAD + sizeof(struct ndt_gpu_batch) + sizeof(struct ndt_gpu_item);
    must(ndt_preprocess_sweep(&params, &raw, &sweep, &err));
    must(ndt_preprocess(pre, &params, &raw, &sweep, 5, NULL, &want, &err));
    ndt_preprocess_plan_set(&rules, &params, &sweep, 5, NULL);
    (void)cost(backend, &rules, &raw, &item); /* a graph may be made */
    struct ndt_backend_counters c = cost(backend, &rules, &raw, &item);
    printf(
        "     a scan: %zu points raw, %u matched; up %llu bytes in %llu copies, down %llu in %llu, %llu launches\n",
        raw.count, item.points, (unsigned long long)c.h2d_bytes, (unsigned long long)c.h2d_copies,
        (unsigned long long)c.d2h_bytes, (unsigned long long)c.d2h_copies, (unsigned long long)c.launches);
    expect(item.points == want->count, "the solve reports the number of points");
    expect(item.newton.evaluations > 1, "and has iterated");
    check_information(backend, &rules, want);
    expect(c.h2d_copies == 2 && c.h2d_bytes == head + 4 * (size_t)ndt_cuda_blocks(raw.count) * NDT_GPU_BLOCK * 4,
           "up: the raw scan once, and the items");
    expect(c.d2h_copies == 1 && c.d2h_bytes == sizeof(struct ndt_gpu_item), "down: the result");
    expect(c.synchronisations == 1 && c.launches == 6 && c.allocations == 0,
           "one wait, six launches, no allocation");
    const struct ndt_sweep_motion other = {.twist = {{5, 0, 0}, {0, 0, 0.1}}};
    ndt_preprocess_plan_set_motion(&rules, &sweep, NULL, &other);
    c = cost(backend, &rules, NULL, &item);
    expect(c.h2d_copies == 2 && c.d2h_copies == 1 && c.synchronisations == 1 && c.launches == 3 &&
               c.allocations == 0,
           "again: the new motion and the items up, three launches");
    expect(c.h2d_bytes < 2 * head && item.points == want->count, "again: no points go up");
}

static void check_refusals(struct ndt_backend *backend)
{
    struct ndt_preprocess_plan rules;
    struct ndt_backend_config config;
    struct ndt_backend *without;
    struct ndt_sweep sweep;
    must(ndt_preprocess_sweep(&params, &raw, &sweep, &err));
    ndt_preprocess_plan_set(&rules, &params, &sweep, 5, NULL);
    raw.count = 1001;
    expect(backend->ops->preprocess_limit(backend) == 1000, "the limit is backend.max_points");
    expect(backend->ops->preprocess(backend, &rules, &raw, &err) == NDT_ERR_LIMIT, err.text);
    expect(backend->ops->preprocess_again(backend, &rules, &err) == NDT_ERR_UNSUPPORTED, err.text);
    ndt_backend_config_default(&config);
    config.pipeline = "resident";
    must(ndt_cuda_backend.open(&without, &config, &err));
    expect(without->ops->preprocess_limit(without) == 0, "without cuda.preprocess the limit is 0");
    expect(without->ops->preprocess(without, &rules, &raw, &err) == NDT_ERR_UNSUPPORTED, err.text);
    without->ops->close(without);
}

static void check_backend(void)
{
    if (is_quick)
        return;
    struct ndt_backend_config config;
    struct ndt_backend *backend;
    struct ndt_map *map = make_map();
    ndt_backend_config_default(&config);
    config.pipeline = "resident";
    config.preprocess = 1;
    ndt_preprocess_params_default(&params);
    params.deskew = NDT_DESKEW_TIME;
    must(ndt_cuda_backend.open(&backend, &config, &err));
    must(backend->ops->set_map(backend, map, &err));
    check_cost(backend);
    backend->ops->close(backend);
    config.max_points = 1000;
    must(ndt_cuda_backend.open(&backend, &config, &err));
    check_refusals(backend);
    backend->ops->close(backend);
    ndt_map_release(map);
}

/* ---- the device ---- */

/* 0: there is none. */
static int open_all(void)
{
    void *memory, *pinned, *back;
    const struct ndt_cuda_pipeline *pipeline = ndt_cuda_pipeline_find("resident", NULL);
    struct ndt_cuda_facts facts;
    if (ndt_cuda_facts(&facts, 0, &err) != NDT_OK)
        return 0;
    must(ndt_cuda_device_open(&device, 0, &err));
    ndt_cuda_plan_make(&plan, pipeline, MOST, 1);
    must(ndt_cuda_allocate(&device, &memory, plan.device_bytes, "check_preprocess", &err));
    must(ndt_cuda_allocate_pinned(&device, &pinned, plan.pinned_bytes, "check_preprocess", &err));
    must(ndt_cuda_allocate_pinned(&device, &back, sizeof(*state) + 3 * plan.stride * sizeof(float),
                                  "check_preprocess", &err));
    state = back;
    scan = (float *)(void *)(state + 1);
    preprocess =
        (struct ndt_cuda_preprocess){.device = &device, .layout = &plan, .memory = memory, .pinned = pinned};
    must(ndt_cuda_preprocess_open(&preprocess, &err));
    printf("%s\n", facts.name);
    return 1;
}

int main(int argc, char **argv)
{
    static const struct check_option options[] = {{.name = "--quick", .flag = &is_quick}, {.name = NULL}};
    static const struct check_case cases[] = {{.name = "scans", .run = check_scans},
                                              {.name = "rounds", .run = check_rounds},
                                              {.name = "backend", .run = check_backend},
                                              {.name = NULL}};
    check_start(argc, argv, options);
    if (check.is_list)
        return check_run(cases);
    if (!open_all()) {
        printf("skipped: %s\n", err.text);
        return CHECK_SKIPPED;
    }
    ndt_cloud_init(&raw);
    must(ndt_cloud_reserve(&raw, MOST, NDT_CLOUD_TIME, &err));
    must(ndt_preprocessor_create(&pre, &err));
    ndt_preprocess_params_default(&params);
    const int code = check_run(cases);
    printf("%d scans have the bits of the CPU\n", compared);
    ndt_preprocessor_destroy(pre);
    ndt_cloud_free(&raw);
    ndt_cuda_release(&device, preprocess.memory);
    ndt_cuda_release_pinned(&device, preprocess.pinned);
    ndt_cuda_release_pinned(&device, state);
    ndt_cuda_device_close(&device);
    return code;
}
