#include "ndt_io/cloud_file.h"

#include <string.h>
#include <strings.h>

#include "cloud_format.h"

static const struct ndt_cloud_format formats[] = {
    {".pcd", "PCD 0.7: ascii, binary, binary_compressed", ndt_pcd_read},
    {".ply", "PLY: ascii, binary little endian", ndt_ply_read},
    {".bin", "KITTI: float x y z intensity", ndt_kitti_bin_read},
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

enum ndt_status ndt_cloud_read(struct ndt_cloud *out, const char *path, struct ndt_error *err)
{
    struct ndt_input input;
    enum ndt_status status = ndt_input_open(&input, path, err);
    if (status != NDT_OK)
        return status;
    const struct ndt_cloud_format *format = ndt_cloud_format_find(path);
    if (!format)
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: no point cloud: its name ends in none of .pcd .ply .bin",
                          path);
    else if (input.size == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: is empty", path);
    else
        status = format->read(&input, out, err);
    if (status != NDT_OK)
        out->count = 0;
    ndt_input_close(&input);
    return status;
}
