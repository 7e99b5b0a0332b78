/* What can compute here, for people. */
#ifndef NDTD_BACKEND_LIST_H
#define NDTD_BACKEND_LIST_H

#include <stdio.h>

#include "ndt/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One line per backend, with the reason where it does not work here, and one with the CPU's instruction sets.
 * plan_for: with what the backend would allocate for this configuration; NULL = without. */
void ndtd_backends_print(FILE *file, const struct ndt_backend_config *plan_for);

#ifdef __cplusplus
}
#endif
#endif
