/* The pipeline on a synthetic street: results, refusals, determinism, allocations. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "allocation_counter.h"
#include "ndt/clock.h"
#include "ndtd/pipeline.h"
#include "ndtd/scan_result.h"
#include "run_tests.h"
#include "street_drive.h"

enum { SCANS = DRIVE_SCANS };

static int64_t stamp_ns(size_t i)
{
    return DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)i;
}

static void setup(void)
{
    street_drive_make();
    strcpy(drive.settings.backend, "cpu");
    drive.settings.deskew_passes = 1;
}

static struct ndtd_scan_record feed(struct ndtd_pipeline *pipeline, size_t i)
{
    struct ndtd_scan_record record;
    const struct ndtd_message frame = street_drive_frame(NDT_MESSAGE_SCAN, &drive.scans[i]);
    must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
    ck_assert_uint_eq(record.seq, i);
    return record;
}

static void feed_start(struct ndtd_pipeline *pipeline)
{
    struct ndtd_scan_record record;
    const struct ndtd_message frame = street_drive_frame(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
}

static void run_all(struct ndt_pose poses[SCANS])
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    for (size_t i = 0; i < SCANS; i++) {
        const struct ndtd_scan_record record = feed(pipeline, i);
        ck_assert_msg(record.result.outcome == NDT_CONVERGED, "scan %zu: %s", i, record.result.reason);
        poses[i] = record.result.T_map_sensor;
    }
    ndtd_pipeline_destroy(pipeline);
}

FIXTURE(setup, street_drive_free)

TEST(drive_is_tracked)
{
    struct ndt_pose poses[SCANS];
    run_all(poses);
    for (size_t i = 0; i < SCANS; i++) {
        ck_assert_double_le(ndt_pose_distance_m(&poses[i], &drive.truth[i]), 0.05);
        ck_assert_double_le(ndt_pose_angle_rad(&poses[i], &drive.truth[i]), 0.003);
    }
}

/* Equal bits for any number of threads, any CPU variant and any run. */
TEST_OF_THREADS(the_trajectory_is_bit_equal)
{
    struct ndt_pose first[SCANS], other[SCANS];
    char names[128], *rest = names;
    run_all(first);
    for (int threads = 1; threads <= 3; threads++) {
        drive.settings.compute.threads = threads;
        run_all(other);
        ck_assert_mem_eq(first, other, sizeof(first));
    }
    ndt_cpu_variants(names, sizeof(names));
    for (char *isa; (isa = strsep(&rest, ",")) != NULL;) {
        drive.settings.compute.isa = isa;
        run_all(other);
        ck_assert_msg(memcmp(first, other, sizeof(first)) == 0, "variant %s", isa);
    }
}

TEST(two_passes_are_deterministic)
{
    struct ndt_pose first[SCANS], again[SCANS];
    drive.settings.preprocess.deskew = NDT_DESKEW_AZIMUTH_CW;
    drive.settings.deskew_passes = 2;
    run_all(first);
    run_all(again);
    ck_assert_mem_eq(first, again, sizeof(first));
}

/* The first scan is aligned as with one pass, and then once more. */
TEST(costs_of_both_passes_are_added)
{
    struct ndtd_scan_record records[2];
    drive.settings.preprocess.deskew = NDT_DESKEW_AZIMUTH_CW;
    drive.settings.prior = NDTD_PRIOR_OFF; /* with a prior the second pass depends on the motion */
    for (int passes = 1; passes <= 2; passes++) {
        drive.settings.deskew_passes = passes;
        struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
        feed_start(pipeline);
        records[passes - 1] = feed(pipeline, 0);
        ndtd_pipeline_destroy(pipeline);
    }
    ck_assert_int_gt(records[1].result.iterations, records[0].result.iterations);
    ck_assert_int_gt(records[1].result.evaluations, records[0].result.evaluations);
}

/* The first scan of the drive as a sensor sees it that moves within the sweep, with the times of its points. */
static void encode_moving_scan(const struct ndt_twist *twist, struct ndt_buffer *frame)
{
    const struct world world = {WORLD_STREET, 5, 120, 0.02};
    const struct ndt_scan_message message = {.stamp_ns = DRIVE_START_NS, .frame_id = "lidar"};
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    must(world_scan(&cloud, &world, 100, 6000, &drive.truth[0], 40, &err));
    must(world_sweep(&cloud, twist, 0.1, &err));
    must(ndt_scan_encode(frame, &message, &cloud, &err));
    ndt_cloud_free(&cloud);
}

