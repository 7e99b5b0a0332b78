/* What can compute here, for people. */
#ifndef NDTD_BACKEND_LIST_H
#define NDTD_BACKEND_LIST_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One line per backend, with the reason where it does not work here, and one with the CPU's instruction sets. */
void ndtd_backends_print(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
