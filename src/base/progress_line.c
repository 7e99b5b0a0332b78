#include "ndtd/progress_line.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "ndt/clock.h"

enum { BAR_CELLS = 30 };
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

/* Writes the amounts in the unit of the total, so that the unit stays the same. */
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

static void draw_bar(char out[BAR_CELLS + 1], double part)
{
    for (int i = 0; i < BAR_CELLS; i++)
        out[i] = i < (int)(part * BAR_CELLS) ? '#' : '.';
    out[BAR_CELLS] = '\0';
}

void ndtd_progress_line_text(char *out, size_t size, const char *what, double part, const char *detail,
                             double elapsed_s)
{
    char bar[BAR_CELLS + 1];
    const char *colon = *what ? ": " : "";
    if (part < 0) {
        snprintf(out, size, "%s%s%s", what, colon, detail);
        return;
    }
    draw_bar(bar, part);
    const int used = snprintf(out, size, "[%s] %3.0f %%  %s%s%s", bar, 100 * part, what, colon, detail);
    if (part > 0 && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, "  %.0f s left", ceil(elapsed_s * (1 / part - 1)));
}

int ndtd_progress_line_is_due(struct ndtd_progress_line *line)
{
    const double now_us = line->is_terminal ? ndt_clock_us() : 0;
    if (!line->is_terminal || now_us < line->next_us)
        return 0;
    line->next_us = now_us + EVERY_US;
    return 1;
}

void ndtd_progress_line_put(struct ndtd_progress_line *line, double part, const char *detail)
{
    char text[256];
    line->is_shown = 1;
    ndtd_progress_line_text(text, sizeof(text), line->what, part, detail, (ndt_clock_us() - line->start_us) * 1e-6);
    fprintf(stderr, "%s\033[K\r", text); /* clears to the end of the line; later output overwrites it */
    fflush(stderr);
}

void ndtd_progress_line_show(struct ndtd_progress_line *line, uint64_t done, uint64_t all)
{
    char detail[64];
    if (!ndtd_progress_line_is_due(line))
        return;
    amounts(detail, sizeof(detail), line->unit, done, all);
    ndtd_progress_line_put(line, all ? fmin((double)done / (double)all, 1) : -1, detail);
}

void ndtd_progress_line_end(struct ndtd_progress_line *line)
{
    if (line->is_shown)
        fputs("\033[K", stderr);
    line->is_shown = 0;
}
