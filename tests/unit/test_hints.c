/* Hints of a replay: each where it applies, and none where it does not. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt_io/map_file.h"
#include "ndtd/hints.h"
#include "ndtd/map_reading.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndtd_hints hints;
static struct ndtd_settings settings;
static struct ndt_error err;
static const struct ndt_pose still = {{0, 0, 0}, {0, 0, 0, 1}};

static void setup(void)
{
    memset(&hints, 0, sizeof(hints));
    ndtd_settings_default(&settings);
}

static void expect(const char *part)
{
    ck_assert_msg(hints.count == (part ? 1 : 0), "%zu hints: %s", hints.count, hints.text[0]);
    ck_assert_msg(!part || strstr(hints.text[0], part), "'%s' does not say '%s'", hints.text[0], part);
    ck_assert_ptr_null(strchr(hints.text[0], '\n'));
}

/* ---- the first scan ---- */

enum { POINTS = 4000 };

/* A road 1.8 m below the sensor and a wall beside it. sign -1: upside down. */
static void scan(double sign, double at_m, double sweep_s, const struct ndt_pose *T_base_sensor)
{
    const struct ndt_scan_message message = {.frame_id = "lidar"};
    struct ndt_cloud cloud;
    struct ndt_buffer frame;
    ndt_cloud_init(&cloud);
    ndt_buffer_init(&frame);
    must(ndt_cloud_reserve(&cloud, POINTS, sweep_s >= 0 ? NDT_CLOUD_TIME : 0, &err));
    cloud.count = POINTS;
    for (int i = 0; i < POINTS; i++) {
        const int is_road = i % 2;
        cloud.x_m[i] = (float)(at_m + 3 + i % 61 * 0.5);
        cloud.y_m[i] = is_road ? (float)(i % 17 - 8) : 9;
        cloud.z_m[i] = (float)(sign * (is_road ? -1.8 + 0.01 * (i % 5) : -1.8 + 0.1 * (i % 73)));
        if (cloud.time_s)
            cloud.time_s[i] = (float)(sweep_s * i / POINTS);
    }
    must(ndt_scan_encode(&frame, &message, &cloud, &err));
    ndtd_hints_scan(&hints, frame.data, frame.size, &settings, T_base_sensor);
    ndt_buffer_free(&frame);
    ndt_cloud_free(&cloud);
}

FIXTURE(setup, NULL)

TEST(times_that_are_not_used)
{
    settings.preprocess.deskew = NDT_DESKEW_OFF;
    scan(1, 0, 0.1, &still);
    expect("0.100 s in a scan, and preprocess.deskew is off");
    scan(1, 0, 0.1, &still); /* said once */
    expect("0.100 s");
}

TEST(options_of_the_other_variant)
{
    settings.align.step_size = 0.05;
    scan(1, 0, -1, &still);
    expect("ndt.step_size has no effect with ndt.variant robust, whose limit of a step is ndt.step_limit_m");
    setup();
    settings.align.trans_epsilon = 0.001;
    scan(1, 0, -1, &still);
    expect("ndt.trans_epsilon has no effect with ndt.variant robust, which ends by ndt.fine_stop_m");
    setup();
    settings.align.variant = NDT_AUTOWARE;
    settings.align.step_size = 0.05;
    scan(1, 0, -1, &still);
    expect(NULL);
}

TEST(times_that_are_used_or_none)
{
    scan(1, 0, 0.1, &still); /* auto */
    expect(NULL);
    setup();
    settings.preprocess.deskew = NDT_DESKEW_TIME;
    scan(1, 0, 0.1, &still);
    expect(NULL);
    setup();
    settings.preprocess.deskew = NDT_DESKEW_OFF;
    scan(1, 0, 0, &still); /* all equal */
    expect(NULL);
    setup();
    settings.preprocess.deskew = NDT_DESKEW_OFF;
    scan(1, 0, -1, &still);
    expect(NULL);
}

TEST(points_in_the_frame_of_the_map)
{
    scan(1, 5e5, -1, &still);
    expect("up to 500 km from the sensor");
    setup();
    scan(1, 200, -1, &still);
    expect(NULL);
}

static void finish(uint64_t scans, uint64_t untrusted)
{
    struct ndtd_trajectory_error none = {0};
    ndtd_hints_finish(&hints, NULL, &none, scans, untrusted);
}

TEST(a_scan_that_is_upside_down)
{
    const struct ndt_pose hanging = {{0, 0, 1.8}, {1, 0, 0, 0}};
    scan(-1, 0, -1, &still);
    finish(10, 9);
    expect("looks upside down");
    setup();
    scan(-1, 0, -1, &still);
    finish(10, 2); /* it works nevertheless */
    expect(NULL);
    setup();
    scan(1, 0, -1, &still);
    finish(10, 9);
    expect(NULL);
    setup();
    scan(-1, 0, -1, &hanging); /* and the configuration knows it */
    finish(10, 9);
    expect(NULL);
    setup();
    scan(1, 0, -1, &hanging); /* it does not hang, as the configuration says */
    finish(10, 9);
    expect("turns the sensor over");
}

