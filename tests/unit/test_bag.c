/* bag.bin: records are read as written, and damaged files never give other records. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "bag_cases.h"
#include "run_tests.h"

static void expect_open_fails(const char *path, const char *reason)
{
    struct ndt_bag_reader *reader;
    struct ndt_error err = {""};
    ck_assert_int_ne(ndt_bag_open(&reader, path, &err), NDT_OK);
    ck_assert_ptr_null(reader);
    ck_assert_msg(strstr(err.text, path) && strstr(err.text, reason), "'%s' lacks '%s'", err.text, reason);
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(test_round_trip)
{
    struct ndt_bag_reader *reader = open_bag(write_bag("a.bin", 5));
    ck_assert_uint_eq(ndt_bag_offset(reader), FILE_HEAD);
    for (int pass = 0; pass < 2; pass++) {
        ck_assert_int_eq(expect_records(reader, 5, NULL), NDT_END);
        ck_assert_uint_eq(ndt_bag_offset(reader), ndt_bag_size(reader));
        ndt_bag_rewind(reader);
    }
    ndt_bag_close(reader);
}

/* The format is fixed: other programs read it. */
TEST(test_golden_bytes)
{
    static const uint8_t expected[] = {'N',  'D',  'T',  'B',  'A',  'G',  '\r', '\n', 1,   0,   0,  0,
                                       0,    0,    0,    0,    2,    0,    0,    0,    3,   0,   0,  0,
                                       0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'x', 'y', 'z'};
    size_t size;
    const char *path = temp_path("a.bin");
    struct ndt_bag_writer *writer = create(path, 0);
    put(writer, 2, -2, "xyz", 3);
    ck_assert_int_eq(ndt_bag_finish(writer, NULL), NDT_OK);
    uint8_t *data = temp_read(path, &size);
    ck_assert_uint_eq(size, sizeof(expected) + CRC);
    ck_assert_mem_eq(data, expected, sizeof(expected));
    uint32_t crc;
    memcpy(&crc, data + sizeof(expected), sizeof(crc));
    ck_assert_uint_eq(crc, ndt_crc32c_plain(0, data + FILE_HEAD, sizeof(expected) - FILE_HEAD));
    free(data);
}

TEST(test_empty_bag)
{
    struct ndt_bag_reader *reader = open_bag(write_bag("a.bin", 0));
    ck_assert_int_eq(expect_records(reader, 0, NULL), NDT_END);
    ndt_bag_close(reader);
}

/* A truncated last record: all records before it are read, and the error names its position. */
TEST(test_cut_at_every_byte)
{
    size_t size;
    char place[64];
    uint8_t *data = temp_read(write_bag("whole.bin", 4), &size);
    const size_t last = size - record_size(3);
    for (size_t cut = last + 1; cut < size; cut++) {
        struct ndt_error err = {""}, again = {""};
        struct ndt_bag_record record;
        struct ndt_bag_reader *reader = open_bag(temp_write("cut.bin", data, cut));
        ck_assert_int_eq(expect_records(reader, 3, &err), NDT_ERR_FORMAT);
        snprintf(place, sizeof(place), "cut.bin: record 4 at byte %zu: truncated", last);
        ck_assert_msg(strstr(err.text, place) != NULL, "'%s' lacks '%s'", err.text, place);
        ck_assert_uint_eq(ndt_bag_offset(reader), last);
        ck_assert_int_eq(ndt_bag_next(reader, &record, &again), NDT_ERR_FORMAT);
        ck_assert_str_eq(again.text, err.text);
        ndt_bag_close(reader);
    }
    free(data);
}

TEST(test_cut_in_the_file_head)
{
    size_t size;
    uint8_t *data = temp_read(write_bag("whole.bin", 1), &size);
    for (size_t cut = 0; cut < FILE_HEAD; cut++)
        expect_open_fails(temp_write("cut.bin", data, cut), "not a bag");
    free(data);
}

