#include "ndt_io/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char suffix[] = ".tmp";

static int is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Whether a path is written directly. /dev/stdout may be a link to a regular file; files under /dev/shm are
 * ordinary ones. */
static int is_direct(const char *path)
{
    struct stat info;
    if (is_stdout(path))
        return 1;
    if (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0)
        return 1;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static enum ndt_status fail_errno(const struct ndt_output *out, const char *what, struct ndt_error *err)
{
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot %s: %s", out->path, what, strerror(errno));
}

static void free_names(struct ndt_output *out)
{
    free(out->path);
    free(out->temporary);
    memset(out, 0, sizeof(*out));
}

/* Sets the target, with links resolved, and the temporary file in its directory. */
static enum ndt_status set_names(struct ndt_output *out, const char *path, struct ndt_error *err)
{
    out->path = is_direct(path) ? NULL : realpath(path, NULL);
    if (!out->path)
        out->path = strdup(path);
    if (!out->path)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: out of memory", path);
    if (is_direct(path))
        return NDT_OK;
    const size_t size = strlen(out->path) + sizeof(suffix);
    out->temporary = malloc(size);
    if (!out->temporary)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: out of memory", path);
    snprintf(out->temporary, size, "%s%s", out->path, suffix);
    return NDT_OK;
}

static FILE *open_stream(const struct ndt_output *out)
{
    if (is_stdout(out->path))
        return stdout;
    const int fd = out->temporary ? open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                                  : open(out->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file && fd >= 0) {
        const int failure = errno;
        close(fd);
        if (out->temporary)
            unlink(out->temporary);
        errno = failure;
    }
    return file;
}

enum ndt_status ndt_output_open(struct ndt_output *out, const char *path, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    if (path[0] == '\0')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "an output file needs a name");
    enum ndt_status status = set_names(out, path, err);
    if (status == NDT_OK) {
        out->file = open_stream(out);
        if (!out->file)
            status = fail_errno(out, "open it for writing", err);
    }
    if (status != NDT_OK)
        free_names(out);
    return status;
}

/* The cause of an earlier failure, whose errno is lost. */
static int lost_errno(FILE *file)
{
    struct statvfs disk;
    return fstatvfs(fileno(file), &disk) == 0 && disk.f_bavail == 0 ? ENOSPC : EIO;
}

static enum ndt_status flush(struct ndt_output *out, struct ndt_error *err)
{
    errno = 0;
    if (ferror(out->file) || fflush(out->file) != 0) {
        if (errno == 0)
            errno = lost_errno(out->file);
        return fail_errno(out, "write it", err);
    }
    if (out->temporary && fsync(fileno(out->file)) != 0)
        return fail_errno(out, "write it to the disk", err);
    return NDT_OK;
}

static int close_stream(struct ndt_output *out)
{
    FILE *file = out->file;
    out->file = NULL;
    return file && file != stdout ? fclose(file) : 0;
}

enum ndt_status ndt_output_commit(struct ndt_output *out, struct ndt_error *err)
{
    enum ndt_status status = flush(out, err);
    if (close_stream(out) != 0 && status == NDT_OK)
        status = fail_errno(out, "close it", err);
    if (status == NDT_OK && out->temporary && rename(out->temporary, out->path) != 0)
        status = fail_errno(out, "rename its new version over it", err);
    if (status != NDT_OK && out->temporary)
        unlink(out->temporary);
    free_names(out);
    return status;
}

void ndt_output_discard(struct ndt_output *out)
{
    close_stream(out);
    if (out->temporary)
        unlink(out->temporary);
    free_names(out);
}
