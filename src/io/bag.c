/* Bags: their checksum, their reader and their writer. */
#include "ndt_io/bag.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "input.h"

#define BAG_MAGIC   "NDTBAG\r\n"
#define BAG_VERSION 1u

enum { HEAD_SIZE = 16, CRC_SIZE = 4 };

struct file_head {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
};
struct record_head {
    uint32_t type;
    uint32_t length;
    int64_t receive_time_ns;
};
_Static_assert(sizeof(struct file_head) == HEAD_SIZE, "no padding");
_Static_assert(sizeof(struct record_head) == HEAD_SIZE, "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structs are written as they are");

/* ---- CRC-32C ---- */

/* Castagnoli's polynomial, bits reversed. */
#define POLYNOMIAL 0x82f63b78u

/* tables[k][b]: the CRC of byte b followed by k zero bytes, so that 8 bytes take 8 independent look-ups. */
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t byte = 0; byte < 256; byte++)
            tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 255];
}

static uint64_t load_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

uint32_t ndt_crc32c_plain(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;
    pthread_once(&tables_once, make_tables);
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        const uint64_t word = load_u64(at) ^ crc;
        crc = 0;
        for (unsigned k = 0; k < 8; k++)
            crc ^= tables[7 - k][(word >> 8 * k) & 255];
    }
    for (; size > 0; size--, at++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 255];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t state = (uint32_t)~crc;
    for (; size >= 8; size -= 8, at += 8)
        state = __builtin_ia32_crc32di(state, load_u64(at));
    uint32_t rest = (uint32_t)state;
    for (; size > 0; size--, at++)
        rest = __builtin_ia32_crc32qi(rest, *at);
    return ~rest;
}

uint32_t ndt_crc32c(uint32_t crc, const void *data, size_t size)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, data, size) : ndt_crc32c_plain(crc, data, size);
}
#else
uint32_t ndt_crc32c(uint32_t crc, const void *data, size_t size)
{
    return ndt_crc32c_plain(crc, data, size);
}
#endif

/* ---- reading ---- */

struct ndt_bag_reader {
    struct ndt_input input;
    char *path;
    uint64_t offset; /* end of the last whole record */
    uint64_t records;
    uint8_t *buffer; /* payload and its CRC */
    size_t capacity;
    enum ndt_status status; /* a failure is permanent until ndt_bag_rewind */
    struct ndt_error error; /* its message */
};

static enum ndt_status check_head(const struct ndt_input *input, struct ndt_error *err)
{
    struct file_head head;
    if (input->size < sizeof(head))
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: not a bag: %" PRIu64 " bytes, the header alone has %zu",
                        input->path, input->size, sizeof(head));
    enum ndt_status status = ndt_input_read(input, 0, &head, sizeof(head), err);
    if (status != NDT_OK)
        return status;
    if (memcmp(head.magic, BAG_MAGIC, sizeof(head.magic)) != 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: not a bag: does not begin with NDTBAG", input->path);
    if (head.version != BAG_VERSION || head.reserved != 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: bag version %" PRIu32 " (reserved %" PRIu32 "); this program reads version %u",
                        input->path, head.version, head.reserved, BAG_VERSION);
    return NDT_OK;
}

enum ndt_status ndt_bag_open(struct ndt_bag_reader **out, const char *path, struct ndt_error *err)
{
    *out = NULL;
    struct ndt_bag_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    reader->input.fd = -1;
    reader->offset = HEAD_SIZE;
    reader->path = strdup(path);
    enum ndt_status status = reader->path ? ndt_input_open(&reader->input, reader->path, err)
                                          : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    if (status == NDT_OK)
        status = check_head(&reader->input, err);
    if (status != NDT_OK) {
        ndt_bag_close(reader);
        return status;
    }
    *out = reader;
    return NDT_OK;
}

/* Completes the error of a record: which one, at which offset, why. */
static enum ndt_status fail_record(struct ndt_bag_reader *reader, enum ndt_status status)
{
    struct ndt_error reason = reader->error;
    reader->status = status;
    return ndt_fail(&reader->error, status, "%s: record %" PRIu64 " at byte %" PRIu64 ": %s", reader->path,
                    reader->records + 1, reader->offset, reason.text);
}

