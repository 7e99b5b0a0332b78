/** @file
 * @brief struct ndt_gpu_job, the one argument of every kernel, passed by value: the scan, the map level and the
 * buffers on the device, and the translation of the pose.
 *
 * Plain data for gcc and nvcc; all pointers are device
 * pointers. */
#ifndef NDT_GPU_JOB_H
#define NDT_GPU_JOB_H

#include "ndt/preprocess_plan.h"
#include "ndt/map.h"
#include "ndt/newton.h"
#include "ndt/score_types.h"

/** Threads of a block, one point each. Sums leave the block as doubles, one row of NDT_GPU_ROW per block, and are
 * added in the order of the blocks, so the result depends on neither the device nor its load. */
enum { NDT_GPU_BLOCK = 128, NDT_GPU_WARP = 32, NDT_GPU_WARPS = NDT_GPU_BLOCK / NDT_GPU_WARP, NDT_GPU_ROW = 32 };

/** Teams of resident and search: a block has up to NDT_GPU_GROUPS groups of NDT_GPU_BLOCK threads. A cluster keeps
 * the rows of an alignment in the shared memory of one of its blocks. */
enum {
    NDT_GPU_GROUPS = 4,
    NDT_GPU_TEAM = NDT_GPU_GROUPS * NDT_GPU_BLOCK,
    NDT_GPU_CLUSTER = 16,       /**< largest number of blocks in a cluster */
    NDT_GPU_CLUSTER_GROUPS = 3, /**< groups per block of a cluster: four would leave a thread too few registers */
    NDT_GPU_CLUSTER_TEAM = NDT_GPU_CLUSTER_GROUPS * NDT_GPU_BLOCK,
    NDT_GPU_CLUSTER_ROWS = 80 /**< most rows of an alignment */
};

/** Order within a row, as in struct ndt_eval; the last number is unused. */
enum {
    NDT_GPU_SCORE = 0,
    NDT_GPU_GRADIENT = 1,
    NDT_GPU_HESSIAN = 7,
    NDT_GPU_NEAREST = 28,
    NDT_GPU_MATCHED = 29,
    NDT_GPU_PAIRS = 30,
    NDT_GPU_SUMS = 31
};

/** Planes of rows of a struct ndt_information. Plane 0: the sums of an evaluation; plane 1 + k: in the place of the
 * Hessian information[k], and in plane 1 in the place of the gradient time_gradient. The rest is unused. */
enum { NDT_GPU_PLANES = 4 };

/** Numbers per point in the buffers of `staged`; number k of point i is at [k * stride + i].
 * Jacobian: rows x, y, z of x', columns tx ty tz a b c. Point Hessian: the 18x6 matrix is zero but for the second
 * derivatives by angles and symmetric, so its packing is (aa ab ac bb bc cc) x (x y z). */
enum { NDT_GPU_JACOBIAN = 18, NDT_GPU_POINT_HESSIAN = 18 };

struct ndt_gpu_level {
    const struct ndt_voxel *voxels;
    const uint32_t *bricks;
    const uint64_t *brick_keys; /**< hashed index only */
    const struct ndt_cell_ref *cells;
    const uint32_t *lists;
    int32_t brick_min[3], brick_dim[3];
    uint32_t brick_slots;
    int32_t hashed;
    float leaf_m, d2, d1d2;
    double d1, leaf_exact_m;
};

/** resident */

enum ndt_gpu_stage { NDT_GPU_EVALUATE, NDT_GPU_COVERAGE, NDT_GPU_FINISHED };

/** Orders for the blocks of an item in one pass. The thread that gives them also prepares the pose for all blocks.
 */
struct ndt_gpu_orders {
    double p[6];
    int32_t level, neighbours;
    int32_t stage;        /**< enum ndt_gpu_stage */
    int32_t first;        /**< 1: the points have to be rotated by R0 */
    int32_t near_cell[3]; /**< as in struct ndt_gpu_job; also t_m and angles */
    float t_m[3];
    float angles[6];
    double R[9]; /**< rotation of p, for NDT_GPU_COVERAGE only */
};
enum { NDT_GPU_ORDER_WORDS = sizeof(struct ndt_gpu_orders) / sizeof(uint64_t) };

