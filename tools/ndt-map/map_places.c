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

/* Grid lines are at multiples of the step from the origin of the field. */
static int is_on_grid(int32_t index_m, double step_m)
{
    return floor((index_m + 1) / step_m) > floor(index_m / step_m);
}

enum ndt_status map_places_over(struct map_places *out, const struct ndt_field *field, double step_m,
                                double height_m, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    *out = (struct map_places){.count = 0};
    for (uint32_t t = 0; t < field->tile_count; t++) {
        const struct ndt_field_tile *tile = &field->tiles[t];
        for (int cell = 0; status == NDT_OK && cell < NDT_FIELD_TILE_M * NDT_FIELD_TILE_M; cell++) {
            const int32_t x = tile->x * NDT_FIELD_TILE_M + cell % NDT_FIELD_TILE_M;
            const int32_t y = tile->y * NDT_FIELD_TILE_M + cell / NDT_FIELD_TILE_M;
            if (!is_on_grid(x, step_m) || !is_on_grid(y, step_m) || !is_free(tile, cell))
                continue;
            const double ground_m = (double)tile->base_m + 0.01 * tile->ground_cm[cell];
            const struct ndt_pose pose = {.t_m = {field->origin_m[0] + x + 0.5, field->origin_m[1] + y + 0.5,
                                                  field->origin_m[2] + ground_m + height_m},
                                          .q_xyzw = {0, 0, 0, 1}};
            status = add(out, &pose, err);
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
