/* Writer of bags. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bag_format.h"
#include "ndt_io/bag.h"
#include "stream.h"

struct ndt_bag_writer {
    int fd;
    char *path;
    int is_stream;    /* the bag is a stream: neither locked nor truncated, and not removed */
    int is_new;       /* the file was created by this writer */
    uint64_t start;   /* size that ndt_bag_discard restores */
    uint64_t offset;  /* end of the last whole record */
    uint64_t records; /* number of records up to there */
    enum ndt_status status;
    struct ndt_error error;
};

static enum ndt_status fail_errno(const struct ndt_bag_writer *writer, const char *what, struct ndt_error *err)
{
    const char *name = ndt_stream_is_standard(writer->path) ? "standard output" : writer->path;
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot %s: %s", name, what, strerror(errno));
}

/* Waits for room: standard output may be a pipe that does not block. */
static int wait_for_room(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLOUT};
    return poll(&wanted, 1, -1) >= 0 || errno == EINTR;
}

/* Writes all parts with one call, or more after partial writes. */
static int write_parts(int fd, struct iovec *parts, int count)
{
    while (count > 0) {
        ssize_t done = writev(fd, parts, count);
        if (done < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_room(fd))))
            continue;
        if (done < 0)
            return 0;
        for (; count > 0 && (size_t)done >= parts->iov_len; parts++, count--)
            done -= (ssize_t)parts->iov_len;
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return 1;
}

static enum ndt_status write_file_head(struct ndt_bag_writer *writer, struct ndt_error *err)
{
    struct bag_file_head head = bag_file_head();
    struct iovec part = {&head, sizeof(head)};
    if (!write_parts(writer->fd, &part, 1))
        return fail_errno(writer, "write it", err);
    writer->offset = BAG_HEAD_SIZE;
    return NDT_OK;
}

static enum ndt_status set_end(struct ndt_bag_writer *writer, uint64_t size, struct ndt_error *err)
{
    if (ftruncate(writer->fd, (off_t)size) != 0 || lseek(writer->fd, (off_t)size, SEEK_SET) < 0)
        return fail_errno(writer, "truncate its damaged end", err);
    writer->offset = size;
    return NDT_OK;
}

/* Finds the end of the last whole record of an existing bag. */
static enum ndt_status find_end(const char *path, uint64_t *end, uint64_t *records, struct ndt_error *err)
{
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record;
    struct ndt_error reason;
    enum ndt_status status = ndt_bag_open(&reader, path, err);
    if (status != NDT_OK)
        return status;
    for (*records = 0; (status = ndt_bag_next(reader, &record, &reason)) == NDT_OK;)
        (*records)++;
    *end = ndt_bag_offset(reader);
    ndt_bag_close(reader);
    if (status == NDT_END || status == NDT_ERR_FORMAT)
        return NDT_OK;
    return ndt_fail(err, status, "%s", reason.text);
}

/* Whether the file is the begin of a header, as a crash right after creation leaves it. */
static int is_partial_header(const struct ndt_bag_writer *writer, size_t size)
{
    char begin[BAG_HEAD_SIZE] = {0};
    struct bag_file_head head = bag_file_head();
    return size < sizeof(begin) && pread(writer->fd, begin, size, 0) == (ssize_t)size &&
           memcmp(begin, &head, size) == 0;
}

/* Removes the damaged last record that a crash leaves. Damage followed by more data is an error that the user has
 * to resolve. */
static enum ndt_status check_tail(const struct ndt_bag_writer *writer, uint64_t end, uint64_t size,
                                  struct ndt_error *err)
{
    struct bag_record_head head;
    const uint64_t rest = size - end;
    if (pread(writer->fd, &head, sizeof(head), (off_t)end) != (ssize_t)sizeof(head))
        return NDT_OK;
    const uint64_t record = sizeof(head) + (uint64_t)head.length + BAG_CRC_SIZE;
    if (head.length > NDT_BAG_MAX_PAYLOAD || record >= rest)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_FORMAT,
                    "%s: the record at byte %" PRIu64 " is damaged and %" PRIu64
                    " bytes follow it: truncate the file there before appending",
                    writer->path, end, rest - record);
}

static enum ndt_status seek_to_end(struct ndt_bag_writer *writer, struct ndt_error *err)
{
    struct stat info;
    uint64_t end = 0;
    if (fstat(writer->fd, &info) != 0)
        return fail_errno(writer, "read its size", err);
    if (S_ISREG(info.st_mode) && is_partial_header(writer, (size_t)info.st_size)) {
        enum ndt_status status = set_end(writer, 0, err);
        return status == NDT_OK ? write_file_head(writer, err) : status;
    }
    enum ndt_status status = find_end(writer->path, &end, &writer->records, err);
    if (status == NDT_OK)
        status = check_tail(writer, end, (uint64_t)info.st_size, err);
    return status == NDT_OK ? set_end(writer, end, err) : status;
}

