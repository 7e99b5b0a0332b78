#define _GNU_SOURCE /* O_DIRECTORY, O_NOFOLLOW */

#include "recording_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "ndtd/recorder.h"

enum { NAME_BYTES = 200, DIRECTORY_MODE = 0750, FILE_MODE = 0640 };

enum ndt_status ndtd_recording_directory(char *out, size_t size, const char *configured, struct ndt_error *err)
{
    const char *state = getenv("STATE_DIRECTORY"); /* may be a list separated by ':' */
    const int length = state ? (int)strcspn(state, ":") : 0;
    const int used = *configured  ? snprintf(out, size, "%s", configured)
                     : length > 0 ? snprintf(out, size, "%.*s/recordings", length, state)
                                  : snprintf(out, size, "recordings");
    return used > 0 && (size_t)used < size
               ? NDT_OK
               : ndt_fail(err, NDT_ERR_LIMIT, "the path of the recording directory is too long");
}

enum ndt_status ndtd_recording_name_check(const char *name, const char *directory, struct ndt_error *err)
{
    const size_t length = strlen(name);
    int plain = length > 0 && length <= NAME_BYTES && name[0] != '.';
    for (const char *at = name; *at && plain; at++)
        plain = *at != '/' && (unsigned char)*at >= ' ' && *at != 0x7f;
    return plain ? NDT_OK
                 : ndt_fail(
                       err, NDT_ERR_ARGUMENT,
                       "'%.200s': a recording has a plain file name of 1 to %d bytes, without '/' and without '.' "
                       "at its begin; it goes into %.200s (recording.directory)",
                       name, NAME_BYTES, directory);
}

/* Opens the directory of a path; *name is the rest of the path. */
static int open_directory(const char *path, int make_directory, const char **name)
{
    char directory[2048];
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) : 0;
    *name = slash ? slash + 1 : path;
    if (length >= sizeof(directory)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(directory, path, length);
    directory[length] = '\0';
    if (!slash || length == 0)
        strcpy(directory, slash ? "/" : ".");
    if (make_directory && mkdir(directory, DIRECTORY_MODE) != 0 && errno != EEXIST)
        return -1;
    return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum ndt_status ndtd_recording_check_space(const struct ndtd_recording_file *file, const char *path,
                                           uint64_t min_free_bytes, struct ndt_error *err)
{
    struct statvfs disk;
    if (min_free_bytes == 0 || fstatvfs(file->directory_fd, &disk) != 0)
        return NDT_OK; /* the size is not known: writing will tell */
    const uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (free_bytes >= min_free_bytes)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_LIMIT, "%s: %.0f MB are free on its disk, less than recording.min_free_mb = %.0f",
                    path, (double)free_bytes * 1e-6, (double)min_free_bytes * 1e-6);
}

static enum ndt_status create(struct ndtd_recording_file *file, const char *path, const char *name,
                              struct ndt_error *err)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int fd = openat(file->directory_fd, name, flags, FILE_MODE);
    if (fd < 0 && errno == EEXIST)
        return ndt_fail(err, NDT_ERR_IO, "%s: exists already and is not overwritten", path);
    if (fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot open it for writing: %s", path, strerror(errno));
    const enum ndt_status status = ndt_bag_create_in(&file->bag, fd, path, err);
    if (status != NDT_OK)
        (void)unlinkat(file->directory_fd, name, 0);
    return status;
}

enum ndt_status ndtd_recording_open(struct ndtd_recording_file *file, const char *path, int make_directory,
                                    uint64_t min_free_bytes, struct ndt_error *err)
{
    const char *name;
    *file = (struct ndtd_recording_file){.directory_fd = open_directory(path, make_directory, &name)};
    if (file->directory_fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot open its directory: %s", path, strerror(errno));
    enum ndt_status status = ndtd_recording_check_space(file, path, min_free_bytes, err);
    if (status == NDT_OK)
        status = create(file, path, name, err);
    if (status != NDT_OK)
        close(file->directory_fd);
    return status;
}

enum ndt_status ndtd_recording_finish(struct ndtd_recording_file *file, struct ndt_error *err)
{
    const enum ndt_status status = ndt_bag_finish(file->bag, err);
    close(file->directory_fd);
    *file = (struct ndtd_recording_file){.directory_fd = -1};
    return status;
}
