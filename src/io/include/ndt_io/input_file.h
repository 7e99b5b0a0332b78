/** @file
 * @brief Opens input files: maps, tiles, configurations, trajectories, bags. */
#ifndef NDT_IO_INPUT_FILE_H
#define NDT_IO_INPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Opens a regular file or /dev/null for reading, and never waits: a pipe, a socket or another device is refused
 * with one line (NDT_ERR_IO) instead of waited for. *fd: close-on-exec, owned by the caller, -1 after a failure.
 * *size (may be NULL): its bytes. Symbolic links are followed. Thread-safe. */
NDT_MUST_CHECK enum ndt_status ndt_input_file_open(int *fd, uint64_t *size, const char *path,
                                                   struct ndt_error *err);
/** Checks that ndt_input_file_open would open the file now. With is_folder, `path` may also be a directory that can
 * be listed. */
NDT_MUST_CHECK enum ndt_status ndt_input_file_check(const char *path, int is_folder, struct ndt_error *err);
/** Reads a whole file of at most `limit` bytes into zero-terminated memory that the caller frees; *size without the
 * zero. NDT_ERR_LIMIT: it is larger. */
NDT_MUST_CHECK enum ndt_status ndt_input_file_read(char **out, size_t *size, const char *path, size_t limit,
                                                   struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
