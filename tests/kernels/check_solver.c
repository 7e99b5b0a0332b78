/** @file
 * @brief Compares solves on devices with the same solves driven by the host.
 *
 * For every backend whose pipelines solve whole alignments:
 *  - rows/: a solve, iteration by iteration, against the host's, which evaluates with the pipeline `fused` of the
 * same backend; solver_device.h gives the tolerance and its reason, and --exact requires the same bits (an emulated
 *    device rounds as the host does). The host's solve is itself compared with the double backend and ndt_align;
 *  - prior/: alignments with priors and first levels, and their information, which double agrees with;
 *  - batch/: 1 to 200 alignments in one call, each with the bits that it has alone, twice, on every pipeline;
 *  - align_batch/: ndt_align_batch returns what ndt_align returns for each item alone;
 *  - deadline/: an alignment that is cut short equals one that stops after so many evaluations, bit for bit; a
 *    deadline that is not reached changes nothing;
 *  - limits/: every error has one clear line, and the backend works afterwards.
 * --self-test checks a simulated device on the CPU, which has to pass, and then plants faults into it, each of
 * which its case has to detect. --quick leaves out what takes an emulated device minutes. --largest N: scans of at
 * most N points in rows/, and batches of at most N alignments. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align_state.h"
#include "backends.h"
#include "check_harness.h"
#include "ndt/newton_steps.h"
#include "ndt/clock.h"
#include "solver_device.h"
#include "street_world.h"

static struct options {
    const char *backend, *pipeline;
    uint64_t seed, largest;
    int exact, self_test, quick;
} options = {.seed = 1, .largest = 100000};

struct checks {
    struct solve_scene scene;
    struct solve_problem plain[SOLVE_PROBLEMS], with_priors[SOLVE_PROBLEMS];
    const struct solve_problem *problems; /* either `plain` or `with_priors` */
    struct solve_host cpu, assess;
    struct solve_plan plans[SOLVE_PLANS];
    struct solve_host hosts[SOLVE_PLANS];
    int plan_count, host_count;
    const struct solve_plan *plan; /* under test; NULL: the host itself */
    const char *name;              /* name of the case */
    size_t same, close;
    /* Alignments alone: of this plan, of the first plan of its backend, and driven by the host. */
    struct solve_result alone[SOLVE_PROBLEMS], first_alone[SOLVE_PROBLEMS], driven[SOLVE_PROBLEMS];
    struct solve_result out[SOLVE_MOST], again[SOLVE_MOST];
};

static struct checks checks;

static void set_reproduce(const struct checks *c)
{
    char plan[96] = "";
    if (c->plan)
        snprintf(plan, sizeof(plan), " --backend %s --pipeline %s", c->plan->ops->name, c->plan->pipeline);
    check_set_reproduce("  reproduce: check_solver%s%s%s --seed %llu --case %s\n", plan,
                        options.exact ? " --exact" : "", options.quick ? " --quick" : "",
                        (unsigned long long)options.seed, c->name);
}

static int fail(struct checks *c, const char *format, ...) NDT_PRINTF(2, 3);
static int fail(struct checks *c, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    set_reproduce(c);
    return check_fail("%s, %s: %s", c->plan ? c->plan->name : "host", c->name, text);
}

static int begin(struct checks *c, const char *name)
{
    c->name = name;
    set_reproduce(c);
    return (!check.is_quiet || check.failed == 0) && check_begin(name); /* one failure per planted fault will do */
}

static int pass(void)
{
    check_pass();
    return 1;
}

/* A device's result against the host's. */
static int compare(struct checks *c, const char *what, const struct solve_result *is,
                   const struct solve_result *wanted, int rows)
{
    struct solve_difference why;
    if (solve_same_bits(is, wanted, rows, &why)) {
        c->same++;
        return 1;
    }
    if (options.exact || !solve_close(is, wanted, rows, &why))
        return fail(c, "%s: %s", what, why.text);
    c->close++;
    return 1;
}

/* Checks a solve without anything to evaluate, whose number of attempts does not matter. */
static int ends_off_map(struct checks *c, const char *what, const struct solve_result *is)
{
    const struct ndt_newton *n = &is->newton;
    if (n->stop != NDT_STOP_OFF_MAP || n->row_count != 0 || is->coverage != 0 ||
        memcmp(n->p, n->guess, sizeof(n->p)) != 0)
        return fail(c, "%s: a scan without points ends with stop %d, %d rows, coverage %g%s", what, n->stop,
                    n->row_count, is->coverage, memcmp(n->p, n->guess, sizeof(n->p)) ? ", not at the guess" : "");
    return 1;
}

/* ---- rows ---- */

static int is_far(const struct ndt_pose *a, const struct ndt_pose *b, double limit_m, double limit_rad)
{
    return !(ndt_pose_distance_m(a, b) <= limit_m && ndt_pose_angle_rad(a, b) <= limit_rad);
}

/* The rows of the host, evaluated in double. */
static int assess_rows(struct checks *c, const struct solve_case *item, const struct ndt_newton_rules *rules,
                       const struct solve_result *host)
{
    struct ndt_error err = {""};
    struct solve_difference why;
    struct ndt_newton at = host->newton;
    if (solve_turn(&c->assess.turned, host->newton.R0, &c->scene.scans[item->scan], &err) != NDT_OK ||
        ndt_reference_backend.set_scan(c->assess.backend, &c->assess.turned, &err) != NDT_OK)
        return fail(c, "%s", err.text);
    for (int i = 0; i < host->newton.row_count; i++) {
        const struct ndt_newton_row *row = &host->rows[i];
        struct ndt_eval_request request = {.level = row->level, .neighbours = (enum ndt_neighbours)row->neighbours};
        struct ndt_eval sums;
        memcpy(request.p, row->p, sizeof(request.p));
        memcpy(at.query_pose, row->p, sizeof(at.query_pose));
        if (ndt_reference_backend.eval(c->assess.backend, &request, &sums, &err) != NDT_OK)
            return fail(c, "%s", err.text);
        regularize(&at, rules, &sums);
        if (!solve_sums_close(&row->eval, &sums, &why))
            return fail(c, "in double, row %d: %s", i, why.text);
    }
    return 1;
}

