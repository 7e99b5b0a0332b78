/* The preprocessor against a plain scalar implementation: bit-identical for every cloud, including extreme values,
 * and no allocation after the largest scan. */
#include "allocation_counter.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/preprocess.h"
#include "ndt/random.h"
#include "run_tests.h"

enum { SEGMENTS = 64, MOST = 40000 };
static const double PARTS = 1048576; /* parts of a cell and of a sweep, in whole numbers */

/* The plain preprocessor. */
struct plain_deskew {
    float start_s, per_s;
    float segments[SEGMENTS + 2][12];
};

struct plain_cell {
    uint64_t key;
    uint64_t sum[4]; /* sum in 2^-20 of the cell's edge, and of the sweep */
    int32_t cell[3];
    uint32_t n;
};

struct plain_points {
    size_t count;
    float x_m[MOST], y_m[MOST], z_m[MOST], time_s[MOST];
};

static struct plain {
    struct plain_points kept, filtered, sampled, again;
    struct plain_cell cells[MOST];
    size_t cell_count;
    struct plain_deskew deskew;
    struct ndt_twist twist;
    double start_s, end_s, reference_s; /* start and end relative to the reference moment */
    int is_without_times;               /* points, but none with a time */
} plain;

static void set_segment(float segment[12], const struct ndt_pose *T)
{
    double R[9];
    ndt_pose_rotation(T, R);
    for (int i = 0; i < 9; i++)
        segment[i] = (float)R[i];
    for (int i = 0; i < 3; i++)
        segment[9 + i] = (float)T->t_m[i];
}

static double segment_time(struct plain_deskew *deskew, double start_s, double end_s, int i)
{
    const double length_s = end_s - start_s > 1e-9 ? end_s - start_s : 1e-9;
    deskew->start_s = (float)start_s;
    deskew->per_s = (float)(SEGMENTS / length_s);
    return start_s + length_s * i / SEGMENTS;
}

static void plain_deskew_set(struct plain_deskew *deskew, const struct ndt_twist *twist, double start_s,
                             double end_s)
{
    for (int i = 0; i < SEGMENTS + 2; i++) {
        const double t_s = segment_time(deskew, start_s, end_s, i);
        const struct ndt_pose T = ndt_pose_exp(twist, t_s);
        set_segment(deskew->segments[i], &T);
    }
}

static void plain_deskew_set_change(struct plain_deskew *deskew, const struct ndt_twist *from,
                                    const struct ndt_twist *to, double start_s, double end_s)
{
    for (int i = 0; i < SEGMENTS + 2; i++) {
        const double t_s = segment_time(deskew, start_s, end_s, i);
        const struct ndt_pose before = ndt_pose_exp(from, t_s);
        const struct ndt_pose after = ndt_pose_exp(to, t_s);
        const struct ndt_pose undone = ndt_pose_inverse(&before);
        const struct ndt_pose T = ndt_pose_compose(&after, &undone);
        set_segment(deskew->segments[i], &T);
    }
}

static void plain_deskew_apply(const struct plain_deskew *deskew, float time_s, float p_m[3])
{
    float at = (time_s - deskew->start_s) * deskew->per_s;
    at = fminf(fmaxf(at, 0), SEGMENTS);
    const int i = (int)at;
    const float s = at - (float)i, *a = deskew->segments[i], *b = deskew->segments[i + 1];
    const float x = p_m[0], y = p_m[1], z = p_m[2];
    for (int k = 0; k < 3; k++) {
        const float first = a[3 * k] * x + a[3 * k + 1] * y + a[3 * k + 2] * z + a[9 + k];
        const float second = b[3 * k] * x + b[3 * k + 1] * y + b[3 * k + 2] * z + b[9 + k];
        p_m[k] = first + s * (second - first);
    }
}

/* Abramowitz & Stegun 4.4.49 on [0, 1], unfolded to the full circle. */
static float arc_tangent(float y, float x)
{
    const float ax = fabsf(x), ay = fabsf(y);
    const float high = ax > ay ? ax : ay, low = ax > ay ? ay : ax;
    const float a = high > 0 ? low / high : 0, s = a * a;
    float r = (((0.0208351f * s - 0.0851330f) * s + 0.1801410f) * s - 0.3302995f) * s + 0.9998660f;
    r *= a;
    r = ay > ax ? 1.57079633f - r : r;
    r = x < 0 ? 3.14159265f - r : r;
    return y < 0 ? -r : r;
}

