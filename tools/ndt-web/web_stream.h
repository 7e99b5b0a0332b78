/** @file
 * @brief Answers whose bytes are made while they are sent: the stream of events and pages of the history. Used by
 * the thread of the server. */
#ifndef WEB_STREAM_H
#define WEB_STREAM_H

#include "web_reply.h"

/** Server-sent events without end. The connection is suspended while there is nothing to tell. */
enum MHD_Result web_stream_events(struct web_server *server, struct web_request *request);
/** {"first":N,"results":[...]}: `count` results from number `from` on, or what is left of them. */
enum MHD_Result web_stream_history(struct web_server *server, struct web_request *request, uint64_t from,
                                   uint64_t count);

#endif
