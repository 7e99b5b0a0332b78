/** @file
 * @brief Tests of the merging of scans: complete and incomplete sets, positions and times, refusals, memory. */
#include "allocation_counter.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/preprocess.h"
#include "ndtd/options.h"
#include "ndtd/scan_merge.h"
#include "run_tests.h"

static struct ndtd_settings settings;
static struct ndtd_scan_merge *merge;
static struct ndt_cloud scan;
static struct ndt_error err;

enum { SECOND_NS = 1000000000 };
static const int64_t START_NS = 1317042272349000000;

static void set(const char *name, const char *text)
{
    must(ndtd_option_set_text(&settings, name, text, &err));
}

static void setup(void)
{
    ndtd_settings_default(&settings);
    set("frames.sensors", "left 1 0 2 0 0 1.5707963267948966, right 0 -1 0 0 0 0");
    set("frames.merge_sensors", "true");
    set("preprocess.deskew", "time");
    must(ndtd_settings_finish(&settings, &err));
    must(ndtd_scan_merge_create(&merge, &err));
    ndt_cloud_init(&scan);
}

static void teardown(void)
{
    ndtd_scan_merge_destroy(merge);
    ndt_cloud_free(&scan);
}

/* Makes points as after decoding: `count` of them on a line along x from `first_m`. */
static void line_of_points(size_t count, double first_m, double time_s)
{
    must(ndt_cloud_reserve(&scan, count, NDT_CLOUD_TIME, &err));
    memset(scan.origin_m, 0, sizeof(scan.origin_m));
    for (size_t i = 0; i < count; i++) {
        scan.x_m[i] = (float)(first_m + (double)i);
        scan.y_m[i] = 0.5f;
        scan.z_m[i] = -1;
        scan.time_s[i] = (float)time_s;
    }
    scan.count = count;
}

static enum ndt_status add(const char *frame_id, int64_t stamp_ns, int *is_complete)
{
    struct ndt_scan_header header = {.stamp_ns = stamp_ns};
    snprintf(header.frame_id, sizeof(header.frame_id), "%s", frame_id);
    return ndtd_scan_merge_add(merge, &settings, &header, &scan, is_complete, &err);
}

/* Adds three points; returns whether a set is complete. */
static int add_line(const char *frame_id, double after_s)
{
    int is_complete = -1;
    line_of_points(3, 10, 0.01);
    must(add(frame_id, START_NS + (int64_t)llround(after_s * 1e9), &is_complete));
    return is_complete;
}

static void assert_counters(uint64_t merged, uint64_t incomplete)
{
    const struct ndtd_scan_merge_counters counters = ndtd_scan_merge_counters(merge);
    ck_assert_uint_eq(counters.merged, merged);
    ck_assert_uint_eq(counters.incomplete, incomplete);
}

FIXTURE(setup, teardown)

TEST(two_sensors_become_one_scan)
{
    ck_assert_int_eq(add_line("left", 0), 0);
    ck_assert_int_eq(add_line("right", 0.03), 1);
    ck_assert_uint_eq(scan.count, 6);
    for (size_t i = 0; i < 3; i++) { /* left: yawed by 90 deg */
        ck_assert_float_eq_tol(scan.x_m[i], 1 - 0.5f, 1e-5f);
        ck_assert_float_eq_tol(scan.y_m[i], 10 + (float)i, 1e-5f);
        ck_assert_float_eq_tol(scan.z_m[i], 1, 1e-6f);
        ck_assert_float_eq_tol(scan.time_s[i], 0.01f - 0.03f, 1e-8f);
        ck_assert_float_eq_tol(scan.x_m[3 + i], 10 + (float)i, 1e-5f);
        ck_assert_float_eq_tol(scan.y_m[3 + i], -0.5f, 1e-6f);
        ck_assert_float_eq_tol(scan.time_s[3 + i], 0.01f, 1e-8f);
    }
    assert_counters(1, 0);
    ck_assert_int_eq(add_line("right", 0.1), 0); /* the next set may begin with another sensor */
    ck_assert_int_eq(add_line("left", 0.1), 1);
    ck_assert_uint_eq(scan.count, 6);
    assert_counters(2, 0);
}

TEST(incomplete_sets_are_dropped_and_counted)
{
    ck_assert_int_eq(add_line("left", 0), 0);
    ck_assert_int_eq(add_line("left", 0.1), 0); /* the right one is missing */
    assert_counters(0, 1);
    ck_assert_int_eq(add_line("right", 0.1 + 0.101), 0); /* beyond a sweep */
    assert_counters(0, 2);
    ck_assert_int_eq(add_line("left", 0.201 - 0.0999), 1); /* a sweep before */
    ck_assert_uint_eq(scan.count, 6);
    assert_counters(1, 2);
    ck_assert_int_eq(add_line("left", 0.4), 0);
    ndtd_scan_merge_reset(merge);
    ck_assert_int_eq(add_line("right", 0.4), 0);
    assert_counters(1, 2);
}