/* Nothing tells the motion of the first scan but its own points: it is found, and the pose with it. */
TEST(motion_of_the_first_scan_is_found)
{
    const struct ndt_twist truth = {{8, 0, 0}, {0, 0, 0.3}};
    const struct ndt_pose_message start = {
        .stamp_ns = DRIVE_START_NS, .frame_id = "map", .has_pose = 1, .pose = drive.truth[0]};
    must(ndt_pose_message_encode(&drive.start, NDT_MESSAGE_INITIAL_POSE, &start, &err));
    encode_moving_scan(&truth, &drive.scans[0]);
    drive.settings.preprocess.deskew = NDT_DESKEW_TIME;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    const struct ndtd_scan_record record = feed(pipeline, 0);
    ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
    ck_assert_double_le(ndt_pose_distance_m(&record.result.T_map_sensor, &drive.truth[0]), 0.02);
    ck_assert(record.has_twist);
    ck_assert_double_eq_tol(record.twist.v_mps[0], truth.v_mps[0], 0.4);
    ck_assert_double_eq_tol(record.twist.w_radps[2], truth.w_radps[2], 0.03);
    ndtd_pipeline_destroy(pipeline);
}

TEST(every_scan_is_answered)
{
    drive.settings.initial_pose_mode = NDTD_POSE_GIVEN;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    struct ndtd_scan_record record = feed(pipeline, 0);
    ck_assert_int_eq(record.result.outcome, NDT_NO_GUESS);
    ndtd_pipeline_destroy(pipeline);

    pipeline = street_drive_pipeline(NULL);
    feed_start(pipeline);
    record = feed(pipeline, 0);
    ck_assert_int_eq(record.result.outcome, NDT_NO_MAP);
    ndtd_pipeline_destroy(pipeline);

    drive.settings.preprocess.deskew = NDT_DESKEW_TIME; /* these scans carry no times */
    pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    record = feed(pipeline, 0);
    ck_assert_int_eq(record.result.outcome, NDT_REJECTED);
    ck_assert_ptr_nonnull(strstr(record.result.reason, "time"));
    ndtd_pipeline_destroy(pipeline);
}

TEST(scan_off_the_map_is_reported)
{
    drive.settings.has_initial_pose = 1;
    memcpy(drive.settings.initial_pose, (double[7]){5000, 5000, 0, 0, 0, 0, 1},
           sizeof(drive.settings.initial_pose));
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    struct ndtd_scan_record record = feed(pipeline, 0);
    ck_assert_int_eq(record.result.outcome, NDT_OFF_MAP);
    ck_assert_double_eq(record.result.T_map_sensor.t_m[0], 5000);
    ck_assert(!record.result.has_covariance);
    ndtd_pipeline_destroy(pipeline);
}

/* The initial pose is 0.7 m off and sure to the centimetre: the alignment contradicts it, and wins. */
TEST(a_wrong_prediction_that_is_sure_of_itself_is_overcome)
{
    struct ndt_pose_message initial = {
        .stamp_ns = stamp_ns(0), .frame_id = "map", .has_pose = 1, .pose = drive.truth[0], .has_covariance = 1};
    struct ndt_buffer frame;
    struct ndtd_scan_record record;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    initial.pose.t_m[0] += 0.7;
    for (int i = 0; i < 6; i++)
        initial.covariance[7 * i] = i < 3 ? 1e-4 : 1e-6;
    ndt_buffer_init(&frame);
    must(ndt_pose_message_encode(&frame, NDT_MESSAGE_INITIAL_POSE, &initial, &err));
    const struct ndtd_message message = street_drive_frame(NDT_MESSAGE_INITIAL_POSE, &frame);
    must(ndtd_pipeline_process(pipeline, &message, &record, &err));
    record = feed(pipeline, 0);
    ck_assert_int_gt(record.result.iterations, 1); /* of everything that was tried */
    ck_assert_int_gt(record.result.evaluations, record.result.iterations);
    ck_assert_double_gt(record.innovation, drive.settings.track.gate);
    ck_assert_double_lt(ndt_pose_distance_m(&record.result.T_map_sensor, &drive.truth[0]), 0.05);
    ndt_buffer_free(&frame);
    ndtd_pipeline_destroy(pipeline);
}

