#include "cloud_reader.h"

#include <string.h>

#include "ndt/cloud.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read without swapping bytes");

static const struct scalar {
    char kind;
    uint8_t size;
} scalars[] = {
    [NDT_I8] = {'I', 1},  [NDT_I16] = {'I', 2}, [NDT_I32] = {'I', 4}, [NDT_I64] = {'I', 8}, [NDT_U8] = {'U', 1},
    [NDT_U16] = {'U', 2}, [NDT_U32] = {'U', 4}, [NDT_U64] = {'U', 8}, [NDT_F32] = {'F', 4}, [NDT_F64] = {'F', 8}};

size_t ndt_scalar_size(enum ndt_scalar type)
{
    return scalars[type].size;
}

enum ndt_scalar ndt_scalar_find(char kind, size_t size)
{
    for (unsigned type = NDT_I8; type <= NDT_F64; type++)
        if (scalars[type].kind == kind && scalars[type].size == size)
            return (enum ndt_scalar)type;
    return NDT_SCALAR_NONE;
}

int ndt_scalar_is_whole(enum ndt_scalar type)
{
    return type >= NDT_I8 && type <= NDT_U64;
}

/* Names of the fields that are read; a new name is a new row. */
static const struct field_name {
    const char *name;
    enum ndt_slot slot;
} field_names[] = {{"x", NDT_SLOT_X},
                   {"y", NDT_SLOT_Y},
                   {"z", NDT_SLOT_Z},
                   {"intensity", NDT_SLOT_INTENSITY},
                   {"scalar_Intensity", NDT_SLOT_INTENSITY},
                   {"t", NDT_SLOT_TIME},
                   {"time", NDT_SLOT_TIME},
                   {"time_s", NDT_SLOT_TIME},
                   {"time_stamp", NDT_SLOT_TIME},
                   {"timestamp", NDT_SLOT_TIME},
                   {"offset_time", NDT_SLOT_TIME}};

void ndt_layout_bind(struct ndt_point_layout *layout, const char *name, enum ndt_scalar type, size_t offset,
                     size_t stride)
{
    for (size_t i = 0; i < sizeof(field_names) / sizeof(field_names[0]); i++) {
        struct ndt_point_slot *slot = &layout->slots[field_names[i].slot];
        if (slot->type == NDT_SCALAR_NONE && strcmp(name, field_names[i].name) == 0)
            *slot = (struct ndt_point_slot){type, offset, stride};
    }
}

const char *ndt_layout_missing(const struct ndt_point_layout *layout)
{
    for (size_t i = NDT_SLOT_X; i <= NDT_SLOT_Z; i++)
        if (layout->slots[i].type == NDT_SCALAR_NONE)
            return field_names[i].name;
    return NULL;
}

int ndt_layout_is_float(const struct ndt_point_layout *layout)
{
    return layout->slots[NDT_SLOT_X].type == NDT_F32 && layout->slots[NDT_SLOT_Y].type == NDT_F32 &&
           layout->slots[NDT_SLOT_Z].type == NDT_F32;
}

unsigned ndt_layout_fields(const struct ndt_point_layout *layout)
{
    return (layout->slots[NDT_SLOT_INTENSITY].type ? (unsigned)NDT_CLOUD_INTENSITY : 0u) |
           (layout->slots[NDT_SLOT_TIME].type ? (unsigned)NDT_CLOUD_TIME : 0u);
}

/* One loop per type, so that the switch is outside of it. */
#define COPY_COLUMN(from, to)                                                                                      \
    for (size_t i = 0; i < count; i++) {                                                                           \
        from value;                                                                                                \
        memcpy(&value, at + i * stride, sizeof(value));                                                            \
        out[i] = (to)value;                                                                                        \
    }                                                                                                              \
    break

#define COPY_ANY_COLUMN(to)                                                                                        \
    const uint8_t *at = base + slot->offset;                                                                       \
    const size_t stride = slot->stride;                                                                            \
    switch (slot->type) {                                                                                          \
    case NDT_I8:                                                                                                   \
        COPY_COLUMN(int8_t, to);                                                                                   \
    case NDT_I16:                                                                                                  \
        COPY_COLUMN(int16_t, to);                                                                                  \
    case NDT_I32:                                                                                                  \
        COPY_COLUMN(int32_t, to);                                                                                  \
    case NDT_I64:                                                                                                  \
        COPY_COLUMN(int64_t, to);                                                                                  \
    case NDT_U8:                                                                                                   \
        COPY_COLUMN(uint8_t, to);                                                                                  \
    case NDT_U16:                                                                                                  \
        COPY_COLUMN(uint16_t, to);                                                                                 \
    case NDT_U32:                                                                                                  \
        COPY_COLUMN(uint32_t, to);                                                                                 \
    case NDT_U64:                                                                                                  \
        COPY_COLUMN(uint64_t, to);                                                                                 \
    case NDT_F32:                                                                                                  \
        COPY_COLUMN(float, to);                                                                                    \
    case NDT_F64:                                                                                                  \
        COPY_COLUMN(double, to);                                                                                   \
    case NDT_SCALAR_NONE:                                                                                          \
        break;                                                                                                     \
    }

void ndt_column_to_float(const struct ndt_point_slot *slot, const uint8_t *base, size_t count, float *out)
{
    COPY_ANY_COLUMN(float)
}

void ndt_column_to_double(const struct ndt_point_slot *slot, const uint8_t *base, size_t count, double *out)
{
    COPY_ANY_COLUMN(double)
}

/* Never called for float types: casting them could leave the range of int64. */
void ndt_column_to_whole(const struct ndt_point_slot *slot, const uint8_t *base, size_t count, int64_t *out)
{
    if (!ndt_scalar_is_whole(slot->type))
        return;
    COPY_ANY_COLUMN(int64_t)
}
