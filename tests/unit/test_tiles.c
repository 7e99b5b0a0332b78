/* Maps from files: compiled, one cloud, a directory of tiles with and without Autoware's metadata. */
#include <math.h>

#include "ndt_io/cloud_file.h"
#include "ndt_io/compiled_map.h"
#include "ndt_io/map_file.h"
#include "run_tests.h"
#include "temp_dir.h"

#define METADATA "pointcloud_map_metadata.yaml"

static const char good_metadata[] = "x_resolution: 20.0\n"
                                    "y_resolution: 10\n"
                                    "B.pcd: [1220, 2500] # -> 1220 < x < 1240\n"
                                    "A.pcd: [1200.5, -2.5e3]\n";

static void put_cloud(const char *name, float from_m, size_t count)
{
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    ck_assert_int_eq(ndt_cloud_reserve(&cloud, count, 0, NULL), NDT_OK);
    for (size_t i = 0; i < count; i++) {
        cloud.x_m[i] = from_m + 0.01f * (float)(i % 997);
        cloud.y_m[i] = 0.02f * (float)(i % 331);
        cloud.z_m[i] = 0.5f + 0.1f * sinf((float)i);
    }
    cloud.count = count;
    ck_assert_int_eq(ndt_pcd_write(&cloud, temp_path(name), NDT_PCD_BINARY, NULL), NDT_OK);
    ndt_cloud_free(&cloud);
}

