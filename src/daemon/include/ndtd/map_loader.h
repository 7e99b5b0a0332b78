/* Maps are read and built beside the matcher and handed over whole: a thread that loads on demand, and for tiled
 * maps follows the vehicle.
 *
 * Dynamic loading (a folder of tiles): all tiles that touch the circle of map_radius_m + lidar_radius_m around the
 * vehicle are in the map; when it has moved update_distance_m from where that was last true, the difference is
 * loaded, added or removed (exact sums, see ndt/map.h) and a new map built. The matcher goes on with the old one.
 * No tile out of reach is ever read; memory follows from the tiles in reach, not from those there are or were: the
 * sums, the new map and the old one, and what was not given back yet by whoever took it. */
#ifndef NDTD_MAP_LOADER_H
#define NDTD_MAP_LOADER_H

#include "ndt/map.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_map_loader_config {
    struct ndt_map_config map;
    int dynamic;              /* follow the vehicle where the map is a folder of tiles with known squares */
    double update_distance_m; /* 20 */
    double map_radius_m;      /* 150 */
    double lidar_radius_m;    /* 100 */
};

struct ndtd_map_loader_status {
    char path[1024]; /* of the map asked for last; empty = none */
    int busy;
    int failed; /* the last load failed, `error` says why; the map before stays */
    char error[512];
    uint64_t map_id; /* of the newest map; 0 = none */
    uint64_t points, tiles_loaded, tiles_known, loads;
    uint64_t tile_reads; /* files read since this folder was asked for: a tile that comes in or goes out is one */
    size_t sums_bytes;   /* memory behind the sums from which the next map will be made */
    double last_load_ms;
};

struct ndtd_map_loader;
/* Starts the thread. */
NDT_MUST_CHECK enum ndt_status ndtd_map_loader_create(struct ndtd_map_loader **out,
                                                      const struct ndtd_map_loader_config *config,
                                                      struct ndt_error *err);
void ndtd_map_loader_destroy(struct ndtd_map_loader *loader);

/* Orders, from any thread; they return at once and are carried out in order. `path` is a file or a folder; NULL
 * unloads. near_m (may be NULL): where to start in a folder of tiles when dynamic. */
void ndtd_map_loader_load(struct ndtd_map_loader *loader, const char *path, const double near_m[2]);
void ndtd_map_loader_add_tile(struct ndtd_map_loader *loader, const char *path);
void ndtd_map_loader_remove_tile(struct ndtd_map_loader *loader, const char *path);
/* Where the vehicle is; cheap, called after every scan by the matcher's thread. */
void ndtd_map_loader_follow(struct ndtd_map_loader *loader, const double position_m[2]);

/* For the matcher's thread, between scans: 1 and the newest map (a reference that the caller owns; NULL when
 * unloaded) when there is one that was not taken yet, else 0. Never waits. */
int ndtd_map_loader_take(struct ndtd_map_loader *loader, struct ndt_map **map);
/* Waits until all orders so far are done, at most timeout_s; 0 when it took longer. */
int ndtd_map_loader_wait(struct ndtd_map_loader *loader, double timeout_s);
void ndtd_map_loader_status(struct ndtd_map_loader *loader, struct ndtd_map_loader_status *out);

#ifdef __cplusplus
}
#endif
#endif
