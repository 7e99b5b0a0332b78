/* Rectangles of cells across the tiles of a field. */
#include "field_window.h"

#include <string.h>

/* Part of a window in one tile, or where a tile is missing; visit_patches calls visit for each. Rows and columns
 * are the cells of the window in this tile. */
struct patch {
    const struct ndt_window *window;
    int32_t y0, y1, x0, x1;            /* relative to the window */
    int32_t tile_y, tile_x;            /* cell of the tile at (y0, x0) */
    const struct ndt_field_tile *tile; /* NULL: no tile */
};
typedef void visit_patch(const struct patch *patch, void *context);

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static void visit_patches(const struct ndt_field *field, const struct ndt_window *window, int32_t edge,
                          visit_patch *visit, void *context)
{
    for (int32_t y = window->y; y < window->y + window->height;) {
        const int32_t row = ndt_floor_div(y, edge), next_y = smaller((row + 1) * edge, window->y + window->height);
        for (int32_t x = window->x; x < window->x + window->width;) {
            const int32_t column = ndt_floor_div(x, edge);
            const int32_t next_x = smaller((column + 1) * edge, window->x + window->width);
            const struct patch patch = {.window = window,
                                        .y0 = y - window->y,
                                        .y1 = next_y - window->y,
                                        .x0 = x - window->x,
                                        .x1 = next_x - window->x,
                                        .tile_y = y - row * edge,
                                        .tile_x = x - column * edge,
                                        .tile = ndt_field_tile(field, window->layer, row, column)};
            visit(&patch, context);
            x = next_x;
        }
        y = next_y;
    }
}

/* ---- copies ---- */

struct copy {
    const struct ndt_field *field;
    const struct ndt_cell_array *array;
    const void *fill;
    unsigned char *out;
};

static void fill_cells(unsigned char *to, const void *fill, size_t cells, size_t size)
{
    if (size == 1)
        memset(to, *(const unsigned char *)fill, cells);
    for (size_t i = 0; size > 1 && i < cells; i++)
        memcpy(to + i * size, fill, size);
}

static void copy_patch(const struct patch *patch, void *context)
{
    const struct copy *copy = context;
    const size_t size = copy->array->size, cells = (size_t)(patch->x1 - patch->x0);
    for (int32_t y = patch->y0; y < patch->y1; y++) {
        unsigned char *to = copy->out + (size_t)(y * patch->window->stride + patch->x0) * size;
        if (patch->tile) {
            const size_t number = (size_t)(patch->tile - copy->field->tiles);
            const int32_t cell = (patch->tile_y + y - patch->y0) * copy->array->edge + patch->tile_x;
            memcpy(to,
                   (const unsigned char *)copy->array->base + number * copy->array->tile_bytes +
                       (size_t)cell * size,
                   cells * size);
        } else {
            fill_cells(to, copy->fill, cells, size);
        }
    }
}

void ndt_window_copy(const struct ndt_field *field, const struct ndt_cell_array *array,
                     const struct ndt_window *window, const void *fill, void *out)
{
    struct copy copy = {field, array, fill, out};
    visit_patches(field, window, array->edge, copy_patch, &copy);
}

void ndt_window_bits(const struct ndt_field *field, int level, const struct ndt_window *window, uint8_t *out)
{
    static const size_t at[NDT_FIELD_LEVELS] = {offsetof(struct ndt_field_tile, bits_2m),
                                                offsetof(struct ndt_field_tile, bits_1m),
                                                offsetof(struct ndt_field_tile, bits_05m)};
    const struct ndt_cell_array array = {.base = (const unsigned char *)field->tiles + at[level],
                                         .tile_bytes = sizeof(struct ndt_field_tile),
                                         .edge = NDT_FIELD_TILE_M / 2 << level,
                                         .size = 1};
    const uint8_t none = 0;
    if (field->tile_count > 0)
        ndt_window_copy(field, &array, window, &none, out);
    else
        memset(out, 0, (size_t)(window->height * window->stride));
}

/* ---- where sensors may be ---- */

struct allow {
    int scale, parts; /* metres of a cell's edge, or cells of 1 / parts m */
    int is_any;
    uint8_t *out;
};

static int is_allowed(const struct ndt_field_tile *tile, int is_any, int32_t cell)
{
    return is_any ? tile->ground_cm[cell] != NDT_FIELD_NO_GROUND : tile->known[cell / 8] >> cell % 8 & 1;
}

static void allow_patch(const struct patch *patch, void *context)
{
    const struct allow *allow = context;
    const int32_t scale = allow->scale;
    for (int32_t y = patch->y0; y < patch->y1; y++) {
        uint8_t *to = allow->out + y * patch->window->stride;
        const int32_t row = (patch->tile_y + y - patch->y0) / allow->parts * scale * NDT_FIELD_TILE_M;
        if (!patch->tile) {
            memset(to + patch->x0, 0, (size_t)(patch->x1 - patch->x0));
            continue;
        }
        for (int32_t x = patch->x0; x < patch->x1; x++) {
            const int32_t cell = row + (patch->tile_x + x - patch->x0) / allow->parts * scale;
            int is_good = is_allowed(patch->tile, allow->is_any, cell);
            for (int i = 1; i < scale * scale; i++)
                is_good |= is_allowed(patch->tile, allow->is_any, cell + i / 2 * NDT_FIELD_TILE_M + i % 2);
            to[x] = is_good ? 255 : 0;
        }
    }
}

void ndt_window_allowed(const struct ndt_field *field, int level, int is_any, const struct ndt_window *window,
                        uint8_t *out)
{
    struct allow allow = {level == 0 ? 2 : 1, level == 2 ? 2 : 1, is_any, out};
    visit_patches(field, window, NDT_FIELD_TILE_M * allow.parts / allow.scale, allow_patch, &allow);
}
