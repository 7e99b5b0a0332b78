/* A file that appears whole or not at all.
 *
 * Text and bytes go to PATH.tmp beside the target; commit makes them durable and renames the file over the
 * target, discard removes it. So a failure or a crash leaves the old target as it was. "-" (standard
 * output), names under /dev/ and everything that is not a regular file (pipes, terminals) are written
 * directly; what went there cannot be taken back. A symbolic link is followed.
 *
 *     struct ndt_output out;
 *     enum ndt_status status = ndt_output_open(&out, path, err);
 *     if (status != NDT_OK)
 *         return status;
 *     fprintf(out.file, ...);              // errors need no check here: commit sees them
 *     return ndt_output_commit(&out, err); // or ndt_output_discard(&out)
 *
 * One owner, one thread; two writers of one path at the same time are not kept apart. */
#ifndef NDT_IO_OUTPUT_FILE_H
#define NDT_IO_OUTPUT_FILE_H

#include <stdio.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndt_output {
    FILE *file;      /* write here; NULL when not open */
    char *path;      /* the target, owned */
    char *temporary; /* PATH.tmp, owned; NULL when written directly */
};

/* On failure `out` is closed and nothing was created. */
NDT_MUST_CHECK enum ndt_status ndt_output_open(struct ndt_output *out, const char *path, struct ndt_error *err);
/* Flushes, syncs, renames. On failure nothing is left but the old target. `out` is closed either way. */
NDT_MUST_CHECK enum ndt_status ndt_output_commit(struct ndt_output *out, struct ndt_error *err);
/* Closes and removes what was written; harmless on an output that is zeroed or closed. */
void ndt_output_discard(struct ndt_output *out);

#ifdef __cplusplus
}
#endif
#endif