static float plain_deskew_azimuth_time(float x_m, float y_m, double sweep_s, int clockwise)
{
    const float turn = arc_tangent(y_m, x_m) * 0.159154943f; /* -1/2 .. 1/2 */
    return (float)sweep_s * (clockwise ? -turn : turn);
}

static int keep_point(const struct ndt_preprocess_params *params, const float p_m[3])
{
    const double x = p_m[0], y = p_m[1], z = p_m[2], r2 = x * x + y * y + z * z;
    /* comparisons with NaN are false */
    if (!(r2 >= params->min_range_m * params->min_range_m && r2 <= params->max_range_m * params->max_range_m))
        return 0;
    for (int k = 0; k < 3; k++)
        if (!(p_m[k] >= params->crop_min_m[k] && p_m[k] <= params->crop_max_m[k]))
            return 0;
    return 1;
}

static float point_time(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw, size_t i)
{
    if (params->deskew == NDT_DESKEW_OFF)
        return 0;
    if (params->deskew == NDT_DESKEW_TIME)
        return raw->time_s[i];
    return plain_deskew_azimuth_time(raw->x_m[i], raw->y_m[i], params->sweep_s,
                                     params->deskew == NDT_DESKEW_AZIMUTH_CW);
}

/* Rounds to whole microseconds; beyond 2^22 the sums round otherwise, but such a sweep lasts 4 s. */
static float plain_microseconds(float time_s, float reference_us)
{
    const float time_us = time_s * 1e6f;
    if (fabsf(time_us) < 4e6f && fabsf(reference_us) < 4e6f)
        return nearbyintf(time_us) - reference_us + 0.0f;
    return (time_us + 12582912.0f) - (12582912.0f + reference_us);
}

