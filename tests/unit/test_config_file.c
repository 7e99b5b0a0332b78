/** @file
 * @brief Tests of the configuration file: accepted syntax, and errors with file and line. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndtd/config_file.h"
#include "run_tests.h"

static struct ndtd_settings settings;
static struct ndt_error err;

static void setup(void)
{
    ndtd_settings_default(&settings);
    err.text[0] = '\0';
}

static enum ndt_status parse(const char *text)
{
    return ndtd_config_parse(&settings, "a.yaml", text, strlen(text), &err);
}

static void must_read(const char *text)
{
    must(parse(text));
}

static void must_refuse(const char *text, const char *start_of_error)
{
    setup();
    ck_assert_msg(parse(text) == NDT_ERR_ARGUMENT, "taken: %s", text);
    ck_assert_msg(strncmp(err.text, start_of_error, strlen(start_of_error)) == 0, "'%s' instead of '%s'", err.text,
                  start_of_error);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}

FIXTURE(setup, NULL)

TEST(nested_dotted_and_wrapped_are_equivalent)
{
    must_read("ndt:\n  max_iterations: 7\n  levels: [2.0, 1.0]\n");
    ck_assert_int_eq(settings.align.max_iterations, 7);
    ck_assert_uint_eq(settings.align.level_count, 2);
    must_read("ndt.max_iterations: 8\n");
    ck_assert_int_eq(settings.align.max_iterations, 8);
    must_read("/**:\n  ros__parameters:\n    ndt: {max_iterations: 9}\n    cpu.threads: 2\n");
    ck_assert_int_eq(settings.align.max_iterations, 9);
    ck_assert_int_eq(settings.compute.threads, 2);
    must_read("covariance:\n  covariance_estimation:\n    scale_factor: 2.5\n");
    ck_assert_double_eq(settings.align.covariance_scale, 2.5);
}

TEST(lists_in_both_styles)
{
    must_read("ndt:\n  levels:\n    - 3.0\n    - 1.5\n  neighbours: direct1\n");
    ck_assert_double_eq(settings.align.levels[1].leaf_m, 1.5);
    ck_assert_uint_eq(settings.neighbours_count, 1);
    must_read("initial_pose:\n  mode: search\n  pose: [1, 2, 3,\n   0, 0, 0, 1]\n");
    ck_assert_double_eq(settings.initial_pose[2], 3);
    must_read("initial_pose.pose: []\n");
    ck_assert_int_eq(settings.has_initial_pose, 0);
}

TEST(empty_files_and_sections_change_nothing)
{
    struct ndtd_settings before = settings;
    must_read("");
    must_read("# only a comment\n");
    must_read("---\n...\n");
    must_read("ndt:\ncpu:\n");
    ck_assert_int_eq(memcmp(&before, &settings, sizeof(before)), 0);
}

TEST(strings_are_read_verbatim)
{
    must_read("map:\n  path: \"a: b # c\"\n");
    ck_assert_str_eq(settings.map_path, "a: b # c");
    must_read("map: {path: 'it''s'}\n");
    ck_assert_str_eq(settings.map_path, "it's");
    must_read("map: {path: }\n");
    ck_assert_str_eq(settings.map_path, "");
}

TEST(unknown_names_suggest_the_nearest)
{
    must_refuse("ndt:\n  levels: [1.0]\n  max_iteration: 3\n",
                "a.yaml:3: 'ndt.max_iteration' is not an option; did you mean 'ndt.max_iterations'?");
    must_refuse("\n\nresolution: 3\n", "a.yaml:3: 'resolution' is not an option; did you mean 'ndt.resolution'?");
    must_refuse("preprocess:\n  voxel: 0.3\n",
                "a.yaml:2: 'preprocess.voxel' is not an option; did you mean 'preprocess.voxel_m'?");
    must_refuse("security: {server_secret_key: a}\n",
                "a.yaml:1: 'security.server_secret_key' is not an option; did you mean "
                "'sockets.server_secret_key_file'?");
    must_refuse("preprocess:\n  crop: 0.3\n", "a.yaml:2: 'preprocess.crop' is not an option");
    must_refuse("nope:\n  what: 1\n", "a.yaml:2: 'nope.what' is not an option");
    must_refuse("nope: 1\n", "a.yaml:1: 'nope' is not an option");
    must_refuse("? {a: b}\n: 1\n", "a.yaml:1: a key that is not a scalar");
}

TEST(wrong_values_name_the_line)
{
    must_refuse("ndt:\n  max_iterations: many\n", "a.yaml:2: ndt.max_iterations: 'many' is not a whole number");
    must_refuse("ndt:\n  max_iterations: 0\n", "a.yaml:2: ndt.max_iterations: 0 is outside 1 .. 512");
    must_refuse("ndt:\n  levels: [4.0,\n    x]\n", "a.yaml:2: ndt.levels: 'x' is not a number");
    must_refuse("ndt:\n  variant: [robust]\n", "a.yaml:2: ndt.variant: expected one value, not a list");
    must_refuse("ndt:\n  variant:\n    a: 1\n", "a.yaml:3: ndt.variant: an option, not a section");
    must_refuse("ndt: 3\n", "a.yaml:1: 'ndt' is a section, not an option");
    must_refuse("ndt: [3]\n", "a.yaml:1: 'ndt' is a section, as in ndt.variant");
    must_refuse("ndt:\n  levels: [[1.0]]\n", "a.yaml:2: ndt.levels: a list inside a list");
    must_refuse("ndt:\n  levels: [{a: 1}]\n", "a.yaml:2: ndt.levels: a list inside a list");
    must_refuse("ndt:\n  levels: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n",
                "a.yaml:2: ndt.levels: 17 values, but 1 to 6 are possible");
    must_refuse("map:\n  path: \"a\\0b\"\n", "a.yaml:2: map.path: a zero byte");
}

/* Names and values are quoted as they are, but an error is one line: it goes to the log. */
TEST(errors_are_one_line_whatever_they_quote)
{
    must_refuse("cpu:\n  threads: \"4\\nndtd: started\\e[2J\"\n", "a.yaml:2: cpu.threads");
    must_refuse("\"cpu\\nx\": 4\n", "a.yaml:1: 'cpu?x' is not an option");
    ck_assert_ptr_null(strchr(err.text, '\033'));
}

