/* Points on the wire: layouts, datatypes, times, origins, reuse of the cloud. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_counter.h"
#include "ndt/clock.h"
#include "ndt_proto/message.h"
#include "run_tests.h"

#define STAMP_NS INT64_C(1700000000250000000)
enum { INT8 = 1, UINT8, INT16, UINT16, INT32, UINT32, FLOAT32, FLOAT64 };

struct field {
    const char *name;
    unsigned offset, datatype;
};

/* A scan message assembled from bytes, with every number in its longest form. */
struct builder {
    uint8_t bytes[4096];
    size_t size;
};

static struct ndt_cloud cloud;
static struct ndt_buffer frame;
static struct ndt_scan_message message;
static struct ndt_error error;
static struct builder wire;

static void put(const void *bytes, size_t size)
{
    ck_assert_uint_le(wire.size + size, sizeof(wire.bytes));
    memcpy(wire.bytes + wire.size, bytes, size);
    wire.size += size;
}

static void put_head(uint8_t tag, uint32_t value)
{
    const uint8_t head[5] = {tag, (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                             (uint8_t)value};
    put(head, sizeof(head));
}

static void put_text(const char *text)
{
    put_head(0xdb, (uint32_t)strlen(text));
    put(text, strlen(text));
}

static void put_stamp(int64_t stamp_ns)
{
    uint8_t bytes[9] = {0xd3};
    for (int i = 0; i < 8; i++)
        bytes[1 + i] = (uint8_t)((uint64_t)stamp_ns >> (56 - 8 * i));
    put(bytes, sizeof(bytes));
}

static void put_fields(const struct field *fields, size_t count)
{
    put_text("fields");
    put_head(0xdd, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        put_head(0xdd, 4);
        put_text(fields[i].name);
        put_head(0xce, fields[i].offset);
        put_head(0xce, fields[i].datatype);
        put_head(0xce, 1);
    }
}

static void build(const struct field *fields, size_t field_count, const void *data, uint32_t count, uint32_t step)
{
    wire.size = 0;
    put_head(0xdf, 9);
    put_text("v");
    put_head(0xce, 1);
    put_text("type");
    put_text("scan");
    put_text("seq");
    put_head(0xce, 1);
    put_text("stamp_ns");
    put_stamp(STAMP_NS);
    put_text("frame_id");
    put_text("lidar");
    put_text("count");
    put_head(0xce, count);
    put_text("point_step");
    put_head(0xce, step);
    put_fields(fields, field_count);
    put_text("data");
    put_head(0xc6, count * step);
    put(data, count * step);
}

static enum ndt_status decode(void)
{
    error.text[0] = '\0';
    return ndt_scan_decode(wire.bytes, wire.size, &message, &cloud, &error);
}

static void decode_ok(void)
{
    const enum ndt_status status = decode();
    ck_assert_msg(status == NDT_OK, "%s: %s", ndt_status_name(status), error.text);
}

static void setup(void)
{
    ndt_cloud_init(&cloud);
    ndt_buffer_init(&frame);
}

static void teardown(void)
{
    ndt_cloud_free(&cloud);
    ndt_buffer_free(&frame);
}

/* ---- layouts ---- */

#pragma pack(push, 1)
struct odd_point { /* nothing aligned, z first, mixed widths */
    uint8_t pad;
    double z;
    float x;
    uint8_t more[3];
    double y;
    int8_t intensity;
};
#pragma pack(pop)

FIXTURE(setup, teardown)

TEST(unaligned_and_mixed_fields)
{
    static const struct field fields[] = {
        {"intensity", 24, INT8}, {"z", 1, FLOAT64}, {"x", 9, FLOAT32}, {"y", 16, FLOAT64}};
    const struct odd_point points[2] = {{0, 3.5, 1.25f, {0}, 2.75, -5}, {0, NAN, INFINITY, {0}, -1e-3, 127}};
    build(fields, 4, points, 2, sizeof(struct odd_point));
    decode_ok();
    ck_assert(cloud.count == 2 && cloud.fields == NDT_CLOUD_INTENSITY && cloud.time_s == NULL);
    ck_assert(cloud.x_m[0] == 1.25f && cloud.y_m[0] == 2.75f && cloud.z_m[0] == 3.5f);
    ck_assert(isinf(cloud.x_m[1]) && cloud.y_m[1] == -1e-3f && isnan(cloud.z_m[1]));
    ck_assert(cloud.intensity[0] == -5.0f && cloud.intensity[1] == 127.0f);
}

/* x y z and four bytes of intensity in each datatype */
struct any_point {
    float x, y, z;
    uint8_t value[8];
};

TEST_EACH(every_datatype_of_intensity, INT8, FLOAT64 + 1)
{
    static const float expected[9] = {0, -2, 254, -2, 65534, -2, 4294967294.0f, 1.5f, -0.75f};
    const float single = 1.5f;
    const double wide = -0.75;
    struct any_point point = {1, 2, 3, {0xfe, 0xff, 0xff, 0xff}};
    if (_i == INT8 || _i == UINT8)
        memset(point.value + 1, 0, 3);
    if (_i == FLOAT32)
        memcpy(point.value, &single, sizeof(single));
    if (_i == FLOAT64)
        memcpy(point.value, &wide, sizeof(wide));
    const struct field fields[] = {
        {"x", 0, FLOAT32}, {"y", 4, FLOAT32}, {"z", 8, FLOAT32}, {"intensity", 12, (unsigned)_i}};
    build(fields, 4, &point, 1, sizeof(point));
    decode_ok();
    ck_assert_msg(cloud.intensity[0] == expected[_i], "%g", (double)cloud.intensity[0]);
}

TEST(bad_layouts_are_named)
{
    static const struct {
        struct field fields[4];
        size_t count;
        uint32_t step;
        const char *reason;
    } cases[] = {
        {{{"x", 0, 7}, {"y", 4, 7}}, 2, 12, "scan message: field 'fields': there is no point field 'z'"},
        {{{"x", 0, 7}, {"y", 4, 7}, {"z", 8, 5}}, 3, 12, "point field 2: 'z' has datatype 5; 7 (FLOAT32) or 8"},
        {{{"x", 0, 7}, {"y", 4, 7}, {"z", 8, 9}}, 3, 12, "point field 2: datatype 9 is none of 1 (INT8) to 8"},
        {{{"x", 0, 7}, {"y", 4, 7}, {"z", 9, 7}},
         3,
         12,
         "field 'point_step': 12 bytes, but the fields end at byte 13"},
        {{{"x", 0, 7}, {"y", 4, 7}, {"z", 0xffffffff, 8}}, 3, 12, "the fields end at byte 4294967303"},
        {{{"x", 0, 7}, {"y", 4, 7}, {"z", 8, 7}, {"y", 8, 7}}, 4, 12, "point field 3: 'y' appears a second time"},
        {{{"x", 0, 7}, {"y", 4, 7}, {"z", 8, 7}, {"ring", 12, 2}}, 4, 12, "the fields end at byte 13"},
    };
    static const uint8_t data[12] = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        build(cases[i].fields, cases[i].count, data, 1, cases[i].step);
        ck_assert_int_eq(decode(), NDT_ERR_FORMAT);
        ck_assert_msg(strstr(error.text, cases[i].reason), "case %zu: %s", i, error.text);
    }
}

