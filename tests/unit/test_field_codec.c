/* Fields as bytes: the same field comes back; damaged, truncated and made-up bytes are refused, and never crash
 * what reads the field afterwards. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "field_window.h"
#include "ndt/hash.h"
#include "ndt_io/compiled_map.h"
#include "ndtd/map_field.h"
#include "run_tests.h"
#include "search_world.h"
#include "temp_dir.h"

enum { HASH_AT = 16, HASHED_FROM = 24, TILES_AT = 64 };

static struct ndt_map *map;
static struct ndt_field *field;
static uint8_t *bytes;
static size_t size;

static void open_field(void)
{
    const struct world_wish wish = {
        .seed = 51, .size_m = 40, .boxes = 20, .has_floor = 1, .origin_m = {3e5, 2e6, 50}};
    struct ndt_cloud world;
    world_make(&wish, &world);
    map = world_map(&world);
    field = world_field(map);
    size = ndt_field_encoded_bytes(field);
    bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    ndt_field_encode(field, bytes);
    ndt_cloud_free(&world);
}

static void close_field(void)
{
    free(bytes);
    ndt_field_release(field);
    ndt_map_release(map);
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(test_round_trip)
{
    struct ndt_field *again;
    struct ndt_error err;
    open_field();
    ck_assert_msg(ndt_field_decode(&again, bytes, size, &err) == NDT_OK, "%s", err.text);
    ck_assert_uint_eq(again->tile_count, field->tile_count);
    ck_assert_uint_eq(again->layer_count, field->layer_count);
    ck_assert_uint_eq(again->map_id, map->id);
    ck_assert_int_eq(memcmp(again->origin_m, field->origin_m, sizeof(field->origin_m)), 0);
    ck_assert_int_eq(memcmp(again->tiles, field->tiles, field->tile_count * sizeof(*field->tiles)), 0);
    ndt_field_release(again);
    close_field();
}

TEST(test_truncated)
{
    struct ndt_field *again;
    struct ndt_error err;
    open_field();
    for (size_t length = 0; length < size; length += length < 200 ? 1 : 977) {
        uint8_t *part = malloc(length + 1); /* so that a sanitizer sees reads beyond it */
        ck_assert_ptr_nonnull(part);
        memcpy(part, bytes, length);
        ck_assert_int_ne(ndt_field_decode(&again, part, length, &err), NDT_OK);
        ck_assert_ptr_null(again);
        ck_assert_uint_gt(strlen(err.text), 5);
        free(part);
    }
    close_field();
}

/* Any single changed byte is noticed. */
TEST(test_damaged)
{
    struct ndt_random random = {3};
    struct ndt_field *again;
    open_field();
    for (int i = 0; i < 3000; i++) {
        const size_t at = i < TILES_AT ? (size_t)i : ndt_random_next(&random) % size;
        const uint8_t change = (uint8_t)(1 + ndt_random_next(&random) % 255);
        bytes[at] ^= change;
        ck_assert_int_ne(ndt_field_decode(&again, bytes, size, NULL), NDT_OK);
        bytes[at] ^= change;
    }
    close_field();
}

static void sign(uint8_t *data, size_t length)
{
    const uint64_t hash = ndt_hash64(data + HASHED_FROM, length - HASHED_FROM, 0);
    memcpy(data + HASH_AT, &hash, sizeof(hash));
}

/* Reads all parts of a field that a search reads. */
static void read_all(const struct ndt_field *of)
{
    static uint8_t out[80 * 80];
    const struct ndt_window window = {0, -40, -40, 80, 80, 80};
    double height_m;
    for (int level = 0; level < NDT_FIELD_LEVELS; level++)
        ndt_window_bits(of, level, &window, out);
    ndt_window_allowed(of, 0, 0, &window, out);
    ndt_window_allowed(of, 1, 1, &window, out);
    for (int i = -50; i < 50; i++)
        (void)ndt_field_ground(of, i & 1, i, -i, &height_m);
}

