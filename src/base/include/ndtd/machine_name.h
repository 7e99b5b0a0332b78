/** @file
 * @brief Name of the machine, which measurements carry. */
#ifndef NDTD_MACHINE_NAME_H
#define NDTD_MACHINE_NAME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The model of the CPU as the kernel tells it; "unknown" where it does not. Returns `text`. */
const char *ndtd_cpu_name(char *text, size_t size);
/** CPU, cores that this process may use, kernel and architecture in one line. Returns `text`. */
const char *ndtd_machine_name(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
