/** @file
 * @brief Tests of the option table: defaults, values, errors, and the generated configuration file. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/config_file.h"
#include "ndtd/nearest_name.h"
#include "ndtd/options.h"
#include "run_tests.h"

static struct ndtd_settings settings;
static struct ndt_error err;

static void setup(void)
{
    ndtd_settings_default(&settings);
    err.text[0] = '\0';
}

static enum ndt_status set(const char *name, const char *text)
{
    return ndtd_option_set_text(&settings, name, text, &err);
}

static void must_set(const char *name, const char *text)
{
    ck_assert_msg(set(name, text) == NDT_OK, "%s = %s: %s", name, text, err.text);
}

static void must_refuse(const char *name, const char *text, const char *part_of_error)
{
    ck_assert_msg(set(name, text) == NDT_ERR_ARGUMENT, "%s = %s was taken", name, text);
    ck_assert_msg(strstr(err.text, part_of_error) != NULL, "%s = %s: '%s' without '%s'", name, text, err.text,
                  part_of_error);
}

static void must_not_finish(const char *part_of_error)
{
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.text, part_of_error) != NULL, "'%s' without '%s'", err.text, part_of_error);
}

FIXTURE(setup, NULL)

TEST(table_is_well_formed)
{
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        ck_assert_ptr_eq(ndtd_option_find(option->name), option); /* names are unique */
        ck_assert_ptr_nonnull(ndtd_option_target(option));
        ck_assert_ptr_null(ndtd_option_target(option)->alias_of);
        ck_assert_uint_gt(strlen(option->help), 10);
        ck_assert_msg(option->help[strlen(option->help) - 1] != '.', "%s", option->name);
        ck_assert_msg(strlen(option->name) + 2 < 80, "%s", option->name);
        ck_assert_msg(option->offset < sizeof(struct ndtd_settings), "%s", option->name);
        ck_assert_uint_le(option->max_items, NDTD_VALUE_ITEMS);
        if (option->alias_of)
            ck_assert_uint_eq(option->offset, ndtd_option_target(option)->offset);
        ck_assert_int_eq(option->reloadable, ndtd_option_target(option)->reloadable);
        const int has_labels =
            option->type == NDTD_ENUM || option->type == NDTD_CHOICE || option->type == NDTD_ENUM_LIST;
        ck_assert_int_eq(option->labels != NULL, has_labels);
    }
    ck_assert_ptr_null(ndtd_option_at(ndtd_option_count()));
    ck_assert_uint_le(ndtd_option_count(), NDTD_CONFIG_MAX_OPTIONS);
}

/* Reading every printed default over the default settings leaves the bits of the core's *_default functions. */
TEST(defaults_equal_those_of_the_core)
{
    struct ndt_align_params align;
    struct ndt_map_config map;
    struct ndt_preprocess_params preprocess;
    struct ndt_backend_config compute;
    char text[2048];
    memset(&align, 0, sizeof(align)), memset(&map, 0, sizeof(map));
    memset(&preprocess, 0, sizeof(preprocess)), memset(&compute, 0, sizeof(compute));
    ndt_align_params_default(&align);
    ndt_map_config_default(&map);
    ndt_preprocess_params_default(&preprocess);
    preprocess.deskew = NDT_DESKEW_AUTO; /* what the core cannot decide */
    ndt_backend_config_default(&compute);
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        if (!option->alias_of && option->type != NDTD_PATH)
            must_set(option->name, ndtd_option_format(&settings, option, text, sizeof(text)));
    }
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    align.score_threshold = 0; /* the confidence decides */
    ck_assert_mem_eq(&settings.align, &align, sizeof(align));
    ck_assert_mem_eq(&settings.map, &map, sizeof(map));
    ck_assert_mem_eq(&settings.preprocess, &preprocess, sizeof(preprocess));
    ck_assert_mem_eq(&settings.compute, &compute, sizeof(compute));
}

