#include <inttypes.h>

#include "cloud_format.h"
#include "line_reader.h"
#include "ply_header.h"

/* Text: the elements before the vertices, whatever is in them, are one line each. */
static enum ndt_status skip_lines(struct ndt_cloud_body *body, uint64_t count, struct ndt_error *err)
{
    struct ndt_line_reader reader;
    const char *line, *end;
    enum ndt_status status = ndt_line_reader_open(&reader, body->input, body->offset, body->lines_before, err);
    for (uint64_t i = 0; status == NDT_OK && i < count; i++)
        status = ndt_line_next(&reader, &line, &end, err);
    body->offset = reader.offset;
    body->lines_before = reader.number;
    ndt_line_reader_close(&reader);
    if (status == NDT_END)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: ends after line %zu, before the vertices", body->input->path,
                        body->lines_before);
    return status;
}

static enum ndt_status skip_bytes(struct ndt_cloud_body *body, uint64_t count, struct ndt_error *err)
{
    const uint64_t rest = body->input->size - body->offset;
    if (count > rest)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: the header says %" PRIu64 " bytes before the vertices, but only %" PRIu64 " follow it",
                        body->input->path, count, rest);
    body->offset += count;
    return NDT_OK;
}

enum ndt_status ndt_ply_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct ply_header header;
    enum ndt_status status = ply_header_read(&header, input, err);
    if (status != NDT_OK)
        return status;
    struct ndt_cloud_body body = {.input = input,
                                  .offset = header.offset,
                                  .lines_before = header.line_count,
                                  .is_last = header.stage == PLY_IN_VERTEX,
                                  .count = header.points,
                                  .size = (size_t)header.point_size,
                                  .layout = header.layout};
    if (header.is_text) {
        status = skip_lines(&body, header.skip, err);
        return status == NDT_OK ? ndt_body_read_text(&body, cloud, err) : status;
    }
    status = skip_bytes(&body, header.skip, err);
    return status == NDT_OK ? ndt_body_read_binary(&body, cloud, err) : status;
}
