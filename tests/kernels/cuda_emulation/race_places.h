/** @file
 * @brief Places in the code, as offsets from the begin of the program: names, and those of volatile accesses. */
#ifndef RACE_PLACES_H
#define RACE_PLACES_H

#include <stddef.h>
#include <stdint.h>

uint32_t race_place(const void *code); /* 0: not known */
/* File and line, which takes a while, or else only the offset. */
void race_place_name(uint32_t place, char *out, size_t bytes, int with_line);
/* Whether volatile accesses there count as such; notes the place. */
int race_counts_as_volatile(uint32_t place);
/* The places noted so far, to the file of NDT_RACE_SITES. */
void race_write_places(void);
/* Adds a line to the file that an environment variable names, if it does. */
void race_write_line(const char *variable, const char *line);

#endif
