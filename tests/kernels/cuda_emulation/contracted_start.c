/** @file
 * @brief Programs with contracted kernels report themselves as skipped on processors without fused multiply-add. */
#include <stdio.h>
#include <stdlib.h>

#include "check_harness.h"

#if defined(__x86_64__)
static void __attribute__((constructor)) need_fused_operations(void)
{
    if (__builtin_cpu_supports("fma"))
        return;
    puts("skipped: the processor has no fused multiply-add");
    exit(CHECK_SKIPPED);
}
#endif
