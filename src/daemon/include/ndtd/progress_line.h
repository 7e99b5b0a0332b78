/** @file
 * @brief How far long work is, as one line on a terminal.
 *
 * The line appears on standard error after a second, is written anew a few times per second and goes when the work
 * ends. Nothing is printed where standard error is not a terminal, and by programs that have not asked for it. One
 * thread. */
#ifndef NDTD_PROGRESS_LINE_H
#define NDTD_PROGRESS_LINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_progress_line {
    const char *what; /**< such as "reading town.pcd"; borrowed */
    const char *unit; /**< such as "scans"; NULL: bytes */
    int is_terminal, is_shown;
    double start_us, next_us;
};

/** Called by the main() of a program that people watch; a library prints nothing unasked. */
void ndtd_progress_line_enable(void);

/** Begins; the work counts from here on. */
void ndtd_progress_line_begin(struct ndtd_progress_line *line, const char *what, const char *unit);
/** `done` of `all`; all 0: not known. Cheap when no line is due. */
void ndtd_progress_line_show(struct ndtd_progress_line *line, uint64_t done, uint64_t all);
/** Clears the line. Allowed on a zeroed one, and twice. */
void ndtd_progress_line_end(struct ndtd_progress_line *line);

/** The text of the line, for tests and other sinks: "reading town.pcd: 1.2 of 4.0 GB, 30 %, 12 s left". */
void ndtd_progress_line_text(char *out, size_t size, const char *what, const char *unit, uint64_t done,
                             uint64_t all, double elapsed_s);

#ifdef __cplusplus
}
#endif
#endif
