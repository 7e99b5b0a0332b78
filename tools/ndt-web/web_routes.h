/** @file
 * @brief The answers to GET: the page, the data, the metrics. Used by the thread of the server. */
#ifndef WEB_ROUTES_H
#define WEB_ROUTES_H

#include "web_reply.h"

/** Answers GET and HEAD of a path. */
enum MHD_Result web_route_get(struct web_server *server, struct web_request *request, const char *path);

#endif
