/* bag.bin through pipes: the records and messages of files. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "bag_cases.h"
#include "run_tests.h"

/* A pipe that holds these bytes and has no writer any more. */
static int pipe_with(const uint8_t *data, size_t size)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], data, size), (ssize_t)size);
    close(ends[1]);
    return ends[0];
}

static struct ndt_bag_reader *open_stream(const uint8_t *data, size_t size)
{
    struct ndt_bag_reader *reader;
    struct ndt_error err = {""};
    ck_assert_msg(ndt_bag_open_stream(&reader, pipe_with(data, size), "s.bin", NULL, &err) == NDT_OK, "%s",
                  err.text);
    ck_assert(ndt_bag_is_stream(reader));
    return reader;
}

FIXTURE(temp_dir_make, temp_dir_remove)

/* A stream that ends anywhere gives the records and the message of a file that is truncated there. */
TEST(test_streams_end_as_files_do)
{
    size_t size;
    uint8_t *data = temp_read(write_bag("whole.bin", 4), &size);
    for (size_t cut = FILE_HEAD; cut <= size; cut++) {
        struct ndt_error of_file = {""}, of_stream = {""};
        struct ndt_bag_record record;
        struct ndt_bag_reader *file = open_bag(temp_write("s.bin", data, cut));
        struct ndt_bag_reader *stream = open_stream(data, cut);
        enum ndt_status status, expected;
        do {
            expected = ndt_bag_next(file, &record, &of_file);
            status = ndt_bag_next(stream, &record, &of_stream);
            ck_assert_int_eq(status, expected);
            ck_assert_uint_eq(ndt_bag_offset(stream), ndt_bag_offset(file));
        } while (status == NDT_OK);
        const char *place = strstr(of_file.text, "s.bin: record");
        ck_assert_str_eq(of_stream.text, place ? place : "");
        ndt_bag_close(file);
        ndt_bag_close(stream);
    }
    free(data);
}

TEST(test_streams_that_are_not_bags)
{
    struct ndt_bag_reader *reader;
    struct ndt_error err = {""};
    static const uint8_t text[] = "this is a text, not a bag";
    ck_assert_int_eq(ndt_bag_open_stream(&reader, pipe_with(text, 5), "s.bin", NULL, &err), NDT_ERR_FORMAT);
    ck_assert_str_eq(err.text, "s.bin: not a bag: 5 bytes, the header alone has 16");
    ck_assert_int_eq(ndt_bag_open_stream(&reader, pipe_with(text, sizeof(text)), "s.bin", NULL, &err),
                     NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "does not begin with NDTBAG"));
    ck_assert_int_eq(ndt_bag_open_any(&reader, "/dev/null", NULL, &err), NDT_ERR_FORMAT);
    ck_assert_int_eq(ndt_bag_open_any(&reader, temp_path("missing"), NULL, &err), NDT_ERR_IO);
    ck_assert_ptr_null(reader);
}

TEST(test_a_stream_is_read_once)
{
    size_t size;
    struct ndt_bag_record record;
    struct ndt_error err = {""};
    uint8_t *data = temp_read(write_bag("whole.bin", 2), &size);
    struct ndt_bag_reader *reader = open_stream(data, size);
    ck_assert_uint_eq(ndt_bag_size(reader), 0);
    ndt_bag_pass(reader, 1u << 2); /* of no use: it is read */
    ck_assert_int_eq(expect_records(reader, 2, &err), NDT_END);
    ndt_bag_rewind(reader);
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "s.bin: a pipe is read once");
    ndt_bag_close(reader);
    free(data);
}

static void *write_fifo(void *path)
{
    char data[256] = "";
    usleep(20000); /* the reader waits for its writer */
    struct ndt_bag_writer *writer = create(path, 0);
    for (unsigned i = 0; i < 5; i++) {
        const size_t size = payload_of(i, data);
        put(writer, i + 1, 1000 * (int64_t)i - 1, data, size);
        usleep(2000);
    }
    ck_assert_uint_eq(ndt_bag_writer_records(writer), 5);
    ck_assert_int_eq(ndt_bag_finish(writer, NULL), NDT_OK);
    return NULL;
}

TEST(test_through_a_fifo)
{
    const char *path = temp_path("fifo");
    struct ndt_error err = {""};
    struct ndt_bag_reader *reader;
    pthread_t thread;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_fifo, (void *)(uintptr_t)path), 0);
    ck_assert_msg(ndt_bag_open_any(&reader, path, NULL, &err) == NDT_OK, "%s", err.text);
    ck_assert_int_eq(expect_records(reader, 5, NULL), NDT_END);
    pthread_join(thread, NULL);
    ndt_bag_close(reader);
    ck_assert(temp_exists(path)); /* neither side removes it */
}

static void *cancel(void *progress)
{
    usleep(20000);
    ndt_progress_cancel(progress);
    return NULL;
}

TEST(test_waiting_can_be_cancelled)
{
    const char *path = temp_path("fifo");
    struct ndt_progress progress;
    struct ndt_error err = {""};
    struct ndt_bag_reader *reader;
    pthread_t thread;
    ndt_progress_init(&progress, NULL, NULL, 1);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel, &progress), 0);
    ck_assert_int_eq(ndt_bag_open_any(&reader, path, &progress, &err), NDT_ERR_CANCELLED);
    pthread_join(thread, NULL);
}

/* A reader that leaves is an error of the writer, which says nothing more; discarding leaves the FIFO. */
TEST(test_a_reader_that_leaves)
{
    const char *path = temp_path("fifo");
    struct ndt_error err = {""};
    struct ndt_bag_record record = {1, 1, 0, (const uint8_t *)"x"};
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    const int fd = open(path, O_RDONLY | O_NONBLOCK);
    struct ndt_bag_writer *writer = create(path, 1);
    put(writer, 1, 0, "x", 1);
    close(fd);
    ck_assert_int_eq(ndt_bag_write(writer, &record, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "Broken pipe"));
    ck_assert_uint_eq(ndt_bag_writer_records(writer), 1);
    ndt_bag_discard(writer);
    ck_assert(temp_exists(path));
}

/* A pipe that does not block, and a record that is larger than it. */
TEST(test_standard_output_that_does_not_block)
{
    enum { SIZE = 3000000 };
    int ends[2];
    struct ndt_bag_record record;
    struct ndt_bag_reader *reader;
    uint8_t *payload = calloc(SIZE, 1);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct ndt_bag_writer *writer;
        close(ends[0]);
        dup2(ends[1], 1);
        close(ends[1]);
        memset(payload, 7, SIZE);
        record = (struct ndt_bag_record){9, SIZE, 5, payload};
        const int done = ndt_bag_create(&writer, "-", 0, NULL) == NDT_OK &&
                         ndt_bag_write(writer, &record, NULL) == NDT_OK && ndt_bag_finish(writer, NULL) == NDT_OK;
        _exit(!done);
    }
    close(ends[1]);
    ck_assert_int_eq(ndt_bag_open_stream(&reader, ends[0], "pipe", NULL, NULL), NDT_OK);
    ck_assert_int_eq(ndt_bag_next(reader, &record, NULL), NDT_OK);
    ck_assert_uint_eq(record.length, SIZE);
    ck_assert_uint_eq(record.payload[SIZE - 1], 7);
    ck_assert_int_eq(ndt_bag_next(reader, &record, NULL), NDT_END);
    ndt_bag_close(reader);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    free(payload);
}
