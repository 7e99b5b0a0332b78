/** @file
 * @brief Compiled maps that a builder never made, with a right hash: each is refused before anything evaluates it.
 * And files that change or that are none. */
#include <check.h>
#include <fcntl.h>
#include <math.h>

#include "compiled_map_file.h"
#include "ndt/hash.h"
#include "ndt_io/compiled_map.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndt_error err;
static unsigned char *image; /* image of a good file, to be damaged */
static size_t size;

/* A bumpy floor; with `apart_m` another one that far away, so that the index is hashed. */
static void make_map(double apart_m)
{
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    struct ndt_map *map;
    ndt_map_config_default(&config);
    ndt_cloud_init(&cloud);
    const size_t count = 40000;
    ck_assert_int_eq(ndt_cloud_reserve(&cloud, count, 0, &err), NDT_OK);
    cloud.count = count;
    for (size_t i = 0; i < count; i++) {
        const double x_m = 0.1 * (double)(i % 200), y_m = 0.1 * (double)(i / 200);
        cloud.x_m[i] = (float)(x_m + (i % 2 ? apart_m : 0));
        cloud.y_m[i] = (float)(y_m + (i % 2 ? apart_m : 0));
        cloud.z_m[i] = (float)(0.3 * sin(2 * x_m) * cos(3 * y_m) + (i % 2 ? apart_m : 0));
    }
    ck_assert_int_eq(ndt_map_from_cloud(&map, &config, &cloud, &err), NDT_OK);
    ck_assert_int_eq(ndt_map_save(map, temp_path("good.ndtmap"), &err), NDT_OK);
    ndt_map_release(map);
    ndt_cloud_free(&cloud);
    image = temp_read(temp_path("good.ndtmap"), &size);
    ck_assert_ptr_nonnull(image);
}

static void set_up(void)
{
    temp_dir_make();
    make_map(0);
}

static void tear_down(void)
{
    free(image);
    temp_dir_remove();
}

static struct ndt_file_header *header(void)
{
    return (struct ndt_file_header *)image;
}

static void *array(enum ndt_file_array which)
{
    return image + header()->levels[2].offset[which];
}

static struct ndt_cell_ref *refs(void)
{
    return array(NDT_FILE_CELLS);
}

/* The first cell whose list has from `least` to `most` voxels. */
static struct ndt_cell_ref *ref_with(unsigned least, unsigned most)
{
    struct ndt_cell_ref *ref = refs();
    while (ref->n27 < least || ref->n27 > most)
        ref++;
    ck_assert_uint_lt((size_t)(ref - refs()), 512 * (size_t)header()->levels[2].brick_count);
    return ref;
}

static uint32_t *list_of(const struct ndt_cell_ref *ref)
{
    return (uint32_t *)array(NDT_FILE_LISTS) + 8 * (size_t)ref->offset;
}

static void put_float(uint32_t *at, float value)
{
    memcpy(at, &value, sizeof(value));
}

/* Writes the file with the hash that it now has. */
static const char *forge(void)
{
    header()->hash = 0;
    header()->hash = ndt_hash64(image, size, 0);
    return temp_write("forged.ndtmap", image, size);
}

/* ---- the forgeries ---- */

/* The attack: n27 = padded = offset = 0 passed as "no list", whatever n1 and n7. */
static void lengths_without_a_list(void)
{
    struct ndt_cell_ref *ref = ref_with(1, 27);
    *ref = (struct ndt_cell_ref){.n1 = 200, .n7 = 255};
}

/* The other half: 32 means in reach of a point. */
static void padding_in_reach(void)
{
    const struct ndt_cell_ref *ref = ref_with(9, 15);
    for (uint32_t i = ref->n27; i < ref->padded; i++)
        for (uint32_t k = 0; k < 3; k++)
            put_float(&list_of(ref)[k * ref->padded + i], 0.5f);
}

static void padding_is_a_voxel(void)
{
    const struct ndt_cell_ref *ref = ref_with(9, 15);
    list_of(ref)[3u * ref->padded + ref->n27] = 1;
}

static void list_is_longer_than_its_cells(void)
{
    ref_with(9, 15)->n27 = 28;
}

static void list_ends_after_the_array(void)
{
    ref_with(1, 27)->offset = (uint32_t)(header()->levels[2].list_words / 8);
}

static void list_begins_before_the_first(void)
{
    ref_with(1, 8)->offset = 0;
}

static void voxel_beyond_the_last(void)
{
    const struct ndt_cell_ref *ref = ref_with(1, 27);
    list_of(ref)[3u * ref->padded] = header()->levels[2].voxel_count;
}

