/** @file
 * @brief Tests of the frames.* options: the forms of a transform, their limits, several sensors. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/config_file.h"
#include "ndtd/options.h"
#include "ndtd/settings_snapshot.h"
#include "run_tests.h"

static struct ndtd_settings settings;
static struct ndt_error err;

static void setup(void)
{
    ndtd_settings_default(&settings);
    err.text[0] = '\0';
}

static void must_read(const char *text)
{
    must(ndtd_config_parse(&settings, "a.yaml", text, strlen(text), &err));
    must(ndtd_settings_finish(&settings, &err));
}

static void must_refuse(const char *text, const char *part_of_error)
{
    setup();
    enum ndt_status status = ndtd_config_parse(&settings, "a.yaml", text, strlen(text), &err);
    if (status == NDT_OK)
        status = ndtd_settings_finish(&settings, &err);
    ck_assert_msg(status == NDT_ERR_ARGUMENT, "taken: %s", text);
    ck_assert_msg(strstr(err.text, part_of_error) != NULL, "'%s' without '%s'", err.text, part_of_error);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}

static void assert_pose(const struct ndt_pose *got, const struct ndt_pose *want)
{
    ck_assert_double_le(ndt_pose_distance_m(got, want), 1e-12);
    ck_assert_double_le(ndt_pose_angle_rad(got, want), 1e-7);
}

FIXTURE(setup, NULL)

TEST(the_identity_is_the_default)
{
    const struct ndt_pose identity = ndt_pose_identity();
    assert_pose(&settings.frames.T_base_sensor, &identity);
    assert_pose(&settings.frames.T_base_imu, &identity);
    ck_assert_uint_eq(settings.frames.sensor_count, 0);
    ck_assert_int_eq(settings.frames.merge_sensors, 0);
    ck_assert_ptr_null(ndtd_extrinsics_sensor(&settings.frames, "lidar"));
    ck_assert_ptr_eq(ndtd_extrinsics_of(&settings.frames, "lidar"), &settings.frames.T_base_sensor);
}

/* One mount, yawed by 30 deg, as quaternion, angles and matrix; as list and as text. */
TEST(every_form_of_a_transform_is_read)
{
    static const char *const forms[] = {
        "[1.2, 0, 1.8, 0, 0, 0.25881904510252074, 0.9659258262890683]",
        "[1.2, 0, 1.8, 0, 0, 0.2588, 0.9659]",
        "[1.2, 0, 1.8, 0, 0, 0.52359877559829882]",
        "1.2 0 1.8 0 0 0.52359877559829882",
        "1.2, 0, 1.8,  0, 0,0.52359877559829882",
        "[0.86602540378443871, -0.5, 0, 1.2, 0.5, 0.86602540378443871, 0, 0, 0, 0, 1, 1.8, 0, 0, 0, 1]"};
    const struct ndt_pose want = {{1.2, 0, 1.8}, {0, 0, sin(M_PI / 12), cos(M_PI / 12)}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        char text[300];
        snprintf(text, sizeof(text), "frames:\n  T_base_sensor: %s\n  T_base_imu: %s\n", forms[i], forms[i]);
        setup();
        must_read(text);
        ck_assert_double_le(ndt_pose_distance_m(&settings.frames.T_base_sensor, &want), 1e-12);
        ck_assert_double_le(ndt_pose_angle_rad(&settings.frames.T_base_sensor, &want), i == 1 ? 1e-4 : 1e-7);
        assert_pose(&settings.frames.T_base_imu, &settings.frames.T_base_sensor);
    }
}