static void make_relative(struct plain_points *kept, float first_s, float last_s)
{
    const float first_us = plain_microseconds(first_s, 0), last_us = plain_microseconds(last_s, 0);
    const float reference_us = floorf((first_us + last_us) / 2);
    for (size_t i = 0; i < kept->count; i++)
        kept->time_s[i] = plain_microseconds(kept->time_s[i], reference_us) * 1e-6f;
    plain.start_s = plain_microseconds(first_s, reference_us) * 1e-6f;
    plain.end_s = plain_microseconds(last_s, reference_us) * 1e-6f;
    plain.reference_s = reference_us / 1e6;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Drops the points whose times lie far from those of the others. */
static void drop_strays(struct plain_points *kept, double sweep_s, float *first_s, float *last_s)
{
    const size_t count = kept->count;
    float *sorted = malloc((count ? count : 1) * sizeof(*sorted));
    ck_assert_ptr_nonnull(sorted);
    memcpy(sorted, kept->time_s, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_value);
    if (count > 0 && (double)sorted[count - 1] - (double)sorted[0] > 2 * sweep_s) {
        const double low = sorted[count / 10], high = sorted[count - 1 - count / 10], reach = high - low + sweep_s;
        kept->count = 0;
        *first_s = INFINITY;
        *last_s = -INFINITY;
        for (size_t i = 0; i < count; i++) {
            const float time_s = kept->time_s[i];
            if (time_s < (float)(low - reach) || time_s > (float)(high + reach))
                continue;
            const size_t at = kept->count++;
            kept->x_m[at] = kept->x_m[i];
            kept->y_m[at] = kept->y_m[i];
            kept->z_m[at] = kept->z_m[i];
            kept->time_s[at] = time_s;
            *first_s = fminf(*first_s, time_s);
            *last_s = fmaxf(*last_s, time_s);
        }
    }
    free(sorted);
}

/* Usable points with their times, not yet moved. */
static void crop(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw)
{
    struct plain_points *kept = &plain.kept;
    float first_s = INFINITY, last_s = -INFINITY;
    size_t dropped = 0;
    kept->count = 0;
    for (size_t i = 0; i < raw->count; i++) {
        const float p_m[3] = {raw->x_m[i], raw->y_m[i], raw->z_m[i]};
        if (!keep_point(params, p_m))
            continue;
        const float time_s = point_time(params, raw, i);
        if (!isfinite(time_s) || (params->deskew == NDT_DESKEW_TIME && fabsf(time_s) > 10)) {
            dropped++;
            continue;
        }
        const size_t at = kept->count++;
        kept->x_m[at] = p_m[0];
        kept->y_m[at] = p_m[1];
        kept->z_m[at] = p_m[2];
        kept->time_s[at] = time_s;
        first_s = fminf(first_s, time_s);
        last_s = fmaxf(last_s, time_s);
    }
    plain.is_without_times = kept->count == 0 && dropped > 0;
    if (params->deskew == NDT_DESKEW_TIME)
        drop_strays(kept, params->sweep_s, &first_s, &last_s);
    if (params->deskew == NDT_DESKEW_TIME && kept->count > 0) {
        make_relative(kept, first_s, last_s);
    } else {
        plain.end_s = params->deskew == NDT_DESKEW_OFF ? 0 : params->sweep_s / 2;
        plain.start_s = -plain.end_s;
        plain.reference_s = 0;
    }
}

static void move_points(const struct plain_deskew *deskew, const struct plain_points *in, struct plain_points *out)
{
    for (size_t i = 0; i < in->count; i++) {
        float p_m[3] = {in->x_m[i], in->y_m[i], in->z_m[i]};
        plain_deskew_apply(deskew, in->time_s[i], p_m);
        out->x_m[i] = p_m[0];
        out->y_m[i] = p_m[1];
        out->z_m[i] = p_m[2];
    }
}

/* Stratified sampling (Cochran, Sampling Techniques, ch. 5): exactly `wanted` points, in their order. */
static void plain_sample(const struct plain_points *in, size_t wanted, uint64_t seed, struct plain_points *out)
{
    struct ndt_random random = {seed};
    out->count = wanted < in->count ? wanted : in->count;
    for (size_t j = 0; j < out->count; j++) {
        const size_t begin = j * in->count / out->count, end = (j + 1) * in->count / out->count;
        const size_t i = begin + ((ndt_random_next(&random) >> 32) * (end - begin) >> 32);
        out->x_m[j] = in->x_m[i];
        out->y_m[j] = in->y_m[i];
        out->z_m[j] = in->z_m[i];
        out->time_s[j] = in->time_s[i];
    }
}

/* Cells in the order of their first point; searched from the last one, which is fast for real scans. */
static struct plain_cell *plain_find(uint64_t key)
{
    static int32_t first[4096], next[MOST];
    const size_t bucket = key * 0x9e3779b97f4a7c15u >> 52;
    if (plain.cell_count == 0)
        memset(first, -1, sizeof(first));
    for (int32_t i = first[bucket]; i >= 0; i = next[i])
        if (plain.cells[i].key == key)
            return &plain.cells[i];
    struct plain_cell *cell = &plain.cells[plain.cell_count];
    *cell = (struct plain_cell){.key = key};
    next[plain.cell_count] = first[bucket];
    first[bucket] = (int32_t)plain.cell_count++;
    return cell;
}

static void add_point(const float p_m[3], float time_s, float voxel_m)
{
    const double length_s = fmax(plain.end_s - plain.start_s, 1e-9);
    const float since = (time_s - (float)plain.start_s) * (float)(PARTS / length_s);
    uint64_t key = 0;
    uint32_t parts[4];
    int32_t cell[3];
    for (int k = 0; k < 3; k++) {
        const float at = p_m[k] / voxel_m, corner = floorf(at);
        if (!(fabsf(corner) < 1e6f)) /* farther away than any sensor sees */
            return;
        cell[k] = (int32_t)corner;
        key |= (uint64_t)(cell[k] + 1048576) << (21 * k);
        parts[k] = (uint32_t)((at - corner) * (float)PARTS);
    }
    parts[3] = (uint32_t)fminf(fmaxf(since, 0), (float)PARTS);
    struct plain_cell *in = plain_find(key);
    for (int k = 0; k < 4; k++)
        in->sum[k] += parts[k];
    memcpy(in->cell, cell, sizeof(cell));
    in->n++;
}

static void plain_filter(float voxel_m)
{
    const struct plain_points *in = &plain.kept;
    struct plain_points *out = &plain.filtered;
    const double length_s = fmax(plain.end_s - plain.start_s, 1e-9);
    plain.cell_count = 0;
    for (size_t i = 0; i < in->count; i++) {
        const float p_m[3] = {in->x_m[i], in->y_m[i], in->z_m[i]};
        add_point(p_m, in->time_s[i], voxel_m);
    }
    for (size_t i = 0; i < plain.cell_count; i++) {
        const struct plain_cell *cell = &plain.cells[i];
        float *const to[] = {&out->x_m[i], &out->y_m[i], &out->z_m[i]};
        for (int k = 0; k < 3; k++)
            *to[k] = (float)((cell->cell[k] + (double)cell->sum[k] * (1 / (cell->n * PARTS))) * (double)voxel_m);
        out->time_s[i] = (float)(plain.start_s + (double)cell->sum[3] * (1 / (cell->n * PARTS)) * length_s);
    }
    out->count = plain.cell_count;
}

static void plain_lengthen(float offset_m, struct plain_points *points)
{
    for (size_t i = 0; i < points->count; i++) {
        const float x = points->x_m[i], y = points->y_m[i], z = points->z_m[i];
        const float range_m = sqrtf(x * x + y * y + z * z);
        float scale = (range_m + offset_m) / range_m;
        if (!(range_m > 0 && scale > 0))
            scale = 0;
        points->x_m[i] = x * scale;
        points->y_m[i] = y * scale;
        points->z_m[i] = z * scale;
    }
}

static void plain_preprocess(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw,
                             uint64_t sequence, const struct ndt_twist *twist)
{
    const struct plain_points *points = &plain.kept;
    plain.twist = twist ? *twist : (struct ndt_twist){0};
    crop(params, raw);
    if (params->range_offset_m != 0)
        plain_lengthen((float)params->range_offset_m, &plain.kept);
    if (params->deskew != NDT_DESKEW_OFF) {
        plain_deskew_set(&plain.deskew, &plain.twist, plain.start_s, plain.end_s);
        move_points(&plain.deskew, &plain.kept, &plain.kept);
    }
    if (params->voxel_m > 0) {
        plain_filter((float)params->voxel_m);
        points = &plain.filtered;
    }
    const size_t wanted = params->sample_count > 0 ? params->sample_count : points->count;
    plain_sample(points, wanted, params->seed * 0x9e3779b97f4a7c15u + sequence, &plain.sampled);
}

static void plain_preprocess_again(const struct ndt_preprocess_params *params, const struct ndt_twist *twist)
{
    plain.again = plain.sampled;
    if (params->deskew == NDT_DESKEW_OFF)
        return;
    plain_deskew_set_change(&plain.deskew, &plain.twist, twist, plain.start_s, plain.end_s);
    move_points(&plain.deskew, &plain.sampled, &plain.again);
}

static struct ndt_error err;
static struct ndt_cloud raw;
static struct ndt_preprocessor *pre;
static struct ndt_preprocess_params params;
static struct ndt_random dice;

static void setup(void)
{
    ndt_cloud_init(&raw);
    ck_assert_int_eq(ndt_cloud_reserve(&raw, MOST, NDT_CLOUD_TIME, &err), NDT_OK);
    ck_assert_int_eq(ndt_preprocessor_create(&pre, &err), NDT_OK);
    ndt_preprocess_params_default(&params);
    dice = (struct ndt_random){1};
}

static void teardown(void)
{
    ndt_cloud_free(&raw);
    ndt_preprocessor_destroy(pre);
}

static double uniform(double low, double high)
{
    return ndt_random_between(&dice, low, high);
}

static size_t below(size_t count)
{
    return (size_t)uniform(0, (double)count);
}

/* Asserts only differences: an assertion costs more than a scan. */
static void assert_same(const char *what, const float *ours, const float *theirs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&ours[i], &theirs[i], sizeof(float)) != 0)
            ck_abort_msg("%s of point %zu of %zu: %.9g (%a), plainly %.9g (%a)", what, i, count, (double)ours[i],
                         (double)ours[i], (double)theirs[i], (double)theirs[i]);
}

