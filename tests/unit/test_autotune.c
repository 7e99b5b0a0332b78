/* The autotuner: candidates, sampling and decision on recorded times; measurements on this machine. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "ndt/clock.h"
#include "ndtd/autotune.h"
#include "run_tests.h"
#include "street_drive.h"
#include "temp_dir.h"

static struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
static struct ndtd_autotune_result tuned;

/* ---- recorded times ---- */

/* Medians [us] of the CPU as measured on two cores of a Zen 5 with one level of 2 m; those of the device are chosen
 * so that it loses, ties and wins. */
struct recorded {
    const char *backend, *pipeline;
    int threads;
    double p50_us;
    int is_disturbed; /* every fifth alignment takes four times as long */
};

static const struct recorded_case {
    const char *name;
    double budget_us;
    struct recorded candidates[4];
    int best;
} cases[] = {
    {"756 points", 100e3, {{"cpu", "", 1, 200, 0}, {"cpu", "", 2, 150, 0}, {"cuda", "fused", 0, 330, 0}}, 1},
    {"756 points, busy second core",
     100e3,
     {{"cpu", "", 1, 200, 0}, {"cpu", "", 2, 150, 1}, {"cuda", "fused", 0, 330, 0}},
     0},
    {"5000 points", 100e3, {{"cpu", "", 1, 1020, 0}, {"cpu", "", 2, 600, 0}, {"cuda", "fused", 0, 380, 0}}, 2},
    {"20000 points",
     3e3,
     {{"cpu", "", 1, 4260, 0},
      {"cpu", "", 2, 2300, 0},
      {"cuda", "staged", 0, 900, 0},
      {"cuda", "fused", 0, 450, 0}},
     3},
    {"20000 points, more threads than cores",
     5e3,
     {{"cpu", "", 1, 4260, 0}, {"cpu", "", 2, 2300, 0}, {"cpu", "", 3, 2250, 1}, {"cpu", "", 4, 2400, 1}},
     1},
    {"100000 points, none is fast enough",
     5e3,
     {{"cpu", "", 1, 21000, 0}, {"cpu", "", 2, 11500, 0}, {"cpu", "", 4, 6000, 0}},
     2},
    {"5000 points, a device that stutters",
     100e3,
     {{"cpu", "", 1, 1020, 0}, {"cpu", "", 2, 600, 0}, {"cuda", "fused", 0, 380, 1}},
     1},
};
static const struct recorded_case rested_cases[] = {
    {"a device that lowers its clocks loses to the CPU",
     100e3,
     {{"cpu", "", 1, 1020, 0}, {"cpu", "", 2, 600, 0}, {"cuda", "fused", 0, 380, 0}},
     1},
    {"one that lowers them less wins",
     100e3,
     {{"cpu", "", 1, 1020, 0}, {"cpu", "", 2, 600, 0}, {"cuda", "fused", 0, 380, 0}},
     2},
    {"the pipeline with fewer waits wins",
     100e3,
     {{"cpu", "", 2, 600, 0}, {"cuda", "fused", 0, 300, 0}, {"cuda", "resident", 0, 380, 0}},
     2},
    {"a device that is slower without rests is not timed after them",
     100e3,
     {{"cpu", "", 1, 200, 0}, {"cpu", "", 2, 150, 0}, {"cuda", "fused", 0, 330, 0}},
     1},
};
static const double rested_us[][4] = {{0, 0, 1500}, {0, 0, 500}, {0, 590, 500}, {0, 0, 100}};
enum { RESTED_CASES = sizeof(rested_cases) / sizeof(rested_cases[0]), NOT_RESTED = 3 };
enum { CASES = sizeof(cases) / sizeof(cases[0]), THREE = 2, FOUR = 3, SLOW = 5 };

/* A machine whose clock only alignments move. */
static struct machine {
    double now_us;
    const struct recorded_case *recorded;
    double open_us;               /* time of opening row 0 */
    size_t fails_at[4], taken[4]; /* the alignment that fails, from 1; 0: none */
    const char *why;              /* reason of failures; NULL: a memory access */
    size_t unlucky_row;           /* row whose first turn takes ten times as long; 0: none */
    const double *rested_us;      /* times after a rest; 0: as without; NULL: no rests */
    int rests, has_rested;
} machine;

