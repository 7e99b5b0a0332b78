#define _GNU_SOURCE /* popen */
#include "race_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PLACES = 512 };

extern const char __executable_start[];

/* Places of volatile accesses; is_weak: by NDT_RACE_WEAK. */
static struct {
    uint32_t place;
    int is_weak;
} places[MOST_PLACES];
static unsigned place_count;

uint32_t race_place(const void *code)
{
    return code ? (uint32_t)((const char *)code - __executable_start) - 1 : 0; /* within the call */
}

void race_place_name(uint32_t place, char *out, size_t bytes, int with_line)
{
    char command[128];
    snprintf(out, bytes, "0x%x", place);
    if (place == 0) {
        snprintf(out, bytes, "a call of the device library");
        return;
    }
    if (!with_line)
        return;
    snprintf(command, sizeof(command), "addr2line -s -e /proc/%d/exe 0x%x 2>/dev/null", (int)getpid(), place);
    FILE *pipe = popen(command, "r");
    if (!pipe)
        return;
    if (fgets(command, sizeof(command), pipe)) {
        command[strcspn(command, " \n")] = 0;
        if (command[0] != '?' && command[0] != 0)
            snprintf(out, bytes, "%s", command);
    }
    (void)pclose(pipe);
}

static int is_named(uint32_t place)
{
    const char *text = getenv("NDT_RACE_WEAK");
    while (text && *text) {
        char *end;
        if (strtoul(text, &end, 16) == place)
            return 1;
        text = *end == ',' ? end + 1 : NULL;
    }
    return 0;
}

int race_counts_as_volatile(uint32_t place)
{
    for (unsigned i = 0; i < place_count; i++)
        if (places[i].place == place)
            return !places[i].is_weak;
    if (place_count == MOST_PLACES)
        abort();
    places[place_count].place = place;
    places[place_count].is_weak = is_named(place);
    return !places[place_count++].is_weak;
}

void race_write_line(const char *variable, const char *line)
{
    const char *path = getenv(variable);
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s\n", line);
    (void)fclose(file);
}

void race_write_places(void)
{
    char line[32];
    for (unsigned i = 0; i < place_count; i++) {
        snprintf(line, sizeof(line), "%x", places[i].place);
        race_write_line("NDT_RACE_SITES", line);
    }
}
