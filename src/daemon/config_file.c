#include "ndtd/config_file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "ndt_io/input_file.h"

enum { NAME_MAX_BYTES = 200, LIST_BYTES = 2048 };

struct config_reader {
    yaml_parser_t parser;
    struct ndtd_settings *settings;
    const char *file;
    unsigned long line;                            /* of the event being handled, from 1 */
    unsigned long set_in[NDTD_CONFIG_MAX_OPTIONS]; /* line in which an option was given, 0 = not yet */
    struct ndt_error *err;
};

NDT_PRINTF(2, 3) static enum ndt_status refuse(const struct config_reader *reader, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return ndt_fail(reader->err, NDT_ERR_ARGUMENT, "%s:%lu: %s", reader->file, reader->line, text);
}

/* The next event; the caller deletes it after NDT_OK. */
static enum ndt_status next_event(struct config_reader *reader, yaml_event_t *event)
{
    if (!yaml_parser_parse(&reader->parser, event)) {
        reader->line = reader->parser.problem_mark.line + 1;
        return refuse(reader, "not YAML: %s", reader->parser.problem ? reader->parser.problem : "cannot be read");
    }
    reader->line = event->start_mark.line + 1;
    if (event->type == YAML_ALIAS_EVENT) {
        enum ndt_status status =
            refuse(reader, "alias '*%.40s': aliases are not accepted", event->data.alias.anchor);
        yaml_event_delete(event);
        return status;
    }
    return NDT_OK;
}

static const char *scalar_text(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    return strlen(text) == event->data.scalar.length ? text : NULL; /* NULL: holds a zero byte */
}

/* prefix + "." + key; the outer sections of ROS parameter files are not part of the name. */
static enum ndt_status join_name(const struct config_reader *reader, const char *prefix, const char *key,
                                 char *name)
{
    if (strcmp(prefix, "/**") == 0) {
        if (strcmp(key, "ros__parameters") != 0)
            return refuse(reader, "'%.60s' under '/**', where only ros__parameters is allowed", key);
        name[0] = '\0';
        return NDT_OK;
    }
    int used = snprintf(name, NAME_MAX_BYTES, "%s%s%s", prefix, *prefix ? "." : "", key);
    if (used >= NAME_MAX_BYTES)
        return refuse(reader, "name of more than %d bytes", NAME_MAX_BYTES - 1);
    return NDT_OK;
}

static int is_in_section(const char *name, const char *section)
{
    const size_t length = strlen(section);
    return name && strncmp(name, section, length) == 0 && name[length] == '.';
}

static int is_section(const char *name)
{
    for (size_t i = 0; i < ndtd_option_count(); i++)
        if (is_in_section(ndtd_option_at(i)->name, name) || is_in_section(ndtd_option_at(i)->former_name, name))
            return 1;
    return 0;
}

static enum ndt_status mark_as_set(struct config_reader *reader, const struct ndtd_option *option)
{
    const struct ndtd_option *target = ndtd_option_target(option);
    size_t row = (size_t)(target - ndtd_option_at(0));
    if (row < NDTD_CONFIG_MAX_OPTIONS && reader->set_in[row])
        return refuse(reader, "%s was already set in line %lu", target->name, reader->set_in[row]);
    if (row < NDTD_CONFIG_MAX_OPTIONS)
        reader->set_in[row] = reader->line;
    return NDT_OK;
}

static enum ndt_status set_option(struct config_reader *reader, const char *name, const struct ndtd_value *value)
{
    struct ndt_error why;
    const struct ndtd_option *option = ndtd_option_resolve(name);
    if (!option) {
        if (!value->is_list && is_section(name))
            return *value->items[0] ? refuse(reader, "'%s' is a section, not an option", name) : NDT_OK;
        ndtd_option_unknown(name, &why);
        return refuse(reader, "%s", why.text);
    }
    enum ndt_status status = mark_as_set(reader, option);
    if (status == NDT_OK && ndtd_option_set(reader->settings, option, value, &why) != NDT_OK)
        status = refuse(reader, "%s", why.text);
    return status;
}

static enum ndt_status add_item(const struct config_reader *reader, const char *name, const yaml_event_t *event,
                                struct ndtd_value *value, char *storage, size_t *used)
{
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(reader, "%s: a list inside a list", name);
    const char *text = scalar_text(event);
    size_t length = event->data.scalar.length;
    if (!text || value->count == NDTD_VALUE_ITEMS || *used + length + 1 > LIST_BYTES)
        return refuse(reader, "%s: more than %d values, or %d bytes, or a zero byte", name, NDTD_VALUE_ITEMS,
                      LIST_BYTES);
    value->items[value->count++] = strcpy(storage + *used, text);
    *used += length + 1;
    return NDT_OK;
}

