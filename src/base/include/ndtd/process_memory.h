/** @file
 * @brief Memory of this process, as the kernel counts it. */
#ifndef NDTD_PROCESS_MEMORY_H
#define NDTD_PROCESS_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes in memory now; 0: unknown. */
uint64_t ndtd_resident_bytes(void);
/** Largest number of bytes in memory so far, of this program alone: getrusage() also counts a caller that used
 * vfork(). 0: unknown. */
uint64_t ndtd_peak_resident_bytes(void);

#ifdef __cplusplus
}
#endif
#endif
