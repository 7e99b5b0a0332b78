#include "map_places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt_io/trajectory.h"

enum { PLACES_MAX = 1000000, STANDING_BITS = 0x7 /* bands from 0.3 to 2 m */ };

static enum ndt_status add(struct map_places *places, const struct ndt_pose *pose, struct ndt_error *err)
{
    if (places->count == PLACES_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d places: give a larger --step", PLACES_MAX);
    if ((places->count & (places->count - 1)) == 0) {
        const size_t capacity = places->count ? 2 * places->count : 1;
        struct ndt_pose *poses = realloc(places->T_map_sensor, capacity * sizeof(*poses));
        if (!poses)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu places", capacity);
        places->T_map_sensor = poses;
    }
    places->T_map_sensor[places->count++] = *pose;
    return NDT_OK;
}

enum ndt_status map_places_along(struct map_places *out, const char *trajectory, double step_m,
                                 struct ndt_error *err)
{
    struct ndt_trajectory poses;
    *out = (struct map_places){.count = 0};
    enum ndt_status status = ndt_trajectory_read(&poses, trajectory, NDT_TUM, err);
    for (size_t i = 0; status == NDT_OK && i < poses.count; i++) {
        const struct ndt_pose *pose = &poses.poses[i].T_map_sensor;
        if (out->count == 0 || ndt_pose_distance_m(&out->T_map_sensor[out->count - 1], pose) >= step_m)
            status = add(out, pose, err);
    }
    if (status == NDT_OK && out->count == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: no pose in it", trajectory);
    ndt_trajectory_free(&poses);
    return status;
}

static int is_free(const struct ndt_field_tile *tile, int cell)
{
    return (tile->known[cell / 8] >> (cell % 8) & 1) && tile->ground_cm[cell] != NDT_FIELD_NO_GROUND &&
           !(tile->bits_1m[cell] & STANDING_BITS);
}

/* Finds the free cell nearest to the middle of the block [x0, x1) x [y0, y1) of a tile; -1: none. */
static int find_free(const struct ndt_field_tile *tile, int x0, int x1, int y0, int y1)
{
    int best = -1;
    double best_m = INFINITY;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            const double away_m = hypot(x + 0.5 - 0.5 * (x0 + x1), y + 0.5 - 0.5 * (y0 + y1));
            if (away_m < best_m && is_free(tile, y * NDT_FIELD_TILE_M + x)) {
                best = y * NDT_FIELD_TILE_M + x;
                best_m = away_m;
            }
        }
    return best;
}

static enum ndt_status add_cell(struct map_places *places, const struct ndt_field *field,
                                const struct ndt_field_tile *tile, int cell, double height_m, struct ndt_error *err)
{
    const double ground_m = (double)tile->base_m + 0.01 * tile->ground_cm[cell];
    const double x_m = tile->x * NDT_FIELD_TILE_M + cell % NDT_FIELD_TILE_M + 0.5;
    const double y_m = tile->y * NDT_FIELD_TILE_M + cell / NDT_FIELD_TILE_M + 0.5;
    const struct ndt_pose pose = {
        .t_m = {field->origin_m[0] + x_m, field->origin_m[1] + y_m, field->origin_m[2] + ground_m + height_m},
        .q_xyzw = {0, 0, 0, 1}};
    return add(places, &pose, err);
}

/* A tile has whole blocks of about the step; of a step beyond a tile, only some tiles count. */
enum ndt_status map_places_over(struct map_places *out, const struct ndt_field *field, double step_m,
                                double height_m, struct ndt_error *err)
{
    const int blocks = (int)fmax(1, round(NDT_FIELD_TILE_M / step_m));
    const int stride = (int)fmax(1, round(step_m / NDT_FIELD_TILE_M));
    enum ndt_status status = NDT_OK;
    *out = (struct map_places){.count = 0};
    for (uint32_t t = 0; t < field->tile_count; t++) {
        const struct ndt_field_tile *tile = &field->tiles[t];
        if (tile->x % stride != 0 || tile->y % stride != 0)
            continue;
        for (int i = 0; status == NDT_OK && i < blocks * blocks; i++) {
            const int x = i % blocks, y = i / blocks;
            const int cell = find_free(tile, x * NDT_FIELD_TILE_M / blocks, (x + 1) * NDT_FIELD_TILE_M / blocks,
                                       y * NDT_FIELD_TILE_M / blocks, (y + 1) * NDT_FIELD_TILE_M / blocks);
            if (cell >= 0)
                status = add_cell(out, field, tile, cell, height_m, err);
        }
    }
    if (status == NDT_OK && out->count == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "no free ground is known in the map; give --trajectory");
    return status;
}

void map_places_free(struct map_places *places)
{
    free(places->T_map_sensor);
    *places = (struct map_places){.count = 0};
}
