/* A fast 64-bit hash for identity and damage, not for secrets: four lanes of multiply and rotate over
 * 8-byte words, little endian. Same bytes and seed, same value, on every machine. */
#ifndef NDT_HASH_H
#define NDT_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t ndt_hash64(const void *data, size_t size, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
