/* ndt-bench: times and success of matching over seeded wrong starts, next to its peers. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_map_cost.h"
#include "bench_report.h"
#include "bench_tiles.h"
#include "ndtd/options.h"

/* Exit codes, as of every program of the house. */
enum { DONE = 0, USAGE = 2, FAILED = 3 };
enum { OVERHEAD_ROUNDS = 101 };

static enum ndt_status flush_table(struct ndt_error *err)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return ndt_fail(err, NDT_ERR_IO, "standard output: %s", strerror(errno));
    return NDT_OK;
}

static enum ndt_status report(struct bench_report *out, struct ndt_error *err)
{
    bench_machine_read(&out->machine);
    bench_report_print(out);
    enum ndt_status status = flush_table(err);
    return status == NDT_OK && out->options->json ? bench_report_json(out, out->options->json, err) : status;
}

static enum ndt_status run_grid(struct bench_report *out, struct ndt_error *err)
{
    static struct bench_grid grid;
    out->grid = &grid;
    enum ndt_status status = bench_grid_run(&grid, out->options, out->input, out->maps, err);
    if (status == NDT_OK)
        status = report(out, err);
    bench_grid_free(&grid);
    return status;
}

static enum ndt_status run_basin(struct bench_report *out, struct ndt_error *err)
{
    static struct bench_basin basin;
    out->basin = &basin;
    enum ndt_status status = bench_basin_run(&basin, out->options, out->input, out->maps, err);
    if (status == NDT_OK)
        status = report(out, err);
    bench_basin_free(&basin);
    return status;
}

static enum ndt_status overhead_sizes(struct bench_overheads_request *request, const struct bench_list *points,
                                      struct ndt_error *err)
{
    static const size_t usual[] = {756, 1500, 5000, 20000, 100000};
    struct ndtd_settings settings;
    ndtd_settings_default(&settings);
    for (size_t i = 0; i < points->count; i++) {
        enum ndt_status status = ndtd_option_set_text(&settings, "preprocess.sample_count", points->items[i], err);
        if (status != NDT_OK)
            return status;
        if (settings.preprocess.sample_count == 0)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--points 0: --overheads wants a number of points");
        request->sizes[request->size_count++] = settings.preprocess.sample_count;
    }
    for (size_t i = 0; points->count == 0 && i < sizeof(usual) / sizeof(usual[0]); i++)
        request->sizes[request->size_count++] = usual[i];
    return NDT_OK;
}

/* The finest level at the truth of the first scan, all of whose points are there to be picked. */
static enum ndt_status measure_overheads(const struct bench_report *out, const struct ndtd_settings *settings,
                                         struct ndt_error *err)
{
    struct bench_input first = {.scans = out->input->scans, .count = 1};
    struct ndt_preprocess_params params = settings->preprocess;
    const struct ndt_align_level *level = &settings->align.levels[settings->align.level_count - 1];
    struct bench_overheads_request request = {.config = settings->compute,
                                              .rounds = OVERHEAD_ROUNDS,
                                              .seed = out->options->seed,
                                              .where.neighbours = level->neighbours};
    struct bench_filtered all;
    params.voxel_m = 0;
    enum ndt_status status = overhead_sizes(&request, &out->options->points, err);
    if (status == NDT_OK)
        status = bench_maps_get(out->maps, &settings->map, &request.map, err);
    if (status == NDT_OK)
        status = bench_filter(&all, &first, &params, 0, err);
    if (status != NDT_OK)
        return status;
    request.points = &all.scans[0].cloud;
    request.where.level = ndt_map_find_level(request.map, level->leaf_m);
    ndt_pose_to_euler(&all.scans[0].T_map_sensor, request.where.p);
    for (int i = 0; i < 3; i++)
        request.where.p[i] -= request.map->origin_m[i];
    status = bench_overheads_run(out->overheads, &request, err);
    bench_filtered_free(&all);
    return status;
}

static enum ndt_status run_overheads(struct bench_report *out, struct ndt_error *err)
{
    static struct bench_overheads overheads;
    static struct ndtd_settings settings;
    const struct bench_options *options = out->options;
    const struct bench_choice choice = {.levels = options->levels.count ? options->levels.items[0] : NULL,
                                        .neighbours =
                                            options->neighbours.count ? options->neighbours.items[0] : NULL,
                                        .threads = options->threads.count ? options->threads.items[0] : NULL};
    out->overheads = &overheads;
    enum ndt_status status = bench_matcher_settings(&settings, &options->settings, &choice, err);
    if (status == NDT_OK)
        status = measure_overheads(out, &settings, err);
    return status == NDT_OK ? report(out, err) : status;
}

static enum ndt_status run_batches(struct bench_report *out, struct ndt_error *err)
{
    static struct bench_batches batches;
    out->batches = &batches;
    enum ndt_status status = bench_batches_run(&batches, out->options, out->input, out->maps, err);
    if (status == NDT_OK)
        status = report(out, err);
    bench_batches_free(&batches);
    return status;
}

