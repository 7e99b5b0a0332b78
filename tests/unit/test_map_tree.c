/* Maps as octrees for the page: no point is lost or moved, spacings hold, and whatever a client names is refused.
 */
#include <math.h>
#include <unistd.h>

#include "map_tree.h"
#include "ndt/random.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"
#include "run_tests.h"
#include "temp_dir.h"
#include "web_map.h"

/* ---- maps ---- */

static void put_points(const char *name, const double origin_m[3], size_t count, void (*point)(size_t, float *))
{
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    ck_assert_int_eq(ndt_cloud_reserve(&cloud, count + 1, NDT_CLOUD_INTENSITY, NULL), NDT_OK);
    memcpy(cloud.origin_m, origin_m, sizeof(cloud.origin_m));
    for (size_t i = 0; i < count; i++) {
        float p[4];
        point(i, p);
        cloud.x_m[i] = p[0];
        cloud.y_m[i] = p[1];
        cloud.z_m[i] = p[2];
        cloud.intensity[i] = p[3];
    }
    cloud.count = count;
    ck_assert_int_eq(ndt_pcd_write(&cloud, temp_path(name), NDT_PCD_BINARY, NULL), NDT_OK);
    ndt_cloud_free(&cloud);
}

static const double zero_m[3] = {0, 0, 0};
static const double utm_m[3] = {389120, 4970496, 0};

/* A street of 200 m: ground and a wall. */
static void street(size_t i, float *p)
{
    struct ndt_random random = ndt_random_stream(7, i, 0);
    const double along_m = ndt_random_between(&random, -100, 100), across = ndt_random_unit(&random);
    p[0] = (float)along_m;
    p[1] = i % 3 ? (float)(40 * across - 20) : 20;
    p[2] = i % 3 ? 0.2f : (float)(8 * across);
    p[3] = i % 3 ? 10 : 90;
}

static void same_place(size_t i, float *p)
{
    (void)i;
    p[0] = 3.25f;
    p[1] = -7.5f;
    p[2] = 1.125f;
    p[3] = 5;
}

static struct web_tree *tree_of(const char *path)
{
    struct web_keys keys;
    struct web_tree *tree;
    struct ndt_error err = {""};
    ck_assert_msg(web_keys_read(&keys, path, NULL, &err) == NDT_OK, "%s", err.text);
    ck_assert_int_eq(web_keys_sort(&keys, NULL, &err), NDT_OK);
    for (size_t i = 1; i < keys.count; i++)
        ck_assert(keys.keys[i - 1] <= keys.keys[i]);
    ck_assert_int_eq(web_tree_build(&tree, &keys, NULL, &err), NDT_OK);
    ck_assert_ptr_null(keys.keys);
    return tree;
}

/* ---- nodes ---- */

struct seen {
    uint64_t nodes, points, children;
    uint32_t most;
    double sum_m[3], sum_shade;
};

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static double get_f32(const uint8_t *at)
{
    const uint32_t bits = get_u32(at);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

/* Points of an inner node have a cell of the grid of its spacing each. Those whose rounding may have carried them
 * over a border of cells do not count. */
static void check_spacing(const uint8_t *data, uint32_t count, double size_m, double spacing_m)
{
    const size_t cells = (size_t)lround(size_m / spacing_m);
    uint8_t *taken = calloc(cells * cells * cells, 1);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *record = data + WEB_NODE_HEADER + WEB_NODE_RECORD * i;
        size_t at = 0;
        int is_sure = 1;
        for (int k = 2; k >= 0; k--) {
            const double place = (record[2 * k] | record[2 * k + 1] << 8) / 65535.0 * (double)cells;
            const double border = fabs(place - round(place));
            is_sure = is_sure && border > 0.002;
            at = at * cells + (size_t)fmin(place, (double)cells - 1);
        }
        ck_assert_msg(!is_sure || !taken[at], "two points in one cell of %g m", spacing_m);
        taken[at] = taken[at] || is_sure;
    }
    free(taken);
}

