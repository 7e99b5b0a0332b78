/* The `control` socket (ROUTER): one reply to every request, bad ones included. Used by the main thread only.
 *
 * A request may come with or without the empty delimiter of REQ sockets; the reply has it where the request had. */
#ifndef NDTD_CONTROL_H
#define NDTD_CONTROL_H

#include "ndtd/socket.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_live;
struct ndtd_control;
NDT_MUST_CHECK enum ndt_status ndtd_control_open(struct ndtd_control **out, struct ndtd_sockets *sockets,
                                                 const struct ndtd_endpoint *endpoint, struct ndt_error *err);
void ndtd_control_close(struct ndtd_control *control);
/* The zmq socket, to be polled. */
void *ndtd_control_socket(struct ndtd_control *control);
/* Answers what waits, 64 requests at most. Never blocks. */
void ndtd_control_serve(struct ndtd_control *control, struct ndtd_live *live);

#ifdef __cplusplus
}
#endif
#endif
