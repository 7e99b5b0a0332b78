/* How near an evaluation comes to what the machine can do, and what lies between. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab_peak.h"
#include "lab_view.h"

static const double LEAF_M = 2;

struct part_contest {
    const struct lab_view *view;
    const struct lab_isa *isa;
};

static double measure_part(void *context, int variant, int repetition)
{
    static const enum lab_kernel parts[] = {LAB_LOCATE, LAB_LISTS, LAB_NEIGHBOURS, LAB_RECORDS, LAB_PAIRS};
    const struct part_contest *it = context;
    (void)repetition;
    if (variant == 0)
        return lab_view_time_us(it->view, it->isa->whole);
    if (variant == 6)
        return lab_view_time_us(it->view, it->isa->without_exp);
    return lab_view_part_us(it->view, it->isa->part, parts[variant - 1]);
}

static void compare_parts(const struct lab *lab, struct part_contest *it, const char *what)
{
    lab_compare(
        lab, &(struct lab_comparison){.experiment = "roofline",
                                      .what = what,
                                      .unit = "us/evaluation",
                                      .names = {"whole", "cells only", "and list references", "and voxels in reach",
                                                "and records loaded", "and pairs", "whole without exp"},
                                      .count = 7,
                                      .measure = measure_part,
                                      .context = it});
}

/* What the loops meet, as means per scan. */
static void tell_counts(const struct part_contest *it, const char *experiment, const char *what)
{
    double points = 0, pairs = 0, lanes = 0, listed = 0, padded = 0, sums[NDT_SUM_COUNT];
    for (size_t i = 0; i < it->view->count; i++) {
        const struct ndt_wide_job *job = &it->view->jobs[i].wide;
        lab_view_part_sums(it->view, i, it->isa->part, LAB_NEIGHBOURS, sums);
        points += (double)job->count;
        pairs += sums[NDT_SUM_PAIRS];
        lanes += sums[0];
        for (size_t p = 0; p < job->count; p++) {
            int32_t cell[3];
            for (int k = 0; k < 3; k++) {
                const float near_m = job->R[3 * k] * job->x_m[p] + job->R[3 * k + 1] * job->y_m[p] +
                                     job->R[3 * k + 2] * job->z_m[p] + job->t_m[k];
                cell[k] = (int32_t)floor((double)near_m / job->level->leaf_m) + job->near_cell[k];
            }
            const struct ndt_cell_ref ref = ndt_map_lookup(job->level, cell);
            listed += ref.n27;
            padded += ref.padded;
        }
    }
    const double n = (double)it->view->count;
    lab_fact(experiment, what, "points", "", points / n);
    lab_fact(experiment, what, "pairs", "", pairs / n);
    lab_fact(experiment, what, "lanes that pairs take", "", lanes / n);
    lab_fact(experiment, what, "voxels listed", "", listed / n);
    lab_fact(experiment, what, "list entries with padding", "", padded / n);
}

static double best(double (*run)(size_t), size_t rounds)
{
    double most = 0;
    for (int i = 0; i < 15; i++)
        most = fmax(most, run(rounds));
    return most;
}

static enum ndt_status tell_peaks(const struct lab *lab, struct ndt_error *err)
{
    static const struct {
        const char *name;
        size_t bytes;
    } places[] = {{"L1 (24 KiB)", 24 << 10}, {"L2 (512 KiB)", 512 << 10}, {"memory (192 MiB)", (size_t)192 << 20}};
    size_t isas;
    const size_t most = lab->quick ? (size_t)1 << 20 : places[2].bytes;
    float *memory = aligned_alloc(64, most);
    if (!memory)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory to read from");
    memset(memory, 1, most);
    lab_isas(&isas);
    for (size_t i = 0; i < isas; i++) {
        const struct lab_peak *peak = &lab_peaks()[i];
        const size_t rounds = lab->quick ? 2000 : 100000;
        lab_fact("roofline", peak->name, "fused peak", "GFLOP/s", best(peak->fused, rounds) * 1e-3);
        lab_fact("roofline", peak->name, "apart peak", "GFLOP/s", best(peak->apart, rounds) * 1e-3);
        for (size_t p = 0; p < 3 && places[p].bytes <= most; p++) {
            const size_t bytes = places[p].bytes, rounds_here = (most - 1) / bytes + 1;
            double rate = 0;
            for (int k = 0; k < 5; k++)
                rate = fmax(rate, peak->read(memory, bytes / sizeof(float), rounds_here));
            lab_fact("roofline", peak->name, places[p].name, "GB/s", rate * 1e-3);
        }
    }
    free(memory);
    return NDT_OK;
}

enum ndt_status lab_roofline(const struct lab *lab, struct ndt_error *err)
{
    static const uint32_t sizes[] = {1500, 5000};
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < (lab->quick ? 1 : 2); i++) {
        struct lab_scene scene;
        struct lab_view view = {0};
        struct part_contest it = {.view = &view, .isa = lab_isa_best()};
        char what[64];
        const uint32_t points = lab->quick ? 300 : sizes[i];
        snprintf(what, sizeof(what), "%u points", points);
        status = lab_scene_open(&scene, lab, points, err);
        if (status == NDT_OK)
            status = lab_view_of_scene(&view, &scene, LEAF_M, NDT_RADIUS, err);
        if (status == NDT_OK && it.isa) {
            compare_parts(lab, &it, what);
            tell_counts(&it, "roofline", what);
        }
        lab_view_close(&view);
        lab_scene_close(&scene);
    }
    return status == NDT_OK ? tell_peaks(lab, err) : status;
}

/* As many evaluations as --repetitions says and nothing else that depends on it: callgrind's counts of two runs
 * differ by the evaluations. */
enum ndt_status lab_count(const struct lab *lab, struct ndt_error *err)
{
    struct lab_scene scene;
    struct lab_view view = {0};
    const struct lab_isa *isa = lab_isa_best();
    double sums[NDT_SUM_COUNT], score = 0;
    enum ndt_status status = lab_scene_open(&scene, lab, lab->quick ? 300 : 1500, err);
    if (status == NDT_OK)
        status = lab_view_of_scene(&view, &scene, LEAF_M, NDT_RADIUS, err);
    if (status == NDT_OK && !isa)
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "no CPU variant of the lab runs here");
    for (int r = 0; status == NDT_OK && r < lab->repetitions; r++)
        for (size_t i = 0; i < view.count; i++) {
            lab_view_sums(&view, i, isa->whole, sums);
            score += sums[NDT_SUM_SCORE];
        }
    if (status == NDT_OK) {
        lab_fact("count", isa->name, "evaluations", "", (double)view.count * lab->repetitions);
        lab_fact("count", isa->name, "score", "", score / lab->repetitions);
        lab_fact("count", isa->name, "floats per vector", "", isa->wide);
        tell_counts(&(struct part_contest){&view, isa}, "count", isa->name);
    }
    lab_view_close(&view);
    lab_scene_close(&scene);
    return status;
}