/* The whole file is read, and the other lines still count. */
TEST(all_faults_are_found)
{
    const char *const text = "ndt:\n"
                             "  levls: [1.0, [2.0]]\n"
                             "  max_iterations: many\n"
                             "  ? {a: [b]}\n"
                             "  : {c: [1, {d: 2}]}\n"
                             "  variant: {a: {b: 1}}\n"
                             "nope: {a: 1, b: 2}\n"
                             "cpu: {threads: 3}\n"
                             "cpu.threads: 4\n"
                             "/**: {parameters: {x: 1}}\n";
    static const char *const lines[] = {"a.yaml:2: ndt.levls: a list inside a list",
                                        "a.yaml:3: ndt.max_iterations: 'many'",
                                        "a.yaml:4: a key that is not a scalar",
                                        "a.yaml:6: ndt.variant: an option, not a section",
                                        "a.yaml:7: 'nope.a' is not an option",
                                        "a.yaml:7: 'nope.b' is not an option",
                                        "a.yaml:9: cpu.threads was already set in line 8",
                                        "a.yaml:10: 'parameters' under '/**'"};
    char path[] = "/tmp/ndtd-test-XXXXXX";
    struct ndtd_faults faults = {0};
    const int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ck_assert_int_eq(ndtd_config_add(&settings, path, 0, &faults, &err), NDT_OK);
    ck_assert_uint_eq(faults.count, sizeof(lines) / sizeof(lines[0]));
    for (size_t i = 0; i < faults.count; i++) {
        const char *line = faults.lines[i].text + strlen(path);
        ck_assert_msg(strncmp(faults.lines[i].text, path, strlen(path)) == 0, "%s", faults.lines[i].text);
        ck_assert_msg(strncmp(line, lines[i] + strlen("a.yaml"), strlen(lines[i] + strlen("a.yaml"))) == 0,
                      "'%s' instead of '%s'", line, lines[i]);
    }
    ck_assert_int_eq(settings.compute.threads, 3);
    unlink(path);
    ck_assert_int_eq(ndtd_faults_status(&faults, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "a list inside a list (and 7 more)"));
}

TEST(faults_are_bounded)
{
    static char text[40 * 8 + 1];
    char *printed = NULL;
    size_t size = 0;
    struct ndtd_faults faults = {0};
    for (int i = 0; i < 40; i++)
        ndtd_faults_add(&faults, "fault %d\n", i);
    ck_assert_uint_eq(faults.count, 40);
    FILE *file = open_memstream(&printed, &size);
    ndtd_faults_print(&faults, file);
    fclose(file);
    ck_assert_ptr_nonnull(strstr(printed, "ndtd: fault 19?\nndtd: and 20 more\n"));
    free(printed);
    for (int i = 0; i < 40; i++)
        sprintf(text + 8 * i, "n%02d: 1\n ", i), text[8 * i + 7] = '\n';
    ck_assert_int_eq(parse(text), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "a.yaml:1: 'n00' is not an option (and 39 more)"));
    char longest[sizeof(err.text)];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    faults = (struct ndtd_faults){0};
    ndtd_faults_add(&faults, "%s", longest);
    ndtd_faults_add(&faults, "another");
    ck_assert_int_eq(ndtd_faults_status(&faults, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "xxx (and 1 more)"));
    ck_assert_int_eq(ndtd_faults_status(&faults, NULL), NDT_ERR_ARGUMENT);
}

