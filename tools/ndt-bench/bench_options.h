/* The command line of ndt-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

#include "ndtd/settings.h"

enum { BENCH_MAX_ITEMS = 12, BENCH_ITEM_TEXT = 64 };

/* What one dimension of the comparison takes; empty: only what the settings say. */
struct bench_list {
    size_t count;
    char items[BENCH_MAX_ITEMS][BENCH_ITEM_TEXT];
};

/* How far starts are off, at most. */
struct bench_offset {
    double shift_m, turn_deg;
};

struct bench_options {
    struct ndtd_settings settings; /* --config, --set, --map */
    const char *bag;
    const char **scans; /* into argv */
    size_t scan_files;
    int has_pose; /* truth of --scan, else identity */
    struct ndt_pose pose;
    struct bench_list points, threads, neighbours, backends, levels, variants;
    struct bench_list tiles, radii; /* --tiles, --radius */
    uint64_t tile_m, tile_points;
    size_t offset_count;
    struct bench_offset offsets[BENCH_MAX_ITEMS];
    uint64_t starts;     /* 0: 50, or 120 with --basin, or 20 with --batch */
    uint64_t scan_limit; /* scans taken from the bag, evenly spread */
    uint64_t seed;
    int basin;
    int overheads;
    size_t batch_size_count; /* 0: no --batch */
    size_t batch_sizes[BENCH_MAX_ITEMS];
    int preprocess;
    int map_cost;
    const char *peer; /* NULL: none */
    const char *json; /* NULL: none */
};

/* *help becomes 1 when --help is among the words. Everything borrowed lives as long as argv. */
NDT_MUST_CHECK enum ndt_status bench_options_parse(struct bench_options *out, int argc, char **argv, int *help,
                                                   struct ndt_error *err);
void bench_options_help(FILE *file);

#endif
