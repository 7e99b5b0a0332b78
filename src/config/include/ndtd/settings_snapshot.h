/** @file
 * @brief The settings in force, as an immutable object that all parts of the daemon share.
 *
 * The live daemon owns the current snapshot. A reload merges the new configuration into a copy of the settings,
 * creates a new snapshot and hands it to the worker, which hands it on to pipeline and autotuner. Each holder keeps
 * a reference and replaces it when it gets the next snapshot; a snapshot never changes.
 *
 * Threads: acquire and release are atomic and may be called by any thread that holds a reference. The other
 * functions are pure. */
#ifndef NDTD_SETTINGS_SNAPSHOT_H
#define NDTD_SETTINGS_SNAPSHOT_H

#include "ndtd/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An immutable copy of the settings. */
struct ndtd_settings_snapshot {
    struct ndtd_settings settings;
    uint64_t hash;       /**< ndtd_settings_hash of the settings, computed once */
    unsigned references; /**< private */
};

/** Copies the settings, which ndtd_settings_finish has accepted. The caller owns the first reference. */
NDT_MUST_CHECK enum ndt_status ndtd_settings_snapshot_create(const struct ndtd_settings_snapshot **out,
                                                             const struct ndtd_settings *settings,
                                                             struct ndt_error *err);
/** Adds a reference and returns `snapshot`. */
const struct ndtd_settings_snapshot *ndtd_settings_snapshot_acquire(const struct ndtd_settings_snapshot *snapshot);
/** Drops a reference; the last one frees the snapshot. NULL is allowed. */
void ndtd_settings_snapshot_release(const struct ndtd_settings_snapshot *snapshot);
/** Replaces the reference in `*held` by one to `next`. Both may be NULL. */
void ndtd_settings_snapshot_replace(const struct ndtd_settings_snapshot **held,
                                    const struct ndtd_settings_snapshot *next);

/** Copies every reloadable option from `wanted` to `running`. `restart` receives the names of the other options
 * that differ, separated by ", " and cut at `size`; empty when there are none. Both settings have been finished. */
void ndtd_settings_merge(struct ndtd_settings *running, const struct ndtd_settings *wanted, char *restart,
                         size_t size);
/** Hash of the text that --print-config writes for these settings; 0 when memory is exhausted. */
uint64_t ndtd_settings_hash(const struct ndtd_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
