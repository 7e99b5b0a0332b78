/** @file
 * @brief A progress bar on a terminal: fraction done, rate, time left. No output when the stream is not a terminal. */
#ifndef NDTD_PROGRESS_H
#define NDTD_PROGRESS_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_progress {
    FILE *file; /**< NULL: not a terminal */
    double start_us, shown_us;
};

struct ndtd_progress ndtd_progress_start(FILE *file);
/** part: fraction of the work done, 0 .. 1. Draws at most ten times per second. */
void ndtd_progress_update(struct ndtd_progress *progress, double part, uint64_t scans);
/** Clears the line. */
void ndtd_progress_end(struct ndtd_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
