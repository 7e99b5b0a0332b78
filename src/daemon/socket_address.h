/* The text of an endpoint, understood: private to the daemon library. Pure functions. */
#ifndef NDTD_SOCKET_ADDRESS_H
#define NDTD_SOCKET_ADDRESS_H

#include "ndtd/socket.h"

#define NDTD_IPC_PATH_MAX 107 /* what fits into a sockaddr_un with its final zero */

enum ndtd_transport { NDTD_IPC, NDTD_IPC_ABSTRACT, NDTD_TCP, NDTD_INPROC };

struct ndtd_socket_address {
    enum ndtd_transport transport;
    char text[NDTD_ENDPOINT_MAX + 16]; /* what libzmq is given: localhost as a number, the rest as written */
    char path[NDTD_IPC_PATH_MAX + 1];  /* ipc */
    int is_loopback;                   /* tcp: nobody on another machine can reach it */
    int is_ipv6;
};

/* NDT_ERR_ARGUMENT: the line names the address and what is wrong with it. */
NDT_MUST_CHECK enum ndt_status ndtd_socket_address_parse(struct ndtd_socket_address *out, const char *text,
                                                         struct ndt_error *err);

#endif
