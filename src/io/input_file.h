/* A regular file that is only read, at stated places. Reads by pread and never by mmap: a file that
 * shrinks meanwhile then gives an error and not a SIGBUS. Private to ndt_io. */
#ifndef NDT_IO_INPUT_FILE_H
#define NDT_IO_INPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

struct ndt_input {
    int fd;
    const char *path; /* borrowed */
    uint64_t size;    /* bytes, as found when it was opened */
};

/* NDT_ERR_IO for what cannot be opened, and for directories, pipes and devices. */
NDT_MUST_CHECK enum ndt_status ndt_input_open(struct ndt_input *out, const char *path, struct ndt_error *err);
void ndt_input_close(struct ndt_input *input);
/* Exactly `size` bytes from `offset`, else NDT_ERR_FORMAT naming the place where the file ends. */
NDT_MUST_CHECK enum ndt_status ndt_input_read(const struct ndt_input *input, uint64_t offset, void *buffer,
                                              size_t size, struct ndt_error *err);

#endif
