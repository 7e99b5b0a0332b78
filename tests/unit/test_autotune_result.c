/* The choice from recorded times, the order of measuring with recorded times for a machine, and drift. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndtd/autotune_result.h"
#include "ndtd/autotune_sampler.h"

static struct ndt_error err;
static struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
static size_t row_count;

static void setup(void)
{
    memset(rows, 0, sizeof(rows));
    row_count = 0;
}

static struct ndtd_backend_candidate candidate(const char *backend, const char *pipeline, int threads, int batch)
{
    struct ndtd_backend_candidate out = {.threads = threads, .batch = batch};
    snprintf(out.backend, sizeof(out.backend), "%s", backend);
    snprintf(out.pipeline, sizeof(out.pipeline), "%s", pipeline);
    return out;
}

static struct ndtd_autotune_row *add(const char *backend, const char *pipeline, int threads)
{
    rows[row_count].candidate = candidate(backend, pipeline, threads, 1);
    return &rows[row_count++];
}

/* ---- recorded alignments [us] ---- */

/* Medians of the CPU are those of the README's table (two cores of a Zen 5, one level of 2 m); those of the device
 * are made up, so that it loses, ties and wins. The spread is that of a quiet and of a busy core. */
struct recorded {
    const char *backend, *pipeline;
    int threads;
    double us[20];
};

static double all_of(const struct recorded *recorded, double q)
{
    struct ndtd_autotune_row row = {.is_here = 0};
    double us[20];
    memcpy(us, recorded->us, sizeof(us));
    ndtd_autotune_summarize(&row, us, 20);
    return q == 0.5 ? row.p50_us : row.p95_us;
}

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

static void take_case(const struct recorded_case *recorded)
{
    setup();
    for (int i = 0; i < 4 && recorded->candidates[i].backend; i++) {
        double us[20];
        memcpy(us, recorded->candidates[i].us, sizeof(us));
        ndtd_autotune_summarize(
            add(recorded->candidates[i].backend, recorded->candidates[i].pipeline, recorded->candidates[i].threads),
            us, 20);
    }
}

START_TEST(the_measured_best_is_taken)
{
    const struct recorded_case *recorded = &cases[_i];
    take_case(recorded);
    const struct ndtd_autotune_choice choice = ndtd_autotune_decide(rows, row_count, recorded->budget_us);
    double least_us = INFINITY;
    for (size_t i = 0; i < row_count; i++)
        least_us = fmin(least_us, all_of(&recorded->candidates[i], 0.95));
    ck_assert_msg(choice.row == recorded->best, "%s: row %d", recorded->name, choice.row);
    ck_assert_double_le(all_of(&recorded->candidates[choice.row], 0.95), 1.1 * least_us);
    ck_assert_int_eq(choice.meets_budget, all_of(&recorded->candidates[choice.row], 0.95) <= recorded->budget_us);
}
END_TEST

static void put(struct ndtd_autotune_row *row, double p95_us)
{
    row->is_here = 1;
    row->samples = 60;
    row->p50_us = 0.9 * p95_us;
    row->p95_us = p95_us;
}

/* 250 samples: a burst that hits a fifth of them in a row is no property of the way, one in ten spread out is. */
START_TEST(a_burst_does_not_decide)
{
    struct ndtd_autotune_row row;
    double us[250];
    for (int i = 0; i < 250; i++)
        us[i] = i >= 60 && i < 110 ? 5000 : 300 + i % 10;
    ndtd_autotune_summarize(&row, us, 250);
    ck_assert_double_lt(row.p95_us, 310);
    ck_assert_double_lt(row.p50_us, 310);
    for (int i = 0; i < 250; i++)
        us[i] = i % 10 == 0 ? 5000 : 300;
    ndtd_autotune_summarize(&row, us, 250);
    ck_assert_double_gt(row.p95_us, 4000);
    ck_assert_double_eq(row.p50_us, 300);
    for (size_t count = 1; count <= 250; count++) { /* every length has all of its samples within */
        for (int i = 0; i < 250; i++)
            us[i] = (size_t)i < count ? 1 + i : 1e9;
        ndtd_autotune_summarize(&row, us, count);
        ck_assert_double_le(row.p50_us, row.p95_us);
        ck_assert_double_le(row.p95_us, (double)count);
        ck_assert_double_ge(row.p95_us, 0.4 * (double)count);
    }
}
END_TEST

