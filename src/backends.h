/* The only place that names every backend. */
#ifndef NDT_BACKENDS_H
#define NDT_BACKENDS_H

#include <stddef.h>

#include "ndt/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Backends compiled in, in the order in which "auto" tries them; `i` from 0, NULL after the last. */
const struct ndt_backend_ops *ndt_backend_at(size_t i);
/* Opens by name, or the first that works for "auto". The error lists the names there are. */
NDT_MUST_CHECK enum ndt_status ndt_backend_open(struct ndt_backend **out, const char *name,
                                                const struct ndt_backend_config *config, struct ndt_error *err);
/* The same, but a device that fails does not end the work: when the backend says NDT_ERR_DEVICE it is closed and
 * opened again, once; after a second failure the CPU backend takes over. The call that failed is repeated with the
 * same map and scan. One line on stderr and ndt_backend_ops.describe say what happened. The CPU's backends are
 * returned as they are; of others the scan is kept a second time. */
NDT_MUST_CHECK enum ndt_status ndt_backend_open_failover(struct ndt_backend **out, const char *name,
                                                         const struct ndt_backend_config *config,
                                                         struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
