/** @file
 * @brief The table of the metrics: what each is called, and where its values come from. Constant. */
#ifndef WEB_METRICS_TABLE_H
#define WEB_METRICS_TABLE_H

#include <stddef.h>

#include "web_metrics.h"
#include "web_process.h"

/** Type of a metric. An info is a gauge of value 1 with texts as labels. */
enum web_metric_type { WEB_COUNTER, WEB_GAUGE, WEB_HISTOGRAM, WEB_INFO };
/** "counter", "gauge", "histogram", "info". */
const char *web_metric_type_name(enum web_metric_type type);

enum {
    WEB_MAX_LABELS = 24, /**< values of a label */
    WEB_MAX_BOUNDS = 20, /**< buckets of a histogram without +Inf */
    WEB_MAX_TEXTS = 6,   /**< labels of an info */
};

/** Metrics whose values are set by code: the first rows of the table. */
enum web_metric_id {
    WEB_UP,
    WEB_LATENCY,
    WEB_STAGES,
    WEB_ITERATIONS,
    WEB_CONFIDENCE,
    WEB_NVTL,
    WEB_MATCH_RATIO,
    WEB_INNOVATION,
    WEB_CORRECTION,
    WEB_LAST_CONFIDENCE,
    WEB_LAST_PROBABILITY,
    WEB_LAST_NVTL,
    WEB_LAST_MATCH_RATIO,
    WEB_LAST_COVERAGE,
    WEB_LAST_MARGIN,
    WEB_LAST_INNOVATION,
    WEB_LAST_ITERATIONS,
    WEB_LAST_OSCILLATION,
    WEB_LAST_HYPOTHESES,
    WEB_LAST_LATENCY,
    WEB_LAST_AGE,
    WEB_LAST_DELAY,
    WEB_POSITION_DEVIATION,
    WEB_WORST_DEVIATION,
    WEB_ROTATION_DEVIATION,
    WEB_PROTECTION,
    WEB_UNSAFE,
    WEB_WEAK_AXES,
    WEB_SPEED,
    WEB_UNTRUSTED,
    WEB_OWN_INFO,
    WEB_RESULTS,
    WEB_CONNECTS,
    WEB_RESTARTS,
    WEB_RESPONSES,
    WEB_RESPONSE_BYTES,
    WEB_FIRST_PROCESS,                                            /**< in the order of enum web_process_value */
    WEB_FIRST_OF_SOURCES = WEB_FIRST_PROCESS + WEB_PROCESS_VALUES /**< first row that names its source */
};

/** Stages of WEB_STAGES. */
enum web_stage {
    WEB_STAGE_DECODE,
    WEB_STAGE_QUEUE,
    WEB_STAGE_PREPROCESS,
    WEB_STAGE_UPLOAD,
    WEB_STAGE_ALIGN,
    WEB_STAGE_PUBLISH,
    WEB_STAGE_COUNT
};

/** The values of a label. */
struct web_label {
    const char *name;
    size_t count;
    const char *(*at)(size_t i);
};

/** Sources of the values of a row from WEB_FIRST_OF_SOURCES on. */
enum web_source {
    WEB_FROM_NUMBER, /**< status: the number at `path`; %s in it is the value of the label */
    WEB_FROM_CHOICE, /**< status: 1 where the text at `path` is the value of the label, else 0 */
    WEB_FROM_TEXT,   /**< status: 1 if the text at `path` is not empty, else 0 */
    WEB_FROM_SERVER, /**< the member of struct web_metrics_server at `offset` */
};

/** One metric. Unused pointers are NULL. */
struct web_metric {
    const char *name; /**< name with _total (counter), _info (info) */
    enum web_metric_type type;
    const char *unit; /**< the name ends in it, before _total; empty: none */
    const char *help; /**< one sentence */
    const struct web_label *label;
    const double *bounds; /**< bounds of a histogram, ascending */
    size_t bound_count;
    enum web_source source;
    size_t offset;
    const char *path;         /**< path in the status, such as "queue.waiting" */
    const char *const *paths; /**< paths in place of it, one per value of the label */
    double scale;             /**< multiplies the number; 0: 1 */
    /** Labels of an info and their paths in the status, up to a NULL. */
    struct {
        const char *name, *path;
    } texts[WEB_MAX_TEXTS];
};

extern const struct web_metric web_metric_table[];
extern const size_t web_metric_count;

/** The info rows are numbered, too: the number of those before `row`. */
size_t web_metric_info_slot(size_t row);

enum {
    WEB_MAX_METRICS = 128,
    WEB_MAX_INFOS = 6,
    WEB_HISTOGRAMS = WEB_CORRECTION - WEB_LATENCY + 1,
    WEB_TEXT_BYTES = 256
};

/** One histogram. */
struct web_histogram {
    double counts[WEB_MAX_BOUNDS + 1]; /**< counts per bin, not cumulative; the last is above all bounds */
    double sum;
};

/** The values of all metrics. NAN: not known, not printed. */
struct web_values {
    double numbers[WEB_MAX_METRICS][WEB_MAX_LABELS]; /**< numbers by row and value of the label; 1 for an info */
    struct web_histogram histograms[WEB_HISTOGRAMS][WEB_MAX_LABELS]; /**< histograms of rows WEB_LATENCY + i */
    char texts[WEB_MAX_INFOS][WEB_MAX_TEXTS][WEB_TEXT_BYTES];        /**< texts of infos, by slot */
};

#endif
