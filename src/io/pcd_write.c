#include <lzf.h>
#include <stdlib.h>
#include <string.h>

#include "ndt_io/cloud_file.h"
#include "ndt_io/output_file.h"
#include "number_text.h"

enum { COLUMNS_MAX = 5, CHUNK_POINTS = 2048 };

/* A field of the file: its source and its width. */
struct column {
    const char *name;
    const float *value;
    double origin_m;
    size_t size; /* 4, or 8 for coordinates relative to an origin */
};
struct table {
    size_t column_count, row_count, row_size;
    struct column columns[COLUMNS_MAX];
};

static void add_column(struct table *table, const char *name, const float *value, double origin_m, size_t size)
{
    table->columns[table->column_count++] = (struct column){name, value, origin_m, size};
    table->row_size += size;
}

static void make_table(struct table *table, const struct ndt_cloud *cloud)
{
    const double *origin_m = cloud->origin_m;
    const size_t size = origin_m[0] != 0.0 || origin_m[1] != 0.0 || origin_m[2] != 0.0 ? 8 : 4;
    memset(table, 0, sizeof(*table));
    table->row_count = cloud->count;
    add_column(table, "x", cloud->x_m, origin_m[0], size);
    add_column(table, "y", cloud->y_m, origin_m[1], size);
    add_column(table, "z", cloud->z_m, origin_m[2], size);
    if (cloud->fields & NDT_CLOUD_INTENSITY)
        add_column(table, "intensity", cloud->intensity, 0.0, 4);
    if (cloud->fields & NDT_CLOUD_TIME)
        add_column(table, "time", cloud->time_s, 0.0, 4);
}

static void write_header(FILE *file, const struct table *table, enum ndt_pcd_data data)
{
    static const char *const kinds[] = {
        [NDT_PCD_ASCII] = "ascii", [NDT_PCD_BINARY] = "binary", [NDT_PCD_COMPRESSED] = "binary_compressed"};
    fputs("# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS", file);
    for (size_t i = 0; i < table->column_count; i++)
        fprintf(file, " %s", table->columns[i].name);
    fputs("\nSIZE", file);
    for (size_t i = 0; i < table->column_count; i++)
        fprintf(file, " %zu", table->columns[i].size);
    fputs("\nTYPE", file);
    for (size_t i = 0; i < table->column_count; i++)
        fputs(" F", file);
    fputs("\nCOUNT", file);
    for (size_t i = 0; i < table->column_count; i++)
        fputs(" 1", file);
    fprintf(file, "\nWIDTH %zu\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %zu\nDATA %s\n", table->row_count,
            table->row_count, kinds[data]);
}

static void write_text(FILE *file, const struct table *table)
{
    for (size_t row = 0; row < table->row_count; row++)
        for (size_t i = 0; i < table->column_count; i++) {
            const struct column *column = &table->columns[i];
            const char end = i + 1 < table->column_count ? ' ' : '\n';
            /* With this number of digits the same value is read back. */
            if (column->size == 8)
                fprintf(file, "%.17g%c", column->origin_m + column->value[row], end);
            else
                fprintf(file, "%.9g%c", (double)column->value[row], end);
        }
}

/* Writes rows first .. first + count - 1 of one column, `stride` bytes apart. */
static void put_column(const struct column *column, size_t first, size_t count, uint8_t *out, size_t stride)
{
    const float *value = column->value + first;
    for (size_t i = 0; i < count; i++) {
        const double absolute = column->origin_m + value[i];
        memcpy(out + i * stride, column->size == 8 ? (const void *)&absolute : (const void *)&value[i],
               column->size);
    }
}

static enum ndt_status write_binary(FILE *file, const struct table *table, struct ndt_error *err)
{
    uint8_t *chunk = malloc(CHUNK_POINTS * table->row_size);
    if (!chunk)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a buffer");
    for (size_t row = 0; row < table->row_count; row += CHUNK_POINTS) {
        const size_t left = table->row_count - row;
        const size_t count = left < CHUNK_POINTS ? left : CHUNK_POINTS;
        uint8_t *out = chunk;
        for (size_t i = 0; i < table->column_count; i++) {
            put_column(&table->columns[i], row, count, out, table->row_size);
            out += table->columns[i].size;
        }
        fwrite(chunk, table->row_size, count, file);
    }
    free(chunk);
    return NDT_OK;
}

/* Writes compressed data; `data` holds the columns one after the other. */
static enum ndt_status write_packed(FILE *file, const uint8_t *data, size_t size, struct ndt_error *err)
{
    const size_t room = size + size / 16 + 64; /* incompressible data grow by 1 part in 32 */
    uint8_t *packed = malloc(room);
    if (!packed)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu bytes", room);
    const unsigned packed_size = size ? lzf_compress(data, (unsigned)size, packed, (unsigned)room) : 0;
    const uint32_t sizes[2] = {packed_size, (uint32_t)size};
    fwrite(sizes, sizeof(sizes), 1, file);
    fwrite(packed, 1, packed_size, file);
    free(packed);
    return size && !packed_size ? ndt_fail(err, NDT_ERR_IO, "the points cannot be compressed") : NDT_OK;
}

static enum ndt_status write_compressed(FILE *file, const struct table *table, struct ndt_error *err)
{
    const size_t size = table->row_count * table->row_size;
    if (size + size / 16 + 64 > UINT32_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu bytes are more than binary_compressed can hold (4 GiB)", size);
    uint8_t *data = malloc(size + 1);
    if (!data)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu bytes", size);
    uint8_t *out = data;
    for (size_t i = 0; i < table->column_count; i++) {
        put_column(&table->columns[i], 0, table->row_count, out, table->columns[i].size);
        out += table->row_count * table->columns[i].size;
    }
    enum ndt_status status = write_packed(file, data, size, err);
    free(data);
    return status;
}

static enum ndt_status write_cloud(FILE *file, const struct table *table, enum ndt_pcd_data data,
                                   struct ndt_error *err)
{
    write_header(file, table, data);
    switch (data) {
    case NDT_PCD_BINARY:
        return write_binary(file, table, err);
    case NDT_PCD_COMPRESSED:
        return write_compressed(file, table, err);
    case NDT_PCD_ASCII:
        break;
    }
    const locale_t callers = uselocale(ndt_text_locale());
    write_text(file, table);
    uselocale(callers);
    return NDT_OK;
}

enum ndt_status ndt_pcd_write(const struct ndt_cloud *cloud, const char *path, enum ndt_pcd_data data,
                              struct ndt_error *err)
{
    struct table table;
    struct ndt_output out;
    if ((unsigned)data > NDT_PCD_COMPRESSED)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: no kind of PCD data has the number %d", path, (int)data);
    make_table(&table, cloud);
    enum ndt_status status = ndt_output_open(&out, path, err);
    if (status != NDT_OK)
        return status;
    status = write_cloud(out.file, &table, data, err);
    if (status == NDT_OK)
        return ndt_output_commit(&out, err);
    ndt_output_discard(&out);
    return ndt_fail_prefix(err, status, "%s", path);
}
