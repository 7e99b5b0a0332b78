/** @file
 * @brief Tests of the merge of a new configuration into the one in force, of its hash, and of snapshots. */
#include <check.h>
#include <string.h>

#include "ndtd/settings_snapshot.h"
#include "run_tests.h"

static struct ndtd_settings running, wanted;
static struct ndt_error err;
static char restart[512];

static void setup(void)
{
    ndtd_settings_default(&running);
    ndtd_settings_default(&wanted);
}

static void want(const char *name, const char *text)
{
    must(ndtd_option_set_text(&wanted, name, text, &err));
    must(ndtd_settings_finish(&wanted, &err));
}

static void merge(void)
{
    ndtd_settings_merge(&running, &wanted, restart, sizeof(restart));
}

FIXTURE(setup, NULL)

TEST(reloadable_options_are_merged)
{
    want("ndt.max_iterations", "12");
    want("ndt.fine_stop_deg", "0.5");
    want("ndt.regularization.enable", "true");
    want("ndt.neighbours", "[direct1, direct27]");
    want("preprocess.crop_min_m", "[-1.0, -2.0, -3.0]");
    want("preprocess.deskew", "time");
    want("live.budget_ms", "50");
    want("log.level", "debug");
    merge();
    ck_assert_str_eq(restart, "");
    ck_assert_int_eq(running.align.max_iterations, 12);
    ck_assert_double_eq(running.align.fine_stop_rad, wanted.align.fine_stop_rad);
    ck_assert_int_eq(running.use_gnss, 1);
    ck_assert_int_eq(running.align.levels[0].neighbours, NDT_DIRECT1);
    ck_assert_int_eq(running.align.levels[2].neighbours, NDT_DIRECT27);
    ck_assert_double_eq(running.preprocess.crop_min_m[2], -3);
    ck_assert_int_eq(running.preprocess.deskew, NDT_DESKEW_TIME);
    ck_assert_double_eq(running.budget_s, 0.05);
    ck_assert_int_eq(running.log_level, NDTD_LEVEL_DEBUG);
    ck_assert_uint_eq(ndtd_settings_hash(&running), ndtd_settings_hash(&wanted));
}

TEST(fixed_options_are_named_and_kept)
{
    want("backend.name", "reference");
    want("cpu.threads", "3");
    want("ndt.resolution", "2.0");
    want("sockets.scans", "tcp://127.0.0.1:7000");
    want("ndt.max_iterations", "13");
    merge();
    ck_assert_str_eq(restart, "backend.name, cpu.threads, ndt.levels, sockets.scans");
    ck_assert_str_eq(running.backend, "auto");
    ck_assert_uint_eq(running.align.level_count, 3);
    ck_assert_int_eq(running.align.max_iterations, 13);
    ck_assert_uint_ne(ndtd_settings_hash(&running), ndtd_settings_hash(&wanted));
    char little[20];
    ndtd_settings_merge(&running, &wanted, little, sizeof(little));
    ck_assert_str_eq(little, "backend.name");
}

/* Every option is either reloadable or fixed, and merging equal settings changes nothing. */
TEST(equal_settings_change_nothing)
{
    size_t changeable = 0;
    const uint64_t before = ndtd_settings_hash(&running);
    ck_assert_uint_ne(before, 0);
    merge();
    ck_assert_str_eq(restart, "");
    ck_assert_uint_eq(ndtd_settings_hash(&running), before);
    for (size_t i = 0; i < ndtd_option_count(); i++)
        changeable += ndtd_option_at(i)->reloadable != 0;
    ck_assert_uint_gt(changeable, 20);
    ck_assert(!ndtd_option_find("ndt.num_threads")->reloadable);
    ck_assert(!ndtd_option_find("ndt.covariance")->reloadable);
}

TEST(a_snapshot_lives_as_long_as_its_references)
{
    const struct ndtd_settings_snapshot *first, *second, *held = NULL;
    ck_assert_int_eq(ndtd_settings_snapshot_create(&first, &running, &err), NDT_OK);
    ck_assert_uint_eq(first->hash, ndtd_settings_hash(&running));
    want("live.budget_ms", "50");
    ck_assert_int_eq(ndtd_settings_snapshot_create(&second, &wanted, &err), NDT_OK);
    ck_assert_uint_ne(second->hash, first->hash);
    ndtd_settings_snapshot_replace(&held, first);
    ndtd_settings_snapshot_release(first); /* held keeps it */
    ck_assert_double_eq(held->settings.budget_s, running.budget_s);
    ndtd_settings_snapshot_replace(&held, second); /* frees the first */
    ck_assert_ptr_eq(ndtd_settings_snapshot_acquire(second), second);
    ck_assert_uint_eq(second->references, 3);
    ndtd_settings_snapshot_release(second);
    ndtd_settings_snapshot_release(second);
    ck_assert_double_eq(held->settings.budget_s, 0.05);
    ndtd_settings_snapshot_replace(&held, NULL);
    ck_assert_ptr_null(held);
}