static void walk(const struct web_tree *tree, const char *name, struct seen *seen)
{
    struct web_blob *blob = web_tree_node(tree, name);
    ck_assert_ptr_nonnull(blob);
    const uint8_t *data = blob->data;
    ck_assert(memcmp(data, "NDTN", 4) == 0 && get_u32(data + 4) == 1);
    const uint32_t count = get_u32(data + 8), mask = get_u32(data + 12);
    const double size_m = get_f32(data + 28), spacing_m = get_f32(data + 32);
    ck_assert_uint_eq(blob->size, WEB_NODE_HEADER + WEB_NODE_RECORD * (size_t)count);
    ck_assert(count <= WEB_NODE_POINTS_MAX && mask < 256 && spacing_m > 0);
    if (mask && size_m > 4) /* records are exact to a part of the cell */
        check_spacing(data, count, size_m, spacing_m);
    seen->nodes++;
    seen->points += count;
    seen->most = count > seen->most ? count : seen->most;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *record = data + WEB_NODE_HEADER + WEB_NODE_RECORD * i;
        for (int k = 0; k < 3; k++)
            seen->sum_m[k] +=
                get_f32(data + 16 + 4 * k) + (record[2 * k] | record[2 * k + 1] << 8) / 65535.0 * size_m;
        seen->sum_shade += record[6];
    }
    web_blob_drop(blob);
    for (uint32_t i = 0; i < 8; i++)
        if (mask >> i & 1) {
            char child[64];
            snprintf(child, sizeof(child), "%s%u", name, i);
            seen->children++;
            walk(tree, child, seen);
        }
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(test_all_points)
{
    enum { COUNT = 300000 };
    put_points("map.pcd", utm_m, COUNT, street);
    struct web_tree *tree = tree_of(temp_path("map.pcd"));
    const struct web_tree_info *info = web_tree_describe(tree);
    struct seen seen = {0};
    double sum_m[3] = {0}, shade = 0;
    for (size_t i = 0; i < COUNT; i++) {
        float p[4];
        street(i, p);
        for (int k = 0; k < 3; k++)
            sum_m[k] += (double)p[k];
        shade += p[3] > 50 ? 255 : 0;
    }
    walk(tree, "r", &seen);
    ck_assert_uint_eq(seen.points, COUNT);
    ck_assert_uint_eq(info->points, COUNT);
    ck_assert_uint_eq(info->nodes, seen.nodes);
    ck_assert_uint_eq(seen.children, seen.nodes - 1);
    ck_assert_uint_gt(seen.nodes, 20);
    ck_assert_uint_eq(info->bytes, 8 * COUNT);
    ck_assert_uint_eq(info->left_out, 0);
    ck_assert_int_eq(info->has_intensity, 1);
    ck_assert_int_eq(info->is_voxels, 0);
    ck_assert_double_eq(seen.sum_shade, shade);
    /* Millimetres in UTM: the mean of what is rounded is 0. */
    for (int k = 0; k < 3; k++)
        ck_assert_double_eq_tol(utm_m[k] + sum_m[k] / COUNT, info->origin_m[k] + seen.sum_m[k] / COUNT, 1e-3);
    ck_assert_double_eq_tol(info->origin_m[0] + info->min_m[0], utm_m[0] - 100, 0.1);
    ck_assert_double_eq_tol(info->origin_m[2] + info->max_m[2], 8, 0.1);
    web_tree_free(tree);
}

/* Equal files give equal bytes; another order of the points the same nodes. */
TEST(test_determinism)
{
    put_points("map.pcd", zero_m, 100000, street);
    struct web_tree *a = tree_of(temp_path("map.pcd")), *b = tree_of(temp_path("map.pcd"));
    ck_assert_uint_eq(web_tree_describe(a)->id, web_tree_describe(b)->id);
    struct web_blob *x = web_tree_node(a, "r"), *y = web_tree_node(b, "r");
    ck_assert_uint_eq(x->size, y->size);
    ck_assert_mem_eq(x->data, y->data, x->size);
    web_blob_drop(x);
    web_blob_drop(y);
    web_tree_free(a);
    web_tree_free(b);
    put_points("map.pcd", zero_m, 99999, street);
    struct web_tree *c = tree_of(temp_path("map.pcd"));
    put_points("map.pcd", utm_m, 99999, street);
    struct web_tree *d = tree_of(temp_path("map.pcd"));
    ck_assert_uint_ne(web_tree_describe(c)->id, web_tree_describe(d)->id);
    web_tree_free(c);
    web_tree_free(d);
}

/* The points of one place cannot be divided: the last node has as many as it may, and the others are counted. */
TEST(test_equal_points)
{
    put_points("map.pcd", zero_m, 50000, same_place);
    struct web_tree *tree = tree_of(temp_path("map.pcd"));
    const struct web_tree_info *info = web_tree_describe(tree);
    struct seen seen = {0};
    walk(tree, "r", &seen);
    ck_assert_uint_eq(seen.points, info->points);
    ck_assert_uint_eq(seen.points + info->left_out, 50000);
    ck_assert_uint_eq(seen.most, WEB_NODE_POINTS_MAX);
    ck_assert_uint_le(seen.nodes, WEB_KEY_BITS);
    ck_assert_double_eq_tol(info->origin_m[0] + seen.sum_m[0] / (double)seen.points, 3.25, 1e-3);
    web_tree_free(tree);
}

