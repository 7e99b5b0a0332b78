/** @file
 * @brief Loading a map can be cancelled at every step of the work, and says how far it is. */
#include <check.h>
#include <math.h>

#include "ndt_io/cloud_file.h"
#include "ndt_io/compiled_map.h"
#include "ndt_io/map_file.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndt_error err;
static struct ndt_map_config config;

/* ---- maps of every kind ---- */

static void write_clouds(void)
{
    struct ndt_cloud cloud;
    struct ndt_map *map;
    const size_t count = 300000;
    ndt_cloud_init(&cloud);
    ck_assert_int_eq(ndt_cloud_reserve(&cloud, count, 0, &err), NDT_OK);
    cloud.count = count;
    for (size_t i = 0; i < count; i++) {
        cloud.x_m[i] = 0.2f * (float)(i % 600);
        cloud.y_m[i] = 0.2f * (float)(i / 600);
        cloud.z_m[i] = sinf(cloud.x_m[i]) * cosf(0.7f * cloud.y_m[i]);
    }
    ck_assert_int_eq(ndt_pcd_write(&cloud, temp_path("binary.pcd"), NDT_PCD_BINARY, &err), NDT_OK);
    ck_assert_int_eq(ndt_pcd_write(&cloud, temp_path("packed.pcd"), NDT_PCD_COMPRESSED, &err), NDT_OK);
    ck_assert_int_eq(ndt_pcd_write(&cloud, temp_path("text.pcd"), NDT_PCD_ASCII, &err), NDT_OK);
    ck_assert_int_eq(mkdir(temp_path("tiles"), 0700), 0);
    ck_assert_int_eq(ndt_pcd_write(&cloud, temp_path("tiles/a.pcd"), NDT_PCD_BINARY, &err), NDT_OK);
    ck_assert_int_eq(ndt_pcd_write(&cloud, temp_path("tiles/b.pcd"), NDT_PCD_BINARY, &err), NDT_OK);
    ck_assert_int_eq(ndt_map_from_cloud(&map, &config, &cloud, &err), NDT_OK);
    ck_assert_int_eq(ndt_map_save(map, temp_path("map.ndtmap"), &err), NDT_OK);
    ndt_map_release(map);
    ndt_cloud_free(&cloud);
}

static const char *const names[] = {"binary.pcd", "packed.pcd", "text.pcd", "tiles", "map.ndtmap"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void set_up(void)
{
    temp_dir_make();
    ndt_map_config_default(&config);
    config.threads = 2;
    write_clouds();
}

/* ---- a watcher that cancels at a step ---- */

struct watcher {
    struct ndt_progress progress;
    unsigned long steps, last_step; /* 0: never cancels */
};

static void watch(void *context, const struct ndt_progress *progress)
{
    struct watcher *watcher = context;
    (void)progress;
    if (__atomic_add_fetch(&watcher->steps, 1, __ATOMIC_RELAXED) == watcher->last_step)
        ndt_progress_cancel(&watcher->progress);
}

static enum ndt_status load(struct watcher *watcher, const char *name, unsigned long last_step)
{
    struct ndt_map *map;
    watcher->steps = 0;
    watcher->last_step = last_step;
    ndt_progress_init(&watcher->progress, watch, watcher, 0);
    const enum ndt_status status = ndt_map_load_with(&map, temp_path(name), &config, &watcher->progress, &err);
    ck_assert((status == NDT_OK) == (map != NULL));
    ndt_map_release(map);
    return status;
}

static uint64_t get(const struct watcher *watcher, enum ndt_progress_item item)
{
    return ndt_progress_get(&watcher->progress, item);
}

FIXTURE(set_up, temp_dir_remove)

/* Nothing is left behind: the address sanitizer looks. */
TEST_EACH(a_load_can_be_cancelled_at_every_step, 0, NAMES)
{
    struct watcher watcher;
    const char *name = names[_i];
    ck_assert_int_eq(load(&watcher, name, 0), NDT_OK);
    const unsigned long steps = watcher.steps;
    ck_assert_uint_ge(steps, 10);
    for (unsigned long step = 1; step <= steps / 2; step += 1 + steps / 40) {
        ck_assert_msg(load(&watcher, name, step) == NDT_ERR_CANCELLED, "%s: step %lu of %lu", name, step, steps);
        ck_assert_msg(strstr(err.text, "cancelled") != NULL, "%s", err.text);
    }
}

TEST(progress_counts_files_points_and_levels)
{
    struct watcher watcher;
    ck_assert_int_eq(load(&watcher, "tiles", 0), NDT_OK);
    ck_assert_uint_eq(get(&watcher, NDT_PROGRESS_TILES), 2);
    ck_assert_uint_eq(get(&watcher, NDT_PROGRESS_ALL_TILES), 2);
    ck_assert_uint_eq(get(&watcher, NDT_PROGRESS_BYTES), get(&watcher, NDT_PROGRESS_ALL_BYTES));
    ck_assert_uint_eq(get(&watcher, NDT_PROGRESS_POINTS), 600000);
    ck_assert_uint_eq(get(&watcher, NDT_PROGRESS_ALL_POINTS), 600000);
    ck_assert_uint_eq(get(&watcher, NDT_PROGRESS_LEVELS), 3);
    ck_assert_uint_eq(get(&watcher, NDT_PROGRESS_ALL_LEVELS), 3);
}

TEST(a_path_that_can_be_no_map_is_refused_without_loading)
{
    for (int i = 0; i < NAMES; i++)
        ck_assert_int_eq(ndt_map_path_check(temp_path(names[i]), &err), NDT_OK);
    ck_assert_int_eq(ndt_map_path_check(temp_path("none.pcd"), &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "none.pcd: cannot open: No such file"));
    ck_assert_int_eq(ndt_map_path_check(temp_text("map.txt", "text"), &err), NDT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, ".ndtmap .pcd"));
}
