/** @file
 * @brief Numbers of the daemon and of ndt-web itself, as Prometheus reads them from /metrics.
 *
 * The feed hands over what it receives (web_metrics_add, web_metrics_set_status), the server what it counts of
 * itself, and web_metrics_write prints everything in the text format 0.0.4 of Prometheus or in OpenMetrics 1.0. One
 * table (web_metrics_table.c) has name, type, unit and help of every metric; docs/metrics.md has a line for each.
 *
 * What the daemon counts comes from its status: complete since its start, 0 again after a restart, absent while it
 * is away. Histograms are counted here, from the results that arrive, and continue over restarts of the daemon.
 * Labels have fixed values, apart from those of the info metrics (version, backend, path of the map): the number of
 * series is bounded. Numbers that are not finite or do not make sense for their metric are left out.
 *
 * Threads: all functions at any time; one mutex, held for a copy of some kilobytes and never while text is printed
 * or a file is read. Memory: bounded, allocated by create, but for the text. No sockets. Source: web_metrics.c
 * (values), web_metrics_text.c (formats). */
#ifndef WEB_METRICS_H
#define WEB_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include "ndt_proto/message.h"
#include "reply_view.h"

struct web_metrics;

/** Begins empty: without ndtd_up, as when no daemon is shown. */
NDT_MUST_CHECK enum ndt_status web_metrics_open(struct web_metrics **out, struct ndt_error *err);
/** Allowed on NULL. */
void web_metrics_close(struct web_metrics *metrics);

/** Counts a result; called for each one. The one that a late subscriber gets again when it reconnects counts once.
 */
void web_metrics_add(struct web_metrics *metrics, const struct ndt_result_message *result);
/** The values of the last reply to `status` (borrowed during the call), about once per second; NULL: no daemon
 * answers. */
void web_metrics_set_status(struct web_metrics *metrics, const struct reply_view *status);
/** Counts a response by its HTTP status, and the bytes of its body. A status that ndt-web does not use counts as
 * "other". */
void web_metrics_count_response(struct web_metrics *metrics, unsigned code, uint64_t bytes);

/** Counters of ndt-web itself. */
struct web_metrics_server {
    uint64_t connections, streams;     /**< open now; streams are those of /api/events */
    uint64_t evicted;                  /**< connections closed or refused since the start: slow, or too many */
    uint64_t events, events_lost;      /**< events handed to browsers, each browser counted; missed by slow ones */
    uint64_t frames_bad;               /**< frames of the daemon that cannot be decoded */
    uint64_t scans;                    /**< scans of the points socket */
    uint64_t results_kept, scans_kept; /**< now, in the history */
    uint64_t control_sent, control_refused; /**< requests passed on to the daemon; refused by ndt-web */
    uint64_t map_points, map_nodes;         /**< size of the octree */
    uint64_t map_bytes, map_nodes_served;   /**< its memory; nodes sent since the start */
    uint64_t map_loading, map_failed;       /**< 0 or 1 */
};

/** Formats of the text. */
enum web_metrics_format {
    WEB_METRICS_PROMETHEUS, /**< text format 0.0.4 */
    WEB_METRICS_OPENMETRICS /**< OpenMetrics 1.0 */
};
/** The format that a header Accept asks for; NULL or anything else: Prometheus. */
enum web_metrics_format web_metrics_negotiate(const char *accept);
/** The Content-Type of a format. */
const char *web_metrics_content_type(enum web_metrics_format format);
/** Writes all metrics. `server`: the values at this moment. Without memory for the copy it writes nothing and sets
 * errno; failures of `file` are seen by ferror(). */
void web_metrics_write(struct web_metrics *metrics, const struct web_metrics_server *server,
                       enum web_metrics_format format, FILE *file);

/** Prints the table for `ndt-web --list-metrics`: a line for each metric with name, type, unit and labels (`-` for
 * none) and help, separated by tabs. */
void web_metrics_list(FILE *file);

#endif
