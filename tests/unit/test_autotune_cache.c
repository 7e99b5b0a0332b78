/* The autotune cache: stored results are found bit for bit or not at all, whatever the file holds. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ndtd/autotune.h"
#include "ndtd/options.h"
#include "temp_dir.h"

static struct ndt_error err;
static struct ndtd_settings settings;
static struct ndtd_autotune_result tuned, found;
static char path[512];
enum { MAP = 7 };

static void setup(void)
{
    static const double p95_us[] = {1000, 980, 700, 800};
    temp_dir_make();
    setenv("XDG_CACHE_HOME", temp_dir, 1);
    unsetenv("CACHE_DIRECTORY");
    ck_assert_msg(ndtd_autotune_cache_path(path, sizeof(path), 1, &err) == NDT_OK, "%s", err.text);
    ndtd_settings_default(&settings);
    settings.max_threads = 4;
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    memset(&tuned, 0, sizeof(tuned));
    tuned.measured_s = 1700000000;
    tuned.map_id = MAP;
    tuned.points = 1500;
    tuned.costs.assess = (struct ndt_cost){6.5, 0.25};
    for (int i = 0; i < 3; i++)
        tuned.costs.levels[i] = (struct ndt_cost){4 + i, 0.015625 * i};
    tuned.together = 2;
    for (int i = 0; i < 3; i++)
        tuned.batch_us[i] = 700.5 + 600 * i;
    tuned.row_count = ndtd_autotune_candidates(&settings, tuned.rows);
    ck_assert_uint_ge(tuned.row_count, 4);
    for (size_t i = 0; i < 4; i++) {
        tuned.rows[i].samples = i < 3 ? 60 : 0;
        tuned.rows[i].p95_us = p95_us[i];
        tuned.rows[i].p50_us = 0.8125 * p95_us[i];
        tuned.rows[i].evaluation_us = 48.5;
        tuned.rows[i].open_us = 150;
    }
    strcpy(tuned.rows[3].why, "no NVIDIA driver: \"libcuda.so.1\" is not there");
    tuned.choice = ndtd_autotune_decide(tuned.rows, tuned.row_count, 100e3);
}

static void store(uint64_t map_id)
{
    tuned.map_id = map_id;
    ck_assert_msg(ndtd_autotune_cache_store(&settings, &tuned, &err) == NDT_OK, "%s", err.text);
}

static int find(uint64_t map_id)
{
    return ndtd_autotune_cache_find(&settings, map_id, &found);
}

static void check_equal(void)
{
    ck_assert_int_eq(found.source, NDTD_AUTOTUNE_CACHED);
    ck_assert_int_eq(found.choice.row, tuned.choice.row);
    ck_assert_uint_eq(found.row_count, tuned.row_count);
    ck_assert_uint_eq(found.points, tuned.points);
    ck_assert_int_eq(found.measured_s, tuned.measured_s);
    ck_assert_mem_eq(&found.costs, &tuned.costs, sizeof(tuned.costs));
    ck_assert_int_eq(found.together, tuned.together);
    ck_assert_mem_eq(found.batch_us, tuned.batch_us, sizeof(tuned.batch_us));
    for (size_t i = 0; i < tuned.row_count; i++) {
        const struct ndtd_autotune_row *a = &found.rows[i], *b = &tuned.rows[i];
        ck_assert_mem_eq(&a->candidate, &b->candidate, sizeof(a->candidate));
        ck_assert_str_eq(a->why, b->why);
        ck_assert_uint_eq(a->samples, b->samples);
        ck_assert_double_eq(a->p95_us, b->p95_us);
        ck_assert_double_eq(a->p50_us, b->p50_us);
        ck_assert_double_eq(a->evaluation_us, b->evaluation_us);
        ck_assert_double_eq(a->open_us, b->open_us);
    }
}

START_TEST(stored_entries_are_found_replaced_and_bounded)
{
    ck_assert_int_eq(find(MAP), 0); /* no file yet */
    store(MAP);
    ck_assert_int_eq(find(MAP), 1);
    check_equal();
    ck_assert_int_eq(find(8), 0);
    for (uint64_t map_id = 1; map_id <= 40; map_id++)
        store(map_id);
    for (int i = 0; i < 5; i++)
        store(40);
    for (uint64_t map_id = 1; map_id <= 40; map_id++)
        ck_assert_int_eq(find(map_id), map_id > 8); /* the newest 32 */
    check_equal();
    tuned.choice.row = -1;
    ck_assert_int_eq(ndtd_autotune_cache_store(&settings, &tuned, &err), NDT_ERR_ARGUMENT);
}
END_TEST

