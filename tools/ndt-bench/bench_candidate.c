#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "bench.h"
#include "ndt/clock.h"
#include "ndt/names.h"

/* A choice of one value of each list; NULL, or -1 threads: as the settings say. */
struct choice {
    const char *variant, *levels, *neighbours, *backend;
    int threads;
};

/* Text of the neighbours: one name if all levels have the same. */
static const char *neighbours_text(const struct ndt_align_params *params, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    int is_mixed = 0;
    for (size_t i = 1; i < params->level_count; i++)
        is_mixed |= params->levels[i].neighbours != params->levels[0].neighbours;
    for (size_t i = 0; i < (is_mixed ? params->level_count : 1) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "-" : "",
                                 ndt_neighbours_name(params->levels[i].neighbours));
    return text;
}

/* ---- settings ---- */

static enum ndt_status set_levels(struct bench_setup *setup, const char *text, struct ndt_error *err)
{
    const struct ndt_align_params base = setup->align;
    size_t count = 0;
    for (const char *at = text; count < NDT_MAX_LEVELS; at++) {
        char *end;
        const double leaf_m = strtod(at, &end);
        if (end == at || !(leaf_m >= 0.1 && leaf_m <= 100) || (*end && *end != '-') ||
            (count && !(leaf_m < setup->align.levels[count - 1].leaf_m)))
            break;
        setup->map.leaf_m[count] = leaf_m;
        setup->align.levels[count++].leaf_m = leaf_m;
        at = end;
        if (!*at) {
            setup->map.level_count = setup->align.level_count = count;
            for (size_t i = 0; i < count; i++) /* counted from the finest level, neighbours stay */
                setup->align.levels[count - 1 - i].neighbours =
                    base.levels[base.level_count - 1 - (i < base.level_count ? i : base.level_count - 1)]
                        .neighbours;
            return NDT_OK;
        }
    }
    return ndt_fail(err, NDT_ERR_ARGUMENT, "--levels %s: up to %d from coarse to fine, 0.1 to 100 m, such as 4-2-1",
                    text, NDT_MAX_LEVELS);
}

static enum ndt_status set_neighbours(struct bench_setup *setup, const char *text, struct ndt_error *err)
{
    for (const struct ndt_label *label = ndt_neighbours_labels; label->name; label++) {
        if (strcmp(text, label->name) != 0)
            continue;
        for (size_t i = 0; i < setup->align.level_count; i++)
            setup->align.levels[i].neighbours = (enum ndt_neighbours)label->value;
        return NDT_OK;
    }
    return ndt_fail(err, NDT_ERR_ARGUMENT, "--neighbours %s: must be radius, direct1, direct7 or direct27", text);
}

