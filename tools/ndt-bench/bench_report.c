#include "bench_report.h"

#include <string.h>

#include "ndt/names.h"

enum { NAME_TEXT = 160 };

static double median(struct ndtd_samples *samples)
{
    return ndtd_samples_quantile(samples, 0.5);
}

static double p95(struct ndtd_samples *samples)
{
    return ndtd_samples_quantile(samples, 0.95);
}

static void print_machine(const struct bench_report *report)
{
    const struct bench_machine *machine = &report->machine;
    printf("%s, %d core%s; %s; CPU variants here: %s\n", machine->cpu, machine->cores,
           machine->cores == 1 ? "" : "s", machine->compiler, machine->variants);
}

static void print_input(const struct bench_report *report)
{
    printf("map %s", report->maps->path);
    if (report->maps->points.count)
        printf(", %zu points, read in %.1f ms", report->maps->points.count, report->maps->read_ms);
    printf("; %zu scan%s, %llu starts, seed %llu\n", report->input->count, report->input->count == 1 ? "" : "s",
           (unsigned long long)report->options->starts, (unsigned long long)report->options->seed);
}

static void print_maps(struct bench_maps *maps)
{
    char text[64];
    printf("\n%-10s %-10s %10s %10s %10s %12s\n", "map", "covariance", "build ms", "p95", "voxels", "bytes/voxel");
    for (size_t i = 0; i < maps->count; i++) {
        struct bench_map *item = &maps->items[i];
        struct ndt_align_params levels = {.level_count = item->map->level_count};
        size_t voxels = 0;
        for (size_t k = 0; k < item->map->level_count; k++) {
            voxels += item->map->levels[k].voxel_count - 1;
            levels.levels[k].leaf_m = item->map->levels[k].leaf_m;
        }
        printf("%-10s %-10s %10.2f %10.2f %10zu %12.0f\n", bench_levels_text(&levels, text, sizeof(text)),
               ndt_covariance_name(item->config.covariance), median(&item->build_ms), p95(&item->build_ms), voxels,
               voxels ? (double)item->map->bytes / (double)voxels : 0);
    }
}

static void print_filtered(struct bench_filtered *filtered)
{
    if (filtered->wanted)
        printf("preprocess to %6u points: ", filtered->wanted);
    else
        printf("preprocess, all points:      ");
    printf("median %.0f, filter %.3f m, %.0f us, p95 %.0f us\n", median(&filtered->used), filtered->voxel_m,
           median(&filtered->took_us), p95(&filtered->took_us));
    if (median(&filtered->used) < filtered->wanted)
        printf("  note: the scans hold no more points than that\n");
}

static const char *row_name(const struct bench_row *row, char *text, size_t size)
{
    char levels[64], neighbours[96], backend[96];
    const struct ndt_align_params *params = &row->matcher.settings.align;
    if (row->peer) {
        snprintf(text, size, "%-9s %-6g %-23s %-22s", row->peer->name, row->peer_leaf_m, "radius", "1 thread");
        return text;
    }
    snprintf(backend, sizeof(backend), "%s", row->matcher.backend->ops->name);
    if (row->matcher.backend->ops->pipelines)
        snprintf(backend, sizeof(backend), "%s %s", row->matcher.backend->ops->name,
                 row->matcher.settings.compute.pipeline ? row->matcher.settings.compute.pipeline
                                                        : row->matcher.backend->ops->pipelines[0]);
    else if (row->matcher.backend->ops->describe)
        row->matcher.backend->ops->describe(row->matcher.backend, backend, sizeof(backend));
    snprintf(text, size, "%-9s %-6s %-23s %-22s", ndt_variant_name(params->variant),
             bench_levels_text(params, levels, sizeof(levels)),
             bench_neighbours_text(params, neighbours, sizeof(neighbours)), backend);
    return text;
}

static void print_row(struct bench_grid *grid, struct bench_row *row)
{
    char name[NAME_TEXT];
    struct bench_tally *tally = &row->tally;
    const double points = median(&grid->filtered[row->filtered].used);
    printf("%s %6.0f %9.3f %9.3f ", row_name(row, name, sizeof(name)), points, median(&tally->align_ms),
           p95(&tally->align_ms));
    if (row->peer)
        printf("%6s %5.1f %9s %7s", "-", ndtd_samples_mean(&tally->iterations), "-", "-");
    else
        printf("%6.1f %5.1f %9.1f %7.2f", ndtd_samples_mean(&tally->evaluations),
               ndtd_samples_mean(&tally->iterations), median(&row->eval_us),
               median(&row->pairs) > 0 ? 1e3 * median(&row->eval_us) / median(&row->pairs) : 0);
    printf(" %7.1f %% %7.2f %6.3f\n", 100 * bench_tally_success(tally), 100 * median(&tally->error_m),
           median(&tally->error_deg));
}