TEST(test_one_point)
{
    put_points("map.pcd", utm_m, 1, same_place);
    struct web_tree *tree = tree_of(temp_path("map.pcd"));
    struct seen seen = {0};
    walk(tree, "r", &seen);
    ck_assert_uint_eq(seen.nodes, 1);
    ck_assert_uint_eq(seen.points, 1);
    for (int k = 0; k < 3; k++)
        ck_assert_double_eq_tol(web_tree_describe(tree)->origin_m[k] + seen.sum_m[k],
                                utm_m[k] + (k == 0   ? 3.25
                                            : k == 1 ? -7.5
                                                     : 1.125),
                                1e-3);
    ck_assert_int_eq(web_tree_describe(tree)->has_intensity, 0); /* there is nothing to tell apart */
    web_tree_free(tree);
}

static void holed(size_t i, float *p)
{
    street(i, p);
    if (i % 10 == 3)
        p[i / 10 % 3] = i % 20 == 3 ? NAN : INFINITY;
}

static void strayed(size_t i, float *p)
{
    street(i, p);
    if (i == 777)
        p[0] = p[1] = -4e6f;
}

static void huge(size_t i, float *p)
{
    struct ndt_random random = ndt_random_stream(3, i, 0);
    for (int k = 0; k < 3; k++)
        p[k] = (float)ndt_random_between(&random, -4e6, 4e6);
    p[3] = 0;
}

TEST(test_points_left_out)
{
    struct seen seen = {0};
    put_points("map.pcd", zero_m, 10000, holed);
    struct web_tree *tree = tree_of(temp_path("map.pcd"));
    walk(tree, "r", &seen);
    ck_assert_uint_eq(seen.points, 9000);
    ck_assert_uint_eq(web_tree_describe(tree)->left_out, 1000);
    web_tree_free(tree);

    /* One point far away does not cost the others their resolution. */
    put_points("map.pcd", zero_m, 10000, strayed);
    tree = tree_of(temp_path("map.pcd"));
    ck_assert_uint_eq(web_tree_describe(tree)->points, 9999);
    ck_assert_uint_eq(web_tree_describe(tree)->left_out, 1);
    ck_assert_double_lt(web_tree_describe(tree)->spacing_m, 4);
    web_tree_free(tree);
}

TEST(test_huge_extent)
{
    struct seen seen = {0};
    put_points("map.pcd", zero_m, 60000, huge);
    struct web_tree *tree = tree_of(temp_path("map.pcd"));
    walk(tree, "r", &seen);
    ck_assert_uint_eq(seen.points, 60000);
    ck_assert_uint_eq(web_tree_describe(tree)->left_out, 0);
    web_tree_free(tree);
}

