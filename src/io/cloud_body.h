/* The points of a cloud file, once its header has been understood: fixed-size records, columns, or lines of
 * text. What the header says is checked against the length of the file before anything is allocated.
 * Private to ndt_io. */
#ifndef NDT_IO_CLOUD_BODY_H
#define NDT_IO_CLOUD_BODY_H

#include "cloud_sink.h"
#include "input_file.h"
#include "point_layout.h"

/* Bytes, or words, of one point. */
#define NDT_POINT_SIZE_MAX ((size_t)65536)

struct ndt_cloud_body {
    const struct ndt_input *input;
    uint64_t offset;     /* of the first point in the file */
    size_t lines_before; /* text: lines above the first point */
    int is_last;         /* text: nothing may follow the points */
    uint64_t count;      /* points, as the header says */
    size_t size;         /* bytes of a point; text: words of a line */
    struct ndt_point_layout layout;
};

NDT_MUST_CHECK enum ndt_status ndt_body_read_binary(const struct ndt_cloud_body *body, struct ndt_cloud *cloud,
                                                    struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_body_read_text(const struct ndt_cloud_body *body, struct ndt_cloud *cloud,
                                                  struct ndt_error *err);
/* Points that are in memory already, count * size bytes, laid out as the layout says. */
NDT_MUST_CHECK enum ndt_status ndt_body_read_memory(const struct ndt_cloud_body *body, const uint8_t *data,
                                                    struct ndt_cloud *cloud, struct ndt_error *err);

#endif
