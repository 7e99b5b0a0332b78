/* Private: correlative scan matching (Olson 2009) in a window within reach of the prediction, on the occupancy
 * field of the map, in the thread that matches.
 *
 * The searcher builds the field beside the matching; until it is there, nothing is proposed. One owner, one thread;
 * no allocation once the buffers have held the largest scan. */
#ifndef NDTD_WINDOW_H
#define NDTD_WINDOW_H

#include "matcher.h"
#include "ndtd/searcher.h"

struct ndtd_window;

NDT_MUST_CHECK enum ndt_status ndtd_window_create(struct ndtd_window **out,
                                                  const struct ndt_backend_config *compute, struct ndt_error *err);
/* `window` may be NULL. *out of a failed ndtd_window_create has to be destroyed, too. */
void ndtd_window_destroy(struct ndtd_window *window);

/* Extent of a search: the usual one; more places of a large window, where the vehicle is lost; or the few best ones
 * of a small window, always on cells of 0.5 m */
enum ndtd_window_effort { NDTD_WINDOW_USUAL, NDTD_WINDOW_THOROUGH, NDTD_WINDOW_FEW };

/* Searches with the scan of the matcher, whose points are on the host. is_near: a small window is searched on cells
 * of 0.5 m. Where there is no field of the map yet, or no time, *result has no candidates and *is_searched is 0. */
NDT_MUST_CHECK enum ndt_status
ndtd_window_search(struct ndtd_window *window, struct ndtd_searcher *searcher, const struct ndtd_matcher *matcher,
                   const struct ndt_search_region *region, int is_near, enum ndtd_window_effort effort,
                   const struct ndt_search_result **result, int *is_searched, struct ndt_error *err);

/* Height of a place above the ground of the map below it [m]; 0: the map has none there, or its field is not there
 * yet. `window` may be NULL. */
double ndtd_window_above_ground_m(const struct ndtd_window *window, const struct ndt_map *map,
                                  const double place_m[3]);

#endif