/* Every flipped bit is detected: no record with other contents is returned. */
TEST(test_every_flipped_byte_is_found)
{
    size_t size;
    uint8_t *data = temp_read(write_bag("whole.bin", 3), &size);
    for (size_t at = 0; at < size; at++) {
        struct ndt_bag_reader *reader;
        data[at] ^= (uint8_t)(1u << at % 8);
        enum ndt_status status = ndt_bag_open(&reader, temp_write("bad.bin", data, size), NULL);
        ck_assert_int_eq(status == NDT_OK, at >= FILE_HEAD);
        if (status == NDT_OK) {
            unsigned whole = 0;
            for (size_t end = FILE_HEAD; at >= end + record_size(whole); whole++)
                end += record_size(whole);
            ck_assert_int_eq(expect_records(reader, whole, NULL), NDT_ERR_FORMAT);
        }
        ndt_bag_close(reader);
        data[at] ^= (uint8_t)(1u << at % 8);
    }
    free(data);
}

static void expect_first_fails(const uint8_t *data, size_t size, const char *reason)
{
    struct ndt_bag_record record;
    struct ndt_error err = {""};
    struct ndt_bag_reader *reader = open_bag(temp_write("bad.bin", data, size));
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_ERR_FORMAT);
    ck_assert_msg(strstr(err.text, reason) != NULL, "'%s' lacks '%s'", err.text, reason);
    ndt_bag_close(reader);
}

TEST(test_false_lengths)
{
    static const uint32_t lengths[] = {1, 2, 4, 1000, 0x10000000, 0x10000001, 0x7fffffff, 0xffffffff};
    size_t size;
    uint8_t *data = temp_read(write_bag("whole.bin", 1), &size);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        memcpy(data + FILE_HEAD + 4, &lengths[i], sizeof(lengths[i]));
        expect_first_fails(data, size, lengths[i] > NDT_BAG_MAX_PAYLOAD ? "limit of 268435456" : "bytes left");
    }
    free(data);
}

/* A payload that is passed over is not read: damage in it is not seen, damage of its length is. */
TEST(test_passed_payloads)
{
    size_t size;
    struct ndt_bag_record record;
    struct ndt_error err = {""}, same = {""};
    uint8_t *data = temp_read(write_bag("whole.bin", 5), &size);
    data[FILE_HEAD + record_size(0) + RECORD_HEAD] ^= 1; /* in the payload of record 1, of type 2 */
    const char *path = temp_write("a.bin", data, size);
    struct ndt_bag_reader *reader = open_bag(path);
    ndt_bag_pass(reader, 1u << 2 | 1u << 4);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_OK);
        ck_assert_uint_eq(record.type, i + 1);
        ck_assert_uint_eq(record.length, 7 * i);
        ck_assert_int_eq(record.receive_time_ns, 1000 * (int64_t)i - 1);
        ck_assert_int_eq(record.payload == NULL, i == 1);
    }
    ndt_bag_pass(reader, 0);
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_OK);
    ck_assert_mem_eq(record.payload, "ddddddddddddddddddddd", 21);
    ndt_bag_rewind(reader);
    ck_assert_int_eq(expect_records(reader, 1, &err), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "damaged: CRC"));
    ndt_bag_close(reader);
    ck_assert_int_eq(truncate(path, (off_t)(FILE_HEAD + record_size(0) + record_size(1) - 1)), 0);
    for (unsigned types = 0; types <= 1u << 2; types += 1u << 2) {
        reader = open_bag(path);
        ndt_bag_pass(reader, types);
        ck_assert_int_eq(expect_records(reader, 1, types ? &err : &same), NDT_ERR_FORMAT);
        ndt_bag_close(reader);
    }
    ck_assert_str_eq(err.text, same.text);
    ck_assert_ptr_nonnull(strstr(err.text, "truncated or damaged"));
    free(data);
}

TEST(test_files_that_are_not_bags)
{
    struct ndt_bag_reader *reader;
    uint8_t head[FILE_HEAD] = "NDTBAG\r\n";
    head[8] = 2;
    expect_open_fails(temp_write("v2.bin", head, sizeof(head)), "version 2");
    head[8] = 1;
    head[12] = 1;
    expect_open_fails(temp_write("r.bin", head, sizeof(head)), "reserved 1");
    expect_open_fails(temp_text("t.bin", "this is a text, not a bag"), "not a bag");
    expect_open_fails(temp_path("missing.bin"), "No such file");
    expect_open_fails(temp_dir, "is a directory");
    ck_assert_int_eq(ndt_bag_open(&reader, "/dev/null", NULL), NDT_ERR_FORMAT); /* an empty file */
    ck_assert_int_eq(ndt_bag_open(&reader, "/dev/zero", NULL), NDT_ERR_IO);
}

