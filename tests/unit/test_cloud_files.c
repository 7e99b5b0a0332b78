/* Point cloud files: every variant is read as written, and malformed files are refused with an error. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <time.h>

#include "ndt_io/cloud_file.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndt_cloud cloud;
static struct ndt_error err;

static void setup(void)
{
    temp_dir_make();
    ndt_cloud_init(&cloud);
    err.text[0] = '\0';
}

static void teardown(void)
{
    ndt_cloud_free(&cloud);
    temp_dir_remove();
}

static void read_ok(const char *path)
{
    must(ndt_cloud_read(&cloud, path, &err));
}

/* The file is refused with a line that names it and holds `reason`, and nothing was allocated for it. */
static void expect_refused(const char *path, const char *reason)
{
    struct ndt_cloud fresh;
    struct ndt_error line = {""};
    ndt_cloud_init(&fresh);
    ck_assert_msg(ndt_cloud_read(&fresh, path, &line) != NDT_OK, "%s was read, not refused for '%s'", path, reason);
    ck_assert_msg(strstr(line.text, path) && strstr(line.text, reason), "'%s' lacks '%s'", line.text, reason);
    ck_assert_uint_eq(fresh.count, 0);
    ndt_cloud_free(&fresh);
}

static void expect_point(size_t i, double x, double y, double z)
{
    ck_assert_uint_lt(i, cloud.count);
    ck_assert_double_eq(cloud.origin_m[0] + cloud.x_m[i], x);
    ck_assert_double_eq(cloud.origin_m[1] + cloud.y_m[i], y);
    ck_assert_double_eq(cloud.origin_m[2] + cloud.z_m[i], z);
}

static void expect_origin(double x, double y, double z)
{
    ck_assert_double_eq(cloud.origin_m[0], x);
    ck_assert_double_eq(cloud.origin_m[1], y);
    ck_assert_double_eq(cloud.origin_m[2], z);
}

/* A file assembled from bytes. */
struct bytes {
    uint8_t data[65536];
    size_t size;
};

static void put(struct bytes *out, const void *data, size_t size)
{
    ck_assert_uint_le(out->size + size, sizeof(out->data));
    memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_text(struct bytes *out, const char *text)
{
    put(out, text, strlen(text));
}

static void put_float(struct bytes *out, float value)
{
    put(out, &value, sizeof(value));
}

/* ---- written and read again ---- */

static void make_cloud(struct ndt_cloud *out, size_t count, unsigned fields, const double origin_m[3])
{
    uint32_t state = 12345;
    ndt_cloud_init(out);
    ck_assert_int_eq(ndt_cloud_reserve(out, count, fields, NULL), NDT_OK);
    memcpy(out->origin_m, origin_m, 3 * sizeof(double));
    float *const arrays[] = {out->x_m, out->y_m, out->z_m, out->intensity, out->time_s};
    for (size_t k = 0; k < 5; k++)
        for (size_t i = 0; arrays[k] && i < count; i++) {
            state = state * 1664525u + 1013904223u;
            arrays[k][i] = (float)(int32_t)state * (k == 4 ? 1e-11f : 2e-7f);
        }
    out->count = count;
}

static void expect_same_array(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(memcmp(&a[i], &b[i], sizeof(float)) == 0 || (isnan(a[i]) && isnan(b[i])),
                      "value %zu: %.9g is not %.9g", i, a[i], b[i]);
}

static void expect_same_cloud(const struct ndt_cloud *a, const struct ndt_cloud *b)
{
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_uint_eq(a->fields, b->fields);
    ck_assert_mem_eq(a->origin_m, b->origin_m, sizeof(a->origin_m));
    expect_same_array(a->x_m, b->x_m, a->count);
    expect_same_array(a->y_m, b->y_m, a->count);
    expect_same_array(a->z_m, b->z_m, a->count);
    if (a->fields & NDT_CLOUD_INTENSITY)
        expect_same_array(a->intensity, b->intensity, a->count);
    if (a->fields & NDT_CLOUD_TIME)
        expect_same_array(a->time_s, b->time_s, a->count);
}

static void expect_round_trip(size_t count, unsigned fields, const double origin_m[3])
{
    struct ndt_cloud written;
    make_cloud(&written, count, fields, origin_m);
    for (unsigned data = NDT_PCD_ASCII; data <= NDT_PCD_COMPRESSED; data++) {
        ck_assert_int_eq(ndt_pcd_write(&written, temp_path("a.pcd"), (enum ndt_pcd_data)data, &err), NDT_OK);
        ndt_cloud_free(&cloud);
        read_ok(temp_path("a.pcd"));
        if (count > 0)
            expect_same_cloud(&cloud, &written);
        ck_assert_uint_eq(cloud.count, count);
        ck_assert(!temp_exists(temp_path("a.pcd.tmp")));
    }
    ndt_cloud_free(&written);
}

FIXTURE(setup, teardown)

TEST(test_pcd_round_trip)
{
    static const double zero_m[3] = {0.0, 0.0, 0.0};
    static const double utm_m[3] = {439296.0, 4474880.0, -1024.0};
    static const size_t counts[] = {0, 1, 511, 512, 513};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        expect_round_trip(counts[i], 0, zero_m);
    for (unsigned fields = 1; fields < 4; fields++) {
        expect_round_trip(20, fields, zero_m);
        expect_round_trip(20, fields, utm_m);
    }
    expect_round_trip(30000, NDT_CLOUD_INTENSITY, zero_m); /* more than one chunk */
}

TEST(test_non_finite_values)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, FLT_MIN, 1e-40f, 2047.75f};
    static const double zero_m[3] = {0.0, 0.0, 0.0};
    struct ndt_cloud written;
    make_cloud(&written, 7, 0, zero_m);
    memcpy(written.x_m, odd, sizeof(odd));
    for (unsigned data = NDT_PCD_ASCII; data <= NDT_PCD_COMPRESSED; data++) {
        ck_assert_int_eq(ndt_pcd_write(&written, temp_path("a.pcd"), (enum ndt_pcd_data)data, &err), NDT_OK);
        read_ok(temp_path("a.pcd"));
        ck_assert_uint_eq(cloud.count, 7);
        for (size_t i = 0; i < 3; i++)
            ck_assert(!isfinite(cloud.x_m[i]));
        expect_same_array(cloud.x_m + 3, odd + 3, 4);
        expect_same_array(cloud.y_m + 3, written.y_m + 3, 4);
    }
    ndt_cloud_free(&written);
}

