#include "ndtd/recording.h"

#include <stdlib.h>
#include <unistd.h>

#include "ndtd/importer.h"

struct ndtd_recording {
    const char *path;
    const char *const *import_args;
    size_t import_arg_count;
    struct ndt_progress *progress;
    struct ndtd_importer *importer; /* NULL: a bag or a stream */
    int fd;                         /* of the import, until `bag` owns it; else -1 */
    struct ndt_bag_reader *bag;     /* of an import: NULL before the first record, whose wait the caller can use */
};

static enum ndt_status start_import(struct ndtd_recording *recording, struct ndt_error *err)
{
    return ndtd_importer_start(&recording->importer, &recording->fd, recording->path, recording->import_args,
                               recording->import_arg_count, err);
}

static void end_import(struct ndtd_recording *recording)
{
    ndt_bag_close(recording->bag);
    recording->bag = NULL;
    if (recording->fd >= 0)
        close(recording->fd);
    recording->fd = -1;
    ndtd_importer_destroy(recording->importer);
    recording->importer = NULL;
}

static enum ndt_status open_bag(struct ndtd_recording *recording, struct ndt_error *err)
{
    if (recording->import_arg_count > 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: what follows -- is for ndt-import, which a bag does not need",
                        recording->path);
    return ndt_bag_open_any(&recording->bag, recording->path, recording->progress, err);
}

enum ndt_status ndtd_recording_open(struct ndtd_recording **out, const char *path, const char *const *import_args,
                                    size_t import_arg_count, struct ndt_progress *progress, struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_recording *recording = calloc(1, sizeof(*recording));
    if (!recording)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    *recording = (struct ndtd_recording){.path = path,
                                         .import_args = import_args,
                                         .import_arg_count = import_arg_count,
                                         .progress = progress,
                                         .fd = -1};
    const enum ndt_status status =
        ndtd_import_is_needed(path) ? start_import(recording, err) : open_bag(recording, err);
    if (status == NDT_OK)
        *out = recording;
    else
        ndtd_recording_close(recording);
    return status;
}

/* A bag that ends is complete when the import says so. */
static enum ndt_status end_of_import(struct ndtd_recording *recording, enum ndt_status status,
                                     struct ndt_error *err)
{
    struct ndt_error why = {""};
    if (status == NDT_ERR_CANCELLED)
        return status;
    const enum ndt_status ended = ndtd_importer_finish(recording->importer, recording->progress, &why);
    return ended == NDT_OK ? status : ndt_fail(err, ended, "%s", why.text);
}

enum ndt_status ndtd_recording_next(struct ndtd_recording *recording, struct ndt_bag_record *out,
                                    struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (!recording->bag && recording->fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: its import has ended", recording->path);
    if (!recording->bag) {
        const int fd = recording->fd;
        recording->fd = -1;
        status = ndt_bag_open_stream(&recording->bag, fd, recording->path, recording->progress, err);
    }
    if (status == NDT_OK)
        status = ndt_bag_next(recording->bag, out, err);
    return status == NDT_OK || !recording->importer ? status : end_of_import(recording, status, err);
}

int ndtd_recording_can_rewind(const struct ndtd_recording *recording)
{
    return recording->importer || !ndt_bag_is_stream(recording->bag);
}

enum ndt_status ndtd_recording_rewind(struct ndtd_recording *recording, struct ndt_error *err)
{
    if (recording->importer) {
        end_import(recording);
        return start_import(recording, err);
    }
    if (!ndtd_recording_can_rewind(recording))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: a pipe is read once", recording->path);
    ndt_bag_rewind(recording->bag);
    return NDT_OK;
}

uint64_t ndtd_recording_offset(const struct ndtd_recording *recording)
{
    return recording->bag ? ndt_bag_offset(recording->bag) : 0;
}

double ndtd_recording_done(const struct ndtd_recording *recording)
{
    if (!recording->bag || ndt_bag_is_stream(recording->bag))
        return -1;
    return (double)ndt_bag_offset(recording->bag) / (double)(ndt_bag_size(recording->bag) + 1);
}

void ndtd_recording_close(struct ndtd_recording *recording)
{
    if (!recording)
        return;
    end_import(recording);
    free(recording);
}
