/** @file
 * @brief Events for the page: the last value of each kind, a ring of results, and one bounded queue per reader.
 *
 * Publishing never waits and copies nothing: readers share blobs of JSON text. A reader whose queue is full misses
 * its contents and gets the event `resync`: it then asks for the history and the last values. Memory: the ring of
 * results (about 2 kB each) and at most WEB_QUEUE references per reader. Any thread. */
#ifndef WEB_EVENTS_H
#define WEB_EVENTS_H

#include <stdint.h>
#include <sys/types.h>

#include "ndt/status.h"
#include "web_blob.h"

enum { WEB_QUEUE = 256, WEB_MAX_CLIENTS = 64, WEB_LOG_LINES = 50 };

/** Kinds of events, and their names on the wire. */
enum web_event {
    WEB_DAEMON,
    WEB_STATUS,
    WEB_MAP,
    WEB_SCAN,
    WEB_RESULT,
    WEB_LOG,
    WEB_RESYNC, /**< only from the hub itself */
    WEB_EVENT_COUNT
};
enum web_level { WEB_INFO, WEB_WARNING, WEB_ERROR };

struct web_hub;
/** Content of the event `hello`. */
struct web_hello {
    const char *mode; /**< "live" or "replay"; borrowed for ever */
    int allow_control;
    uint64_t replay_results; /**< results of a replay, which are not in the ring */
};
/** history: results that are kept, at least 1. */
NDT_MUST_CHECK enum ndt_status web_hub_open(struct web_hub **out, const struct web_hello *hello, size_t history,
                                            struct ndt_error *err);
/** Closes the hub, after the last reader is closed. Allowed on NULL. */
void web_hub_close(struct web_hub *hub);

/** Tells every reader; `json` is one line of JSON, taken over; NULL (no memory) is counted as lost. */
void web_hub_publish(struct web_hub *hub, enum web_event event, struct web_blob *json);
/** A line of the log. Refusals and events are at most a few per second each, further ones are counted in
 * the next; what changed the state of the daemon, and that it came or went, is never left out. */
enum web_log_kind { WEB_LOG_EVENT, WEB_LOG_REFUSAL, WEB_LOG_CHANGE };
/** An event `log`, and a line on standard error. */
void web_hub_log(struct web_hub *hub, enum web_log_kind kind, enum web_level level, const char *format, ...)
    NDT_PRINTF(4, 5);
/** Wakes readers that have had nothing for a while, so that connections that are gone are found. */
void web_hub_beat(struct web_hub *hub);
/** The last event of a kind, a reference for the caller; NULL: none yet. */
struct web_blob *web_hub_latest(struct web_hub *hub, enum web_event event);

/** Results are numbered from 0 in the order of arrival. Returns the number after the last; `first` receives the
 * oldest that is kept. */
uint64_t web_hub_results(struct web_hub *hub, uint64_t *first);
/** A result by its number, a reference for the caller; NULL: not kept. */
struct web_blob *web_hub_result(struct web_hub *hub, uint64_t number);

struct web_hub_counters {
    unsigned clients;
    uint64_t sent, lost; /**< events that readers got, each reader counted; that slow ones missed */
    uint64_t results;    /**< number of kept results */
};
void web_hub_counters(struct web_hub *hub, struct web_hub_counters *out);

/** Waiting of a reader; both functions are called with the hub locked and must not call it. */
struct web_waiter {
    void (*sleep)(void *user); /**< called when there is nothing to read */
    void (*wake)(void *user);  /**< called when there is again, once after each sleep */
    void *user;
};
struct web_client;
/** A reader, whose first events are `hello` and the last values. NULL: there are WEB_MAX_CLIENTS, or no memory. */
struct web_client *web_client_open(struct web_hub *hub, const struct web_waiter *waiter);
void web_client_close(struct web_client *client);
/** Copies the next bytes of the event stream. 0: nothing now, sleep() has been called; -1: the stream ends. */
ssize_t web_client_read(struct web_client *client, char *out, size_t size);
/** Ends all streams: readers wake and read -1. */
void web_hub_stop(struct web_hub *hub);

#endif
