/** @file
 * @brief Checks the cost of an evaluation and a solve apart from time, on every backend that has pipelines.
 *
 * An evaluation: 24 bytes up with its launch, one row of sums down, written by the kernel, one synchronisation, no
 * copy, no allocation. The information of a scan: the same with one launch more and four rows. A device that cannot
 * write memory of the host (NDT_EMULATION_MAPPED=0) copies the sums. The clock runs only on request. A solve that
 * stays on the device: the same for any number of iterations, points and alignments; the information at its answer
 * costs one launch more and no copy; a single alignment by a team needs no copy at all. Times of points go up with
 * the points. A case is named BACKEND/PIPELINE; it is skipped where no such backend works. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align_state.h"
#include "backends.h"
#include "check_harness.h"
#include "solve_cases.h"
#include "street_world.h"

enum { SCAN_POINTS = 400, EVALUATIONS = 5, SUM_BYTES = 31 * 8, INFORMATION_BYTES = 4 * 32 * 8, ANGLE_BYTES = 24 };

static int has_clock; /* the backend measures the time of its kernels */

/* Whether kernels write memory of the host. Every device can, unless the emulation is told otherwise. */
static int can_map(void)
{
    const char *text = getenv("NDT_EMULATION_MAPPED");
    return !text || strcmp(text, "0") != 0;
}

struct inputs {
    struct ndt_map *map;
    struct ndt_cloud scan, timed; /* the same points without and with times */
};

static int expect(const char *who, const char *what, uint64_t is, uint64_t wanted)
{
    char text[64] = "";
    snprintf(text, sizeof(text), is == wanted ? "%llu" : "%llu, expected %llu", (unsigned long long)is,
             (unsigned long long)wanted);
    char line[160];
    snprintf(line, sizeof(line), "%s: %s", who, what);
    check_expect(is == wanted, line, text);
    return is == wanted;
}

static enum ndt_status make_inputs(struct inputs *in, struct ndt_error *err)
{
    const struct world world = {WORLD_STREET, 3, 40.0, 0.02};
    const struct ndt_pose pose = world_pose(&world, 0.5, 0.0);
    enum ndt_status status = world_build_map(&in->map, &world, 20000, err);
    if (status == NDT_OK)
        status = world_scan(&in->scan, &world, 1, SCAN_POINTS, &pose, 20.0, err);
    if (status == NDT_OK)
        status = ndt_cloud_copy(&in->timed, &in->scan, err);
    if (status == NDT_OK)
        status = ndt_cloud_reserve(&in->timed, SCAN_POINTS, NDT_CLOUD_TIME, err);
    for (size_t i = 0; status == NDT_OK && i < SCAN_POINTS; i++)
        in->timed.time_s[i] = 0.1f * (float)i / SCAN_POINTS - 0.05f;
    return status;
}

/* Evaluations at poses and levels that change, as an optimiser does it. */
static enum ndt_status evaluate(struct ndt_backend *backend, const struct inputs *in, int wants_information,
                                struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < EVALUATIONS; i++) {
        struct ndt_information out;
        const struct ndt_eval_request request = {.level = i % (int)in->map->level_count,
                                                 .neighbours = i % 2 ? NDT_RADIUS : NDT_DIRECT7,
                                                 .p = {20.0 + 0.1 * i, 0.4, 2.1, 0.01 * i, 0.0, 0.02}};
        status = wants_information ? backend->ops->inform(backend, &request, &out, err)
                                   : backend->ops->eval(backend, &request, &out.eval, err);
        if (status == NDT_OK && !(out.eval.pairs > 0))
            status = ndt_fail(err, NDT_ERR_DEVICE, "an evaluation without pairs");
    }
    return status;
}

static int compare(const char *who, const struct ndt_backend_counters *before,
                   const struct ndt_backend_counters *after, uint64_t launches, uint64_t bytes_down)
{
    int good = expect(who, "evaluations", after->evaluations - before->evaluations, EVALUATIONS);
    good &= expect(who, "bytes up", (after->h2d_bytes - before->h2d_bytes) / EVALUATIONS, ANGLE_BYTES);
    good &= expect(who, "bytes up, remainder", (after->h2d_bytes - before->h2d_bytes) % EVALUATIONS, 0);
    good &= expect(who, "copies up", after->h2d_copies - before->h2d_copies, 0);
    good &= expect(who, "bytes down", (after->d2h_bytes - before->d2h_bytes) / EVALUATIONS, bytes_down);
    good &= expect(who, "bytes down, remainder", (after->d2h_bytes - before->d2h_bytes) % EVALUATIONS, 0);
    good &= expect(who, "copies down", after->d2h_copies - before->d2h_copies, can_map() ? 0 : EVALUATIONS);
    good &= expect(who, "launches", (after->launches - before->launches) / EVALUATIONS, launches);
    good &= expect(who, "synchronisations", (after->synchronisations - before->synchronisations) / EVALUATIONS, 1);
    good &= expect(who, "allocations", after->allocations - before->allocations, 0);
    return good & expect(who, "kernel time", after->kernel_us > before->kernel_us, (uint64_t)has_clock);
}

