/* Turns places into candidates: the places with the better scores are aligned in one batch and ranked by
 * gaussian_fit; the best are aligned again with more points. */
#include "search_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "field_window.h"

static const double PI = 3.14159265358979323846;
/* Distance around a place from which the slope of the ground is taken, and the steepest slope that is accepted. */
enum { SLOPE_STEPS = 2 };
static const double SLOPE_STEP_M = 3, MOST_SLOPE = 0.3;
/* Part of the best score from which on a place is aligned in any case. */
static const double NEAR_BEST = 0.75;
/* Least time of a lent aligner, whose batch stops at once then; 0 would be no limit. */
static const double LEAST_S = 1e-4;

/* ---- guesses ---- */

/* Fits a plane to the ground around a place by least squares: its height there and its slopes. */
static int fit_slope(const struct ndt_field *field, const struct ndt_place *place, double x_m, double y_m,
                     double slope[2], double *height_m)
{
    double sum_x[2] = {0}, sum_xx[2] = {0}, z_m;
    if (!ndt_field_ground(field, place->layer, x_m, y_m, height_m))
        return 0;
    slope[0] = slope[1] = 0;
    for (int i = -SLOPE_STEPS; i <= SLOPE_STEPS; i++)
        for (int k = -SLOPE_STEPS; k <= SLOPE_STEPS; k++) {
            const double d[2] = {i * SLOPE_STEP_M, k * SLOPE_STEP_M};
            if (!ndt_field_ground(field, place->layer, x_m + d[0], y_m + d[1], &z_m) ||
                !(fabs(z_m - *height_m) <= MOST_SLOPE * SLOPE_STEP_M * SLOPE_STEPS * 2))
                continue;
            for (int a = 0; a < 2; a++) {
                sum_x[a] += d[a] * (z_m - *height_m);
                sum_xx[a] += d[a] * d[a];
            }
        }
    for (int a = 0; a < 2; a++)
        slope[a] = sum_xx[a] > 0 ? fmax(-MOST_SLOPE, fmin(MOST_SLOPE, sum_x[a] / sum_xx[a])) : 0;
    return 1;
}

/* out = A B, 3x3 */
static void multiply(const double A[9], const double B[9], double out[9])
{
    for (int i = 0; i < 9; i++)
        out[i] = A[i / 3 * 3] * B[i % 3] + A[i / 3 * 3 + 1] * B[3 + i % 3] + A[i / 3 * 3 + 2] * B[6 + i % 3];
}

/* The rotation that takes z to the normal of a slope. */
static void slope_rotation(const double slope[2], double R[9])
{
    const double size = sqrt(1 + slope[0] * slope[0] + slope[1] * slope[1]);
    const double x = -slope[0] / size, y = -slope[1] / size, z = 1 / size, f = 1 / (1 + z);
    const double turned[9] = {1 - x * x * f, -x * y * f, x, -x * y * f, 1 - y * y * f, y, -x, -y, z};
    memcpy(R, turned, sizeof(turned));
}

/* Sets a pose on the ground at the place, with its slope where the scan was levelled by ground. */
static int guess_pose(const struct ndt_search *search, const struct ndt_place *place, struct ndt_pose *out)
{
    const struct ndt_field *field = search->field;
    const double x_m = 0.5 * place->x + 0.25, y_m = 0.5 * place->y + 0.25;
    const double c = cos((double)place->heading_rad), s = sin((double)place->heading_rad);
    const double turn[9] = {c, -s, 0, s, c, 0, 0, 0, 1};
    double slope[2], height_m, tilt[9], level[9], R[9];
    if (!fit_slope(field, place, x_m, y_m, slope, &height_m))
        return 0;
    if (!search->view.has_ground)
        slope[0] = slope[1] = 0;
    slope_rotation(slope, tilt);
    multiply(turn, search->view.R_level, level);
    multiply(tilt, level, R);
    if (!ndt_search_is_at_height(search, height_m, place->height_view))
        return 0;
    height_m += search->view.height_views[place->height_view].height_m;
    const double t_m[3] = {field->origin_m[0] + x_m, field->origin_m[1] + y_m, field->origin_m[2] + height_m};
    *out = ndt_pose_from_rotation(R, t_m);
    return 1;
}

