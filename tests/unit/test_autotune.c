/* The autotuner: candidates, decision, sampling and drift on recorded times; measuring on this machine, at the
 * start and beside the work. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "ndtd/autotuner.h"
#include "ndtd/probe_scan.h"
#include "ndt/clock.h"
#include "street_drive.h"
#include "temp_dir.h"

static struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
static size_t row_count;
static struct ndtd_autotune_result tuned;
static struct ndtd_autotuner *tuner;

static struct ndtd_autotune_row *add(const char *backend, const char *pipeline, int threads, double p95_us)
{
    struct ndtd_autotune_row *row = &rows[row_count++];
    *row = (struct ndtd_autotune_row){.candidate = {backend, pipeline, threads},
                                      .samples = p95_us > 0 ? NDTD_AUTOTUNE_SAMPLES : 0,
                                      .p50_us = 0.9 * p95_us,
                                      .p95_us = p95_us};
    return row;
}

static void setup_rows(void)
{
    row_count = 0;
}

/* ---- recorded alignments [us] ---- */

/* Medians of the CPU as measured on two cores of a Zen 5 with one level of 2 m; those of the device are chosen so
 * that it loses, ties and wins. The spread is that of a quiet and of a busy core. */
struct recorded {
    const char *backend, *pipeline;
    int threads;
    double us[20];
};

#define STEADY(m)                                                                                                  \
    {                                                                                                              \
        m, 1.01 * m, 0.99 * m, 1.02 * m, 0.98 * m, m, 1.03 * m, 0.97 * m, m, 1.01 * m, 0.99 * m, 1.02 * m,         \
            0.98 * m, m, 1.04 * m, 0.96 * m, m, 1.01 * m, 0.99 * m, 1.05 * m                                       \
    }
/* Fast, but every fifth time another program has the core. */
#define DISTURBED(m)                                                                                               \
    {                                                                                                              \
        m, 1.1 * m, 0.9 * m, m, 4 * m, m, 1.1 * m, 0.9 * m, m, 4 * m, m, 1.1 * m, 0.9 * m, m, 4 * m, m, 1.1 * m,   \
            0.9 * m, m, 4 * m                                                                                      \
    }

struct recorded_case {
    const char *name;
    double budget_us;
    struct recorded candidates[4];
    int best;
};

