/**
 * @file
 * Autotune results stored for the next start: the text file "autotune" in $CACHE_DIRECTORY (systemd), else
 * $XDG_CACHE_HOME/ndtd, else $HOME/.cache/ndtd.
 *
 * One line per entry, the newest first, at most 32; each begins with a hash of the rest. A damaged entry, or a file
 * that is not ours, is ignored with one line in the log. The file is written whole or not at all; of two writers at
 * the same time the last one wins.
 *
 * Any thread; daemons may share the file.
 */
#ifndef NDTD_AUTOTUNE_CACHE_H
#define NDTD_AUTOTUNE_CACHE_H

#include "ndtd/autotune.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Hash of what alignment times depend on: processor, usable cores and instruction sets, NVIDIA driver and devices,
 * program version, candidates, map and options. Does not touch a device. */
uint64_t ndtd_autotune_key(const struct ndtd_settings *settings, uint64_t map_id);
/** Path of the file. create: makes the folder (0700). NDT_ERR_IO: no folder is known or can be made. */
NDT_MUST_CHECK enum ndt_status ndtd_autotune_cache_path(char *path, size_t size, int create, struct ndt_error *err);
/** Returns 1 when there is an entry. The choice is made again for the budget in force; when it differs from the
 * stored one the entry does not count, since its expected costs are unknown. */
int ndtd_autotune_cache_find(const struct ndtd_settings *settings, uint64_t map_id,
                             struct ndtd_autotune_result *out);
NDT_MUST_CHECK enum ndt_status ndtd_autotune_cache_store(const struct ndtd_settings *settings,
                                                         const struct ndtd_autotune_result *tuned,
                                                         struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
