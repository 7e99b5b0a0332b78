/** @file
 * @brief The report of ndt-bench: tables, written as text, Markdown and JSON.
 *
 * A column is created by its first value; its key is the heading of the text and the member of the JSON object.
 * Needs the core only. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "ndt/status.h"

enum { BENCH_TABLES = 8, BENCH_COLUMNS = 32, BENCH_NOTES = 40, BENCH_CELL_TEXT = 224 };

struct bench_cell {
    enum { BENCH_EMPTY, BENCH_NUMBER, BENCH_BOOL, BENCH_TEXT } kind;
    int decimals;
    double number;
    char text[BENCH_CELL_TEXT];
};
struct bench_table {
    char name[32];   /**< member of the JSON object */
    char title[400]; /**< heading, and what the rows mean */
    const char *keys[BENCH_COLUMNS];
    size_t column_count, row_count, capacity;
    struct bench_cell (*rows)[BENCH_COLUMNS];
    size_t note_count;
    char notes[BENCH_NOTES][BENCH_CELL_TEXT]; /**< lines below the table; not in the JSON */
};
struct bench_report {
    struct bench_table tables[BENCH_TABLES];
    size_t count;
    int is_incomplete;  /**< memory was exhausted: writing fails */
    size_t device_rows; /**< rows measured on a device */
    size_t failures;    /**< wrong results, and backends that failed */
};

/** Adds a table; `title` is "Heading: explanation". Borrowed until bench_report_free. */
struct bench_table *bench_report_table(struct bench_report *report, const char *name, const char *title);
void bench_report_free(struct bench_report *report);
/** Begins a row; the following values belong to it. */
void bench_row(struct bench_report *report, struct bench_table *table);
/** `key` must outlive the table. A number that is not finite is empty in text and null in JSON. */
void bench_number(struct bench_table *table, const char *key, int decimals, double value);
void bench_bool(struct bench_table *table, const char *key, int value);
void bench_text(struct bench_table *table, const char *key, const char *format, ...) NDT_PRINTF(3, 4);
void bench_note(struct bench_table *table, const char *format, ...) NDT_PRINTF(2, 3);

void bench_report_text(const struct bench_report *report, FILE *file);
void bench_report_markdown(const struct bench_report *report, FILE *file);
void bench_report_json(const struct bench_report *report, FILE *file);

#endif