static const struct recorded_case cases[] = {
    {"756 points, street, 100 ms",
     100e3,
     {{"cpu", "", 1, STEADY(200.0)}, {"cpu", "", 2, STEADY(150.0)}, {"cuda", "fused", 0, STEADY(330.0)}},
     1},
    {"756 points, busy second core, 100 ms",
     100e3,
     {{"cpu", "", 1, STEADY(200.0)}, {"cpu", "", 2, DISTURBED(150.0)}, {"cuda", "fused", 0, STEADY(330.0)}},
     0},
    {"1500 points, street, 5 ms",
     5e3,
     {{"cpu", "", 1, STEADY(350.0)}, {"cpu", "", 2, STEADY(240.0)}, {"cuda", "fused", 0, STEADY(340.0)}},
     1},
    {"5000 points, town, 100 ms",
     100e3,
     {{"cpu", "", 1, STEADY(1020.0)}, {"cpu", "", 2, STEADY(600.0)}, {"cuda", "fused", 0, STEADY(380.0)}},
     2},
    {"20000 points, town, 3 ms",
     3e3,
     {{"cpu", "", 1, STEADY(4260.0)},
      {"cpu", "", 2, STEADY(2300.0)},
      {"cuda", "staged", 0, STEADY(900.0)},
      {"cuda", "fused", 0, STEADY(450.0)}},
     3},
    {"20000 points, more threads than cores, 5 ms",
     5e3,
     {{"cpu", "", 1, STEADY(4260.0)},
      {"cpu", "", 2, STEADY(2300.0)},
      {"cpu", "", 3, DISTURBED(2250.0)},
      {"cpu", "", 4, DISTURBED(2400.0)}},
     1},
    {"100000 points, 5 ms, none is fast enough",
     5e3,
     {{"cpu", "", 1, STEADY(21000.0)}, {"cpu", "", 2, STEADY(11500.0)}, {"cpu", "", 4, STEADY(6000.0)}},
     2},
    {"5000 points, a device that stutters, 100 ms",
     100e3,
     {{"cpu", "", 1, STEADY(1020.0)}, {"cpu", "", 2, STEADY(600.0)}, {"cuda", "fused", 0, DISTURBED(380.0)}},
     1},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* ---- sampling and decision on recorded times ---- */

/* A clock that only alignments move; rows take their recorded times in turn. */
static struct machine {
    double now_us;
    const struct recorded_case *recorded;
    double open_us[NDTD_AUTOTUNE_ROWS];
    size_t fails_at[NDTD_AUTOTUNE_ROWS]; /* the alignment that fails, from 1; 0: none */
    size_t taken[NDTD_AUTOTUNE_ROWS];
    size_t unlucky_row; /* its first turn takes ten times as long; 0: none */
} machine;

static enum ndt_status machine_align(void *context, size_t row, size_t number, double *us, struct ndt_error *why)
{
    struct machine *self = context;
    if (self->taken[row] == 0)
        self->now_us += self->open_us[row];
    if (++self->taken[row] == self->fails_at[row])
        return ndt_fail(why, NDT_ERR_DEVICE, "an illegal memory access was encountered");
    *us = self->recorded->candidates[row].us[number % 20];
    *us *= row && row == self->unlucky_row && self->taken[row] <= 6 ? 10 : 1;
    self->now_us += *us;
    return NDT_OK;
}

static double machine_now(void *context)
{
    return ((struct machine *)context)->now_us;
}

static void machine_of(const struct recorded_case *recorded)
{
    machine = (struct machine){.recorded = recorded};
    row_count = 0;
    for (int i = 0; i < 4 && recorded->candidates[i].backend; i++)
        add(recorded->candidates[i].backend, recorded->candidates[i].pipeline, recorded->candidates[i].threads, 0);
}

static struct ndtd_autotune_choice run_machine(double time_us)
{
    const struct ndtd_autotune_target target = {&machine, machine_align, machine_now};
    ndtd_autotune_take_samples(rows, row_count, &target, time_us);
    return ndtd_autotune_decide(rows, row_count, machine.recorded->budget_us);
}

START_TEST(the_measured_best_is_taken)
{
    machine_of(&cases[_i]);
    const struct ndtd_autotune_choice choice = run_machine(60e6);
    ck_assert_msg(choice.row == cases[_i].best, "%s: row %d", cases[_i].name, choice.row);
    ck_assert_uint_eq(rows[choice.row].samples, NDTD_AUTOTUNE_SAMPLES);
    ck_assert_int_eq(choice.meets_budget, rows[choice.row].p95_us <= cases[_i].budget_us);
    for (size_t i = 0; i < row_count; i++)
        ck_assert_double_le(rows[choice.row].p95_us, 1.05 * rows[i].p95_us);
}
END_TEST

START_TEST(the_beaten_are_given_up)
{
    machine_of(&cases[4]);
    (void)run_machine(60e6);
    ck_assert_uint_eq(rows[3].samples, 60);
    ck_assert_uint_eq(rows[0].samples, 15); /* ten times the best: three turns are enough */
    ck_assert_double_gt(rows[0].p95_us, 4e3);
    machine_of(&cases[1]); /* a slow median does not exclude the smallest p95 */
    (void)run_machine(60e6);
    ck_assert_uint_eq(rows[0].samples, 60);
    machine_of(&cases[2]); /* other load during the whole first turn of the best one does not exclude it either */
    machine.unlucky_row = 1;
    (void)run_machine(60e6);
    ck_assert_uint_eq(rows[1].samples, 60);
    ck_assert_double_lt(rows[1].p50_us, 250);
}
END_TEST

START_TEST(a_device_that_fails_is_out_with_the_reason)
{
    for (size_t at = 1; at <= 9; at += 8) { /* when it is opened; in its second turn, after good times */
        machine_of(&cases[3]);
        machine.fails_at[2] = at;
        ck_assert_int_eq(run_machine(60e6).row, 1);
        ck_assert_uint_eq(rows[2].samples, 0);
        ck_assert_str_eq(rows[2].why, "an illegal memory access was encountered");
    }
}
END_TEST

START_TEST(the_time_is_kept)
{
    machine_of(&cases[6]); /* 21, 11.5 and 6 ms */
    ck_assert_int_eq(run_machine(1000e3).row, 2);
    ck_assert_double_lt(machine.now_us, 1000e3 + 25e3);
    for (size_t i = 0; i < row_count; i++)
        ck_assert_uint_ge(rows[i].samples, 5);
    machine_of(&cases[6]);
    machine.open_us[0] = 990e3; /* a device that wakes up slowly */
    ck_assert_int_eq(run_machine(1000e3).row, 0);
    ck_assert_uint_eq(rows[0].samples, 1); /* the warm-up, as there was time for nothing else */
    ck_assert_uint_eq(rows[1].samples, 0);
    ck_assert_str_eq(rows[1].why, "the time for measuring was over before its turn");
}
END_TEST

START_TEST(ties_go_to_what_needs_less)
{
    add("cpu", "", 1, 1000);
    add("cpu", "", 2, 970);
    add("cpu", "", 4, 960);
    struct ndtd_autotune_choice choice = ndtd_autotune_decide(rows, row_count, 5000);
    ck_assert_int_eq(choice.row, 0);
    ck_assert_str_eq(choice.reason, "as good as cpu, 4 threads (0.96 ms) and needs less");
    choice = ndtd_autotune_decide(rows, row_count, 965); /* only what meets the budget as well */
    ck_assert_int_eq(choice.row, 2);
    ck_assert_int_eq(choice.meets_budget, 1);
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 980).row, 1);
    choice = ndtd_autotune_decide(rows, row_count, 500);
    ck_assert_int_eq(choice.row, 2);
    ck_assert_int_eq(choice.meets_budget, 0);
    ck_assert_str_eq(choice.reason, "the smallest p95 of 3, but none meets the budget of 0.5 ms");
    rows[0].p95_us = 1010; /* beyond 5 % it is no tie */
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 5000).row, 1);
    rows[1].p95_us = 1009;
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 5000).row, 2);
}
END_TEST

