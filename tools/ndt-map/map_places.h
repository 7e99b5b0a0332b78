/** @file
 * @brief Places of a map where a sensor may be. */
#ifndef MAP_PLACES_H
#define MAP_PLACES_H

#include "ndt/pose.h"
#include "ndt_search/field.h"

struct map_places {
    struct ndt_pose *T_map_sensor;
    size_t count;
};

/** Reads the poses of a TUM trajectory that are step_m apart; the first is one of them. */
NDT_MUST_CHECK enum ndt_status map_places_along(struct map_places *out, const char *trajectory, double step_m,
                                                struct ndt_error *err);
/** Lists places about every step_m on the field's known ground that nothing stands on, height_m above it; heading
 * along x. */
NDT_MUST_CHECK enum ndt_status map_places_over(struct map_places *out, const struct ndt_field *field, double step_m,
                                               double height_m, struct ndt_error *err);
/** Allowed on a zeroed one. */
void map_places_free(struct map_places *places);

#endif