/* Mutations with a correct hash: refused, or readable. */
TEST(test_fuzzed)
{
    struct ndt_random random = {4};
    struct ndt_field *again;
    int accepted = 0, refused = 0;
    open_field();
    uint8_t *mine = malloc(size);
    ck_assert_ptr_nonnull(mine);
    for (int round = 0; round < 2000; round++) {
        const size_t length = round % 4 == 0 ? size - ndt_random_next(&random) % size : size;
        memcpy(mine, bytes, size);
        for (int k = 0; k < 1 + round % 6; k++) {
            const uint64_t where = ndt_random_next(&random);
            const size_t tile = TILES_AT + where / 64 % field->tile_count * sizeof(struct ndt_field_tile);
            const size_t at = where % 3 == 0   ? HASHED_FROM + where / 64 % (TILES_AT - HASHED_FROM)
                              : where % 3 == 1 ? tile + where / 4096 % 16
                                               : where / 64 % size;
            mine[at] = (uint8_t)ndt_random_next(&random);
        }
        if (length > TILES_AT)
            sign(mine, length);
        if (ndt_field_decode(&again, mine, length, NULL) == NDT_OK) {
            read_all(again);
            accepted++;
        } else {
            refused++;
        }
        ndt_field_release(again);
    }
    ck_assert_int_gt(accepted, 50);
    ck_assert_int_gt(refused, 500);
    free(mine);
    close_field();
}

static void expect(enum ndt_status expected, const char *part)
{
    struct ndt_field *again;
    struct ndt_error err = {""};
    sign(bytes, size);
    ck_assert_int_eq(ndt_field_decode(&again, bytes, size, &err), expected);
    ck_assert_msg(strstr(err.text, part) != NULL, "%s", err.text);
}

TEST(test_one_line)
{
    open_field();
    uint32_t word = NDT_FIELD_TILES_MAX + 1;
    memcpy(bytes + 56, &word, 4);
    expect(NDT_ERR_LIMIT, "tiles; the limit is");
    word = field->tile_count - 1;
    memcpy(bytes + 56, &word, 4);
    expect(NDT_ERR_FORMAT, "do not hold");
    ndt_field_encode(field, bytes);
    word = 99;
    memcpy(bytes + 8, &word, 4);
    expect(NDT_ERR_UNSUPPORTED, "version 99");
    ndt_field_encode(field, bytes);
    const int32_t far = 1 << 30;
    memcpy(bytes + TILES_AT + 8, &far, 4);
    expect(NDT_ERR_FORMAT, "out of range");
    close_field();
}

/* ---- attached to a compiled map ---- */

static void expect_field(const char *path, size_t attached)
{
    struct ndt_map *opened;
    struct ndt_field *found;
    struct ndt_error err;
    const void *data;
    ck_assert_msg(ndt_map_open(&opened, path, &err) == NDT_OK, "%s", err.text);
    ck_assert_uint_eq(ndt_map_attachment(opened, &data), attached);
    ck_assert_msg(ndtd_map_field(&found, opened, &err) == NDT_OK, "%s", err.text);
    ck_assert_uint_eq(found->map_id, map->id);
    ck_assert_uint_eq(found->tile_count, field->tile_count);
    ck_assert_int_eq(memcmp(found->tiles, field->tiles, field->tile_count * sizeof(*field->tiles)), 0);
    ndt_field_release(found);
    ndt_map_release(opened);
}

TEST(test_attached)
{
    struct ndt_error err;
    const void *data;
    open_field();
    const char *path = temp_path("field.ndtmap");
    ck_assert_uint_eq(ndt_map_attachment(map, &data), 0); /* not opened from a file */
    ck_assert_msg(ndt_map_save(map, path, &err) == NDT_OK, "%s", err.text);
    expect_field(path, 0);
    ck_assert_msg(ndtd_map_save(map, path, &err) == NDT_OK, "%s", err.text);
    expect_field(path, size);
    bytes[HASHED_FROM] ^= 1; /* of another map: it is built again */
    sign(bytes, size);
    ck_assert_msg(ndt_map_save_with(map, bytes, size, path, &err) == NDT_OK, "%s", err.text);
    expect_field(path, size);
    FILE *file = fopen(path, "r+b"); /* the hash of the file covers it */
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -100, SEEK_END), 0);
    const int byte = fgetc(file);
    ck_assert_int_eq(fseek(file, -100, SEEK_END), 0);
    fputc(byte ^ 1, file);
    fclose(file);
    struct ndt_map *opened;
    ck_assert_int_eq(ndt_map_open(&opened, path, &err), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "damaged"));
    close_field();
}