/* A pose that only repeats what is known. */
TEST(a_pose_on_the_track_keeps_it)
{
    enum { GIVEN_AT = 6 };
    struct ndt_pose_message same = {
        .stamp_ns = stamp_ns(GIVEN_AT), .frame_id = "map", .has_pose = 1, .pose = drive.truth[GIVEN_AT]};
    struct ndt_buffer frame;
    struct ndtd_scan_record record;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    for (size_t i = 0; i < GIVEN_AT; i++)
        (void)feed(pipeline, i);
    ndt_buffer_init(&frame);
    must(ndt_pose_message_encode(&frame, NDT_MESSAGE_INITIAL_POSE, &same, &err));
    const struct ndtd_message message = street_drive_frame(NDT_MESSAGE_INITIAL_POSE, &frame);
    must(ndtd_pipeline_process(pipeline, &message, &record, &err));
    for (size_t i = GIVEN_AT; i < SCANS; i++) {
        record = feed(pipeline, i);
        ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
        ck_assert_int_eq(record.state, NDT_STATE_TRACKING);
    }
    ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->refused_poses, 0);
    ndt_buffer_free(&frame);
    ndtd_pipeline_destroy(pipeline);
}

/* A pose given in mid-drive is not trusted until a scan has confirmed it, and the track that it ends goes on beside
 * it: the next scan is back there. Also where no scan has time to be aligned. */
TEST_EACH(a_wrong_pose_in_mid_drive_does_not_end_the_track, 0, 2)
{
    enum { GIVEN_AT = 6 };
    struct ndt_pose_message wrong = {.stamp_ns = stamp_ns(GIVEN_AT), .frame_id = "map", .has_pose = 1};
    struct ndt_buffer frame;
    struct ndtd_scan_record record;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    for (size_t i = 0; i < GIVEN_AT; i++)
        ck_assert_int_eq(feed(pipeline, i).result.outcome, NDT_CONVERGED);
    wrong.pose = drive.truth[GIVEN_AT];
    wrong.pose.t_m[0] += 25;
    ndt_buffer_init(&frame);
    must(ndt_pose_message_encode(&frame, NDT_MESSAGE_INITIAL_POSE, &wrong, &err));
    const struct ndtd_message message = street_drive_frame(NDT_MESSAGE_INITIAL_POSE, &frame);
    must(ndtd_pipeline_process(pipeline, &message, &record, &err));
    ck_assert_int_eq(ndtd_pipeline_state(pipeline), NDT_STATE_INITIALISING);
    size_t i = GIVEN_AT;
    if (_i == 1) { /* too late for two scans */
        ndtd_pipeline_set_deadline(pipeline, 1);
        for (; i < GIVEN_AT + 2; i++) {
            record = feed(pipeline, i);
            ck_assert_int_eq(record.result.outcome, NDT_DEADLINE);
            ck_assert_int_eq(record.state, NDT_STATE_INITIALISING);
            ck_assert(!(record.confidence > 0.7));
        }
        ndtd_pipeline_set_deadline(pipeline, 0);
    }
    for (; i < SCANS; i++) {
        record = feed(pipeline, i);
        ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
        ck_assert_int_eq(record.state, NDT_STATE_TRACKING);
        ck_assert_double_lt(ndt_pose_distance_m(&record.result.T_map_sensor, &drive.truth[i]), 0.05);
    }
    ndt_buffer_free(&frame);
    ndtd_pipeline_destroy(pipeline);
}

/* From a pose that was given, or from a search: the next scan is tracked as any other, without 200 iterations. */
TEST_EACH(the_scan_after_a_start_costs_little, 0, 2)
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    if (_i == 0)
        feed_start(pipeline);
    size_t i = 0;
    struct ndtd_scan_record record = feed(pipeline, i++);
    while (record.result.outcome != NDT_CONVERGED && i + 1 < SCANS)
        record = feed(pipeline, i++);
    ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
    record = feed(pipeline, i);
    ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
    ck_assert_int_lt(record.result.iterations, 100);
    ndtd_pipeline_destroy(pipeline);
}

TEST(a_scan_that_is_sent_twice_is_not_aligned_again)
{
    struct ndtd_scan_record record;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(feed(pipeline, i).result.outcome, NDT_CONVERGED);
        record = feed(pipeline, i);
        ck_assert_int_eq(record.result.outcome, NDT_REJECTED);
        ck_assert_int_eq(record.result.evaluations, 0);
        ck_assert_int_eq(record.state, NDT_STATE_TRACKING);
        ck_assert_str_eq(record.result.reason, "its stamp is that of the scan before");
    }
    ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->repeated, 3);
    feed_start(pipeline); /* with a new pose it is tried again */
    ck_assert_int_gt(feed(pipeline, 2).result.evaluations, 0);
    ndtd_pipeline_destroy(pipeline);
}

