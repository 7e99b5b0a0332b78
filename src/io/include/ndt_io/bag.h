/* bag.bin: the raw wire frames of a drive, in the order they came.
 *
 *   file   = magic "NDTBAG\r\n" (8 bytes), version u32 = 1, reserved u32 = 0, then records
 *   record = type u32, length u32, receive time i64 [ns], payload[length], crc32c u32 of all before it
 * Little endian throughout. The payload is one msgpack message (proto/SCHEMA.md). A record is written with
 * one write call, so that a crash loses at most the last one; a reader stops at the last whole record and
 * says at which byte and why. Length is at most NDT_BAG_MAX_PAYLOAD. */
#ifndef NDT_IO_BAG_H
#define NDT_IO_BAG_H

#include <stdint.h>
#include <stdio.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_BAG_MAX_PAYLOAD ((uint32_t)268435456)

/* Types of records are the types of messages (ndt_proto/message.h) and are not interpreted here. */
struct ndt_bag_record {
    uint32_t type;
    uint32_t length;
    int64_t receive_time_ns;
    const uint8_t *payload; /* borrowed until the next read or close */
};

struct ndt_bag_reader;
NDT_MUST_CHECK enum ndt_status ndt_bag_open(struct ndt_bag_reader **out, const char *path, struct ndt_error *err);
/* NDT_OK; NDT_END at the end of the file; NDT_ERR_FORMAT at a damaged or cut record, with its offset and
 * reason in err (further calls return the same). The reader's buffer grows with the largest record. */
NDT_MUST_CHECK enum ndt_status ndt_bag_next(struct ndt_bag_reader *reader, struct ndt_bag_record *out,
                                            struct ndt_error *err);
void ndt_bag_rewind(struct ndt_bag_reader *reader);
uint64_t ndt_bag_offset(const struct ndt_bag_reader *reader); /* end of the last whole record */
uint64_t ndt_bag_size(const struct ndt_bag_reader *reader);   /* of the file */
void ndt_bag_close(struct ndt_bag_reader *reader);

struct ndt_bag_writer;
/* Creates the file; an existing one is an error unless `append`, which cuts a damaged last record off first. A
 * file that is no bag, or that has more behind the damage, is refused and left as it is. Only one writer per
 * file: a second one is refused while the first is open. */
NDT_MUST_CHECK enum ndt_status ndt_bag_create(struct ndt_bag_writer **out, const char *path, int append,
                                              struct ndt_error *err);
/* A record that could not be written whole leaves no trace, but the writer then refuses all further ones. */
NDT_MUST_CHECK enum ndt_status ndt_bag_write(struct ndt_bag_writer *writer, const struct ndt_bag_record *record,
                                             struct ndt_error *err);
/* Flushes to the disk and closes; reports what failed. The writer is gone either way. */
NDT_MUST_CHECK enum ndt_status ndt_bag_finish(struct ndt_bag_writer *writer, struct ndt_error *err);
/* Takes back what was written since ndt_bag_create: a new file is removed, an appended one cut to the records
 * it had. The writer is gone. NULL is allowed. */
void ndt_bag_discard(struct ndt_bag_writer *writer);

/* CRC-32C (Castagnoli), as in RFC 3720; start with crc = 0. */
uint32_t ndt_crc32c(uint32_t crc, const void *data, size_t size);
/* The same from tables, on any CPU: what the faster ones are checked against. */
uint32_t ndt_crc32c_plain(uint32_t crc, const void *data, size_t size);

#ifdef __cplusplus
}
#endif
#endif
