/* The live daemon: sockets, threads, signals. Scans come in, results go out, requests are answered, until SIGTERM.
 *
 * Start: the sockets for results and requests are bound, the map is loaded, the matching thread started, then the
 * socket for scans is bound and READY told. A map that cannot be read ends the start; no map at all does not: scans
 * are answered no_map until one is loaded by request. SIGTERM, SIGINT, or a request: nothing more is taken in, what
 * waits is answered and published, then it returns. SIGHUP, or a request: the configuration is read again; a bad
 * one changes nothing. */
#ifndef NDTD_LIVE_H
#define NDTD_LIVE_H

#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_live_options {
    const char *record; /* a bag to write from the start; NULL: none */
    /* Reads the configuration as at the start; NULL: there is nothing to read again. */
    enum ndt_status (*reread)(void *context, struct ndtd_settings *settings, struct ndt_error *err);
    void *context;
};

/** Checks the addresses of the three sockets, their limits, and that tcp sockets reachable by other machines have
 * keys, without opening anything. NDT_ERR_ARGUMENT with one line. */
NDT_MUST_CHECK enum ndt_status ndtd_live_check(const struct ndtd_settings *settings, struct ndt_error *err);

/* Returns when it was asked to end. Blocks the signals in the calling thread while it runs. */
NDT_MUST_CHECK enum ndt_status ndtd_live(const struct ndtd_settings *settings,
                                         const struct ndtd_live_options *options, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
