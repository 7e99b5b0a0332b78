/* Names, cores, priorities of threads, and memory that stays: what the operating system may refuse. A refusal is
 * one warning in the log that says what is missing; the daemon goes on without. */
#ifndef NDTD_REALTIME_H
#define NDTD_REALTIME_H

#include <sched.h>

#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0,2-3" to a set; an empty text is an empty set. NDT_ERR_ARGUMENT for everything else. */
NDT_MUST_CHECK enum ndt_status ndtd_cpu_list_parse(const char *text, cpu_set_t *cpus, struct ndt_error *err);
/* For the calling thread, and the threads that it starts from then on: rt.cpus and rt.priority. */
void ndtd_realtime_enter(const struct ndtd_settings *settings);
/* At most 15 bytes. */
void ndtd_thread_name(const char *name);
/* rt.lock_memory for the whole process. */
void ndtd_realtime_lock_memory(const struct ndtd_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
