/** @file
 * @brief ndt_map_load with a line of progress (ndtd/progress_line.h). */
#ifndef NDTD_MAP_READING_H
#define NDTD_MAP_READING_H

#include "ndt_io/map_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As ndt_map_load; the line tells the bytes that were read of a file, the files of a folder, then the levels that
 * were built. */
NDT_MUST_CHECK enum ndt_status ndtd_map_read(struct ndt_map **out, const char *path,
                                             const struct ndt_map_config *config, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
