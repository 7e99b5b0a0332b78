/** @file
 * @brief Checks every kernel of every backend against a reference that contains no derivative.
 *
 * For each case and plan it compares the 31 sums of eval, and the 100 of inform where the backend has it, with
 * kernel_reference.h within the plan's tolerance (kernel_plan.c), and requires that
 *  - inform gives the bits of eval among its own sums,
 *  - a second evaluation, other numbers of threads and other CPU variants give the same bits,
 *  - scan and map do not change, and nothing is read or written beyond them,
 *  - scores at several poses have the bits of the plain C (kernel_scores.h),
 *  - the points are copied: changing them afterwards changes nothing.
 * Scans above --oracle points (default 1000) are too slow to difference: their score, nearest score and counts
 * and information still come from the reference; their gradients and Hessian come from the `reference` backend,
 * which itself has to pass the smaller sizes, with weights estimated from the first --oracle points. Under an
 * emulator, where long double is slow, use --oracle 33 --largest 129. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_harness.h"
#include "kernel_cases.h"
#include "kernel_plan.h"
#include "kernel_reference.h"
#include "kernel_scores.h"

_Static_assert(sizeof(struct ndt_eval) == KERNEL_SUMS * sizeof(double), "ndt_eval is 31 sums");
_Static_assert(sizeof(struct ndt_information) == KERNEL_ALL * sizeof(double), "ndt_information is 100 sums");

static struct options {
    struct kernel_plan_filter filter;
    uint64_t threads, seed, oracle, largest;
} options = {.seed = 1, .oracle = 1000, .largest = UINT64_MAX};

/* The state of one case while its plans run. */
struct run {
    const struct kernel_case *item;
    struct kernel_inputs inputs;
    struct kernel_expected expected;
    struct kernel_scores scores;
    uint64_t map_hash;
    int has_first; /* sums of the first plan of `first_ops`, which the others must equal */
    const struct ndt_backend_ops *first_ops;
    const char *first_pipeline; /* another pipeline adds in another order: other bits */
    struct ndt_information first;
};

static void element_name(const char *of, int at, char *text, size_t size)
{
    int row = 0;
    while (at >= 6 - row && row < 5)
        at -= 6 - row++;
    snprintf(text, size, "%s[%d][%d]", of, row, row + at);
}

static void sum_name(int i, char *text, size_t size)
{
    static const char *const information[3] = {"information[0]", "information[1]", "information[2]"};
    if (i == KERNEL_SCORE)
        snprintf(text, size, "score");
    else if (i < KERNEL_HESSIAN)
        snprintf(text, size, "gradient[%d]", i - KERNEL_GRADIENT);
    else if (i < KERNEL_NEAREST)
        element_name("hessian", i - KERNEL_HESSIAN, text, size);
    else if (i < KERNEL_TIME_GRADIENT)
        snprintf(text, size, "%s",
                 i == KERNEL_NEAREST   ? "nearest_score"
                 : i == KERNEL_MATCHED ? "matched"
                                       : "pairs");
    else if (i < KERNEL_INFORMATION)
        snprintf(text, size, "time_gradient[%d]", i - KERNEL_TIME_GRADIENT);
    else
        element_name(information[(i - KERNEL_INFORMATION) / 21 % 3], (i - KERNEL_INFORMATION) % 21, text, size);
}

static void start_plan(const struct run *run, const struct kernel_plan *plan)
{
    char threads[24] = "", isa[32] = "";
    if (plan->isa[0]) {
        snprintf(isa, sizeof(isa), " --isa %s", plan->isa);
        snprintf(threads, sizeof(threads), " --threads %d", plan->threads);
    }
    if (plan->pipeline)
        snprintf(isa, sizeof(isa), " --pipeline %s", plan->pipeline);
    check_set_reproduce("  reproduce: check_kernels --backend %s%s%s --seed %llu --case %s\n", plan->ops->name, isa,
                        threads, (unsigned long long)options.seed, run->item->name);
}

static int fail(const struct run *run, struct kernel_plan *plan, const char *what)
{
    char name[64];
    plan->failed++;
    return check_fail("%s, %s: %s", kernel_plan_name(plan, name, sizeof(name)), run->item->name, what);
}

/* A failure of the case itself. */
static int fail_case(const struct run *run, const char *what)
{
    check_set_reproduce("  reproduce: check_kernels --seed %llu --case %s\n", (unsigned long long)options.seed,
                        run->item->name);
    return check_fail("%s: %s", run->item->name, what);
}

