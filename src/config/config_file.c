#include "ndtd/config_file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "ndt_io/input_file.h"
#include "ndtd/foreign_keys.h"
#include "ndtd/log.h"

enum { NAME_MAX_BYTES = 200, LIST_BYTES = 2048 };

struct config_reader {
    yaml_parser_t parser;
    struct ndtd_settings *settings;
    const char *file;
    unsigned long line;                                       /* line of the event in work, from 1 */
    unsigned long set_in[NDTD_CONFIG_MAX_OPTIONS];            /* line in which an option was given, 0 = not yet */
    const struct ndtd_option *given[NDTD_CONFIG_MAX_OPTIONS]; /* options of these names */
    unsigned long foreign_in[NDTD_FOREIGN_KEYS_MAX];          /* line in which a key of Autoware was given */
    int is_wrapped;                                           /* the file has ros__parameters */
    int is_foreign;                                           /* a file of Autoware */
    int has_switch, is_switched_on;                           /* see ndtd_foreign_covariance */
    struct ndtd_faults *faults;
    struct ndtd_faults unknown; /* names in ros__parameters: faults only in a file that is not of Autoware */
};

/* Notes a fault; reading goes on. */
NDT_PRINTF(2, 3) static void refuse(const struct config_reader *reader, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ndtd_faults_add(reader->faults, "%s:%lu: %s", reader->file, reader->line, text);
}

static void refuse_unknown(struct config_reader *reader, const char *text)
{
    ndtd_faults_add(reader->is_wrapped ? &reader->unknown : reader->faults, "%s:%lu: %s", reader->file,
                    reader->line, text);
}

/* Reads the next event, which the caller deletes; 0: the rest cannot be read. */
static int next_event(struct config_reader *reader, yaml_event_t *event)
{
    if (!yaml_parser_parse(&reader->parser, event)) {
        reader->line = reader->parser.problem_mark.line + 1;
        const char *problem = reader->parser.problem ? reader->parser.problem : "cannot be read";
        refuse(reader, "not YAML: %s%s", problem,
               strstr(problem, "cannot start any token") ? " (a tab? lines are indented by spaces)" : "");
        return 0;
    }
    reader->line = event->start_mark.line + 1;
    if (event->type == YAML_ALIAS_EVENT)
        refuse(reader, "alias '*%.40s': aliases are not accepted", event->data.alias.anchor);
    return 1;
}

static int opens(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT;
}

static int closes(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT;
}

/* Limits the depth, because libyaml takes time in proportion to its square. */
static int is_too_deep(const struct config_reader *reader, int depth)
{
    if (depth > NDTD_CONFIG_MAX_DEPTH)
        refuse(reader, "sections deeper than %d", NDTD_CONFIG_MAX_DEPTH);
    return depth > NDTD_CONFIG_MAX_DEPTH;
}

/* Passes over the rest of `depth` sections or lists. */
static int skip(struct config_reader *reader, int depth)
{
    while (depth > 0) {
        yaml_event_t event;
        if (is_too_deep(reader, depth) || !next_event(reader, &event))
            return 0;
        depth += opens(&event) - closes(&event);
        yaml_event_delete(&event);
    }
    return 1;
}

static int skip_value(struct config_reader *reader)
{
    yaml_event_t event;
    if (!next_event(reader, &event))
        return 0;
    const int depth = opens(&event);
    yaml_event_delete(&event);
    return skip(reader, depth);
}

static const char *scalar_text(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    return strlen(text) == event->data.scalar.length ? text : NULL; /* NULL: the text has a zero byte */
}

/* Joins prefix + "." + key; the outer sections of ROS parameter files are not part of the name. */
static int join_name(struct config_reader *reader, const char *prefix, const char *key, char *name)
{
    if (*prefix && strcmp(key, "ros__parameters") == 0 && !strchr(prefix, '.')) {
        reader->is_wrapped = 1;
        name[0] = '\0';
        return 1;
    }
    const int used = snprintf(name, NAME_MAX_BYTES, "%s%s%s", prefix, *prefix ? "." : "", key);
    if (strcmp(prefix, "/**") == 0)
        refuse(reader, "'%.60s' under '/**', where only ros__parameters is allowed", key);
    else if (used >= NAME_MAX_BYTES)
        refuse(reader, "name of more than %d bytes", NAME_MAX_BYTES - 1);
    else
        return 1;
    return 0;
}

