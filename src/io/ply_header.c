#include "ply_header.h"

#include <string.h>

#include "header_entry.h"
#include "number_text.h"

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

static enum ndt_status parse_format(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    char kind[64], version[64];
    if (!ndt_entry_word(entry, kind) || !ndt_entry_word(entry, version) || strcmp(version, "1.0") != 0)
        return ndt_entry_fail(entry, "no format of PLY 1.0", err);
    header->is_text = strcmp(kind, "ascii") == 0;
    header->has_format = 1;
    if (header->is_text || strcmp(kind, "binary_little_endian") == 0)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: line %zu: the format is neither ascii nor binary_little_endian",
                    entry->path, entry->number);
}

/* Closes the element whose properties have all been seen. */
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

static enum ndt_status parse_element(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    char name[64];
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

static enum ndt_status parse_property(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    char type_name[64], name[64];
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

static enum ndt_status parse_end(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    header->has_end = 1;
    if (header->stage == PLY_BEFORE_VERTEX)
        return ndt_entry_fail(entry, "the header ends without an element 'vertex'", err);
    return header->stage == PLY_IN_VERTEX ? end_element(header, entry, err) : NDT_OK;
}

static enum ndt_status parse_ignored(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    (void)header;
    (void)entry;
    (void)err;
    return NDT_OK;
}

static const struct key {
    const char *name;
    int needs_format;
    enum ndt_status (*parse)(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err);
} keys[] = {{"comment", 0, parse_ignored}, {"obj_info", 0, parse_ignored},  {"format", 0, parse_format},
            {"element", 1, parse_element}, {"property", 1, parse_property}, {"end_header", 1, parse_end}};

static enum ndt_status parse_entry(struct ply_header *header, struct ndt_entry *entry, struct ndt_error *err)
{
    if (entry->number == 1)
        return ndt_text_is(entry->key, entry->key_length, "ply")
                   ? NDT_OK
                   : ndt_entry_fail(entry, "a PLY file begins with 'ply'", err);
    if (entry->key_length == 0)
        return NDT_OK;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (ndt_text_is(entry->key, entry->key_length, keys[i].name)) {
            if (keys[i].needs_format && !header->has_format)
                return ndt_entry_fail(entry, "must come after the format", err);
            return keys[i].parse(header, entry, err);
        }
    return ndt_entry_fail(entry, "no line of a PLY header", err);
}

static enum ndt_status read_entries(struct ply_header *header, struct ndt_line_reader *reader,
                                    struct ndt_error *err)
{
    while (!header->has_end) {
        struct ndt_entry entry;
        enum ndt_status status = ndt_entry_next(reader, &entry, err);
        if (status == NDT_END)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: ends after line %zu without end_header", entry.path,
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

enum ndt_status ply_header_read(struct ply_header *out, const struct ndt_input *input, struct ndt_error *err)
{
    struct ndt_line_reader reader;
    memset(out, 0, sizeof(*out));
    enum ndt_status status = ndt_line_reader_open(&reader, input, 0, 0, err);
    if (status == NDT_OK)
        status = read_entries(out, &reader, err);
    ndt_line_reader_close(&reader);
    for (size_t i = 0; i < NDT_SLOT_COUNT; i++)
        out->layout.slots[i].stride = (size_t)out->point_size;
    return status;
}
