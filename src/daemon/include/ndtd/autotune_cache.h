/* What was measured before, kept for the next start: one text file "routes" in $CACHE_DIRECTORY (systemd), else
 * $XDG_CACHE_HOME/ndtd, else $HOME/.cache/ndtd. A key stands for everything that the times depend on; the newest
 * entries come first, the oldest of more than 32 are dropped, and a file of more than 256 KiB is not read. Each
 * entry ends with a hash: what is damaged, of another version or makes no sense is left out, with one line in the
 * log, and never used. The file is written whole or not at all; of two writers at once the last one stays.
 *
 * Threads: any; two daemons may share the file. */
#ifndef NDTD_AUTOTUNE_CACHE_H
#define NDTD_AUTOTUNE_CACHE_H

#include "ndtd/autotune_result.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Processor, cores that may be used and their instruction sets, NVIDIA driver and devices, version of the program,
 * map, and the options that change what an alignment takes. Touches no device. */
uint64_t ndtd_autotune_key(const struct ndtd_settings *settings, uint64_t map_id);
/* Path of the file. NDT_ERR_IO: no folder is known or can be made. create: makes the folder (0700). */
NDT_MUST_CHECK enum ndt_status ndtd_autotune_cache_path(char *path, size_t size, int create, struct ndt_error *err);
/* 1: there is an entry, in `out` with the source cached; its choice is made anew for this budget. A choice other
 * than the one that was stored counts as none, as its costs are not known. */
int ndtd_autotune_cache_find(const char *path, uint64_t key, double budget_us, struct ndtd_autotune_result *out);
NDT_MUST_CHECK enum ndt_status ndtd_autotune_cache_store(const char *path, uint64_t key,
                                                         const struct ndtd_autotune_result *tuned,
                                                         struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
