/* The option table: its defaults, its values, its errors, and the file that is generated from it. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/config_file.h"
#include "ndtd/nearest_name.h"
#include "ndtd/options.h"

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

START_TEST(table_is_well_formed)
{
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        ck_assert_ptr_eq(ndtd_option_find(option->name), option); /* no name twice */
        ck_assert_ptr_nonnull(ndtd_option_target(option));
        ck_assert_ptr_null(ndtd_option_target(option)->alias_of);
        ck_assert_uint_gt(strlen(option->help), 10);
        ck_assert_msg(option->help[strlen(option->help) - 1] != '.', "%s", option->name);
        ck_assert_msg(strlen(option->name) + 2 < 64, "%s", option->name);
        ck_assert_msg(option->offset < sizeof(struct ndtd_settings), "%s", option->name);
        ck_assert_uint_le(option->max_items, NDTD_VALUE_ITEMS);
        if (option->alias_of)
            ck_assert_uint_eq(option->offset, ndtd_option_target(option)->offset);
    }
    ck_assert_ptr_null(ndtd_option_at(ndtd_option_count()));
    ck_assert_uint_le(ndtd_option_count(), NDTD_CONFIG_MAX_OPTIONS);
}
END_TEST

START_TEST(defaults_agree_with_align)
{
    struct ndt_align_params want;
    const struct ndt_align_params *have = &settings.align;
    ndt_align_params_default(&want);
    ck_assert_int_eq(have->variant, want.variant);
    ck_assert_uint_eq(have->level_count, want.level_count);
    for (size_t i = 0; i < want.level_count; i++) {
        ck_assert_double_eq(have->levels[i].leaf_m, want.levels[i].leaf_m);
        ck_assert_int_eq(have->levels[i].neighbours, want.levels[i].neighbours);
    }
    ck_assert_int_eq(have->max_iterations, want.max_iterations);
    ck_assert_double_eq(have->step_limit_m, want.step_limit_m);
    ck_assert_double_eq(have->step_limit_rad, want.step_limit_rad);
    ck_assert_double_eq(have->eigenvalue_floor, want.eigenvalue_floor);
    ck_assert_double_eq(have->coarse_stop_m, want.coarse_stop_m);
    ck_assert_double_eq(have->coarse_stop_rad, want.coarse_stop_rad);
    ck_assert_double_eq(have->coarse_stop_gain, want.coarse_stop_gain);
    ck_assert_double_eq(have->fine_stop_m, want.fine_stop_m);
    ck_assert_double_eq(have->fine_stop_rad, want.fine_stop_rad);
    ck_assert_double_eq(have->fine_stop_gain, want.fine_stop_gain);
    ck_assert_int_eq(have->max_line_search_steps, want.max_line_search_steps);
    ck_assert_double_eq(have->trans_epsilon, want.trans_epsilon);
    ck_assert_double_eq(have->step_size, want.step_size);
    ck_assert_double_eq(have->score_threshold, want.score_threshold);
    ck_assert_double_eq(have->min_match_ratio, want.min_match_ratio);
    ck_assert_double_eq(have->weak_eigenvalue_ratio, want.weak_eigenvalue_ratio);
    ck_assert_double_eq(have->covariance_scale, want.covariance_scale);
    ck_assert_double_eq(have->deadline_s, want.deadline_s);
}
END_TEST

