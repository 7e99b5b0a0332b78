/* Who may connect where CURVE is used: answers libzmq's questions (ZAP, ZeroMQ RFC 27) from the list of clients.
 * One thread, one socket at inproc://zeromq.zap.01, one list that does not change. Private to the daemon library.
 */
#ifndef NDTD_ZAP_HANDLER_H
#define NDTD_ZAP_HANDLER_H

#include "ndtd/curve_keys.h"

struct ndtd_zap_handler;
/* context: the zmq context whose sockets it serves; to be stopped before the context goes. Takes the list over. */
NDT_MUST_CHECK enum ndt_status ndtd_zap_start(struct ndtd_zap_handler **out, void *context,
                                              struct ndtd_client_list *clients, struct ndt_error *err);
void ndtd_zap_stop(struct ndtd_zap_handler *handler); /* NULL is allowed */

#endif
