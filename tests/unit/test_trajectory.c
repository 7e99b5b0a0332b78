/* Trajectories and times as text: exact in both directions, and errors that name the line. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>

#include "ndt_io/trajectory.h"
#include "run_tests.h"
#include "temp_dir.h"

#define POSE " 1 2 3 0 0 0 1\n"

static struct ndt_trajectory read_ok(const char *path, enum ndt_trajectory_format format)
{
    struct ndt_trajectory out;
    struct ndt_error err = {""};
    ck_assert_msg(ndt_trajectory_read(&out, path, format, &err) == NDT_OK, "%s", err.text);
    return out;
}

static void expect_bad(const char *text, enum ndt_trajectory_format format, const char *reason)
{
    struct ndt_trajectory out;
    struct ndt_error err = {""};
    const char *path = temp_text("bad.txt", text);
    ck_assert_msg(ndt_trajectory_read(&out, path, format, &err) == NDT_ERR_FORMAT, "was read: %s", text);
    ck_assert_msg(strstr(err.text, path) && strstr(err.text, reason), "'%s' lacks '%s'", err.text, reason);
    ck_assert_ptr_null(out.poses);
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(test_stamps_are_exact)
{
    static const struct stamp_case {
        const char *text;
        int64_t ns;
    } cases[] = {{"1317042272.349000", 1317042272349000000},
                 {"1317042272.349000001", 1317042272349000001},
                 {"1.317042272349000001e9", 1317042272349000001},
                 {"1.317042272349000001e+09", 1317042272349000001},
                 {"1317042272349000001e-9", 1317042272349000001},
                 {"0", 0},
                 {"-0.000000001", -1},
                 {"+7", 7000000000},
                 {".5", 500000000},
                 {"5.", 5000000000},
                 {"0.0000000004999999", 0},
                 {"0.0000000005", 1},
                 {"-0.0000000005", -1},
                 {"1.9999999995", 2000000000},
                 {"1e-400", 0},
                 {"0e99999", 0},
                 {"00000000000000000000000000000012.25", 12250000000},
                 {"12.250000000000000000000000000000000000", 12250000000},
                 {"9223372036.854775807", INT64_MAX},
                 {"-9223372036.854775807", -INT64_MAX}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "%s" POSE, cases[i].text);
        struct ndt_trajectory read = read_ok(temp_text("a.tum", line), NDT_TUM);
        ck_assert_msg(read.poses[0].stamp_ns == cases[i].ns, "%s gave %" PRId64, cases[i].text,
                      read.poses[0].stamp_ns);
        ndt_trajectory_free(&read);
    }
}

TEST(test_bad_stamps)
{
    static const char *const stamps[] = {"nan",
                                         "inf",
                                         "1e",
                                         "1e+",
                                         "e5",
                                         "-",
                                         ".",
                                         "1.2.3",
                                         "0x10",
                                         "1,5",
                                         "9223372036.854775808",
                                         "1e10",
                                         "99999999999999999999",
                                         "1e99999",
                                         "twelve"};
    for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "1" POSE "%s" POSE, stamps[i]);
        expect_bad(text, NDT_TUM, "line 2: the stamp");
    }
}

static double random_double(uint64_t *state)
{
    double value;
    do {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        /* Exponents near those of real numbers, and sometimes any. */
        const uint64_t bits = *state % 4 ? (*state & 0x800fffffffffffff) | (1023 - 40 + *state % 80) << 52 : *state;
        memcpy(&value, &bits, sizeof(value));
    } while (!isfinite(value));
    return value;
}