/* ndt_align on a backend, against its own solve. */
static int check_align(struct checks *c, struct ndt_backend *backend, const struct solve_case *item,
                       const struct solve_result *wanted, int exact)
{
    struct ndt_aligner *aligner = NULL;
    struct ndt_align_result is;
    struct ndt_error err = {""};
    size_t rows = 0;
    enum ndt_status status = ndt_aligner_create(&aligner, backend, &err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(aligner, c->scene.map, &err);
    if (status == NDT_OK)
        status = ndt_align(aligner, &item->params, &c->scene.scans[item->scan], &item->guess, &is, &err);
    if (status == NDT_OK)
        ndt_aligner_trace(aligner, &rows);
    ndt_aligner_destroy(aligner);
    if (status != NDT_OK)
        return fail(c, "ndt_align: %s", err.text);
    const struct ndt_pose pose = solve_pose(c->scene.map, &wanted->newton);
    if (is.iterations != wanted->newton.row_count || is.evaluations != wanted->newton.evaluations ||
        rows != (size_t)wanted->newton.row_count || is.oscillation != wanted->newton.oscillation)
        return fail(c, "ndt_align: %d iterations, %d evaluations, %zu rows; solve: %d, %d", is.iterations,
                    is.evaluations, rows, wanted->newton.row_count, wanted->newton.evaluations);
    if (wanted->newton.stop != NDT_STOP_OFF_MAP &&
        (is.scores.coverage != wanted->coverage || is.weak_count != wanted->newton.weak.count))
        return fail(c, "ndt_align: coverage %g, %d weak; solve: %g, %d", is.scores.coverage, is.weak_count,
                    wanted->coverage, wanted->newton.weak.count);
    if (exact ? memcmp(&pose, &is.T_map_sensor, sizeof(pose)) != 0 : is_far(&pose, &is.T_map_sensor, 5e-6, 5e-7))
        return fail(c, "ndt_align: another pose, %g m away", ndt_pose_distance_m(&pose, &is.T_map_sensor));
    return 1;
}

static int drive(struct checks *c, struct solve_host *host, const struct ndt_newton_rules *rules,
                 const struct solve_problem *problem, int most, struct solve_result *out)
{
    struct ndt_newton start;
    struct ndt_error err = {""};
    const struct ndt_cloud *scan = &c->scene.scans[problem->scan];
    solve_start_problem(&start, (enum ndt_variant)rules->variant, problem, &c->scene);
    if (solve_on_host(host, rules, scan, &start, most, 0, out, &err) != NDT_OK)
        return fail(c, "driven by the host: %s", err.text);
    return 1;
}

/* The host itself: its solve equals that of ndt_align, and double agrees with it. */
static int check_host(struct checks *c, const struct solve_case *item, const struct ndt_newton_rules *rules)
{
    static struct solve_result cpu;
    const struct solve_problem problem = {.scan = item->scan, .guess = item->guess};
    c->plan = NULL;
    if (!drive(c, &c->cpu, rules, &problem, SOLVE_NO_LIMIT, &cpu))
        return 0;
    return check_align(c, c->cpu.backend, item, &cpu, 1) && assess_rows(c, item, rules, &cpu) ? pass() : 0;
}

/* The score jumps where a point changes its voxel: with direct1 by the whole term of the point, 1 to 3 of 4600
 * about every 0.1 mm of 1500 points, where the slope that is left gains 0.2 in 5 mm. Which of two steps counts as
 * better is then a matter of rounding, on the CPU too: of guesses within the tolerance of poses three in four end
 * elsewhere in rows/1500/2/direct1/robust/gnss with seed 1, up to 9 mm away. So a device may end wherever the CPU
 * ends from one of them, and nowhere else. */
static int cpu_ends_there_too(struct checks *c, const struct solve_case *item, const struct ndt_newton_rules *rules,
                              const struct ndt_pose *here, double part)
{
    enum { GUESSES = 1000 }; /* an error in one of 200 is missed once in 150 runs */
    static struct solve_result cpu;
    struct ndt_random random = {options.seed};
    for (int i = 0; i < GUESSES; i++) {
        const struct solve_problem problem = {
            .scan = item->scan, .guess = world_perturb(&random, &item->guess, SOLVE_POSE_M, SOLVE_POSE_RAD)};
        if (!drive(c, &c->cpu, rules, &problem, SOLVE_NO_LIMIT, &cpu))
            return 0;
        const struct ndt_pose there = solve_pose(c->scene.map, &cpu.newton);
        if (!is_far(here, &there, part * rules->fine.step_m, part * rules->fine.step_rad))
            return 1;
    }
    return 0;
}

/* Float on the device and float on the CPU end at the same place, where the scan is large enough to have one: a
 * last digit may decide whether a step counts as the last, and with few points what is left to go then is more than
 * a millimetre, though less than that step. */
static int same_end(struct checks *c, const struct solve_case *item, const struct ndt_newton_rules *rules,
                    const struct solve_result *host)
{
    static struct solve_result cpu;
    const struct solve_problem problem = {.scan = item->scan, .guess = item->guess};
    if (!drive(c, &c->cpu, rules, &problem, SOLVE_NO_LIMIT, &cpu))
        return 0;
    const struct ndt_pose here = solve_pose(c->scene.map, &host->newton),
                          there = solve_pose(c->scene.map, &cpu.newton);
    const size_t points = c->scene.scans[item->scan].count;
    const int has_end = rules->variant == NDT_ROBUST && cpu.newton.stop == NDT_STOP_CONVERGED && points >= 128;
    const double part = points < 400 ? 1 : 0.2; /* part of the last step: 1 mm and 0.01 deg */
    if (has_end && is_far(&here, &there, part * rules->fine.step_m, part * rules->fine.step_rad) &&
        !cpu_ends_there_too(c, item, rules, &here, part))
        return fail(c, "%g m and %g rad from where the CPU ends", ndt_pose_distance_m(&here, &there),
                    ndt_pose_angle_rad(&here, &there));
    return assess_rows(c, item, rules, host);
}

static void check_plan_rows(struct checks *c, const struct solve_case *item, const struct ndt_newton_rules *rules,
                            const struct solve_result *host, int with_align)
{
    static struct solve_result is;
    struct ndt_error err = {""};
    const struct solve_problem problem = {.scan = item->scan, .guess = item->guess};
    const struct solve_problem *const list[] = {&problem};
    const struct solve_call call = {.scene = &c->scene, .rules = rules, .problems = list, .count = 1};
    enum ndt_status status = solve_set_scans(c->plan, &c->scene, item->scan, &err);
    if (status == NDT_OK)
        status = solve_on_device(c->plan, &call, item->scan, &is, &err);
    if (status != NDT_OK)
        fail(c, "%s", err.text);
    else if (compare(c, "against the host", &is, host, SOLVE_ROWS) &&
             (!with_align || c->scene.scans[item->scan].count > 129 ||
              check_align(c, c->plan->backend, item, &is, options.exact)))
        pass();
}

/* --quick: all neighbours and GNSS on and off with 129 points, all neighbours with 33, one of each kind otherwise.
 */
static int is_left_out(const struct solve_case *item)
{
    const int mode = (int)item->params.levels[0].neighbours, gnss = item->params.has_gnss, scan = item->scan;
    const int kind = (int)item->params.level_count + (int)item->params.variant;
    if (!options.quick || scan == 4)
        return 0;
    return gnss != (scan + kind + mode) % 2 || (scan != 2 && mode != (scan + kind) % 4);
}

static void check_rows(struct checks *c)
{
    static struct solve_result driven;
    struct solve_case item;
    struct ndt_newton_rules rules;
    struct ndt_error err = {""};
    for (size_t i = 0; solve_case_at(&c->scene, options.seed, i, &item); i++) {
        const struct solve_host *last = NULL;
        const struct solve_problem problem = {.scan = item.scan, .guess = item.guess};
        const size_t points = c->scene.scans[item.scan].count;
        if (!begin(c, item.name) || points > options.largest || points == 0 || is_left_out(&item))
            continue;
        c->plan = NULL;
        if (ndt_rules_from(&rules, &item.params, c->scene.map, &err) != NDT_OK) {
            fail(c, "%s", err.text);
            continue;
        }
        if (!check.is_quiet)
            check_host(c, &item, &rules);
        for (int k = 0; k < c->plan_count; k++) {
            c->plan = &c->plans[k];
            set_reproduce(c);
            if (c->plan->host != last && (!drive(c, c->plan->host, &rules, &problem, SOLVE_NO_LIMIT, &driven) ||
                                          !same_end(c, &item, &rules, &driven)))
                break;
            last = c->plan->host;
            check_plan_rows(c, &item, &rules, &driven, !options.quick || (int)i % c->plan_count == k);
        }
    }
}

/* ---- batches ---- */

static int set_rules(struct checks *c, struct ndt_newton_rules *rules, enum ndt_variant variant, int gnss)
{
    struct ndt_align_params params;
    struct ndt_error err = {""};
    ndt_align_params_default(&params);
    params.variant = variant;
    params.max_iterations = options.quick ? 6 : 10; /* small scans and far guesses need them all */
    params.levels[2].neighbours = NDT_DIRECT7;
    params.has_gnss = gnss;
    memcpy(params.gnss_position_m, c->scene.truth[4].t_m, sizeof(params.gnss_position_m));
    return ndt_rules_from(rules, &params, c->scene.map, &err) == NDT_OK ? 1 : fail(c, "%s", err.text);
}

static int is_empty(const struct checks *c, const struct solve_problem *problem)
{
    return c->scene.scans[problem->scan].count == 0;
}

/* The information of the host, in double. */
static int assess_information(struct checks *c, const struct solve_problem *problem,
                              const struct solve_result *host)
{
    const struct ndt_newton *n = &host->newton;
    struct ndt_eval_request request = {.level = n->level, .neighbours = (enum ndt_neighbours)n->neighbours};
    struct ndt_information wanted;
    struct ndt_error err = {""};
    struct solve_difference why;
    memcpy(request.p, n->p, sizeof(request.p));
    if (solve_turn(&c->assess.turned, n->R0, &c->scene.scans[problem->scan], &err) != NDT_OK ||
        ndt_reference_backend.set_scan(c->assess.backend, &c->assess.turned, &err) != NDT_OK ||
        ndt_reference_backend.inform(c->assess.backend, &request, &wanted, &err) != NDT_OK)
        return fail(c, "%s", err.text);
    return solve_information_close(&host->information, &wanted, 1e-3, &why) ? 1
                                                                            : fail(c, "in double: %s", why.text);
}

/* Every problem alone, against the host and against the pipelines before. */
static int solve_alone(struct checks *c, const struct ndt_newton_rules *rules, int count, int is_first)
{
    struct ndt_error err = {""};
    struct solve_difference why;
    for (int i = 0; i < count; i++) {
        const struct solve_problem *const list[] = {&c->problems[i]};
        const struct solve_call call = {.scene = &c->scene, .rules = rules, .problems = list, .count = 1};
        char what[32];
        snprintf(what, sizeof(what), "alignment %d alone", i);
        if (solve_set_scans(c->plan, &c->scene, list[0]->scan, &err) != NDT_OK ||
            solve_on_device(c->plan, &call, list[0]->scan, &c->alone[i], &err) != NDT_OK)
            return fail(c, "%s: %s", what, err.text);
        if (is_first && (!drive(c, c->plan->host, rules, list[0], SOLVE_NO_LIMIT, &c->driven[i]) ||
                         (rules->wants_information && !assess_information(c, list[0], &c->driven[i]))))
            return 0;
        if (is_empty(c, list[0]) ? !ends_off_map(c, what, &c->alone[i])
                                 : !compare(c, what, &c->alone[i], &c->driven[i], SOLVE_ROWS))
            return 0;
        if (is_first)
            c->first_alone[i] = c->alone[i];
        else if (!solve_same_bits(&c->alone[i], &c->first_alone[i], SOLVE_ROWS, &why))
            return fail(c, "%s, against the pipeline before: %s", what, why.text);
    }
    return pass();
}

/* Number of rows kept unchanged: the last one may stand for several. */
static int whole_rows(int capacity, const struct solve_result *result)
{
    return capacity >= result->newton.row_count ? capacity : capacity - 1;
}

/* Checks the last row: where rows do not suffice, it holds the iteration of its place, or the last one. */
static int is_last_row(const struct ndt_newton_row *row, const struct solve_result *alone, int capacity)
{
    const struct ndt_newton_row *own = &alone->rows[capacity - 1],
                                *last = &alone->rows[alone->newton.row_count - 1];
    return memcmp(&row->eval, &own->eval, sizeof(row->eval)) == 0 ||
           memcmp(&row->eval, &last->eval, sizeof(row->eval)) == 0;
}

static int check_batch(struct checks *c, const struct ndt_newton_rules *rules, size_t count, int different,
                       const int32_t *rows)
{
    const struct solve_problem *list[SOLVE_MOST];
    int problem[SOLVE_MOST];
    struct ndt_error err = {""};
    struct solve_difference why;
    for (size_t i = 0; i < count; i++) {
        problem[i] = (int)((7 * i + count) % (size_t)different); /* each in its turn, in another order */
        list[i] = &c->problems[problem[i]];
    }
    const struct solve_call call = {
        .scene = &c->scene, .rules = rules, .problems = list, .count = count, .rows = rows};
    const int run_count = options.quick && count > 8 ? 1 : 2;
    for (int run = 0; run < run_count; run++)
        if ((run == 0 && solve_set_scans(c->plan, &c->scene, -1, &err) != NDT_OK) ||
            solve_on_device(c->plan, &call, -1, run ? c->again : c->out, &err) != NDT_OK)
            return fail(c, "%s", err.text);
    for (size_t i = 0; i < count; i++) {
        const struct solve_result *alone = &c->alone[problem[i]], *is = &c->out[i];
        const int capacity = rows ? rows[i] : SOLVE_ROWS, kept = whole_rows(capacity, alone);
        if (!solve_same_bits(is, alone, kept, &why))
            return fail(c, "item %zu, alignment %d, against alone: %s", i, problem[i], why.text);
        if (run_count == 2 && !solve_same_bits(&c->again[i], is, kept, &why))
            return fail(c, "item %zu, alignment %d, in the second run: %s", i, problem[i], why.text);
        if (capacity > 0 && kept < capacity && !is_last_row(&is->rows[capacity - 1], alone, capacity))
            return fail(c, "item %zu: of %d rows the last is neither that iteration nor the last one", i, capacity);
    }
    return pass();
}

/* ---- deadlines ---- */

/* Every result equals that after so many evaluations, or the final one. Returns how many alignments were cut short,
 * or -1. */
static int cut_short(struct checks *c, const struct ndt_newton_rules *rules, const struct solve_result *out,
                     int count)
{
    static struct solve_result wanted;
    struct solve_difference why;
    int cut = 0;
    for (int i = 0; i < count; i++) {
        const struct solve_result *is = &out[i];
        char what[64];
        snprintf(what, sizeof(what), "alignment %d after %d evaluations", i, is->newton.evaluations);
        if (is->newton.stop != NDT_STOP_DEADLINE) {
            if (!solve_same_bits(is, &c->alone[i], SOLVE_ROWS, &why))
                return fail(c, "%s, in the end: %s", what, why.text) - 1;
            continue;
        }
        cut++;
        if (is->newton.evaluations >= c->driven[i].newton.evaluations)
            return fail(c, "%s is reported as cut short; it needs %d", what, c->driven[i].newton.evaluations) - 1;
        if (!drive(c, c->plan->host, rules, &c->problems[i], is->newton.evaluations, &wanted) ||
            !compare(c, what, is, &wanted, SOLVE_ROWS))
            return -1;
    }
    return cut;
}

static void check_deadlines_of(struct checks *c, const struct ndt_newton_rules *rules)
{
    /* [us] from now; the first has passed, the last is not reached. */
    static const double left_us[] = {-1000, 1, 50, 300, 1000, 5000, 20000, 100000, 600e6};
    static const char *const names[] = {"deadline/past", "deadline/near", "deadline/generous"};
    const struct solve_problem *list[SOLVE_PROBLEMS];
    struct ndt_error err = {""};
    for (int i = 0; i < SOLVE_PROBLEMS; i++)
        list[i] = &c->problems[i];
    const int rounds = sizeof(left_us) / sizeof(left_us[0]);
    for (int k = 0; k < rounds; k++) {
        struct solve_call call = {.scene = &c->scene, .rules = rules, .problems = list, .count = SOLVE_PROBLEMS};
        if (!begin(c, names[k == 0 ? 0 : k < rounds - 1 ? 1 : 2]) || (options.quick && k % 4 != 0))
            continue;
        enum ndt_status status = solve_set_scans(c->plan, &c->scene, -1, &err);
        call.until_us = ndt_clock_us() + left_us[k];
        if (status == NDT_OK)
            status = solve_on_device(c->plan, &call, -1, c->out, &err);
        const int cut =
            status == NDT_OK ? cut_short(c, rules, c->out, SOLVE_PROBLEMS) : fail(c, "%s", err.text) - 1;
        if (cut == 0 && k == 0)
            fail(c, "the deadline had passed, and all %d alignments ended", SOLVE_PROBLEMS);
        else if (cut > 0 && k == rounds - 1)
            fail(c, "%d alignments were cut short", cut);
        else if (cut >= 0)
            pass();
    }
}

/* ---- all of a pipeline ---- */

/* Are any of the cases GROUP... chosen? */
static int wants(const char *group)
{
    const char *only = check.only;
    return !only || strncmp(only, group, strlen(only) < strlen(group) ? strlen(only) : strlen(group)) == 0;
}

static void check_batches_of(struct checks *c, int is_first)
{
    static const size_t counts[] = {1, 2, 3, 8, 64, 200};
    static const int32_t rows[SOLVE_PROBLEMS] = {64, 0, 1,  2, 3, 5,  8, 13, 0, 64, 1,
                                                 1,  2, 40, 7, 0, 64, 4, 4,  6, 1,  9};
    static char name[32];
    struct ndt_newton_rules rules;
    c->name = "batch/alone";
    if (!set_rules(c, &rules, NDT_ROBUST, 0))
        return;
    rules.wants_information = 1;
    if (!solve_alone(c, &rules, SOLVE_PROBLEMS, is_first))
        return;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        snprintf(name, sizeof(name), "batch/%zu", counts[i]);
        /* --quick: 200 where the shape is chosen, 64 where the host repeats the launch, 8 on the others */
        const size_t quick_most = c->plan == &c->plans[0] ? 200 : c->plan == &c->plans[c->plan_count - 1] ? 64 : 8;
        if (counts[i] > options.largest || (options.quick && counts[i] > 8 && counts[i] != quick_most))
            continue;
        if (begin(c, name) &&
            (counts[i] <= c->plan->limit || fail(c, "the limit is %zu alignments", c->plan->limit)))
            check_batch(c, &rules, counts[i], SOLVE_PROBLEMS, NULL);
    }
    if (begin(c, "batch/capacities"))
        check_batch(c, &rules, SOLVE_PROBLEMS, SOLVE_PROBLEMS, rows);
    check_deadlines_of(c, &rules);
}