static enum ndt_status run_preprocess(struct bench_report *out, struct ndt_error *err)
{
    static struct bench_preprocess plan;
    out->preprocess = &plan;
    enum ndt_status status = bench_preprocess_run(&plan, out->options, out->input, err);
    if (status == NDT_OK)
        status = report(out, err);
    bench_preprocess_free(&plan);
    return status;
}

static enum ndt_status read_input(struct bench_input *input, const struct bench_options *options,
                                  struct ndt_error *err)
{
    if (options->bag)
        return bench_input_from_bag(input, options->bag, options->scan_limit, err);
    if (options->scan_files > 0)
        return bench_input_from_files(input, options->scans, options->scan_files, &options->pose, err);
    return NDT_OK; /* --front makes its own */
}

static enum ndt_status run_map_cost(const struct bench_options *options, struct ndt_error *err)
{
    static struct bench_map_cost cost;
    struct bench_maps maps;
    enum ndt_status status = bench_maps_open(&maps, options->settings.map_path, err);
    if (status == NDT_OK)
        status = bench_map_cost_run(&cost, options, &maps.points, err);
    if (status == NDT_OK) {
        bench_map_cost_print(&cost, stdout);
        status = flush_table(err);
    }
    if (status == NDT_OK && options->json)
        status = bench_map_cost_json(&cost, options->json, err);
    bench_map_cost_free(&cost);
    bench_maps_close(&maps);
    return status;
}

static enum ndt_status read_number(const char *flag, const char *text, double most, double *out,
                                   struct ndt_error *err)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out > 0 && *out <= most))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s %.60s: numbers above 0, up to %g, are wanted", flag, text, most);
    return NDT_OK;
}

/* Numbers of tiles are squares: the maps are. */
static enum ndt_status request_tiles(struct bench_tiles_request *request, const struct bench_options *options,
                                     struct ndt_error *err)
{
    const struct ndtd_settings *settings = &options->settings;
    enum ndt_status status = NDT_OK;
    double number;
    for (size_t i = 0; status == NDT_OK && i < options->tiles.count; i++) {
        status = read_number("--tiles", options->tiles.items[i], 1e5, &number, err);
        const size_t side = status == NDT_OK ? (size_t)lround(sqrt(number)) : 0;
        if (status == NDT_OK && (double)(side * side) != number)
            status = ndt_fail(err, NDT_ERR_ARGUMENT, "--tiles %g: the map is a square, such as of %zu tiles",
                              number, side * side);
        request->sides[request->side_count++] = side;
    }
    for (size_t i = 0; status == NDT_OK && i < options->radii.count; i++)
        status =
            read_number("--radius", options->radii.items[i], 1e5, &request->radii_m[request->radius_count++], err);
    if (options->radii.count == 0)
        request->radii_m[request->radius_count++] = settings->map_radius_m + settings->lidar_radius_m;
    return status;
}

static enum ndt_status run_tiles(const struct bench_options *options, struct ndt_error *err)
{
    static struct bench_tiles tiles;
    struct bench_tiles_request request = {.settings = &options->settings,
                                          .tile_m = (double)options->tile_m,
                                          .tile_points = (size_t)options->tile_points};
    enum ndt_status status = request_tiles(&request, options, err);
    if (status == NDT_OK)
        status = bench_tiles_run(&tiles, &request, err);
    if (status != NDT_OK)
        return status;
    bench_tiles_print(&tiles, stdout);
    status = flush_table(err);
    return status == NDT_OK && options->json ? bench_tiles_json(&tiles, options->json, err) : status;
}

static enum ndt_status run_matching(const struct bench_options *options, struct ndt_error *err)
{
    struct bench_input input = {0};
    struct bench_maps maps;
    struct bench_report out = {.options = options, .input = &input, .maps = &maps};
    enum ndt_status status = bench_maps_open(&maps, options->settings.map_path, err);
    if (status == NDT_OK)
        status = read_input(&input, options, err);
    if (status == NDT_OK)
        status = options->preprocess         ? run_preprocess(&out, err)
                 : options->overheads        ? run_overheads(&out, err)
                 : options->batch_size_count ? run_batches(&out, err)
                 : options->basin            ? run_basin(&out, err)
                                             : run_grid(&out, err);
    bench_input_free(&input);
    bench_maps_close(&maps);
    return status;
}

static enum ndt_status run(const struct bench_options *options, struct ndt_error *err)
{
    return options->tiles.count ? run_tiles(options, err)
           : options->map_cost  ? run_map_cost(options, err)
                                : run_matching(options, err);
}

int main(int argc, char **argv)
{
    static struct bench_options options;
    struct ndt_error err = {""};
    int help;
    enum ndt_status status = bench_options_parse(&options, argc, argv, &help, &err);
    if (status == NDT_OK && help) {
        bench_options_help(stdout);
        return fflush(stdout) == 0 ? DONE : FAILED;
    }
    if (status == NDT_OK)
        status = run(&options, &err);
    if (status == NDT_OK)
        return DONE;
    fprintf(stderr, "ndt-bench: %s\n", err.text);
    return status == NDT_ERR_ARGUMENT ? USAGE : FAILED;
}
