#include "web_peers.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "ndt/clock.h"

static const double patience_us[WEB_PHASES] = {[WEB_ASKING] = 10e6,
                                               [WEB_WAITING] = INFINITY,
                                               [WEB_ANSWERING] = 120e6,
                                               [WEB_STREAMING] = INFINITY,
                                               [WEB_IDLE] = 30e6};

struct web_peer {
    int fd, is_ending; /* is_ending: the socket is shut down, and the peer leaves soon */
    enum web_phase phase;
    double since_us;
    struct web_peer *previous, *next;
};

struct web_peers {
    pthread_mutex_t lock;
    struct web_peer *first;
    uint64_t open, staying; /* staying: those that are not ending */
    uint64_t evicted;
};

struct web_peers *web_peers_open(void)
{
    struct web_peers *peers = calloc(1, sizeof(*peers));
    if (peers)
        pthread_mutex_init(&peers->lock, NULL);
    return peers;
}

void web_peers_close(struct web_peers *peers)
{
    if (peers)
        pthread_mutex_destroy(&peers->lock);
    free(peers);
}

/* Evicts a peer by shutting its socket down; the server closes it when it sees that. */
static void evict(struct web_peers *peers, struct web_peer *peer)
{
    peer->is_ending = 1;
    peers->staying--;
    peers->evicted++;
    shutdown(peer->fd, SHUT_RDWR);
}

static void make_room(struct web_peers *peers)
{
    struct web_peer *oldest = NULL;
    for (struct web_peer *peer = peers->first; peer; peer = peer->next)
        if (!peer->is_ending && isfinite(patience_us[peer->phase]) &&
            (!oldest || peer->since_us < oldest->since_us))
            oldest = peer;
    if (oldest)
        evict(peers, oldest);
}

struct web_peer *web_peer_join(struct web_peers *peers, int fd)
{
    struct web_peer *peer = calloc(1, sizeof(*peer));
    if (!peer)
        return NULL;
    pthread_mutex_lock(&peers->lock);
    if (peers->staying >= WEB_PEERS_ROOM)
        make_room(peers);
    *peer = (struct web_peer){.fd = fd, .phase = WEB_ASKING, .since_us = ndt_clock_us(), .next = peers->first};
    if (peers->first)
        peers->first->previous = peer;
    peers->first = peer;
    peers->open++;
    peers->staying++;
    pthread_mutex_unlock(&peers->lock);
    return peer;
}

void web_peer_leave(struct web_peers *peers, struct web_peer *peer)
{
    if (!peer)
        return;
    pthread_mutex_lock(&peers->lock);
    *(peer->previous ? &peer->previous->next : &peers->first) = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    peers->open--;
    peers->staying -= !peer->is_ending;
    pthread_mutex_unlock(&peers->lock);
    free(peer);
}

void web_peer_enter(struct web_peers *peers, struct web_peer *peer, enum web_phase phase)
{
    if (!peer)
        return;
    pthread_mutex_lock(&peers->lock);
    if (peer->phase != phase)
        peer->since_us = ndt_clock_us();
    peer->phase = phase;
    pthread_mutex_unlock(&peers->lock);
}

void web_peers_expire(struct web_peers *peers)
{
    const double now_us = ndt_clock_us();
    pthread_mutex_lock(&peers->lock);
    for (struct web_peer *peer = peers->first; peer; peer = peer->next)
        if (!peer->is_ending && now_us - peer->since_us > patience_us[peer->phase])
            evict(peers, peer);
    pthread_mutex_unlock(&peers->lock);
}

void web_peers_counters(struct web_peers *peers, struct web_peers_counters *out)
{
    pthread_mutex_lock(&peers->lock);
    *out = (struct web_peers_counters){peers->open, peers->evicted};
    pthread_mutex_unlock(&peers->lock);
}
