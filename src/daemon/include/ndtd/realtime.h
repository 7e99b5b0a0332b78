/** @file
 * @brief Names, cores and priorities of threads, and locked memory.
 *
 * The operating system may refuse them. A refusal is one warning in the log that names the missing privilege; the
 * daemon continues without. */
#ifndef NDTD_REALTIME_H
#define NDTD_REALTIME_H

#include <sched.h>

#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Parses "0,2-3"; an empty text is an empty set. NDT_ERR_ARGUMENT for anything else. */
NDT_MUST_CHECK enum ndt_status ndtd_cpu_list_parse(const char *text, cpu_set_t *cpus, struct ndt_error *err);
/** Applies rt.cpus and rt.priority to the calling thread and the threads that it starts afterwards. */
void ndtd_realtime_enter(const struct ndtd_settings *settings);
/** Names the calling thread; at most 15 bytes. */
void ndtd_thread_name(const char *name);
/** Applies rt.lock_memory to the whole process. */
void ndtd_realtime_lock_memory(const struct ndtd_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