TEST(test_write_failures)
{
    static const double zero_m[3] = {0.0, 0.0, 0.0};
    struct ndt_cloud written;
    make_cloud(&written, 10, 0, zero_m);
    ck_assert_int_eq(ndt_pcd_write(&written, temp_path("missing/a.pcd"), NDT_PCD_BINARY, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "missing/a.pcd"));
    ck_assert_int_eq(ndt_pcd_write(&written, "/dev/full", NDT_PCD_BINARY, &err), NDT_ERR_IO);
    ck_assert_int_eq(ndt_pcd_write(&written, temp_path("a.pcd"), (enum ndt_pcd_data)3, &err), NDT_ERR_ARGUMENT);
    ck_assert(!temp_exists(temp_path("a.pcd")));
    ndt_cloud_free(&written);
}

/* A reused cloud keeps no points, origin or field values of the previous file. */
TEST(test_reuse)
{
    static const double utm_m[3] = {439296.0, 4474880.0, 0.0};
    struct ndt_cloud written;
    make_cloud(&written, 100, NDT_CLOUD_INTENSITY | NDT_CLOUD_TIME, utm_m);
    ck_assert_int_eq(ndt_pcd_write(&written, temp_path("a.pcd"), NDT_PCD_BINARY, &err), NDT_OK);
    ndt_cloud_free(&written);
    read_ok(temp_path("a.pcd"));
    const void *block = cloud.block;
    read_ok(temp_text("b.pcd", "FIELDS x y z\nPOINTS 2\nDATA ascii\n1 2 3\n4 5 6\n"));
    ck_assert_ptr_eq(cloud.block, block);
    ck_assert_uint_eq(cloud.count, 2);
    expect_origin(0, 0, 0);
    ck_assert_float_eq(cloud.intensity[1], 0.0f);
    ck_assert_float_eq(cloud.time_s[1], 0.0f);
    ck_assert_int_ne(ndt_cloud_read(&cloud, temp_text("c.pcd", "nonsense"), &err), NDT_OK);
    ck_assert_uint_eq(cloud.count, 0);
}

/* ---- PCD in all its forms ---- */

/* x as a number of every type, with fields of all sizes, counts and paddings around. */
struct any_type {
    char kind;
    unsigned size;
    const void *values; /* values of 3 points */
    double expected[3];
};
static const int8_t i8[] = {-128, 0, 127};
static const uint8_t u8[] = {0, 128, 255};
static const int16_t i16[] = {-2000, 0, 2001};
static const uint16_t u16[] = {0, 1, 2047};
static const int32_t i32[] = {-2000, 0, 2001};
static const uint32_t u32[] = {0, 1, 2047};
static const int64_t i64[] = {-2000, 0, 2001};
static const uint64_t u64[] = {0, 1, 2047};
static const float f32[] = {-1.5f, 0.25f, 100.125f};
static const double f64[] = {-1.5, 0.25, 100.125};
static const struct any_type any_types[] = {
    {'I', 1, i8, {-128, 0, 127}},        {'U', 1, u8, {0, 128, 255}},     {'I', 2, i16, {-2000, 0, 2001}},
    {'U', 2, u16, {0, 1, 2047}},         {'I', 4, i32, {-2000, 0, 2001}}, {'U', 4, u32, {0, 1, 2047}},
    {'I', 8, i64, {-2000, 0, 2001}},     {'U', 8, u64, {0, 1, 2047}},     {'F', 4, f32, {-1.5, 0.25, 100.125}},
    {'F', 8, f64, {-1.5, 0.25, 100.125}}};

static void any_type_header(struct bytes *file, const struct any_type *type, const char *data, const char *end)
{
    char text[512];
    file->size = 0;
    snprintf(text, sizeof(text),
             "# a comment%s%sFIELDS _ normal x _ y z intensity%sSIZE 1 8 %u 2 4 4 1%sTYPE U F %c U F F U%s"
             "COUNT 3 2 1 1 1 1 1%sWIDTH 3%sHEIGHT 1%sPOINTS 3%sDATA %s%s",
             end, end, end, type->size, end, type->kind, end, end, end, end, end, data, end);
    put_text(file, text);
}

static void expect_any_type(const struct bytes *file, const struct any_type *type)
{
    read_ok(temp_write("any.pcd", file->data, file->size));
    ck_assert_uint_eq(cloud.count, 3);
    ck_assert_uint_eq(cloud.fields, NDT_CLOUD_INTENSITY);
    for (size_t i = 0; i < 3; i++) {
        expect_point(i, type->expected[i], 10.0 + (double)i, 20.0 + (double)i);
        ck_assert_float_eq(cloud.intensity[i], 200.0f + (float)i);
    }
    expect_origin(0, 0, 0);
}