TEST(empty_scan_is_valid)
{
    static const struct field fields[] = {{"x", 0, FLOAT32}, {"y", 4, FLOAT32}, {"z", 8, FLOAT32}};
    build(fields, 3, "", 0, 12);
    decode_ok();
    ck_assert_uint_eq(cloud.count, 0);
    ck_assert_int_eq(ndt_scan_encode(&frame, &message, &cloud, &error), NDT_OK);
}

/* ---- times ---- */

struct timed_point {
    float x, y, z;
    uint32_t whole;
    float single;
    double wide;
};

static void decode_times(const char *name, unsigned offset, unsigned datatype, const struct timed_point points[2])
{
    const struct field fields[] = {
        {"x", 0, FLOAT32}, {"y", 4, FLOAT32}, {"z", 8, FLOAT32}, {name, offset, datatype}};
    build(fields, 4, points, 2, sizeof(struct timed_point));
    decode_ok();
}

TEST_EACH(every_name_of_time, 0, 6)
{
    static const char *const names[] = {"t", "time", "time_s", "time_stamp", "timestamp", "offset_time"};
    const struct timed_point points[2] = {{.single = 0.0f}, {.single = 0.1f}};
    decode_times(names[_i], offsetof(struct timed_point, single), FLOAT32, points);
    ck_assert(cloud.time_s && cloud.time_s[1] == 0.1f);
}

