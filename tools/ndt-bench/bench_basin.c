#include "bench_basin.h"

#include "bench_start.h"

static const double DEG = 3.14159265358979323846 / 180.0;

static const char *first(const struct bench_list *list)
{
    return list->count ? list->items[0] : NULL;
}

static enum ndt_status open_candidates(struct bench_basin *basin, const struct bench_options *options,
                                       struct bench_maps *maps, struct ndt_error *err)
{
    const char *backend = first(&options->backends), *threads = first(&options->threads);
    const struct bench_choice choices[BENCH_BASIN_CANDIDATES] = {
        {.levels = first(&options->levels),
         .neighbours = first(&options->neighbours),
         .backend = backend,
         .threads = threads},
        {.variant = "autoware", .backend = backend, .threads = threads},
    };
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < BENCH_BASIN_CANDIDATES; i++) {
        struct ndtd_settings settings;
        status = bench_matcher_settings(&settings, &options->settings, &choices[i], err);
        if (status == NDT_OK)
            status = bench_matcher_open(&basin->candidates[i], &settings, maps, err);
    }
    return status;
}

static enum ndt_status run_start(struct bench_basin *basin, const struct bench_options *options, size_t offset,
                                 uint64_t start, struct ndt_error *err)
{
    const struct bench_points *scan = &basin->filtered.scans[start % basin->filtered.count];
    const struct bench_offset *limit = &options->offsets[offset];
    const struct ndt_pose guess =
        bench_start(options->seed, start, &scan->T_map_sensor, limit->shift_m, limit->turn_deg * DEG);
    enum ndt_status status = NDT_OK;
    for (int candidate = 0; status == NDT_OK && candidate < BENCH_BASIN_CANDIDATES; candidate++) {
        struct ndt_align_result result;
        double took_us;
        status = bench_matcher_align(&basin->candidates[candidate], &scan->cloud, &guess, &result, &took_us, err);
        const struct bench_found found = {.T_map_sensor = result.T_map_sensor,
                                          .converged = result.outcome == NDT_CONVERGED,
                                          .evaluations = result.evaluations,
                                          .iterations = result.iterations,
                                          .took_us = took_us};
        if (status == NDT_OK)
            status = bench_tally_add(&basin->tallies[candidate][offset], &found, &scan->T_map_sensor, err);
    }
    return status;
}

enum ndt_status bench_basin_run(struct bench_basin *basin, const struct bench_options *options,
                                const struct bench_input *input, struct bench_maps *maps, struct ndt_error *err)
{
    const struct ndt_preprocess_params *params = &options->settings.preprocess;
    enum ndt_status status = bench_filter(&basin->filtered, input, params, params->sample_count, err);
    if (status == NDT_OK)
        status = open_candidates(basin, options, maps, err);
    for (size_t offset = 0; offset < options->offset_count; offset++)
        for (uint64_t start = 0; status == NDT_OK && start < options->starts; start++)
            status = run_start(basin, options, offset, start, err);
    return status;
}

void bench_basin_free(struct bench_basin *basin)
{
    for (int i = 0; i < BENCH_BASIN_CANDIDATES; i++) {
        bench_matcher_close(&basin->candidates[i]);
        for (size_t k = 0; k < BENCH_MAX_ITEMS; k++)
            bench_tally_free(&basin->tallies[i][k]);
    }
    bench_filtered_free(&basin->filtered);
}
