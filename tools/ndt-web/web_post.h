/** @file
 * @brief POST /api/request: who may ask for what, and the daemon's answer. Used by the thread of the server; the
 * connection is suspended while the daemon works. */
#ifndef WEB_POST_H
#define WEB_POST_H

#include "web_reply.h"

/** Checks the headers before the body is read: token, origin, type. Returns the status of a refusal, and in `why`
 * its reason; 0: none. */
unsigned web_post_check(struct web_server *server, const struct web_request *request, const char **why);
/** Passes the body on when it is complete. */
enum MHD_Result web_post_ask(struct web_server *server, struct web_request *request);
/** Sends the answer that came. */
enum MHD_Result web_post_answer(struct web_server *server, struct web_request *request);

#endif
