/* Tests of the data of a scan for viewers: its points lie on the map with the pose of the result, and the poses
 * that were tried. */
#include "allocation_counter.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "ndtd/options.h"
#include "ndtd/pipeline.h"
#include "run_tests.h"
#include "street_drive.h"

static const struct ndt_twist motion = {{8, 0, 0}, {0, 0, 0.05}};
static const struct ndt_pose T_base_sensor = {.t_m = {1, 0.2, 0.3}, .q_xyzw = {0, 0, 0.6, 0.8}};
static struct ndtd_pipeline *pipeline;
static struct ndt_points_message message;
static struct ndt_cloud points, sent;
static struct ndt_buffer encoded;

static void set(const char *name, const char *text)
{
    must(ndtd_option_set_text(&drive.settings, name, text, &err));
}

static void open_pipeline(void)
{
    must(ndtd_settings_finish(&drive.settings, &err));
    pipeline = street_drive_pipeline(drive.map);
    ndtd_pipeline_watch(pipeline, 1);
}

static void close_pipeline(void)
{
    ndtd_pipeline_destroy(pipeline);
    pipeline = NULL;
}

static void setup(void)
{
    street_drive_make();
    ndt_cloud_init(&points);
    ndt_cloud_init(&sent);
    ndt_buffer_init(&encoded);
    set("initial_pose.pose", "[]");
}

static void teardown(void)
{
    close_pipeline();
    ndt_cloud_free(&points);
    ndt_cloud_free(&sent);
    ndt_buffer_free(&encoded);
    street_drive_free();
}

static enum ndt_status feed(enum ndt_message_type type, const struct ndt_buffer *from,
                            struct ndtd_scan_record *record)
{
    struct ndtd_message frame = {.type = type, .data = from->data, .size = from->size};
    if (type == NDT_MESSAGE_SCAN)
        must(ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err));
    return ndtd_pipeline_process(pipeline, &frame, record, &err);
}

static enum ndt_status view(size_t most)
{
    return ndtd_pipeline_points(pipeline, most, &message, &points, &err);
}

static struct ndt_pose pose_at(size_t scan, double after_s)
{
    const struct ndt_pose moved = ndt_pose_exp(&motion, after_s);
    return ndt_pose_compose(&drive.truth[scan], &moved);
}

/* Points of the map, as a moving and turned sensor measures them in 0.1 s after the stamp; the intensity is the
 * number of the point in the map. */
static void measure(size_t scan, const char *frame_id)
{
    const struct ndt_scan_message header = {.seq = scan,
                                            .stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)scan};
    struct ndt_scan_message named = header;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&T_base_sensor);
    const struct ndt_cloud *map = &drive.map_points;
    strcpy(named.frame_id, frame_id);
    must(ndt_cloud_reserve(&sent, map->count, NDT_CLOUD_INTENSITY | NDT_CLOUD_TIME, &err));
    sent.count = 0;
    for (size_t i = 0; i < map->count; i += 3) {
        const double time_s = 0.1 * (double)i / (double)map->count;
        const struct ndt_pose T_map_base = pose_at(scan, time_s), T_base_map = ndt_pose_inverse(&T_map_base);
        const double at_m[3] = {(double)map->x_m[i] + map->origin_m[0], (double)map->y_m[i] + map->origin_m[1],
                                (double)map->z_m[i] + map->origin_m[2]};
        double of_base_m[3], of_sensor_m[3];
        ndt_pose_apply(&T_base_map, at_m, of_base_m);
        if (hypot(of_base_m[0], of_base_m[1]) > 40)
            continue;
        ndt_pose_apply(&T_sensor_base, of_base_m, of_sensor_m);
        sent.x_m[sent.count] = (float)of_sensor_m[0];
        sent.y_m[sent.count] = (float)of_sensor_m[1];
        sent.z_m[sent.count] = (float)of_sensor_m[2];
        sent.intensity[sent.count] = (float)i;
        sent.time_s[sent.count++] = (float)time_s;
    }
    must(ndt_scan_encode(&encoded, &named, &sent, &err));
}

