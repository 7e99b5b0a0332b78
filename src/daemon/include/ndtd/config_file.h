/** @file
 * @brief The configuration file: YAML, read with libyaml.
 *
 * Nested sections and dotted names are equivalent; the file may have the two outer sections of ROS parameter files
 * (a slash and two stars, then ros__parameters). Every key must be an option (options.h) and occur once; former
 * names are accepted with a warning. Tags are ignored. Not accepted: aliases, so that nothing can expand; several
 * documents; files above 1 MiB; sections deeper than 8; lists longer than 16. */
#ifndef NDTD_CONFIG_FILE_H
#define NDTD_CONFIG_FILE_H

#include "ndtd/options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_CONFIG_MAX_BYTES   ((size_t)1048576) /**< size of a file */
#define NDTD_CONFIG_MAX_DEPTH   8                 /**< nested sections */
#define NDTD_CONFIG_MAX_OPTIONS 128               /**< rows of the option table, for finding duplicates */

/** Sets the options of the file in `settings`; the others keep their values. NDT_ERR_ARGUMENT with "path:line:
 * fault" for every fault; the contents of the settings are then unspecified. */
NDT_MUST_CHECK enum ndt_status ndtd_config_read(struct ndtd_settings *settings, const char *path,
                                                struct ndt_error *err);
/** The same from memory; errors name `name` instead of a path. */
NDT_MUST_CHECK enum ndt_status ndtd_config_parse(struct ndtd_settings *settings, const char *name, const void *text,
                                                 size_t size, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
