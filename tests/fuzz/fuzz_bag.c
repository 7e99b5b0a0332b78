/* Bags: read to the end or the damage, twice, and the same as a stream; what can be appended to holds its records
 * and the new one. The mutator makes the checksums of the records right again. */
#include <fcntl.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_file.h"
#include "ndt/random.h"
#include "ndt_io/bag.h"

enum { FILE_HEAD = 16, RECORD_HEAD = 16, CRC = 4 };

static struct fuzz_file file;
static struct ndt_error err;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_file_open(&file, "fuzz.bag");
    return 0;
}

struct contents {
    uint64_t records, bytes, end;
    uint32_t crc; /* CRC of all payloads */
};

static struct contents read_all(struct ndt_bag_reader *reader)
{
    struct contents found = {0};
    struct ndt_bag_record record;
    enum ndt_status status;
    while ((status = ndt_bag_next(reader, &record, &err)) == NDT_OK) {
        found.records++;
        found.bytes += record.length;
        found.crc = ndt_crc32c(found.crc, record.payload, record.length);
    }
    FUZZ_REQUIRE(ndt_bag_next(reader, &record, &err) == status, "the end is not the end");
    found.end = ndt_bag_offset(reader);
    FUZZ_REQUIRE(ndt_bag_is_stream(reader) || found.end <= ndt_bag_size(reader), "beyond the file");
    return found;
}

/* Reads the bag without payloads: it has no fewer records than with them, and they are within the file. */
static void read_headers(struct ndt_bag_reader *reader, const struct contents *whole)
{
    struct ndt_bag_record record;
    uint64_t records = 0;
    ndt_bag_rewind(reader);
    ndt_bag_pass(reader, ~UINT32_C(0));
    while (ndt_bag_next(reader, &record, &err) == NDT_OK) {
        FUZZ_REQUIRE((record.payload == NULL) == (record.type < 32), "a payload that is not wanted");
        records++;
    }
    FUZZ_REQUIRE(records >= whole->records && ndt_bag_offset(reader) >= whole->end, "a record is missing");
    FUZZ_REQUIRE(ndt_bag_offset(reader) <= ndt_bag_size(reader), "beyond the file");
}

static struct contents open_and_read(void)
{
    struct ndt_bag_reader *reader;
    FUZZ_REQUIRE(ndt_bag_open(&reader, file.path, &err) == NDT_OK, "%s", err.text);
    const struct contents found = read_all(reader);
    ndt_bag_close(reader);
    return found;
}

/* A stream has the records of the file. */
static void compare_stream(enum ndt_status status, const struct contents *file_has)
{
    struct ndt_bag_reader *reader;
    const int fd = open(file.path, O_RDONLY | O_CLOEXEC);
    FUZZ_REQUIRE(fd >= 0, "the file is gone");
    FUZZ_REQUIRE(ndt_bag_open_stream(&reader, fd, "stream", NULL, &err) == status, "%s", err.text);
    if (status != NDT_OK)
        return;
    const struct contents found = read_all(reader);
    FUZZ_REQUIRE(found.records == file_has->records && found.crc == file_has->crc && found.end == file_has->end,
                 "a stream has other records");
    ndt_bag_close(reader);
}

static void append(const struct contents *before, int had_records)
{
    static const uint8_t payload[3] = {1, 2, 3};
    const struct ndt_bag_record record = {.type = 9, .length = 3, .receive_time_ns = -1, .payload = payload};
    struct ndt_bag_writer *writer;
    if (ndt_bag_create(&writer, file.path, 1, &err) != NDT_OK)
        return;
    FUZZ_REQUIRE(ndt_bag_write(writer, &record, &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(ndt_bag_finish(writer, &err) == NDT_OK, "%s", err.text);
    const struct contents after = open_and_read();
    const uint32_t crc = ndt_crc32c(before->crc, payload, sizeof(payload));
    FUZZ_REQUIRE(after.records == before->records + 1, "%d: a record is missing", had_records);
    FUZZ_REQUIRE(after.bytes == before->bytes + sizeof(payload) && after.crc == crc, "other contents");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ndt_bag_reader *reader;
    struct contents found = {0};
    fuzz_file_write(&file, data, size);
    const enum ndt_status status = ndt_bag_open(&reader, file.path, &err);
    if (status == NDT_OK) {
        found = read_all(reader);
        ndt_bag_rewind(reader);
        const struct contents again = read_all(reader);
        FUZZ_REQUIRE(again.records == found.records && again.crc == found.crc, "other records after a rewind");
        read_headers(reader, &found);
        ndt_bag_close(reader);
    }
    compare_stream(status, &found);
    append(&found, status == NDT_OK);
    return 0;
}

static void fix_checksums(uint8_t *data, size_t size)
{
    for (size_t at = FILE_HEAD; at < size && size - at >= RECORD_HEAD + CRC;) {
        uint32_t length;
        memcpy(&length, data + at + 4, sizeof(length));
        if (length > size - at - RECORD_HEAD - CRC)
            return;
        const uint32_t crc = ndt_crc32c(0, data + at, RECORD_HEAD + length);
        memcpy(data + at + RECORD_HEAD + length, &crc, sizeof(crc));
        at += RECORD_HEAD + length + CRC;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    const size_t mutated = LLVMFuzzerMutate(data, size, max_size);
    if (ndt_random_next(&random) % 8 != 0)
        fix_checksums(data, mutated);
    return mutated;
}
