/** @file
 * @brief Requests of the page that wait for the daemon's answer; passed by any thread, sent by the thread that owns
 * the control socket (web_feed.h). At most WEB_CONTROL_WAITING at a time, each for at most ten seconds. */
#ifndef WEB_CONTROL_H
#define WEB_CONTROL_H

#include "web_source.h"

enum { WEB_CONTROL_WAITING = 16, WEB_TOKEN_MIN = 16, WEB_TOKEN_MAX = 128 };
/** Ids of requests begin behind it; smaller ones are free for those of the feed itself. */
#define WEB_CONTROL_FIRST_ID ((uint64_t)1 << 32)

struct web_control;
struct web_control *web_control_open(void); /**< NULL: no memory */
/** Closes the control, after web_control_fail. Allowed on NULL. */
void web_control_close(struct web_control *control);

/** Adds a request; any thread. NDT_ERR_LIMIT: too many wait. NDT_ERR_ARGUMENT: the request cannot be sent. */
NDT_MUST_CHECK enum ndt_status web_control_add(struct web_control *control,
                                               const struct ndt_request_message *request,
                                               const struct web_asker *asker, struct ndt_error *err);

/** The rest is for the thread with the socket. Writes the next request that is to be sent, with an id of its own,
 * to the frame; 0: none. */
int web_control_take(struct web_control *control, struct ndt_buffer *frame);
/** Hands a reply to its asker; 0: none waits for it. */
int web_control_answer(struct web_control *control, uint64_t id, const uint8_t *data, size_t size);
/** Answers who has waited too long. Returns whether somebody still waits. */
int web_control_expire(struct web_control *control);
/** Answers all with a reason. */
void web_control_fail(struct web_control *control, const char *why);

/** Reads a token: one line of WEB_TOKEN_MIN to WEB_TOKEN_MAX characters out of A-Z a-z 0-9 . _ ~ + / = -, in a file
 * that others cannot read, apart from its group (credentials of systemd are 0440). NDT_ERR_IO, NDT_ERR_ARGUMENT
 * with one line. */
NDT_MUST_CHECK enum ndt_status web_token_read(const char *path, char token[WEB_TOKEN_MAX + 1],
                                              struct ndt_error *err);
/** Makes a token of 32 random characters. */
NDT_MUST_CHECK enum ndt_status web_token_make(char token[WEB_TOKEN_MAX + 1], struct ndt_error *err);
/** Whether an Authorization header is "Bearer TOKEN"; header may be NULL. The time does not depend on where they
 * differ. */
int web_token_is_right(const char *header, const char *token);
/** Whether the page may ask for an operation: those that neither read files that the client names nor end the
 * daemon. */
int web_control_is_allowed(enum ndt_operation op);

#endif