TEST(whole_times_are_nanoseconds)
{
    const struct timed_point points[2] = {{.whole = 50000000}, {.whole = 4000000000}};
    decode_times("t", offsetof(struct timed_point, whole), UINT32, points);
    ck_assert(cloud.time_s[0] == 0.05f && cloud.time_s[1] == 4.0f);
    decode_times("t", offsetof(struct timed_point, whole), INT32, points);
    ck_assert(cloud.time_s[0] == 0.05f && cloud.time_s[1] == (float)-0.294967296);
}

TEST(absolute_times)
{
    const struct timed_point near_stamp[2] = {{.wide = 1700000000.25}, {.wide = 1700000000.34}};
    decode_times("timestamp", offsetof(struct timed_point, wide), FLOAT64, near_stamp);
    ck_assert_float_eq_tol(cloud.time_s[0], 0.0f, 1e-6f);
    ck_assert_float_eq_tol(cloud.time_s[1], 0.09f, 1e-6f);
    const struct timed_point other_clock[2] = {{.wide = 5000.5}, {.wide = 5000.625}};
    decode_times("timestamp", offsetof(struct timed_point, wide), FLOAT64, other_clock);
    ck_assert(cloud.time_s[0] == 0.0f && cloud.time_s[1] == 0.125f);
    const struct timed_point unknown_first[2] = {{.wide = NAN}, {.wide = 5000.625}};
    decode_times("timestamp", offsetof(struct timed_point, wide), FLOAT64, unknown_first);
    ck_assert(isnan(cloud.time_s[0]) && cloud.time_s[1] == 0.0f);
    ck_assert_double_eq(cloud.time_offset_s, 5000.625);
    const struct timed_point relative[2] = {{.wide = -10.0}, {.wide = 0.0}};
    decode_times("timestamp", offsetof(struct timed_point, wide), FLOAT64, relative);
    ck_assert(cloud.time_s[0] == -10.0f && cloud.time_s[1] == 0.0f);
}

/* Since 1970, the stamp is 1700000000.25. */
TEST(absolute_times_of_any_unit)
{
    static const double PER_S[] = {1e3, 1e6, 1e9};
    for (size_t i = 0; i < 3; i++) {
        const struct timed_point points[2] = {{.wide = 1700000000.25 * PER_S[i]},
                                              {.wide = 1700000000.34 * PER_S[i]}};
        decode_times("timestamp", offsetof(struct timed_point, wide), FLOAT64, points);
        ck_assert_float_eq_tol(cloud.time_s[0], 0.0f, 2e-6f);
        ck_assert_float_eq_tol(cloud.time_s[1], 0.09f, 2e-6f);
        ck_assert_double_eq(cloud.time_offset_s, 0);
    }
}

/* The first number is not that of a clock: a point without a return. */
TEST(one_wrong_time_does_not_decide)
{
    static const struct field fields[] = {
        {"x", 0, FLOAT32}, {"y", 4, FLOAT32}, {"z", 8, FLOAT32}, {"timestamp", 24, FLOAT64}};
    static const double WRONG[] = {0, 8, -3e9, 1e300, NAN};
    struct timed_point points[40];
    ck_assert_uint_eq(offsetof(struct timed_point, wide), 24);
    for (size_t w = 0; w < sizeof(WRONG) / sizeof(WRONG[0]); w++) {
        for (int i = 0; i < 40; i++)
            points[i] = (struct timed_point){.wide = i ? 1700000000.25 + 0.001 * i : WRONG[w]};
        build(fields, 4, points, 40, sizeof(points[0]));
        decode_ok();
        ck_assert_float_eq_tol(cloud.time_s[39], 0.039f, 1e-6f);
        ck_assert(!(fabsf(cloud.time_s[0]) < 10));
    }
}

TEST(the_first_time_field_is_taken)
{
    static const struct field fields[] = {
        {"x", 0, FLOAT32}, {"y", 4, FLOAT32}, {"z", 8, FLOAT32}, {"t", 12, UINT32}, {"time", 16, FLOAT32}};
    const struct timed_point point = {.whole = 1000000, .single = 7.0f};
    build(fields, 5, &point, 1, sizeof(point));
    decode_ok();
    ck_assert(cloud.time_s[0] == 0.001f);
}

