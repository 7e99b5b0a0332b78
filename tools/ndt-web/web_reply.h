/** @file
 * @brief Shared parts of the request handlers: the site that they serve, and answers with the common headers. The
 * thread of the server calls the functions. */
#ifndef WEB_REPLY_H
#define WEB_REPLY_H

#include <microhttpd.h>
#include <stdatomic.h>

#include "web_control.h"
#include "web_events.h"
#include "web_map.h"
#include "web_metrics.h"
#include "web_peers.h"
#include "web_source.h"

enum { WEB_BODY_MAX = 4096, WEB_NAMES_MAX = 32, WEB_WHAT_MAX = 192 };

/** The content that is served; borrowed until web_server_close. */
struct web_site {
    struct web_source source;
    struct web_hub *hub;
    struct web_map *map;
    struct web_metrics *metrics;
    /** Fills the counters of the feed and its scans. */
    void (*count)(void *user, struct web_metrics_server *out);
    void *user;
    int allows_control;
    char token[WEB_TOKEN_MAX + 1];
    const char *names[WEB_NAMES_MAX]; /**< further names of this server, besides its addresses */
    size_t name_count;
};

/** A request on its way. */
struct web_request {
    struct MHD_Connection *connection;
    struct web_peer *peer;
    unsigned status; /* status of the answer, and bytes of its body: for the metrics */
    uint64_t bytes;
    int is_get, is_post, is_control; /* GET or HEAD; the path of requests to the daemon */
    unsigned refusal;                /* status; 0: none */
    int ends_connection;             /* ends after the answer: the begin of the next request is not certain */
    const char *refusal_why;
    char body[WEB_BODY_MAX + 1]; /* body, or the begin of a longer one */
    size_t size;
    /* Members of a request to the daemon. */
    enum ndt_operation op;
    struct web_hub *hub; /* hub for the log, with a description of the request */
    char what[WEB_WHAT_MAX];
    int is_waiting, has_answer;
    struct web_blob *answer;
    char why[256];
};

struct web_server {
    struct web_site site;
    struct MHD_Daemon *daemon;
    struct web_peers *peers;
    atomic_ullong control_sent, control_refused;
    unsigned ticks;
};

/** Sends a response that is made, with a status and the headers of every answer, and gives it back. */
enum MHD_Result web_reply(struct web_request *request, unsigned status, const char *type, const char *caching,
                          struct MHD_Response *response);
/** Sends a blob, which is taken over; NULL: 500, no memory. */
enum MHD_Result web_reply_blob(struct web_request *request, unsigned status, const char *type,
                               struct web_blob *blob);
/** Sends {"error": TEXT}. */
enum MHD_Result web_reply_error(struct web_request *request, unsigned status, const char *format, ...)
    NDT_PRINTF(3, 4);
/** A header of the request; NULL: absent. */
const char *web_header(const struct web_request *request, const char *name);
/** A parameter of the query; NULL: absent. */
const char *web_parameter(const struct web_request *request, const char *name);

#endif