TEST(test_existing_files_stay)
{
    struct ndt_bag_writer *writer;
    struct ndt_error err = {""};
    size_t size;
    const char *path = write_bag("a.bin", 2);
    ck_assert_int_eq(ndt_bag_create(&writer, path, 0, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "exists already"));
    const char *text = temp_text("note.txt", "not a bag, but dear to somebody");
    ck_assert_int_eq(ndt_bag_create(&writer, text, 1, &err), NDT_ERR_FORMAT);
    uint8_t *data = temp_read(text, &size);
    ck_assert_str_eq((const char *)data, "not a bag, but dear to somebody");
    free(data);
    ck_assert_int_eq(ndt_bag_create(&writer, temp_path("missing/a.bin"), 0, &err), NDT_ERR_IO);
    ck_assert_ptr_null(writer);
}

/* Truncated in the last record or in the header of a new file: appending continues after the last complete record.
 */
TEST(test_append_after_a_crash)
{
    char payload[256] = "";
    size_t size;
    uint8_t *data = temp_read(write_bag("whole.bin", 3), &size);
    const size_t last = size - record_size(2);
    for (size_t cut = 0; cut <= size; cut++) {
        if (cut >= FILE_HEAD && cut < last)
            continue;
        const unsigned whole = cut < last ? 0 : cut < size ? 2 : 3;
        const char *path = temp_write("cut.bin", data, cut);
        struct ndt_bag_writer *writer = create(path, 1);
        put(writer, whole + 1, 1000 * (int64_t)whole - 1, payload, payload_of(whole, payload));
        ck_assert_int_eq(ndt_bag_finish(writer, NULL), NDT_OK);
        struct ndt_bag_reader *reader = open_bag(path);
        ck_assert_int_eq(expect_records(reader, whole + 1, NULL), NDT_END);
        ndt_bag_close(reader);
    }
    free(data);
    ck_assert_int_eq(ndt_bag_finish(create(temp_path("new.bin"), 1), NULL), NDT_OK);
}

/* A damaged record followed by valid ones is not the result of a crash: appending is refused. */
TEST(test_append_refuses_damage_inside)
{
    struct ndt_bag_writer *writer;
    struct ndt_error err = {""};
    size_t size, after;
    uint8_t *data = temp_read(write_bag("whole.bin", 3), &size);
    data[FILE_HEAD + record_size(0) + RECORD_HEAD] ^= 1;
    const char *path = temp_write("bad.bin", data, size);
    ck_assert_int_eq(ndt_bag_create(&writer, path, 1, &err), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "at byte 36 is damaged"));
    uint8_t *kept = temp_read(path, &after);
    ck_assert_uint_eq(after, size);
    ck_assert_mem_eq(kept, data, size);
    free(kept);
    free(data);
}

TEST(test_discard)
{
    size_t before, after;
    const char *path = temp_path("new.bin");
    struct ndt_bag_writer *writer = create(path, 0);
    put(writer, 1, 0, "x", 1);
    ndt_bag_discard(writer);
    ck_assert(!temp_exists(path));
    free(temp_read(write_bag("old.bin", 2), &before));
    writer = create(temp_path("old.bin"), 1);
    put(writer, 1, 0, "x", 1);
    ndt_bag_discard(writer);
    free(temp_read(temp_path("old.bin"), &after));
    ck_assert_uint_eq(after, before);
    ndt_bag_discard(NULL);
}

TEST(test_one_writer_per_file)
{
    struct ndt_bag_writer *second;
    struct ndt_error err = {""};
    struct ndt_bag_writer *first = create(temp_path("a.bin"), 0);
    ck_assert_int_eq(ndt_bag_create(&second, temp_path("a.bin"), 1, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "being written"));
    put(first, 1, 0, "x", 1);
    ck_assert_int_eq(ndt_bag_finish(first, NULL), NDT_OK);
}

