#include "map_keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/quantile.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"

/* A map is read twice: for its bounds and the range of its intensities, then for its keys. */
enum { SAMPLES = 65536 };
/* Points farther from the bulk than this times its extent, plus a distance, are strays: one point at (0, 0, 0)
 * among UTM coordinates would leave no resolution for the others. */
static const double STRAY_EXTENTS = 2, STRAY_M = 100, BULK = 0.001;
static const double FARTHEST_M = 1e9; /* beyond any place on Earth */
static const double DARK = 0.02, BRIGHT = 0.98;

/* The input, read file by file; a single cloud is kept between the two passes. */
struct source {
    struct ndt_tile_set set;
    const char *path; /* path of a single cloud; NULL: tiles */
    struct ndt_cloud cloud;
    struct ndt_progress *progress;
};

struct survey {
    double *values[4]; /* values of a sample: x y z intensity, map frame */
    size_t count, capacity, intensities;
    size_t files;
    double min_m[3], max_m[3];
    uint64_t points;
    int has_intensity;
};

/* ---- files ---- */

/* The means of the finest level. */
static enum ndt_status read_voxels(struct source *source, struct ndt_error *err)
{
    struct ndt_map *map;
    enum ndt_status status = ndt_map_open_with(&map, source->path, source->progress, err);
    if (status != NDT_OK)
        return status;
    const struct ndt_map_level *level = &map->levels[map->level_count - 1];
    struct ndt_cloud *cloud = &source->cloud;
    status = ndt_cloud_reserve(cloud, level->voxel_count, 0, err);
    if (status == NDT_OK) {
        memcpy(cloud->origin_m, map->origin_m, sizeof(cloud->origin_m));
        cloud->count = level->voxel_count - 1;
        for (size_t i = 0; i < cloud->count; i++) {
            const struct ndt_voxel *voxel = &level->voxels[i + 1];
            cloud->x_m[i] = (float)(voxel->cell[0] * level->leaf_m + (double)voxel->mean_m[0]);
            cloud->y_m[i] = (float)(voxel->cell[1] * level->leaf_m + (double)voxel->mean_m[1]);
            cloud->z_m[i] = (float)(voxel->cell[2] * level->leaf_m + (double)voxel->mean_m[2]);
        }
    }
    ndt_map_release(map);
    return status;
}

static enum ndt_status open_source(struct source *source, const char *path, struct ndt_progress *progress,
                                   struct ndt_error *err)
{
    *source = (struct source){.progress = progress};
    ndt_cloud_init(&source->cloud);
    enum ndt_status status = ndt_map_path_check(path, err);
    if (status != NDT_OK)
        return status;
    if (ndt_map_is_tile_set(path)) {
        status = ndt_tile_set_open(&source->set, path, err);
        ndt_progress_set(progress, NDT_PROGRESS_ALL_TILES, 2 * source->set.count);
        return status;
    }
    source->path = path;
    return ndt_map_is_compiled(path) ? read_voxels(source, err)
                                     : ndt_cloud_read_with(&source->cloud, path, progress, err);
}

static void close_source(struct source *source)
{
    ndt_cloud_free(&source->cloud);
    ndt_tile_set_close(&source->set);
}

/* Calls visit for the cloud of every file. */
static enum ndt_status visit_clouds(struct source *source, void *context,
                                    enum ndt_status (*visit)(void *, const struct ndt_cloud *, struct ndt_error *),
                                    struct ndt_error *err)
{
    if (source->path)
        return visit(context, &source->cloud, err);
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < source->set.count; i++) {
        const struct ndt_tile *tile = &source->set.tiles[i];
        status = ndt_tile_read(&source->cloud, tile->path, tile->change, source->progress, err);
        if (status == NDT_OK)
            status = visit(context, &source->cloud, err);
    }
    return status;
}

static int point_of(const struct ndt_cloud *cloud, size_t i, double p_m[3])
{
    p_m[0] = cloud->origin_m[0] + (double)cloud->x_m[i];
    p_m[1] = cloud->origin_m[1] + (double)cloud->y_m[i];
    p_m[2] = cloud->origin_m[2] + (double)cloud->z_m[i];
    return fabs(p_m[0]) < FARTHEST_M && fabs(p_m[1]) < FARTHEST_M && fabs(p_m[2]) < FARTHEST_M; /* not NaN either */
}

/* ---- first pass ---- */

static enum ndt_status grow_survey(struct survey *survey, size_t more, struct ndt_error *err)
{
    if (survey->count + more <= survey->capacity)
        return NDT_OK;
    const size_t capacity = 2 * survey->capacity + more;
    for (int k = 0; k < 4; k++) {
        double *values = realloc(survey->values[k], capacity * sizeof(*values));
        if (!values)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a sample of %zu points", capacity);
        survey->values[k] = values;
    }
    survey->capacity = capacity;
    return NDT_OK;
}

static enum ndt_status survey_cloud(void *context, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct survey *survey = context;
    const size_t wanted = SAMPLES / survey->files + 1, stride = cloud->count / wanted + 1;
    enum ndt_status status = grow_survey(survey, cloud->count / stride + 1, err);
    if (status != NDT_OK)
        return status;
    const float *intensity = cloud->fields & NDT_CLOUD_INTENSITY ? cloud->intensity : NULL;
    survey->has_intensity |= intensity != NULL;
    for (size_t i = 0; i < cloud->count; i++) {
        double p_m[3];
        if (!point_of(cloud, i, p_m))
            continue;
        for (int k = 0; k < 3; k++) {
            survey->min_m[k] = fmin(survey->min_m[k], p_m[k]);
            survey->max_m[k] = fmax(survey->max_m[k], p_m[k]);
        }
        /* The first finite point, too, so that there is no map without a sample. */
        if (i % stride == 0 || survey->points == 0) {
            for (int k = 0; k < 3; k++)
                survey->values[k][survey->count] = p_m[k];
            survey->count++;
            if (intensity && isfinite(intensity[i]))
                survey->values[3][survey->intensities++] = (double)intensity[i];
            if (survey->count == survey->capacity && (status = grow_survey(survey, 1, err)) != NDT_OK)
                return status;
        }
        survey->points++;
    }
    return NDT_OK;
}

