/** @file
 * @brief ndt-bench: measures the matcher, preprocessing and maps.
 *
 * Built with NDT_BENCH_CORE it needs the core and the backends only: no files, no configuration, and only the
 * commands that use the synthetic street. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_commands.h"
#ifndef NDT_BENCH_CORE
#include "ndt_io/output_file.h"
#include "ndtd/config_file.h"
#include "ndtd/options.h"
#endif

/* In addition to the exit codes of every tool. */
enum { WRONG = 1, NO_DEVICE = 77 };
enum { MOST_POINTS = 1 << 24, MOST_ROUNDS = 100000, MOST_FILES = 4096 };

static struct bench_options options = {.seed = 1, .scan_limit = 30, .tile_m = 100, .tile_points = 20000};
static struct bench_report report;

/* ---- values ---- */

static enum ndt_status parse_numbers(void *value, const char *text, struct ndt_error *err)
{
    struct bench_numbers *numbers = value;
    const double most = numbers == &options.sizes ? BENCH_BATCH_MOST : MOST_POINTS;
    struct tool_list list;
    enum ndt_status status = tool_parse_list(text, &list, err);
    if (status == NDT_OK && list.count > BENCH_MAX_ITEMS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "more than %d values", BENCH_MAX_ITEMS);
    for (numbers->count = 0; status == NDT_OK && numbers->count < list.count; numbers->count++) {
        uint64_t number = 0;
        status = tool_parse_count(list.items[numbers->count], 1, most, &number, err);
        numbers->values[numbers->count] = (size_t)number;
    }
    return status;
}

static enum ndt_status parse_offsets(void *value, const char *text, struct ndt_error *err)
{
    struct bench_offsets *offsets = value;
    struct tool_list list;
    enum ndt_status status = tool_parse_list(text, &list, err);
    if (status == NDT_OK && list.count > BENCH_MAX_ITEMS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "more than %d values", BENCH_MAX_ITEMS);
    for (offsets->count = 0; status == NDT_OK && offsets->count < list.count; offsets->count++) {
        struct bench_offset *offset = &offsets->items[offsets->count];
        const char *item = list.items[offsets->count];
        int used = 0;
        if (sscanf(item, "%lf/%lf%n", &offset->shift_m, &offset->turn_deg, &used) != 2 || item[used] ||
            !(offset->shift_m >= 0 && offset->shift_m <= 1000) ||
            !(offset->turn_deg >= 0 && offset->turn_deg <= 180))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "'%s' is not metres/degrees, such as 0.5/2", item);
    }
    return status;
}

/* A single value where other commands accept a list. */
static enum ndt_status parse_one(void *value, const char *text, struct ndt_error *err)
{
    enum ndt_status status = tool_parse_list(text, value, err);
    if (status == NDT_OK && ((struct tool_list *)value)->count > 1)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "this command takes one value, not '%.60s'", text);
    return status;
}

static enum ndt_status parse_one_offset(void *value, const char *text, struct ndt_error *err)
{
    enum ndt_status status = parse_offsets(value, text, err);
    if (status == NDT_OK && ((struct bench_offsets *)value)->count > 1)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "this command takes one value, not '%.60s'", text);
    return status;
}

#ifndef NDT_BENCH_CORE
static enum ndt_status parse_config(void *value, const char *text, struct ndt_error *err)
{
    return ndtd_config_read(value, text, err);
}

static enum ndt_status parse_set(void *value, const char *text, struct ndt_error *err)
{
    char name[128];
    const char *equals = strchr(text, '=');
    if (!equals || (size_t)(equals - text) >= sizeof(name))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not KEY=VALUE", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    return ndtd_option_set_text(value, name, equals + 1, err);
}
#endif

/* ---- running ---- */

