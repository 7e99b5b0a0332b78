/* Scans that wait together against one after the other: equal bits where the guess is the same, equal to a
 * centimetre elsewhere, and one after the other where something came between. */
#include <check.h>
#include <stdlib.h>

#include "allocation_counter.h"
#include "ndtd/autotune.h"
#include "ndtd/pipeline.h"
#include "run_tests.h"
#include "street_drive.h"

enum { LEAD = 4, GROUP = 3, MOST_FRAMES = 40 };

static struct ndtd_message queue[MOST_FRAMES], *waiting[MOST_FRAMES];
static struct ndt_buffer odometry[MOST_FRAMES];
static size_t queued, odometry_count;

static void setup(void)
{
    street_drive_make();
    must(ndtd_option_set_text(&drive.settings, "cpu.threads", "2", &err));
    must(ndtd_option_set_text(&drive.settings, "batch.together", "true", &err));
    must(ndtd_settings_finish(&drive.settings, &err));
}

static void teardown(void)
{
    for (size_t i = 0; i < odometry_count; i++)
        ndt_buffer_free(&odometry[i]);
    odometry_count = queued = 0;
    street_drive_free();
}

static void enqueue(enum ndt_message_type type, const struct ndt_buffer *encoded)
{
    struct ndtd_message *frame = waiting[queued] = &queue[queued];
    *frame = (struct ndtd_message){.type = type, .data = encoded->data, .size = encoded->size};
    if (type == NDT_MESSAGE_SCAN)
        must(ndt_scan_header_decode(frame->data, frame->size, &frame->scan, &err));
    queued++;
}

static void enqueue_scans(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        enqueue(NDT_MESSAGE_SCAN, &drive.scans[i]);
}

/* Odometry poses every 20 ms, of the true motion. */
static void enqueue_odometry(size_t scan)
{
    for (int i = 0; i < 5; i++) {
        const struct ndt_pose_message message = {.stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)scan +
                                                             i * (DRIVE_STEP_NS / 5),
                                                 .frame_id = "odom",
                                                 .has_twist = 1,
                                                 .twist = {{8, 0, 0}, {0, 0, 0.05}}};
        must(ndt_pose_message_encode(&odometry[odometry_count], NDT_MESSAGE_ODOMETRY, &message, &err));
        enqueue(NDT_MESSAGE_ODOMETRY, &odometry[odometry_count++]);
    }
}

/* Processes frames first to queued - 1; their scans' records go to out. Returns their number. */
static size_t process(struct ndtd_pipeline *pipeline, size_t first, struct ndtd_scan_record *out)
{
    size_t scans = 0;
    for (size_t i = first; i < queued; i++) {
        struct ndtd_scan_record record;
        must(ndtd_pipeline_process(pipeline, &queue[i], &record, &err));
        if (queue[i].type == NDT_MESSAGE_SCAN)
            out[scans++] = record;
    }
    return scans;
}

