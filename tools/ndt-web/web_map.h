/** @file
 * @brief The map as an octree of points for the page: loaded and built by a thread of its own.
 *
 * Every function may be called by any thread. Answers never wait for the thread that loads. */
#ifndef WEB_MAP_H
#define WEB_MAP_H

#include <stdio.h>

#include "ndt/status.h"
#include "web_blob.h"

struct web_map;

/** A map that is empty ({"state":"none"}). `changed` is called by the thread that loads, at most ten times per
 * second, whenever web_map_describe has something new to say; it may call web_map_describe. */
NDT_MUST_CHECK enum ndt_status web_map_open(struct web_map **out, void (*changed)(void *user), void *user,
                                            struct ndt_error *err);
/** Ends a load that runs. Allowed on NULL. */
void web_map_close(struct web_map *map);

/** Begins to load what ndt-map reads (point clouds, tiles, compiled maps) in the background, in place of what is
 * loading; the map before stays until the new one is there. The file is read again also when the path is the same.
 */
void web_map_load(struct web_map *map, const char *path);

/** Writes the JSON object of GET /api/map, braces included. */
void web_map_describe(struct web_map *map, FILE *file);

/** Writes the reason of the last failed load, one line; empty: it did not fail. */
void web_map_why(struct web_map *map, char *why, size_t size);

/** The bytes of a node ("r", "r0", "r04", ...: any text that a client sends) as GET /api/map/NODE gives them, with
 * a reference that belongs to the caller; NULL: no such node. `id` receives the id of the map that web_map_describe
 * tells (at most 63 characters), for the ETag; may be NULL. */
struct web_blob *web_map_node(struct web_map *map, const char *name, char id[64]);

/** Present cost, for /metrics. */
struct web_map_counters {
    uint64_t points, nodes, bytes; /**< size of the octree that is ready */
    uint64_t nodes_served;
};
void web_map_counters(struct web_map *map, struct web_map_counters *out);

#endif
