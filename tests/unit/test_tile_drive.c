/* A large folder of tiles: only tiles in reach are read, each once when it enters and once when it leaves, and
 * memory depends on the tiles in reach only. The test counts and does not time. */
#include <check.h>
#include <malloc.h>
#include <math.h>
#include <time.h>

#include "ndt_io/cloud_file.h"
#include "ndtd/log.h"
#include "ndtd/map_loader.h"
#include "run_tests.h"
#include "temp_dir.h"

enum { SIDE = 40, ROW = 20, POINTS_SIDE = 40, PATIENCE_S = 300, TILE_BYTES_MAX = 512 };
#define TILE_M  20.0
#define REACH_M 35.0

static struct ndtd_map_loader *loader;
static struct ndtd_map_loader_config config;
static struct ndtd_map_loader_status status;
static struct ndt_map *map;

static double tile_distance_m(size_t column, size_t row, const double at_m[2])
{
    const double x_m = TILE_M * (double)column, y_m = TILE_M * (double)row;
    return hypot(fmax(0, fmax(x_m - at_m[0], at_m[0] - x_m - TILE_M)),
                 fmax(0, fmax(y_m - at_m[1], at_m[1] - y_m - TILE_M)));
}

static void write_tile(const char *path, size_t column, size_t row)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH %d\nHEIGHT 1\nPOINTS %d\nDATA binary\n",
            POINTS_SIDE * POINTS_SIDE, POINTS_SIDE * POINTS_SIDE);
    for (int i = 0; i < POINTS_SIDE * POINTS_SIDE; i++) {
        const double x_m = TILE_M * ((double)column + (i % POINTS_SIDE + 0.5) / POINTS_SIDE);
        const double y_m = TILE_M * ((double)row + (i / POINTS_SIDE + 0.5) / POINTS_SIDE);
        const float point[3] = {(float)x_m, (float)y_m, (float)(3 + sin(x_m) * cos(0.7 * y_m))};
        ck_assert_uint_eq(fwrite(point, sizeof(point), 1, file), 1);
    }
    ck_assert_int_eq(fclose(file), 0);
}

/* The path leads along the middle row. Tiles out of reach of every position on it are not valid clouds: reading
 * one would fail. */
static void write_world(const char *name, size_t first_column, size_t columns)
{
    char path[512], *text;
    size_t size;
    FILE *metadata = open_memstream(&text, &size);
    ck_assert_int_eq(mkdir(temp_path(name), 0700), 0);
    fprintf(metadata, "x_resolution: %g\ny_resolution: %g\n", TILE_M, TILE_M);
    for (size_t column = first_column; column < first_column + columns; column++)
        for (size_t row = 0; row < SIDE; row++) {
            snprintf(path, sizeof(path), "%s/%s/%zu_%zu.pcd", temp_dir, name, column, row);
            if (tile_distance_m(column, row, (double[2]){TILE_M * ((double)column + 0.5), TILE_M * ROW}) <=
                REACH_M) {
                write_tile(path, column, row);
            } else {
                FILE *file = fopen(path, "wb");
                ck_assert(file && fputs("not to be read", file) >= 0 && fclose(file) == 0);
            }
            fprintf(metadata, "%zu_%zu.pcd: [%g, %g]\n", column, row, TILE_M * (double)column,
                    TILE_M * (double)row);
        }
    fclose(metadata);
    snprintf(path, sizeof(path), "%s/pointcloud_map_metadata.yaml", name);
    temp_text(path, text);
    free(text);
}

/* Updates which tiles are in reach; returns how many enter or leave. */
static uint64_t count_moved(unsigned char in[SIDE * SIDE], const double at_m[2], uint64_t *in_reach)
{
    uint64_t moved = 0;
    *in_reach = 0;
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        const unsigned char now = tile_distance_m(i / SIDE, i % SIDE, at_m) <= REACH_M;
        moved += now != in[i];
        *in_reach += now;
        in[i] = now;
    }
    return moved;
}

static void set_up(void)
{
    temp_dir_make();
    ndtd_log_set_level((enum ndtd_log_level) - 1);
    config = (struct ndtd_map_loader_config){.dynamic = 1, .update_distance_m = 10, .map_radius_m = REACH_M};
    ndt_map_config_default(&config.map);
    config.map.threads = 1;
    map = NULL;
    ck_assert_int_eq(ndtd_map_loader_create(&loader, &config, NULL), NDT_OK);
}

static void tear_down(void)
{
    ndt_map_release(map);
    ndtd_map_loader_destroy(loader);
    temp_dir_remove();
}

static void settle(void)
{
    struct ndt_map *next;
    ck_assert_int_eq(ndtd_map_loader_wait(loader, PATIENCE_S), 1);
    ndtd_map_loader_status(loader, &status);
    ck_assert_msg(!status.failed, "%s", status.error);
    if (!ndtd_map_loader_take(loader, &next))
        return;
    ndt_map_release(map);
    map = next;
}