/* A second scan and the same map again must not allocate or upload the map either. */
static int check_warm(struct ndt_backend *backend, struct ndt_map *map, const struct ndt_cloud *scan,
                      const char *who)
{
    struct ndt_backend_counters before, after;
    struct ndt_error err = {""};
    const size_t columns = scan->time_s ? 4 : 3;
    backend->ops->counters(backend, &before);
    if (backend->ops->set_map(backend, map, &err) != NDT_OK ||
        backend->ops->set_scan(backend, scan, &err) != NDT_OK)
        return check_fail("%s: %s", who, err.text);
    backend->ops->counters(backend, &after);
    const uint64_t up = after.h2d_bytes - before.h2d_bytes;
    int good =
        expect(who, "allocations for the same map and another scan", after.allocations - before.allocations, 0);
    good &= expect(who, "copies for them", after.h2d_copies - before.h2d_copies, 1);
    return good & expect(who, "bytes beyond a padded scan", up > 4 * columns * (SCAN_POINTS + 128) ? up : 0, 0);
}

/* ---- solves ---- */

enum { FEW_POINTS = 250, BATCH = 3, MANY = 12, KEPT_ROWS = 40, CONTROL_BYTES = 256 };

/* Launches of a solve of one item or a batch; 0: as many as its iterations need. Each has one wait, one copy up and
 * one down; a team needs no copies for one item, which is an argument of its kernel and comes back in memory of the
 * host. */
static const struct solve_demand {
    const char *pipeline;
    uint64_t launches;
    int has_teams;
} solve_costs[] = {
    {"resident", 1, 1},       {"resident-block", 1, 1}, {"resident-cluster", 1, 1},
    {"resident-graph", 1, 0}, {"resident-chain", 0, 0},
};

static struct ndt_backend_counters minus(const struct ndt_backend_counters *a, const struct ndt_backend_counters *b)
{
    return (struct ndt_backend_counters){.evaluations = a->evaluations - b->evaluations,
                                         .h2d_bytes = a->h2d_bytes - b->h2d_bytes,
                                         .d2h_bytes = a->d2h_bytes - b->d2h_bytes,
                                         .launches = a->launches - b->launches,
                                         .synchronisations = a->synchronisations - b->synchronisations,
                                         .allocations = a->allocations - b->allocations,
                                         .h2d_copies = a->h2d_copies - b->h2d_copies,
                                         .d2h_copies = a->d2h_copies - b->d2h_copies,
                                         .kernel_us = a->kernel_us - b->kernel_us};
}

/* The cost of set_scans and solve, and the number of evaluations. */
struct solve_cost {
    struct ndt_backend_counters scans, solve;
    uint64_t evaluations;
};

struct kind {
    size_t points;
    int iterations, with_scan, wants_information;
};

/* `count` alignments of one scan, from guesses that need different numbers of iterations. */
static int solve(struct ndt_backend *backend, const struct inputs *in, size_t count, const struct kind *kind,
                 struct solve_cost *out)
{
    static struct ndt_newton_row rows[BATCH][KEPT_ROWS];
    struct ndt_solve_item items[BATCH] = {{.scan = 0}};
    struct ndt_align_params params;
    struct ndt_newton_rules rules;
    struct ndt_backend_counters first, second, third;
    struct ndt_error err = {""};
    struct ndt_cloud scan = kind->wants_information ? in->timed : in->scan;
    scan.count = kind->points;
    ndt_align_params_default(&params);
    params.max_iterations = kind->iterations;
    enum ndt_status status = ndt_rules_from(&rules, &params, in->map, &err);
    rules.wants_information = kind->wants_information;
    for (size_t i = 0; i < count; i++) {
        const double p[6] = {20.0 + 0.1 * (double)i, 0.4, 2.1, 0.02, -0.02, 0.01 * (double)i};
        const struct ndt_pose guess = ndt_pose_from_euler(p);
        solve_start(&items[i].newton, NDT_ROBUST, &guess, in->map, &scan);
        items[i].row_capacity = KEPT_ROWS;
        items[i].rows = rows[i];
    }
    backend->ops->counters(backend, &first);
    if (status == NDT_OK && kind->with_scan)
        status = backend->ops->set_scans(backend, (const struct ndt_cloud *const[]){&scan}, 1, &err);
    backend->ops->counters(backend, &second);
    if (status == NDT_OK)
        status = backend->ops->solve(backend, &rules, items, count, 0, &err);
    backend->ops->counters(backend, &third);
    *out = (struct solve_cost){minus(&second, &first), minus(&third, &second), 0};
    for (size_t i = 0; i < count; i++)
        out->evaluations += (uint64_t)items[i].newton.evaluations;
    return status == NDT_OK || check_fail("%s", err.text);
}

