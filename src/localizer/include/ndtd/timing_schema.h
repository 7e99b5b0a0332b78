/** @file
 * @brief The columns of the timing dump (--timing). CSV header, CSV rows, JSON lines and documentation follow from
 * one table in timing_schema.c; a new column is one row of it.
 *
 * Two kinds of rows share the columns: `iteration`, one per Newton step of the last pass, followed by one `scan`
 * row. Flat numbers, for tables; --results has the whole result message. In CSV the cells that a kind does not have
 * are empty; in JSON lines their keys are missing, and numbers that are not finite are null. Functions are pure. */
#ifndef NDTD_TIMING_SCHEMA_H
#define NDTD_TIMING_SCHEMA_H

#include <stddef.h>
#include <stdio.h>

#include "ndtd/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Types of cells. */
enum ndtd_cell_type {
    NDTD_CELL_I32,
    NDTD_CELL_U64,
    NDTD_CELL_I64,
    NDTD_CELL_REAL,
    NDTD_CELL_US,
    NDTD_CELL_EIGENVALUE, /**< 21 numbers, shown as the smallest |eigenvalue|. */
    NDTD_CELL_OUTCOME,
    NDTD_CELL_STATE
};
/** Structs that hold the value of a cell. */
enum ndtd_cell_source { NDTD_CELL_NONE, NDTD_CELL_SCAN, NDTD_CELL_STEP };

/** Source of a cell: an offset in struct ndtd_scan_record or struct ndt_iteration. */
struct ndtd_cell {
    enum ndtd_cell_source source;
    size_t offset;
};

/** A column of the dump. */
struct ndtd_timing_column {
    const char *name;
    const char *unit; /**< Empty when it has none. */
    const char *help;
    enum ndtd_cell_type type;
    struct ndtd_cell in_iteration; /**< Cell of an iteration row. */
    struct ndtd_cell in_scan;      /**< Cell of a scan row. */
};

/** Number of columns. */
size_t ndtd_timing_column_count(void);
const struct ndtd_timing_column *ndtd_timing_column_at(size_t i); /**< NULL after the last. */

/** Writes one line with the names. The first column, `row`, is the kind of the row. */
void ndtd_timing_csv_header(FILE *file);
/** Write one line; step NULL: the scan row. */
void ndtd_timing_csv_row(FILE *file, const struct ndtd_scan_record *scan, const struct ndt_iteration *step);
/** Writes the row of ndtd_timing_csv_row as a JSON object. */
void ndtd_timing_json_row(FILE *file, const struct ndtd_scan_record *scan, const struct ndt_iteration *step);
/** Prints the description of the columns. */
void ndtd_timing_print_help(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
