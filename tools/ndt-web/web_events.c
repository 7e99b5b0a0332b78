#include "web_events.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ndt/clock.h"
#include "ndt/version.h"
#include "result_print.h"

enum { HEAD_BYTES = 64, LOG_PER_S = 5, LOG_TEXT = 400 };
static const char TAIL[] = "\n\n";

static const char *const event_names[WEB_EVENT_COUNT] = {
    [WEB_DAEMON] = "daemon", [WEB_STATUS] = "status", [WEB_MAP] = "map",      [WEB_SCAN] = "scan",
    [WEB_RESULT] = "result", [WEB_LOG] = "log",       [WEB_RESYNC] = "resync"};
static const char *const level_names[] = {[WEB_INFO] = "info", [WEB_WARNING] = "warning", [WEB_ERROR] = "error"};

/* An event on its way to a reader. */
struct item {
    enum web_event event;
    uint64_t number; /* number of a result */
    struct web_blob *json;
};

struct web_client {
    struct web_hub *hub;
    struct web_waiter waiter;
    int is_asleep, is_quiet; /* nothing since the last beat */
    struct item queue[WEB_QUEUE];
    size_t first, count;
    uint64_t lost;
    /* The text being read: head, text, tail; at counts the bytes of the three that were read. */
    struct web_blob *text;
    char head[HEAD_BYTES];
    size_t at;
    struct web_client *next;
};

/* Lines of one kind that may be written. */
struct log_budget {
    double second_us; /* begin of the second that is counted */
    unsigned in_second;
    uint64_t skipped;
};

struct web_hub {
    pthread_mutex_t lock;
    struct web_hello hello;
    struct web_client *clients;
    unsigned client_count;
    int is_stopping;
    struct web_blob *latest[WEB_EVENT_COUNT];
    struct web_blob **results; /* ring: number % history */
    size_t history;
    uint64_t result_count;
    double result_us;                    /* arrival of the newest result */
    struct web_blob *log[WEB_LOG_LINES]; /* ring */
    uint64_t log_count;
    struct log_budget budgets[WEB_LOG_CHANGE];
    uint64_t sent, lost;
};

enum ndt_status web_hub_open(struct web_hub **out, const struct web_hello *hello, size_t history,
                             struct ndt_error *err)
{
    struct web_hub *hub = calloc(1, sizeof(*hub));
    struct web_blob **results = calloc(history, sizeof(struct web_blob *));
    *out = NULL;
    if (!hub || !results) {
        free(hub);
        free(results);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu results", history);
    }
    pthread_mutex_init(&hub->lock, NULL);
    hub->hello = *hello;
    hub->results = results;
    hub->history = history;
    *out = hub;
    return NDT_OK;
}

void web_hub_close(struct web_hub *hub)
{
    if (!hub)
        return;
    for (size_t i = 0; i < WEB_EVENT_COUNT; i++)
        web_blob_drop(hub->latest[i]);
    for (size_t i = 0; i < hub->history; i++)
        web_blob_drop(hub->results[i]);
    for (size_t i = 0; i < WEB_LOG_LINES; i++)
        web_blob_drop(hub->log[i]);
    pthread_mutex_destroy(&hub->lock);
    free(hub->results);
    free(hub);
}

/* ---- queue of a reader; the hub is locked ---- */

static void clear_queue(struct web_client *client)
{
    for (; client->count > 0; client->count--) {
        web_blob_drop(client->queue[client->first].json);
        client->first = (client->first + 1) % WEB_QUEUE;
    }
}

static void put(struct web_client *client, enum web_event event, uint64_t number, struct web_blob *json)
{
    if (client->count == WEB_QUEUE) {
        client->lost += client->count;
        client->hub->lost += client->count;
        clear_queue(client);
        client->queue[client->first] = (struct item){WEB_RESYNC, 0, NULL};
        client->count = 1;
    }
    client->queue[(client->first + client->count++) % WEB_QUEUE] =
        (struct item){event, number, web_blob_share(json)};
    client->is_quiet = 0;
}

static void wake(struct web_client *client)
{
    if (client->is_asleep)
        client->waiter.wake(client->waiter.user);
    client->is_asleep = 0;
}

static void keep(struct web_blob **place, struct web_blob *json)
{
    web_blob_drop(*place);
    *place = web_blob_share(json);
}

void web_hub_publish(struct web_hub *hub, enum web_event event, struct web_blob *json)
{
    uint64_t number = 0;
    pthread_mutex_lock(&hub->lock);
    if (!json)
        hub->lost++;
    else {
        keep(&hub->latest[event], json);
        if (event == WEB_RESULT) {
            number = hub->result_count++;
            hub->result_us = ndt_clock_us();
            keep(&hub->results[number % hub->history], json);
        }
        if (event == WEB_LOG)
            keep(&hub->log[hub->log_count++ % WEB_LOG_LINES], json);
        for (struct web_client *client = hub->clients; client; client = client->next) {
            put(client, event, number, json);
            wake(client);
        }
    }
    pthread_mutex_unlock(&hub->lock);
    web_blob_drop(json);
}

