/* Overlays: what changed in a map, in a folder beside it. The map through an overlay is that of the edited cloud.
 */
#include <math.h>

#include "ndt_io/map_file.h"
#include "overlay_files.h"
#include "run_tests.h"

#define ID 0x0123456789abcdefULL

static const char head[] = "map: ../map.pcd\noverlay_id: \"0123456789abcdef\"\n";
static struct overlay_change change;

static void write_points(const char *name, const struct ndt_cloud *cloud)
{
    ck_assert_int_eq(ndt_pcd_write(cloud, temp_path(name), NDT_PCD_BINARY, NULL), NDT_OK);
}

static void fill(struct ndt_cloud *cloud, size_t count)
{
    ndt_cloud_init(cloud);
    ck_assert_int_eq(ndt_cloud_reserve(cloud, count + 4, NDT_CLOUD_INTENSITY, NULL), NDT_OK);
    for (size_t i = 0; i < count; i++) {
        cloud->x_m[i] = 0.01f * (float)(i % 997);
        cloud->y_m[i] = 0.02f * (float)(i % 331);
        cloud->z_m[i] = 0.5f + 0.1f * sinf((float)i);
        cloud->intensity[i] = (float)i;
    }
    cloud->count = count;
}

/* A map of 5000 points and an overlay that takes points 0, 7, 8 and 4999 out and adds two. */
static void set_up(void)
{
    struct ndt_cloud cloud;
    temp_dir_make();
    fill(&cloud, 5000);
    write_points("map.pcd", &cloud);
    ndt_cloud_free(&cloud);
    ck_assert_int_eq(mkdir(temp_path("overlay"), 0700), 0);
    temp_text("overlay/" NDT_MAP_OVERLAY, head);
    change = overlay_change_of(temp_path("map.pcd"), ID);
    change.removed = 4;
    change.added = 2;
    memcpy(change.gone, (const uint32_t[]){0, 7, 8, 4999}, 16);
    memcpy(change.points_m, (const double[2][3]){{3.25, 1.5, 2}, {3.5, 1.25, 2.125}}, 48);
    overlay_write_change("overlay/map.pcd.change", &change, 0);
}

static struct ndt_map *load(const char *path)
{
    struct ndt_map_config config;
    struct ndt_map *map;
    struct ndt_error err = {""};
    ndt_map_config_default(&config);
    ck_assert_msg(ndt_map_load(&map, path, &config, &err) == NDT_OK, "%s", err.text);
    return map;
}

static void expect_refused(const char *reason)
{
    struct ndt_map_config config;
    struct ndt_map *map;
    struct ndt_error err = {""};
    ndt_map_config_default(&config);
    ck_assert_msg(ndt_map_load(&map, temp_path("overlay"), &config, &err) != NDT_OK, "was read, not refused: '%s'",
                  reason);
    ck_assert_msg(strstr(err.text, temp_dir) && strstr(err.text, reason), "'%s' lacks '%s'", err.text, reason);
}

static void expect_change_refused(const char *reason)
{
    overlay_write_change("overlay/map.pcd.change", &change, 0);
    expect_refused(reason);
}

FIXTURE(set_up, temp_dir_remove)

TEST(test_one_cloud)
{
    struct ndt_cloud cloud, read;
    fill(&cloud, 5000);
    size_t kept = 0;
    for (size_t i = 0; i < 5000; i++) {
        if (i == 0 || i == 7 || i == 8 || i == 4999)
            continue;
        cloud.x_m[kept] = cloud.x_m[i];
        cloud.y_m[kept] = cloud.y_m[i];
        cloud.z_m[kept] = cloud.z_m[i];
        cloud.intensity[kept++] = cloud.intensity[i];
    }
    for (size_t i = 0; i < 2; i++, kept++) {
        cloud.x_m[kept] = (float)change.points_m[i][0];
        cloud.y_m[kept] = (float)change.points_m[i][1];
        cloud.z_m[kept] = (float)change.points_m[i][2];
        cloud.intensity[kept] = 0;
    }
    cloud.count = kept;
    write_points("edited.pcd", &cloud);
    struct ndt_map *edited = load(temp_path("edited.pcd")), *changed = load(temp_path("overlay"));
    struct ndt_map *before = load(temp_path("map.pcd"));
    ck_assert_uint_eq(changed->points, 4998);
    ck_assert_uint_eq(changed->id, edited->id);
    ck_assert_uint_ne(changed->id, before->id);
    ndt_map_release(edited);
    ndt_map_release(changed);
    ndt_map_release(before);

    ndt_cloud_init(&read);
    ck_assert_int_eq(ndt_tile_read(&read, temp_path("map.pcd"), temp_path("overlay/map.pcd.change"), NULL, NULL),
                     NDT_OK);
    ck_assert_uint_eq(read.count, cloud.count);
    ck_assert_mem_eq(read.x_m, cloud.x_m, cloud.count * sizeof(float));
    ck_assert_mem_eq(read.z_m, cloud.z_m, cloud.count * sizeof(float));
    ck_assert_mem_eq(read.intensity, cloud.intensity, cloud.count * sizeof(float));
    ndt_cloud_free(&read);
    ndt_cloud_free(&cloud);
}

