/** @file
 * @brief The table of backends, and the pipelines of those that have several. */
#ifndef NDT_BACKENDS_H
#define NDT_BACKENDS_H

#include <stddef.h>

#include "ndt/backend.h"
#include "ndt/names.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Backends of this build, in the order in which "auto" tries them; `i` from 0, NULL after the last. A backend that
 * is a module of its own (cuda) is loaded by its probe: until then its row has name, about, pipelines, probe, open
 * and plan alone. What an open backend can do is in its own table, ndt_backend.ops. */
const struct ndt_backend_ops *ndt_backend_at(size_t i);

/** Values of cuda.pipeline and cuda.shape, "auto" first; NULL after the last. Complete in every build, also without
 * CUDA. */
extern const struct ndt_label ndt_pipeline_labels[], ndt_shape_labels[];
/** The name for ndt_backend_config.pipeline, a static text, from the values of the two options; NULL: auto. */
const char *ndt_pipeline_name(const char *pipeline, const char *shape);

/** Declares that no other part of this process uses a GPU. Without it a device on which a kernel has failed stays
 * lost for the process, and the CPU takes over; with it the device is reset and used again. A reset ends every
 * context of the process on that device: programs of ndtd call this, a library inside another program must not. */
void ndt_backends_own_process(void);

/** Loads the modules that the probes of backends would load, where there is a driver for them; called before a
 * program gives up its right to read files. */
void ndt_backends_load(void);

/** Opens a backend by name, or the first working one for "auto". The error lists the valid names. */
NDT_MUST_CHECK enum ndt_status ndt_backend_open(struct ndt_backend **out, const char *name,
                                                const struct ndt_backend_config *config, struct ndt_error *err);

/** Opens a backend that survives the failure of its device: after the first NDT_ERR_DEVICE, or NDT_ERR_MEMORY on a
 * device, it is closed and reopened, after the second it is replaced by the CPU backend. Failures are forgotten
 * after 1000 good scans on the device. The failed call is repeated with the same map and scan, except set_scans,
 * solve and preprocess, which return NDT_ERR_UNSUPPORTED. One line on stderr and ndt_backend_ops.describe report a
 * replacement. CPU backends are returned without this wrapper; for other backends a copy of the scan is kept. */
NDT_MUST_CHECK enum ndt_status ndt_backend_open_failover(struct ndt_backend **out, const char *name,
                                                         const struct ndt_backend_config *config,
                                                         struct ndt_error *err);

struct ndt_dense_ops;
/** The engine of searches (ndt/dense_score.h) on the device of a backend; NULL: it has none, and searches use the
 * CPU. */
const struct ndt_dense_ops *ndt_backend_search_engine(const char *name);

#ifdef __cplusplus
}
#endif
#endif
