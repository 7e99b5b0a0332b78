/** @file
 * @brief ndt-bench: the command line. A sub-command is a row of `commands`; its options are picked from
 * `all_options`. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "bench.h"
#ifndef NDT_BENCH_CORE
#include "ndt_io/output_file.h"
#include "ndtd/config_file.h"
#include "ndtd/options.h"
#endif

/* Exit codes besides those of every tool. */
enum { EXIT_WRONG = 1, EXIT_NO_DEVICE = 77 };
enum { MOST_ROUNDS = 100000, MOST_FILES = 4096 };

static struct bench_options options = {.seed = 1,
                                       .scan_limit = 30,
                                       .rounds = 1,
                                       .seeds = 20,
                                       .priors = {.count = 3, .values = {0, 0.5, 0.05}},
                                       .search = {.view_deg = 360, .keep = 1, .least_m = -INFINITY},
                                       .points = {.least = 1, .most = 1 << 24},
                                       .threads = {.most = 256},
                                       .sizes = {.least = 1, .most = 4096}};
static struct bench_report report;

/* ---- values ---- */

static enum ndt_status parse_list(const char *text, struct tool_list *list, struct ndt_error *err)
{
    enum ndt_status status = tool_parse_list(text, list, err);
    if (status == NDT_OK && list->count > BENCH_MAX_ITEMS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "more than %d values", BENCH_MAX_ITEMS);
    return status;
}

static enum ndt_status parse_numbers(void *value, const char *text, struct ndt_error *err)
{
    struct bench_numbers *numbers = value;
    struct tool_list list;
    enum ndt_status status = parse_list(text, &list, err);
    for (numbers->count = 0; status == NDT_OK && numbers->count < list.count; numbers->count++) {
        uint64_t number = 0;
        status = tool_parse_count(list.items[numbers->count], (double)numbers->least, (double)numbers->most,
                                  &number, err);
        numbers->values[numbers->count] = (size_t)number;
    }
    return status;
}

