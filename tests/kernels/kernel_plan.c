#include "kernel_plan.h"

#include <stdio.h>
#include <string.h>

#include "backends.h"

static const struct kernel_tolerance tolerances[] = {
    {.backend = "reference",
     .rounding = KERNEL_DOUBLE,
     .unit = 0x1p-53,
     .rtol = 8,
     .inner_rtol = 1,
     .lever_rtol = 1,
     .rounds_translation = 1,
     .reason = "double throughout"},
    {.backend = NULL,
     .rounding = KERNEL_FLOAT,
     .unit = 0x1p-24,
     .rtol = 8,
     .inner_rtol = 1,
     .lever_rtol = 1,
     .rounds_translation = 0,
     .reason = "float per pair, double above; R x is rounded three times, q B q and exp a few units, and t not at "
               "all: it is carried in double"},
};

static const struct kernel_tolerance *tolerance_of(const char *backend)
{
    size_t i = 0;
    while (tolerances[i].backend && strcmp(tolerances[i].backend, backend) != 0)
        i++;
    return &tolerances[i];
}

static void open_plan(struct kernel_plans *plans, const struct kernel_plan_filter *filter,
                      const struct ndt_backend_ops *ops, const char *isa, int threads)
{
    if (plans->count == KERNEL_MAX_PLANS || (filter->threads && filter->threads != threads) ||
        (filter->isa && strcmp(filter->isa, isa) != 0))
        return;
    struct kernel_plan *plan = &plans->items[plans->count++];
    memset(plan, 0, sizeof(*plan));
    plan->ops = ops;
    plan->threads = threads;
    plan->tolerance = tolerance_of(ops->name);
    snprintf(plan->isa, sizeof(plan->isa), "%s", isa);
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.threads = threads;
    if (isa[0])
        config.isa = isa;
    struct ndt_error err = {""};
    if (ops->probe(&err) != NDT_OK || ops->open(&plan->backend, &config, &err) != NDT_OK) {
        plan->backend = NULL;
        snprintf(plan->skipped, sizeof(plan->skipped), "%.500s", err.text);
    }
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
            open_plan(plans, filter, ops, isa, threads);
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
        else
            open_plan(plans, filter, ops, "", 1);
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
    else
        snprintf(text, size, "%s", plan->ops->name);
    return text;
}
