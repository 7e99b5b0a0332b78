/* The replay of a generated bag: a sensor that moves through a room, and malformed frames. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_proto/message.h"
#include "ndtd/options.h"
#include "ndtd/replay.h"
#include "run_tests.h"

enum { SCANS = 12 };
static const int64_t T0 = 1700000000000000000, STEP = 100000000;
static const double STEP_M = 0.2;

static char directory[32], bag_path[64], map_path[64], out_path[64], timing_path[64], summary_path[64],
    results_path[64];
static struct ndtd_settings settings;
static struct ndtd_replay_options options;
static struct ndt_error err;
static struct ndt_cloud world, scan;
static struct ndt_buffer frame;
static struct ndt_bag_writer *writer;

static void add_point(struct ndt_cloud *cloud, double x, double y, double z)
{
    ck_assert_int_eq(ndt_cloud_reserve(cloud, cloud->count + 1, 0, NULL), NDT_OK);
    cloud->x_m[cloud->count] = (float)x;
    cloud->y_m[cloud->count] = (float)y;
    cloud->z_m[cloud->count++] = (float)z;
}

/* A floor of 24 x 16 m, four walls, and two boxes that break the symmetry. */
static void build_world(void)
{
    ck_assert_int_eq(ndt_cloud_reserve(&world, 60000, 0, NULL), NDT_OK);
    for (int i = 0; i < 120; i++)
        for (int k = 0; k < 80; k++)
            add_point(&world, -12 + 0.2 * i, -8 + 0.2 * k, 0.02 * sin(3.0 * i + 5.0 * k));
    for (int z = 1; z < 20; z++) {
        for (int i = 0; i < 120; i++) {
            add_point(&world, -12 + 0.2 * i, -8 + 0.02 * sin(i * 7.0 + z), 0.2 * z);
            add_point(&world, -12 + 0.2 * i, 8 + 0.02 * sin(i * 5.0 + z), 0.2 * z);
        }
        for (int k = 0; k < 80; k++) {
            add_point(&world, -12 + 0.02 * sin(k * 3.0 + z), -8 + 0.2 * k, 0.2 * z);
            add_point(&world, 12 + 0.02 * sin(k * 11.0 + z), -8 + 0.2 * k, 0.2 * z);
        }
        for (int i = 0; i < 15; i++) {
            add_point(&world, 3 + 0.2 * i, 3, 0.2 * z);
            add_point(&world, 3, 3 + 0.2 * i, 0.2 * z);
            add_point(&world, -6 + 0.2 * i, -4, 0.2 * z);
        }
    }
}

static void write_frame(enum ndt_message_type type, int64_t stamp_ns)
{
    struct ndt_bag_record record = {
        .type = type, .length = (uint32_t)frame.size, .receive_time_ns = stamp_ns, .payload = frame.data};
    ck_assert_int_eq(ndt_bag_write(writer, &record, &err), NDT_OK);
}

static void write_pose(enum ndt_message_type type, int64_t stamp_ns, double x_m)
{
    struct ndt_pose_message message = {.stamp_ns = stamp_ns, .frame_id = "map", .has_pose = 1, .has_twist = 1};
    message.pose = ndt_pose_identity();
    message.pose.t_m[0] = x_m;
    message.pose.t_m[2] = 1.5;
    message.twist.v_mps[0] = STEP_M / 0.1;
    ck_assert_int_eq(ndt_pose_message_encode(&frame, type, &message, &err), NDT_OK);
    write_frame(type, stamp_ns);
}

static void write_scan(int i)
{
    struct ndt_scan_message message = {.seq = 100 + (uint64_t)i, .stamp_ns = T0 + i * STEP, .frame_id = "lidar"};
    scan.count = 0;
    for (size_t k = (size_t)i % 3; k < world.count; k += 3)
        add_point(&scan, world.x_m[k] - STEP_M * i, world.y_m[k], world.z_m[k] - 1.5);
    ck_assert_int_eq(ndt_scan_encode(&frame, &message, &scan, &err), NDT_OK);
    write_frame(NDT_MESSAGE_SCAN, message.stamp_ns);
}

