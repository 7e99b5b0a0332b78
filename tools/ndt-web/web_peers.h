/** @file
 * @brief Connections and how long each may take, so that slow ones never keep others out.
 *
 * A request has ten seconds to arrive, header and body together, however many bytes trickle in; an answer two
 * minutes to be read; a connection without a request 30 s. Where there is no room for a new connection, the one
 * that has made no progress for the longest time is closed. Any thread. */
#ifndef WEB_PEERS_H
#define WEB_PEERS_H

#include <stdint.h>

enum { WEB_PEERS_MAX = 256, WEB_PEERS_ROOM = 224 }; /* from ROOM on, old ones make room for new ones */

enum web_phase {
    WEB_ASKING,    /**< the request arrives */
    WEB_WAITING,   /**< waits for the daemon; bounded by web_control.h */
    WEB_ANSWERING, /**< the answer is sent */
    WEB_STREAMING, /**< events: without end */
    WEB_IDLE,      /**< between two requests */
    WEB_PHASES
};

struct web_peers;
struct web_peer;
struct web_peers *web_peers_open(void); /**< NULL: no memory */
/** Closes the list, after all peers have left. Allowed on NULL. */
void web_peers_close(struct web_peers *peers);

/** A new connection, whose socket is `fd` until web_peer_leave. NULL: no memory. */
struct web_peer *web_peer_join(struct web_peers *peers, int fd);
/** Allowed on NULL, as web_peer_enter. */
void web_peer_leave(struct web_peers *peers, struct web_peer *peer);
void web_peer_enter(struct web_peers *peers, struct web_peer *peer, enum web_phase phase);
/** Shuts down the sockets of those that are too late; call it about once per second. */
void web_peers_expire(struct web_peers *peers);

struct web_peers_counters {
    uint64_t open;
    uint64_t evicted; /**< number since the start: too late, or to make room */
};
void web_peers_counters(struct web_peers *peers, struct web_peers_counters *out);

#endif
