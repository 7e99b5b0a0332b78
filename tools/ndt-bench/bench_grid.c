#include "bench_grid.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "bench_start.h"
#include "ndtd/options.h"

static const double DEG = 3.14159265358979323846 / 180.0;

/* The items of a list, or one NULL: as the settings say. */
static size_t items(const struct bench_list *list)
{
    return list->count ? list->count : 1;
}

static const char *item(const struct bench_list *list, size_t i)
{
    return list->count ? list->items[i] : NULL;
}

static enum ndt_status add_row(struct bench_grid *grid, struct bench_row **out, struct ndt_error *err)
{
    if (grid->row_count == BENCH_MAX_ROWS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d combinations", BENCH_MAX_ROWS);
    *out = &grid->rows[grid->row_count++];
    return NDT_OK;
}

static enum ndt_status add_points(struct bench_grid *grid, const struct ndtd_settings *settings,
                                  struct bench_maps *maps, struct ndt_error *err)
{
    for (size_t i = 0; i < grid->filtered_count; i++) {
        struct bench_row *row = NULL;
        enum ndt_status status = add_row(grid, &row, err);
        if (status == NDT_OK) {
            row->filtered = i;
            status = bench_matcher_open(&row->matcher, settings, maps, err);
        }
        if (status != NDT_OK)
            return status;
    }
    return NDT_OK;
}

/* One choice for every number of points; chains of several levels are nothing for the variant autoware. */
static enum ndt_status add_choice(struct bench_grid *grid, const struct bench_options *options,
                                  const struct bench_choice *choice, struct bench_maps *maps, struct ndt_error *err)
{
    struct ndtd_settings settings;
    if (choice->variant && strcmp(choice->variant, "autoware") == 0 && choice->levels &&
        strchr(choice->levels, '-'))
        return NDT_OK;
    enum ndt_status status = bench_matcher_settings(&settings, &options->settings, choice, err);
    return status == NDT_OK ? add_points(grid, &settings, maps, err) : status;
}

static enum ndt_status add_product(struct bench_grid *grid, const struct bench_options *options,
                                   struct bench_maps *maps, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    const size_t v = items(&options->variants), l = items(&options->levels), n = items(&options->neighbours);
    const size_t b = items(&options->backends), t = items(&options->threads);
    for (size_t i = 0; status == NDT_OK && i < v * l * n * b * t; i++) {
        const struct bench_choice choice = {
            .threads = item(&options->threads, i % t),
            .backend = item(&options->backends, i / t % b),
            .neighbours = item(&options->neighbours, i / t / b % n),
            .levels = item(&options->levels, i / t / b / n % l),
            .variant = item(&options->variants, i / t / b / n / l),
        };
        const int has_threads = !choice.backend || (strcmp(choice.backend, "reference") != 0 &&
                                                    strncmp(choice.backend, "cuda", 4) != 0);
        if (has_threads || i % t == 0)
            status = add_choice(grid, options, &choice, maps, err);
    }
    return status;
}

/* The peer gets the finest level of the product's first row, and the points of the map it was built from. */
static enum ndt_status add_peer(struct bench_grid *grid, const struct bench_options *options,
                                const struct bench_maps *maps, struct ndt_error *err)
{
    const struct bench_peer_ops *peer = bench_peer_find(options->peer);
    const struct ndt_align_params *first = &grid->rows[0].matcher.settings.align;
    const struct bench_peer_points points = {maps->points.x_m, maps->points.y_m, maps->points.z_m,
                                             maps->points.count};
    if (!peer)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "--peer %s: this build has no PCL; install libpcl-dev and a C++ "
                        "compiler and configure again",
                        options->peer);
    if (points.count == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--peer %s: needs a cloud file as map, %s is none", options->peer,
                        maps->path);
    for (size_t i = 0; i < grid->filtered_count; i++) {
        struct bench_row *row = NULL;
        char why[256] = "";
        enum ndt_status status = add_row(grid, &row, err);
        if (status != NDT_OK)
            return status;
        row->filtered = i;
        row->peer = peer;
        row->peer_leaf_m = first->levels[first->level_count - 1].leaf_m;
        row->peer_state = peer->open(&points, row->peer_leaf_m, why, sizeof(why));
        if (!row->peer_state)
            return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s", why);
    }
    return NDT_OK;
}

static void to_matrix(const struct ndt_pose *pose, const double origin_m[3], double T[16])
{
    double R[9];
    ndt_pose_rotation(pose, R);
    for (int i = 0; i < 3; i++) {
        memcpy(T + 4 * i, R + 3 * i, 3 * sizeof(double));
        T[4 * i + 3] = pose->t_m[i] - origin_m[i];
        T[12 + i] = 0;
    }
    T[15] = 1;
}

static struct ndt_pose from_matrix(const double T[16], const double origin_m[3])
{
    double R[9], t_m[3];
    for (int i = 0; i < 3; i++) {
        memcpy(R + 3 * i, T + 4 * i, 3 * sizeof(double));
        t_m[i] = T[4 * i + 3] + origin_m[i];
    }
    return ndt_pose_from_rotation(R, t_m);
}

static enum ndt_status run_peer(const struct bench_row *row, const struct bench_maps *maps,
                                const struct ndt_cloud *points, const struct ndt_pose *guess,
                                struct bench_found *found, struct ndt_error *err)
{
    const struct bench_peer_points scan = {points->x_m, points->y_m, points->z_m, points->count};
    struct bench_peer_result result;
    double T[16];
    char why[256] = "";
    to_matrix(guess, maps->points.origin_m, T);
    if (!row->peer->align(row->peer_state, &scan, T, &result, why, sizeof(why)))
        return ndt_fail(err, NDT_ERR_DEVICE, "%s", why);
    *found = (struct bench_found){.T_map_sensor = from_matrix(result.T, maps->points.origin_m),
                                  .converged = result.converged,
                                  .iterations = result.iterations,
                                  .took_us = result.took_us};
    return NDT_OK;
}