static int compare_solve(const char *who, const struct solve_cost *cost, const struct solve_demand *wanted,
                         size_t count, int wants_information)
{
    const uint64_t launched = wanted->launches ? wanted->launches : cost->solve.synchronisations;
    const uint64_t copies = wanted->has_teams && count == 1 && can_map() ? 0 : launched;
    int good =
        expect(who, "launches of a solve", cost->solve.launches, wants_information ? 2 * launched : launched);
    good &= expect(who, "synchronisations of a solve", cost->solve.synchronisations, launched);
    good &= expect(who, "copies up of a solve", cost->solve.h2d_copies, copies);
    good &= expect(who, "copies down of a solve", cost->solve.d2h_copies, copies);
    good &= expect(who, "allocations of a solve", cost->solve.allocations, 0);
    good &= expect(who, "evaluations counted in a solve", cost->solve.evaluations, cost->evaluations);
    return good & expect(who, "kernel time of a solve", cost->solve.kernel_us > 0, (uint64_t)has_clock);
}

/* The points of a scan go up once, when they are given. */
static int compare_scans(const char *who, const struct solve_cost *cost, size_t points, int with_times)
{
    const uint64_t bytes = (with_times ? 16 : 12) * ((points + 127) / 128 * 128);
    int good = expect(who, "bytes up of a scan", cost->scans.h2d_bytes, bytes);
    good &= expect(who, "copies up of a scan", cost->scans.h2d_copies, 1);
    good &= expect(who, "synchronisations of a scan", cost->scans.synchronisations, 0);
    good &= expect(who, "launches of a scan", cost->scans.launches, 0);
    return good & expect(who, "allocations of a scan", cost->scans.allocations, 0);
}

/* `count` alignments at once: with few and many iterations, few and many points, the scan given before or anew. */
static int check_solver(struct ndt_backend *backend, const struct inputs *in, const char *who, size_t count,
                        const struct solve_demand *wanted)
{
    static const struct kind kinds[] = {
        {SCAN_POINTS, MANY, 1, 0}, {SCAN_POINTS, MANY, 0, 0}, {SCAN_POINTS, 2, 0, 0},   {SCAN_POINTS, MANY, 1, 0},
        {FEW_POINTS, MANY, 1, 0},  {SCAN_POINTS, MANY, 1, 1}, {SCAN_POINTS, MANY, 0, 1}};
    enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), LAST = KINDS - 1 };
    struct solve_cost cost[KINDS], warm;
    int good = solve(backend, in, count, &kinds[0], &warm) && solve(backend, in, count, &kinds[KINDS - 3], &warm);
    for (int i = 0; i < KINDS && good; i++) {
        const struct kind *kind = &kinds[i];
        good = solve(backend, in, count, kind, &cost[i]) &&
               compare_solve(who, &cost[i], wanted, count, kind->wants_information);
        if (good && kind->with_scan)
            good = compare_scans(who, &cost[i], kind->points, kind->wants_information);
    }
    if (!good)
        return 0;
    good = expect(who, "iterations that make no difference", cost[1].evaluations > cost[2].evaluations, 1);
    for (int i = 1; i < KINDS; i++) { /* a launch more costs no more than a few words to control it */
        const uint64_t more = (cost[i].solve.synchronisations - 1) * CONTROL_BYTES;
        const uint64_t up = cost[i].solve.h2d_bytes, least = cost[2].solve.h2d_bytes;
        good &= wanted->launches ? expect(who, "bytes up of a solve", up, cost[0].solve.h2d_bytes)
                                 : expect(who, "bytes up of a solve, beyond", up > least + more ? up : 0, 0);
    }
    return good & expect(who, "bytes down for information", cost[LAST].solve.d2h_bytes - cost[1].solve.d2h_bytes,
                         cost[LAST].solve.synchronisations * count * INFORMATION_BYTES);
}

