/** @file
 * @brief Parts that the sub-commands of ndt-bench share: options, samples, the report, the input and the
 * candidates.
 *
 * A sub-command is a row of the table in bench_main.c and a function that fills rows of the report. Built with
 * NDT_BENCH_CORE the program needs the core and the backends only: no files, no configuration, and only the
 * sub-commands that can use the synthetic street. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdio.h>

#include "ndt/align.h"
#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndt/preprocess.h"
#include "tool_options.h"
#ifndef NDT_BENCH_CORE
#include "ndtd/settings.h"
#endif

#define BENCH_DEG (3.14159265358979323846 / 180.0)

/* ---- options ---- */

enum { BENCH_MAX_ITEMS = 12 };

/** Whole numbers such as "756,1500", each within the limits. */
struct bench_numbers {
    size_t count, values[BENCH_MAX_ITEMS], least, most;
};
/** Largest offset of a start from the truth. */
struct bench_offset {
    double shift_m, turn_deg;
};
struct bench_offsets {
    size_t count;
    struct bench_offset items[BENCH_MAX_ITEMS];
};
/** Settings of a candidate, before the lists of the command line vary them. */
struct bench_setup {
    char backend[32], pipeline[24];   /**< "auto", "cpu", "cuda"; "": the first pipeline */
    struct ndt_backend_config config; /**< backend options; `pipeline` is not used */
    struct ndt_align_params align;
    struct ndt_map_config map;
};

struct bench_options {
    struct bench_setup setup;
    struct ndt_preprocess_params preprocess;
#ifndef NDT_BENCH_CORE
    struct ndtd_settings settings; /**< --config, --set; `setup` and `preprocess` are derived from it */
#endif
    int is_basin;
    const char *map, *bag, *scan;  /**< may be NULL */
    struct tool_operands operands; /**< further files of --scan, or experiments */
    int has_points, has_pose;
    struct ndt_pose pose; /**< truth of --scan */
    struct tool_list neighbours, backends, levels, variants;
    struct bench_numbers points, threads, sizes;
    struct tool_reals priors;
    struct bench_offsets offsets;
    uint64_t scan_limit, seed;
    uint64_t rounds; /**< measured rounds of each row */
    double rest_ms;  /**< rest before each alignment */
    uint64_t seeds;  /**< number of seeds of the sample, from 1 */
    int needs_device, peer, has_peer;
    int wait, has_wait, has_kernel_times;
    struct bench_search_options {
        int tier;                                    /**< enum ndt_search_tier */
        double window_m, reach_deg;                  /**< 0: none, free */
        double view_deg, range_m, tilt_deg, least_m; /**< 360, 0: all, 0, -INFINITY */
        uint64_t blocks, places, alignments;         /**< 0: those of the tier */
        uint64_t keep;                               /**< keeps one of this many points */
        int has_up, is_deskewed, is_steady;
    } search;
    int is_elsewhere;                  /**< the map is of another place: no pose is right */
    const char *json, *markdown, *csv; /**< may be NULL */
};

/* ---- samples ---- */

/** A growing list of numbers; all zero is an empty one. */
struct bench_samples {
    double *values;
    size_t count, capacity;
};
/** Adds a sample. Without memory it is lost, and bench_samples_lost() returns 1 from then on. */
void bench_samples_add(struct bench_samples *samples, double value);
int bench_samples_lost(void);
void bench_samples_free(struct bench_samples *samples, size_t count); /**< frees `count` lists */
/** Linear interpolation, 0 <= q <= 1; NaN for an empty list. Sorts the list. */
double bench_quantile(struct bench_samples *samples, double q);
double bench_median(struct bench_samples *samples);
double bench_mean(const struct bench_samples *samples); /**< NaN for an empty list */

/** Measures `item` once. `round` counts from 0, over warm-up and measured rounds; is_counted: not a warm-up. */
typedef enum ndt_status bench_sample_fn(void *context, size_t item, size_t round, int is_counted,
                                        struct ndt_error *err);
