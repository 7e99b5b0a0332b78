/* Messages `transform`: what they tell counts where the configuration is silent, from the next scan on. */
#include <stdlib.h>

#include "ndtd/pipeline.h"
#include "ndtd/transforms.h"
#include "run_tests.h"
#include "street_drive.h"

static struct ndtd_transforms transforms;
static struct ndtd_extrinsics frames;
static const struct ndt_pose mount = {{0.4, -0.2, 0.1}, {0, 0, 0.05, 0.9987492177719089}};
static const struct ndt_pose other = {{-0.3, 0.2, 0}, {0, 0, 0, 1}};

static void setup(void)
{
    memset(&transforms, 0, sizeof(transforms));
    ndtd_settings_default(&drive.settings);
    frames = drive.settings.frames;
}

static enum ndt_status put(const char *frame_id, const struct ndt_pose *pose)
{
    struct ndt_pose_message message = {.stamp_ns = 5, .has_pose = 1, .pose = *pose};
    strcpy(message.frame_id, frame_id);
    return ndtd_transforms_put(&transforms, &message, &err);
}

FIXTURE(setup, NULL)

TEST(they_count_where_nothing_is_configured)
{
    must(put("lidar", &mount));
    must(put("imu", &other));
    ck_assert_mem_eq(ndtd_transforms_sensor(&transforms, &frames, "lidar"), &mount, sizeof(mount));
    ck_assert_mem_eq(ndtd_transforms_imu(&transforms, &frames, "imu"), &other, sizeof(other));
    ck_assert_mem_eq(ndtd_transforms_antenna(&transforms, &frames, "lidar"), mount.t_m, sizeof(mount.t_m));
    ck_assert_ptr_eq(ndtd_transforms_sensor(&transforms, &frames, "camera"), &frames.T_base_sensor);
    ck_assert_ptr_eq(ndtd_transforms_antenna(&transforms, &frames, NULL), frames.gnss_antenna_m);
    must(put("lidar", &mount)); /* repeated */
    ck_assert_uint_eq(transforms.events.changed, 0);
    must(put("lidar", &other));
    ck_assert_uint_eq(transforms.events.changed, 1);
    ck_assert_str_eq(transforms.events.changed_frame, "lidar");
    ck_assert_mem_eq(ndtd_transforms_sensor(&transforms, &frames, "lidar"), &other, sizeof(other));
    ck_assert_uint_eq(transforms.count, 2);
    ck_assert_uint_eq(transforms.events.unused, 0);
}

TEST(the_configuration_wins_and_says_so_once)
{
    must(put("left", &mount));
    must(put("right", &mount));
    must(put("imu", &mount));
    must(put("gnss", &mount));
    frames.sensor_count = 1;
    frames.sensors[0] = (struct ndtd_sensor_frame){"left", ndt_pose_identity()};
    frames.T_base_imu = other;
    frames.gnss_antenna_m[2] = 1.5;
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_eq(ndtd_transforms_sensor(&transforms, &frames, "left"), &frames.sensors[0].T_base_sensor);
        ck_assert_str_eq(transforms.events.unused_frame, "left");
        ck_assert_str_eq(transforms.events.unused_option, "frames.sensors");
        ck_assert_uint_eq(transforms.events.unused, 1);
    }
    ck_assert_mem_eq(ndtd_transforms_sensor(&transforms, &frames, "right"), &mount, sizeof(mount));
    frames.T_base_sensor = other;
    ck_assert_ptr_eq(ndtd_transforms_sensor(&transforms, &frames, "right"), &frames.T_base_sensor);
    ck_assert_str_eq(transforms.events.unused_option, "frames.T_base_sensor");
    ck_assert_ptr_eq(ndtd_transforms_imu(&transforms, &frames, "imu"), &frames.T_base_imu);
    ck_assert_str_eq(transforms.events.unused_option, "frames.T_base_imu");
    ck_assert_ptr_eq(ndtd_transforms_antenna(&transforms, &frames, "gnss"), frames.gnss_antenna_m);
    ck_assert_str_eq(transforms.events.unused_option, "frames.gnss_antenna_m");
    ck_assert_uint_eq(transforms.events.unused, 4);
}

/* The same pose in both is no contradiction. */
TEST(an_equal_configuration_is_not_told)
{
    frames.T_base_sensor = mount;
    frames.T_base_sensor.t_m[0] += 1e-4;
    must(put("lidar", &mount));
    ck_assert_ptr_eq(ndtd_transforms_sensor(&transforms, &frames, "lidar"), &frames.T_base_sensor);
    ck_assert_uint_eq(transforms.events.unused, 0);
}

