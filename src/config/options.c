#include "ndtd/options.h"

#include <string.h>

#include "ndtd/log.h"
#include "option_table.h"

enum { VALUE_TEXT_MAX = 2048, PRINTED_VALUE_MAX = 4200 /* a path with every byte escaped */, COMMENT_WIDTH = 100 };

/* ---- find ---- */

size_t ndtd_option_count(void)
{
    return ndtd_option_table_count;
}

const struct ndtd_option *ndtd_option_at(size_t i)
{
    return i < ndtd_option_table_count ? &ndtd_option_table[i] : NULL;
}

const struct ndtd_option *ndtd_option_find(const char *name)
{
    for (size_t i = 0; i < ndtd_option_table_count; i++) {
        if (strcmp(ndtd_option_table[i].name, name) == 0)
            return &ndtd_option_table[i];
    }
    return NULL;
}

const struct ndtd_option *ndtd_option_target(const struct ndtd_option *option)
{
    return option->alias_of ? ndtd_option_find(option->alias_of) : option;
}

struct ndtd_nearest ndtd_option_nearest(const char *name)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(name);
    for (size_t i = 0; i < ndtd_option_table_count; i++) {
        ndtd_nearest_consider(&nearest, ndtd_option_table[i].name);
    }
    return nearest;
}

enum ndt_status ndtd_option_unknown(const char *name, const struct ndtd_nearest *nearest, struct ndt_error *err)
{
    char hint[128];
    const size_t length = strlen(name);
    for (size_t i = 0; i < ndtd_option_table_count; i++)
        if (strncmp(ndtd_option_table[i].name, name, length) == 0 && ndtd_option_table[i].name[length] == '.')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is a section, as in %s", name,
                            ndtd_option_table[i].name);
    ndtd_nearest_hint(nearest, hint, sizeof(hint));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not an option%s", name, hint);
}

/* ---- set from one text ---- */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        text[--length] = '\0';
    return text;
}

static int takes_list(const struct ndtd_option *option)
{
    return option->type == NDTD_REAL_LIST || option->type == NDTD_ENUM_LIST || option->type >= NDTD_POSE;
}

/* Splits "[a, b]" or "a, b" in place. */
static enum ndt_status split_list(char *text, const struct ndtd_option *option, struct ndtd_value *value,
                                  struct ndt_error *err)
{
    size_t length = strlen(text);
    *value = (struct ndtd_value){.is_list = 1};
    if (*text == '[') {
        if (text[length - 1] != ']')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: the list is not closed with ]", option->name);
        text[length - 1] = '\0';
        text = trim(text + 1);
    }
    if (*text == '\0')
        return NDT_OK;
    for (char *item = text; item;) {
        char *comma = strchr(item, ',');
        if (comma)
            *comma = '\0';
        if (value->count == NDTD_VALUE_ITEMS)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: more than %d values", option->name, NDTD_VALUE_ITEMS);
        value->items[value->count++] = trim(item);
        item = comma ? comma + 1 : NULL;
    }
    return NDT_OK;
}

enum ndt_status ndtd_option_set_text(struct ndtd_settings *settings, const char *name, const char *text,
                                     struct ndt_error *err)
{
    char copy[VALUE_TEXT_MAX];
    struct ndtd_value value = {.count = 1, .items = {copy}};
    const struct ndtd_option *option = ndtd_option_find(name);
    if (!option) {
        const struct ndtd_nearest nearest = ndtd_option_nearest(name);
        return ndtd_option_unknown(name, &nearest, err);
    }
    if (strlen(text) >= sizeof(copy))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: text of %zu bytes, at most %zu are allowed", option->name,
                        strlen(text), sizeof(copy) - 1);
    strcpy(copy, text);
    if (takes_list(option)) {
        enum ndt_status status = split_list(trim(copy), option, &value, err);
        if (status != NDT_OK)
            return status;
    }
    return ndtd_option_set(settings, option, &value, err);
}

/* ---- print ---- */

/* Length of the sections that both names share, with the last common dot. */
static size_t common_sections(const char *name, const char *before)
{
    size_t common = 0;
    for (size_t i = 0; name[i] && name[i] == before[i]; i++)
        if (name[i] == '.')
            common = i + 1;
    return common;
}

static int depth_of(const char *name, size_t length)
{
    int depth = 0;
    for (size_t i = 0; i < length; i++)
        depth += name[i] == '.';
    return depth;
}

