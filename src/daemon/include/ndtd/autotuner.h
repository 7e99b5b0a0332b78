/* Keeps the live daemon's way of computing: found at the start from the cache or by measuring, and found again
 * beside the work when scans take much longer than measured. A replay has none of this.
 *
 * Beside the work: a thread "ndt-route", with the cores of the thread that asked for it and a lower priority,
 * measures only in moments in which no scan is handled or expected soon, and throws away what a scan got into.
 *
 * Threads: all functions are for the matching thread. Nothing here allocates or takes a lock per scan. */
#ifndef NDTD_AUTOTUNER_H
#define NDTD_AUTOTUNER_H

#include "ndtd/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_autotuner;
/* Acquires a reference to the snapshot. */
NDT_MUST_CHECK enum ndt_status ndtd_autotuner_create(struct ndtd_autotuner **out,
                                                     const struct ndtd_settings_snapshot *snapshot,
                                                     struct ndt_error *err);
/* Measurements that start later use this snapshot; one that is under way keeps the one before. */
void ndtd_autotuner_apply(struct ndtd_autotuner *tuner, const struct ndtd_settings_snapshot *snapshot);
/* Ends a measurement that is under way, after the alignment it is at. */
void ndtd_autotuner_destroy(struct ndtd_autotuner *tuner);

/* For the first map, at once: from the cache, or measured now. 0: nothing came of it, which was logged, or
 * autotune.enable is off. */
int ndtd_autotuner_find(struct ndtd_autotuner *tuner, struct ndt_map *map, struct ndtd_autotune_result *out);
/* The same beside the work. scan: real points to measure with (copied), and then the cache is not asked; NULL: none
 * yet. Ignored while another one runs. */
void ndtd_autotuner_start(struct ndtd_autotuner *tuner, struct ndt_map *map, const struct ndt_cloud *scan,
                          const struct ndt_pose *T_map_sensor);
/* 1: what was started has been found, and there is time to change over before the next scan is expected; once.
 * *opened: a backend on a device comes open, and is the caller's; else NULL. */
int ndtd_autotuner_take(struct ndtd_autotuner *tuner, struct ndtd_autotune_result *out,
                        struct ndt_backend **opened);

/* Around the handling of a scan that arrived then (monotonic clock). */
void ndtd_autotuner_enter(struct ndtd_autotuner *tuner, double arrival_us);
void ndtd_autotuner_leave(struct ndtd_autotuner *tuner);
/* The scan that was just handled, by the route in use. 1: scans take too long and it is time to measure again, see
 * autotune.recheck_s. */
int ndtd_autotuner_see(struct ndtd_autotuner *tuner, const struct ndtd_autotune_result *tuned,
                       const struct ndtd_scan_record *record);

#ifdef __cplusplus
}
#endif
#endif
