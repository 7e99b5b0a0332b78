/** @file
 * @brief The `control` socket (ROUTER): exactly one reply to every request, including invalid ones.
 *
 * start_recording is answered when the file is open, stop_recording when the file is complete and on the disk. The
 * recorder's thread does this work, and other requests are answered meanwhile.
 *
 * A request may have the empty delimiter of REQ sockets; the reply has it if the request had it. Used by the main
 * thread only. */
#ifndef NDTD_CONTROL_H
#define NDTD_CONTROL_H

#include "ndtd/socket.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_live;
struct ndtd_control;
/** Binds the socket. `sockets` is borrowed. */
NDT_MUST_CHECK enum ndt_status ndtd_control_open(struct ndtd_control **out, struct ndtd_sockets *sockets,
                                                 const struct ndtd_endpoint *endpoint, struct ndt_error *err);
/** Closes the socket and removes an ipc path; `control` may be NULL. */
void ndtd_control_close(struct ndtd_control *control);
/** The zmq socket, for polling. */
void *ndtd_control_socket(struct ndtd_control *control);
/** Answers at most 64 waiting requests, and the one that waits for the recorder if the recorder is done. Never
 * blocks. While the first map loads, hello, status and shutdown are possible. */
void ndtd_control_serve(struct ndtd_control *control, struct ndtd_live *live);
/** Answers the request that waits for the recorder, if the recorder is done. */
void ndtd_control_answer_later(struct ndtd_control *control, struct ndtd_live *live);

#ifdef __cplusplus
}
#endif
#endif