/* Other rules, fewer alignments. */
static const struct variant {
    const char *name;
    enum ndt_variant variant;
    int gnss, with_priors, count;
} variants[] = {{"variant/autoware", NDT_AUTOWARE, 0, 0, 8},
                {"variant/gnss", NDT_ROBUST, 1, 0, 8},
                {"variant/autoware-gnss", NDT_AUTOWARE, 1, 0, 8},
                {"prior/robust", NDT_ROBUST, 0, 1, 16},
                {"prior/gnss", NDT_ROBUST, 1, 1, 8},
                {"prior/autoware", NDT_AUTOWARE, 0, 1, 8}};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static void check_variant_of(struct checks *c, const struct variant *variant, int is_first)
{
    struct ndt_newton_rules rules;
    if (!set_rules(c, &rules, variant->variant, variant->gnss))
        return;
    rules.wants_information = variant->with_priors;
    c->problems = variant->with_priors ? c->with_priors : c->plain;
    if (solve_alone(c, &rules, variant->count, is_first))
        check_batch(c, &rules, (size_t)variant->count, variant->count, NULL);
    c->problems = c->plain;
}

static void check_batches(struct checks *c)
{
    const struct ndt_backend_ops *last = NULL;
    for (int k = 0; k < c->plan_count && (wants("batch/") || wants("deadline/")); k++) {
        c->plan = &c->plans[k];
        check_batches_of(c, c->plan->ops != last);
        last = c->plan->ops;
    }
    for (int i = 0; i < VARIANTS; i++) {
        last = NULL;
        for (int k = 0; k < c->plan_count; k++) {
            c->plan = &c->plans[k];
            if (begin(c, variants[i].name))
                check_variant_of(c, &variants[i], c->plan->ops != last);
            last = c->plan->ops;
        }
    }
}

