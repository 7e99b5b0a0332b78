/** @file
 * @brief A picture of a map seen from above: pixels with a place in the map, as PNG with the files that tell it. */
#ifndef MAP_IMAGE_H
#define MAP_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

/** North (y) is up, east (x) to the right. */
struct map_image {
    uint32_t width, height;
    double min_m[2];   /**< lower left corner of the lower left pixel */
    double scale_m;    /**< edge of a pixel */
    uint8_t (*rgb)[3]; /**< rows from the top; owned */
};

enum { MAP_IMAGE_PIXELS_MAX = 100000000 };

/** Whether this build has libpng; NDT_ERR_UNSUPPORTED with one line. */
NDT_MUST_CHECK enum ndt_status map_image_supported(struct ndt_error *err);
/** Covers the rectangle. scale_m 0: so that the longer side has about 2000 pixels. Black. NDT_ERR_LIMIT: more than
 * MAP_IMAGE_PIXELS_MAX. */
NDT_MUST_CHECK enum ndt_status map_image_open(struct map_image *image, const double min_m[2], const double max_m[2],
                                              double scale_m, struct ndt_error *err);
/** Allowed on a zeroed one. */
void map_image_close(struct map_image *image);
/** Index of the pixel of a place; 0 outside. */
int map_image_find(const struct map_image *image, double x_m, double y_m, size_t *index);
/** Blends a disc over the picture. */
void map_image_disc(struct map_image *image, double x_m, double y_m, double radius_m, const uint8_t rgb[3]);
/** Colour of a rating, from red (0) over yellow to blue (1). */
void map_image_rating(double value, uint8_t rgb[3]);
/** Colour of a scale, from dark blue (0) over green to yellow (1). */
void map_image_scale(double value, uint8_t rgb[3]);

/** Writes PATH, its world file (PATH with .pgw) and a YAML for ROS map_server (with .yaml), each atomically. */
NDT_MUST_CHECK enum ndt_status map_image_write(const struct map_image *image, const char *path,
                                               struct ndt_error *err);
/** Whether the three files may be written, see tool_output_check. */
NDT_MUST_CHECK enum ndt_status map_image_check(const char *path, int force, struct ndt_error *err);

#endif
