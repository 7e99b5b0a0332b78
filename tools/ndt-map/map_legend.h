/** @file
 * @brief The legend of a rating in a picture: a strip below the map with a title and the colours from red to blue.
 */
#ifndef MAP_LEGEND_H
#define MAP_LEGEND_H

#include "map_image.h"

/** Texts of small letters and digits; others are left blank. */
struct map_legend {
    const char *title, *worst, *best; /**< what is shown, and what red and blue stand for */
};

/** Makes room for the strip in the bounds of a picture with pixels of scale_m. Returns the edge of a dot of its
 * letters [pixels], which grows with the picture. */
int map_legend_room(const struct map_legend *legend, double min_m[2], double max_m[2], double scale_m);
/** Draws it over the lowest rows of a picture with such bounds; dot: as map_legend_room has returned it. */
void map_legend_draw(const struct map_legend *legend, struct map_image *image, int dot);

#endif