static void expect_set_fails(const char *directory, const char *reason)
{
    struct ndt_tile_set set;
    struct ndt_error err = {""};
    ck_assert_msg(ndt_tile_set_open(&set, directory, &err) != NDT_OK, "was read, not refused for '%s'", reason);
    ck_assert_msg(strstr(err.text, directory) && strstr(err.text, reason), "'%s' lacks '%s'", err.text, reason);
    ck_assert_ptr_null(set.tiles);
    ck_assert_uint_eq(set.count, 0);
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(test_metadata)
{
    struct ndt_tile_set set;
    struct ndt_error err = {""};
    put_cloud("A.pcd", 0.0f, 10);
    put_cloud("B.pcd", 5.0f, 10);
    put_cloud("unnamed.pcd", 9.0f, 10);
    temp_text(METADATA, good_metadata);
    ck_assert_msg(ndt_tile_set_open(&set, temp_dir, &err) == NDT_OK, "%s", err.text);
    ck_assert_uint_eq(set.count, 2);
    ck_assert_str_eq(set.tiles[0].path, temp_path("A.pcd"));
    ck_assert_str_eq(set.tiles[1].path, temp_path("B.pcd"));
    ck_assert_double_eq(set.tiles[0].min_m[0], 1200.5);
    ck_assert_double_eq(set.tiles[0].min_m[1], -2500.0);
    ck_assert_double_eq(set.tiles[1].min_m[0], 1220.0);
    ck_assert_double_eq(set.tiles[1].size_m[0], 20.0);
    ck_assert_double_eq(set.tiles[1].size_m[1], 10.0);
    ndt_tile_set_close(&set);
    ndt_tile_set_close(&set);
}

static void expect_two_tiles(const char *path, const char *folder)
{
    struct ndt_tile_set set;
    struct ndt_error err = {""};
    char tile[512];
    ck_assert_msg(ndt_tile_set_open(&set, path, &err) == NDT_OK, "%s", err.text);
    ck_assert_uint_eq(set.count, 2);
    snprintf(tile, sizeof(tile), "%s/A.pcd", folder);
    ck_assert_str_eq(set.tiles[0].path, tile);
    ck_assert_double_eq(set.tiles[0].size_m[0], 20.0);
    ndt_tile_set_close(&set);
    ck_assert_int_eq(ndt_map_is_tile_set(path), 1);
    ck_assert_int_eq(ndt_map_path_check(path, &err), NDT_OK);
}

/* Autoware's map folder: the metadata, and the tiles in a folder below it. */
TEST(test_autoware_folders)
{
    char map[256], below[512], metadata[512], slash[512];
    ck_assert_int_eq(mkdir(temp_path("map"), 0700), 0);
    ck_assert_int_eq(mkdir(temp_path("map/pointcloud_map.pcd"), 0700), 0);
    ck_assert_int_eq(mkdir(temp_path("map/a_folder"), 0700), 0);
    put_cloud("map/pointcloud_map.pcd/A.pcd", 0.0f, 10);
    put_cloud("map/pointcloud_map.pcd/B.pcd", 0.0f, 10);
    put_cloud("map/pointcloud_map.pcd/unnamed.pcd", 0.0f, 10);
    snprintf(map, sizeof(map), "%s", temp_path("map"));
    snprintf(slash, sizeof(slash), "%s/", map);
    snprintf(below, sizeof(below), "%s/pointcloud_map.pcd", map);
    /* without metadata: all that is there, also from the folder above */
    struct ndt_tile_set set;
    ck_assert_int_eq(ndt_tile_set_open(&set, map, NULL), NDT_OK);
    ck_assert_uint_eq(set.count, 3);
    ndt_tile_set_close(&set);
    snprintf(metadata, sizeof(metadata), "%s", temp_text("map/" METADATA, good_metadata));
    expect_two_tiles(map, below);
    expect_two_tiles(slash, below);
    expect_two_tiles(metadata, below);
    expect_two_tiles(below, below);
    /* a metadata above that names other tiles is of another map */
    temp_text("map/" METADATA, "x_resolution: 20\ny_resolution: 20\nC.pcd: [0, 0]\n");
    ck_assert_int_eq(ndt_tile_set_open(&set, below, NULL), NDT_OK);
    ck_assert_uint_eq(set.count, 3);
    ck_assert_double_eq(set.tiles[0].size_m[0], 0.0);
    ndt_tile_set_close(&set);
    expect_set_fails(map, "C.pcd, which is not a file");
    /* one of the tiles is missing */
    temp_text("map/" METADATA, "x_resolution: 20\ny_resolution: 20\nB.pcd: [0, 0]\nC.pcd: [0, 20]\n");
    expect_set_fails(map, "C.pcd, which is not a file");
    temp_text("map/" METADATA, "x_resolution: x\n");
    expect_set_fails(map, "line 1: not a finite number");
}

TEST(test_no_metadata)
{
    struct ndt_tile_set set;
    put_cloud("b.pcd", 0.0f, 10);
    put_cloud("a.PCD", 5.0f, 10);
    temp_text("c.ply", "ply\n");
    temp_text("notes.txt", "nothing");
    temp_text(".hidden.pcd", "nothing");
    ck_assert_int_eq(mkdir(temp_path("folder.pcd"), 0700), 0);
    ck_assert_int_eq(ndt_tile_set_open(&set, temp_dir, NULL), NDT_OK);
    ck_assert_uint_eq(set.count, 3);
    ck_assert_str_eq(set.tiles[0].path, temp_path("a.PCD"));
    ck_assert_str_eq(set.tiles[1].path, temp_path("b.pcd"));
    ck_assert_str_eq(set.tiles[2].path, temp_path("c.ply"));
    ck_assert_double_eq(set.tiles[2].size_m[0], 0.0);
    ndt_tile_set_close(&set);
}

TEST(test_what_moved_is_left_out)
{
    struct ndt_tile_set set;
    put_cloud("map.pcd", 0.0f, 10);
    put_cloud("moved.pcd", 5.0f, 10);
    ck_assert_int_eq(ndt_tile_set_open(&set, temp_dir, NULL), NDT_OK);
    ck_assert_uint_eq(set.count, 2); /* a folder of any clouds */
    ndt_tile_set_close(&set);
    temp_text("map.json", "{}"); /* of ndt-map build */
    ck_assert_int_eq(ndt_tile_set_open(&set, temp_dir, NULL), NDT_OK);
    ck_assert_uint_eq(set.count, 1);
    ck_assert_str_eq(set.tiles[0].path, temp_path("map.pcd"));
    ndt_tile_set_close(&set);
}

TEST(test_directories_that_are_no_map)
{
    expect_set_fails(temp_dir, "contains no cloud file");
    temp_text("drive.db3", "");
    expect_set_fails(temp_dir, "it holds a recording, not a map");
    expect_set_fails(temp_path("missing"), "No such file");
    expect_set_fails(temp_text("file", "text"), "Not a directory");
    ck_assert_int_eq(mkdir(temp_path(METADATA), 0700), 0);
    expect_set_fails(temp_dir, "is a directory");
}

TEST(test_bad_metadata)
{
    static const struct bad_metadata {
        const char *text, *reason;
    } cases[] = {
        {"", "not a mapping"},
        {"# nothing\n", "not a mapping"},
        {"just words\n", "line 1: not a mapping"},
        {"- A.pcd\n", "line 1: not a mapping"},
        {"x_resolution: 20\n", "y_resolution is missing"},
        {"x_resolution: 20\ny_resolution: 20\n", "no tile is named"},
        {"A.pcd: [1, 2]\n", "x_resolution or y_resolution is missing"},
        {"x_resolution: 0\n", "line 1: a resolution must be above 0 m"},
        {"x_resolution: -1\n", "line 1: a resolution must be above 0 m"},
        {"x_resolution: nan\n", "line 1: not a finite number"},
        {"x_resolution: twenty\n", "line 1: not a finite number"},
        {"x_resolution: 20\nz_resolution: 20\n", "line 2: neither x_resolution, y_resolution nor a tile"},
        {"x_resolution: {a: 1}\n", "line 1: neither a number nor a tile"},
        {"A.pcd: [1]\n", "line 1: a tile needs two numbers"},
        {"A.pcd: [1, 2, 3]\n", "line 1: a tile needs two numbers"},
        {"A.pcd: [[1, 2], 3]\n", "line 1: a tile needs two numbers"},
        {"A.pcd: [1, x]\n", "line 1: not a finite number"},
        {"A.pcd: [1, .inf]\n", "line 1: not a finite number"},
        {"A.txt: [1, 2]\n", "line 1: a tile must name a cloud file"},
        {"../A.pcd: [1, 2]\n", "line 1: a tile must name a cloud file"},
        {"a/../../A.pcd: [1, 2]\n", "line 1: a tile must name a cloud file"},
        {"/etc/A.pcd: [1, 2]\n", "line 1: a tile must name a cloud file"},
        {"'': [1, 2]\n", "line 1: a tile must name a cloud file"},
        {"? [a]\n: [1, 2]\n", "line 1: a key must be a plain name"},
        {"A.pcd: &a [1, 2]\nB.pcd: *a\n", "line 2: neither a number nor a tile"},
        {"x_resolution: 20\ny_resolution: 20\nA.pcd: [1, 2]\nA.pcd: [1, 2]\n", "twice"},
        {"x_resolution: 20\ny_resolution: 20\nmissing.pcd: [1, 2]\n", "missing.pcd, which is not a file"},
        {"x_resolution: 20\ny_resolution: 20\nA.pcd: [1, 2]\n---\nb: 1\n", "line 4: a second document"},
        {"A.pcd: [1, 2\n", "line 2: "},
        {"A.pcd: [1, 2]\n\tB: 3\n", "line 2: "},
        {"\xff\xfe\x01", "line 1: "},
    };
    put_cloud("A.pcd", 0.0f, 10);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        temp_text(METADATA, cases[i].text);
        expect_set_fails(temp_dir, cases[i].reason);
    }
}

