/* PCD files, version 0.7 and the older variants that PCL reads. */
#include <inttypes.h>
#include <lzf.h>
#include <stdlib.h>
#include <string.h>

#include "cloud_reader.h"
#include "input.h"
#include "ndt_io/cloud_file.h"
#include "number_text.h"

enum { PCD_MAX_FIELDS = 256 };

struct pcd_field {
    char name[NDT_WORD_SIZE]; /* "_" is padding */
    char kind;                /* TYPE: I, U or F */
    uint64_t size, count;     /* each 1 .. NDT_POINT_SIZE_MAX */
};

struct pcd_header {
    size_t field_count;
    struct pcd_field fields[PCD_MAX_FIELDS];
    uint64_t width, height, points;
    int has_width, has_points;
    enum ndt_pcd_data data;
    uint64_t offset;   /* offset of the points in the file */
    size_t line_count; /* lines of the header */
};

/* ---- the header ---- */

/* Parses FIELDS, which sets the defaults of SIZE, TYPE and COUNT: old files omit these. */
static enum ndt_status parse_fields(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct pcd_header *header = out;
    header->field_count = 0;
    while (!ndt_text_done(entry->at, entry->end)) {
        if (header->field_count == PCD_MAX_FIELDS)
            return ndt_fail(err, NDT_ERR_LIMIT, "%s: line %zu: more than %d fields", entry->path, entry->number,
                            PCD_MAX_FIELDS);
        struct pcd_field *field = &header->fields[header->field_count++];
        *field = (struct pcd_field){.kind = 'F', .size = 4, .count = 1};
        if (!ndt_entry_word(entry, field->name))
            return ndt_entry_fail(entry, "a field name is longer than 63 bytes", err);
    }
    return header->field_count ? NDT_OK : ndt_entry_fail(entry, "FIELDS is empty", err);
}

static enum ndt_status parse_number(struct ndt_entry *entry, uint64_t *out, struct ndt_error *err)
{
    int64_t value;
    if (ndt_text_done(entry->at, entry->end))
        return ndt_entry_fail(entry, "fewer entries than in FIELDS", err);
    if (!ndt_text_whole(&entry->at, entry->end, &value) || value < 1 || value > (int64_t)NDT_POINT_SIZE_MAX)
        return ndt_entry_fail(entry, "an entry is not in 1 .. 65536", err);
    *out = (uint64_t)value;
    return NDT_OK;
}

static enum ndt_status expect_end(const struct ndt_entry *entry, struct ndt_error *err)
{
    return ndt_text_done(entry->at, entry->end)
               ? NDT_OK
               : ndt_entry_fail(entry, "more entries than in FIELDS, which must come before", err);
}

static enum ndt_status parse_size(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct pcd_header *header = out;
    for (size_t i = 0; i < header->field_count; i++) {
        enum ndt_status status = parse_number(entry, &header->fields[i].size, err);
        if (status != NDT_OK)
            return status;
    }
    return expect_end(entry, err);
}

static enum ndt_status parse_count(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct pcd_header *header = out;
    for (size_t i = 0; i < header->field_count; i++) {
        enum ndt_status status = parse_number(entry, &header->fields[i].count, err);
        if (status != NDT_OK)
            return status;
    }
    return expect_end(entry, err);
}

static enum ndt_status parse_type(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct pcd_header *header = out;
    const char *word;
    size_t length;
    for (size_t i = 0; i < header->field_count; i++) {
        if (!ndt_text_word(&entry->at, entry->end, &word, &length))
            return ndt_entry_fail(entry, "fewer entries than in FIELDS", err);
        if (length != 1 || !memchr("IUF", word[0], 3))
            return ndt_entry_fail(entry, "a TYPE is not I, U or F", err);
        header->fields[i].kind = word[0];
    }
    return expect_end(entry, err);
}

static enum ndt_status parse_width(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct pcd_header *header = out;
    header->has_width = 1;
    return ndt_entry_amount(entry, &header->width, err);
}

static enum ndt_status parse_height(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct pcd_header *header = out;
    return ndt_entry_amount(entry, &header->height, err);
}

static enum ndt_status parse_points(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct pcd_header *header = out;
    header->has_points = 1;
    return ndt_entry_amount(entry, &header->points, err);
}