TEST(their_number_and_size_are_limited)
{
    char name[16];
    struct ndt_pose far = mount;
    for (int i = 0; i < NDTD_TRANSFORMS_MAX; i++) {
        snprintf(name, sizeof(name), "frame_%d", i);
        must(put(name, &mount));
    }
    ck_assert_int_eq(put("one_more", &mount), NDT_ERR_LIMIT);
    ck_assert_str_eq(err.text, "transform of 'one_more': 32 frames have one already, the limit");
    must(put("frame_31", &other)); /* the known ones still change */
    far.t_m[1] = 1000.5;
    ck_assert_int_eq(put("frame_0", &far), NDT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "at most 1000 m"));
    ck_assert_uint_eq(transforms.count, NDTD_TRANSFORMS_MAX);
    ck_assert_str_eq(transforms.frames[0].frame_id, "frame_0");
    ck_assert_mem_eq(&transforms.frames[0].T_base_sensor, &mount, sizeof(mount));
}

/* ---- in the pipeline ---- */

static enum ndt_status send_transform(struct ndtd_pipeline *pipeline, const struct ndt_pose *pose)
{
    const struct ndt_pose_message message = {.frame_id = "lidar", .has_pose = 1, .pose = *pose};
    struct ndtd_scan_record record;
    struct ndt_buffer encoded;
    ndt_buffer_init(&encoded);
    must(ndt_pose_message_encode(&encoded, NDT_MESSAGE_TRANSFORM, &message, &err));
    const struct ndtd_message frame = street_drive_frame(NDT_MESSAGE_TRANSFORM, &encoded);
    const enum ndt_status status = ndtd_pipeline_process(pipeline, &frame, &record, &err);
    ndt_buffer_free(&encoded);
    return status;
}

/* The poses of the first `count` scans; told[i], unless NULL, is sent before scan i. */
static void run(struct ndt_pose *poses, size_t count, const struct ndt_pose *const *told,
                struct ndtd_transform_events *events)
{
    struct ndtd_pipeline *pipeline;
    struct ndtd_scan_record record;
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    const struct ndtd_message start = street_drive_frame(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    must(ndtd_pipeline_process(pipeline, &start, &record, &err));
    for (size_t i = 0; i < count; i++) {
        const struct ndtd_message scan = street_drive_frame(NDT_MESSAGE_SCAN, &drive.scans[i]);
        if (told && told[i])
            must(send_transform(pipeline, told[i]));
        must(ndtd_pipeline_process(pipeline, &scan, &record, &err));
        poses[i] = record.result.T_map_sensor;
    }
    if (events)
        *events = ndtd_pipeline_events(pipeline)->transforms;
    ndtd_pipeline_destroy(pipeline);
}

FIXTURE(street_drive_make, street_drive_free)

TEST(a_message_gives_the_bits_of_the_option)
{
    const struct ndt_pose *const told[3] = {&mount, NULL, &mount};
    struct ndt_pose silent[3], by_message[3], by_option[3], by_both[3];
    struct ndtd_transform_events events;
    run(silent, 3, NULL, NULL);
    run(by_message, 3, told, &events);
    ck_assert_uint_eq(events.changed + events.unused, 0);
    drive.settings.frames.T_base_sensor = mount;
    run(by_option, 3, NULL, NULL);
    ck_assert_mem_eq(by_message, by_option, sizeof(by_option));
    ck_assert_double_gt(ndt_pose_distance_m(&silent[2], &by_message[2]), 0.1);
    const struct ndt_pose *const overruled[3] = {&other, NULL, NULL};
    run(by_both, 3, overruled, &events);
    ck_assert_mem_eq(by_both, by_option, sizeof(by_option));
    ck_assert_uint_eq(events.unused, 1);
}

/* The pose of the sensor in the map stays what the scans say; that of the base moves with the transform. */
TEST(a_change_counts_from_the_next_scan)
{
    const struct ndt_pose small = {{0.1, 0, 0}, {0, 0, 0, 1}}, none = {{0, 0, 0}, {0, 0, 0, 1}};
    const struct ndt_pose *const constant[4] = {&none}, *const changes[4] = {&none, NULL, &small, NULL};
    struct ndt_pose before[4], after[4];
    struct ndtd_transform_events events;
    run(before, 4, constant, &events);
    ck_assert_uint_eq(events.changed, 0);
    run(after, 4, changes, &events);
    ck_assert_uint_eq(events.changed, 1);
    ck_assert_mem_eq(before, after, 2 * sizeof(before[0]));
    ck_assert_double_gt(ndt_pose_distance_m(&before[2], &after[2]), 0.03);
}

TEST(a_refused_one_changes_nothing)
{
    struct ndtd_pipeline *pipeline;
    const struct ndt_pose far = {{2000, 0, 0}, {0, 0, 0, 1}};
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    ck_assert_int_eq(send_transform(pipeline, &far), NDT_ERR_LIMIT);
    ck_assert_ptr_null(strchr(err.text, '\n'));
    ndtd_pipeline_destroy(pipeline);
}