static enum ndt_status machine_align(void *context, size_t row, size_t number, double *us, struct ndt_error *why)
{
    static const double noise[] = {1, 1.01, 0.99, 1.02, 0.98, 1, 1.03, 0.97, 1.04, 0.96};
    const struct recorded *candidate = &machine.recorded->candidates[row];
    (void)context;
    if (machine.taken[row] == 0 && row == 0)
        machine.now_us += machine.open_us;
    if (++machine.taken[row] == machine.fails_at[row])
        return ndt_fail(why, NDT_ERR_DEVICE, "%s",
                        machine.why ? machine.why : "an illegal memory access was encountered");
    *us = machine.has_rested && machine.rested_us[row] > 0 ? machine.rested_us[row] : candidate->p50_us;
    *us *= noise[number % 10];
    machine.has_rested = 0;
    *us *= candidate->is_disturbed && number % 5 == 4 ? 4 : 1;
    *us *= row && row == machine.unlucky_row && machine.taken[row] <= 6 ? 10 : 1;
    machine.now_us += *us;
    return NDT_OK;
}

static double machine_now(void *context)
{
    (void)context;
    return machine.now_us;
}

static void machine_rest(void *context)
{
    (void)context;
    machine.now_us += NDTD_SCAN_PERIOD_S * 1e6;
    machine.has_rested = 1;
    machine.rests++;
}

/* Runs `machine` on a case; the rest of `machine` is set before. */
static struct ndtd_autotune_choice run_machine(const struct recorded_case *recorded, double time_us)
{
    const struct ndtd_autotune_target target = {NULL, machine_align, machine_now,
                                                machine.rested_us ? machine_rest : NULL};
    size_t count = 0;
    machine.recorded = recorded;
    memset(rows, 0, sizeof(rows));
    for (; count < 4 && recorded->candidates[count].backend; count++) {
        const struct recorded *from = &recorded->candidates[count];
        rows[count].candidate = (struct ndtd_backend_candidate){from->backend, from->pipeline, from->threads};
    }
    ndtd_autotune_take_samples(rows, count, &target, time_us);
    return ndtd_autotune_decide(rows, count, recorded->budget_us);
}

TEST_EACH(the_measured_best_is_taken, 0, CASES)
{
    const struct ndtd_autotune_choice choice = run_machine(&cases[_i], 60e6);
    ck_assert_msg(choice.row == cases[_i].best, "%s: row %d", cases[_i].name, choice.row);
    ck_assert_uint_eq(rows[choice.row].samples, NDTD_AUTOTUNE_SAMPLES);
    ck_assert_int_eq(choice.meets_budget, rows[choice.row].p95_us <= cases[_i].budget_us);
    for (size_t i = 0; i < 4 && rows[i].samples > 0; i++)
        ck_assert_double_le(rows[choice.row].p95_us, 1.05 * rows[i].p95_us);
}

TEST_EACH(a_device_that_wins_is_timed_after_rests, 0, RESTED_CASES)
{
    const struct recorded_case *recorded = &rested_cases[_i];
    machine = (struct machine){.rested_us = rested_us[_i]};
    struct ndtd_autotune_choice choice = run_machine(recorded, 10e6);
    ck_assert_msg(choice.row == recorded->best, "%s: row %d", recorded->name, choice.row);
    ck_assert_int_eq(machine.rests > 0, _i != NOT_RESTED);
    ck_assert_int_eq(strstr(choice.reason, "after a rest") || strstr(choice.reason, "as good"), _i != NOT_RESTED);
    machine =
        (struct machine){.rested_us = rested_us[_i]}; /* there is time for some of the rests, and it is kept */
    choice = run_machine(recorded, 1.2e6);
    ck_assert_int_eq(choice.row, recorded->best);
    ck_assert_double_le(machine.now_us, 1.2e6);
    machine = (struct machine){.rested_us = rested_us[_i]}; /* there is none: the times back to back decide */
    (void)run_machine(recorded, 0.15e6);
    ck_assert_int_eq(machine.rests, 0);
    ck_assert_double_le(machine.now_us, 0.15e6);
}

/* A device that fails after a rest is out. */
TEST(a_device_that_fails_after_a_rest_is_left_out)
{
    machine = (struct machine){.rested_us = rested_us[1], .fails_at = {[2] = 75}};
    const struct ndtd_autotune_choice choice = run_machine(&rested_cases[1], 10e6);
    ck_assert_int_eq(choice.row, 1);
    ck_assert_uint_eq(rows[2].samples, 0);
}