/* "cuda" or "cuda:staged" */
static enum ndt_status set_backend(struct bench_setup *setup, const char *text, struct ndt_error *err)
{
    const size_t length = strcspn(text, ":");
    snprintf(setup->backend, sizeof(setup->backend), "%.*s", (int)length, text);
    if (!text[length])
        return NDT_OK;
    if (strncmp(text, "cuda", 4) != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--backend %s: only cuda has pipelines", text);
    snprintf(setup->pipeline, sizeof(setup->pipeline), "%s", text + length + 1);
    return NDT_OK;
}

/* The variant autoware implies one level of 2 m, radius and its own covariances unless the choice names others. */
static enum ndt_status make_setup(struct bench_setup *out, const struct bench_setup *base,
                                  const struct choice *choice, struct ndt_error *err)
{
    const char *levels = choice->levels, *neighbours = choice->neighbours;
    *out = *base;
    if (choice->variant && strcmp(choice->variant, "autoware") == 0) {
        out->align.variant = NDT_AUTOWARE;
        out->map.covariance = NDT_COVARIANCE_AUTOWARE;
        levels = levels ? levels : "2";
        neighbours = neighbours ? neighbours : "radius";
    } else if (choice->variant) {
        if (strcmp(choice->variant, "robust") != 0)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--variant %s: must be robust or autoware", choice->variant);
        out->align.variant = NDT_ROBUST;
    }
    enum ndt_status status = levels ? set_levels(out, levels, err) : NDT_OK;
    if (status == NDT_OK && neighbours)
        status = set_neighbours(out, neighbours, err);
    if (status == NDT_OK && choice->backend)
        status = set_backend(out, choice->backend, err);
    if (choice->threads >= 0)
        out->config.threads = choice->threads;
    return status;
}

/* ---- opening ---- */

/* NULL: no memory. */
static struct bench_candidate *add(struct bench_candidates *out, const struct bench_setup *setup,
                                   struct ndt_error *err)
{
    if (out->count == out->capacity) {
        const size_t capacity = out->capacity ? 2 * out->capacity : 16;
        struct bench_candidate *items = realloc(out->items, capacity * sizeof(*items));
        if (!items) {
            (void)ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu candidates", capacity);
            return NULL;
        }
        out->items = items;
        out->capacity = capacity;
    }
    struct bench_candidate *added = &out->items[out->count++];
    *added = (struct bench_candidate){.setup = *setup};
    return added;
}

static void close_candidate(struct bench_candidate *candidate)
{
    ndt_aligner_destroy(candidate->aligner);
    if (candidate->backend)
        candidate->backend->ops->close(candidate->backend);
    candidate->aligner = NULL;
    candidate->backend = NULL;
}

static enum ndt_status open_backend(struct bench_candidate *candidate, struct ndt_error *err)
{
    struct ndt_backend_config config = candidate->setup.config;
    config.pipeline = candidate->setup.pipeline[0] ? candidate->setup.pipeline : NULL;
    enum ndt_status status = ndt_backend_open(&candidate->backend, candidate->setup.backend, &config, err);
    if (status != NDT_OK)
        return status;
    const struct ndt_backend_ops *ops = candidate->backend->ops;
    snprintf(candidate->name, sizeof(candidate->name), "%s", ops->name);
    if (ops->describe)
        ops->describe(candidate->backend, candidate->about, sizeof(candidate->about));
    if (ops->pipelines)
        snprintf(candidate->name, sizeof(candidate->name), "%s %s", ops->name,
                 config.pipeline ? config.pipeline : ops->pipelines[0]);
    else if (ops->describe)
        snprintf(candidate->name, sizeof(candidate->name), "%.60s", candidate->about);
    candidate->is_device = ops->pipelines != NULL;
    candidate->is_resident = ops->solve_limit && ops->solve_limit(candidate->backend) > 0;
    return NDT_OK;
}

static enum ndt_status open_candidate(struct bench_candidate *candidate, struct bench_source *source,
                                      struct ndt_error *err)
{
    enum ndt_status status = bench_source_map(source, &candidate->setup.map, &candidate->map, err);
    if (status == NDT_OK)
        status = open_backend(candidate, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&candidate->aligner, candidate->backend, err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(candidate->aligner, candidate->map, err);
    if (status != NDT_OK)
        close_candidate(candidate);
    return status;
}

enum ndt_status bench_candidates_add(struct bench_candidates *out, struct bench_source *source,
                                     const struct bench_setup *setup, struct ndt_error *err)
{
    struct bench_candidate *candidate = add(out, setup, err);
    return candidate ? open_candidate(candidate, source, err) : NDT_ERR_MEMORY;
}

/* Adds one candidate of `all`: an unavailable backend is no failure, but is listed with the reason. */
static enum ndt_status add_tolerant(struct bench_candidates *out, struct bench_source *source,
                                    const struct bench_setup *base, const char *backend, const char *pipeline,
                                    int threads, struct ndt_error *err)
{
    struct bench_candidate *candidate = add(out, base, err);
    if (!candidate)
        return NDT_ERR_MEMORY;
    struct bench_setup *setup = &candidate->setup;
    snprintf(setup->backend, sizeof(setup->backend), "%s", backend);
    snprintf(setup->pipeline, sizeof(setup->pipeline), "%s", pipeline ? pipeline : "");
    snprintf(candidate->name, sizeof(candidate->name), "%s %s", backend, pipeline ? pipeline : "");
    setup->config.threads = threads;
    const enum ndt_status status = open_candidate(candidate, source, &candidate->why);
    candidate->is_broken = status != NDT_OK && status != NDT_ERR_UNSUPPORTED;
    return NDT_OK;
}

static enum ndt_status add_all(struct bench_candidates *out, struct bench_source *source,
                               const struct bench_setup *base, int has_threads, struct ndt_error *err)
{
    const struct ndt_backend_ops *ops;
    enum ndt_status status =
        add_tolerant(out, source, base, ndt_cpu_backend.name, NULL, has_threads ? base->config.threads : 1, err);
    if (status == NDT_OK && !has_threads)
        status = add_tolerant(out, source, base, ndt_cpu_backend.name, NULL, 0, err);
    for (size_t i = 0; status == NDT_OK && (ops = ndt_backend_at(i)); i++)
        for (const char *const *name = ops->pipelines; status == NDT_OK && name && *name; name++) {
            status = add_tolerant(out, source, base, ops->name, *name, 1, err);
            struct bench_candidate *last = status == NDT_OK ? &out->items[out->count - 1] : NULL;
            if (last && name == ops->pipelines && !last->aligner &&
                !last->is_broken) { /* no device: one row says so */
                snprintf(last->name, sizeof(last->name), "%s", ops->name);
                break;
            }
        }
    return status;
}

/* Steps through a list of the command line: item `*index % count`, and *index divided by count. NULL: empty. */
static const char *pick(const struct tool_list *list, size_t *index)
{
    const size_t count = list->count ? list->count : 1, i = *index % count;
    *index /= count;
    return list->count ? list->items[i] : NULL;
}

/* Combination `index` of the lists; 0 when there are no more. */
static int choose(const struct bench_options *options, size_t index, struct choice *out)
{
    const size_t threads = options->threads.count ? options->threads.count : 1, thread = index % threads;
    *out = (struct choice){.threads = options->threads.count ? (int)options->threads.values[thread] : -1};
    index /= threads;
    out->backend = pick(&options->backends, &index);
    out->neighbours = pick(&options->neighbours, &index);
    out->levels = pick(&options->levels, &index);
    if (!options->is_basin)
        out->variant = pick(&options->variants, &index);
    else if (index == 1) /* after the settings, autoware with its own level and neighbours */
        *out = (struct choice){"autoware", NULL, NULL, out->backend, out->threads};
    return index <= (options->is_basin ? 1 : 0);
}

/* Combinations without meaning: threads of a device, several levels of autoware. */
static int is_pointless(const struct bench_options *options, size_t index, const struct choice *choice)
{
    const int is_later = options->threads.count > 0 && index % options->threads.count > 0;
    const char *backend = choice->backend ? choice->backend : "";
    return (is_later && (strcmp(backend, "reference") == 0 || strncmp(backend, "cuda", 4) == 0)) ||
           (choice->variant && strcmp(choice->variant, "autoware") == 0 && choice->levels &&
            strchr(choice->levels, '-'));
}

enum ndt_status bench_candidates_open(struct bench_source *source, size_t max_points, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    struct bench_candidates *out = &source->candidates;
    struct choice choice;
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && choose(options, i, &choice); i++) {
        struct bench_setup setup;
        const int is_all = choice.backend && strcmp(choice.backend, "all") == 0;
        if (is_pointless(options, i, &choice))
            continue;
        if (is_all)
            choice.backend = NULL;
        status = make_setup(&setup, &options->setup, &choice, err);
        if (setup.config.max_points < max_points)
            setup.config.max_points = max_points;
        if (status == NDT_OK)
            status = is_all ? add_all(out, source, &setup, choice.threads >= 0, err)
                            : bench_candidates_add(out, source, &setup, err);
    }
    return status;
}

/* The largest batch has to fit into one launch: each item takes whole blocks of points. */
enum ndt_status bench_source_prepare(struct bench_source *source, struct bench_report *report,
                                     struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    const size_t sizes = options->points.count ? options->points.count : 1;
    size_t most_points = 1, most_items = 0;
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < sizes; i++) {
        status = bench_source_scans(source, &options->preprocess,
                                    options->points.count ? options->points.values[i] : 0, err);
        if (source->scans[i].points > most_points)
            most_points = source->scans[i].points;
    }
    for (size_t i = 0; i < options->sizes.count; i++)
        most_items = most_items < options->sizes.values[i] ? options->sizes.values[i] : most_items;
    if (status == NDT_OK)
        status = bench_candidates_open(
            source, most_items ? most_items * ((most_points + 127) / 128 * 128) : most_points, err);
    if (status == NDT_OK)
        bench_source_report(source, report);
    return status;
}

