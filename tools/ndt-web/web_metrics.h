/** @file
 * @brief The metrics of GET /metrics in the text format 0.0.4 of Prometheus. No sockets; any thread. */
#ifndef WEB_METRICS_H
#define WEB_METRICS_H

#include <stdio.h>

#include "ndt/status.h"
#include "ndt_proto/message.h"
#include "reply_view.h"

struct web_metrics;

NDT_MUST_CHECK enum ndt_status web_metrics_open(struct web_metrics **out, struct ndt_error *err);
/** Allowed on NULL. */
void web_metrics_close(struct web_metrics *metrics);

/** Counts a result; called for each one, by the thread that receives them. */
void web_metrics_add(struct web_metrics *metrics, const struct ndt_result_message *message);
/** The values of the last status reply (borrowed until the call returns), once per second; NULL: no daemon answers.
 */
void web_metrics_set_status(struct web_metrics *metrics, const struct reply_view *status);

/** What ndt-web counts of itself. */
struct web_metrics_server {
    uint64_t connections, streams;        /**< open now; streams are those of /api/events */
    uint64_t requests, refused;           /**< since the start; refused: answered with a status from 400 on */
    uint64_t evicted;                     /**< connections closed for their slowness or to make room */
    uint64_t events_lost;                 /**< events that slow readers missed */
    uint64_t frames_bad;                  /**< frames of the daemon that cannot be decoded */
    uint64_t scans;                       /**< scans of the points socket */
    uint64_t map_points, map_nodes;       /**< of the octree */
    uint64_t map_bytes, map_nodes_served; /**< its memory; nodes sent since the start */
};
/** Writes all metrics. `server` holds the values at this moment. */
void web_metrics_write(struct web_metrics *metrics, const struct web_metrics_server *server, FILE *file);

#endif
