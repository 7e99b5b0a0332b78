#include "ndtd/command_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/log.h"
#include "ndtd/nearest_name.h"
#include "ndtd/options.h"

enum flag_kind { ACTION, TEXT, COUNT, SWITCH, OPTION, SET, CONFIG };

/* One flag. ACTION: `action`; TEXT (also of an action): const char * at `offset`; COUNT: uint64_t at `offset`;
 * SWITCH: int at `offset`; OPTION: the option that the flag sets; SET and CONFIG may be repeated. */
struct flag {
    const char *name;
    const char *argument; /* NULL: the flag takes none */
    const char *help;
    enum flag_kind kind;
    enum ndtd_action action;
    size_t offset;
    const char *option;
    enum ndtd_action only_for; /* valid with this action only; NDTD_NO_ACTION: with any */
};

#define ACTS(member, act)   .kind = ACTION, .action = act, .offset = offsetof(struct ndtd_command, member)
#define SHOWS(act)          .kind = ACTION, .action = act
#define FILE_NAME(member)   .kind = TEXT, .offset = offsetof(struct ndtd_command, member)
#define SCANS(member)       .kind = COUNT, .offset = offsetof(struct ndtd_command, member), .only_for = NDTD_REPLAY
#define LIVE_FILE(member)   FILE_NAME(member), .only_for = NDTD_LIVE
#define OPTION_ROW(row)     .kind = OPTION, .option = row
#define REPLAY_NAME(member) FILE_NAME(replay.member), .only_for = NDTD_REPLAY
#define REPLAY_FILE(member) REPLAY_NAME(files.member)

static const struct flag flags[] = {
    {"--replay", "BAG",
     "Localise the scans of a bag, of - (a pipe) or of any recording that ndt-import reads; print a summary",
     ACTS(replay.bag, NDTD_REPLAY)},
    {"--compile-map", "OUT.ndtmap", "Save the map of --map as one file that loads without building",
     ACTS(compiled, NDTD_COMPILE_MAP)},
    {"--autotune", NULL,
     "Measure on the map, for 756 to 100000 points, how long every backend and thread count takes",
     SHOWS(NDTD_AUTOTUNE)},
    {"--make-keys", "PREFIX", "Create a CURVE key pair for tcp sockets: PREFIX.secret and PREFIX.public",
     ACTS(key_prefix, NDTD_MAKE_KEYS)},
    {"--print-config", NULL, "Print every option with its value, as a configuration file",
     SHOWS(NDTD_PRINT_CONFIG)},
    {"--check-config", NULL, "Only check --config, --set and the socket addresses", SHOWS(NDTD_CHECK_CONFIG)},
    {"--list-backends", NULL, "List the backends and whether they work here", SHOWS(NDTD_LIST_BACKENDS)},
    {"-v", NULL,
     "With --list-backends: also the memory that each would allocate; with a file of Autoware: every key",
     .kind = SWITCH, .offset = offsetof(struct ndtd_command, verbose)},
    {"--help", NULL, "Print this text", SHOWS(NDTD_HELP)},
    {"--help-options", NULL,
     "List the options of the configuration, the columns of --timing and the keys of --results",
     SHOWS(NDTD_HELP_OPTIONS)},
    {"--all", NULL, "With --help-options: also the options for experts", .kind = SWITCH,
     .offset = offsetof(struct ndtd_command, all)},
    {"--version", NULL, "Print the version", SHOWS(NDTD_SHOW_VERSION)},

    {"--config", "FILE",
     "Configuration file (YAML), also -c; may be repeated, later ones win; alone or with --map it starts the "
     "daemon",
     .kind = CONFIG},
    {"--set", "KEY=VALUE", "Set one option, such as ndt.levels=[2.0,1.0]; may be repeated", .kind = SET},
    {"--map", "FILE|DIR",
     "Prior map (map.path), none: odometry without one; alone or with --config it starts the daemon",
     OPTION_ROW("map.path")},
    {"--backend", "NAME", "backend.name", OPTION_ROW("backend.name")},
    {"--threads", "N", "cpu.threads", OPTION_ROW("cpu.threads")},
    {"--initial-pose", "POSE",
     "initial_pose.pose: x,y,z,yaw (m, deg) or x,y,z,qx,qy,qz,qw; used instead of the bag's",
     OPTION_ROW("initial_pose.pose")},

    {"--table", "FILE", "With --autotune: also write the table to this file (.csv or .json)", FILE_NAME(table),
     .only_for = NDTD_AUTOTUNE},
    {"--record", "FILE", "The daemon records all received frames to a new bag", LIVE_FILE(record)},
    {"--skip", "N", "Skip the first N scans; the initial pose is then --initial-pose or the bag's ground truth",
     SCANS(replay.skip)},
    {"--limit", "N", "Stop after N scans", SCANS(replay.limit)},
    {"--output", "DIR",
     "Write everything that ndt-report and ndt-web read to this folder, new or of an earlier replay",
     REPLAY_NAME(output)},
    {"--report", "FILE.html", "Write a report with ndt-report, which the Python package of ndtd installs",
     REPLAY_NAME(report)},
    {"--out", "FILE",
     "Write the trajectory (TUM; KITTI when the name ends in .kitti), without poses that are not trusted",
     REPLAY_FILE(poses)},
    {"--out-all", NULL, "With --out or --output: also the poses that are not trusted", .kind = SWITCH,
     .offset = offsetof(struct ndtd_command, replay.files.keeps_untrusted), .only_for = NDTD_REPLAY},
    {"--timing", "FILE", "Write times and iterations of every scan (.csv or .jsonl)", REPLAY_FILE(timing)},
    {"--results", "FILE", "Write every result with all its values, as the daemon publishes it (JSON lines)",
     REPLAY_FILE(results)},
    {"--summary", "FILE", "Write the summary as JSON", REPLAY_FILE(summary)},
    {"--expect", "FILE", "Compare with an earlier --out or --summary file, or a hash of 16 hexadecimal digits",
     REPLAY_FILE(expect)},
    {"--max-untrusted", "N", "Exit with status 1 when more than N scans end initialising, lost or recovering",
     SCANS(replay.max_untrusted)},
    {"--dump-derivatives", "FILE",
     "Write Jacobians, Hessians and terms of one scan (.csv); needs backend.name cuda with cuda.pipeline staged",
     FILE_NAME(replay.dump), .only_for = NDTD_REPLAY},
    {"--dump-scan", "SEQ", "With --dump-derivatives: sequence number of the scan (0)", SCANS(replay.dump_scan)},
    {"--dump-iteration", "N", "With --dump-derivatives: iteration of its last pass (0)",
     SCANS(replay.dump_iteration)},
};
enum { FLAG_COUNT = sizeof(flags) / sizeof(flags[0]) };

