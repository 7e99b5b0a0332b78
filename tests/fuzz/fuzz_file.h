/* Files in memory for readers that take a path: a link NAME in a temporary folder leads to a memfd, so that nothing
 * touches a disk, and the reader sees a regular file with the extension that it expects. */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include <stddef.h>

struct fuzz_file {
    int fd;
    char path[512];
};

/* Creates the file; fails the process when that is not possible. The folder ($TMPDIR, else /tmp) is removed at a
 * regular exit. */
void fuzz_file_open(struct fuzz_file *file, const char *name);
/* Replaces the contents. */
void fuzz_file_write(struct fuzz_file *file, const void *data, size_t size);
/* The temporary folder of this process. */
const char *fuzz_folder(void);

#endif
