/* ndt-bench: times and success of matching over seeded wrong starts, next to its peers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench_report.h"

/* Exit codes, as of every program of the house. */
enum { DONE = 0, USAGE = 2, FAILED = 3 };

static enum ndt_status report(struct bench_report *out, struct ndt_error *err)
{
    bench_machine_read(&out->machine);
    bench_report_print(out);
    if (fflush(stdout) != 0 || ferror(stdout))
        return ndt_fail(err, NDT_ERR_IO, "standard output: %s", strerror(errno));
    return out->options->json ? bench_report_json(out, out->options->json, err) : NDT_OK;
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

static enum ndt_status run(const struct bench_options *options, struct ndt_error *err)
{
    struct bench_input input = {0};
    struct bench_maps maps;
    struct bench_report out = {.options = options, .input = &input, .maps = &maps};
    enum ndt_status status = bench_maps_open(&maps, options->settings.map_path, err);
    if (status == NDT_OK)
        status = options->bag
                     ? bench_input_from_bag(&input, options->bag, options->scan_limit, err)
                     : bench_input_from_files(&input, options->scans, options->scan_files, &options->pose, err);
    if (status == NDT_OK)
        status = options->basin ? run_basin(&out, err) : run_grid(&out, err);
    bench_input_free(&input);
    bench_maps_close(&maps);
    return status;
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