/* Ignores VIEWPOINT: points stay in the frame of the file. */
static enum ndt_status parse_ignored(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    (void)out;
    (void)entry;
    (void)err;
    return NDT_OK;
}

static enum ndt_status parse_data(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct pcd_header *header = out;
    static const char *const kinds[] = {
        [NDT_PCD_ASCII] = "ascii", [NDT_PCD_BINARY] = "binary", [NDT_PCD_COMPRESSED] = "binary_compressed"};
    char word[NDT_WORD_SIZE];
    if (ndt_entry_word(entry, word) && ndt_text_done(entry->at, entry->end))
        for (unsigned kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
            if (strcmp(word, kinds[kind]) == 0) {
                header->data = (enum ndt_pcd_data)kind;
                return NDT_OK;
            }
    return ndt_entry_fail(entry, "DATA is not ascii, binary or binary_compressed", err);
}

static const struct ndt_header_key keys[] = {
    {"VERSION", parse_ignored},   {"FIELDS", parse_fields}, {"COLUMNS", parse_fields}, {"SIZE", parse_size},
    {"TYPE", parse_type},         {"COUNT", parse_count},   {"WIDTH", parse_width},    {"HEIGHT", parse_height},
    {"VIEWPOINT", parse_ignored}, {"POINTS", parse_points}, {"DATA", parse_data}};
static const struct ndt_header_syntax syntax = {
    .format = "PCD", .last = "DATA", .comment = '#', .keys = keys, .key_count = sizeof(keys) / sizeof(keys[0])};

/* Checks WIDTH, HEIGHT and POINTS: missing ones follow from the others, and existing ones must agree. */
static enum ndt_status check_amounts(struct pcd_header *header, const char *path, struct ndt_error *err)
{
    uint64_t product;
    if (!header->has_width && !header->has_points)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: neither WIDTH nor POINTS in the header", path);
    if (header->width == 0 && header->height == 0)
        header->width = header->points;
    if (header->height == 0)
        header->height = 1;
    const int overflow = __builtin_mul_overflow(header->width, header->height, &product);
    if (!header->has_points)
        header->points = product;
    if (overflow || product != header->points)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: WIDTH %" PRIu64 " times HEIGHT %" PRIu64 " is not POINTS %" PRIu64, path,
                        header->width, header->height, header->points);
    return NDT_OK;
}

static enum ndt_status check_fields(const struct pcd_header *header, const char *path, struct ndt_error *err)
{
    for (size_t i = 0; i < header->field_count; i++) {
        const struct pcd_field *field = &header->fields[i];
        if (strcmp(field->name, "_") != 0 && ndt_scalar_find(field->kind, field->size) == NDT_SCALAR_NONE)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: field %zu: there is no TYPE %c with SIZE %" PRIu64, path,
                            i + 1, field->kind, field->size);
    }
    return NDT_OK;
}

/* Reads up to the DATA line and checks that all lines agree with each other. */
static enum ndt_status read_header(struct pcd_header *out, const struct ndt_input *input, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    enum ndt_status status = ndt_header_read(&syntax, input, out, &out->offset, &out->line_count, err);
    if (status == NDT_OK)
        status = check_amounts(out, input->path, err);
    return status == NDT_OK ? check_fields(out, input->path, err) : status;
}

/* ---- the points ---- */

static int is_padding(const struct pcd_field *field)
{
    return strcmp(field->name, "_") == 0;
}

/* Lays out fields one after the other within each point: bytes, or words of a line. */
static void lay_out_points(struct ndt_cloud_body *body, const struct pcd_header *header)
{
    const int is_text = header->data == NDT_PCD_ASCII;
    body->size = 0;
    for (size_t i = 0; i < header->field_count; i++)
        body->size += header->fields[i].count * (is_text ? 1 : header->fields[i].size);
    size_t offset = 0;
    for (size_t i = 0; i < header->field_count; i++) {
        const struct pcd_field *field = &header->fields[i];
        ndt_layout_bind(&body->layout, field->name, ndt_scalar_find(field->kind, field->size), offset, body->size);
        offset += field->count * (is_text ? 1 : field->size);
    }
}

