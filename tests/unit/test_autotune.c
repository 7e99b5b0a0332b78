/* What is measured, with what scan, and the router that does it at the start and beside the work. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "ndtd/autotune.h"
#include "ndtd/probe_scan.h"
#include "ndtd/autotune_cache.h"
#include "ndtd/autotuner.h"
#include "ndtd/stopwatch.h"
#include "street_drive.h"
#include "temp_dir.h"

static struct ndtd_autotune_result tuned;
static struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
static struct ndtd_autotuner *tuner;

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

/* ---- ways ---- */

/* Rows of this backend, whose threads are added up. */
static int count_candidates(const char *backend, int *threads)
{
    const size_t count = ndtd_autotune_candidates(&drive.settings, rows);
    int found = 0;
    *threads = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].candidate.backend, backend) != 0)
            continue;
        found++;
        *threads += rows[i].candidate.threads;
        ck_assert_int_eq(rows[i].candidate.batch, 1);
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
    struct ndtd_backend_candidate candidate = {.backend = "cpu", .threads = 5, .batch = 1};
    ck_assert_ptr_eq(ndtd_backend_candidate_config(&candidate, &config), &ndt_cpu_backend);
    ck_assert_int_eq(config.threads, 5);
    strcpy(candidate.pipeline, "fused"); /* it has none */
    ck_assert_ptr_null(ndtd_backend_candidate_config(&candidate, &config));
    strcpy(candidate.backend, "gone");
    ck_assert_ptr_null(ndtd_backend_candidate_config(&candidate, &config));
}
END_TEST

/* ---- the scan ---- */

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
    ck_assert_int_eq(ndtd_autotune(&request, &tuned, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(tuned.choice.row, -1);
    ndt_map_release(map);
}
END_TEST

/* ---- calibration ---- */

static struct ndtd_autotune_request a_request(void)
{
    return (struct ndtd_autotune_request){
        .settings = &drive.settings, .map = drive.map, .time_us = 60e6, .samples = 10};
}

START_TEST(a_result_has_times_and_costs)
{
    const struct ndtd_autotune_request request = a_request();
    must(ndtd_autotune(&request, &tuned, &err));
    ck_assert_int_ge(tuned.choice.row, 0);
    ck_assert_int_lt(tuned.choice.row, 2);
    ck_assert_uint_eq(tuned.points, 1500);
    ck_assert_uint_eq(tuned.map_id, drive.map->id);
    ck_assert_int_eq(tuned.source, NDTD_AUTOTUNE_MEASURED);
    ck_assert_uint_ge(tuned.row_count, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tuned.rows[i].is_here, 1);
        ck_assert_double_gt(tuned.rows[i].p50_us, 0);
        ck_assert_double_ge(tuned.rows[i].p95_us, tuned.rows[i].p50_us);
        ck_assert_double_gt(tuned.rows[i].open_us, 0);
    }
    ck_assert_uint_eq(tuned.rows[tuned.choice.row].samples, 10);
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
    must(ndtd_autotune(&request, &tuned, &err));
    ck_assert_int_eq(tuned.choice.row, -1);
    for (size_t i = 0; i < tuned.row_count; i++) {
        ck_assert_int_eq(tuned.rows[i].is_here, 0);
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
    request.gate = (struct ndtd_autotune_gate){&gate, gate_wait, gate_disturbed};
    must(ndtd_autotune(&request, &tuned, &err));
    ck_assert_int_ge(tuned.choice.row, 0);
    ck_assert_int_ge(gate.asked, 2 * 2 * 10); /* each again */
    const int candidates = (int)tuned.row_count;
    gate = (struct gate){.closes_after = 9};
    ck_assert_int_eq(ndtd_autotune(&request, &tuned, &err), NDT_ERR_LIMIT);
    ck_assert_int_le(gate.waited, 9 + candidates); /* each hears it once, nobody goes on trying */
}
END_TEST

/* ---- the router ---- */

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
    ndtd_autotuner_enter(tuner, ndtd_now_us()); /* a scan that takes long */
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
        ndtd_autotuner_enter(tuner, ndtd_now_us());
        nap();
        ndtd_autotuner_leave(tuner);
        taken = take();
        for (int i = 0; i < 9; i++)
            nap();
        ck_assert_int_lt(rounds, 600);
    }
    ck_assert_int_ge(rounds, 1);
    ck_assert_uint_eq(tuned.points, 700); /* the scan's, not the settings' */
    ndt_cloud_free(&scan);
}
END_TEST

START_TEST(it_ends_when_told_to)
{
    open_autotuner();
    ndtd_autotuner_enter(tuner, ndtd_now_us());
    ndtd_autotuner_start(tuner, drive.map, NULL, NULL); /* never gets a quiet moment */
    ndtd_autotuner_destroy(tuner);
    tuner = NULL;
    open_autotuner();
    ndtd_autotuner_start(tuner, drive.map, NULL, NULL); /* in the middle of it */
    nap();
}
END_TEST

/* Feeds scans that take so many times what is expected; returns after how many it wants to measure again, 0: never.
 */
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
    must(ndtd_autotune(&request, &tuned, &err));
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
    Suite *suite = suite_create("calibration");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, candidates_follow_from_the_settings);
    tcase_add_test(tcase, candidates_become_configurations);
    tcase_add_test(tcase, a_drawn_scan_is_like_a_real_one);
    tcase_add_test(tcase, an_empty_map_is_refused);
    tcase_add_test(tcase, a_result_has_times_and_costs);
    tcase_add_test(tcase, without_time_every_candidate_says_so);
    tcase_add_test(tcase, disturbed_alignments_do_not_count);
    tcase_add_test(tcase, the_second_start_finds_the_first_ones_times);
    tcase_add_test(tcase, without_a_cache_nothing_is_written);
    tcase_add_test(tcase, beside_the_work_it_waits_for_quiet_moments);
    tcase_add_test(tcase, it_measures_between_scans);
    tcase_add_test(tcase, it_ends_when_told_to);
    tcase_add_test(tcase, drift_asks_for_new_times_but_not_all_the_time);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
