/** @file
 * @brief `ndtd --compile-map`: saves any map as one file that loads without building. */
#ifndef NDTD_MAP_COMPILE_H
#define NDTD_MAP_COMPILE_H

#include <stdio.h>

#include "ndtd/settings.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Loads settings->map_path with the levels of the settings, saves it as `path` (ends in .ndtmap), loads that file
 * and compares the ids; prints points, voxels, sizes and times to `report`. NDT_ERR_ARGUMENT: no map, or a wrong
 * name. */
NDT_MUST_CHECK enum ndt_status ndtd_map_compile(const struct ndtd_settings *settings, const char *path,
                                                FILE *report, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
