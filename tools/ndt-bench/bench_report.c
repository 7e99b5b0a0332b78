#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct bench_table *bench_report_table(struct bench_report *report, const char *name, const char *title)
{
    struct bench_table *table = &report->tables[report->count < BENCH_TABLES ? report->count++ : BENCH_TABLES - 1];
    snprintf(table->name, sizeof(table->name), "%s", name);
    snprintf(table->title, sizeof(table->title), "%s", title);
    return table;
}

void bench_report_free(struct bench_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        free(report->tables[i].rows);
    *report = (struct bench_report){0};
}

void bench_row(struct bench_report *report, struct bench_table *table)
{
    if (table->row_count == table->capacity) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 32;
        void *rows = realloc(table->rows, capacity * sizeof(table->rows[0]));
        if (!rows) {
            report->is_incomplete = 1;
            return;
        }
        table->rows = rows;
        table->capacity = capacity;
    }
    memset(table->rows[table->row_count++], 0, sizeof(table->rows[0]));
}

/* The cell of the last row; columns beyond the limit share the last one. */
static struct bench_cell *cell(struct bench_table *table, const char *key)
{
    static struct bench_cell lost; /* stands for cells of a row that could not be allocated */
    size_t i = 0;
    while (i < table->column_count && strcmp(table->keys[i], key) != 0)
        i++;
    if (i == table->column_count && i < BENCH_COLUMNS)
        table->keys[table->column_count++] = key;
    return table->row_count ? &table->rows[table->row_count - 1][i < BENCH_COLUMNS ? i : BENCH_COLUMNS - 1] : &lost;
}

void bench_number(struct bench_table *table, const char *key, int decimals, double value)
{
    struct bench_cell *at = cell(table, key);
    at->kind = BENCH_NUMBER;
    at->number = value;
    snprintf(at->text, sizeof(at->text), isfinite(value) ? "%.*f" : "-", decimals, value);
}

void bench_bool(struct bench_table *table, const char *key, int value)
{
    struct bench_cell *at = cell(table, key);
    at->kind = BENCH_BOOL;
    snprintf(at->text, sizeof(at->text), "%s", value ? "true" : "false");
}

void bench_text(struct bench_table *table, const char *key, const char *format, ...)
{
    struct bench_cell *at = cell(table, key);
    va_list arguments;
    at->kind = BENCH_TEXT;
    va_start(arguments, format);
    vsnprintf(at->text, sizeof(at->text), format, arguments);
    va_end(arguments);
}

void bench_note(struct bench_table *table, const char *format, ...)
{
    va_list arguments;
    if (table->note_count == BENCH_NOTES)
        return;
    va_start(arguments, format);
    vsnprintf(table->notes[table->note_count++], BENCH_CELL_TEXT, format, arguments);
    va_end(arguments);
}

static const char *shown(const struct bench_cell *at)
{
    return at->kind == BENCH_EMPTY ? "-" : at->text;
}

static void print_aligned(const struct bench_table *table, FILE *file)
{
    int widths[BENCH_COLUMNS], is_text[BENCH_COLUMNS];
    for (size_t c = 0; c < table->column_count; c++) {
        widths[c] = (int)strlen(table->keys[c]);
        is_text[c] = 0;
        for (size_t r = 0; r < table->row_count; r++) {
            const int width = (int)strlen(shown(&table->rows[r][c]));
            widths[c] = width > widths[c] ? width : widths[c];
            is_text[c] |= table->rows[r][c].kind == BENCH_TEXT;
        }
    }
    for (size_t r = 0; r <= table->row_count; r++) {
        for (size_t c = 0; c < table->column_count; c++) {
            const char *text = r ? shown(&table->rows[r - 1][c]) : table->keys[c];
            const int is_last = c + 1 == table->column_count;
            fprintf(file, "%*s%s",
                    is_last && is_text[c] ? 0
                    : is_text[c]          ? -widths[c]
                                          : widths[c],
                    text, is_last ? "\n" : "  ");
        }
    }
}

void bench_report_text(const struct bench_report *report, FILE *file)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_table *table = &report->tables[i];
        if (table->is_for_programs)
            continue;
        fprintf(file, "%s%s\n", i ? "\n" : "", table->title);
        print_aligned(table, file);
        for (size_t k = 0; k < table->note_count; k++)
            fprintf(file, "%s\n", table->notes[k]);
    }
}

void bench_report_markdown(const struct bench_report *report, FILE *file)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_table *table = &report->tables[i];
        const size_t heading = strcspn(table->title, ":");
        if (table->is_for_programs)
            continue;
        fprintf(file, "## %.*s\n\n", (int)heading, table->title);
        if (table->title[heading])
            fprintf(file, "%s.\n\n", table->title + heading + 2);
        for (size_t r = 0; r <= table->row_count; r++) {
            for (size_t c = 0; c < table->column_count; c++)
                fprintf(file, "| %s ", r ? shown(&table->rows[r - 1][c]) : table->keys[c]);
            fputs("|\n", file);
            for (size_t c = 0; r == 0 && c < table->column_count; c++)
                fputs(c + 1 < table->column_count ? "|---" : "|---|\n", file);
        }
        fputc('\n', file);
        for (size_t k = 0; k < table->note_count; k++)
            fprintf(file, "* %s\n%s", table->notes[k], k + 1 < table->note_count ? "" : "\n");
    }
}

static void put_string(const char *text, FILE *file)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            fputc(*text, file);
    }
    fputc('"', file);
}

static void put_row(const struct bench_table *table, const struct bench_cell *row, FILE *file)
{
    const char *before = "";
    fputc('{', file);
    for (size_t c = 0; c < table->column_count; c++) {
        if (row[c].kind == BENCH_EMPTY)
            continue;
        fprintf(file, "%s\"%s\": ", before, table->keys[c]);
        before = ", ";
        if (row[c].kind == BENCH_TEXT)
            put_string(row[c].text, file);
        else if (row[c].kind == BENCH_BOOL)
            fputs(row[c].text, file);
        else if (isfinite(row[c].number))
            fprintf(file, "%.9g", row[c].number);
        else
            fputs("null", file);
    }
    fputc('}', file);
}

void bench_report_json(const struct bench_report *report, FILE *file)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_table *table = &report->tables[i];
        fprintf(file, "%s\"%s\": [", i ? ",\n" : "{", table->name);
        for (size_t r = 0; r < table->row_count; r++) {
            fputs(r ? ",\n  " : "\n  ", file);
            put_row(table, table->rows[r], file);
        }
        fputc(']', file);
    }
    fputs("}\n", file);
}