START_TEST(what_was_not_measured_is_not_taken)
{
    add("cuda", "fused", 0, 10)->samples = 0;
    add("cpu", "", 1, 1000);
    add("cpu", "", 2, 1)->p95_us = NAN;
    add("cpu", "", 3, 0);
    struct ndtd_autotune_choice choice = ndtd_autotune_decide(rows, row_count, 5000);
    ck_assert_int_eq(choice.row, 1);
    ck_assert_str_eq(choice.reason, "the only one that was measured");
    rows[1].samples = 0;
    choice = ndtd_autotune_decide(rows, row_count, 5000);
    ck_assert_int_eq(choice.row, -1);
    ck_assert_str_eq(choice.reason, "nothing could be measured");
    ck_assert_int_eq(ndtd_autotune_decide(rows, 0, 5000).row, -1);
}
END_TEST

START_TEST(the_line_tells_everything)
{
    char text[800], small[40];
    tuned = (struct ndtd_autotune_result){
        .source = NDTD_AUTOTUNE_MEASURED, .points = 1500, .budget_us = 100e3, .took_us = 412e3};
    add("cpu", "", 1, 420);
    add("cpu", "", 2, 310);
    strcpy(add("cuda", "fused", 0, 0)->why, "no NVIDIA driver");
    memcpy(tuned.rows, rows, sizeof(rows));
    tuned.row_count = row_count;
    tuned.choice = ndtd_autotune_decide(rows, row_count, tuned.budget_us);
    ck_assert_str_eq(ndtd_autotune_line(&tuned, text, sizeof(text)),
                     "cpu, 2 threads: p95 0.31 ms of 100 ms at 1500 points, the smallest p95 of 2 (measured in 412 "
                     "ms; p50/p95 in ms: cpu, 1 thread 0.378/0.42; cpu, 2 threads 0.279/0.31; cuda fused "
                     "unavailable: no NVIDIA driver)");
    ck_assert_uint_eq(strlen(ndtd_autotune_line(&tuned, small, sizeof(small))), sizeof(small) - 1);
    memset(&tuned, 0, sizeof(tuned));
    ck_assert_str_eq(ndtd_autotune_line(&tuned, text, sizeof(text)), "not measured: the default");
}
END_TEST

/* ---- expected times and drift ---- */

