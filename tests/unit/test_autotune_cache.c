/* What was measured comes back bit for bit, or not at all: whatever the file holds, wherever it should be. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ndtd/options.h"
#include "ndtd/autotune_cache.h"
#include "temp_dir.h"

static struct ndt_error err;
static struct ndtd_autotune_result tuned, found;
static char path[512];

static void add_row(const char *backend, const char *pipeline, int threads, double p95_us)
{
    struct ndtd_autotune_row *row = &tuned.rows[tuned.row_count++];
    *row = (struct ndtd_autotune_row){.candidate = {.threads = threads, .batch = 1},
                                      .is_here = p95_us > 0,
                                      .samples = p95_us > 0 ? 60 : 0,
                                      .p50_us = 0.8125 * p95_us,
                                      .p95_us = p95_us,
                                      .open_us = 150};
    strcpy(row->candidate.backend, backend);
    strcpy(row->candidate.pipeline, pipeline);
    if (p95_us <= 0)
        strcpy(row->why, "no NVIDIA driver: \"libcuda.so.1\" is not there");
}

static void setup(void)
{
    temp_dir_make();
    setenv("XDG_CACHE_HOME", temp_dir, 1);
    unsetenv("CACHE_DIRECTORY");
    ck_assert_msg(ndtd_autotune_cache_path(path, sizeof(path), 1, &err) == NDT_OK, "%s", err.text);
    memset(&tuned, 0, sizeof(tuned));
    tuned = (struct ndtd_autotune_result){.source = NDTD_AUTOTUNE_MEASURED,
                                          .measured_s = 1700000000,
                                          .map_id = 0xfedcba9876543210u,
                                          .points = 1500,
                                          .budget_us = 100e3,
                                          .took_us = 64e3,
                                          .evaluation_us = 48.5,
                                          .costs = {.assess = {6.5, 0.25}}};
    for (int i = 0; i < 3; i++)
        tuned.costs.levels[i] = (struct ndt_cost){4 + i, 0.015625 * i};
    add_row("cpu", "", 1, 1000);
    add_row("cpu", "", 2, 980);
    add_row("cpu", "", 4, 700);
    add_row("cuda", "fused", 0, 0);
    tuned.choice = ndtd_autotune_decide(tuned.rows, tuned.row_count, tuned.budget_us);
}

static void store(uint64_t key)
{
    ck_assert_msg(ndtd_autotune_cache_store(path, key, &tuned, &err) == NDT_OK, "%s", err.text);
}

static void check_equal(void)
{
    ck_assert_int_eq(found.source, NDTD_AUTOTUNE_CACHED);
    ck_assert_int_eq(found.choice.row, tuned.choice.row);
    ck_assert_uint_eq(found.row_count, tuned.row_count);
    ck_assert_uint_eq(found.points, tuned.points);
    ck_assert_uint_eq(found.map_id, tuned.map_id);
    ck_assert_int_eq(found.measured_s, tuned.measured_s);
    ck_assert_double_eq(found.evaluation_us, tuned.evaluation_us);
    ck_assert_mem_eq(&found.costs, &tuned.costs, sizeof(tuned.costs));
    for (size_t i = 0; i < tuned.row_count; i++) {
        ck_assert(ndtd_backend_candidate_is(&found.rows[i].candidate, &tuned.rows[i].candidate));
        ck_assert_str_eq(found.rows[i].why, tuned.rows[i].why);
        ck_assert_int_eq(found.rows[i].is_here, tuned.rows[i].is_here);
        ck_assert_uint_eq(found.rows[i].samples, tuned.rows[i].samples);
        ck_assert_double_eq(found.rows[i].p95_us, tuned.rows[i].p95_us);
        ck_assert_double_eq(found.rows[i].p50_us, tuned.rows[i].p50_us);
    }
}

START_TEST(what_was_stored_is_found)
{
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 0); /* no file yet */
    store(7);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 1);
    check_equal();
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 8, 100e3, &found), 0);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 0, 100e3, &found), 0); /* no key, no entry */
    ck_assert_int_eq(ndtd_autotune_cache_store(path, 0, &tuned, &err), NDT_ERR_ARGUMENT);
    tuned.choice.row = -1;
    ck_assert_int_eq(ndtd_autotune_cache_store(path, 7, &tuned, &err), NDT_ERR_ARGUMENT);
}
END_TEST

