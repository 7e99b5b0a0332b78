#include "ndtd/record_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndtd/importer.h"

struct ndtd_record_source {
    const char *path;
    const char *const *import_args;
    size_t import_arg_count;
    struct ndt_progress *progress;
    struct ndtd_importer *importer; /* NULL: a bag or a stream */
    int fd;                         /* descriptor of the import, which `bag` reads through another one; else -1 */
    struct ndt_bag_reader *bag;     /* NULL before the first record of an import, whose wait the caller can use */
};

static enum ndt_status start_import(struct ndtd_record_source *source, struct ndt_error *err)
{
    return ndtd_importer_start(&source->importer, &source->fd, source->path, source->import_args,
                               source->import_arg_count, err);
}

static void end_import(struct ndtd_record_source *source)
{
    ndt_bag_close(source->bag);
    source->bag = NULL;
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
    ndtd_importer_destroy(source->importer);
    source->importer = NULL;
}

static enum ndt_status open_bag(struct ndtd_record_source *source, struct ndt_error *err)
{
    if (source->import_arg_count > 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: what follows -- is for ndt-import, which a bag does not need",
                        source->path);
    return ndt_bag_open_any(&source->bag, source->path, source->progress, err);
}

enum ndt_status ndtd_record_source_open(struct ndtd_record_source **out, const char *path,
                                        const char *const *import_args, size_t import_arg_count,
                                        struct ndt_progress *progress, struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_record_source *source = calloc(1, sizeof(*source));
    if (!source)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    *source = (struct ndtd_record_source){.path = path,
                                          .import_args = import_args,
                                          .import_arg_count = import_arg_count,
                                          .progress = progress,
                                          .fd = -1};
    const enum ndt_status status = ndtd_import_is_needed(path) ? start_import(source, err) : open_bag(source, err);
    if (status == NDT_OK)
        *out = source;
    else
        ndtd_record_source_close(source);
    return status;
}

/* Whether everything was read, and no writer is left. */
static int is_at_end(int fd)
{
    struct pollfd pipe = {.fd = fd, .events = POLLIN};
    return poll(&pipe, 1, 0) > 0 && !(pipe.revents & POLLIN);
}

/* Ends an import: a bag that ends is complete if the import succeeded. A damaged bag is not read on, because its
 * import would wait for ever. */
static enum ndt_status end_of_import(struct ndtd_record_source *source, enum ndt_status status,
                                     const struct ndt_error *why, struct ndt_error *err)
{
    enum ndt_status ended = NDT_OK;
    if (status == NDT_END || (status == NDT_ERR_FORMAT && is_at_end(source->fd)))
        ended = ndtd_importer_finish(source->importer, source->progress, err);
    if (ended != NDT_OK || status == NDT_END)
        return ended != NDT_OK ? ended : status;
    if (status == NDT_ERR_FORMAT)
        return ndt_fail(err, NDT_ERR_IO, "%s (what ndt-import wrote)", why->text);
    return ndt_fail(err, status, "%s", why->text);
}

enum ndt_status ndtd_record_source_next(struct ndtd_record_source *source, struct ndt_bag_record *out,
                                        struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    struct ndt_error why = {""};
    if (!source->bag) {
        const int fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
            return ndt_fail(err, NDT_ERR_IO, "%s: cannot read its import: %s", source->path, strerror(errno));
        status = ndt_bag_open_stream(&source->bag, fd, source->path, source->progress, &why);
    }
    if (status == NDT_OK)
        status = ndt_bag_next(source->bag, out, &why);
    if (status == NDT_OK || source->importer)
        return status == NDT_OK ? NDT_OK : end_of_import(source, status, &why, err);
    return status == NDT_END ? NDT_END : ndt_fail(err, status, "%s", why.text);
}

void ndtd_record_source_pass(struct ndtd_record_source *source, uint32_t types)
{
    if (source->bag)
        ndt_bag_pass(source->bag, types);
}

int ndtd_record_source_can_rewind(const struct ndtd_record_source *source)
{
    return source->importer || !ndt_bag_is_stream(source->bag);
}

enum ndt_status ndtd_record_source_rewind(struct ndtd_record_source *source, struct ndt_error *err)
{
    if (source->importer) {
        end_import(source);
        return start_import(source, err);
    }
    if (!ndtd_record_source_can_rewind(source))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: a pipe is read once", source->path);
    ndt_bag_rewind(source->bag);
    return NDT_OK;
}

uint64_t ndtd_record_source_offset(const struct ndtd_record_source *source)
{
    return source->bag ? ndt_bag_offset(source->bag) : 0;
}

double ndtd_record_source_done(const struct ndtd_record_source *source)
{
    if (!source->bag || ndt_bag_is_stream(source->bag))
        return -1;
    return (double)ndt_bag_offset(source->bag) / (double)(ndt_bag_size(source->bag) + 1);
}

void ndtd_record_source_close(struct ndtd_record_source *source)
{
    if (!source)
        return;
    end_import(source);
    free(source);
}