/** Every round measures each item once and begins with another item than the round before, so that a drifting clock
 * and warm caches affect all items alike. A failure ends the sampling. */
NDT_MUST_CHECK enum ndt_status bench_sample(size_t items, size_t warm_up, uint64_t rounds, bench_sample_fn *sample,
                                            void *context, struct ndt_error *err);

/** Start number `start`: `truth` shifted in a random direction and turned about a random axis, both by an amount
 * that is uniform between 0 and the offset. */
struct ndt_pose bench_start(uint64_t seed, uint64_t start, const struct ndt_pose *truth,
                            const struct bench_offset *offset);
/** Whether a pose is within BENCH_SUCCESS_M and BENCH_SUCCESS_DEG of the truth; the errors are stored. */
int bench_is_recovered(const struct ndt_pose *pose, const struct ndt_pose *truth, double *off_m, double *off_deg);
#define BENCH_SUCCESS_M   0.15
#define BENCH_SUCCESS_DEG 0.6

/* ---- the report ---- */

enum { BENCH_TABLES = 8, BENCH_COLUMNS = 32, BENCH_NOTES = 40, BENCH_CELL_TEXT = 224 };

struct bench_cell {
    enum { BENCH_EMPTY, BENCH_NUMBER, BENCH_BOOL, BENCH_TEXT } kind;
    double number;
    char text[BENCH_CELL_TEXT];
};
/** A column exists from its first value on; its key is the heading of the text and the member of the JSON object.
 */
struct bench_table {
    char name[32];       /**< member of the JSON object */
    char title[400];     /**< heading, and what the rows mean */
    int is_for_programs; /**< only in the JSON */
    const char *keys[BENCH_COLUMNS];
    size_t column_count, row_count, capacity;
    struct bench_cell (*rows)[BENCH_COLUMNS];
    size_t note_count;
    char notes[BENCH_NOTES][BENCH_CELL_TEXT]; /**< lines below the table; not in the JSON */
};
struct bench_report {
    struct bench_table tables[BENCH_TABLES];
    size_t count;
    int is_incomplete;  /**< no memory for a row: writing fails */
    size_t device_rows; /**< rows measured on a device */
    size_t failures;    /**< wrong results and failed backends */
};

/** Adds a table; `title` is "Heading: explanation". Borrowed until bench_report_free. */
struct bench_table *bench_report_table(struct bench_report *report, const char *name, const char *title);
void bench_report_free(struct bench_report *report);
/** Begins a row; the values that follow belong to it. */
void bench_row(struct bench_report *report, struct bench_table *table);
/** `key` must outlive the table. A number that is not finite is "-" in text and null in JSON. */
void bench_number(struct bench_table *table, const char *key, int decimals, double value);
void bench_bool(struct bench_table *table, const char *key, int value);
void bench_text(struct bench_table *table, const char *key, const char *format, ...) NDT_PRINTF(3, 4);
void bench_note(struct bench_table *table, const char *format, ...) NDT_PRINTF(2, 3);

void bench_report_text(const struct bench_report *report, FILE *file);
void bench_report_markdown(const struct bench_report *report, FILE *file);
void bench_report_json(const struct bench_report *report, FILE *file);

/* ---- the input: maps and scans with true poses, from files or from the synthetic street ---- */

/** A scan as it is matched. */
struct bench_scan {
    struct ndt_cloud cloud;       /**< sensor frame */
    struct ndt_pose T_map_sensor; /**< truth at the reference time of the points */
};
/** Scans of about the same number of points. */
struct bench_scans {
    size_t points, wanted; /**< median; requested, 0: all of them */
    size_t count;
    struct bench_scan *items;
    double voxel_m;                     /**< edge of the filter's cells that leaves enough points */
    struct bench_samples used, took_us; /**< of files: used points per scan; preprocessing time */
};