/* A flag found in argv. */
struct found {
    const struct flag *flag;
    const char *value;
};

static int is_name(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && strncmp(name, word, length) == 0;
}

static const struct flag *find_flag(const char *word, size_t length)
{
    if (strcmp(word, "-c") == 0)
        return find_flag("--config", strlen("--config"));
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (is_name(flags[i].name, word, length))
            return &flags[i];
    return NULL;
}

static enum ndt_status unknown_flag(const char *word, int argc, char **argv, struct ndt_error *err)
{
    int is_replay = 0;
    for (int i = 1; i < argc; i++)
        is_replay |= strncmp(argv[i], "--replay", strlen("--replay")) == 0;
    if (word[0] != '-')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not expected here; a bag is given as --replay BAG",
                        word);
    struct ndtd_nearest nearest = ndtd_nearest_start(word);
    for (size_t i = 0; i < FLAG_COUNT; i++)
        ndtd_nearest_consider(&nearest, flags[i].name);
    char hint[80];
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%.100s is not known%s%s", word, hint,
                    *hint       ? ""
                    : is_replay ? "; options of ndt-import follow after --"
                                : "; --help lists the flags");
}

/* Reads the flag at *at and its value, after '=' or in the next word; moves *at past both. */
static enum ndt_status next_flag(struct found *out, int *at, int argc, char **argv, struct ndt_error *err)
{
    const char *word = argv[(*at)++];
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    out->flag = find_flag(word, equals ? (size_t)(equals - word) : strlen(word));
    out->value = equals ? equals + 1 : NULL;
    if (!out->flag)
        return unknown_flag(word, argc, argv, err);
    if (!out->flag->argument)
        return equals ? ndt_fail(err, NDT_ERR_ARGUMENT, "%s takes no value", out->flag->name) : NDT_OK;
    if (!out->value && *at < argc)
        out->value = argv[(*at)++];
    if (!out->value || !*out->value)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s needs %s", out->flag->name, out->flag->argument);
    return NDT_OK;
}