static int is_in_section(const char *name, const char *section)
{
    const size_t length = strlen(section);
    return strncmp(name, section, length) == 0 && name[length] == '.';
}

static int is_section(const struct config_reader *reader, const char *name)
{
    for (size_t i = 0; i < ndtd_option_count(); i++)
        if (is_in_section(ndtd_option_at(i)->name, name))
            return 1;
    for (size_t i = 0; reader->is_wrapped && ndtd_foreign_key_at(i); i++)
        if (is_in_section(ndtd_foreign_key_at(i)->name, name))
            return 1;
    return 0;
}

static size_t row_of(const struct ndtd_option *option)
{
    return (size_t)(ndtd_option_target(option) - ndtd_option_at(0));
}

/* Marks a name as set; returns 0 when it was set before. */
static int mark(const struct config_reader *reader, const char *name, unsigned long *set_in)
{
    if (*set_in) {
        refuse(reader, "%s was already set in line %lu", name, *set_in);
        return 0;
    }
    *set_in = reader->line;
    return 1;
}

static void set_known(struct config_reader *reader, const struct ndtd_option *option,
                      const struct ndtd_value *value)
{
    const size_t row = row_of(option);
    struct ndt_error why;
    reader->given[row] = option;
    if (mark(reader, ndtd_option_target(option)->name, &reader->set_in[row]) &&
        ndtd_option_set(reader->settings, option, value, &why) != NDT_OK)
        refuse(reader, "%s", why.text);
}

/* Sets a parameter of Autoware. */
static void set_foreign(struct config_reader *reader, const struct ndtd_foreign_key *key,
                        const struct ndtd_value *value)
{
    struct ndtd_value ours = *value;
    reader->is_foreign = 1;
    if (!mark(reader, key->name, &reader->foreign_in[key - ndtd_foreign_key_at(0)]))
        return;
    if (key->is_switch) {
        reader->has_switch = 1;
        reader->is_switched_on = !value->is_list && strcasecmp(value->items[0], "true") == 0;
    }
    if (!key->option)
        return;
    if (!value->is_list)
        ours.items[0] = ndtd_foreign_key_value(key, value->items[0]);
    set_known(reader, ndtd_option_find(key->option), &ours);
}

static void refuse_name(struct config_reader *reader, const char *name)
{
    const struct ndtd_faults *faults = reader->is_wrapped ? &reader->unknown : reader->faults;
    struct ndt_error why;
    if (faults->count >= NDTD_FAULTS_KEPT) { /* only counted, because the search for its hint takes long */
        refuse_unknown(reader, name);
        return;
    }
    struct ndtd_nearest nearest = ndtd_option_nearest(name);
    for (size_t i = 0; reader->is_wrapped && ndtd_foreign_key_at(i); i++)
        ndtd_nearest_consider(&nearest, ndtd_foreign_key_at(i)->name);
    ndtd_option_unknown(name, &nearest, &why);
    if (strchr(name, '.') && ndtd_foreign_key_find(name))
        refuse(reader, "'%s' is a parameter of Autoware, whose files begin with /**: and ros__parameters:", name);
    else
        refuse_unknown(reader, why.text);
}

static void set_option(struct config_reader *reader, const char *name, const struct ndtd_value *value)
{
    const struct ndtd_option *option = ndtd_option_find(name);
    const struct ndtd_foreign_key *key = reader->is_wrapped ? ndtd_foreign_key_find(name) : NULL;
    if (option)
        set_known(reader, option, value);
    else if (key)
        set_foreign(reader, key, value);
    else if (value->is_list || !is_section(reader, name))
        refuse_name(reader, name);
    else if (*value->items[0])
        refuse(reader, "'%s' is a section, not an option", name);
}