static enum ndt_status parse_offsets(void *value, const char *text, struct ndt_error *err)
{
    struct bench_offsets *offsets = value;
    struct tool_list list;
    enum ndt_status status = parse_list(text, &list, err);
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

static const char *const peers[] = {"pcl", NULL};
#endif

/* Names in the order of enum ndt_wait. */
static const char *const waits[] = {"auto", "spin", "yield", "block", NULL};
static const char *const tiers[] = {"auto", "quick", "thorough", "region", "near", NULL};

/* ---- options and sub-commands ---- */

/* clang-format off */
static const struct tool_option all_options[] = {
#ifndef NDT_BENCH_CORE
    {"map", "FILE", TOOL_TEXT, &options.map, .help = "the prior map; without it, a synthetic street is measured"},
    {"scan", "FILE", TOOL_TEXT, &options.scan, .help = "a scan (cloud file); further FILEs are scans as well"},
    {"pose", "X,Y,Z,QX,QY,QZ,QW", TOOL_POSE, &options.pose, .given = &options.has_pose,
     .help = "true pose of --scan in the map [m, quaternion]"},
    {"bag", "BAG", TOOL_TEXT, &options.bag, .help = "scans and their true poses"},
    {"config", "FILE", TOOL_CUSTOM, &options.settings, .parse = parse_config, .help = "configuration of ndtd (YAML)"},
    {"set", "KEY=VALUE", TOOL_CUSTOM, &options.settings, .parse = parse_set,
     .help = "one option of ndtd, such as ndt.levels=[2.0]; may be repeated"},
    {"peer", "NAME", TOOL_CHOICE, &options.peer, .choices = peers, .given = &options.has_peer,
     .help = "also measure pcl::NormalDistributionsTransform in the same run"},
#endif
    {"tier", "NAME", TOOL_CHOICE, &options.search.tier, .choices = tiers, .help = "how much is searched"},
    {"window", "M", TOOL_REAL, &options.search.window_m, .min = 0, .max = 1e6,
     .help = "the position is known to M metres; the truth is anywhere within (0: not known)"},
    {"heading", "DEG", TOOL_REAL, &options.search.reach_deg, .min = 0, .max = 180,
     .help = "the heading is known to DEG (0: not known)"},
    {"blocks", "N", TOOL_COUNT, &options.search.blocks, .max = 4096, .help = "blocks that are refined (0: of the tier)"},
    {"places", "N", TOOL_COUNT, &options.search.places, .max = 256,
     .help = "places that are scored before some are aligned (0: of the tier)"},
    {"alignments", "N", TOOL_COUNT, &options.search.alignments, .max = 256,
     .help = "places that are aligned (0: of the tier)"},
    {"up", NULL, TOOL_FLAG, &options.search.has_up, .help = "the direction of gravity is known"},
    {"deskew", NULL, TOOL_FLAG, &options.search.is_deskewed, .help = "scans are deskewed with the true motion"},
    {"view", "DEG", TOOL_REAL, &options.search.view_deg, .min = 1, .max = 360, .help = "horizontal field of view"},
    {"range", "M", TOOL_REAL, &options.search.range_m, .min = 0, .max = 1000, .help = "range of the sensor (0: all)"},
    {"keep", "N", TOOL_COUNT, &options.search.keep, .min = 1, .max = 100000, .help = "one of N points is kept"},
    {"tilt", "DEG", TOOL_REAL, &options.search.tilt_deg, .min = 0, .max = 90, .help = "the sensor is tilted, to any side"},
    {"least-z", "M", TOOL_REAL, &options.search.least_m, .min = -1000, .max = 1000,
     .help = "points below this height in the sensor frame are dropped"},
    {"steady", NULL, TOOL_FLAG, &options.search.is_steady, .help = "--view and --tilt point the same way in every scan"},
    {"scans", "N", TOOL_COUNT, &options.scan_limit, .max = MOST_ROUNDS,
     .help = "number of scans of the street, or of the bag, evenly spread (0: all of the bag)"},
    {"seed", "N", TOOL_COUNT, &options.seed, .max = INFINITY, .help = "seed of the starts and of synthetic scans"},
    {"seeds", "N", TOOL_COUNT, &options.seeds, .min = 1, .max = 1000,
     .help = "seeds of the sample of points (preprocess.seed 1 to N)"},
    {"rest", "MS", TOOL_REAL, &options.rest_ms, .min = 0, .max = 10000,
     .help = "a rest before each alignment, as between scans: a device lowers its clocks meanwhile"},
    {"rounds", "N", TOOL_COUNT, &options.rounds, .min = 1, .max = MOST_ROUNDS,
     .help = "measured rounds, of which medians are reported"},
    {"points", "LIST", TOOL_CUSTOM, &options.points, .given = &options.has_points, .parse = parse_numbers,
     .help = "points per scan, such as 1500,5000"},
    {"sizes", "LIST", TOOL_CUSTOM, &options.sizes, .parse = parse_numbers, .help = "items per batch"},
    {"offsets", "LIST", TOOL_CUSTOM, &options.offsets, .parse = parse_offsets,
     .help = "largest offset of the starts from the truth [m/deg]"},
    {"backend", "LIST", TOOL_LIST, &options.backends,
     .help = "backends, such as cpu,cuda:staged,cuda:resident; all: the CPU and every pipeline of a device"},
    {"threads", "LIST", TOOL_CUSTOM, &options.threads, .parse = parse_numbers,
     .help = "threads of the CPU, such as 1,2; 0: one per core"},
    {"levels", "LIST", TOOL_LIST, &options.levels, .help = "leaf sizes [m] from coarse to fine, such as 2 or 4-2-1"},
    {"neighbours", "LIST", TOOL_LIST, &options.neighbours,
     .help = "radius, direct1, direct7 or direct27, on every level"},
    {"variant", "LIST", TOOL_LIST, &options.variants,
     .help = "robust or autoware (with its own level, neighbours and covariance)"},
    {"priors", "LIST", TOOL_REALS, &options.priors, .max = 10,
     .help = "standard deviations of the prior as parts of the offset; 0: no prior"},
    {"elsewhere", NULL, TOOL_FLAG, &options.is_elsewhere, .help = "the map is of another place: every pose is wrong"},
    {"csv", "FILE", TOOL_TEXT, &options.csv, .help = "one line per alignment: scores, information, truth"},
    {"wait", "WAY", TOOL_CHOICE, &options.wait, .choices = waits, .given = &options.has_wait,
     .help = "how threads wait for a device, as cuda.wait of ndtd"},
    {"kernel-times", NULL, TOOL_FLAG, &options.has_kernel_times,
     .help = "also time the kernels of devices, which makes evaluations slower by some us"},
    {"need-device", NULL, TOOL_FLAG, &options.needs_device,
     .help = "exit status 77 when no backend on a device was measured"},
    {"json", "FILE", TOOL_TEXT, &options.json, .help = "also write the tables as JSON"},
    {"markdown", "FILE", TOOL_TEXT, &options.markdown, .help = "also write the tables as Markdown"}};

#define INPUT "map scan pose bag scans config set seed "
#define MATCHER "points backend threads "
#define DEVICE "wait kernel-times need-device"
#define OUTPUT " json markdown"

/* NEEDS_SCANS: a map comes with scans, and scans with a map. OWN_INPUT: the command opens its files itself. */
enum checks { NEEDS_SCANS, OWN_INPUT };

/* `options`: names of rows of all_options; name=DEFAULT; one:NAME for an option that takes one value instead of a
 * list; required:NAME. */
static const struct command {
    const char *name, *summary, *details, *options;
    bench_command_fn *measure;
    enum checks checks;
    const char *operand;
} commands[] = {
    {"align", "measures alignments from wrong starts, for every combination of the lists", NULL,
     INPUT "rounds=50 rest one:offsets=0.5/2 " MATCHER "levels neighbours variant peer " DEVICE OUTPUT,
     bench_align, NEEDS_SCANS, "FILE"},
    {"basin", "measures the basin of convergence of the variants robust and autoware", NULL,
     INPUT "rounds=120 offsets=0.5/2,1/5,2/10,3/20 one:backend one:threads one:levels one:neighbours" OUTPUT,
     bench_align, NEEDS_SCANS, "FILE"},
    {"evaluations", "splits the time of an alignment into fixed cost and cost per evaluation",
     "Needs one level, such as --levels 2.",
     INPUT "rounds=21 one:offsets=0.5/2 " MATCHER "one:levels one:neighbours " DEVICE OUTPUT,
     bench_evaluations, NEEDS_SCANS, "FILE"},
    {"batch", "compares batches of guesses and of scans with single alignments",
     "The items of a batch are guesses for one scan; batches of 2 and 3 are also made of different scans.",
     INPUT "rounds=20 sizes=1,2,3,8,64,200 one:offsets=0.5/2 " MATCHER
     "one:levels one:neighbours one:variant " DEVICE OUTPUT, bench_batch, NEEDS_SCANS, "FILE"},
    {"overheads", "measures one evaluation, and on a device its kernels, copies, launch and wait",
     "The finest level is evaluated.",
     INPUT "rounds=101 points=756,1500,5000,20000,100000 backend=all threads one:levels neighbours " DEVICE OUTPUT,
     bench_overheads, NEEDS_SCANS, "FILE"},
    {"drive", "follows a drive twice on every backend and compares the poses",
     "Both passes must give the same bits, within 1 mm and 0.01 deg of the first backend. Scans that are spread over a "
     "bag are too far apart to follow: all are taken.",
     "map bag scans=0 config set seed points backend=all threads one:levels one:neighbours " DEVICE OUTPUT,
     bench_drive, NEEDS_SCANS, NULL},
#ifndef NDT_BENCH_CORE
    {"confidence", "aligns from right and wrong starts, for the confidence of poses",
     "Every round starts each scan once. Starts are level: offsets are in the plane and about the vertical axis. A prior takes part in the search and "
     "in the estimate, as when tracking; one that is small against the offset is wrong and too sure.",
     "required:map required:bag scans config set seed rounds=1 offsets=0.3/1,1/5,3/15,10/180 priors elsewhere "
     "one:points one:backend one:threads one:levels one:neighbours csv" OUTPUT, bench_confidence, NEEDS_SCANS, NULL},
    {"compare", "compares values of a setting in one run",
     "An EXPERIMENT is a name printed by 'compare list', or OPTION=VALUE,VALUE... with an option of ndtd.",
     "map bag scans config set seed rounds=21 one:offsets=0.5/2 one:points one:backend one:threads" OUTPUT,
     bench_compare, NEEDS_SCANS, "EXPERIMENT"},
    {"consistency", "compares poses and covariances of a drive with the truth: NEES, coverage, errors",
     "Every seed replays the bag through the daemon's pipeline.",
     "required:map required:bag config set seeds" OUTPUT, bench_consistency, OWN_INPUT, NULL},
    {"search", "looks for every scan alone in the whole map, without a pose",
     "Every scan is turned to a random heading first. The truth is known from the bag.",
     "required:map required:bag scans=0 config set seed tier blocks places alignments window heading up deskew view range keep tilt least-z steady "
     "one:threads one:backend elsewhere csv" OUTPUT, bench_search, OWN_INPUT, NULL},
    {"drain", "measures how long scans that wait take, together and one after the other",
     "The bag goes through the daemon's pipeline in groups of --sizes scans; backend and threads by --set. Poses of both are compared.",
     "required:map required:bag config set sizes=2,3,8" OUTPUT, bench_drain, OWN_INPUT, NULL},
#endif
};
/* clang-format on */
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]), OPTIONS = sizeof(all_options) / sizeof(all_options[0]) };