/** One alignment. The host sets it before the first launch (newton begun, stage EVALUATE); then the device owns it.
 */
struct ndt_gpu_item {
    struct ndt_newton newton;
    struct ndt_gpu_orders orders;
    double coverage;
    double clock_us;        /**< time when its last row was closed */
    uint32_t count, blocks; /**< points, and blocks of NDT_GPU_BLOCK of them, at least one */
    uint32_t scan_at;       /**< floats into `scan`: columns x y z of blocks * NDT_GPU_BLOCK floats each */
    uint32_t turned_at;     /**< offset in `turned`, likewise */
    uint32_t row_at;        /**< first row in `block_sums`; times NDT_GPU_PLANES with planes */
    uint32_t seen;          /**< sectors of the horizon that meet the map; initially zero */
    uint32_t ticket;        /**< blocks that are done with this pass; zero between passes */
};

/** Control of a launch of a resident kernel, in device memory. The host writes it before every launch. */
struct ndt_gpu_control {
    int32_t pass_limit; /**< largest number of evaluations in this launch, at least one */
    int32_t
        give_up;    /**< 1: unfinished alignments then end with their best pose; 0: a later launch continues them */
    int32_t passes; /**< passes made; zero before */
    int32_t runs;   /**< runs of the kernel of passes; zero before */
    uint32_t active;   /**< items not finished before this pass; all of them before */
    uint32_t ticket;   /**< items that are done with this pass; zero before */
    uint32_t finished; /**< items that finished in this pass; zero before */
};

struct ndt_gpu_batch {
    struct ndt_gpu_control control;
    int32_t item_count, row_capacity; /**< rows per item */
    struct ndt_newton_rules rules;
    const float *scan;
    const float *times_s; /**< times of the points: item i from scan_at / 3 on; NULL: all zero */
    float *turned;
    double *block_sums;
    double *information; /**< NDT_GPU_PLANES rows per item */
    struct ndt_gpu_item *items;
    struct ndt_gpu_item
        *results; /**< pinned memory of the host for the items of a team; NULL: the host copies the items */
    struct ndt_newton_row *rows; /**< rows of item i from i * row_capacity on */
    struct ndt_gpu_level levels[NDT_MAX_LEVELS];
};

/** A batch of one item as the second argument of the kernels of teams and of the information, which use it where
 * job.batch is NULL. */
struct ndt_gpu_single {
    struct ndt_gpu_batch batch;
    struct ndt_gpu_item item;
};

/** preprocessing: the resulting scan, for the alignments that follow. */
struct ndt_gpu_scan {
    uint32_t count, blocks; /**< as in struct ndt_gpu_item */
    double second_m2[6];    /**< see ndt_newton_set_rotation_scale */
};

/** State on the device between kernels and between scans; initially zero. */
struct ndt_gpu_preprocess_state {
    struct ndt_gpu_scan scan;
    uint32_t cells;  /**< number of cells, or of usable points without a filter */
    uint32_t ticket; /**< blocks that are done; zero between launches */
};

/** Argument of the preprocessing kernels; the host writes it with every scan, in front of the points. */
struct ndt_gpu_preprocess {
    struct ndt_preprocess_plan plan;
    uint32_t count, blocks;    /**< size of the raw scan */
    uint32_t round;            /**< entries of the table from other rounds are empty */
    uint32_t slot_bits;        /**< size of the table for this scan */
    float *raw[4];             /**< x y z time; moved in place */
    unsigned long long *keys;  /**< per raw point: key of its cell */
    unsigned long long *slots; /**< the table: round and number of the first point of a cell */
    uint32_t *cell_of;         /**< per raw point: slot, then first point of its cell */
    unsigned long long *sums;  /**< 4 per raw point: sums of the cell that begins with it */
    uint32_t *sizes;           /**< points of that cell */
    uint32_t *block_cells;     /**< per block: cells that begin in it, then in all before */
    uint32_t *firsts;          /**< first points of the cells in their order */
    float *sampled[4];         /**< sampled points, before deskewing */
    float *scan;               /**< in the layout of set_scans */
    struct ndt_gpu_preprocess_state *state;
};

