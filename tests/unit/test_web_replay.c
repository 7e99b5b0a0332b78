/* Scans for the page: thinning, packing, ring; and folders of replays, whole and damaged. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt_io/bag.h"
#include "ndt_proto/message.h"
#include "run_tests.h"
#include "temp_dir.h"
#include "web_json.h"
#include "web_points.h"
#include "web_replay.h"
#include "web_scans.h"

static struct ndt_error err;

static void make_cloud(struct ndt_cloud *cloud, size_t count)
{
    ndt_cloud_init(cloud);
    ck_assert_int_eq(ndt_cloud_reserve(cloud, count, NDT_CLOUD_INTENSITY, &err), NDT_OK);
    for (size_t i = 0; i < count; i++) {
        cloud->x_m[i] = (float)i * 0.01f;
        cloud->y_m[i] = -(float)i * 0.005f;
        cloud->z_m[i] = 1.5f;
        cloud->intensity[i] = (float)(i % 256);
    }
    cloud->count = count;
}

static double coordinate(const struct web_blob *packed, size_t i, size_t axis)
{
    int16_t value;
    float scale_m;
    memcpy(&value, packed->data + WEB_SCAN_HEAD + 8 * i + 2 * axis, 2);
    memcpy(&scale_m, packed->data + 28, 4);
    return (double)value * (double)scale_m;
}

TEST(scans_are_packed)
{
    struct ndt_cloud cloud;
    make_cloud(&cloud, 10000);
    struct web_blob *packed = web_scan_pack(77, -5, &cloud, 20000);
    uint64_t seq;
    int64_t stamp_ns;
    uint16_t intensity;
    ck_assert_uint_eq(packed->size, WEB_SCAN_HEAD + 8 * 10000);
    ck_assert_int_eq(memcmp(packed->data, "NDTS\1\0\0\0", 8), 0);
    memcpy(&seq, packed->data + 8, 8);
    memcpy(&stamp_ns, packed->data + 16, 8);
    ck_assert(seq == 77 && stamp_ns == -5 && web_scan_count(packed) == 10000);
    for (size_t i = 0; i < 10000; i += 37) {
        ck_assert_double_eq_tol(coordinate(packed, i, 0), (double)cloud.x_m[i], 0.002);
        ck_assert_double_eq_tol(coordinate(packed, i, 1), (double)cloud.y_m[i], 0.002);
        ck_assert_double_eq_tol(coordinate(packed, i, 2), 1.5, 0.002);
        memcpy(&intensity, packed->data + WEB_SCAN_HEAD + 8 * i + 6, 2);
        ck_assert_double_eq_tol(intensity, (double)(i % 256) / 255 * 65535, 0.51);
    }
    web_blob_drop(packed);
    ndt_cloud_free(&cloud);
}

TEST(scans_are_thinned_evenly)
{
    static const size_t most[] = {1, 7, 100, 999, 1000, 1001};
    struct ndt_cloud cloud;
    make_cloud(&cloud, 1000);
    for (size_t k = 0; k < sizeof(most) / sizeof(most[0]); k++) {
        struct web_blob *packed = web_scan_pack(1, 1, &cloud, most[k]);
        const size_t count = web_scan_count(packed);
        ck_assert_uint_eq(count, most[k] < 1000 ? most[k] : 1000);
        for (size_t i = 1; i < count; i++) {
            const double step_m = coordinate(packed, i, 0) - coordinate(packed, i - 1, 0);
            ck_assert_double_gt(step_m, 0.008);
            ck_assert_double_le(step_m, 0.01 * (1.62 * 1000.0 / (double)count + 1) + 0.002);
        }
        web_blob_drop(packed);
    }
    ndt_cloud_free(&cloud);
}

/* 64 rings, one point of each in turn; every sixth point would meet 32 of them. */
TEST(thinned_scans_have_every_ring)
{
    struct ndt_cloud cloud;
    size_t rings[64] = {0}, least = SIZE_MAX, most = 0;
    make_cloud(&cloud, 64 * 600);
    for (size_t i = 0; i < cloud.count; i++)
        cloud.z_m[i] = (float)(i % 64);
    struct web_blob *packed = web_scan_pack(1, 1, &cloud, cloud.count / 6);
    for (size_t i = 0; i < web_scan_count(packed); i++)
        rings[(size_t)lrint(coordinate(packed, i, 2))]++;
    for (size_t i = 0; i < 64; i++) {
        least = rings[i] < least ? rings[i] : least;
        most = rings[i] > most ? rings[i] : most;
    }
    ck_assert_uint_ge(least, 90); /* 100 on average */
    ck_assert_uint_le(most, 110);
    web_blob_drop(packed);
    ndt_cloud_free(&cloud);
}

