/** @file
 * @brief Tests of the map loader: requests, tiles from clients, and a drive over a directory of tiles. */
#include "ndtd/map_loader.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "ndt_io/cloud_file.h"
#include "ndt_io/compiled_map.h"
#include "ndt_io/map_file.h"
#include "ndtd/log.h"
#include "overlay_files.h"
#include "run_tests.h"
#include "temp_dir.h"

enum { ROUNDS = 8, COLUMNS = 16, PATIENCE_S = 300 };
#define TILE_M 20.0

static struct ndtd_map_loader *loader;
static struct ndtd_map_loader_config config;

/* ---- a world of tiles t_XX_Y, 16 x 4 of them, 20 m each ---- */

static const char *tile_name(int column, int row)
{
    static char names[4][64];
    static unsigned next;
    char *name = names[next++ % 4];
    snprintf(name, sizeof(names[0]), "tiles/t_%02d_%d.pcd", column, row);
    return name;
}

/* A floor with bumps; another `shift_m` gives another tile of the same size. */
static void fill_cloud(struct ndt_cloud *cloud, double x0_m, double y0_m, double shift_m)
{
    const size_t side = 40;
    ck_assert_int_eq(ndt_cloud_reserve(cloud, side * side, 0, NULL), NDT_OK);
    cloud->count = side * side;
    for (size_t i = 0; i < cloud->count; i++) {
        const double x_m = x0_m + ((double)(i % side) + 0.5) * TILE_M / (double)side;
        const double y_m = y0_m + ((double)(i / side) + 0.5) * TILE_M / (double)side;
        cloud->x_m[i] = (float)x_m;
        cloud->y_m[i] = (float)y_m;
        cloud->z_m[i] = (float)(sin(x_m) * cos(0.7 * y_m) + shift_m);
    }
}

static void write_cloud(const char *path, double x0_m, double y0_m, double shift_m)
{
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    fill_cloud(&cloud, x0_m, y0_m, shift_m);
    ck_assert_int_eq(ndt_pcd_write(&cloud, path, NDT_PCD_BINARY, NULL), NDT_OK);
    ndt_cloud_free(&cloud);
}

/* The columns start at `from_m`: on another side of 512 m the map has another origin. */
static void write_world(double from_m, int with_metadata)
{
    char text[8192] = "x_resolution: 20.0\ny_resolution: 20.0\n";
    ck_assert_int_eq(mkdir(temp_path("tiles"), 0700), 0);
    for (int column = 0; column < COLUMNS; column++)
        for (int row = 0; row < 4; row++) {
            const double x_m = from_m + TILE_M * column, y_m = TILE_M * row;
            write_cloud(temp_path(tile_name(column, row)), x_m, y_m, 0);
            snprintf(text + strlen(text), 64, "t_%02d_%d.pcd: [%g, %g]\n", column, row, x_m, y_m);
        }
    if (with_metadata)
        temp_text("tiles/pointcloud_map_metadata.yaml", text);
}

/* The id of the map of exactly these tiles; `names` end with NULL. */
static uint64_t id_of(const char *const *names, size_t count)
{
    struct ndt_map_builder *builder;
    struct ndt_map *map;
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    ck_assert_int_eq(ndt_map_builder_create(&builder, &config.map, NULL), NDT_OK);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(ndt_cloud_read(&cloud, temp_path(names[i]), NULL), NDT_OK);
        ck_assert_int_eq(ndt_map_builder_add(builder, &cloud, NULL), NDT_OK);
    }
    ck_assert_int_eq(ndt_map_build(&map, builder, NULL), NDT_OK);
    const uint64_t id = map->id;
    ndt_map_release(map);
    ndt_map_builder_destroy(builder);
    ndt_cloud_free(&cloud);
    return id;
}

static uint64_t id_of_path(const char *path)
{
    struct ndt_map *map;
    ck_assert_int_eq(ndt_map_load(&map, path, &config.map, NULL), NDT_OK);
    const uint64_t id = map->id;
    ndt_map_release(map);
    return id;
}