void web_hub_beat(struct web_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    for (struct web_client *client = hub->clients; client; client = client->next) {
        if (client->is_quiet && client->is_asleep) {
            memcpy(client->head, ":\n", 3); /* a comment, and the empty line of TAIL */
            client->text = web_blob_make(0);
            client->at = 0;
            wake(client);
        }
        client->is_quiet = 1;
    }
    pthread_mutex_unlock(&hub->lock);
}

/* ---- log ---- */

/* Whether a line may be written now; `skipped` receives how many of its kind were not since the last one. */
static int may_log(struct web_hub *hub, enum web_log_kind kind, uint64_t *skipped)
{
    const double now_us = ndt_clock_us();
    *skipped = 0;
    if (kind == WEB_LOG_CHANGE)
        return 1;
    struct log_budget *budget = &hub->budgets[kind];
    pthread_mutex_lock(&hub->lock);
    if (now_us - budget->second_us > 1e6) {
        budget->second_us = now_us;
        budget->in_second = 0;
    }
    const int may = budget->in_second++ < LOG_PER_S;
    *skipped = may ? budget->skipped : 0;
    budget->skipped = may ? 0 : budget->skipped + 1;
    pthread_mutex_unlock(&hub->lock);
    return may;
}

void web_hub_log(struct web_hub *hub, enum web_log_kind kind, enum web_level level, const char *format, ...)
{
    char text[LOG_TEXT];
    uint64_t skipped = 0;
    struct timespec now;
    struct web_writer writer;
    va_list list;
    if (!may_log(hub, kind, &skipped))
        return;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    for (char *at = text; *at; at++)
        if (*at < 0x20 || *at > 0x7e)
            *at = '?';
    size_t used = strlen(text);
    if (skipped)
        snprintf(text + used, sizeof(text) - used, " (%" PRIu64 " further lines before it left out)", skipped);
    fprintf(stderr, "ndt-web: %s: %s\n", level_names[level], text);
    clock_gettime(CLOCK_REALTIME, &now);
    web_writer_open(&writer);
    if (writer.file) {
        fprintf(writer.file, "{\"time_s\":%.3f,\"level\":\"%s\"", (double)now.tv_sec + (double)now.tv_nsec * 1e-9,
                level_names[level]);
        json_text(writer.file, "text", text);
        fputc('}', writer.file);
    }
    web_hub_publish(hub, WEB_LOG, web_writer_finish(&writer));
}

/* ---- values ---- */

struct web_blob *web_hub_latest(struct web_hub *hub, enum web_event event)
{
    pthread_mutex_lock(&hub->lock);
    struct web_blob *json = web_blob_share(hub->latest[event]);
    pthread_mutex_unlock(&hub->lock);
    return json;
}

static uint64_t first_kept(const struct web_hub *hub)
{
    return hub->result_count > hub->history ? hub->result_count - hub->history : 0;
}

uint64_t web_hub_results(struct web_hub *hub, uint64_t *first)
{
    pthread_mutex_lock(&hub->lock);
    const uint64_t count = hub->result_count;
    *first = first_kept(hub);
    pthread_mutex_unlock(&hub->lock);
    return count;
}

struct web_blob *web_hub_result(struct web_hub *hub, uint64_t number)
{
    struct web_blob *json = NULL;
    pthread_mutex_lock(&hub->lock);
    if (number >= first_kept(hub) && number < hub->result_count)
        json = web_blob_share(hub->results[number % hub->history]);
    pthread_mutex_unlock(&hub->lock);
    return json;
}

void web_hub_counters(struct web_hub *hub, struct web_hub_counters *out)
{
    pthread_mutex_lock(&hub->lock);
    *out = (struct web_hub_counters){hub->client_count, hub->sent, hub->lost, hub->result_count - first_kept(hub)};
    pthread_mutex_unlock(&hub->lock);
}

/* ---- readers ---- */

