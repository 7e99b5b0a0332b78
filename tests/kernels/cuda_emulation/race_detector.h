/** @file
 * @brief Finds accesses of different lanes to the same memory without order between them, while kernels run, and
 * loads from the device's memory of what nothing has written.
 *
 * Kernels are compiled with -fsanitize=thread, and race_tsan.c stands in for the library of the sanitizer.
 * NDT_RACE_PAUSE=N: another lane may run before every N-th access, at random (32).
 * NDT_RACE_SITES=FILE: adds the places of all volatile accesses to FILE, when the program ends.
 * NDT_RACE_WEAK=PLACE,...: volatile accesses at these places count as plain ones: a planted fault.
 * NDT_RACE_COUNTS=FILE: adds the counts to FILE, when the program ends. */
#ifndef RACE_DETECTOR_H
#define RACE_DETECTOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* An access of the running kernel, before it happens; `from`: the address of the code. */
void race_load(const void *at, unsigned long bytes, int is_volatile, const void *from);
void race_store(const void *at, unsigned long bytes, int is_volatile, const void *from);

/* Gets the line about each race; NULL, as it is at first: it is printed, and the program aborts. */
extern void (*race_reported)(const char *line);

#ifdef __cplusplus
}
#endif
#endif
