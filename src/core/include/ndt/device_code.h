/** @file
 * @brief Private: macros of code that gcc and nvcc share.
 *
 * CUDA code defines NDT_DEVICE as __device__, and the others as it needs them, before including a header with such
 * code.
 */
#ifndef NDT_DEVICE_CODE_H
#define NDT_DEVICE_CODE_H

#ifndef NDT_DEVICE
#define NDT_DEVICE
#endif
/** For functions that the host must inline: with n known their loops unroll, in the same order. */
#ifndef NDT_INLINED
#define NDT_INLINED static inline __attribute__((always_inline))
#endif
/** For functions that a device must not inline: one thread runs them, and their registers would count for all. */
#ifndef NDT_APART
#define NDT_APART static inline NDT_DEVICE
#endif
/** NDT_FOR: a loop over a small matrix, unrolled on a device. That keeps an array in registers only if all its
 * indices are constants; in local memory every element costs the latency of a cache.
 * NDT_INVERSE_ROOT: 1 / sqrt(x); on a device within one unit in the last place, in half of the instructions. */
#ifdef __CUDACC__
#define NDT_FOR             _Pragma("unroll") for
#define NDT_INVERSE_ROOT(x) rsqrt(x)
#else
#define NDT_FOR             for
#define NDT_INVERSE_ROOT(x) (1 / sqrt(x))
#endif

#endif
