#include "bench_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_batch.h"
#include "ndtd/config_file.h"
#include "ndtd/nearest_name.h"
#include "ndtd/options.h"

enum { CODE_FIRST = 256 };

static enum ndt_status take_bag(struct bench_options *options, const char *text, struct ndt_error *err)
{
    (void)err;
    options->bag = text;
    return NDT_OK;
}

/* The first file; more of them stand behind it without a flag. */
static enum ndt_status take_scan(struct bench_options *options, const char *text, struct ndt_error *err)
{
    (void)err;
    options->scans[options->scan_files++] = text;
    return NDT_OK;
}

static enum ndt_status take_json(struct bench_options *options, const char *text, struct ndt_error *err)
{
    (void)err;
    options->json = text;
    return NDT_OK;
}

static enum ndt_status take_peer(struct bench_options *options, const char *text, struct ndt_error *err)
{
    (void)err;
    options->peer = text;
    return NDT_OK;
}

static enum ndt_status take_basin(struct bench_options *options, const char *text, struct ndt_error *err)
{
    (void)text;
    (void)err;
    options->basin = 1;
    return NDT_OK;
}

static enum ndt_status take_overheads(struct bench_options *options, const char *text, struct ndt_error *err)
{
    (void)text;
    (void)err;
    options->overheads = 1;
    return NDT_OK;
}

static enum ndt_status take_preprocess(struct bench_options *options, const char *text, struct ndt_error *err)
{
    (void)text;
    (void)err;
    options->preprocess = 1;
    return NDT_OK;
}

static enum ndt_status take_map_cost(struct bench_options *options, const char *text, struct ndt_error *err)
{
    (void)text;
    (void)err;
    options->map_cost = 1;
    return NDT_OK;
}

static enum ndt_status take_map(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return ndtd_option_set_text(&options->settings, "map.path", text, err);
}

static enum ndt_status take_config(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return ndtd_config_read(&options->settings, text, err);
}

static enum ndt_status take_set(struct bench_options *options, const char *text, struct ndt_error *err)
{
    char name[128];
    const char *equals = strchr(text, '=');
    if (!equals || (size_t)(equals - text) >= sizeof(name))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--set %.100s: key=value is wanted", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    return ndtd_option_set_text(&options->settings, name, equals + 1, err);
}

static enum ndt_status parse_count(const char *flag, const char *text, uint64_t most, uint64_t *out,
                                   struct ndt_error *err)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || *out > most)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s %.60s: a number from 0 to %llu is wanted", flag, text,
                        (unsigned long long)most);
    return NDT_OK;
}

static enum ndt_status take_starts(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return parse_count("--starts", text, 100000, &options->starts, err);
}

static enum ndt_status take_scan_limit(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return parse_count("--scans", text, 100000, &options->scan_limit, err);
}

static enum ndt_status take_seed(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return parse_count("--seed", text, UINT64_MAX, &options->seed, err);
}

static enum ndt_status take_list(const char *flag, struct bench_list *list, const char *text, struct ndt_error *err)
{
    list->count = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        if (list->count == BENCH_MAX_ITEMS)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: more than %d values", flag, BENCH_MAX_ITEMS);
        if (length == 0 || length >= BENCH_ITEM_TEXT)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s %.60s: values are separated by single commas", flag, text);
        memcpy(list->items[list->count], at, length);
        list->items[list->count++][length] = '\0';
        at += length;
        if (!*at)
            return NDT_OK;
    }
}

static enum ndt_status take_points(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return take_list("--points", &options->points, text, err);
}

static enum ndt_status take_threads(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return take_list("--threads", &options->threads, text, err);
}

static enum ndt_status take_neighbours(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return take_list("--neighbours", &options->neighbours, text, err);
}

static enum ndt_status take_backends(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return take_list("--backend", &options->backends, text, err);
}

static enum ndt_status take_levels(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return take_list("--levels", &options->levels, text, err);
}

static enum ndt_status take_variants(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return take_list("--variant", &options->variants, text, err);
}

static enum ndt_status take_tiles(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return take_list("--tiles", &options->tiles, text, err);
}

static enum ndt_status take_radius(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return take_list("--radius", &options->radii, text, err);
}

static enum ndt_status take_tile_size(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return parse_count("--tile-size", text, 10000, &options->tile_m, err);
}

