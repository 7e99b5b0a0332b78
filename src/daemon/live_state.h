/* Private to the live daemon: its parts. Used by the main thread. */
#ifndef NDTD_LIVE_STATE_H
#define NDTD_LIVE_STATE_H

#include "ndtd/live.h"
#include "ndtd/receiver.h"
#include "ndt_proto/control_message.h"
#include "ndtd/worker.h"

enum { RESTART_NAMES = 512 };

struct ndtd_endpoints {
    struct ndtd_endpoint scans, poses, control;
};

/* The search for the pose on request. None of the functions waits for the search. All NULL: there is none. */
struct ndtd_localize_service {
    void *context;
    /* Begins a search. NDT_ERR_ARGUMENT, with the reason: one runs already, there is no map. */
    enum ndt_status (*begin)(void *context, const struct ndt_request_message *request, struct ndt_error *err);
    /* The search that runs, or the last one. */
    void (*report)(void *context, struct ndt_localize_report *out);
    /* Ends the search that runs, if any; its result is then `not accepted`. */
    void (*cancel)(void *context);
};

struct ndtd_live {
    const struct ndtd_settings_snapshot *settings; /* in force */
    struct ndtd_live_options options;
    double start_us;
    int stop_requested;
    int reload_requested;              /* SIGHUP while the first map was loading */
    char needs_restart[RESTART_NAMES]; /* options that the last reload could not change */

    struct ndtd_endpoints endpoints;
    struct ndtd_sockets *sockets;
    struct ndtd_publisher *publisher;
    struct ndtd_result_sender *sender; /* the matching thread's */
    struct ndtd_queue *queue;
    struct ndtd_map_loader *loader;
    struct ndtd_worker *worker;
    struct ndtd_receiver *receiver;
    struct ndtd_control *control;
    struct ndtd_localize_service search;
    /* Reads the configuration and publishes a new settings snapshot. */
    enum ndt_status (*reload)(struct ndtd_live *live, struct ndt_error *err);
};

#endif
