/* The table of cloud formats, and KITTI's, which has no header. */
#include "ndt_io/cloud_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cloud_reader.h"

enum { POINT_SIZE = 16 };

/* The format has no magic number, so files with the magic number of another format are refused. */
static enum ndt_status check_content(const struct ndt_input *input, struct ndt_error *err)
{
    static const char *const others[] = {"# .PCD", "VERSION", "ply\n", "ply\r", "NDTBAG"};
    char begin[POINT_SIZE];
    if (input->size % POINT_SIZE != 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: %" PRIu64
                        " bytes are not a multiple of the %d bytes of a point (float x y z intensity)",
                        input->path, input->size, POINT_SIZE);
    enum ndt_status status = ndt_input_read(input, 0, begin, sizeof(begin), err);
    for (size_t i = 0; status == NDT_OK && i < sizeof(others) / sizeof(others[0]); i++)
        if (memcmp(begin, others[i], strlen(others[i])) == 0)
            status = ndt_fail(err, NDT_ERR_FORMAT, "%s: is named .bin but begins like a file of another format",
                              input->path);
    return status;
}

static enum ndt_status read_kitti(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err)
{
    static const char *const names[] = {"x", "y", "z", "intensity"};
    struct ndt_cloud_body body = {.input = input, .count = input->size / POINT_SIZE, .size = POINT_SIZE};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ndt_layout_bind(&body.layout, names[i], NDT_F32, i * sizeof(float), POINT_SIZE);
    enum ndt_status status = check_content(input, err);
    return status == NDT_OK ? ndt_body_read_binary(&body, cloud, err) : status;
}

static const struct ndt_cloud_format formats[] = {
    {".pcd", ndt_pcd_read},
    {".ply", ndt_ply_read},
    {".bin", read_kitti},
};

const struct ndt_cloud_format *ndt_cloud_format_find(const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const size_t size = strlen(formats[i].extension);
        if (length > size && strcasecmp(path + length - size, formats[i].extension) == 0)
            return &formats[i];
    }
    return NULL;
}

const char *ndt_cloud_format_list(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (used + strlen(formats[i].extension) + 2 <= size)
            used += (size_t)snprintf(text + used, size - used, " %s", formats[i].extension);
    return text;
}

int ndt_is_recording_name(const char *path)
{
    static const char *const extensions[] = {".bag", ".mcap", ".db3", ".pcap", ".pcapng", ".osf"};
    const char *extension = strrchr(path, '.');
    for (size_t i = 0; extension && i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (strcasecmp(extension, extensions[i]) == 0)
            return 1;
    return 0;
}

static enum ndt_status read_input(struct ndt_cloud *out, const struct ndt_input *input, struct ndt_error *err)
{
    char list[64];
    const struct ndt_cloud_format *format = ndt_cloud_format_find(input->path);
    if (!format && ndt_is_recording_name(input->path))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: a recording, not a map or a point cloud", input->path);
    if (!format)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "%s: not a point cloud file; extensions:%s; ndt-import map reads more", input->path,
                        ndt_cloud_format_list(list, sizeof(list)));
    if (input->size == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: is empty", input->path);
    return format->read(input, out, err);
}

enum ndt_status ndt_cloud_read(struct ndt_cloud *out, const char *path, struct ndt_error *err)
{
    return ndt_cloud_read_with(out, path, NULL, err);
}

enum ndt_status ndt_cloud_read_with(struct ndt_cloud *out, const char *path, struct ndt_progress *progress,
                                    struct ndt_error *err)
{
    struct ndt_input input;
    enum ndt_status status = ndt_input_open(&input, path, err);
    if (status != NDT_OK)
        return status;
    input.progress = progress;
    ndt_progress_set(progress, NDT_PROGRESS_BYTES, 0);
    ndt_progress_set(progress, NDT_PROGRESS_ALL_BYTES, input.size);
    status = read_input(out, &input, err);
    if (status != NDT_OK)
        out->count = 0;
    ndt_progress_add(progress, NDT_PROGRESS_ALL_POINTS, out->count);
    ndt_progress_add(progress, NDT_PROGRESS_TILES, status == NDT_OK);
    ndt_input_close(&input);
    return status;
}