static double allowed(const struct run *run, const struct kernel_tolerance *tolerance, int i)
{
    const struct kernel_expected *e = &run->expected;
    long double shift_m = 0.0L;
    for (int k = 0; k < 3 && tolerance->rounds_translation; k++)
        shift_m += fabs(run->inputs.p[k]);
    const long double rounding = tolerance->rtol * e->weight[i] + tolerance->inner_rtol * e->inner[i] +
                                 tolerance->rotation_scale_rtol * (e->rotation_scale[i] + shift_m * e->shift[i]) +
                                 tolerance->normal_rtol * e->normal[tolerance->rounding][i];
    return (double)(tolerance->unit * rounding + e->own[i] + e->slack[tolerance->rounding][i]);
}

static void note_worst(const struct run *run, struct kernel_plan *plan, int i, double part)
{
    if (!(part > plan->worst))
        return;
    char name[32];
    sum_name(i, name, sizeof(name));
    plan->worst = part;
    snprintf(plan->worst_name, sizeof(plan->worst_name), "%s of %s", name, run->item->name);
}

static int sums_close(const struct run *run, struct kernel_plan *plan, const struct ndt_information *sums, int from,
                      int to)
{
    double values[KERNEL_ALL];
    memcpy(values, sums, sizeof(values));
    for (int i = from; i < to; i++) {
        const double expected = (double)run->expected.value[i], limit = allowed(run, plan->tolerance, i);
        const double off = fabs(values[i] - expected);
        if (off <= limit) {
            if (limit > 0 && run->expected.slack[plan->tolerance->rounding][i] == 0)
                note_worst(run, plan, i, off / limit);
            continue;
        }
        char name[32], text[200];
        sum_name(i, name, sizeof(name));
        snprintf(text, sizeof(text), "%s is %.12g, expected %.12g, off by %.3g, allowed %.3g", name, values[i],
                 expected, off, limit);
        return fail(run, plan, text);
    }
    return 1;
}

static void make_request(const struct run *run, struct ndt_eval_request *request)
{
    memset(request, 0, sizeof(*request));
    request->level = run->inputs.level;
    request->neighbours = run->item->neighbours;
    memcpy(request->p, run->inputs.p, sizeof(request->p));
}

static size_t sums_size(int inform)
{
    return inform ? sizeof(struct ndt_information) : sizeof(struct ndt_eval);
}

/* Sums between guard words; those of eval, too, are followed by them. */
static int sum_guarded(struct run *run, struct kernel_plan *plan, int inform, struct ndt_information *out)
{
    struct {
        uint64_t before[8];
        struct ndt_information sums;
        uint64_t after[8];
    } box;
    memset(&box, 0xa5, sizeof(box));
    struct ndt_eval_request request, copy;
    make_request(run, &request);
    copy = request;
    struct ndt_error err = {""};
    const enum ndt_status status = inform ? plan->ops->inform(plan->backend, &request, &box.sums, &err)
                                          : plan->ops->eval(plan->backend, &request, &box.sums.eval, &err);
    if (status != NDT_OK)
        return fail(run, plan, err.text);
    const unsigned char *bytes = (const unsigned char *)&box;
    for (size_t i = 0; i < sizeof(box); i++) {
        const size_t at = i - offsetof(typeof(box), sums);
        if ((i < offsetof(typeof(box), sums) || at >= sums_size(inform)) && bytes[i] != 0xa5)
            return fail(run, plan, "bytes outside of the result were written");
    }
    if (memcmp(&request, &copy, sizeof(request)) != 0)
        return fail(run, plan, "the request was changed");
    *out = box.sums;
    return 1;
}

static int load(struct run *run, struct kernel_plan *plan)
{
    struct ndt_error err = {""};
    if (plan->ops->set_map(plan->backend, run->inputs.map, &err) != NDT_OK ||
        plan->ops->set_scan(plan->backend, &run->inputs.scan.cloud, &err) != NDT_OK)
        return fail(run, plan, err.text);
    if (!guarded_cloud_intact(&run->inputs.scan))
        return fail(run, plan, "set_scan changed the points or bytes around them");
    return 1;
}

static int sums_repeat(struct run *run, struct kernel_plan *plan, int inform, const struct ndt_information *sums)
{
    struct ndt_information again;
    guarded_cloud_spoil(&run->inputs.scan);
    const int evaluated = sum_guarded(run, plan, inform, &again);
    guarded_cloud_restore(&run->inputs.scan);
    if (!evaluated)
        return 0;
    return memcmp(sums, &again, sums_size(inform)) == 0 ||
           fail(run, plan, "a second evaluation, the caller's points overwritten, gives other bits");
}