/* The choice is made again for the budget; expected costs are known of the stored one only. */
START_TEST(another_budget_changes_the_choice)
{
    tuned.rows[2].samples = 0; /* leaves 1000 and 980: a tie, the first is taken */
    tuned.choice = ndtd_autotune_decide(tuned.rows, tuned.row_count, 100e3);
    ck_assert_int_eq(tuned.choice.row, 0);
    store(MAP);
    settings.budget_s = 990e-6; /* only the second meets it */
    ck_assert_int_eq(find(MAP), 0);
    settings.budget_s = 5e-3;
    ck_assert_int_eq(find(MAP), 1);
    ck_assert_double_eq_tol(found.budget_us, 5e3, 1e-6);
    ck_assert_int_eq(found.choice.meets_budget, 1);
}
END_TEST

/* Every byte changed in two ways, every length: the entry as it was, or none; others survive, new ones are stored.
 */
START_TEST(damage_is_never_used)
{
    static char bad[8192];
    size_t size;
    store(MAP);
    char *good = (char *)temp_read(path, &size);
    int lost = 0;
    ck_assert_uint_lt(size, sizeof(bad));
    for (size_t i = 0; i < size; i++)
        for (int flip = 1; flip <= 0x80; flip *= 0x80) {
            memcpy(bad, good, size);
            bad[i] = (char)(bad[i] ^ flip);
            (void)temp_write("ndtd/autotune", bad, size);
            if (find(MAP))
                check_equal();
            else
                lost++;
        }
    ck_assert_int_gt(lost, 2 * (int)size - 40);
    for (size_t length = 0; length < size; length++) {
        (void)temp_write("ndtd/autotune", good, length);
        if (find(MAP))
            ck_assert_uint_eq(length, size - 1); /* only the last end of line is missing */
    }
    free(good);
    store(MAP);
    store(8);
    char *text = (char *)temp_read(path, &size);
    memcpy(strstr(text, " 1500 "), " 1400 ", 6); /* of the newer one */
    (void)temp_write("ndtd/autotune", text, size);
    free(text);
    ck_assert_int_eq(find(8), 0);
    ck_assert_int_eq(find(MAP), 1);
    check_equal();
}
END_TEST

/* Two daemons store at the same time: the file is always whole, and one of them wins. */
START_TEST(two_writers_leave_a_whole_file)
{
    const pid_t other = fork();
    for (int i = 0; i < 50; i++) {
        tuned.map_id = other ? MAP : 8;
        const enum ndt_status status = ndtd_autotune_cache_store(&settings, &tuned, &err);
        (void)status; /* the other one may have taken the temporary file away */
        if (other && (find(MAP) || find(8)))
            check_equal();
    }
    if (other == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(other, NULL, 0), other);
    store(MAP);
    ck_assert_int_eq(find(MAP), 1);
    check_equal();
}
END_TEST

