/* The lines of a file, one after the other, without copying them. Private to ndt_io. */
#ifndef NDT_IO_LINE_READER_H
#define NDT_IO_LINE_READER_H

#include "input_file.h"

/* Longer lines are refused: no format here has them. */
#define NDT_LINE_MAX ((size_t)65536)

struct ndt_line_reader {
    const struct ndt_input *input; /* borrowed */
    uint64_t offset;               /* in the file, of the line that comes next */
    size_t number;                 /* of the line read last, from 1; 0 before the first */
    char *buffer;
    size_t begin, end; /* bytes of the buffer that are still to be given out */
};

/* Starts at `offset`, where `lines_before` lines have already gone by. */
NDT_MUST_CHECK enum ndt_status ndt_line_reader_open(struct ndt_line_reader *out, const struct ndt_input *input,
                                                    uint64_t offset, size_t lines_before, struct ndt_error *err);
void ndt_line_reader_close(struct ndt_line_reader *reader);
/* [*line, *line_end) without its "\n" or "\r\n", borrowed until the next call. A last line without an end
 * counts. NDT_END after the last; NDT_ERR_FORMAT for a line that is too long. */
NDT_MUST_CHECK enum ndt_status ndt_line_next(struct ndt_line_reader *reader, const char **line,
                                             const char **line_end, struct ndt_error *err);

#endif
