#include "kernel_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 31, SIZES = 4, MODES = 4 };

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int prepare(struct kernel_plans *plans, const struct kernel_inputs *inputs)
{
    struct ndt_error err = {""};
    for (size_t i = 0; i < plans->count; i++) {
        const struct kernel_plan *plan = &plans->items[i];
        if (plan->backend && (plan->ops->set_map(plan->backend, inputs->map, &err) != NDT_OK ||
                              plan->ops->set_scan(plan->backend, &inputs->scan.cloud, &err) != NDT_OK)) {
            fprintf(stderr, "%s: %s\n", plan->ops->name, err.text);
            return 0;
        }
    }
    return 1;
}

static int time_plans(struct kernel_plans *plans, const struct ndt_eval_request *request,
                      double took_us[KERNEL_MAX_PLANS][ROUNDS], struct ndt_eval *sums)
{
    struct ndt_error err = {""};
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < plans->count; i++) {
            const struct kernel_plan *plan = &plans->items[i];
            const double start_us = now_us();
            if (plan->backend && plan->ops->eval(plan->backend, request, sums, &err) != NDT_OK) {
                fprintf(stderr, "%s: %s\n", plan->ops->name, err.text);
                return 0;
            }
            took_us[i][round] = now_us() - start_us;
        }
    }
    return 1;
}

static void print_row(struct kernel_plans *plans, const struct kernel_case *item, const struct ndt_eval *sums,
                      double took_us[KERNEL_MAX_PLANS][ROUNDS])
{
    for (size_t i = 0; i < plans->count; i++) {
        if (!plans->items[i].backend)
            continue;
        char name[64];
        qsort(took_us[i], ROUNDS, sizeof(double), ascending);
        const double median_us = took_us[i][ROUNDS / 2];
        printf("%-18s %-9s %6zu points %8.0f pairs %10.1f us %8.2f ns/point %8.2f ns/pair\n",
               kernel_plan_name(&plans->items[i], name, sizeof(name)), kernel_neighbours_name(item->neighbours),
               item->size, sums->pairs, median_us, 1e3 * median_us / (double)item->size,
               1e3 * median_us / (sums->pairs > 0 ? sums->pairs : 1));
    }
}

static int bench_case(struct kernel_plans *plans, struct kernel_maps *maps, const struct kernel_case *item)
{
    static double took_us[KERNEL_MAX_PLANS][ROUNDS];
    struct kernel_inputs inputs;
    struct ndt_error err = {""};
    int done = 0;
    if (kernel_inputs_make(&inputs, maps, item, &err) != NDT_OK) {
        fprintf(stderr, "%s\n", err.text);
    } else {
        struct ndt_eval_request request = {.level = inputs.level, .neighbours = item->neighbours};
        for (int i = 0; i < 6; i++)
            request.p[i] = inputs.p[i];
        struct ndt_eval sums = {0};
        done = prepare(plans, &inputs) && time_plans(plans, &request, took_us, &sums);
        if (done)
            print_row(plans, item, &sums, took_us);
    }
    kernel_inputs_free(&inputs);
    return done;
}

int kernel_bench(struct kernel_plans *plans, struct kernel_maps *maps)
{
    static const size_t sizes[SIZES] = {756, 1500, 5000, 20000};
    for (int mode = 0; mode < MODES; mode++) {
        for (int i = 0; i < SIZES; i++) {
            struct kernel_case item = {
                .name = "bench", .leaf_m = 2.0, .neighbours = (enum ndt_neighbours)mode, .size = sizes[i]};
            if (!bench_case(plans, maps, &item))
                return 0;
        }
    }
    return 1;
}
