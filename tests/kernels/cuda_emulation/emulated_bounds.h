/** @file
 * @brief Launch bounds of kernels: each kernel lies in a section named after its bound, so that a launch can be
 * checked against it.
 *
 * A bound is the name of a constant; a new one is added to EMULATED_BOUNDS, or it does not compile. */
#ifndef EMULATED_BOUNDS_H
#define EMULATED_BOUNDS_H

#define EMULATED_BOUNDS(X) X(NDT_GPU_BLOCK) X(NDT_GPU_TEAM) X(NDT_GPU_CLUSTER_TEAM)

#define EMULATED_BOUND_IS_KNOWN(name) emulated_bound_##name = 16,
enum { EMULATED_BOUNDS(EMULATED_BOUND_IS_KNOWN) };

#define __launch_bounds__(threads, ...)                                                                            \
    __attribute__((section("emulated_bound_" #threads), aligned(emulated_bound_##threads)))

#endif
