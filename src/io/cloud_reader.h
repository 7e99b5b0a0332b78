/* Private to ndt_io: from the header of a cloud file to a cloud.
 *
 * A format (pcd_read.c, ply_read.c, and KITTI in cloud_file.c) parses its header and describes the fields that are
 * read with a point layout; cloud_reader.c reads the points. */
#ifndef NDT_IO_CLOUD_READER_H
#define NDT_IO_CLOUD_READER_H

#include <stddef.h>
#include <stdint.h>

#include "input.h"
#include "ndt/cloud.h"

/* ---- point_layout.c: offsets of the fields that are read within the bytes (or words) of a point ---- */

enum ndt_scalar {
    NDT_SCALAR_NONE, /* no field, or an unknown type */
    NDT_I8,
    NDT_I16,
    NDT_I32,
    NDT_I64,
    NDT_U8,
    NDT_U16,
    NDT_U32,
    NDT_U64,
    NDT_F32,
    NDT_F64
};
size_t ndt_scalar_size(enum ndt_scalar type); /* bytes; 0 for none */
/* Finds the scalar of PCD's TYPE (I U F) and SIZE. */
enum ndt_scalar ndt_scalar_find(char kind, size_t size);
int ndt_scalar_is_whole(enum ndt_scalar type);

enum ndt_slot { NDT_SLOT_X, NDT_SLOT_Y, NDT_SLOT_Z, NDT_SLOT_INTENSITY, NDT_SLOT_TIME, NDT_SLOT_COUNT };

/* Place of one field: value i begins at offset + i * stride, in bytes, in text in words of a line. */
struct ndt_point_slot {
    enum ndt_scalar type; /* NDT_SCALAR_NONE: the points have no such field */
    size_t offset;
    size_t stride;
};
struct ndt_point_layout {
    struct ndt_point_slot slots[NDT_SLOT_COUNT];
};

/* Binds the field to the slot of its name, if that is still free. */
void ndt_layout_bind(struct ndt_point_layout *layout, const char *name, enum ndt_scalar type, size_t offset,
                     size_t stride);
/* The name of the first coordinate that has no field; NULL when all are there. */
const char *ndt_layout_missing(const struct ndt_point_layout *layout);
int ndt_layout_is_float(const struct ndt_point_layout *layout);    /* x, y, z are all float32 */
unsigned ndt_layout_fields(const struct ndt_point_layout *layout); /* NDT_CLOUD_* */

/* Copies one column of `count` values, little endian. */
void ndt_column_to_float(const struct ndt_point_slot *slot, const uint8_t *base, size_t count, float *out);
void ndt_column_to_double(const struct ndt_point_slot *slot, const uint8_t *base, size_t count, double *out);
void ndt_column_to_whole(const struct ndt_point_slot *slot, const uint8_t *base, size_t count, int64_t *out);

/* ---- cloud_reader.c: the points: fixed-size records, columns, or lines of text ----
 *
 * The header is checked against the length of the file before anything is allocated. */

/* Largest size of a point: bytes, or words. */
#define NDT_POINT_SIZE_MAX ((size_t)65536)

struct ndt_cloud_body {
    const struct ndt_input *input;
    uint64_t offset;     /* offset of the first point in the file */
    size_t lines_before; /* text: lines above the first point */
    int is_last;         /* text: nothing may follow the points */
    uint64_t count;      /* points, according to the header */
    size_t size;         /* bytes of a point; text: words of a line */
    struct ndt_point_layout layout;
};

NDT_MUST_CHECK enum ndt_status ndt_body_read_binary(const struct ndt_cloud_body *body, struct ndt_cloud *cloud,
                                                    struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_body_read_text(const struct ndt_cloud_body *body, struct ndt_cloud *cloud,
                                                  struct ndt_error *err);
/* Reads points that are in memory already: count * size bytes in the layout of the body. */
NDT_MUST_CHECK enum ndt_status ndt_body_read_memory(const struct ndt_cloud_body *body, const uint8_t *data,
                                                    struct ndt_cloud *cloud, struct ndt_error *err);

/* ---- cloud_file.c: the table of formats; adding a format is adding a file and a row ---- */

struct ndt_cloud_format {
    const char *extension; /* with the dot, lower case */
    /* Reads a file into an initialised `cloud`, whose memory is reused; its contents after a failure are
     * unspecified. */
    enum ndt_status (*read)(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err);
};

/* The format of the extension of the path (case-insensitive); NULL if unknown. */
const struct ndt_cloud_format *ndt_cloud_format_find(const char *path);
/* All extensions with a blank before each, for error lines; returns `text`. */
const char *ndt_cloud_format_list(char *text, size_t size);
/* Whether a file of this name is a recording: a bag, packets, or messages. */
int ndt_is_recording_name(const char *path);

enum ndt_status ndt_pcd_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err);
enum ndt_status ndt_ply_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err);

#endif
