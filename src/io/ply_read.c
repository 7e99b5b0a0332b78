/* PLY files: position and layout of the vertices. */
#include <inttypes.h>
#include <string.h>

#include "cloud_reader.h"
#include "input.h"
#include "number_text.h"

enum ply_stage { PLY_BEFORE_VERTEX, PLY_IN_VERTEX, PLY_AFTER_VERTEX };

struct ply_header {
    int has_format, is_text;
    enum ply_stage stage; /* stage of the element whose properties are being read */
    /* The element in work. */
    int has_element, has_list;
    uint64_t count, size; /* size: bytes of one element; in text its words */
    /* The result. */
    uint64_t skip;   /* bytes, in text lines, between the header and the first vertex */
    uint64_t points; /* number of vertices */
    uint64_t point_size;
    struct ndt_point_layout layout;
    uint64_t offset; /* offset of the end of the header */
    size_t line_count;
};

/* ---- the header ---- */

static const struct type_name {
    const char *name;
    enum ndt_scalar type;
} type_names[] = {{"float", NDT_F32}, {"float32", NDT_F32}, {"double", NDT_F64}, {"float64", NDT_F64},
                  {"char", NDT_I8},   {"int8", NDT_I8},     {"uchar", NDT_U8},   {"uint8", NDT_U8},
                  {"short", NDT_I16}, {"int16", NDT_I16},   {"ushort", NDT_U16}, {"uint16", NDT_U16},
                  {"int", NDT_I32},   {"int32", NDT_I32},   {"uint", NDT_U32},   {"uint32", NDT_U32},
                  {"int64", NDT_I64}, {"uint64", NDT_U64}};

static enum ndt_scalar find_type(const char *name)
{
    for (size_t i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++)
        if (strcmp(name, type_names[i].name) == 0)
            return type_names[i].type;
    return NDT_SCALAR_NONE;
}

static enum ndt_status parse_format(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct ply_header *header = out;
    char kind[NDT_WORD_SIZE], version[NDT_WORD_SIZE];
    if (!ndt_entry_word(entry, kind) || !ndt_entry_word(entry, version) || strcmp(version, "1.0") != 0)
        return ndt_entry_fail(entry, "not a format of PLY 1.0", err);
    header->is_text = strcmp(kind, "ascii") == 0;
    header->has_format = 1;
    if (header->is_text || strcmp(kind, "binary_little_endian") == 0)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: line %zu: the format is neither ascii nor binary_little_endian",
                    entry->path, entry->number);
}

/* Completes the element whose properties have all been read. */
static enum ndt_status end_element(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    uint64_t skipped = header->count;
    int overflow = 0;
    if (header->stage == PLY_IN_VERTEX) {
        header->points = header->count;
        header->point_size = header->size;
    } else if (header->stage == PLY_BEFORE_VERTEX && header->has_element) {
        if (header->has_list && !header->is_text && header->count > 0)
            return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                            "%s: line %zu: the element above it has lists and comes before the vertices: these "
                            "cannot be found in a binary file",
                            entry->path, entry->number);
        if (!header->is_text)
            overflow = __builtin_mul_overflow(skipped, header->size, &skipped);
        overflow |= __builtin_add_overflow(header->skip, skipped, &header->skip);
    }
    return overflow ? ndt_entry_fail(entry, "the elements above it are larger than any file", err) : NDT_OK;
}

static enum ndt_status parse_element(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct ply_header *header = out;
    char name[NDT_WORD_SIZE];
    if (!header->has_format)
        return ndt_entry_fail(entry, "must come after the format", err);
    enum ndt_status status = end_element(header, entry, err);
    if (status != NDT_OK)
        return status;
    if (!ndt_entry_word(entry, name))
        return ndt_entry_fail(entry, "an element without a name", err);
    const int is_vertex = strcmp(name, "vertex") == 0;
    if (is_vertex && header->stage != PLY_BEFORE_VERTEX)
        return ndt_entry_fail(entry, "a second element 'vertex'", err);
    if (is_vertex)
        header->stage = PLY_IN_VERTEX;
    else if (header->stage == PLY_IN_VERTEX)
        header->stage = PLY_AFTER_VERTEX;
    header->has_element = 1;
    header->has_list = 0;
    header->size = 0;
    return ndt_entry_amount(entry, &header->count, err);
}

static enum ndt_status parse_list(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    header->has_list = 1;
    if (header->stage != PLY_IN_VERTEX)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: line %zu: lists in the element 'vertex' are not supported",
                    entry->path, entry->number);
}