/* Written atomically. */
static enum ndt_status write_file(const char *path, void (*write)(const struct bench_report *report, FILE *file),
                                  struct ndt_error *err)
{
#ifndef NDT_BENCH_CORE
    struct ndt_output out;
    enum ndt_status status = ndt_output_open(&out, path, err);
    if (status != NDT_OK)
        return status;
    write(&report, out.file);
    return ndt_output_commit(&out, err);
#else
    FILE *file = fopen(path, "w");
    if (!file)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    write(&report, file);
    const int is_bad = ferror(file);
    if (fclose(file) == 0 && !is_bad)
        return NDT_OK;
    (void)remove(path);
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot be written", path);
#endif
}

static enum ndt_status write_report(struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (report.is_incomplete)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the report");
    bench_report_text(&report, stdout);
    if (options.needs_device)
        printf("\n%zu rows of a device%s; %zu failures\n", report.device_rows,
               report.device_rows ? "" : ": none works here", report.failures);
    if (fflush(stdout) != 0 || ferror(stdout))
        status = ndt_fail(err, NDT_ERR_IO, "standard output: %s", strerror(errno));
    if (status == NDT_OK && options.json)
        status = write_file(options.json, bench_report_json, err);
    if (status == NDT_OK && options.markdown)
        status = write_file(options.markdown, bench_report_markdown, err);
    return status;
}

static enum ndt_status finish_setup(struct ndt_error *err)
{
    struct bench_setup *setup = &options.setup;
#ifdef NDT_BENCH_CORE
    (void)err;
    snprintf(setup->backend, sizeof(setup->backend), "auto");
    ndt_backend_config_default(&setup->config);
    ndt_align_params_default(&setup->align);
    ndt_map_config_default(&setup->map);
    ndt_preprocess_params_default(&options.preprocess);
#else
    enum ndt_status status = ndtd_settings_finish(&options.settings, err);
    if (status != NDT_OK)
        return status;
    setup->config = options.settings.compute;
    setup->align = options.settings.align;
    setup->map = options.settings.map;
    options.preprocess = options.settings.preprocess;
    snprintf(setup->backend, sizeof(setup->backend), "%s", options.settings.backend);
    snprintf(setup->pipeline, sizeof(setup->pipeline), "%s", setup->config.pipeline ? setup->config.pipeline : "");
#endif
    return NDT_OK;
}

static enum ndt_status check_files(struct ndt_error *err)
{
    if (options.bag && options.scan)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "either --scan or --bag, not both");
    if (options.operands.count > 0 && !options.scan)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not expected here; scans follow --scan",
                        options.operands.words[0]);
    return NDT_OK;
}

static enum ndt_status check_input(struct ndt_error *err)
{
    if (options.map && !options.bag && !options.scan)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--map: no scans; give --scan or --bag");
    if (!options.map && (options.bag || options.scan))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--map is missing");
    if (options.scan && !options.has_pose)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--scan: give its pose in the map, --pose x,y,z,qx,qy,qz,qw");
    if (options.has_pose && !options.scan)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--pose requires --scan; a bag has its own ground truth");
    return NDT_OK;
}

static void fill_numbers(struct bench_numbers *numbers, const size_t *usual, size_t count)
{
    if (numbers->count == 0)
        memcpy(numbers->values, usual, (numbers->count = count) * sizeof(*usual));
}

static enum ndt_status run(uint64_t rounds,
                           enum ndt_status (*measure)(struct bench_source *source, struct bench_report *report,
                                                      struct ndt_error *err),
                           struct ndt_error *err)
{
    static const struct bench_offset offsets[] = {{0.5, 2}, {1, 5}, {2, 10}, {3, 20}};
    static struct bench_source source;
    if (options.rounds == 0)
        options.rounds = rounds;
    if (options.offsets.count == 0)
        memcpy(options.offsets.items, offsets,
               (options.offsets.count = options.is_basin ? 4 : 1) * sizeof(offsets[0]));
    enum ndt_status status = finish_setup(err);
    if (status == NDT_OK)
        status = bench_source_open(&source, &options, err);
    if (status == NDT_OK)
        status = measure(&source, &report, err);
    if (status == NDT_OK)
        status = write_report(err);
    bench_source_close(&source);
    return status;
}

