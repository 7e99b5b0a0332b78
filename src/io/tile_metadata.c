/* Autoware's metadata of a tiled map. */
#include "tile_metadata.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "cloud_reader.h"
#include "number_text.h"

/* Makes room for one more tile; the array doubles whenever the count is a power of two. */
static enum ndt_status grow(struct ndt_tile_set *set, struct ndt_error *err)
{
    if (set->count & (set->count - 1))
        return NDT_OK;
    const size_t capacity = set->count ? 2 * set->count : 1;
    struct ndt_tile *tiles = realloc(set->tiles, capacity * sizeof(*tiles));
    if (!tiles)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu tiles", capacity);
    set->tiles = tiles;
    return NDT_OK;
}

enum ndt_status ndt_tile_set_add(struct ndt_tile_set *set, const char *folder, const char *name,
                                 const double min_m[2], struct ndt_error *err)
{
    enum ndt_status status = grow(set, err);
    if (status != NDT_OK)
        return status;
    const size_t size = strlen(folder) + 1 + strlen(name) + 1;
    char *path = malloc(size);
    if (!path)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the name of a tile");
    snprintf(path, size, "%s/%s", folder, name);
    set->tiles[set->count++] = (struct ndt_tile){.path = path, .min_m = {min_m[0], min_m[1]}};
    return NDT_OK;
}

/* ---- metadata: x_resolution, y_resolution, then `name.pcd: [x, y]`, the lower corner of each tile ---- */

/* Largest size of the metadata, one line per tile: enough for a country. */
static const uint64_t METADATA_BYTES_MAX = 64u << 20;

struct metadata {
    const char *path;
    const char *folder;
    struct ndt_tile_set *set;
    double size_m[2]; /* 0: not seen yet */
    yaml_parser_t parser;
    yaml_event_t event; /* last event */
};

static enum ndt_status fail_at(const struct metadata *meta, const char *what, struct ndt_error *err)
{
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: %s", meta->path, meta->event.start_mark.line + 1, what);
}

static enum ndt_status next_event(struct metadata *meta, struct ndt_error *err)
{
    yaml_event_delete(&meta->event);
    if (yaml_parser_parse(&meta->parser, &meta->event))
        return NDT_OK;
    const yaml_parser_t *parser = &meta->parser;
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: %s", meta->path, parser->problem_mark.line + 1,
                    parser->problem ? parser->problem : "not YAML");
}

static enum ndt_status expect(struct metadata *meta, yaml_event_type_t type, const char *what,
                              struct ndt_error *err)
{
    enum ndt_status status = next_event(meta, err);
    if (status == NDT_OK && meta->event.type != type)
        status = fail_at(meta, what, err);
    return status;
}

/* The last scalar as a number. */
static enum ndt_status scalar_number(const struct metadata *meta, double *out, struct ndt_error *err)
{
    const char *at = (const char *)meta->event.data.scalar.value;
    const char *end = at + meta->event.data.scalar.length;
    if (ndt_text_real(&at, end, out) && ndt_text_done(at, end) && isfinite(*out))
        return NDT_OK;
    return fail_at(meta, "not a finite number", err);
}

/* Whether a name stays inside of the directory and has the extension of a cloud file. */
static int is_tile_name(const char *name)
{
    const size_t length = strlen(name);
    return name[0] != '/' && strncmp(name, "../", 3) != 0 && !strstr(name, "/../") && length > 0 &&
           ndt_cloud_format_find(name) != NULL;
}

/* Parses two numbers and `]`, after `[`. */
static enum ndt_status parse_corner(struct metadata *meta, double min_m[2], struct ndt_error *err)
{
    static const char shape[] = "a tile needs two numbers: `name.pcd: [x, y]`";
    for (size_t i = 0; i < 2; i++) {
        enum ndt_status status = expect(meta, YAML_SCALAR_EVENT, shape, err);
        if (status == NDT_OK)
            status = scalar_number(meta, &min_m[i], err);
        if (status != NDT_OK)
            return status;
    }
    return expect(meta, YAML_SEQUENCE_END_EVENT, shape, err);
}

static enum ndt_status parse_tile(struct metadata *meta, const char *name, struct ndt_error *err)
{
    double min_m[2];
    if (!is_tile_name(name))
        return fail_at(meta, "a tile must name a cloud file inside of the directory", err);
    enum ndt_status status = parse_corner(meta, min_m, err);
    return status == NDT_OK ? ndt_tile_set_add(meta->set, meta->folder, name, min_m, err) : status;
}

