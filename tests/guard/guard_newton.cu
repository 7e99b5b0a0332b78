/** @file
 * @brief One Newton step by one thread, with the help of its warp, as the resident kernels make it, for the
 * interpreter of tools/dev/sass-guard/sass-guard.
 */
#include <cuda_runtime.h>

#include "kernels.h"
#include "solve_device.cuh"

/* The solver lies in shared memory, its rules and rows in global memory. cycles: by the clock of the processor. */
extern "C" __global__ void __launch_bounds__(32)
    guard_newton(struct ndt_newton *newton, const struct ndt_newton_rules *rules, struct ndt_newton_row *rows,
                 int32_t capacity, const struct ndt_eval *sums, long long *cycles)
{
    __shared__ struct ndt_newton here;
    __shared__ struct ndt_eval eval;
    if (threadIdx.x != 0) {
        eigen6_help();
        return;
    }
    here = *newton;
    eval = *sums;
    const long long begin = clock64();
    newton_step(&here, rules, rows, capacity, &eval);
    *cycles = clock64() - begin;
    eigen6_dismiss();
    *newton = here;
}