/* Whether a name may be a parameter of another release of Autoware, whose value does not matter. */
static int may_be_foreign(const struct config_reader *reader, const char *name)
{
    return reader->is_wrapped && !ndtd_option_find(name) && !ndtd_foreign_key_find(name);
}

/* Adds an item of a list; returns 0 after a fault. */
static int add_item(struct config_reader *reader, const char *name, const yaml_event_t *event,
                    struct ndtd_value *value, char *storage, size_t *used)
{
    const char *text = event->type == YAML_SCALAR_EVENT ? scalar_text(event) : NULL;
    if (may_be_foreign(reader, name))
        refuse_name(reader, name);
    else if (event->type != YAML_SCALAR_EVENT)
        refuse(reader, "%s: a list inside a list", name);
    else if (!text || value->count == NDTD_VALUE_ITEMS || *used + event->data.scalar.length + 1 > LIST_BYTES)
        refuse(reader, "%s: more than %d values, or %d bytes, or a zero byte", name, NDTD_VALUE_ITEMS, LIST_BYTES);
    else {
        value->items[value->count++] = strcpy(storage + *used, text);
        *used += event->data.scalar.length + 1;
        return 1;
    }
    return 0;
}

static int read_list(struct config_reader *reader, const char *name)
{
    char storage[LIST_BYTES];
    size_t used = 0;
    struct ndtd_value value = {.is_list = 1};
    const unsigned long first_line = reader->line;
    for (int is_end = 0, is_good = 1; !is_end && is_good;) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            return 0;
        is_end = event.type == YAML_SEQUENCE_END_EVENT;
        if (!is_end && event.type != YAML_ALIAS_EVENT)
            is_good = add_item(reader, name, &event, &value, storage, &used);
        const int depth = 1 + opens(&event);
        yaml_event_delete(&event);
        if (!is_good)
            return skip(reader, depth);
    }
    reader->line = first_line;
    set_option(reader, name, &value);
    return 1;
}

static int read_section(struct config_reader *reader, const char *prefix, int depth);

/* Reads the value of a key. */
static int read_value(struct config_reader *reader, const char *name, int depth)
{
    yaml_event_t event;
    int can_go_on = 1;
    if (!next_event(reader, &event))
        return 0;
    if (event.type == YAML_SEQUENCE_START_EVENT) {
        can_go_on = read_list(reader, name);
    } else if (event.type == YAML_MAPPING_START_EVENT && ndtd_option_find(name) && !is_section(reader, name)) {
        refuse(reader, "%s: an option, not a section", name);
        can_go_on = skip(reader, 1);
    } else if (event.type == YAML_MAPPING_START_EVENT) {
        can_go_on = read_section(reader, name, depth + 1);
    } else if (event.type == YAML_SCALAR_EVENT) {
        const struct ndtd_value value = {.count = 1, .items = {scalar_text(&event)}};
        if (value.items[0])
            set_option(reader, name, &value);
        else
            refuse(reader, "%s: a zero byte", name);
    }
    yaml_event_delete(&event);
    return can_go_on;
}

/* Reads a key and its value. */
static int read_entry(struct config_reader *reader, const yaml_event_t *key, const char *prefix, int depth)
{
    char name[NAME_MAX_BYTES];
    const char *text = key->type == YAML_SCALAR_EVENT ? scalar_text(key) : NULL;
    if (!text) {
        refuse(reader, "a key that is not a scalar");
        return skip(reader, opens(key)) && skip_value(reader);
    }
    return join_name(reader, prefix, text, name) ? read_value(reader, name, depth) : skip_value(reader);
}

static int read_section(struct config_reader *reader, const char *prefix, int depth)
{
    if (is_too_deep(reader, depth))
        return 0;
    for (int is_end = 0; !is_end;) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            return 0;
        is_end = event.type == YAML_MAPPING_END_EVENT;
        const int can_go_on = is_end || read_entry(reader, &event, prefix, depth);
        yaml_event_delete(&event);
        if (!can_go_on)
            return 0;
    }
    return 1;
}

