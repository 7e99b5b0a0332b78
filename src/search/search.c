/* A search: its members, its parameters, and the order of its steps. */
#include "search_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"

/* ---- parameters ---- */

void ndt_search_params_default(struct ndt_search_params *params)
{
    *params = (struct ndt_search_params){
        .tier = NDT_SEARCH_AUTO,
        .tiers = {{0}, {0, 4, 100, 10, 10}, {1, 3, 1000, 40, 40}, {1, 3, 64, 12, 12}, {2, 1.5, 200, 96, 20}},
        .seed = 1,
        .voxel_m = 0.5,
        .min_range_m = 1,
        .max_range_m = 50,
        .dense_points = 200,
        .refine_points = 250,
        .align_points = 200,
        .align_ground_points = 100,
        .final_count = 4,
        .final_points = 1500,
        .max_tilt_deg = 12,
        .max_height_m = 5,
        .height_count = 4,
        .heights_m = {0.5, 1.1, 1.75, 2.4},
        .near_radius_m = 8,
        .region_radius_m = 100,
        .distinct_m = 1,
        .distinct_deg = 5};
}

static int is_between(double value, double low, double high)
{
    return value >= low && value <= high; /* false for NaN */
}

static enum ndt_status check_tier(const struct ndt_search_tier_params *tier, struct ndt_error *err)
{
    if (tier->level < 0 || tier->level >= NDT_FIELD_LEVELS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: level %d of the field; 0 to %d", tier->level,
                        NDT_FIELD_LEVELS - 1);
    if (!is_between(tier->heading_deg, 360.0 / NDT_HEADINGS_MAX, 45))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: %g deg between headings; the range is %g to 45",
                        tier->heading_deg, 360.0 / NDT_HEADINGS_MAX);
    if (tier->blocks < 1 || tier->blocks > NDT_BLOCKS_MAX || tier->alignments < 1 ||
        tier->places < tier->alignments || tier->places > NDT_PLACES_MAX)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "search: %u blocks, %u places and %u alignments; at most %d blocks and %d places, of which "
                        "at least one and at most all are aligned",
                        tier->blocks, tier->places, tier->alignments, NDT_BLOCKS_MAX, NDT_PLACES_MAX);
    return NDT_OK;
}

static enum ndt_status check_params(const struct ndt_search_params *params, struct ndt_error *err)
{
    const struct {
        const char *name;
        double value, low, high;
    } ranges[] = {{"tier", params->tier, 0, NDT_SEARCH_TIERS - 1},
                  {"voxel_m", params->voxel_m, 0.1, 5},
                  {"min_range_m", params->min_range_m, 0, params->max_range_m},
                  {"max_range_m", params->max_range_m, 1, NDT_REACH_MAX_M},
                  {"dense_points", params->dense_points, 1, NDT_SEARCH_POINTS},
                  {"refine_points", params->refine_points, 1, NDT_SEARCH_POINTS},
                  {"align_points", params->align_points, 1, 100000},
                  {"align_ground_points", params->align_ground_points, 0, 100000},
                  {"final_count", params->final_count, 0, NDT_SEARCH_CANDIDATES},
                  {"final_points", params->final_points, 1, 1000000},
                  {"max_tilt_deg", params->max_tilt_deg, 0, 60},
                  {"max_height_m", params->max_height_m, 0.2, 50},
                  {"height_count", params->height_count, 1, NDT_SEARCH_HEIGHTS},
                  {"near_radius_m", params->near_radius_m, 0, 100},
                  {"distinct_m", params->distinct_m, 0, 100},
                  {"distinct_deg", params->distinct_deg, 0, 180}};
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (!is_between(ranges[i].value, ranges[i].low, ranges[i].high))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "search: %s is %g; the range is %g to %g", ranges[i].name,
                            ranges[i].value, ranges[i].low, ranges[i].high);
    for (uint32_t i = 0; i < params->height_count; i++)
        if (!is_between(params->heights_m[i], 0, 50))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "search: heights_m[%u] is %g; the range is 0 to 50", i,
                            params->heights_m[i]);
    for (int i = NDT_SEARCH_QUICK; status == NDT_OK && i < NDT_SEARCH_TIERS; i++)
        status = check_tier(&params->tiers[i], err);
    return status;
}

static enum ndt_status check_region(const struct ndt_search_region *region, struct ndt_error *err)
{
    if (!region)
        return NDT_OK;
    for (int k = 0; region->has_position && k < 3; k++)
        if (!isfinite(region->position_m[k]))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "search: the position of the region is not finite");
    if (region->has_position && !is_between(region->radius_m, 0, 1e7))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: the region has a radius of %g m", region->radius_m);
    if (region->has_height && !(isfinite(region->position_m[2]) && is_between(region->height_reach_m, 0, 1e7)))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: the height of the region is %g +- %g m",
                        region->position_m[2], region->height_reach_m);
    if (!is_between(region->above_ground_m, 0, 50))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: the sensor is %g m above the ground; the range is 0 to 50",
                        region->above_ground_m);
    if (region->has_heading && !(isfinite(region->heading_rad) && is_between(region->heading_reach_rad, 0, 1e3)))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: the heading of the region is %g +- %g rad",
                        region->heading_rad, region->heading_reach_rad);
    return NDT_OK;
}

