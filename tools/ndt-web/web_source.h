/** @file
 * @brief Source of the server's data: a running daemon (web_feed.h) or a finished replay (web_replay.h). Every
 * function may be called by any thread and answers at once. */
#ifndef WEB_SOURCE_H
#define WEB_SOURCE_H

#include "ndt_proto/control_message.h"
#include "web_blob.h"

/** A request handler that waits for an answer of the daemon. */
struct web_asker {
    /** Called once, by any thread: `reply` as JSON belongs to the callee; or NULL with the reason. */
    void (*done)(void *user, struct web_blob *reply, const char *why);
    void *user;
};

struct web_source {
    void *self;
    /** Results are numbered from 0: returns the number after the last; *first is the oldest that is kept. */
    uint64_t (*results)(void *self, uint64_t *first);
    /** A result as JSON, a reference for the caller; NULL: not kept. */
    struct web_blob *(*result)(void *self, uint64_t number);
    /** The points of a scan as GET /api/scan gives them, a reference for the caller; NULL: not kept. */
    struct web_blob *(*scan)(void *self, uint64_t seq);
    /** The iterations of a scan as JSON, a reference for the caller; NULL: not known. Absent in live mode. */
    struct web_blob *(*timing)(void *self, uint64_t seq);
    /** Summary of the replay as JSON, a reference for the caller. Absent in live mode. */
    struct web_blob *(*replay)(void *self);
    /** Whether a daemon answers and localises; `why` (one line) receives what is missing. */
    int (*is_ready)(void *self, char why[160]);
    /** Passes a request on. NDT_OK: asker->done is called later. Absent in replay mode. */
    enum ndt_status (*ask)(void *self, const struct ndt_request_message *request, const struct web_asker *asker,
                           struct ndt_error *err);
};

#endif