/* The id for the tiles whose squares touch the circle; `count` receives their number. */
static uint64_t id_of_circle(double from_m, const double at_m[2], double radius_m, uint64_t *count)
{
    static char kept[COLUMNS * 4][64];
    const char *names[COLUMNS * 4];
    *count = 0;
    for (int column = 0; column < COLUMNS; column++)
        for (int row = 0; row < 4; row++) {
            const double x_m = from_m + TILE_M * column, y_m = TILE_M * row;
            const double dx_m = at_m[0] - fmin(fmax(at_m[0], x_m), x_m + TILE_M);
            const double dy_m = at_m[1] - fmin(fmax(at_m[1], y_m), y_m + TILE_M);
            if (sqrt(dx_m * dx_m + dy_m * dy_m) > radius_m)
                continue;
            strcpy(kept[*count], tile_name(column, row));
            names[*count] = kept[*count];
            ++*count;
        }
    return id_of(names, *count);
}

/* ---- the loader ---- */

static void set_up(void)
{
    temp_dir_make();
    ndtd_log_set_level((enum ndtd_log_level) - 1); /* failures are expected here */
    config = (struct ndtd_map_loader_config){
        .dynamic = 1, .update_distance_m = 10, .map_radius_m = 25, .lidar_radius_m = 10};
    ndt_map_config_default(&config.map);
    config.map.level_count = 2;
    config.map.leaf_m[0] = 2;
    config.map.leaf_m[1] = 1;
    loader = NULL;
}

static void start(int dynamic)
{
    config.dynamic = dynamic;
    ck_assert_int_eq(ndtd_map_loader_create(&loader, &config, NULL), NDT_OK);
}

static void tear_down(void)
{
    ndtd_map_loader_destroy(loader);
    temp_dir_remove();
}

static struct ndtd_map_loader_status settle(void)
{
    struct ndtd_map_loader_status status;
    ck_assert_int_eq(ndtd_map_loader_wait(loader, PATIENCE_S), 1);
    ndtd_map_loader_status(loader, &status);
    ck_assert_int_eq(status.busy, 0);
    return status;
}

/* Takes the map that must be available and returns its id, 0 for none. */
static uint64_t take_id(void)
{
    struct ndt_map *map, *again;
    ck_assert_int_eq(ndtd_map_loader_take(loader, &map), 1);
    ck_assert_int_eq(ndtd_map_loader_take(loader, &again), 0);
    ck_assert_ptr_null(again);
    const uint64_t id = map ? map->id : 0;
    ck_assert(!map || ndt_map_identity(map) == id);
    ndt_map_release(map);
    return id;
}

static void expect_nothing_new(void)
{
    struct ndt_map *map;
    ck_assert_int_eq(ndtd_map_loader_take(loader, &map), 0);
}

static void expect_good(const struct ndtd_map_loader_status *status, uint64_t id)
{
    ck_assert_msg(!status->failed, "%s", status->error);
    ck_assert_str_eq(status->error, "");
    ck_assert_uint_eq(status->map_id, id);
    ck_assert_uint_eq(take_id(), id);
}

static void expect_failure(const struct ndtd_map_loader_status *status, const char *text, uint64_t id)
{
    ck_assert_int_eq(status->failed, 1);
    ck_assert_msg(strstr(status->error, text) != NULL, "'%s' lacks '%s'", status->error, text);
    ck_assert_uint_eq(status->map_id, id);
    expect_nothing_new();
}

static void load(const char *name, const double near_m[2])
{
    ndtd_map_loader_load(loader, temp_path(name), near_m);
}

FIXTURE(set_up, tear_down)