/* A whole sweep apart is not too far. */
TEST(a_sweep_apart_is_one_set)
{
    set("preprocess.sweep_s", "0.125");
    must(ndtd_settings_finish(&settings, &err));
    ck_assert_int_eq(add_line("left", 0), 0);
    ck_assert_int_eq(add_line("right", 0.125), 1);
    ck_assert_int_eq(add_line("left", 1), 0);
    ck_assert_int_eq(add_line("right", 1.126), 0);
    assert_counters(1, 1);
}

TEST(three_sensors_need_three_scans)
{
    set("frames.sensors", "a 0 0 0 0 0 0, b 0 1 0 0 0 0, c 0 2 0 0 0 0");
    ck_assert_int_eq(add_line("c", 0), 0);
    ck_assert_int_eq(add_line("a", 0.05), 0);
    ck_assert_int_eq(add_line("b", -0.05), 1);
    ck_assert_uint_eq(scan.count, 9);
    ck_assert_float_eq(scan.y_m[0], 2.5f);
    ck_assert_float_eq_tol(scan.time_s[0], 0.06f, 1e-8f);
    ck_assert_float_eq_tol(scan.time_s[3], 0.11f, 1e-8f);
    ck_assert_int_eq(add_line("a", 1), 0);
    ck_assert_int_eq(add_line("b", 1), 0);
    ck_assert_int_eq(add_line("a", 1.1), 0);
    assert_counters(1, 2);
}

/* Two halves of a scan, of sensors at one place, preprocessed: bit-identical to the whole. */
TEST(halves_are_the_whole)
{
    enum { POINTS = 5000 };
    struct ndt_cloud whole, want;
    const struct ndt_cloud *out;
    struct ndt_preprocessor *pre;
    struct ndt_sweep sweep;
    const struct ndt_sweep_motion motion = {.twist = {{15, 0, 0}, {0, 0, 0.5}}};
    int is_complete;
    set("frames.sensors", "left 0 0 0 0 0 0, right 0 0 0 0 0 0");
    ndt_cloud_init(&whole);
    ndt_cloud_init(&want);
    must(ndt_preprocessor_create(&pre, &err));
    must(ndt_cloud_reserve(&whole, POINTS, NDT_CLOUD_TIME, &err));
    whole.count = POINTS;
    for (size_t i = 0; i < POINTS; i++) {
        const double azimuth_rad = 2 * M_PI * (double)i / POINTS, range_m = i % 50 ? 8 + (double)(i % 9) : 0.5;
        whole.x_m[i] = (float)(range_m * cos(azimuth_rad));
        whole.y_m[i] = (float)(range_m * sin(azimuth_rad));
        whole.z_m[i] = (float)(i % 7) / 3;
        whole.time_s[i] = (float)(0.1 * (double)i / POINTS);
    }
    must(ndt_preprocess_sweep(&settings.preprocess, &whole, &sweep, &err));
    must(ndt_preprocess(pre, &settings.preprocess, &whole, &sweep, 3, &motion, &out, &err));
    must(ndt_cloud_copy(&want, out, &err));
    for (int half = 0; half < 2; half++) {
        const size_t from = half ? POINTS / 2 : 0;
        must(ndt_cloud_reserve(&scan, POINTS / 2, NDT_CLOUD_TIME, &err));
        memcpy(scan.x_m, whole.x_m + from, POINTS / 2 * sizeof(float));
        memcpy(scan.y_m, whole.y_m + from, POINTS / 2 * sizeof(float));
        memcpy(scan.z_m, whole.z_m + from, POINTS / 2 * sizeof(float));
        memcpy(scan.time_s, whole.time_s + from, POINTS / 2 * sizeof(float));
        scan.count = POINTS / 2;
        must(add(half ? "right" : "left", START_NS, &is_complete));
        ck_assert_int_eq(is_complete, half);
    }
    const struct ndt_preprocess_params params = ndtd_scan_merge_params(&settings.preprocess);
    must(ndt_preprocess_sweep(&params, &scan, &sweep, &err));
    must(ndt_preprocess(pre, &params, &scan, &sweep, 3, &motion, &out, &err));
    ck_assert_uint_eq(out->count, want.count);
    ck_assert_mem_eq(out->x_m, want.x_m, want.count * sizeof(float));
    ck_assert_mem_eq(out->y_m, want.y_m, want.count * sizeof(float));
    ck_assert_mem_eq(out->time_s, want.time_s, want.count * sizeof(float));
    ndt_preprocessor_destroy(pre);
    ndt_cloud_free(&whole);
    ndt_cloud_free(&want);
}

