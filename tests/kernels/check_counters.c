/* What an evaluation costs besides time, on every backend that has pipelines: 24 bytes up in one copy, one row of
 * sums down, one synchronisation, no allocation. A plain program, for the same reasons as check_kernels. Exit: 0 as
 * promised, 1 not, 77 no such backend works here. */
#include <stdio.h>
#include <string.h>

#include "backends.h"
#include "street_world.h"

enum { SCAN_POINTS = 700, EVALUATIONS = 5, SUM_BYTES = 31 * 8, ANGLE_BYTES = 24 };

struct inputs {
    struct ndt_map *map;
    struct ndt_cloud scan;
};

static int expect(const char *who, const char *what, uint64_t is, uint64_t wanted)
{
    const int good = is == wanted;
    printf("%s %s: %s per evaluation: %llu%s\n", good ? "ok  " : "FAIL", who, what, (unsigned long long)is,
           good ? "" : ", expected another number");
    if (!good)
        printf("     expected %llu\n", (unsigned long long)wanted);
    return good;
}

static enum ndt_status make_inputs(struct inputs *in, struct ndt_error *err)
{
    static const double zero[3];
    const struct world world = {WORLD_STREET, 3, 40.0, 0.02};
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    const struct ndt_pose pose = world_pose(&world, 0.5, 0.0);
    ndt_map_config_default(&config);
    ndt_cloud_init(&cloud);
    enum ndt_status status = world_map(&cloud, &world, 20000, zero, err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(&in->map, &config, &cloud, err);
    if (status == NDT_OK)
        status = world_scan(&in->scan, &world, 1, SCAN_POINTS, &pose, 20.0, err);
    ndt_cloud_free(&cloud);
    return status;
}

/* Evaluations at poses and levels that change, as an optimiser does it. */
static enum ndt_status evaluate(struct ndt_backend *backend, const struct inputs *in, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < EVALUATIONS; i++) {
        struct ndt_eval sums;
        const struct ndt_eval_request request = {.level = i % (int)in->map->level_count,
                                                 .neighbours = i % 2 ? NDT_RADIUS : NDT_DIRECT7,
                                                 .p = {20.0 + 0.1 * i, 0.4, 2.1, 0.01 * i, 0.0, 0.02}};
        status = backend->ops->eval(backend, &request, &sums, err);
        if (status == NDT_OK && !(sums.pairs > 0))
            status = ndt_fail(err, NDT_ERR_DEVICE, "an evaluation without pairs");
    }
    return status;
}

static int compare(const char *who, const struct ndt_backend_counters *before,
                   const struct ndt_backend_counters *after, uint64_t launches)
{
    int good = expect(who, "evaluations", after->evaluations - before->evaluations, EVALUATIONS);
    good &= expect(who, "bytes up", (after->h2d_bytes - before->h2d_bytes) / EVALUATIONS, ANGLE_BYTES);
    good &= expect(who, "bytes up, remainder", (after->h2d_bytes - before->h2d_bytes) % EVALUATIONS, 0);
    good &= expect(who, "copies up", (after->h2d_copies - before->h2d_copies) / EVALUATIONS, 1);
    good &= expect(who, "bytes down", (after->d2h_bytes - before->d2h_bytes) / EVALUATIONS, SUM_BYTES);
    good &= expect(who, "copies down", (after->d2h_copies - before->d2h_copies) / EVALUATIONS, 1);
    good &= expect(who, "launches", (after->launches - before->launches) / EVALUATIONS, launches);
    good &= expect(who, "synchronisations", (after->synchronisations - before->synchronisations) / EVALUATIONS, 1);
    good &= expect(who, "allocations", after->allocations - before->allocations, 0);
    return good & expect(who, "kernel time missing", after->kernel_us > before->kernel_us ? 0 : 1, 0);
}

/* A second scan and the same map again must not allocate or upload the map either. */
static int check_warm(struct ndt_backend *backend, const struct inputs *in, const char *who)
{
    struct ndt_backend_counters before, after;
    struct ndt_error err = {""};
    backend->ops->counters(backend, &before);
    if (backend->ops->set_map(backend, in->map, &err) != NDT_OK ||
        backend->ops->set_scan(backend, &in->scan, &err) != NDT_OK) {
        printf("FAIL %s: %s\n", who, err.text);
        return 0;
    }
    backend->ops->counters(backend, &after);
    const uint64_t up = after.h2d_bytes - before.h2d_bytes;
    int good =
        expect(who, "allocations for the same map and another scan", after.allocations - before.allocations, 0);
    good &= expect(who, "copies for them", after.h2d_copies - before.h2d_copies, 1);
    return good & expect(who, "bytes beyond a padded scan", up > 12 * (SCAN_POINTS + 128) ? up : 0, 0);
}

/* Not judged, but they have to come out: they are what ndt-bench shows. */
static int check_overheads(struct ndt_backend *backend, const char *who)
{
    struct ndt_overheads cost;
    struct ndt_error err = {""};
    if (!backend->ops->overheads || backend->ops->overheads(backend, 51, &cost, &err) != NDT_OK) {
        printf("FAIL %s: overheads: %s\n", who, err.text);
        return 0;
    }
    printf("     %s: copies %.2f us, an empty launch %.2f us (%.2f us to queue it), an idle wait %.2f us\n", who,
           cost.copies_us, cost.launch_us, cost.queue_us, cost.synchronise_us);
    return cost.launch_us >= cost.queue_us;
}

static int check_pipeline(const struct ndt_backend_ops *ops, const char *pipeline, const struct inputs *in)
{
    struct ndt_backend_config config;
    struct ndt_backend *backend;
    struct ndt_backend_counters before, after;
    struct ndt_error err = {""};
    char who[64];
    snprintf(who, sizeof(who), "%s %s", ops->name, pipeline);
    ndt_backend_config_default(&config);
    config.pipeline = pipeline;
    enum ndt_status status = ops->open(&backend, &config, &err);
    if (status != NDT_OK) {
        printf("FAIL %s: %s\n", who, err.text);
        return 0;
    }
    status = ops->set_map(backend, in->map, &err);
    if (status == NDT_OK)
        status = ops->set_scan(backend, &in->scan, &err);
    ops->counters(backend, &before);
    if (status == NDT_OK)
        status = evaluate(backend, in, &err);
    ops->counters(backend, &after);
    int good = status == NDT_OK;
    if (!good)
        printf("FAIL %s: %s\n", who, err.text);
    else
        good =
            compare(who, &before, &after, strcmp(pipeline, "staged") == 0 ? 5 : 1) & check_warm(backend, in, who);
    if (good)
        good = check_overheads(backend, who);
    ops->close(backend);
    return good;
}

int main(void)
{
    struct inputs in = {.map = NULL};
    struct ndt_error err = {""};
    int bad = 0, ran = 0;
    ndt_cloud_init(&in.scan);
    if (make_inputs(&in, &err) != NDT_OK) {
        printf("FAIL: %s\n", err.text);
        bad = 1;
    }
    const struct ndt_backend_ops *ops;
    for (size_t i = 0; !bad && (ops = ndt_backend_at(i)); i++) {
        if (!ops->pipelines)
            continue;
        if (ops->probe(&err) != NDT_OK) {
            printf("skipped: %s: %s\n", ops->name, err.text);
            continue;
        }
        for (const char *const *name = ops->pipelines; *name; name++, ran++)
            bad += !check_pipeline(ops, *name, &in);
    }
    ndt_map_release(in.map);
    ndt_cloud_free(&in.scan);
    if (!bad && !ran)
        printf("no backend with pipelines works here\n");
    return bad ? 1 : ran ? 0 : 77;
}