void bench_candidates_close(struct bench_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++)
        close_candidate(&candidates->items[i]);
    free(candidates->items);
    *candidates = (struct bench_candidates){0};
}

/* ---- using ---- */

int bench_candidate_works(const struct bench_candidate *candidate)
{
    return candidate->aligner && !candidate->is_broken;
}

void bench_candidate_fail(struct bench_candidate *candidate, enum ndt_status status)
{
    candidate->is_broken |= status != NDT_OK;
}

int bench_candidate_row(const struct bench_candidate *candidate, struct bench_report *report,
                        struct bench_table *table)
{
    const struct ndt_align_params *params = &candidate->setup.align;
    const int works = bench_candidate_works(candidate);
    char text[96];
    bench_row(report, table);
    bench_text(table, "variant", "%s", ndt_variant_name(params->variant));
    bench_text(table, "levels", "%s", bench_align_levels_text(params, text, sizeof(text)));
    bench_text(table, "neighbours", "%s", neighbours_text(params, text, sizeof(text)));
    bench_text(table, "backend", "%s", candidate->name);
    if (!works)
        bench_text(table, "why", "%s: %s", candidate->is_broken ? "FAIL" : "not here", candidate->why.text);
    report->device_rows += works && candidate->is_device;
    report->failures += candidate->is_broken != 0;
    return works;
}

