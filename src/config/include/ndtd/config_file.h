/** @file
 * @brief The configuration file: YAML, read with libyaml.
 *
 * Nested sections and dotted names are equivalent; the file may have the two outer sections of ROS parameter files
 * (a node's name, or a slash and two stars; then ros__parameters). Every key must be an option (options.h) and
 * occur once. With the outer sections, parameters of Autoware's
 * ndt_scan_matcher are accepted too (foreign_keys.h), and the log says how many have an effect; beside one that
 * only Autoware has, unknown names are warnings, each with the nearest name. Tags are ignored. Not accepted:
 * aliases, so that nothing can expand; several documents; files above 1 MiB; sections deeper than 8; lists longer
 * than 36. */
#ifndef NDTD_CONFIG_FILE_H
#define NDTD_CONFIG_FILE_H

#include "ndtd/faults.h"
#include "ndtd/options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_CONFIG_MAX_BYTES   ((size_t)1048576) /**< size of a file */
#define NDTD_CONFIG_MAX_DEPTH   8                 /**< nested sections */
#define NDTD_CONFIG_MAX_OPTIONS 160               /**< rows of the option table, for finding duplicates */

enum { NDTD_CONFIG_FILES = 16 /**< largest number of --config */ };

/** Configuration files, in the order in which they are read: an option has the value that the last one gives. */
struct ndtd_config_files {
    const char *paths[NDTD_CONFIG_FILES]; /**< borrowed */
    size_t count;
};

/** Writes the names of the files, separated by ", "; empty when there is none. Returns `text`. */
const char *ndtd_config_files_text(const struct ndtd_config_files *files, char *text, size_t size);
/** Sets the options of the file in `settings`; the others keep their values. Every fault is a line "path:line:
 * fault"; the contents of the settings are then unspecified. verbose: the log names each key of a file of Autoware.
 * Fails with NDT_ERR_MEMORY only. */
NDT_MUST_CHECK enum ndt_status ndtd_config_add(struct ndtd_settings *settings, const char *path, int verbose,
                                               struct ndtd_faults *faults, struct ndt_error *err);
/** ndtd_config_add, where a fault is an error: the first one is NDT_ERR_ARGUMENT. */
NDT_MUST_CHECK enum ndt_status ndtd_config_read(struct ndtd_settings *settings, const char *path,
                                                struct ndt_error *err);
/** ndtd_config_read from memory; errors name `name` instead of a path. */
NDT_MUST_CHECK enum ndt_status ndtd_config_parse(struct ndtd_settings *settings, const char *name, const void *text,
                                                 size_t size, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
