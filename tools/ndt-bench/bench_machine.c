#define _GNU_SOURCE /* CPU sets */
#include "bench_machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "ndt/backend.h"

static void read_cpu(char *text, size_t size)
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
}

void bench_machine_read(struct bench_machine *machine)
{
    cpu_set_t cores;
    read_cpu(machine->cpu, sizeof(machine->cpu));
    machine->cores = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
#ifdef __clang__
    snprintf(machine->compiler, sizeof(machine->compiler), "%s", __VERSION__);
#else
    snprintf(machine->compiler, sizeof(machine->compiler), "gcc %s", __VERSION__);
#endif
    ndt_cpu_variants(machine->variants, sizeof(machine->variants));
}