TEST(test_metadata_cut_at_every_byte)
{
    put_cloud("A.pcd", 0.0f, 10);
    put_cloud("B.pcd", 5.0f, 10);
    for (size_t cut = 0; cut < sizeof(good_metadata) - 3; cut++) {
        struct ndt_tile_set set;
        struct ndt_error err = {""};
        temp_write(METADATA, good_metadata, cut);
        if (ndt_tile_set_open(&set, temp_dir, &err) == NDT_OK)
            ck_assert_uint_eq(set.count, 1); /* cut between the tiles */
        else
            ck_assert_ptr_nonnull(strstr(err.text, METADATA));
        ndt_tile_set_close(&set);
    }
}

/* ---- whole maps ---- */

static struct ndt_map_config default_config(void)
{
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    return config;
}

static struct ndt_map *load(const char *path)
{
    const struct ndt_map_config config = default_config();
    struct ndt_map *map;
    struct ndt_error err = {""};
    ck_assert_msg(ndt_map_load(&map, path, &config, &err) == NDT_OK, "%s", err.text);
    return map;
}

static void expect_load_fails(const char *path, const struct ndt_map_config *config, const char *reason)
{
    struct ndt_map *map;
    struct ndt_error err = {""};
    ck_assert_msg(ndt_map_load(&map, path, config, &err) != NDT_OK, "was loaded, not refused for '%s'", reason);
    ck_assert_msg(strstr(err.text, path) && strstr(err.text, reason), "'%s' lacks '%s'", err.text, reason);
    ck_assert_ptr_null(map);
}

/* Both clouds have the same origin. */
static void append(struct ndt_cloud *to, const struct ndt_cloud *from)
{
    ck_assert_mem_eq(to->origin_m, from->origin_m, sizeof(to->origin_m));
    ck_assert_int_eq(ndt_cloud_reserve(to, to->count + from->count, from->fields, NULL), NDT_OK);
    memcpy(to->x_m + to->count, from->x_m, from->count * sizeof(float));
    memcpy(to->y_m + to->count, from->y_m, from->count * sizeof(float));
    memcpy(to->z_m + to->count, from->z_m, from->count * sizeof(float));
    to->count += from->count;
}

