/** @file
 * @brief dense: whole searches over a field of many tiles, on the CPU and on devices.
 *
 * The tiles are those of the synthetic street, side by side: a field as large as wanted, with as much known ground
 * as a street has. The map is the street alone, so that few candidates are aligned. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "bench.h"
#include "ndt_search/search.h"

enum { MOST_SCORERS = 16, MAP_POINTS = 400000, SCAN_POINTS = 20000, SCAN = 50 };

/* The scorer: the CPU with so many threads, or an engine. */
struct scorer {
    char name[64];
    int threads;
    const struct ndt_dense_ops *engine;
    struct ndt_search *search; /* NULL: not available */
    struct ndt_error why;
    struct bench_samples dense_ms, total_ms;
    struct ndt_search_result result;
    int is_different; /* its result differs from the first */
};
struct run {
    const struct bench_options *options;
    struct ndt_map *map;
    struct ndt_field *street, *field;
    struct ndt_cloud scan;
    struct ndt_search_params params;
    size_t count;
    struct scorer scorers[MOST_SCORERS];
};

/* ---- the field ---- */

static size_t known_cells(const struct ndt_field *field)
{
    size_t known = 0;
    for (uint32_t i = 0; i < field->tile_count; i++)
        for (size_t k = 0; k < sizeof(field->tiles[i].known); k++)
            known += (size_t)__builtin_popcount(field->tiles[i].known[k]);
    return known;
}

/* side x side tiles of the street, by turns. */
static enum ndt_status repeat(struct run *run, int32_t side, struct ndt_error *err)
{
    const struct ndt_field *street = run->street;
    const size_t count = (size_t)side * (size_t)side;
    struct ndt_field *field = calloc(1, sizeof(*field));
    struct ndt_field_tile *tiles = malloc(count * sizeof(*tiles));
    if (!field || !tiles) {
        free(field);
        free(tiles);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a field of %zu tiles", count);
    }
    for (size_t i = 0; i < count; i++) {
        tiles[i] = street->tiles[i % street->tile_count];
        tiles[i].layer = 0;
        tiles[i].y = (int32_t)i / side - side / 2;
        tiles[i].x = (int32_t)i % side - side / 2;
    }
    *field = *street;
    field->references = 1;
    field->tile_count = (uint32_t)count;
    field->layer_count = 1;
    field->tiles = tiles;
    ndt_field_release(run->field);
    run->field = field;
    return NDT_OK;
}

static enum ndt_status make_street(struct run *run, struct ndt_error *err)
{
    struct ndt_map_config config = run->options->setup.map;
    struct ndt_cloud points;
    struct ndt_pose T_map_sensor;
    ndt_cloud_init(&points);
    config.level_count = 2;
    config.leaf_m[0] = 2;
    config.leaf_m[1] = 1;
    enum ndt_status status = bench_street_map(&points, MAP_POINTS, err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(&run->map, &config, &points, err);
    if (status == NDT_OK)
        status = ndt_field_build(&run->street, run->map, err);
    if (status == NDT_OK && run->street->tile_count == 0)
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "the street has no field");
    if (status == NDT_OK)
        status = bench_street_scan(&run->scan, &T_map_sensor, SCAN, SCAN_POINTS, err);
    ndt_cloud_free(&points);
    return status;
}

/* ---- what scores ---- */

static int is_wanted(const struct bench_options *options, const char *backend)
{
    for (size_t i = 0; i < options->backends.count; i++) {
        const char *item = options->backends.items[i];
        const size_t length = strcspn(item, ":");
        if (strcmp(item, "all") == 0 || (strlen(backend) == length && strncmp(item, backend, length) == 0))
            return 1;
    }
    return 0;
}

static void add_scorer(struct run *run, int threads, const struct ndt_dense_ops *engine)
{
    struct scorer *scorer = &run->scorers[run->count];
    const struct ndt_search_config config = {.threads = threads,
                                             .isa = run->options->setup.config.isa,
                                             .engine = engine,
                                             .device = run->options->setup.config.device};
    if (run->count == MOST_SCORERS)
        return;
    run->count++;
    scorer->engine = engine;
    snprintf(scorer->name, sizeof(scorer->name), "%s", engine ? engine->name : "cpu");
    if (ndt_search_create(&scorer->search, &config, &scorer->why) == NDT_OK &&
        !ndt_search_engine_failure(scorer->search)) {
        ndt_search_describe(scorer->search, scorer->name, sizeof(scorer->name));
        return;
    }
    if (scorer->search)
        snprintf(scorer->why.text, sizeof(scorer->why.text), "%s", ndt_search_engine_failure(scorer->search));
    ndt_search_destroy(scorer->search);
    scorer->search = NULL;
}

/* The CPU comes first: the others are compared with it. */
static void open_scorers(struct run *run)
{
    const struct bench_options *options = run->options;
    const struct ndt_backend_ops *ops;
    const size_t threads = options->threads.count ? options->threads.count : 2;
    for (size_t i = 0; is_wanted(options, ndt_cpu_backend.name) && i < threads; i++)
        add_scorer(run, options->threads.count ? (int)options->threads.values[i] : 1 - (int)i, NULL);
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        if (ndt_backend_search_engine(ops->name) && is_wanted(options, ops->name))
            add_scorer(run, 0, ndt_backend_search_engine(ops->name));
}

