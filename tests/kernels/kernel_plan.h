/** @file
 * @brief The plans of check_kernels: one plan per backend, pipeline, CPU variant and number of threads, with the
 * tolerance it must keep.
 *
 * A new backend needs a row in src/backends/backends.c and, unless it computes in float, one here. */
#ifndef KERNEL_PLAN_H
#define KERNEL_PLAN_H

#include "kernel_reference.h"
#include "ndt/backend.h"

/* |sum - expected| <= unit (rtol weight + inner_rtol inner + rotation_scale_rtol (rotation_scale + |t| shift) +
 * normal_rtol normal) + own + slack, with the quantities of kernel_reference.h and unit = the rounding unit of the
 * arithmetic. */
struct kernel_tolerance {
    const char *backend; /* NULL: every other backend */
    enum kernel_rounding rounding;
    double unit;
    double rtol, inner_rtol, rotation_scale_rtol, normal_rtol;
    int rounds_translation; /* t is added in the same arithmetic */
};

struct kernel_plan {
    const struct ndt_backend_ops *ops;
    char isa[16];         /* empty: the backend has no variants */
    const char *pipeline; /* NULL: the backend has only one */
    int threads;
    const struct kernel_tolerance *tolerance;
    struct ndt_backend *backend; /* NULL: cannot run here */
    char skipped[512];           /* reason why it is skipped */
    size_t passed, failed;
    double worst; /* largest error as part of what is allowed */
    char worst_name[128];
};

enum { KERNEL_MAX_PLANS = 64 };
struct kernel_plans {
    size_t count;
    struct kernel_plan items[KERNEL_MAX_PLANS];
};

struct kernel_plan_filter {
    const char *backend, *isa, *pipeline; /* NULL: all */
    int threads;                          /* 0: 1, 2 and 3 */
};

/* Opens every plan that can run here; the others keep their reason. */
void kernel_plans_open(struct kernel_plans *plans, const struct kernel_plan_filter *filter);
void kernel_plans_close(struct kernel_plans *plans);
/* The configuration to open a plan's backend with. */
void kernel_plan_config(const struct kernel_plan *plan, struct ndt_backend_config *config);
/* "cpu avx2 x2", "cuda fused" */
const char *kernel_plan_name(const struct kernel_plan *plan, char *text, size_t size);

#endif