TEST(test_file_folder_compiled)
{
    struct ndt_map *map;
    write_world(0, 0);
    start(1); /* without metadata and squares all tiles are loaded */
    expect_nothing_new();
    load(tile_name(3, 1), NULL);
    struct ndtd_map_loader_status status = settle();
    expect_good(&status, id_of_path(temp_path(tile_name(3, 1))));
    ck_assert_str_eq(status.path, temp_path(tile_name(3, 1)));
    ck_assert_uint_eq(status.points, 1600);

    load("tiles", NULL);
    status = settle();
    const uint64_t all = id_of_path(temp_path("tiles"));
    expect_good(&status, all);
    ck_assert_uint_eq(status.tiles_loaded, COLUMNS * 4);
    ck_assert_uint_eq(status.tiles_known, COLUMNS * 4);
    ck_assert_uint_eq(status.loads, 2);
    ck_assert(status.last_load_ms > 0);

    ck_assert_int_eq(ndt_map_load(&map, temp_path(tile_name(0, 0)), &config.map, NULL), NDT_OK);
    ck_assert_int_eq(ndt_map_save(map, temp_path("one.ndtmap"), NULL), NDT_OK);
    load("one.ndtmap", NULL);
    status = settle();
    expect_good(&status, map->id);
    ndtd_map_loader_add_tile(loader, temp_path(tile_name(1, 0)));
    status = settle();
    expect_failure(&status, "compiled", map->id);
    ndt_map_release(map);
}

TEST(test_unload)
{
    struct ndtd_map_loader_status status;
    write_cloud(temp_path("a.pcd"), 0, 0, 0);
    start(1);
    load("a.pcd", NULL);
    ndtd_map_loader_load(loader, NULL, NULL);
    status = settle();
    expect_good(&status, 0); /* the map in between was never taken */
    ck_assert_str_eq(status.path, "");
    ck_assert_uint_eq(status.points + status.tiles_loaded, 0);
}

/* The matching thread never releases the last reference to a map: freeing takes too long between two scans. */
TEST(test_old_maps_are_freed_by_the_loader)
{
    struct ndt_map *first, *second;
    write_cloud(temp_path("a.pcd"), 0, 0, 0);
    write_cloud(temp_path("b.pcd"), 20, 0, 0);
    start(1);
    load("a.pcd", NULL);
    settle();
    ck_assert_int_eq(ndtd_map_loader_take(loader, &first), 1);
    load("b.pcd", NULL);
    settle();
    ck_assert_int_eq(ndtd_map_loader_take(loader, &second), 1);
    ck_assert_int_eq(__atomic_load_n(&first->references, __ATOMIC_ACQUIRE), 2);
    ck_assert_int_eq(__atomic_load_n(&second->references, __ATOMIC_ACQUIRE), 2);
    ndt_map_release(first);
    ndt_map_release(second);
}

TEST(test_failure_keeps_the_map)
{
    struct ndtd_map_loader_status status;
    write_cloud(temp_path("a.pcd"), 0, 0, 0);
    const uint64_t id = id_of_path(temp_path("a.pcd"));
    start(1);
    load("a.pcd", NULL);
    settle();
    ck_assert_uint_eq(take_id(), id);
    temp_text("bad.pcd", "no cloud\n");
    temp_text("bad.ndtmap", "no map\n");
    ck_assert_int_eq(mkdir(temp_path("empty"), 0700), 0);
    static const char *const names[] = {"none.pcd", "bad.pcd", "bad.ndtmap", "empty"};
    for (size_t i = 0; i < 4; i++) {
        load(names[i], NULL);
        status = settle();
        expect_failure(&status, names[i], id);
        ck_assert_str_eq(status.path, temp_path("a.pcd"));
    }
    load("a.pcd", NULL);
    status = settle();
    expect_good(&status, id);
}

