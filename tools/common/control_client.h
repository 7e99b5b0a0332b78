/** @file
 * @brief Requests of a tool to the daemon and what their replies say. One thread. */
#ifndef CONTROL_CLIENT_H
#define CONTROL_CLIENT_H

#include <stdio.h>

#include "live_connection.h"
#include "ndt_proto/control_message.h"

struct control_client;

/** Connects to `address`, "" for control.ipc in the runtime directory. The daemon need not run yet. */
NDT_MUST_CHECK enum ndt_status control_open(struct control_client **out, const char *address,
                                            const struct live_keys *keys, int64_t timeout_ns,
                                            struct ndt_error *err);
/** Allowed on NULL. */
void control_close(struct control_client *client);
/** The address that the client is connected to. */
const char *control_address(const struct control_client *client);

/** Sends a request with an id of its own and waits for the reply, which is kept until the next call; replies to
 * other requests are skipped. NDT_ERR_IO: no reply within the time, or interrupted; NDT_ERR_UNSUPPORTED: the daemon
 * refuses, and err says why. */
NDT_MUST_CHECK enum ndt_status control_ask(struct control_client *client, const struct ndt_request_message *request,
                                           struct ndt_error *err);
/** The last reply, as far as it is decoded; valid until control_close. */
const struct ndt_reply_message *control_message(const struct control_client *client);
/** The bytes of the last reply. */
const uint8_t *control_reply(const struct control_client *client, size_t *size);

/** Prints the last reply as one JSON object in one line; its keys are those of SCHEMA.md. */
NDT_MUST_CHECK enum ndt_status control_print_json(const struct control_client *client, FILE *file,
                                                  struct ndt_error *err);

#endif
