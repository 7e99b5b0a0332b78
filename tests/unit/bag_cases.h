/* Cases of tests of bags: a bag to write, and its contents. */
#ifndef BAG_CASES_H
#define BAG_CASES_H

#include "ndt_io/bag.h"
#include "temp_dir.h"

enum { FILE_HEAD = 16, RECORD_HEAD = 16, CRC = 4 };

static inline struct ndt_bag_writer *create(const char *path, int append)
{
    struct ndt_bag_writer *writer;
    struct ndt_error err = {""};
    ck_assert_msg(ndt_bag_create(&writer, path, append, &err) == NDT_OK, "%s", err.text);
    return writer;
}

static inline void put(struct ndt_bag_writer *writer, uint32_t type, int64_t time_ns, const void *data, size_t size)
{
    const struct ndt_bag_record record = {type, (uint32_t)size, time_ns, data};
    ck_assert_int_eq(ndt_bag_write(writer, &record, NULL), NDT_OK);
}

static inline struct ndt_bag_reader *open_bag(const char *path)
{
    struct ndt_bag_reader *reader;
    struct ndt_error err = {""};
    ck_assert_msg(ndt_bag_open(&reader, path, &err) == NDT_OK, "%s", err.text);
    return reader;
}

/* Record i of every bag of these tests: i times 7 bytes of the letter i. */
static inline size_t payload_of(unsigned i, char *out)
{
    memset(out, 'a' + (int)i, 7 * i);
    return 7 * i;
}

static inline const char *write_bag(const char *name, unsigned count)
{
    char data[256] = "";
    const char *path = temp_path(name);
    struct ndt_bag_writer *writer = create(path, 0);
    for (unsigned i = 0; i < count; i++) {
        const size_t size = payload_of(i, data);
        put(writer, i + 1, 1000 * (int64_t)i - 1, data, size);
    }
    ck_assert_int_eq(ndt_bag_finish(writer, NULL), NDT_OK);
    return path;
}

static inline size_t record_size(unsigned i)
{
    return RECORD_HEAD + 7 * i + CRC;
}

/* Reads records from..count - 1 and compares them; returns the status of the next read. */
static inline enum ndt_status expect_records(struct ndt_bag_reader *reader, unsigned count, struct ndt_error *err)
{
    char data[256] = "";
    struct ndt_bag_record record;
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(ndt_bag_next(reader, &record, err), NDT_OK);
        ck_assert_uint_eq(record.type, i + 1);
        ck_assert_int_eq(record.receive_time_ns, 1000 * (int64_t)i - 1);
        ck_assert_uint_eq(record.length, payload_of(i, data));
        ck_assert(record.length == 0 || memcmp(record.payload, data, record.length) == 0);
    }
    return ndt_bag_next(reader, &record, err);
}

#endif
