/** @file
 * The table of backends, and of the pipelines of those that have several. */
#ifndef NDT_BACKENDS_H
#define NDT_BACKENDS_H

#include <stddef.h>

#include "ndt/backend.h"
#include "ndt/names.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Backends compiled in, in the order in which "auto" tries them; `i` from 0, NULL after the last. */
const struct ndt_backend_ops *ndt_backend_at(size_t i);

/** Values of cuda.pipeline: "auto", then ndt_backend_ops.pipelines of the CUDA backend; NULL after the last.
 * Complete in every build, also without CUDA. */
extern const struct ndt_label ndt_pipeline_labels[];

/** Opens by name, or the first that works for "auto". The error lists the names there are. */
NDT_MUST_CHECK enum ndt_status ndt_backend_open(struct ndt_backend **out, const char *name,
                                                const struct ndt_backend_config *config, struct ndt_error *err);

/** As ndt_backend_open, but a device that fails does not end the work: after NDT_ERR_DEVICE the backend is closed
 * and opened again, once; after a second failure the CPU backend takes over. The call that failed is repeated with
 * the same map and scan, except set_scans, solve and preprocess, which return NDT_ERR_UNSUPPORTED. One line on
 * stderr and ndt_backend_ops.describe tell what happened. The CPU's backends are returned as they are; for others a
 * copy of the scan is kept. */
NDT_MUST_CHECK enum ndt_status ndt_backend_open_failover(struct ndt_backend **out, const char *name,
                                                         const struct ndt_backend_config *config,
                                                         struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
