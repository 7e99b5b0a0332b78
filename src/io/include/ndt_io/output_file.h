/** @file
 * @brief Atomic output files: complete or absent.
 *
 * Data are written to PATH.tmp in the directory of the target; commit syncs the file and renames it over the
 * target, discard removes it. A failure or a crash leaves the old target unchanged. "-" (standard output), names
 * under /dev/ except /dev/shm, and everything that is not a regular file (pipes, terminals) are written directly,
 * which cannot be undone. Symbolic links are followed.
 *
 *     struct ndt_output out;
 *     enum ndt_status status = ndt_output_open(&out, path, err);
 *     if (status != NDT_OK)
 *         return status;
 *     fprintf(out.file, "%g\n", x);        // errors need no check here: commit reports them
 *     return ndt_output_commit(&out, err); // or ndt_output_discard(&out)
 *
 * One owner, one thread. Concurrent writers of the same path are not detected. */
#ifndef NDT_IO_OUTPUT_FILE_H
#define NDT_IO_OUTPUT_FILE_H

#include <stdio.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An open output file. */
struct ndt_output {
    FILE *file;      /**< stream to write to; NULL when not open */
    char *path;      /**< the target; owned */
    char *temporary; /**< PATH.tmp; owned; NULL when written directly */
};

/** Opens an output file. On failure `out` is closed and nothing was created. */
NDT_MUST_CHECK enum ndt_status ndt_output_open(struct ndt_output *out, const char *path, struct ndt_error *err);
/** Flushes, syncs and renames. On failure only the old target remains. Closes `out` in either case. */
NDT_MUST_CHECK enum ndt_status ndt_output_commit(struct ndt_output *out, struct ndt_error *err);
/** Closes and removes the temporary file; allowed on an output that is zeroed or closed. */
void ndt_output_discard(struct ndt_output *out);

#ifdef __cplusplus
}
#endif
#endif