double bench_candidate_kernel_us(const struct bench_candidate *candidate, const struct ndt_backend_counters *before,
                                 const struct ndt_backend_counters *after)
{
    const int is_measured = !candidate->is_device || candidate->setup.config.kernel_times;
    return is_measured ? after->kernel_us - before->kernel_us : NAN;
}

int bench_candidate_align(struct bench_candidate *candidate, const struct ndt_align_params *params,
                          const struct ndt_cloud *scan, const struct ndt_pose *guess, struct ndt_align_result *out,
                          double *took_us, double *kernel_us)
{
    struct ndt_backend_counters before, after;
    bench_candidate_counters(candidate, &before);
    const double start_us = ndt_clock_us();
    bench_candidate_fail(candidate, ndt_align(candidate->aligner, params, scan, guess, out, &candidate->why));
    *took_us = ndt_clock_us() - start_us;
    bench_candidate_counters(candidate, &after);
    *kernel_us = bench_candidate_kernel_us(candidate, &before, &after);
    return bench_candidate_works(candidate);
}

void bench_candidate_counters(const struct bench_candidate *candidate, struct ndt_backend_counters *out)
{
    *out = (struct ndt_backend_counters){0};
    if (candidate->backend->ops->counters)
        candidate->backend->ops->counters(candidate->backend, out);
}

struct ndt_eval_request bench_candidate_request(const struct bench_candidate *candidate,
                                                const struct ndt_pose *T_map_sensor)
{
    const struct ndt_align_params *params = &candidate->setup.align;
    const struct ndt_align_level *level = &params->levels[params->level_count - 1];
    struct ndt_eval_request request = {.level = ndt_map_find_level(candidate->map, level->leaf_m),
                                       .neighbours = level->neighbours};
    ndt_pose_to_euler(T_map_sensor, request.p);
    for (int i = 0; i < 3; i++)
        request.p[i] -= candidate->map->origin_m[i];
    return request;
}
