/* The summary of a replay: as a table and as JSON. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/report.h"
#include "run_tests.h"

static struct ndtd_summary summary;
static struct ndt_error err;

static void teardown(void)
{
    ndtd_summary_free(&summary);
}

static void add_scan(uint64_t seq, enum ndt_outcome outcome, enum ndt_state state, int evaluations)
{
    struct ndtd_scan_record record = {.seq = seq, .stamp_ns = (int64_t)(1000 * seq), .state = state};
    record.result.outcome = outcome;
    record.result.evaluations = evaluations;
    record.result.iterations = evaluations / 2;
    record.confidence = evaluations > 0 ? 1 - 0.125 * (double)seq : NAN;
    record.is_doubted = seq == 2;
    record.decode_us = 10 + (double)seq;
    record.queue_us = 20;
    record.preprocess_us = 30;
    record.upload_us = 40;
    record.align_us = 1000 * (double)seq + 500;
    record.publish_us = 60;
    must(ndtd_summary_add(&summary, &record, &err));
}

/* Three scans that are matched, one that is not. */
static void fill(void)
{
    summary = (struct ndtd_summary){.backend = "cpu",
                                    .variant = "robust",
                                    .description = "cpu \"baseline\" \\ 1\tthread",
                                    .threads = 1,
                                    .trajectory_hash = 0xabcdef,
                                    .map_id = 0x1234,
                                    .map_points = 5678,
                                    .map_load_ms = 12.3456,
                                    .replay_s = 2,
                                    .peak_memory_bytes = 3 * 1048576 / 2};
    add_scan(0, NDT_NO_GUESS, NDT_STATE_INITIALISING, 0);
    add_scan(1, NDT_CONVERGED, NDT_STATE_TRACKING, 8);
    add_scan(2, NDT_CONVERGED, NDT_STATE_TRACKING, 10);
    add_scan(3, NDT_LOW_SCORE, NDT_STATE_COASTING, 16);
}

static void compare(void)
{
    summary.has_out = 1;
    summary.omitted = 1;
    summary.errors.compared = 4;
    summary.errors.off = 1;
    for (int i = 1; i <= 3; i++) {
        must(ndtd_samples_add(&summary.errors.translation_m, 0.01 * i, &err));
        must(ndtd_samples_add(&summary.errors.rotation_deg, 0.25 * i, &err));
    }
}

/* Output of `write`, until the next call. */
static const char *text_of(void (*write)(FILE *, struct ndtd_summary *))
{
    static char *text;
    size_t size;
    free(text);
    FILE *file = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    write(file, &summary);
    fclose(file);
    return text;
}

static const char table[] =
    "scans              4\n"
    "  converged        2\n"
    "  low_score        1\n"
    "  no_guess         1\n"
    "  off              1 of 4 with ground truth (over 1 m or 5 deg, or no pose)\n"
    "\n"
    "against ground truth     median        p95        max\n"
    "  translation [cm]       2.00       2.90       3.00\n"
    "  rotation [deg]       0.5000     0.7250     0.7500\n"
    "\n"
    "state after a scan\n"
    "  initialising     1\n"
    "  tracking         2\n"
    "  coasting         1\n"
    "  poses that are not trusted and left out of --out: 1\n"
    "  state: initialising -> tracking at scan 1, stamp 1000 ns, x 0.00 y 0.00 z 0.00 m yaw 0.0 deg: "
    "converged, confidence 0.875\n"
    "  state: tracking -> coasting at scan 3, stamp 3000 ns, x 0.00 y 0.00 z 0.00 m yaw 0.0 deg: low_score, "
    "confidence 0.625\n"
    "\n"
    "per scan                  p50        p95        p99        max\n"
    "  align [ms]            2.500      3.400      3.480      3.500\n"
    "  iterations       mean 5.7, most 8; evaluations mean 11.3\n"
    "  confidence       mean 0.7500, least 0.6250; 1 below the minimum\n"
    "\n"
    "stages [us]              mean        p95\n"
    "  decode                 11.5       12.8\n"
    "  queue                  20.0       20.0\n"
    "  preprocess             30.0       30.0\n"
    "  upload                 40.0       40.0\n"
    "  align                2000.0     3350.0\n"
    "  publish                60.0       60.0\n"
    "\n"
    "backend            cpu \"baseline\" \\ 1\tthread; variant robust\n"
    "map                id 0000000000001234, 5678 points, loaded in 12.3 ms\n"
    "peak memory        1.5 MiB\n"
    "replay             2.00 s, 2 scans/s\n"
    "trajectory hash    0000000000abcdef\n";