static void assert_equal(const struct ndt_cloud *ours, const struct plain_points *theirs)
{
    ck_assert_uint_eq(ours->count, theirs->count);
    assert_same("x", ours->x_m, theirs->x_m, ours->count);
    assert_same("y", ours->y_m, theirs->y_m, ours->count);
    assert_same("z", ours->z_m, theirs->z_m, ours->count);
    assert_same("time", ours->time_s, theirs->time_s, ours->count);
}

/* The contents behind the last point of a cloud must not matter. */
static void spoil_padding(void)
{
    for (size_t i = raw.count; i < raw.capacity && i < raw.count + 64; i++) {
        raw.x_m[i] = raw.y_m[i] = raw.z_m[i] = 5;
        raw.time_s[i] = i % 2 ? -1e30f : 1e30f;
    }
}

static void compare(void)
{
    const struct ndt_sweep_motion motion = {.twist = {{15, -0.5, 0.2}, {0.05, -0.03, 0.8}}},
                                  other = {.twist = {{14, 0, 0.3}, {0, 0.01, 0.7}}};
    const uint64_t sequence = below(1000);
    const struct ndt_cloud *out;
    struct ndt_sweep sweep;
    spoil_padding();
    plain_preprocess(&params, &raw, sequence, &motion.twist);
    const enum ndt_status status = ndt_preprocess_sweep(&params, &raw, &sweep, &err);
    ck_assert_int_eq(status, plain.is_without_times ? NDT_ERR_FORMAT : NDT_OK);
    if (status != NDT_OK)
        return;
    ck_assert_double_eq(sweep.reference_s, plain.reference_s);
    ck_assert_int_eq(ndt_preprocess(pre, &params, &raw, &sweep, sequence, &motion, &out, &err), NDT_OK);
    assert_equal(out, &plain.sampled);
    plain_preprocess_again(&params, &other.twist);
    ck_assert_int_eq(ndt_preprocess_again(pre, &other, &out, &err), NDT_OK);
    assert_equal(out, &plain.again);
}