START_TEST(ties_go_to_what_needs_less)
{
    put(add("cpu", "", 1), 1000);
    put(add("cpu", "", 2), 970);
    put(add("cpu", "", 4), 960);
    struct ndtd_autotune_choice choice = ndtd_autotune_decide(rows, row_count, 5000);
    ck_assert_int_eq(choice.row, 0);
    ck_assert_str_eq(choice.reason, "as good as cpu, 4 threads (0.96 ms) and needs less");
    /* Only what meets the budget as well. */
    choice = ndtd_autotune_decide(rows, row_count, 965);
    ck_assert_int_eq(choice.row, 2);
    ck_assert_int_eq(choice.meets_budget, 1);
    choice = ndtd_autotune_decide(rows, row_count, 980);
    ck_assert_int_eq(choice.row, 1);
    /* Beyond 5 % it is no tie. */
    rows[0].p95_us = 1010;
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 5000).row, 1);
    rows[1].p95_us = 1009;
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 5000).row, 2);
}
END_TEST

START_TEST(none_in_time_is_said)
{
    put(add("cpu", "", 1), 1000);
    put(add("cpu", "", 2), 970);
    const struct ndtd_autotune_choice choice = ndtd_autotune_decide(rows, row_count, 500);
    ck_assert_int_eq(choice.row, 1);
    ck_assert_int_eq(choice.meets_budget, 0);
    ck_assert_str_eq(choice.reason, "the smallest p95 of 2, but none meets the budget of 0.5 ms");
}
END_TEST

START_TEST(what_is_not_here_is_not_taken)
{
    struct ndtd_autotune_row *gpu = add("cuda", "fused", 0);
    put(gpu, 10);
    gpu->is_here = 0;
    put(add("cpu", "", 1), 1000);
    put(add("cpu", "", 2), NAN);
    put(add("cpu", "", 3), 0);
    rows[row_count - 1].samples = 0;
    struct ndtd_autotune_choice choice = ndtd_autotune_decide(rows, row_count, 5000);
    ck_assert_int_eq(choice.row, 1);
    ck_assert_str_eq(choice.reason, "the only one that was measured");
    rows[1].is_here = 0;
    choice = ndtd_autotune_decide(rows, row_count, 5000);
    ck_assert_int_eq(choice.row, -1);
    ck_assert_str_eq(choice.reason, "nothing could be measured");
    ck_assert_int_eq(ndtd_autotune_decide(rows, 0, 5000).row, -1);
}
END_TEST

START_TEST(names_and_the_line_tell_everything)
{
    char text[800], name[80];
    struct ndtd_backend_candidate batch = candidate("cuda", "resident", 0, 3);
    ck_assert_str_eq(ndtd_backend_candidate_name(&batch, name, sizeof(name)), "cuda resident, 3 at once");
    struct ndtd_autotune_result tuned = {
        .source = NDTD_AUTOTUNE_MEASURED, .points = 1500, .budget_us = 100e3, .took_us = 412e3};
    put(add("cpu", "", 1), 420);
    put(add("cpu", "", 2), 310);
    struct ndtd_autotune_row *gpu = add("cuda", "fused", 0);
    strcpy(gpu->why, "no NVIDIA driver");
    memcpy(tuned.rows, rows, sizeof(rows));
    tuned.row_count = row_count;
    tuned.choice = ndtd_autotune_decide(rows, row_count, tuned.budget_us);
    ck_assert_str_eq(ndtd_autotune_line(&tuned, text, sizeof(text)),
                     "cpu, 2 threads: p95 0.31 ms of 100 ms at 1500 points, the smallest p95 of 2 (measured in 412 "
                     "ms; p50/p95 in ms: cpu, 1 thread 0.378/0.42; cpu, 2 threads 0.279/0.31; cuda fused not here: "
                     "no NVIDIA driver)");
    char small[40];
    ck_assert_uint_eq(strlen(ndtd_autotune_line(&tuned, small, sizeof(small))), sizeof(small) - 1);
    memset(&tuned, 0, sizeof(tuned));
    ck_assert_str_eq(ndtd_autotune_line(&tuned, text, sizeof(text)), "not measured: the default");
}
END_TEST

/* ---- trials, on a machine of recorded numbers ---- */

/* A clock that only its own costs move; rows take their recorded times one after the other. */
static struct machine {
    double now_us;
    double us[NDTD_AUTOTUNE_ROWS][20], open_us[NDTD_AUTOTUNE_ROWS];
    size_t fails_at[NDTD_AUTOTUNE_ROWS]; /* this many samples go well; 0: all do */
    int cannot_open[NDTD_AUTOTUNE_ROWS];
    size_t taken[NDTD_AUTOTUNE_ROWS];
    int open_count, most_open;
    size_t unlucky_row; /* its first turn takes ten times as long; 0: none */
} machine;

