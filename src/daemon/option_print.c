#include <string.h>

#include "ndtd/option_value.h"
#include "ndtd/options.h"
#include "ndtd/settings_snapshot.h"
#include "option_table.h"

enum { PRINTED_VALUE_MAX = 4200 /* a path with every byte escaped */, COMMENT_WIDTH = 100 };

/* Length of the part of `name` that both have as sections: up to and with the last common dot. */
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

/* Prints the headings that `name` needs after `before`; returns the depth of the option itself. */
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
    ndtd_option_load(settings, option, value, sizeof(value));
    fprintf(file, "%*s%s: %s\n", indent, "", tail ? tail + 1 : option->name, value);
}

void ndtd_options_print_config(FILE *file, const struct ndtd_settings *settings)
{
    fprintf(file,
            "# Every option of ndtd, as printed by `ndtd --print-config`. An option left out has its default.\n"
            "# Names follow Autoware's ndt_scan_matcher where the option exists there; the whole may also\n"
            "# stand under /**: ros__parameters:.\n");
    const char *before = "";
    for (size_t i = 0; i < ndtd_option_table_count; i++) {
        const struct ndtd_option *option = &ndtd_option_table[i];
        if (option->alias_of)
            continue;
        int depth = print_sections(file, option->name, before);
        print_entry(file, option, settings, 2 * depth);
        before = option->name;
    }
}

void ndtd_options_print_help(FILE *file)
{
    char range[200];
    for (size_t i = 0; i < ndtd_option_table_count; i++) {
        const struct ndtd_option *option = &ndtd_option_table[i];
        ndtd_option_range(option, range, sizeof(range));
        if (option->alias_of)
            fprintf(file, "%s = %s\n", option->name, option->alias_of);
        else
            fprintf(file, "%s = %s\n", option->name, *option->text ? option->text : "\"\"");
        fprintf(file, "    %s\n    %s%s%s%s\n", option->help, ndtd_option_type_name(option->type),
                *range ? ": " : "", range,
                ndtd_option_can_change(option) ? "; can change while the daemon runs" : "");
    }
}
