/** @file
 * @brief Bags (bag.bin): the wire frames of a drive as received, in order of arrival.
 *
 *     file   = magic "NDTBAG\r\n" (8 bytes), version u32 = 1, reserved u32 = 0, then records
 *     record = type u32, length u32, receive time i64 [ns], payload[length], crc32c u32 of everything before it
 *
 * Little endian throughout. The payload is one msgpack message (proto/SCHEMA.md) of at most NDT_BAG_MAX_PAYLOAD
 * bytes. A record is written with one write call, so a crash damages at most the last one; a reader stops after
 * the last complete record and reports the offset and the reason.
 *
 * Threads: readers and writers are used by one thread at a time. */
#ifndef NDT_IO_BAG_H
#define NDT_IO_BAG_H

#include <stdint.h>
#include <stdio.h>

#include "ndt/progress.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Longest payload [bytes]. */
#define NDT_BAG_MAX_PAYLOAD ((uint32_t)268435456)

/** A wire frame in a bag. */
struct ndt_bag_record {
    uint32_t type; /**< type of the message (ndt_proto/message.h), which bags do not interpret */
    uint32_t length;
    int64_t receive_time_ns;
    const uint8_t *payload; /**< borrowed until the next read or close; NULL: not read (ndt_bag_pass) */
};

/** Reader of a bag. */
struct ndt_bag_reader;
/** Opens a bag and checks its header. */
NDT_MUST_CHECK enum ndt_status ndt_bag_open(struct ndt_bag_reader **out, const char *path, struct ndt_error *err);
/** Opens a bag or a stream: "-" is standard input, else a FIFO, /dev/stdin or a process substitution. A stream is
 * read once, from begin to end, and waits for its writer; progress (borrowed, may be NULL) cancels the waiting. */
NDT_MUST_CHECK enum ndt_status ndt_bag_open_any(struct ndt_bag_reader **out, const char *path,
                                                struct ndt_progress *progress, struct ndt_error *err);
/** Opens a stream by its descriptor; `name` is for messages. The reader owns fd, which is closed on failure too. */
NDT_MUST_CHECK enum ndt_status ndt_bag_open_stream(struct ndt_bag_reader **out, int fd, const char *name,
                                                   struct ndt_progress *progress, struct ndt_error *err);
/** Whether the reader reads a stream: once only, and of unknown size. */
int ndt_bag_is_stream(const struct ndt_bag_reader *reader);
/** Reads the next record. NDT_END at the end of the file; NDT_ERR_FORMAT at a damaged or truncated record, also in
 * all further calls; NDT_ERR_CANCELLED. The reader's buffer grows with the largest record. */
NDT_MUST_CHECK enum ndt_status ndt_bag_next(struct ndt_bag_reader *reader, struct ndt_bag_record *out,
                                            struct ndt_error *err);
/** Passes over payloads of some types (bit TYPE of types below 32; 0: none), from the next record on: the record
 * has its type, length and time, and NULL for the payload. Its CRC is not checked; its place within the file is. In
 * a stream such payloads are read and checked all the same. */
void ndt_bag_pass(struct ndt_bag_reader *reader, uint32_t types);
/** Continues with the first record and clears an error. A stream cannot: the next ndt_bag_next reports it. */
void ndt_bag_rewind(struct ndt_bag_reader *reader);
/** Offset behind the last whole record that was read. */
uint64_t ndt_bag_offset(const struct ndt_bag_reader *reader);
/** Size of the file [bytes]; 0 for a stream. */
uint64_t ndt_bag_size(const struct ndt_bag_reader *reader);
/** `reader` may be NULL. */
void ndt_bag_close(struct ndt_bag_reader *reader);

/** Writer of a bag. */
struct ndt_bag_writer;
/** Creates a bag. An existing file is refused unless `append`, which removes a damaged last record; a file that is
 * not a bag, or that has more data behind the damage, is refused unchanged. A file has one writer at a time: a
 * second one is refused. "-" is standard output: it and FIFOs are written once, from begin to end; after a failure
 * or a discard the reader finds the whole records and maybe a part of one. A reader that has gone raises SIGPIPE,
 * or is an NDT_ERR_IO where that signal is ignored. */
NDT_MUST_CHECK enum ndt_status ndt_bag_create(struct ndt_bag_writer **out, const char *path, int append,
                                              struct ndt_error *err);
/** Creates a bag in a new and empty file that is open for reading and writing; `path` names it in errors. The
 * writer owns fd, which is closed on failure too; the file stays then. */
NDT_MUST_CHECK enum ndt_status ndt_bag_create_in(struct ndt_bag_writer **out, int fd, const char *path,
                                                 struct ndt_error *err);
/** Writes a record. After a failure the file holds the earlier records, and the writer refuses all further ones. */
NDT_MUST_CHECK enum ndt_status ndt_bag_write(struct ndt_bag_writer *writer, const struct ndt_bag_record *record,
                                             struct ndt_error *err);
/** Number of whole records in the file: those of this writer and, when it appends, the existing ones. */
uint64_t ndt_bag_writer_records(const struct ndt_bag_writer *writer);
/** Bytes of these records, with the header of the file. */
uint64_t ndt_bag_writer_offset(const struct ndt_bag_writer *writer);
/** Flushes to the disk, closes and frees the writer, also on failure. */
NDT_MUST_CHECK enum ndt_status ndt_bag_finish(struct ndt_bag_writer *writer, struct ndt_error *err);
/** Reverts all writes since ndt_bag_create (removes a new file, truncates an appended one) and frees the writer.
 * `writer` may be NULL. */
void ndt_bag_discard(struct ndt_bag_writer *writer);

/** CRC-32C (Castagnoli), as in RFC 3720; start with crc = 0. */
uint32_t ndt_crc32c(uint32_t crc, const void *data, size_t size);
/** ndt_crc32c from tables, on any CPU; ndt_crc32c uses it if the CPU has no instruction for it. */
uint32_t ndt_crc32c_plain(uint32_t crc, const void *data, size_t size);

#ifdef __cplusplus
}
#endif
#endif
