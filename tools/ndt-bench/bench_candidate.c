#include "bench_candidate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"

static const char *const neighbour_names[] = {"radius", "direct1", "direct7", "direct27"};
enum { NEIGHBOUR_NAMES = sizeof(neighbour_names) / sizeof(neighbour_names[0]) };

/* One value of each list; NULL: the value of the settings. */
struct choice {
    const char *variant, *levels, *neighbours, *backend, *threads;
};

const char *bench_neighbours_text(const struct ndt_align_params *params, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    int is_mixed = 0;
    for (size_t i = 1; i < params->level_count; i++)
        is_mixed |= params->levels[i].neighbours != params->levels[0].neighbours;
    for (size_t i = 0; i < (is_mixed ? params->level_count : 1) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "-" : "",
                                 neighbour_names[params->levels[i].neighbours]);
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
    for (int n = 0; n < NEIGHBOUR_NAMES; n++) {
        if (strcmp(text, neighbour_names[n]) != 0)
            continue;
        for (size_t i = 0; i < setup->align.level_count; i++)
            setup->align.levels[i].neighbours = (enum ndt_neighbours)n;
        return NDT_OK;
    }
    return ndt_fail(err, NDT_ERR_ARGUMENT, "--neighbours %s: expected radius, direct1, direct7 or direct27", text);
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

static enum ndt_status set_threads(struct bench_setup *setup, const char *text, struct ndt_error *err)
{
    char *end;
    const long threads = strtol(text, &end, 10);
    if (end == text || *end || threads < 0 || threads > 256)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--threads %s: expected a whole number from 0 to 256", text);
    setup->config.threads = (int)threads;
    return NDT_OK;
}

/* The variant autoware uses one level of 2 m, radius and seeded covariances unless they are chosen explicitly. */
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
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--variant %s: expected robust or autoware", choice->variant);
        out->align.variant = NDT_ROBUST;
    }
    enum ndt_status status = levels ? set_levels(out, levels, err) : NDT_OK;
    if (status == NDT_OK && neighbours)
        status = set_neighbours(out, neighbours, err);
    if (status == NDT_OK && choice->backend)
        status = set_backend(out, choice->backend, err);
    if (status == NDT_OK && choice->threads)
        status = set_threads(out, choice->threads, err);
    return status;
}

/* ---- opening ---- */

/* NULL if memory is exhausted. */
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

/* One of `all`: a candidate that is not available is not a failure; its row has the reason. */
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
        for (const char *const *name = ops->pipelines; status == NDT_OK && name && *name; name++)
            status = add_tolerant(out, source, base, ops->name, *name, 1, err);
    return status;
}

static size_t items(const struct tool_list *list)
{
    return list->count ? list->count : 1;
}

static const char *item(const struct tool_list *list, size_t i)
{
    return list->count ? list->items[i] : NULL;
}

enum ndt_status bench_candidates_open(struct bench_candidates *out, struct bench_source *source, const char *usual,
                                      size_t max_points, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    const int is_basin = options->is_basin;
    const size_t v = is_basin ? 2 : items(&options->variants), l = items(&options->levels);
    const size_t n = items(&options->neighbours), b = items(&options->backends), t = items(&options->threads);
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < v * l * n * b * t; i++) {
        struct choice choice = {.threads = item(&options->threads, i % t),
                                .backend = item(&options->backends, i / t % b),
                                .neighbours = item(&options->neighbours, i / t / b % n),
                                .levels = item(&options->levels, i / t / b / n % l)};
        const size_t variant = i / t / b / n / l;
        choice.variant = !is_basin ? item(&options->variants, variant) : variant ? "autoware" : NULL;
        if (is_basin && variant)
            choice.levels = choice.neighbours = NULL;
        if (!choice.backend)
            choice.backend = usual;
        const char *backend = choice.backend ? choice.backend : "";
        if (i % t > 0 && (strcmp(backend, "reference") == 0 || strncmp(backend, "cuda", 4) == 0))
            continue; /* threads are of the CPU */
        if (choice.variant && strcmp(choice.variant, "autoware") == 0 && choice.levels &&
            strchr(choice.levels, '-'))
            continue; /* which has one level */
        struct bench_setup setup;
        const int is_all = strcmp(backend, "all") == 0;
        if (is_all)
            choice.backend = NULL;
        status = make_setup(&setup, &options->setup, &choice, err);
        if (setup.config.max_points < max_points)
            setup.config.max_points = max_points;
        if (status == NDT_OK)
            status = is_all ? add_all(out, source, &setup, choice.threads != NULL, err)
                            : bench_candidates_add(out, source, &setup, err);
    }
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

int bench_candidate_columns(const struct bench_candidate *candidate, struct bench_report *report,
                            struct bench_table *table)
{
    const struct ndt_align_params *params = &candidate->setup.align;
    const int works = bench_candidate_works(candidate);
    char text[96];
    bench_row(report, table);
    bench_text(table, "variant", "%s", params->variant == NDT_AUTOWARE ? "autoware" : "robust");
    bench_text(table, "levels", "%s", bench_levels_text(params, text, sizeof(text)));
    bench_text(table, "neighbours", "%s", bench_neighbours_text(params, text, sizeof(text)));
    bench_text(table, "backend", "%s", candidate->name);
    if (!works)
        bench_text(table, "why", "%s: %s", candidate->is_broken ? "FAIL" : "not here", candidate->why.text);
    report->device_rows += works && candidate->is_device;
    report->failures += candidate->is_broken != 0;
    return works;
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
