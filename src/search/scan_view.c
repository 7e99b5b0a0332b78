/* View of a scan for the search: levelled, without ground, with few points. */
#include "scan_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns from which one point of each band is taken: 1 m wide, and finer where these leave few points, as in a
 * small room. A grid of them is 128 m wide. */
enum { COLUMNS = 128, FINEST = 2, SECTORS = 32 };
/* Points below which the voxels of the filter are halved. */
enum { FEW_POINTS = 300 };
/* Height above the ground from which points count as above it: at least 0.3 m, and more with distance. Without
 * ground heights are guesses. */
static const double ABOVE_M = 0.3, ABOVE_SLOPE = 0.02, GUESS_M = 0.3;
/* Difference from the known height above the ground at which a plane is a table or a ceiling. */
static const double OTHER_GROUND_M = 0.7;
static const double PI = 3.14159265358979323846;

enum ndt_status ndt_scan_view_open(struct ndt_scan_view *view, struct ndt_error *err)
{
    memset(view, 0, sizeof(*view));
    view->seen = malloc((size_t)(COLUMNS << FINEST) * (COLUMNS << FINEST));
    if (!view->seen)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory to search with a scan");
    return ndt_preprocessor_create(&view->filter, err);
}

void ndt_scan_view_close(struct ndt_scan_view *view)
{
    ndt_preprocessor_destroy(view->filter);
    for (int i = 0; i < NDT_SEARCH_HEIGHTS; i++)
        ndt_cloud_free(&view->height_views[i].align);
    ndt_cloud_free(&view->final);
    free(view->seen);
    free(view->level_m[0]);
    free(view->keys);
    memset(view, 0, sizeof(*view));
}

static enum ndt_status reserve(struct ndt_scan_view *view, size_t count, struct ndt_error *err)
{
    if (count <= view->capacity)
        return NDT_OK;
    free(view->level_m[0]);
    free(view->keys);
    view->capacity = 0;
    view->level_m[0] = malloc(3 * count * sizeof(float));
    view->keys = malloc(count * sizeof(*view->keys));
    if (!view->level_m[0] || !view->keys)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory to search with a scan of %zu points", count);
    view->level_m[1] = view->level_m[0] + count;
    view->level_m[2] = view->level_m[1] + count;
    view->capacity = count;
    return NDT_OK;
}

/* The shortest rotation from `up`, within max_tilt_deg of z, to z. */
static void level_rotation(const double up[3], double R[9])
{
    const double c = up[2];
    const double x = up[0], y = up[1], f = 1 / (1 + c);
    const double turned[9] = {1 - x * x * f, -x * y * f, -x, -x * y * f, 1 - y * y * f, -y, x, y, c};
    memcpy(R, turned, sizeof(turned));
}

static void level_points(struct ndt_scan_view *view)
{
    const struct ndt_cloud *points = view->points;
    const double *R = view->R_level;
    view->reach_m = 0;
    for (size_t i = 0; i < points->count; i++) {
        const double p[3] = {(double)points->x_m[i], (double)points->y_m[i], (double)points->z_m[i]};
        for (int k = 0; k < 3; k++)
            view->level_m[k][i] = (float)(R[3 * k] * p[0] + R[3 * k + 1] * p[1] + R[3 * k + 2] * p[2]);
        view->reach_m = fmax(view->reach_m, hypot((double)view->level_m[0][i], (double)view->level_m[1][i]));
    }
}

/* ---- one height ---- */

/* The bits of the bands within slack_m of a height. */
static uint8_t mask_of(double height_m, double slack_m)
{
    unsigned mask = 0;
    for (int b = 0; b < NDT_FIELD_BANDS; b++) {
        const double top_m = b + 1 < NDT_FIELD_BANDS ? ndt_field_band_edges_m[b + 1] : INFINITY;
        if (height_m + slack_m >= ndt_field_band_edges_m[b] && height_m - slack_m < top_m)
            mask |= 1u << b;
    }
    return (uint8_t)mask;
}