static enum ndt_status parse_resolution(struct metadata *meta, double *size_m, struct ndt_error *err)
{
    enum ndt_status status = scalar_number(meta, size_m, err);
    if (status == NDT_OK && !(*size_m > 0.0))
        return fail_at(meta, "a resolution must be above 0 m", err);
    return status;
}

static enum ndt_status parse_value(struct metadata *meta, const char *key, struct ndt_error *err)
{
    enum ndt_status status = next_event(meta, err);
    if (status != NDT_OK)
        return status;
    if (meta->event.type == YAML_SEQUENCE_START_EVENT)
        return parse_tile(meta, key, err);
    if (meta->event.type != YAML_SCALAR_EVENT)
        return fail_at(meta, "neither a number nor a tile `name.pcd: [x, y]`", err);
    if (strcmp(key, "x_resolution") == 0)
        return parse_resolution(meta, &meta->size_m[0], err);
    if (strcmp(key, "y_resolution") == 0)
        return parse_resolution(meta, &meta->size_m[1], err);
    return fail_at(meta, "neither x_resolution, y_resolution nor a tile `name.pcd: [x, y]`", err);
}

/* Parses the value of the last key. */
static enum ndt_status parse_pair(struct metadata *meta, struct ndt_error *err)
{
    if (meta->event.type != YAML_SCALAR_EVENT)
        return fail_at(meta, "a key must be a plain name", err);
    char *key = strdup((const char *)meta->event.data.scalar.value);
    if (!key)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", meta->path);
    enum ndt_status status = parse_value(meta, key, err);
    free(key);
    return status;
}

static enum ndt_status parse_document(struct metadata *meta, struct ndt_error *err)
{
    static const char no_mapping[] = "not a mapping of `x_resolution: ...` and tiles";
    enum ndt_status status = expect(meta, YAML_STREAM_START_EVENT, no_mapping, err);
    if (status == NDT_OK)
        status = expect(meta, YAML_DOCUMENT_START_EVENT, no_mapping, err);
    if (status == NDT_OK)
        status = expect(meta, YAML_MAPPING_START_EVENT, no_mapping, err);
    while (status == NDT_OK) {
        status = next_event(meta, err);
        if (status == NDT_OK && meta->event.type == YAML_MAPPING_END_EVENT)
            break;
        if (status == NDT_OK)
            status = parse_pair(meta, err);
    }
    if (status == NDT_OK)
        status = expect(meta, YAML_DOCUMENT_END_EVENT, "something follows the mapping", err);
    if (status == NDT_OK)
        status = expect(meta, YAML_STREAM_END_EVENT, "a second document", err);
    return status;
}

static enum ndt_status set_sizes(struct metadata *meta, struct ndt_error *err)
{
    if (meta->size_m[0] == 0.0 || meta->size_m[1] == 0.0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: x_resolution or y_resolution is missing", meta->path);
    for (size_t i = 0; i < meta->set->count; i++)
        memcpy(meta->set->tiles[i].size_m, meta->size_m, sizeof(meta->size_m));
    return NDT_OK;
}

static enum ndt_status parse_text(struct metadata *meta, const uint8_t *text, size_t size, struct ndt_error *err)
{
    if (!yaml_parser_initialize(&meta->parser))
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", meta->path);
    yaml_parser_set_input_string(&meta->parser, text, size);
    enum ndt_status status = parse_document(meta, err);
    yaml_event_delete(&meta->event);
    yaml_parser_delete(&meta->parser);
    return status == NDT_OK ? set_sizes(meta, err) : status;
}

static enum ndt_status read_text(struct metadata *meta, const struct ndt_input *input, struct ndt_error *err)
{
    if (input->size > METADATA_BYTES_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s: %" PRIu64 " bytes, the limit is %" PRIu64, meta->path, input->size,
                        METADATA_BYTES_MAX);
    uint8_t *text = malloc((size_t)input->size + 1);
    if (!text)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", meta->path);
    enum ndt_status status = ndt_input_read(input, 0, text, (size_t)input->size, err);
    if (status == NDT_OK)
        status = parse_text(meta, text, (size_t)input->size, err);
    free(text);
    return status;
}

enum ndt_status ndt_tile_metadata_read(struct ndt_tile_set *set, const char *folder, const char *path,
                                       struct ndt_error *err)
{
    struct ndt_input input;
    struct metadata meta = {.path = path, .folder = folder, .set = set};
    enum ndt_status status = ndt_input_open(&input, path, err);
    if (status != NDT_OK)
        return status;
    status = read_text(&meta, &input, err);
    ndt_input_close(&input);
    return status;
}