TEST(rows_are_sampled_in_turns)
{
    run_machine(&cases[FOUR], 60e6);
    ck_assert_uint_eq(rows[3].samples, NDTD_AUTOTUNE_SAMPLES);
    ck_assert_uint_eq(rows[0].samples, 15);       /* ten times the best: three turns are enough */
    machine = (struct machine){.unlucky_row = 1}; /* other load in the first turn does not exclude the best row */
    run_machine(&cases[0], 60e6);
    ck_assert_uint_eq(rows[1].samples, NDTD_AUTOTUNE_SAMPLES);
    ck_assert_double_lt(rows[1].p50_us, 160);
    for (size_t at = 1; at <= 9; at += 8) { /* fails when opened, or in its second turn after good times */
        machine = (struct machine){.fails_at = {[2] = at}};
        ck_assert_int_eq(run_machine(&cases[THREE], 60e6).row, 1);
        ck_assert_uint_eq(rows[2].samples, 0);
        ck_assert_str_eq(rows[2].why, "an illegal memory access was encountered");
    }
    char reason[2 * NDTD_AUTOTUNE_REASON]; /* a long reason is cut where the row ends */
    memset(reason, 'x', sizeof(reason));
    reason[sizeof(reason) - 1] = '\0';
    machine = (struct machine){.fails_at = {[2] = 1}, .why = reason};
    run_machine(&cases[THREE], 60e6);
    ck_assert_uint_eq(strlen(rows[2].why), NDTD_AUTOTUNE_REASON - 1);
    machine = (struct machine){0}; /* the time limit: 21, 11.5 and 6 ms in 1 s */
    ck_assert_int_eq(run_machine(&cases[SLOW], 1000e3).row, 2);
    ck_assert_double_lt(machine.now_us, 1000e3 + 25e3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_ge(rows[i].samples, 5);
    machine = (struct machine){.open_us = 990e3};
    ck_assert_int_eq(run_machine(&cases[SLOW], 1000e3).row, 0);
    ck_assert_uint_eq(rows[0].samples, 1); /* the warm-up, as there was time for nothing else */
    ck_assert_uint_eq(rows[1].samples, 0);
    ck_assert_str_eq(rows[1].why, "the time for measuring was over before its turn");
}

/* Decisions on three CPU rows with 1, 2 and 4 threads; p95 of 0: not measured. */
static const struct {
    double p95_us[3], budget_us;
    int row, meets_budget;
    const char *reason;
} decisions[] = {
    {{1000, 970, 960}, 5000, 0, 1, "as good as cpu, 4 threads (0.96 ms) and needs less"},
    {{1000, 970, 960}, 980, 1, 1, "as good as cpu, 4 threads (0.96 ms) and needs less"},
    {{1000, 970, 960}, 965, 2, 1, "the smallest p95 of 3"},
    {{1000, 970, 960}, 500, 2, 0, "the smallest p95 of 3, but none meets the budget of 0.5 ms"},
    {{1010, 970, 960}, 5000, 1, 1, "as good as cpu, 4 threads (0.96 ms) and needs less"},
    {{1010, 1009, 960}, 5000, 2, 1, "the smallest p95 of 3"},
    {{0, 1000, NAN}, 5000, 1, 1, "the only one that was measured"},
    {{0, 0, NAN}, 5000, -1, 0, "nothing could be measured"},
};
enum { DECISIONS = sizeof(decisions) / sizeof(decisions[0]) };

TEST_EACH(ties_budgets_and_gaps_are_decided, 0, DECISIONS)
{
    memset(rows, 0, sizeof(rows));
    for (int i = 0; i < 3; i++)
        rows[i] = (struct ndtd_autotune_row){
            .candidate = {"cpu", "", 1 << i}, .samples = 60, .p95_us = decisions[_i].p95_us[i]};
    const struct ndtd_autotune_choice choice = ndtd_autotune_decide(rows, 3, decisions[_i].budget_us);
    ck_assert_int_eq(choice.row, decisions[_i].row);
    ck_assert_int_eq(choice.meets_budget, decisions[_i].meets_budget);
    ck_assert_str_eq(choice.reason, decisions[_i].reason);
    ck_assert_int_eq(ndtd_autotune_decide(rows, 0, 5000).row, -1);
}

static const struct together_case {
    double us[4]; /* times of 1, 2 .. scans at once; 0 ends the list */
    int without_lanes, with_lanes;
} together_cases[] = {
    {{100, 150, 180, 0}, 3, 3},   /* a launch for all */
    {{100, 150, 225, 0}, 2, 3},   /* the third gains nothing */
    {{100, 204, 306, 0}, 1, 3},   /* ties */
    {{100, 220, 330, 0}, 1, 1},   /* each for itself is faster */
    {{100, 120, 400, 410}, 2, 2}, /* the third does not fit */
    {{100, 220, 180, 0}, 3, 3},   /* a size in between that is slow */
    {{100, 0}, 1, 1},
};
enum { TOGETHER_CASES = sizeof(together_cases) / sizeof(together_cases[0]) };

TEST_EACH(scans_go_together_where_each_takes_less_time, 0, TOGETHER_CASES)
{
    const struct together_case *one = &together_cases[_i];
    size_t count = 0;
    while (count < 4 && one->us[count] > 0)
        count++;
    ck_assert_int_eq(ndtd_autotune_together(one->us, count, 0), one->without_lanes);
    ck_assert_int_eq(ndtd_autotune_together(one->us, count, 1), one->with_lanes);
}

TEST(the_log_line_has_all_rows)
{
    char text[800], small[40];
    tuned = (struct ndtd_autotune_result){
        .points = 1500,
        .budget_us = 100e3,
        .took_us = 412e3,
        .rows = {{.candidate = {"cpu", "", 1}, .samples = 60, .p50_us = 378, .p95_us = 420},
                 {.candidate = {"cpu", "", 2}, .samples = 60, .p50_us = 279, .p95_us = 310},
                 {.candidate = {"cuda", "fused", 0}, .why = "no NVIDIA driver"}},
        .row_count = 3};
    tuned.choice = ndtd_autotune_decide(tuned.rows, tuned.row_count, tuned.budget_us);
    ck_assert_str_eq(ndtd_autotune_line(&tuned, text, sizeof(text)),
                     "cpu, 2 threads: p95 0.31 ms of 100 ms at 1500 points, the smallest p95 of 2 (measured in 412 "
                     "ms; p50/p95 in ms: cpu, 1 thread 0.378/0.42; cpu, 2 threads 0.279/0.31; cuda fused "
                     "unavailable: no NVIDIA driver)");
    ck_assert_uint_eq(strlen(ndtd_autotune_line(&tuned, small, sizeof(small))), sizeof(small) - 1);
    tuned.together = 2;
    ck_assert_ptr_nonnull(
        strstr(ndtd_autotune_line(&tuned, text, sizeof(text)), "of 2, up to 2 waiting scans together (measured"));
    tuned.together = 1;
    ck_assert_ptr_nonnull(strstr(ndtd_autotune_line(&tuned, text, sizeof(text)),
                                 "of 2, waiting scans one after the other (measured"));
    memset(&tuned, 0, sizeof(tuned));
    ck_assert_str_eq(ndtd_autotune_line(&tuned, text, sizeof(text)), "not measured: the default");
}

TEST(an_unused_device_has_a_reason)
{
    struct ndtd_settings settings;
    char text[200];
    ndtd_settings_default(&settings);
    tuned = (struct ndtd_autotune_result){
        .rows = {{.candidate = {"cpu", "", 2}, .samples = 60, .p50_us = 279, .p95_us = 310},
                 {.candidate = {"cuda", "fused", 0}, .why = "no NVIDIA driver"}},
        .row_count = 2};
    ck_assert_str_eq(ndtd_autotune_why_unused(&settings, &tuned, "cuda", text, sizeof(text)), "no NVIDIA driver");
    tuned.rows[tuned.row_count++] = (struct ndtd_autotune_row){
        .candidate = {"cuda", "resident", 0}, .samples = 60, .p50_us = 400, .p95_us = 500};
    ck_assert_str_eq(ndtd_autotune_why_unused(&settings, &tuned, "cuda", text, sizeof(text)),
                     "p95 0.5 ms (cuda resident), 0.31 ms with cpu, 2 threads");
    tuned.choice.row = 2;
    ck_assert_ptr_null(ndtd_autotune_why_unused(&settings, &tuned, "cuda", text, sizeof(text)));
    ck_assert_ptr_nonnull(
        strstr(ndtd_autotune_why_unused(&settings, NULL, "cuda", text, sizeof(text)), "autotune.enable"));
    settings.isolation = NDTD_ISOLATION_ON;
    ck_assert_ptr_nonnull(
        strstr(ndtd_autotune_why_unused(&settings, NULL, "cuda", text, sizeof(text)), "security.isolation"));
    strcpy(settings.backend, "cpu");
    ck_assert_ptr_null(ndtd_autotune_why_unused(&settings, NULL, "cuda", text, sizeof(text)));
    memset(&tuned, 0, sizeof(tuned));
}

/* ---- on this machine ---- */

static void setup(void)
{
    temp_dir_make();
    street_drive_make();
    street_drive_set("cpu.threads", "0");
    street_drive_set("autotune.max_threads", "2");
}

static void teardown(void)
{
    street_drive_free();
    temp_dir_remove();
}

FIXTURE(setup, teardown)

TEST(candidates_follow_from_the_settings)
{
    static const struct {
        const char *option, *value;
        int cpu_rows; /* 0: at least one */
        int most_threads;
    } steps[] = {{"autotune.max_threads", "4", 4, 4},
                 {"autotune.max_threads", "64", 12, 64},
                 {"autotune.max_threads", "0", 0, 0},
                 {"cpu.threads", "3", 1, 3},
                 {"backend.name", "cpu", 1, 3}};
    size_t count = 0;
    for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
        int cpu_rows = 0, most_threads = 0;
        street_drive_set(steps[k].option, steps[k].value);
        count = ndtd_autotune_candidates(&drive.settings, rows);
        for (size_t i = 0; i < count; i++) {
            ck_assert_str_ne(rows[i].candidate.backend, "reference");
            cpu_rows += strcmp(rows[i].candidate.backend, "cpu") == 0;
            most_threads = (int)fmax(most_threads, rows[i].candidate.threads);
        }
        ck_assert_int_ge(cpu_rows, 1);
        if (steps[k].cpu_rows > 0) {
            ck_assert_int_eq(cpu_rows, steps[k].cpu_rows);
            ck_assert_int_eq(most_threads, steps[k].most_threads);
        }
    }
    ck_assert_uint_eq(count, 1);
    street_drive_set("backend.name", "reference");
    ck_assert_uint_eq(ndtd_autotune_candidates(&drive.settings, rows), 1);
    ck_assert_str_eq(rows[0].candidate.backend, "reference");

    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    struct ndtd_backend_candidate candidate = {"cpu", "", 5};
    ck_assert_ptr_eq(ndtd_backend_candidate_config(&candidate, &config), &ndt_cpu_backend);
    ck_assert_int_eq(config.threads, 5);
    candidate.backend = "gone";
    ck_assert_ptr_null(ndtd_backend_candidate_config(&candidate, &config));
}