START_TEST(foreign_files_are_ignored)
{
    static char large[1200 * 1024];
    static const char *const texts[] = {
        "",          "hello", "ndtd-autotune 3\n0123\tabc\n", "ndtd-autotune 4\n\n \n", "ndtd-autotune 4\n\0route",
        "\x7f\x45LF"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        (void)temp_write("ndtd/autotune", texts[i], strlen(texts[i]) + (i == 4 ? 7 : 0));
        ck_assert_int_eq(find(MAP), 0);
    }
    memset(large, 'x', sizeof(large));
    (void)temp_write("ndtd/autotune", large, sizeof(large));
    ck_assert_int_eq(find(MAP), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* it has no writer: must not wait */
    ck_assert_int_eq(find(MAP), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(find(MAP), 0);
    ck_assert_int_ne(ndtd_autotune_cache_store(&settings, &tuned, &err), NDT_OK);
}
END_TEST

START_TEST(the_folder_follows_the_environment)
{
    char here[512];
    struct stat info;
    (void)temp_text("file", "not a folder");
    setenv("CACHE_DIRECTORY", temp_path("system:/elsewhere"), 1);
    setenv("XDG_CACHE_HOME", temp_path("xdg/deep"), 1);
    setenv("HOME", temp_path("home"), 1);
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 0, &err), NDT_OK);
    ck_assert_str_eq(here, temp_path("system/autotune"));
    unsetenv("CACHE_DIRECTORY");
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 1, &err), NDT_OK);
    ck_assert_str_eq(here, temp_path("xdg/deep/ndtd/autotune"));
    ck_assert_int_eq(stat(temp_path("xdg/deep/ndtd"), &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
    setenv("XDG_CACHE_HOME", "relative", 1);
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 0, &err), NDT_OK);
    ck_assert_str_eq(here, temp_path("home/.cache/ndtd/autotune"));
    ck_assert_int_eq(ndtd_autotune_cache_path(here, 10, 0, &err), NDT_ERR_IO);
    setenv("HOME", temp_path("file"), 1);
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 1, &err), NDT_ERR_IO);
    unsetenv("HOME");
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 0, &err), NDT_ERR_IO);
}
END_TEST

static uint64_t key_with(const char *name, const char *value)
{
    ndtd_settings_default(&settings);
    if (name)
        ck_assert_msg(ndtd_option_set_text(&settings, name, value, &err) == NDT_OK, "%s", err.text);
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    return ndtd_autotune_key(&settings, 1);
}

START_TEST(the_key_depends_on_what_matters)
{
    static const struct {
        const char *name, *value;
        int matters;
    } options[] = {{"backend.name", "cpu", 1},
                   {"cpu.threads", "1", 1},
                   {"cpu.isa", "baseline", 1},
                   {"cpu.spin_us", "0", 1},
                   {"cuda.pipeline", "staged", 1},
                   {"cuda.device", "1", 1},
                   {"ndt.levels", "2.0,1.0", 1},
                   {"ndt.neighbours", "direct1", 1},
                   {"ndt.max_iterations", "5", 1},
                   {"preprocess.sample_count", "5000", 1},
                   {"autotune.max_threads", "1", 1},
                   {"rt.priority", "5", 1},
                   {"cuda.wait", "spin", 1},
                   {"batch.together", "true", 1},
                   {"batch.max", "2", 1},
                   {"live.queue_depth", "5", 0},
                   {"live.budget_ms", "5", 0},
                   {"sockets.scans", "tcp://127.0.0.1:7000", 0},
                   {"log.level", "debug", 0},
                   {"map.path", "elsewhere.pcd", 0}};
    const uint64_t key = key_with(NULL, NULL);
    ck_assert_uint_eq(key, ndtd_autotune_key(&settings, 1));
    ck_assert_uint_ne(key, ndtd_autotune_key(&settings, 2));
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        ck_assert_msg((key_with(options[i].name, options[i].value) != key) == options[i].matters, "%s",
                      options[i].name);
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    ck_assert_uint_ne(key, key_with(NULL, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("autotune_cache");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, setup, temp_dir_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, stored_entries_are_found_replaced_and_bounded);
    tcase_add_test(tcase, another_budget_changes_the_choice);
    tcase_add_test(tcase, damage_is_never_used);
    tcase_add_test(tcase, two_writers_leave_a_whole_file);
    tcase_add_test(tcase, foreign_files_are_ignored);
    tcase_add_test(tcase, the_folder_follows_the_environment);
    tcase_add_test(tcase, the_key_depends_on_what_matters);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
