/* The one table of options. The parser of the configuration file, --set, --help-options, --print-config,
 * --check-config and config/ndtd.yaml all follow from it; adding an option = one row in option_table.c.
 *
 * Names are dotted, "section.name", and follow Autoware's ndt_scan_matcher where the option exists there.
 * Numbers stand in the unit of the table: angles are degrees where the name ends in _deg, times
 * milliseconds where it ends in _ms; struct ndtd_settings holds radians and seconds.
 *
 * Order of work: ndtd_settings_default, any number of ndtd_option_set*, ndtd_settings_finish. After an error
 * the settings are of no use. No allocation, no global state: any thread. */
#ifndef NDTD_OPTIONS_H
#define NDTD_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "ndt/status.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ndtd_option_type {
    NDTD_BOOL,      /* int; true, false, yes, no, on, off */
    NDTD_INT,       /* int */
    NDTD_UINT32,    /* uint32_t */
    NDTD_UINT64,    /* uint64_t */
    NDTD_SIZE,      /* size_t */
    NDTD_REAL,      /* double */
    NDTD_ENUM,      /* an enum whose values are the positions in `names` */
    NDTD_STRING,    /* char[size]; one of `names` when there are any */
    NDTD_PATH,      /* char[size] */
    NDTD_REAL_LIST, /* double, min_items .. max_items of them */
    NDTD_ENUM_LIST, /* enum, likewise */
    NDTD_POSE       /* seven double and a flag: [x, y, z, qx, qy, qz, qw], or [] for none */
};

/* How the number in the file becomes the number in memory. */
enum ndtd_option_scale { NDTD_PLAIN, NDTD_DEGREES, NDTD_MILLISECONDS };

struct ndtd_option {
    const char *name;
    const char *alias_of; /* another name for the same setting; such a row is read, not printed */
    enum ndtd_option_type type;
    const char *text;         /* the default */
    double min, max;          /* of every number, in `unit`; both 0 = any */
    const char *unit;         /* "" when it has none */
    const char *help;         /* one line, no full stop at the end */
    const char *const *names; /* of enums, ends with NULL */
    enum ndtd_option_scale scale;
    size_t offset;               /* where it lands in struct ndtd_settings */
    size_t size;                 /* bytes of a string; distance of two items of a list */
    size_t min_items, max_items; /* lists */
    size_t count_offset;         /* size_t that receives the number of items; SIZE_MAX: none */
};

size_t ndtd_option_count(void);
const struct ndtd_option *ndtd_option_at(size_t i); /* NULL after the last */
/* NULL when there is none of that name; aliases are found as themselves. */
const struct ndtd_option *ndtd_option_find(const char *name);
/* The row that an alias stands for, or the row itself. */
const struct ndtd_option *ndtd_option_target(const struct ndtd_option *option);
/* "real", "list of reals", ... as users see it. */
const char *ndtd_option_type_name(enum ndtd_option_type type);

#define NDTD_VALUE_ITEMS 16
/* A value before it is understood: one text, or the texts of a list. Borrowed. */
struct ndtd_value {
    int is_list;
    size_t count;
    const char *items[NDTD_VALUE_ITEMS];
};

void ndtd_settings_default(struct ndtd_settings *settings);
/* NDT_ERR_ARGUMENT with a line that starts with the option's name: wrong type, out of range, unknown word
 * (with the nearest one), wrong number of items. */
NDT_MUST_CHECK enum ndt_status ndtd_option_set(struct ndtd_settings *settings, const struct ndtd_option *option,
                                               const struct ndtd_value *value, struct ndt_error *err);
/* The same by name and from one text, as --set has it; lists are "[a, b]" or "a,b". An unknown name is
 * NDT_ERR_ARGUMENT and the line gives the nearest one. */
NDT_MUST_CHECK enum ndt_status ndtd_option_set_text(struct ndtd_settings *settings, const char *name,
                                                    const char *text, struct ndt_error *err);
/* Writes "'name' is not an option; did you mean ..." and returns NDT_ERR_ARGUMENT. */
enum ndt_status ndtd_option_unknown(const char *name, struct ndt_error *err);
/* What concerns several options at once: order of levels and ranges, the backend's name; derives the map's
 * leaves from ndt.levels and spreads ndt.neighbours over the levels. */
NDT_MUST_CHECK enum ndt_status ndtd_settings_finish(struct ndtd_settings *settings, struct ndt_error *err);

/* What cpu.threads amounts to on this machine. */
int ndtd_settings_threads(const struct ndtd_settings *settings);

/* The value as YAML, such that reading it gives the same bits; returns `text`. */
const char *ndtd_option_format(const struct ndtd_settings *settings, const struct ndtd_option *option, char *text,
                               size_t size);
/* Every option with help, unit and range as comments, and the value it has in `settings`. */
void ndtd_options_print_config(FILE *file, const struct ndtd_settings *settings);
/* The table for people: name, type, default, range, unit, help. */
void ndtd_options_print_help(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