TEST_EACH(test_pcd_binary_types, 0, sizeof(any_types) / sizeof(any_types[0]))
{
    static struct bytes file;
    const struct any_type *type = &any_types[_i];
    any_type_header(&file, type, "binary", _i % 2 ? "\r\n" : "\n");
    for (size_t i = 0; i < 3; i++) {
        const double normal[2] = {NAN, 7.0};
        const uint8_t intensity = (uint8_t)(200 + i);
        put(&file, "___", 3);
        put(&file, normal, sizeof(normal));
        put(&file, (const uint8_t *)type->values + i * type->size, type->size);
        put(&file, "__", 2);
        put_float(&file, 10.0f + (float)i);
        put_float(&file, 20.0f + (float)i);
        put(&file, &intensity, 1);
    }
    expect_any_type(&file, type);
}

TEST_EACH(test_pcd_ascii_types, 0, sizeof(any_types) / sizeof(any_types[0]))
{
    static struct bytes file;
    const struct any_type *type = &any_types[_i];
    any_type_header(&file, type, "ascii", _i % 2 ? "\r\n" : "\n");
    for (size_t i = 0; i < 3; i++) {
        char line[256];
        snprintf(line, sizeof(line), "0 0 0  nan 7\t%.17g 0 %zu %zu %zu%s", type->expected[i], 10 + i, 20 + i,
                 200 + i, _i % 2 ? "\r\n" : "\n\n");
        put_text(&file, line);
    }
    expect_any_type(&file, type);
}

/* Stored by LZF as literals only, so that this test depends on no compressor. */
static void put_literals(struct bytes *file, const struct bytes *columns)
{
    static struct bytes packed;
    packed.size = 0;
    for (size_t at = 0; at < columns->size; at += 32) {
        const size_t left = columns->size - at;
        const uint8_t control = (uint8_t)((left < 32 ? left : 32) - 1);
        put(&packed, &control, 1);
        put(&packed, columns->data + at, control + 1u);
    }
    const uint32_t sizes[2] = {(uint32_t)packed.size, (uint32_t)columns->size};
    put(file, sizes, sizeof(sizes));
    put(file, packed.data, packed.size);
}

/* Writes one column after the other; padding is left out as PCL does, or kept. */
static void compressed_file(struct bytes *file, const struct any_type *type, int with_padding)
{
    static struct bytes columns;
    columns.size = 0;
    if (with_padding)
        put(&columns, "_________", 9);
    for (size_t i = 0; i < 6; i++) {
        const double normal = 7.0;
        put(&columns, &normal, sizeof(normal));
    }
    put(&columns, type->values, 3 * type->size);
    if (with_padding)
        put(&columns, "______", 6);
    for (size_t i = 0; i < 3; i++)
        put_float(&columns, 10.0f + (float)i);
    for (size_t i = 0; i < 3; i++)
        put_float(&columns, 20.0f + (float)i);
    put(&columns, "\310\311\312", 3);
    any_type_header(file, type, "binary_compressed", "\n");
    put_literals(file, &columns);
}

TEST_EACH(test_pcd_compressed_types, 0, sizeof(any_types) / sizeof(any_types[0]))
{
    static struct bytes file;
    for (int with_padding = 0; with_padding < 2; with_padding++) {
        compressed_file(&file, &any_types[_i], with_padding);
        expect_any_type(&file, &any_types[_i]);
    }
}

TEST(test_pcd_missing_lines)
{
    static const char *const headers[] = {
        "FIELDS x y z\nPOINTS 1\nDATA ascii\n",
        "COLUMNS x y z\nPOINTS 1\nDATA ascii\n",
        "FIELDS x y z\nWIDTH 1\nPOINTS 1\nDATA ascii\n",
        "FIELDS x y z\nHEIGHT 0\nPOINTS 1\nDATA ascii\n",
        "FIELDS x y z\nWIDTH 1\nHEIGHT 1\nDATA ascii\n",
        "FIELDS x y z\nWIDTH 1\nDATA ascii\n",
        "\n\nVERSION .7\n# \xff\nFIELDS x y z\nSIZE 4 4 4\nPOINTS 1\n\nDATA ascii\n",
        "VIEWPOINT 0 0 0 1 0 0 0\nFIELDS x y z\nPOINTS 1\nDATA ascii\n",
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s1.5 2.5 3.5", headers[i]);
        read_ok(temp_text("a.PCD", text));
        ck_assert_uint_eq(cloud.count, 1);
        expect_point(0, 1.5, 2.5, 3.5);
    }
    read_ok(temp_text("a.pcd", "FIELDS x y z\nPOINTS 0\nDATA binary_compressed\n"));
    ck_assert_uint_eq(cloud.count, 0);
}

/* Numbers of up to 399 characters. */
TEST(test_long_numbers)
{
    char text[1024], number[401];
    for (int length = 399; length <= 400; length++) {
        snprintf(number, sizeof(number), "1.5%0*d", length - 3, 0);
        ck_assert_uint_eq(strlen(number), (size_t)length);
        number[length - 1] = '1'; /* too many digits for the fast way */
        snprintf(text, sizeof(text), "FIELDS x y z\nPOINTS 1\nDATA ascii\n%s 2 3\n", number);
        if (length == 399) {
            read_ok(temp_text("long.pcd", text));
            ck_assert_float_eq(cloud.x_m[0], 1.5f);
        } else
            expect_refused(temp_text("long.pcd", text), "line 4");
    }
}