/* Reads the root; an empty document is an empty configuration. */
static int read_root(struct config_reader *reader, const yaml_event_t *event)
{
    if (event->type == YAML_MAPPING_START_EVENT)
        return read_section(reader, "", 1);
    if (event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0)
        return 1;
    refuse(reader, "expected sections and options, not a %s",
           event->type == YAML_SCALAR_EVENT ? "single value" : "list");
    return 0;
}

static void read_stream(struct config_reader *reader)
{
    int documents = 0;
    for (int is_end = 0; !is_end;) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            return;
        is_end = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_DOCUMENT_START_EVENT && documents++) {
            refuse(reader, "a second document");
            is_end = 1;
        } else if (event.type == YAML_SCALAR_EVENT || opens(&event)) {
            is_end = !read_root(reader, &event);
        }
        yaml_event_delete(&event);
    }
}

/* ---- files of Autoware ---- */

/* Logs the keys of one line, and their effect. */
static void name_keys(const struct config_reader *reader, unsigned long line)
{
    int is_named = 0;
    for (size_t i = 0; ndtd_foreign_key_at(i); i++) {
        const struct ndtd_foreign_key *key = ndtd_foreign_key_at(i);
        if (reader->foreign_in[i] != line)
            continue;
        is_named |= key->option != NULL;
        ndtd_log_always(NDTD_LOG_INFO, "%s:%lu: %s: %s%s", reader->file, line, key->name,
                        key->option      ? "honoured as "
                        : key->is_switch ? "honoured: "
                                         : "without effect: ",
                        key->option ? key->option : key->note);
    }
    for (size_t i = 0; i < ndtd_option_count() && !is_named; i++)
        if (reader->set_in[i] == line)
            ndtd_log_always(NDTD_LOG_INFO, "%s:%lu: %s: honoured", reader->file, line, reader->given[i]->name);
}

static void name_default(const struct config_reader *reader, const struct ndtd_foreign_default *given)
{
    ndtd_log_always(NDTD_LOG_INFO, "%s: %s: %s, as there", reader->file, given->option, given->value);
}

/* Sets the defaults of Autoware's node that differ from ours. */
static void add_defaults(struct config_reader *reader, int verbose)
{
    for (size_t i = 0; ndtd_foreign_default_at(i); i++) {
        const struct ndtd_foreign_default *given = ndtd_foreign_default_at(i);
        const struct ndtd_option *option = ndtd_option_find(given->option);
        struct ndt_error why;
        if (reader->set_in[row_of(option)])
            continue;
        if (ndtd_option_set_text(reader->settings, given->option, given->value, &why) != NDT_OK)
            refuse(reader, "%s", why.text);
        if (verbose)
            name_default(reader, given);
    }
}

/* Warns of unknown names: other releases of Autoware have other parameters, which have no effect. */
static void name_unknown(const struct config_reader *reader)
{
    const struct ndtd_faults *unknown = &reader->unknown;
    for (size_t i = 0; i < unknown->count && i < NDTD_FAULTS_KEPT; i++)
        ndtd_log_always(NDTD_LOG_WARNING, "%s (no effect)", unknown->lines[i].text);
    if (unknown->count > NDTD_FAULTS_KEPT)
        ndtd_log_always(NDTD_LOG_WARNING, "%s: and %zu more names that are no options (no effect)", reader->file,
                        unknown->count - NDTD_FAULTS_KEPT);
}

static void refuse_all_unknown(struct config_reader *reader)
{
    for (size_t i = 0; i < reader->unknown.count; i++)
        ndtd_faults_add(reader->faults, "%s", i < NDTD_FAULTS_KEPT ? reader->unknown.lines[i].text : "");
}

