#include "planted_races.h"

#include <stdio.h>
#include <stdlib.h>

#include "race_places.h"

enum { MOST_FAULTS = 1024 };

static unsigned char is_reached[MOST_FAULTS];
static int chosen;

static void write_reached(void)
{
    char line[16];
    for (int i = 0; i < MOST_FAULTS; i++) {
        snprintf(line, sizeof(line), "%d", i);
        if (is_reached[i])
            race_write_line("NDT_RACE_REACHED", line);
    }
}

__attribute__((constructor)) static void read_fault(void)
{
    const char *text = getenv("NDT_RACE_FAULT");
    chosen = text ? atoi(text) : 0;
    (void)atexit(write_reached);
}

int ndt_race_fault(int fault)
{
    if (fault <= 0 || fault >= MOST_FAULTS)
        abort();
    is_reached[fault] = 1;
    return fault == chosen;
}