static void voxel_of_another_place(void)
{
    const struct ndt_cell_ref *ref = ref_with(1, 27);
    list_of(ref)[3u * ref->padded] = header()->levels[2].voxel_count - 1;
}

static void listed_mean_is_not_a_number(void)
{
    put_float(list_of(ref_with(1, 27)), NAN);
}

static void listed_mean_is_elsewhere(void)
{
    put_float(list_of(ref_with(1, 27)), 0.25f);
}

static struct ndt_voxel *voxel(void)
{
    return (struct ndt_voxel *)array(NDT_FILE_VOXELS) + 7;
}

static void mean_is_not_a_number(void)
{
    voxel()->mean_m[1] = NAN;
}

static void mean_is_outside_of_its_cell(void)
{
    voxel()->mean_m[2] = 3;
}

static void covariance_is_not_a_number(void)
{
    voxel()->icov[4] = NAN;
}

static void covariance_is_infinite(void)
{
    voxel()->icov[0] = INFINITY;
}

static void covariance_is_too_large(void)
{
    voxel()->icov[0] = voxel()->icov[3] = voxel()->icov[5] = 3e38f;
}

static void covariance_is_negative(void)
{
    for (int i = 0; i < 6; i++)
        voxel()->icov[i] = -voxel()->icov[i];
}

static void covariance_is_indefinite(void)
{
    voxel()->icov[1] = 2 * sqrtf(voxel()->icov[0] * voxel()->icov[3]);
}

static void cell_is_beyond_all(void)
{
    voxel()->cell[0] = INT32_MIN;
}

static void null_voxel_is_a_voxel(void)
{
    struct ndt_voxel *none = array(NDT_FILE_VOXELS);
    none->icov[0] = 1;
}

static void empty_brick_has_a_list(void)
{
    refs()[0] = *ref_with(1, 27);
}

static void brick_beyond_the_last(void)
{
    *(uint32_t *)array(NDT_FILE_BRICKS) = header()->levels[2].brick_count;
}

static void brick_in_two_places(void)
{
    uint32_t *bricks = array(NDT_FILE_BRICKS);
    for (uint32_t i = 0; i < header()->levels[2].brick_slots; i++)
        bricks[i] = 1;
}

static void origin_is_not_a_number(void)
{
    header()->origin_m[0] = NAN;
}

static void origin_is_beyond_all(void)
{
    header()->origin_m[2] = 1e300;
}

static void mixture_without_decay(void)
{
    header()->levels[1].d2 = -0.4;
}

static void mixture_is_not_a_number(void)
{
    header()->levels[1].d1 = NAN;
}

static void levels_out_of_order(void)
{
    header()->levels[0].leaf_m = 0.5;
}

/* The number of a slot is 32 bits with a sign where it is looked up. */
static void box_of_more_slots_than_numbers(void)
{
    const int32_t side = 1625;
    for (int i = 0; i < 3; i++)
        header()->levels[2].brick_dim[i] = side;
}

static void box_at_the_end_of_numbers(void)
{
    header()->levels[2].brick_min[0] = INT32_MIN;
}

static void covariances_of_no_kind(void)
{
    header()->covariance = 7;
}

static const struct forgery {
    const char *name;
    void (*make)(void);
} forgeries[] = {
#define ROW(name)                                                                                                  \
    {                                                                                                              \
#name, name                                                                                                \
    }
    ROW(lengths_without_a_list),      ROW(padding_in_reach),
    ROW(padding_is_a_voxel),          ROW(list_is_longer_than_its_cells),
    ROW(list_ends_after_the_array),   ROW(list_begins_before_the_first),
    ROW(voxel_beyond_the_last),       ROW(voxel_of_another_place),
    ROW(listed_mean_is_not_a_number), ROW(listed_mean_is_elsewhere),
    ROW(mean_is_not_a_number),        ROW(mean_is_outside_of_its_cell),
    ROW(covariance_is_not_a_number),  ROW(covariance_is_infinite),
    ROW(covariance_is_too_large),     ROW(covariance_is_negative),
    ROW(covariance_is_indefinite),    ROW(cell_is_beyond_all),
    ROW(null_voxel_is_a_voxel),       ROW(empty_brick_has_a_list),
    ROW(brick_beyond_the_last),       ROW(brick_in_two_places),
    ROW(origin_is_not_a_number),      ROW(origin_is_beyond_all),
    ROW(mixture_without_decay),       ROW(mixture_is_not_a_number),
    ROW(levels_out_of_order),         ROW(box_of_more_slots_than_numbers),
    ROW(box_at_the_end_of_numbers),   ROW(covariances_of_no_kind),
#undef ROW
};
enum { FORGERIES = sizeof(forgeries) / sizeof(forgeries[0]) };