static void finish_foreign(struct config_reader *reader, int verbose)
{
    const struct ndtd_option *type = ndtd_option_find(NDTD_FOREIGN_COVARIANCE);
    size_t honoured = 0, noted = 0;
    for (size_t i = 0; i < ndtd_option_count(); i++)
        honoured += reader->set_in[i] != 0;
    for (size_t i = 0; ndtd_foreign_key_at(i); i++) {
        const struct ndtd_foreign_key *key = ndtd_foreign_key_at(i);
        honoured += reader->foreign_in[i] && key->is_switch;
        noted += reader->foreign_in[i] && !key->is_switch && !key->option;
    }
    ndtd_log_always(NDTD_LOG_INFO,
                    "%s: parameters of Autoware's ndt_scan_matcher: %zu honoured, %zu without effect%s",
                    reader->file, honoured, noted, verbose ? ":" : "; -v names each");
    for (unsigned long line = 1; verbose && line <= reader->line; line++)
        name_keys(reader, line);
    add_defaults(reader, verbose);
    if (reader->has_switch)
        ndtd_foreign_covariance(reader->settings, reader->is_switched_on, reader->set_in[row_of(type)] != 0);
}

/* ---- the whole file ---- */

/* Parses a file; NDT_ERR_MEMORY, or NDT_OK, with the faults in the list of the file. */
static enum ndt_status parse(struct ndtd_settings *settings, const char *name, const void *text, size_t size,
                             int verbose, struct ndtd_faults *faults, struct ndt_error *err)
{
    struct config_reader reader = {.settings = settings, .file = name, .line = 1, .faults = faults};
    const size_t before = faults->count;
    if (size > NDTD_CONFIG_MAX_BYTES) {
        ndtd_faults_add(faults, "%s: more than %zu bytes", name, NDTD_CONFIG_MAX_BYTES);
        return NDT_OK;
    }
    if (!yaml_parser_initialize(&reader.parser))
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: out of memory", name);
    yaml_parser_set_input_string(&reader.parser, text, size);
    read_stream(&reader);
    yaml_parser_delete(&reader.parser);
    if (reader.is_foreign)
        name_unknown(&reader);
    else
        refuse_all_unknown(&reader);
    if (reader.is_foreign && faults->count == before)
        finish_foreign(&reader, verbose);
    return NDT_OK;
}

enum ndt_status ndtd_config_parse(struct ndtd_settings *settings, const char *name, const void *text, size_t size,
                                  struct ndt_error *err)
{
    struct ndtd_faults faults = {0};
    const enum ndt_status status = parse(settings, name, text, size, 0, &faults, err);
    return status == NDT_OK ? ndtd_faults_status(&faults, err) : status;
}

enum ndt_status ndtd_config_add(struct ndtd_settings *settings, const char *path, int verbose,
                                struct ndtd_faults *faults, struct ndt_error *err)
{
    char *text = NULL;
    size_t size = 0;
    struct ndt_error why;
    if (strcmp(path, "/dev/null") == 0) /* a device that counts as an empty file */
        return NDT_OK;
    enum ndt_status status = ndt_input_file_read(&text, &size, path, NDTD_CONFIG_MAX_BYTES, &why);
    if (status == NDT_OK) {
        status = parse(settings, path, text, size, verbose, faults, err);
    } else if (status == NDT_ERR_MEMORY) {
        (void)ndt_fail(err, status, "%s", why.text);
    } else { /* a wrong path is wrong usage */
        ndtd_faults_add(faults, "%s%s", why.text, status == NDT_ERR_LIMIT ? " in a configuration" : "");
        status = NDT_OK;
    }
    free(text);
    return status;
}

enum ndt_status ndtd_config_read(struct ndtd_settings *settings, const char *path, struct ndt_error *err)
{
    struct ndtd_faults faults = {0};
    const enum ndt_status status = ndtd_config_add(settings, path, 0, &faults, err);
    return status == NDT_OK ? ndtd_faults_status(&faults, err) : status;
}

const char *ndtd_config_files_text(const struct ndtd_config_files *files, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < files->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", files->paths[i]);
    return text;
}
