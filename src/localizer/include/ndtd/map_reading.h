/** @file
 * @brief Maps that commands read: a line of progress (ndtd/progress_line.h), a warning of coarse coordinates. */
#ifndef NDTD_MAP_READING_H
#define NDTD_MAP_READING_H

#include "ndt_io/map_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/** ndt_map_load with a line of progress: bytes that were read of a file, or files of a folder, then levels that
 * were built. stop (may be NULL) cancels it as well: NDT_ERR_CANCELLED. */
NDT_MUST_CHECK enum ndt_status ndtd_map_read(struct ndt_map **out, const char *path,
                                             const struct ndt_map_config *config, const struct ndt_progress *stop,
                                             struct ndt_error *err);

/** Writes a warning where coordinates were stored so coarsely that accuracy suffers: neighbouring values are more
 * than 1 cm apart, as those of UTM in float32 are. Returns whether it wrote one. */
int ndtd_map_coarse_text(char *text, size_t size, const char *path, double spacing_m);

#ifdef __cplusplus
}
#endif
#endif