/* The budget may have changed: the choice is made anew, and what it would cost is only known of the stored one. */
START_TEST(another_budget_is_heeded)
{
    tuned.row_count = 2; /* 1000 and 980: a tie, the first is taken */
    tuned.choice = ndtd_autotune_decide(tuned.rows, tuned.row_count, 100e3);
    ck_assert_int_eq(tuned.choice.row, 0);
    store(7);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 990, &found), 0); /* only the second meets it */
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 5e3, &found), 1);
    ck_assert_double_eq(found.budget_us, 5e3);
    ck_assert_int_eq(found.choice.meets_budget, 1);
}
END_TEST

START_TEST(entries_are_replaced_and_bounded)
{
    struct stat info;
    for (uint64_t key = 1; key <= 100; key++)
        store(key);
    for (int i = 0; i < 5; i++)
        store(100);
    for (uint64_t key = 1; key <= 100; key++)
        ck_assert_int_eq(ndtd_autotune_cache_find(path, key, 100e3, &found), key > 68); /* the newest 32 */
    /* As large as an entry gets. */
    while (tuned.row_count < NDTD_AUTOTUNE_ROWS)
        add_row("a-backend-with-a-name-of-31-byte", "", 0, 0);
    for (size_t i = 4; i < NDTD_AUTOTUNE_ROWS; i++) {
        tuned.rows[i].candidate.backend[NDTD_AUTOTUNE_NAME - 1] = '\0';
        memset(tuned.rows[i].why, 'w', NDTD_AUTOTUNE_WHY - 1);
    }
    for (uint64_t key = 201; key <= 240; key++)
        store(key);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_le(info.st_size, 256 * 1024);
    ck_assert_int_gt(info.st_size, 200 * 1024);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 240, 100e3, &found), 1);
    check_equal();
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 201, 100e3, &found), 0);
}
END_TEST

static size_t read_back(char *text, size_t size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    const size_t count = fread(text, 1, size, file);
    fclose(file);
    return count;
}

static void write_file(const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    fclose(file);
}

/* Every byte changed in two ways, every length: the entry as it was, or none; and a new one can be stored. */
START_TEST(damage_is_never_used)
{
    static char good[8192], bad[8192];
    store(7);
    const size_t size = read_back(good, sizeof(good));
    int lost = 0;
    for (size_t i = 0; i < size; i++)
        for (int flip = 1; flip <= 0x80; flip *= 0x80) {
            memcpy(bad, good, size);
            bad[i] = (char)(bad[i] ^ flip);
            write_file(bad, size);
            if (ndtd_autotune_cache_find(path, 7, 100e3, &found))
                check_equal();
            else
                lost++;
        }
    ck_assert_int_gt(lost, 2 * (int)size - 40);
    for (size_t length = 0; length < size; length++) {
        write_file(good, length);
        if (ndtd_autotune_cache_find(path, 7, 100e3, &found))
            ck_assert_uint_eq(length, size - 1); /* only the last end of line is missing */
    }
    store(8);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 8, 100e3, &found), 1);
}
END_TEST

/* One damaged entry costs itself and nothing else. */
START_TEST(others_survive_a_damaged_one)
{
    static char text[8192];
    store(7);
    store(8);
    const size_t size = read_back(text, sizeof(text));
    memcpy(strstr(text, " 1500 "), " 1400 ", 6); /* of the newer one */
    write_file(text, size);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 8, 100e3, &found), 0);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 1);
    check_equal();
}
END_TEST

START_TEST(foreign_files_are_ignored)
{
    static char large[300 * 1024];
    static const char *const texts[] = {"",
                                        "hello",
                                        "ndtd-routes 2\nroute 7\nend 0\n",
                                        "ndtd-routes 1\nend \nend \n",
                                        "ndtd-routes 1\n\0route",
                                        "\x7f"
                                        "ELF"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        write_file(texts[i], strlen(texts[i]) + (i == 4 ? 7 : 0));
        ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 0);
    }
    memset(large, 'x', sizeof(large));
    write_file(large, sizeof(large));
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* nobody writes: must not wait */
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 0);
    ck_assert_int_ne(ndtd_autotune_cache_store(path, 7, &tuned, &err), NDT_OK);
}
END_TEST

