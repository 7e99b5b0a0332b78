/** @file
 * @brief guard_launches CASE FOLDER [POINTS]: records launches of kernels on the emulated device, for the
 * interpreter of tools/dev/sass-guard/sass-guard: with the arguments and all memory of the device before and after.
 *
 * The backend's own host code prepares the inputs, so they follow every change of it. Linked with
 * --wrap for the functions of the emulation that run kernels and allocate. FOLDER/N.launch, a text: kernel, blocks,
 * threads, blocks of a cluster, and one line per allocation: its address, bytes, offset in N.before and N.after. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align_state.h"
#include "backends.h"
#include "emulated_device.h"
#include "emulated_grid.h"
#include "ndt/align.h"
#include "solve_cases.h"
#include "street_world.h"

enum { MOST_ALLOCATIONS = 256, ROWS = 64 };

static struct {
    const char *folder, *kernel; /* NULL: nothing is recorded */
    int launches, most;
    int allocations;
    struct {
        const char *memory;
        size_t bytes;
    } at[MOST_ALLOCATIONS];
} record;

void *__real_emulated_allocate(size_t bytes, enum emulated_memory kind);
void __real_emulated_release(void *memory, enum emulated_memory kind);
void __real_emulated_run(const struct emulated_launch *launch);
/* Trees without registered memory lack these two. */
cudaError_t __real_emulated_register(void *memory, size_t bytes) __attribute__((weak));
cudaError_t __real_emulated_unregister(void *memory) __attribute__((weak));
void *__wrap_emulated_allocate(size_t bytes, enum emulated_memory kind);
void __wrap_emulated_release(void *memory, enum emulated_memory kind);
void __wrap_emulated_run(const struct emulated_launch *launch);
cudaError_t __wrap_emulated_register(void *memory, size_t bytes);
cudaError_t __wrap_emulated_unregister(void *memory);

static void stop(const char *what)
{
    fprintf(stderr, "guard_launches: %s\n", what);
    exit(1);
}

static void add_memory(const void *memory, size_t bytes)
{
    if (record.allocations == MOST_ALLOCATIONS)
        stop("too many allocations");
    record.at[record.allocations].memory = memory;
    record.at[record.allocations++].bytes = bytes;
}

static void remove_memory(const void *memory)
{
    for (int i = 0; i < record.allocations; i++)
        if (record.at[i].memory == (const char *)memory)
            record.at[i--] = record.at[--record.allocations];
}

void *__wrap_emulated_allocate(size_t bytes, enum emulated_memory kind)
{
    void *memory = __real_emulated_allocate(bytes, kind);
    if (memory)
        add_memory(memory, bytes);
    return memory;
}

void __wrap_emulated_release(void *memory, enum emulated_memory kind)
{
    remove_memory(memory);
    __real_emulated_release(memory, kind);
}

cudaError_t __wrap_emulated_register(void *memory, size_t bytes)
{
    const cudaError_t code = __real_emulated_register(memory, bytes);
    if (code == cudaSuccess)
        add_memory(memory, bytes);
    return code;
}

cudaError_t __wrap_emulated_unregister(void *memory)
{
    remove_memory(memory);
    return __real_emulated_unregister(memory);
}

static FILE *open_file(const char *suffix)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%d.%s", record.folder, record.launches, suffix);
    FILE *file = fopen(path, "wb");
    if (!file)
        stop(path);
    return file;
}

static void write_memory(const char *suffix)
{
    FILE *file = open_file(suffix);
    for (int i = 0; i < record.allocations; i++)
        if (fwrite(record.at[i].memory, 1, record.at[i].bytes, file) != record.at[i].bytes)
            stop("the memory could not be written");
    if (fclose(file) != 0)
        stop("the memory could not be written");
}

static void write_hex(FILE *file, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        fprintf(file, "%02x", ((const unsigned char *)data)[i]);
}