TEST(test_pcd_bad_headers)
{
    static const struct bad_header {
        const char *text, *reason;
    } cases[] = {
        {"hello world\n", "line 1: not a line of a PCD header"},
        {"FIELDS x y z\n", "without a line 'DATA'"},
        {"FIELDS x y z\nPOINTS 1\n1 2 3\n", "line 3: not a line of a PCD header"},
        {"FIELDS\nPOINTS 1\nDATA ascii\n", "line 1: FIELDS is empty"},
        {"POINTS 1\nDATA ascii\n1\n", "no field 'x'"},
        {"FIELDS x z\nPOINTS 1\nDATA ascii\n1 2\n", "no field 'y'"},
        {"SIZE 4 4 4\nFIELDS x y z\nPOINTS 1\nDATA ascii\n1 2 3\n", "line 1: more entries than in FIELDS"},
        {"FIELDS x y z\nSIZE 4 4\nDATA ascii\n", "line 2: fewer entries than in FIELDS"},
        {"FIELDS x y z\nSIZE 4 4 4 4\nDATA ascii\n", "line 2: more entries than in FIELDS"},
        {"FIELDS x y z\nSIZE 4 0 4\nDATA ascii\n", "line 2: an entry is not in 1 .. 65536"},
        {"FIELDS x y z\nSIZE 4 -4 4\nDATA ascii\n", "line 2: an entry is not in 1 .. 65536"},
        {"FIELDS x y z\nSIZE 4 four 4\nDATA ascii\n", "line 2: an entry is not in 1 .. 65536"},
        {"FIELDS x y z\nCOUNT 1 1 65537\nDATA ascii\n", "line 2: an entry is not in 1 .. 65536"},
        {"FIELDS x y z\nTYPE F F\nDATA ascii\n", "line 2: fewer entries"},
        {"FIELDS x y z\nTYPE F F D\nDATA ascii\n", "line 2: a TYPE is not I, U or F"},
        {"FIELDS x y z\nTYPE F F Float\nDATA ascii\n", "line 2: a TYPE is not I, U or F"},
        {"FIELDS x y z\nSIZE 4 4 2\nPOINTS 1\nDATA binary\n", "field 3: there is no TYPE F with SIZE 2"},
        {"FIELDS x y z\nTYPE F F U\nSIZE 4 4 3\nPOINTS 1\nDATA binary\n",
         "field 3: there is no TYPE U with SIZE 3"},
        {"FIELDS x y z\nDATA ascii\n1 2 3\n", "neither WIDTH nor POINTS"},
        {"FIELDS x y z\nWIDTH 2\nHEIGHT 2\nPOINTS 3\nDATA ascii\n1 2 3\n",
         "WIDTH 2 times HEIGHT 2 is not POINTS 3"},
        {"FIELDS x y z\nHEIGHT 1\nPOINTS 1\nDATA ascii\n1 2 3\n", "WIDTH 0 times HEIGHT 1 is not POINTS 1"},
        {"FIELDS x y z\nWIDTH 4294967296\nHEIGHT 4294967296\nPOINTS 0\nDATA binary\n", "is not POINTS 0"},
        {"FIELDS x y z\nWIDTH 1.5\nDATA ascii\n", "line 2: a count must be one integer"},
        {"FIELDS x y z\nWIDTH 1 2\nDATA ascii\n", "line 2: a count must be one integer"},
        {"FIELDS x y z\nWIDTH 1\nHEIGHT one\nDATA ascii\n1 2 3\n", "line 3: a count must be one integer"},
        {"FIELDS x y z\nPOINTS -1\nDATA ascii\n", "line 2: a count must be one integer"},
        {"FIELDS x y z\nPOINTS 18446744073709551615\nDATA ascii\n", "line 2: a count must be one integer"},
        {"FIELDS x y z\nPOINTS 99999999999999999999\nDATA ascii\n", "line 2: a count must be one integer"},
        {"FIELDS x y z\nPOINTS 1\nDATA\n1 2 3\n", "line 3: DATA is not"},
        {"FIELDS x y z\nPOINTS 1\nDATA asciii\n1 2 3\n", "line 3: DATA is not"},
        {"FIELDS x y z\nPOINTS 1\nDATA ascii binary\n1 2 3\n", "line 3: DATA is not"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused(temp_text("bad.pcd", cases[i].text), cases[i].reason);
}

TEST(test_pcd_bad_lines)
{
    static const char header[] = "FIELDS x y z i\nTYPE F F F I\nPOINTS 2\nDATA ascii\n1 2 3 4              \n";
    static const struct bad_line {
        const char *text, *reason;
    } cases[] = {
        {"", "ends after line 5 with 1 of 2 points"},
        {"  \n\n\n\n", "ends after line 9 with 1 of 2 points"},
        {"1 2 3      \n", "line 6: 3 values, but the header announces 4"},
        {"1 2 3 4 5\n", "line 6: 5 values, but the header announces 4"},
        {"1 2 x 4\n", "line 6: a value is not a number"},
        {"1,5 2 3 4\n", "line 6: a value is not a number"},
        {"1 2 3 4\n5 6 7 8\n", "line 7: more than the 2 points"},
        {"1 2 3 4\nDATA ascii\n", "line 7: more than the 2 points"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s%s", header, cases[i].text);
        expect_refused(temp_text("bad.pcd", text), cases[i].reason);
    }
}

/* Headers that declare far more data than the file has: an error without an allocation. */
TEST(test_huge_counts)
{
    static const char *const kinds[] = {"ascii", "binary", "binary_compressed"};
    static const char *const counts[] = {
        "2", "1000000", "268435456", "268435457", "4294967297", "768614336404564651", "9223372036854775807"};
    char text[256];
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < 7; i++) {
            snprintf(text, sizeof(text), "FIELDS x y z\nPOINTS %s\nDATA %s\n0 0 0\n_______", counts[i], kinds[k]);
            struct ndt_cloud fresh;
            ndt_cloud_init(&fresh);
            ck_assert_int_ne(ndt_cloud_read(&fresh, temp_text("huge.pcd", text), &err), NDT_OK);
            ck_assert_ptr_nonnull(strstr(err.text, "huge.pcd: "));
            ck_assert(fresh.capacity <= 16);
            ndt_cloud_free(&fresh);
        }
    expect_refused(
        temp_text("wide.pcd", "FIELDS x y z _\nSIZE 4 4 4 65536\nCOUNT 1 1 1 65536\nPOINTS 1\nDATA binary\n1"),
        "beyond the limit of 65536");
    expect_refused(temp_text("wide.pcd", "FIELDS x y z _\nCOUNT 1 1 1 65536\nPOINTS 1\nDATA ascii\n1 2 3"),
                   "beyond the limit of 65536");
    expect_refused(temp_text("huge.ply",
                             "ply\nformat binary_little_endian 1.0\nelement vertex 9223372036854775807\n"
                             "property float x\nproperty float y\nproperty float z\nend_header\n1234"),
                   "more than the limit");
    expect_refused(temp_text("huge.ply", "ply\nformat binary_little_endian 1.0\nelement vertex 268435456\n"
                                         "property float x\nproperty float y\nproperty float z\nend_header\n1234"),
                   "only 4 follow");
}

TEST(test_too_many_fields)
{
    static struct bytes file;
    put_text(&file, "FIELDS x y z");
    for (int i = 0; i < 300; i++)
        put_text(&file, " f");
    put_text(&file, "\nPOINTS 0\nDATA ascii\n");
    expect_refused(temp_write("many.pcd", file.data, file.size), "more than 256 fields");
    file.size = 0;
    put_text(&file, "FIELDS x y z ");
    for (int i = 0; i < 64; i++)
        put_text(&file, "f");
    put_text(&file, "\nPOINTS 0\nDATA ascii\n");
    expect_refused(temp_write("long.pcd", file.data, file.size), "longer than 63");
}

TEST(test_pcd_bad_compression)
{
    static struct bytes file, columns;
    static const char header[] = "FIELDS x y z\nPOINTS 3\nDATA binary_compressed\n";
    columns.size = 0;
    for (int i = 0; i < 9; i++)
        put_float(&columns, (float)i);
    put_text(&file, header);
    put_literals(&file, &columns);
    read_ok(temp_write("good.pcd", file.data, file.size));
    expect_point(2, 2, 5, 8);
    uint32_t sizes[2], bad[2];
    memcpy(sizes, file.data + sizeof(header) - 1, sizeof(sizes));
    static const struct bad_sizes {
        uint32_t packed, unpacked; /* added */
        const char *reason;
    } cases[] = {
        {1, 0, "only 38 follow"},         {0xffffff00u, 0, "compressed bytes"}, {0, 1, "bytes from"},
        {0, (uint32_t)-36, "bytes from"}, {0, 0x80000000u, "bytes from"},       {(uint32_t)-1, 0, "damaged"},
        {(uint32_t)-38, 0, "bytes from"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bad[0] = sizes[0] + cases[i].packed;
        bad[1] = sizes[1] + cases[i].unpacked;
        memcpy(file.data + sizeof(header) - 1, bad, sizeof(bad));
        expect_refused(temp_write("bad.pcd", file.data, file.size), cases[i].reason);
    }
    memcpy(file.data + sizeof(header) - 1, sizes, sizeof(sizes));
    file.data[sizeof(header) + 7] = 0xff; /* a reference to before the begin */
    expect_refused(temp_write("bad.pcd", file.data, file.size), "damaged");
}

/* LZF expands one byte to at most 88: more is refused before anything is allocated. */
TEST(test_pcd_bomb)
{
    static struct bytes file;
    const uint32_t sizes[2] = {8, 12 * 200000000u};
    put_text(&file, "FIELDS x y z\nPOINTS 200000000\nDATA binary_compressed\n");
    put(&file, sizes, sizeof(sizes));
    put(&file, "12345678", 8);
    expect_refused(temp_write("bomb.pcd", file.data, file.size), "bytes from 8 compressed ones");
}

/* ---- origins ---- */

static void write_doubles(const double *xyz, size_t count)
{
    static struct bytes file;
    char text[128];
    file.size = 0;
    snprintf(text, sizeof(text), "FIELDS x y z\nSIZE 8 8 8\nPOINTS %zu\nDATA binary\n", count);
    put_text(&file, text);
    put(&file, xyz, 3 * count * sizeof(double));
    read_ok(temp_write("d.pcd", file.data, file.size));
}

TEST(test_origin)
{
    static const double near_m[] = {1700.0, -1600.0, 20.0, 2047.9, 0.1, 0.2};
    static const double far_m[] = {NAN, 1, 2, 431245.123, 3943245.871, 12.345, 431301.5, 3943000.25, 11.0};
    static const double edge_m[] = {1.0, 2.0, 3.0, 2048.5, 0.0, 0.0};
    static const double limit_m[] = {1700.0, -1600.0, 20.0, 0.0, 0.0, -2048.0};
    write_doubles(near_m, 2);
    expect_origin(0, 0, 0);
    ck_assert_float_eq(cloud.x_m[0], 1700.0f);
    write_doubles(limit_m, 2);
    expect_origin(2048, -2048, 0);
    ck_assert_float_eq(cloud.x_m[0], -348.0f);
    write_doubles(far_m, 3);
    expect_origin(431104.0, 3943424.0, 0.0);
    ck_assert(isnan(cloud.x_m[0]) && isnan(cloud.y_m[0]) && isnan(cloud.z_m[0]));
    for (size_t i = 1; i < 3; i++) {
        ck_assert_double_lt(fabs(cloud.origin_m[0] + cloud.x_m[i] - far_m[3 * i]), 4e-5);
        ck_assert_double_lt(fabs(cloud.origin_m[1] + cloud.y_m[i] - far_m[3 * i + 1]), 4e-5);
    }
    write_doubles(edge_m, 2); /* the first point decides */
    expect_origin(0, 0, 0);
    write_doubles(far_m, 1);
    expect_origin(0, 0, 0);
}

TEST(test_origin_of_text)
{
    read_ok(temp_text("a.pcd", "FIELDS x y z\nPOINTS 1\nDATA ascii\n431245.123 3943245.871 1e1\n"));
    expect_origin(431104.0, 3943424.0, 0.0);
    ck_assert_float_eq(cloud.x_m[0], (float)(431245.123 - 431104.0));
    read_ok(temp_text("a.pcd", "FIELDS x y z t\nTYPE F F F U\nSIZE 4 4 4 8\nPOINTS 2\nDATA ascii\n"
                               "1500 0 0 1317042272349000000\n1501 0 0 1317042272349500000"));
    expect_origin(0, 0, 0);
    expect_point(0, 1500, 0, 0);
    ck_assert_float_eq(cloud.time_s[0], 0.0f);
    ck_assert_float_eq(cloud.time_s[1], 5e-4f);
}

/* ---- times ---- */

static void read_times(const char *type, const void *times, size_t size)
{
    static struct bytes file;
    char text[256];
    file.size = 0;
    snprintf(text, sizeof(text), "FIELDS x y z timestamp\nSIZE 4 4 4 %zu\nTYPE F F F %s\nPOINTS 2\nDATA binary\n",
             size, type);
    put_text(&file, text);
    for (size_t i = 0; i < 2; i++) {
        put(&file, "abcdefghijkl", 12);
        put(&file, (const uint8_t *)times + i * size, size);
    }
    read_ok(temp_write("t.pcd", file.data, file.size));
    ck_assert_uint_eq(cloud.fields, NDT_CLOUD_TIME);
}

TEST(test_times)
{
    static const float relative_s[] = {0.025f, 0.05f};
    static const double clock_s[] = {1317042272.349, 1317042272.399};
    static const uint32_t relative_ns[] = {25000000, 50000000};
    static const uint64_t clock_ns[] = {1317042272349000123u, 1317042272399000123u};
    static const int64_t hostile_ns[] = {INT64_MIN, INT64_MAX};
    read_times("F", relative_s, 4);
    ck_assert_float_eq(cloud.time_s[0], 0.025f);
    read_times("U", relative_ns, 4);
    ck_assert_float_eq(cloud.time_s[0], 0.025f);
    ck_assert_float_eq(cloud.time_s[1], 0.05f);
    read_times("U", clock_ns, 8);
    ck_assert_float_eq(cloud.time_s[0], 0.0f);
    ck_assert_float_eq(cloud.time_s[1], 0.05f);
    read_times("F", clock_s, 8);
    ck_assert_float_eq(cloud.time_s[0], 0.0f);
    ck_assert_float_eq_tol(cloud.time_s[1], 0.05f, 1e-6f);
    read_times("I", hostile_ns, 8);
    ck_assert_float_eq(cloud.time_s[0], 0.0f);
}

TEST(test_time_names)
{
    static const char *const names[] = {"t", "time", "time_s", "time_stamp", "timestamp", "offset_time"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "FIELDS x y z %s\nPOINTS 1\nDATA ascii\n1 2 3 0.5\n", names[i]);
        ndt_cloud_free(&cloud);
        read_ok(temp_text("t.pcd", text));
        ck_assert_uint_eq(cloud.fields, NDT_CLOUD_TIME);
        ck_assert_float_eq(cloud.time_s[0], 0.5f);
    }
}

/* ---- PLY ---- */

#define PLY_XYZ "property float x\nproperty double y\nproperty short z\n"

TEST(test_ply_text)
{
    read_ok(temp_text("a.ply", "ply\r\nformat ascii 1.0\r\ncomment made by hand\r\nobj_info more\r\n"
                               "element camera 2\nproperty float f\nproperty list uchar int parts\n"
                               "element vertex 2\nproperty uchar red\n" PLY_XYZ "property float intensity\n"
                               "element face 1\nproperty list uchar int vertex_indices\nend_header\r\n"
                               "1.5 2 7 8\n2.5 0\n255 1.5 2.5 -3 0.5\r\n\n0 4.5 5.5 6 0.25\n3 0 1 0\n"));
    ck_assert_uint_eq(cloud.count, 2);
    expect_point(0, 1.5, 2.5, -3);
    expect_point(1, 4.5, 5.5, 6);
    ck_assert_float_eq(cloud.intensity[1], 0.25f);
}

static void binary_ply(struct bytes *file, const char *header)
{
    file->size = 0;
    put_text(file, header);
    put(file, "cam1cam2", 8); /* two cameras of a float each */
    for (size_t i = 0; i < 2; i++) {
        const float x = 1.5f + (float)i;
        const double y = 2.5 + (double)i;
        const int16_t z = (int16_t)(-3 + (int)i);
        put(file, &x, sizeof(x));
        put(file, &y, sizeof(y));
        put(file, &z, sizeof(z));
        put(file, "rgb", 3);
    }
    put(file, "\003abcdefghijkl", 13);
}

static const char ply_binary_header[] = "ply\nformat binary_little_endian 1.0\ncomment \nelement camera 2\n"
                                        "property float f\nelement vertex 2\n" PLY_XYZ "property uchar r\n"
                                        "property uint8 g\nproperty int8 b\nelement face 1\n"
                                        "property list uchar int vertex_indices\nend_header\n";

TEST(test_ply_binary)
{
    static struct bytes file;
    binary_ply(&file, ply_binary_header);
    read_ok(temp_write("a.ply", file.data, file.size));
    ck_assert_uint_eq(cloud.count, 2);
    expect_point(0, 1.5, 2.5, -3);
    expect_point(1, 2.5, 3.5, -2);
}

TEST(test_ply_float)
{
    static struct bytes file;
    put_text(&file, "ply\nformat binary_little_endian 1.0\nelement vertex 3\nproperty float32 z\n"
                    "property float32 x\nproperty float y\nend_header\n");
    for (int i = 0; i < 9; i++)
        put_float(&file, (float)i + 9000.25f);
    read_ok(temp_write("a.ply", file.data, file.size));
    ck_assert_uint_eq(cloud.count, 3);
    expect_origin(0, 0, 0);
    expect_point(2, 9007.25, 9008.25, 9006.25);
}

TEST(test_ply_bad_headers)
{
    static const struct bad_ply {
        const char *text, *reason;
    } cases[] = {
        {"plyy\n", "line 1: a PLY file begins with 'ply'"},
        {"\nply\n", "line 1: a PLY file begins with 'ply'"},
        {"ply\nformat ascii 1.0\n", "without a line 'end_header'"},
        {"ply\nelement vertex 1\n", "line 2: must come after the format"},
        {"ply\nend_header\n", "line 2: must come after the format"},
        {"ply\nformat ascii 2.0\n", "line 2: not a format of PLY 1.0"},
        {"ply\nformat\n", "line 2: not a format of PLY 1.0"},
        {"ply\nformat binary_big_endian 1.0\n", "line 2: the format is neither"},
        {"ply\nformat ascii 1.0\nend_header\n", "without an element 'vertex'"},
        {"ply\nformat ascii 1.0\nelement\n", "line 3: an element without a name"},
        {"ply\nformat ascii 1.0\nelement vertex\n", "line 3: a count"},
        {"ply\nformat ascii 1.0\nelement vertex -1\n", "line 3: a count"},
        {"ply\nformat ascii 1.0\nproperty float x\n", "line 3: a property before any element"},
        {"ply\nformat ascii 1.0\nelement vertex 1\nproperty\n", "line 4: a property without a type"},
        {"ply\nformat ascii 1.0\nelement vertex 1\nproperty half x\n", "line 4: a property of an unknown type"},
        {"ply\nformat ascii 1.0\nelement vertex 1\nproperty float\n", "line 4: a property needs one name"},
        {"ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int x\n", "lists in the element 'vertex'"},
        {"ply\nformat ascii 1.0\nelement vertex 1\n" PLY_XYZ "element vertex 1\n", "line 7: a second element"},
        {"ply\nformat ascii 1.0\nelement vertex 1\n" PLY_XYZ "surprise\n", "line 7: not a line of a PLY header"},
        {"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n1\n", "no field 'y'"},
        {"ply\nformat ascii 1.0\nelement vertex 2\n" PLY_XYZ "end_header\n1 2 3\n      ", "1 of 2 points"},
        {"ply\nformat ascii 1.0\nelement vertex 1\n" PLY_XYZ "end_header\n1 2 3\n4 5 6\n",
         "more than the 1 points"},
        {"ply\nformat ascii 1.0\nelement camera 9223372036854775807\nproperty float f\nelement vertex 1\n" PLY_XYZ
         "end_header\n1\n1 2 3\n",
         "before the vertices"},
        {"ply\nformat binary_little_endian 1.0\nelement face 1\nproperty list uchar int i\nelement vertex 1\n",
         "line 5: the element above it has lists"},
        {"ply\nformat binary_little_endian 1.0\nelement a 4611686018427387904\nproperty int i\nelement vertex 1\n",
         "line 5: the elements above it are larger than any file"},
        {"ply\nformat binary_little_endian 1.0\nelement a 1000\nproperty int i\nelement vertex 1\n" PLY_XYZ
         "end_header\n1234",
         "4000 bytes before the vertices, but only 4"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused(temp_text("bad.ply", cases[i].text), cases[i].reason);
}

/* ---- KITTI ---- */

TEST(test_kitti_bin)
{
    static struct bytes file;
    for (int i = 0; i < 8; i++)
        put_float(&file, (float)i);
    read_ok(temp_write("a.bin", file.data, file.size));
    ck_assert_uint_eq(cloud.count, 2);
    ck_assert_uint_eq(cloud.fields, NDT_CLOUD_INTENSITY);
    expect_point(1, 4, 5, 6);
    ck_assert_float_eq(cloud.intensity[1], 7.0f);
    for (size_t cut = 1; cut < 16; cut++)
        expect_refused(temp_write("a.bin", file.data, cut), "not a multiple of the 16 bytes of a point");
    expect_refused(temp_text("a.bin", "# .PCD v0.7 - Point Cloud Data!!"), "another format");
    expect_refused(temp_text("a.bin", "NDTBAG\r\n12345678"), "another format");
}

/* ---- all of them ---- */

TEST(test_missing_and_invalid_files)
{
    static const char *const names[] = {"a.pcd", "a.ply", "a.bin"};
    for (size_t i = 0; i < 3; i++) {
        expect_refused(temp_path(names[i]), "No such file");
        expect_refused(temp_write(names[i], "", 0), "is empty");
    }
    ck_assert_int_eq(mkdir(temp_path("d.pcd"), 0700), 0);
    expect_refused(temp_path("d.pcd"), "is a directory");
    ck_assert_int_eq(mkfifo(temp_path("p.pcd"), 0600), 0);
    expect_refused(temp_path("p.pcd"), "is a pipe");
    expect_refused(temp_text("a.xyz", "1 2 3"), ".pcd .ply .bin");
    expect_refused(temp_text("pcd", "1 2 3"), ".pcd .ply .bin");
    static char line[70000];
    memset(line, 'F', sizeof(line));
    expect_refused(temp_write("l.pcd", line, sizeof(line)), "longer than the limit");
    expect_refused(temp_write("l.ply", line, sizeof(line)), "longer than the limit");
}

/* One small valid file of every kind, and how many bytes may be cut off without an error: those after the points.
 */
struct sample {
    const char *name;
    struct bytes file;
    size_t slack;
};
enum { SAMPLES = 5 };

static struct sample *make_samples(void)
{
    static struct sample samples[SAMPLES];
    static const double utm_m[3] = {431104.0, 3943424.0, 0.0};
    struct ndt_cloud written;
    make_cloud(&written, 8, NDT_CLOUD_INTENSITY | NDT_CLOUD_TIME, utm_m);
    for (unsigned i = 0; i < 3; i++) {
        size_t size = 0;
        ck_assert_int_eq(ndt_pcd_write(&written, temp_path("s.pcd"), (enum ndt_pcd_data)i, &err), NDT_OK);
        uint8_t *data = temp_read(temp_path("s.pcd"), &size);
        samples[i] = (struct sample){.name = "s.pcd", .slack = 0};
        put(&samples[i].file, data, size);
        free(data);
    }
    ndt_cloud_free(&written);
    samples[NDT_PCD_ASCII].slack = 20; /* digits of the last number */
    samples[3] = (struct sample){.name = "s.ply", .slack = 13};
    binary_ply(&samples[3].file, ply_binary_header);
    samples[4] = (struct sample){.name = "s.ply", .slack = 2};
    put_text(&samples[4].file, "ply\nformat ascii 1.0\ncomment short\nelement vertex 2\n" PLY_XYZ
                               "end_header\n1.5 2.5 3\n4.5 5.5 6\n");
    return samples;
}

TEST_EACH(test_cut_at_every_byte, 0, SAMPLES)
{
    struct sample *sample = &make_samples()[_i];
    const char *path = temp_write(sample->name, sample->file.data, sample->file.size);
    read_ok(path);
    for (size_t cut = sample->file.size - sample->slack; cut-- > 0;) {
        ck_assert_int_eq(truncate(path, (off_t)cut), 0);
        expect_refused(path, "");
    }
}

/* Random bytes at random places: no crash, and no cloud larger than its file. */
TEST_EACH(test_random_damage, 0, SAMPLES)
{
    struct sample *sample = &make_samples()[_i];
    static struct bytes bad;
    uint32_t state = 99;
    for (int round = 0; round < 500; round++) {
        bad = sample->file;
        for (int hit = 0; hit < 1 + round % 3; hit++) {
            state = state * 1664525u + 1013904223u;
            const size_t range = round % 2 ? bad.size : 200; /* the header, every other time */
            const size_t at = (state >> 8) % (range < bad.size ? range : bad.size);
            bad.data[at] = round % 5 ? (uint8_t)("0123456789 \n-.xFU"[state % 17]) : (uint8_t)(state >> 24);
        }
        struct ndt_cloud fresh;
        ndt_cloud_init(&fresh);
        if (ndt_cloud_read(&fresh, temp_write(sample->name, bad.data, bad.size), &err) == NDT_OK)
            ck_assert_uint_le(fresh.count, bad.size);
        else
            ck_assert_ptr_nonnull(strstr(err.text, sample->name));
        ndt_cloud_free(&fresh);
    }
}

TEST(test_real_maps)
{
    static const struct real_map {
        const char *name;
        size_t count;
    } maps[] = {{"kitti0005_lite/map_from_even_scans_0.20m.pcd", 269980},
                {"kitti0005_lite/map_from_even_scans_0.10m.pcd", 1038860},
                {"kitti0005_full/0000000060.pcd", 122943},
                {"ndt_omp_pair/251370668.pcd", 69088}};
    const char *shared = getenv("NDT_SHARED_DATA");
    if (!shared)
        puts("skipped: NDT_SHARED_DATA is not set");
    for (size_t i = 0; shared && i < sizeof(maps) / sizeof(maps[0]); i++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", shared, maps[i].name);
        read_ok(path);
        ck_assert_uint_eq(cloud.count, maps[i].count);
        size_t odd = 0;
        for (size_t k = 0; k < cloud.count; k++)
            odd += !(fabsf(cloud.x_m[k]) < 1000.0f && fabsf(cloud.y_m[k]) < 1000.0f);
        ck_assert_uint_eq(odd, 0);
    }
}