/* The stream begins with it. */
static void greet(struct web_client *client)
{
    struct web_hub *hub = client->hub;
    struct web_writer writer;
    memcpy(client->head, "retry: 1000\nevent: hello\ndata: ", sizeof("retry: 1000\nevent: hello\ndata: "));
    web_writer_open(&writer);
    if (writer.file) {
        fprintf(writer.file,
                "{\"mode\":\"%s\",\"version\":\"%s\",\"allow_control\":%s,\"history\":%" PRIu64
                ",\"first\":%" PRIu64,
                hub->hello.mode, ndt_version(), hub->hello.allow_control ? "true" : "false",
                hub->result_count - first_kept(hub) + hub->hello.replay_results, first_kept(hub));
        if (hub->result_count > 0)
            fprintf(writer.file, ",\"age_s\":%.3f", 1e-6 * (ndt_clock_us() - hub->result_us));
        fputc('}', writer.file);
    }
    client->text = web_writer_finish(&writer);
    for (size_t i = 0; i < WEB_RESULT; i++)
        if (hub->latest[i])
            put(client, (enum web_event)i, 0, hub->latest[i]);
    for (uint64_t i = hub->log_count > WEB_LOG_LINES ? hub->log_count - WEB_LOG_LINES : 0; i < hub->log_count; i++)
        put(client, WEB_LOG, 0, hub->log[i % WEB_LOG_LINES]);
}

struct web_client *web_client_open(struct web_hub *hub, const struct web_waiter *waiter)
{
    struct web_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->hub = hub;
    client->waiter = *waiter;
    pthread_mutex_lock(&hub->lock);
    const int is_full = hub->client_count >= WEB_MAX_CLIENTS || hub->is_stopping;
    if (!is_full) {
        hub->client_count++;
        client->next = hub->clients;
        hub->clients = client;
        greet(client);
    }
    pthread_mutex_unlock(&hub->lock);
    if (!is_full && client->text)
        return client;
    if (is_full)
        free(client);
    else
        web_client_close(client);
    return NULL;
}

void web_client_close(struct web_client *client)
{
    struct web_hub *hub = client->hub;
    pthread_mutex_lock(&hub->lock);
    for (struct web_client **at = &hub->clients; *at; at = &(*at)->next) {
        if (*at == client) {
            *at = client->next;
            hub->client_count--;
            break;
        }
    }
    clear_queue(client);
    pthread_mutex_unlock(&hub->lock);
    web_blob_drop(client->text);
    free(client);
}

/* The next event of the queue becomes the text; 0: there is none. */
static int begin_next(struct web_client *client)
{
    if (client->count == 0)
        return 0;
    const struct item item = client->queue[client->first];
    client->first = (client->first + 1) % WEB_QUEUE;
    client->count--;
    client->at = 0;
    client->text = item.json;
    client->hub->sent++;
    if (item.event == WEB_RESULT)
        snprintf(client->head, sizeof(client->head), "event: result\nid: %" PRIu64 "\ndata: ", item.number);
    else if (item.event == WEB_RESYNC)
        snprintf(client->head, sizeof(client->head), "event: resync\ndata: {\"lost\":%" PRIu64 "}", client->lost);
    else
        snprintf(client->head, sizeof(client->head), "event: %s\ndata: ", event_names[item.event]);
    return 1;
}

/* Copies what fits of a part of the text that begins `begin` bytes behind its start. */
static size_t copy_part(struct web_client *client, size_t begin, const void *part, size_t length, char *out,
                        size_t size)
{
    if (client->at >= begin + length || client->at < begin)
        return 0;
    const size_t skip = client->at - begin, left = length - skip;
    const size_t count = left < size ? left : size;
    memcpy(out, (const char *)part + skip, count);
    client->at += count;
    return count;
}

static size_t copy_event(struct web_client *client, char *out, size_t size)
{
    const size_t head = strlen(client->head), body = client->text ? client->text->size : 0;
    size_t used = copy_part(client, 0, client->head, head, out, size);
    if (body)
        used += copy_part(client, head, client->text->data, body, out + used, size - used);
    used += copy_part(client, head + body, TAIL, sizeof(TAIL) - 1, out + used, size - used);
    if (client->at == head + body + sizeof(TAIL) - 1) {
        web_blob_drop(client->text);
        client->text = NULL;
        client->head[0] = '\0';
    }
    return used;
}

ssize_t web_client_read(struct web_client *client, char *out, size_t size)
{
    struct web_hub *hub = client->hub;
    size_t used = 0;
    pthread_mutex_lock(&hub->lock);
    while (!hub->is_stopping && used < size && (client->head[0] || begin_next(client)))
        used += copy_event(client, out + used, size - used);
    const int is_end = hub->is_stopping;
    if (used == 0 && !is_end) {
        client->is_asleep = 1;
        client->waiter.sleep(client->waiter.user);
    }
    pthread_mutex_unlock(&hub->lock);
    return used == 0 && is_end ? -1 : (ssize_t)used;
}

void web_hub_stop(struct web_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    hub->is_stopping = 1;
    for (struct web_client *client = hub->clients; client; client = client->next)
        wake(client);
    pthread_mutex_unlock(&hub->lock);
}