START_TEST(defaults_agree_with_map_preprocess_and_backend)
{
    struct ndt_map_config map;
    struct ndt_preprocess_params pre;
    struct ndt_backend_config compute;
    ndt_map_config_default(&map);
    ndt_preprocess_params_default(&pre);
    ndt_backend_config_default(&compute);
    ck_assert_uint_eq(settings.map.level_count, map.level_count);
    for (size_t i = 0; i < map.level_count; i++)
        ck_assert_double_eq(settings.map.leaf_m[i], map.leaf_m[i]);
    ck_assert_uint_eq(settings.map.min_points, map.min_points);
    ck_assert_double_eq(settings.map.min_eigenvalue_ratio, map.min_eigenvalue_ratio);
    ck_assert_int_eq(settings.map.covariance, map.covariance);
    ck_assert_double_eq(settings.map.outlier_ratio, map.outlier_ratio);
    ck_assert_double_eq(settings.preprocess.min_range_m, pre.min_range_m);
    ck_assert_double_eq(settings.preprocess.max_range_m, pre.max_range_m);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(settings.preprocess.crop_min_m[i], pre.crop_min_m[i]);
        ck_assert_double_eq(settings.preprocess.crop_max_m[i], pre.crop_max_m[i]);
    }
    ck_assert_double_eq(settings.preprocess.voxel_m, pre.voxel_m);
    ck_assert_uint_eq(settings.preprocess.sample_count, pre.sample_count);
    ck_assert_uint_eq(settings.preprocess.seed, pre.seed);
    ck_assert_int_eq(settings.preprocess.deskew, pre.deskew);
    ck_assert_double_eq(settings.preprocess.sweep_s, pre.sweep_s);
    ck_assert_int_eq(settings.compute.threads, compute.threads);
    ck_assert_double_eq(settings.compute.spin_us, compute.spin_us);
    ck_assert_int_eq(settings.compute.pin_threads, compute.pin_threads);
    ck_assert_ptr_eq(settings.compute.isa, compute.isa);
    ck_assert_uint_eq(settings.compute.max_points, compute.max_points);
}
END_TEST

START_TEST(default_texts_are_printed_as_they_stand)
{
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        char text[2048];
        if (option->alias_of)
            continue;
        ndtd_option_format(&settings, option, text, sizeof(text));
        ck_assert_str_eq(text, option->type == NDTD_PATH ? "\"\"" : option->text);
    }
}
END_TEST

START_TEST(every_type_is_read)
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
    must_set("preprocess.deskew", "azimuth_ccw");
    ck_assert_int_eq(settings.preprocess.deskew, NDT_DESKEW_AZIMUTH_CCW);
    must_set("map.path", "some where/[map], 1.pcd");
    ck_assert_str_eq(settings.map_path, "some where/[map], 1.pcd");
    must_set("preprocess.crop_min_m", "-5, -6,-7");
    ck_assert_double_eq(settings.preprocess.crop_min_m[2], -7);
    must_set("initial_pose", "[1, 2, 3, 0, 0, 0.6, 0.8]");
    ck_assert_int_eq(settings.has_initial_pose, 1);
    ck_assert_double_eq_tol(settings.initial_pose[6], 0.8, 1e-15);
    must_set("initial_pose", "[]");
    ck_assert_int_eq(settings.has_initial_pose, 0);
}
END_TEST

START_TEST(names_of_enums_are_in_the_order_of_the_enums)
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
}
END_TEST

START_TEST(levels_lead_map_and_neighbours)
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
END_TEST

START_TEST(isa_survives_a_copy)
{
    must_set("cpu.isa", "baseline");
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    struct ndtd_settings *copy = malloc(sizeof(*copy));
    *copy = settings;
    memset(&settings, 0, sizeof(settings));
    ck_assert_str_eq(copy->compute.isa, "baseline");
    free(copy);
}
END_TEST

START_TEST(wrong_values_name_what_was_wanted)
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
    must_refuse("ndt.levels", "[]", "0 values, but 1 to 6");
    must_refuse("ndt.levels", "[4,2,1", "not closed");
    must_refuse("ndt.levels", "[7,6,5,4,3,2,1]", "7 values, but 1 to 6");
    must_refuse("ndt.levels", "[4,x]", "'x' is not a number");
    must_refuse("ndt.levels", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "more than 16");
    must_refuse("ndt.resolution", "4,2", "2 values");
    must_refuse("initial_pose", "1,2,3", "a pose has 7");
    must_refuse("initial_pose", "1,2,3,0,0,0,0", "length 0 instead of 1");
    must_refuse("ndt.levls", "1", "did you mean 'ndt.levels'?");
    must_refuse("voxel_m", "1", "did you mean 'preprocess.voxel_m'?");
    must_refuse("qqqqqqqqqqqqqqqqqqq", "1", "is not an option");
    ck_assert_ptr_null(strstr(err.text, "mean"));
    char long_path[NDTD_PATH_MAX + 1];
    memset(long_path, 'a', NDTD_PATH_MAX);
    long_path[NDTD_PATH_MAX] = '\0';
    must_refuse("map.path", long_path, "at most 1023");
}
END_TEST

START_TEST(a_refused_list_changes_nothing)
{
    must_refuse("ndt.levels", "[8.0, 4.0, oops]", "oops");
    ck_assert_double_eq(settings.align.levels[0].leaf_m, 4);
    ck_assert_uint_eq(settings.align.level_count, 3);
}
END_TEST

