/* The configuration file: YAML, read with libyaml.
 *
 * Nested sections and dotted names mean the same; the whole may stand under the two headings of ROS parameter
 * files (a slash and two stars, then ros__parameters). Every key must be an option (options.h), given once. Tags
 * are ignored. Not taken: aliases, so nothing can expand; several documents; files above 1 MiB; sections deeper
 * than 8; lists longer than 16. */
#ifndef NDTD_CONFIG_FILE_H
#define NDTD_CONFIG_FILE_H

#include "ndtd/options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_CONFIG_MAX_BYTES   ((size_t)1048576)
#define NDTD_CONFIG_MAX_DEPTH   8
#define NDTD_CONFIG_MAX_OPTIONS 128 /* rows of the option table, for finding duplicates */

/* Puts what the file says into `settings`, which keep everything else. NDT_ERR_ARGUMENT for every fault,
 * with "path:line: what"; the settings are then of no use. */
NDT_MUST_CHECK enum ndt_status ndtd_config_read(struct ndtd_settings *settings, const char *path,
                                                struct ndt_error *err);
/* The same from memory; `name` stands for the path in errors. */
NDT_MUST_CHECK enum ndt_status ndtd_config_parse(struct ndtd_settings *settings, const char *name, const void *text,
                                                 size_t size, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
