#include "line_reader.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_SIZE = 262144 };

enum ndt_status ndt_line_reader_open(struct ndt_line_reader *out, const struct ndt_input *input, uint64_t offset,
                                     size_t lines_before, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->input = input;
    out->offset = offset;
    out->number = lines_before;
    out->buffer = malloc(BUFFER_SIZE);
    if (!out->buffer)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for a buffer", input->path);
    return NDT_OK;
}

void ndt_line_reader_close(struct ndt_line_reader *reader)
{
    free(reader->buffer);
    memset(reader, 0, sizeof(*reader));
}

/* Moves what is left to the front and reads on. *at_end: the buffer now holds all the rest. */
static enum ndt_status refill(struct ndt_line_reader *reader, int *at_end, struct ndt_error *err)
{
    const size_t kept = reader->end - reader->begin;
    const uint64_t file_at = reader->offset + kept;
    const uint64_t left = reader->input->size > file_at ? reader->input->size - file_at : 0;
    const size_t room = BUFFER_SIZE - kept;
    const size_t size = left < room ? (size_t)left : room;
    memmove(reader->buffer, reader->buffer + reader->begin, kept);
    reader->begin = 0;
    reader->end = kept + size;
    *at_end = size == left;
    return ndt_input_read(reader->input, file_at, reader->buffer + kept, size, err);
}

enum ndt_status ndt_line_next(struct ndt_line_reader *reader, const char **line, const char **line_end,
                              struct ndt_error *err)
{
    int at_end = 0;
    char *newline = memchr(reader->buffer + reader->begin, '\n', reader->end - reader->begin);
    if (!newline) {
        enum ndt_status status = refill(reader, &at_end, err);
        if (status != NDT_OK)
            return status;
        newline = memchr(reader->buffer, '\n', reader->end);
    }
    size_t left = reader->end - reader->begin;
    if (!newline && at_end && left == 0)
        return NDT_END;
    const char *begin = reader->buffer + reader->begin;
    const char *stop = newline ? newline : begin + left;
    reader->number++;
    if ((size_t)(stop - begin) > NDT_LINE_MAX)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu is longer than the limit of %zu bytes",
                        reader->input->path, reader->number, NDT_LINE_MAX);
    const size_t used = (size_t)(stop - begin) + (newline ? 1 : 0);
    reader->begin += used;
    reader->offset += used;
    *line = begin;
    *line_end = stop > begin && stop[-1] == '\r' ? stop - 1 : stop;
    return NDT_OK;
}
