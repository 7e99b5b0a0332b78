#include "map_tree.h"

#include <stdlib.h>
#include <string.h>

#include "ndt/hash.h"

/* Cells per edge of a node: 2^GRID_LOG. Nodes of LEAF_POINTS and fewer are not divided. */
enum { GRID_LOG = 6, LEAF_POINTS = 16000, DEPTH_MAX = WEB_KEY_BITS - GRID_LOG, NODES_FIRST = 256 };

struct node {
    uint64_t first;    /* first of its records */
    uint32_t count;    /* number of its records */
    uint32_t child[8]; /* 0: none */
    uint32_t corner[3];
    uint32_t depth;
    float spacing_m;
};

struct web_tree {
    struct web_tree_info info;
    double corner_m[3], size_m; /* the cube, relative to the origin */
    struct node *nodes;         /* 0 is the root */
    size_t count, capacity;
    uint8_t *records;
    uint64_t used; /* records */
};

/* State of a build. */
struct build {
    struct web_tree *tree;
    uint64_t *keys;
    uint8_t *shades;
    struct ndt_progress *progress;
};

/* ---- points of a node ---- */

/* Length of the run of keys from `from` on that agree above `shift`. */
static size_t run_length(const uint64_t *keys, size_t from, size_t end, int shift)
{
    size_t at = from + 1;
    while (at < end && keys[at] >> shift == keys[from] >> shift)
        at++;
    return at - from;
}

static size_t count_cells(const uint64_t *keys, size_t begin, size_t end, int shift)
{
    size_t cells = begin < end;
    for (size_t i = begin + 1; i < end; i++)
        cells += keys[i] >> shift != keys[i - 1] >> shift;
    return cells;
}

static void put_u16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static void put_record(const struct build *build, const struct node *node, size_t i)
{
    struct web_tree *tree = build->tree;
    uint8_t *record = tree->records + WEB_NODE_RECORD * tree->used++;
    const uint64_t cells = UINT64_C(1) << (WEB_KEY_BITS - node->depth);
    uint32_t cell[3];
    web_key_cell(build->keys[i], cell);
    for (int k = 0; k < 3; k++) { /* the middle of the cell, to the nearest of 65535 parts of the cube */
        const uint64_t twice = 2 * (uint64_t)(cell[k] - node->corner[k]) + 1;
        put_u16(record + 2 * k, (uint32_t)((twice * 65535 + cells) / (2 * cells)));
    }
    record[6] = build->shades[i];
    record[7] = 0;
}

/* Writes one point per cell into the node and closes the gaps; returns how many are left. */
static size_t take_sample(const struct build *build, const struct node *node, size_t begin, size_t end, int shift)
{
    uint64_t *keys = build->keys;
    uint8_t *shades = build->shades;
    size_t kept = begin;
    for (size_t from = begin, length; from < end; from += length) {
        length = run_length(keys, from, end, shift);
        const uint64_t hash = ndt_hash_finish(ndt_hash_mix(node->depth, keys[from] >> shift));
        const size_t taken = from + (size_t)(hash % length);
        put_record(build, node, taken);
        for (size_t i = from; i < from + length; i++)
            if (i != taken) {
                keys[kept] = keys[i];
                shades[kept++] = shades[i];
            }
    }
    return kept - begin;
}

/* The distance between neighbours of a surface: the edge of the cells when most points have one of their own. */
static float leaf_spacing(const struct build *build, const struct node *node, size_t begin, size_t end)
{
    int cell_log = 3;
    for (; cell_log < WEB_KEY_BITS - (int)node->depth; cell_log++)
        if (5 * count_cells(build->keys, begin, end, 3 * (WEB_KEY_BITS - (int)node->depth - cell_log)) >
            3 * (end - begin))
            break;
    return (float)(build->tree->size_m / (double)(UINT64_C(1) << (node->depth + (uint32_t)cell_log)));
}