/* Roll about x first, then pitch about y, then yaw about z, all fixed axes. */
TEST(angles_are_those_of_urdf)
{
    const double roll = 0.3, pitch = -0.4, yaw = 2.5, x[3] = {0.2, -1, 0.7};
    const struct ndt_pose about_x = {{0}, {sin(roll / 2), 0, 0, cos(roll / 2)}},
                          about_y = {{0}, {0, sin(pitch / 2), 0, cos(pitch / 2)}},
                          about_z = {{0}, {0, 0, sin(yaw / 2), cos(yaw / 2)}};
    double a[3], b[3], want[3], got[3];
    ndt_pose_apply(&about_x, x, a);
    ndt_pose_apply(&about_y, a, b);
    ndt_pose_apply(&about_z, b, want);
    must_read("frames: {T_base_sensor: [0, 0, 0, 0.3, -0.4, 2.5]}\n");
    ndt_pose_apply(&settings.frames.T_base_sensor, x, got);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(got[i], want[i], 1e-14);
}

TEST(wrong_transforms_name_line_and_limit)
{
    must_refuse("frames:\n  T_base_sensor: [1, 2, 3]\n", "a.yaml:2: frames.T_base_sensor: 3 numbers, but");
    must_refuse("frames:\n  T_base_imu: []\n", "a.yaml:2: frames.T_base_imu: 0 numbers, but");
    must_refuse("frames:\n  T_base_sensor:\n", "0 numbers, but");
    must_refuse("frames:\n  T_base_sensor: [1, 2, x, 0, 0, 0]\n", "'x' is not a number");
    must_refuse("frames:\n  T_base_sensor: [1, 2, nan, 0, 0, 0]\n", "'nan' is not a number");
    must_refuse("frames:\n  T_base_sensor: [1, 2, 1e999, 0, 0, 0]\n", "'1e999' is not a number");
    must_refuse("frames:\n  T_base_sensor: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", "more than 16 numbers");
    must_refuse("frames:\n  T_base_sensor: [1, 2, 3, 0, 0, 0, 0.99]\n", "length 0.99 instead of 1 +- 0.001");
    must_refuse("frames:\n  T_base_sensor: [0, 0, 0, 0, 0, 90]\n", "yaw is 90; angles are in radians");
    must_refuse("frames:\n  T_base_sensor: [0, -1001, 0, 0, 0, 0]\n", "1001 m, at most 1000 m");
    must_refuse("frames:\n  T_base_sensor: [1,0,0,0, 0,1,0,0, 0,0,1.01,0, 0,0,0,1]\n",
                "R R^T differs from 1 by 0.02");
    must_refuse("frames:\n  T_base_sensor: [1,0,0,0, 0,1,0,0, 0,0,-1,0, 0,0,0,1]\n", "the determinant is -1");
    must_refuse("frames:\n  T_base_sensor: [1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,1,1]\n", "the last row");
    must_refuse("frames:\n  gnss_antenna_m: [1, 2]\n", "2 values, but 3 to 3");
    must_refuse("frames:\n  gnss_antenna_m: [1, 2, 1001]\n", "1001 is outside");
}

TEST(several_sensors_are_found_by_their_frame)
{
    must_read("frames:\n  T_base_sensor: [9, 0, 0, 0, 0, 0]\n  sensors:\n    - lidar/left 0 0.5 1.8 0 0 1.57\n"
              "    - right_2, 0, -0.5, 1.8, 0, 0, 0, 1\n  merge_sensors: true\n");
    ck_assert_uint_eq(settings.frames.sensor_count, 2);
    const struct ndtd_sensor_frame *left = ndtd_extrinsics_sensor(&settings.frames, "lidar/left");
    ck_assert_ptr_eq(left, &settings.frames.sensors[0]);
    ck_assert_double_eq(left->T_base_sensor.t_m[1], 0.5);
    ck_assert_double_eq(ndtd_extrinsics_of(&settings.frames, "right_2")->t_m[1], -0.5);
    ck_assert_double_eq(ndtd_extrinsics_of(&settings.frames, "right")->t_m[0], 9);
    must(ndtd_option_set_text(&settings, "frames.sensors", "[a 0 0 0 0 0 0, b 1 0 0 0 0 0]", &err));
    ck_assert_double_eq(ndtd_extrinsics_of(&settings.frames, "b")->t_m[0], 1);
    ck_assert_int_eq(ndtd_option_set_text(&settings, "frames.sensors", "[]", &err), NDT_OK);
    ck_assert_uint_eq(settings.frames.sensor_count, 0);
}

