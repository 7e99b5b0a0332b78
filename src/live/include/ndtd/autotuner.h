/**
 * @file
 * @brief Keeps the live daemon on its best backend: found at the start in the cache or by measurement, and measured
 * again between scans when these take much longer than expected. A replay does not use it.
 *
 * Between scans a thread "ndt-autotune", with the cores of the thread that started it and a lower priority,
 * measures only while no scan is handled or expected soon, and repeats what a scan interrupted.
 *
 * All functions are for the matching thread. enter, leave and watch neither allocate nor lock.
 */
#ifndef NDTD_AUTOTUNER_H
#define NDTD_AUTOTUNER_H

#include "ndtd/autotune.h"
#include "ndtd/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_autotuner;

/** Acquires a reference to the snapshot. */
NDT_MUST_CHECK enum ndt_status ndtd_autotuner_create(struct ndtd_autotuner **out,
                                                     const struct ndtd_settings_snapshot *snapshot,
                                                     struct ndt_error *err);
/** Ends a measurement in progress after its current alignment. `tuner` may be NULL. */
void ndtd_autotuner_destroy(struct ndtd_autotuner *tuner);
/** Measurements that start later use this snapshot; one in progress keeps the one before. */
void ndtd_autotuner_apply(struct ndtd_autotuner *tuner, const struct ndtd_settings_snapshot *snapshot);

/** Looks in the cache, else measures now. Returns 0 when there is no result, which is logged, or autotuning is off.
 */
int ndtd_autotuner_find(struct ndtd_autotuner *tuner, struct ndt_map *map, struct ndtd_autotune_result *out);
/** Does the same between scans; ignored while a measurement runs. scan: real points to measure with, copied; the
 * cache is then not used. NULL: a scan drawn from the map. */
void ndtd_autotuner_start(struct ndtd_autotuner *tuner, struct ndt_map *map, const struct ndt_cloud *scan,
                          const struct ndt_pose *T_map_sensor);
/** Returns 1, once, when the measurement has a result and there is time to switch before the next scan.
 * *opened: an open device backend, owned by the caller from then on, or NULL. */
int ndtd_autotuner_take(struct ndtd_autotuner *tuner, struct ndtd_autotune_result *out,
                        struct ndt_backend **opened);

/** Enclose the handling of a scan that arrived at this time of the monotonic clock. */
void ndtd_autotuner_enter(struct ndtd_autotuner *tuner, double arrival_us);
void ndtd_autotuner_leave(struct ndtd_autotuner *tuner);
/** Adds the scan just handled to the drift detection. Returns 1 when it is time to measure again; at most once per
 * autotune.recheck_s, an interval that doubles each time up to an hour. */
int ndtd_autotuner_watch(struct ndtd_autotuner *tuner, const struct ndtd_autotune_result *tuned,
                         const struct ndtd_scan_record *record);

#ifdef __cplusplus
}
#endif
#endif