static enum ndt_status machine_open(void *context, size_t row, struct ndt_error *why)
{
    struct machine *self = context;
    if (self->cannot_open[row])
        return ndt_fail(why, NDT_ERR_UNSUPPORTED, "no NVIDIA driver");
    self->now_us += self->open_us[row];
    self->open_count++;
    self->most_open = self->open_count > self->most_open ? self->open_count : self->most_open;
    return NDT_OK;
}

static void machine_close(void *context, size_t row)
{
    (void)row;
    ((struct machine *)context)->open_count--;
}

static enum ndt_status machine_sample(void *context, size_t row, size_t number, double *us, struct ndt_error *why)
{
    struct machine *self = context;
    ck_assert_int_eq(self->open_count, 1);
    if (self->fails_at[row] && self->taken[row] == self->fails_at[row])
        return ndt_fail(why, NDT_ERR_DEVICE, "an illegal memory access was encountered");
    *us = self->us[row][number % 20] * (row && row == self->unlucky_row && self->taken[row] < 6 ? 10 : 1);
    self->taken[row]++;
    self->now_us += *us;
    return NDT_OK;
}

static double machine_now(void *context)
{
    return ((struct machine *)context)->now_us;
}

static void run_machine(double time_us, size_t samples)
{
    static const struct ndtd_autotune_sampler_ops ops = {machine_open, machine_close, machine_sample, machine_now};
    const struct ndtd_autotune_sampler_limits limits = {time_us, samples};
    ck_assert_msg(ndtd_autotune_sample(rows, row_count, &ops, &machine, &limits, &err) == NDT_OK, "%s", err.text);
    ck_assert_int_eq(machine.open_count, 0);
}

static void machine_of(const struct recorded_case *recorded)
{
    memset(&machine, 0, sizeof(machine));
    take_case(recorded);
    for (size_t i = 0; i < row_count; i++)
        memcpy(machine.us[i], recorded->candidates[i].us, sizeof(machine.us[i]));
}

START_TEST(measuring_finds_the_best_too)
{
    const struct recorded_case *recorded = &cases[_i];
    machine_of(recorded);
    for (size_t i = 0; i < row_count; i++)
        rows[i] = (struct ndtd_autotune_row){.candidate = rows[i].candidate};
    run_machine(60e6, 60);
    const struct ndtd_autotune_choice choice = ndtd_autotune_decide(rows, row_count, recorded->budget_us);
    ck_assert_msg(choice.row == recorded->best, "%s: row %d", recorded->name, choice.row);
    ck_assert_uint_eq(rows[choice.row].samples, 60);
}
END_TEST

START_TEST(the_beaten_are_left_out)
{
    machine_of(&cases[4]);
    run_machine(60e6, 60);
    ck_assert_uint_eq(rows[3].samples, 60);
    ck_assert_uint_eq(rows[0].samples, 15); /* ten times the best: three turns are enough */
    ck_assert_int_eq(rows[0].is_here, 1);
    ck_assert_double_gt(rows[0].p95_us, 4e3);
    /* A slow median is no reason to leave out what may have the smallest p95. */
    machine_of(&cases[1]);
    run_machine(60e6, 60);
    ck_assert_uint_eq(rows[0].samples, 60);
}
END_TEST

/* Another program has the core during the whole first turn of the best way: it wins all the same. */
START_TEST(an_unlucky_first_turn_is_made_up_for)
{
    machine_of(&cases[2]);
    machine.unlucky_row = 1;
    run_machine(60e6, 250);
    ck_assert_uint_eq(rows[1].samples, 250);
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 5e3).row, 1);
}
END_TEST

START_TEST(a_device_that_fails_is_out_with_the_reason)
{
    machine_of(&cases[3]);
    machine.fails_at[2] = 9; /* in its second turn, after good times */
    run_machine(60e6, 60);
    ck_assert_int_eq(rows[2].is_here, 0);
    ck_assert_uint_eq(rows[2].samples, 0);
    ck_assert_str_eq(rows[2].why, "an illegal memory access was encountered");
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 100e3).row, 1);

    machine_of(&cases[3]);
    machine.cannot_open[2] = 1;
    run_machine(60e6, 60);
    ck_assert_str_eq(rows[2].why, "no NVIDIA driver");
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 100e3).row, 1);
}
END_TEST