static const struct command *chosen = &commands[0];
static struct tool_option rows[OPTIONS]; /* options of the chosen command */
static int takes_one[OPTIONS];
static size_t row_count;

/* ---- running ---- */

/* The file is written completely or not at all. */
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
    if (report.is_incomplete || bench_samples_lost())
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
    if (options.has_wait)
        setup->config.wait = (enum ndt_wait)options.wait;
    setup->config.kernel_times = options.has_kernel_times;
    return NDT_OK;
}

static enum ndt_status check_options(struct ndt_error *err)
{
    const int is_file = chosen->operand && strcmp(chosen->operand, "FILE") == 0;
    for (size_t i = 0; i < row_count; i++) /* the value of a list begins with its length */
        if (takes_one[i] && *(const size_t *)rows[i].value > 1)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: this command takes one value", rows[i].name);
    if (options.bag && options.scan)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "either --scan or --bag, not both");
    if (is_file && options.operands.count > 0 && !options.scan)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not expected here; scans follow --scan",
                        options.operands.words[0]);
    if (chosen->checks != NEEDS_SCANS)
        return NDT_OK;
    if (options.map && !options.bag && !options.scan)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--map without scans; give --scan or --bag");
    if (!options.map && (options.bag || options.scan))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--map is missing");
    if (options.scan && !options.has_pose)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--scan: give its pose in the map, --pose x,y,z,qx,qy,qz,qw");
    if (options.has_pose && !options.scan)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--pose belongs to --scan; a bag contains its true poses");
    return NDT_OK;
}