/* ---- alignment ---- */

/* Sets the levels of the map up to 2 m, from coarse to fine; with is_final the finest of them only. */
static void set_levels(const struct ndt_search *search, int is_final, struct ndt_align_params *params)
{
    const struct ndt_map *map = search->map;
    ndt_align_params_default(params);
    params->level_count = 0;
    for (size_t i = 0; i < map->level_count; i++) {
        const struct ndt_map_level *level = &map->levels[i];
        const int is_fine = level == search->fine;
        if (is_fine ||
            (!is_final && level->leaf_m > search->fine->leaf_m && level->leaf_m <= 2.01 * search->fine->leaf_m))
            params->levels[params->level_count++] =
                (struct ndt_align_level){level->leaf_m, is_fine ? NDT_RADIUS : NDT_DIRECT7};
    }
}

static int is_aligned(const struct ndt_align_result *result)
{
    return result->scores.match_ratio > 0 && ndt_pose_is_finite(&result->T_map_sensor);
}

static void set_scores(const struct ndt_search *search, const struct ndt_align_result *result,
                       struct ndt_search_candidate *out)
{
    const struct ndt_height_view *height_view = &search->view.height_views[out->height_view];
    out->alignment = *result;
    out->T_map_sensor = result->T_map_sensor;
    out->scores = result->scores;
    out->outcome = result->outcome;
    out->fit = result->scores.nvtl_normalized * result->scores.match_ratio;
    ndt_search_gaussian_fit(search->map, search->fine, &height_view->align, height_view->align_above,
                            &out->T_map_sensor, &out->gaussian_fit, &out->inliers);
}

void ndt_search_lend_aligner(struct ndt_search *search, struct ndt_aligner *aligner, double until_us)
{
    search->lent = aligner;
    search->lent_until_us = until_us;
    search->lent_failure = (struct ndt_error){""};
}

const char *ndt_search_lent_failure(const struct ndt_search *search)
{
    return search->lent_failure.text[0] ? search->lent_failure.text : NULL;
}

static int are_complete(const struct ndt_align_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (results[i].outcome == NDT_DEADLINE)
            return 0;
    return 1;
}

/* Aligns `count` items of the search into its results: on the lent aligner, or by the threads. A place that was not
 * aligned in time would be missed as a rival of the others: the threads align all of them, then. */
static enum ndt_status align_items(struct ndt_search *search, const struct ndt_align_params *params, size_t count,
                                   struct ndt_error *err)
{
    const struct ndt_align_item *items = search->items.items;
    struct ndt_align_result *results = search->results.items;
    if (search->lent) {
        struct ndt_align_params limited = *params;
        struct ndt_error why = {""};
        if (search->lent_until_us > 0)
            limited.deadline_s = fmax(LEAST_S, (search->lent_until_us - ndt_clock_us()) * 1e-6);
        const enum ndt_status status = ndt_align_batch(search->lent, &limited, items, count, results, &why);
        if (status == NDT_OK && are_complete(results, count))
            return NDT_OK;
        if (status == NDT_OK)
            (void)ndt_fail(&why, NDT_ERR_LIMIT, "%zu places took too long", count);
        search->lent = NULL;
        search->lent_failure = why;
    }
    return ndt_align_batch(search->aligner, params, items, count, results, err);
}

/* Adds points times evaluations of the alignments of a batch. */
static void count_costs(struct ndt_search *search, size_t count)
{
    const struct ndt_align_item *items = search->items.items;
    const struct ndt_align_result *results = search->results.items;
    for (size_t i = 0; i < count; i++)
        search->evaluated_points += (uint64_t)results[i].evaluations * items[i].scan->count;
}