/* Every mode, with and without filter and sample. */
static void compare_all(void)
{
    static const enum ndt_deskew_mode modes[] = {NDT_DESKEW_OFF, NDT_DESKEW_TIME, NDT_DESKEW_AZIMUTH_CW,
                                                 NDT_DESKEW_AZIMUTH_CCW};
    static const double voxels_m[] = {0, 0.5, 0.3, 4};
    static const uint32_t samples[] = {0, 1, 100, 1500, 1000000};
    for (size_t m = 0; m < 4; m++)
        for (size_t v = 0; v < 4; v++)
            for (size_t s = 0; s < 5; s++) {
                params.deskew = modes[m];
                params.voxel_m = voxels_m[v];
                params.sample_count = samples[s];
                compare();
            }
}

/* Rings or columns of a street-like scan, neighbours near each other. */
static void fill_scan(size_t count, int beams)
{
    raw.count = count;
    for (size_t i = 0; i < count; i++) {
        const double turn = (double)(i / (size_t)beams * (size_t)beams) / (double)count;
        const double azimuth_rad = M_PI - 2 * M_PI * turn;
        const double elevation_rad = -0.4 + 0.5 * (double)(i % (size_t)beams) / beams;
        const double range_m =
            fmin(2 / fmax(1e-3, -sin(elevation_rad)), 8 + 20 * fabs(sin(3 * azimuth_rad))) + uniform(-0.02, 0.02);
        raw.x_m[i] = (float)(range_m * cos(elevation_rad) * cos(azimuth_rad));
        raw.y_m[i] = (float)(range_m * cos(elevation_rad) * sin(azimuth_rad));
        raw.z_m[i] = (float)(range_m * sin(elevation_rad));
        raw.time_s[i] = (float)(0.1 * turn - 0.05);
    }
}

/* Values at the limits of float arithmetic, among ordinary ones. */
static float odd_value(double ordinary)
{
    static const float odd[] = {NAN,   -NAN,   INFINITY, -INFINITY, 0,     -0.0f,    FLT_MAX, -FLT_MAX, FLT_MIN,
                                1e30f, -1e30f, 1e-45f,   -1e-45f,   1e19f, 2.5e5f,   -3e5f,   4e6f,     0.5f,
                                -0.5f, 1,      -1,       200,       -200,  199.999f, 3e38f,   2e-38f,   -1e-40f};
    const size_t count = sizeof(odd) / sizeof(odd[0]);
    return below(4) == 0 ? odd[below(count)] : (float)uniform(-ordinary, ordinary);
}

static void fill_odd(size_t count, double ordinary)
{
    raw.count = count;
    for (size_t i = 0; i < count; i++) {
        raw.x_m[i] = odd_value(ordinary);
        raw.y_m[i] = odd_value(ordinary);
        raw.z_m[i] = odd_value(ordinary);
        raw.time_s[i] = below(3) ? (float)uniform(-0.05, 0.05) : odd_value(0.1);
    }
}

FIXTURE(setup, teardown)

TEST(scans_are_bit_identical)
{
    static const int beams[] = {1, 3, 64};
    for (size_t b = 0; b < 3; b++) {
        fill_scan(MOST - 7 * b, beams[b]);
        compare_all();
    }
}

TEST(corrected_ranges_are_bit_identical)
{
    static const double offsets_m[] = {0.07, -0.03, 1, -1};
    for (size_t i = 0; i < 4; i++) {
        params.range_offset_m = offsets_m[i];
        params.min_range_m = 0; /* points at the sensor stay there */
        fill_scan(2000, 3);
        compare_all();
        fill_odd(500, 2);
        compare_all();
    }
}