/* Threads against one thread, and the peer against the product, from medians of the same run. */
static void print_ratios(struct bench_grid *grid)
{
    char name[NAME_TEXT];
    for (size_t i = 0; i < grid->row_count; i++) {
        struct bench_row *row = &grid->rows[i];
        struct bench_row *single = bench_grid_single(grid, row);
        if (single && row->matcher.settings.compute.threads > 1)
            printf("%s %6.0f: %.2f times one thread (evaluation %.2f)\n", row_name(row, name, sizeof(name)),
                   median(&grid->filtered[row->filtered].used),
                   median(&single->tally.align_ms) / median(&row->tally.align_ms),
                   median(&single->eval_us) / median(&row->eval_us));
        for (size_t k = 0; row->peer && k < grid->row_count; k++) {
            struct bench_row *ours = &grid->rows[k];
            if (!ours->peer && ours->filtered == row->filtered)
                printf("%s %6.0f: %.1f times as fast as %s (success %.1f %% against %.1f %%)\n",
                       row_name(ours, name, sizeof(name)), median(&grid->filtered[row->filtered].used),
                       median(&row->tally.align_ms) / median(&ours->tally.align_ms), row->peer->name,
                       100 * bench_tally_success(&ours->tally), 100 * bench_tally_success(&row->tally));
        }
    }
}

static void print_grid(const struct bench_report *report)
{
    const struct bench_offset *offset = &report->options->offsets[0];
    struct bench_grid *grid = report->grid;
    const struct bench_row *last = &grid->rows[grid->row_count - 1];
    for (size_t i = 0; i < grid->filtered_count; i++)
        print_filtered(&grid->filtered[i]);
    printf("\nstarts off by up to %g m and %g deg; success: within %g m and %g deg; errors of the recovered ones\n",
           offset->shift_m, offset->turn_deg, BENCH_SUCCESS_M, BENCH_SUCCESS_DEG);
    printf("%-9s %-6s %-23s %-22s %6s %9s %9s %6s %5s %9s %7s %9s %7s %6s\n", "variant", "levels", "neighbours",
           "backend", "points", "align ms", "p95", "evals", "iter", "eval us", "ns/pair", "success", "cm", "deg");
    for (size_t i = 0; i < grid->row_count; i++)
        print_row(grid, &grid->rows[i]);
    if (last->peer)
        printf("%s: %s\n", last->peer->name, last->peer->about);
    print_ratios(grid);
}

static void print_basin(const struct bench_report *report)
{
    struct bench_basin *basin = report->basin;
    print_filtered(&basin->filtered);
    printf("\nstarts recovered within %g m and %g deg; believed: said to have converged, but did not recover\n",
           BENCH_SUCCESS_M, BENCH_SUCCESS_DEG);
    printf("%-9s %-6s %-23s %-12s %9s %9s %9s %9s %7s %6s\n", "variant", "levels", "neighbours", "off by up to",
           "success", "believed", "align ms", "evals", "cm", "deg");
    for (int candidate = 0; candidate < BENCH_BASIN_CANDIDATES; candidate++) {
        const struct ndt_align_params *params = &basin->candidates[candidate].settings.align;
        for (size_t i = 0; i < report->options->offset_count; i++) {
            char levels[64], neighbours[96], off[32];
            struct bench_tally *tally = &basin->tallies[candidate][i];
            snprintf(off, sizeof(off), "%g m %g deg", report->options->offsets[i].shift_m,
                     report->options->offsets[i].turn_deg);
            printf("%-9s %-6s %-23s %-12s %7.1f %% %7.1f %% %9.3f %9.1f %7.2f %6.3f\n",
                   ndt_variant_name(params->variant), bench_levels_text(params, levels, sizeof(levels)),
                   bench_neighbours_text(params, neighbours, sizeof(neighbours)), off,
                   100 * bench_tally_success(tally), 100.0 * (double)tally->believed_wrong / (double)tally->starts,
                   median(&tally->align_ms), ndtd_samples_mean(&tally->evaluations), 100 * median(&tally->error_m),
                   median(&tally->error_deg));
        }
    }
}

static void print_batches(struct bench_batches *batches)
{
    for (size_t i = 0; i < batches->filtered_count; i++)
        print_filtered(&batches->filtered[i]);
    bench_batch_print(&batches->result, stdout);
}

void bench_report_print(const struct bench_report *report)
{
    print_machine(report);
    if (report->preprocess) {
        bench_preprocess_print(report->preprocess, stdout);
        return;
    }
    print_input(report);
    print_maps(report->maps);
    if (report->grid)
        print_grid(report);
    else if (report->basin)
        print_basin(report);
    else if (report->batches)
        print_batches(report->batches);
    else
        bench_overheads_print(report->overheads, stdout);
}
