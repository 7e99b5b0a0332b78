/** @file
 * @brief The answers to GET: the page, the data, the metrics. Used by the thread of the server. */
#ifndef WEB_GET_H
#define WEB_GET_H

#include "web_reply.h"

/** Answers GET and HEAD of a path. */
enum MHD_Result web_get_path(struct web_server *server, struct web_request *request, const char *path);

#endif
