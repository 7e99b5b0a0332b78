/* The dense score: every variant of this machine against plain C, bit for bit; and faults that the comparison sees.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/random.h"
#include "ndt_search/search.h"
#include "run_tests.h"
#include "score.h"

enum { SIDE = 96, STRIDE = 160, MARGIN = 64, ROUNDS = 400 };

/* A unit with everything around it that points may lead to. */
struct scene {
    uint8_t cells[(SIDE + 2 * MARGIN) * STRIDE], allowed[NDT_UNIT_Y * 64];
    ptrdiff_t stride, allowed_stride;
    int32_t offset[NDT_SCORE_POINTS];
    uint8_t mask[NDT_SCORE_POINTS];
    struct ndt_score_points points;
};

static void make_scene(struct scene *scene, uint64_t round)
{
    static const uint32_t counts[] = {0, 1, 2, 127, 128, 200, 254, 255};
    struct ndt_random random = ndt_random_stream(7, round, 0);
    const unsigned dense = (unsigned)(round % 4); /* how many bits are set */
    for (size_t i = 0; i < sizeof(scene->cells); i++) {
        const uint64_t bits = ndt_random_next(&random);
        scene->cells[i] = (uint8_t)(dense == 0   ? bits
                                    : dense == 1 ? bits & bits >> 8 & bits >> 16
                                    : dense == 2 ? 255
                                                 : 0);
    }
    for (size_t i = 0; i < sizeof(scene->allowed); i++)
        scene->allowed[i] = round % 5 == 0 ? 255 : round % 5 == 1 ? 0 : ndt_random_next(&random) & 1 ? 255 : 0;
    scene->stride = round % 3 == 0 ? STRIDE : round % 3 == 1 ? 97 : 129;
    scene->allowed_stride = round % 2 ? 64 : 0;
    scene->points.count = round < 64 ? counts[round % 8] : (uint32_t)(ndt_random_next(&random) % 256);
    for (uint32_t i = 0; i < scene->points.count; i++) {
        const int32_t y = (int32_t)(ndt_random_next(&random) % (2 * MARGIN)) - MARGIN;
        const int32_t x = (int32_t)(ndt_random_next(&random) % 64) - 32;
        scene->offset[i] = y * (int32_t)scene->stride + x;
        scene->mask[i] = (uint8_t)(round % 7 == 0 ? ndt_random_next(&random) : 1u << ndt_random_next(&random) % 8);
    }
    scene->points.offset = scene->offset;
    scene->points.mask = scene->mask;
}

static const uint8_t *first_cell(const struct scene *scene)
{
    return scene->cells + (MARGIN + 8) * scene->stride + 33;
}

/* Rounds in which a unit differs from plain C. */
static int count_differences(ndt_score_unit *unit)
{
    static struct scene scene;
    int different = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint8_t sums[2][NDT_UNIT_CELLS], peaks[2][NDT_UNIT_BLOCKS];
        make_scene(&scene, round);
        memset(sums, 170, sizeof(sums));
        memset(peaks, 170, sizeof(peaks));
        ndt_score_unit_plain(first_cell(&scene), scene.stride, &scene.points, scene.allowed, scene.allowed_stride,
                             sums[0], peaks[0]);
        unit(first_cell(&scene), scene.stride, &scene.points, scene.allowed, scene.allowed_stride, sums[1],
             peaks[1]);
        different +=
            memcmp(sums[0], sums[1], sizeof(sums[0])) != 0 || memcmp(peaks[0], peaks[1], sizeof(peaks[0])) != 0;
    }
    return different;
}

TEST(test_variants)
{
    char names[128], *rest = names;
    int count = 0;
    ndt_search_variants(names, sizeof(names));
    for (const char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest), count++) {
        struct ndt_error err;
        ndt_score_unit *unit;
        ck_assert_msg(ndt_score_choose(&unit, name, &err) == NDT_OK, "%s", err.text);
        ck_assert_msg(count_differences(unit) == 0, "variant %s differs from plain C", name);
    }
    ck_assert_int_ge(count, 2);
}

/* Plain C itself, against numbers that are counted by hand. */
TEST(test_plain)
{
    static uint8_t cells[64 * 64];
    uint8_t allowed[NDT_UNIT_CELLS], sums[NDT_UNIT_CELLS], peaks[NDT_UNIT_BLOCKS];
    const int32_t offset[3] = {0, 64, -1};
    const uint8_t mask[3] = {1, 2, 6};
    const struct ndt_score_points points = {offset, mask, 3};
    memset(allowed, 255, sizeof(allowed));
    cells[8 * 64 + 8] = 1;     /* point 0 at (0, 0) */
    cells[9 * 64 + 8] = 2;     /* point 1 at (0, 0) */
    cells[8 * 64 + 7] = 4 + 2; /* point 2 at (0, 0), once for two bits */
    cells[10 * 64 + 17] = 1;   /* point 0 at (2, 9) */
    cells[10 * 64 + 18] = 1;   /* point 0 at (2, 10), not allowed */
    allowed[2 * NDT_UNIT_X + 10] = 0;
    ndt_score_unit_plain(cells + 8 * 64 + 8, 64, &points, allowed, NDT_UNIT_X, sums, peaks);
    ck_assert_uint_eq(sums[0], 3);
    ck_assert_uint_eq(sums[2 * NDT_UNIT_X + 9], 1);
    ck_assert_uint_eq(sums[2 * NDT_UNIT_X + 10], 0);
    ck_assert_uint_eq(peaks[0], 3);
    ck_assert_uint_eq(peaks[1], 1);
    ck_assert_uint_eq(peaks[2], 0);
}

/* ---- planted faults ---- */

static int fault;

static void faulty(const uint8_t *cells, ptrdiff_t stride, const struct ndt_score_points *points,
                   const uint8_t *allowed, ptrdiff_t allowed_stride, uint8_t sums[NDT_UNIT_CELLS],
                   uint8_t peaks[NDT_UNIT_BLOCKS])
{
    struct ndt_score_points mine = *points;
    uint8_t mask[NDT_SCORE_POINTS], all[NDT_UNIT_CELLS];
    memset(all, 255, sizeof(all));
    for (uint32_t i = 0; i < points->count; i++)
        mask[i] = (uint8_t)(fault == 0 ? points->mask[i] & 127 : fault == 1 ? 255 : points->mask[i]);
    mine.mask = mask;
    mine.count = fault == 2 && points->count > 0 ? points->count - 1 : points->count;
    if (fault == 3)
        ndt_score_unit_plain(cells, stride, &mine, all, NDT_UNIT_X, sums, peaks);
    else
        ndt_score_unit_plain(cells + (fault == 4) + (fault == 5 ? stride : 0), stride, &mine, allowed,
                             allowed_stride, sums, peaks);
    if (fault == 6)
        for (int i = 0; i < NDT_UNIT_CELLS; i++)
            sums[i] = sums[i] > 127 ? 127 : sums[i];
    if (fault == 7)
        peaks[3] = peaks[2];
}

TEST(test_planted_faults)
{
    for (fault = 0; fault < 8; fault++)
        ck_assert_msg(count_differences(faulty) > 0, "fault %d is not noticed", fault);
    fault = 8; /* none */
    ck_assert_int_eq(count_differences(faulty), 0);
}

TEST(test_unknown_variant)
{
    struct ndt_error err = {""};
    ndt_score_unit *unit;
    ck_assert_int_eq(ndt_score_choose(&unit, "avx9000", &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "avx9000"));
    ck_assert_ptr_nonnull(strstr(err.text, "plain"));
}