static struct ndt_align_result align(const struct ndt_cloud *scan, const struct ndt_pose *guess)
{
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_align_result result;
    must(ndt_cpu_backend.open(&backend, &drive.settings.compute, &err));
    must(ndt_aligner_create(&aligner, backend, &err));
    must(ndt_aligner_set_map(aligner, drive.map, &err));
    must(ndt_align(aligner, &drive.settings.align, scan, guess, &result, &err));
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
    return result;
}

TEST(a_drawn_scan_is_like_a_real_one)
{
    struct ndt_cloud scan = {0}, again = {0}, none = {0};
    struct ndt_map *empty;
    struct ndt_pose truth, same;
    const double near_m[3] = {60, 0, 1.8};
    must(ndtd_probe_scan(&scan, &truth, drive.map, NULL, 1500, &err));
    must(ndtd_probe_scan(&again, &same, drive.map, NULL, 1500, &err));
    ck_assert_uint_eq(scan.count, 1500);
    ck_assert_mem_eq(scan.x_m, again.x_m, 1500 * sizeof(float));
    ck_assert_mem_eq(&truth, &same, sizeof(truth));
    for (size_t i = 0; i < 4; i++) {
        const struct ndt_pose guess = ndtd_probe_guess(&truth, i);
        ck_assert_double_gt(ndt_pose_distance_m(&guess, &truth), 0);
        ck_assert_double_le(ndt_pose_distance_m(&guess, &truth), 0.2);
        ck_assert_double_le(ndt_pose_angle_rad(&guess, &truth), 0.0105);
        const struct ndt_align_result result = align(&scan, &guess);
        ck_assert_int_eq(result.outcome, NDT_CONVERGED);
        ck_assert_double_lt(ndt_pose_distance_m(&result.T_map_sensor, &truth), 0.1);
        ck_assert_double_gt(result.scores.match_ratio, 0.8);
        ck_assert_int_ge(result.evaluations, 4);
    }
    must(ndtd_probe_scan(&scan, &truth, drive.map, near_m, 100000, &err));
    ck_assert_uint_eq(scan.count, 100000);
    ck_assert_mem_eq(truth.t_m, near_m, sizeof(near_m));
    must(ndtd_probe_scan(&scan, &truth, drive.map, (double[3]){1e5, 0, 0}, 10, &err)); /* nothing is there */
    ck_assert_double_lt(fabs(truth.t_m[0]), 1e4);
    must(ndt_map_from_cloud(&empty, &drive.settings.map, &none, &err));
    const struct ndtd_autotune_request request = {.settings = &drive.settings, .map = empty, .time_us = 1e6};
    ck_assert_int_eq(ndtd_autotune_measure(&request, &tuned, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(tuned.choice.row, -1);
    ndt_map_release(empty);
    ndt_cloud_free(&scan);
    ndt_cloud_free(&again);
}

static struct ndtd_autotune_request a_request(void)
{
    return (struct ndtd_autotune_request){.settings = &drive.settings, .map = drive.map, .time_us = 60e6};
}

/* The scan of one voxel with a correlated Gaussian: nine tenths of the points are its draws, a tenth strays by up
 * to 3 m. */
TEST(points_are_drawn_from_the_gaussian)
{
    enum { POINTS = 20000 };
    static const double most[3] = {1.0052, 2.3660, 6.2514}, share[3] = {0.2, 0.5, 0.9}; /* chi^2, three degrees */
    struct ndt_map_config config;
    struct ndt_cloud points, scan;
    struct ndt_map *map;
    struct ndt_pose truth;
    struct ndt_random random = {4};
    size_t within[3] = {0};
    ndt_cloud_init(&points);
    ndt_cloud_init(&scan);
    ndt_map_config_default(&config);
    config.level_count = 1;
    config.leaf_m[0] = 4;
    must(ndt_cloud_reserve(&points, 500, 0, &err));
    for (points.count = 0; points.count < 500; points.count++) {
        const double a = ndt_random_normal(&random), b = ndt_random_normal(&random), c = ndt_random_normal(&random);
        points.x_m[points.count] = (float)(2 + 0.3 * a);
        points.y_m[points.count] = (float)(2 + 0.2 * a + 0.15 * b);
        points.z_m[points.count] = (float)(2 - 0.1 * a + 0.1 * b + 0.05 * c);
    }
    must(ndt_map_from_cloud(&map, &config, &points, &err));
    ck_assert_uint_eq(map->levels[0].voxel_count, 2);
    must(ndtd_probe_scan(&scan, &truth, map, (double[3]){0, 0, 0}, POINTS, &err));
    ck_assert_double_eq(ndt_pose_distance_m(&truth, &(struct ndt_pose){{0, 0, 0}, {0, 0, 0, 1}}), 0);
    const struct ndt_voxel *voxel = &map->levels[0].voxels[1];
    for (size_t i = 0; i < POINTS; i++) {
        const double d[3] = {scan.x_m[i] - (double)voxel->mean_m[0] - 4.0 * voxel->cell[0] - map->origin_m[0],
                             scan.y_m[i] - (double)voxel->mean_m[1] - 4.0 * voxel->cell[1] - map->origin_m[1],
                             scan.z_m[i] - (double)voxel->mean_m[2] - 4.0 * voxel->cell[2] - map->origin_m[2]};
        const float *c = voxel->icov;
        const double m2 = c[0] * d[0] * d[0] + c[3] * d[1] * d[1] + c[5] * d[2] * d[2] +
                          2 * (c[1] * d[0] * d[1] + c[2] * d[0] * d[2] + c[4] * d[1] * d[2]);
        for (int k = 0; k < 3; k++)
            within[k] += m2 < most[k];
    }
    for (int k = 0; k < 3; k++)
        ck_assert_double_eq_tol((double)within[k] / POINTS, 0.9 * share[k], 0.02);
    ndt_map_release(map);
    ndt_cloud_free(&points);
    ndt_cloud_free(&scan);
}

/* Two groups of voxels 500 m apart, a lonely one first: the larger one is measured. */
TEST(a_dense_place_is_taken)
{
    struct ndt_map_config config;
    struct ndt_cloud points, scan;
    struct ndt_map *map;
    struct ndt_pose truth;
    struct ndt_random random = {4};
    ndt_cloud_init(&points);
    ndt_cloud_init(&scan);
    ndt_map_config_default(&config);
    must(ndt_cloud_reserve(&points, 4100, 0, &err));
    for (size_t i = 0; i < 4100; i++, points.count++) {
        const int is_lonely = i < 100;
        points.x_m[i] = (float)(is_lonely ? -500 + ndt_random_unit(&random) : 20 * ndt_random_unit(&random));
        points.y_m[i] = (float)(is_lonely ? ndt_random_unit(&random) : 20 * ndt_random_unit(&random));
        points.z_m[i] = (float)(is_lonely ? -20 + ndt_random_unit(&random) : ndt_random_unit(&random));
    }
    must(ndt_map_from_cloud(&map, &config, &points, &err));
    must(ndtd_probe_scan(&scan, &truth, map, NULL, 100, &err));
    for (int i = 0; i < 2; i++)
        ck_assert(truth.t_m[i] >= 0 && truth.t_m[i] <= 20);
    ck_assert(truth.t_m[2] > 1.8 && truth.t_m[2] < 2.8); /* the sensor is above the ground */
    ndt_map_release(map);
    ndt_cloud_free(&points);
    ndt_cloud_free(&scan);
}

TEST(a_result_has_times_and_costs)
{
    struct ndtd_autotune_request request = a_request();
    must(ndtd_autotune_measure(&request, &tuned, &err));
    ck_assert_int_ge(tuned.choice.row, 0);
    ck_assert_int_lt(tuned.choice.row, 2);
    ck_assert_uint_eq(tuned.points, 1500);
    ck_assert_uint_eq(tuned.map_id, drive.map->id);
    for (int i = 0; i < 2; i++) {
        const struct ndtd_autotune_row *row = &tuned.rows[i];
        ck_assert_uint_ge(row->samples, 5); /* a row far behind the best is given up after a turn */
        ck_assert_double_gt(row->p50_us, 0);
        ck_assert_double_ge(row->p95_us, row->p50_us);
        ck_assert_double_gt(row->evaluation_us, 0);
        ck_assert_double_lt(row->evaluation_us, row->p50_us);
    }
    ck_assert_uint_eq(tuned.rows[tuned.choice.row].samples, NDTD_AUTOTUNE_SAMPLES);
    for (size_t i = 0; i < drive.map->level_count; i++)
        ck_assert_double_gt(tuned.costs.levels[i].point_us, 0);
    ck_assert_double_gt(tuned.costs.assess.point_us, 0);
    request.time_us = 1; /* no time: every candidate has a reason */
    must(ndtd_autotune_measure(&request, &tuned, &err));
    ck_assert_int_eq(tuned.choice.row, -1);
    for (size_t i = 0; i < tuned.row_count; i++)
        ck_assert_msg(tuned.rows[i].samples == 0 && *tuned.rows[i].why, "row %zu", i);
}

/* Groups are measured only with batch.together, up to batch.max, where more than one scan goes at once, and while
 * there is time. */
TEST(groups_of_scans_are_measured)
{
    static const struct {
        const char *together, *most, *threads;
        double time_us;
        size_t sizes; /* measured */
    } kinds[] = {{"true", "3", "2", 30e6, 3},
                 {"true", "2", "2", 30e6, 2},
                 {"true", "1", "2", 30e6, 0},
                 {"false", "3", "2", 30e6, 0},
                 {"true", "3", "1", 30e6, 0}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        street_drive_set("batch.together", kinds[i].together);
        street_drive_set("batch.max", kinds[i].most);
        street_drive_set("cpu.threads", kinds[i].threads);
        struct ndtd_autotune_request request = a_request();
        request.time_us = kinds[i].time_us;
        must(ndtd_autotune_measure(&request, &tuned, &err));
        ck_assert_int_ge(tuned.choice.row, 0);
        for (size_t k = 0; k < NDTD_AUTOTUNE_BATCHES; k++)
            ck_assert_int_eq(tuned.batch_us[k] > 0, k < kinds[i].sizes);
        ck_assert_int_eq(tuned.together,
                         kinds[i].sizes ? ndtd_autotune_together(tuned.batch_us, kinds[i].sizes, 1) : 0);
    }
}