/* Makes room for `more` candidates behind the existing ones. */
static struct ndt_search_candidate *append(struct ndt_search *search, size_t more, struct ndt_error *err)
{
    struct ndt_list *list = &search->candidates;
    if (list->count + more > list->capacity) {
        void *items = realloc(list->items, (list->count + more) * sizeof(struct ndt_search_candidate));
        if (!items) {
            (void)ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu candidates", list->count + more);
            return NULL;
        }
        list->items = items;
        list->capacity = list->count + more;
    }
    return (struct ndt_search_candidate *)list->items + list->count;
}

/* Sets the items of the batch, and the place of each. */
static size_t set_items(struct ndt_search *search, struct ndt_align_item *items, size_t *from)
{
    const struct ndt_place *places = search->places.items;
    size_t count = 0;
    for (size_t i = 0; i < search->places.count; i++) {
        const struct ndt_height_view *height_view = &search->view.height_views[places[i].height_view];
        items[count] = (struct ndt_align_item){.scan = &height_view->align};
        if (height_view->align.count > 0 && guess_pose(search, &places[i], &items[count].T_map_guess))
            from[count++] = i;
    }
    return count;
}

static int goes_on(void *context, size_t done)
{
    (void)done;
    return !ndt_search_is_cancelled(context);
}

/* Computes the mean score of the points of every item at its guess, on a level. */
static enum ndt_status score_items(struct ndt_search *search, const struct ndt_align_level *level,
                                   const struct ndt_align_item *items, size_t count, double *scores,
                                   struct ndt_error *err)
{
    struct ndt_pose poses[NDT_PLACES_MAX];
    struct ndt_pose_score out[NDT_PLACES_MAX];
    size_t number[NDT_PLACES_MAX] = {0}, done = 0;
    enum ndt_status status = NDT_OK;
    for (size_t s = 0; status == NDT_OK && s < NDT_SEARCH_HEIGHTS; s++) {
        struct ndt_score_job job = {.leaf_m = level->leaf_m,
                                    .neighbours = level->neighbours,
                                    .scan = &search->view.height_views[s].align,
                                    .T_map_sensor = poses,
                                    .goes_on = goes_on,
                                    .context = search};
        for (size_t i = 0; i < count; i++)
            if (items[i].scan == job.scan) {
                poses[job.count] = items[i].T_map_guess;
                number[job.count++] = i;
            }
        if (job.count > 0)
            status = ndt_aligner_score(search->aligner, &job, out, &done, err);
        for (size_t k = 0; status == NDT_OK && k < job.count; k++) /* cancelled: unscored items are last */
            scores[number[k]] = k < done ? out[k].nearest_score / (double)job.scan->count : 0;
    }
    return status;
}

/* Leaves out all but the best places before they are aligned, and of those beyond half of the alignments the ones
 * that fit far worse than the best one. The other places stay in their order. */
static enum ndt_status choose_items(struct ndt_search *search, const struct ndt_align_level *level,
                                    struct ndt_align_item *items, size_t *from, size_t *count,
                                    struct ndt_error *err)
{
    double scores[NDT_PLACES_MAX] = {0}, best = 0;
    const enum ndt_status status = score_items(search, level, items, *count, scores, err);
    size_t kept = 0;
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < *count; i++)
        best = fmax(best, scores[i]);
    for (size_t i = 0; i < *count; i++) {
        size_t better = 0;
        for (size_t k = 0; k < *count; k++)
            better += scores[k] > scores[i] || (scores[k] == scores[i] && k < i);
        if (better >= search->tier->alignments ||
            (scores[i] < NEAR_BEST * best && 2 * better >= search->tier->alignments))
            continue;
        items[kept] = items[i];
        from[kept++] = from[i];
    }
    *count = kept;
    return NDT_OK;
}