static enum ndt_status run_matching(uint64_t rounds,
                                    enum ndt_status (*measure)(struct bench_source *source,
                                                               struct bench_report *out, struct ndt_error *err),
                                    struct ndt_error *err)
{
    enum ndt_status status = options.is_comparison ? NDT_OK : check_files(err);
    if (status == NDT_OK)
        status = check_input(err);
    return status == NDT_OK ? run(rounds, measure, err) : status;
}

static enum ndt_status run_align(struct ndt_error *err)
{
    return run_matching(50, bench_align, err);
}

static enum ndt_status run_basin(struct ndt_error *err)
{
    options.is_basin = 1;
    return run_matching(120, bench_align, err);
}

static enum ndt_status run_evaluations(struct ndt_error *err)
{
    return run_matching(21, bench_evaluations, err);
}

static enum ndt_status run_batch(struct ndt_error *err)
{
    static const size_t sizes[] = {1, 2, 3, 8, 64, 200};
    fill_numbers(&options.sizes, sizes, sizeof(sizes) / sizeof(sizes[0]));
    return run_matching(20, bench_batch, err);
}

static enum ndt_status run_overheads(struct ndt_error *err)
{
    static const size_t points[] = {756, 1500, 5000, 20000, 100000};
    fill_numbers(&options.points, points, sizeof(points) / sizeof(points[0]));
    return run_matching(101, bench_overheads, err);
}

static enum ndt_status run_drive(struct ndt_error *err)
{
    return run_matching(1, bench_drive, err);
}

#ifndef NDT_BENCH_CORE
static enum ndt_status run_compare(struct ndt_error *err)
{
    options.is_comparison = 1;
    return run_matching(21, bench_compare, err);
}

static enum ndt_status run_preprocess(struct ndt_error *err)
{
    static const size_t points[] = {13500, 120000};
    if (options.points.count && (options.bag || options.scan))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "either --points of synthetic scans, or --scan or --bag");
    enum ndt_status status = check_files(err);
    fill_numbers(&options.points, points, sizeof(points) / sizeof(points[0]));
    return status == NDT_OK ? run(101, bench_preprocess, err) : status;
}

static enum ndt_status run_map(struct ndt_error *err)
{
    return run(7, bench_map, err);
}

static enum ndt_status run_tiles(struct ndt_error *err)
{
    static const size_t tiles[] = {100, 1600};
    fill_numbers(&options.tiles, tiles, sizeof(tiles) / sizeof(tiles[0]));
    return run(1, bench_tiles, err);
}
#endif

/* ---- the command line ---- */

/* clang-format off */

#ifndef NDT_BENCH_CORE
static int peer;
static const char *const peers[] = {"pcl", NULL};
#endif

#define ROUNDS(usual)                                                                                              \
    {"rounds", "N", TOOL_COUNT, &options.rounds, .min = 1, .max = MOST_ROUNDS,                                     \
     .help = "rounds of each row, each from another start; the medians are reported (" usual ")"}
#define SEED                                                                                                       \
    {"seed", "N", TOOL_COUNT, &options.seed, .max = INFINITY, .help = "seed of the starts and of synthetic scans"}
#define POINTS                                                                                                     \
    {"points", "LIST", TOOL_CUSTOM, &options.points, .parse = parse_numbers, .help = "points per scan, such as 1500,5000"}
#define OUTPUT                                                                                                     \
    {"json", "FILE", TOOL_TEXT, &options.json, .help = "also write the tables as JSON"},                           \
        {"markdown", "FILE", TOOL_TEXT, &options.markdown, .help = "also write the tables as Markdown"}
#define LIST(option, target, text) {option, "LIST", TOOL_LIST, &options.target, .help = text}
#define ONE(option, target, text) {option, "VALUE", TOOL_CUSTOM, &options.target, .parse = parse_one, .help = text}
#define BACKEND_HELP "such as cpu,cuda:staged,cuda:resident; all: the CPU and every pipeline of a device"
#define THREADS_HELP "threads of the CPU backend, such as 1,2"
#define LEVELS_HELP "levels [m] from coarse to fine, such as 4-2-1"
#define NEIGHBOURS_HELP "radius, direct1, direct7 or direct27, on every level"
#define OFFSET                                                                                                     \
    {"offsets", "M/DEG", TOOL_CUSTOM, &options.offsets, .parse = parse_one_offset,                                 \
     .help = "how far starts are off at most (default: 0.5/2)"}