/* Tiles in any number of files give the same map as their points in one file. */
TEST(test_tiles_make_the_same_map)
{
    struct ndt_cloud a, b;
    ndt_cloud_init(&a);
    ndt_cloud_init(&b);
    ck_assert_int_eq(mkdir(temp_path("tiles"), 0700), 0);
    put_cloud("tiles/A.pcd", 0.0f, 3000);
    put_cloud("tiles/B.pcd", 7.0f, 2000);
    ck_assert_int_eq(ndt_cloud_read(&a, temp_path("tiles/A.pcd"), NULL), NDT_OK);
    ck_assert_int_eq(ndt_cloud_read(&b, temp_path("tiles/B.pcd"), NULL), NDT_OK);
    append(&b, &a);
    ck_assert_int_eq(ndt_pcd_write(&b, temp_path("all.pcd"), NDT_PCD_COMPRESSED, NULL), NDT_OK);
    ndt_cloud_free(&a);
    ndt_cloud_free(&b);
    struct ndt_map *one = load(temp_path("all.pcd"));
    struct ndt_map *listed = load(temp_path("tiles"));
    temp_text("tiles/" METADATA, "x_resolution: 7\ny_resolution: 7\nB.pcd: [7, 0]\nA.pcd: [0, 0]\n");
    struct ndt_map *described = load(temp_path("tiles"));
    ck_assert_uint_eq(one->points, 5000);
    ck_assert_uint_eq(listed->points, 5000);
    ck_assert_uint_eq(listed->id, one->id);
    ck_assert_uint_eq(described->id, one->id);
    ndt_map_release(one);
    ndt_map_release(listed);
    ndt_map_release(described);
}

TEST(test_maps_that_cannot_be)
{
    const struct ndt_map_config config = default_config();
    struct ndt_map_config bad = config;
    expect_load_fails(temp_path("missing.pcd"), &config, "No such file");
    expect_load_fails(temp_path("missing.ndtmap"), &config, "No such file");
    expect_load_fails(temp_dir, &config, "contains no cloud file");
    expect_load_fails(temp_text("a.txt", "x"), &config, "not a point cloud");
    expect_load_fails(temp_text("a.pcd", "FIELDS x y z\nPOINTS 0\nDATA ascii\n"), &config, "no finite point");
    expect_load_fails(temp_text("a.pcd", "FIELDS x y z\nPOINTS 1\nDATA ascii\nnan 1 2\n"), &config,
                      "no finite point");
    expect_load_fails(temp_text("a.ndtmap", "not a map"), &config, "");
    put_cloud("b.pcd", 0.0f, 10);
    bad.level_count = 0;
    expect_load_fails(temp_path("b.pcd"), &bad, "b.pcd: 0 map levels; the range is 1 to ");
    bad = config;
    bad.leaf_m[0] = 0.01;
    expect_load_fails(temp_path("b.pcd"), &bad, "b.pcd: map leaf 0.01 m is outside");
}

/* A compiled map is used only if it matches the configuration. */
TEST(test_compiled_map_must_fit)
{
    const struct ndt_map_config config = default_config();
    struct ndt_error err = {""};
    put_cloud("a.pcd", 0.0f, 5000);
    struct ndt_map *built = load(temp_path("a.pcd"));
    ck_assert_msg(ndt_map_save(built, temp_path("a.ndtmap"), &err) == NDT_OK, "%s", err.text);
    struct ndt_map *opened = load(temp_path("a.ndtmap"));
    ck_assert_uint_eq(opened->id, built->id);
    ndt_map_release(opened);
    ndt_map_release(built);
    struct ndt_map_config other = config;
    other.level_count = 1;
    struct ndt_map *map;
    ck_assert_int_eq(ndt_map_load(&map, temp_path("a.ndtmap"), &other, &err),
                     NDT_OK); /* fewer levels are sufficient */
    ndt_map_release(map);
    other.leaf_m[0] = 3.5;
    expect_load_fails(temp_path("a.ndtmap"), &other, "without a level of 3.5 m");
    other = config;
    other.min_points = config.min_points + 1;
    expect_load_fails(temp_path("a.ndtmap"), &other, "min_points");
    other = config;
    other.min_eigenvalue_ratio = 0.02;
    expect_load_fails(temp_path("a.ndtmap"), &other, "min_eigenvalue_ratio 0.01 instead of 0.02");
    other = config;
    other.outlier_ratio = 0.5;
    expect_load_fails(temp_path("a.ndtmap"), &other, "outlier_ratio 0.55 instead of 0.5");
    other = config;
    other.covariance = NDT_COVARIANCE_AUTOWARE;
    expect_load_fails(temp_path("a.ndtmap"), &other, "unbiased covariances instead of autoware");
}

TEST(test_real_map)
{
    const char *shared = getenv("NDT_SHARED_DATA");
    if (!shared) {
        puts("skipped: NDT_SHARED_DATA is not set");
        return;
    }
    char path[512];
    snprintf(path, sizeof(path), "%s/kitti0005_lite/map_from_even_scans_0.20m.pcd", shared);
    struct ndt_map *map = load(path);
    ck_assert_uint_eq(map->points, 269980);
    ndt_map_release(map);
}