TEST(test_tiles_from_clients)
{
    struct ndtd_map_loader_status status;
    write_world(0, 0);
    const char *const three[] = {tile_name(0, 0), tile_name(1, 0), tile_name(2, 0)};
    start(0);
    ndtd_map_loader_remove_tile(loader, temp_path(three[0]));
    status = settle();
    expect_failure(&status, "not in the map", 0);
    for (int i = 2; i >= 0; i--)
        ndtd_map_loader_add_tile(loader, temp_path(three[i]));
    status = settle();
    expect_good(&status, id_of(three, 3));
    ck_assert_uint_eq(status.tiles_loaded, 3);
    ndtd_map_loader_add_tile(loader, temp_path("tiles/../tiles/t_01_0.pcd"));
    status = settle();
    expect_failure(&status, "already", id_of(three, 3));
    ndtd_map_loader_add_tile(loader, temp_path("none.pcd"));
    status = settle();
    expect_failure(&status, "none.pcd", id_of(three, 3));
    ck_assert_uint_eq(status.tiles_known, 3);
    ndtd_map_loader_remove_tile(loader, temp_path(three[2]));
    status = settle();
    expect_good(&status, id_of(three, 2));
    ndtd_map_loader_remove_tile(loader, temp_path(three[0]));
    ndtd_map_loader_remove_tile(loader, temp_path(three[1]));
    status = settle();
    expect_good(&status, 0);
}

/* A directory that is not followed keeps no sums before the first tile from a client; the ids are the same. */
TEST(test_folder_and_client_tiles)
{
    struct ndtd_map_loader_status status;
    write_world(0, 1);
    write_cloud(temp_path("more.pcd"), -20, 0, 0);
    const uint64_t all = id_of_path(temp_path("tiles"));
    start(0);
    load("tiles", NULL);
    ndtd_map_loader_add_tile(loader, temp_path("more.pcd"));
    status = settle();
    ck_assert_uint_eq(status.tiles_loaded, COLUMNS * 4 + 1);
    ck_assert_uint_ne(take_id(), all);
    ndtd_map_loader_remove_tile(loader, temp_path("more.pcd"));
    status = settle();
    expect_good(&status, all);
}

/* A file that changed after it was added is not subtracted. */
TEST(test_changed_tile)
{
    struct ndtd_map_loader_status status;
    write_world(0, 0);
    const char *const three[] = {tile_name(0, 0), tile_name(1, 0), tile_name(2, 0)};
    start(0);
    for (int i = 0; i < 3; i++)
        ndtd_map_loader_add_tile(loader, temp_path(three[i]));
    settle();
    write_cloud(temp_path(three[2]), 20, 0, 0); /* could be subtracted: these are the points of the adjacent tile */
    ndtd_map_loader_remove_tile(loader, temp_path(three[2]));
    status = settle();
    expect_good(&status, id_of(three, 2));
    ck_assert_int_eq(unlink(temp_path(three[1])), 0);
    ndtd_map_loader_remove_tile(loader, temp_path(three[1]));
    status = settle();
    expect_good(&status, id_of(three, 1));

    /* A changed tile leaves while a remaining one is unreadable: no new map, and the next change reads the files
     * again. */
    ndtd_map_loader_add_tile(loader, temp_path(three[2]));
    settle();
    const uint64_t before = take_id();
    write_cloud(temp_path(three[2]), 40, 0, 0);
    uint8_t *good;
    size_t size;
    ck_assert_ptr_nonnull((good = temp_read(temp_path(three[0]), &size)));
    temp_text(three[0], "broken");
    ndtd_map_loader_remove_tile(loader, temp_path(three[2]));
    status = settle();
    expect_failure(&status, three[0], before);
    ck_assert_uint_eq(status.tiles_loaded, 2);
    temp_write(three[0], good, size);
    free(good);
    ndtd_map_loader_remove_tile(loader, temp_path(three[2]));
    status = settle();
    expect_good(&status, id_of(three, 1));
}

/* The drive goes through all tiles and back: the map contains exactly the tiles that the circle touches. From _i =
 * 1 on, the origin of the map changes on the way. */