static int sums_equal_first(struct run *run, struct kernel_plan *plan, const struct ndt_information *sums)
{
    const int same_candidate = run->first_ops == plan->ops && run->first_pipeline == plan->pipeline;
    if (run->has_first && same_candidate && memcmp(sums, &run->first, sums_size(plan->ops->inform != NULL)) != 0)
        return fail(run, plan, "other bits than the first variant and number of threads of this backend");
    if (!same_candidate) {
        run->has_first = 1;
        run->first_ops = plan->ops;
        run->first_pipeline = plan->pipeline;
        run->first = *sums;
    }
    return 1;
}

static int informs(struct run *run, struct kernel_plan *plan, struct ndt_information *sums)
{
    const struct ndt_eval eval = sums->eval;
    if (!sum_guarded(run, plan, 1, sums))
        return 0;
    if (memcmp(&eval, &sums->eval, sizeof(eval)) != 0)
        return fail(run, plan, "inform gives other bits than eval");
    return sums_close(run, plan, sums, KERNEL_SUMS, KERNEL_ALL) && sums_repeat(run, plan, 1, sums);
}

/* Checks the scores of one pipeline, since all share the kernel. */
static int scores(struct run *run, struct kernel_plan *plan, const struct ndt_eval *sums)
{
    char why[256];
    if (!plan->ops->score_poses || (run->has_first && run->first_ops == plan->ops && plan->pipeline))
        return 1;
    return kernel_scores_agree(&run->scores, plan, sums, why, sizeof(why)) || fail(run, plan, why);
}

static int run_plan(struct run *run, struct kernel_plan *plan)
{
    struct ndt_information sums;
    start_plan(run, plan);
    if (!load(run, plan) || !sum_guarded(run, plan, 0, &sums) || !sums_close(run, plan, &sums, 0, KERNEL_SUMS) ||
        !sums_repeat(run, plan, 0, &sums) || !scores(run, plan, &sums.eval))
        return 0;
    if ((plan->ops->inform && !informs(run, plan, &sums)) || !sums_equal_first(run, plan, &sums))
        return 0;
    plan->passed++;
    check_pass();
    return 1;
}

/* Gradients and Hessian of a scan too large to difference: from the product's plain double backend. */
static int borrow_derivatives(struct run *run, struct ndt_backend *assess)
{
    struct ndt_error err = {""};
    struct ndt_eval_request request;
    struct ndt_information sums;
    double values[KERNEL_ALL];
    make_request(run, &request);
    if (assess->ops->set_map(assess, run->inputs.map, &err) != NDT_OK ||
        assess->ops->set_scan(assess, &run->inputs.scan.cloud, &err) != NDT_OK ||
        assess->ops->inform(assess, &request, &sums, &err) != NDT_OK)
        return fail_case(run, err.text);
    memcpy(values, &sums, sizeof(values));
    for (int i = KERNEL_GRADIENT; i < KERNEL_INFORMATION; i++)
        if (i < KERNEL_NEAREST || i >= KERNEL_TIME_GRADIENT)
            run->expected.value[i] = values[i];
    return 1;
}

static int expect(struct run *run, struct ndt_backend *assess)
{
    struct kernel_question question = {.scan = &run->inputs.scan.cloud,
                                       .neighbours = run->item->neighbours,
                                       .exact = run->inputs.exact,
                                       .full_points = options.oracle};
    struct ndt_error err = {""};
    memcpy(question.p, run->inputs.p, sizeof(question.p));
    struct kernel_reference *reference = kernel_reference_create(&run->inputs.map->levels[run->inputs.level]);
    const int done = reference && kernel_reference_eval(reference, &question, &run->expected);
    kernel_reference_destroy(reference);
    if (!done)
        return fail_case(run, "no memory for the reference");
    if (kernel_scores_expect(&run->scores, &run->inputs, run->item->neighbours, &err) != NDT_OK)
        return fail_case(run, err.text);
    return run->expected.derivatives || borrow_derivatives(run, assess);
}

/* A case of which nothing is checked would pass silently. */
static int worth_running(const struct run *run)
{
    const struct kernel_case *item = run->item;
    const int nothing = item->size == 0 || item->map == KERNEL_MAP_EMPTY || item->pose == KERNEL_POSE_AWAY ||
                        item->pose == KERNEL_POSE_BEYOND || item->points == KERNEL_POINTS_OUTSIDE ||
                        item->points == KERNEL_POINTS_HUGE;
    const double pairs = (double)run->expected.value[KERNEL_PAIRS];
    if (nothing ? pairs == 0 : pairs > 0 || item->size == 1)
        return 1;
    return fail_case(run, pairs > 0 ? "the case has pairs, but should have none" : "the case has no pairs");
}