TEST(wrong_sensors_are_refused)
{
    char text[400], name[80];
    memset(name, 'n', 64);
    name[64] = '\0';
    snprintf(text, sizeof(text), "frames:\n  sensors: [%s 0 0 0 0 0 0]\n", name);
    must_refuse(text, "a.yaml:2: frames.sensors: a frame_id of 64 bytes, at most 63");
    must_refuse("frames:\n  sensors: [left 1 2 3]\n", "frames.sensors: left: 3 numbers, but");
    must_refuse("frames:\n  sensors: [1 2 3 0 0 0]\n", "does not begin with a frame_id");
    must_refuse("frames:\n  sensors: ['a:b 0 0 0 0 0 0']\n", "does not begin with a frame_id");
    must_refuse("frames:\n  sensors: ['']\n", "does not begin with a frame_id");
    must_refuse("frames:\n  sensors: [a 0 0 0 0 0 0, a 1 0 0 0 0 0]\n", "'a' appears twice");
    must_refuse("frames:\n  sensors: [a 0,a 0,a 0,a 0,a 0,a 0,a 0,a 0,a 0]\n", "9 values, but 0 to 8");
    must_refuse("frames: {merge_sensors: true}\n", "0 sensors in frames.sensors, but merging needs two");
    must_refuse("frames:\n  sensors: [a 0 0 0 0 0 0]\n  merge_sensors: true\n", "1 sensors in frames.sensors");
    must_refuse("frames:\n  sensors: [a 0 0 0 0 0 0, b 0 0 0 0 0 0]\n  merge_sensors: true\n"
                "preprocess: {deskew: azimuth_cw}\n",
                "frames.merge_sensors: preprocess.deskew is 'azimuth_cw', but merged scans");
}

TEST(printed_frames_read_back_bit_equal)
{
    char *text = NULL;
    size_t size = 0;
    must_read("frames:\n  T_base_sensor: [0.1, -2.3, 1.7, 0.1, 0.2, 0.3]\n  T_base_imu: [0, 0, 0, 0.5, 0.5, 0.5, "
              "0.5002]\n"
              "  gnss_antenna_m: [-0.3, 0, 1.9]\n  sensors: [a 0.1 0.2 0.3 1 2 3, b 0.7 0 0 -1 -2 -3]\n");
    const struct ndtd_extrinsics wanted = settings.frames;
    FILE *stream = open_memstream(&text, &size);
    ndtd_options_print_config(stream, &settings, NDTD_ALL_OPTIONS);
    fclose(stream);
    setup();
    must_read(text);
    ck_assert_mem_eq(&settings.frames, &wanted, sizeof(wanted));
    free(text);
}

TEST(a_reload_takes_sensors_but_not_the_mount)
{
    char restart[100];
    struct ndtd_settings wanted = settings;
    ck_assert_int_eq(ndtd_option_set_text(&wanted, "frames.T_base_sensor", "1 0 0 0 0 0", &err), NDT_OK);
    ck_assert_int_eq(ndtd_option_set_text(&wanted, "frames.sensors", "a 1 0 0 0 0 0, b 2 0 0 0 0 0", &err), NDT_OK);
    ck_assert_int_eq(ndtd_option_set_text(&wanted, "frames.merge_sensors", "true", &err), NDT_OK);
    ndtd_settings_merge(&settings, &wanted, restart, sizeof(restart));
    ck_assert_str_eq(restart, "frames.T_base_sensor");
    ck_assert_double_eq(settings.frames.T_base_sensor.t_m[0], 0);
    ck_assert_mem_eq(settings.frames.sensors, wanted.frames.sensors, sizeof(wanted.frames.sensors));
    ck_assert_uint_eq(settings.frames.sensor_count, 2);
    ck_assert_int_eq(settings.frames.merge_sensors, 1);
}
