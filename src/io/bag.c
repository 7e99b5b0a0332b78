/* Reader of bags. A file is read at stated offsets, a stream once from begin to end; both through fetch(). */
#include "ndt_io/bag.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bag_format.h"
#include "input.h"
#include "stream.h"

/* Least number of bytes of a stream that are read at once. */
#define STREAM_STEP ((size_t)1 << 20)

struct ndt_bag_reader {
    struct ndt_input input;
    char *path;
    int is_stream;
    uint64_t offset; /* end of the last whole record */
    uint64_t records;
    uint32_t passed_types; /* bit TYPE: payloads of this type are not read */
    uint8_t *buffer;       /* payload and its CRC */
    size_t capacity;
    enum ndt_status status; /* a failure is permanent until ndt_bag_rewind */
    struct ndt_error error; /* message of the failure */
};

/* Reads up to `size` bytes at `offset`, fewer where the bag ends: *got. A stream is at `offset` already. */
static enum ndt_status fetch(struct ndt_bag_reader *reader, uint64_t offset, void *buffer, size_t size, size_t *got,
                             struct ndt_error *err)
{
    const struct ndt_input *input = &reader->input;
    if (reader->is_stream)
        return ndt_stream_read(input->fd, input->path, buffer, size, got, input->progress, err);
    const uint64_t rest = offset < input->size ? input->size - offset : 0;
    *got = rest < size ? (size_t)rest : size;
    return ndt_input_read(input, offset, buffer, *got, err);
}

static enum ndt_status check_head(struct ndt_bag_reader *reader, struct ndt_error *err)
{
    const char *path = reader->path;
    struct bag_file_head head;
    size_t got;
    enum ndt_status status = fetch(reader, 0, &head, sizeof(head), &got, err);
    if (status != NDT_OK)
        return status;
    if (got < sizeof(head))
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: not a bag: %zu bytes, the header alone has %zu", path, got,
                        sizeof(head));
    if (memcmp(head.magic, BAG_MAGIC, sizeof(head.magic)) != 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: not a bag: does not begin with NDTBAG; ndt-import makes one of other recordings",
                        path);
    if (head.version != BAG_VERSION || head.reserved != 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: bag version %" PRIu32 " (reserved %" PRIu32 "); this program reads version %u", path,
                        head.version, head.reserved, BAG_VERSION);
    return NDT_OK;
}

/* Opens a reader with the descriptor of a stream, or with -1 and the name of a file. Takes ownership of `fd`. */
static enum ndt_status open_reader(struct ndt_bag_reader **out, int fd, const char *path,
                                   struct ndt_progress *progress, struct ndt_error *err)
{
    *out = NULL;
    struct ndt_bag_reader *reader = calloc(1, sizeof(*reader));
    if (!reader) {
        if (fd >= 0)
            close(fd);
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    }
    reader->input.fd = fd;
    reader->offset = BAG_HEAD_SIZE;
    reader->path = strdup(path);
    reader->is_stream = fd >= 0;
    enum ndt_status status = reader->path ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    if (status == NDT_OK && !reader->is_stream)
        status = ndt_input_open(&reader->input, reader->path, err);
    reader->input.path = reader->path;
    reader->input.progress = reader->is_stream ? progress : NULL;
    if (status == NDT_OK)
        status = check_head(reader, err);
    if (status != NDT_OK) {
        ndt_bag_close(reader);
        return status;
    }
    *out = reader;
    return NDT_OK;
}

enum ndt_status ndt_bag_open(struct ndt_bag_reader **out, const char *path, struct ndt_error *err)
{
    return open_reader(out, -1, path, NULL, err);
}

enum ndt_status ndt_bag_open_any(struct ndt_bag_reader **out, const char *path, struct ndt_progress *progress,
                                 struct ndt_error *err)
{
    int fd = -1;
    *out = NULL;
    if (ndt_stream_is_stream(path)) {
        const enum ndt_status status = ndt_stream_open_input(&fd, path, err);
        if (status != NDT_OK)
            return status;
    }
    return open_reader(out, fd, ndt_stream_is_standard(path) ? "standard input" : path, progress, err);
}

enum ndt_status ndt_bag_open_stream(struct ndt_bag_reader **out, int fd, const char *name,
                                    struct ndt_progress *progress, struct ndt_error *err)
{
    return open_reader(out, fd, name, progress, err);
}

