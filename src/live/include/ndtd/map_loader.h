/** @file
 * @brief Loads and builds maps in the background, on request and, for tiled maps, along the vehicle's path.
 *
 * Dynamic loading (a directory of tiles): the map contains all tiles that touch the circle of map_radius_m +
 * lidar_radius_m around the vehicle. After the vehicle has moved update_distance_m, the tiles that enter or leave
 * the circle are added or removed (exact sums, see ndt/map.h) and a new map is built, while the matcher uses the
 * previous one. Tiles outside the circle are not read. Memory is proportional to the tiles in the circle: the sums,
 * the new map, the previous one, and maps that their users have not released yet.
 *
 * Threads: any thread may request and read the status; follow, lose and take are for the matching thread; they
 * neither block nor lock. */
#ifndef NDTD_MAP_LOADER_H
#define NDTD_MAP_LOADER_H

#include "ndt/map.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Dynamic map loading; see dynamic_map_loading.*. */
struct ndtd_map_loader_config {
    struct ndt_map_config map;
    int dynamic;              /**< follow the vehicle when the map is a directory of tiles with known squares */
    double update_distance_m; /**< default 20 */
    double map_radius_m;      /**< default 150 */
    double lidar_radius_m;    /**< default 100 */
    /** Size of the files up to which all tiles are loaded while the position is unknown; 0: no tiles are */
    uint64_t search_limit_bytes;
};

/** Progress of the current request. A total of 0 is not known. */
struct ndtd_map_loader_progress {
    int busy;                    /**< 0: no request is in work; the other members are those of the last one */
    double elapsed_s;            /**< since the work on the request began */
    uint64_t tiles, all_tiles;   /**< files read, and files to be read */
    uint64_t bytes, all_bytes;   /**< bytes of the current file */
    uint64_t points, all_points; /**< points in the sums, and points read so far */
    uint64_t levels, all_levels; /**< levels of the map built, or checked in a compiled map */
};

/** Status of the loader. */
struct ndtd_map_loader_status {
    char path[1024]; /**< path of the map; of the requested one while it is read or none is there; empty: none */
    int busy;
    int failed; /**< the last request failed for the reason in `error`; the previous map stays */
    char error[512];
    uint64_t map_id; /**< id of the newest map; 0 = none */
    uint64_t points, tiles_loaded, tiles_known, loads;
    uint64_t tile_reads; /**< files read since this directory was opened; adding or removing a tile reads one */
    size_t sums_bytes;   /**< memory of the sums from which the next map is built */
    double last_load_ms;
    struct ndtd_map_loader_progress progress;
};

struct ndtd_map_loader;
/** Starts the thread. */
NDT_MUST_CHECK enum ndt_status ndtd_map_loader_create(struct ndtd_map_loader **out,
                                                      const struct ndtd_map_loader_config *config,
                                                      struct ndt_error *err);
/** Ends the thread and frees everything; `loader` may be NULL. A request in work ends within some tenths of a
 * second, whatever the size of the map. */
void ndtd_map_loader_destroy(struct ndtd_map_loader *loader);

/** Requests a map; this and the requests below return at once and are processed in order. `path` is a file or a
 * directory; NULL unloads. near_m (may be NULL): position around which dynamic loading starts. */
void ndtd_map_loader_load(struct ndtd_map_loader *loader, const char *path, const double near_m[2]);
/** Adds a cloud file to the map. */
void ndtd_map_loader_add_tile(struct ndtd_map_loader *loader, const char *path);
/** Removes a tile from the map. */
void ndtd_map_loader_remove_tile(struct ndtd_map_loader *loader, const char *path);
/** Reports the position of the vehicle after each scan. */
void ndtd_map_loader_follow(struct ndtd_map_loader *loader, const double position_m[2]);
/** Reports that the position is unknown: loads all tiles, within the limit, until the next position. */
void ndtd_map_loader_lose(struct ndtd_map_loader *loader);

/** Returns 1 and the newest map (a reference that the caller owns; NULL when unloaded) if it was not taken before,
 * else 0. */
int ndtd_map_loader_take(struct ndtd_map_loader *loader, struct ndt_map **map);
/** Whether all requests so far are processed and the newest map was taken; neither blocks nor locks. */
int ndtd_map_loader_is_settled(const struct ndtd_map_loader *loader);
/** Waits at most timeout_s until all requests so far are processed; returns 0 on timeout. */
int ndtd_map_loader_wait(struct ndtd_map_loader *loader, double timeout_s);
/** Copies the status. */
void ndtd_map_loader_status(struct ndtd_map_loader *loader, struct ndtd_map_loader_status *out);

#ifdef __cplusplus
}
#endif
#endif