/* ---- positions ---- */

/* A drive of `scans` at 10 m/s and 10 Hz along a bend, with a position each second: turned about a far origin,
 * moved, and off by up to noise_m. */
static void drive(int scans, double turn_rad, double noise_m)
{
    for (int i = 0; i < scans; i++) {
        const int64_t stamp_ns = INT64_C(1700000000000000000) + i * INT64_C(100000000);
        const double pose_m[3] = {5000.0 + i, 80 * sin(0.01 * i), 0};
        const double noise[2] = {noise_m * sin(1.7 * i), noise_m * cos(2.3 * i)};
        const double position_m[3] = {3e5 + cos(turn_rad) * pose_m[0] + sin(turn_rad) * pose_m[1] + noise[0],
                                      5e6 - sin(turn_rad) * pose_m[0] + cos(turn_rad) * pose_m[1] + noise[1], 0};
        if (i % 10 == 0)
            ndtd_hints_gnss(&hints, stamp_ns - 40000000, position_m);
        ndtd_hints_pose(&hints, stamp_ns, pose_m);
    }
    finish((uint64_t)scans, 0);
}

TEST(positions_that_are_turned)
{
    drive(300, 0.5, 2);
    expect("poses are turned by 29 deg against GNSS positions (30 of them");
    setup();
    drive(300, -3, 2);
    expect("poses are turned by -172 deg against");
}

TEST(positions_that_are_not_turned)
{
    drive(300, 0, 5);
    drive(300, 0.1, 2); /* less than tells */
    expect(NULL);
    setup();
    drive(50, 0.5, 2); /* too few */
    expect(NULL);
    setup();
    drive(110, 0.5, 30); /* too rough for the length */
    expect(NULL);
    setup();
    for (int i = 0; i < 300; i++) /* standing */
        ndtd_hints_gnss(&hints, i, (const double[3]){sin(i), cos(i), 0}), ndtd_hints_pose(&hints, i, still.t_m);
    finish(300, 0);
    expect(NULL);
}

/* ---- the start ---- */

static struct ndt_map *make_map(void)
{
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    struct ndt_map *map;
    ndt_map_config_default(&config);
    ndt_cloud_init(&cloud);
    must(ndt_cloud_reserve(&cloud, POINTS, 0, &err));
    cloud.count = POINTS;
    cloud.origin_m[0] = 400000;
    for (int i = 0; i < POINTS; i++) {
        cloud.x_m[i] = (float)(i % 100);
        cloud.y_m[i] = (float)(i / 100 % 40);
        cloud.z_m[i] = (float)(i % 7 * 0.1);
    }
    must(ndt_map_from_cloud(&map, &config, &cloud, &err));
    ndt_cloud_free(&cloud);
    return map;
}

static void start(const char *what, double x_m, double y_m, double z_m)
{
    struct ndt_map *map = make_map();
    ndtd_hints_start(&hints, map, what, (const double[3]){x_m, y_m, z_m});
    ndt_map_release(map);
}

TEST(a_start_outside_the_map)
{
    start("initial pose", 0, 0, 0);
    expect("the first initial pose, x 0.0 y 0.0, is 400000 m outside the map (x 400000 to 400100, y 0 to 40)");
    start("initial pose", 0, 0, 0); /* the first one only */
    expect("initial pose");
    setup();
    start("GNSS position", 400050, -300, 0);
    expect("the first GNSS position, x 400050.0 y -300.0, is 300 m outside the map");
    setup();
    start("initial pose", 400050, 20, 600);
    expect("z 600.0, is ");
}

static void finish_on(struct ndt_map *map, uint64_t scans, uint64_t untrusted)
{
    struct ndtd_trajectory_error none = {0};
    ndtd_hints_finish(&hints, map, &none, scans, untrusted);
    ndt_map_release(map);
}

TEST(a_map_that_no_scan_fits)
{
    finish_on(make_map(), 12, 12);
    expect("none of the scans fits the map. Is it the map of this place, in metres");
    ck_assert_ptr_nonnull(strstr(hints.text[0], "it is 100 x 40 x 4 m"));
    setup();
    finish_on(make_map(), 12, 11);
    finish_on(make_map(), 9, 9);
    expect(NULL);
    finish_on(NULL, 12, 12); /* without a map */
    expect(NULL);
    scan(-1, 0, -1, &still); /* a better explanation */
    finish_on(make_map(), 12, 12);
    expect("looks upside down");
}

