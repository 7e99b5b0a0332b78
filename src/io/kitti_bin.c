#include <inttypes.h>
#include <string.h>

#include "cloud_body.h"
#include "cloud_format.h"

enum { POINT_SIZE = 16 };

/* The format has no magic of its own, so at least those of the others are refused. */
static enum ndt_status check_content(const struct ndt_input *input, struct ndt_error *err)
{
    static const char *const others[] = {"# .PCD", "VERSION", "ply\n", "ply\r", "NDTBAG"};
    char begin[POINT_SIZE];
    if (input->size % POINT_SIZE != 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: %" PRIu64 " bytes are no whole number of points of %d bytes (float x y z intensity)",
                        input->path, input->size, POINT_SIZE);
    enum ndt_status status = ndt_input_read(input, 0, begin, sizeof(begin), err);
    for (size_t i = 0; status == NDT_OK && i < sizeof(others) / sizeof(others[0]); i++)
        if (memcmp(begin, others[i], strlen(others[i])) == 0)
            status = ndt_fail(err, NDT_ERR_FORMAT, "%s: is named .bin but begins as a file of another format",
                              input->path);
    return status;
}

enum ndt_status ndt_kitti_bin_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err)
{
    static const char *const names[] = {"x", "y", "z", "intensity"};
    struct ndt_cloud_body body = {.input = input, .count = input->size / POINT_SIZE, .size = POINT_SIZE};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ndt_layout_bind(&body.layout, names[i], NDT_F32, i * sizeof(float), POINT_SIZE);
    enum ndt_status status = check_content(input, err);
    return status == NDT_OK ? ndt_body_read_binary(&body, cloud, err) : status;
}