static void shuffle(void)
{
    for (size_t i = raw.count - 1; i > 0; i--) {
        const size_t k = below(i + 1);
        float *const arrays[] = {raw.x_m, raw.y_m, raw.z_m, raw.time_s};
        for (int a = 0; a < 4; a++) {
            const float kept = arrays[a][i];
            arrays[a][i] = arrays[a][k];
            arrays[a][k] = kept;
        }
    }
}

TEST(unordered_scans_are_bit_identical)
{
    fill_scan(20000, 1);
    shuffle();
    compare_all();
}

TEST(short_clouds_are_bit_identical)
{
    for (size_t count = 0; count <= 70; count++) {
        fill_scan(count, 2);
        compare_all();
    }
    fill_scan(0, 2); /* after others */
    compare_all();
    for (size_t count = 250; count <= 262; count++) {
        fill_odd(count, 20);
        compare_all();
    }
}

TEST(extreme_values_are_bit_identical)
{
    static const double spread_m[] = {1e-3, 1, 5, 300, 1e6};
    for (size_t i = 0; i < 5; i++) {
        fill_odd(3000, spread_m[i]);
        params.min_range_m = 1;
        params.max_range_m = 200;
        compare_all();
        params.min_range_m = 0;
        params.max_range_m = 1e6;
        for (int k = 0; k < 3; k++) {
            params.crop_min_m[k] = -1e6;
            params.crop_max_m[k] = 1e6;
        }
        compare_all();
        params.crop_min_m[0] = -0.1; /* no float */
        params.crop_max_m[1] = 0.1;
        params.min_range_m = 1e-20;
        compare_all();
    }
}

/* Ranges within a few units in the last place of both limits, where float is not sufficient. */
TEST(points_on_range_limits_are_bit_identical)
{
    for (size_t i = 0; i < MOST; i++) {
        const double azimuth_rad = uniform(-M_PI, M_PI),
                     range_m = (i % 2 ? 1.1 : 77.7) * (1 + uniform(-3e-7, 3e-7));
        raw.x_m[i] = (float)(range_m * cos(azimuth_rad) * 0.8);
        raw.y_m[i] = (float)(range_m * sin(azimuth_rad) * 0.8);
        raw.z_m[i] = (float)(range_m * 0.6);
        raw.time_s[i] = 0;
    }
    raw.count = MOST;
    params.min_range_m = 1.1;
    params.max_range_m = 77.7;
    compare_all();
    ck_assert_uint_gt(plain.kept.count, MOST / 4);
    ck_assert_uint_lt(plain.kept.count, MOST * 3 / 4);
}

TEST(one_cell_and_many_cells_are_bit_identical)
{
    raw.count = MOST;
    for (size_t i = 0; i < MOST; i++) {
        raw.x_m[i] = (float)uniform(3.01, 3.29);
        raw.y_m[i] = (float)uniform(0.01, 0.29);
        raw.z_m[i] = (float)uniform(-0.29, -0.01);
        raw.time_s[i] = (float)uniform(0, 0.1);
    }
    compare_all();
    for (size_t i = 0; i < MOST; i++) /* every point its own cell: the table grows again and again */
        raw.x_m[i] = (float)uniform(-190, 190), raw.y_m[i] = (float)uniform(-60, 60),
        raw.z_m[i] = (float)uniform(-20, 9);
    compare_all();
    fill_scan(MOST, 64); /* and shrinks again */
    compare_all();
}

/* Quotients that are integers up to rounding, on both sides of every cell face. */
TEST(points_on_cell_faces_are_bit_identical)
{
    static const double voxels_m[] = {0.1, 0.25, 0.3, 0.7, 1, 3, 1e-3, 100, 2.8e-45, 1e-60};
    params.min_range_m = 0;
    for (size_t v = 0; v < sizeof(voxels_m) / sizeof(voxels_m[0]); v++) {
        raw.count = 4000;
        for (size_t i = 0; i < raw.count; i++) {
            float *const arrays[] = {raw.x_m, raw.y_m, raw.z_m};
            for (int k = 0; k < 3; k++) {
                const float face = (float)((double)((int)below(60) - 30) * voxels_m[v]);
                arrays[k][i] = nextafterf(face, below(2) ? 1e9f : -1e9f);
                arrays[k][i] = below(3) ? face : arrays[k][i];
            }
            raw.time_s[i] = below(2) ? 0.0f : -0.0f;
        }
        for (uint32_t sample = 0; sample < 2; sample++) {
            params.voxel_m = voxels_m[v];
            params.sample_count = sample * 50;
            params.deskew = sample ? NDT_DESKEW_TIME : NDT_DESKEW_OFF;
            compare();
        }
    }
}

