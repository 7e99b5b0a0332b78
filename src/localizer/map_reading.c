#include "ndtd/map_reading.h"

#include <pthread.h>
#include <stdio.h>

#include "ndtd/progress_line.h"

static const double REPORT_S = 0.1;

struct reading {
    pthread_mutex_t mutex; /* guards the line: any thread that builds may report */
    struct ndtd_progress_line line;
    struct ndt_progress progress;
    const struct ndt_progress *stop;
};

static void report(void *context, const struct ndt_progress *progress)
{
    struct reading *reading = context;
    const uint64_t files = ndt_progress_get(progress, NDT_PROGRESS_ALL_TILES);
    const uint64_t levels = ndt_progress_get(progress, NDT_PROGRESS_ALL_LEVELS);
    if (reading->stop && ndt_progress_is_cancelled(reading->stop))
        ndt_progress_cancel(&reading->progress);
    pthread_mutex_lock(&reading->mutex);
    struct ndtd_progress_line *line = &reading->line;
    if (levels > 0) {
        line->unit = "levels";
        ndtd_progress_line_show(line, ndt_progress_get(progress, NDT_PROGRESS_LEVELS), levels);
    } else if (files > 1) {
        line->unit = "files";
        ndtd_progress_line_show(line, ndt_progress_get(progress, NDT_PROGRESS_TILES), files);
    } else {
        line->unit = NULL;
        ndtd_progress_line_show(line, ndt_progress_get(progress, NDT_PROGRESS_BYTES),
                                ndt_progress_get(progress, NDT_PROGRESS_ALL_BYTES));
    }
    pthread_mutex_unlock(&reading->mutex);
}

enum ndt_status ndtd_map_read(struct ndt_map **out, const char *path, const struct ndt_map_config *config,
                              const struct ndt_progress *stop, struct ndt_error *err)
{
    struct reading reading = {.mutex = PTHREAD_MUTEX_INITIALIZER, .stop = stop};
    char what[80];
    *out = NULL;
    if (stop && ndt_progress_is_cancelled(stop)) /* checked however quickly the map is read */
        return ndt_fail(err, NDT_ERR_CANCELLED, "%s: interrupted", path);
    snprintf(what, sizeof(what), "%.79s", path);
    ndtd_progress_line_begin(&reading.line, what, NULL);
    ndt_progress_init(&reading.progress, report, &reading, REPORT_S);
    const enum ndt_status status = ndt_map_load_with(out, path, config, &reading.progress, err);
    ndtd_progress_line_end(&reading.line);
    pthread_mutex_destroy(&reading.mutex);
    return status;
}

int ndtd_map_coarse_text(char *text, size_t size, const char *path, double spacing_m)
{
    static const double COARSE_M = 0.01;
    if (!(spacing_m > COARSE_M))
        return 0;
    snprintf(
        text, size,
        "%s: its coordinates are float32 that far from the origin that neighbouring ones are %.2g m apart: store "
        "them as float64, or take an offset off (ndt-import map --offset)",
        path, spacing_m);
    return 1;
}