/* ---- ndt_align_batch ---- */

/* Equal but for times; ndt_align clears what it does not set. */
static int same_result(const struct ndt_align_result *a, const struct ndt_align_result *b)
{
    struct ndt_align_result x = *a, y = *b;
    x.align_us = y.align_us = x.upload_us = y.upload_us = 0;
    return memcmp(&x, &y, sizeof(x)) == 0;
}

static void check_align_batch(struct checks *c, struct ndt_backend *backend, enum ndt_variant variant)
{
    struct ndt_align_item items[SOLVE_PROBLEMS];
    struct ndt_align_result is[SOLVE_PROBLEMS], alone;
    struct ndt_align_params params;
    struct ndt_aligner *aligner = NULL;
    struct ndt_error err = {""};
    ndt_align_params_default(&params);
    params.variant = variant;
    params.max_iterations = options.quick ? 8 : 15;
    for (int i = 0; i < SOLVE_PROBLEMS; i++)
        items[i] = (struct ndt_align_item){.scan = &c->scene.scans[c->problems[i].scan],
                                           .T_map_guess = c->problems[i].guess};
    items[5].T_map_guess.t_m[0] = NAN;
    enum ndt_status status = ndt_aligner_create(&aligner, backend, &err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(aligner, c->scene.map, &err);
    if (status == NDT_OK)
        status = ndt_align_batch(aligner, &params, items, SOLVE_PROBLEMS, is, &err);
    for (int i = 0; i < SOLVE_PROBLEMS && status == NDT_OK; i++) {
        status = ndt_align(aligner, &params, items[i].scan, &items[i].T_map_guess, &alone, &err);
        if (status == NDT_OK && !same_result(&is[i], &alone)) {
            fail(c, "item %d: %s after %d evaluations, %g m from where it ends alone: %s after %d", i,
                 ndt_outcome_name(is[i].outcome), is[i].evaluations,
                 ndt_pose_distance_m(&is[i].T_map_sensor, &alone.T_map_sensor), ndt_outcome_name(alone.outcome),
                 alone.evaluations);
            status = NDT_END;
        }
    }
    ndt_aligner_destroy(aligner);
    if (status == NDT_OK)
        pass();
    else if (status != NDT_END)
        fail(c, "%s", err.text);
}

static void check_align_batches(struct checks *c)
{
    c->plan = NULL;
    if (begin(c, "align_batch/robust"))
        check_align_batch(c, c->cpu.backend, NDT_ROBUST);
    for (int k = 0; k < c->plan_count; k++) {
        c->plan = &c->plans[k];
        if (begin(c, "align_batch/robust"))
            check_align_batch(c, c->plan->backend, NDT_ROBUST);
        if (begin(c, "align_batch/autoware") && !options.quick)
            check_align_batch(c, c->plan->backend, NDT_AUTOWARE);
    }
}

/* ---- limits ---- */

static int one_line(const char *text)
{
    return text[0] != '\0' && !strchr(text, '\n');
}

/* Solves one ordinary problem, `count` times. */
static enum ndt_status solve_many(struct checks *c, const struct ndt_newton_rules *rules, size_t count,
                                  const struct solve_problem *problem, struct solve_result *out,
                                  struct ndt_error *err)
{
    const struct solve_problem **list = calloc(count, sizeof(*list));
    struct solve_result *results = calloc(count, sizeof(*results));
    enum ndt_status status = list && results ? NDT_OK : NDT_ERR_MEMORY;
    const struct solve_call call = {.scene = &c->scene, .rules = rules, .problems = list, .count = count};
    for (size_t i = 0; list && i < count; i++)
        list[i] = problem;
    if (status == NDT_OK)
        status = solve_on_device(c->plan, &call, -1, results, err);
    if (status == NDT_OK && count > 0)
        *out = results[0];
    free(list);
    free(results);
    return status;
}

static enum ndt_status solve_plainly(struct checks *c, const struct ndt_newton_rules *rules, size_t count, int scan,
                                     struct solve_result *out, struct ndt_error *err)
{
    const struct solve_problem problem = {.scan = scan, .guess = c->scene.truth[1]};
    return solve_many(c, rules, count, &problem, out, err);
}

/* The call has to be refused with one line, and the backend has to work afterwards. */
static void refused(struct checks *c, enum ndt_status status, enum ndt_status wanted, const struct ndt_error *err,
                    const struct ndt_newton_rules *rules, const struct solve_result *before)
{
    static struct solve_result after;
    struct solve_difference why;
    struct ndt_error again = {""};
    if (status == NDT_OK)
        fail(c, "it is not refused");
    else if (wanted != NDT_OK && status != wanted)
        fail(c, "%s, expected %s: %s", ndt_status_name(status), ndt_status_name(wanted), err->text);
    else if (!one_line(err->text))
        fail(c, "not one line: '%s'", err->text);
    else if (solve_set_scans(c->plan, &c->scene, -1, &again) != NDT_OK ||
             solve_plainly(c, rules, 1, 1, &after, &again) != NDT_OK)
        fail(c, "afterwards: %s", again.text);
    else if (!solve_same_bits(&after, before, SOLVE_ROWS, &why))
        fail(c, "afterwards: %s", why.text);
    else
        pass();
}

/* Gives one point more than config.max_points holds, counted in whole blocks. */
static enum ndt_status give_too_many(struct checks *c, int blocks, struct ndt_error *err)
{
    const struct ndt_cloud *scans[SOLVE_MAX_POINTS / 128 + 1];
    for (int i = 0; i < blocks; i++)
        scans[i] = &c->scene.scans[0];
    return c->plan->ops->set_scans(c->plan->backend, scans, (size_t)blocks, err);
}

static void check_points_limit(struct checks *c, const struct ndt_newton_rules *rules,
                               const struct solve_result *before)
{
    struct ndt_error err = {""};
    if (begin(c, "limits/points"))
        refused(c, give_too_many(c, SOLVE_MAX_POINTS / 128 + 1, &err), NDT_ERR_LIMIT, &err, rules, before);
    if (begin(c, "limits/points-taken")) {
        if (give_too_many(c, SOLVE_MAX_POINTS / 128, &err) == NDT_OK)
            pass();
        else
            fail(c, "%s", err.text);
    }
}

static void check_no_map(struct checks *c, const struct ndt_newton_rules *rules)
{
    static struct solve_result out;
    struct solve_plan bare;
    struct ndt_error err = {""};
    const struct solve_plan *plan = c->plan;
    if (!begin(c, "limits/map"))
        return;
    enum ndt_status status = solve_plan_open(&bare, plan->ops, plan->pipeline, NULL, &err);
    c->plan = &bare;
    if (status == NDT_OK)
        status = solve_set_scans(&bare, &c->scene, -1, &err);
    c->plan = plan;
    if (status != NDT_OK) {
        fail(c, "%s", err.text);
    } else {
        c->plan = &bare;
        status = solve_plainly(c, rules, 1, 1, &out, &err);
        c->plan = plan;
        if (status == NDT_OK || !one_line(err.text))
            fail(c, "without a map: %s, '%s'", ndt_status_name(status), err.text);
        else
            pass();
    }
    solve_plan_close(&bare);
}

/* A scan that was not set. */
static enum ndt_status solve_beyond(struct checks *c, const struct ndt_newton_rules *rules, struct ndt_error *err)
{
    struct solve_result out;
    enum ndt_status status = solve_set_scans(c->plan, &c->scene, 1, err);
    return status == NDT_OK ? solve_plainly(c, rules, 1, 1, &out, err) : status;
}

/* Solves from behind the last level of the chain. */
static enum ndt_status solve_from_beyond(struct checks *c, const struct ndt_newton_rules *rules,
                                         struct ndt_error *err)
{
    struct solve_result out;
    const struct solve_problem problem = {.scan = 1, .guess = c->scene.truth[1], .first_level = rules->level_count};
    return solve_many(c, rules, 1, &problem, &out, err);
}

static void check_limits_of(struct checks *c)
{
    static struct solve_result before, out;
    struct ndt_newton_rules rules, bad;
    struct ndt_error err = {""};
    c->name = "limits/";
    if (!set_rules(c, &rules, NDT_ROBUST, 0))
        return;
    if (solve_set_scans(c->plan, &c->scene, -1, &err) != NDT_OK ||
        solve_plainly(c, &rules, 1, 1, &before, &err) != NDT_OK) {
        fail(c, "%s", err.text);
        return;
    }
    check_points_limit(c, &rules, &before);
    check_no_map(c, &rules);
    if (begin(c, "limits/scan"))
        refused(c, solve_beyond(c, &rules, &err), NDT_ERR_ARGUMENT, &err, &rules, &before);
    const int32_t levels[] = {3, -1, 1000};
    for (int i = 0; i < 3; i++) {
        bad = rules;
        bad.level[i] = levels[i];
        if (begin(c, "limits/level"))
            refused(c, solve_plainly(c, &bad, 1, 1, &out, &err), NDT_ERR_ARGUMENT, &err, &rules, &before);
    }
    if (begin(c, "limits/first-level"))
        refused(c, solve_from_beyond(c, &rules, &err), NDT_ERR_ARGUMENT, &err, &rules, &before);
    if (begin(c, "limits/items") && c->plan->limit < 65536)
        refused(c, solve_plainly(c, &rules, c->plan->limit + 1, 1, &out, &err), NDT_ERR_LIMIT, &err, &rules,
                &before);
}

/* Single evaluations work between solves and give the same bits. */
static void check_eval_between(struct checks *c)
{
    struct ndt_error err = {""};
    struct ndt_eval is, wanted;
    const struct ndt_cloud *scan = &c->scene.scans[4];
    struct ndt_eval_request request = {.level = 1, .neighbours = NDT_DIRECT7};
    if (!begin(c, "limits/eval"))
        return;
    for (int i = 0; i < 3; i++)
        request.p[i] = c->scene.truth[4].t_m[i] - c->scene.map->origin_m[i];
    if (c->plan->ops->set_scan(c->plan->backend, scan, &err) != NDT_OK ||
        c->plan->ops->eval(c->plan->backend, &request, &is, &err) != NDT_OK ||
        c->plan->host->backend->ops->set_scan(c->plan->host->backend, scan, &err) != NDT_OK ||
        c->plan->host->backend->ops->eval(c->plan->host->backend, &request, &wanted, &err) != NDT_OK)
        fail(c, "%s", err.text);
    else if (memcmp(&is, &wanted, sizeof(is)) != 0)
        fail(c, "an evaluation after alignments: score %.17g, expected %.17g", is.score, wanted.score);
    else
        pass();
}

static void check_all(struct checks *c)
{
    check_rows(c);
    check_batches(c);
    check_align_batches(c);
    for (int k = 0; k < c->plan_count && wants("limits/"); k++) {
        c->plan = &c->plans[k];
        check_limits_of(c);
        check_eval_between(c);
    }
}

/* ---- backends under test ---- */

static int open_pipelines(struct checks *c, const struct ndt_backend_ops *ops)
{
    struct ndt_error err = {""};
    struct solve_host *host = &c->hosts[c->host_count];
    int found = 0;
    c->plan = NULL;
    c->name = ops->name;
    for (const char *const *name = ops->pipelines; *name && c->plan_count < SOLVE_PLANS; name++) {
        struct solve_plan *plan = &c->plans[c->plan_count];
        if (options.pipeline && strcmp(options.pipeline, *name) != 0)
            continue;
        if (solve_plan_open(plan, ops, *name, c->scene.map, &err) != NDT_OK)
            fail(c, "%s: %s", *name, err.text);
        if (plan->limit == 0) {
            solve_plan_close(plan);
            continue;
        }
        plan->host = host;
        c->plan_count++;
        found++;
    }
    if (!found)
        return 1;
    c->host_count++;
    return solve_host_open(host, ops, c->scene.map, &err) == NDT_OK ? 1 : fail(c, "%s", err.text);
}

/* The backends to check; 0: none works here. */
static size_t find_backends(const struct ndt_backend_ops *found[SOLVE_PLANS])
{
    struct ndt_error err = {""};
    const struct ndt_backend_ops *ops;
    size_t count = 0;
    if (options.self_test)
        found[count++] = &solve_fake_backend;
    for (size_t i = 0; !options.self_test && count < SOLVE_PLANS && (ops = ndt_backend_at(i)); i++) {
        if (!ops->pipelines || (options.backend && strcmp(options.backend, ops->name) != 0))
            continue;
        if (ops->probe(0, &err) == NDT_OK)
            found[count++] = ndt_backend_at(i); /* as loaded by the probe */
        else
            printf("skipped: %s: %s\n", ops->name, err.text);
    }
    return count;
}

static int open_all(struct checks *c, const struct ndt_backend_ops *const *backends, size_t count)
{
    struct ndt_error err = {""};
    c->name = "opening";
    if (solve_host_open(&c->cpu, &ndt_cpu_backend, c->scene.map, &err) != NDT_OK ||
        solve_host_open(&c->assess, &ndt_reference_backend, c->scene.map, &err) != NDT_OK)
        return fail(c, "%s", err.text);
    solve_problems_make(&c->scene, options.seed, c->plain);
    solve_problems_make(&c->scene, options.seed, c->with_priors);
    solve_problems_add_priors(c->with_priors);
    c->problems = c->plain;
    for (size_t i = 0; i < count; i++)
        if (!open_pipelines(c, backends[i]))
            return 0;
    return 1;
}

static void close_all(struct checks *c)
{
    for (int i = 0; i < c->plan_count; i++)
        solve_plan_close(&c->plans[i]);
    for (int i = 0; i < c->host_count; i++)
        solve_host_close(&c->hosts[i]);
    solve_host_close(&c->cpu);
    solve_host_close(&c->assess);
}

/* The case of every planted fault has to detect it, however large it is: --largest bounds the run without faults.
 */
static void self_test(struct checks *c)
{
    check_all(c);
    printf("%s nothing planted: %zu passed, %zu failed\n", check.failed ? "FAIL" : "ok  ", check.passed,
           check.failed);
    size_t missed = check.failed, detected = 0;
    check.is_quiet = 1;
    options.largest = SIZE_MAX;
    for (int i = 1; solve_fault_name(i); i++) {
        check.failed = 0;
        check.only = solve_fault_case(i);
        solve_fault_plant(i);
        check_all(c);
        *(check.failed ? &detected : &missed) += 1;
        printf("%s %s: %s\n", check.failed ? "ok  " : "FAIL", solve_fault_name(i),
               check.failed ? check.first : "its case does not detect it");
    }
    check.passed += detected;
    check.failed = missed;
}

static void list_cases(const struct checks *c)
{
    static const char *const names[] = {"batch/1",
                                        "batch/2",
                                        "batch/3",
                                        "batch/8",
                                        "batch/64",
                                        "batch/200",
                                        "batch/capacities",
                                        "deadline/past",
                                        "deadline/near",
                                        "deadline/generous",
                                        "align_batch/robust",
                                        "align_batch/autoware",
                                        "limits/points",
                                        "limits/points-taken",
                                        "limits/map",
                                        "limits/scan",
                                        "limits/level",
                                        "limits/first-level",
                                        "limits/items",
                                        "limits/eval"};
    struct solve_case item;
    for (size_t i = 0; solve_case_at(&c->scene, options.seed, i, &item); i++)
        check_begin(item.name);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_begin(names[i]);
    for (int i = 0; i < VARIANTS; i++)
        check_begin(variants[i].name);
}

int main(int argc, char **argv)
{
    static const struct check_option known[] = {
        {.name = "--backend", .text = &options.backend},     {.name = "--pipeline", .text = &options.pipeline},
        {.name = "--seed", .number = &options.seed},         {.name = "--largest", .number = &options.largest},
        {.name = "--quick", .flag = &options.quick},         {.name = "--exact", .flag = &options.exact},
        {.name = "--self-test", .flag = &options.self_test}, {.name = NULL}};
    struct checks *c = &checks;
    const struct ndt_backend_ops *backends[SOLVE_PLANS];
    struct ndt_error err = {""};
    check_start(argc, argv, known);
    options.exact |= options.self_test;
    const size_t count = check.is_list ? 0 : find_backends(backends);
    if (count == 0 && !check.is_list) {
        printf("no pipeline that solves alignments works here\n");
        return CHECK_SKIPPED;
    }
    if (solve_scene_make(&c->scene, options.seed, &err) != NDT_OK)
        check_fail("the scene: %s", err.text);
    else if (check.is_list)
        list_cases(c);
    else if (open_all(c, backends, count))
        options.self_test ? self_test(c) : check_all(c);
    for (int i = 0; i < c->plan_count; i++)
        printf("checked: %s, %zu alignments per call\n", c->plans[i].name, c->plans[i].limit);
    if (!check.is_list)
        printf("%zu alignments have the bits of the host's, %zu are within the tolerance\n", c->same, c->close);
    const int code = check_finish(c->plan_count);
    close_all(c);
    solve_scene_free(&c->scene);
    return code;
}
