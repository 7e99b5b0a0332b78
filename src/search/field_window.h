/* Private to the search: rectangles of cells across the tiles of a field. */
#ifndef NDT_FIELD_WINDOW_H
#define NDT_FIELD_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "ndt_search/field.h"

/* A rectangle of cells, counted from the origin of the field, and the memory for it. */
struct ndt_window {
    int32_t layer, y, x;
    int32_t height, width;
    ptrdiff_t stride; /* elements of a row of the memory */
};

/* An array of square tiles of cells: element (y, x) of tile i is at base + i * tile_bytes + (y * edge + x) * size.
 */
struct ndt_cell_array {
    const void *base;
    size_t tile_bytes;
    int32_t edge; /* cells of a tile's edge */
    size_t size;  /* bytes of a cell: 1, 2 or 4 */
};

/* Copies the cells of the window; cells without a tile become `fill`. */
void ndt_window_copy(const struct ndt_field *field, const struct ndt_cell_array *array,
                     const struct ndt_window *window, const void *fill, void *out);
/* Writes the bits of a level; 0 without a tile. */
void ndt_window_bits(const struct ndt_field *field, int level, const struct ndt_window *window, uint8_t *out);
/* Writes 255 where a sensor may be, else 0: near measured ground, or with is_any on any ground. */
void ndt_window_allowed(const struct ndt_field *field, int level, int is_any, const struct ndt_window *window,
                        uint8_t *out);

/* v / edge, rounded down. */
static inline int32_t ndt_floor_div(int32_t v, int32_t edge)
{
    return v >= 0 ? v / edge : -((-v + edge - 1) / edge);
}

#endif
