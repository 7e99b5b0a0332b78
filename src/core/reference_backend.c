/* The reference backend: plain double, one thread, formulas as published. The faster backends are tested against
 * it; it is tested against a reference in tests/kernels that uses no derivatives. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/backend.h"

static inline double ndt_exp_double(double x)
{
    return exp(x);
}
static inline double ndt_root_double(double x)
{
    return sqrt(x);
}
#define NDT_REAL    double
#define NDT_NAME(x) x##_double
#define NDT_DEVICE
#include "ndt/point_math.h"

struct reference_backend {
    struct ndt_backend base;
    size_t max_points;
    struct ndt_map *map;
    struct ndt_cloud scan;
    struct ndt_backend_counters counters;
};

static enum ndt_status reference_probe(int device, struct ndt_error *why)
{
    (void)device;
    (void)why;
    return NDT_OK;
}

static enum ndt_status reference_open(struct ndt_backend **out, const struct ndt_backend_config *config,
                                      struct ndt_error *err)
{
    struct reference_backend *ref = calloc(1, sizeof(*ref));
    *out = NULL;
    if (!ref)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the reference backend");
    ref->base.ops = &ndt_reference_backend;
    ref->max_points = config->max_points;
    ndt_cloud_init(&ref->scan);
    *out = &ref->base;
    return NDT_OK;
}

static void reference_close(struct ndt_backend *backend)
{
    struct reference_backend *ref = (struct reference_backend *)backend;
    if (!ref)
        return;
    ndt_map_release(ref->map);
    ndt_cloud_free(&ref->scan);
    free(ref);
}

static enum ndt_status reference_set_map(struct ndt_backend *backend, struct ndt_map *map, struct ndt_error *err)
{
    struct reference_backend *ref = (struct reference_backend *)backend;
    (void)err;
    ndt_map_retain(map);
    ndt_map_release(ref->map);
    ref->map = map;
    return NDT_OK;
}

static enum ndt_status reference_set_scan(struct ndt_backend *backend, const struct ndt_cloud *scan,
                                          struct ndt_error *err)
{
    struct reference_backend *ref = (struct reference_backend *)backend;
    if (scan->count > ref->max_points)
        return ndt_fail(err, NDT_ERR_LIMIT, "a scan of %zu points; the limit is %zu", scan->count, ref->max_points);
    return ndt_cloud_copy(&ref->scan, scan, err);
}

/* One point against its voxels; K: sums for the information, NULL: not wanted. Returns the number of pairs. */
static uint32_t sum_pairs(const struct ndt_map_level *level, const struct ndt_eval_request *request,
                          const double moved_m[3], struct ndt_point_sums_double *p, double K[6])
{
    int32_t cell[3];
    for (int i = 0; i < 3; i++) {
        const double scaled = floor(moved_m[i] / level->leaf_m);
        if (!(fabs(scaled) < 1e6))
            return 0;
        cell[i] = (int32_t)scaled;
    }
    const struct ndt_cell_ref ref = ndt_map_lookup(level, cell);
    const uint32_t *ids = level->lists + (size_t)ref.offset * 8 + 3u * ref.padded;
    const uint32_t counts[] = {ref.n27, ref.n1, ref.n7, ref.n27};
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < counts[request->neighbours]; i++) {
        const struct ndt_voxel *v = &level->voxels[ids[i]];
        double q[3], B[6];
        for (int k = 0; k < 3; k++)
            q[k] = moved_m[k] - (v->cell[k] * level->leaf_m + v->mean_m[k]);
        if (request->neighbours == NDT_RADIUS && ndt_dot_double(q, q) > level->leaf_m * level->leaf_m)
            continue;
        for (int k = 0; k < 6; k++)
            B[k] = v->icov[k];
        const double e = ndt_add_pair_double(p, q, B, level->d1 * level->d2, level->d2);
        if (K)
            ndt_add_normal_double(K, B, -level->d1 * level->d2 * e);
        pairs++;
    }
    return pairs;
}