TEST_EACH(test_drive, 0, 2)
{
    const double from_m = _i ? 400 : 0, radius_m = config.map_radius_m + config.lidar_radius_m;
    double at_m[2] = {from_m + 5, 30};
    uint64_t count, before = 0, changes = 0;
    write_world(from_m, 1);
    start(1);
    load("tiles", at_m);
    struct ndtd_map_loader_status status = settle();
    expect_good(&status, id_of_circle(from_m, at_m, radius_m, &count));
    for (int step = 0; step < 50; step++) {
        at_m[0] += step < 25 ? 12 : -12;
        ndtd_map_loader_follow(loader, at_m);
        status = settle();
        const uint64_t wanted = id_of_circle(from_m, at_m, radius_m, &count);
        ck_assert_msg(!status.failed, "%s", status.error);
        ck_assert_uint_eq(status.map_id, wanted);
        ck_assert_uint_eq(status.tiles_loaded, count);
        ck_assert_uint_eq(status.points, 1600 * count);
        if (wanted == before)
            expect_nothing_new();
        else if (before)
            ck_assert_uint_eq(take_id(), wanted);
        changes += before && wanted != before;
        before = wanted;
    }
    ck_assert_uint_gt(changes, 20);
    ck_assert_uint_eq(status.tiles_known, COLUMNS * 4);
}

/* The tile of an overlay comes and goes with its change. */
TEST(test_overlay)
{
    static const double near_m[2] = {50, 30}, far_m[2] = {200, 30};
    struct ndtd_map_loader_status status;
    uint64_t count;
    write_world(0, 1);
    const uint64_t as_mapped = id_of_circle(0, near_m, 35, &count), far = id_of_circle(0, far_m, 35, &count);
    struct overlay_change change = overlay_change_of(temp_path(tile_name(2, 1)), 0xabcULL);
    change.gone[0] = 5;
    ck_assert_int_eq(mkdir(temp_path("overlay"), 0700), 0);
    temp_text("overlay/" NDT_MAP_OVERLAY, "map: ../tiles\noverlay_id: 0000000000000abc\n");
    overlay_write_change("overlay/t_02_1.pcd.change", &change, 0);
    start(1);
    load("overlay", near_m);
    status = settle();
    const uint64_t changed = take_id();
    ck_assert_uint_ne(changed, as_mapped);
    ck_assert_uint_eq(status.map_id, changed);
    ndtd_map_loader_follow(loader, far_m);
    status = settle();
    expect_good(&status, far);
    ndtd_map_loader_follow(loader, near_m);
    status = settle();
    expect_good(&status, changed);
    change.base_sum++;
    overlay_write_change("overlay/t_02_1.pcd.change", &change, 0);
    load("overlay", near_m);
    status = settle();
    expect_failure(&status, "was made for other points", changed);
}

TEST(test_update_distance)
{
    double at_m[2] = {100, 30};
    uint64_t count;
    write_world(0, 1);
    start(1);
    load("tiles", at_m);
    const uint64_t loads = settle().loads;
    take_id();
    for (int i = 0; i < 200;
         i++) { /* back and forth, always within 10 m of the position of the last choice of tiles */
        at_m[0] = 100 + 9.9 * sin(i);
        ndtd_map_loader_follow(loader, at_m);
    }
    ck_assert_uint_eq(settle().loads, loads);
    expect_nothing_new();
    at_m[0] = 110;
    ndtd_map_loader_follow(loader, at_m);
    struct ndtd_map_loader_status status = settle();
    ck_assert_uint_eq(status.loads, loads + 1);
    expect_good(&status, id_of_circle(0, at_m, 35, &count));
    ndtd_map_loader_follow(loader, (const double[2]){NAN, INFINITY});
    ndtd_map_loader_follow(loader, (const double[2]){1e300, 0});
    ck_assert_uint_eq(settle().loads, loads + 1);
}

