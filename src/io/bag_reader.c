#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bag_format.h"
#include "input_file.h"
#include "ndt_io/bag.h"

struct ndt_bag_reader {
    struct ndt_input input;
    char *path;
    uint64_t offset; /* end of the last whole record */
    uint64_t records;
    uint8_t *buffer; /* payload and its CRC */
    size_t capacity;
    enum ndt_status status; /* sticky once it is a failure, */
    struct ndt_error error; /* with its line */
};

static enum ndt_status check_head(const struct ndt_input *input, struct ndt_error *err)
{
    struct ndt_bag_file_head head;
    if (input->size < sizeof(head))
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: no bag: %" PRIu64 " bytes, its head alone has %zu", input->path,
                        input->size, sizeof(head));
    enum ndt_status status = ndt_input_read(input, 0, &head, sizeof(head), err);
    if (status != NDT_OK)
        return status;
    if (memcmp(head.magic, NDT_BAG_MAGIC, sizeof(head.magic)) != 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: no bag: does not begin with NDTBAG", input->path);
    if (head.version != NDT_BAG_VERSION || head.reserved != 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: bag of version %" PRIu32 " (reserved %" PRIu32 "), this program reads version %u",
                        input->path, head.version, head.reserved, NDT_BAG_VERSION);
    return NDT_OK;
}

enum ndt_status ndt_bag_open(struct ndt_bag_reader **out, const char *path, struct ndt_error *err)
{
    *out = NULL;
    struct ndt_bag_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    reader->input.fd = -1;
    reader->offset = NDT_BAG_HEAD_SIZE;
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

/* One line for a record that cannot be given out: which one, where, and why. */
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

static enum ndt_status read_head(struct ndt_bag_reader *reader, struct ndt_bag_record_head *head)
{
    struct ndt_error *err = &reader->error;
    const uint64_t rest = reader->input.size - reader->offset;
    if (rest < sizeof(*head))
        return ndt_fail(err, NDT_ERR_FORMAT, "cut: %" PRIu64 " bytes left, its head alone has %zu", rest,
                        sizeof(*head));
    enum ndt_status status = ndt_input_read(&reader->input, reader->offset, head, sizeof(*head), err);
    if (status != NDT_OK)
        return status;
    if (head->length > NDT_BAG_MAX_PAYLOAD)
        return ndt_fail(err, NDT_ERR_FORMAT, "damaged: says %" PRIu32 " bytes, the limit is %" PRIu32, head->length,
                        NDT_BAG_MAX_PAYLOAD);
    if (rest - sizeof(*head) < (uint64_t)head->length + NDT_BAG_CRC_SIZE)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "cut or damaged: says %" PRIu32 " bytes and a CRC, %" PRIu64 " bytes are left",
                        head->length, rest - sizeof(*head));
    return NDT_OK;
}

static enum ndt_status read_payload(struct ndt_bag_reader *reader, const struct ndt_bag_record_head *head)
{
    const size_t size = (size_t)head->length + NDT_BAG_CRC_SIZE;
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
    struct ndt_bag_record_head head;
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
    reader->offset += sizeof(head) + head.length + NDT_BAG_CRC_SIZE;
    reader->records++;
    return NDT_OK;
}

void ndt_bag_rewind(struct ndt_bag_reader *reader)
{
    reader->offset = NDT_BAG_HEAD_SIZE;
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
