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

/* Searches with the scan of the matcher, whose points are on the host. is_near: a small window is searched on cells
 * of 0.5 m. is_thorough: more places of a large window are looked at. Where there is no field of the map yet, or no
 * time, *result has no candidates and *is_searched is 0. */
NDT_MUST_CHECK enum ndt_status ndtd_window_search(struct ndtd_window *window, struct ndtd_searcher *searcher,
                                                  const struct ndtd_matcher *matcher,
                                                  const struct ndt_search_region *region, int is_near,
                                                  int is_thorough, const struct ndt_search_result **result,
                                                  int *is_searched, struct ndt_error *err);

#endif
