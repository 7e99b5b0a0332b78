/* Private to the recorder: new bags in a directory, and the free space on its disk. */
#ifndef NDTD_RECORDING_FILE_H
#define NDTD_RECORDING_FILE_H

#include <stdint.h>

#include "ndt_io/bag.h"

struct ndtd_recording_file {
    struct ndt_bag_writer *bag;
    int directory_fd; /* its directory */
};

/* Whether `name` may be used in the recording directory. */
NDT_MUST_CHECK enum ndt_status ndtd_recording_name_check(const char *name, const char *directory,
                                                         struct ndt_error *err);
/* Creates a bag at a path; the directory is created if it is missing and `make_directory`. */
NDT_MUST_CHECK enum ndt_status ndtd_recording_open(struct ndtd_recording_file *file, const char *path,
                                                   int make_directory, uint64_t min_free_bytes,
                                                   struct ndt_error *err);
/* Fails when less than min_free_bytes are free for this user. */
NDT_MUST_CHECK enum ndt_status ndtd_recording_check_space(const struct ndtd_recording_file *file, const char *path,
                                                          uint64_t min_free_bytes, struct ndt_error *err);
/* Writes the bag to the disk and closes it. */
NDT_MUST_CHECK enum ndt_status ndtd_recording_finish(struct ndtd_recording_file *file, struct ndt_error *err);

#endif