START_TEST(the_time_is_kept)
{
    machine_of(&cases[6]); /* 21, 11.5 and 6 ms */
    run_machine(1000e3, 60);
    ck_assert_double_lt(machine.now_us, 1000e3 + 25e3);
    for (size_t i = 0; i < row_count; i++)
        ck_assert_uint_ge(rows[i].samples, 5);
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 5e3).row, 2);

    machine_of(&cases[6]);
    machine.open_us[0] = 990e3; /* a device that wakes up slowly */
    machine.open_us[1] = 30e3;
    run_machine(1000e3, 60);
    ck_assert_uint_eq(rows[0].samples, 1); /* the warm-up, as there was time for nothing else */
    ck_assert_int_eq(rows[1].is_here, 0);
    ck_assert_str_eq(rows[1].why, "the time for measuring was over before its turn");
    ck_assert_int_eq(ndtd_autotune_decide(rows, row_count, 5e3).row, 0);
}
END_TEST

START_TEST(wrong_limits_are_refused)
{
    static const struct ndtd_autotune_sampler_ops ops = {machine_open, machine_close, machine_sample, machine_now};
    ck_assert_int_eq(
        ndtd_autotune_sample(rows, 1, &ops, &machine, &(struct ndtd_autotune_sampler_limits){1, 0}, &err),
        NDT_ERR_ARGUMENT);
    ck_assert_int_eq(
        ndtd_autotune_sample(rows, 1, &ops, &machine, &(struct ndtd_autotune_sampler_limits){1, 1001}, &err),
        NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndtd_autotune_sample(rows, NDTD_AUTOTUNE_ROWS + 1, &ops, &machine,
                                          &(struct ndtd_autotune_sampler_limits){1, 5}, &err),
                     NDT_ERR_ARGUMENT);
    ck_assert_int_eq(
        ndtd_autotune_sample(rows, 0, &ops, &machine, &(struct ndtd_autotune_sampler_limits){1, 5}, &err), NDT_OK);
}
END_TEST

/* ---- expectation and drift ---- */

START_TEST(expected_times_follow_points_and_evaluations)
{
    struct ndtd_autotune_result tuned = {.points = 1000, .evaluation_us = 50, .row_count = 1};
    put(&tuned.rows[0], 400);
    tuned.rows[0].p50_us = 400;
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

/* Feeds `count` scans that take so many times what is expected; returns the one that said drift, 0 for none. */
static int feed(struct ndtd_drift *drift, int count, double ratio)
{
    for (int i = 1; i <= count; i++)
        if (ndtd_drift_see(drift, 100 * ratio, 100))
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
        ck_assert_int_eq(ndtd_drift_see(&drift, i % 3 ? 100 : 1000, 100), 0);

    drift = (struct ndtd_drift){0}; /* slower than measured from the first scan on: that is how it is here */
    ck_assert_int_eq(feed(&drift, 1000, 2.5), 0);
    ck_assert_int_eq(feed(&drift, 1000, 4.0), 50);
    drift = (struct ndtd_drift){0}; /* but not that much slower */
    ck_assert_int_gt(feed(&drift, 1000, 6.0), 0);

    ck_assert_int_eq(ndtd_drift_see(&drift, 100, 0), 0);
    ck_assert_int_eq(ndtd_drift_see(&drift, NAN, 100), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, the_measured_best_is_taken, 0, CASES);
    tcase_add_loop_test(tcase, measuring_finds_the_best_too, 0, CASES);
    tcase_add_test(tcase, a_burst_does_not_decide);
    tcase_add_test(tcase, ties_go_to_what_needs_less);
    tcase_add_test(tcase, none_in_time_is_said);
    tcase_add_test(tcase, what_is_not_here_is_not_taken);
    tcase_add_test(tcase, names_and_the_line_tell_everything);
    tcase_add_test(tcase, the_beaten_are_left_out);
    tcase_add_test(tcase, an_unlucky_first_turn_is_made_up_for);
    tcase_add_test(tcase, a_device_that_fails_is_out_with_the_reason);
    tcase_add_test(tcase, the_time_is_kept);
    tcase_add_test(tcase, wrong_limits_are_refused);
    tcase_add_test(tcase, expected_times_follow_points_and_evaluations);
    tcase_add_test(tcase, drift_is_seen_and_noise_is_not);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
