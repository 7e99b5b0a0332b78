/* Scores at many poses: what the backends share, and the plain C that they reproduce. */
#include "ndt/pose_scores.h"

#include <math.h>
#include <string.h>

#include "ndt/score_math.h"

/* ---- for backends ---- */

enum ndt_status ndt_score_check(const struct ndt_map *map, const struct ndt_score_request *request,
                                struct ndt_error *err)
{
    if (!map || request->level < 0 || (size_t)request->level >= map->level_count)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "level %d of a map that has %zu", request->level,
                        map ? map->level_count : 0);
    if ((int)request->neighbours < NDT_RADIUS || (int)request->neighbours > NDT_DIRECT27)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "neighbours %d to score with; there are 0 to %d",
                        (int)request->neighbours, (int)NDT_DIRECT27);
    for (size_t i = 0; i < request->count; i++) {
        const struct ndt_score_pose *pose = &request->poses[i];
        double sum = 0; /* finite times 0 is 0; everything else becomes NaN */
        for (int k = 0; k < 9; k++)
            sum += 0 * pose->R[k] + 0 * pose->t_m[k / 3];
        if (sum != 0 || isnan(sum))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "pose %zu of %zu to score at is not finite", i, request->count);
    }
    return NDT_OK;
}

struct ndt_score_scale ndt_score_scale_of(const struct ndt_map_level *level)
{
    const float log2_e = 1.44269504088896341f, d2 = (float)level->d2;
    return (struct ndt_score_scale){.leaf_m = (float)level->leaf_m,
                                    .per_leaf = (float)(1.0 / level->leaf_m),
                                    .radius_m2 = (float)(level->leaf_m * level->leaf_m),
                                    .exponent = d2 * (-0.5f * log2_e)};
}

void ndt_score_pack(const struct ndt_score_pose *pose, double leaf_m, struct ndt_packed_pose *out)
{
    for (int i = 0; i < 9; i++)
        out->R[i] = (float)pose->R[i];
    for (int i = 0; i < 3; i++) {
        const double near = fmax(-1e9, fmin(1e9, floor(pose->t_m[i] / leaf_m))); /* beyond no voxel is found */
        out->near_cell[i] = (int32_t)near;
        out->t_m[i] = (float)(pose->t_m[i] - near * leaf_m);
    }
    out->unused = 0;
}

void ndt_score_unpack(const struct ndt_score_sums *sums, const struct ndt_map_level *level,
                      struct ndt_pose_score *out)
{
    const double unit = -level->d1 / NDT_SCORE_UNITS;
    *out = (struct ndt_pose_score){.score = unit * (double)sums->score,
                                   .nearest_score = unit * (double)sums->nearest,
                                   .matched = sums->matched,
                                   .pairs = sums->pairs};
}

/* ---- plain C ---- */

/* One pose on one level. */
struct place {
    const struct ndt_map_level *level;
    enum ndt_neighbours neighbours;
    struct ndt_score_scale scale;
    struct ndt_packed_pose pose;
};

static uint32_t score_voxel(const struct place *place, const float near_m[3], uint32_t id)
{
    const struct ndt_voxel *voxel = &place->level->voxels[id];
    return ndt_score_pair(&place->pose, &place->scale, near_m, voxel->mean_m, voxel->icov, voxel->cell);
}

static void add_point(const struct place *place, const float x[3], struct ndt_score_sums *sums)
{
    float near_m[3], inside_m[3];
    int32_t cell[3];
    ndt_score_move(&place->pose, x, near_m);
    if (!ndt_score_locate(&place->pose, &place->scale, near_m, cell, inside_m))
        return;
    const struct ndt_cell_ref ref = ndt_map_lookup(place->level, cell);
    const uint32_t counts[] = {ref.n27, ref.n1, ref.n7, ref.n27};
    const uint32_t *ids = place->level->lists + (size_t)ref.offset * 8 + 3u * ref.padded;
    const float *means = (const float *)(const void *)(place->level->lists + (size_t)ref.offset * 8);
    uint32_t pairs = 0, best = 0;
    for (uint32_t i = 0; i < counts[place->neighbours]; i++) {
        if (place->neighbours == NDT_RADIUS &&
            !ndt_score_is_within(&place->scale, inside_m, means[i], means[ref.padded + i],
                                 means[2 * ref.padded + i]))
            continue;
        const uint32_t value = score_voxel(place, near_m, ids[i]);
        sums->score += value;
        best = value > best ? value : best;
        pairs++;
    }
    sums->nearest += best;
    sums->matched += pairs > 0;
    sums->pairs += pairs;
}

enum ndt_status ndt_score_poses_plain(const struct ndt_map *map, const struct ndt_cloud *scan,
                                      const struct ndt_score_request *request, struct ndt_pose_score *out,
                                      size_t *done, struct ndt_error *err)
{
    *done = 0;
    memset(out, 0, request->count * sizeof(*out));
    const enum ndt_status status = ndt_score_check(map, request, err);
    if (status != NDT_OK)
        return status;
    struct place place = {.level = &map->levels[request->level], .neighbours = request->neighbours};
    place.scale = ndt_score_scale_of(place.level);
    while (*done < request->count && (!request->goes_on || request->goes_on(request->context, *done))) {
        struct ndt_score_sums sums = {0};
        ndt_score_pack(&request->poses[*done], place.level->leaf_m, &place.pose);
        for (size_t i = 0; i < scan->count; i++)
            add_point(&place, (const float[3]){scan->x_m[i], scan->y_m[i], scan->z_m[i]}, &sums);
        ndt_score_unpack(&sums, place.level, &out[(*done)++]);
    }
    return NDT_OK;
}

void ndt_score_points_plain(const struct ndt_map *map, int level, enum ndt_neighbours neighbours,
                            const struct ndt_cloud *scan, size_t stride, const struct ndt_score_pose *pose,
                            float *values)
{
    struct place place = {.level = &map->levels[level], .neighbours = neighbours};
    place.scale = ndt_score_scale_of(place.level);
    ndt_score_pack(pose, place.level->leaf_m, &place.pose);
    for (size_t i = 0; i < scan->count; i += stride) {
        struct ndt_score_sums sums = {0};
        add_point(&place, (const float[3]){scan->x_m[i], scan->y_m[i], scan->z_m[i]}, &sums);
        *values++ = (float)sums.score / (float)NDT_SCORE_UNITS;
    }
}