TEST(every_type_is_read)
{
    must_set("cpu.pin_threads", "No");
    ck_assert_int_eq(settings.compute.pin_threads, 0);
    must_set("cpu.pin_threads", "on");
    ck_assert_int_eq(settings.compute.pin_threads, 1);
    must_set("cpu.threads", "3");
    ck_assert_int_eq(settings.compute.threads, 3);
    must_set("ndt.num_threads", "2");
    ck_assert_int_eq(settings.compute.threads, 2);
    must_set("preprocess.seed", "18446744073709551615");
    ck_assert_uint_eq(settings.preprocess.seed, UINT64_MAX);
    must_set("ndt.step_limit_deg", "90");
    ck_assert_double_eq_tol(settings.align.step_limit_rad, 1.5707963267948966, 1e-15);
    must_set("ndt.deadline_ms", "5");
    ck_assert_double_eq(settings.align.deadline_s, 0.005);
    must_set("live.budget_ms", "auto");
    ck_assert_double_eq(settings.budget_s, 0);
    must_set("live.budget_ms", "50");
    ck_assert_double_eq(settings.budget_s, 0.05);
    must_set("preprocess.deskew", "azimuth_ccw");
    ck_assert_int_eq(settings.preprocess.deskew, NDT_DESKEW_AZIMUTH_CCW);
    must_set("map.path", "some where/[map], 1.pcd");
    ck_assert_str_eq(settings.map_path, "some where/[map], 1.pcd");
    must_set("preprocess.crop_min_m", "-5, -6,-7");
    ck_assert_double_eq(settings.preprocess.crop_min_m[2], -7);
    must_set("initial_pose.pose", "[1, 2, 3, 90]"); /* degrees, as the tools take it */
    ck_assert_int_eq(settings.has_initial_pose, 1);
    ck_assert_double_eq_tol(settings.initial_pose[5], sqrt(0.5), 1e-15);
    ck_assert_double_eq_tol(settings.initial_pose[6], sqrt(0.5), 1e-15);
    must_set("initial_pose.pose", "[1, 2, 3, 0, 0, 0.6, 0.8]");
    ck_assert_int_eq(settings.has_initial_pose, 1);
    ck_assert_double_eq_tol(settings.initial_pose[6], 0.8, 1e-15);
    must_set("initial_pose.pose", "[]");
    ck_assert_int_eq(settings.has_initial_pose, 0);
}

TEST(names_of_enums_become_their_values)
{
    must_set("ndt.variant", "autoware");
    ck_assert_int_eq(settings.align.variant, NDT_AUTOWARE);
    must_set("ndt.covariance", "autoware");
    ck_assert_int_eq(settings.map.covariance, NDT_COVARIANCE_AUTOWARE);
    must_set("ndt.neighbours", "[radius, direct1, direct7, direct27]");
    ck_assert_int_eq(settings.neighbours[0], NDT_RADIUS);
    ck_assert_int_eq(settings.neighbours[1], NDT_DIRECT1);
    ck_assert_int_eq(settings.neighbours[2], NDT_DIRECT7);
    ck_assert_int_eq(settings.neighbours[3], NDT_DIRECT27);
    const char *const deskews[] = {"off", "time", "azimuth_cw", "azimuth_ccw"};
    for (int i = 0; i < 4; i++) {
        must_set("preprocess.deskew", deskews[i]);
        ck_assert_int_eq(settings.preprocess.deskew, i);
    }
    must_set("preprocess.deskew", "auto");
    ck_assert_int_eq(settings.preprocess.deskew, NDT_DESKEW_AUTO);
    const char *const waits[] = {"auto", "spin", "yield", "block"}; /* enum ndt_wait */
    for (int i = 0; i < 4; i++) {
        must_set("cuda.wait", waits[i]);
        ck_assert_int_eq(settings.compute.wait, i);
    }
    /* Autoware's parameter is a number, and prints as a name. */
    const char *const kinds[] = {"fixed", "laplace", "multi_ndt", "multi_ndt_score", "posterior"};
    const char *const name = "covariance.covariance_estimation.covariance_estimation_type";
    for (int i = 0; i < 5; i++) {
        const char number[2] = {(char)('0' + i), '\0'};
        char text[32];
        must_set(name, kinds[i]);
        ck_assert_int_eq(settings.pose_covariance.kind, i);
        must_set(name, i < NDT_POSE_COVARIANCE_POSTERIOR ? number : kinds[i]);
        ck_assert_int_eq(settings.pose_covariance.kind, i);
        ck_assert_str_eq(ndtd_option_format(&settings, ndtd_option_find(name), text, sizeof(text)), kinds[i]);
    }
}