/* Feeds a scan with the stamp of number `at` and the points of number `of`. */
static struct ndtd_scan_record feed_with_stamp(struct ndtd_pipeline *pipeline, size_t at, size_t of)
{
    struct ndtd_scan_record record;
    struct ndtd_message frame = street_drive_frame(NDT_MESSAGE_SCAN, &drive.scans[of]);
    frame.scan.stamp_ns = stamp_ns(at);
    must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
    return record;
}

/* Whether it fits or not: nothing else is tried, and the scans that follow have the same bits. */
TEST(a_late_scan_is_aligned_once_and_changes_nothing)
{
    struct ndt_pose poses[SCANS];
    run_all(poses);
    for (size_t of = 4; of < SCANS; of += 6) {
        struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
        feed_start(pipeline);
        for (size_t i = 0; i < 7; i++)
            (void)feed(pipeline, i);
        const struct ndtd_scan_record late = feed_with_stamp(pipeline, 4, of);
        ck_assert_int_eq(late.result.outcome, of == 4 ? NDT_CONVERGED : NDT_REJECTED);
        ck_assert_int_eq(late.hypotheses, 1);
        ck_assert_int_eq(late.state, NDT_STATE_TRACKING);
        ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->late, 1);
        for (size_t i = 7; i < SCANS; i++) {
            const struct ndtd_scan_record record = feed(pipeline, i);
            ck_assert_mem_eq(&record.result.T_map_sensor, &poses[i], sizeof(poses[i]));
        }
        ndtd_pipeline_destroy(pipeline);
    }
}

/* Stamps at the begin of the sweep are half a sweep before the found pose: also a result that is not trusted is
 * carried back, by the predicted 8 m/s. */
TEST(a_refused_alignment_is_carried_to_the_stamp)
{
    struct ndt_pose poses[2], guesses[2];
    drive.settings.preprocess.deskew = NDT_DESKEW_AZIMUTH_CW;
    drive.settings.align.score_threshold = 1;
    drive.settings.recovery.enable = 0; /* the guess stays the prediction */
    for (int begin = 0; begin < 2; begin++) {
        drive.settings.preprocess.sweep_stamp = begin ? NDT_STAMP_BEGIN : NDT_STAMP_MIDDLE;
        struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
        feed_start(pipeline);
        const struct ndtd_scan_record record = feed(pipeline, 0);
        ck_assert_int_eq(record.result.outcome, NDT_LOW_SCORE);
        ck_assert_double_eq_tol(record.reference_s, begin ? 0.05 : 0, 1e-9);
        poses[begin] = record.result.T_map_sensor;
        ck_assert_int_eq(record.has_guess, 1);
        guesses[begin] = record.T_map_guess;
        ndtd_pipeline_destroy(pipeline);
    }
    ck_assert_double_lt(ndt_pose_distance_m(&guesses[0], &guesses[1]), 0.01); /* both at the stamp */
    ck_assert_double_eq_tol(ndt_pose_distance_m(&poses[0], &poses[1]), 8 * 0.05, 0.1);
}

TEST(a_damaged_frame_changes_nothing)
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    struct ndtd_scan_record record;
    struct ndtd_message cut =
        street_drive_frame(NDT_MESSAGE_SCAN, &drive.scans[1]); /* points beyond the end of the bytes */
    struct ndtd_message cut_start = street_drive_frame(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    cut.size -= 5;
    cut_start.size -= 5;
    feed_start(pipeline);
    (void)feed(pipeline, 0);
    const struct ndt_track before = *ndtd_pipeline_track(pipeline);
    ck_assert_int_eq(ndtd_pipeline_process(pipeline, &cut, &record, &err), NDT_ERR_FORMAT);
    ck_assert_int_eq(ndtd_pipeline_process(pipeline, &cut_start, &record, &err), NDT_ERR_FORMAT);
    ck_assert_mem_eq(&before, ndtd_pipeline_track(pipeline), sizeof(before));
    record = feed(pipeline, 1);
    ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
    ndtd_pipeline_destroy(pipeline);
}