/* A float next to `value`, or the nearest one. */
static float about(double value)
{
    const float nearest = (float)value;
    const size_t side = below(3);
    return side == 0 ? nearest : nextafterf(nearest, side == 1 ? INFINITY : -INFINITY);
}

/* Corners of the box that are not representable as float, and points on both sides of them. */
TEST(points_on_the_crop_box_are_bit_identical)
{
    static const double corners_m[] = {0.1, 0.2, 0.3, 1.1, 3.7, 1e-3};
    params.min_range_m = 0;
    params.voxel_m = 0;
    params.sample_count = 0;
    for (size_t c = 0; c < sizeof(corners_m) / sizeof(corners_m[0]); c++) {
        raw.count = 500;
        for (size_t i = 0; i < raw.count; i++) {
            raw.x_m[i] = about((below(2) ? 1 : -1) * corners_m[c]);
            raw.y_m[i] = about((below(2) ? 1 : -1) * corners_m[c]);
            raw.z_m[i] = about((below(2) ? 1 : -1) * corners_m[c]);
        }
        for (int k = 0; k < 3; k++) {
            params.crop_min_m[k] = -corners_m[c];
            params.crop_max_m[k] = corners_m[c];
        }
        compare();
        ck_assert_uint_gt(plain.kept.count, 0);
        ck_assert_uint_lt(plain.kept.count, raw.count);
    }
}

/* A million cells away, where the filter stops. */
TEST(outermost_cells_are_bit_identical)
{
    static const double voxels_m[] = {0x1p-13, 1e-4, 0x1p-10, 3e-5};
    static const double cells[] = {0, 999998, 999999, 1000000, 1000001};
    params.sample_count = 0;
    for (size_t v = 0; v < sizeof(voxels_m) / sizeof(voxels_m[0]); v++) {
        raw.count = 1000;
        params.voxel_m = voxels_m[v];
        for (size_t i = 0; i < raw.count; i++) {
            raw.x_m[i] = about((below(2) ? 1 : -1) * cells[1 + below(4)] * voxels_m[v]);
            raw.y_m[i] = about((below(2) ? 1 : -1) * cells[below(5)] * voxels_m[v]);
            raw.z_m[i] = about(cells[below(3)] * voxels_m[v] / 10);
        }
        params.max_range_m = 1e6;
        for (int k = 0; k < 3; k++) {
            params.crop_min_m[k] = -1e6;
            params.crop_max_m[k] = 1e6;
        }
        compare();
        ck_assert_uint_gt(plain.kept.count, 0);
    }
}

/* Means whose last digit is a signed zero. */
TEST(signed_zeros_are_bit_identical)
{
    static const float values[] = {0, -0.0f, 1e-45f, -1e-45f, 3e-45f, -3e-45f};
    params.min_range_m = 0;
    params.sample_count = 0;
    for (int round = 0; round < 3000; round++) {
        raw.count = 1 + below(6);
        for (size_t i = 0; i < raw.count; i++) {
            raw.x_m[i] = values[below(6)];
            raw.y_m[i] = values[below(6)];
            raw.z_m[i] = values[below(6)];
            raw.time_s[i] = values[below(6)];
        }
        params.voxel_m = round % 2 ? 4 : 3;
        params.deskew = round % 3 ? NDT_DESKEW_OFF : NDT_DESKEW_TIME;
        compare();
    }
}

TEST(random_points_are_bit_identical)
{
    for (int round = 0; round < 20; round++) {
        const double spread_m = uniform(0.1, 300);
        raw.count = below(MOST);
        for (size_t i = 0; i < raw.count; i++) {
            raw.x_m[i] = (float)uniform(-spread_m, spread_m);
            raw.y_m[i] = (float)uniform(-spread_m, spread_m);
            raw.z_m[i] = (float)uniform(-spread_m / 5, spread_m / 5);
            raw.time_s[i] = (float)uniform(0, 0.1);
        }
        params.voxel_m = uniform(0, 2);
        params.sample_count = (uint32_t)below(3000);
        params.deskew = (enum ndt_deskew_mode)below(4);
        params.min_range_m = uniform(0, 5);
        params.max_range_m = uniform(10, 200);
        compare();
    }
}

static int by_bits(const void *a, const void *b)
{
    return memcmp(a, b, 4 * sizeof(float));
}

