/** @file
 * @brief The command line of ndt-bench.
 *
 * Built with NDT_BENCH_CORE it needs the core and the backends only: no files, no configuration, and only the
 * commands that use the synthetic street. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdint.h>

#include "ndt/align.h"
#include "ndt/preprocess.h"
#include "tool_options.h"
#ifndef NDT_BENCH_CORE
#include "ndtd/settings.h"
#endif

enum { BENCH_MAX_ITEMS = 12, BENCH_BATCH_MOST = 4096 };

/** Whole numbers, such as "756,1500". */
struct bench_numbers {
    size_t count, values[BENCH_MAX_ITEMS];
};
/** How far starts are off, at most. */
struct bench_offset {
    double shift_m, turn_deg;
};
struct bench_offsets {
    size_t count;
    struct bench_offset items[BENCH_MAX_ITEMS];
};
/** The setup of a candidate before the lists of the command line vary it. */
struct bench_setup {
    char backend[32], pipeline[24];   /**< "auto", "cpu", "cuda"; "": the first pipeline */
    struct ndt_backend_config config; /**< but its pipeline */
    struct ndt_align_params align;
    struct ndt_map_config map;
};

struct bench_options {
    struct bench_setup setup;
    struct ndt_preprocess_params preprocess;
#ifndef NDT_BENCH_CORE
    struct ndtd_settings settings; /**< --config, --set; `setup` and `preprocess` follow from it */
#endif
    int is_basin, is_comparison;
    const char *map, *bag, *scan;  /**< NULL: none */
    struct tool_operands operands; /**< more files of --scan, or what is compared */
    int has_pose;
    struct ndt_pose pose; /**< truth of --scan */
    struct tool_list threads, neighbours, backends, levels, variants;
    struct bench_numbers points, map_threads, sizes, tiles;
    struct tool_reals radii_m;
    struct bench_offsets offsets;
    double tile_m;
    uint64_t tile_points, scan_limit, seed;
    uint64_t rounds; /**< measured ones of each row */
    int needs_device, has_peer;
    const char *json, *markdown; /**< NULL: none */
};

#endif
