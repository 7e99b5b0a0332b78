/** @file
 * @brief The connection to a running daemon, as any client has: results, status, points, requests. One thread of
 * its own; without a daemon it waits for one.
 *
 * The daemon's status is asked for once per second. Points are asked for only while somebody reads the events: the
 * daemon encodes none otherwise. */
#ifndef WEB_FEED_H
#define WEB_FEED_H

#include "live_connection.h"
#include "web_events.h"
#include "web_map.h"
#include "web_metrics.h"
#include "web_scans.h"
#include "web_source.h"

struct web_feed_config {
    const char *poses, *points, *control; /**< addresses; "": in the runtime directory */
    struct live_keys keys;
    size_t scan_points; /**< largest number of points of a scan for the page */
    int loads_map;      /**< the map whose path the daemon tells */
};
/** Destinations of the data that the feed receives; all borrowed until web_feed_close. */
struct web_sinks {
    struct web_hub *hub;
    struct web_scans *scans;
    struct web_metrics *metrics;
    struct web_map *map;
};
struct web_feed_counters {
    uint64_t bad;   /**< frames that cannot be decoded */
    uint64_t scans; /**< frames of points */
};

struct web_feed;
/** Connects and starts the thread. NDT_ERR_ARGUMENT for addresses and keys that cannot be used. */
NDT_MUST_CHECK enum ndt_status web_feed_open(struct web_feed **out, const struct web_feed_config *config,
                                             const struct web_sinks *sinks, struct ndt_error *err);
/** Ends the thread and answers all that wait; further requests are refused. Allowed on NULL. */
void web_feed_stop(struct web_feed *feed);
/** Allowed on NULL. */
void web_feed_close(struct web_feed *feed);
/** Sets the source for the server; valid until web_feed_close. */
void web_feed_source(struct web_feed *feed, struct web_source *out);
void web_feed_counters(struct web_feed *feed, struct web_feed_counters *out);

#endif
