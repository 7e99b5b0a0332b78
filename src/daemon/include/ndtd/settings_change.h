/* Which options can change while the daemon runs, and how a new configuration is merged into the one in force.
 * Pure functions. */
#ifndef NDTD_SETTINGS_CHANGE_H
#define NDTD_SETTINGS_CHANGE_H

#include "ndtd/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The optimiser's and preprocessing's numbers, passes, tracker, budget, log level and debug options can; everything
 * else (backend, threads, levels, voxels, sockets, queue, batch, dynamic map, rt, paths) needs a restart. */
int ndtd_option_can_change(const struct ndtd_option *option);
/* `running` takes over what can change in `wanted`. Names of the options that differ but cannot go to `restart`,
 * with
 * ", " between them, cut at `size`; empty when there are none. Both must have been finished. */
void ndtd_settings_merge(struct ndtd_settings *running, const struct ndtd_settings *wanted, char *restart,
                         size_t size);
/* Hash of what --print-config writes for these settings: equal hashes, equal configurations. 0 without memory. */
uint64_t ndtd_settings_hash(const struct ndtd_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
