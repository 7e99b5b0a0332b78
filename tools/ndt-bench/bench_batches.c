#include "bench_batches.h"

#include <stdlib.h>
#include <string.h>

#include "bench_tally.h"
#include "ndtd/options.h"

static const double DEG = 3.14159265358979323846 / 180.0;

static const char *item(const struct bench_list *list, size_t i)
{
    return i < list->count ? list->items[i] : NULL;
}

static void name_candidate(struct bench_batch_candidate *candidate, const struct bench_matcher *matcher)
{
    const struct ndt_backend_ops *ops = matcher->backend->ops;
    const char *pipeline = matcher->settings.compute.pipeline;
    if (ops->pipelines)
        snprintf(candidate->name, sizeof(candidate->name), "%s %s", ops->name,
                 pipeline ? pipeline : ops->pipelines[0]);
    else if (ops->describe)
        ops->describe(matcher->backend, candidate->name, sizeof(candidate->name));
    else
        snprintf(candidate->name, sizeof(candidate->name), "%s", ops->name);
}

static enum ndt_status open_candidate(struct bench_batches *batches, const struct bench_options *options,
                                      const char *backend, const char *threads, struct bench_maps *maps,
                                      struct ndt_error *err)
{
    const struct bench_choice choice = {.variant = item(&options->variants, 0),
                                        .levels = item(&options->levels, 0),
                                        .neighbours = item(&options->neighbours, 0),
                                        .backend = backend,
                                        .threads = threads};
    struct bench_matcher *matcher = &batches->matchers[batches->candidate_count];
    struct bench_batch_candidate *candidate = &batches->candidates[batches->candidate_count];
    struct ndtd_settings settings;
    enum ndt_status status = bench_matcher_settings(&settings, &options->settings, &choice, err);
    if (status == NDT_OK)
        status = bench_matcher_open(matcher, &settings, maps, err);
    if (status != NDT_OK)
        return status;
    batches->candidate_count++;
    candidate->backend = matcher->backend;
    candidate->aligner = matcher->aligner;
    candidate->params = &matcher->settings.align;
    name_candidate(candidate, matcher);
    return NDT_OK;
}

/* Every backend; those of the CPU with every number of threads. */
static enum ndt_status open_candidates(struct bench_batches *batches, const struct bench_options *options,
                                       struct bench_maps *maps, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    const size_t b = options->backends.count ? options->backends.count : 1;
    for (size_t i = 0; status == NDT_OK && i < b; i++) {
        const char *backend = item(&options->backends, i);
        const int has_threads = !backend || strcmp(backend, "cpu") == 0 || strcmp(backend, "auto") == 0;
        const size_t t = has_threads && options->threads.count ? options->threads.count : 1;
        for (size_t k = 0; status == NDT_OK && k < t; k++)
            status = open_candidate(batches, options, backend, item(&options->threads, k), maps, err);
    }
    return status;
}

static enum ndt_status filter(struct bench_batches *batches, const struct bench_options *options,
                              const struct bench_input *input, struct ndt_error *err)
{
    const size_t sizes = options->points.count ? options->points.count : 1;
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < sizes; i++) {
        struct ndtd_settings settings = options->settings;
        if (item(&options->points, i))
            status = ndtd_option_set_text(&settings, "preprocess.sample_count", item(&options->points, i), err);
        if (status == NDT_OK)
            status = bench_filter(&batches->filtered[i], input, &settings.preprocess,
                                  settings.preprocess.sample_count, err);
        batches->filtered_count += status == NDT_OK;
    }
    return status;
}

static enum ndt_status measure(struct bench_batches *batches, const struct bench_options *options,
                               struct bench_filtered *filtered, struct ndt_error *err)
{
    struct bench_batch_scan *scans = calloc(filtered->count, sizeof(*scans));
    if (!scans)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu scans", filtered->count);
    for (size_t i = 0; i < filtered->count; i++)
        scans[i] = (struct bench_batch_scan){&filtered->scans[i].cloud, filtered->scans[i].T_map_sensor};
    const struct bench_batch_request request = {
        .candidates = batches->candidates,
        .candidate_count = batches->candidate_count,
        .scans = scans,
        .scan_count = filtered->count,
        .points = (size_t)ndtd_samples_quantile(&filtered->used, 0.5),
        .sizes = options->batch_sizes,
        .size_count = options->batch_size_count,
        .rounds = (int)options->starts,
        .seed = options->seed,
        .shift_m = options->offsets[0].shift_m,
        .turn_rad = options->offsets[0].turn_deg * DEG,
        .success_m = BENCH_SUCCESS_M,
        .success_rad = BENCH_SUCCESS_DEG * DEG,
    };
    enum ndt_status status = bench_batch_run(&batches->result, &request, err);
    free(scans);
    return status;
}

enum ndt_status bench_batches_run(struct bench_batches *batches, const struct bench_options *options,
                                  const struct bench_input *input, struct bench_maps *maps, struct ndt_error *err)
{
    enum ndt_status status = filter(batches, options, input, err);
    if (status == NDT_OK)
        status = open_candidates(batches, options, maps, err);
    for (size_t i = 0; status == NDT_OK && i < batches->filtered_count; i++)
        status = measure(batches, options, &batches->filtered[i], err);
    return status;
}

void bench_batches_free(struct bench_batches *batches)
{
    for (size_t i = 0; i < batches->candidate_count; i++)
        bench_matcher_close(&batches->matchers[i]);
    for (size_t i = 0; i < batches->filtered_count; i++)
        bench_filtered_free(&batches->filtered[i]);
}