TEST_OF_THREADS(nothing_is_allocated_after_warm_up)
{
    if (!COUNTS_ALLOCATIONS)
        return;
    drive.settings.compute.threads = 2;
    drive.settings.preprocess.deskew = NDT_DESKEW_AZIMUTH_CW;
    drive.settings.deskew_passes = 2;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    const unsigned long opened = allocations;
    feed_start(pipeline);
    for (size_t i = 0; i < 4; i++)
        (void)feed(pipeline, i);
    ck_assert_uint_gt(allocations, opened); /* the counter does count */
    for (size_t i = 4; i < SCANS; i++) {
        struct ndtd_scan_record record;
        struct ndtd_message frame = {
            .type = NDT_MESSAGE_SCAN, .data = drive.scans[i].data, .size = drive.scans[i].size};
        const unsigned long before = allocations; /* Check's own macros allocate: none of them in between */
        enum ndt_status status = ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err);
        if (status == NDT_OK)
            status = ndtd_pipeline_process(pipeline, &frame, &record, &err);
        const unsigned long after = allocations;
        must(status);
        ck_assert_uint_eq(after, before);
        ck_assert_int_gt(record.result.iterations, 0);
        for (size_t k = 0; k < record.trace_count; k++)
            ck_assert_uint_eq(record.trace[k].allocations, 0);
    }
    ndtd_pipeline_destroy(pipeline);
}

/* The covariance is output only: the trajectory is the same. Two passes, so that the points are those of the
 * second. */
/* Without an observation there is no confidence, and nothing asks for it. */
TEST(confidence_decides_what_converged_means)
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    for (size_t i = 0; i < SCANS; i++) {
        const struct ndtd_scan_record record = feed(pipeline, i);
        ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
        ck_assert_double_gt(record.confidence, 0.9);
        ck_assert(record.confidence <= 1 && !record.is_doubted);
    }
    ndtd_pipeline_destroy(pipeline);
    drive.settings.min_confidence = 1;
    pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    const struct ndtd_scan_record doubted = feed(pipeline, 0);
    ck_assert_int_eq(doubted.result.outcome, NDT_LOW_SCORE);
    ck_assert(doubted.is_doubted);
    ck_assert_ptr_nonnull(strstr(doubted.result.reason, "is below the minimum 1.000"));
    ndtd_pipeline_destroy(pipeline);
    drive.settings.prior = NDTD_PRIOR_OFF;
    pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    const struct ndtd_scan_record unknown = feed(pipeline, 0);
    ck_assert_int_eq(unknown.result.outcome, NDT_CONVERGED);
    ck_assert(isnan(unknown.confidence) && !unknown.is_doubted);
    ndtd_pipeline_destroy(pipeline);
}

TEST(kinds_of_covariance_change_nothing_else)
{
    struct ndt_pose expected[SCANS], poses[SCANS];
    drive.settings.preprocess.deskew = NDT_DESKEW_AZIMUTH_CW;
    drive.settings.deskew_passes = 2;
    run_all(expected);
    for (int kind = NDT_POSE_COVARIANCE_FIXED; kind < NDT_POSE_COVARIANCE_POSTERIOR; kind++) {
        drive.settings.pose_covariance.kind = (enum ndt_pose_covariance_kind)kind;
        run_all(poses);
        ck_assert_mem_eq(poses, expected, sizeof(poses));
        struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
        feed_start(pipeline);
        const struct ndtd_scan_record record = feed(pipeline, 0);
        ck_assert(record.result.has_covariance);
        ck_assert_double_ge(record.result.covariance[14], 0.99 * 0.0225);
        ndtd_pipeline_destroy(pipeline);
    }
}

/* Points without times: `auto` cannot undo the motion, and says so by the covariance; `off` is a claim that there
 * is none. The poses are the same. */
TEST(motion_that_is_not_undone_is_in_the_covariance)
{
    double along_m2[2];
    struct ndt_pose poses[2];
    for (int is_auto = 0; is_auto < 2; is_auto++) {
        struct ndtd_scan_record record = {0};
        drive.settings.preprocess.deskew = is_auto ? NDT_DESKEW_AUTO : NDT_DESKEW_OFF;
        struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
        feed_start(pipeline);
        for (size_t i = 0; i < SCANS; i++)
            record = feed(pipeline, i);
        ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
        along_m2[is_auto] = record.result.covariance[0];
        poses[is_auto] = record.result.T_map_sensor;
        ndtd_pipeline_destroy(pipeline);
    }
    ck_assert_mem_eq(&poses[0], &poses[1], sizeof(poses[0]));
    ck_assert_double_eq_tol(sqrt(along_m2[1] - along_m2[0]), 8 * 0.1 / 6, 0.02);
}

