#include "window.h"

#include <stdlib.h>

#include "ndt/clock.h"
#include "ndt_search/field.h"
#include "search_request.h"

/* Running mean of the duration of a search: its gain, and its first value, as on a slow core. */
static const double GAIN = 0.2, FIRST_US = 15e3;

/* Part of the time left that a device has for alignments; if it fails, the threads align in the rest. */
static const double TIME_PART = 0.5;

/* Blocks and places of a thorough search of a large window. */
static const struct ndt_search_tier_params THOROUGH = {
    .level = 1, .heading_deg = 3, .blocks = 128, .places = 24, .alignments = 24};
/* The few best places of a small one. */
static const struct ndt_search_tier_params FEW = {
    .level = 2, .heading_deg = 1.5, .blocks = 64, .places = 24, .alignments = 4};

struct ndtd_window {
    struct ndt_search *search;
    struct ndt_search_params params, thorough, few;
    struct ndt_search_result result;
    const struct ndt_map *map; /* map of `search`, which holds the reference, as it does of `field` */
    const struct ndt_field *field;
    double mean_us;
};

enum ndt_status ndtd_window_create(struct ndtd_window **out, const struct ndt_backend_config *compute,
                                   struct ndt_error *err)
{
    struct ndtd_window *window = *out = calloc(1, sizeof(*window));
    const struct ndt_search_config config = {.threads = compute->threads, .isa = compute->isa};
    if (!window)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a window to search in");
    ndt_search_params_default(&window->params);
    window->params.final_count = 0; /* the matcher aligns again */
    window->thorough = window->params;
    window->thorough.tiers[NDT_SEARCH_REGION] = THOROUGH;
    window->few = window->params;
    window->few.tiers[NDT_SEARCH_NEAR] = FEW;
    window->few.tier = NDT_SEARCH_NEAR;
    window->mean_us = FIRST_US;
    return ndt_search_create(&window->search, &config, err);
}

void ndtd_window_destroy(struct ndtd_window *window)
{
    if (!window)
        return;
    ndt_search_destroy(window->search);
    free(window);
}

/* Whether `search` has the field of the matcher's map. */
static int is_ready(struct ndtd_window *window, struct ndtd_searcher *searcher, struct ndt_map *map)
{
    struct ndt_error ignored; /* the field of this map follows that of the previous one */
    struct ndt_field *field = ndtd_searcher_take_field(searcher);
    if (field && map && ndt_search_set_map(window->search, map, field, &ignored) == NDT_OK) {
        window->map = map;
        window->field = field;
    }
    ndt_field_release(field);
    return map && window->map == map;
}

/* Places go to the matcher's aligner where its backend solves them in one launch. */
static void lend_aligner(struct ndtd_window *window, const struct ndtd_matcher *matcher, double start_us)
{
    const int solves = ndt_aligner_solve_limit(matcher->aligner) > 1;
    const double left_us = matcher->deadline_us - start_us;
    ndt_search_lend_aligner(window->search, solves ? matcher->aligner : NULL,
                            matcher->deadline_us > 0 ? start_us + TIME_PART * left_us : 0);
}

enum ndt_status ndtd_window_search(struct ndtd_window *window, struct ndtd_searcher *searcher,
                                   const struct ndtd_matcher *matcher, const struct ndt_search_region *region,
                                   int is_near, enum ndtd_window_effort effort,
                                   const struct ndt_search_result **result, int *is_searched, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    const struct ndtd_search_request request =
        ndtd_search_request_of(matcher, matcher->settings, NDTD_SEARCH_RECOVERY);
    window->result.count = 0;
    window->result.evaluated_points = 0;
    *result = &window->result;
    *is_searched = 0;
    if (!is_ready(window, searcher, matcher->map))
        return NDT_OK;
    if (matcher->deadline_us > 0 && matcher->deadline_us - start_us < 2 * window->mean_us) {
        window->mean_us *= 0.9; /* so that one slow search does not prevent all following ones */
        return NDT_OK;
    }
    *is_searched = 1;
    lend_aligner(window, matcher, start_us);
    struct ndt_search_params *params = effort == NDTD_WINDOW_FEW        ? &window->few
                                       : effort == NDTD_WINDOW_THOROUGH ? &window->thorough
                                                                        : &window->params;
    if (effort != NDTD_WINDOW_FEW)
        params->tier = is_near ? NDT_SEARCH_AUTO : NDT_SEARCH_REGION; /* AUTO: by radius and view */
    const enum ndt_status status = ndt_search_run(window->search, params, matcher->points,
                                                  &request.T_upright_sensor, region, NULL, &window->result, err);
    if (effort != NDTD_WINDOW_FEW) /* a small window tells nothing about the time of a large one */
        window->mean_us += GAIN * (ndt_clock_us() - start_us - window->mean_us);
    return status;
}

double ndtd_window_above_ground_m(const struct ndtd_window *window, const struct ndt_map *map,
                                  const double place_m[3])
{
    double least_m = 0;
    if (!window || !window->field || window->map != map)
        return 0;
    const double *origin_m = window->field->origin_m;
    for (uint32_t layer = 0; layer < window->field->layer_count; layer++) {
        double ground_m;
        if (!ndt_field_ground(window->field, (int32_t)layer, place_m[0] - origin_m[0], place_m[1] - origin_m[1],
                              &ground_m))
            continue;
        const double above_m = place_m[2] - origin_m[2] - ground_m;
        if (above_m > 0 && (least_m == 0 || above_m < least_m))
            least_m = above_m;
    }
    return least_m;
}
