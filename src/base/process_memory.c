#include "ndtd/process_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a line such as "VmRSS: 1234 kB". */
static uint64_t status_bytes(const char *name)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && kib == 0 && fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoull(line + strlen(name), NULL, 10);
    if (file)
        fclose(file);
    return 1024 * (uint64_t)kib;
}

uint64_t ndtd_resident_bytes(void)
{
    return status_bytes("VmRSS:");
}

uint64_t ndtd_peak_resident_bytes(void)
{
    return status_bytes("VmHWM:");
}
