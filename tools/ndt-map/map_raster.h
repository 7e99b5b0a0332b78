/** @file
 * @brief A map seen from above, as a picture: by height, density, or occupancy. */
#ifndef MAP_RASTER_H
#define MAP_RASTER_H

#include "map_image.h"
#include "map_patches.h"
#include "ndt/cloud.h"
#include "ndt_search/field.h"

/** Sums of a pixel. */
struct map_pixel {
    float top_m;    /**< above the origin of the raster */
    uint32_t count; /**< points */
};

struct map_raster {
    struct map_image *image; /**< borrowed */
    double base_m;           /**< height of top_m = 0 */
    struct map_pixel *pixels;
};

/** Starts empty, with the pixels of an open picture. */
NDT_MUST_CHECK enum ndt_status map_raster_open(struct map_raster *raster, struct map_image *image, double base_m,
                                               struct ndt_error *err);
/** Allowed on a zeroed one. */
void map_raster_close(struct map_raster *raster);
/** Takes the points of a cloud, or of the surface of a map. */
void map_raster_add(struct map_raster *raster, const struct ndt_cloud *cloud);
void map_raster_add_patches(struct map_raster *raster, const struct map_patches *patches);

/** Colours by the highest point, from the 2nd to the 98th percentile, shaded by its slope. */
NDT_MUST_CHECK enum ndt_status map_raster_draw_height(const struct map_raster *raster, struct ndt_error *err);
/** White on black by the logarithm of the number of points; `part` of full brightness. */
void map_raster_draw_density(const struct map_raster *raster, double part);
/** Draws a map for map_server: black where something stands 0.3 to 2 m above the ground, white where ground is
 * known, grey elsewhere. */
void map_raster_draw_occupancy(struct map_image *image, const struct ndt_field *field);

#endif
