/** @file
 * @brief What a tool writes does not replace what is there, unless --force says so. */
#ifndef OUTPUT_GUARD_H
#define OUTPUT_GUARD_H

#include "ndt/status.h"

/** Whether `path` may be written: nothing is there, or `force` is set and it is a plain file (is_folder: a folder).
 * "-" and devices, pipes and descriptors (/dev/...) are no files and always allowed. NDT_ERR_IO with one line. */
NDT_MUST_CHECK enum ndt_status tool_output_check(const char *path, int is_folder, int force, struct ndt_error *err);

/* clang-format off */
/** The option row of `int force`. */
#define TOOL_FORCE_OPTION(force)                                                                                   \
    {"force", NULL, TOOL_FLAG, &(force), .help = "replace what exists under the name of the output"}
/* clang-format on */

#endif