/* The fast parser against strtod. */
TEST(test_numbers_are_those_of_strtod)
{
    static const char *const formats[] = {"%.17g", "%.9g", "%.3f", "%.18e", "%g", "%.40g"};
    uint64_t state = 88172645463325252u;
    FILE *file = fopen(temp_path("a.tum"), "w");
    double expected[600][3];
    for (size_t i = 0; i < 600; i++) {
        fputs("0", file);
        for (size_t k = 0; k < 3; k++) {
            char text[512];
            snprintf(text, sizeof(text), formats[i % 6], random_double(&state));
            if (strlen(text) > 300)
                snprintf(text, sizeof(text), "1");
            expected[i][k] = strtod(text, NULL);
            fprintf(file, "\t %s", text);
        }
        fputs(" 0 0 0 1\n", file);
    }
    fclose(file);
    struct ndt_trajectory read = read_ok(temp_path("a.tum"), NDT_TUM);
    ck_assert_uint_eq(read.count, 600);
    for (size_t i = 0; i < 600; i++)
        ck_assert_mem_eq(read.poses[i].T_map_sensor.t_m, expected[i], sizeof(expected[i]));
    ndt_trajectory_free(&read);
}

static struct ndt_pose random_pose(uint64_t *state)
{
    struct ndt_pose pose = ndt_pose_identity();
    for (size_t k = 0; k < 3; k++)
        pose.t_m[k] = fmod(random_double(state), 1e6);
    for (size_t k = 0; k < 4; k++)
        pose.q_xyzw[k] = fmod(random_double(state), 10.0);
    ndt_pose_normalize(&pose);
    return pose;
}

TEST(test_tum_round_trip_is_bit_exact)
{
    uint64_t state = 7;
    struct ndt_stamped_pose poses[100];
    FILE *file = fopen(temp_path("a.tum"), "w");
    for (size_t i = 0; i < 100; i++) {
        poses[i].stamp_ns = (int64_t)i * 12345678901234567 - 333333333333333333;
        poses[i].T_map_sensor = random_pose(&state);
        ck_assert_int_gt(ndt_trajectory_write_pose(file, NDT_TUM, poses[i].stamp_ns, &poses[i].T_map_sensor), 0);
    }
    fclose(file);
    struct ndt_trajectory read = read_ok(temp_path("a.tum"), NDT_TUM);
    ck_assert_uint_eq(read.count, 100);
    ck_assert_mem_eq(read.poses, poses, sizeof(poses));
    ndt_trajectory_free(&read);
}

TEST(test_kitti_round_trip)
{
    uint64_t state = 9;
    struct ndt_pose poses[50];
    FILE *file = fopen(temp_path("a.txt"), "w");
    for (size_t i = 0; i < 50; i++) {
        poses[i] = random_pose(&state);
        ck_assert_int_gt(ndt_trajectory_write_pose(file, NDT_KITTI, 0, &poses[i]), 0);
    }
    fclose(file);
    struct ndt_trajectory read = read_ok(temp_path("a.txt"), NDT_KITTI);
    ck_assert_uint_eq(read.count, 50);
    for (size_t i = 0; i < 50; i++) {
        ck_assert_int_eq(read.poses[i].stamp_ns, (int64_t)i);
        ck_assert_mem_eq(read.poses[i].T_map_sensor.t_m, poses[i].t_m, sizeof(poses[i].t_m));
        ck_assert_double_lt(ndt_pose_angle_rad(&read.poses[i].T_map_sensor, &poses[i]), 1e-7);
    }
    ndt_trajectory_free(&read);
}

static void expect_written_form(void)
{
    size_t size;
    const struct ndt_pose pose = {{1.5, -2.0, 0.1}, {0.0, 0.0, 0.0, 1.0}};
    FILE *file = fopen(temp_path("a"), "w");
    ndt_trajectory_write_pose(file, NDT_TUM, 1317042272349000000, &pose);
    ndt_trajectory_write_pose(file, NDT_TUM, -1, &pose);
    ndt_trajectory_write_pose(file, NDT_TUM, INT64_MIN, &pose);
    ndt_trajectory_write_pose(file, NDT_KITTI, 0, &pose);
    fclose(file);
    uint8_t *data = temp_read(temp_path("a"), &size);
    ck_assert_str_eq((const char *)data, "1317042272.349000000 1.5 -2 0.10000000000000001 0 0 0 1\n"
                                         "-0.000000001 1.5 -2 0.10000000000000001 0 0 0 1\n"
                                         "-9223372036.854775808 1.5 -2 0.10000000000000001 0 0 0 1\n"
                                         "1 0 0 1.5 0 1 0 -2 0 0 1 0.10000000000000001\n");
    free(data);
}

