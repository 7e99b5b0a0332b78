#include "map_rate.h"

#include <math.h>
#include <string.h>

#include "backends.h"
#include "ndt/linalg.h"

static const double DEG = 57.29577951308232;
/* A start leads back if its alignment ends this near to the end of the one from the place itself. */
static const double BACK_M = 0.2, BACK_DEG = 1.5, AWAY_M = 1, MOST_M = 10;
static const double distances_m[MAP_RATE_DISTANCES] = {0.5, 1, 1.5, 2, 3, 4};
static const double turns_deg[MAP_RATE_TURNS] = {3, 6, 10, 15, 25};
enum { SLIDES = MAP_RATE_DISTANCES * MAP_RATE_DIRECTIONS, ITEMS = SLIDES + 2 * MAP_RATE_TURNS, LEAST_POINTS = 50 };

/* The levels of the map that the localiser uses. */
static void set_levels(struct ndt_align_params *params, const struct ndt_map *map)
{
    params->level_count = ndt_map_filled_levels(map);
    for (size_t i = 0; i < params->level_count; i++)
        params->levels[i] =
            (struct ndt_align_level){map->levels[i].leaf_m, i + 1 < params->level_count ? NDT_DIRECT7 : NDT_RADIUS};
}

enum ndt_status map_rater_open(struct map_rater *rater, struct ndt_map *map, const struct map_patches *patches,
                               double range_m, struct ndt_error *err)
{
    struct ndt_backend_config config;
    *rater = (struct map_rater){.backend = NULL};
    ndt_cloud_init(&rater->scan);
    ndt_align_params_default(&rater->params);
    set_levels(&rater->params, map);
    ndt_backend_config_default(&config);
    enum ndt_status status = map_scanner_open(&rater->scanner, patches, range_m, err);
    if (status == NDT_OK)
        status = ndt_backend_open(&rater->backend, "cpu", &config, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&rater->aligner, rater->backend, err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(rater->aligner, map, err);
    if (status != NDT_OK)
        map_rater_close(rater);
    return status;
}

void map_rater_close(struct map_rater *rater)
{
    ndt_aligner_destroy(rater->aligner);
    if (rater->backend)
        rater->backend->ops->close(rater->backend);
    ndt_cloud_free(&rater->scan);
    map_scanner_close(&rater->scanner);
    *rater = (struct map_rater){.backend = NULL};
}

/* ---- the place itself ---- */

static void set_direction(struct map_rating *out, double x, double y, double z)
{
    const double length = sqrt(x * x + y * y + z * z);
    out->direction_deg = fmod(atan2(y, x) * DEG + 360, 180);
    out->is_vertical = length > 0 ? fabs(z) / length : 0;
}

/* A direction that is not determined has no finite covariance, or one that says so. */
static void rate_directions(const struct ndt_align_result *result, struct map_rating *out)
{
    double ratio[6], axes[36], upper[6], values[3], V[9];
    const double *c = result->covariance;
    ndt_observation_directions(&result->observation, ratio, axes);
    out->condition = ratio[0];
    out->weak_count = result->weak_count;
    out->deviation_m = INFINITY;
    if (result->weak_count > 0)
        set_direction(out, result->weak_axes[0][0], result->weak_axes[0][1], result->weak_axes[0][2]);
    if (!result->has_covariance)
        return;
    for (int i = 0, n = 0; i < 3; i++)
        for (int k = i; k < 3; k++)
            upper[n++] = c[6 * i + k];
    ndt_eigen_symmetric(3, upper, values, V);
    if (!(values[2] < MOST_M * MOST_M))
        return;
    out->deviation_m = sqrt(fmax(values[2], 0));
    set_direction(out, V[2], V[5], V[8]);
}

/* ---- from around ---- */

static int is_back(const struct ndt_align_result *result, const struct ndt_pose *goal)
{
    return ndt_pose_distance_m(&result->T_map_sensor, goal) < BACK_M &&
           ndt_pose_angle_rad(&result->T_map_sensor, goal) * DEG < BACK_DEG;
}

static void set_guesses(struct ndt_align_item *items, const struct ndt_cloud *scan, const struct ndt_pose *goal)
{
    for (int i = 0; i < ITEMS; i++)
        items[i] = (struct ndt_align_item){.scan = scan, .T_map_guess = *goal};
    for (int i = 0; i < SLIDES; i++) {
        const double angle_rad = 2 * M_PI * (i % MAP_RATE_DIRECTIONS) / MAP_RATE_DIRECTIONS;
        items[i].T_map_guess.t_m[0] += distances_m[i / MAP_RATE_DIRECTIONS] * cos(angle_rad);
        items[i].T_map_guess.t_m[1] += distances_m[i / MAP_RATE_DIRECTIONS] * sin(angle_rad);
    }
    for (int i = 0; i < 2 * MAP_RATE_TURNS; i++) {
        const double turn_rad = (i % 2 ? -1 : 1) * turns_deg[i / 2] / DEG;
        const struct ndt_pose turn = ndt_pose_from_rpy((double[]){0, 0, 0}, (double[]){0, 0, turn_rad});
        items[SLIDES + i].T_map_guess = ndt_pose_compose(goal, &turn);
    }
}

/* The largest offset up to which all `per` results of each lead back. */
static double reach(const struct ndt_align_result *results, const double *offsets, int count, int per,
                    const struct ndt_pose *goal)
{
    double reached = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < per; k++)
            if (!is_back(&results[i * per + k], goal))
                return reached;
        reached = offsets[i];
    }
    return reached;
}

enum ndt_status map_rate(struct map_rater *rater, const struct ndt_pose *T_map_sensor, uint64_t seed,
                         struct map_rating *out, struct ndt_error *err)
{
    struct ndt_align_result result, results[ITEMS];
    struct ndt_align_item items[ITEMS];
    *out = (struct map_rating){.deviation_m = INFINITY};
    enum ndt_status status = map_scanner_scan(&rater->scanner, T_map_sensor, seed, &rater->scan, err);
    out->points = rater->scan.count;
    if (status != NDT_OK || rater->scan.count < LEAST_POINTS)
        return status;
    rater->params.wants_observation = 1;
    status = ndt_align(rater->aligner, &rater->params, &rater->scan, T_map_sensor, &result, err);
    if (status != NDT_OK || !result.has_observation ||
        ndt_pose_distance_m(&result.T_map_sensor, T_map_sensor) > AWAY_M)
        return status;
    out->is_aligned = 1;
    rate_directions(&result, out);
    rater->params.wants_observation = 0;
    set_guesses(items, &rater->scan, &result.T_map_sensor);
    status = ndt_align_batch(rater->aligner, &rater->params, items, ITEMS, results, err);
    if (status != NDT_OK)
        return status;
    out->basin_m = reach(results, distances_m, MAP_RATE_DISTANCES, MAP_RATE_DIRECTIONS, &result.T_map_sensor);
    out->basin_deg = reach(results + SLIDES, turns_deg, MAP_RATE_TURNS, 2, &result.T_map_sensor);
    return NDT_OK;
}