/* The largest distance of a point from the one of the map that was measured. */
static double largest_error_m(const struct ndt_pose *T_map_base)
{
    const struct ndt_cloud *map = &drive.map_points;
    double largest_m = 0;
    for (size_t k = 0; k < points.count; k++) {
        const size_t i = (size_t)points.intensity[k];
        const double of_base_m[3] = {(double)points.x_m[k], (double)points.y_m[k], (double)points.z_m[k]};
        double at_m[3];
        ndt_pose_apply(T_map_base, of_base_m, at_m);
        largest_m = fmax(largest_m, hypot(hypot(at_m[0] - (double)map->x_m[i] - map->origin_m[0],
                                                at_m[1] - (double)map->y_m[i] - map->origin_m[1]),
                                          at_m[2] - (double)map->z_m[i] - map->origin_m[2]));
    }
    return largest_m;
}

static void use_moving_sensor(void)
{
    set("preprocess.deskew", "time");
    set("frames.T_base_sensor", "[1, 0.2, 0.3, 0, 0, 0.6, 0.8]");
}

FIXTURE(setup, teardown)

TEST(points_lie_on_the_map)
{
    struct ndtd_scan_record record;
    use_moving_sensor();
    open_pipeline();
    must(feed(NDT_MESSAGE_INITIAL_POSE, &drive.start, &record));
    for (size_t scan = 0; scan < 4; scan++) {
        measure(scan, "lidar");
        must(feed(NDT_MESSAGE_SCAN, &encoded, &record));
        ck_assert_msg(record.result.outcome == NDT_CONVERGED, "%s", record.result.reason);
        must(view(1000000));
        ck_assert_uint_eq(points.count, sent.count);
        ck_assert(message.seq == record.seq && message.stamp_ns == record.stamp_ns);
        ck_assert_str_eq(message.frame_id, "base");
        ck_assert_double_lt(largest_error_m(&record.result.T_map_sensor), 0.25);
        ck_assert_uint_eq(message.iteration_count, record.trace_count);
        ck_assert_double_eq(message.iterations[0].score, record.trace[0].score);
        must(ndt_points_encode(&encoded, &message, &points, &err));
    }
    /* What was moved: with the motion left in, or with the pose of another moment, they lie elsewhere. */
    const struct ndt_pose later = pose_at(3, 0.1);
    ck_assert_double_gt(largest_error_m(&later), 0.5);
    close_pipeline();
    set("preprocess.deskew", "off");
    open_pipeline();
    must(feed(NDT_MESSAGE_INITIAL_POSE, &drive.start, &record));
    measure(0, "lidar");
    must(feed(NDT_MESSAGE_SCAN, &encoded, &record));
    must(view(1000000));
    ck_assert_double_gt(largest_error_m(&record.result.T_map_sensor), 0.3);
}

TEST(every_odd_kth_point)
{
    static const size_t most[] = {1, 100, 999, 5999, 6000};
    struct ndtd_scan_record record;
    set("recovery.enable", "false");
    open_pipeline();
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[0], &record)); /* without any pose */
    ck_assert_int_eq(record.result.outcome, NDT_NO_GUESS);
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        must(view(most[i]));
        const size_t every = ((6000 + most[i] - 1) / most[i]) | 1;
        ck_assert_uint_eq(points.count, (6000 + every - 1) / every);
        ck_assert_uint_le(points.count, most[i]);
    }
    /* points as measured: the sensor is the base */
    struct ndt_scan_message header;
    must(ndt_scan_decode(drive.scans[0].data, drive.scans[0].size, &header, &sent, &err));
    must(view(6000));
    ck_assert_mem_eq(points.x_m, sent.x_m, points.count * sizeof(float));
    ck_assert_mem_eq(points.z_m, sent.z_m, points.count * sizeof(float));
    ck_assert_ptr_null(points.intensity);
    ck_assert_ptr_null(points.time_s);
}