TEST(points_that_are_not_finite_are_left_out)
{
    struct ndt_cloud cloud;
    make_cloud(&cloud, 6);
    cloud.x_m[0] = NAN;
    cloud.y_m[2] = INFINITY;
    cloud.z_m[5] = -INFINITY;
    cloud.intensity[3] = NAN;
    cloud.intensity[4] = -7;
    struct web_blob *packed = web_scan_pack(1, 1, &cloud, 100);
    ck_assert_uint_eq(web_scan_count(packed), 3);
    ck_assert_uint_eq(packed->size, WEB_SCAN_HEAD + 8 * 3);
    web_blob_drop(packed);
    cloud.count = 0;
    packed = web_scan_pack(1, 1, &cloud, 100);
    ck_assert_uint_eq(packed->size, WEB_SCAN_HEAD);
    web_blob_drop(packed);
    ndt_cloud_free(&cloud);
}

TEST(scans_of_a_point_have_a_scale)
{
    struct ndt_cloud cloud;
    make_cloud(&cloud, 1);
    cloud.x_m[0] = cloud.y_m[0] = cloud.z_m[0] = 1e-42f;
    struct web_blob *packed = web_scan_pack(1, 1, &cloud, 100);
    float scale_m;
    memcpy(&scale_m, packed->data + 28, 4);
    ck_assert(isnormal(scale_m) && scale_m > 0);
    ck_assert_double_eq_tol(coordinate(packed, 0, 0), 0, 1e-6);
    web_blob_drop(packed);
    ndt_cloud_free(&cloud);
}

