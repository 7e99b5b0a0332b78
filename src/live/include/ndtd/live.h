/** @file
 * @brief The live daemon: sockets, threads, signals.
 *
 * It receives scans, publishes results and answers requests until SIGTERM. Start: bind the sockets for results and
 * requests, load the map, start the matching thread, bind the socket for scans, report READY. While the map loads,
 * hello, status and shutdown are answered. If the map cannot be read, the start fails. Without a map scans are
 * answered no_map until a request loads one.
 *
 * SIGTERM, SIGINT or a request ends it: reception stops, all received scans are answered and published, then the
 * call returns. SIGHUP or a request reloads the configuration: the reloadable options become a new settings
 * snapshot; an invalid configuration changes nothing. At most five reloads at once and one per second: SIGHUPs
 * beyond that become one reload, requests are refused. */
#ifndef NDTD_LIVE_H
#define NDTD_LIVE_H

#include "ndtd/config_file.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options that are not part of the configuration. */
struct ndtd_live_options {
    const char *record;                      /**< bag to record from the start; may be NULL (disabled) */
    const struct ndtd_config_files *configs; /**< files that the isolation leaves readable; may be NULL */
    /** Reads the configuration as at the start; may be NULL (reload is refused). */
    enum ndt_status (*reread)(void *context, struct ndtd_settings *settings, struct ndt_error *err);
    void *context;
};

/** Checks the addresses and limits of the three sockets, requires keys for tcp sockets that other machines can
 * reach, and reads the key files; opens no socket. Fails with one line. */
NDT_MUST_CHECK enum ndt_status ndtd_live_check(const struct ndtd_settings *settings, struct ndt_error *err);

/** Runs until SIGTERM, SIGINT or a shutdown request. Blocks the signals in the calling thread while it runs, and
 * leaves them ignored, SIGPIPE and SIGXFSZ too: the process is about to exit. */
NDT_MUST_CHECK enum ndt_status ndtd_live(const struct ndtd_settings *settings,
                                         const struct ndtd_live_options *options, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
