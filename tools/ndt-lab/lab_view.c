#include "lab_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"

enum { PASSES = 3, EVICT_BYTES = 48 << 20 };

static void place(struct ndt_wide_job *job, const struct ndt_map_level *level, enum ndt_neighbours neighbours,
                  const struct ndt_cloud *cloud, const struct ndt_pose *pose, const double origin_m[3])
{
    double R[9];
    ndt_pose_rotation(pose, R);
    *job = (struct ndt_wide_job){.level = level,
                                 .neighbours = neighbours,
                                 .count = cloud->count,
                                 .x_m = cloud->x_m,
                                 .y_m = cloud->y_m,
                                 .z_m = cloud->z_m};
    for (int i = 0; i < 9; i++)
        job->R[i] = (float)R[i];
    for (int i = 0; i < 3; i++) {
        const double t_m = pose->t_m[i] - origin_m[i], cell = floor(t_m / level->leaf_m);
        job->near_cell[i] = (int32_t)cell;
        job->t_m[i] = (float)(t_m - cell * level->leaf_m);
    }
}

enum ndt_status lab_view_of_scene(struct lab_view *view, const struct lab_scene *scene, double leaf_m,
                                  enum ndt_neighbours neighbours, struct ndt_error *err)
{
    const int level = ndt_map_find_level(scene->map, leaf_m);
    enum ndt_status status = NDT_OK;
    memset(view, 0, sizeof(*view));
    if (level < 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the map has no level of %g m", leaf_m);
    for (size_t i = 0; status == NDT_OK && i < scene->scans.count && i < LAB_VIEW_SCANS; i++) {
        status = ndt_cloud_copy(&view->clouds[i], &scene->scans.scans[i].cloud, err);
        view->count++;
        place(&view->jobs[i].wide, &scene->map->levels[level], neighbours, &view->clouds[i],
              &scene->scans.scans[i].T_map_sensor, scene->map->origin_m);
    }
    return status;
}

enum ndt_status lab_view_of_world(struct lab_view *view, const struct ndt_map *map, double side_m, size_t points,
                                  double radius_m, uint64_t seed, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    memset(view, 0, sizeof(*view));
    const double reach_m = side_m / 2 > radius_m ? side_m / 2 - radius_m : 0;
    for (size_t i = 0; status == NDT_OK && i < LAB_VIEW_SCANS; i++) {
        const double travelled_m = reach_m * (2.0 * (double)i / (LAB_VIEW_SCANS - 1) - 1),
                     at_m[2] = {travelled_m, 0.7 * travelled_m};
        const struct ndt_pose pose = lab_world_pose(at_m);
        status = lab_world_scan(&view->clouds[i], points, at_m, radius_m, seed + i, err);
        view->count++;
        place(&view->jobs[i].wide, &map->levels[0], NDT_RADIUS, &view->clouds[i], &pose, map->origin_m);
    }
    return status;
}

/* The voxel of each cell of the index: the first in its list where the cell itself has one. */
static void fill_own(uint32_t *own, const struct ndt_map_level *level)
{
    for (size_t i = 0; i < (size_t)level->brick_count * 512; i++) {
        const struct ndt_cell_ref ref = level->cells[i];
        own[i] = ref.n1 ? level->lists[(size_t)ref.offset * 8 + 3u * ref.padded] : 0;
    }
}

enum ndt_status lab_view_prepare(struct lab_view *view, struct ndt_error *err)
{
    const struct ndt_map_level *level = view->jobs[0].wide.level;
    if (level->hashed)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "the map is too wide for this experiment");
    view->columns = malloc(12 * (size_t)level->voxel_count * sizeof(float));
    view->own = malloc((size_t)level->brick_count * 512 * sizeof(uint32_t));
    if (!view->columns || !view->own)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a second copy of the voxels");
    fill_own(view->own, level);
    for (size_t w = 0; w < 12; w++) {
        for (size_t v = 0; v < level->voxel_count; v++)
            memcpy(&view->columns[w * level->voxel_count + v], (const char *)&level->voxels[v] + 4 * w, 4);
        for (size_t i = 0; i < view->count; i++)
            view->jobs[i].columns[w] = view->columns + w * level->voxel_count;
    }
    for (size_t i = 0; i < view->count; i++)
        view->jobs[i].own = view->own;
    return NDT_OK;
}

void lab_view_close(struct lab_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        ndt_cloud_free(&view->clouds[i]);
    free(view->columns);
    free(view->own);
    memset(view, 0, sizeof(*view));
}

static size_t chunks_of(const struct lab_job *job)
{
    return (job->wide.count + NDT_CHUNK_POINTS - 1) / NDT_CHUNK_POINTS;
}

static void add(double *to, const double *sums)
{
    for (int i = 0; i < NDT_SUM_COUNT; i++)
        to[i] += sums[i];
}

void lab_view_sums(const struct lab_view *view, size_t i, lab_chunk_fn *chunk, double *sums)
{
    double one[NDT_SUM_COUNT];
    memset(sums, 0, NDT_SUM_COUNT * sizeof(*sums));
    for (size_t c = 0; c < chunks_of(&view->jobs[i]); c++) {
        chunk(&view->jobs[i].wide, c, one);
        add(sums, one);
    }
}

void lab_view_part_sums(const struct lab_view *view, size_t i, lab_part_fn *part, enum lab_kernel kernel,
                        double *sums)
{
    double one[NDT_SUM_COUNT];
    memset(sums, 0, NDT_SUM_COUNT * sizeof(*sums));
    for (size_t c = 0; c < chunks_of(&view->jobs[i]); c++) {
        part(&view->jobs[i], kernel, c, one);
        add(sums, one);
    }
}

double lab_view_time_us(const struct lab_view *view, lab_chunk_fn *chunk)
{
    double best_us = INFINITY, sums[NDT_SUM_COUNT];
    for (int pass = 0; pass < PASSES; pass++) {
        const double start_us = ndt_clock_us();
        for (size_t i = 0; i < view->count; i++)
            lab_view_sums(view, i, chunk, sums);
        best_us = fmin(best_us, (ndt_clock_us() - start_us) / (double)view->count);
    }
    return best_us;
}

static double fill_caches(void)
{
    static float other[EVICT_BYTES / sizeof(float)];
    volatile float *at = other;
    for (size_t i = 0; i < EVICT_BYTES / sizeof(float); i += 16)
        at[i] += 1;
    return (double)at[0];
}

double lab_view_cold_us(const struct lab_view *view, lab_chunk_fn *chunk)
{
    double total_us = 0, sums[NDT_SUM_COUNT];
    for (size_t i = 0; i < view->count; i++) {
        (void)fill_caches();
        const double start_us = ndt_clock_us();
        lab_view_sums(view, i, chunk, sums);
        total_us += ndt_clock_us() - start_us;
    }
    return total_us / (double)view->count;
}

double lab_view_part_us(const struct lab_view *view, lab_part_fn *part, enum lab_kernel kernel)
{
    double best_us = INFINITY, sums[NDT_SUM_COUNT];
    for (int pass = 0; pass < PASSES; pass++) {
        const double start_us = ndt_clock_us();
        for (size_t i = 0; i < view->count; i++)
            lab_view_part_sums(view, i, part, kernel, sums);
        best_us = fmin(best_us, (ndt_clock_us() - start_us) / (double)view->count);
    }
    return best_us;
}
