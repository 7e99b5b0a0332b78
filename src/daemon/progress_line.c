#include "ndtd/progress_line.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "ndt/clock.h"

static int is_enabled;

static const double FIRST_US = 1e6, EVERY_US = 2e5;

void ndtd_progress_line_enable(void)
{
    is_enabled = isatty(STDERR_FILENO);
}

void ndtd_progress_line_begin(struct ndtd_progress_line *line, const char *what, const char *unit)
{
    const double now_us = ndt_clock_us();
    *line = (struct ndtd_progress_line){
        .what = what, .unit = unit, .is_terminal = is_enabled, .start_us = now_us, .next_us = now_us + FIRST_US};
}

/* The unit that suits the total, so that it stays the same. */
static void amounts(char *out, size_t size, const char *unit, uint64_t done, uint64_t all)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB"};
    const double most = (double)(all ? all : done);
    double scale = 1e3;
    size_t i = 0;
    for (; !unit && i + 1 < sizeof(units) / sizeof(units[0]) && most >= 1e3 * scale; i++)
        scale *= 1e3;
    if (unit && all)
        snprintf(out, size, "%llu of %llu %s", (unsigned long long)done, (unsigned long long)all, unit);
    else if (unit)
        snprintf(out, size, "%llu %s", (unsigned long long)done, unit);
    else if (all)
        snprintf(out, size, "%.1f of %.1f %s", (double)done / scale, (double)all / scale, units[i]);
    else
        snprintf(out, size, "%.1f %s", (double)done / scale, units[i]);
}

void ndtd_progress_line_text(char *out, size_t size, const char *what, const char *unit, uint64_t done,
                             uint64_t all, double elapsed_s)
{
    char amount[64], left[64] = "";
    const double part = all ? fmin((double)done / (double)all, 1) : 0;
    amounts(amount, sizeof(amount), unit, done, all);
    if (part > 0)
        snprintf(left, sizeof(left), ", %.0f %%, %.0f s left", 100 * part, ceil(elapsed_s * (1 / part - 1)));
    snprintf(out, size, "%s: %s%s", what, amount, left);
}

void ndtd_progress_line_show(struct ndtd_progress_line *line, uint64_t done, uint64_t all)
{
    char text[256];
    if (!line->is_terminal)
        return;
    const double now_us = ndt_clock_us();
    if (now_us < line->next_us)
        return;
    line->next_us = now_us + EVERY_US;
    line->is_shown = 1;
    ndtd_progress_line_text(text, sizeof(text), line->what, line->unit, done, all,
                            (now_us - line->start_us) * 1e-6);
    fprintf(stderr, "%s\033[K\r", text); /* to the end of the line; what comes next overwrites it */
    fflush(stderr);
}

void ndtd_progress_line_end(struct ndtd_progress_line *line)
{
    if (line->is_shown)
        fputs("\033[K", stderr);
    line->is_shown = 0;
}