static enum ndt_status lock_file(const struct ndt_bag_writer *writer, struct ndt_error *err)
{
    if (flock(writer->fd, LOCK_EX | LOCK_NB) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: is being written by another process", writer->path);
    return NDT_OK;
}

static enum ndt_status open_stream(struct ndt_bag_writer *writer, struct ndt_error *err)
{
    writer->is_stream = writer->is_new = 1;
    return ndt_stream_open_output(&writer->fd, writer->path, err);
}

static enum ndt_status open_file(struct ndt_bag_writer *writer, int append, struct ndt_error *err)
{
    const int flags = O_RDWR | O_CLOEXEC;
    writer->fd = open(writer->path, flags | O_CREAT | O_EXCL, 0666);
    writer->is_new = writer->fd >= 0;
    if (!writer->is_new && errno == EEXIST && append)
        writer->fd = open(writer->path, flags);
    else if (!writer->is_new && errno == EEXIST)
        return ndt_fail(err, NDT_ERR_IO, "%s: exists already and is not overwritten", writer->path);
    if (writer->fd < 0)
        return fail_errno(writer, "open it for writing", err);
    return lock_file(writer, err);
}

static enum ndt_status open_output(struct ndt_bag_writer *writer, int append, struct ndt_error *err)
{
    return ndt_stream_is_stream(writer->path) ? open_stream(writer, err) : open_file(writer, append, err);
}

static void destroy(struct ndt_bag_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    free(writer->path);
    free(writer);
}

enum ndt_status ndt_bag_create(struct ndt_bag_writer **out, const char *path, int append, struct ndt_error *err)
{
    *out = NULL;
    struct ndt_bag_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    writer->fd = -1;
    writer->path = strdup(path);
    enum ndt_status status =
        writer->path ? open_output(writer, append, err) : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    if (status == NDT_OK)
        status = writer->is_new ? write_file_head(writer, err) : seek_to_end(writer, err);
    if (status != NDT_OK) {
        if (writer->is_new && !writer->is_stream)
            unlink(writer->path);
        destroy(writer);
        return status;
    }
    writer->start = writer->offset;
    *out = writer;
    return NDT_OK;
}

enum ndt_status ndt_bag_create_in(struct ndt_bag_writer **out, int fd, const char *path, struct ndt_error *err)
{
    *out = NULL;
    struct ndt_bag_writer *writer = calloc(1, sizeof(*writer));
    if (!writer) {
        close(fd);
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    }
    writer->fd = fd;
    writer->path = strdup(path);
    enum ndt_status status =
        writer->path ? lock_file(writer, err) : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    if (status == NDT_OK)
        status = write_file_head(writer, err);
    if (status != NDT_OK) {
        destroy(writer);
        return status;
    }
    writer->is_new = 1;
    *out = writer;
    return NDT_OK;
}

enum ndt_status ndt_bag_write(struct ndt_bag_writer *writer, const struct ndt_bag_record *record,
                              struct ndt_error *err)
{
    if (writer->status != NDT_OK)
        return ndt_fail(err, writer->status, "%s", writer->error.text);
    if (record->length > NDT_BAG_MAX_PAYLOAD)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s: a record of %" PRIu32 " bytes, the limit is %" PRIu32,
                        writer->path, record->length, NDT_BAG_MAX_PAYLOAD);
    struct bag_record_head head = {record->type, record->length, record->receive_time_ns};
    uint32_t crc = ndt_crc32c(ndt_crc32c(0, &head, sizeof(head)), record->payload, record->length);
    struct iovec parts[] = {
        {&head, sizeof(head)}, {(void *)(uintptr_t)record->payload, record->length}, {&crc, sizeof(crc)}};
    if (write_parts(writer->fd, parts, 3)) {
        writer->offset += sizeof(head) + record->length + sizeof(crc);
        writer->records++;
        return NDT_OK;
    }
    writer->status = fail_errno(writer, "write a record", &writer->error);
    /* The error reports the first failure; a second one here changes nothing. */
    if (!writer->is_stream && ftruncate(writer->fd, (off_t)writer->offset) != 0)
        errno = 0;
    return ndt_fail(err, writer->status, "%s", writer->error.text);
}

uint64_t ndt_bag_writer_records(const struct ndt_bag_writer *writer)
{
    return writer->records;
}

uint64_t ndt_bag_writer_offset(const struct ndt_bag_writer *writer)
{
    return writer->offset;
}

enum ndt_status ndt_bag_finish(struct ndt_bag_writer *writer, struct ndt_error *err)
{
    enum ndt_status status = writer->status;
    if (status != NDT_OK)
        ndt_fail(err, status, "%s", writer->error.text);
    if (!writer->is_stream && fsync(writer->fd) != 0 && status == NDT_OK)
        status = fail_errno(writer, "write it to the disk", err);
    const int closed = close(writer->fd);
    writer->fd = -1;
    if (closed != 0 && status == NDT_OK)
        status = fail_errno(writer, "close it", err);
    destroy(writer);
    return status;
}

void ndt_bag_discard(struct ndt_bag_writer *writer)
{
    if (!writer)
        return;
    if (writer->is_stream)
        ; /* written bytes cannot be taken back */
    else if (writer->is_new)
        unlink(writer->path);
    else if (ftruncate(writer->fd, (off_t)writer->start) != 0)
        errno = 0; /* whole records stay */
    destroy(writer);
}