/* Without a prior the covariance is that of the alignment: of each scan its own, and wider than the floor. */
TEST(without_prior_the_alignment_has_the_covariance)
{
    for (int variant = NDT_ROBUST; variant <= NDT_AUTOWARE; variant++) {
        drive.settings.prior = variant == NDT_ROBUST ? NDTD_PRIOR_OFF : NDTD_PRIOR_AUTO;
        drive.settings.align.variant = (enum ndt_variant)variant;
        drive.settings.align.level_count = 1;
        drive.settings.align.levels[0] = (struct ndt_align_level){2.0, NDT_RADIUS};
        struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
        feed_start(pipeline);
        const struct ndtd_scan_record first = feed(pipeline, 0), second = feed(pipeline, 1);
        ck_assert(first.result.has_covariance && second.result.has_covariance);
        ck_assert_double_ne(first.result.covariance[0], second.result.covariance[0]);
        ck_assert_double_gt(second.result.covariance[0], 1.1 * pow(drive.settings.track.noise.floor_m, 2));
        ndtd_pipeline_destroy(pipeline);
    }
}

/* ---- memory ---- */

static size_t address_space_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    ck_assert(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages * 4096;
}

/* Scans of which some carry times and intensities, as those of another sensor. */
static void make_scan(struct ndt_buffer *frame, size_t i, size_t points, int has_fields)
{
    const struct world world = {WORLD_STREET, 5, 120, 0.02};
    const struct ndt_scan_message message = {.seq = i, .stamp_ns = stamp_ns(i), .frame_id = "lidar"};
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    must(world_scan(&cloud, &world, 100 + i, points, &drive.truth[i], 40, &err));
    if (has_fields) {
        must(ndt_cloud_reserve(&cloud, points, NDT_CLOUD_TIME | NDT_CLOUD_INTENSITY, &err));
        memset(cloud.time_s, 0, points * sizeof(float));
        memset(cloud.intensity, 0, points * sizeof(float));
    }
    must(ndt_scan_encode(frame, &message, &cloud, &err));
    ndt_cloud_free(&cloud);
}

/* A scan for which memory does not suffice is the only one that is lost. */
TEST(one_scan_that_is_too_large_costs_no_other)
{
    enum { LARGE = 3000000, LEFT_BYTES = 100000000 };
    struct ndtd_scan_record record;
    struct rlimit limit;
    if (!COUNTS_ALLOCATIONS) /* a sanitizer maps more than any limit */
        return;
    drive.settings.max_points = 268435456;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    make_scan(&drive.scans[1], 1, LARGE, 0);
    make_scan(&drive.scans[2], 2, 9000, 1);
    feed_start(pipeline);
    feed(pipeline, 0);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = address_space_bytes() + LEFT_BYTES;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    const struct ndtd_message large = street_drive_frame(NDT_MESSAGE_SCAN, &drive.scans[1]);
    ck_assert_int_eq(ndtd_pipeline_process(pipeline, &large, &record, &err), NDT_ERR_MEMORY);
    ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->memory_released, 1);
    limit.rlim_cur = address_space_bytes() + LEFT_BYTES / 10; /* others have taken theirs */
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    for (size_t i = 2; i < 6; i++) {
        record = feed(pipeline, i);
        ck_assert_msg(record.result.outcome == NDT_CONVERGED, "scan %zu: %s", i, record.result.reason);
    }
    ndtd_pipeline_destroy(pipeline);
}

/* ---- large scans ---- */

/* The result is the same at any time: no clock chooses the points of a replay. */
TEST(large_scans_are_thinned)
{
    struct ndt_pose poses[2];
    drive.settings.max_points = 4000;
    for (int run = 0; run < 2; run++) {
        struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
        feed_start(pipeline);
        feed(pipeline, 0);
        const struct ndtd_scan_record record = feed(pipeline, 1);
        ck_assert_uint_eq(record.points_raw, 6000);
        ck_assert_uint_eq(record.points_thinned, 4000); /* every third: an odd stride meets all rings */
        ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
        ck_assert_double_le(ndt_pose_distance_m(&record.result.T_map_sensor, &drive.truth[1]), 0.05);
        ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->thinned, 2);
        poses[run] = record.result.T_map_sensor;
        ndtd_pipeline_destroy(pipeline);
    }
    ck_assert_mem_eq(&poses[0], &poses[1], sizeof(poses[0]));
}