static enum ndt_status take_tile_points(struct bench_options *options, const char *text, struct ndt_error *err)
{
    return parse_count("--tile-points", text, 10000000, &options->tile_points, err);
}

static enum ndt_status take_batch(struct bench_options *options, const char *text, struct ndt_error *err)
{
    struct bench_list list;
    enum ndt_status status = take_list("--batch", &list, text, err);
    options->batch_size_count = 0;
    for (size_t i = 0; status == NDT_OK && i < list.count; i++) {
        uint64_t size = 0;
        status = parse_count("--batch", list.items[i], BENCH_BATCH_MOST, &size, err);
        if (status == NDT_OK && size == 0)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--batch 0: a batch has at least one item");
        options->batch_sizes[options->batch_size_count++] = (size_t)size;
    }
    return status;
}

static enum ndt_status take_offsets(struct bench_options *options, const char *text, struct ndt_error *err)
{
    struct bench_list list;
    enum ndt_status status = take_list("--offsets", &list, text, err);
    options->offset_count = 0;
    for (size_t i = 0; status == NDT_OK && i < list.count; i++) {
        struct bench_offset *offset = &options->offsets[options->offset_count++];
        int used = 0;
        if (sscanf(list.items[i], "%lf/%lf%n", &offset->shift_m, &offset->turn_deg, &used) != 2 ||
            list.items[i][used] || !(offset->shift_m >= 0 && offset->shift_m <= 1000) ||
            !(offset->turn_deg >= 0 && offset->turn_deg <= 180))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--offsets %s: metres/degrees are wanted, such as 0.5/2",
                            list.items[i]);
    }
    return status;
}

static enum ndt_status take_pose(struct bench_options *options, const char *text, struct ndt_error *err)
{
    double v[7];
    int used = 0;
    options->has_pose = 1;
    if (sscanf(text, "%lf,%lf,%lf,%lf,%lf,%lf,%lf%n", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &used) !=
            7 ||
        text[used])
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--pose %.100s: x,y,z,qx,qy,qz,qw is wanted", text);
    memcpy(options->pose.t_m, v, sizeof(options->pose.t_m));
    memcpy(options->pose.q_xyzw, v + 3, sizeof(options->pose.q_xyzw));
    if (!ndt_pose_normalize(&options->pose) || !ndt_pose_is_finite(&options->pose))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--pose %.100s: the quaternion is zero or a number not finite",
                        text);
    return NDT_OK;
}

static const struct flag {
    const char *name, *value, *help;
    enum ndt_status (*take)(struct bench_options *options, const char *text, struct ndt_error *err);
} flags[] = {
    {"map", "FILE|DIR", "The prior map; a cloud file for build times and for --peer", take_map},
    {"scan", "FILE...", "Scans to match, all taken at --pose", take_scan},
    {"pose", "X,Y,Z,QX,QY,QZ,QW", "Truth of --scan (default: the origin of the map)", take_pose},
    {"bag", "BAG", "Scans and their truth", take_bag},
    {"scans", "N", "Scans taken from the bag, evenly spread (30)", take_scan_limit},
    {"starts", "N", "Perturbed starts (50; with --basin 120 per offset; with --batch batches of each size, 20)",
     take_starts},
    {"offsets", "M/DEG,...", "How far starts are off at most (0.5/2; with --basin 0.5/2,1/5,2/10,3/20)",
     take_offsets},
    {"seed", "N", "Seed of the starts (1)", take_seed},
    {"points", "LIST", "Points per scan, such as 1500,5000", take_points},
    {"threads", "LIST", "Threads, such as 1,2", take_threads},
    {"neighbours", "LIST", "radius, direct1, direct7, direct27: for every level", take_neighbours},
    {"backend", "LIST", "Backends, such as cpu,cuda or cpu,cuda:staged,cuda:fused,cuda:resident", take_backends},
    {"levels", "LIST", "Chains of levels from coarse to fine, such as 2,4-2-1", take_levels},
    {"variant", "LIST", "robust, autoware (brings its own level, neighbours and covariance)", take_variants},
    {"basin", NULL, "How many starts are recovered: robust next to autoware", take_basin},
    {"overheads", NULL,
     "One evaluation on the CPU and on every pipeline of a device, and its overheads by themselves",
     take_overheads},
    {"batch", "LIST",
     "Batches of so many guesses for one scan, and of 2 and 3 scans, such as 1,2,3,8,64,200: together and alone",
     take_batch},
    {"front", NULL,
     "Decoding and the steps of preprocessing, on synthetic scans of --points, or on those given; needs no map",
     take_preprocess},
    {"map-cost", NULL, "Building and opening the map, against points, voxels and threads (--points, --threads)",
     take_map_cost},
    {"tiles", "LIST", "Drives across folders of so many made-up tiles, such as 100,1600: opening, changes, memory",
     take_tiles},
    {"radius", "LIST", "With --tiles: metres around the vehicle (map_radius + lidar_radius of the settings)",
     take_radius},
    {"tile-size", "M", "With --tiles: edge of a tile (100)", take_tile_size},
    {"tile-points", "N", "With --tiles: points in a tile (20000)", take_tile_points},
    {"peer", "pcl", "The same work through pcl::NormalDistributionsTransform in the same run", take_peer},
    {"json", "FILE", "Write everything as JSON", take_json},
    {"config", "FILE", "Configuration of ndtd (YAML)", take_config},
    {"set", "KEY=VALUE", "One option of ndtd, such as ndt.levels=[2.0]; may be repeated", take_set},
};
enum { FLAG_COUNT = sizeof(flags) / sizeof(flags[0]) };

