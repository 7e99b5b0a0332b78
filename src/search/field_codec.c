/* Encoding of a field: a header with a hash, then the tiles as they are in memory. */
#include "ndt_search/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/hash.h"

static const char MAGIC[8] = {'N', 'D', 'T', 'F', 'L', 'D', '\r', '\n'};
/* Limits of the coordinates of tiles, and of the height of ground [m]: maps have cells of 100 m, 2^20 of them. */
#define TILE_LIMIT   (1 << 22)
#define HEIGHT_LIMIT 2e8f

struct header {
    char magic[8];
    uint32_t version, tile_bytes;
    uint64_t hash; /* hash of everything behind this member */
    uint64_t map_id;
    double origin_m[3];
    uint32_t tile_count, layer_count;
};
enum { HASHED_FROM = offsetof(struct header, map_id) };
_Static_assert(sizeof(struct header) == 64, "the header has no gaps");
_Static_assert(sizeof(struct ndt_field_tile) == 16 + NDT_FIELD_TILE_M * NDT_FIELD_TILE_M * 59 / 8,
               "a tile has no gaps");

size_t ndt_field_encoded_bytes(const struct ndt_field *field)
{
    return sizeof(struct header) + field->tile_count * sizeof(struct ndt_field_tile);
}

void ndt_field_encode(const struct ndt_field *field, uint8_t *out)
{
    const size_t size = ndt_field_encoded_bytes(field);
    struct header header = {.version = NDT_FIELD_VERSION,
                            .tile_bytes = sizeof(struct ndt_field_tile),
                            .map_id = field->map_id,
                            .tile_count = field->tile_count,
                            .layer_count = field->layer_count};
    memcpy(header.magic, MAGIC, sizeof(header.magic));
    memcpy(header.origin_m, field->origin_m, sizeof(header.origin_m));
    memcpy(out, &header, sizeof(header));
    if (field->tile_count > 0)
        memcpy(out + sizeof(header), field->tiles, size - sizeof(header));
    header.hash = ndt_hash64(out + HASHED_FROM, size - HASHED_FROM, 0);
    memcpy(out, &header, sizeof(header));
}

static enum ndt_status check_header(const struct header *header, const uint8_t *data, size_t size,
                                    struct ndt_error *err)
{
    if (memcmp(header->magic, MAGIC, sizeof(MAGIC)) != 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "field: not a field (magic bytes differ)");
    if (header->version != NDT_FIELD_VERSION || header->tile_bytes != sizeof(struct ndt_field_tile))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "field: version %u; this program reads version %d: compile the map again", header->version,
                        NDT_FIELD_VERSION);
    if (header->tile_count > NDT_FIELD_TILES_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "field: %u tiles; the limit is %d", header->tile_count,
                        NDT_FIELD_TILES_MAX);
    if ((size - sizeof(*header)) / sizeof(struct ndt_field_tile) != header->tile_count ||
        (size - sizeof(*header)) % sizeof(struct ndt_field_tile) != 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "field: %zu bytes do not hold %u tiles", size, header->tile_count);
    if (ndt_hash64(data + HASHED_FROM, size - HASHED_FROM, 0) != header->hash)
        return ndt_fail(err, NDT_ERR_FORMAT, "field: damaged (its hash differs)");
    if (!isfinite(header->origin_m[0] + header->origin_m[1] + header->origin_m[2]) ||
        header->layer_count > NDT_FIELD_LAYERS)
        return ndt_fail(err, NDT_ERR_FORMAT, "field: the header contradicts itself");
    return NDT_OK;
}

static int is_after(const struct ndt_field_tile *tile, const struct ndt_field_tile *before)
{
    if (tile->layer != before->layer)
        return tile->layer > before->layer;
    return tile->y != before->y ? tile->y > before->y : tile->x > before->x;
}

static int is_in_range(int32_t tile)
{
    return tile >= -TILE_LIMIT && tile <= TILE_LIMIT;
}

/* Whether the tiles are in order and in range, and every layer has one. */
static int tiles_fit(const struct ndt_field_tile *tiles, uint32_t count, uint32_t layers)
{
    int32_t layer = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct ndt_field_tile *tile = &tiles[i];
        if (tile->layer < layer || tile->layer > layer + (i > 0) || !is_in_range(tile->y) ||
            !is_in_range(tile->x) || !(fabsf(tile->base_m) < HEIGHT_LIMIT) ||
            (i > 0 && !is_after(tile, &tiles[i - 1])))
            return 0;
        layer = tile->layer;
    }
    return layers == (count > 0 ? (uint32_t)layer + 1 : 0);
}

enum ndt_status ndt_field_decode(struct ndt_field **out, const uint8_t *data, size_t size, struct ndt_error *err)
{
    struct header header;
    *out = NULL;
    if (size < sizeof(header))
        return ndt_fail(err, NDT_ERR_FORMAT, "field: %zu bytes; the header alone has %zu", size, sizeof(header));
    memcpy(&header, data, sizeof(header));
    const enum ndt_status status = check_header(&header, data, size, err);
    if (status != NDT_OK)
        return status;
    struct ndt_field *field = calloc(1, sizeof(*field));
    struct ndt_field_tile *tiles = malloc(size);
    if (!field || !tiles) {
        free(field);
        free(tiles);
        return ndt_fail(err, NDT_ERR_MEMORY, "field: no memory for %u tiles", header.tile_count);
    }
    memcpy(tiles, data + sizeof(header), size - sizeof(header));
    *field = (struct ndt_field){.map_id = header.map_id,
                                .tile_count = header.tile_count,
                                .layer_count = header.layer_count,
                                .tiles = tiles,
                                .references = 1};
    memcpy(field->origin_m, header.origin_m, sizeof(field->origin_m));
    if (!tiles_fit(tiles, header.tile_count, header.layer_count)) {
        ndt_field_release(field);
        return ndt_fail(err, NDT_ERR_FORMAT, "field: its tiles are out of order or out of range");
    }
    *out = field;
    return NDT_OK;
}