TEST(map_and_neighbours_follow_the_levels)
{
    must_set("ndt.levels", "[8.0, 4.0, 2.0, 1.0]");
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    ck_assert_uint_eq(settings.map.level_count, 4);
    ck_assert_double_eq(settings.map.leaf_m[0], 8);
    ck_assert_int_eq(settings.align.levels[0].neighbours, NDT_DIRECT7); /* the first serves all coarser */
    ck_assert_int_eq(settings.align.levels[3].neighbours, NDT_RADIUS);
    must_set("ndt.resolution", "2.0");
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    ck_assert_uint_eq(settings.map.level_count, 1);
    ck_assert_double_eq(settings.map.leaf_m[0], 2);
    ck_assert_int_eq(settings.align.levels[0].neighbours, NDT_RADIUS); /* counted from the finest */
    must_set("ndt.levels", "4,2");
    must_set("ndt.neighbours", "direct1");
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    ck_assert_int_eq(settings.align.levels[0].neighbours, NDT_DIRECT1);
    ck_assert_int_eq(settings.align.levels[1].neighbours, NDT_DIRECT1);
}

TEST(isa_survives_a_copy)
{
    must_set("cpu.isa", "baseline");
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    struct ndtd_settings *copy = malloc(sizeof(*copy));
    *copy = settings;
    memset(&settings, 0, sizeof(settings));
    ck_assert_str_eq(copy->compute.isa, "baseline");
    free(copy);
}