static enum ndt_status parse_number(char *at, const struct found *found, struct ndt_error *err)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(found->value, &end, 10);
    if (strspn(found->value, "0123456789") != strlen(found->value) || *end || errno)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%.60s' is not a whole number", found->flag->name,
                        found->value);
    uint64_t count = value;
    if (count == 0 && strcmp(found->flag->name, "--limit") == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--limit: at least one scan is required");
    memcpy(at, &count, sizeof(count));
    return NDT_OK;
}

/* Sets everything but options, which are set after the configuration file is read. */
static enum ndt_status set_flag(struct ndtd_command *command, const struct found *found, struct ndt_error *err)
{
    const struct flag *flag = found->flag;
    char *at = (char *)command + flag->offset;
    if (flag->kind == ACTION) {
        if (command->action != NDTD_NO_ACTION && command->action_flag != flag->name)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s and %s cannot be combined", command->action_flag,
                            flag->name);
        command->action = flag->action;
        command->action_flag = flag->name;
    }
    if (flag->kind == CONFIG) {
        if (command->configs.count == NDTD_CONFIG_FILES)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--config: more than %d files", NDTD_CONFIG_FILES);
        command->configs.paths[command->configs.count++] = found->value;
    }
    if (flag->kind == TEXT || (flag->kind == ACTION && flag->argument))
        memcpy(at, &found->value, sizeof(found->value));
    if (flag->kind == SWITCH)
        memcpy(at, &(int){1}, sizeof(int));
    return flag->kind == COUNT ? parse_number(at, found, err) : NDT_OK;
}

static enum ndt_status set_key_value(struct ndtd_settings *settings, const char *text, struct ndt_error *err)
{
    char name[200];
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    if (length == 0 || length >= sizeof(name))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not KEY=VALUE", text);
    memcpy(name, text, length);
    name[length] = '\0';
    return ndtd_option_set_text(settings, name, equals + 1, err);
}

static enum ndt_status set_option(struct ndtd_settings *settings, const struct found *found, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (found->flag->kind == SET)
        status = set_key_value(settings, found->value, err);
    else if (found->flag->kind == OPTION)
        status = ndtd_option_set_text(settings, found->flag->option, found->value, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "%s", found->flag->name);
}

/* Skips a word behind an unknown flag, which may be its value. */
static int skip_value(int at, int argc, char **argv)
{
    const char *unknown = argv[at - 1];
    return unknown[0] == '-' && !strchr(unknown, '=') && at < argc && argv[at][0] != '-' ? at + 1 : at;
}

static int may_repeat(const struct flag *flag)
{
    return flag->kind == SET || flag->kind == CONFIG;
}

/* Notes an override for the summary, which names the map itself. */
static void note_override(struct ndtd_run_inputs *inputs, const struct found *found)
{
    const struct ndtd_override override = {found->flag->option, found->value};
    if (!found->value || (found->flag->kind != SET && found->flag->kind != OPTION) ||
        (override.key && strcmp(override.key, "map.path") == 0))
        return;
    if (inputs->override_count < NDTD_OVERRIDES_KEPT)
        inputs->overrides[inputs->override_count] = override;
    inputs->override_count++;
}

/* Reads everything but options; `seen` counts the flags. */
static void first_pass(struct ndtd_command *command, int seen[FLAG_COUNT])
{
    struct ndtd_faults *faults = &command->faults;
    int has_map = 0;
    for (int at = 1; at < command->argc;) {
        struct found found = {0};
        struct ndt_error why = {""};
        enum ndt_status status = next_flag(&found, &at, command->argc, command->argv, &why);
        if (!found.flag) {
            ndtd_faults_add(faults, "%s", why.text);
            at = skip_value(at, command->argc, command->argv);
            continue;
        }
        if (status == NDT_OK && seen[found.flag - flags]++ == 1 && !may_repeat(found.flag))
            ndtd_faults_add(faults, "%s is given twice", found.flag->name);
        if (status == NDT_OK)
            status = set_flag(command, &found, &why);
        if (status != NDT_OK)
            ndtd_faults_add(faults, "%s", why.text);
        note_override(&command->replay.inputs, &found);
        has_map |= found.flag->option && strcmp(found.flag->option, "map.path") == 0;
        has_map |= found.flag->kind == SET && found.value && strncmp(found.value, "map.path=", 9) == 0;
    }
    if (command->action == NDTD_NO_ACTION && (command->configs.count > 0 || has_map))
        command->action = NDTD_LIVE;
}