TEST(test_written_form)
{
    const struct ndt_pose pose = ndt_pose_identity();
    expect_written_form();
    FILE *file = fopen(temp_path("a"), "r"); /* cannot be written */
    ck_assert_int_lt(ndt_trajectory_write_pose(file, NDT_TUM, 0, &pose), 0);
    fclose(file);
}

TEST(test_comments_blanks_and_line_ends)
{
    struct ndt_trajectory read =
        read_ok(temp_text("a.tum", "# stamp x y z\r\n\r\n \t\n1" POSE "   2\t1 2 3 0 0 0 1 # end\r\n"
                                   "3 1 2 3 0 0 0 1"),
                NDT_TUM);
    ck_assert_uint_eq(read.count, 3);
    ck_assert_int_eq(read.poses[2].stamp_ns, 3000000000);
    ndt_trajectory_free(&read);
    read = read_ok(temp_text("a.tum", "1 1 2 3 0 0 0 1.004\n"), NDT_TUM);
    ck_assert_double_eq(read.poses[0].T_map_sensor.q_xyzw[3], 1.0);
    ndt_trajectory_free(&read);
}

TEST(test_bad_lines)
{
    expect_bad("", NDT_TUM, "contains no pose");
    expect_bad("# only\n\n", NDT_KITTI, "contains no pose");
    expect_bad("1 1 2 3 0 0 0\n", NDT_TUM, "line 1: not 8 numbers");
    expect_bad("1" POSE "2 1 2 3 0 0 0 1 9\n", NDT_TUM, "line 2: not 8 numbers");
    expect_bad("1 0 0 1 0 1 0 2 0 0 1 3\n", NDT_TUM, "line 1: 12 numbers, as a pose of KITTI");
    expect_bad("1 1 2 x 0 0 0 1\n", NDT_TUM, "line 1: not 8 numbers");
    expect_bad("1 1 nan 3 0 0 0 1\n", NDT_TUM, "line 1: not 8 numbers");
    expect_bad("1 1 2 inf 0 0 0 1\n", NDT_TUM, "line 1: not 8 numbers");
    expect_bad("1 1 1e999 3 0 0 0 1\n", NDT_TUM, "line 1: not 8 numbers");
    expect_bad("\n\n1 1 2 3 0 0 0 0\n", NDT_TUM, "line 3: the quaternion");
    expect_bad("1 1 2 3 5 0 0 1\n", NDT_TUM, "line 1: the quaternion");
    expect_bad("1 0 0 0 0 1 0 0 0 0 1\n", NDT_KITTI, "line 1: not 12 numbers");
    expect_bad("1 0 0 0 0 1 0 0 0 0 1 0 0\n", NDT_KITTI, "line 1: not 12 numbers");
    expect_bad("2 0 0 0 0 1 0 0 0 0 1 0\n", NDT_KITTI, "line 1: the 3x3 part");
    expect_bad("-1 0 0 0 0 1 0 0 0 0 1 0\n", NDT_KITTI, "line 1: the 3x3 part");
    expect_bad("1 1e300 0 0 0 1 0 0 0 0 1 0\n", NDT_KITTI, "line 1: the 3x3 part");
}