/* Ranges are in the sensor frame, although the base may be nearer or farther. */
TEST(ranges_are_those_of_each_sensor)
{
    int is_complete;
    set("frames.sensors", "front 5 0 0 0 0 0, rear 0 0 0 0 0 0");
    settings.preprocess.min_range_m = 2;
    settings.preprocess.max_range_m = 12;
    line_of_points(15, -1, 0);
    must(add("front", START_NS, &is_complete));
    line_of_points(15, -1, 0);
    must(add("rear", START_NS, &is_complete));
    ck_assert_int_eq(is_complete, 1);
    for (size_t i = 0; i < 30; i++) {
        const double x_m = (double)(i % 15) - 1, range_m = sqrt(x_m * x_m + 0.25 + 1);
        ck_assert_int_eq(isnan(scan.x_m[i]) != 0, range_m < 2 || range_m > 12);
    }
    const struct ndt_preprocess_params params = ndtd_scan_merge_params(&settings.preprocess);
    ck_assert_double_eq(params.min_range_m, 0);
    ck_assert_double_ge(params.max_range_m, 1e6);
}

TEST(ranges_are_corrected_from_each_sensor)
{
    int is_complete;
    set("frames.sensors", "front 5 0 0 0 0 0, rear 0 0 0 0 0 0");
    settings.preprocess.range_offset_m = 0.5;
    line_of_points(3, 10, 0);
    must(add("front", START_NS, &is_complete));
    line_of_points(3, 10, 0);
    must(add("rear", START_NS, &is_complete));
    for (size_t i = 0; i < 6; i++) {
        const double x_m = 10 + (double)(i % 3), range_m = sqrt(x_m * x_m + 0.25 + 1), at_m = i < 3 ? 5 : 0;
        const float dx = scan.x_m[i] - (float)at_m, dy = scan.y_m[i], dz = scan.z_m[i];
        ck_assert_float_eq_tol(sqrtf(dx * dx + dy * dy + dz * dz), (float)range_m + 0.5f, 1e-5f);
        ck_assert_float_eq_tol(dy / dx, (float)(0.5 / x_m), 1e-5f);
    }
    ck_assert_double_eq(ndtd_scan_merge_params(&settings.preprocess).range_offset_m, 0); /* it is done */
}

TEST(an_origin_is_part_of_the_points)
{
    int is_complete;
    line_of_points(1, 10, 0);
    scan.origin_m[1] = 100;
    must(add("right", START_NS, &is_complete));
    line_of_points(1, 10, 0);
    scan.origin_m[0] = 7;
    must(add("left", START_NS, &is_complete));
    ck_assert_float_eq_tol(scan.y_m[0], 100 - 0.5f, 1e-4f);
    ck_assert_float_eq_tol(scan.y_m[1], 17, 1e-4f);
    ck_assert_double_eq(scan.origin_m[0], 0);
}

TEST(foreign_scans_are_refused)
{
    int is_complete;
    ck_assert_int_eq(add_line("left", 0), 0);
    line_of_points(3, 10, 0);
    ck_assert_int_eq(add("middle", START_NS, &is_complete), NDT_ERR_FORMAT);
    ck_assert_str_eq(err.text, "the frame_id 'middle' is not one of frames.sensors");
    scan.time_s = NULL;
    ck_assert_int_eq(add("right", START_NS, &is_complete), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "no time field"));
    settings.preprocess.deskew = NDT_DESKEW_OFF;
    must(add("right", START_NS, &is_complete));
    ck_assert_int_eq(is_complete, 1);
    ck_assert_uint_eq(scan.count, 6);
}

TEST(any_stamp_is_harmless)
{
    static const int64_t stamps_ns[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MIN + 1, INT64_MAX - 1};
    int is_complete;
    for (size_t i = 0; i < 6; i++) {
        line_of_points(2, 10, 0);
        must(add(i % 2 ? "left" : "right", stamps_ns[i], &is_complete));
        ck_assert_int_eq(is_complete, i == 3); /* 0 and -1 ns */
    }
    line_of_points(0, 10, 0);
    must(add("left", 5 * (int64_t)SECOND_NS, &is_complete));
    line_of_points(0, 10, 0);
    must(add("right", 5 * (int64_t)SECOND_NS, &is_complete));
    ck_assert_int_eq(is_complete, 1);
    ck_assert_uint_eq(scan.count, 0);
}

TEST(nothing_is_allocated_after_the_largest_set)
{
    int failures = 0, is_complete;
    unsigned long before = 0;
    for (int i = 0; i < 60; i++) { /* no assertion: they allocate */
        if (i == 12)
            before = allocations;
        const size_t count = i < 12 ? 4000 : 4000 - (size_t)i * 10;
        failures += ndt_cloud_reserve(&scan, count, NDT_CLOUD_TIME, &err) != NDT_OK;
        scan.count = count;
        for (size_t k = 0; k < count; k++)
            scan.x_m[k] = scan.y_m[k] = scan.z_m[k] = scan.time_s[k] = 0;
        failures += add(i % 7 == 3 || i % 2 ? "left" : "right", START_NS + i / 2 * (int64_t)100000000,
                        &is_complete) != NDT_OK;
    }
    const unsigned long made = allocations - before;
    ck_assert_int_eq(failures, 0);
    ck_assert_uint_gt(ndtd_scan_merge_counters(merge).merged, 10);
    if (COUNTS_ALLOCATIONS)
        ck_assert_uint_eq(made, 0);
}
