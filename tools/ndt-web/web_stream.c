#include "web_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16384 };

/* ---- events ---- */

static void suspend(void *connection)
{
    MHD_suspend_connection(connection);
}

static void resume(void *connection)
{
    MHD_resume_connection(connection);
}

struct stream {
    struct web_client *client;
    struct web_request *request; /* lives as long as it is read */
};

static ssize_t read_events(void *self, uint64_t at, char *out, size_t size)
{
    const struct stream *stream = self;
    (void)at;
    const ssize_t count = web_client_read(stream->client, out, size);
    if (count < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    stream->request->bytes += (uint64_t)count;
    return count;
}

static void close_events(void *self)
{
    struct stream *stream = self;
    web_client_close(stream->client);
    free(stream);
}

enum MHD_Result web_stream_events(struct web_server *server, struct web_request *request)
{
    const struct web_waiter waiter = {suspend, resume, request->connection};
    struct stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return web_reply_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory");
    *stream = (struct stream){web_client_open(server->site.hub, &waiter), request};
    if (!stream->client) {
        free(stream);
        return web_reply_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "there are %d readers of events already",
                               WEB_MAX_CLIENTS);
    }
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, stream, close_events);
    if (!response)
        close_events(stream);
    else
        web_peer_enter(server->peers, request->peer, WEB_STREAMING);
    return web_reply(request, MHD_HTTP_OK, "text/event-stream", "no-store", response);
}

/* ---- history ---- */

struct history {
    const struct web_source *source;
    struct web_request *request; /* lives as long as it is read */
    uint64_t first, next, end;
    int has_head, has_tail;
    struct web_blob *text; /* being copied; at counts its bytes that are */
    size_t at;
};

static struct web_blob *from_text(const char *text)
{
    struct web_blob *blob = web_blob_make(strlen(text));
    if (blob)
        memcpy(blob->data, text, blob->size);
    return blob;
}

static struct web_blob *next_part(struct history *history)
{
    struct web_blob *result = NULL;
    char head[64];
    if (!history->has_head) {
        history->has_head = 1;
        snprintf(head, sizeof(head), "{\"first\":%" PRIu64 ",\"results\":[", history->first);
        return from_text(head);
    }
    if (history->next < history->end) {
        result = history->source->result(history->source->self, history->next++);
        return result ? result : from_text("null"); /* overwritten meanwhile */
    }
    if (history->has_tail)
        return NULL;
    history->has_tail = 1;
    return from_text("]}");
}

/* Results are separated by the comma that goes before each but the first. */
static ssize_t read_history(void *self, uint64_t position, char *out, size_t size)
{
    struct history *history = self;
    size_t used = 0;
    (void)position;
    while (used < size) {
        if (!history->text) {
            const int needs_comma =
                history->has_head && history->next > history->first && history->next < history->end;
            history->text = next_part(history);
            history->at = 0;
            if (!history->text)
                break;
            if (needs_comma)
                out[used++] = ',';
        }
        const size_t left = history->text->size - history->at;
        const size_t count = left < size - used ? left : size - used;
        memcpy(out + used, history->text->data + history->at, count);
        used += count;
        history->at += count;
        if (history->at == history->text->size) {
            web_blob_drop(history->text);
            history->text = NULL;
        }
    }
    history->request->bytes += used;
    return used ? (ssize_t)used : MHD_CONTENT_READER_END_OF_STREAM;
}

static void close_history(void *self)
{
    struct history *history = self;
    web_blob_drop(history->text);
    free(history);
}

enum MHD_Result web_stream_history(struct web_server *server, struct web_request *request, uint64_t from,
                                   uint64_t count)
{
    struct history *history = calloc(1, sizeof(*history));
    uint64_t first;
    if (!history)
        return web_reply_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory");
    history->source = &server->site.source;
    history->request = request;
    const uint64_t end = history->source->results(history->source->self, &first);
    history->first = from < first ? first : from < end ? from : end;
    history->end = end - history->first < count ? end : history->first + count;
    history->next = history->first;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_history, history, close_history);
    if (!response)
        close_history(history);
    return web_reply(request, MHD_HTTP_OK, "application/json", NULL, response);
}