static int is_above(const struct ndt_scan_view *view, size_t i, double height_m)
{
    const double range_m = hypot((double)view->level_m[0][i], (double)view->level_m[1][i]);
    return (double)view->level_m[2][i] + height_m > ABOVE_M + ABOVE_SLOPE * range_m;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Keeps the first point of each column, 1 / 2^finer metres wide, and band. Keys, with the azimuth before the
 * number, are sorted. */
static size_t thin(struct ndt_scan_view *view, const struct ndt_height_view *height_view, int finer)
{
    static const int BANDS = NDT_FIELD_BANDS;
    const int side = COLUMNS << finer;
    const double per_m = 1 << finer;
    size_t count = 0;
    memset(view->seen, 0, (size_t)side * (size_t)side);
    for (size_t i = 0; i < view->points->count; i++) {
        const double x_m = (double)view->level_m[0][i], y_m = (double)view->level_m[1][i];
        if (!is_above(view, i, height_view->height_m))
            continue;
        const int column = ((int)floor(per_m * y_m) & (side - 1)) * side + ((int)floor(per_m * x_m) & (side - 1));
        int band = BANDS - 1;
        while (band > 0 && (double)view->level_m[2][i] + height_view->height_m < ndt_field_band_edges_m[band])
            band--;
        if (view->seen[column] >> band & 1)
            continue;
        view->seen[column] |= (uint8_t)(1 << band);
        const uint64_t turn = (uint64_t)((atan2(y_m, x_m) + PI) * 1e5);
        view->keys[count++] = turn << 32 | i;
    }
    qsort(view->keys, count, sizeof(*view->keys), by_value);
    return count;
}

/* Index of element k of n that are taken evenly from `count`. */
static size_t pick(size_t k, size_t n, size_t count)
{
    return (2 * k + 1) * count / (2 * n);
}

/* Takes points evenly by azimuth, every second one first, so that the first half is even, too. */
static void set_banded(const struct ndt_scan_view *view, const struct ndt_height_view *height_view, size_t count,
                       size_t most, struct ndt_banded_points *banded)
{
    banded->count = (uint32_t)(count < most ? count : most);
    for (uint32_t k = 0; k < banded->count; k++) {
        const uint32_t half = (banded->count + 1) / 2, place = k < half ? 2 * k : 2 * (k - half) + 1;
        const size_t i = view->keys[pick(place, banded->count, count)] & UINT32_MAX;
        banded->x_m[k] = view->level_m[0][i];
        banded->y_m[k] = view->level_m[1][i];
        banded->mask[k] =
            mask_of((double)view->level_m[2][i] + height_view->height_m, view->has_ground ? 0 : GUESS_M);
    }
}

static void append_point(struct ndt_cloud *to, const struct ndt_cloud *from, size_t i)
{
    to->x_m[to->count] = from->x_m[i];
    to->y_m[to->count] = from->y_m[i];
    to->z_m[to->count++] = from->z_m[i];
}

/* Takes points above the ground, evenly by azimuth, then points of the ground, evenly. */
static enum ndt_status set_align(const struct ndt_scan_view *view, const struct ndt_search_params *params,
                                 size_t thinned, struct ndt_height_view *height_view, struct ndt_error *err)
{
    const struct ndt_cloud *points = view->points;
    size_t ground = 0, number = 0;
    for (size_t i = 0; i < points->count; i++)
        ground += !is_above(view, i, height_view->height_m);
    const size_t above = thinned < params->align_points ? thinned : params->align_points;
    const size_t low = ground < params->align_ground_points ? ground : params->align_ground_points;
    height_view->above = (uint32_t)(points->count - ground);
    height_view->align.count = 0;
    enum ndt_status status = ndt_cloud_reserve(&height_view->align, above + low, 0, err);
    if (status != NDT_OK)
        return status;
    for (size_t k = 0; k < above; k++)
        append_point(&height_view->align, points, view->keys[pick(k, above, thinned)] & UINT32_MAX);
    height_view->align_above = above;
    for (size_t i = 0, k = 0; i < points->count && k < low; i++)
        if (!is_above(view, i, height_view->height_m) && number++ == pick(k, low, ground)) {
            append_point(&height_view->align, points, i);
            k++;
        }
    return NDT_OK;
}

static enum ndt_status set_height_view(struct ndt_scan_view *view, const struct ndt_search_params *params,
                                       struct ndt_height_view *height_view, struct ndt_error *err)
{
    size_t count = thin(view, height_view, 0);
    for (int finer = 1; finer <= FINEST && count < params->dense_points; finer++)
        count = thin(view, height_view, finer);
    set_banded(view, height_view, count, params->dense_points, &height_view->dense);
    set_banded(view, height_view, count, params->refine_points, &height_view->refine);
    return set_align(view, params, count, height_view, err);
}

/* ---- the scan ---- */

static enum ndt_status filter_points(struct ndt_scan_view *view, const struct ndt_search_params *params,
                                     const struct ndt_cloud *scan, struct ndt_error *err)
{
    struct ndt_preprocess_params filter;
    struct ndt_sweep sweep;
    ndt_preprocess_params_default(&filter);
    filter.min_range_m = params->min_range_m;
    filter.max_range_m = params->max_range_m;
    filter.voxel_m = params->voxel_m;
    filter.sample_count = 0;
    filter.deskew = NDT_DESKEW_OFF;
    enum ndt_status status = ndt_preprocess_sweep(&filter, scan, &sweep, err);
    if (status == NDT_OK)
        status = ndt_preprocess(view->filter, &filter, scan, &sweep, 0, NULL, &view->points, err);
    if (status == NDT_OK && view->points->count < FEW_POINTS) {
        filter.voxel_m *= 0.5;
        status = ndt_preprocess(view->filter, &filter, scan, &sweep, 0, NULL, &view->points, err);
    }
    return status == NDT_OK ? reserve(view, view->points->count + 1, err) : status;
}

static enum ndt_status set_final(struct ndt_scan_view *view, size_t most, struct ndt_error *err)
{
    const size_t all = view->points->count, count = all < most ? all : most;
    view->final.count = 0;
    const enum ndt_status status = ndt_cloud_reserve(&view->final, count, 0, err);
    for (size_t k = 0; status == NDT_OK && k < count; k++)
        append_point(&view->final, view->points, pick(k, count, all));
    return status;
}

static void find_ground(struct ndt_scan_view *view, const struct ndt_search_params *params, double above_ground_m)
{
    const double z[3] = {0, 0, 1};
    struct ndt_ground_plane plane;
    memcpy(view->up, z, sizeof(view->up));
    view->has_ground = ndt_scan_ground(view->points, params, &plane) &&
                       (above_ground_m == 0 || fabs(plane.height_m - above_ground_m) <= OTHER_GROUND_M);
    view->ground_ratio = view->has_ground ? plane.ratio : 0;
    if (view->has_ground) {
        memcpy(view->up, plane.normal, sizeof(view->up));
        view->sight_count = 1;
        view->height_views[0].height_m = plane.height_m;
    } else if (above_ground_m > 0) {
        view->sight_count = 1;
        view->height_views[0].height_m = above_ground_m;
    } else {
        view->sight_count = params->height_count;
        for (uint32_t i = 0; i < params->height_count; i++)
            view->height_views[i].height_m = params->heights_m[i];
    }
    level_rotation(view->up, view->R_level);
}

static double count_sectors(const struct ndt_scan_view *view)
{
    uint32_t seen = 0;
    for (size_t i = 0; i < view->points->count; i++)
        if (is_above(view, i, view->height_views[0].height_m)) {
            const double turn = (atan2((double)view->level_m[1][i], (double)view->level_m[0][i]) + PI) / (2 * PI);
            seen |= 1u << ((int)(turn * SECTORS) & (SECTORS - 1));
        }
    return (double)__builtin_popcount(seen) / SECTORS;
}

enum ndt_status ndt_scan_view_set(struct ndt_scan_view *view, const struct ndt_search_params *params,
                                  double above_ground_m, const struct ndt_cloud *scan, struct ndt_error *err)
{
    enum ndt_status status = filter_points(view, params, scan, err);
    if (status != NDT_OK)
        return status;
    find_ground(view, params, above_ground_m);
    level_points(view);
    for (uint32_t i = 0; status == NDT_OK && i < view->sight_count; i++)
        status = set_height_view(view, params, &view->height_views[i], err);
    if (status == NDT_OK)
        status = set_final(view, params->final_points, err);
    view->sectors = count_sectors(view);
    return status;
}
