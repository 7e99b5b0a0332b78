/** @file
 * @brief Names, cores and priorities of threads, and locked memory.
 *
 * The operating system may refuse each of these. A refusal is one warning in the log that names the missing
 * privilege; the daemon continues without it. */
#ifndef NDTD_REALTIME_H
#define NDTD_REALTIME_H

#include <sched.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Parses "0,2-3"; an empty text is an empty set. NDT_ERR_ARGUMENT for anything else. */
NDT_MUST_CHECK enum ndt_status ndtd_cpu_list_parse(const char *text, cpu_set_t *cpus, struct ndt_error *err);
/** Sets the cores (rt.cpus, "0,2-3"; empty: any) and the SCHED_FIFO priority (rt.priority; 0: none) of the calling
 * thread and of the threads that it starts afterwards. */
void ndtd_realtime_enter(const char *cpus, int priority);
/** Names the calling thread; at most 15 bytes. */
void ndtd_thread_name(const char *name);
/** Locks the memory of the whole process (rt.lock_memory). */
void ndtd_realtime_lock_memory(void);

#ifdef __cplusplus
}
#endif
#endif