static const char json[] =
    "{\n"
    "  \"scans\": 4,\n"
    "  \"outcomes\": {\"converged\": 2, \"iteration_limit\": 0, \"deadline\": 0, \"dropped\": 0, "
    "\"rejected\": 0, \"low_score\": 1, \"degenerate\": 0, \"no_map\": 0, \"no_guess\": 1, \"off_map\": 0, "
    "\"lost\": 0, \"merged\": 0},\n"
    "  \"states\": {\"initialising\": 1, \"tracking\": 2, \"coasting\": 1, \"lost\": 0, \"recovering\": 0, "
    "\"extending\": 0},\n"
    "  \"untrusted\": 1,\n"
    "  \"out_omitted\": 1,\n"
    "  \"state_changes\": {\"count\": 2, \"first\": [{\"seq\": 1, \"stamp_ns\": 1000, \"from\": "
    "\"initialising\", \"to\": \"tracking\", \"reason\": \"converged, confidence 0.875\"}, {\"seq\": 3, "
    "\"stamp_ns\": 3000, \"from\": \"tracking\", \"to\": \"coasting\", \"reason\": \"low_score, confidence "
    "0.625\"}]},\n"
    "  \"off\": 1,\n"
    "  \"translation_error_m\": {\"median\": 0.02, \"p95\": 0.029, \"max\": 0.03},\n"
    "  \"rotation_error_deg\": {\"median\": 0.5, \"p95\": 0.725, \"max\": 0.75},\n"
    "  \"align_ms\": {\"p50\": 2.5, \"p95\": 3.4, \"p99\": 3.48, \"max\": 3.5},\n"
    "  \"iterations\": {\"mean\": 5.66667, \"max\": 8},\n"
    "  \"evaluations\": {\"mean\": 11.3333},\n"
    "  \"confidence\": {\"mean\": 0.75, \"min\": 0.625, \"low\": 1},\n"
    "  \"stages_us\": {\"decode\": {\"mean\": 11.5, \"p95\": 12.85}, \"queue\": {\"mean\": 20, \"p95\": 20}, "
    "\"preprocess\": {\"mean\": 30, \"p95\": 30}, \"upload\": {\"mean\": 40, \"p95\": 40}, \"align\": "
    "{\"mean\": 2000, \"p95\": 3350}, \"publish\": {\"mean\": 60, \"p95\": 60}},\n"
    "  \"backend\": \"cpu\",\n"
    "  \"backend_description\": \"cpu \\\"baseline\\\" \\\\ 1\\u0009thread\",\n"
    "  \"variant\": \"robust\",\n"
    "  \"threads\": 1,\n"
    "  \"trajectory_hash\": \"0000000000abcdef\",\n"
    "  \"map_id\": \"0000000000001234\",\n"
    "  \"map_points\": 5678,\n"
    "  \"map_load_ms\": 12.346,\n"
    "  \"replay_s\": 2.000,\n"
    "  \"peak_memory_bytes\": 1572864,\n";

FIXTURE(NULL, teardown)

TEST(table_of_a_run)
{
    fill();
    compare();
    ck_assert_str_eq(text_of(ndtd_report_table), table);
}

TEST(json_of_a_run)
{
    fill();
    compare();
    const char *text = text_of(ndtd_report_json);
    char *machine = strstr(text, "  \"machine\": \"");
    ck_assert_ptr_nonnull(machine);
    ck_assert_ptr_nonnull(strstr(machine, "\",\n  \"version\": \""));
    ck_assert_ptr_nonnull(strstr(machine, "\",\n  \"commit\": \""));
    ck_assert_str_eq(machine + strlen(machine) - 4, "\"\n}\n");
    *machine = '\0';
    ck_assert_str_eq(text, json);
}

