#define _GNU_SOURCE /* sched_getaffinity */
#include "ndtd/machine_name.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

const char *ndtd_cpu_name(char *text, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(text, size, "unknown");
    while (file && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(text, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
        break;
    }
    if (file)
        fclose(file);
    return text;
}

const char *ndtd_machine_name(char *text, size_t size)
{
    char cpu[128];
    struct utsname system;
    cpu_set_t cores;
    const int count = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
    if (uname(&system) != 0)
        memset(&system, 0, sizeof(system));
    snprintf(text, size, "%s, %d core%s, %s %s %s", ndtd_cpu_name(cpu, sizeof(cpu)), count, count == 1 ? "" : "s",
             system.sysname, system.release, system.machine);
    return text;
}