/* The way up to the stall, one scan after the other. */
static struct ndtd_pipeline *lead_in(void)
{
    struct ndtd_scan_record records[LEAD];
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    queued = 0;
    enqueue(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    enqueue_scans(0, LEAD);
    process(pipeline, 0, records);
    queued = 0;
    return pipeline;
}

static int is_ahead(const struct ndtd_scan_record *record)
{
    return record->is_ahead;
}

static int same_record(const struct ndtd_scan_record *a, const struct ndtd_scan_record *b)
{
    struct ndt_align_result x = a->result, y = b->result;
    x.align_us = y.align_us = x.upload_us = y.upload_us = 0;
    return memcmp(&x, &y, sizeof(x)) == 0 && memcmp(&a->twist, &b->twist, sizeof(a->twist)) == 0 &&
           a->innovation == b->innovation && memcmp(&a->confidence, &b->confidence, sizeof(a->confidence)) == 0 &&
           a->points_used == b->points_used && a->points_raw == b->points_raw && a->state == b->state;
}

/* Runs the same frames on two pipelines, together and one after the other. */
static size_t run_both(struct ndtd_scan_record *together, struct ndtd_scan_record *alone)
{
    const size_t frames = queued;
    struct ndtd_message kept[MOST_FRAMES];
    memcpy(kept, queue, sizeof(kept));
    struct ndtd_pipeline *one = lead_in(), *other = lead_in();
    memcpy(queue, kept, sizeof(kept));
    queued = frames;
    const size_t count = process(one, 0, alone);
    ndtd_pipeline_expect(other, waiting, queued);
    ck_assert_uint_eq(process(other, 0, together), count);
    ndtd_pipeline_destroy(one);
    ndtd_pipeline_destroy(other);
    return count;
}

static void check_close(const struct ndtd_scan_record *together, const struct ndtd_scan_record *alone, size_t scan)
{
    const struct ndt_pose *a = &together->result.T_map_sensor, *b = &alone->result.T_map_sensor;
    ck_assert_int_eq(together->result.outcome, NDT_CONVERGED);
    ck_assert_int_eq(alone->result.outcome, NDT_CONVERGED);
    ck_assert_double_le(ndt_pose_distance_m(a, b), 0.01);
    ck_assert_double_le(ndt_pose_angle_rad(a, b), 0.001);
    ck_assert_double_le(ndt_pose_distance_m(a, &drive.truth[scan]), 0.05);
}

FIXTURE(setup, teardown)

TEST_OF_THREADS_EACH(waiting_scans_go_together, 0, 4)
{
    struct ndtd_scan_record together[MOST_FRAMES] = {0}, alone[MOST_FRAMES] = {0};
    if (_i & 1)
        must(ndtd_option_set_text(&drive.settings, "ndt.prior", "off", &err));
    for (size_t i = LEAD; i < LEAD + GROUP; i++) {
        if (_i & 2)
            enqueue_odometry(i);
        enqueue_scans(i, 1);
    }
    ck_assert_uint_eq(run_both(together, alone), GROUP);
    ck_assert(same_record(&together[0], &alone[0])); /* its guess is the same */
    for (size_t i = 0; i < GROUP; i++) {
        ck_assert(is_ahead(&together[i]));
        ck_assert(!is_ahead(&alone[i]));
        check_close(&together[i], &alone[i], LEAD + i);
        const double times_us[] = {together[i].decode_us, together[i].preprocess_us, together[i].upload_us,
                                   together[i].align_us,  alone[i].decode_us,        alone[i].preprocess_us,
                                   alone[i].upload_us,    alone[i].align_us};
        for (size_t k = 0; k < sizeof(times_us) / sizeof(times_us[0]); k++) /* durations, not times of day */
            ck_assert(times_us[k] >= 0 && times_us[k] < 60e6);
        ck_assert_double_gt(together[i].preprocess_us, 0);
    }
}

/* Only an equal guess counts: every scan has the bits that it has one after the other. */
TEST(scans_outside_the_basin_are_aligned_again)
{
    struct ndtd_scan_record together[MOST_FRAMES] = {0}, alone[MOST_FRAMES] = {0};
    drive.settings.align.basin = 1e-9;
    enqueue_scans(LEAD, 5);
    ck_assert_uint_eq(run_both(together, alone), 5);
    ck_assert(is_ahead(&together[0]));
    for (size_t i = 0; i < 5; i++) {
        ck_assert(i == 0 || !is_ahead(&together[i]));
        ck_assert(same_record(&together[i], &alone[i]));
    }
}

/* A wrong velocity carries the second prediction out of the basin and the first update corrects it. */
TEST(a_wrong_prediction_is_noticed)
{
    struct ndtd_scan_record together[MOST_FRAMES] = {0}, alone[MOST_FRAMES] = {0};
    enqueue_scans(LEAD, 2);
    enqueue_scans(LEAD + 5, 2); /* as if it stood still and jumped */
    for (size_t i = 2; i < 4; i++)
        queue[i].scan.stamp_ns = queue[1].scan.stamp_ns + (int64_t)(i - 1) * DRIVE_STEP_NS;
    ck_assert_uint_eq(run_both(together, alone), 4);
    ck_assert(is_ahead(&together[0]));
    ck_assert(!is_ahead(&together[3]));
}

TEST(an_initial_pose_ends_the_group)
{
    struct ndtd_scan_record together[MOST_FRAMES] = {0}, alone[MOST_FRAMES] = {0};
    enqueue_scans(LEAD, 2);
    struct ndt_buffer again = {0};
    const struct ndt_pose_message pose = {.stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (LEAD + 2),
                                          .frame_id = "map",
                                          .has_pose = 1,
                                          .pose = drive.truth[LEAD + 2]};
    ndt_buffer_init(&again);
    must(ndt_pose_message_encode(&again, NDT_MESSAGE_INITIAL_POSE, &pose, &err));
    enqueue(NDT_MESSAGE_INITIAL_POSE, &again);
    enqueue_scans(LEAD + 2, 2);
    ck_assert_uint_eq(run_both(together, alone), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(is_ahead(&together[i]), i < 2);
    check_close(&together[3], &alone[3], LEAD + 3);
    ndt_buffer_free(&again);
}

/* A transform counts from the next scan on, and not for waiting scans before it. */
TEST(a_transform_ends_the_group)
{
    struct ndtd_scan_record together[MOST_FRAMES] = {0}, alone[MOST_FRAMES] = {0};
    enqueue_scans(LEAD, 2);
    struct ndt_buffer moved = {0};
    const struct ndt_pose_message mount = {
        .stamp_ns = DRIVE_START_NS, .frame_id = "lidar", .has_pose = 1, .pose = {{0.05, 0, 0}, {0, 0, 0, 1}}};
    ndt_buffer_init(&moved);
    must(ndt_pose_message_encode(&moved, NDT_MESSAGE_TRANSFORM, &mount, &err));
    enqueue(NDT_MESSAGE_TRANSFORM, &moved);
    enqueue_scans(LEAD + 2, 2);
    ck_assert_uint_eq(run_both(together, alone), 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(is_ahead(&together[i]), i < 2);
        ck_assert_double_le(ndt_pose_distance_m(&together[i].result.T_map_sensor, &alone[i].result.T_map_sensor),
                            0.01);
    }
    ck_assert(same_record(&together[0], &alone[0]));
    ndt_buffer_free(&moved);
}

static void change(struct ndtd_pipeline *pipeline, int what)
{
    const struct ndt_pose_message pose = {
        .stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * LEAD, .has_pose = 1, .pose = drive.truth[LEAD]};
    struct ndtd_settings_snapshot const *snapshot;
    int taken;
    switch (what) {
    case 0:
        ndtd_pipeline_set_initial_pose(pipeline, &pose);
        break;
    case 1:
        must(ndtd_pipeline_set_map_async(pipeline, drive.map, &taken, &err));
        break;
    default:
        must(ndtd_settings_snapshot_create(&snapshot, &drive.settings, &err));
        ndtd_pipeline_apply_settings(pipeline, snapshot);
        ndtd_settings_snapshot_release(snapshot);
    }
}

/* Whatever is changed before their turn: nothing of what was done ahead is used. */
TEST_OF_THREADS_EACH(a_change_undoes_what_was_done_ahead, 0, 3)
{
    struct ndtd_scan_record together[GROUP] = {0}, alone[GROUP] = {0};
    struct ndtd_pipeline *one = lead_in(), *other = lead_in();
    enqueue_scans(LEAD, GROUP);
    ndtd_pipeline_expect(other, waiting, queued);
    change(one, _i);
    change(other, _i);
    process(one, 0, alone);
    process(other, 0, together);
    for (size_t i = 0; i < GROUP; i++) {
        ck_assert(!is_ahead(&together[i]));
        ck_assert(same_record(&together[i], &alone[i]));
    }
    ndtd_pipeline_destroy(one);
    ndtd_pipeline_destroy(other);
}

/* The group has as many scans as the autotuner found to pay: two at once, then two of the rest; or each for itself.
 */
TEST_EACH(as_many_go_together_as_pay, 0, 7)
{
    enum { ALL = 5 };
    static const size_t first[] = {5, 0, 2, 3, 4, 5, 5}; /* first group by the number that pays; 0: not measured */
    const size_t size = first[_i], rest = size > 0 && ALL - size > 1 ? ALL - size < size ? ALL - size : size : 0;
    struct ndtd_scan_record together[ALL] = {0}, alone[ALL] = {0};
    struct ndtd_pipeline *one = lead_in(), *other = lead_in();
    const struct ndtd_autotune_result tuned = {.choice = {.row = -1}, .together = _i};
    must(ndtd_pipeline_set_autotune_result(other, &tuned, &err));
    enqueue_scans(LEAD, ALL);
    process(one, 0, alone);
    ck_assert_uint_eq(ndtd_pipeline_expect(other, waiting, ALL), size);
    for (size_t i = 0; i < ALL; i++) {
        if (i > 0 && i == size)
            ck_assert_uint_eq(ndtd_pipeline_expect(other, waiting + i, ALL - i), rest);
        must(ndtd_pipeline_process(other, &queue[i], &together[i], &err));
        ck_assert_int_eq(is_ahead(&together[i]), i < size + rest);
        check_close(&together[i], &alone[i], LEAD + i);
    }
    ck_assert(same_record(&together[0], &alone[0]));
    ndtd_pipeline_destroy(one);
    ndtd_pipeline_destroy(other);
}

/* Without an option, without threads, without a pose, without time, or with a single scan nothing is done ahead. */
TEST_EACH(nothing_is_done_ahead_where_it_does_not_pay, 0, 5)
{
    struct ndtd_scan_record together[GROUP] = {0};
    drive.settings.batch_together = _i != 0;
    drive.settings.compute.threads = _i == 1 ? 1 : 2;
    struct ndtd_pipeline *pipeline = _i == 2 ? street_drive_pipeline(drive.map) : lead_in();
    queued = 0;
    enqueue_scans(LEAD, _i == 3 ? 1 : GROUP);
    if (_i == 4)
        ndtd_pipeline_set_deadline(pipeline, 1);
    ndtd_pipeline_expect(pipeline, waiting, queued);
    ndtd_pipeline_set_deadline(pipeline, 0);
    const size_t count = process(pipeline, 0, together);
    for (size_t i = 0; i < count; i++)
        ck_assert(!is_ahead(&together[i]));
    ndtd_pipeline_destroy(pipeline);
}

/* A scan without points, and one whose message is cut off behind its header. */
TEST(a_bad_scan_concerns_only_itself)
{
    struct ndtd_pipeline *pipeline = lead_in();
    struct ndtd_scan_record record;
    enqueue_scans(LEAD, GROUP);
    queue[1].size /= 2;
    ndtd_pipeline_expect(pipeline, waiting, queued);
    for (size_t i = 0; i < queued; i++) {
        const enum ndt_status status = ndtd_pipeline_process(pipeline, &queue[i], &record, &err);
        ck_assert_int_eq(status == NDT_OK, i != 1);
        ck_assert(i == 1 || record.result.outcome == NDT_CONVERGED);
    }
    ndtd_pipeline_destroy(pipeline);
}

TEST_OF_THREADS(nothing_is_allocated_after_warm_up)
{
    struct ndtd_pipeline *pipeline = lead_in();
    unsigned long taken = 0;
    for (size_t group = 0; group < 2; group++) {
        struct ndtd_scan_record record = {0};
        enum ndt_status status = NDT_OK;
        queued = 0;
        enqueue_scans(LEAD + group * GROUP, GROUP);
        const unsigned long before = allocations;
        ndtd_pipeline_expect(pipeline, waiting, queued);
        for (size_t i = 0; i < queued; i++)
            status |= ndtd_pipeline_process(pipeline, &queue[i], &record, &err);
        taken = allocations - before;
        ck_assert_int_eq(status, NDT_OK);
        ck_assert(is_ahead(&record));
    }
    ck_assert_uint_eq(taken, 0);
    ndtd_pipeline_destroy(pipeline);
}