/* Sets the options; other faults are known by now. */
static void second_pass(struct ndtd_settings *settings, int argc, char **argv, struct ndtd_faults *faults)
{
    for (int at = 1; at < argc;) {
        struct found found = {0};
        struct ndt_error why = {""};
        const enum ndt_status status = next_flag(&found, &at, argc, argv, NULL);
        if (!found.flag)
            at = skip_value(at, argc, argv);
        if (status == NDT_OK && set_option(settings, &found, &why) != NDT_OK)
            ndtd_faults_add(faults, "%s", why.text);
    }
}

static void check_files(const struct ndtd_replay_options *replay, struct ndtd_faults *faults)
{
    static const char *const flag_names[] = {"--out", "--timing", "--results", "--summary"};
    const struct ndtd_sink_paths *files = &replay->files;
    const char *paths[] = {files->poses, files->timing, files->results, files->summary};
    enum { PATH_COUNT = sizeof(paths) / sizeof(paths[0]) };
    const char *folder = replay->output ? "--output" : replay->report ? "--report" : NULL;
    for (int i = 0; i < PATH_COUNT; i++)
        if (folder && paths[i])
            ndtd_faults_add(faults, "%s and %s cannot be combined: the folder of --output has that file%s",
                            flag_names[i], folder, replay->output ? "" : "; give --output DIR instead");
    if (files->keeps_untrusted && !files->poses && !folder)
        ndtd_faults_add(faults, "--out-all goes with --out or --output only");
    if (files->timing && !ndtd_timing_format(files->timing))
        ndtd_faults_add(faults, "--timing %.200s: the name has to end in .csv or .jsonl", files->timing);
    for (int i = 0; i < PATH_COUNT; i++)
        for (int k = i + 1; k < PATH_COUNT; k++)
            if (paths[i] && paths[k] && strcmp(paths[i], paths[k]) == 0 && strncmp(paths[i], "/dev/", 5) != 0)
                ndtd_faults_add(faults, "%.200s: one file for two outputs", paths[i]);
}

static void check_dump(const struct ndtd_replay_options *replay, struct ndtd_faults *faults)
{
    if (!replay->dump && (replay->dump_scan || replay->dump_iteration))
        ndtd_faults_add(faults, "--dump-scan and --dump-iteration go with --dump-derivatives only");
}

/* Reads the settings, and checks options against each other once each of them is right. NDT_ERR_MEMORY, or NDT_OK.
 */
static enum ndt_status read_settings(const struct ndtd_command *command, struct ndtd_settings *settings,
                                     struct ndtd_faults *faults, struct ndt_error *err)
{
    const struct ndtd_config_files *files = &command->configs;
    struct ndtd_faults contradictions = {0};
    enum ndt_status status = NDT_OK;
    char names[256];
    ndtd_settings_default(settings);
    for (size_t i = 0; i < files->count && status == NDT_OK; i++)
        status = ndtd_config_add(settings, files->paths[i], command->verbose, faults, err);
    second_pass(settings, command->argc, command->argv, faults);
    if (status != NDT_OK || faults->count > 0)
        return status;
    ndtd_settings_check(settings, &contradictions);
    ndtd_config_files_text(files, names, sizeof(names));
    for (size_t i = 0; i < contradictions.count; i++)
        ndtd_faults_add(faults, "%s%s%s", names, *names ? ": " : "", contradictions.lines[i].text);
    return contradictions.count == 0 ? ndtd_settings_finish(settings, err) : NDT_OK;
}

enum ndt_status ndtd_command_settings(const struct ndtd_command *command, struct ndtd_settings *settings,
                                      struct ndt_error *err)
{
    struct ndtd_faults faults = {0};
    const enum ndt_status status = read_settings(command, settings, &faults, err);
    return status == NDT_OK ? ndtd_faults_status(&faults, err) : status;
}

static const char *action_name(enum ndtd_action action)
{
    return action == NDTD_LIVE ? "the daemon" : action == NDTD_REPLAY ? "--replay" : "--autotune";
}