/* information: the same struct that holds `out`, NULL: not wanted. */
static void add_scan(const struct reference_backend *ref, const struct ndt_eval_request *request,
                     struct ndt_eval *out, struct ndt_information *information)
{
    const struct ndt_map_level *level = &ref->map->levels[request->level];
    const double *p = request->p;
    const struct ndt_angles_double angles = {sin(p[3]), cos(p[3]), sin(p[4]), cos(p[4]), sin(p[5]), cos(p[5])};
    struct ndt_tables_double tables;
    ndt_set_tables_double(&tables, &angles);
    for (size_t i = 0; i < ref->scan.count; i++) {
        const double x[3] = {ref->scan.x_m[i], ref->scan.y_m[i], ref->scan.z_m[i]};
        double moved_m[3];
        for (int k = 0; k < 3; k++)
            moved_m[k] = ndt_dot_double(&tables.R[3 * k], x) + p[k];
        struct ndt_point_sums_double sums = {0};
        double K[6] = {0};
        const uint32_t pairs = sum_pairs(level, request, moved_m, &sums, information ? K : NULL);
        if (pairs == 0)
            continue;
        out->score += -level->d1 * sums.score;
        out->nearest_score += -level->d1 * sums.best;
        out->matched += 1;
        out->pairs += pairs;
        ndt_add_point_double(&tables, x, &sums, out->gradient, out->hessian);
        const double time_s = ref->scan.time_s && isfinite(ref->scan.time_s[i]) ? ref->scan.time_s[i] : 0;
        if (information)
            ndt_add_information_double(&tables, x, time_s, sums.A, K, information->time_gradient,
                                       information->information);
    }
}

static enum ndt_status evaluate(struct reference_backend *ref, const struct ndt_eval_request *request,
                                struct ndt_eval *out, struct ndt_information *information, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    if (!ref->map || request->level < 0 || (size_t)request->level >= ref->map->level_count)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "level %d of a map that has %zu", request->level,
                        ref->map ? ref->map->level_count : 0);
    for (int i = 0; i < 6; i++)
        if (!isfinite(request->p[i]))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the pose to evaluate at is not finite");
    add_scan(ref, request, out, information);
    ref->counters.evaluations++;
    ref->counters.kernel_us += ndt_clock_us() - start_us;
    return NDT_OK;
}

static enum ndt_status reference_eval(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                      struct ndt_eval *out, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    return evaluate((struct reference_backend *)backend, request, out, NULL, err);
}

static enum ndt_status reference_inform(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                        struct ndt_information *out, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    return evaluate((struct reference_backend *)backend, request, &out->eval, out, err);
}

static enum ndt_status reference_score_poses(struct ndt_backend *backend, const struct ndt_score_request *request,
                                             struct ndt_pose_score *out, size_t *done, struct ndt_error *err)
{
    struct reference_backend *ref = (struct reference_backend *)backend;
    *done = 0;
    if (request->scan != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "scan %u of 1", request->scan);
    ref->counters.evaluations += request->count;
    return ndt_score_poses_plain(ref->map, &ref->scan, request, out, done, err);
}

static void reference_counters(const struct ndt_backend *backend, struct ndt_backend_counters *out)
{
    *out = ((const struct reference_backend *)backend)->counters;
}

static void reference_describe(const struct ndt_backend *backend, char *text, size_t size)
{
    (void)backend;
    snprintf(text, size, "reference, double precision, 1 thread");
}

const struct ndt_backend_ops ndt_reference_backend = {
    .name = "reference",
    .about = "plain double precision, slow: the reference for the other backends",
    .probe = reference_probe,
    .open = reference_open,
    .close = reference_close,
    .set_map = reference_set_map,
    .set_scan = reference_set_scan,
    .eval = reference_eval,
    .inform = reference_inform,
    .score_poses = reference_score_poses,
    .counters = reference_counters,
    .describe = reference_describe,
};
