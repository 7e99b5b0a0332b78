#include "web_process.h"

#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* /proc/self/stat would tell ticks since the boot; a second more or less does not matter here. */
static double start_s(void)
{
    static _Atomic int64_t start;
    int64_t none = 0;
    atomic_compare_exchange_strong(&start, &none, (int64_t)time(NULL));
    return (double)atomic_load(&start);
}

static void read_memory(double values[WEB_PROCESS_VALUES])
{
    const double page = (double)sysconf(_SC_PAGESIZE);
    double virtual_pages, resident_pages;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return;
    if (fscanf(file, "%lf %lf", &virtual_pages, &resident_pages) == 2) {
        values[WEB_PROCESS_VIRTUAL] = virtual_pages * page;
        values[WEB_PROCESS_RESIDENT] = resident_pages * page;
    }
    fclose(file);
}

static double count_fds(void)
{
    double count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return NAN;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; /* leaves out the descriptor of the folder */
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

void web_process_read(double values[WEB_PROCESS_VALUES])
{
    struct rusage usage;
    struct rlimit limit;
    for (int i = 0; i < WEB_PROCESS_VALUES; i++)
        values[i] = NAN;
    values[WEB_PROCESS_START] = start_s();
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        values[WEB_PROCESS_CPU] = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    read_memory(values);
    values[WEB_PROCESS_FDS] = count_fds();
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        values[WEB_PROCESS_MAX_FDS] = (double)limit.rlim_cur;
}