/* ---- origins ---- */

static void decode_doubles(const double *xyz, uint32_t count)
{
    static const struct field fields[] = {{"x", 0, FLOAT64}, {"y", 8, FLOAT64}, {"z", 16, FLOAT64}};
    build(fields, 3, xyz, count, 24);
    decode_ok();
}

TEST(origin_only_where_float_is_too_coarse)
{
    static const double near_zero[] = {2047.9, -2047.9, 0.0001, 1.0, 2.0, 3.0};
    decode_doubles(near_zero, 2);
    ck_assert(cloud.origin_m[0] == 0 && cloud.origin_m[1] == 0 && cloud.origin_m[2] == 0);
    ck_assert(cloud.x_m[0] == 2047.9f);
    static const double far[] = {NAN, 0, 0, 1e300, 0, 0, -1e6, 2e6 + 0.0625, 100, -1e6 + 0.5, 2e6, INFINITY};
    decode_doubles(far, 4);
    ck_assert(cloud.origin_m[0] == -1000448.0 && cloud.origin_m[1] == 1999872.0 && cloud.origin_m[2] == 0);
    ck_assert(isnan(cloud.x_m[0]) && isinf(cloud.x_m[1]) && isinf(cloud.z_m[3]));
    ck_assert(cloud.origin_m[1] + cloud.y_m[2] == 2e6 + 0.0625 && cloud.origin_m[0] + cloud.x_m[3] == -1e6 + 0.5);
    decode_doubles(near_zero, 2);
    ck_assert(cloud.origin_m[0] == 0 && cloud.origin_m[1] == 0);
}

/* One far axis is enough, wherever it stands in the record. */
TEST_EACH(any_axis_moves_the_origin, 0, 3)
{
    double xyz[6] = {1, 2, 3, 4, 5, 6};
    xyz[_i] += 5e6;
    xyz[3 + _i] += 5e6;
    decode_doubles(xyz, 2);
    for (int axis = 0; axis < 3; axis++)
        ck_assert_double_eq(cloud.origin_m[axis], axis == _i ? 1024.0 * 4883 : 0);
    const float *const columns[3] = {cloud.x_m, cloud.y_m, cloud.z_m};
    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < 2; i++)
            ck_assert_double_eq(cloud.origin_m[axis] + columns[axis][i], xyz[3 * i + axis]);
}

/* Positions up to 1e8 m are on Earth, from 2048 m on the origin moves. */
TEST(limits_of_the_origin)
{
    decode_doubles((const double[3]){2048, 0, 0}, 1);
    ck_assert_double_eq(cloud.origin_m[0], 2048);
    decode_doubles((const double[3]){nextafter(2048, 0), 0, 0}, 1);
    ck_assert_double_eq(cloud.origin_m[0], 0);
    decode_doubles((const double[3]){0, -1e8, 0}, 1);
    ck_assert_double_eq(cloud.origin_m[1], -1024.0 * 97656);
    decode_doubles((const double[3]){0, nextafter(-1e8, -2e8), 0}, 1);
    ck_assert_double_eq(cloud.origin_m[1], 0);
}

/* ---- reuse ---- */

TEST(stale_arrays_do_not_survive)
{
    const struct timed_point points[2] = {{.single = 0.0f}, {.single = 0.1f}};
    decode_times("time", offsetof(struct timed_point, single), FLOAT32, points);
    ck_assert_uint_eq(cloud.fields, NDT_CLOUD_TIME);
    decode_times("ring", offsetof(struct timed_point, single), FLOAT32, points);
    ck_assert(cloud.fields == 0 && cloud.time_s == NULL && cloud.intensity == NULL);
    decode_times("intensity", offsetof(struct timed_point, single), FLOAT32, points);
    ck_assert(cloud.fields == NDT_CLOUD_INTENSITY && cloud.time_s == NULL && cloud.intensity[1] == 0.1f);
}