/* Preprocesses scan 0 with a motion. */
static const struct ndt_cloud *preprocessed(const struct ndt_sweep_motion *motion)
{
    struct ndt_sweep sweep;
    const struct ndt_cloud *out;
    ck_assert_int_eq(ndt_preprocess_sweep(&params, &raw, &sweep, &err), NDT_OK);
    ck_assert_int_eq(ndt_preprocess(pre, &params, &raw, &sweep, 0, motion, &out, &err), NDT_OK);
    return out;
}

static void sorted_points(const struct ndt_cloud *cloud, float (*out)[4])
{
    for (size_t i = 0; i < cloud->count; i++) {
        const float point[4] = {cloud->x_m[i], cloud->y_m[i], cloud->z_m[i], cloud->time_s[i]};
        memcpy(out[i], point, sizeof(point));
    }
    qsort(out, cloud->count, sizeof(*out), by_bits);
}

/* Cells and means do not depend on the order of the points; only the order of the cells does. */
TEST(means_do_not_depend_on_the_order_of_the_points)
{
    static float before[MOST][4], after[MOST][4];
    const struct ndt_sweep_motion motion = {.twist = {{15, -0.5, 0.2}, {0.05, -0.03, 0.8}}};
    params.sample_count = 0;
    params.deskew = NDT_DESKEW_TIME;
    for (int k = 0; k < 3; k++) {
        params.voxel_m = 0.3 + 0.35 * k;
        fill_scan(MOST, 64);
        const struct ndt_cloud *out = preprocessed(&motion);
        const size_t cells = out->count;
        sorted_points(out, before);
        shuffle();
        out = preprocessed(&motion);
        ck_assert_uint_eq(out->count, cells);
        sorted_points(out, after);
        ck_assert(memcmp(before, after, cells * sizeof(*before)) == 0);
    }
}

/* Against sums in double. */
TEST(means_are_good_to_micrometres)
{
    params.sample_count = 0;
    params.voxel_m = 0.3;
    for (int round = 0; round < 50; round++) {
        const double corner_m[3] = {0.3 * (double)below(300), 0.3 * (double)below(30), -0.3 * (double)below(10)};
        double mean_m[3] = {0};
        raw.count = 1 + below(500);
        for (size_t i = 0; i < raw.count; i++) {
            float *const arrays[] = {raw.x_m, raw.y_m, raw.z_m};
            for (int k = 0; k < 3; k++) {
                arrays[k][i] = (float)(corner_m[k] + uniform(0.001, 0.299));
                mean_m[k] += (double)arrays[k][i] / (double)raw.count;
            }
        }
        params.min_range_m = 0;
        const struct ndt_cloud *out = preprocessed(NULL);
        ck_assert_uint_eq(out->count, 1);
        ck_assert_double_eq_tol(out->x_m[0], mean_m[0], 8e-6);
        ck_assert_double_eq_tol(out->y_m[0], mean_m[1], 4e-6);
        ck_assert_double_eq_tol(out->z_m[0], mean_m[2], 2e-6);
    }
}

/* Nothing is allocated after one filtered and one unfiltered scan of the largest size, in any order of sizes, modes
 * and cells. */
TEST(nothing_is_allocated_after_the_largest_scan)
{
    const struct ndt_sweep_motion motion = {.twist = {{15, 0, 0}, {0, 0, 0.5}}};
    const struct ndt_cloud *out;
    struct ndt_sweep sweep;
    fill_scan(MOST, 64);
    params.voxel_m = 0;
    (void)preprocessed(&motion);
    params.voxel_m = 0.5;
    (void)preprocessed(&motion);
    int failures = 0;
    const unsigned long before = allocations; /* no assertion from here on: they allocate */
    for (int i = 0; i < 40; i++) {
        params.deskew = (enum ndt_deskew_mode)(i % 4);
        params.voxel_m = i % 5 ? 0.02 * i : 0;
        params.sample_count = (uint32_t)(i % 3) * 1000;
        raw.count = MOST - (size_t)(i % 7) * 5000;
        failures += ndt_preprocess_sweep(&params, &raw, &sweep, &err) != NDT_OK;
        failures += ndt_preprocess(pre, &params, &raw, &sweep, 0, &motion, &out, &err) != NDT_OK;
        failures += ndt_preprocess_again(pre, &motion, &out, &err) != NDT_OK;
    }
    const unsigned long made = allocations - before;
    ck_assert_int_eq(failures, 0);
    if (COUNTS_ALLOCATIONS)
        ck_assert_uint_eq(made, 0);
}