TEST(test_names)
{
    static const char *const names[] = {
        "",     "R",     "rr",   "r8", "r-1", "r/0", "0", "r0 ", " r", "r ", "r0000000000000000000000000000000",
        "../r", "r\xff", "r%30", "r9", "r:"};
    put_points("map.pcd", zero_m, 100000, street);
    struct web_tree *tree = tree_of(temp_path("map.pcd"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_msg(!web_tree_node(tree, names[i]), "'%s' was found", names[i]);
    char *endless = malloc(100001);
    memset(endless, '0', 100000);
    endless[0] = 'r';
    endless[100000] = '\0';
    ck_assert_ptr_null(web_tree_node(tree, endless));
    free(endless);
    web_tree_free(tree);
}

TEST(test_refused)
{
    struct web_keys keys;
    struct ndt_error err = {""};
    struct ndt_progress progress;
    ck_assert_int_ne(web_keys_read(&keys, temp_path("none.pcd"), NULL, &err), NDT_OK);
    ck_assert_ptr_nonnull(strstr(err.text, "none.pcd"));
    ck_assert_ptr_null(keys.keys);
    put_points("map.pcd", zero_m, 1000, street);
    ndt_progress_init(&progress, NULL, NULL, 1);
    ndt_progress_cancel(&progress);
    ck_assert_int_eq(web_keys_read(&keys, temp_path("map.pcd"), &progress, &err), NDT_ERR_CANCELLED);
    ck_assert_int_eq(web_keys_read(&keys, temp_path("map.pcd"), NULL, &err), NDT_OK);
    struct web_tree *tree;
    ck_assert_int_eq(web_tree_build(&tree, &keys, &progress, &err), NDT_ERR_CANCELLED);
    ck_assert_ptr_null(tree);
    ck_assert_ptr_null(keys.keys);
}

/* Tiles, and the same points in one file, have the same nodes; a compiled map has its voxels. */
TEST(test_kinds_of_maps)
{
    char path[600], folder[512];
    snprintf(folder, sizeof(folder), "%s", temp_path("tiles"));
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    put_points("tiles/a.pcd", zero_m, 50000, street);
    put_points("tiles/b.pcd", zero_m, 30000, strayed);
    struct web_tree *tree = tree_of(folder);
    struct seen seen = {0};
    walk(tree, "r", &seen);
    ck_assert_uint_eq(seen.points, 79999);
    web_tree_free(tree);

    put_points("map.pcd", zero_m, 50000, street);
    struct ndt_map_config config;
    struct ndt_map *map;
    ndt_map_config_default(&config);
    ck_assert_int_eq(ndt_map_load(&map, temp_path("map.pcd"), &config, NULL), NDT_OK);
    snprintf(path, sizeof(path), "%s", temp_path("map.ndtmap"));
    ck_assert_int_eq(ndt_map_save(map, path, NULL), NDT_OK);
    tree = tree_of(path);
    const struct web_tree_info *info = web_tree_describe(tree);
    ck_assert_int_eq(info->is_voxels, 1);
    ck_assert_uint_eq(info->points, map->levels[map->level_count - 1].voxel_count - 1);
    ck_assert_double_eq_tol(info->origin_m[0] + info->min_m[0], -99.5, 0.5);
    web_tree_free(tree);
    ndt_map_release(map);
}

/* ---- the thread ---- */

static void describe(struct web_map *map, char *text, size_t size)
{
    FILE *file = fmemopen(text, size, "w");
    web_map_describe(map, file);
    fclose(file);
}

static void wait_for(struct web_map *map, const char *state, char *text, size_t size)
{
    for (int i = 0; i < 60000; i++) { /* at low priority, and with a sanitizer, a map takes long */
        describe(map, text, size);
        if (strstr(text, state))
            return;
        usleep(5000);
    }
    ck_abort_msg("never '%s': %s", state, text);
}

static void count_changes(void *user)
{
    __atomic_fetch_add((int *)user, 1, __ATOMIC_RELAXED);
}

TEST(test_worker)
{
    struct web_map *map;
    struct web_map_counters counters;
    char text[4096], id[64] = "x", former[64];
    int changes = 0;
    put_points("map.pcd", utm_m, 100000, street);
    ck_assert_int_eq(web_map_open(&map, count_changes, &changes, NULL), NDT_OK);
    describe(map, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "\"state\":\"none\""));
    ck_assert_ptr_null(web_map_node(map, "r", id));
    ck_assert_str_eq(id, "");
    web_map_load(map, temp_path("map.pcd"));
    wait_for(map, "\"state\":\"ready\"", text, sizeof(text));
    struct web_blob *blob = web_map_node(map, "r", former);
    ck_assert_ptr_nonnull(blob);
    ck_assert_ptr_nonnull(strstr(text, former));
    ck_assert_ptr_nonnull(strstr(text, "\"points\":100000"));

    /* A failure leaves the map, and says why; another map takes its place. */
    web_map_load(map, temp_path("missing \"map\".pcd"));
    wait_for(map, "\"state\":\"failed\"", text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "missing \\\"map\\\".pcd: "));
    web_blob_drop(web_map_node(map, "r", id));
    ck_assert_str_eq(id, former);
    put_points("map.pcd", utm_m, 1000, street);
    web_map_load(map, temp_path("map.pcd"));
    wait_for(map, "\"points\":1000,", text, sizeof(text));
    web_blob_drop(web_map_node(map, "r", id));
    ck_assert_str_ne(id, former);
    ck_assert_ptr_null(web_map_node(map, "r7777", id));
    web_map_counters(map, &counters);
    ck_assert_uint_eq(counters.points, 1000);
    ck_assert_uint_eq(counters.nodes_served, 3);
    ck_assert_int_ge(__atomic_load_n(&changes, __ATOMIC_RELAXED), 4);
    ck_assert_uint_gt(blob->size, WEB_NODE_HEADER); /* of the first map, and still there */
    web_blob_drop(blob);
    web_map_close(map);
}

/* Requests that replace each other, and an end while one is worked on. */
TEST(test_worker_ends)
{
    put_points("map.pcd", zero_m, 400000, street);
    for (int i = 0; i < 8; i++) {
        struct web_map *map;
        ck_assert_int_eq(web_map_open(&map, NULL, NULL, NULL), NDT_OK);
        for (int k = 0; k < i; k++) {
            web_map_load(map, temp_path("map.pcd"));
            usleep((useconds_t)(1000 * k * i));
        }
        web_map_close(map);
    }
    web_map_close(NULL);
}