/* Hashes over all cases, to compare machines and builds: equal inputs must give equal sums. */
struct hashes {
    uint64_t inputs, sums;
};

static void hash_inputs(const struct run *run, struct hashes *hashes)
{
    const struct ndt_cloud *scan = &run->inputs.scan.cloud;
    const struct ndt_map_level *level = &run->inputs.map->levels[run->inputs.level];
    const double constants[3] = {level->d1, level->d2, level->leaf_m};
    hashes->inputs = guard_hash(hashes->inputs, &run->map_hash, sizeof(run->map_hash));
    hashes->inputs = guard_hash(hashes->inputs, constants, sizeof(constants));
    hashes->inputs = guard_hash(hashes->inputs, run->inputs.p, sizeof(run->inputs.p));
    hashes->inputs = guard_hash(hashes->inputs, scan->x_m, scan->count * sizeof(float));
    hashes->inputs = guard_hash(hashes->inputs, scan->y_m, scan->count * sizeof(float));
    hashes->inputs = guard_hash(hashes->inputs, scan->z_m, scan->count * sizeof(float));
    if (scan->time_s)
        hashes->inputs = guard_hash(hashes->inputs, scan->time_s, scan->count * sizeof(float));
}

static void run_case(const struct kernel_case *item, struct kernel_maps *maps, struct kernel_plans *plans,
                     struct ndt_backend *assess, struct hashes *hashes)
{
    struct run run = {.item = item};
    struct ndt_error err = {""};
    if (kernel_inputs_make(&run.inputs, maps, item, &err) != NDT_OK) {
        fail_case(&run, err.text);
        kernel_inputs_free(&run.inputs);
        return;
    }
    run.map_hash = guard_hash_map(run.inputs.map);
    hash_inputs(&run, hashes);
    const int is_known = expect(&run, assess) && worth_running(&run);
    for (size_t i = 0; is_known && i < plans->count; i++) {
        struct kernel_plan *plan = &plans->items[i];
        const struct ndt_backend_ops *before = run.first_ops;
        if (plan->backend)
            (void)run_plan(&run, plan);
        if (before != &ndt_cpu_backend && run.first_ops == &ndt_cpu_backend) /* once: the others must equal it */
            hashes->sums = guard_hash(hashes->sums, &run.first, sizeof(run.first));
    }
    if (guard_hash_map(run.inputs.map) != run.map_hash) /* not after every plan: it is slower than most of them */
        fail_case(&run, "one of the plans changed the map; choose them by --backend, --isa and --pipeline");
    kernel_inputs_free(&run.inputs);
}

/* Checks inputs that must be refused, and poses that no caller should send but no kernel may crash on. */
static int refuses(struct run *run, struct kernel_plan *plan)
{
    struct ndt_error err = {""};
    struct ndt_eval_request request;
    struct ndt_eval sums;
    struct ndt_information informed;
    start_plan(run, plan);
    make_request(run, &request);
    if (plan->ops->eval(plan->backend, &request, &sums, &err) == NDT_OK)
        return fail(run, plan, "eval without map and scan is not refused");
    if (plan->ops->inform && plan->ops->inform(plan->backend, &request, &informed, &err) == NDT_OK)
        return fail(run, plan, "inform without map and scan is not refused");
    if (!load(run, plan))
        return 0;
    request.level = (int)run->inputs.map->level_count;
    if (plan->ops->eval(plan->backend, &request, &sums, &err) == NDT_OK)
        return fail(run, plan, "a level beyond the map's is not refused");
    request.level = -1;
    if (plan->ops->eval(plan->backend, &request, &sums, &err) == NDT_OK)
        return fail(run, plan, "level -1 is not refused");
    static const double strange[] = {NAN, INFINITY, -1e300, 1e12, -3e9};
    for (size_t i = 0; i < 6 * sizeof(strange) / sizeof(strange[0]); i++) {
        make_request(run, &request);
        request.p[i % 6] = strange[i / 6];
        const enum ndt_status status = plan->ops->eval(plan->backend, &request, &sums, &err);
        const int off_map = i % 6 < 3 || !isfinite(strange[i / 6]);
        if (status == NDT_OK && off_map && (sums.matched != 0 || sums.score != 0))
            return fail(run, plan, "a pose far away or not finite matches points");
        if (plan->ops->inform && plan->ops->inform(plan->backend, &request, &informed, &err) != status)
            return fail(run, plan, "inform and eval do not refuse the same poses");
        if (plan->ops->inform && status == NDT_OK && off_map && informed.information[0][0] != 0)
            return fail(run, plan, "a pose far away or not finite informs");
    }
    plan->passed++;
    check_pass();
    return 1;
}

