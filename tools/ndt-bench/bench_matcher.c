#include "bench_matcher.h"

#include <stdio.h>
#include <string.h>

#include "backends.h"
#include "ndt/names.h"
#include "ndtd/options.h"
#include "ndt/clock.h"

/* "4-2-1" as the option table wants it. */
static enum ndt_status set_levels(struct ndtd_settings *out, const char *levels, struct ndt_error *err)
{
    char text[80];
    snprintf(text, sizeof(text), "[%s]", levels);
    for (char *at = text; *at; at++)
        *at = *at == '-' ? ',' : *at;
    return ndtd_option_set_text(out, "ndt.levels", text, err);
}

static enum ndt_status set_word(struct ndtd_settings *out, const char *option, const char *word,
                                struct ndt_error *err)
{
    return word ? ndtd_option_set_text(out, option, word, err) : NDT_OK;
}

/* "cuda" or "cuda:staged" */
static enum ndt_status set_backend(struct ndtd_settings *out, const char *backend, struct ndt_error *err)
{
    char name[64];
    const char *colon = backend ? strchr(backend, ':') : NULL;
    if (!colon)
        return set_word(out, "backend.name", backend, err);
    snprintf(name, sizeof(name), "%.*s", (int)(colon - backend), backend);
    if (strncmp(name, "cuda", 4) != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--backend %s: only cuda has pipelines", backend);
    enum ndt_status status = set_word(out, "backend.name", name, err);
    return status == NDT_OK ? set_word(out, "cuda.pipeline", colon + 1, err) : status;
}

enum ndt_status bench_matcher_settings(struct ndtd_settings *out, const struct ndtd_settings *base,
                                       const struct bench_choice *choice, struct ndt_error *err)
{
    *out = *base;
    enum ndt_status status = set_word(out, "ndt.variant", choice->variant, err);
    const char *levels = choice->levels, *neighbours = choice->neighbours;
    if (choice->variant && status == NDT_OK && out->align.variant == NDT_AUTOWARE) {
        status = ndtd_option_set_text(out, "ndt.covariance", "autoware", err);
        levels = levels ? levels : "2";
        neighbours = neighbours ? neighbours : "radius";
    }
    if (status == NDT_OK && levels)
        status = set_levels(out, levels, err);
    if (status == NDT_OK)
        status = set_word(out, "ndt.neighbours", neighbours, err);
    if (status == NDT_OK)
        status = set_backend(out, choice->backend, err);
    if (status == NDT_OK)
        status = set_word(out, "cpu.threads", choice->threads, err);
    return status == NDT_OK ? ndtd_settings_finish(out, err) : status;
}

enum ndt_status bench_matcher_open(struct bench_matcher *matcher, const struct ndtd_settings *settings,
                                   struct bench_maps *maps, struct ndt_error *err)
{
    *matcher = (struct bench_matcher){.settings = *settings};
    enum ndt_status status = bench_maps_get(maps, &settings->map, &matcher->map, err);
    if (status == NDT_OK)
        status = ndt_backend_open(&matcher->backend, settings->backend, &settings->compute, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&matcher->aligner, matcher->backend, err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(matcher->aligner, matcher->map, err);
    if (status != NDT_OK)
        bench_matcher_close(matcher);
    return status;
}

void bench_matcher_close(struct bench_matcher *matcher)
{
    ndt_aligner_destroy(matcher->aligner);
    if (matcher->backend)
        matcher->backend->ops->close(matcher->backend);
    matcher->aligner = NULL;
    matcher->backend = NULL;
}

enum ndt_status bench_matcher_align(struct bench_matcher *matcher, const struct ndt_cloud *points,
                                    const struct ndt_pose *guess, struct ndt_align_result *result, double *took_us,
                                    struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndt_align(matcher->aligner, &matcher->settings.align, points, guess, result, err);
    *took_us = ndt_clock_us() - start_us;
    return status;
}

enum ndt_status bench_matcher_eval(struct bench_matcher *matcher, const struct ndt_cloud *points,
                                   const struct ndt_pose *pose, double *took_us, double *pairs,
                                   struct ndt_error *err)
{
    const struct ndt_backend_ops *ops = matcher->backend->ops;
    const struct ndt_align_level *level = &matcher->settings.align.levels[matcher->settings.align.level_count - 1];
    struct ndt_eval_request request = {.level = ndt_map_find_level(matcher->map, level->leaf_m),
                                       .neighbours = level->neighbours};
    struct ndt_eval sums;
    ndt_pose_to_euler(pose, request.p);
    for (int i = 0; i < 3; i++)
        request.p[i] -= matcher->map->origin_m[i];
    enum ndt_status status = ops->set_scan(matcher->backend, points, err);
    for (int i = 0; status == NDT_OK && i < 2; i++) {
        const double start_us = ndt_clock_us();
        status = ops->eval(matcher->backend, &request, &sums, err);
        *took_us = ndt_clock_us() - start_us;
    }
    *pairs = status == NDT_OK ? sums.pairs : 0;
    return status;
}

const char *bench_levels_text(const struct ndt_align_params *params, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < params->level_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%g", i ? "-" : "", params->levels[i].leaf_m);
    return text;
}

const char *bench_neighbours_text(const struct ndt_align_params *params, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < params->level_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "-" : "",
                                 ndt_neighbours_name(params->levels[i].neighbours));
    return text;
}