TEST(failure_changes_nothing)
{
    const struct timed_point points[2] = {{.x = 4.0f}, {.x = 5.0f}};
    decode_times("time", offsetof(struct timed_point, single), FLOAT32, points);
    message.seq = 77;
    const struct ndt_cloud before = cloud;
    wire.size--;
    ck_assert_int_eq(decode(), NDT_ERR_FORMAT);
    ck_assert_mem_eq(&before, &cloud, sizeof(cloud));
    ck_assert(message.seq == 77 && cloud.x_m[1] == 5.0f);
}

static void fill_cloud(struct ndt_cloud *points, size_t count)
{
    ck_assert_int_eq(ndt_cloud_reserve(points, count, NDT_CLOUD_INTENSITY | NDT_CLOUD_TIME, &error), NDT_OK);
    points->count = count;
    for (size_t i = 0; i < count; i++) {
        points->x_m[i] = (float)i;
        points->y_m[i] = -0.5f * (float)i;
        points->z_m[i] = 0.25f;
        points->intensity[i] = (float)(i % 256);
        points->time_s[i] = 1e-6f * (float)i;
    }
}

/* Points that are not read by the deadline are given up, and a later deadline changes nothing. */
TEST(a_deadline_ends_it_or_changes_nothing)
{
    enum { POINTS = 20000 };
    struct ndt_scan_header header;
    struct ndt_cloud points;
    ndt_cloud_init(&points);
    fill_cloud(&points, POINTS);
    ck_assert_int_eq(ndt_scan_encode(&frame, &message, &points, &error), NDT_OK);
    ck_assert_int_eq(ndt_scan_header_decode(frame.data, frame.size, &header, &error), NDT_OK);
    ck_assert_int_eq(ndt_scan_points(frame.data, frame.size, &header, ndt_clock_us() - 1, &cloud, &error),
                     NDT_ERR_CANCELLED);
    ck_assert_uint_eq(cloud.count, 0);
    ck_assert_int_eq(ndt_scan_points(frame.data, frame.size, &header, ndt_clock_us() + 600e6, &cloud, &error),
                     NDT_OK);
    ck_assert_uint_eq(cloud.count, POINTS);
    ck_assert_mem_eq(cloud.x_m, points.x_m, POINTS * sizeof(float));
    ck_assert_mem_eq(cloud.time_s, points.time_s, POINTS * sizeof(float));
    ndt_cloud_free(&points);
}

TEST(no_allocation_after_warm_up)
{
    struct ndt_cloud sent;
    ndt_cloud_init(&sent);
    fill_cloud(&sent, 120000);
    const struct ndt_scan_message header = {.seq = 1, .stamp_ns = STAMP_NS, .frame_id = "lidar"};
    unsigned long before = 0;
    enum ndt_status encoded = NDT_OK, decoded = NDT_OK;
    for (int round = 0; round < 4; round++) { /* every later scan is a little smaller */
        if (round == 1)
            before = allocations;
        sent.count -= 100;
        encoded = ndt_scan_encode(&frame, &header, &sent, &error);
        if (encoded == NDT_OK)
            decoded = ndt_scan_decode(frame.data, frame.size, &message, &cloud, &error);
    }
    const unsigned long after = allocations;
    ck_assert(encoded == NDT_OK && decoded == NDT_OK);
    ck_assert_uint_eq(before, after);
    ck_assert(!COUNTS_ALLOCATIONS || after > 0);
    ck_assert_uint_eq(cloud.count, sent.count);
    ck_assert_mem_eq(cloud.y_m, sent.y_m, sent.count * sizeof(float));
    ck_assert_mem_eq(cloud.intensity, sent.intensity, sent.count * sizeof(float));
    ck_assert_mem_eq(cloud.time_s, sent.time_s, sent.count * sizeof(float));
    ndt_cloud_free(&sent);
}

TEST(a_scan_beyond_the_frame_limit_is_refused)
{
    struct ndt_cloud sent = {.count = NDT_PROTO_MAX_FRAME / 12 + 1}; /* refused before any point is touched */
    const struct ndt_scan_message header = {.frame_id = "lidar"};
    ck_assert_int_eq(ndt_scan_encode(&frame, &header, &sent, &error), NDT_ERR_LIMIT);
    ck_assert_str_eq(error.text, "scan message: field 'data': the message is above the limit of 268435456 bytes");
    ck_assert_uint_eq(frame.size, 0);
}