static enum ndt_status grow(struct ndt_bag_reader *reader, size_t size)
{
    if (size <= reader->capacity)
        return NDT_OK;
    uint8_t *buffer = realloc(reader->buffer, size);
    if (!buffer)
        return ndt_fail(&reader->error, NDT_ERR_MEMORY, "no memory for %zu bytes", size);
    reader->buffer = buffer;
    reader->capacity = size;
    return NDT_OK;
}

static enum ndt_status read_head(struct ndt_bag_reader *reader, struct record_head *head)
{
    struct ndt_error *err = &reader->error;
    const uint64_t rest = reader->input.size - reader->offset;
    if (rest < sizeof(*head))
        return ndt_fail(err, NDT_ERR_FORMAT, "truncated: %" PRIu64 " bytes left, its header alone has %zu", rest,
                        sizeof(*head));
    enum ndt_status status = ndt_input_read(&reader->input, reader->offset, head, sizeof(*head), err);
    if (status != NDT_OK)
        return status;
    if (head->length > NDT_BAG_MAX_PAYLOAD)
        return ndt_fail(err, NDT_ERR_FORMAT, "damaged: length %" PRIu32 " exceeds the limit of %" PRIu32 " bytes",
                        head->length, NDT_BAG_MAX_PAYLOAD);
    if (rest - sizeof(*head) < (uint64_t)head->length + CRC_SIZE)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "truncated or damaged: %" PRIu32 " bytes and a CRC do not fit into the %" PRIu64
                        " bytes left",
                        head->length, rest - sizeof(*head));
    return NDT_OK;
}

static enum ndt_status read_payload(struct ndt_bag_reader *reader, const struct record_head *head)
{
    const size_t size = (size_t)head->length + CRC_SIZE;
    enum ndt_status status = grow(reader, size);
    if (status == NDT_OK)
        status =
            ndt_input_read(&reader->input, reader->offset + sizeof(*head), reader->buffer, size, &reader->error);
    if (status != NDT_OK)
        return status;
    uint32_t stored;
    memcpy(&stored, reader->buffer + head->length, sizeof(stored));
    const uint32_t computed = ndt_crc32c(ndt_crc32c(0, head, sizeof(*head)), reader->buffer, head->length);
    if (stored != computed)
        return ndt_fail(&reader->error, NDT_ERR_FORMAT, "damaged: CRC %08" PRIx32 ", computed %08" PRIx32, stored,
                        computed);
    return NDT_OK;
}

enum ndt_status ndt_bag_next(struct ndt_bag_reader *reader, struct ndt_bag_record *out, struct ndt_error *err)
{
    struct record_head head;
    if (reader->status == NDT_OK && reader->offset == reader->input.size)
        return NDT_END;
    if (reader->status == NDT_OK) {
        enum ndt_status status = read_head(reader, &head);
        if (status == NDT_OK)
            status = read_payload(reader, &head);
        if (status != NDT_OK)
            fail_record(reader, status);
    }
    if (reader->status != NDT_OK)
        return ndt_fail(err, reader->status, "%s", reader->error.text);
    *out = (struct ndt_bag_record){head.type, head.length, head.receive_time_ns, reader->buffer};
    reader->offset += sizeof(head) + head.length + CRC_SIZE;
    reader->records++;
    return NDT_OK;
}

void ndt_bag_rewind(struct ndt_bag_reader *reader)
{
    reader->offset = HEAD_SIZE;
    reader->records = 0;
    reader->status = NDT_OK;
}

uint64_t ndt_bag_offset(const struct ndt_bag_reader *reader)
{
    return reader->offset;
}

uint64_t ndt_bag_size(const struct ndt_bag_reader *reader)
{
    return reader->input.size;
}

void ndt_bag_close(struct ndt_bag_reader *reader)
{
    if (!reader)
        return;
    ndt_input_close(&reader->input);
    free(reader->path);
    free(reader->buffer);
    free(reader);
}

/* ---- writing ---- */

struct ndt_bag_writer {
    int fd;
    char *path;
    int is_new;      /* the file was created by this writer */
    uint64_t start;  /* size that ndt_bag_discard restores */
    uint64_t offset; /* end of the last whole record */
    enum ndt_status status;
    struct ndt_error error;
};

static enum ndt_status fail_errno(const struct ndt_bag_writer *writer, const char *what, struct ndt_error *err)
{
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot %s: %s", writer->path, what, strerror(errno));
}

