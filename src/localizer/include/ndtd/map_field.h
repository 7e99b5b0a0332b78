/** @file
 * @brief The field of a map (ndt_search/field.h), read from the map's file or built. */
#ifndef NDTD_MAP_FIELD_H
#define NDTD_MAP_FIELD_H

#include "ndt_search/field.h"

/** Decodes the field that is attached to a compiled map, if it is of this map, else builds it: seconds for a large
 * map. The caller owns one reference. NDT_ERR_UNSUPPORTED: the map has no level that a field is built from. */
NDT_MUST_CHECK enum ndt_status ndtd_map_field(struct ndt_field **out, const struct ndt_map *map,
                                              struct ndt_error *err);
/** ndt_map_save with the map's field attached where the map has one. */
NDT_MUST_CHECK enum ndt_status ndtd_map_save(const struct ndt_map *map, const char *path, struct ndt_error *err);

#endif