void bench_options_help(FILE *file)
{
    fprintf(file, "usage: ndt-bench --map FILE (--scan FILE... | --bag BAG) [options]\n"
                  "       ndt-bench --front [--points LIST | --scan FILE... | --bag BAG] [options]\n"
                  "       ndt-bench --map FILE --map-cost [options]\n"
                  "       ndt-bench --tiles LIST [options]\n\n"
                  "Times of align, evaluation, preprocessing and map build over seeded wrong starts. Whatever is\n"
                  "compared takes turns, start by start, so that a clock that drifts hits all alike.\n\n");
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        char words[40];
        snprintf(words, sizeof(words), "--%s %s", flags[i].name, flags[i].value ? flags[i].value : "");
        fprintf(file, "  %-28s%s\n", words, flags[i].help);
    }
    fprintf(file, "\nExit codes: 0 done, 2 usage, 3 failure while running.\n");
}

static enum ndt_status unknown_flag(const char *text, struct ndt_error *err)
{
    char word[64], hint[80] = "";
    const char *name = text + strspn(text, "-");
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, "="), name);
    struct ndtd_nearest nearest = ndtd_nearest_start(word);
    for (size_t i = 0; i < FLAG_COUNT; i++)
        ndtd_nearest_offer(&nearest, flags[i].name);
    if (nearest.name)
        snprintf(hint, sizeof(hint), "; did you mean --%s?", nearest.name);
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%.100s is not known%s", text, hint);
}

/* Flags are looked at once; words without a flag are more files of --scan. */
static enum ndt_status take_flags(struct bench_options *out, int argc, char **argv, int *help,
                                  struct ndt_error *err)
{
    struct option known[FLAG_COUNT + 2] = {{"help", no_argument, NULL, 'h'}};
    for (int i = 0; i < FLAG_COUNT; i++)
        known[i + 1] =
            (struct option){flags[i].name, flags[i].value ? required_argument : no_argument, NULL, CODE_FIRST + i};
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        if (code == 'h') {
            *help = 1;
            return NDT_OK;
        }
        if (code == ':')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: its value is missing", argv[optind - 1]);
        if (code == '?')
            return unknown_flag(argv[optind - 1], err);
        enum ndt_status status = flags[code - CODE_FIRST].take(out, optarg, err);
        if (status != NDT_OK)
            return status;
    }
    if (optind < argc && out->scan_files == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not expected here; scans follow --scan", argv[optind]);
    while (optind < argc)
        out->scans[out->scan_files++] = argv[optind++];
    return NDT_OK;
}

static void fill_defaults(struct bench_options *out)
{
    static const struct bench_offset basin[] = {{0.5, 2}, {1, 5}, {2, 10}, {3, 20}};
    if (out->offset_count == 0) {
        out->offset_count = out->basin ? 4 : 1;
        memcpy(out->offsets, basin, out->offset_count * sizeof(basin[0]));
    }
    if (out->starts == 0)
        out->starts = out->basin ? 120 : out->batch_size_count ? 20 : 50;
}

