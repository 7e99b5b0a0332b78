#include "kernel_plan.h"

#include <stdio.h>
#include <string.h>

#include "backends.h"

/* Double throughout; or float per pair and double above: R x is rounded three times, q B q and exp a few units, and
 * t not at all, because it is carried in double. On a device R is made from six floats, sin and cos rounded before
 * they are multiplied: two roundings more in R, which the bound of 8 units on the whole term covers. The matrix of
 * a voxel comes from its characteristic polynomial: a few units times the condition of the roots
 * (kernel_information.h).
 */
static const struct kernel_tolerance tolerances[] = {
    {.backend = "reference",
     .rounding = KERNEL_DOUBLE,
     .unit = 0x1p-53,
     .rtol = 8,
     .inner_rtol = 1,
     .rotation_scale_rtol = 1,
     .normal_rtol = 4,
     .rounds_translation = 1},
    {.backend = NULL,
     .rounding = KERNEL_FLOAT,
     .unit = 0x1p-24,
     .rtol = 8,
     .inner_rtol = 1,
     .rotation_scale_rtol = 1,
     .normal_rtol = 4,
     .rounds_translation = 0},
};

static const struct kernel_tolerance *tolerance_of(const char *backend)
{
    size_t i = 0;
    while (tolerances[i].backend && strcmp(tolerances[i].backend, backend) != 0)
        i++;
    return &tolerances[i];
}

void kernel_plan_config(const struct kernel_plan *plan, struct ndt_backend_config *config)
{
    ndt_backend_config_default(config);
    config->threads = plan->threads;
    config->pipeline = plan->pipeline;
    if (plan->pipeline) /* enough for every case; memory that nothing should read stays within what a test can fill
                         */
        config->max_points = 131072;
    if (plan->isa[0])
        config->isa = plan->isa;
}

static void open_plan(struct kernel_plans *plans, const struct kernel_plan_filter *filter,
                      const struct ndt_backend_ops *ops, const char *isa, const char *pipeline, int threads)
{
    if (plans->count == KERNEL_MAX_PLANS || (filter->threads && filter->threads != threads) ||
        (filter->isa && strcmp(filter->isa, isa) != 0) ||
        (filter->pipeline && (!pipeline || strcmp(filter->pipeline, pipeline) != 0)))
        return;
    struct kernel_plan *plan = &plans->items[plans->count++];
    memset(plan, 0, sizeof(*plan));
    plan->ops = ops;
    plan->threads = threads;
    plan->pipeline = pipeline;
    plan->tolerance = tolerance_of(ops->name);
    snprintf(plan->isa, sizeof(plan->isa), "%s", isa);
    struct ndt_backend_config config;
    kernel_plan_config(plan, &config);
    struct ndt_error err = {""};
    if (ops->probe(config.device, &err) != NDT_OK || ops->open(&plan->backend, &config, &err) != NDT_OK) {
        plan->backend = NULL;
        snprintf(plan->skipped, sizeof(plan->skipped), "%.500s", err.text);
    } else
        plan->ops = plan->backend->ops;
}

/* The variants of the CPU backend, those asked for by name included, so that they are reported as skipped. */
static void open_cpu(struct kernel_plans *plans, const struct kernel_plan_filter *filter,
                     const struct ndt_backend_ops *ops)
{
    char variants[256], asked[300];
    ndt_cpu_variants(variants, sizeof(variants));
    const char *list = filter->isa && !strstr(variants, filter->isa) ? filter->isa : variants;
    snprintf(asked, sizeof(asked), "%s", list);
    char *rest = asked;
    for (const char *isa = strsep(&rest, ","); isa; isa = strsep(&rest, ","))
        for (int threads = 1; threads <= 3; threads++)
            open_plan(plans, filter, ops, isa, NULL, threads);
}

void kernel_plans_open(struct kernel_plans *plans, const struct kernel_plan_filter *filter)
{
    plans->count = 0;
    const struct ndt_backend_ops *ops;
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++) {
        if (filter->backend && strcmp(filter->backend, ops->name) != 0)
            continue;
        if (ops == &ndt_cpu_backend)
            open_cpu(plans, filter, ops);
        else if (ops->pipelines)
            for (const char *const *name = ops->pipelines; *name; name++)
                open_plan(plans, filter, ops, "", *name, 1);
        else
            open_plan(plans, filter, ops, "", NULL, 1);
    }
}

void kernel_plans_close(struct kernel_plans *plans)
{
    for (size_t i = 0; i < plans->count; i++)
        if (plans->items[i].backend)
            plans->items[i].ops->close(plans->items[i].backend);
    plans->count = 0;
}

const char *kernel_plan_name(const struct kernel_plan *plan, char *text, size_t size)
{
    if (plan->isa[0])
        snprintf(text, size, "%s %s x%d", plan->ops->name, plan->isa, plan->threads);
    else if (plan->pipeline)
        snprintf(text, size, "%s %s", plan->ops->name, plan->pipeline);
    else
        snprintf(text, size, "%s", plan->ops->name);
    return text;
}
