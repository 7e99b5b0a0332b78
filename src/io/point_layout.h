/* Where in the bytes (or words) of a point the fields are that are wanted. Private to ndt_io. */
#ifndef NDT_IO_POINT_LAYOUT_H
#define NDT_IO_POINT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum ndt_scalar {
    NDT_SCALAR_NONE, /* no field, or a type that is not known */
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
/* PCD's TYPE (I U F) and SIZE. */
enum ndt_scalar ndt_scalar_find(char kind, size_t size);
int ndt_scalar_is_whole(enum ndt_scalar type);

enum ndt_slot { NDT_SLOT_X, NDT_SLOT_Y, NDT_SLOT_Z, NDT_SLOT_INTENSITY, NDT_SLOT_TIME, NDT_SLOT_COUNT };

/* Of one field: value i begins at offset + i * stride. Bytes; in text, words of a line. */
struct ndt_point_slot {
    enum ndt_scalar type; /* NDT_SCALAR_NONE: the points have no such field */
    size_t offset;
    size_t stride;
};
struct ndt_point_layout {
    struct ndt_point_slot slots[NDT_SLOT_COUNT];
};

/* Takes the field into the slot its name belongs to, if it belongs to one that is still free. */
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

#endif