/* Lays out compressed data: one column per field. PCL omits padding, other writers may not. */
static void lay_out_columns(struct ndt_cloud_body *body, const struct pcd_header *header, int with_padding)
{
    memset(&body->layout, 0, sizeof(body->layout));
    body->size = 0;
    for (size_t i = 0; i < header->field_count; i++) {
        const struct pcd_field *field = &header->fields[i];
        if (is_padding(field) && !with_padding)
            continue;
        const size_t width = field->count * field->size;
        /* The offset may wrap for hostile counts; the caller compares the total before it uses an offset. */
        ndt_layout_bind(&body->layout, field->name, ndt_scalar_find(field->kind, field->size),
                        (size_t)body->count * body->size, width);
        body->size += width;
    }
}

static int columns_fit(const struct ndt_cloud_body *body, uint64_t bytes)
{
    uint64_t needed;
    return !__builtin_mul_overflow(body->count, (uint64_t)body->size, &needed) && needed == bytes;
}

static enum ndt_status check_sizes(struct ndt_cloud_body *body, const struct pcd_header *header,
                                   const uint32_t sizes[2], struct ndt_error *err)
{
    const uint64_t best_ratio = 264 / 3; /* LZF: at most 264 bytes from 3 */
    const uint64_t rest = body->input->size - body->offset - 2 * sizeof(uint32_t);
    if (sizes[0] > rest)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: announces %" PRIu32 " compressed bytes at byte %" PRIu64 ", but only %" PRIu64
                        " follow",
                        body->input->path, sizes[0], body->offset, rest);
    lay_out_columns(body, header, 0);
    if (!columns_fit(body, sizes[1]))
        lay_out_columns(body, header, 1);
    if (!columns_fit(body, sizes[1]) || sizes[1] > sizes[0] * best_ratio)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: announces %" PRIu32 " bytes from %" PRIu32 " compressed ones, for %" PRIu64
                        " points of %zu bytes",
                        body->input->path, sizes[1], sizes[0], body->count, body->size);
    return NDT_OK;
}

static enum ndt_status decompress(const struct ndt_cloud_body *body, const uint32_t sizes[2], uint8_t *packed,
                                  uint8_t *data, struct ndt_error *err)
{
    enum ndt_status status =
        ndt_input_read(body->input, body->offset + 2 * sizeof(uint32_t), packed, sizes[0], err);
    if (status != NDT_OK)
        return status;
    if (lzf_decompress(packed, sizes[0], data, sizes[1]) != sizes[1])
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: the compressed data at byte %" PRIu64 " is damaged",
                        body->input->path, body->offset);
    return NDT_OK;
}

static enum ndt_status read_compressed(struct ndt_cloud_body *body, const struct pcd_header *header,
                                       struct ndt_cloud *cloud, struct ndt_error *err)
{
    uint32_t sizes[2]; /* compressed, uncompressed */
    if (body->count == 0)
        return ndt_body_read_memory(body, NULL, cloud, err);
    enum ndt_status status = ndt_input_read(body->input, body->offset, sizes, sizeof(sizes), err);
    if (status == NDT_OK)
        status = check_sizes(body, header, sizes, err);
    if (status != NDT_OK)
        return status;
    uint8_t *packed = malloc((size_t)sizes[0] + 1);
    uint8_t *data = malloc((size_t)sizes[1] + 1);
    if (!packed || !data)
        status = ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for %" PRIu32 " bytes", body->input->path, sizes[1]);
    else
        status = decompress(body, sizes, packed, data, err);
    free(packed);
    if (status == NDT_OK)
        status = ndt_body_read_memory(body, data, cloud, err);
    free(data);
    return status;
}

enum ndt_status ndt_pcd_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct pcd_header header;
    enum ndt_status status = read_header(&header, input, err);
    if (status != NDT_OK)
        return status;
    struct ndt_cloud_body body = {.input = input,
                                  .offset = header.offset,
                                  .lines_before = header.line_count,
                                  .is_last = 1,
                                  .count = header.points};
    lay_out_points(&body, &header);
    switch (header.data) {
    case NDT_PCD_ASCII:
        return ndt_body_read_text(&body, cloud, err);
    case NDT_PCD_COMPRESSED:
        return read_compressed(&body, &header, cloud, err);
    case NDT_PCD_BINARY:
        break;
    }
    return ndt_body_read_binary(&body, cloud, err);
}