#define NEED_DEVICE                                                                                                \
    {"need-device", NULL, TOOL_FLAG, &options.needs_device,                                                        \
     .help = "exit status 77 when no backend on a device was measured"}
#define SCANS                                                                                                      \
    {"scans", "N", TOOL_COUNT, &options.scan_limit, .max = MOST_ROUNDS,                                            \
     .help = "number of scans of the bag, evenly spread (0: all), or of the street"}
#ifndef NDT_BENCH_CORE
#define SETTINGS                                                                                                   \
    {"config", "FILE", TOOL_CUSTOM, &options.settings, .parse = parse_config,                                      \
     .help = "configuration of ndtd (YAML)"},                                                                      \
        {"set", "KEY=VALUE", TOOL_CUSTOM, &options.settings, .parse = parse_set,                                   \
         .help = "one option of ndtd, such as ndt.levels=[2.0]; may be repeated"},
#define MAP {"map", "FILE", TOOL_TEXT, &options.map, .help = "the prior map; without: a synthetic street"},
#define BAG {"bag", "BAG", TOOL_TEXT, &options.bag, .help = "scans and their true poses"},
#define SCAN {"scan", "FILE", TOOL_TEXT, &options.scan, .help = "a scan; more of them follow as operands"},
#define POSE                                                                                                       \
    {"pose", "X,Y,Z,QX,QY,QZ,QW", TOOL_POSE, &options.pose, .given = &options.has_pose,                            \
     .help = "pose of the scans of --scan in the map"},
#define PEER {"peer", "NAME", TOOL_CHOICE, &peer, .choices = peers, .given = &options.has_peer, .help = "also measure pcl::NormalDistributionsTransform in the same run"},
#define FILES TOOL_OPERANDS("FILE", 0, MOST_FILES, &options.operands),
#else
#define SETTINGS
#define MAP
#define BAG
#define SCAN
#define POSE
#define PEER
#define FILES
#endif
#define INPUT MAP SCAN POSE BAG SCANS, SETTINGS SEED

static const struct tool_option align_options[] = {
    INPUT, ROUNDS("50"), OFFSET, POINTS, LIST("backend", backends, BACKEND_HELP),
    LIST("threads", threads, THREADS_HELP), LIST("levels", levels, "chains of " LEVELS_HELP),
    LIST("neighbours", neighbours, NEIGHBOURS_HELP),
    LIST("variant", variants, "robust, autoware (with its own level, neighbours and covariance)"),
    PEER NEED_DEVICE, OUTPUT};
static const struct tool_option basin_options[] = {
    INPUT, ROUNDS("120"),
    {"offsets", "M/DEG,...", TOOL_CUSTOM, &options.offsets, .parse = parse_offsets,
     .help = "how far starts are off at most (default: 0.5/2,1/5,2/10,3/20)"},
    ONE("backend", backends, "the backend"), ONE("threads", threads, "threads of the CPU backend"),
    ONE("levels", levels, LEVELS_HELP), ONE("neighbours", neighbours, NEIGHBOURS_HELP), OUTPUT};
static const struct tool_option evaluations_options[] = {
    INPUT, ROUNDS("21"), OFFSET, POINTS, LIST("backend", backends, BACKEND_HELP),
    LIST("threads", threads, THREADS_HELP), ONE("levels", levels, "one level [m], such as 2"),
    ONE("neighbours", neighbours, NEIGHBOURS_HELP), NEED_DEVICE, OUTPUT};
