/* Time of one evaluation for every plan, neighbour mode and a few sizes. */
#ifndef KERNEL_BENCH_H
#define KERNEL_BENCH_H

#include "kernel_cases.h"
#include "kernel_plan.h"

/* Plans take turns, so that a clock that drifts hits all alike. Prints medians; 0 when an evaluation failed. */
int kernel_bench(struct kernel_plans *plans, struct kernel_maps *maps);

#endif