/* Takes strays off the box, and lays the cube around it. A map is flat: it lies on the bottom of the cube, since
 * the planes that divide the cube would cut it into twice as many nodes in the middle. */
static void choose_cube(struct web_keys *out, struct survey *survey)
{
    double half_m = 0;
    for (int k = 0; k < 3; k++) {
        const double low_m = ndt_quantile(survey->values[k], survey->count, BULK);
        const double high_m = ndt_quantile_sorted(survey->values[k], survey->count, 1 - BULK);
        const double reach_m = STRAY_EXTENTS * (high_m - low_m) + STRAY_M;
        const double min_m = fmax(survey->min_m[k], low_m - reach_m);
        const double max_m = fmin(survey->max_m[k], high_m + reach_m);
        out->origin_m[k] = k == 2 ? floor(min_m) : rint(min_m + (max_m - min_m) / 2);
        out->min_m[k] = min_m - out->origin_m[k];
        out->max_m[k] = max_m - out->origin_m[k];
        half_m = fmax(half_m, k == 2 ? out->max_m[k] / 2 : fmax(-out->min_m[k], out->max_m[k]));
    }
    out->size_m = 2 * floor(half_m + 1);
    out->corner_m[0] = out->corner_m[1] = -out->size_m / 2;
    out->corner_m[2] = 0;
}

/* ---- second pass ---- */

struct filling {
    struct web_keys *out;
    double dark, scale; /* range of intensities */
};

static enum ndt_status fill_cloud(void *context, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    const struct filling *filling = context;
    struct web_keys *out = filling->out;
    const float *intensity = cloud->fields & NDT_CLOUD_INTENSITY ? cloud->intensity : NULL;
    const double cells = (double)(1u << WEB_KEY_BITS), per_m = cells / out->size_m;
    (void)err;
    for (size_t i = 0; i < cloud->count; i++) {
        double p_m[3];
        uint32_t cell[3];
        int inside = point_of(cloud, i, p_m) && out->count < out->capacity;
        for (int k = 0; k < 3 && inside; k++) {
            const double relative_m = p_m[k] - out->origin_m[k];
            const double place = floor((relative_m - out->corner_m[k]) * per_m);
            inside = relative_m >= out->min_m[k] && relative_m <= out->max_m[k];
            cell[k] = (uint32_t)fmin(fmax(place, 0), cells - 1);
        }
        if (!inside) {
            out->left_out++;
            continue;
        }
        const double shade = intensity ? ((double)intensity[i] - filling->dark) * filling->scale : 0;
        out->keys[out->count] = web_key_of(cell);
        out->shades[out->count++] = (uint8_t)(shade > 0 ? fmin(shade + 0.5, 255) : 0);
    }
    return NDT_OK;
}

static enum ndt_status allocate_keys(struct web_keys *out, uint64_t points, struct ndt_error *err)
{
    if (points > UINT32_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "%llu points are more than %u", (unsigned long long)points, UINT32_MAX);
    out->capacity = (size_t)points;
    out->keys = malloc((out->capacity + 1) * sizeof(*out->keys));
    out->shades = malloc(out->capacity + 1);
    return out->keys && out->shades
               ? NDT_OK
               : ndt_fail(err, NDT_ERR_MEMORY, "no memory for the keys of %zu points", out->capacity);
}

static enum ndt_status fill_keys(struct web_keys *out, struct source *source, struct survey *survey,
                                 struct ndt_error *err)
{
    struct filling filling = {out, 0, 0};
    enum ndt_status status = allocate_keys(out, survey->points, err);
    if (status != NDT_OK || survey->points == 0)
        return status;
    choose_cube(out, survey);
    filling.dark = ndt_quantile(survey->values[3], survey->intensities, DARK);
    const double range = ndt_quantile_sorted(survey->values[3], survey->intensities, BRIGHT) - filling.dark;
    out->has_intensity = survey->has_intensity && range > 0;
    filling.scale = out->has_intensity ? 255 / range : 0;
    return visit_clouds(source, &filling, fill_cloud, err);
}

enum ndt_status web_keys_read(struct web_keys *out, const char *path, struct ndt_progress *progress,
                              struct ndt_error *err)
{
    struct source source;
    struct survey survey = {.min_m = {INFINITY, INFINITY, INFINITY}, .max_m = {-INFINITY, -INFINITY, -INFINITY}};
    *out = (struct web_keys){.size_m = 1, .is_voxels = ndt_map_is_compiled(path)};
    enum ndt_status status = open_source(&source, path, progress, err);
    survey.files = source.path || source.set.count == 0 ? 1 : source.set.count;
    if (status == NDT_OK)
        status = visit_clouds(&source, &survey, survey_cloud, err);
    if (status == NDT_OK)
        status = fill_keys(out, &source, &survey, err);
    for (int k = 0; k < 4; k++)
        free(survey.values[k]);
    close_source(&source);
    if (status != NDT_OK)
        web_keys_free(out);
    return status;
}

void web_keys_free(struct web_keys *keys)
{
    free(keys->keys);
    free(keys->shades);
    *keys = (struct web_keys){.size_m = 1};
}