static void take_all(const struct build *build, struct node *node, size_t begin, size_t end)
{
    struct web_tree *tree = build->tree;
    if (end - begin > WEB_NODE_POINTS_MAX) { /* within one cell of the finest level */
        tree->info.left_out += end - begin - WEB_NODE_POINTS_MAX;
        end = begin + WEB_NODE_POINTS_MAX;
    }
    for (size_t i = begin; i < end; i++)
        put_record(build, node, i);
    node->spacing_m = leaf_spacing(build, node, begin, end);
}

/* ---- nodes ---- */

static enum ndt_status add_node(struct web_tree *tree, const struct node *node, struct ndt_error *err)
{
    if (tree->count == tree->capacity) {
        const size_t capacity = tree->capacity ? 2 * tree->capacity : NODES_FIRST;
        struct node *nodes = realloc(tree->nodes, capacity * sizeof(*nodes));
        if (!nodes)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu nodes of the map", capacity);
        tree->nodes = nodes;
        tree->capacity = capacity;
    }
    tree->nodes[tree->count++] = *node;
    return NDT_OK;
}

static struct node child_of(const struct node *parent, uint32_t octant)
{
    struct node child = {.depth = parent->depth + 1};
    for (int k = 0; k < 3; k++)
        child.corner[k] = parent->corner[k] + ((octant >> k & 1) << (WEB_KEY_BITS - child.depth));
    return child;
}

static enum ndt_status divide(const struct build *build, const struct node *start, size_t begin, size_t end,
                              struct ndt_error *err);

static enum ndt_status divide_children(const struct build *build, size_t parent, size_t begin, size_t end,
                                       struct ndt_error *err)
{
    struct web_tree *tree = build->tree;
    const int shift = 3 * (WEB_KEY_BITS - 1 - (int)tree->nodes[parent].depth);
    enum ndt_status status = NDT_OK;
    for (size_t from = begin, length; from < end && status == NDT_OK; from += length) {
        const uint32_t octant = build->keys[from] >> shift & 7;
        length = run_length(build->keys, from, end, shift);
        const struct node child = child_of(&tree->nodes[parent], octant);
        tree->nodes[parent].child[octant] = (uint32_t)tree->count;
        status = divide(build, &child, from, from + length, err);
    }
    return status;
}

/* Makes the node of keys [begin, end), which it consumes, and those below. At most DEPTH_MAX deep. */
static enum ndt_status divide(const struct build *build, const struct node *start, size_t begin, size_t end,
                              struct ndt_error *err)
{
    struct web_tree *tree = build->tree;
    const size_t self = tree->count;
    struct node node = *start;
    size_t left = 0;
    enum ndt_status status = ndt_progress_check(build->progress, err);
    if (status != NDT_OK)
        return status;
    node.first = tree->used;
    if (end - begin <= LEAF_POINTS || node.depth == DEPTH_MAX) {
        take_all(build, &node, begin, end);
    } else {
        int cell_log = GRID_LOG;
        while (count_cells(build->keys, begin, end, 3 * (WEB_KEY_BITS - (int)node.depth - cell_log)) >
               WEB_NODE_POINTS_MAX)
            cell_log--;
        left = take_sample(build, &node, begin, end, 3 * (WEB_KEY_BITS - (int)node.depth - cell_log));
        node.spacing_m = (float)(tree->size_m / (double)(UINT64_C(1) << (node.depth + (uint32_t)cell_log)));
    }
    node.count = (uint32_t)(tree->used - node.first);
    ndt_progress_add(build->progress, NDT_PROGRESS_POINTS, node.count);
    status = add_node(tree, &node, err);
    return status == NDT_OK ? divide_children(build, self, begin, begin + left, err) : status;
}

/* ---- the tree ---- */