static const struct tool_option batch_options[] = {
    INPUT, {"rounds", "N", TOOL_COUNT, &options.rounds, .min = 1, .max = 1000, .help = "batches of each size (20)"},
    {"sizes", "LIST", TOOL_CUSTOM, &options.sizes, .parse = parse_numbers,
     .help = "items of a batch (default: 1,2,3,8,64,200)"},
    OFFSET, POINTS, LIST("backend", backends, BACKEND_HELP), LIST("threads", threads, THREADS_HELP),
    ONE("levels", levels, LEVELS_HELP), ONE("neighbours", neighbours, NEIGHBOURS_HELP),
    ONE("variant", variants, "robust or autoware"), NEED_DEVICE, OUTPUT};
static const struct tool_option overheads_options[] = {
    INPUT, ROUNDS("101"), POINTS, LIST("backend", backends, BACKEND_HELP " (default: all)"),
    LIST("threads", threads, THREADS_HELP), ONE("levels", levels, LEVELS_HELP ", of which the finest counts"),
    LIST("neighbours", neighbours, NEIGHBOURS_HELP), NEED_DEVICE, OUTPUT};
static const struct tool_option drive_options[] = {
    MAP BAG SCANS, SETTINGS SEED, POINTS, LIST("backend", backends, BACKEND_HELP " (default: all)"),
    LIST("threads", threads, THREADS_HELP), ONE("levels", levels, LEVELS_HELP),
    ONE("neighbours", neighbours, NEIGHBOURS_HELP), NEED_DEVICE, OUTPUT};

static const struct tool_command align_command = {
    .name = "align", .summary = "whole alignments from wrong starts, for every combination of the lists",
    TOOL_OPTIONS(align_options), FILES.run = run_align};
static const struct tool_command basin_command = {
    .name = "basin", .summary = "fraction of recovered starts by their distance, robust and autoware",
    TOOL_OPTIONS(basin_options), FILES.run = run_basin};
static const struct tool_command evaluations_command = {
    .name = "evaluations", .summary = "cost of an alignment: per evaluation, and fixed",
    TOOL_OPTIONS(evaluations_options), FILES.run = run_evaluations};
static const struct tool_command batch_command = {
    .name = "batch", .summary = "batches of guesses for one scan, and of 2 and 3 scans: together and one by one",
    TOOL_OPTIONS(batch_options), FILES.run = run_batch};
static const struct tool_command overheads_command = {
    .name = "overheads",
    .summary = "one evaluation, and on a device its kernels, copies, launch and wait separately",
    TOOL_OPTIONS(overheads_options), FILES.run = run_overheads};
static const struct tool_command drive_command = {
    .name = "drive", .summary = "a drive, twice: checks that both passes are bit-identical and the trajectory is that of the CPU",
    TOOL_OPTIONS(drive_options), .run = run_drive};

#ifndef NDT_BENCH_CORE
static const struct tool_option compare_options[] = {
    MAP BAG SCANS, SETTINGS SEED, ROUNDS("21"), OFFSET,
    {"points", "N", TOOL_CUSTOM, &options.points, .parse = parse_numbers, .help = "points per scan"},
    ONE("backend", backends, "the backend"), ONE("threads", threads, "threads of the CPU backend"), OUTPUT};
static const struct tool_option preprocess_options[] = {
    {"points", "LIST", TOOL_CUSTOM, &options.points, .parse = parse_numbers,
     .help = "points of synthetic scans (default: 13500,120000)"},
    SCAN BAG SCANS, SETTINGS SEED, ROUNDS("101"), OUTPUT};
static const struct tool_option map_options[] = {
    {"map", "FILE", TOOL_TEXT, &options.map, .required = 1, .help = "a cloud file"},
    {"points", "LIST", TOOL_CUSTOM, &options.points, .parse = parse_numbers,
     .help = "thinned to so many points (default: halves, down to 1/64)"},
    {"threads", "LIST", TOOL_CUSTOM, &options.map_threads, .parse = parse_numbers,
     .help = "threads of the build (default: 1,2)"},
    ROUNDS("7"), SETTINGS OUTPUT};
