#define _GNU_SOURCE /* CPU sets, names of threads */
#include "ndtd/realtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "ndtd/log.h"

/* Parses the core number at *at; -1 if there is none or it is too large. */
static long read_core(const char **at)
{
    const size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > 4)
        return -1;
    const long core = strtol(*at, NULL, 10);
    *at += digits;
    return core < CPU_SETSIZE ? core : -1;
}

enum ndt_status ndtd_cpu_list_parse(const char *text, cpu_set_t *cpus, struct ndt_error *err)
{
    CPU_ZERO(cpus);
    for (const char *at = text; *at;) {
        const long first = read_core(&at);
        long last = first;
        if (*at == '-') {
            at++;
            last = read_core(&at);
        }
        if (first < 0 || last < first || (*at && *at != ',') || (*at == ',' && !at[1]))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "rt.cpus: '%.60s' is not a list of cores such as 0,2-3", text);
        at += *at == ',';
        for (long core = first; core <= last; core++)
            CPU_SET((size_t)core, cpus);
    }
    return NDT_OK;
}

void ndtd_thread_name(const char *name)
{
    pthread_setname_np(pthread_self(), name);
}

static void enter_cpus(const char *list)
{
    cpu_set_t cpus;
    if (ndtd_cpu_list_parse(list, &cpus, NULL) != NDT_OK || CPU_COUNT(&cpus) == 0)
        return;
    const int error = pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
    if (error)
        ndtd_log(NDTD_LOG_WARNING, "rt.cpus %s: %s; the matching threads run on any core", list, strerror(error));
}

void ndtd_realtime_enter(const char *cpus, int priority)
{
    const struct sched_param parameters = {.sched_priority = priority};
    enter_cpus(cpus);
    if (priority == 0)
        return;
    const int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
    if (error)
        ndtd_log(NDTD_LOG_WARNING,
                 "rt.priority %d: %s; it needs CAP_SYS_NICE or LimitRTPRIO=%d. Continuing with normal priority",
                 priority, strerror(error), priority);
}

void ndtd_realtime_lock_memory(void)
{
    struct rlimit limit;
    /* With a limit, MCL_FUTURE would make allocations fail when the limit is reached. */
    const int unlimited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
    if (mlockall(unlimited ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT) != 0)
        ndtd_log(NDTD_LOG_WARNING,
                 "rt.lock_memory: %s; it needs CAP_IPC_LOCK or LimitMEMLOCK=infinity. Continuing without",
                 strerror(errno));
    else if (!unlimited)
        ndtd_log(NDTD_LOG_WARNING,
                 "rt.lock_memory: only memory in use now is locked, because LimitMEMLOCK is %llu bytes",
                 (unsigned long long)limit.rlim_cur);
}