START_TEST(options_that_contradict_are_refused)
{
    must_set("ndt.levels", "1,2");
    must_not_finish("coarse to fine");
    ndtd_settings_default(&settings);
    must_set("ndt.variant", "autoware");
    must_not_finish("ndt.variant autoware has one");
    ndtd_settings_default(&settings);
    must_set("preprocess.min_range_m", "500");
    must_not_finish("preprocess.min_range_m");
    ndtd_settings_default(&settings);
    must_set("preprocess.crop_max_m", "[10, -2000, 10]");
    must_not_finish("(y)");
    ndtd_settings_default(&settings);
    must_set("backend.name", "referense");
    must_not_finish("did you mean 'reference'?");
}
END_TEST

/* Values that lie oddly in degrees or in binary come back with the same bits. */
START_TEST(printed_values_read_back_bit_equal)
{
    const double odd[] = {0.1, 1.0 / 3, 2.9999999999999996, 1e-5, 123456.789012345678, 1e5, 0.00012};
    const char *const names[] = {"tracker.max_prediction_s", "ndt.step_limit_deg", "ndt.deadline_ms"};
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
END_TEST

static char *print_config(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    ndtd_options_print_config(stream, &settings);
    fclose(stream);
    return text;
}

START_TEST(printed_config_reads_back)
{
    must_set("map.path", "a \"quoted\" \\ path: # [x]");
    must_set("ndt.levels", "[3.0, 1.5]");
    must_set("initial_pose", "[1, 2, 3, 0, 0, 0.6, 0.8]");
    must_set("preprocess.deskew", "time");
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    char *text = print_config();
    struct ndtd_settings wanted = settings;
    ndtd_settings_default(&settings);
    ck_assert_msg(ndtd_config_parse(&settings, "text", text, strlen(text), &err) == NDT_OK, "%s", err.text);
    ck_assert_int_eq(ndtd_settings_finish(&settings, &err), NDT_OK);
    char *again = print_config();
    ck_assert_str_eq(again, text);
    ck_assert_str_eq(settings.map_path, wanted.map_path);
    ck_assert_double_eq(settings.align.levels[1].leaf_m, 1.5);
    free(text);
    free(again);
}
END_TEST

START_TEST(config_file_in_the_tree_is_the_printed_one)
{
    FILE *file = fopen(NDT_TEST_DIR "/../config/ndtd.yaml", "rb");
    ck_assert_ptr_nonnull(file);
    static char have[65536];
    size_t size = fread(have, 1, sizeof(have) - 1, file);
    have[size] = '\0';
    fclose(file);
    char *want = print_config();
    ck_assert_msg(strcmp(have, want) == 0, "run: ndtd --print-config > config/ndtd.yaml");
    free(want);
}
END_TEST

START_TEST(edit_distances)
{
    ck_assert_uint_eq(ndtd_edit_distance("", ""), 0);
    ck_assert_uint_eq(ndtd_edit_distance("abc", ""), 3);
    ck_assert_uint_eq(ndtd_edit_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(ndtd_edit_distance("levels", "lveels"), 1); /* a swap */
    ck_assert_uint_eq(ndtd_edit_distance("ab", "ba"), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tests = tcase_create("options");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, table_is_well_formed);
    tcase_add_test(tests, defaults_agree_with_align);
    tcase_add_test(tests, defaults_agree_with_map_preprocess_and_backend);
    tcase_add_test(tests, default_texts_are_printed_as_they_stand);
    tcase_add_test(tests, every_type_is_read);
    tcase_add_test(tests, names_of_enums_are_in_the_order_of_the_enums);
    tcase_add_test(tests, levels_lead_map_and_neighbours);
    tcase_add_test(tests, isa_survives_a_copy);
    tcase_add_test(tests, wrong_values_name_what_was_wanted);
    tcase_add_test(tests, a_refused_list_changes_nothing);
    tcase_add_test(tests, options_that_contradict_are_refused);
    tcase_add_test(tests, printed_values_read_back_bit_equal);
    tcase_add_test(tests, printed_config_reads_back);
    tcase_add_test(tests, config_file_in_the_tree_is_the_printed_one);
    tcase_add_test(tests, edit_distances);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
