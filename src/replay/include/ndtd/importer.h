/** @file
 * @brief ndt-import as a child process, which turns any recording into a bag on a pipe during the replay.
 *
 * The program is that of the environment variable NDT_IMPORT, else `ndt-import` beside the running program, else
 * the first on PATH. It is started without a shell as `ndt-import RECORDING -o - --quiet [ARGS...]`, in a process
 * group of its own, with /dev/null as standard input. Its standard error goes to ours, line by line; the last line
 * is held back for the error of a failed import. One owner, one thread. */
#ifndef NDTD_IMPORTER_H
#define NDTD_IMPORTER_H

#include <stddef.h>

#include "ndt/progress.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether the path is a recording other than a bag.bin: a folder, or a file with another begin. "-", pipes, empty
 * files and files that cannot be read are not. */
int ndtd_import_is_needed(const char *path);

struct ndtd_importer;
/** Starts the import. args: more arguments, borrowed until the return. *fd: where the bag can be read, owned by the
 * caller. NDT_ERR_UNSUPPORTED, with how to install it, when there is no ndt-import. */
NDT_MUST_CHECK enum ndt_status ndtd_importer_start(struct ndtd_importer **out, int *fd, const char *recording,
                                                   const char *const *args, size_t arg_count,
                                                   struct ndt_error *err);
/** Waits for the end of the process, after the end of the bag. NDT_ERR_ARGUMENT: the process exited with 2, because
 * its options do not fit; NDT_ERR_IO: another status or a signal; NDT_ERR_CANCELLED. The reason is its last line.
 */
NDT_MUST_CHECK enum ndt_status ndtd_importer_finish(struct ndtd_importer *importer, struct ndt_progress *progress,
                                                    struct ndt_error *err);
/** Ends the process if it runs, and frees everything. `importer` may be NULL. */
void ndtd_importer_destroy(struct ndtd_importer *importer);

#ifdef __cplusplus
}
#endif
#endif
