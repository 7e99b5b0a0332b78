/** @file
 * @brief The map of a city: a folder of tiles with Autoware's metadata. */
#ifndef SIM_TILES_H
#define SIM_TILES_H

#include "sim_change.h"

struct sim_tiles {
    struct sim_sampler sampler;
    const struct sim_change *change;
    struct sim_caster *caster;
    size_t points; /* result */
};

/* Writes the folder, which must not exist. One tile at a time is in memory. */
NDT_MUST_CHECK enum ndt_status sim_tiles_write(struct sim_tiles *tiles, const char *folder, struct ndt_error *err);
/* Removes a folder that holds nothing but tiles and metadata; one that does not exist is no failure. */
NDT_MUST_CHECK enum ndt_status sim_tiles_remove(const char *folder, struct ndt_error *err);

#endif
