/** @file
 * @brief The row of the CUDA backend in the table of backends; it loads the module. Source: cuda_row.c. */
#ifndef NDT_CUDA_ROW_H
#define NDT_CUDA_ROW_H

#include "ndt/backend.h"
#include "ndt/dense_score.h"

/** The row, whose probe and open load the module. */
extern const struct ndt_backend_ops ndt_cuda_row;
/** The row of the backend: that of the module once it is loaded, see ndt_backend_at. */
const struct ndt_backend_ops *ndt_cuda_row_as_loaded(void);
/** Loads the module where there is a driver. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_row_load(struct ndt_error *why);
/** Allows resets as ndt_backends_own_process does, also for a module that is loaded later. */
void ndt_cuda_row_allow_reset(void);
/** Loads the module and returns its search engine; NULL: it could not be loaded. */
const struct ndt_dense_ops *ndt_cuda_row_search_engine(void);

#endif