/* A valid record with a malformed payload. */
static void write_garbage(uint32_t type)
{
    static const uint8_t bytes[] = {0xc1, 0x00, 0xff};
    struct ndt_bag_record record = {.type = type, .length = sizeof(bytes), .receive_time_ns = 5, .payload = bytes};
    ck_assert_int_eq(ndt_bag_write(writer, &record, &err), NDT_OK);
}

static void open_bag(void)
{
    must(ndt_bag_create(&writer, bag_path, 0, &err));
}

static void close_bag(void)
{
    ck_assert_int_eq(ndt_bag_finish(writer, &err), NDT_OK);
}

/* Ground truth follows its scan, as from a slow reference. */
static void write_drive(int with_start, int with_truth)
{
    open_bag();
    if (with_start)
        write_pose(NDT_MESSAGE_INITIAL_POSE, T0, 0);
    for (int i = 0; i < SCANS; i++) {
        write_scan(i);
        if (with_truth)
            write_pose(NDT_MESSAGE_TRUTH, T0 + i * STEP, STEP_M * i);
    }
    close_bag();
}

static void name_files(void)
{
    strcpy(directory, "/tmp/ndtd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(bag_path, sizeof(bag_path), "%s/a.bag", directory);
    snprintf(map_path, sizeof(map_path), "%s/map.pcd", directory);
    snprintf(out_path, sizeof(out_path), "%s/poses.tum", directory);
    snprintf(timing_path, sizeof(timing_path), "%s/timing.csv", directory);
    snprintf(summary_path, sizeof(summary_path), "%s/summary.json", directory);
    snprintf(results_path, sizeof(results_path), "%s/results.jsonl", directory);
}

static void setup(void)
{
    /* Discards the table on standard output. */
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stdout));
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    name_files();
    ndt_cloud_init(&world);
    ndt_cloud_init(&scan);
    ndt_buffer_init(&frame);
    build_world();
    must(ndt_pcd_write(&world, map_path, NDT_PCD_BINARY, &err));
    ndtd_settings_default(&settings);
    snprintf(settings.map_path, sizeof(settings.map_path), "%s", map_path);
    settings.compute.threads = 1;
    options = (struct ndtd_replay_options){.bag = bag_path, .max_untrusted = UINT64_MAX};
    options.files.poses = out_path;
    options.files.timing = timing_path;
    options.files.summary = summary_path;
    options.files.results = results_path;
}

static void teardown(void)
{
    unlink(bag_path);
    unlink(map_path);
    unlink(out_path);
    unlink(timing_path);
    unlink(summary_path);
    unlink(results_path);
    ck_assert_msg(rmdir(directory) == 0, "something was left in %s", directory);
    ndt_cloud_free(&world);
    ndt_cloud_free(&scan);
    ndt_buffer_free(&frame);
}

static enum ndt_status run(int *differs)
{
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    return ndtd_replay(&settings, &options, differs, &err);
}

static void must_run(void)
{
    int differs;
    must(run(&differs));
    ck_assert_int_eq(differs, 0);
}

static void must_fail(enum ndt_status status, const char *part)
{
    int differs;
    ck_assert_int_eq(run(&differs), status);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' without '%s'", err.text, part);
    ck_assert_int_ne(access(out_path, F_OK), 0);
    ck_assert_int_ne(access(timing_path, F_OK), 0);
    ck_assert_int_ne(access(summary_path, F_OK), 0);
    ck_assert_int_ne(access(results_path, F_OK), 0);
}

