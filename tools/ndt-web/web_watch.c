#include "web_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void web_watch_open(struct web_watch *watch, struct web_hub *hub)
{
    *watch = (struct web_watch){.hub = hub, .why_not = "no daemon has answered yet"};
    pthread_mutex_init(&watch->lock, NULL);
}

void web_watch_close(struct web_watch *watch)
{
    pthread_mutex_destroy(&watch->lock);
}

static enum web_level level_of(enum ndt_state state)
{
    return state == NDT_STATE_LOST ? WEB_ERROR : state == NDT_STATE_TRACKING ? WEB_INFO : WEB_WARNING;
}

/* Logs one line where the outcome changes: a long series of the same outcome is no news. */
static void watch_outcome(struct web_watch *watch, const struct ndt_result_message *message)
{
    const enum ndt_outcome outcome = message->result.outcome;
    const int is_news = !watch->has_result || watch->outcome != outcome;
    if (is_news && outcome != NDT_CONVERGED && outcome != NDT_MERGED)
        web_hub_log(watch->hub, WEB_LOG_EVENT, WEB_WARNING, "scan %" PRIu64 ": %s%s%s", message->seq,
                    ndt_outcome_name(outcome), message->result.reason[0] ? ": " : "", message->result.reason);
    watch->has_result = 1;
    watch->outcome = outcome;
}

void web_watch_result(struct web_watch *watch, const struct ndt_result_message *message)
{
    watch_outcome(watch, message);
    if (message->has_state && (!watch->has_state || watch->state != message->state))
        web_hub_log(watch->hub, WEB_LOG_EVENT, level_of(message->state), "scan %" PRIu64 ": %s%s%s", message->seq,
                    watch->has_state ? ndt_state_name(watch->state) : "", watch->has_state ? " -> " : "state ",
                    ndt_state_name(message->state));
    if (message->has_state) {
        watch->has_state = 1;
        watch->state = message->state;
    }
    if (watch->has_drops && message->drop_counter > watch->dropped)
        web_hub_log(watch->hub, WEB_LOG_EVENT, WEB_WARNING, "scan %" PRIu64 ": %" PRIu64 " scans dropped before it",
                    message->seq, message->drop_counter - watch->dropped);
    watch->has_drops = 1;
    watch->dropped = message->drop_counter;
}

static void set_why_not(struct web_watch *watch, const char *why)
{
    pthread_mutex_lock(&watch->lock);
    snprintf(watch->why_not, sizeof(watch->why_not), "%s", why);
    pthread_mutex_unlock(&watch->lock);
}

/* An error that the status repeats is told once. */
static void watch_error(struct web_watch *watch, const struct reply_view *status, const char *path, char *last,
                        size_t size)
{
    char error[256];
    reply_view_text(status, path, error, sizeof(error));
    if (*error && strcmp(error, last) != 0)
        web_hub_log(watch->hub, WEB_LOG_EVENT, WEB_ERROR, "%s: %s", path, error);
    snprintf(last, size, "%s", error);
}

void web_watch_status(struct web_watch *watch, const struct reply_view *status)
{
    char state[32], tracking[32], why[160] = "";
    if (!status) {
        watch->has_drops = 0; /* another daemon counts from 0 */
        watch->has_result = watch->has_state = 0;
        set_why_not(watch, "no daemon answers");
        return;
    }
    reply_view_text(status, "state", state, sizeof(state));
    reply_view_text(status, "localisation.state", tracking, sizeof(tracking));
    watch_error(watch, status, "map.error", watch->map_error, sizeof(watch->map_error));
    watch_error(watch, status, "recorder.error", watch->recorder_error, sizeof(watch->recorder_error));
    if (strcmp(state, "localising") != 0)
        snprintf(why, sizeof(why), "the daemon does not localise: its state is %s", state);
    else if (!ndt_state_name_is_trusted(tracking))
        snprintf(why, sizeof(why), "the pose is not known: localisation is %s", tracking);
    set_why_not(watch, why);
}

int web_watch_is_ready(struct web_watch *watch, char why[160])
{
    pthread_mutex_lock(&watch->lock);
    memcpy(why, watch->why_not, sizeof(watch->why_not));
    pthread_mutex_unlock(&watch->lock);
    return why[0] == '\0';
}
