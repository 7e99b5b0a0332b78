/* Maps in UTM through files: PCD of doubles and text, and a compiled map, localise as the map at zero does. */
#include <stdlib.h>

#include "ndt_io/cloud_file.h"
#include "ndt_io/compiled_map.h"
#include "ndt_io/map_file.h"
#include "ndtd/pipeline.h"
#include "run_tests.h"
#include "street_drive.h"
#include "temp_dir.h"

enum { SCANS = 6 };
/* Origin of the drive: on the corners of the cells, and anywhere. */
static const double even_m[3] = {409600, 5324800, 0}, odd_m[3] = {412345.678, 5401234.567, 123.4};

static void set_up(void)
{
    temp_dir_make();
    street_drive_make();
}

static void tear_down(void)
{
    street_drive_free();
    temp_dir_remove();
}

static void move(struct ndt_cloud *cloud, const double by_m[3])
{
    for (int i = 0; i < 3; i++)
        cloud->origin_m[i] += by_m[i];
}

static struct ndt_map *load(const char *path)
{
    struct ndt_map *map;
    must(ndt_map_load(&map, path, &drive.settings.map, &err));
    return map;
}

/* The poses of the drive in this map, relative to its zero. */
static void localize(struct ndt_map *map, const double zero_m[3], struct ndt_pose *poses)
{
    struct ndtd_pipeline *pipeline;
    struct ndtd_scan_record record;
    struct ndt_pose_message start;
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), map, 0, &err));
    must(ndt_pose_message_decode(drive.start.data, drive.start.size, NDT_MESSAGE_INITIAL_POSE, &start, &err));
    for (int i = 0; i < 3; i++)
        start.pose.t_m[i] += zero_m[i];
    ndtd_pipeline_set_initial_pose(pipeline, &start);
    for (size_t i = 0; i < SCANS; i++) {
        struct ndtd_message frame = {
            .type = NDT_MESSAGE_SCAN, .data = drive.scans[i].data, .size = drive.scans[i].size};
        must(ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err));
        must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
        ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
        poses[i] = record.result.T_map_sensor;
        for (int axis = 0; axis < 3; axis++)
            poses[i].t_m[axis] -= zero_m[axis];
    }
    ndtd_pipeline_destroy(pipeline);
    ndt_map_release(map);
}

static void check_near(const struct ndt_pose *a, const struct ndt_pose *b, double limit_m)
{
    for (size_t i = 0; i < SCANS; i++) {
        ck_assert_double_le(ndt_pose_distance_m(&a[i], &b[i]), limit_m);
        ck_assert_double_le(ndt_pose_angle_rad(&a[i], &b[i]), limit_m);
    }
}

FIXTURE(set_up, tear_down)

TEST_EACH(files_keep_the_digits, 0, 3)
{
    static const enum ndt_pcd_data kinds[] = {NDT_PCD_BINARY, NDT_PCD_COMPRESSED, NDT_PCD_ASCII};
    struct ndt_pose here[SCANS], there[SCANS], compiled[SCANS];
    ndt_map_retain(drive.map);
    localize(drive.map, (const double[3]){0, 0, 0}, here);
    check_near(here, drive.truth, 0.05);
    move(&drive.map_points, even_m);
    must(ndt_pcd_write(&drive.map_points, temp_path("utm.pcd"), kinds[_i], &err));
    struct ndt_map *map = load(temp_path("utm.pcd"));
    ck_assert_double_lt(map->spacing_m, 1e-3);
    must(ndt_map_save(map, temp_path("utm.ndtmap"), &err));
    localize(map, even_m, there);
    check_near(there, here, 1e-4); /* the same cells: what is left is the rounding of the text */
    localize(load(temp_path("utm.ndtmap")), even_m, compiled);
    ck_assert_mem_eq(compiled, there, sizeof(there));
}

/* Other cells, and the same precision. */
TEST(anywhere)
{
    struct ndt_pose there[SCANS];
    move(&drive.map_points, odd_m);
    must(ndt_pcd_write(&drive.map_points, temp_path("utm.pcd"), NDT_PCD_BINARY, &err));
    localize(load(temp_path("utm.pcd")), odd_m, there);
    check_near(there, drive.truth, 0.05);
}