/* Bytes of the heap in use, after the loader has freed the previous map (it checks every 100 ms). */
static size_t heap_in_use(void)
{
    size_t least = SIZE_MAX;
    for (int i = 0; i < 30; i++) {
        const struct mallinfo2 info = mallinfo2();
        const size_t now = info.uordblks + info.hblkhd;
        least = now < least ? now : least;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return least;
}

/* Memory of the sums of these tiles in a new builder. */
static size_t fresh_sums_bytes(const unsigned char in[SIDE * SIDE], const char *folder)
{
    struct ndt_map_builder *builder;
    struct ndt_cloud cloud;
    char path[512];
    ndt_cloud_init(&cloud);
    ck_assert_int_eq(ndt_map_builder_create(&builder, &config.map, NULL), NDT_OK);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        if (!in[i])
            continue;
        snprintf(path, sizeof(path), "%s/%s/%zu_%zu.pcd", temp_dir, folder, i / SIDE, i % SIDE);
        ck_assert_int_eq(ndt_cloud_read(&cloud, path, NULL), NDT_OK);
        ck_assert_int_eq(ndt_map_builder_add(builder, &cloud, NULL), NDT_OK);
    }
    const size_t bytes = ndt_map_builder_bytes(builder);
    ndt_map_builder_destroy(builder);
    ndt_cloud_free(&cloud);
    return bytes;
}

FIXTURE(set_up, tear_down)

/* The first tile lies alternately on either side of 512 m: the origin of the map moves, which reads no tile. */
TEST(drive_reads_only_tiles_that_enter_or_leave)
{
    static unsigned char in[SIDE * SIDE];
    double at_m[2] = {TILE_M / 2, TILE_M * ROW};
    uint64_t reads, in_reach, origins = 0;
    size_t most_sums = 0, most_map = 0;
    double origin_m;
    memset(in, 0, sizeof(in));
    write_world("tiles", 0, SIDE);
    ndtd_map_loader_load(loader, temp_path("tiles"), at_m);
    settle();
    reads = count_moved(in, at_m, &in_reach);
    ck_assert_uint_eq(status.tiles_known, SIDE * SIDE);
    ck_assert_uint_eq(status.tiles_loaded, in_reach);
    ck_assert_uint_eq(status.tile_reads, in_reach);
    origin_m = map->origin_m[0];
    while (at_m[0] + 11 < TILE_M * (SIDE - 0.5)) {
        at_m[0] += 11;
        ndtd_map_loader_follow(loader, at_m);
        settle();
        reads += count_moved(in, at_m, &in_reach);
        ck_assert_uint_eq(status.tiles_loaded, in_reach);
        ck_assert_uint_eq(status.tile_reads, reads);
        most_sums = status.sums_bytes > most_sums ? status.sums_bytes : most_sums;
        most_map = map->bytes > most_map ? map->bytes : most_map;
        origins += map->origin_m[0] != origin_m;
        origin_m = map->origin_m[0];
    }
    ck_assert_uint_gt(origins, 0);
    ck_assert_uint_gt(reads, 250);
    /* A factor of two for empty cells, and two for arrays that double. */
    ck_assert_uint_le(most_sums, 4 * fresh_sums_bytes(in, "tiles"));
    ck_assert_uint_le(most_map, 2 * map->bytes);
}

/* Eight times as many tiles: the heap grows by their names and rectangles, not with the length of the path. */
TEST(memory_depends_on_tiles_in_reach_only)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return; /* their heaps do not count for mallinfo2 */
#endif
    double at_m[2] = {TILE_M * 2.5, TILE_M * ROW};
    size_t with_few, with_many, before;
    uint64_t reads;
    write_world("few", 0, 5);
    write_world("many", 0, SIDE);
    before = heap_in_use();
    ndtd_map_loader_load(loader, temp_path("few"), at_m);
    settle();
    reads = status.tile_reads;
    with_few = heap_in_use() - before;
    ck_assert_uint_gt(with_few, map->bytes);
    ndtd_map_loader_load(loader, temp_path("many"), at_m);
    settle();
    ck_assert_uint_eq(status.tile_reads, reads);
    with_many = heap_in_use() - before;
    ck_assert_msg(with_many <= with_few + (size_t)(SIDE - 5) * SIDE * TILE_BYTES_MAX,
                  "%zu bytes, %zu with few tiles", with_many, with_few);
    for (; at_m[0] < TILE_M * (SIDE - 2.5); at_m[0] += 11) {
        ndtd_map_loader_follow(loader, at_m);
        settle();
    }
    const size_t driven = heap_in_use() - before;
    ck_assert_msg(driven <= 2 * with_many, "%zu bytes after the drive, %zu before", driven, with_many);
}
