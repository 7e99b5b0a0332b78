/* Keeps the live daemon's way of computing: found at the start from the cache or by measuring, and found again
 * beside the work when scans take much longer than measured. A replay has none of this.
 *
 * Beside the work: a thread "ndt-route", with the cores of the thread that asked for it and a lower priority,
 * measures only in moments in which no scan is handled or expected soon, and throws away what a scan got into.
 *
 * Threads: all functions are for the matching thread. Nothing here allocates or takes a lock per scan. */
#ifndef NDTD_ROUTER_H
#define NDTD_ROUTER_H

#include "ndtd/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_router;
/* settings are copied. */
NDT_MUST_CHECK enum ndt_status ndtd_router_create(struct ndtd_router **out, const struct ndtd_settings *settings,
                                                  struct ndt_error *err);
/* Ends a measurement that is under way, after the alignment it is at. */
void ndtd_router_destroy(struct ndtd_router *router);

/* For the first map, at once: from the cache, or measured now. 0: nothing came of it, which was logged, or
 * routing.calibrate is off. */
int ndtd_router_find(struct ndtd_router *router, struct ndt_map *map, struct ndtd_route *out);
/* The same beside the work. scan: real points to measure with (copied), and then the cache is not asked; NULL: none
 * yet. Ignored while another one runs. */
void ndtd_router_start(struct ndtd_router *router, struct ndt_map *map, const struct ndt_cloud *scan,
                       const struct ndt_pose *T_map_sensor);
/* 1: what was started has been found, and there is time to change over before the next scan is expected; once.
 * *opened: a backend on a device comes open, and is the caller's; else NULL. */
int ndtd_router_take(struct ndtd_router *router, struct ndtd_route *out, struct ndt_backend **opened);

/* Around the handling of a scan that arrived then (monotonic clock). */
void ndtd_router_enter(struct ndtd_router *router, double arrival_us);
void ndtd_router_leave(struct ndtd_router *router);
/* The scan that was just handled, by the route in use. 1: scans take too long and it is time to measure again, see
 * routing.recheck_s. */
int ndtd_router_see(struct ndtd_router *router, const struct ndtd_route *route,
                    const struct ndtd_scan_record *record);

#ifdef __cplusplus
}
#endif
#endif