enum ndt_status ndt_search_align_places(struct ndt_search *search, struct ndt_error *err)
{
    const struct ndt_place *places = search->places.items;
    struct ndt_align_params params;
    size_t from[NDT_PLACES_MAX];
    if (search->places.count == 0)
        return NDT_OK;
    enum ndt_status status =
        ndt_list_resize(&search->items, search->places.count, sizeof(struct ndt_align_item), err);
    if (status == NDT_OK)
        status = ndt_list_resize(&search->results, search->places.count, sizeof(struct ndt_align_result), err);
    struct ndt_search_candidate *out = append(search, search->places.count, err);
    if (status != NDT_OK || !out)
        return status != NDT_OK ? status : NDT_ERR_MEMORY;
    size_t count = set_items(search, search->items.items, from);
    const struct ndt_align_result *results = search->results.items;
    set_levels(search, 0, &params);
    /* Places on cells of 0.5 m are near enough to their optima for the finest level, which tells them apart best.
     */
    const size_t scored = search->tier->level == 2 ? params.level_count - 1 : 0;
    status = choose_items(search, &params.levels[scored], search->items.items, from, &count, err);
    if (status == NDT_OK && count > 0)
        status = align_items(search, &params, count, err);
    if (status == NDT_OK)
        count_costs(search, count);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        const struct ndt_place *place = &places[from[i]];
        if (!is_aligned(&results[i]))
            continue;
        *out = (struct ndt_search_candidate){.layer = place->layer, .height_view = place->height_view};
        out->bits = (double)place->score / search->view.height_views[place->height_view].refine.count;
        set_scores(search, &results[i], out);
        search->candidates.count++;
        out++;
    }
    return status;
}

/* Share of the points of the refinement that meet their bit at the candidate's pose. */
static double count_bits(const struct ndt_search *search, const struct ndt_search_candidate *candidate)
{
    enum { LEVEL = 2 };
    const struct ndt_banded_points *banded = &search->view.height_views[candidate->height_view].refine;
    const double *level = search->view.R_level, cell_m = ndt_field_cell_m(LEVEL);
    double R[9], heading_rad;
    uint32_t met = 0;
    ndt_pose_rotation(&candidate->T_map_sensor, R);
    /* heading of the levelled x axis: R times the first row of R_level */
    heading_rad = atan2(R[3] * level[0] + R[4] * level[1] + R[5] * level[2],
                        R[0] * level[0] + R[1] * level[1] + R[2] * level[2]);
    const double c = cos(heading_rad), s = sin(heading_rad), limit_m = 1e8;
    for (uint32_t i = 0; i < banded->count; i++) {
        const double x_m = (double)banded->x_m[i], y_m = (double)banded->y_m[i];
        const double at[2] = {candidate->T_map_sensor.t_m[0] - search->field->origin_m[0] + c * x_m - s * y_m,
                              candidate->T_map_sensor.t_m[1] - search->field->origin_m[1] + s * x_m + c * y_m};
        const struct ndt_window cell = {
            candidate->layer, (int32_t)floor(at[1] / cell_m), (int32_t)floor(at[0] / cell_m), 1, 1, 1};
        uint8_t bits = 0;
        if (fabs(at[0]) < limit_m && fabs(at[1]) < limit_m)
            ndt_window_bits(search->field, LEVEL, &cell, &bits);
        met += (bits & banded->mask[i]) != 0;
    }
    return banded->count ? (double)met / banded->count : 0;
}

/* ---- the result ---- */

static int by_ng(const void *a, const void *b)
{
    const struct ndt_search_candidate *x = a, *y = b;
    if (x->gaussian_fit != y->gaussian_fit)
        return x->gaussian_fit > y->gaussian_fit ? -1 : 1;
    if (x->bits != y->bits)
        return x->bits > y->bits ? -1 : 1;
    for (int k = 0; k < 3; k++)
        if (x->T_map_sensor.t_m[k] != y->T_map_sensor.t_m[k])
            return x->T_map_sensor.t_m[k] < y->T_map_sensor.t_m[k] ? -1 : 1;
    return 0;
}

