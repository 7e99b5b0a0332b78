/** @file
 * @brief Correlative scan matching (Olson 2009) on a device: the table of operations that a search
 * (ndt_search/search.h) uses in place of its own threads. Every pose of a window gets a dense score, the number of
 * points of the scan whose bits the field has there.
 *
 * The search prepares where and what is scored, and chooses among the peaks; an engine only counts. All are
 * integers: every engine gives the bits of the CPU. A search without an engine, or whose engine fails, scores on
 * the CPU.
 *
 * An engine is used by one thread at a time, that of the search. It allocates in open and for a field that is
 * larger than those before. */
#ifndef NDT_DENSE_SCORE_H
#define NDT_DENSE_SCORE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NDT_BLOCK = 8,         /**< edge of a block, of which the best cell counts */
    NDT_WINDOW_CELLS = 64, /**< edge of a window of the dense score */
    NDT_WINDOW_BLOCKS = NDT_WINDOW_CELLS / NDT_BLOCK,
    NDT_DENSE_PEAKS = NDT_WINDOW_BLOCKS * NDT_WINDOW_BLOCKS, /**< of a window and a hypothesis */
    NDT_DENSE_POINTS = 250,                                  /**< most points of a hypothesis: sums are bytes */
    NDT_DENSE_HYPOTHESES = 720 * 8,                          /**< most hypotheses */
    NDT_DENSE_HALO = 62 /**< most cells between a place and its points, per axis */
};

/** NDT_WINDOW_CELLS^2 cells in which a sensor may be. */
struct ndt_dense_window {
    int32_t layer, y, x; /**< first cell, a multiple of NDT_WINDOW_CELLS */
    uint32_t poses;      /**< allowed cells */
};

enum { NDT_DENSE_LEVELS = 2, NDT_DENSE_TILE_M = 32 };
/** Cells per edge of a tile: those of level 0 have 2 m, of level 1 1 m. */
enum { NDT_DENSE_EDGE_2M = NDT_DENSE_TILE_M / 2, NDT_DENSE_EDGE_1M = NDT_DENSE_TILE_M };

/** A tile of the field: a byte per cell, rows of equal y. Tiles are sorted by layer, y, x. */
struct ndt_dense_tile {
    int32_t layer, y, x;
    const uint8_t *bits[NDT_DENSE_LEVELS];
};

/** Points of a hypothesis: a heading, at a height where the scan shows no ground. */
struct ndt_score_points {
    const int32_t *offset; /**< y * stride + x, in cells from the place */
    const uint8_t *mask;   /**< bits of the cell that count */
    uint32_t count;        /**< up to NDT_DENSE_POINTS */
};

/** A request for dense scores: every hypothesis at every window. */
struct ndt_dense_job {
    int level; /**< of the field: 0 or 1 */
    int32_t halo;
    size_t window_count;
    const struct ndt_dense_window *windows;
    const uint64_t *allowed; /**< NDT_WINDOW_CELLS per window: bit x of word y is set where a sensor may be */
    size_t hypothesis_count;
    const struct ndt_score_points *hypotheses; /**< offsets with the stride of the engine */
    /** out: windows x hypotheses x NDT_DENSE_PEAKS: of the allowed cells of a block the largest number of points
     * whose cell has a bit of their mask; 0 without an allowed cell. */
    uint8_t *peaks;
    /** Called between parts of the work with the windows that are done; 0: stop, the peaks will not be used. */
    int (*goes_on)(void *context, size_t windows);
    void *context;
};

/** Defined by each engine. */
struct ndt_dense_engine;

/** The operations of an engine. */
struct ndt_dense_ops {
    const char *name;
    int32_t stride; /**< of the offsets */
    /** Opens device `index`; on failure *out is NULL. */
    enum ndt_status (*open)(struct ndt_dense_engine **out, int index, struct ndt_error *err);
    /** `engine` may be NULL. */
    void (*close)(struct ndt_dense_engine *engine);
    /** Copies the tiles. NDT_ERR_MEMORY: it does not fit; the engine can be used with another one. */
    enum ndt_status (*set_field)(struct ndt_dense_engine *engine, const struct ndt_dense_tile *tiles, size_t count,
                                 struct ndt_error *err);
    /** Scores. NDT_ERR_DEVICE: the device is lost; the engine can only be closed. */
    enum ndt_status (*score)(struct ndt_dense_engine *engine, const struct ndt_dense_job *job,
                             struct ndt_error *err);
    /** One line: the device. */
    void (*describe)(const struct ndt_dense_engine *engine, char *text, size_t size);
};

#ifdef __cplusplus
}
#endif
#endif