/* Values that make no sense, in an entry that is whole: as an other version might write it. */
START_TEST(nonsense_is_ignored)
{
    tuned.rows[1].candidate.threads = 100000;
    store(7);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 0);
    tuned.rows[1].candidate.threads = 2;
    tuned.costs.assess.fixed_us = -1;
    store(7);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 0);
    tuned.costs.assess.fixed_us = 1;
    store(7);
    ck_assert_int_eq(ndtd_autotune_cache_find(path, 7, 100e3, &found), 1);
}
END_TEST

START_TEST(the_folder_follows_the_rules)
{
    char here[512], want[600];
    struct stat info;
    setenv("XDG_CACHE_HOME", temp_path("xdg/deep"), 1);
    setenv("HOME", temp_path("home"), 1);
    setenv("CACHE_DIRECTORY", temp_path("system:/elsewhere"), 1);
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 0, &err), NDT_OK);
    snprintf(want, sizeof(want), "%s/system/routes", temp_dir);
    ck_assert_str_eq(here, want);
    unsetenv("CACHE_DIRECTORY");
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 1, &err), NDT_OK);
    snprintf(want, sizeof(want), "%s/xdg/deep/ndtd/routes", temp_dir);
    ck_assert_str_eq(here, want);
    ck_assert_int_eq(stat(temp_path("xdg/deep/ndtd"), &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
    setenv("XDG_CACHE_HOME", "relative", 1);
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 0, &err), NDT_OK);
    snprintf(want, sizeof(want), "%s/home/.cache/ndtd/routes", temp_dir);
    ck_assert_str_eq(here, want);
    (void)temp_write("home", "a file", 6);
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 1, &err), NDT_ERR_IO);
    unsetenv("HOME");
    ck_assert_int_eq(ndtd_autotune_cache_path(here, sizeof(here), 0, &err), NDT_ERR_IO);
    ck_assert_int_eq(ndtd_autotune_cache_path(here, 10, 0, &err), NDT_ERR_IO);
}
END_TEST

static uint64_t key_with(const char *name, const char *value)
{
    struct ndtd_settings settings;
    ndtd_settings_default(&settings);
    if (name)
        ck_assert_msg(ndtd_option_set_text(&settings, name, value, &err) == NDT_OK, "%s", err.text);
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    return ndtd_autotune_key(&settings, 1);
}

START_TEST(the_key_tells_apart_what_matters)
{
    static const char *const matters[][2] = {{"backend.name", "cpu"},      {"cpu.threads", "1"},
                                             {"cpu.isa", "baseline"},      {"cpu.spin_us", "0"},
                                             {"cuda.pipeline", "staged"},  {"cuda.device", "1"},
                                             {"ndt.levels", "2.0,1.0"},    {"ndt.neighbours", "direct1"},
                                             {"ndt.max_iterations", "5"},  {"preprocess.sample_count", "5000"},
                                             {"autotune.max_threads", "1"}, {"rt.priority", "5"}};
    static const char *const does_not[][2] = {{"live.budget_ms", "5"},
                                              {"sockets.scans", "tcp://127.0.0.1:7000"},
                                              {"log.level", "debug"},
                                              {"map.path", "elsewhere.pcd"}};
    struct ndtd_settings settings;
    const uint64_t key = key_with(NULL, NULL);
    ndtd_settings_default(&settings);
    ck_assert_uint_ne(key, 0);
    ck_assert_uint_eq(key, ndtd_autotune_key(&settings, 1));
    ck_assert_uint_ne(key, ndtd_autotune_key(&settings, 2));
    for (size_t i = 0; i < sizeof(matters) / sizeof(matters[0]); i++)
        ck_assert_msg(key_with(matters[i][0], matters[i][1]) != key, "%s", matters[i][0]);
    for (size_t i = 0; i < sizeof(does_not) / sizeof(does_not[0]); i++)
        ck_assert_msg(key_with(does_not[i][0], does_not[i][1]) == key, "%s", does_not[i][0]);
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    ck_assert_uint_ne(key, key_with(NULL, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route_cache");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, setup, temp_dir_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_was_stored_is_found);
    tcase_add_test(tcase, another_budget_is_heeded);
    tcase_add_test(tcase, entries_are_replaced_and_bounded);
    tcase_add_test(tcase, damage_is_never_used);
    tcase_add_test(tcase, others_survive_a_damaged_one);
    tcase_add_test(tcase, foreign_files_are_ignored);
    tcase_add_test(tcase, nonsense_is_ignored);
    tcase_add_test(tcase, the_folder_follows_the_rules);
    tcase_add_test(tcase, the_key_tells_apart_what_matters);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