static int check_all_solves(struct ndt_backend *backend, const struct inputs *in, const char *pipeline,
                            const char *who)
{
    if (!backend->ops->solve_limit || backend->ops->solve_limit(backend) == 0)
        return 1;
    for (size_t i = 0; i < sizeof(solve_costs) / sizeof(solve_costs[0]); i++) {
        if (strcmp(solve_costs[i].pipeline, pipeline) != 0)
            continue;
        char batch[80];
        snprintf(batch, sizeof(batch), "%s, batch of %d", who, BATCH);
        return check_solver(backend, in, who, 1, &solve_costs[i]) &&
               check_solver(backend, in, batch, BATCH, &solve_costs[i]);
    }
    return check_fail("%s: solves alignments, but their cost is not in the table", who);
}

/* The values are not limited: ndt-bench shows them. */
static int check_overheads(struct ndt_backend *backend, const char *who)
{
    struct ndt_overheads cost;
    struct ndt_error err = {""};
    if (!backend->ops->overheads || backend->ops->overheads(backend, 51, &cost, &err) != NDT_OK)
        return check_fail("%s: overheads: %s", who, err.text);
    printf("     %s: copies %.2f us, an empty launch %.2f us (%.2f us to queue it), an idle wait %.2f us\n", who,
           cost.copies_us, cost.launch_us, cost.queue_us, cost.synchronise_us);
    printf("     %s: the scan into pinned memory %.2f us, to the device %.2f us, straight to it %.2f us\n", who,
           cost.stage_us, cost.upload_us, cost.pageable_us);
    return cost.launch_us >= cost.queue_us || check_fail("%s: a launch takes less time than queueing it", who);
}

/* Evaluations, or the information at their poses. */
static int check_evaluations(struct ndt_backend *backend, const struct inputs *in, int wants_information,
                             uint64_t launches, const char *who)
{
    struct ndt_backend_counters before, after;
    struct ndt_error err = {""};
    backend->ops->counters(backend, &before);
    if (evaluate(backend, in, wants_information, &err) != NDT_OK)
        return check_fail("%s: %s", who, err.text);
    backend->ops->counters(backend, &after);
    return compare(who, &before, &after, launches, wants_information ? INFORMATION_BYTES : SUM_BYTES);
}

static int check_all_evaluations(struct ndt_backend *backend, const struct inputs *in, const char *pipeline,
                                 const char *who)
{
    struct ndt_error err = {""};
    char information[80];
    const uint64_t launches = strcmp(pipeline, "staged") == 0 ? 5 : 1;
    snprintf(information, sizeof(information), "%s, information", who);
    if (backend->ops->set_map(backend, in->map, &err) != NDT_OK ||
        backend->ops->set_scan(backend, &in->scan, &err) != NDT_OK)
        return check_fail("%s: %s", who, err.text);
    return check_evaluations(backend, in, 0, launches, who) & check_warm(backend, in->map, &in->scan, who) &
           check_warm(backend, in->map, &in->timed, information) &
           check_evaluations(backend, in, 1, launches + 1, information);
}

static void check_pipeline(const struct ndt_backend_ops *ops, const char *pipeline, const char *who,
                           const struct inputs *in)
{
    struct ndt_backend_config config;
    struct ndt_backend *backend;
    struct ndt_error err = {""};
    ndt_backend_config_default(&config);
    config.pipeline = pipeline;
    config.kernel_times = has_clock;
    if (ops->open(&backend, &config, &err) != NDT_OK) {
        check_fail("%s: %s", who, err.text);
        return;
    }
    if (check_all_evaluations(backend, in, pipeline, who))
        (void)(check_overheads(backend, who) & check_all_solves(backend, in, pipeline, who));
    backend->ops->close(backend);
}

int main(int argc, char **argv)
{
    struct inputs in = {.map = NULL};
    struct ndt_error err = {""};
    const struct ndt_backend_ops *ops;
    int ran = 0;
    check_start(argc, argv, NULL);
    ndt_cloud_init(&in.scan);
    ndt_cloud_init(&in.timed);
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++) {
        if (!ops->pipelines)
            continue;
        if (ops->probe(0, &err) != NDT_OK) {
            printf("skipped: %s: %s\n", ops->name, err.text);
            continue;
        }
        if (!in.map && make_inputs(&in, &err) != NDT_OK) {
            check_fail("%s", err.text);
            break;
        }
        for (const char *const *name = ops->pipelines; *name; name++) {
            char who[64];
            snprintf(who, sizeof(who), "%s/%s", ops->name, *name);
            if (!check_begin(who))
                continue;
            for (has_clock = 0; has_clock < 2; has_clock++)
                check_pipeline(ops, *name, who, &in);
            ran++;
        }
    }
    ndt_map_release(in.map);
    ndt_cloud_free(&in.scan);
    ndt_cloud_free(&in.timed);
    return check_finish(ran);
}
