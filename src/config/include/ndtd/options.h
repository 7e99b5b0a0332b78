/** @file
 * @brief The table of options of ndtd.
 *
 * The parser of the configuration file, --set, --help-options, --print-config, --check-config, the merge of a
 * reload and config/ndtd.yaml all follow from this table; option_table.c says how to add an option.
 *
 * Names are dotted, "section.name", and follow Autoware's ndt_scan_matcher where the option exists there. Numbers
 * are in the unit of the table: degrees where the name ends in _deg, milliseconds where it ends in _ms; struct
 * ndtd_settings holds radians and seconds.
 *
 * Order of use: ndtd_settings_default, any number of ndtd_option_set*, ndtd_settings_finish. After an error the
 * contents of the settings are unspecified. No allocation; any thread. */
#ifndef NDTD_OPTIONS_H
#define NDTD_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "ndt/names.h"
#include "ndt/status.h"
#include "ndtd/nearest_name.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Types of options, and the type of the member that holds the value. */
enum ndtd_option_type {
    NDTD_BOOL,      /**< int; true, false, yes, no, on, off */
    NDTD_INT,       /**< int */
    NDTD_UINT32,    /**< uint32_t */
    NDTD_UINT64,    /**< uint64_t */
    NDTD_SIZE,      /**< size_t */
    NDTD_REAL,      /**< double */
    NDTD_ENUM,      /**< int or enum; the value of one of `labels` */
    NDTD_CHOICE,    /**< const char *; the name of one of `labels`, NULL for the first */
    NDTD_STRING,    /**< char[size] */
    NDTD_PATH,      /**< char[size] */
    NDTD_REAL_LIST, /**< double, min_items .. max_items of them */
    NDTD_ENUM_LIST, /**< enum, min_items .. max_items of them */
    NDTD_POSE,      /**< seven double and a flag: [x, y, z, qx, qy, qz, qw], or [] for none */
    NDTD_TRANSFORM, /**< struct ndt_pose, in one of the forms of ndtd/extrinsics.h, as a list or as text */
    NDTD_SENSORS    /**< struct ndtd_sensor_frame, a list of them */
};

/** Conversion of a number in the file to the number in memory. */
enum ndtd_option_scale { NDTD_PLAIN, NDTD_DEGREES, NDTD_MILLISECONDS };

/** A row of the table. */
struct ndtd_option {
    const char *name;
    const char *alias_of; /**< name of the option that this row is an alias of; such a row is read, not printed */
    enum ndtd_option_type type;
    double min, max;                /**< limits of every number, in `unit`; both 0 = none */
    const char *unit;               /**< "" when it has none */
    const char *word_for_zero;      /**< word of a real for 0, which `min` need not allow; NULL: none */
    const char *help;               /**< one line, no full stop at the end */
    const struct ndt_label *labels; /**< labels of enums and choices, end with a NULL name */
    int reloadable;                 /**< can change while the daemon runs */
    int is_common;                  /**< users decide it; 0: it is for experts */
    enum ndtd_option_scale scale;
    size_t offset;               /**< offset in struct ndtd_settings */
    size_t size;                 /**< bytes of a string; distance of two items of a list */
    size_t min_items, max_items; /**< length of lists */
    size_t count_offset; /**< offset of the size_t with the number of items (poses: an int); SIZE_MAX: none */
};

/** Number of rows. */
size_t ndtd_option_count(void);
/** Row i; NULL after the last. */
const struct ndtd_option *ndtd_option_at(size_t i);
/** Finds the row of a name, of an alias its own row; NULL: there is none. */
const struct ndtd_option *ndtd_option_find(const char *name);
/** The row to which an alias refers, or the row itself. */
const struct ndtd_option *ndtd_option_target(const struct ndtd_option *option);

#define NDTD_VALUE_ITEMS 36 /**< largest number of items in a list */
/** A value before it is parsed: one text, or the texts of a list. Borrowed. */
struct ndtd_value {
    int is_list;
    size_t count;
    const char *items[NDTD_VALUE_ITEMS];
};

/** Sets an option. NDT_ERR_ARGUMENT with a line that starts with the option's name: wrong type, out of range,
 * unknown word (with the nearest one), wrong number of items. Nothing is written unless the whole value is valid.
 */
NDT_MUST_CHECK enum ndt_status ndtd_option_set(struct ndtd_settings *settings, const struct ndtd_option *option,
                                               const struct ndtd_value *value, struct ndt_error *err);
/** Sets an option by name from one text, as --set does; lists are "[a, b]" or "a,b". An unknown name is
 * NDT_ERR_ARGUMENT, and the line suggests the nearest one. */
NDT_MUST_CHECK enum ndt_status ndtd_option_set_text(struct ndtd_settings *settings, const char *name,
                                                    const char *text, struct ndt_error *err);
/** The option whose name is nearest. */
struct ndtd_nearest ndtd_option_nearest(const char *name);
/** Writes "'name' is not an option; did you mean ..." and returns NDT_ERR_ARGUMENT. */
enum ndt_status ndtd_option_unknown(const char *name, const struct ndtd_nearest *nearest, struct ndt_error *err);

/** Writes the value as YAML; reading it back is bit-identical. Returns `text`. */
const char *ndtd_option_format(const struct ndtd_settings *settings, const struct ndtd_option *option, char *text,
                               size_t size);
/** Selection of the options to print. */
enum ndtd_option_rank { NDTD_COMMON_OPTIONS, NDTD_ALL_OPTIONS };
/** Prints options with help, unit and range as comments, and their values in `settings`. The common ones with their
 * defaults are config/ndtd.yaml. */
void ndtd_options_print_config(FILE *file, const struct ndtd_settings *settings, enum ndtd_option_rank rank);
/** Prints the table: name, type, default, range, unit, help; an option for experts is marked. */
void ndtd_options_print_help(FILE *file, enum ndtd_option_rank rank);

#ifdef __cplusplus
}
#endif
#endif