static enum ndt_status ask_product(struct bench_row *row, const struct ndt_cloud *points,
                                   const struct ndt_pose *guess, struct bench_found *found, struct ndt_error *err)
{
    struct ndt_align_result result;
    double eval_us = 0, pairs = 0, took_us = 0;
    enum ndt_status status = bench_matcher_align(&row->matcher, points, guess, &result, &took_us, err);
    if (status == NDT_OK)
        status = bench_matcher_eval(&row->matcher, points, guess, &eval_us, &pairs, err);
    if (status == NDT_OK)
        status = ndtd_samples_add(&row->eval_us, eval_us, err);
    if (status == NDT_OK)
        status = ndtd_samples_add(&row->pairs, pairs, err);
    if (status != NDT_OK)
        return status;
    *found = (struct bench_found){.T_map_sensor = result.T_map_sensor,
                                  .converged = result.outcome == NDT_CONVERGED,
                                  .evaluations = result.evaluations,
                                  .iterations = result.iterations,
                                  .took_us = took_us};
    return NDT_OK;
}

/* Workers of the row before may still be watching for work on a core that this row needs. */
static void let_workers_sleep(const struct bench_options *options)
{
    const double pause_us = options->settings.compute.spin_us + 50.0;
    const struct timespec pause = {(time_t)(pause_us * 1e-6), (long)(fmod(pause_us, 1e6) * 1e3)};
    (void)nanosleep(&pause, NULL);
}

static enum ndt_status run_row(struct bench_grid *grid, struct bench_row *row, const struct bench_options *options,
                               const struct bench_maps *maps, uint64_t start, int counts, struct ndt_error *err)
{
    const struct bench_filtered *filtered = &grid->filtered[row->filtered];
    const struct bench_points *scan = &filtered->scans[start % filtered->count];
    const struct bench_offset *offset = &options->offsets[0];
    const struct ndt_pose guess =
        bench_start(options->seed, start, &scan->T_map_sensor, offset->shift_m, offset->turn_deg * DEG);
    struct bench_found found;
    let_workers_sleep(options);
    enum ndt_status status = row->peer ? run_peer(row, maps, &scan->cloud, &guess, &found, err)
                                       : ask_product(row, &scan->cloud, &guess, &found, err);
    return status == NDT_OK && counts ? bench_tally_add(&row->tally, &found, &scan->T_map_sensor, err) : status;
}

/* Each row once to warm up; then start by start, everything in turn, each time beginning with another row. */
static enum ndt_status run_rows(struct bench_grid *grid, const struct bench_options *options,
                                const struct bench_maps *maps, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < grid->row_count; i++)
        status = run_row(grid, &grid->rows[i], options, maps, 0, 0, err);
    for (uint64_t start = 0; status == NDT_OK && start < options->starts; start++)
        for (size_t i = 0; status == NDT_OK && i < grid->row_count; i++)
            status = run_row(grid, &grid->rows[(start + i) % grid->row_count], options, maps, start, 1, err);
    return status;
}

static enum ndt_status filter_all(struct bench_grid *grid, const struct bench_options *options,
                                  const struct bench_input *input, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < items(&options->points); i++) {
        struct ndtd_settings settings = options->settings;
        if (item(&options->points, i))
            status = ndtd_option_set_text(&settings, "preprocess.sample_count", item(&options->points, i), err);
        if (status == NDT_OK)
            status = bench_filter(&grid->filtered[i], input, &settings.preprocess, settings.preprocess.sample_count,
                                  err);
        grid->filtered_count += status == NDT_OK;
    }
    return status;
}

enum ndt_status bench_grid_run(struct bench_grid *grid, const struct bench_options *options,
                               const struct bench_input *input, struct bench_maps *maps, struct ndt_error *err)
{
    enum ndt_status status = filter_all(grid, options, input, err);
    if (status == NDT_OK)
        status = add_product(grid, options, maps, err);
    if (status == NDT_OK && options->peer)
        status = add_peer(grid, options, maps, err);
    return status == NDT_OK ? run_rows(grid, options, maps, err) : status;
}

void bench_grid_free(struct bench_grid *grid)
{
    for (size_t i = 0; i < grid->row_count; i++) {
        struct bench_row *row = &grid->rows[i];
        if (row->peer && row->peer_state)
            row->peer->close(row->peer_state);
        bench_matcher_close(&row->matcher);
        bench_tally_free(&row->tally);
        ndtd_samples_free(&row->eval_us);
        ndtd_samples_free(&row->pairs);
    }
    for (size_t i = 0; i < grid->filtered_count; i++)
        bench_filtered_free(&grid->filtered[i]);
}

static int differ_in_threads_only(const struct bench_row *a, const struct bench_row *b)
{
    const struct ndtd_settings *x = &a->matcher.settings, *y = &b->matcher.settings;
    return a->filtered == b->filtered && a->matcher.map == b->matcher.map && strcmp(x->backend, y->backend) == 0 &&
           memcmp(&x->align, &y->align, sizeof(x->align)) == 0;
}

struct bench_row *bench_grid_single(struct bench_grid *grid, const struct bench_row *row)
{
    for (size_t i = 0; i < grid->row_count; i++) {
        struct bench_row *other = &grid->rows[i];
        if (!other->peer && !row->peer && other != row && other->matcher.settings.compute.threads == 1 &&
            differ_in_threads_only(other, row))
            return other;
    }
    return NULL;
}