TEST(a_start_in_the_map_or_near_it)
{
    start("initial pose", 400050, 20, 1);
    start("GNSS position", 400150, -30, -40);
    expect(NULL);
}

/* ---- errors ---- */

/* A drive along a bend. */
static struct ndt_pose truth_at(int i)
{
    const double yaw_rad = 0.04 * i;
    return (struct ndt_pose){{50 * sin(yaw_rad), 50 - 50 * cos(yaw_rad), 0},
                             {0, 0, sin(yaw_rad / 2), cos(yaw_rad / 2)}};
}

/* 40 results: left * truth * right, with `wild` of them anywhere. */
static void errors(const struct ndt_pose *left, const struct ndt_pose *right, int wild)
{
    struct ndtd_trajectory_error error = {0};
    for (int i = 0; i < 40; i++) {
        const struct ndt_pose truth = truth_at(i), moved = ndt_pose_compose(&truth, right);
        struct ndt_pose result = ndt_pose_compose(left, &moved);
        result.t_m[0] += i < wild ? 3.0 * i + 1 : 0.01 * (i % 3);
        must(ndtd_trajectory_error_add_truth(&error, i, &truth, &err));
        must(ndtd_trajectory_error_add_result(&error, i, &result, &err));
    }
    ndtd_hints_finish(&hints, NULL, &error, 40, 0);
    ndtd_trajectory_error_free(&error);
}

TEST(frames_that_are_mixed_up)
{
    const struct ndt_pose turn = {{0, 0, 0}, {0, 0, sqrt(0.5), sqrt(0.5)}}, mount = {{1.2, 0, 1.8}, {0, 0, 0, 1}};
    const struct ndt_pose other_map = {{100, -20, 0}, {0, 0, 1, 0}};
    errors(&still, &turn, 0);
    expect("one transform of the vehicle in 100 % of the scans: x 0.01 y ");
    ck_assert_ptr_nonnull(strstr(hints.text[0], "yaw 90.0 deg"));
    setup();
    errors(&still, &mount, 8);
    expect("z 1.80 m");
    setup();
    errors(&other_map, &still, 0);
    expect("one transform of the map in 100 % of the scans: x 100.");
}

TEST(errors_of_a_run_that_is_right_or_lost)
{
    const struct ndt_pose small = {{0.2, 0.1, 0}, {0, 0, 0.01, 1}},
                          turn = {{0, 0, 0}, {0, 0, sqrt(0.5), sqrt(0.5)}};
    errors(&still, &still, 0);
    errors(&still, &small, 0);
    errors(&still, &turn, 20); /* half of them are anywhere */
    expect(NULL);
}

/* ---- coordinates in float32 ---- */

static void write_map(const char *name, int is_double, double x_m)
{
    char text[400];
    uint8_t data[600];
    const size_t size = is_double ? 8 : 4;
    size_t used =
        (size_t)snprintf(text, sizeof(text),
                         "VERSION 0.7\nFIELDS x y z\nSIZE %zu %zu %zu\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 10\n"
                         "HEIGHT 1\nPOINTS 10\nDATA binary\n",
                         size, size, size);
    memcpy(data, text, used);
    for (int i = 0; i < 30; i++) {
        const double value = i % 3 == 0 ? x_m + i : i;
        const float narrow = (float)value;
        memcpy(data + used, is_double ? (const void *)&value : (const void *)&narrow, size);
        used += size;
    }
    temp_write(name, data, used);
}

static int is_coarse(const char *name, char *line, size_t size)
{
    struct ndt_map *map = NULL;
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    must(ndt_map_load(&map, temp_path(name), &config, &err));
    const int coarse = ndtd_map_coarse_text(line, size, temp_path(name), map->spacing_m);
    ndt_map_release(map);
    return coarse;
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(a_map_in_utm)
{
    char line[1280] = "";
    write_map("utm.pcd", 0, 412345);
    ck_assert(is_coarse("utm.pcd", line, sizeof(line)));
    ck_assert_msg(strstr(line, "utm.pcd: ") && strstr(line, "neighbouring ones are 0.031 m apart"), "%s", line);
    write_map("near.pcd", 0, 131000);
    ck_assert(!is_coarse("near.pcd", line, sizeof(line)));
    write_map("double.pcd", 1, 412345);
    ck_assert(!is_coarse("double.pcd", line, sizeof(line)));
    ck_assert_int_eq(mkdir(temp_path("tiles"), 0700), 0);
    write_map("tiles/a.pcd", 1, 412345);
    write_map("tiles/b.pcd", 0, 412345);
    ck_assert(is_coarse("tiles", line, sizeof(line)));
}