/* The number of points is what can be preprocessed in time, with a deadline. */
TEST(points_follow_the_time_that_is_left)
{
    struct ndtd_scan_record record;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    make_scan(&drive.scans[1], 1, 200000, 0);
    make_scan(&drive.scans[2], 2, 200000, 0);
    feed_start(pipeline);
    feed(pipeline, 0);
    record = feed(pipeline, 1);
    ck_assert_uint_eq(record.points_thinned, 0);
    const double took_us = record.decode_us + record.preprocess_us;
    ndtd_pipeline_set_deadline(pipeline,
                               ndt_clock_us() + 0.5 * took_us); /* half of it for a quarter of the points */
    record = feed(pipeline, 2);
    ck_assert_uint_ge(record.points_thinned, 100000);
    if (record.result.outcome != NDT_DEADLINE)
        ck_assert_uint_ge(record.points_raw - record.points_thinned, 2000);
    ndtd_pipeline_destroy(pipeline);
}

/* Before any scan was measured: 10000 points are read however little time there is, and no more of it in 1 ms. */
TEST(the_first_scan_is_thinned)
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    make_scan(&drive.scans[0], 0, 200000, 0);
    feed_start(pipeline);
    ndtd_pipeline_set_deadline(pipeline, ndt_clock_us() + 1000);
    const struct ndtd_scan_record record = feed(pipeline, 0);
    ck_assert_uint_le(record.points_raw - record.points_thinned, 10000);
    ndtd_pipeline_destroy(pipeline);
}

/* Sensors that are merged share the time: 40 ms would do for the scan of one. */
TEST(merged_scans_share_the_time)
{
    struct ndtd_extrinsics *frame_settings = &drive.settings.frames;
    frame_settings->merge_sensors = 1;
    frame_settings->sensor_count = 2;
    strcpy(frame_settings->sensors[0].frame_id, "lidar");
    strcpy(frame_settings->sensors[1].frame_id, "other");
    for (int i = 0; i < 2; i++)
        frame_settings->sensors[i].T_base_sensor = ndt_pose_identity();
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    make_scan(&drive.scans[0], 0, 200000, 0);
    feed_start(pipeline);
    ndtd_pipeline_set_deadline(pipeline, ndt_clock_us() + 40000);
    const struct ndtd_scan_record record = feed(pipeline, 0);
    ck_assert_int_eq(record.result.outcome, NDT_MERGED);
    ck_assert_uint_ge(record.points_thinned, 100000);
    ndtd_pipeline_destroy(pipeline);
}

/* An alignment that is stopped says nothing: the pose is the prediction, and no more certain. */
TEST(a_stopped_alignment_leaves_the_prediction)
{
    drive.settings.align.deadline_s = 1e-9;
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    const struct ndt_pose given = ndtd_pipeline_track(pipeline)->state.T_map_base;
    const struct ndtd_scan_record record = feed(pipeline, 0);
    ck_assert_int_eq(record.result.outcome, NDT_DEADLINE);
    ck_assert_int_gt(record.result.evaluations, 0);
    ck_assert_mem_eq(record.result.T_map_sensor.t_m, given.t_m, sizeof(given.t_m));
    ck_assert_double_lt(record.confidence, 0.2);
    ck_assert_int_eq(record.state, NDT_STATE_INITIALISING);
    ndtd_pipeline_destroy(pipeline);
}

/* A scan that comes too late is answered with the prediction, unread, and costs no other anything. */
TEST(nothing_is_read_after_the_deadline)
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    feed(pipeline, 0);
    feed(pipeline, 1);
    ndtd_pipeline_set_deadline(pipeline, ndt_clock_us() - 1);
    struct ndtd_scan_record record = feed(pipeline, 2);
    ck_assert_int_eq(record.result.outcome, NDT_DEADLINE);
    ck_assert_uint_eq(record.points_thinned, record.points_raw);
    ck_assert(ndtd_scan_record_is_sound(&record));
    ck_assert_double_le(ndt_pose_distance_m(&record.result.T_map_sensor, &drive.truth[2]), 1);
    ndtd_pipeline_set_deadline(pipeline, ndt_clock_us() + 60e6);
    record = feed(pipeline, 3);
    ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
    ck_assert_uint_eq(record.points_thinned, 0);
    ndtd_pipeline_destroy(pipeline);
}

/* ---- numbers that are not finite ---- */

