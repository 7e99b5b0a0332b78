/* Private to ndt_io: pipes and other descriptors that are read or written once, from begin to end. */
#ifndef NDT_IO_STREAM_H
#define NDT_IO_STREAM_H

#include <stddef.h>

#include "ndt/progress.h"
#include "ndt/status.h"

/* Whether the path is the name of standard input and output. */
int ndt_stream_is_standard(const char *path);
/* Whether the path is standard input or output or a pipe (a FIFO, /dev/stdin, <(...)), or /dev/null. */
int ndt_stream_is_stream(const char *path);
/* Opens a stream for reading; a FIFO also before it has a writer. NDT_ERR_IO for a terminal. */
NDT_MUST_CHECK enum ndt_status ndt_stream_open_input(int *fd, const char *path, struct ndt_error *err);
/* Opens a stream for writing; a FIFO waits for its reader. NDT_ERR_IO for a terminal. */
NDT_MUST_CHECK enum ndt_status ndt_stream_open_output(int *fd, const char *path, struct ndt_error *err);
/* Reads until `buffer` is full or the stream ends; *got bytes. Sleeps while no bytes are there. NDT_ERR_CANCELLED.
 */
NDT_MUST_CHECK enum ndt_status ndt_stream_read(int fd, const char *path, void *buffer, size_t size, size_t *got,
                                               struct ndt_progress *progress, struct ndt_error *err);

#endif