static const struct tool_option tiles_options[] = {
    {"tiles", "LIST", TOOL_CUSTOM, &options.tiles, .parse = parse_numbers,
     .help = "tiles of the map, square numbers (default: 100,1600)"},
    {"radius", "LIST", TOOL_REALS, &options.radii_m, .min = 1e-3, .max = 1e5,
     .help = "metres around the vehicle (default: map_radius + lidar_radius of the settings)"},
    {"tile-size", "M", TOOL_REAL, &options.tile_m, .min = 1, .max = 10000, .help = "edge of a tile [m]"},
    {"tile-points", "N", TOOL_COUNT, &options.tile_points, .min = 1, .max = 1e7, .help = "points in a tile"},
    SETTINGS OUTPUT};
static const struct tool_command compare_command = {
    .name = "compare", .summary = "paired comparison of settings in one run",
    .details = "An EXPERIMENT is a name that 'compare list' prints, or OPTION=VALUE,VALUE... of ndtd's options.",
    TOOL_OPTIONS(compare_options), TOOL_OPERANDS("EXPERIMENT", 1, 64, &options.operands), .run = run_compare};
static const struct tool_command preprocess_command = {
    .name = "preprocess", .summary = "decoding and the steps of preprocessing, on synthetic or given scans",
    TOOL_OPTIONS(preprocess_options), FILES.run = run_preprocess};
static const struct tool_command map_command = {
    .name = "map", .summary = "building and opening the map, against points, voxels and threads",
    TOOL_OPTIONS(map_options), .run = run_map};
static const struct tool_command tiles_command = {
    .name = "tiles", .summary = "drives across folders of synthetic tiles: opening, changes, memory",
    TOOL_OPTIONS(tiles_options), .run = run_tiles};
#endif

static const struct tool_command *const commands[] = {
    &align_command, &basin_command,   &evaluations_command, &batch_command, &overheads_command, &drive_command,
#ifndef NDT_BENCH_CORE
    &compare_command, &preprocess_command, &map_command, &tiles_command,
#endif
    NULL};
static const struct tool_command program = {
    .name = "ndt-bench",
    .summary = "measures the matcher and what belongs to it",
    .details = "Candidates take turns, so that clock drift affects all of them equally. The tables go to standard "
               "output. Exit status 1: a result is wrong or a backend failed; the tables are written in any case.",
    .commands = commands};

/* clang-format on */

/* Translates options of earlier versions to commands. `words` has room for one more than argc. */
static int translate(int argc, char **argv, char **words)
{
    static const struct {
        const char *flag, *command, *option; /* option: NULL if the flag had no value */
    } aliases[] = {
        {"--basin", "basin", NULL},      {"--overheads", "overheads", NULL}, {"--batch", "batch", "--sizes"},
        {"--front", "preprocess", NULL}, {"--map-cost", "map", NULL},        {"--tiles", "tiles", "--tiles"},
    };
    const char *command = "align";
    int count = 2;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        for (size_t k = 0; word && k < sizeof(aliases) / sizeof(aliases[0]); k++)
            if (strcmp(word, aliases[k].flag) == 0) {
                command = aliases[k].command;
                word = aliases[k].option;
                break;
            }
        if (word)
            words[count++] = strcmp(word, "--starts") == 0 ? "--rounds" : (char *)word;
    }
    words[0] = argv[0];
    words[1] = (char *)command;
    return count;
}

int main(int argc, char **argv)
{
    static char *words[MOST_FILES + 64];
    const int is_old = argc > 1 && argc < MOST_FILES && argv[1][0] == '-' && strcmp(argv[1], "--help") != 0 &&
                       strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--version") != 0;
    options.pose = ndt_pose_identity();
#ifndef NDT_BENCH_CORE
    ndtd_settings_default(&options.settings);
#endif
    int code = is_old ? tool_main(&program, translate(argc, argv, words), words) : tool_main(&program, argc, argv);
    if (code == TOOL_DONE && report.failures)
        code = WRONG;
    else if (code == TOOL_DONE && options.needs_device && report.device_rows == 0)
        code = NO_DEVICE;
    bench_report_free(&report);
    return code;
}