TEST(test_out_of_reach)
{
    struct ndtd_map_loader_status status;
    double at_m[2] = {5000, 0};
    uint64_t count;
    write_world(0, 1);
    start(1);
    load("tiles", at_m); /* no tile there and no previous map: the loader waits for another position */
    status = settle();
    expect_failure(&status, "no tile of the map is within 35 m of (5000.0, 0.0) m", 0);
    at_m[0] = 50;
    ndtd_map_loader_follow(loader, at_m);
    status = settle();
    const uint64_t id = id_of_circle(0, at_m, 35, &count);
    expect_good(&status, id);
    ndtd_map_loader_follow(loader, (const double[2]){-300, 0}); /* off the map: it stays as it was */
    status = settle();
    ck_assert_int_eq(status.failed, 0);
    ck_assert_uint_eq(status.map_id, id);
    expect_nothing_new();
    load("tiles", (const double[2]){-300, 0}); /* now there is a previous map */
    status = settle();
    expect_failure(&status, "no tile of the map", id);
    ndtd_map_loader_load(loader, NULL, NULL);
    settle();
    take_id();
}

TEST(test_position_comes_later)
{
    const double at_m[2] = {50, 40};
    uint64_t count;
    write_world(0, 1);
    start(1);
    load("tiles", NULL);
    struct ndtd_map_loader_status status = settle();
    expect_good(&status, 0);
    ck_assert_uint_eq(status.tiles_known, COLUMNS * 4);
    ndtd_map_loader_follow(loader, at_m);
    status = settle();
    expect_good(&status, id_of_circle(0, at_m, 35, &count));
    load("tiles", NULL); /* the position of the vehicle is known now */
    status = settle();
    expect_good(&status, id_of_circle(0, at_m, 35, &count));
}

/* A tile added by a client stays when the vehicle leaves; a removed one is not loaded again. */
TEST(test_client_tiles_while_following)
{
    double at_m[2] = {10, 10};
    write_world(0, 1);
    config.map_radius_m = 4;
    config.lidar_radius_m = 4;
    start(1);
    load("tiles", at_m);
    ndtd_map_loader_add_tile(loader, temp_path(tile_name(15, 3)));
    ndtd_map_loader_remove_tile(loader, temp_path(tile_name(1, 0)));
    settle();
    take_id();
    at_m[0] = 30;
    ndtd_map_loader_follow(loader, at_m);
    const char *const two[] = {tile_name(2, 0), tile_name(15, 3)};
    struct ndtd_map_loader_status status = settle();
    expect_good(&status, id_of(&two[1], 1));
    at_m[0] = 50;
    ndtd_map_loader_follow(loader, at_m);
    status = settle();
    expect_good(&status, id_of(two, 2));
    ndtd_map_loader_remove_tile(loader, temp_path(two[1]));
    ndtd_map_loader_add_tile(loader, temp_path(tile_name(1, 0)));
    at_m[0] = 30;
    ndtd_map_loader_follow(loader, at_m);
    status = settle();
    const char *const one[] = {tile_name(1, 0)};
    expect_good(&status, id_of(one, 1));
}

/* One unreadable tile on the path: it is reported, and the others are loaded. */
TEST(test_unreadable_tile_while_following)
{
    double at_m[2] = {10, 10};
    write_world(0, 1);
    temp_text(tile_name(1, 0), "broken");
    config.map_radius_m = 4;
    config.lidar_radius_m = 14;
    start(1);
    load("tiles", at_m);
    struct ndtd_map_loader_status status = settle();
    expect_failure(&status, "t_01_0.pcd", 0); /* an error at the start; the folder is followed nevertheless */
    at_m[0] = 50;
    ndtd_map_loader_follow(loader, at_m);
    status = settle();
    const char *const five[] = {tile_name(1, 1), tile_name(2, 0), tile_name(2, 1), tile_name(3, 0)};
    char six[64];
    strcpy(six, "tiles/t_03_1.pcd");
    const char *const all[] = {five[0], five[1], five[2], five[3], six};
    ck_assert_int_eq(status.failed, 1);
    ck_assert(strstr(status.error, "t_01_0.pcd") != NULL);
    ck_assert_uint_eq(status.map_id, id_of(all, 5));
    ck_assert_uint_eq(take_id(), id_of(all, 5));
    write_cloud(temp_path("tiles/t_01_0.pcd"), 20, 0, 0);
    at_m[0] = 30;
    ndtd_map_loader_follow(loader, at_m);
    status = settle();
    ck_assert_int_eq(status.failed, 0);
    ck_assert_uint_eq(status.tiles_loaded, 6);
}