/* ---- the object ---- */

static enum ndt_status open_parts(struct ndt_search *search, struct ndt_error *err)
{
    struct ndt_backend_config config;
    const int threads = search->config.threads;
    const int pin = search->config.pin_threads && threads <= ndt_pool_cores();
    const char *isa = search->config.isa;
    enum ndt_status status = ndt_score_choose(&search->score, isa, err);
    if (status == NDT_OK)
        status = ndt_pool_create(&search->pool, threads, 20, pin, err);
    ndt_backend_config_default(&config);
    config.threads = threads;
    config.spin_us = 20;
    config.pin_threads = pin;
    config.isa = isa && strcmp(isa, "plain") == 0 ? NULL : isa;
    if (status == NDT_OK)
        status = ndt_cpu_backend.open(&search->backend, &config, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&search->aligner, search->backend, err);
    if (status == NDT_OK)
        status = ndt_scan_view_open(&search->view, err);
    if (status == NDT_OK)
        ndt_search_engine_open(search);
    return status;
}

enum ndt_status ndt_search_create(struct ndt_search **out, const struct ndt_search_config *config,
                                  struct ndt_error *err)
{
    *out = NULL;
    struct ndt_search *search = calloc(1, sizeof(*search));
    if (!search)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a search");
    search->config = *config;
    if (search->config.threads == 0)
        search->config.threads = ndt_pool_cores() < 4 ? ndt_pool_cores() : 4;
    search->hypotheses = calloc(NDT_HEADINGS_MAX * NDT_SEARCH_HEIGHTS, sizeof(*search->hypotheses));
    enum ndt_status status =
        search->hypotheses ? open_parts(search, err) : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a search");
    if (status == NDT_OK)
        *out = search;
    else
        ndt_search_destroy(search);
    return status;
}

void ndt_search_destroy(struct ndt_search *search)
{
    if (!search)
        return;
    ndt_search_engine_close(search);
    ndt_cloud_free(&search->upright.points);
    ndt_scan_view_close(&search->view);
    ndt_aligner_destroy(search->aligner);
    ndt_cpu_backend.close(search->backend);
    ndt_pool_destroy(search->pool);
    ndt_map_release(search->map);
    ndt_field_release(search->field);
    struct ndt_list *lists[] = {&search->windows,    &search->peaks,  &search->offsets, &search->blocks,
                                &search->entries,    &search->places, &search->items,   &search->results,
                                &search->candidates, &search->points, &search->allowed, &search->peaks_again,
                                &search->order};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        free(lists[i]->items);
    free(search->hypotheses);
    free(search);
}

/* The level nearest to 1 m, from which the field is built, too. */
static const struct ndt_map_level *find_fine(const struct ndt_map *map)
{
    const struct ndt_map_level *best = NULL;
    for (size_t i = 0; map && i < map->level_count; i++) {
        const struct ndt_map_level *level = &map->levels[i];
        if (level->leaf_m >= 0.5 && level->leaf_m <= 2 &&
            (!best || fabs(log(level->leaf_m)) < fabs(log(best->leaf_m))))
            best = level;
    }
    return best;
}

enum ndt_status ndt_search_set_map(struct ndt_search *search, struct ndt_map *map, struct ndt_field *field,
                                   struct ndt_error *err)
{
    if (!map != !field || (map && field->map_id != map->id))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: the field belongs to another map");
    const struct ndt_map_level *fine = find_fine(map);
    if (map && !fine)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: the map has no level between 0.5 and 2 m");
    if (map) {
        const enum ndt_status status = ndt_aligner_set_map(search->aligner, map, err);
        if (status != NDT_OK)
            return status;
    }
    ndt_map_retain(map);
    ndt_map_release(search->map);
    ndt_field_retain(field);
    ndt_field_release(search->field);
    search->map = map;
    search->field = field;
    search->fine = fine;
    ndt_search_engine_set_field(search);
    return NDT_OK;
}

/* ---- a run ---- */