/* ---- measuring ---- */

static int is_same(const struct ndt_search_result *a, const struct ndt_search_result *b)
{
    int is_same = a->count == b->count && a->poses == b->poses;
    for (uint32_t i = 0; is_same && i < a->count; i++)
        is_same =
            memcmp(&a->candidates[i].T_map_sensor, &b->candidates[i].T_map_sensor, sizeof(struct ndt_pose)) == 0 &&
            a->candidates[i].gaussian_fit == b->candidates[i].gaussian_fit &&
            a->candidates[i].bits == b->candidates[i].bits;
    return is_same;
}

static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct run *run = context;
    struct scorer *scorer = &run->scorers[item];
    (void)round;
    if (!scorer->search)
        return NDT_OK;
    const enum ndt_status status =
        ndt_search_run(scorer->search, &run->params, &run->scan, NULL, NULL, NULL, &scorer->result, err);
    if (status != NDT_OK || !is_counted)
        return status;
    bench_samples_add(&scorer->dense_ms, scorer->result.times_us.dense_us * 1e-3);
    bench_samples_add(&scorer->total_ms, scorer->result.times_us.total_us * 1e-3);
    return NDT_OK;
}

static void put_row(struct run *run, struct scorer *scorer, struct bench_report *report, struct bench_table *table)
{
    const char *failure = scorer->search ? ndt_search_engine_failure(scorer->search) : scorer->why.text;
    bench_row(report, table);
    bench_text(table, "scored_by", "%s", scorer->name);
    bench_text(table, "tier", "%s", run->params.tier == NDT_SEARCH_QUICK ? "quick" : "thorough");
    bench_number(table, "km2", 3, run->field->tile_count * (double)(NDT_FIELD_TILE_M * NDT_FIELD_TILE_M) * 1e-6);
    bench_number(table, "known_km2", 3, (double)known_cells(run->field) * 1e-6);
    if (!failure) {
        const double dense_ms = bench_median(&scorer->dense_ms);
        const int is_different = !is_same(&run->scorers[0].result, &scorer->result);
        bench_number(table, "dense_ms", 2, dense_ms);
        bench_number(table, "p95_ms", 2, bench_quantile(&scorer->dense_ms, 0.95));
        bench_number(table, "poses_per_us", 1, (double)scorer->result.poses / dense_ms * 1e-3);
        bench_number(table, "total_ms", 2, bench_median(&scorer->total_ms));
        bench_bool(table, "same_bits", !is_different);
        report->failures += is_different != 0;
        report->device_rows += scorer->engine != NULL;
    } else {
        bench_text(table, "why", "%s: %s", scorer->search ? "FAIL" : "not here", failure);
        report->failures += scorer->search != NULL;
    }
    bench_samples_free(&scorer->dense_ms, 1);
    bench_samples_free(&scorer->total_ms, 1);
}

static enum ndt_status measure(struct run *run, int32_t side, struct bench_report *report,
                               struct bench_table *table, struct ndt_error *err)
{
    static const enum ndt_search_tier tiers[] = {NDT_SEARCH_QUICK, NDT_SEARCH_THOROUGH};
    enum ndt_status status = repeat(run, side, err);
    for (size_t i = 0; status == NDT_OK && i < run->count; i++)
        if (run->scorers[i].search)
            status = ndt_search_set_map(run->scorers[i].search, run->map, run->field, err);
    for (size_t t = 0; status == NDT_OK && t < sizeof(tiers) / sizeof(tiers[0]); t++) {
        run->params.tier = tiers[t];
        status = bench_sample(run->count, 1, run->options->rounds, sample, run, err);
        for (size_t i = 0; i < run->count; i++)
            put_row(run, &run->scorers[i], report, table);
    }
    return status;
}

enum ndt_status bench_dense(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    static struct run run;
    const struct bench_numbers *tiles = &source->options->tiles;
    run.options = source->options;
    ndt_cloud_init(&run.scan);
    ndt_search_params_default(&run.params);
    bench_source_report(source, report);
    struct bench_table *table = bench_report_table(
        report, "dense",
        "Dense score: every heading at every place of a synthetic field, within whole searches; medians");
    enum ndt_status status = make_street(&run, err);
    if (status == NDT_OK)
        open_scorers(&run);
    for (size_t i = 0; status == NDT_OK && i < tiles->count; i++)
        status = measure(&run, (int32_t)(sqrt((double)tiles->values[i]) + 0.5), report, table, err);
    for (size_t i = 0; i < run.count; i++)
        ndt_search_destroy(run.scorers[i].search);
    ndt_field_release(run.field);
    ndt_field_release(run.street);
    ndt_map_release(run.map);
    ndt_cloud_free(&run.scan);
    return status;
}