static char *read_file(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void summary_must_hold(const char *part)
{
    char *text = read_file(summary_path);
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in %s", part, text);
}

static int count_lines(const char *path, const char *start)
{
    int lines = 0;
    for (char *line = strtok(read_file(path), "\n"); line; line = strtok(NULL, "\n"))
        lines += strncmp(line, start, strlen(start)) == 0;
    return lines;
}

FIXTURE(setup, teardown)

TEST(drive_is_localised_and_all_files_are_written)
{
    write_drive(1, 1);
    must_run();
    summary_must_hold("\"scans\": 12,");
    summary_must_hold("\"converged\": 12,");
    summary_must_hold("\"off\": 0,");
    summary_must_hold("\"variant\": \"robust\"");
    summary_must_hold("\"threads\": 1,");
    summary_must_hold("\"states\": {\"initialising\": 0, \"tracking\": 12, \"coasting\": 0, \"lost\": 0,");
    summary_must_hold("\"untrusted\": 0,");
    summary_must_hold("\"state_changes\": {\"count\": 1, \"first\": [{\"seq\": 100, ");
    summary_must_hold("\"from\": \"initialising\", \"to\": \"tracking\", \"reason\": \"converged, confidence ");
    ck_assert_int_eq(count_lines(out_path, "17000000"), SCANS);
    ck_assert_int_eq(count_lines(out_path, "# trajectory_hash"), 1);
    ck_assert_int_eq(count_lines(timing_path, "scan,"), SCANS);
    ck_assert_int_ge(count_lines(timing_path, "iteration,"), SCANS);
    ck_assert_int_eq(count_lines(timing_path, "row,seq,stamp_ns,"), 1);
    unsigned long long bytes = 0;
    ck_assert_int_eq(
        sscanf(strstr(read_file(summary_path), "peak_memory_bytes"), "peak_memory_bytes\": %llu", &bytes), 1);
    ck_assert_uint_gt(bytes, 1000000);
    ck_assert_uint_lt(bytes, 100000000000);
    double median = 1;
    ck_assert_int_eq(sscanf(strstr(read_file(summary_path), "translation_error_m"),
                            "translation_error_m\": {\"median\": %lf", &median),
                     1);
    ck_assert_double_lt(median, 0.03);
}

TEST(repeated_replay_matches_the_reference)
{
    write_drive(1, 1);
    must_run();
    options.files.expect = out_path;
    options.files.poses = NULL;
    must_run();
    options.files.expect = summary_path;
    options.files.summary = NULL;
    must_run();
    settings.preprocess.seed++;
    int differs;
    ck_assert_int_eq(run(&differs), NDT_OK);
    ck_assert_int_eq(differs, 1);
}

TEST(skip_starts_at_ground_truth_and_limit_stops)
{
    write_drive(1, 1);
    options.skip = 3;
    options.limit = 4;
    must_run();
    summary_must_hold("\"scans\": 4,");
    summary_must_hold("\"off\": 0,"); /* the ground truth after the last scan is used */
    ck_assert_int_eq(count_lines(out_path, "1700000000.3"), 1);
    ck_assert_int_eq(count_lines(timing_path, "scan,103,"), 1);
    ck_assert_int_eq(count_lines(timing_path, "scan,102,"), 0);
    ck_assert_int_eq(count_lines(timing_path, "scan,107,"), 0);
}

/* Changes a byte in the payload of a scan of the drive. */
static void damage_scan(uint64_t number)
{
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record = {.type = 0};
    uint64_t scans = 0, middle = 0;
    ck_assert_int_eq(ndt_bag_open(&reader, bag_path, &err), NDT_OK);
    ndt_bag_pass(reader, ~UINT32_C(0));
    while (scans <= number && ndt_bag_next(reader, &record, &err) == NDT_OK) {
        scans += record.type == NDT_MESSAGE_SCAN;
        middle = ndt_bag_offset(reader) - record.length / 2;
    }
    ndt_bag_close(reader);
    FILE *file = fopen(bag_path, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, (long)middle, SEEK_SET), 0);
    const int byte = fgetc(file);
    ck_assert_int_eq(fseek(file, (long)middle, SEEK_SET), 0);
    ck_assert_int_ne(fputc(byte ^ 1, file), EOF);
    ck_assert_int_eq(fclose(file), 0);
}

/* Skipped records are not read: neither for the ground truth nor for the scans. */
TEST(damage_in_a_skipped_scan_does_not_matter)
{
    write_drive(1, 1);
    damage_scan(2);
    options.skip = 2;
    must_fail(NDT_ERR_FORMAT, "damaged: CRC");
    options.skip = 0;
    must_run();
    summary_must_hold("\"scans\": 2,");
    options.skip = 3;
    must_run();
    summary_must_hold("\"scans\": 9,");
    summary_must_hold("\"off\": 0,");
    damage_scan(6);
    must_run();
    summary_must_hold("\"scans\": 3,");
}

