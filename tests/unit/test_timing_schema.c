/* The timing dump: every kind of row has the cells of the schema, in CSV and in JSON lines. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/timing_schema.h"
#include "run_tests.h"

static struct ndtd_scan_record scan;
static struct ndt_iteration step;

static void setup(void)
{
    memset(&scan, 0, sizeof(scan));
    memset(&step, 0, sizeof(step));
    scan.seq = 18446744073709551615ULL;
    scan.stamp_ns = -7;
    scan.align_us = 12.3456;
    scan.result.outcome = NDT_LOW_SCORE;
    scan.state = NDT_STATE_COASTING;
    scan.hypotheses = 3;
    scan.result.iterations = 5;
    scan.result.T_map_sensor.t_m[0] = 500000.1;
    scan.result.scores.nvtl = NAN;
    step.iteration = 2;
    step.score = 1.0 / 3;
    step.h2d_bytes = 224;
    step.eval_us = 0.5;
    step.T_map_sensor.q_xyzw[3] = 1;
}

typedef void write_row(FILE *, const struct ndtd_scan_record *, const struct ndt_iteration *);

static char *text_of(write_row *write, const struct ndt_iteration *row)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    write(stream, &scan, row);
    fclose(stream);
    return text;
}

static char *header(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    ndtd_timing_csv_header(stream);
    fclose(stream);
    return text;
}

/* Cell `wanted` of a CSV line, or NULL. */
static char *csv_cell(const char *line, size_t wanted)
{
    for (size_t i = 0; i < wanted && line; i++) {
        line = strchr(line, ',');
        line = line ? line + 1 : NULL;
    }
    return line ? strndup(line, strcspn(line, ",\n")) : NULL;
}

static void must_hold(const char *row, const char *name, const char *text)
{
    char *names = header();
    for (size_t i = 0; i <= ndtd_timing_column_count(); i++) {
        char *title = csv_cell(names, i);
        if (strcmp(title, name) == 0) {
            char *cell = csv_cell(row, i);
            ck_assert_str_eq(cell, text);
            free(cell);
            free(title);
            free(names);
            return;
        }
        free(title);
    }
    ck_abort_msg("no column %s", name);
}

FIXTURE(setup, NULL)

TEST(names_are_unique_and_plain)
{
    for (size_t i = 0; i < ndtd_timing_column_count(); i++) {
        const char *name = ndtd_timing_column_at(i)->name;
        ck_assert_uint_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(name));
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(name, ndtd_timing_column_at(k)->name);
        const struct ndtd_timing_column *column = ndtd_timing_column_at(i);
        ck_assert(column->in_iteration.source != NDTD_CELL_NONE || column->in_scan.source != NDTD_CELL_NONE);
        ck_assert_int_ne(column->in_scan.source, NDTD_CELL_STEP);
        ck_assert_uint_lt(column->in_scan.offset, sizeof(scan));
    }
    ck_assert_ptr_null(ndtd_timing_column_at(ndtd_timing_column_count()));
}

TEST(csv_rows_have_as_many_cells_as_the_header)
{
    char *lines[] = {header(), text_of(ndtd_timing_csv_row, &step), text_of(ndtd_timing_csv_row, NULL)};
    for (int i = 0; i < 3; i++) {
        size_t commas = 0;
        for (const char *c = lines[i]; *c; c++)
            commas += *c == ',';
        ck_assert_uint_eq(commas, ndtd_timing_column_count());
        ck_assert_ptr_eq(strchr(lines[i], '\n'), lines[i] + strlen(lines[i]) - 1);
        free(lines[i]);
    }
}

TEST(iteration_rows_show_the_step)
{
    char *row = text_of(ndtd_timing_csv_row, &step);
    must_hold(row, "row", "iteration");
    must_hold(row, "seq", "18446744073709551615");
    must_hold(row, "stamp_ns", "-7");
    must_hold(row, "iteration", "2");
    must_hold(row, "score", "0.33333333333333331");
    must_hold(row, "h2d_bytes", "224");
    must_hold(row, "eval_us", "0.500");
    must_hold(row, "qw", "1");
    must_hold(row, "align_us", "");
    must_hold(row, "outcome", "");
    free(row);
}

TEST(scan_rows_show_the_result)
{
    char *row = text_of(ndtd_timing_csv_row, NULL);
    must_hold(row, "row", "scan");
    must_hold(row, "iteration", "5");
    must_hold(row, "outcome", "low_score");
    must_hold(row, "state", "coasting");
    must_hold(row, "hypotheses", "3");
    must_hold(row, "align_us", "12.346");
    must_hold(row, "tx", "500000.09999999998");
    must_hold(row, "score", "");
    must_hold(row, "nvtl", "nan");
    free(row);
}

TEST(json_rows_omit_missing_cells)
{
    char *of_step = text_of(ndtd_timing_json_row, &step);
    char *of_scan = text_of(ndtd_timing_json_row, NULL);
    ck_assert_ptr_nonnull(strstr(of_step, "{\"row\":\"iteration\",\"seq\":18446744073709551615,\"stamp_ns\":-7,"));
    ck_assert_ptr_null(strstr(of_step, "outcome"));
    ck_assert_ptr_nonnull(strstr(of_scan, "\"outcome\":\"low_score\""));
    ck_assert_ptr_nonnull(strstr(of_scan, "\"state\":\"coasting\",\"hypotheses\":3,"));
    ck_assert_ptr_nonnull(strstr(of_scan, "\"nvtl\":null"));
    ck_assert_ptr_null(strstr(of_scan, "nan"));
    ck_assert_ptr_null(strstr(of_scan, "gradient_norm"));
    ck_assert_str_eq(of_scan + strlen(of_scan) - 2, "}\n");
    free(of_step);
    free(of_scan);
}
