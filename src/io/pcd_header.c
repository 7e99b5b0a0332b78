#include "pcd_header.h"

#include <inttypes.h>
#include <string.h>

#include "header_entry.h"
#include "number_text.h"

/* FIELDS starts from the defaults of SIZE, TYPE and COUNT, which old files leave out. */
static enum ndt_status parse_fields(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
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
    return header->field_count ? NDT_OK : ndt_entry_fail(entry, "FIELDS names none", err);
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

static enum ndt_status parse_size(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    for (size_t i = 0; i < header->field_count; i++) {
        enum ndt_status status = parse_number(entry, &header->fields[i].size, err);
        if (status != NDT_OK)
            return status;
    }
    return expect_end(entry, err);
}

static enum ndt_status parse_count(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    for (size_t i = 0; i < header->field_count; i++) {
        enum ndt_status status = parse_number(entry, &header->fields[i].count, err);
        if (status != NDT_OK)
            return status;
    }
    return expect_end(entry, err);
}

static enum ndt_status parse_type(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
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

static enum ndt_status parse_width(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    header->has_width = 1;
    return ndt_entry_amount(entry, &header->width, err);
}

static enum ndt_status parse_height(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    return ndt_entry_amount(entry, &header->height, err);
}

static enum ndt_status parse_points(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    header->has_points = 1;
    return ndt_entry_amount(entry, &header->points, err);
}

/* The pose of the sensor is not used: points are taken in the frame they are written in. */
static enum ndt_status parse_ignored(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    (void)header;
    (void)entry;
    (void)err;
    return NDT_OK;
}

static enum ndt_status parse_data(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    static const char *const kinds[] = {
        [NDT_PCD_ASCII] = "ascii", [NDT_PCD_BINARY] = "binary", [NDT_PCD_COMPRESSED] = "binary_compressed"};
    char word[64] = "";
    if (ndt_entry_word(entry, word) && ndt_text_done(entry->at, entry->end))
        for (unsigned kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
            if (strcmp(word, kinds[kind]) == 0) {
                header->data = (enum ndt_pcd_data)kind;
                header->has_data = 1;
            }
    return header->has_data ? NDT_OK : ndt_entry_fail(entry, "DATA is not ascii, binary or binary_compressed", err);
}

static const struct key {
    const char *name;
    enum ndt_status (*parse)(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err);
} keys[] = {{"VERSION", parse_ignored}, {"FIELDS", parse_fields}, {"COLUMNS", parse_fields},
            {"SIZE", parse_size},       {"TYPE", parse_type},     {"COUNT", parse_count},
            {"WIDTH", parse_width},     {"HEIGHT", parse_height}, {"VIEWPOINT", parse_ignored},
            {"POINTS", parse_points},   {"DATA", parse_data}};

static enum ndt_status parse_entry(struct pcd_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    if (entry->key_length == 0 || entry->key[0] == '#')
        return NDT_OK;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (ndt_text_is(entry->key, entry->key_length, keys[i].name))
            return keys[i].parse(header, entry, err);
    return ndt_entry_fail(entry, "no line of a PCD header", err);
}

/* Missing WIDTH, HEIGHT or POINTS follow from the others; those that are there must agree. */
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

static enum ndt_status read_entries(struct pcd_header *header, struct ndt_line_reader *reader,
                                    struct ndt_error *err)
{
    while (!header->has_data) {
        struct ndt_entry entry;
        enum ndt_status status = ndt_entry_next(reader, &entry, err);
        if (status == NDT_END)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: ends after line %zu without a DATA line", entry.path,
                            reader->number);
        if (status == NDT_OK)
            status = parse_entry(header, &entry, err);
        if (status != NDT_OK)
            return status;
    }
    header->offset = reader->offset;
    header->line_count = reader->number;
    return NDT_OK;
}

enum ndt_status pcd_header_read(struct pcd_header *out, const struct ndt_input *input, struct ndt_error *err)
{
    struct ndt_line_reader reader;
    memset(out, 0, sizeof(*out));
    enum ndt_status status = ndt_line_reader_open(&reader, input, 0, 0, err);
    if (status == NDT_OK)
        status = read_entries(out, &reader, err);
    ndt_line_reader_close(&reader);
    if (status == NDT_OK)
        status = check_amounts(out, input->path, err);
    return status == NDT_OK ? check_fields(out, input->path, err) : status;
}
