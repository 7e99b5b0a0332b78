#include "input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum ndt_status ndt_input_open(struct ndt_input *out, const char *path, struct ndt_error *err)
{
    struct stat info;
    /* O_NONBLOCK: a pipe without a writer must be refused, not waited for. */
    out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    out->path = path;
    if (out->fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(out->fd, &info) == 0 && S_ISREG(info.st_mode)) {
        out->size = (uint64_t)info.st_size;
        return NDT_OK;
    }
    ndt_input_close(out);
    return ndt_fail(err, NDT_ERR_IO, "%s: is %s, not a file", path,
                    S_ISDIR(info.st_mode) ? "a directory" : "a pipe or device");
}

void ndt_input_close(struct ndt_input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    input->fd = -1;
}

enum ndt_status ndt_input_read(const struct ndt_input *input, uint64_t offset, void *buffer, size_t size,
                               struct ndt_error *err)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t got = pread(input->fd, (char *)buffer + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ndt_fail(err, NDT_ERR_IO, "%s: cannot read at byte %" PRIu64 ": %s", input->path, offset + done,
                            strerror(errno));
        if (got == 0)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: ends at byte %" PRIu64 ", %zu bytes too early", input->path,
                            offset + done, size - done);
        done += (size_t)got;
    }
    return NDT_OK;
}