TEST(test_record_too_long)
{
    struct ndt_error err = {""};
    struct ndt_bag_writer *writer = create(temp_path("a.bin"), 0);
    const struct ndt_bag_record record = {1, NDT_BAG_MAX_PAYLOAD + 1, 0, (const uint8_t *)""};
    ck_assert_int_eq(ndt_bag_write(writer, &record, &err), NDT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "268435456"));
    put(writer, 1, -1, "", 0);
    ck_assert_int_eq(ndt_bag_finish(writer, NULL), NDT_OK);
    struct ndt_bag_reader *reader = open_bag(temp_path("a.bin"));
    ck_assert_int_eq(expect_records(reader, 1, NULL), NDT_END);
    ndt_bag_close(reader);
}

TEST(test_full_disk)
{
    struct ndt_error err = {""}, again = {""};
    struct rlimit before, small;
    const uint8_t payload[64] = {0};
    const struct ndt_bag_record record = {1, sizeof(payload), -1, payload};
    struct ndt_bag_writer *writer = create(temp_path("a.bin"), 0);
    put(writer, 1, -1, "", 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = FILE_HEAD + record_size(0) + 30;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum ndt_status status = ndt_bag_write(writer, &record, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(status, NDT_ERR_IO);
    ck_assert_int_eq(ndt_bag_write(writer, &record, &again), NDT_ERR_IO);
    ck_assert_str_eq(err.text, again.text);
    ck_assert_int_eq(ndt_bag_finish(writer, &again), NDT_ERR_IO);
    struct ndt_bag_reader *reader = open_bag(temp_path("a.bin"));
    ck_assert_int_eq(expect_records(reader, 1, NULL), NDT_END);
    ndt_bag_close(reader);
}

/* A writer that is killed at a random time loses at most the record being written. */
TEST(test_killed_while_writing)
{
    static uint8_t payload[100000];
    struct ndt_bag_record record;
    struct ndt_error err = {""};
    const char *path = temp_path("a.bin");
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct ndt_bag_writer *writer;
        if (ndt_bag_create(&writer, path, 0, NULL) != NDT_OK)
            _exit(1);
        for (uint32_t i = 0; i < 2000; i++) {
            memset(payload, (int)i, sizeof(payload));
            if (ndt_bag_write(writer, &(struct ndt_bag_record){i, sizeof(payload), i, payload}, NULL) != NDT_OK)
                _exit(1);
        }
        for (;;)
            pause();
    }
    struct stat file;
    while (stat(path, &file) != 0 || file.st_size < (off_t)(10 * sizeof(payload)))
        usleep(1000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct ndt_bag_reader *reader = open_bag(path);
    enum ndt_status status;
    uint32_t count = 0;
    while ((status = ndt_bag_next(reader, &record, &err)) == NDT_OK) {
        ck_assert_uint_eq(record.type, count++);
        ck_assert_uint_eq(record.length, sizeof(payload));
    }
    ck_assert(status == NDT_END || strstr(err.text, "truncated"));
    ck_assert_uint_lt(ndt_bag_size(reader) - ndt_bag_offset(reader), RECORD_HEAD + sizeof(payload) + CRC);
    ndt_bag_close(reader);
}

/* The records and the offset are for an import that continues. */
TEST(test_append_knows_its_records)
{
    size_t size;
    uint8_t *data = temp_read(write_bag("whole.bin", 3), &size);
    struct ndt_bag_writer *writer = create(temp_write("cut.bin", data, size - 1), 1);
    ck_assert_uint_eq(ndt_bag_writer_records(writer), 2);
    ck_assert_uint_eq(ndt_bag_writer_offset(writer), FILE_HEAD + record_size(0) + record_size(1));
    put(writer, 3, 1999, "x", 1);
    ck_assert_uint_eq(ndt_bag_writer_records(writer), 3);
    ck_assert_int_eq(ndt_bag_finish(writer, NULL), NDT_OK);
    free(data);
}
