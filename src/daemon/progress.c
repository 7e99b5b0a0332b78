#include "ndtd/progress.h"

#include <unistd.h>

#include "ndtd/stopwatch.h"

enum { BAR_CELLS = 30 };
static const double REDRAW_US = 100e3;

struct ndtd_progress ndtd_progress_start(FILE *file)
{
    struct ndtd_progress progress = {.file = isatty(fileno(file)) ? file : NULL, .start_us = ndtd_now_us()};
    progress.shown_us = progress.start_us;
    return progress;
}

void ndtd_progress_update(struct ndtd_progress *progress, double part, uint64_t scans)
{
    double now_us = progress->file ? ndtd_now_us() : 0;
    if (!progress->file || now_us - progress->shown_us < REDRAW_US)
        return;
    progress->shown_us = now_us;
    double spent_s = (now_us - progress->start_us) * 1e-6;
    double left_s = part > 0 ? spent_s * (1 - part) / part : 0;
    char bar[BAR_CELLS + 1];
    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = i < (int)(part * BAR_CELLS) ? '#' : '.';
    bar[BAR_CELLS] = '\0';
    fprintf(progress->file, "\r[%s] %3.0f %%  %llu scans  %.0f scans/s  %.0f s left\033[K", bar, 100 * part,
            (unsigned long long)scans, (double)scans / spent_s, left_s);
    fflush(progress->file);
}

void ndtd_progress_end(struct ndtd_progress *progress)
{
    if (progress->file)
        fputs("\r\033[K", progress->file);
    progress->file = NULL;
}