TEST(skip_without_ground_truth_needs_a_pose)
{
    write_drive(1, 0);
    options.skip = 3;
    settings.initial_pose_mode = NDTD_POSE_GIVEN;
    must_fail(NDT_ERR_ARGUMENT, "has no ground truth at the first replayed scan");
    ck_assert_int_eq(ndtd_option_set_text(&settings, "initial_pose.pose", "0.6,0,1.5,0,0,0,1", &err), NDT_OK);
    must_run();
    summary_must_hold("\"converged\": 9,");
    summary_must_hold("\"off\": null,");
    summary_must_hold("\"translation_error_m\": null,");
}

TEST(skipping_everything_is_refused)
{
    write_drive(1, 1);
    options.skip = SCANS;
    must_fail(NDT_ERR_ARGUMENT, "holds only 12 scans");
}

TEST(configured_pose_overrides_that_of_the_bag)
{
    open_bag();
    write_pose(NDT_MESSAGE_INITIAL_POSE, T0, 500.0); /* off the map */
    write_scan(0);
    close_bag();
    ck_assert_int_eq(ndtd_option_set_text(&settings, "initial_pose.pose", "0,0,1.5,0,0,0,1", &err), NDT_OK);
    must_run();
    summary_must_hold("\"converged\": 1,");
}

TEST(scans_without_initial_pose_are_no_guess)
{
    write_drive(0, 1);
    settings.initial_pose_mode = NDTD_POSE_GIVEN;
    must_run();
    summary_must_hold("\"no_guess\": 12,");
    summary_must_hold("\"initialising\": 12,");
    summary_must_hold("\"untrusted\": 12,");
    summary_must_hold("\"state_changes\": {\"count\": 0, \"first\": []},");
    summary_must_hold("\"off\": 12,");
    ck_assert_int_eq(count_lines(out_path, "17000000"), 0);
}

TEST(every_result_is_a_line)
{
    write_drive(1, 1);
    must_run();
    ck_assert_int_eq(count_lines(results_path, "{\"seq\":1"), SCANS);
    const char *text = read_file(results_path);
    static const char *const keys[] = {
        "\"outcome\":\"converged\"", "\"state\":\"tracking\"", "\"guess\":[",        "\"twist\":[",
        "\"covariance\":[",          "\"confidence\":0.9",     "\"hypotheses\":",    "\"align_us\":",
        "\"config_hash\":",          "\"sensor\":\"",          "\"T_base_sensor\":["};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *found = strstr(text, keys[i]);
        ck_assert_msg(found && found < strchr(text, '\n'), "no %s in %s", keys[i], text);
    }
    unsigned long long map_id = 0;
    ck_assert_int_eq(sscanf(strstr(text, "\"map_id\":"), "\"map_id\":%llu", &map_id), 1);
    ck_assert_uint_ne(map_id, 0);
}

/* The initial pose is 500 m off the map: no scan has a trusted pose. */
static void write_lost_drive(void)
{
    open_bag();
    write_pose(NDT_MESSAGE_INITIAL_POSE, T0, 500.0);
    for (int i = 0; i < 4; i++)
        write_scan(i);
    close_bag();
}

TEST(untrusted_poses_are_left_out_unless_asked_for)
{
    write_lost_drive();
    must_run();
    summary_must_hold("\"lost\": 4,");
    summary_must_hold("\"out_omitted\": 4,");
    ck_assert_int_eq(count_lines(out_path, "17000000"), 0);
    ck_assert_int_eq(count_lines(results_path, "{\"seq\":10"), 4); /* all of them are results */
    options.files.keeps_untrusted = 1;
    must_run();
    summary_must_hold("\"out_omitted\": 0,");
    ck_assert_int_eq(count_lines(out_path, "17000000"), 4);
    options.files.poses = NULL;
    must_run();
    summary_must_hold("\"out_omitted\": null,");
}

TEST(more_untrusted_scans_than_allowed_fail_the_check)
{
    int failed;
    write_lost_drive();
    options.max_untrusted = 4;
    must_run();
    options.max_untrusted = 3;
    ck_assert_int_eq(run(&failed), NDT_OK);
    ck_assert_int_eq(failed, 1);
    summary_must_hold("\"untrusted\": 4,"); /* the files are written nevertheless */
}