static enum ndt_status run(struct ndt_error *err)
{
    static struct bench_source source;
    enum ndt_status status = check_options(err);
    if (status == NDT_OK)
        status = finish_setup(err);
    source.options = &options;
    if (status == NDT_OK && chosen->checks != OWN_INPUT)
        status = bench_source_open(&source, &options, err);
    if (status == NDT_OK)
        status = chosen->measure(&source, &report, err);
    if (status == NDT_OK)
        status = write_report(err);
    bench_candidates_close(&source.candidates);
    bench_source_close(&source);
    return status;
}

/* ---- the command line ---- */

/* Adds the row of one word of command.options and applies its default. */
static void add_option(const char *word)
{
    static char help[OPTIONS][200];
    const int is_one = strncmp(word, "one:", 4) == 0, is_required = strncmp(word, "required:", 9) == 0;
    const char *name = word + (is_one ? 4 : is_required ? 9 : 0), *standard = strchr(name, '=');
    const size_t length = strcspn(name, "=");
    struct tool_option *row = &rows[row_count];
    struct ndt_error ignored;
    for (size_t i = 0; i < OPTIONS; i++)
        if (strncmp(all_options[i].name, name, length) == 0 && all_options[i].name[length] == '\0') {
            *row = all_options[i];
            row->required = is_required;
            row->argument = is_one ? "VALUE" : row->argument;
            takes_one[row_count] = is_one;
            if (standard && row->kind == TOOL_COUNT) {
                *(uint64_t *)row->value = strtoull(standard + 1, NULL, 10); /* --help prints it */
            } else if (standard) {
                snprintf(help[row_count], sizeof(help[0]), "%s (default: %s)", row->help, standard + 1);
                row->help = help[row_count];
                const enum ndt_status status = row->parse ? row->parse(row->value, standard + 1, &ignored)
                                                          : tool_parse_list(standard + 1, row->value, &ignored);
                if (status != NDT_OK)
                    abort(); /* the table is wrong */
            } else if (is_required) {
                snprintf(help[row_count], sizeof(help[0]), "%.*s", (int)strcspn(row->help, ";"), row->help);
                row->help = help[row_count];
            }
            row_count++;
            return;
        }
}