TEST(test_missing_and_invalid_files)
{
    struct ndt_trajectory out;
    struct ndt_error err = {""};
    int64_t *times;
    size_t count;
    ck_assert_int_eq(ndt_trajectory_read(&out, temp_path("missing"), NDT_TUM, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "No such file"));
    ck_assert_int_eq(ndt_trajectory_read(&out, temp_dir, NDT_TUM, &err), NDT_ERR_IO);
    ck_assert_int_eq(mkfifo(temp_path("pipe"), 0600), 0);
    ck_assert_int_eq(ndt_times_read(&times, &count, temp_path("pipe"), &err), NDT_ERR_IO);
    const size_t size = 70000;
    char *line = malloc(size);
    memset(line, '7', size);
    ck_assert_int_eq(ndt_times_read(&times, &count, temp_write("long", line, size), &err), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "limit of 65536"));
    memset(line, 0, size);
    ck_assert_int_eq(ndt_times_read(&times, &count, temp_write("zeros", line, 60000), &err), NDT_ERR_FORMAT);
    free(line);
}

/* A truncated file gives the lines before the end, or an error that names the line. */
TEST(test_cut_at_every_byte)
{
    static const char text[] = "1.5 1 2 3 0 0 0 1\n2.5 1 2 3 0 0 0 1\n";
    const size_t line = sizeof(text) / 2;
    for (size_t cut = 0; cut < sizeof(text) - 1; cut++) {
        struct ndt_trajectory out;
        struct ndt_error err = {""};
        enum ndt_status status = ndt_trajectory_read(&out, temp_write("a", text, cut), NDT_TUM, &err);
        const int whole = cut == line || cut == line - 1 || cut == 2 * line - 1;
        ck_assert_msg((status == NDT_OK) == whole, "cut at %zu: %s", cut, err.text);
        ndt_trajectory_free(&out);
    }
}

TEST(test_times)
{
    int64_t *times;
    size_t count;
    struct ndt_error err = {""};
    FILE *file = fopen(temp_path("a.txt"), "w");
    for (int i = 0; i < 1000; i++)
        fprintf(file, "1317042272.%09d\n", i * 999983);
    fclose(file);
    ck_assert_int_eq(ndt_times_read(&times, &count, temp_path("a.txt"), &err), NDT_OK);
    ck_assert_uint_eq(count, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(times[i], 1317042272000000000 + i * 999983);
    free(times);
    ck_assert_int_eq(ndt_times_read(&times, &count, temp_text("b.txt", "1\n2 3\n"), &err), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "b.txt: line 2: not one number"));
    ck_assert_ptr_null(times);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(ndt_times_read(&times, &count, temp_text("b.txt", "\n"), &err), NDT_ERR_FORMAT);
}

/* The calling program may use a locale with decimal commas. */
TEST(test_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++)
        found = setlocale(LC_ALL, names[i]);
    if (!found)
        puts("skipped: no locale with a decimal comma is installed");
    expect_written_form();
    struct ndt_trajectory read = read_ok(temp_text("a.tum", "1.5 0.12345678901234567 2 3 0 0 0 1\n"), NDT_TUM);
    ck_assert_double_eq(read.poses[0].T_map_sensor.t_m[0], 0.12345678901234567);
    ndt_trajectory_free(&read);
    setlocale(LC_ALL, "C");
}

TEST(test_real_drive)
{
    const char *shared = getenv("NDT_SHARED_DATA");
    if (!shared) {
        puts("skipped: NDT_SHARED_DATA is not set");
        return;
    }
    char path[512];
    int64_t *times;
    size_t count;
    snprintf(path, sizeof(path), "%s/kitti0005_lite/times.txt", shared);
    ck_assert_int_eq(ndt_times_read(&times, &count, path, NULL), NDT_OK);
    ck_assert_uint_eq(count, 154);
    ck_assert_int_eq(times[0], 1317042272349000000);
    free(times);
    snprintf(path, sizeof(path), "%s/kitti0005_lite/poses_velo_lidar_refined.txt", shared);
    struct ndt_trajectory read = read_ok(path, NDT_KITTI);
    ck_assert_uint_eq(read.count, 154);
    ndt_trajectory_free(&read);
}