/* Writes all parts with one call, or more after partial writes. */
static int write_parts(int fd, struct iovec *parts, int count)
{
    while (count > 0) {
        ssize_t done = writev(fd, parts, count);
        if (done < 0 && errno == EINTR)
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
    struct file_head head = {.version = BAG_VERSION};
    memcpy(head.magic, BAG_MAGIC, sizeof(head.magic));
    struct iovec part = {&head, sizeof(head)};
    if (!write_parts(writer->fd, &part, 1))
        return fail_errno(writer, "write it", err);
    writer->offset = HEAD_SIZE;
    return NDT_OK;
}

static enum ndt_status set_end(struct ndt_bag_writer *writer, uint64_t size, struct ndt_error *err)
{
    if (ftruncate(writer->fd, (off_t)size) != 0 || lseek(writer->fd, (off_t)size, SEEK_SET) < 0)
        return fail_errno(writer, "truncate its damaged end", err);
    writer->offset = size;
    return NDT_OK;
}

/* Where the last whole record of an existing bag ends. */
static enum ndt_status find_end(const char *path, uint64_t *end, struct ndt_error *err)
{
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record;
    struct ndt_error reason;
    enum ndt_status status = ndt_bag_open(&reader, path, err);
    if (status != NDT_OK)
        return status;
    do
        status = ndt_bag_next(reader, &record, &reason);
    while (status == NDT_OK);
    *end = ndt_bag_offset(reader);
    ndt_bag_close(reader);
    if (status == NDT_END || status == NDT_ERR_FORMAT)
        return NDT_OK;
    return ndt_fail(err, status, "%s", reason.text);
}

/* A crash right after creation leaves an empty file or a part of the header. */
static int is_partial_header(const struct ndt_bag_writer *writer, size_t size)
{
    char begin[HEAD_SIZE] = {0};
    struct file_head head = {.version = BAG_VERSION};
    memcpy(head.magic, BAG_MAGIC, sizeof(head.magic));
    return size < sizeof(begin) && pread(writer->fd, begin, size, 0) == (ssize_t)size &&
           memcmp(begin, &head, size) == 0;
}

/* Removes only the damaged last record that a crash leaves. Damage followed by more data is an error that the user
 * must resolve. */
static enum ndt_status check_tail(const struct ndt_bag_writer *writer, uint64_t end, uint64_t size,
                                  struct ndt_error *err)
{
    struct record_head head;
    const uint64_t rest = size - end;
    if (pread(writer->fd, &head, sizeof(head), (off_t)end) != (ssize_t)sizeof(head))
        return NDT_OK;
    const uint64_t record = sizeof(head) + (uint64_t)head.length + CRC_SIZE;
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
    enum ndt_status status = find_end(writer->path, &end, err);
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
        writer->path ? open_file(writer, append, err) : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    if (status == NDT_OK)
        status = writer->is_new ? write_file_head(writer, err) : seek_to_end(writer, err);
    if (status != NDT_OK) {
        if (writer->is_new)
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
    struct record_head head = {record->type, record->length, record->receive_time_ns};
    uint32_t crc = ndt_crc32c(ndt_crc32c(0, &head, sizeof(head)), record->payload, record->length);
    struct iovec parts[] = {
        {&head, sizeof(head)}, {(void *)(uintptr_t)record->payload, record->length}, {&crc, sizeof(crc)}};
    if (write_parts(writer->fd, parts, 3)) {
        writer->offset += sizeof(head) + record->length + sizeof(crc);
        return NDT_OK;
    }
    writer->status = fail_errno(writer, "write a record", &writer->error);
    /* The error reports the first failure; a second one here changes nothing. */
    if (ftruncate(writer->fd, (off_t)writer->offset) != 0)
        errno = 0;
    return ndt_fail(err, writer->status, "%s", writer->error.text);
}

enum ndt_status ndt_bag_finish(struct ndt_bag_writer *writer, struct ndt_error *err)
{
    enum ndt_status status = writer->status;
    if (status != NDT_OK)
        ndt_fail(err, status, "%s", writer->error.text);
    if (fsync(writer->fd) != 0 && status == NDT_OK)
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
    if (writer->is_new)
        unlink(writer->path);
    else if (ftruncate(writer->fd, (off_t)writer->start) != 0)
        errno = 0; /* whole records stay */
    destroy(writer);
}