/* More points go than are read at once. */
TEST(test_many_points)
{
    static uint8_t bytes[48 + 4 * 9000];
    uint32_t gone[9000];
    struct ndt_cloud cloud;
    fill(&cloud, 10000);
    write_points("map.pcd", &cloud);
    change = overlay_change_of(temp_path("map.pcd"), ID);
    change.removed = 9000;
    for (uint32_t i = 0; i < 9000; i++)
        gone[i] = i / 9 * 10 + i % 9; /* nine of ten */
    memcpy(bytes, &change, 48);
    memcpy(bytes + 48, gone, sizeof(gone));
    temp_write("overlay/map.pcd.change", bytes, sizeof(bytes));
    ck_assert_int_eq(ndt_tile_read(&cloud, temp_path("map.pcd"), temp_path("overlay/map.pcd.change"), NULL, NULL),
                     NDT_OK);
    ck_assert_uint_eq(cloud.count, 1000);
    for (size_t i = 0; i < 1000; i++)
        ck_assert_float_eq(cloud.intensity[i], (float)(10 * i + 9));
    ndt_cloud_free(&cloud);
}

TEST(test_tiles)
{
    struct ndt_tile_set set;
    struct ndt_error err = {""};
    struct ndt_cloud cloud;
    fill(&cloud, 3000);
    ck_assert_int_eq(mkdir(temp_path("tiles"), 0700), 0);
    write_points("tiles/A.pcd", &cloud);
    write_points("tiles/B.pcd", &cloud);
    ndt_cloud_free(&cloud);
    temp_text("tiles/" NDT_TILE_METADATA, "x_resolution: 20\ny_resolution: 20\nA.pcd: [0, 0]\nB.pcd: [20, 0]\n");
    char text[400];
    snprintf(text, sizeof(text), "overlay_id: 0123456789abcdef\nmap: %s\nnote: [any, other, key]\n",
             temp_path("tiles")); /* absolute */
    temp_text("overlay/" NDT_MAP_OVERLAY, text);
    unlink(temp_path("overlay/map.pcd.change"));
    change = overlay_change_of(temp_path("tiles/B.pcd"), ID);
    overlay_write_change("overlay/B.pcd.change", &change, 0);
    ck_assert_msg(ndt_tile_set_open(&set, temp_path("overlay"), &err) == NDT_OK, "%s", err.text);
    ck_assert_uint_eq(set.count, 2);
    ck_assert_ptr_null(set.tiles[0].change);
    ck_assert_str_eq(set.tiles[1].change, temp_path("overlay/B.pcd.change"));
    ck_assert_double_eq(set.tiles[1].min_m[0], 20);
    ndt_tile_set_close(&set);
    struct ndt_map *map = load(temp_path("overlay"));
    ck_assert_uint_eq(map->points, 5999);
    ndt_map_release(map);
    overlay_write_change("overlay/C.pcd.change", &change, 0);
    expect_refused("2 files of changes for 1 files of the map");
}

TEST(test_bad_heads)
{
    const struct overlay_change good = change;
    change.base_sum++;
    expect_change_refused("map.pcd.change: was made for other points than those of ");
    change = good;
    change.base_points--;
    expect_change_refused("was made for other points");
    change = good;
    change.overlay_id--;
    expect_change_refused("is of overlay 0123456789abcdee, not 0123456789abcdef");
    change = good;
    change.magic[7] = '2';
    expect_change_refused("not a change of a tile");
    change = good;
    for (uint64_t large = 5001; large; large = large == 5001 ? 1ULL << 60 : large << 1) {
        change = good;
        change.removed = large;
        temp_write("overlay/map.pcd.change", &change, sizeof(change));
        expect_refused("more points than a cloud can have");
        change = good;
        change.added = large == 5001 ? NDT_CLOUD_MAX_POINTS : large;
        temp_write("overlay/map.pcd.change", &change, sizeof(change));
        expect_refused("more points than a cloud can have");
    }
    overlay_write_change("overlay/map.pcd.change", &good, 1);
    expect_refused("113 bytes instead of 112");
    temp_write("overlay/map.pcd.change", &good, 20);
    expect_refused("map.pcd.change");
}

TEST(test_bad_points)
{
    const struct overlay_change good = change;
    change.gone[2] = 7; /* twice */
    expect_change_refused("positions of points that do not ascend");
    change = good;
    change.gone[1] = 9;
    expect_change_refused("positions of points that do not ascend");
    change = good;
    change.gone[3] = 5000;
    expect_change_refused("behind the last");
    change = good;
    change.points_m[1][2] = NAN;
    expect_change_refused("adds a point that is not finite");
}

TEST(test_bad_texts)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "overlay_id: not 16 hexadecimal digits"},
        {"map: ../map.pcd\n", "overlay_id: not 16 hexadecimal digits"},
        {"map: ../map.pcd\noverlay_id: 0123456789abcdeg\n", "overlay_id: not 16 hexadecimal digits"},
        {"map: ../map.pcd\noverlay_id: \"0000000000000000\"\n", "overlay_id: not 16 hexadecimal digits"},
        {"map: ../map.pcd\noverlay_id: [0123456789abcdef]\n", "overlay_id: not 16 hexadecimal digits"},
        {"overlay_id: 0123456789abcdef\n", "map: not the path of a map"},
        {"overlay_id: 0123456789abcdef\nmap: [a]\n", "map: not the path of a map"},
        {"overlay_id: 0123456789abcdef\nmap: ../none.pcd\n", "none.pcd: is not there"},
        {"overlay_id: 0123456789abcdef\nmap: ../map.ndtmap\n", "neither a cloud file nor a folder of tiles"},
        {"overlay_id: 0123456789abcdef\nmap: .\n", "which is an overlay itself"},
        {"overlay_id: 0123456789abcdef\nmap: {\n", "line "},
        {"- a\n- b\n", "overlay_id: not 16 hexadecimal digits"}};
    temp_text("map.ndtmap", "x");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        temp_text("overlay/" NDT_MAP_OVERLAY, cases[i].text);
        expect_refused(cases[i].reason);
    }
}