TEST(what_is_no_return_is_left_out)
{
    struct ndtd_scan_record record;
    struct ndt_scan_message header;
    open_pipeline();
    must(ndt_scan_decode(drive.scans[0].data, drive.scans[0].size, &header, &sent, &err));
    sent.x_m[1] = NAN;
    sent.z_m[2] = INFINITY;
    sent.x_m[3] = sent.y_m[3] = sent.z_m[3] = 0;
    sent.y_m[4] = 2e5f;
    must(ndt_scan_encode(&encoded, &header, &sent, &err));
    must(feed(NDT_MESSAGE_SCAN, &encoded, &record));
    must(view(6000));
    ck_assert_uint_eq(points.count, 5996);
    ck_assert_float_eq(points.x_m[0], sent.x_m[0]);
    ck_assert_float_eq(points.x_m[1], sent.x_m[5]);
    sent.count = 0;
    header.stamp_ns += DRIVE_STEP_NS;
    must(ndt_scan_encode(&encoded, &header, &sent, &err));
    must(feed(NDT_MESSAGE_SCAN, &encoded, &record));
    must(view(6000));
    ck_assert_uint_eq(points.count, 0);
}

/* The points stay where they were measured if their times are missing or of another day. */
TEST(scans_without_the_times_they_need)
{
    struct ndtd_scan_record record;
    set("preprocess.deskew", "time");
    open_pipeline();
    must(feed(NDT_MESSAGE_INITIAL_POSE, &drive.start, &record));
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[0], &record));
    ck_assert_int_eq(record.result.outcome, NDT_REJECTED);
    must(view(6000));
    ck_assert_uint_eq(points.count, 6000);
}

TEST(scans_without_points_to_show)
{
    struct ndtd_scan_record record;
    open_pipeline();
    ck_assert_int_eq(view(100), NDT_END); /* before the first */
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[0], &record));
    must(view(100));
    must(feed(NDT_MESSAGE_INITIAL_POSE, &drive.start, &record));
    ck_assert_int_eq(view(100), NDT_END); /* that was no scan */
    ndtd_pipeline_watch(pipeline, 0);
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[1], &record));
    ck_assert_int_eq(view(100), NDT_END);
    ndtd_pipeline_watch(pipeline, 1);
    ck_assert_int_eq(view(100), NDT_END); /* that scan was not watched */
    ndtd_pipeline_set_active(pipeline, 0);
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[2], &record));
    ck_assert_int_eq(record.result.outcome, NDT_REJECTED);
    ck_assert_int_eq(view(100), NDT_END);
    ndtd_pipeline_set_active(pipeline, 1);
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[3], &record));
    must(view(100));
}

TEST(scans_of_several_sensors_are_one)
{
    struct ndtd_scan_record record;
    struct ndt_scan_message header;
    set("frames.sensors", "left 0 0 0 0 0 0, right 0 0 0 0 0 3.141592653589793");
    set("frames.merge_sensors", "true");
    open_pipeline();
    must(feed(NDT_MESSAGE_INITIAL_POSE, &drive.start, &record));
    must(ndt_scan_decode(drive.scans[0].data, drive.scans[0].size, &header, &sent, &err));
    strcpy(header.frame_id, "left");
    must(ndt_scan_encode(&encoded, &header, &sent, &err));
    must(feed(NDT_MESSAGE_SCAN, &encoded, &record));
    ck_assert_int_eq(record.result.outcome, NDT_MERGED);
    ck_assert_int_eq(view(100000), NDT_END);
    strcpy(header.frame_id, "right");
    header.seq = 77;
    must(ndt_scan_encode(&encoded, &header, &sent, &err));
    must(feed(NDT_MESSAGE_SCAN, &encoded, &record));
    must(view(100000));
    ck_assert_uint_eq(points.count, 2 * sent.count);
    ck_assert_uint_eq(message.seq, 77);
    ck_assert_float_eq_tol(points.x_m[0] + points.x_m[sent.count], 0, 1e-3f);
}