TEST(frames_that_cannot_be_decoded_are_answered)
{
    open_bag();
    write_garbage(NDT_MESSAGE_INITIAL_POSE);
    write_garbage(NDT_MESSAGE_TRUTH);
    write_garbage(NDT_MESSAGE_ODOMETRY);
    write_garbage(NDT_MESSAGE_RESULT);
    write_garbage(77);
    write_pose(NDT_MESSAGE_INITIAL_POSE, T0, 0);
    write_garbage(NDT_MESSAGE_SCAN);
    write_scan(0);
    write_garbage(NDT_MESSAGE_SCAN);
    write_scan(1);
    close_bag();
    must_run();
    summary_must_hold("\"scans\": 4,");
    summary_must_hold("\"converged\": 2,");
    summary_must_hold("\"rejected\": 2,");
    ck_assert_int_eq(count_lines(timing_path, "scan,0,5,"), 1); /* index as seq, receive time as stamp */
    ck_assert_int_eq(count_lines(timing_path, "scan,2,5,"), 1);
}

TEST(truncated_bag_is_replayed_up_to_the_damage)
{
    write_drive(1, 1);
    FILE *file = fopen(bag_path, "rb");
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    fclose(file);
    char warnings[600], expected[100];
    snprintf(warnings, sizeof(warnings), "%s/warnings", directory);
    ck_assert_int_eq(truncate(bag_path, size / 2), 0);
    ck_assert_ptr_nonnull(freopen(warnings, "w", stderr));
    must_run();
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    char *scans = strstr(read_file(summary_path), "\"scans\": ");
    const int done = atoi(scans + strlen("\"scans\": "));
    ck_assert(done > 3 && done < SCANS);
    snprintf(expected, sizeof(expected), "; replayed the %d scans before it\n", done);
    ck_assert_ptr_nonnull(strstr(read_file(warnings), expected));
    ck_assert_int_eq(count_lines(warnings, "ndtd: warning: "), 1);
    unlink(warnings);
}

TEST(bags_without_scans_fail)
{
    open_bag();
    close_bag();
    must_fail(NDT_ERR_FORMAT, "no scan in it");
    unlink(bag_path);
    open_bag();
    write_scan(0);
    close_bag();
    ck_assert_int_eq(truncate(bag_path, 1000), 0);
    must_fail(NDT_ERR_FORMAT, "no scan before it");
    ck_assert_int_eq(truncate(bag_path, 0), 0);
    must_fail(NDT_ERR_FORMAT, bag_path);
    unlink(bag_path);
    must_fail(NDT_ERR_IO, bag_path);
}

TEST(wrong_maps_and_targets_leave_no_files)
{
    write_drive(1, 1);
    settings.map_path[0] = '\0';
    must_fail(NDT_ERR_ARGUMENT, "no map");
    snprintf(settings.map_path, sizeof(settings.map_path), "%s/none.pcd", directory);
    must_fail(NDT_ERR_IO, "none.pcd");
    snprintf(settings.map_path, sizeof(settings.map_path), "%s", map_path);
    options.files.summary = "/nonexistent/summary.json";
    must_fail(NDT_ERR_IO, "/nonexistent/summary.json");
}

/* A scan, an iteration or a backend that does not exist ends the run. */
TEST(dumps_that_cannot_be)
{
    char path[600];
    write_drive(1, 1);
    snprintf(path, sizeof(path), "%s/dump.csv", directory);
    options.dump = path;
    options.dump_scan = 103;
    options.dump_iteration = 500;
    must_fail(NDT_ERR_ARGUMENT, "--dump-iteration 500: scan 103 has ");
    ck_assert_str_eq(err.text + strlen(err.text) - strlen(" iterations"), " iterations");
    options.dump_iteration = 0;
    must_fail(NDT_ERR_UNSUPPORTED,
              "backend cpu keeps no intermediate values; cuda does, with cuda.pipeline staged");
    options.dump_scan = 99;
    must_fail(NDT_ERR_ARGUMENT, "99");
    ck_assert_int_ne(access(path, F_OK), 0);
}

TEST(a_stopped_run_writes_nothing)
{
    write_drive(1, 1);
    ndtd_replay_stop();
    must_fail(NDT_ERR_IO, "stopped after 0 scans");
}
