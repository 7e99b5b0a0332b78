/** @file
 * @brief A map as octree with levels of detail, and the bytes of its nodes as the page fetches them.
 *
 * Additive, as in Potree (Schuetz 2016): a node draws one point per cell of a grid of 64 cells per edge of its
 * cube, and its children draw the others; a node of few points draws all of them and has no child. The point of a
 * cell is picked by a hash of the cell, so that no pattern of the grid shows. All points of all nodes together are
 * all points of the map.
 *
 * A tree is immutable. Memory: 8 bytes per point and about 80 per node; while it is built, 9 more per point.
 * Determinism: equal keys give equal bytes. Threads: any number may read. */
#ifndef MAP_TREE_H
#define MAP_TREE_H

#include "map_keys.h"
#include "web_blob.h"

/** Largest number of points in a node. */
#define WEB_NODE_POINTS_MAX 20000u
/** Bytes of the header of a node, and of a point. */
enum { WEB_NODE_HEADER = 40, WEB_NODE_RECORD = 8 };

/** See the top of this file. */
struct web_tree;

/** Answer of /api/map. */
struct web_tree_info {
    uint64_t id;                   /**< hash of all nodes */
    uint64_t points, nodes, bytes; /**< bytes: of all nodes, without their headers */
    uint64_t left_out;             /**< see web_keys; and points of one position beyond WEB_NODE_POINTS_MAX */
    double origin_m[3], min_m[3], max_m[3]; /**< min and max relative to origin */
    double spacing_m;                       /**< spacing of the root */
    int has_intensity, is_voxels;
};

/** Builds the tree of sorted keys and takes them: `keys` is empty afterwards, also on failure. Counts points.
 * NDT_ERR_CANCELLED, NDT_ERR_MEMORY. */
NDT_MUST_CHECK enum ndt_status web_tree_build(struct web_tree **out, struct web_keys *keys,
                                              struct ndt_progress *progress, struct ndt_error *err);
/** `tree` may be NULL. */
void web_tree_free(struct web_tree *tree);
/** Description of the tree; borrowed. */
const struct web_tree_info *web_tree_describe(const struct web_tree *tree);
/** The bytes of the node of this name, such as "r" or "r07"; the reference belongs to the caller. NULL: not the
 * name of a node of this tree, whatever it is; or no memory. */
struct web_blob *web_tree_node(const struct web_tree *tree, const char *name);

#endif