/* Reads a message of 500 points that has a further text of this many bytes. */
static enum ndt_status read_points_with_text(uint32_t length)
{
    struct web_points points;
    struct ndt_cloud cloud;
    struct ndt_buffer frame;
    struct ndt_points_message message = {.seq = 1, .frame_id = "base"};
    struct web_blob *packed = NULL, *event = NULL;
    make_cloud(&cloud, 500);
    ndt_buffer_init(&frame);
    ck_assert_int_eq(ndt_points_encode(&frame, &message, &cloud, &err), NDT_OK);
    uint8_t *data = calloc(1, frame.size + 7 + length);
    memcpy(data, frame.data, frame.size);
    ck_assert(data[0] >= 0x80 && data[0] < 0x8f); /* a map of fewer than 15 pairs; one is added */
    data[0]++;
    const uint8_t head[] = {
        0xa1, 'x', 0xdb, (uint8_t)(length >> 24), (uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length};
    memcpy(data + frame.size, head, sizeof(head));
    memset(data + frame.size + sizeof(head), 'y', length);
    web_points_open(&points);
    const enum ndt_status status =
        web_points_read(&points, data, frame.size + sizeof(head) + length, 100, &packed, &event, &err);
    web_points_close(&points);
    web_blob_drop(packed);
    web_blob_drop(event);
    free(data);
    ndt_buffer_free(&frame);
    ndt_cloud_free(&cloud);
    return status;
}

/* Events wait in queues: what a message says besides its points is bounded. */
TEST(messages_that_say_too_much_are_refused)
{
    must(read_points_with_text(10000));
    ck_assert_int_eq(read_points_with_text(1000000), NDT_ERR_LIMIT);
}

TEST(the_last_scans_are_kept)
{
    struct web_scans *scans = web_scans_open();
    for (uint64_t seq = 0; seq < 100; seq++) {
        struct web_blob *packed = web_blob_make(1);
        packed->data[0] = (uint8_t)seq;
        web_scans_put(scans, seq % 90, packed); /* 0 to 9 again: the newer counts */
    }
    ck_assert_uint_eq(web_scans_count(scans), WEB_SCANS_KEPT);
    ck_assert_ptr_null(web_scans_get(scans, 67));
    struct web_blob *packed = web_scans_get(scans, 68);
    ck_assert_int_eq(packed->data[0], 68);
    web_blob_drop(packed);
    packed = web_scans_get(scans, 9);
    ck_assert_int_eq(packed->data[0], 99);
    web_scans_close(scans);
    ck_assert_int_eq(packed->data[0], 99); /* still ours */
    web_blob_drop(packed);
}

/* ---- replay folders ---- */

static void write_text(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", temp_dir, name);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void write_points(uint64_t first, uint64_t count)
{
    char path[512];
    struct ndt_bag_writer *writer;
    struct ndt_buffer frame;
    struct ndt_cloud cloud;
    struct ndt_points_message message = {.frame_id = "base", .iteration_count = 1, .candidate_count = 1};
    message.iterations[0].iteration = 3;
    message.candidates[0] = (struct ndt_points_candidate){NDT_CANDIDATE_SEARCH, {{1, 2, 3}, {0, 0, 0, 1}}, NAN};
    snprintf(path, sizeof(path), "%s/points.bag", temp_dir);
    remove(path);
    ck_assert_int_eq(ndt_bag_create(&writer, path, 0, &err), NDT_OK);
    ndt_buffer_init(&frame);
    make_cloud(&cloud, 500);
    for (uint64_t i = 0; i < count; i++) {
        message.seq = first + i;
        message.stamp_ns = (int64_t)i * 100000000;
        ck_assert_int_eq(ndt_points_encode(&frame, &message, &cloud, &err), NDT_OK);
        const struct ndt_bag_record record = {NDT_MESSAGE_POINTS, (uint32_t)frame.size, 0, frame.data};
        ck_assert_int_eq(ndt_bag_write(writer, &record, &err), NDT_OK);
    }
    ck_assert_int_eq(ndt_bag_finish(writer, &err), NDT_OK);
    ndt_buffer_free(&frame);
    ndt_cloud_free(&cloud);
}

static const char RESULTS[] =
    "{\"seq\":0,\"stamp_ns\":100,\"map_id\":18364758544493064720}\n{\"seq\":1,\"stamp_ns\":200}\n"
    "{\"seq\":2,\"stamp_ns\":300}";

static void write_folder(void)
{
    write_text("summary.json", "{\n  \"scans\": 3,\n  \"map\": \"a/map.pcd\"\n}\n");
    write_text("results.jsonl", RESULTS);
    write_points(0, 3);
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(a_replay_is_read)
{
    struct web_replay *replay;
    struct web_source source;
    uint64_t first = 7;
    write_folder();
    must(web_replay_open(&replay, temp_dir, 100, &err));
    web_replay_source(replay, &source);
    ck_assert_uint_eq(source.results(source.self, &first), 3);
    ck_assert_uint_eq(first, 0);
    struct web_blob *blob = source.result(source.self, 0);
    ck_assert_str_eq((const char *)blob->data, "{\"seq\":0,\"stamp_ns\":100,\"map_id\":\"18364758544493064720\"}");
    web_blob_drop(blob);
    blob = source.result(source.self, 2);
    ck_assert_str_eq((const char *)blob->data, "{\"seq\":2,\"stamp_ns\":300}");
    web_blob_drop(blob);
    ck_assert_ptr_null(source.result(source.self, 3));
    blob = source.replay(source.self);
    ck_assert_int_eq(web_json_check((const char *)blob->data, blob->size, &err), NDT_OK);
    ck_assert_ptr_nonnull(strstr((const char *)blob->data, "\"begin_ns\":100,\"end_ns\":300,"));
    ck_assert_ptr_nonnull(strstr((const char *)blob->data, "\"scans\": 3"));
    web_blob_drop(blob);
    ck_assert_str_eq(web_replay_map(replay), "a/map.pcd");
    blob = source.scan(source.self, 1);
    ck_assert_uint_eq(web_scan_count(blob), 100);
    web_blob_drop(blob);
    blob = source.timing(source.self, 2);
    ck_assert_int_eq(web_json_check((const char *)blob->data, blob->size, &err), NDT_OK);
    ck_assert_ptr_nonnull(strstr((const char *)blob->data, "{\"count\":100,\"seq\":2,"));
    ck_assert_ptr_nonnull(strstr((const char *)blob->data, "\"iterations\":[{\"iteration\":3,"));
    ck_assert_ptr_nonnull(strstr((const char *)blob->data, "\"confidence\":null,\"kind\":\"search\""));
    web_blob_drop(blob);
    ck_assert_ptr_null(source.scan(source.self, 3));
    ck_assert_ptr_null(source.timing(source.self, UINT64_MAX));
    web_replay_close(replay);
}

TEST(results_have_the_truth_at_their_stamp)
{
    struct web_replay *replay;
    struct web_source source;
    write_folder();
    write_text("truth.tum", "0.000000250 3 0 0 0 0 0 1\n0.000000050 1 0 0 0 0 0 1\n"); /* in any order */
    must(web_replay_open(&replay, temp_dir, 100, &err));
    web_replay_source(replay, &source);
    struct web_blob *blob = source.result(source.self, 1); /* 200 ns: three quarters of the way */
    ck_assert_str_eq((const char *)blob->data, "{\"truth\":[2.5,0,0,0,0,0,1],\"seq\":1,\"stamp_ns\":200}");
    web_blob_drop(blob);
    blob = source.result(source.self, 2); /* after the last true pose */
    ck_assert_str_eq((const char *)blob->data, "{\"seq\":2,\"stamp_ns\":300}");
    web_blob_drop(blob);
    web_replay_close(replay);
}

TEST(a_replay_without_points_or_results)
{
    struct web_replay *replay;
    struct web_source source;
    write_text("summary.json", "{\"scans\": 0}");
    write_text("results.jsonl", "");
    must(web_replay_open(&replay, temp_dir, 100, &err));
    web_replay_source(replay, &source);
    ck_assert_ptr_null(source.scan(source.self, 0));
    ck_assert_ptr_null(source.result(source.self, 0));
    web_replay_close(replay);
}

TEST(damaged_folders_are_refused)
{
    static const struct {
        const char *file, *text, *says;
    } cases[] = {
        {"results.jsonl", "{\"seq\":0,\"stamp_ns\":1}\n{\"seq\":1,", "line 2"},
        {"results.jsonl", "{\"seq\":0}\n", "'stamp_ns'"},
        {"results.jsonl", "\n", "line 1"},
        {"summary.json", "{", "summary.json"},
        {"summary.json", "[]", "'scans' is missing"},
        {"points.bag", "no bag", "points.bag"},
        {"truth.tum", "1 2 3\n", "truth.tum"},
    };
    struct web_replay *replay;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_folder();
        write_text(cases[i].file, cases[i].text);
        ck_assert_msg(web_replay_open(&replay, temp_dir, 100, &err) != NDT_OK, "%zu", i);
        ck_assert_ptr_null(replay);
        ck_assert_msg(strstr(err.text, cases[i].says) != NULL, "%zu: %s", i, err.text);
    }
    ck_assert_int_ne(web_replay_open(&replay, "/nowhere/at/all", 100, &err), NDT_OK);
    ck_assert_ptr_nonnull(strstr(err.text, "--output"));
}

/* Each in place of the file of a folder that is fine otherwise; none may be waited for or read into memory. */
TEST(what_is_no_file_is_refused)
{
    static const char *const files[] = {"results.jsonl", "summary.json", "points.bag", "truth.tum"};
    struct web_replay *replay;
    char path[512];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        write_folder();
        snprintf(path, sizeof(path), "%s/%s", temp_dir, files[i]);
        remove(path);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        ck_assert_int_ne(web_replay_open(&replay, temp_dir, 100, &err), NDT_OK);
        ck_assert_msg(strstr(err.text, files[i]) && strstr(err.text, "is a pipe"), "%s", err.text);
        remove(path);
        ck_assert_int_eq(symlink("/dev/zero", path), 0);
        ck_assert_int_ne(web_replay_open(&replay, temp_dir, 100, &err), NDT_OK);
        ck_assert_msg(strstr(err.text, "is a device"), "%s", err.text);
        remove(path);
        ck_assert_int_eq(mkdir(path, 0700), 0);
        ck_assert_int_ne(web_replay_open(&replay, temp_dir, 100, &err), NDT_OK);
        ck_assert_msg(strstr(err.text, "is a directory"), "%s", err.text);
        remove(path);
    }
}

/* Sparse files: a terabyte without a line end, and without an end. */
TEST(endless_files_are_refused)
{
    static const char *const files[] = {"results.jsonl", "summary.json"};
    struct web_replay *replay;
    char path[512];
    for (size_t i = 0; i < 2; i++) {
        write_folder();
        snprintf(path, sizeof(path), "%s/%s", temp_dir, files[i]);
        ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
        ck_assert_int_eq(web_replay_open(&replay, temp_dir, 100, &err), NDT_ERR_LIMIT);
        ck_assert_msg(strstr(err.text, files[i]) && strstr(err.text, "more than"), "%s", err.text);
    }
}