static enum ndt_status check_preprocess(const struct bench_options *out, struct ndt_error *err)
{
    if (out->basin || out->overheads || out->batch_size_count || out->peer || out->settings.map_path[0] ||
        out->variants.count || out->backends.count || out->levels.count || out->neighbours.count ||
        out->threads.count)
        return ndt_fail(
            err, NDT_ERR_ARGUMENT,
            "--front matches nothing: no --map, --basin, --overheads, --batch, --peer, --variant, --backend, "
            "--levels, --neighbours or --threads");
    if (out->points.count && (out->bag || out->scan_files))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--front: either --points of synthetic scans, or --scan or --bag");
    if (out->bag && out->scan_files)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--front: --scan or --bag, not both");
    return NDT_OK;
}

/* Maps by themselves: no scan is matched. */
static enum ndt_status check_map_mode(const struct bench_options *out, struct ndt_error *err)
{
    if (out->bag || out->scan_files || out->basin || out->overheads || out->peer || out->variants.count ||
        out->backends.count || out->neighbours.count || out->levels.count)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "%s matches nothing: no --scan, --bag, --basin, --overheads, --peer, --variant, "
                        "--backend, --neighbours or --levels (--set ndt.levels=... sets the cells)",
                        out->tiles.count ? "--tiles" : "--map-cost");
    if (out->tiles.count && (out->map_cost || out->settings.map_path[0]))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--tiles makes its own maps: no --map and no --map-cost");
    if (out->tiles.count && (out->tile_m == 0 || out->tile_points == 0))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--tile-size and --tile-points must be above 0");
    if (!out->tiles.count && !out->settings.map_path[0])
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--map-cost: of which cloud? give --map FILE");
    return NDT_OK;
}

static enum ndt_status check_batch(const struct bench_options *out, struct ndt_error *err)
{
    if (out->basin || out->overheads || out->peer || out->variants.count > 1 || out->levels.count > 1 ||
        out->neighbours.count > 1)
        return ndt_fail(
            err, NDT_ERR_ARGUMENT,
            "--batch compares backends: no --basin, --overheads or --peer, and one value for --variant, "
            "--levels and --neighbours");
    if (out->starts > 1000)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--batch with --starts %llu: 1000 batches of each size at most",
                        (unsigned long long)out->starts);
    return NDT_OK;
}

static enum ndt_status check(const struct bench_options *out, struct ndt_error *err)
{
    if (out->preprocess)
        return check_preprocess(out, err);
    if (out->tiles.count || out->map_cost)
        return check_map_mode(out, err);
    if (!out->settings.map_path[0])
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--map is missing; --help explains");
    if (!out->bag == !out->scan_files)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "either --scan or --bag is needed");
    if (out->bag && out->has_pose)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--pose belongs to --scan; a bag brings its own truth");
    if (!out->basin && out->offset_count > 1)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--offsets: several only with --basin");
    if (out->basin && (out->peer || out->points.count || out->variants.count || out->levels.count > 1 ||
                       out->neighbours.count > 1 || out->backends.count > 1 || out->threads.count > 1))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "--basin compares two variants only: no --peer, --points or --variant, "
                        "and one value for --levels, --neighbours, --backend and --threads");
    if (out->overheads && (out->basin || out->peer || out->variants.count || out->backends.count ||
                           out->levels.count > 1 || out->neighbours.count > 1 || out->threads.count > 1))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "--overheads takes every backend: no --basin, --peer, --backend or --variant, "
                        "and one value for --levels, --neighbours and --threads");
    if (out->peer && strcmp(out->peer, "pcl") != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--peer %.40s: the only one is pcl", out->peer);
    if (out->batch_size_count)
        return check_batch(out, err);
    return NDT_OK;
}

enum ndt_status bench_options_parse(struct bench_options *out, int argc, char **argv, int *help,
                                    struct ndt_error *err)
{
    static const char *files[4096];
    *out = (struct bench_options){.scans = files,
                                  .pose = ndt_pose_identity(),
                                  .seed = 1,
                                  .scan_limit = 30,
                                  .tile_m = 100,
                                  .tile_points = 20000};
    *help = 0;
    if (argc > (int)(sizeof(files) / sizeof(files[0])))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "more than 4095 words");
    ndtd_settings_default(&out->settings);
    enum ndt_status status = take_flags(out, argc, argv, help, err);
    if (status != NDT_OK || *help)
        return status;
    fill_defaults(out);
    status = check(out, err);
    return status == NDT_OK ? ndtd_settings_finish(&out->settings, err) : status;
}
