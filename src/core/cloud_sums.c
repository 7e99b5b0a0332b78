/* The sums of the points of a cloud over the cells of one size, by several threads. */
#include "map_build.h"

#include <math.h>
#include <stdatomic.h>

#include "ndt/map.h"

/* Points that a thread takes at a time: some tenths of a millisecond. */
enum { POINTS_AT_ONCE = 8192 };

/* A point as cell number and whole steps from the centre of the cell. */
struct cell_point {
    uint64_t key;
    int64_t u[3];
};

/* The edge of the cells. If its reciprocal is exact, multiplying by it is bit-identical to the division. */
struct cell_scale {
    double leaf_m, per_m;
    int reciprocal;
};

static struct cell_scale scale_of(double leaf_m)
{
    int exponent;
    return (struct cell_scale){leaf_m, 1.0 / leaf_m, frexp(leaf_m, &exponent) == 0.5};
}

/* 0 when the point is not finite or too far from the origin. */
static inline int locate(const struct cell_scale *scale, const double x_m[3], struct cell_point *out)
{
    int32_t cell[3];
    for (int i = 0; i < 3; i++) {
        const double scaled = scale->reciprocal ? x_m[i] * scale->per_m : x_m[i] / scale->leaf_m;
        if (!(fabs(scaled) < NDT_CELL_LIMIT - 2))
            return 0;
        cell[i] = (int32_t)scaled;
        cell[i] -= scaled < cell[i]; /* floor */
        out->u[i] = (int64_t)((scaled - cell[i]) * NDT_CELL_STEPS + 0.5) - NDT_CELL_STEPS / 2;
    }
    out->key = ndt_cell_key(cell);
    return 1;
}

static inline void accumulate(struct ndt_cell_sums *sums, const int64_t u[3])
{
    sums->n++;
    for (int i = 0, at = 0; i < 3; i++) {
        sums->s[i] += u[i];
        for (int j = i; j < 3; j++)
            sums->q[at++] += u[i] * u[j];
    }
}

int ndt_cloud_point(const struct ndt_cloud *cloud, size_t i, const double origin_m[3], double x_m[3])
{
    const float p[3] = {cloud->x_m[i], cloud->y_m[i], cloud->z_m[i]};
    for (int k = 0; k < 3; k++) {
        if (!isfinite(p[k]))
            return 0;
        x_m[k] = p[k] + (cloud->origin_m[k] - origin_m[k]);
    }
    return 1;
}

/* Every thread has a table of its own: the sums are integers, so it does not matter which thread gets which points.
 */
struct sum_job {
    const struct ndt_cloud *cloud;
    const double *origin_m;
    struct cell_scale scale;
    struct ndt_progress *progress;
    struct ndt_sum_table tables[NDT_BUILD_THREADS_MAX];
    uint64_t points[NDT_BUILD_THREADS_MAX]; /* finite ones */
    _Atomic size_t next;                    /* first point that no thread has taken */
    _Atomic size_t first_bad;               /* lowest index of a point out of range; SIZE_MAX: none */
    _Atomic int no_memory;
};

static void note_bad(struct sum_job *job, size_t i)
{
    size_t least = atomic_load(&job->first_bad);
    while (i < least && !atomic_compare_exchange_weak(&job->first_bad, &least, i))
        ;
}

static void sum_points(struct sum_job *job, size_t thread, size_t from, size_t to)
{
    struct ndt_sum_table *table = &job->tables[thread];
    const struct cell_scale scale = job->scale;
    struct cell_point point;
    struct ndt_cell_sums *sums = NULL;
    double x_m[3];
    uint64_t finite = 0;
    for (size_t i = from; i < to; i++) {
        if (!ndt_cloud_point(job->cloud, i, job->origin_m, x_m))
            continue;
        if (!locate(&scale, x_m, &point)) {
            note_bad(job, i);
            break;
        }
        if (!sums || sums->key != point.key) { /* points next to each other in a file mostly share a cell */
            if (table->used == table->capacity && ndt_sum_table_reserve(table, table->used + 1, NULL) != NDT_OK) {
                atomic_store(&job->no_memory, 1);
                break;
            }
            sums = ndt_sum_table_get(table, point.key);
        }
        accumulate(sums, point.u);
        finite++;
    }
    job->points[thread] += finite;
}

static void sum_thread(void *context, size_t thread)
{
    struct sum_job *job = context;
    for (;;) {
        const size_t from = atomic_fetch_add(&job->next, POINTS_AT_ONCE);
        if (from >= job->cloud->count || !ndt_progress_step(job->progress))
            return;
        const size_t left = job->cloud->count - from, count = left < POINTS_AT_ONCE ? left : POINTS_AT_ONCE;
        sum_points(job, thread, from, from + count);
        ndt_progress_add(job->progress, NDT_PROGRESS_POINTS, count);
    }
}

static enum ndt_status check_points(const struct sum_job *job, struct ndt_error *err)
{
    const size_t bad = atomic_load(&job->first_bad);
    double x_m[3];
    if (job->no_memory)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the cells of %zu points", job->cloud->count);
    if (bad == SIZE_MAX)
        return NDT_OK;
    (void)ndt_cloud_point(job->cloud, bad, job->origin_m, x_m);
    return ndt_fail(err, NDT_ERR_LIMIT,
                    "point %zu is %.0f m from the origin of the map; the limit with cells of %g m is %.0f m", bad,
                    fmax(fabs(x_m[0]), fmax(fabs(x_m[1]), fabs(x_m[2]))), job->scale.leaf_m,
                    job->scale.leaf_m * NDT_CELL_LIMIT);
}

/* Adds all tables to the first. */
static enum ndt_status gather(struct sum_job *job, int threads, struct ndt_error *err)
{
    for (int t = 1; t < threads; t++) {
        enum ndt_status status = ndt_progress_check(job->progress, err);
        if (status == NDT_OK)
            status = ndt_sum_table_can_add(&job->tables[0], &job->tables[t], err);
        if (status != NDT_OK)
            return status;
        ndt_sum_table_add(&job->tables[0], &job->tables[t]);
        job->points[0] += job->points[t];
    }
    return ndt_progress_check(job->progress, err);
}

enum ndt_status ndt_cloud_sums(struct ndt_sum_table *out, uint64_t *points, const struct ndt_cloud *cloud,
                               const double origin_m[3], double leaf_m, struct ndt_pool *pool,
                               struct ndt_progress *progress, struct ndt_error *err)
{
    const int threads = ndt_pool_threads(pool);
    struct sum_job job = {.cloud = cloud,
                          .origin_m = origin_m,
                          .scale = scale_of(leaf_m),
                          .progress = progress,
                          .first_bad = SIZE_MAX};
    for (int t = 0; t < threads; t++)
        job.tables[t].leaf_m = leaf_m;
    ndt_pool_run(pool, sum_thread, &job, (size_t)threads);
    enum ndt_status status = check_points(&job, err);
    if (status == NDT_OK)
        status = gather(&job, threads, err);
    *out = job.tables[0];
    *points = job.points[0];
    for (int t = 1; t < threads; t++)
        ndt_sum_table_free(&job.tables[t]);
    return status;
}
