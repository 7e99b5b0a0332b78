#include "map_projector.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "ndt_io/input_file.h"

#define NAME "map_projector_info.yaml"
enum { FILE_BYTES_MAX = 65536 };

struct projector_text {
    char *out;
    size_t size, used;
    char key[64];
    int has_key, is_list, item_count;
};

static void append(struct projector_text *text, const char *between, const char *key, const char *scalar)
{
    const int used = snprintf(text->out + text->used, text->size - text->used, "%s%s %s", text->used ? between : "",
                              key, scalar);
    text->used += used > 0 && (size_t)used < text->size - text->used ? (size_t)used : 0;
}

/* Every second scalar of a mapping is a value; those of a list follow one key. */
static void take_scalar(struct projector_text *text, const char *scalar)
{
    if (text->is_list) {
        const int is_first = text->item_count++ == 0;
        append(text, is_first ? ", " : "", is_first ? text->key : "", scalar);
        return;
    }
    if (!text->has_key) {
        snprintf(text->key, sizeof(text->key), "%s", scalar);
        text->has_key = 1;
        return;
    }
    text->has_key = 0;
    append(text, ", ", text->key, scalar);
}

static void take_event(struct projector_text *text, const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT) {
        take_scalar(text, (const char *)event->data.scalar.value);
        return;
    }
    if (event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_SEQUENCE_END_EVENT) {
        text->is_list = event->type == YAML_SEQUENCE_START_EVENT;
        text->item_count = 0;
        text->has_key = 0;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        text->is_list = text->has_key = 0; /* the name of a nested mapping says less than its keys */
    }
}

static int parse(const char *bytes, size_t size, struct projector_text *text)
{
    yaml_parser_t parser;
    yaml_event_t event;
    int is_done = 0, is_good = 1;
    if (!yaml_parser_initialize(&parser))
        return 0;
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, size);
    while (!is_done && is_good) {
        is_good = yaml_parser_parse(&parser, &event);
        if (!is_good)
            break;
        take_event(text, &event);
        is_done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return is_good;
}

static int find(const char *map, char *path, size_t size)
{
    struct stat info;
    char folder[PATH_MAX];
    const int is_folder = stat(map, &info) == 0 && S_ISDIR(info.st_mode);
    if (!realpath(map, folder))
        return 0;
    for (int level = 0; level < 2; level++) {
        const char *at = level == 0 && is_folder ? folder : dirname(folder);
        const int used = snprintf(path, size, "%s/" NAME, at);
        if (used > 0 && (size_t)used < size && stat(path, &info) == 0)
            return 1;
    }
    return 0;
}

int map_projector_read(const char *map, char *path, size_t path_size, char *text, size_t size)
{
    struct projector_text into = {.out = text, .size = size};
    struct ndt_error err = {""};
    char *bytes;
    size_t length;
    text[0] = '\0';
    if (!find(map, path, path_size))
        return 0;
    if (ndt_input_file_read(&bytes, &length, path, FILE_BYTES_MAX, &err) != NDT_OK) {
        snprintf(text, size, "%s", err.text);
        return -1;
    }
    const int is_good = parse(bytes, length, &into) && into.used > 0;
    free(bytes);
    if (!is_good)
        snprintf(text, size, "%s: not YAML of keys and values", path);
    return is_good ? 1 : -1;
}