static void write_launch(const struct emulated_launch *launch, const char *kernel)
{
    FILE *file = open_file("launch");
    fprintf(file, "%s %u %u %u\n", kernel, launch->grid.x, launch->block.x, launch->cluster);
    write_hex(file, &launch->job, sizeof(launch->job));
#ifdef NDT_GUARD_SINGLE /* the tree has kernels with a second argument */
    if (launch->has_single)
        write_hex(file, &launch->single, sizeof(launch->single));
#endif
    fprintf(file, "\n");
    size_t offset = 0;
    for (int i = 0; i < record.allocations; i++) {
        fprintf(file, "%llu %zu %zu\n", (unsigned long long)(uintptr_t)record.at[i].memory, record.at[i].bytes,
                offset);
        offset += record.at[i].bytes;
    }
    if (fclose(file) != 0)
        stop("the launch could not be written");
}

void __wrap_emulated_run(const struct emulated_launch *launch)
{
    Dl_info info;
    const char *name = dladdr(launch->kernel, &info) && info.dli_sname ? info.dli_sname : "unknown";
    if (!record.kernel || strncmp(name, record.kernel, strlen(record.kernel)) != 0 ||
        record.launches == record.most) {
        __real_emulated_run(launch);
        return;
    }
    write_launch(launch, name);
    write_memory("before");
    __real_emulated_run(launch);
    write_memory("after");
    record.launches++;
}

/* ---- cases ---- */

struct guard_launch_case {
    const char *name, *pipeline, *kernel;
    size_t points;
    int most;      /* launches to record */
    int is_solve;  /* a whole alignment; else one evaluation */
    int is_inform; /* the information at a pose */
    int is_scores; /* the scores of two poses */
};

static const struct guard_launch_case cases[] = {
    {"evaluate_256", "fused", "ndt_fused", 256, 1, 0, 0, 0},
    {"evaluate_20000", "fused", "ndt_fused", 20000, 1, 0, 0, 0},
    {"evaluate_100000", "fused", "ndt_fused", 100000, 1, 0, 0, 0},
    {"inform_256", "fused", "ndt_inform", 256, 1, 0, 1, 0},
    {"staged_256", "staged", "ndt_", 256, 5, 0, 0, 0},
    {"block_0", "resident-block", "ndt_resident_", 0, 1, 1, 0, 0},
    {"block_100", "resident-block", "ndt_resident_", 100, 1, 1, 0, 0},
    {"cluster_0", "resident-cluster", "ndt_resident_", 0, 1, 1, 0, 0},
    {"cluster_260", "resident-cluster", "ndt_resident_", 260, 1, 1, 0, 0},
    {"graph_0", "resident-graph", "ndt_resident_", 0, 1, 1, 0, 0},
#ifdef NDT_GUARD_SCORES
    {"scores_256", "fused", "ndt_score_", 256, 1, 0, 0, 1},
#endif
};

struct inputs {
    struct ndt_map *map;
    struct ndt_cloud scan;
};

static enum ndt_status make_inputs(struct inputs *in, size_t points, struct ndt_error *err)
{
    const struct world world = {WORLD_STREET, 3, 40.0, 0.02};
    const struct ndt_pose pose = world_pose(&world, 0.5, 0.0);
    enum ndt_status status = world_build_map(&in->map, &world, 40000, err);
    if (status == NDT_OK)
        status = world_scan(&in->scan, &world, 1, points > 0 ? points : 1, &pose, 20.0, err);
    in->scan.count = points;
    return status;
}

static enum ndt_status evaluate(struct ndt_backend *backend, const struct inputs *in, int is_inform,
                                struct ndt_error *err)
{
    struct ndt_information out;
    const struct ndt_eval_request request = {
        .level = (int)in->map->level_count - 1, .neighbours = NDT_RADIUS, .p = {20.0, 0.1, 2.0, 0.01, 0, 0.02}};
    const enum ndt_status status = backend->ops->set_scan(backend, &in->scan, err);
    if (status != NDT_OK)
        return status;
    return is_inform ? backend->ops->inform(backend, &request, &out, err)
                     : backend->ops->eval(backend, &request, &out.eval, err);
}