/* Inputs of the run; the JSON is escaped. */
TEST(inputs_of_a_run)
{
    struct ndtd_run_inputs inputs = {.bag = "drive \"5\".mcap",
                                     .map = "map.pcd",
                                     .overrides = {{NULL, "preprocess.deskew=time"}, {"cpu.threads", "2"}},
                                     .override_count = 2};
    fill();
    summary.inputs = &inputs;
    summary.messages[NDT_MESSAGE_ODOMETRY] = 3;
    summary.messages[NDT_MESSAGE_IMU] = 70;
    const char *text = text_of(ndtd_report_table);
    ck_assert_ptr_nonnull(strstr(
        text,
        "\nbag                drive \"5\".mcap\nbesides scans      3 odometry, 70 imu\nmap file           map.pcd\n"
        "settings           preprocess.deskew=time, cpu.threads=2\n"));
    inputs.files = (struct ndtd_config_files){{"a.yaml", "b.yaml"}, 2};
    ck_assert_ptr_nonnull(strstr(text_of(ndtd_report_table),
                                 "\nsettings           a.yaml, b.yaml, preprocess.deskew=time, cpu.threads=2\n"));
    ck_assert_ptr_nonnull(
        strstr(text_of(ndtd_report_json),
               "  \"bag\": \"drive \\\"5\\\".mcap\",\n  \"map\": \"map.pcd\",\n  \"settings\": {\"files\": "
               "[\"a.yaml\", \"b.yaml\"], \"overrides\": [\"preprocess.deskew=time\", \"cpu.threads=2\"]},\n"));
    ck_assert_ptr_nonnull(strstr(text_of(ndtd_report_json),
                                 "\n  \"messages\": {\"initial_pose\": 0, \"odometry\": 3, \"imu\": 70, "));
    inputs.override_count = NDTD_OVERRIDES_KEPT + 3;
    for (size_t i = 0; i < NDTD_OVERRIDES_KEPT; i++)
        inputs.overrides[i] = (struct ndtd_override){"a", "1"};
    ck_assert_ptr_nonnull(strstr(text_of(ndtd_report_table), ", a=1 and 3 more\n"));
    inputs = (struct ndtd_run_inputs){.bag = "-", .map = "m"};
    ck_assert_ptr_nonnull(strstr(text_of(ndtd_report_table), "\nsettings           defaults\n"));
    ck_assert_ptr_nonnull(strstr(text_of(ndtd_report_json), "{\"files\": [], \"overrides\": []},\n"));
}

/* Without ground truth, without a trajectory, without a scan that is matched. */
TEST(what_is_unknown_is_null)
{
    add_scan(0, NDT_NO_GUESS, NDT_STATE_INITIALISING, 0);
    summary.backend = summary.variant = "x";
    const char *text = text_of(ndtd_report_json);
    static const char *const parts[] = {"  \"out_omitted\": null,\n",         "  \"off\": null,\n",
                                        "  \"translation_error_m\": null,\n", "  \"rotation_error_deg\": null,\n",
                                        "  \"confidence\": null,\n",          "\"count\": 0, \"first\": []},\n"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no %s in %s", parts[i], text);
    text = text_of(ndtd_report_table);
    ck_assert_ptr_nonnull(strstr(text, "\nno ground truth in the bag for these scans: errors are not known\n"));
    ck_assert_ptr_nonnull(strstr(text, " 0.00 s, 0 scans/s\n"));
    ck_assert_ptr_null(strstr(text, "confidence"));
    ck_assert_ptr_null(strstr(text, "left out"));
    ck_assert_ptr_null(strstr(text, "more changes"));
}

TEST(the_first_hundred_changes_are_kept)
{
    summary.backend = summary.variant = "x";
    for (uint64_t i = 0; i < 100; i++)
        add_scan(i, NDT_REJECTED, i % 2 ? NDT_STATE_LOST : NDT_STATE_TRACKING, 0);
    ck_assert_uint_eq(summary.state_change_count, 100);
    ck_assert_ptr_null(strstr(text_of(ndtd_report_table), "more changes"));
    for (uint64_t i = 100; i < 103; i++)
        add_scan(i, NDT_REJECTED, i % 2 ? NDT_STATE_LOST : NDT_STATE_TRACKING, 0);
    ck_assert_ptr_nonnull(strstr(text_of(ndtd_report_table), "at scan 99, "));
    ck_assert_ptr_null(strstr(text_of(ndtd_report_table), "at scan 100, "));
    ck_assert_ptr_nonnull(strstr(text_of(ndtd_report_table), "\n  and 3 more changes\n"));
    ck_assert_ptr_nonnull(strstr(text_of(ndtd_report_json), "\"state_changes\": {\"count\": 103, \"first\": [{"));
}