static void describe(struct web_tree *tree, const struct web_keys *keys)
{
    struct web_tree_info *info = &tree->info;
    memcpy(info->origin_m, keys->origin_m, sizeof(info->origin_m));
    memcpy(info->min_m, keys->min_m, sizeof(info->min_m));
    memcpy(info->max_m, keys->max_m, sizeof(info->max_m));
    info->has_intensity = keys->has_intensity;
    info->is_voxels = keys->is_voxels;
    info->points = tree->used;
    info->nodes = tree->count;
    info->bytes = WEB_NODE_RECORD * tree->used;
    info->left_out += keys->left_out;
    info->spacing_m = (double)tree->nodes[0].spacing_m;
    info->id = ndt_hash64(tree->records, (size_t)info->bytes,
                          ndt_hash64(info->origin_m, sizeof(info->origin_m), (uint64_t)tree->size_m));
}

static struct web_tree *new_tree(const struct web_keys *keys)
{
    struct web_tree *tree = calloc(1, sizeof(*tree));
    if (!tree)
        return NULL;
    memcpy(tree->corner_m, keys->corner_m, sizeof(tree->corner_m));
    tree->size_m = keys->size_m;
    tree->records = malloc((keys->count + 1) * WEB_NODE_RECORD);
    if (tree->records)
        return tree;
    free(tree);
    return NULL;
}

enum ndt_status web_tree_build(struct web_tree **out, struct web_keys *keys, struct ndt_progress *progress,
                               struct ndt_error *err)
{
    struct web_tree *tree = new_tree(keys);
    const struct build build = {tree, keys->keys, keys->shades, progress};
    const struct node root = {0};
    *out = NULL;
    enum ndt_status status = tree
                                 ? divide(&build, &root, 0, keys->count, err)
                                 : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a tree of %zu points", keys->count);
    if (status == NDT_OK && tree && tree->nodes) {
        describe(tree, keys);
        *out = tree;
    } else {
        web_tree_free(tree);
    }
    web_keys_free(keys);
    return status;
}

void web_tree_free(struct web_tree *tree)
{
    if (!tree)
        return;
    free(tree->nodes);
    free(tree->records);
    free(tree);
}

const struct web_tree_info *web_tree_describe(const struct web_tree *tree)
{
    return &tree->info;
}

static const struct node *find_node(const struct web_tree *tree, const char *name)
{
    const struct node *node = &tree->nodes[0];
    if (*name++ != 'r')
        return NULL;
    for (; *name; name++) {
        if (*name < '0' || *name > '7' || node->child[*name - '0'] == 0)
            return NULL;
        node = &tree->nodes[node->child[*name - '0']];
    }
    return node;
}

static uint8_t *put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
    return to + 4;
}

static uint8_t *put_f32(uint8_t *to, double value)
{
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof(bits));
    return put_u32(to, bits);
}

struct web_blob *web_tree_node(const struct web_tree *tree, const char *name)
{
    const struct node *node = find_node(tree, name);
    if (!node)
        return NULL;
    const size_t body = (size_t)node->count * WEB_NODE_RECORD;
    struct web_blob *blob = web_blob_make(WEB_NODE_HEADER + body);
    if (!blob)
        return NULL;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < 8; i++)
        mask |= (node->child[i] != 0 ? 1u : 0u) << i;
    memcpy(blob->data, "NDTN", 4);
    uint8_t *at = put_u32(blob->data + 4, 1);
    at = put_u32(at, node->count);
    at = put_u32(at, mask);
    const double cell_m = tree->size_m / (double)(1u << WEB_KEY_BITS);
    for (int k = 0; k < 3; k++)
        at = put_f32(at, tree->corner_m[k] + node->corner[k] * cell_m);
    at = put_f32(at, tree->size_m / (double)(1u << node->depth));
    at = put_f32(at, (double)node->spacing_m);
    at = put_u32(at, 0);
    memcpy(at, tree->records + WEB_NODE_RECORD * node->first, body);
    return blob;
}