static int refuses_large(struct run *run, struct kernel_plan *plan)
{
    struct ndt_backend_config config;
    struct ndt_backend *small = NULL;
    struct ndt_error err = {""};
    kernel_plan_config(plan, &config);
    config.max_points = run->inputs.scan.cloud.count - 1;
    if (plan->ops->open(&small, &config, &err) != NDT_OK)
        return fail(run, plan, err.text);
    const enum ndt_status status = plan->ops->set_scan(small, &run->inputs.scan.cloud, &err);
    plan->ops->close(small);
    if (status != NDT_ERR_LIMIT || !err.text[0])
        return fail(run, plan, "a scan above max_points is not refused as over the limit, with a reason");
    return 1;
}

/* Runs first: the backends have neither map nor scan yet. */
static void run_contract(struct kernel_maps *maps, struct kernel_plans *plans)
{
    struct kernel_case item = {.name = "contract", .leaf_m = 2.0, .size = 100};
    struct run run = {.item = &item};
    struct ndt_error err = {""};
    if (!check_begin(item.name))
        return;
    int good = kernel_inputs_make(&run.inputs, maps, &item, &err) == NDT_OK || fail_case(&run, err.text);
    for (size_t i = 0; good && i < plans->count; i++)
        if (plans->items[i].backend)
            good = refuses(&run, &plans->items[i]) && refuses_large(&run, &plans->items[i]);
    kernel_inputs_free(&run.inputs);
}

static void run_cases(struct kernel_maps *maps, struct kernel_plans *plans, struct ndt_backend *assess)
{
    struct kernel_case item;
    struct hashes hashes = {0, 0};
    size_t ran = 0;
    run_contract(maps, plans);
    for (size_t i = 0; kernel_case_at(i, &item); i++) {
        if (item.size > options.largest || !check_begin(item.name))
            continue;
        ran++;
        run_case(&item, maps, plans, assess, &hashes);
    }
    if (ran > 0)
        printf("%zu cases; hash of all inputs %016llx, of the CPU backend's sums %016llx\n", ran,
               (unsigned long long)hashes.inputs, (unsigned long long)hashes.sums);
}

/* Returns how many plans can run. */
static int report(const struct kernel_plans *plans)
{
    int runnable = 0;
    for (size_t i = 0; i < plans->count; i++) {
        const struct kernel_plan *plan = &plans->items[i];
        char name[64];
        kernel_plan_name(plan, name, sizeof(name));
        if (!plan->backend)
            printf("%-18s SKIPPED: %s\n", name, plan->skipped);
        else
            printf("%-18s %zu passed, %zu failed; largest error %.2g of the tolerance (%s)%s\n", name, plan->passed,
                   plan->failed, plan->worst, plan->worst_name, plan->ops->inform ? "" : "; no information");
        runnable += plan->backend != NULL;
    }
    return runnable;
}

int main(int argc, char **argv)
{
    static struct kernel_plans plans;
    static const struct check_option known[] = {{.name = "--backend", .text = &options.filter.backend},
                                                {.name = "--pipeline", .text = &options.filter.pipeline},
                                                {.name = "--isa", .text = &options.filter.isa},
                                                {.name = "--threads", .number = &options.threads},
                                                {.name = "--seed", .number = &options.seed},
                                                {.name = "--oracle", .number = &options.oracle},
                                                {.name = "--largest", .number = &options.largest},
                                                {.name = NULL}};
    struct ndt_backend_config config;
    struct ndt_backend *assess = NULL;
    struct ndt_error err = {""};
    check_start(argc, argv, known);
    if (options.oracle == 0 || options.threads > 3)
        return CHECK_USAGE;
    options.filter.threads = (int)options.threads;
    struct kernel_maps maps = {.seed = options.seed};
    ndt_backend_config_default(&config);
    if (!check.is_list)
        kernel_plans_open(&plans, &options.filter);
    if (ndt_reference_backend.open(&assess, &config, &err) == NDT_OK) {
        run_cases(&maps, &plans, assess);
        assess->ops->close(assess);
    } else {
        check_fail("the reference backend does not open: %s", err.text);
    }
    const int code = check_finish(report(&plans));
    kernel_plans_close(&plans);
    kernel_maps_free(&maps);
    return code;
}