/** search: a window has NDT_GPU_WINDOW^2 places; a block of a team scores NDT_GPU_HYPOTHESES at one window. */
enum {
    NDT_GPU_WINDOW = 64,
    NDT_GPU_WINDOW_HALO = 62, /**< most cells between a place and its points */
    NDT_GPU_WINDOW_ROWS = NDT_GPU_WINDOW + 2 * NDT_GPU_WINDOW_HALO,
    NDT_GPU_WINDOW_STRIDE = 200,    /**< bytes of a row: eight rows are half of the banks of shared memory */
    NDT_GPU_WINDOW_TILES = 13 * 13, /**< most tiles that a window and its surroundings touch */
    NDT_GPU_PEAKS = 64,             /**< of a window and a hypothesis: one per 8x8 places */
    NDT_GPU_SEARCH_POINTS = 250,    /**< most points of a hypothesis */
    NDT_GPU_HYPOTHESES = 2 * NDT_GPU_GROUPS
};

struct ndt_gpu_search_tile {
    int32_t layer, y, x;
};

struct ndt_gpu_search_window {
    int32_t layer, y, x, unused;      /**< first cell */
    uint64_t allowed[NDT_GPU_WINDOW]; /**< bit x of word y */
};

/** Argument of the kernel of the search, in device memory. */
struct ndt_gpu_search {
    const struct ndt_gpu_search_tile *tiles; /**< sorted by layer, y, x */
    const uint32_t *cells;                   /**< cells of the level: four per word, tile after tile */
    uint32_t tile_count;
    int32_t edge_bits; /**< a tile has 2^edge_bits cells per edge: 4 or 5 */
    int32_t halo;
    uint32_t hypothesis_count;
    const uint32_t *counts; /**< points per hypothesis */
    const uint32_t
        *points; /**< NDT_GPU_SEARCH_POINTS per hypothesis: offset in the low half, signed, then the mask */
    const struct ndt_gpu_search_window *windows;
    uint8_t *peaks; /**< windows x hypotheses x NDT_GPU_PEAKS */
};

/** scores: points of a scan that one block scores at one pose. */
enum { NDT_GPU_SCORE_POINTS = 8 * NDT_GPU_BLOCK };

/** Argument of the kernel of scores, in device memory in front of the poses. */
struct ndt_gpu_scores {
    struct ndt_score_scale scale;
    const struct ndt_packed_pose *poses;
    struct ndt_score_sums *sums; /**< `parts` per pose, each for NDT_GPU_SCORE_POINTS points */
    uint32_t parts, unused;
};

struct ndt_gpu_job {
    struct ndt_gpu_level level;
    const float *x_m, *y_m, *z_m;
    uint32_t count;
    int32_t neighbours; /**< enum ndt_neighbours */
    /* x' = R x + near_cell * leaf + t_m, so that floats hold only numbers near the sensor */
    int32_t near_cell[3];
    float t_m[3];
    float angles[6];    /**< sx cx sy cy sz cz: the 24 bytes that go up with an evaluation */
    double *block_sums; /**< a row per block; for the information one plane after the other */
    uint32_t *ticket;   /**< blocks that are done; zero between launches */
    double *sums;    /**< NDT_GPU_SUMS; for the information NDT_GPU_PLANES rows; may be mapped memory of the host */
    uint32_t blocks; /**< rows in block_sums */
    uint32_t times_at; /**< floats from x_m to the times of the points; 0: all are zero */
    /* staged */
    uint64_t stride;
    float *moved_m; /**< 3: x' relative to the corner of near_cell */
    float *jacobian;
    float *point_hessian;
    float *terms; /**< NDT_GPU_SUMS terms of each point; score and nearest without the factor -d1 */
    /* resident */
    struct ndt_gpu_batch *batch; /**< `blocks` is then per item */
    const struct ndt_gpu_preprocess *preprocess;
    const struct ndt_gpu_search *search;
    const struct ndt_gpu_scores *scores;
    uint64_t loop; /**< cudaGraphConditionalHandle of the graph that runs the kernel, if any */
};

#endif
