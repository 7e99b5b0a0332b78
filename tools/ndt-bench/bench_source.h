/** @file
 * @brief Input of the measurements: maps and scans with their true poses, from files or from the synthetic street.
 */
#ifndef BENCH_SOURCE_H
#define BENCH_SOURCE_H

#include "bench_options.h"
#include "bench_recording.h"
#include "bench_report.h"
#include "ndt/map.h"

enum { BENCH_MAX_MAPS = 24 };

struct bench_map {
    struct ndt_map_config config;
    struct ndt_map *map;
    struct bench_samples build_ms; /**< empty if opened from a compiled map or tiles */
};
struct bench_source {
    const struct bench_options *options;
    struct ndt_cloud map_points; /**< the cloud file or the street; otherwise empty */
    double read_ms;
    size_t map_count;
    struct bench_map maps[BENCH_MAX_MAPS];
    struct bench_recording *recording; /**< may be NULL (the street) */
};

/** `source` is zeroed by the caller; close it also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_source_open(struct bench_source *source, const struct bench_options *options,
                                                 struct ndt_error *err);
void bench_source_close(struct bench_source *source);
/** The map of this configuration, built once and cached; *out is borrowed. */
NDT_MUST_CHECK enum ndt_status bench_source_map(struct bench_source *source, const struct ndt_map_config *config,
                                                struct ndt_map **out, struct ndt_error *err);
/** Scans of this number of points; 0: that of the settings. Free them also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_source_scans(struct bench_source *source, size_t points,
                                                  struct bench_scans *out, struct ndt_error *err);
void bench_scans_free(struct bench_scans *scans);
/** "4-2-1" of the levels; returns `text`. */
const char *bench_levels_text(const struct ndt_align_params *params, char *text, size_t size);
/** Adds the tables "machine", "maps" and, for files, "preprocess". scans may be NULL (nothing is matched). */
void bench_source_report(struct bench_source *source, struct bench_scans *scans, size_t count,
                         struct bench_report *report);

#endif
