/* Private to the live daemon: its parts. Used by the main thread. */
#ifndef NDTD_LIVE_STATE_H
#define NDTD_LIVE_STATE_H

#include "ndtd/isolation.h"
#include "ndtd/live.h"
#include "ndtd/receiver.h"
#include "ndtd/throttle.h"
#include "ndtd/watchdog.h"
#include "ndtd/worker.h"

enum { RESTART_NAMES = 512 };

struct ndtd_endpoints {
    struct ndtd_endpoint scans, poses, control;
    struct ndtd_endpoint points, motion; /* without an address: not opened */
};

struct ndtd_live {
    const struct ndtd_settings_snapshot *settings; /* settings in force */
    struct ndtd_live_options options;
    double start_us;
    struct ndtd_watchdog watchdog;
    int stop_requested;
    int reload_requested; /* SIGHUP: reload as soon as the throttle allows it and the first map is loaded */
    struct ndtd_throttle reloads;
    char needs_restart[RESTART_NAMES]; /* options that the last reload could not change */

    struct ndtd_isolation isolation;
    struct ndtd_endpoints endpoints;
    struct ndtd_sockets *sockets;
    struct ndtd_points_publisher *points; /* NULL: none */
    struct ndtd_publisher *publisher;
    struct ndtd_pose_stream *stream;
    struct ndtd_result_sender *sender; /* sender of the matching thread */
    struct ndtd_queue *queue;
    struct ndtd_map_loader *loader;
    struct ndtd_worker *worker;
    struct ndtd_recorder *recorder;
    struct ndtd_receiver *receiver;
    struct ndtd_control *control;
    struct ndtd_localizer *localizer;
    struct ndt_moment_message moment; /* pose that a request has asked for */
    /* Reads the configuration and publishes a new settings snapshot. */
    enum ndt_status (*reload)(struct ndtd_live *live, struct ndt_error *err);
};

#endif
