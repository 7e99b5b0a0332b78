/** @file
 * @brief Progress of long work, as one line on a terminal.
 *
 * The line appears on standard error after a second, is written anew a few times per second and disappears when the
 * work ends. Nothing is printed where standard error is not a terminal, or in programs that have not enabled it.
 * One thread. */
#ifndef NDTD_PROGRESS_LINE_H
#define NDTD_PROGRESS_LINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_progress_line {
    const char *what; /**< such as "town.pcd", may be empty; borrowed */
    const char *unit; /**< such as "scans"; NULL: bytes */
    int is_terminal, is_shown;
    double start_us, next_us;
};

/** Enables progress lines; called by the main() of a program that people watch, because a library prints nothing
 * unasked. */
void ndtd_progress_line_enable(void);

/** Begins a line; the work counts from here on. */
void ndtd_progress_line_begin(struct ndtd_progress_line *line, const char *what, const char *unit);
/** Shows `done` of `all`; all 0: not known. Cheap when no line is due. */
void ndtd_progress_line_show(struct ndtd_progress_line *line, uint64_t done, uint64_t all);
/** Whether the line is due, for other amounts; then ndtd_progress_line_put follows. part: 0 to 1; below 0: not
 * known. */
int ndtd_progress_line_is_due(struct ndtd_progress_line *line);
void ndtd_progress_line_put(struct ndtd_progress_line *line, double part, const char *detail);
/** Clears the line. Allowed on a zeroed one, and twice. */
void ndtd_progress_line_end(struct ndtd_progress_line *line);

/** Writes the text of a line: "[#####....] 30 % town.pcd: 1.2 of 4.0 GB 7 s left". */
void ndtd_progress_line_text(char *out, size_t size, const char *what, double part, const char *detail,
                             double elapsed_s);

#ifdef __cplusplus
}
#endif
#endif
