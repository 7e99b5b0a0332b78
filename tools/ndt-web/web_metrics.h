/** @file
 * @brief Numbers of the daemon and of ndt-web itself, as Prometheus reads them from /metrics.
 *
 * The feed hands over what it receives (web_metrics_add, web_metrics_set_status), the server counts what it does
 * (web_metrics_count), and web_metrics_text prints everything in the text format 0.0.4 of Prometheus or in
 * OpenMetrics 1.0. One table (web_metrics_table.c) has name, type, unit and help of every metric; docs/metrics.md
 * has a line for each.
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

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ndt_proto/message.h"

struct web_metrics;

/** Creates metrics without a daemon (ndtd_up is 0). */
NDT_MUST_CHECK enum ndt_status web_metrics_create(struct web_metrics **out, struct ndt_error *err);
/** `metrics` may be NULL. */
void web_metrics_destroy(struct web_metrics *metrics);

/** @name From the feed
 * @{ */
/** Adds a result. The one that a late subscriber gets again when it reconnects is counted once. */
void web_metrics_add(struct web_metrics *metrics, const struct ndt_result_message *result);
/** Replaces the values of the status by those of a reply to the request `status`, as it came from the socket. NULL:
 * the daemon does not answer. NDT_ERR_FORMAT, NDT_ERR_LIMIT: the bytes are no such reply, which counts as no
 * answer.
 */
NDT_MUST_CHECK enum ndt_status web_metrics_set_status(struct web_metrics *metrics, const uint8_t *reply,
                                                      size_t size, struct ndt_error *err);
/** @} */

/** What ndt-web counts of its own work. */
enum web_counter {
    WEB_COUNT_BAD_FRAMES,          /**< from the daemon: neither a result nor points */
    WEB_COUNT_SCANS,               /**< messages `points` */
    WEB_COUNT_EVENTS,              /**< handed to a browser */
    WEB_COUNT_EVENTS_DROPPED,      /**< left out, as a browser did not keep up */
    WEB_COUNT_REQUESTS_ACCEPTED,   /**< control: passed on to the daemon */
    WEB_COUNT_REQUESTS_REFUSED,    /**< control: without the token, from another origin, malformed */
    WEB_COUNT_CONNECTIONS_REFUSED, /**< HTTP: above the limit of connections */
    WEB_COUNTERS
};
/** Adds `more` to a counter. */
void web_metrics_count(struct web_metrics *metrics, enum web_counter counter, uint64_t more);
/** Counts a response by its HTTP status code, and the bytes of its body. Codes that ndt-web does not use count as
 * "other". */
void web_metrics_count_response(struct web_metrics *metrics, int code, uint64_t bytes);

/** Present values of ndt-web. */
enum web_gauge {
    WEB_GAUGE_CONNECTIONS,  /**< HTTP connections that are open */
    WEB_GAUGE_STREAMS,      /**< browsers that listen to /api/events */
    WEB_GAUGE_RESULTS_KEPT, /**< of the history */
    WEB_GAUGE_SCANS_KEPT,   /**< of /api/scan */
    WEB_GAUGE_MAP_POINTS,   /**< of the map for the page */
    WEB_GAUGE_MAP_NODES,    /**< its tiles (nodes of the octree) */
    WEB_GAUGE_MAP_BYTES,    /**< memory that it takes */
    WEB_GAUGE_MAP_LOADING,  /**< 1 while it is read */
    WEB_GAUGE_MAP_FAILED,   /**< 1: it could not be read */
    WEB_GAUGES
};
/** Sets a value; NAN: not known, as at the begin. */
void web_metrics_set(struct web_metrics *metrics, enum web_gauge gauge, double value);

/** Formats of the text. */
enum web_metrics_format {
    WEB_METRICS_PROMETHEUS, /**< text format 0.0.4 */
    WEB_METRICS_OPENMETRICS /**< OpenMetrics 1.0 */
};
/** The format that a header Accept asks for; NULL or anything else: Prometheus. */
enum web_metrics_format web_metrics_negotiate(const char *accept);
/** Its Content-Type. */
const char *web_metrics_content_type(enum web_metrics_format format);
/** Prints all metrics. Returns memory of *size bytes for free(), with a NUL behind them; NULL when memory is
 * exhausted. */
NDT_MUST_CHECK char *web_metrics_text(struct web_metrics *metrics, enum web_metrics_format format, size_t *size,
                                      struct ndt_error *err);

/** Prints the table for `ndt-web --list-metrics`: a line for each metric with name, type, unit and labels (`-` for
 * none) and help, separated by tabs. */
void web_metrics_list(FILE *file);

#endif