static void set_distance(struct ndt_search_candidate *candidate, const struct ndt_search_candidate *best)
{
    candidate->best_m = ndt_pose_distance_m(&candidate->T_map_sensor, &best->T_map_sensor);
    candidate->best_deg = ndt_pose_angle_rad(&candidate->T_map_sensor, &best->T_map_sensor) * (180 / PI);
}

static int is_distinct(const struct ndt_search_params *params, const struct ndt_search_candidate *a,
                       const struct ndt_search_candidate *b)
{
    return ndt_pose_distance_m(&a->T_map_sensor, &b->T_map_sensor) > params->distinct_m ||
           ndt_pose_angle_rad(&a->T_map_sensor, &b->T_map_sensor) > params->distinct_deg * (PI / 180);
}

/* Sorts candidates and keeps those that are distinct from every better one; at most `most`. */
static size_t rank(const struct ndt_search_params *params, struct ndt_search_candidate *items, size_t count,
                   size_t most)
{
    size_t kept = 0;
    if (count > 0)
        qsort(items, count, sizeof(*items), by_ng);
    for (size_t i = 0; i < count && kept < most; i++) {
        int is_new = 1;
        for (size_t k = 0; is_new && k < kept; k++)
            is_new = is_distinct(params, &items[i], &items[k]);
        if (is_new && kept++ < i)
            items[kept - 1] = items[i];
    }
    return kept;
}

/* Aligns the best candidates with more points, on the finest level. */
static enum ndt_status align_again(struct ndt_search *search, struct ndt_search_candidate *items, size_t count,
                                   struct ndt_error *err)
{
    struct ndt_align_params params;
    enum ndt_status status = ndt_list_resize(&search->items, count, sizeof(struct ndt_align_item), err);
    if (status == NDT_OK)
        status = ndt_list_resize(&search->results, count, sizeof(struct ndt_align_result), err);
    if (status != NDT_OK || count == 0)
        return status;
    struct ndt_align_item *again = search->items.items;
    const struct ndt_align_result *results = search->results.items;
    for (size_t i = 0; i < count; i++)
        again[i] = (struct ndt_align_item){.scan = &search->view.final, .T_map_guess = items[i].T_map_sensor};
    set_levels(search, 1, &params);
    status = align_items(search, &params, count, err);
    if (status == NDT_OK)
        count_costs(search, count);
    for (size_t i = 0; status == NDT_OK && i < count; i++)
        if (is_aligned(&results[i])) {
            set_scores(search, &results[i], &items[i]);
            items[i].is_final = 1;
        }
    return status;
}

enum ndt_status ndt_search_finish(struct ndt_search *search, struct ndt_search_result *result,
                                  struct ndt_error *err)
{
    const struct ndt_search_params *params = search->params;
    struct ndt_search_candidate *items = search->candidates.items;
    size_t count = rank(params, items, search->candidates.count, NDT_SEARCH_CANDIDATES);
    const size_t again = count < params->final_count ? count : params->final_count;
    const enum ndt_status status = align_again(search, items, again, err);
    if (status != NDT_OK)
        return status;
    count = rank(params, items, count, NDT_SEARCH_CANDIDATES);
    search->candidates.count = count;
    result->count = (uint32_t)count;
    result->margin_gaussian = result->margin_fit = 0;
    for (size_t i = 0; i < count; i++) {
        items[i].bits = count_bits(search, &items[i]);
        set_distance(&items[i], &items[0]);
        result->candidates[i] = items[i];
    }
    if (count > 1) {
        result->margin_gaussian = items[0].gaussian_fit > 0 ? items[1].gaussian_fit / items[0].gaussian_fit : 1;
        result->margin_fit = items[0].fit > 0 ? items[1].fit / items[0].fit : 1;
    }
    return NDT_OK;
}