static void check_action(struct ndtd_command *command, const int seen[FLAG_COUNT])
{
    if (command->action == NDTD_NO_ACTION && command->faults.count == 0)
        ndtd_faults_add(
            &command->faults,
            "nothing to do: give --map FILE|DIR or -c FILE to run the daemon, or --replay BAG; see --help");
    if (command->replay.import_arg_count > 0 && command->action != NDTD_REPLAY)
        ndtd_faults_add(&command->faults, "what follows -- is for ndt-import, and goes with --replay only");
    for (size_t i = 0; i < FLAG_COUNT && command->action != NDTD_NO_ACTION; i++)
        if (seen[i] && flags[i].only_for != NDTD_NO_ACTION && flags[i].only_for != command->action)
            ndtd_faults_add(&command->faults, "%s goes with %s only", flags[i].name,
                            action_name(flags[i].only_for));
}

/* Takes the arguments behind --, which are for ndt-import. */
static void take_import_args(struct ndtd_command *command)
{
    const int argc = command->argc;
    for (int i = 1; i < argc; i++)
        if (strcmp(command->argv[i], "--") == 0) {
            command->argc = i;
            command->replay.import_args = (const char *const *)command->argv + i + 1;
            command->replay.import_arg_count = (size_t)(argc - i - 1);
            return;
        }
}

enum ndt_status ndtd_command_parse(struct ndtd_command *command, int argc, char **argv, struct ndt_error *err)
{
    int seen[FLAG_COUNT] = {0};
    *command = (struct ndtd_command){
        .action = NDTD_NO_ACTION, .argc = argc, .argv = argv, .replay.max_untrusted = UINT64_MAX};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            command->action = NDTD_HELP;
            return NDT_OK;
        }
    take_import_args(command);
    first_pass(command, seen);
    command->replay.inputs.files = command->configs;
    check_action(command, seen);
    check_files(&command->replay, &command->faults);
    check_dump(&command->replay, &command->faults);
    const enum ndt_status status = read_settings(command, &command->settings, &command->faults, err);
    return status == NDT_OK ? ndtd_faults_status(&command->faults, err) : status;
}

void ndtd_command_help(FILE *file)
{
    fprintf(file, "Usage: ndtd --map FILE|DIR [--config FILE]... [--record FILE] [--set KEY=VALUE]...\n"
                  "  or:  ndtd --replay BAG --map FILE|DIR [--config FILE]... [--set KEY=VALUE]... [-- OPTIONS]\n"
                  "  or:  ndtd --compile-map OUT.ndtmap --map FILE|DIR [--config FILE]...\n"
                  "  or:  ndtd --autotune --map FILE|DIR [--table FILE] [--config FILE]...\n"
                  "  or:  ndtd --print-config | --check-config | --list-backends | --help-options\n"
                  "  or:  ndtd --make-keys PREFIX\n\n"
                  "ndtd localises LiDAR scans in a point cloud map: as a daemon, or on a recorded drive.\n\n"
                  "Options:\n");
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof(left), "%s %s", flags[i].name, flags[i].argument ? flags[i].argument : "");
        fprintf(file, "  %-26s %s\n", left, flags[i].help);
    }
    fprintf(
        file,
        "\nOther recordings, such as drive.mcap or a folder of scans, are replayed while ndt-import (in the "
        "sources\n"
        "of ndtd: pip install './tools/python[ros]'; found by NDT_IMPORT, beside ndtd or on PATH) reads them; "
        "what\n"
        "follows -- are its OPTIONS, such as --scan /points.\n"
        "The daemon runs with a map or a configuration file, and sockets in the runtime directory unless\n"
        "configured. SIGTERM ends it after every received scan is answered; SIGHUP reloads the configuration.\n"
        "A damaged bag is replayed up to its last complete record, with a warning. Scans that cannot be decoded\n"
        "are counted and answered `rejected`. Output files are complete or absent.\n"
        "A pose is trusted while the state is tracking, coasting or extending, unless the scan's alignment was "
        "refused.\n"
        "Exit status: 0 done, 1 differs from --expect or more scans without a trusted state than --max-untrusted, "
        "2 usage or\n"
        "configuration, 3 failure at run time (also when no scan could be read).\n");
}
