#include <inttypes.h>
#include <lzf.h>
#include <stdlib.h>
#include <string.h>

#include "cloud_format.h"
#include "pcd_header.h"

static int is_padding(const struct pcd_field *field)
{
    return strcmp(field->name, "_") == 0;
}

/* Fields one after the other within each point: bytes, or words of a line. */
static void lay_out_points(struct ndt_cloud_body *body, const struct pcd_header *header)
{
    const int is_text = header->data == NDT_PCD_ASCII;
    body->size = 0;
    for (size_t i = 0; i < header->field_count; i++)
        body->size += header->fields[i].count * (is_text ? 1 : header->fields[i].size);
    size_t offset = 0;
    for (size_t i = 0; i < header->field_count; i++) {
        const struct pcd_field *field = &header->fields[i];
        ndt_layout_bind(&body->layout, field->name, ndt_scalar_find(field->kind, field->size), offset, body->size);
        offset += field->count * (is_text ? 1 : field->size);
    }
}

/* Compressed: one column per field. PCL leaves padding out of them; others may not. */
static void lay_out_columns(struct ndt_cloud_body *body, const struct pcd_header *header, int with_padding)
{
    memset(&body->layout, 0, sizeof(body->layout));
    body->size = 0;
    for (size_t i = 0; i < header->field_count; i++) {
        const struct pcd_field *field = &header->fields[i];
        if (is_padding(field) && !with_padding)
            continue;
        const size_t width = field->count * field->size;
        /* May wrap for hostile counts; the caller compares the total before it uses an offset. */
        ndt_layout_bind(&body->layout, field->name, ndt_scalar_find(field->kind, field->size),
                        (size_t)body->count * body->size, width);
        body->size += width;
    }
}

static int columns_fit(const struct ndt_cloud_body *body, uint64_t bytes)
{
    uint64_t needed;
    return !__builtin_mul_overflow(body->count, (uint64_t)body->size, &needed) && needed == bytes;
}

static enum ndt_status check_sizes(struct ndt_cloud_body *body, const struct pcd_header *header,
                                   const uint32_t sizes[2], struct ndt_error *err)
{
    const uint64_t best_ratio = 264 / 3; /* LZF: at most 264 bytes from 3 */
    const uint64_t rest = body->input->size - body->offset - 2 * sizeof(uint32_t);
    if (sizes[0] > rest)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: says %" PRIu32 " compressed bytes at byte %" PRIu64 ", but only %" PRIu64 " follow",
                        body->input->path, sizes[0], body->offset, rest);
    lay_out_columns(body, header, 0);
    if (!columns_fit(body, sizes[1]))
        lay_out_columns(body, header, 1);
    if (!columns_fit(body, sizes[1]) || sizes[1] > sizes[0] * best_ratio)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: says %" PRIu32 " bytes from %" PRIu32 " compressed ones, for %" PRIu64
                        " points of %zu bytes",
                        body->input->path, sizes[1], sizes[0], body->count, body->size);
    return NDT_OK;
}

static enum ndt_status decompress(const struct ndt_cloud_body *body, const uint32_t sizes[2], uint8_t *packed,
                                  uint8_t *data, struct ndt_error *err)
{
    enum ndt_status status =
        ndt_input_read(body->input, body->offset + 2 * sizeof(uint32_t), packed, sizes[0], err);
    if (status != NDT_OK)
        return status;
    if (lzf_decompress(packed, sizes[0], data, sizes[1]) != sizes[1])
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: the compressed data at byte %" PRIu64 " is damaged",
                        body->input->path, body->offset);
    return NDT_OK;
}

static enum ndt_status read_compressed(struct ndt_cloud_body *body, const struct pcd_header *header,
                                       struct ndt_cloud *cloud, struct ndt_error *err)
{
    uint32_t sizes[2]; /* compressed, uncompressed */
    if (body->count == 0)
        return ndt_body_read_memory(body, NULL, cloud, err);
    enum ndt_status status = ndt_input_read(body->input, body->offset, sizes, sizeof(sizes), err);
    if (status == NDT_OK)
        status = check_sizes(body, header, sizes, err);
    if (status != NDT_OK)
        return status;
    uint8_t *packed = malloc((size_t)sizes[0] + 1);
    uint8_t *data = malloc((size_t)sizes[1] + 1);
    if (!packed || !data)
        status = ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for %" PRIu32 " bytes", body->input->path, sizes[1]);
    else
        status = decompress(body, sizes, packed, data, err);
    free(packed);
    if (status == NDT_OK)
        status = ndt_body_read_memory(body, data, cloud, err);
    free(data);
    return status;
}

enum ndt_status ndt_pcd_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct pcd_header header;
    enum ndt_status status = pcd_header_read(&header, input, err);
    if (status != NDT_OK)
        return status;
    struct ndt_cloud_body body = {.input = input,
                                  .offset = header.offset,
                                  .lines_before = header.line_count,
                                  .is_last = 1,
                                  .count = header.points};
    lay_out_points(&body, &header);
    switch (header.data) {
    case NDT_PCD_ASCII:
        return ndt_body_read_text(&body, cloud, err);
    case NDT_PCD_COMPRESSED:
        return read_compressed(&body, &header, cloud, err);
    case NDT_PCD_BINARY:
        break;
    }
    return ndt_body_read_binary(&body, cloud, err);
}
