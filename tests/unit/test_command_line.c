/* Command lines of ndtd: every flag reaches its member, every mistake is named. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/command_line.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndtd_command command;
static struct ndt_error err;

/* The words of `line`, separated by blanks; `line` is kept until the next call. */
static enum ndt_status parse(const char *line)
{
    static char text[4096], *words[64];
    int count = 0;
    snprintf(text, sizeof(text), "ndtd %s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    err.text[0] = '\0';
    return ndtd_command_parse(&command, count, words, &err);
}

static void must_parse(const char *line)
{
    ck_assert_msg(parse(line) == NDT_OK, "%s: %s", line, err.text);
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(every_action)
{
    static const struct {
        const char *line;
        enum ndtd_action action;
    } cases[] = {
        {"--replay a.bag --map m.pcd", NDTD_REPLAY},
        {"--compile-map o.ndtmap --map m.pcd", NDTD_COMPILE_MAP},
        {"--autotune --map m.pcd", NDTD_AUTOTUNE},
        {"--make-keys server", NDTD_MAKE_KEYS},
        {"--print-config", NDTD_PRINT_CONFIG},
        {"--check-config", NDTD_CHECK_CONFIG},
        {"--list-backends", NDTD_LIST_BACKENDS},
        {"--help", NDTD_HELP},
        {"-h", NDTD_HELP},
        {"--nonsense --help", NDTD_HELP},
        {"--help-options", NDTD_HELP_OPTIONS},
        {"--version", NDTD_SHOW_VERSION},
        {"--map m.pcd", NDTD_LIVE},
        {"--set map.path=m.pcd", NDTD_LIVE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        must_parse(cases[i].line);
        ck_assert_msg(command.action == cases[i].action, "%s", cases[i].line);
    }
}

TEST(every_flag_of_a_replay)
{
    must_parse(
        "--replay=a.bag --map m.pcd --skip 3 --limit=40 --out o.tum --out-all --timing t.csv --results r.jsonl "
        "--summary s.json --expect e.tum --max-untrusted 7 --dump-derivatives d.csv --dump-scan 5 "
        "--dump-iteration 18446744073709551615 --threads 3 --backend cpu --initial-pose 1,2,3,0,0,0,1 "
        "--set ndt.max_iterations=17 --set live.queue_depth=7");
    ck_assert_str_eq(command.replay.bag, "a.bag");
    ck_assert_str_eq(command.action_flag, "--replay");
    ck_assert_str_eq(command.settings.map_path, "m.pcd");
    ck_assert_uint_eq(command.replay.skip, 3);
    ck_assert_uint_eq(command.replay.limit, 40);
    ck_assert_str_eq(command.replay.files.poses, "o.tum");
    ck_assert_int_eq(command.replay.files.keeps_untrusted, 1);
    ck_assert_str_eq(command.replay.files.timing, "t.csv");
    ck_assert_str_eq(command.replay.files.results, "r.jsonl");
    ck_assert_str_eq(command.replay.files.summary, "s.json");
    ck_assert_str_eq(command.replay.files.expect, "e.tum");
    ck_assert_uint_eq(command.replay.max_untrusted, 7);
    ck_assert_str_eq(command.replay.dump, "d.csv");
    ck_assert_uint_eq(command.replay.dump_scan, 5);
    ck_assert_uint_eq(command.replay.dump_iteration, UINT64_MAX);
    ck_assert_int_eq(command.settings.compute.threads, 3);
    ck_assert_int_eq(command.settings.align.max_iterations, 17);
    ck_assert_int_eq((int)command.settings.queue_depth, 7);
    must_parse("--replay a.bag --map m.pcd --output out --report r.html --out-all");
    ck_assert_str_eq(command.replay.output, "out");
    ck_assert_str_eq(command.replay.report, "r.html");
    must_parse("--replay a.bag --map m.pcd");
    ck_assert(!command.replay.output && !command.replay.report);
    ck_assert_uint_eq(command.replay.max_untrusted, UINT64_MAX);
    ck_assert(command.replay.skip == 0 && command.replay.limit == 0 && !command.replay.files.poses);
    must_parse("--map m.pcd --record r.bag");
    ck_assert_str_eq(command.record, "r.bag");
    must_parse("--autotune --map m.pcd --table t.csv");
    ck_assert_str_eq(command.table, "t.csv");
    must_parse("--list-backends -v");
    ck_assert_int_eq(command.verbose, 1);
    must_parse("--check-config -v");
    must_parse("--make-keys a/b");
    ck_assert_str_eq(command.key_prefix, "a/b");
    must_parse("--compile-map=o.ndtmap --map m");
    ck_assert_str_eq(command.compiled, "o.ndtmap");
}

/* The command line wins over the file, wherever it stands. */
TEST(flags_win_over_the_file)
{
    char line[1200];
    temp_text("c.yaml", "ndt: {max_iterations: 11}\nlive: {queue_depth: 4}\n");
    snprintf(line, sizeof(line), "--set ndt.max_iterations=12 -c %s", temp_path("c.yaml"));
    must_parse(line);
    ck_assert_int_eq(command.action, NDTD_LIVE);
    ck_assert_int_eq(command.settings.align.max_iterations, 12);
    ck_assert_int_eq((int)command.settings.queue_depth, 4);
    struct ndtd_settings again;
    temp_text("c.yaml", "live: {queue_depth: 5}\n");
    ck_assert_int_eq(ndtd_command_settings(&command, &again, &err), NDT_OK);
    ck_assert_int_eq(again.align.max_iterations, 12);
    ck_assert_int_eq((int)again.queue_depth, 5);
    temp_text("c.yaml", "live: {queue_depth: none}\n");
    ck_assert_int_eq(parse(line), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "c.yaml:1: "));
}

/* Later files win key by key, whatever stands between them, also when they are read again. */
TEST(several_files)
{
    char line[4000], names[2000];
    temp_text("a.yaml", "ndt: {max_iterations: 11, step_limit_m: 0.5}\nlive: {queue_depth: 4}\n");
    temp_text("b.yaml", "ndt: {max_iterations: 12}\n");
    temp_text("c.yaml", "/**: {ros__parameters: {ndt.max_iterations: 13, live.queue_depth: 5}}\n");
    char a[1024], b[1024], c[1024];
    snprintf(a, sizeof(a), "%s", temp_path("a.yaml"));
    snprintf(b, sizeof(b), "%s", temp_path("b.yaml"));
    snprintf(c, sizeof(c), "%s", temp_path("c.yaml"));
    snprintf(line, sizeof(line), "-c %s --set preprocess.seed=9 --config=%s", a, b);
    must_parse(line);
    ck_assert_int_eq(command.action, NDTD_LIVE);
    ck_assert_int_eq(command.settings.align.max_iterations, 12);
    ck_assert_double_eq(command.settings.align.step_limit_m, 0.5);
    ck_assert_int_eq(command.settings.queue_depth, 4);
    ck_assert_uint_eq(command.configs.count, 2);
    ck_assert_str_eq(command.configs.paths[1], b);
    ndtd_config_files_text(&command.configs, names, sizeof(names));
    ck_assert_int_eq(strncmp(names, a, strlen(a)), 0);
    ck_assert_ptr_nonnull(strstr(names, ", "));
    for (size_t size = 1; size < strlen(names); size++)
        ck_assert_uint_eq(strlen(ndtd_config_files_text(&command.configs, line, size)), size - 1);
    snprintf(line, sizeof(line), "-c %s -c %s -c %s", b, c, a);
    must_parse(line);
    ck_assert_int_eq(command.settings.align.max_iterations, 11);
    struct ndtd_settings again;
    temp_text("a.yaml", "live: {queue_depth: 2}\n");
    ck_assert_int_eq(ndtd_command_settings(&command, &again, &err), NDT_OK);
    ck_assert_int_eq(again.align.max_iterations, 13);
    ck_assert_int_eq(again.queue_depth, 2);
    size_t used = 0;
    for (int i = 0; i < NDTD_CONFIG_FILES + 1; i++)
        used += (size_t)snprintf(line + used, sizeof(line) - used, "-c /dev/null ");
    ck_assert_int_eq(parse(line), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(err.text, "--config: more than 16 files");
}

/* Mistakes of the command line and of every file; contradictions only where each option is right. */
TEST(all_mistakes_are_named)
{
    static const char *const lines[] = {"--repaly is not known; did you mean '--replay'?",
                                        "--skip is given twice",
                                        "--skip: 'x' is not a whole number",
                                        "--out-all goes with --out or --output only",
                                        "/none.yaml: cannot open: No such file or directory",
                                        ":1: 'ndt.levls' is not an option; did you mean 'ndt.levels'?",
                                        ":2: cpu.threads: 'x' is not a whole number",
                                        "--set: ndt.variant: 'y' is not one of",
                                        "--threads: cpu.threads: 99 is outside 0 .. 64"};
    char line[1400];
    temp_text("c.yaml", "ndt: {levls: 1}\ncpu: {threads: x}\n");
    snprintf(
        line, sizeof(line),
        "--replay a.bag --map m --repaly 3 --skip 1 --skip x -c /none.yaml --set ndt.variant=y --out-all -c %s "
        "--threads 99",
        temp_path("c.yaml"));
    ck_assert_int_eq(parse(line), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(command.faults.count, sizeof(lines) / sizeof(lines[0]));
    for (size_t i = 0; i < command.faults.count; i++)
        ck_assert_msg(strstr(command.faults.lines[i].text, lines[i]) != NULL, "'%s' instead of '%s'",
                      command.faults.lines[i].text, lines[i]);
    ck_assert_ptr_nonnull(strstr(err.text, "did you mean '--replay'? (and 8 more)"));
    ck_assert_int_eq(parse("--map m --set ndt.levels=[1,2] --set preprocess.min_range_m=900 --backend nonsense"),
                     NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(command.faults.count, 3);
    ck_assert_int_eq(parse("--repaly"), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(command.faults.count, 1);
    ck_assert_int_eq(parse("--nonsense=1 a.bag"), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(command.faults.count, 2);
}

TEST(mistakes_are_named)
{
    static const struct {
        const char *line, *reason;
    } cases[] = {
        {"", "nothing to do: give --map FILE|DIR or -c FILE to run the daemon"},
        {"--threads 2", "nothing to do"},
        {"a.bag", "'a.bag' is not expected here; a bag is given as --replay BAG"},
        {"--repaly a.bag", "--repaly is not known; did you mean '--replay'?"},
        {"--replay", "--replay needs BAG"},
        {"--replay=", "--replay needs BAG"},
        {"--version=1", "--version takes no value"},
        {"--replay a.bag --print-config", "--replay and --print-config cannot be combined"},
        {"--replay a.bag --skip 1 --skip 1", "--skip is given twice"},
        {"--replay a.bag --skip -1", "--skip: '-1' is not a whole number"},
        {"--replay a.bag --skip 1x", "--skip: '1x' is not a whole number"},
        {"--replay a.bag --skip 18446744073709551616", "is not a whole number"},
        {"--replay a.bag --limit 0", "--limit: at least one scan is required"},
        {"--replay a.bag --out-all", "--out-all goes with --out or --output only"},
        {"--replay a.bag --output o --results r",
         "--results and --output cannot be combined: the folder of --output has that file"},
        {"--replay a.bag --report o --out r", "--out and --report cannot be combined"},
        {"--map m --report x", "--report goes with --replay only"},
        {"--replay a.bag --timing t.txt", "--timing t.txt: the name has to end in .csv or .jsonl"},
        {"--replay a.bag --out x --summary x", "x: one file for two outputs"},
        {"--replay a.bag --results x --summary x", "x: one file for two outputs"},
        {"--replay a.bag --dump-scan 1", "--dump-scan and --dump-iteration go with --dump-derivatives only"},
        {"--replay a.bag --dump-iteration 1", "go with --dump-derivatives only"},
        {"--map m --skip 1", "--skip goes with --replay only"},
        {"--map m --out x", "--out goes with --replay only"},
        {"--map m --table x", "--table goes with --autotune only"},
        {"--replay a.bag --record r.bag", "--record goes with the daemon only"},
        {"--map m --set x", "--set: 'x' is not KEY=VALUE"},
        {"--map m --set =x", "--set: '=x' is not KEY=VALUE"},
        {"--map m --set ndt.max_iteration=3", "did you mean 'ndt.max_iterations'?"},
        {"--map m --threads many", "--threads: cpu.threads: 'many' is not a whole number"},
        {"--map m --config /nonexistent.yaml", "/nonexistent.yaml"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(parse(cases[i].line) != NDT_OK, "%s", cases[i].line);
        ck_assert_msg(strstr(err.text, cases[i].reason) != NULL, "%s: %s", cases[i].line, err.text);
    }
    must_parse("--replay a.bag --map m --out /dev/null --summary /dev/null");
}

TEST(help_lists_every_flag)
{
    static char text[16384];
    FILE *file = fmemopen(text, sizeof(text), "w");
    ck_assert_ptr_nonnull(file);
    ndtd_command_help(file);
    fclose(file);
    static const char *const lines[] = {
        "Usage: ndtd --map FILE|DIR ", "\n  --replay BAG               Localise the scans",
        "\n  --print-config             Print every option", "\n  --max-untrusted N          Exit with status 1",
        "\nExit status: 0 done, 1 differs from --expect"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        ck_assert_msg(strstr(text, lines[i]) != NULL, "no '%s'", lines[i]);
    int flags = 0;
    for (const char *at = text; (at = strstr(at, "\n  -")); at++)
        flags++;
    ck_assert_int_ge(flags, 31);
}