START_TEST(expected_times_follow_points_and_evaluations)
{
    add("cpu", "", 1, 400)->p50_us = 400;
    tuned = (struct ndtd_autotune_result){.points = 1000, .evaluation_us = 50, .row_count = 1, .rows = {rows[0]}};
    for (int i = 0; i < 3; i++)
        tuned.costs.levels[i] = (struct ndt_cost){10, 0.02};
    ck_assert_double_eq_tol(ndtd_autotune_align_us(&tuned, 1000, 8), 400, 1e-9);
    ck_assert_double_eq_tol(ndtd_autotune_align_us(&tuned, 1000, 2), 400, 1e-9); /* what is fixed stays */
    ck_assert_double_eq_tol(ndtd_autotune_align_us(&tuned, 1000, 16), 800, 1e-9);
    ck_assert_double_eq_tol(ndtd_autotune_align_us(&tuned, 2500, 8), 800, 1e-9); /* 60 for 30 us */
    ck_assert_double_eq_tol(ndtd_autotune_evaluation_us(&tuned, 2500), 100, 1e-9);
    ck_assert_double_eq(ndtd_autotune_align_us(&(struct ndtd_autotune_result){0}, 1000, 8), 0);
}
END_TEST

/* Adds scans that take so many times what is expected; returns the one that reported drift, 0 for none. */
static int feed(struct ndtd_drift *drift, int count, double ratio)
{
    for (int i = 1; i <= count; i++)
        if (ndtd_drift_add(drift, 100 * ratio, 100))
            return i;
    return 0;
}

START_TEST(drift_is_seen_and_noise_is_not)
{
    struct ndtd_drift drift = {0};
    ck_assert_int_eq(feed(&drift, 200, 1.2), 0);
    ck_assert_int_eq(feed(&drift, 200, 1.7), 0); /* 1.4 times the first ones */
    ck_assert_int_eq(feed(&drift, 200, 2.0), 50);
    ck_assert_int_eq(feed(&drift, 200, 2.0), 50); /* and again */
    drift = (struct ndtd_drift){0};
    for (int i = 0; i < 2000; i++) /* every third scan is disturbed */
        ck_assert_int_eq(ndtd_drift_add(&drift, i % 3 ? 100 : 1000, 100), 0);
    drift = (struct ndtd_drift){0}; /* slower than measured from the first scan on: usual here */
    ck_assert_int_eq(feed(&drift, 1000, 2.5), 0);
    ck_assert_int_eq(feed(&drift, 1000, 4.0), 50);
    drift = (struct ndtd_drift){0}; /* but not that much slower */
    ck_assert_int_gt(feed(&drift, 1000, 6.0), 0);
    ck_assert_int_eq(ndtd_drift_add(&drift, 100, 0), 0);
    ck_assert_int_eq(ndtd_drift_add(&drift, NAN, 100), 0);
}
END_TEST

/* ---- on this machine ---- */

static void set(const char *name, const char *text)
{
    must(ndtd_option_set_text(&drive.settings, name, text, &err));
    must(ndtd_settings_finish(&drive.settings, &err));
}

static void setup(void)
{
    temp_dir_make();
    setenv("XDG_CACHE_HOME", temp_dir, 1);
    unsetenv("CACHE_DIRECTORY");
    street_drive_make();
    set("autotune.cache", "on");
    set("cpu.threads", "0");
    set("autotune.max_threads", "2");
    tuner = NULL;
}

static void teardown(void)
{
    ndtd_autotuner_destroy(tuner);
    street_drive_free();
    temp_dir_remove();
}

/* Rows of this backend, whose threads are added up. */
static int count_candidates(const char *backend, int *threads)
{
    const size_t count = ndtd_autotune_candidates(&drive.settings, rows);
    int found = 0;
    *threads = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].candidate.backend, backend) == 0) {
            found++;
            *threads += rows[i].candidate.threads;
        }
    return found;
}

START_TEST(candidates_follow_from_the_settings)
{
    int threads;
    set("autotune.max_threads", "4");
    ck_assert_int_eq(count_candidates("cpu", &threads), 4);
    ck_assert_int_eq(threads, 1 + 2 + 3 + 4);
    ck_assert_int_eq(count_candidates("reference", &threads), 0);
    set("autotune.max_threads", "64");
    ck_assert_int_eq(count_candidates("cpu", &threads), 12);
    set("autotune.max_threads", "0");
    ck_assert_int_ge(count_candidates("cpu", &threads), 1);
    set("cpu.threads", "3");
    ck_assert_int_eq(count_candidates("cpu", &threads), 1);
    ck_assert_int_eq(threads, 3);
    set("backend.name", "cpu");
    ck_assert_uint_eq(ndtd_autotune_candidates(&drive.settings, rows), 1);
    ck_assert_int_eq(rows[0].candidate.threads, 3);
    set("backend.name", "reference");
    ck_assert_uint_eq(ndtd_autotune_candidates(&drive.settings, rows), 1);
    ck_assert_str_eq(rows[0].candidate.backend, "reference");
}
END_TEST

