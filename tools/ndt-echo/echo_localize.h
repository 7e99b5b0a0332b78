/** @file
 * @brief ndt-echo --localize: asks the daemon where it is. */
#ifndef ECHO_LOCALIZE_H
#define ECHO_LOCALIZE_H

#include <stdint.h>

#include "live_connection.h"
#include "ndt_proto/control_message.h"

/** What is asked, and how long. */
struct echo_localize {
    const char *control;                /**< endpoint; "": the default one */
    struct ndt_request_message request; /**< the operation is localize */
    int64_t timeout_ns;                 /**< 0: none; after it the search is cancelled */
    const struct live_keys *keys;
};
/** Begins a search, waits for its end and prints its report as one JSON object. NDT_ERR_IO: no answer, no result in
 * time, or the pose that was found is not accepted; NDT_ERR_UNSUPPORTED: the daemon refused. */
NDT_MUST_CHECK enum ndt_status echo_localize(const struct echo_localize *ask, struct ndt_error *err);

#endif