/** A scan as it was recorded. */
struct bench_raw_scan {
    uint64_t seq;
    int64_t stamp_ns;
    struct ndt_cloud cloud;
    struct ndt_pose T_base_sensor; /**< sensor pose of the settings */
    struct ndt_pose T_map_sensor;  /**< truth at the stamp */
    struct ndt_twist twist;        /**< true motion of the sensor at the stamp */
};
struct bench_recording {
    struct bench_raw_scan *scans;
    size_t count;
};

enum { BENCH_MAX_MAPS = 24 };
struct bench_map {
    struct ndt_map_config config;
    struct ndt_map *map;
    struct bench_samples build_ms; /**< empty: opened from a compiled map or tiles */
};

struct bench_candidate {
    char name[64];   /**< "cpu avx2, 1 thread", "cuda resident" */
    char about[160]; /**< description by the backend */
    struct bench_setup setup;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner; /**< has the map; NULL: not available on this machine */
    struct ndt_map *map;         /**< borrowed from the source */
    int is_device, is_resident;  /**< resident: the Newton solve runs on the device */
    int is_broken;               /**< failed although the device exists, or while it was measured */
    struct ndt_error why;        /**< reason of a failure */
};
struct bench_candidates {
    size_t count, capacity;
    struct bench_candidate *items;
};

struct bench_source {
    const struct bench_options *options;
    struct ndt_cloud map_points; /**< empty unless the map is a cloud file or the street */
    double read_ms;
    size_t map_count;
    struct bench_map maps[BENCH_MAX_MAPS];
    struct bench_recording *recording; /**< NULL: the street */
    size_t scans_count;
    struct bench_scans scans[BENCH_MAX_ITEMS]; /**< one per --points */
    struct bench_candidates candidates;
};

/** `source` is zeroed by the caller; close its candidates, then the source, also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_source_open(struct bench_source *source, const struct bench_options *options,
                                                 struct ndt_error *err);
void bench_source_close(struct bench_source *source);
/** Loads the scans of every --points, opens the candidates with room for them (in batches of up to the largest of
 * --sizes), and adds the tables of the input to the report. */
NDT_MUST_CHECK enum ndt_status bench_source_prepare(struct bench_source *source, struct bench_report *report,
                                                    struct ndt_error *err);
/** The map of this configuration, built once and kept; *out is borrowed. */
NDT_MUST_CHECK enum ndt_status bench_source_map(struct bench_source *source, const struct ndt_map_config *config,
                                                struct ndt_map **out, struct ndt_error *err);
/** Adds scans of so many points to source->scans; 0: as many as the settings say. `params` as in the options,
 * except for the number of points. */
NDT_MUST_CHECK enum ndt_status bench_source_scans(struct bench_source *source,
                                                  const struct ndt_preprocess_params *params, size_t points,
                                                  struct ndt_error *err);
/** Adds the tables "machine", "maps" and, for recorded scans, "preprocess". */
void bench_source_report(struct bench_source *source, struct bench_report *report);

/** `points` points of the street, map frame. */
NDT_MUST_CHECK enum ndt_status bench_street_map(struct ndt_cloud *out, size_t points, struct ndt_error *err);
/** Scan `number` of a drive along the street, in steps of 0.5 m: `points` points in the sensor frame, without
 * motion distortion. */
NDT_MUST_CHECK enum ndt_status bench_street_scan(struct ndt_cloud *out, struct ndt_pose *T_map_sensor,
                                                 size_t number, size_t points, struct ndt_error *err);
#ifndef NDT_BENCH_CORE
/** The scans of --bag that have a true pose, --scans of them evenly spread, up to the first damaged record; or the
 * files of --scan. */
NDT_MUST_CHECK enum ndt_status bench_recording_open(struct bench_recording **out,
                                                    const struct bench_options *options, struct ndt_error *err);
void bench_recording_close(struct bench_recording *recording); /**< may be NULL */
/** Deskews every scan with the true motion, filters it and samples out->wanted points. Where the filter of `params`
 * leaves fewer points, its cells are halved until it does not, and switched off below 2 cm. `out` holds the
 * finished scans also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_recording_scans(const struct bench_recording *recording,
                                                     const struct ndt_preprocess_params *params,
                                                     struct bench_scans *out, struct ndt_error *err);
#endif

/* ---- candidates: a backend with an aligner and a map, for every combination of the lists ---- */

