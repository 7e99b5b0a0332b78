/* A short drive along a synthetic street, as encoded frames, with its map and settings; input for tests of the
 * daemon. street_drive_make and street_drive_free as a checked fixture. */
#ifndef STREET_DRIVE_H
#define STREET_DRIVE_H

#include <stdint.h>
#include <string.h>

#include "ndt_proto/message.h"
#include "ndtd/pipeline.h"
#include "ndtd/settings_snapshot.h"
#include "run_tests.h"
#include "street_world.h"

enum { DRIVE_SCANS = 12, DRIVE_START_NS = 1000000000, DRIVE_STEP_NS = 100000000 };

struct street_drive {
    struct ndtd_settings settings;
    const struct ndtd_settings_snapshot *snapshot; /* the last of street_drive_snapshot */
    struct ndt_map *map;
    struct ndt_cloud map_points;
    struct ndt_buffer start, scans[DRIVE_SCANS];
    struct ndt_pose truth[DRIVE_SCANS];
};

static struct street_drive drive;
static struct ndt_error err;

static struct ndt_pose street_drive_pose(size_t i)
{
    const struct ndt_twist twist = {{8, 0, 0}, {0, 0, 0.05}};
    const struct ndt_pose first = {.t_m = {30, 0.3, 1.8}, .q_xyzw = {0, 0, 0, 1}};
    const struct ndt_pose step = ndt_pose_exp(&twist, 0.1 * (double)i);
    return ndt_pose_compose(&first, &step);
}

__attribute__((unused)) static void street_drive_make(void)
{
    const struct world world = {WORLD_STREET, 5, 120, 0.02};
    struct ndt_cloud cloud;
    memset(&drive, 0, sizeof(drive));
    ndtd_settings_default(&drive.settings);
    must(ndtd_option_set_text(&drive.settings, "cpu.threads", "1", &err));
    must(ndtd_settings_finish(&drive.settings, &err));
    ndt_cloud_init(&cloud);
    ndt_cloud_init(&drive.map_points);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        const struct ndt_scan_message message = {
            .seq = i, .stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)i, .frame_id = "lidar"};
        drive.truth[i] = street_drive_pose(i);
        must(world_scan(&cloud, &world, 100 + i, 6000, &drive.truth[i], 40, &err));
        must(ndt_scan_encode(&drive.scans[i], &message, &cloud, &err));
    }
    ndt_cloud_free(&cloud);
    const struct ndt_pose_message initial = {.stamp_ns = DRIVE_START_NS,
                                             .frame_id = "map",
                                             .has_pose = 1,
                                             .pose = drive.truth[0],
                                             .has_twist = 1,
                                             .twist = {{8, 0, 0}, {0, 0, 0.05}}};
    must(ndt_pose_message_encode(&drive.start, NDT_MESSAGE_INITIAL_POSE, &initial, &err));
    must(world_map(&drive.map_points, &world, 120000, (double[3]){0, 0, 0}, &err));
    must(ndt_map_from_cloud(&drive.map, &drive.settings.map, &drive.map_points, &err));
}

__attribute__((unused)) static void street_drive_free(void)
{
    for (size_t i = 0; i < DRIVE_SCANS; i++)
        ndt_buffer_free(&drive.scans[i]);
    ndt_buffer_free(&drive.start);
    ndt_cloud_free(&drive.map_points);
    ndt_map_release(drive.map);
    ndtd_settings_snapshot_release(drive.snapshot);
}

__attribute__((unused)) static void street_drive_set(const char *option, const char *text)
{
    must(ndtd_option_set_text(&drive.settings, option, text, &err));
    must(ndtd_settings_finish(&drive.settings, &err));
}

/* A snapshot of drive.settings; borrowed until the next call. */
__attribute__((unused)) static const struct ndtd_settings_snapshot *street_drive_snapshot(void)
{
    ndtd_settings_snapshot_release(drive.snapshot);
    must(ndtd_settings_snapshot_create(&drive.snapshot, &drive.settings, &err));
    return drive.snapshot;
}

__attribute__((unused)) static struct ndtd_pipeline *street_drive_pipeline(struct ndt_map *map)
{
    struct ndtd_pipeline *pipeline;
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), map, 0, &err));
    return pipeline;
}

/* An encoded message as a received frame, with the header of a scan decoded. */
__attribute__((unused)) static struct ndtd_message street_drive_frame(enum ndt_message_type type,
                                                                      const struct ndt_buffer *encoded)
{
    struct ndtd_message frame = {.type = type, .data = encoded->data, .size = encoded->size};
    if (type == NDT_MESSAGE_SCAN)
        must(ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err));
    return frame;
}

/* Processes an encoded message. */
__attribute__((unused)) static struct ndtd_scan_record
street_drive_feed(struct ndtd_pipeline *pipeline, enum ndt_message_type type, const struct ndt_buffer *encoded)
{
    struct ndtd_scan_record record;
    struct ndtd_message frame = street_drive_frame(type, encoded);
    must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
    return record;
}

#endif