TEST(options_given_twice_are_refused)
{
    must_refuse("ndt:\n  max_iterations: 3\n  max_iterations: 4\n",
                "a.yaml:3: ndt.max_iterations was already set in line 2");
    must_refuse("ndt: {max_iterations: 3}\nndt.max_iterations: 3\n",
                "a.yaml:2: ndt.max_iterations was already set");
    must_refuse("ndt:\n  levels: [1.0]\n  resolution: 2.0\n", "a.yaml:3: ndt.levels was already set in line 2");
}

TEST(unsupported_yaml_is_refused)
{
    must_refuse("- a\n- b\n", "a.yaml:1: expected sections and options, not a list");
    must_refuse("word\n", "a.yaml:1: expected sections and options, not a single value");
    must_refuse("ndt: {max_iterations: 3}\n---\nndt: {max_iterations: 4}\n", "a.yaml:2: a second document");
    must_refuse("ndt: &a {max_iterations: 3}\ncpu: *a\n", "a.yaml:2: alias '*a'");
    must_refuse("/**:\n  parameters:\n    ndt: {}\n", "a.yaml:2: 'parameters' under '/**'");
    must_refuse(
        "ndt:\n\tmax_iterations: 3\n",
        "a.yaml:2: not YAML: found character that cannot start any token (a tab? lines are indented by spaces)");
    must_refuse("ndt: {max_iterations: 3\n", "a.yaml:2: not YAML");
    must_refuse("ndt: \"\xff\xfe\"\n", "a.yaml:1: not YAML");
}

TEST(depth_and_size_are_bounded)
{
    must_refuse("a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}\n", "a.yaml:1: sections deeper than 8");
    size_t size = NDTD_CONFIG_MAX_BYTES + 1;
    char *text = malloc(size);
    memset(text, '#', size);
    ck_assert_int_eq(ndtd_config_parse(&settings, "a.yaml", text, size, &err), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(err.text, "a.yaml: more than 1048576 bytes");
    memset(text, '[', size);
    ck_assert_int_eq(ndtd_config_parse(&settings, "a.yaml", text, NDTD_CONFIG_MAX_BYTES, &err), NDT_ERR_ARGUMENT);
    memset(text, '{', size);
    ck_assert_int_eq(ndtd_config_parse(&settings, "a.yaml", text, NDTD_CONFIG_MAX_BYTES, &err), NDT_ERR_ARGUMENT);
    memset(text, 'a', size);
    memcpy(text + size - 6, ": 1\n", 5);
    ck_assert_int_eq(ndtd_config_parse(&settings, "a.yaml", text, size - 2, &err), NDT_ERR_ARGUMENT);
    free(text);
}

/* No truncation of a valid file crashes the parser. */
TEST(every_truncation_is_handled)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    ndtd_options_print_config(stream, &settings, NDTD_ALL_OPTIONS);
    fclose(stream);
    for (size_t cut = 0; cut < size; cut += 7) {
        setup();
        enum ndt_status status = ndtd_config_parse(&settings, "a.yaml", text, cut, &err);
        ck_assert(status == NDT_OK || (status == NDT_ERR_ARGUMENT && *err.text));
    }
    free(text);
}

TEST(files_are_read_and_missing_ones_named)
{
    char directory[] = "/tmp/ndtd-test-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(ndtd_config_read(&settings, directory, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "is a directory"));
    snprintf(path, sizeof(path), "%s/c.yaml", directory);
    ck_assert_int_eq(ndtd_config_read(&settings, path, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_ptr_nonnull(strstr(err.text, "No such file"));
    FILE *file = fopen(path, "w");
    fputs("cpu: {threads: 2}\n", file);
    fclose(file);
    ck_assert_int_eq(ndtd_config_read(&settings, path, &err), NDT_OK);
    ck_assert_int_eq(settings.compute.threads, 2);
    unlink(path);
    rmdir(directory);
}

TEST(profiles_in_the_tree_are_valid)
{
    const char *const profiles[] = {"ndtd.yaml", "kitti.yaml", "autoware.yaml"};
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        char path[1024];
        setup();
        snprintf(path, sizeof(path), "%s/../config/%s", NDT_TEST_DIR, profiles[i]);
        must(ndtd_config_read(&settings, path, &err));
        ck_assert_msg(ndtd_settings_finish(&settings, &err) == NDT_OK, "%s: %s", path, err.text);
    }
    ck_assert_int_eq(settings.align.variant, NDT_AUTOWARE);
}