/** Opens every combination of --variant, --levels, --neighbours, --backend and --threads into source->candidates.
 * The backend "all" is the CPU with one thread and with all, and every pipeline of every backend on a device; those
 * that are not available are listed with the reason, while a backend given by name must work. max_points: of a scan
 * or a batch. */
NDT_MUST_CHECK enum ndt_status bench_candidates_open(struct bench_source *source, size_t max_points,
                                                     struct ndt_error *err);
/** Adds one candidate, which must work. */
NDT_MUST_CHECK enum ndt_status bench_candidates_add(struct bench_candidates *out, struct bench_source *source,
                                                    const struct bench_setup *setup, struct ndt_error *err);
void bench_candidates_close(struct bench_candidates *candidates);

/** Whether it can be measured. */
int bench_candidate_works(const struct bench_candidate *candidate);
/** Excludes it, with the reason of its last failure, unless `status` is NDT_OK. */
void bench_candidate_fail(struct bench_candidate *candidate, enum ndt_status status);
/** Begins a row with its name; counts it among the device rows or the failures. 0: it does not work, and the column
 * "why" says why. */
int bench_candidate_row(const struct bench_candidate *candidate, struct bench_report *report,
                        struct bench_table *table);
void bench_candidate_counters(const struct bench_candidate *candidate, struct ndt_backend_counters *out);
/** A request for one evaluation on the finest level at a pose of the map. */
struct ndt_eval_request bench_candidate_request(const struct bench_candidate *candidate,
                                                const struct ndt_pose *T_map_sensor);
/** The time of the kernels between two calls of bench_candidate_counters; NaN where it is not measured. */
double bench_candidate_kernel_us(const struct bench_candidate *candidate, const struct ndt_backend_counters *before,
                                 const struct ndt_backend_counters *after);
/** Aligns once and measures the time, also that of the kernels. A failure excludes the candidate and returns 0. */
int bench_candidate_align(struct bench_candidate *candidate, const struct ndt_align_params *params,
                          const struct ndt_cloud *scan, const struct ndt_pose *guess, struct ndt_align_result *out,
                          double *took_us, double *kernel_us);
/** "4-2-1"; returns `text`. */
const char *bench_align_levels_text(const struct ndt_align_params *params, char *text, size_t size);

/* ---- the sub-commands ---- */

typedef enum ndt_status bench_command_fn(struct bench_source *source, struct bench_report *report,
                                         struct ndt_error *err);
/** align and basin. */
NDT_MUST_CHECK bench_command_fn bench_align;
/** Alignments that stop after different numbers of iterations. The slope of their times over the evaluations is the
 * cost of an evaluation; the intercept is the fixed cost of an alignment. */
NDT_MUST_CHECK bench_command_fn bench_evaluations;
NDT_MUST_CHECK bench_command_fn bench_batch;
NDT_MUST_CHECK bench_command_fn bench_overheads;
/** Each candidate follows the scans twice, every guess from the poses before. Both passes must have the same bits,
 * and must be within 1 mm and 0.01 deg of the first candidate. */
NDT_MUST_CHECK bench_command_fn bench_drive;
/* Sub-commands that NDT_BENCH_CORE leaves out. */
NDT_MUST_CHECK bench_command_fn bench_compare;
/** Replays --bag with --seeds seeds of the sample: NEES, coverage, innovations, acceptance. */
NDT_MUST_CHECK bench_command_fn bench_consistency;
/** Follows --bag in groups of scans that wait, by two pipelines: together, and one after the other. */
NDT_MUST_CHECK bench_command_fn bench_drain;
NDT_MUST_CHECK bench_command_fn bench_confidence;
NDT_MUST_CHECK bench_command_fn bench_search;

#endif