int ndt_bag_is_stream(const struct ndt_bag_reader *reader)
{
    return reader->is_stream;
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

static enum ndt_status fail_short(struct ndt_bag_reader *reader, size_t size, uint64_t rest)
{
    return ndt_fail(&reader->error, NDT_ERR_FORMAT,
                    "truncated or damaged: %zu bytes and a CRC do not fit into the %" PRIu64 " bytes left",
                    size - BAG_CRC_SIZE, rest);
}

/* Checks that the file has the rest of a record, so that a false length does not allocate more than that. */
static enum ndt_status check_rest(struct ndt_bag_reader *reader, uint64_t begin, size_t size)
{
    const uint64_t rest = reader->input.size - begin;
    return reader->is_stream || rest >= size ? NDT_OK : fail_short(reader, size, rest);
}

static enum ndt_status read_head(struct ndt_bag_reader *reader, struct bag_record_head *head)
{
    struct ndt_error *err = &reader->error;
    size_t got;
    enum ndt_status status = fetch(reader, reader->offset, head, sizeof(*head), &got, err);
    if (status != NDT_OK)
        return status;
    if (got == 0)
        return NDT_END;
    if (got < sizeof(*head))
        return ndt_fail(err, NDT_ERR_FORMAT, "truncated: %zu bytes left, its header alone has %zu", got,
                        sizeof(*head));
    if (head->length > NDT_BAG_MAX_PAYLOAD)
        return ndt_fail(err, NDT_ERR_FORMAT, "damaged: length %" PRIu32 " exceeds the limit of %" PRIu32 " bytes",
                        head->length, NDT_BAG_MAX_PAYLOAD);
    return NDT_OK;
}

/* Size of the next part of a payload. Of a stream it is no more than fits, or twice the bytes so far, so that a
 * false length does not allocate. */
static size_t next_size(const struct ndt_bag_reader *reader, size_t at, size_t size)
{
    size_t room = 2 * at > STREAM_STEP ? 2 * at : STREAM_STEP;
    room = room > reader->capacity ? room : reader->capacity;
    return reader->is_stream && room < size ? room : size;
}

static int is_passed(const struct ndt_bag_reader *reader, uint32_t type)
{
    return !reader->is_stream && type < 32 && (reader->passed_types >> type & 1);
}

static enum ndt_status read_payload(struct ndt_bag_reader *reader, const struct bag_record_head *head)
{
    const size_t size = (size_t)head->length + BAG_CRC_SIZE;
    struct ndt_error *err = &reader->error;
    const uint64_t begin = reader->offset + sizeof(*head);
    enum ndt_status status = check_rest(reader, begin, size);
    if (is_passed(reader, head->type))
        return status;
    for (size_t at = 0, to; status == NDT_OK && at < size; at = to) {
        size_t got = 0;
        to = next_size(reader, at, size);
        status = grow(reader, to);
        if (status == NDT_OK)
            status = fetch(reader, begin + at, reader->buffer + at, to - at, &got, err);
        if (status == NDT_OK && got < to - at)
            status = fail_short(reader, size, at + got);
    }
    if (status != NDT_OK)
        return status;
    uint32_t stored;
    memcpy(&stored, reader->buffer + head->length, sizeof(stored));
    const uint32_t computed = ndt_crc32c(ndt_crc32c(0, head, sizeof(*head)), reader->buffer, head->length);
    if (stored != computed)
        return ndt_fail(err, NDT_ERR_FORMAT, "damaged: CRC %08" PRIx32 ", computed %08" PRIx32, stored, computed);
    return NDT_OK;
}

enum ndt_status ndt_bag_next(struct ndt_bag_reader *reader, struct ndt_bag_record *out, struct ndt_error *err)
{
    struct bag_record_head head;
    if (reader->status == NDT_OK) {
        enum ndt_status status = read_head(reader, &head);
        if (status == NDT_END)
            return NDT_END;
        if (status == NDT_OK)
            status = read_payload(reader, &head);
        if (status != NDT_OK)
            fail_record(reader, status);
    }
    if (reader->status != NDT_OK)
        return ndt_fail(err, reader->status, "%s", reader->error.text);
    *out = (struct ndt_bag_record){head.type, head.length, head.receive_time_ns,
                                   is_passed(reader, head.type) ? NULL : reader->buffer};
    reader->offset += sizeof(head) + head.length + BAG_CRC_SIZE;
    reader->records++;
    return NDT_OK;
}

void ndt_bag_pass(struct ndt_bag_reader *reader, uint32_t types)
{
    reader->passed_types = types;
}

void ndt_bag_rewind(struct ndt_bag_reader *reader)
{
    if (reader->is_stream) {
        reader->status = ndt_fail(&reader->error, NDT_ERR_UNSUPPORTED, "%s: a pipe is read once", reader->path);
        return;
    }
    reader->offset = BAG_HEAD_SIZE;
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
