/** @file
 * @brief Turns what the daemon reports into lines of the log: states that change, scans without a good pose, scans
 * that are dropped. One thread, apart from web_watch_is_ready. */
#ifndef WEB_WATCH_H
#define WEB_WATCH_H

#include <pthread.h>

#include "ndt_proto/message.h"
#include "reply_view.h"
#include "web_events.h"

struct web_watch {
    struct web_hub *hub;
    int has_result, has_drops;
    enum ndt_outcome outcome;
    int has_state;
    enum ndt_state state;
    uint64_t dropped;
    char map_error[256], recorder_error[256];
    pthread_mutex_t lock; /* guards why_not */
    char why_not[160];    /* empty: ready */
};

void web_watch_open(struct web_watch *watch, struct web_hub *hub);
void web_watch_close(struct web_watch *watch);
void web_watch_result(struct web_watch *watch, const struct ndt_result_message *message);
/** NULL: no daemon answers. */
void web_watch_status(struct web_watch *watch, const struct reply_view *status);
/** Whether the last status says that scans are matched and the pose is known; any thread. `why`: the reason if not.
 */
int web_watch_is_ready(struct web_watch *watch, char why[160]);

#endif
