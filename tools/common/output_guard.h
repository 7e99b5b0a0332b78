/** @file
 * @brief Protects existing files: a tool overwrites them only with --force. */
#ifndef OUTPUT_GUARD_H
#define OUTPUT_GUARD_H

#include "ndt/status.h"

/** The file that is written. */
enum tool_output {
    TOOL_OUTPUT_FILE,   /**< a plain file, renamed into its place */
    TOOL_OUTPUT_STREAM, /**< a file, or "-", a pipe, a device */
    TOOL_OUTPUT_FOLDER
};

/** Whether `path` may be written: nothing is there, or `force` is set and it is of this kind. NDT_ERR_ARGUMENT with
 * one line. */
NDT_MUST_CHECK enum ndt_status tool_output_check(const char *path, enum tool_output kind, int force,
                                                 struct ndt_error *err);

/* clang-format off */
/** The option row of `int force`. */
#define TOOL_FORCE_OPTION(force)                                                                                   \
    {"force", NULL, TOOL_FLAG, &(force), .help = "overwrite what exists under the name of the output"}
/* clang-format on */

#endif