/* The longest text is accepted, one byte more is not. */
TEST(long_texts_are_refused)
{
    static char text[70000];
    size_t most = 0;
    memset(text, '1', sizeof(text) - 1);
    ck_assert_int_eq(ndtd_option_set_text(&settings, "cpu.threads", text, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(sscanf(err.text, "cpu.threads: text of 69999 bytes, at most %zu are allowed", &most), 1);
    text[most + 1] = '\0';
    ck_assert_int_eq(ndtd_option_set_text(&settings, "cpu.threads", text, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "bytes, at most"));
    text[most] = '\0';
    ck_assert_int_eq(ndtd_option_set_text(&settings, "cpu.threads", text, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_null(strstr(err.text, "bytes, at most"));
}

TEST(wrong_values_name_the_expected_value)
{
    must_refuse("cpu.threads", "two", "cpu.threads: 'two' is not a whole number");
    must_refuse("cpu.threads", "2.5", "not a whole number");
    must_refuse("cpu.threads", "", "not a whole number");
    must_refuse("cpu.threads", "-1", "-1 is outside 0 .. 64");
    must_refuse("cpu.threads", "99999999999999999999", "outside");
    must_refuse("preprocess.seed", "-1", "outside");
    must_refuse("preprocess.seed", "18446744073709551616", "outside");
    must_refuse("ndt.step_limit_m", "nan", "not a number");
    must_refuse("ndt.step_limit_m", "inf", "not a number");
    must_refuse("ndt.step_limit_m", "0x10", "not a number");
    must_refuse("ndt.step_limit_m", "1e999", "not a number");
    must_refuse("ndt.step_limit_m", "1 m", "not a number");
    must_refuse("ndt.step_limit_m", "-0.5", "outside");
    must_refuse("cpu.pin_threads", "maybe", "neither true nor false");
    must_refuse("ndt.variant", "robsut", "one of robust, autoware; did you mean 'robust'?");
    must_refuse("cpu.isa", "avx", "did you mean 'avx2'?");
    must_refuse("cuda.wait", "blok", "one of auto, spin, yield, block; did you mean 'block'?");
    must_refuse("ndt.levels", "[]", "0 values, but 1 to 6");
    must_refuse("ndt.levels", "[4,2,1", "not closed");
    must_refuse("ndt.levels", "[7,6,5,4,3,2,1]", "7 values, but 1 to 6");
    must_refuse("ndt.levels", "[4,x]", "'x' is not a number");
    char many[2 * NDTD_VALUE_ITEMS + 2] = "1";
    for (int i = 0; i < NDTD_VALUE_ITEMS; i++)
        strcat(many, ",1");
    must_refuse("ndt.levels", many, "more than 36");
    must_refuse("ndt.resolution", "4,2", "2 values");
    must_refuse("initial_pose.pose", "1,2,3", "a pose is x,y,z,qx,qy,qz,qw or x,y,z,yaw");
    must_refuse("initial_pose.pose", "1,2,3,0,0,0,0", "length 0 instead of 1");
    must_refuse("ndt.levls", "1", "did you mean 'ndt.levels'?");
    must_refuse("voxel_m", "1", "did you mean 'preprocess.voxel_m'?");
    must_refuse("qqqqqqqqqqqqqqqqqqq", "1", "is not an option");
    ck_assert_ptr_null(strstr(err.text, "mean"));
    char long_path[NDTD_PATH_MAX + 1];
    memset(long_path, 'a', NDTD_PATH_MAX);
    long_path[NDTD_PATH_MAX] = '\0';
    must_refuse("map.path", long_path, "at most 1023");
}

/* Near in section and word; a word of another section only where one option alone has it. */
TEST(only_near_names_are_suggested)
{
    static const struct {
        const char *name, *near;
    } cases[] = {{"ndt.levls", "ndt.levels"},
                 {"ntd.levels", "ndt.levels"},
                 {"ndt.level", "ndt.levels"}, /* although there is log.level */
                 {"ndt_levels", "ndt.levels"},
                 {"levels", "ndt.levels"},
                 {"ndt.max_iteration", "ndt.max_iterations"},
                 {"preproces.voxelm", "preprocess.voxel_m"},
                 {"filter.voxel_m", "preprocess.voxel_m"},
                 {"voxel_n", "preprocess.voxel_m"},
                 {"covariance.covariance_estimation.scale_facto", "covariance.covariance_estimation.scale_factor"},
                 {"covariance.covariance_estimation.foo", NULL},
                 {"preprocess.foo", NULL},
                 {"filter.voxel_n", NULL},
                 {"foo.enable", NULL},
                 {"enable", NULL},
                 {"ndt.foo", NULL},
                 {"x", NULL},
                 {"", NULL},
                 {".", NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char hint[120] = "";
        ck_assert_int_eq(set(cases[i].name, "1"), NDT_ERR_ARGUMENT);
        if (cases[i].near)
            snprintf(hint, sizeof(hint), "is not an option; did you mean '%s'?", cases[i].near);
        ck_assert_msg(cases[i].near ? strstr(err.text, hint) != NULL : strstr(err.text, "mean") == NULL, "%s",
                      err.text);
    }
    must_refuse("ndt.variant", "magic", "one of robust, autoware");
    ck_assert_ptr_null(strstr(err.text, "mean"));
    must_set("backend.name", "gpu");
    must_not_finish("'gpu' is not one of auto, cpu");
    ck_assert_ptr_null(strstr(err.text, "mean"));
}

TEST(a_refused_list_changes_nothing)
{
    must_refuse("ndt.levels", "[8.0, 4.0, oops]", "oops");
    ck_assert_double_eq(settings.align.levels[0].leaf_m, 4);
    ck_assert_uint_eq(settings.align.level_count, 3);
}

TEST(contradicting_options_are_refused)
{
    must_set("ndt.levels", "1,2");
    must_not_finish("coarse to fine");
    ndtd_settings_default(&settings);
    must_set("ndt.variant", "autoware");
    must_not_finish("ndt.variant autoware needs exactly one");
    ndtd_settings_default(&settings);
    must_set("preprocess.min_range_m", "500");
    must_not_finish("preprocess.min_range_m");
    ndtd_settings_default(&settings);
    must_set("preprocess.crop_max_m", "[10, -2000, 10]");
    must_not_finish("(y)");
    ndtd_settings_default(&settings);
    must_set("backend.name", "referense");
    must_not_finish("did you mean 'reference'?");
    ndtd_settings_default(&settings);
    must_set("covariance.covariance_estimation.initial_pose_offset_model_x", "[0.5, -0.5]");
    must_not_finish("2 offsets, but model_y has 6");
    ndtd_settings_default(&settings);
    must_set("integrity.alert_limit_m", "0.5");
    must_not_finish("integrity.alert_limit_m: needs an integrity.risk above 0");
    must_set("integrity.risk", "1e-5");
    must_set("ndt.prior", "off");
    must_not_finish("integrity.risk: needs a map, ndt.variant robust and ndt.prior auto");
    must_set("ndt.prior", "auto");
    must_set("map.extend", "true");
    must_set("map.path", "none");
    must_not_finish("there is no map to extend");
    must_set("map.path", "map.pcd");
    must_set("recovery.enable", "false");
    must_not_finish("map.extend: needs");
    ndtd_settings_default(&settings);
    settings.pose_covariance.fixed[1] = 0.001;
    must_not_finish("0.001 and 0 are not symmetric");
    settings.pose_covariance.fixed[6] = 0.001;
    settings.pose_covariance.fixed[7] = -1;
    must_not_finish("not positive definite");
}

/* A text that is too short ends early, and with a zero. */
TEST(lists_are_cut_to_the_text)
{
    const struct ndtd_option *option = ndtd_option_find("frames.T_base_sensor");
    char whole[512], text[512];
    ck_assert_ptr_eq(ndtd_option_format(&settings, option, whole, sizeof(whole)), whole);
    for (size_t size = 1; size <= strlen(whole); size++) {
        memset(text, '#', sizeof(text));
        ck_assert_ptr_eq(ndtd_option_format(&settings, option, text, size), text);
        ck_assert_uint_eq(strlen(text), size - 1);
        ck_assert_int_eq(strncmp(text, whole, size - 1), 0);
        ck_assert_int_eq(text[size], '#');
    }
}

/* Values without a short form in degrees or in binary are restored bit-identically. */
TEST(printed_values_read_back_bit_equal)
{
    const double odd[] = {0.1, 1.0 / 3, 2.9999999999999996, 1e-5, 123456.789012345678, 1e5, 0.00012};
    const char *const names[] = {"estimator.max_prediction_s", "ndt.step_limit_deg", "ndt.deadline_ms"};
    for (size_t n = 0; n < 3; n++)
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
            char text[64], again[64];
            const struct ndtd_option *option = ndtd_option_find(names[n]);
            if (odd[i] > option->max)
                continue;
            snprintf(text, sizeof(text), "%.17g", odd[i]);
            must_set(names[n], text);
            struct ndtd_settings before = settings;
            ndtd_option_format(&settings, option, again, sizeof(again));
            must_set(names[n], again);
            ck_assert_msg(
                memcmp((char *)&before + option->offset, (char *)&settings + option->offset, sizeof(double)) == 0,
                "%s: %s became %s", names[n], text, again);
            ck_assert_msg(strchr(again, '.') != NULL, "%s", again);
        }
}

static char *print_config_of(enum ndtd_option_rank rank)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    ndtd_options_print_config(stream, &settings, rank);
    fclose(stream);
    return text;
}

static char *print_config(void)
{
    return print_config_of(NDTD_ALL_OPTIONS);
}

TEST(printed_config_reads_back)
{
    must_set("map.path", "a \"quoted\" \\ path: # [x]");
    must_set("ndt.levels", "[3.0, 1.5]");
    must_set("initial_pose.pose", "[1, 2, 3, 0, 0, 0.6, 0.8]");
    must_set("preprocess.deskew", "time");
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    char *text = print_config();
    struct ndtd_settings wanted = settings;
    ndtd_settings_default(&settings);
    must(ndtd_config_parse(&settings, "text", text, strlen(text), &err));
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    char *again = print_config();
    ck_assert_str_eq(again, text);
    ck_assert_str_eq(settings.map_path, wanted.map_path);
    ck_assert_double_eq(settings.align.levels[1].leaf_m, 1.5);
    free(text);
    free(again);
}

TEST(config_file_in_the_tree_has_the_common_options)
{
    FILE *file = fopen(NDT_TEST_DIR "/../config/ndtd.yaml", "rb");
    ck_assert_ptr_nonnull(file);
    static char have[65536];
    size_t size = fread(have, 1, sizeof(have) - 1, file);
    have[size] = '\0';
    fclose(file);
    char *want = print_config_of(NDTD_COMMON_OPTIONS);
    size_t same = 0, line = 0; /* offset of the first difference, and begin of that line */
    for (; have[same] && have[same] == want[same]; same++)
        line = want[same] == '\n' ? same + 1 : line;
    ck_assert_msg(have[same] == want[same], "config/ndtd.yaml has not the line: %.200s", want + line);
    free(want);
}

TEST(edit_distances)
{
    ck_assert_uint_eq(ndtd_edit_distance("", ""), 0);
    ck_assert_uint_eq(ndtd_edit_distance("abc", ""), 3);
    ck_assert_uint_eq(ndtd_edit_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(ndtd_edit_distance("levels", "lveels"), 1); /* a swap */
    ck_assert_uint_eq(ndtd_edit_distance("ab", "ba"), 1);
}
