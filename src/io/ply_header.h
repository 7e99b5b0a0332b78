/* The header of a PLY file: where the vertices are and what they are made of. Private to ndt_io. */
#ifndef NDT_IO_PLY_HEADER_H
#define NDT_IO_PLY_HEADER_H

#include "cloud_body.h"

enum ply_stage { PLY_BEFORE_VERTEX, PLY_IN_VERTEX, PLY_AFTER_VERTEX };

struct ply_header {
    int has_format, is_text, has_end;
    enum ply_stage stage; /* of the element whose properties are being read */
    /* The element being read. */
    int has_element, has_list;
    uint64_t count, size; /* size: bytes of one, and in text the number of its words */
    /* What was found. */
    uint64_t skip;   /* bytes, in text lines, between the header and the first vertex */
    uint64_t points; /* vertices */
    uint64_t point_size;
    struct ndt_point_layout layout;
    uint64_t offset; /* of what follows the header */
    size_t line_count;
};

NDT_MUST_CHECK enum ndt_status ply_header_read(struct ply_header *out, const struct ndt_input *input,
                                               struct ndt_error *err);

#endif