/* Adds the candidates of one tier; the times of several tiers add up. */
static enum ndt_status run_tier(struct ndt_search *search, enum ndt_search_tier tier,
                                struct ndt_search_result *result, struct ndt_error *err)
{
    struct ndt_search_times *times = &result->times_us;
    const double start_us = ndt_clock_us();
    uint64_t poses = 0;
    search->tier = &search->params->tiers[tier];
    search->is_any = tier == NDT_SEARCH_REGION || tier == NDT_SEARCH_NEAR;
    result->tier = tier;
    enum ndt_status status = ndt_search_dense(search, &poses, err);
    const double dense_us = ndt_clock_us();
    if (status == NDT_OK && !ndt_search_is_cancelled(search))
        status = ndt_search_refine(search, err);
    const double refined_us = ndt_clock_us();
    if (status == NDT_OK && !ndt_search_is_cancelled(search))
        status = ndt_search_align_places(search, err);
    const double aligned_us = ndt_clock_us();
    if (status == NDT_OK && !ndt_search_is_cancelled(search))
        status = ndt_search_finish(search, result, err);
    result->poses += poses;
    times->dense_us += dense_us - start_us;
    times->refine_us += refined_us - dense_us;
    times->align_us += aligned_us - refined_us;
    times->final_us += ndt_clock_us() - aligned_us;
    return status;
}

/* Coverage below which a view is never convincing. */
static const double LEAST_COVERAGE = 0.5;

/* Whether one wide view stands out, so that the thorough tier need not run. It is no verification. */
static int is_convincing(const struct ndt_search_result *result)
{
    const struct ndt_search_candidate *best = &result->candidates[0];
    return result->count > 0 && result->view.has_ground && best->scores.coverage >= LEAST_COVERAGE &&
           result->view.dense_points >= 120 && best->scores.match_ratio >= 0.92 && best->fit >= 0.40 &&
           best->inliers >= 0.35 && best->gaussian_fit * (1 - result->margin_gaussian) >= 0.07 &&
           result->margin_fit <= 0.90;
}

static void describe_view(const struct ndt_scan_view *view, struct ndt_search_view *out)
{
    out->has_ground = view->has_ground;
    out->height_m = view->has_ground ? view->height_views[0].height_m : 0;
    memcpy(out->up_in_sensor, view->up, sizeof(out->up_in_sensor));
    out->ground_ratio = view->ground_ratio;
    out->points = (uint32_t)view->points->count;
    out->above = view->height_views[0].above;
    out->dense_points = view->height_views[0].dense.count;
    out->sectors = view->sectors;
}

static enum ndt_status run_tiers(struct ndt_search *search, struct ndt_search_result *result, struct ndt_error *err)
{
    const struct ndt_search_region *region = &search->region;
    const struct ndt_search_params *params = search->params;
    enum ndt_search_tier tier = params->tier;
    const int is_auto = tier == NDT_SEARCH_AUTO, is_wide = result->view.sectors >= LEAST_COVERAGE;
    if (is_auto && region->has_position && region->radius_m <= params->region_radius_m)
        tier = region->radius_m <= params->near_radius_m ? NDT_SEARCH_NEAR : NDT_SEARCH_REGION;
    else if (is_auto)
        tier = result->view.has_ground && is_wide ? NDT_SEARCH_QUICK : NDT_SEARCH_THOROUGH;
    enum ndt_status status = run_tier(search, tier, result, err);
    if (status == NDT_OK && is_auto && tier == NDT_SEARCH_QUICK && !ndt_search_is_cancelled(search) &&
        !is_convincing(result))
        status = run_tier(search, NDT_SEARCH_THOROUGH, result, err);
    return status;
}

enum ndt_status ndt_search_run(struct ndt_search *search, const struct ndt_search_params *params,
                               const struct ndt_cloud *scan, const struct ndt_pose *T_upright_sensor,
                               const struct ndt_search_region *region, struct ndt_search_control *control,
                               struct ndt_search_result *result, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    const struct ndt_cloud *upright;
    memset(result, 0, sizeof(*result));
    enum ndt_status status = check_params(params, err);
    if (status == NDT_OK)
        status = check_region(region, err);
    if (status == NDT_OK && !search->map)
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "search: there is no map");
    if (status != NDT_OK)
        return status;
    search->params = params;
    search->region = region ? *region : (struct ndt_search_region){0};
    search->control = control;
    search->candidates.count = 0;
    search->evaluated_points = 0;
    search->done_to = 0;
    ndt_search_set_progress(search, 0);
    status = ndt_upright_set(&search->upright, scan, T_upright_sensor, &upright, err);
    if (status == NDT_OK)
        status = ndt_scan_view_set(&search->view, params, search->region.above_ground_m, upright, err);
    result->times_us.prepare_us = ndt_clock_us() - start_us;
    if (status == NDT_OK) {
        ndt_upright_region(&search->upright, &search->region);
        describe_view(&search->view, &result->view);
        status = run_tiers(search, result, err);
    }
    ndt_upright_result(&search->upright, result);
    result->evaluated_points = search->evaluated_points;
    result->is_cancelled = ndt_search_is_cancelled(search);
    if (status != NDT_OK || result->is_cancelled)
        result->count = 0;
    ndt_search_set_progress(search, 100);
    result->times_us.total_us = ndt_clock_us() - start_us;
    return status;
}
