/* The table of cloud formats. Adding one is adding a file and a row. Private to ndt_io. */
#ifndef NDT_IO_CLOUD_FORMAT_H
#define NDT_IO_CLOUD_FORMAT_H

#include "input_file.h"
#include "ndt/cloud.h"

struct ndt_cloud_format {
    const char *extension; /* with the dot, lower case */
    /* `cloud` is initialised, and reused; what it holds after a failure does not matter. */
    enum ndt_status (*read)(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err);
};

/* The format whose extension the path has, in any case of letters; NULL for none. */
const struct ndt_cloud_format *ndt_cloud_format_find(const char *path);
/* All extensions with a blank before each, for error lines; returns `text`. */
const char *ndt_cloud_format_list(char *text, size_t size);

enum ndt_status ndt_pcd_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err);
enum ndt_status ndt_ply_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err);
enum ndt_status ndt_kitti_bin_read(const struct ndt_input *input, struct ndt_cloud *cloud, struct ndt_error *err);

#endif