START_TEST(candidates_become_configurations)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    struct ndtd_backend_candidate candidate = {"cpu", "", 5};
    ck_assert_ptr_eq(ndtd_backend_candidate_config(&candidate, &config), &ndt_cpu_backend);
    ck_assert_int_eq(config.threads, 5);
    candidate.backend = "gone";
    ck_assert_ptr_null(ndtd_backend_candidate_config(&candidate, &config));
}
END_TEST

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

START_TEST(a_drawn_scan_is_like_a_real_one)
{
    struct ndt_cloud scan, again;
    struct ndt_pose truth, same;
    const double near_m[3] = {60, 0, 1.8};
    ndt_cloud_init(&scan);
    ndt_cloud_init(&again);
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
    ndt_cloud_free(&scan);
    ndt_cloud_free(&again);
}
END_TEST

START_TEST(an_empty_map_is_refused)
{
    struct ndt_cloud none, scan;
    struct ndt_map *map;
    struct ndt_pose truth;
    ndt_cloud_init(&none);
    ndt_cloud_init(&scan);
    must(ndt_map_from_cloud(&map, &drive.settings.map, &none, &err));
    ck_assert_int_eq(ndtd_probe_scan(&scan, &truth, map, NULL, 100, &err), NDT_ERR_ARGUMENT);
    const struct ndtd_autotune_request request = {.settings = &drive.settings, .map = map, .time_us = 1e6};
    ck_assert_int_eq(ndtd_autotune_measure(&request, &tuned, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(tuned.choice.row, -1);
    ndt_map_release(map);
}
END_TEST

static struct ndtd_autotune_request a_request(void)
{
    return (struct ndtd_autotune_request){.settings = &drive.settings, .map = drive.map, .time_us = 60e6};
}

START_TEST(a_result_has_times_and_costs)
{
    const struct ndtd_autotune_request request = a_request();
    must(ndtd_autotune_measure(&request, &tuned, &err));
    ck_assert_int_ge(tuned.choice.row, 0);
    ck_assert_int_lt(tuned.choice.row, 2);
    ck_assert_uint_eq(tuned.points, 1500);
    ck_assert_uint_eq(tuned.map_id, drive.map->id);
    ck_assert_int_eq(tuned.source, NDTD_AUTOTUNE_MEASURED);
    ck_assert_uint_ge(tuned.row_count, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_ge(tuned.rows[i].samples, 15);
        ck_assert_double_gt(tuned.rows[i].p50_us, 0);
        ck_assert_double_ge(tuned.rows[i].p95_us, tuned.rows[i].p50_us);
        ck_assert_double_gt(tuned.rows[i].open_us, 0);
    }
    ck_assert_uint_eq(tuned.rows[tuned.choice.row].samples, NDTD_AUTOTUNE_SAMPLES);
    ck_assert_double_gt(tuned.evaluation_us, 0);
    ck_assert_double_lt(tuned.evaluation_us, tuned.rows[tuned.choice.row].p95_us);
    for (size_t i = 0; i < drive.map->level_count; i++)
        ck_assert_double_gt(tuned.costs.levels[i].fixed_us + 1500 * tuned.costs.levels[i].point_us, 0);
    ck_assert_double_gt(tuned.costs.assess.fixed_us + 1500 * tuned.costs.assess.point_us, 0);
}
END_TEST

START_TEST(without_time_every_candidate_says_so)
{
    struct ndtd_autotune_request request = a_request();
    request.time_us = 1;
    must(ndtd_autotune_measure(&request, &tuned, &err));
    ck_assert_int_eq(tuned.choice.row, -1);
    for (size_t i = 0; i < tuned.row_count; i++) {
        ck_assert_uint_eq(tuned.rows[i].samples, 0);
        ck_assert_str_ne(tuned.rows[i].why, "");
    }
}
END_TEST

struct gate {
    int waited, asked, closes_after;
};

static enum ndt_status gate_wait(void *context, double expected_us, struct ndt_error *why)
{
    struct gate *gate = context;
    ck_assert_double_ge(expected_us, 0);
    return ++gate->waited > gate->closes_after ? ndt_fail(why, NDT_ERR_LIMIT, "closed") : NDT_OK;
}

static int gate_disturbed(void *context)
{
    return ++((struct gate *)context)->asked % 2;
}

START_TEST(disturbed_alignments_do_not_count)
{
    struct gate gate = {.closes_after = 1000000};
    struct ndtd_autotune_request request = a_request();
    request.wait = gate_wait;
    request.was_disturbed = gate_disturbed;
    request.context = &gate;
    must(ndtd_autotune_measure(&request, &tuned, &err));
    ck_assert_int_ge(tuned.choice.row, 0);
    ck_assert_int_ge(gate.asked, 2 * 2 * 15); /* each again */
    gate = (struct gate){.closes_after = 9};
    ck_assert_int_eq(ndtd_autotune_measure(&request, &tuned, &err), NDT_ERR_LIMIT);
    ck_assert_int_eq(gate.waited, 10); /* nobody tries again */
}
END_TEST

static void open_autotuner(void)
{
    ndtd_autotuner_destroy(tuner);
    must(ndtd_autotuner_create(&tuner, street_drive_snapshot(), &err));
}

START_TEST(the_second_start_finds_the_first_ones_times)
{
    struct ndtd_autotune_result again;
    open_autotuner();
    ck_assert_int_eq(ndtd_autotuner_find(tuner, drive.map, &tuned), 1);
    ck_assert_int_eq(tuned.source, NDTD_AUTOTUNE_MEASURED);
    open_autotuner();
    ck_assert_int_eq(ndtd_autotuner_find(tuner, drive.map, &again), 1);
    ck_assert_int_eq(again.source, NDTD_AUTOTUNE_CACHED);
    ck_assert_int_eq(again.choice.row, tuned.choice.row);
    set("autotune.cache", "refresh");
    open_autotuner();
    ck_assert_int_eq(ndtd_autotuner_find(tuner, drive.map, &again), 1);
    ck_assert_int_eq(again.source, NDTD_AUTOTUNE_MEASURED);
    set("autotune.enable", "false");
    open_autotuner();
    ck_assert_int_eq(ndtd_autotuner_find(tuner, drive.map, &again), 0);
}
END_TEST

START_TEST(without_a_cache_nothing_is_written)
{
    struct stat info;
    set("autotune.cache", "off");
    open_autotuner();
    ck_assert_int_eq(ndtd_autotuner_find(tuner, drive.map, &tuned), 1);
    ck_assert_int_ne(stat(temp_path("ndtd"), &info), 0);
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1); /* cannot be written: measured all the same */
    set("autotune.cache", "on");
    open_autotuner();
    ck_assert_int_eq(ndtd_autotuner_find(tuner, drive.map, &tuned), 1);
    ck_assert_int_eq(tuned.source, NDTD_AUTOTUNE_MEASURED);
}
END_TEST

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static int take(void)
{
    struct ndt_backend *opened;
    const int taken = ndtd_autotuner_take(tuner, &tuned, &opened);
    if (opened)
        opened->ops->close(opened);
    return taken;
}

START_TEST(beside_the_work_it_waits_for_quiet_moments)
{
    set("autotune.cache", "off");
    open_autotuner();
    ck_assert_int_eq(take(), 0);
    ndtd_autotuner_enter(tuner, ndt_clock_us()); /* a scan that takes long */
    ndtd_autotuner_start(tuner, drive.map, NULL, NULL);
    for (int i = 0; i < 40; i++) {
        nap();
        ck_assert_int_eq(take(), 0);
    }
    ndtd_autotuner_leave(tuner);
    while (!take())
        nap();
    ck_assert_int_ge(tuned.choice.row, 0);
    ck_assert_int_eq(take(), 0); /* once */
}
END_TEST

START_TEST(it_measures_between_scans)
{
    const struct ndt_pose somewhere = drive.truth[0];
    struct ndt_cloud scan;
    ndt_cloud_init(&scan);
    must(ndtd_probe_scan(&scan, &(struct ndt_pose){0}, drive.map, somewhere.t_m, 700, &err));
    open_autotuner();
    ndtd_autotuner_start(tuner, drive.map, &scan, &somewhere);
    int rounds = 0;
    for (int taken = 0; !taken; rounds++) { /* 5 ms of work, 45 ms of quiet */
        ndtd_autotuner_enter(tuner, ndt_clock_us());
        nap();
        ndtd_autotuner_leave(tuner);
        taken = take();
        for (int i = 0; i < 9; i++)
            nap();
        ck_assert_int_lt(rounds, 600);
    }
    ck_assert_int_ge(rounds, 1);
    ck_assert_uint_eq(tuned.points, 700);  /* the scan's, not the settings' */
    set("preprocess.sample_count", "800"); /* a later measurement follows the settings in force */
    ndtd_autotuner_apply(tuner, street_drive_snapshot());
    ndtd_autotuner_start(tuner, drive.map, NULL, NULL);
    while (!take())
        nap();
    ck_assert_uint_eq(tuned.points, 800);
    ndt_cloud_free(&scan);
}
END_TEST

START_TEST(it_ends_when_told_to)
{
    open_autotuner();
    ndtd_autotuner_enter(tuner, ndt_clock_us());
    ndtd_autotuner_start(tuner, drive.map, NULL, NULL); /* never gets a quiet moment */
    ndtd_autotuner_destroy(tuner);
    tuner = NULL;
    open_autotuner();
    ndtd_autotuner_start(tuner, drive.map, NULL, NULL); /* in the middle of it */
    nap();
}
END_TEST

/* Adds scans that take so many times what is expected; returns the one that asked to measure again, 0 for none. */
static int see(int count, double ratio)
{
    struct ndtd_scan_record record = {.points_used = 1500, .result = {.evaluations = 8}};
    record.result.align_us = ratio * ndtd_autotune_align_us(&tuned, 1500, 8);
    for (int i = 1; i <= count; i++)
        if (ndtd_autotuner_see(tuner, &tuned, &record))
            return i;
    return 0;
}

START_TEST(drift_asks_for_new_times_but_not_all_the_time)
{
    const struct ndtd_autotune_request request = a_request();
    must(ndtd_autotune_measure(&request, &tuned, &err));
    set("autotune.recheck_s", "0.02");
    open_autotuner();
    nap();
    ck_assert_int_eq(see(100, 1.1), 0);
    for (int i = 0; i < 5; i++)
        nap();
    ck_assert_int_eq(see(100, 3), 50);
    ck_assert_int_eq(see(100, 3) != 0, 0); /* learns anew how it is here */
    set("autotune.recheck_s", "3600");
    open_autotuner();
    ck_assert_int_eq(see(100, 1), 0);
    ck_assert_int_eq(see(200, 9), 0); /* too soon after the start */
    set("autotune.recheck_s", "0");
    open_autotuner();
    ck_assert_int_eq(see(100, 1), 0);
    ck_assert_int_eq(see(200, 9), 0); /* never */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("autotune");
    TCase *recorded = tcase_create("recorded"), *machine_here = tcase_create("measured");
    tcase_add_checked_fixture(recorded, setup_rows, NULL);
    tcase_add_loop_test(recorded, the_measured_best_is_taken, 0, CASES);
    tcase_add_test(recorded, the_beaten_are_given_up);
    tcase_add_test(recorded, a_device_that_fails_is_out_with_the_reason);
    tcase_add_test(recorded, the_time_is_kept);
    tcase_add_test(recorded, ties_go_to_what_needs_less);
    tcase_add_test(recorded, what_was_not_measured_is_not_taken);
    tcase_add_test(recorded, the_line_tells_everything);
    tcase_add_test(recorded, expected_times_follow_points_and_evaluations);
    tcase_add_test(recorded, drift_is_seen_and_noise_is_not);
    suite_add_tcase(suite, recorded);
    tcase_add_checked_fixture(machine_here, setup, teardown);
    tcase_set_timeout(machine_here, 120);
    tcase_add_test(machine_here, candidates_follow_from_the_settings);
    tcase_add_test(machine_here, candidates_become_configurations);
    tcase_add_test(machine_here, a_drawn_scan_is_like_a_real_one);
    tcase_add_test(machine_here, an_empty_map_is_refused);
    tcase_add_test(machine_here, a_result_has_times_and_costs);
    tcase_add_test(machine_here, without_time_every_candidate_says_so);
    tcase_add_test(machine_here, disturbed_alignments_do_not_count);
    tcase_add_test(machine_here, the_second_start_finds_the_first_ones_times);
    tcase_add_test(machine_here, without_a_cache_nothing_is_written);
    tcase_add_test(machine_here, beside_the_work_it_waits_for_quiet_moments);
    tcase_add_test(machine_here, it_measures_between_scans);
    tcase_add_test(machine_here, it_ends_when_told_to);
    tcase_add_test(machine_here, drift_asks_for_new_times_but_not_all_the_time);
    suite_add_tcase(suite, machine_here);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