static enum ndt_status read_list(struct config_reader *reader, const char *name)
{
    char storage[LIST_BYTES];
    size_t used = 0;
    struct ndtd_value value = {.is_list = 1};
    unsigned long first_line = reader->line;
    for (;;) {
        yaml_event_t event;
        enum ndt_status status = next_event(reader, &event);
        if (status != NDT_OK)
            return status;
        int done = event.type == YAML_SEQUENCE_END_EVENT;
        if (!done)
            status = add_item(reader, name, &event, &value, storage, &used);
        yaml_event_delete(&event);
        if (status != NDT_OK)
            return status;
        if (done)
            break;
    }
    reader->line = first_line;
    return set_option(reader, name, &value);
}

static enum ndt_status read_section(struct config_reader *reader, const char *prefix, int depth);

/* Reads the value of a key. */
static enum ndt_status read_value(struct config_reader *reader, const char *name, int depth)
{
    yaml_event_t event;
    enum ndt_status status = next_event(reader, &event);
    if (status != NDT_OK)
        return status;
    if (event.type == YAML_SEQUENCE_START_EVENT) {
        status = read_list(reader, name);
    } else if (event.type == YAML_MAPPING_START_EVENT) {
        status = ndtd_option_find(name) && !is_section(name) ? refuse(reader, "%s: an option, not a section", name)
                                                             : read_section(reader, name, depth + 1);
    } else {
        struct ndtd_value value = {.count = 1, .items = {scalar_text(&event)}};
        status = value.items[0] ? set_option(reader, name, &value) : refuse(reader, "%s: a zero byte", name);
    }
    yaml_event_delete(&event);
    return status;
}

static enum ndt_status read_section(struct config_reader *reader, const char *prefix, int depth)
{
    if (depth > NDTD_CONFIG_MAX_DEPTH)
        return refuse(reader, "sections deeper than %d", NDTD_CONFIG_MAX_DEPTH);
    for (;;) {
        yaml_event_t event;
        char name[NAME_MAX_BYTES];
        enum ndt_status status = next_event(reader, &event);
        if (status != NDT_OK)
            return status;
        int done = event.type == YAML_MAPPING_END_EVENT;
        if (!done && (event.type != YAML_SCALAR_EVENT || !scalar_text(&event)))
            status = refuse(reader, "a key that is not a scalar");
        else if (!done)
            status = join_name(reader, prefix, scalar_text(&event), name);
        yaml_event_delete(&event);
        if (status == NDT_OK && !done)
            status = read_value(reader, name, depth);
        if (status != NDT_OK || done)
            return status;
    }
}

/* An empty document is an empty configuration. */
static enum ndt_status read_root(struct config_reader *reader, const yaml_event_t *event)
{
    if (event->type == YAML_MAPPING_START_EVENT)
        return read_section(reader, "", 1);
    if (event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0)
        return NDT_OK;
    return refuse(reader, "expected sections and options, not a %s",
                  event->type == YAML_SCALAR_EVENT ? "single value" : "list");
}

static enum ndt_status read_stream(struct config_reader *reader)
{
    int documents = 0;
    for (;;) {
        yaml_event_t event;
        enum ndt_status status = next_event(reader, &event);
        if (status != NDT_OK)
            return status;
        int done = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_DOCUMENT_START_EVENT && documents++)
            status = refuse(reader, "a second document");
        else if (event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SCALAR_EVENT ||
                 event.type == YAML_SEQUENCE_START_EVENT)
            status = read_root(reader, &event);
        yaml_event_delete(&event);
        if (status != NDT_OK || done)
            return status;
    }
}

enum ndt_status ndtd_config_parse(struct ndtd_settings *settings, const char *name, const void *text, size_t size,
                                  struct ndt_error *err)
{
    struct config_reader reader = {.settings = settings, .file = name, .line = 1, .err = err};
    if (size > NDTD_CONFIG_MAX_BYTES)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: more than %zu bytes", name, NDTD_CONFIG_MAX_BYTES);
    if (!yaml_parser_initialize(&reader.parser))
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: out of memory", name);
    yaml_parser_set_input_string(&reader.parser, text, size);
    enum ndt_status status = read_stream(&reader);
    yaml_parser_delete(&reader.parser);
    return status;
}

enum ndt_status ndtd_config_read(struct ndtd_settings *settings, const char *path, struct ndt_error *err)
{
    char *text = NULL;
    size_t size = 0;
    if (strcmp(path, "/dev/null") == 0) /* the one device that is a file: an empty one */
        return ndtd_config_parse(settings, path, "", 0, err);
    enum ndt_status status = ndt_input_file_read(&text, &size, path, NDTD_CONFIG_MAX_BYTES, err);
    if (status == NDT_OK)
        status = ndtd_config_parse(settings, path, text, size, err);
    else if (status != NDT_ERR_MEMORY)
        status = NDT_ERR_ARGUMENT; /* a wrong path is wrong usage */
    free(text);
    return status;
}