static enum ndt_status parse_property(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct ply_header *header = out;
    char type_name[NDT_WORD_SIZE], name[NDT_WORD_SIZE];
    if (!header->has_format)
        return ndt_entry_fail(entry, "must come after the format", err);
    if (!header->has_element)
        return ndt_entry_fail(entry, "a property before any element", err);
    if (!ndt_entry_word(entry, type_name))
        return ndt_entry_fail(entry, "a property without a type", err);
    if (strcmp(type_name, "list") == 0)
        return parse_list(header, entry, err);
    const enum ndt_scalar type = find_type(type_name);
    if (type == NDT_SCALAR_NONE)
        return ndt_entry_fail(entry, "a property of an unknown type", err);
    if (!ndt_entry_word(entry, name) || !ndt_text_done(entry->at, entry->end))
        return ndt_entry_fail(entry, "a property needs one name of at most 63 bytes", err);
    if (header->stage == PLY_IN_VERTEX)
        ndt_layout_bind(&header->layout, name, type, header->size, 0);
    header->size += header->is_text ? 1 : ndt_scalar_size(type);
    return NDT_OK;
}

static enum ndt_status parse_end(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    struct ply_header *header = out;
    if (!header->has_format)
        return ndt_entry_fail(entry, "must come after the format", err);
    if (header->stage == PLY_BEFORE_VERTEX)
        return ndt_entry_fail(entry, "the header ends without an element 'vertex'", err);
    return header->stage == PLY_IN_VERTEX ? end_element(header, entry, err) : NDT_OK;
}

static enum ndt_status parse_ignored(void *out, struct ndt_entry *entry, struct ndt_error *err)
{
    (void)out;
    (void)entry;
    (void)err;
    return NDT_OK;
}

static const struct ndt_header_key keys[] = {{"comment", parse_ignored},   {"obj_info", parse_ignored},
                                             {"format", parse_format},     {"element", parse_element},
                                             {"property", parse_property}, {"end_header", parse_end}};
static const struct ndt_header_syntax syntax = {.format = "PLY",
                                                .first = "ply",
                                                .last = "end_header",
                                                .keys = keys,
                                                .key_count = sizeof(keys) / sizeof(keys[0])};

static enum ndt_status read_header(struct ply_header *out, const struct ndt_input *input, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    enum ndt_status status = ndt_header_read(&syntax, input, out, &out->offset, &out->line_count, err);
    for (size_t i = 0; i < NDT_SLOT_COUNT; i++)
        out->layout.slots[i].stride = (size_t)out->point_size;
    return status;
}

/* ---- the vertices ---- */

/* Skips the lines of the elements before the vertices in text, one for each. */
static enum ndt_status skip_lines(struct ndt_cloud_body *body, uint64_t count, struct ndt_error *err)
{
    struct ndt_line_reader reader;
    const char *line, *end;
    enum ndt_status status = ndt_line_reader_open(&reader, body->input, body->offset, body->lines_before, err);
    for (uint64_t i = 0; status == NDT_OK && i < count; i++)
        status = ndt_line_next(&reader, &line, &end, err);
    body->offset = reader.offset;
    body->lines_before = reader.number;
    ndt_line_reader_close(&reader);
    if (status == NDT_END)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: ends after line %zu, before the vertices", body->input->path,
                        body->lines_before);
    return status;
}

static enum ndt_status skip_bytes(struct ndt_cloud_body *body, uint64_t count, struct ndt_error *err)
{
    const uint64_t rest = body->input->size - body->offset;
    if (count > rest)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: the header announces %" PRIu64 " bytes before the vertices, but only %" PRIu64
                        " follow it",
                        body->input->path, count, rest);
    body->offset += count;
    return NDT_OK;
}

enum ndt_status ndt_ply_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct ply_header header;
    enum ndt_status status = read_header(&header, input, err);
    if (status != NDT_OK)
        return status;
    struct ndt_cloud_body body = {.input = input,
                                  .offset = header.offset,
                                  .lines_before = header.line_count,
                                  .is_last = header.stage == PLY_IN_VERTEX,
                                  .count = header.points,
                                  .size = (size_t)header.point_size,
                                  .layout = header.layout};
    if (header.is_text) {
        status = skip_lines(&body, header.skip, err);
        return status == NDT_OK ? ndt_body_read_text(&body, cloud, err) : status;
    }
    status = skip_bytes(&body, header.skip, err);
    return status == NDT_OK ? ndt_body_read_binary(&body, cloud, err) : status;
}