/* Aligned from guesses, because the initial pose is wrong: other places that were found are candidates. */
TEST(what_was_tried_is_told)
{
    struct ndtd_scan_record record;
    size_t candidates = 0;
    struct ndt_pose_message wrong = {.stamp_ns = DRIVE_START_NS, .frame_id = "map", .has_pose = 1};
    wrong.pose = drive.truth[0];
    wrong.pose.t_m[0] += 6;
    wrong.pose.t_m[1] += 2.5;
    open_pipeline();
    must(ndt_pose_message_encode(&encoded, NDT_MESSAGE_INITIAL_POSE, &wrong, &err));
    must(feed(NDT_MESSAGE_INITIAL_POSE, &encoded, &record));
    for (size_t scan = 0; scan < 3; scan++) {
        must(feed(NDT_MESSAGE_SCAN, &drive.scans[scan], &record));
        must(view(100));
        candidates += message.candidate_count;
        for (size_t i = 0; i < message.candidate_count; i++) {
            const struct ndt_points_candidate *candidate = &message.candidates[i];
            ck_assert(ndt_pose_is_finite(&candidate->T_map_base));
            ck_assert(isnan(candidate->confidence) == (candidate->kind == NDT_CANDIDATE_HYPOTHESIS));
            const double away_m = ndt_pose_distance_m(&candidate->T_map_base, &record.result.T_map_sensor),
                         away_rad = ndt_pose_angle_rad(&candidate->T_map_base, &record.result.T_map_sensor);
            ck_assert(away_m > 0.1 || away_rad > 0.01); /* another one than the result */
        }
        must(ndt_points_encode(&encoded, &message, &points, &err));
    }
    ck_assert_uint_gt(candidates, 0);
}

TEST(gnss_of_the_last_second)
{
    struct ndtd_scan_record record;
    struct ndt_gnss_message gnss = {
        .stamp_ns = DRIVE_START_NS - 950000000, .frame_id = "map", .position_m = {31, 1, 2}};
    open_pipeline();
    must(ndt_gnss_encode(&encoded, &gnss, &err));
    must(feed(NDT_MESSAGE_GNSS, &encoded, &record));
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[0], &record));
    must(view(100));
    ck_assert(message.has_gnss && !message.has_gnss_deviation && message.gnss_position_m[0] == 31);
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[1], &record));
    must(view(100));
    ck_assert(!message.has_gnss);
    gnss.has_deviation = 1;
    gnss.deviation_m[0] = gnss.deviation_m[1] = gnss.deviation_m[2] = 3;
    gnss.stamp_ns = DRIVE_START_NS;
    must(ndt_gnss_encode(&encoded, &gnss, &err));
    must(feed(NDT_MESSAGE_GNSS, &encoded, &record));
    must(feed(NDT_MESSAGE_SCAN, &drive.scans[2], &record));
    must(view(100));
    ck_assert(message.has_gnss && message.has_gnss_deviation && message.gnss_deviation_m[2] == 3);
}

/* All of the drive; the points are asked for if the pipeline is watched. */
static void run_drive(int is_watched, struct ndt_align_result results[DRIVE_SCANS])
{
    struct ndtd_scan_record record;
    open_pipeline();
    ndtd_pipeline_watch(pipeline, is_watched);
    must(feed(NDT_MESSAGE_INITIAL_POSE, &drive.start, &record));
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        struct ndtd_message frame = {
            .type = NDT_MESSAGE_SCAN, .data = drive.scans[i].data, .size = drive.scans[i].size};
        must(ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err));
        const unsigned long before = allocations; /* Check's own macros allocate: none of them in between */
        enum ndt_status status = ndtd_pipeline_process(pipeline, &frame, &record, &err);
        if (status == NDT_OK && is_watched)
            status = view(2000);
        const unsigned long after = allocations;
        must(status);
        if (COUNTS_ALLOCATIONS && i > DRIVE_SCANS / 2)
            ck_assert_uint_eq(after, before);
        results[i] = record.result;
    }
    close_pipeline();
}

TEST(watching_changes_no_result_and_allocates_nothing)
{
    static struct ndt_align_result alone[DRIVE_SCANS], watched[DRIVE_SCANS];
    run_drive(0, alone);
    run_drive(1, watched);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        ck_assert_mem_eq(&alone[i].T_map_sensor, &watched[i].T_map_sensor, sizeof(alone[i].T_map_sensor));
        ck_assert_mem_eq(alone[i].covariance, watched[i].covariance, sizeof(alone[i].covariance));
        ck_assert_int_eq(alone[i].outcome, watched[i].outcome);
    }
}