/* Prints the section headings between `before` and `name`; returns the depth of the option itself. */
static int print_sections(FILE *file, const char *name, const char *before)
{
    size_t at = common_sections(name, before);
    int depth = depth_of(name, at);
    if (depth == 0)
        fprintf(file, "\n");
    for (const char *dot; (dot = strchr(name + at, '.')); depth++) {
        fprintf(file, "%*s%.*s:\n", 2 * depth, "", (int)(dot - name - (ptrdiff_t)at), name + at);
        at = (size_t)(dot - name) + 1;
    }
    return depth;
}

static void print_aliases(FILE *file, const char *name, int indent)
{
    for (size_t i = 0; i < ndtd_option_table_count; i++) {
        const struct ndtd_option *alias = &ndtd_option_table[i];
        if (alias->alias_of && strcmp(alias->alias_of, name) == 0)
            fprintf(file, "%*s# Also %s: %s.\n", indent, "", alias->name, alias->help);
    }
}

static void print_entry(FILE *file, const struct ndtd_option *option, const struct ndtd_settings *settings,
                        int indent)
{
    char range[200], value[PRINTED_VALUE_MAX];
    const char *tail = strrchr(option->name, '.');
    ndtd_option_range(option, range, sizeof(range));
    fprintf(file, "%*s# %s.", indent, "", option->help);
    int fits = (size_t)indent + strlen(option->help) + strlen(range) < COMMENT_WIDTH;
    if (*range && fits)
        fprintf(file, " (%s)\n", range);
    else if (*range)
        fprintf(file, "\n%*s# (%s)\n", indent, "", range);
    else
        fprintf(file, "\n");
    print_aliases(file, option->name, indent);
    fprintf(file, "%*s%s: %s\n", indent, "", tail ? tail + 1 : option->name,
            ndtd_option_format(settings, option, value, sizeof(value)));
}

static const char heading[] =
    "# Options that are left out keep their defaults.\n"
    "# Names follow Autoware's ndt_scan_matcher where the option exists there; the sections may\n"
    "# also be nested under /**: ros__parameters:.\n";

void ndtd_options_print_config(FILE *file, const struct ndtd_settings *settings, enum ndtd_option_rank rank)
{
    const char *before = "";
    fprintf(file, rank == NDTD_ALL_OPTIONS ? "# Every option of ndtd, as printed by `ndtd --print-config`.\n"
                                           : "# The options of ndtd that users decide; `ndtd --help-options --all` "
                                             "has those for experts, too.\n");
    fputs(heading, file);
    for (size_t i = 0; i < ndtd_option_table_count; i++) {
        const struct ndtd_option *option = &ndtd_option_table[i];
        if (option->alias_of || (rank == NDTD_COMMON_OPTIONS && !option->is_common))
            continue;
        int depth = print_sections(file, option->name, before);
        print_entry(file, option, settings, 2 * depth);
        before = option->name;
    }
}

/* Names of the types in the help. */
static const char *type_name(enum ndtd_option_type type)
{
    switch (type) {
    case NDTD_BOOL:
        return "bool";
    case NDTD_INT:
    case NDTD_UINT32:
    case NDTD_UINT64:
    case NDTD_SIZE:
        return "int";
    case NDTD_REAL:
        return "real";
    case NDTD_ENUM:
        return "enum";
    case NDTD_CHOICE:
    case NDTD_STRING:
        return "string";
    case NDTD_PATH:
        return "path";
    case NDTD_REAL_LIST:
        return "list of reals";
    case NDTD_ENUM_LIST:
        return "list of enums";
    case NDTD_TRANSFORM:
        return "transform";
    case NDTD_SENSORS:
        return "list of sensors";
    default:
        return "pose";
    }
}

void ndtd_options_print_help(FILE *file, enum ndtd_option_rank rank)
{
    struct ndtd_settings defaults;
    size_t left_out = 0;
    ndtd_settings_default(&defaults);
    for (size_t i = 0; i < ndtd_option_table_count; i++) {
        const struct ndtd_option *option = &ndtd_option_table[i];
        char range[200], value[PRINTED_VALUE_MAX];
        if (rank == NDTD_COMMON_OPTIONS && !option->is_common) {
            left_out += !option->alias_of;
            continue;
        }
        ndtd_option_range(option, range, sizeof(range));
        ndtd_option_format(&defaults, option, value, sizeof(value));
        fprintf(file, "%s = %s\n", option->name, option->alias_of ? option->alias_of : *value ? value : "\"\"");
        fprintf(file, "    %s\n    %s%s%s%s%s\n", option->help, type_name(option->type), *range ? ": " : "", range,
                option->reloadable ? "; can change while the daemon runs" : "",
                option->is_common || option->alias_of ? "" : "; for experts");
    }
    if (left_out > 0)
        fprintf(file, "\n%zu further options are for experts: --help-options --all\n", left_out);
}