/* The test spoils the estimate itself, which no function of the estimator does. */
TEST(an_estimate_that_is_not_finite_begins_anew)
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    feed(pipeline, 0);
    feed(pipeline, 1);
    struct ndt_track *track = (struct ndt_track *)ndtd_pipeline_track(pipeline);
    const uint32_t starts = track->starts;
    track->state.T_map_base.t_m[0] = NAN;
    track->state.P[0] = INFINITY;
    struct ndtd_scan_record record = feed(pipeline, 2);
    ck_assert_int_ne(record.result.outcome, NDT_CONVERGED);
    ck_assert(ndtd_scan_record_is_sound(&record) && *record.result.reason);
    ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->reinitialised, 1);
    ck_assert_uint_gt(track->starts, starts + 1); /* a new start, also for those who saw only the first */
    for (size_t i = 3; i < 6; i++)
        record = feed(pipeline, i);
    ck_assert_int_eq(record.state, NDT_STATE_TRACKING);
    ck_assert_double_le(ndt_pose_distance_m(&record.result.T_map_sensor, &drive.truth[5]), 0.1);
    ndtd_pipeline_destroy(pipeline);
}

/* ---- late samples ---- */

enum { SAMPLES_PER_SCAN = 5, SAMPLES = SAMPLES_PER_SCAN * (SCANS - 1) };

static void feed_odometry(struct ndtd_pipeline *pipeline, int64_t at_ns, const struct ndt_pose *T_odom_base)
{
    struct ndt_buffer encoded;
    struct ndt_pose_message message = {.stamp_ns = at_ns, .has_pose = 1, .pose = *T_odom_base};
    memcpy(message.frame_id, "odom", sizeof("odom"));
    ndt_buffer_init(&encoded);
    must(ndt_pose_message_encode(&encoded, NDT_MESSAGE_ODOMETRY, &message, &err));
    street_drive_feed(pipeline, NDT_MESSAGE_ODOMETRY, &encoded);
    ndt_buffer_free(&encoded);
}

/* A drive with the odometry of the way to each scan before it, in an order of arrival. */
static struct ndtd_pipeline *drive_in_order(const int order[SAMPLES_PER_SCAN],
                                            struct ndt_moment_message asked[SAMPLES])
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    feed_start(pipeline);
    feed_odometry(pipeline, stamp_ns(0), &drive.truth[0]);
    for (size_t i = 0; i < SCANS; i++) {
        for (int k = 0; k < SAMPLES_PER_SCAN && i > 0; k++) {
            const int step = 1 + order[k];
            const struct ndt_pose pose =
                ndt_pose_interpolate(&drive.truth[i - 1], &drive.truth[i], (double)step / SAMPLES_PER_SCAN);
            feed_odometry(pipeline, stamp_ns(i - 1) + DRIVE_STEP_NS / SAMPLES_PER_SCAN * step, &pose);
        }
        ck_assert_int_eq(feed(pipeline, i).result.outcome, NDT_CONVERGED);
    }
    for (int i = 0; i < SAMPLES; i++)
        must(ndtd_pipeline_pose_at(pipeline, stamp_ns(0) + DRIVE_STEP_NS / SAMPLES_PER_SCAN * i + 7000000,
                                   &asked[i], &err));
    return pipeline;
}

/* Scans that come after their motion do not depend on the order in which that came. */
TEST(motion_in_any_order_gives_the_same_poses)
{
    static const int orders[][SAMPLES_PER_SCAN] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}};
    static struct ndt_moment_message asked[3][SAMPLES];
    for (int i = 0; i < 3; i++) {
        ndtd_pipeline_destroy(drive_in_order(orders[i], asked[i]));
        ck_assert_mem_eq(asked[0], asked[i], sizeof(asked[0]));
    }
    ck_assert_int_eq(asked[0][SAMPLES / 2].kind, NDT_POSE_SMOOTHED);
}

TEST(samples_that_come_too_late_are_told)
{
    static const int order[SAMPLES_PER_SCAN] = {0, 1, 2, 3, 4};
    struct ndt_moment_message asked[SAMPLES];
    struct ndtd_pipeline_events told = {0};
    char text[NDTD_EVENT_BYTES], all[1000] = "";
    const char *format;
    struct ndtd_pipeline *pipeline = drive_in_order(order, asked);
    feed_odometry(pipeline, stamp_ns(0) - 1500000000, &drive.truth[0]);   /* 2.6 s older than the newest */
    ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->too_late.count, 0); /* time may have restarted */
    feed_odometry(pipeline, stamp_ns(SCANS), &drive.truth[SCANS - 1]);
    for (size_t kind = 0;
         (format = ndtd_pipeline_event(ndtd_pipeline_events(pipeline), &told, &kind, text)) != NULL;)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), format, text);
    ck_assert_ptr_nonnull(strstr(all, "late motion: samples of odometry and IMU are dropped, 1 so far"));
    ck_assert_ptr_nonnull(strstr(all, "2.6 s behind the newest"));
    ndtd_pipeline_destroy(pipeline);
}