/* Options without a sub-command belong to align. Only the chosen command gets its options. */
int main(int argc, char **argv)
{
    static struct tool_command table[COMMANDS];
    static const struct tool_command *list[COMMANDS + 1];
    static char *words[MOST_FILES + 64];
    static char align[] = "align", picked[512];
    const struct tool_command program = {
        .name = "ndt-bench",
        .summary = "measures the matcher, searches and whole drives",
        .details =
            "Options without a COMMAND belong to align. Everything that is compared takes turns in one run, so "
            "that a drifting clock affects all alike. The tables go to standard output. Exit status 1: a "
            "result is wrong or a backend failed; the tables are written nevertheless.",
        .commands = list};
    if (argc > 1 && argc < MOST_FILES && argv[1][0] == '-' && strcmp(argv[1], "--help") != 0 &&
        strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--version") != 0) {
        memcpy(words + 2, argv + 1, (size_t)argc * sizeof(*words));
        words[0] = argv[0];
        words[1] = align;
        argv = words;
        argc++;
    }
    const char *name = argc > 2 && strcmp(argv[1], "help") == 0 ? argv[2] : argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < COMMANDS; i++) {
        list[i] = &table[i];
        table[i] = (struct tool_command){
            .name = commands[i].name, .summary = commands[i].summary, .details = commands[i].details, .run = run};
        if (strcmp(name, commands[i].name) != 0)
            continue;
        chosen = &commands[i];
        snprintf(picked, sizeof(picked), "%s", chosen->options);
        char *rest = picked;
        for (const char *word = strtok_r(picked, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            add_option(word);
        table[i].options = rows;
        table[i].option_count = row_count;
#ifndef NDT_BENCH_CORE
        table[i].operand = chosen->operand;
        table[i].operand_min = chosen->measure == bench_compare;
        table[i].operand_max = MOST_FILES;
        table[i].operands = &options.operands;
#endif
        options.is_basin = strcmp(name, "basin") == 0;
    }
    options.has_points = 0;
    options.pose = ndt_pose_identity();
#ifndef NDT_BENCH_CORE
    ndtd_settings_default(&options.settings);
#endif
    ndt_backends_own_process();
    int code = tool_main(&program, argc, argv);
    if (code == TOOL_DONE && report.failures)
        code = EXIT_WRONG;
    else if (code == TOOL_DONE && options.needs_device && report.device_rows == 0)
        code = EXIT_NO_DEVICE;
    bench_report_free(&report);
    return code;
}