static enum ndt_status solve(struct ndt_backend *backend, const struct inputs *in, struct ndt_error *err)
{
    static struct ndt_newton_row rows[ROWS];
    struct ndt_solve_item item = {.scan = 0, .row_capacity = ROWS, .rows = rows};
    const double p[6] = {20.1, 0.3, 2.1, 0.02, -0.02, 0.01};
    const struct ndt_pose guess = ndt_pose_from_euler(p);
    struct ndt_align_params params;
    struct ndt_newton_rules rules;
    ndt_align_params_default(&params);
    params.level_count = 1; /* 1 m, radius */
    params.levels[0] = params.levels[2];
    enum ndt_status status = ndt_rules_from(&rules, &params, in->map, err);
    solve_start(&item.newton, NDT_ROBUST, &guess, in->map, &in->scan);
    if (status == NDT_OK)
        status = backend->ops->set_scans(backend, (const struct ndt_cloud *const[]){&in->scan}, 1, err);
    if (status == NDT_OK)
        status = backend->ops->solve(backend, &rules, &item, 1, 0, err);
    printf("evaluations %d\nanswer", item.newton.evaluations);
    for (int i = 0; i < 6; i++)
        printf(" %a", item.newton.p[i]);
    printf("\n");
    return status;
}

#ifdef NDT_GUARD_SCORES /* the tree has them */
static enum ndt_status score(struct ndt_backend *backend, const struct inputs *in, struct ndt_error *err)
{
    enum { POSES = 2 };
    struct ndt_score_pose poses[POSES] = {0};
    struct ndt_pose_score out[POSES];
    size_t done;
    const struct ndt_score_request request = {
        .level = (int)in->map->level_count - 1, .neighbours = NDT_RADIUS, .count = POSES, .poses = poses};
    for (int i = 0; i < POSES; i++) {
        const double p[6] = {20.0 + 0.2 * i, 0.1 * i, 2.0, 0.01, 0, 0.02 * i};
        const struct ndt_pose pose = ndt_pose_from_euler(p);
        ndt_pose_rotation(&pose, poses[i].R);
        for (int k = 0; k < 3; k++)
            poses[i].t_m[k] = pose.t_m[k];
    }
    const enum ndt_status status = backend->ops->set_scan(backend, &in->scan, err);
    return status == NDT_OK ? backend->ops->score_poses(backend, &request, out, &done, err) : status;
}
#else
static enum ndt_status score(struct ndt_backend *backend, const struct inputs *in, struct ndt_error *err)
{
    (void)backend, (void)in;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "this tree does not score poses");
}
#endif

static enum ndt_status run(const struct guard_launch_case *item, struct ndt_error *err)
{
    struct inputs in = {.map = NULL};
    struct ndt_backend_config config;
    struct ndt_backend *backend = NULL;
    ndt_cloud_init(&in.scan);
    ndt_backend_config_default(&config);
    config.pipeline = item->pipeline;
    config.max_points = item->points > 1024 ? item->points : 1024;
    enum ndt_status status = make_inputs(&in, item->points, err);
    if (status == NDT_OK)
        status = ndt_backend_open(&backend, "cuda-emulated", &config, err);
    if (status == NDT_OK)
        status = backend->ops->set_map(backend, in.map, err);
    record.kernel = item->kernel;
    record.most = item->most;
    if (status == NDT_OK)
        status = item->is_solve    ? solve(backend, &in, err)
                 : item->is_scores ? score(backend, &in, err)
                                   : evaluate(backend, &in, item->is_inform, err);
    record.kernel = NULL;
    if (backend)
        backend->ops->close(backend);
    ndt_map_release(in.map);
    ndt_cloud_free(&in.scan);
    return status;
}

int main(int argc, char **argv)
{
    struct ndt_error err = {""};
    if (argc != 3 && argc != 4)
        return 2;
    record.folder = argv[2];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        struct guard_launch_case item = cases[i];
        if (argc == 4)
            item.points = strtoul(argv[3], NULL, 10);
        if (run(&item, &err) != NDT_OK)
            stop(err.text);
        printf("launches %d\n", record.launches);
        return record.launches > 0 ? 0 : 1;
    }
    stop("there is no such case");
}