TEST(test_destroyed_while_loading)
{
    struct ndt_map *map = NULL;
    write_world(0, 1);
    for (int i = 0; i < ROUNDS; i++) {
        start(i % 2);
        for (int k = 0; k < 6; k++) {
            load("tiles", (const double[2]){40.0 * k, 30});
            ndtd_map_loader_follow(loader, (const double[2]){10.0 * k, 30});
        }
        if (i > ROUNDS / 2)
            while (ndtd_map_loader_take(loader, &map) == 0)
                ;
        ndtd_map_loader_destroy(loader);
        loader = NULL;
        ck_assert(!map || ndt_map_identity(map) == map->id); /* a map that was taken lives on */
        ndt_map_release(map);
        map = NULL;
    }
}

static atomic_int driving;

static void *give_orders(void *context)
{
    (void)context;
    for (int i = 0; i < 12; i++) {
        struct ndtd_map_loader_status status;
        char path[1024];
        snprintf(path, sizeof(path), "%s/tiles/t_%02d_3.pcd", temp_dir, i % COLUMNS);
        ndtd_map_loader_add_tile(loader, path);
        ndtd_map_loader_status(loader, &status);
        ndtd_map_loader_wait(loader, 0.002);
        ndtd_map_loader_remove_tile(loader, path);
    }
    ck_assert_int_eq(ndtd_map_loader_wait(loader, PATIENCE_S), 1);
    atomic_store(&driving, 0);
    return NULL;
}

/* One thread follows and takes maps while another sends requests: every map is complete and is taken once. */
TEST(test_threads)
{
    struct ndt_map *map = NULL, *next;
    pthread_t other;
    double at_m[2] = {0, 30};
    unsigned taken = 0;
    write_world(0, 1);
    start(1);
    load("tiles", at_m);
    atomic_store(&driving, 1);
    ck_assert_int_eq(pthread_create(&other, NULL, give_orders, NULL), 0);
    for (long i = 0; atomic_load(&driving); i++) {
        at_m[0] = 150 + 150 * sin(0.01 * (double)i);
        ndtd_map_loader_follow(loader, at_m);
        if (!ndtd_map_loader_take(loader, &next)) {
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
            continue;
        }
        ck_assert_ptr_ne(next, map);
        ck_assert(!next || ndt_map_identity(next) == next->id);
        ndt_map_release(map);
        map = next;
        taken++;
    }
    pthread_join(other, NULL);
    ndt_map_release(map);
    ck_assert_uint_gt(taken, 0);
}

TEST(test_limits)
{
    struct ndt_error err;
    config.dynamic = 1;
    config.map_radius_m = NAN;
    ck_assert_int_eq(ndtd_map_loader_create(&loader, &config, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_null(loader);
    ck_assert(strstr(err.text, "map_radius") != NULL);
    config.map_radius_m = 25;
    write_world(0, 1);
    start(1);
    load("tiles", (const double[2]){NAN, 0});
    struct ndtd_map_loader_status status = settle();
    expect_failure(&status, "is not a valid position", 0);
    load("tiles", NULL); /* more requests than fit, while the thread processes the first: refused with an error */
    int refused = 0;
    for (int i = 0; i < 4000; i++) {
        ndtd_map_loader_add_tile(loader, temp_path(tile_name(0, 0)));
        ndtd_map_loader_status(loader, &status);
        refused += strstr(status.error, "requests are waiting") != NULL;
    }
    ck_assert_int_gt(refused, 0);
    ck_assert_int_eq(ndtd_map_loader_wait(loader, PATIENCE_S), 1);
}