FIXTURE(set_up, tear_down)

TEST_EACH(a_forged_map_is_refused, 0, FORGERIES)
{
    struct ndt_map *map;
    ck_assert_int_eq(ndt_map_open(&map, forge(), &err), NDT_OK); /* as it is */
    ndt_map_release(map);
    forgeries[_i].make();
    const enum ndt_status status = ndt_map_open(&map, forge(), &err);
    ck_assert_msg(status == NDT_ERR_FORMAT, "%s: %s", forgeries[_i].name,
                  status == NDT_OK ? "opened" : ndt_status_name(status));
    ck_assert_msg(strstr(err.text, "not a valid map") != NULL, "%s: %s", forgeries[_i].name, err.text);
    ck_assert_ptr_null(map);
}

/* ---- the hashed index ---- */

static void set_up_hashed(void)
{
    temp_dir_make();
    make_map(20000);
    ck_assert_uint_eq(header()->levels[2].hashed, 1);
}

static void expect_bad_index(void)
{
    struct ndt_map *map;
    ck_assert_int_eq(ndt_map_open(&map, forge(), &err), NDT_ERR_FORMAT);
    ck_assert_msg(strstr(err.text, "brick") != NULL, "%s", err.text);
}

FIXTURE(set_up_hashed, tear_down)

/* A search that finds nothing would go through all of them. */
TEST(a_full_hash_table_is_refused)
{
    uint64_t *keys = array(NDT_FILE_KEYS);
    for (uint32_t i = 1; i < header()->levels[2].brick_slots; i++)
        if (keys[i] == 0)
            keys[i] = (uint64_t)1 << 63 | i;
    expect_bad_index();
}

TEST(a_key_outside_of_the_box_is_refused)
{
    uint64_t *keys = array(NDT_FILE_KEYS);
    while (*keys == 0)
        keys++;
    *keys |= 0x1fffff;
    expect_bad_index();
}

TEST(a_brick_without_a_key_is_refused)
{
    uint64_t *keys = array(NDT_FILE_KEYS);
    struct ndt_map *map;
    ck_assert_int_eq(ndt_map_open(&map, forge(), &err), NDT_OK); /* as it is */
    ndt_map_release(map);
    while (*keys == 0)
        keys++;
    *keys = 0;
    expect_bad_index();
}

/* ---- files ---- */

FIXTURE(set_up, tear_down)

/* A daemon reads its map for years: what happens to the file does not reach it. */
TEST(a_file_may_change_after_it_was_opened)
{
    struct ndt_map *map;
    const char *path = forge();
    ck_assert_int_eq(ndt_map_open(&map, path, &err), NDT_OK);
    memset(image, 0xff, size);
    const int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, image, size, 0), (ssize_t)size);
    ck_assert_uint_eq(ndt_map_identity(map), map->id);
    ck_assert_int_eq(ftruncate(fd, 100), 0);
    ck_assert_uint_eq(ndt_map_identity(map), map->id); /* the bus error of a file that is mapped */
    close(fd);
    ndt_map_release(map);
}

TEST(opening_can_be_cancelled)
{
    struct ndt_progress progress;
    struct ndt_map *map;
    ndt_progress_init(&progress, NULL, NULL, 1);
    ck_assert_int_eq(ndt_map_open_with(&map, forge(), &progress, &err), NDT_OK);
    ck_assert_uint_eq(ndt_progress_get(&progress, NDT_PROGRESS_BYTES), size);
    ck_assert_uint_eq(ndt_progress_get(&progress, NDT_PROGRESS_LEVELS), 3);
    ndt_map_release(map);
    ndt_progress_cancel(&progress);
    ck_assert_int_eq(ndt_map_open_with(&map, forge(), &progress, &err), NDT_ERR_CANCELLED);
    ck_assert_ptr_null(map);
}

TEST(a_file_larger_than_the_memory_is_refused)
{
    struct ndt_map *map;
    header()->file_bytes = (uint64_t)1 << 42;
    ck_assert_int_eq(truncate(forge(), (off_t)1 << 42), 0); /* a hole */
    ck_assert_int_eq(ndt_map_open(&map, temp_path("forged.ndtmap"), &err), NDT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "memory"));
}
