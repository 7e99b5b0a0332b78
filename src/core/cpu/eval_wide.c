/* Score, gradient and Hessian sums of one chunk of points; see eval_wide.h for the sums and wide.h for the
 * instruction sets. Three steps: cells of all points (vectors), neighbours of each point (one list, read
 * contiguously), then pairs and points, one point per lane. */
#include "eval_wide.h"

#include "wide.h"

enum { LANES = 16, ROW = 48, POINTS = NDT_CHUNK_POINTS };
#define PASTE2(a, b) a##b
#define PASTE(a, b)  PASTE2(a, b)

struct chunk {
    float y_m[3][POINTS];      /* R x */
    float near_m[3][POINTS];   /* R x + t: position relative to near_cell's corner */
    float inside_m[3][POINTS]; /* position relative to the corner of the point's own cell */
    int32_t slot[POINTS];      /* in the brick table (dense) or 0 (hashed); -1: no voxel can be near */
    int32_t inner[POINTS];     /* cell number within the brick */
    int32_t cell[3][POINTS];   /* for the hashed index */
    struct ndt_cell_ref ref[POINTS];
    int32_t found[POINTS];
    uint32_t ids[LANES][ROW];
    float sums[NDT_SUM_FLOATS][LANES];
};

/* Position, cell and place in the index of WIDE points. */
static inline void locate(const struct ndt_wide_job *job, struct chunk *c, size_t first, size_t i)
{
    const struct ndt_map_level *level = job->level;
    const wide_f x = wide_load(job->x_m + first + i), y = wide_load(job->y_m + first + i);
    const wide_f z = wide_load(job->z_m + first + i);
    const float leaf_m = (float)level->leaf_m, per_leaf = (float)(1.0 / level->leaf_m);
    wide_i valid = wide_set_i(-1), slot = wide_set_i(0), inner = wide_set_i(0);
    for (int k = 2; k >= 0; k--) {
        const wide_f rotated = (x * job->R[3 * k] + y * job->R[3 * k + 1]) + z * job->R[3 * k + 2];
        wide_f near = rotated + job->t_m[k];
        const wide_i usable = (near < wide_set(1e6f)) & (near > wide_set(-1e6f)); /* false for NaN */
        near = (wide_f)((wide_i)near & usable);
        const wide_i steps = wide_floor(near * per_leaf);
        const wide_i cell = steps + job->near_cell[k];
        wide_i brick = cell >> 3;
        wide_store(&c->y_m[k][i], (wide_f)((wide_i)rotated & usable));
        wide_store(&c->near_m[k][i], near);
        wide_store(&c->inside_m[k][i], near - wide_to_float(steps) * leaf_m);
        wide_store_i(&c->cell[k][i], cell);
        inner = (inner << 3) | (cell & 7);
        brick -= level->brick_min[k];
        valid &= (brick >= 0) & (brick < level->brick_dim[k]);
        slot = slot * level->brick_dim[k] + brick;
        valid &= usable;
    }
    wide_store_i(&c->slot[i], (level->hashed ? valid ^ -1 : (slot & valid) | ~valid));
    wide_store_i(&c->inner[i], inner);
}

/* As ndt_map_lookup does it, for indexes too large for a dense table. */
static uint32_t hashed_brick(const struct ndt_map_level *level, const struct chunk *c, size_t i)
{
    uint64_t key = (uint64_t)1 << 63;
    for (int k = 0; k < 3; k++)
        key |= (uint64_t)(uint32_t)((c->cell[k][i] >> 3) + 1048576) << (21 * k);
    uint64_t at = key * 0x9e3779b97f4a7c15u;
    at ^= at >> 29;
    const uint64_t mask = level->brick_slots - 1;
    for (at &= mask; level->brick_keys[at] != key; at = (at + 1) & mask)
        if (level->brick_keys[at] == 0)
            return 0;
    return level->bricks[at];
}

/* The neighbour list of every point; lists are fetched ahead while other points are looked up. */
static void find_lists(const struct ndt_map_level *level, struct chunk *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t brick = 0;
        if (c->slot[i] != -1)
            brick = level->hashed ? hashed_brick(level, c, i) : level->bricks[c->slot[i]];
        c->ref[i] = level->cells[(size_t)brick * 512 + (size_t)c->inner[i]];
        __builtin_prefetch(level->lists + (size_t)c->ref[i].offset * 8);
    }
}

/* Voxels of each of LANES points into the rows of c->ids; counts matched points and pairs. */
static void find_neighbours(const struct ndt_wide_job *job, struct chunk *c, size_t base, size_t count,
                            uint32_t *matched, uint32_t *pairs)
{
    const struct ndt_map_level *level = job->level;
    const float r2 = (float)(level->leaf_m * level->leaf_m);
    for (size_t l = 0; l < LANES; l++) {
        const struct ndt_cell_ref ref = base + l < count ? c->ref[base + l] : (struct ndt_cell_ref){0};
        const float *list = (const float *)level->lists + (size_t)ref.offset * 8;
        uint32_t found = 0;
        if (job->neighbours == NDT_RADIUS) {
            const float p_m[3] = {c->inside_m[0][base + l], c->inside_m[1][base + l], c->inside_m[2][base + l]};
            found = wide_within(list, ref.padded, p_m, r2, c->ids[l]);
        } else {
            found = job->neighbours == NDT_DIRECT1 ? ref.n1 : job->neighbours == NDT_DIRECT7 ? ref.n7 : ref.n27;
            memcpy(c->ids[l], list + 3 * ref.padded, found * sizeof(uint32_t));
        }
        c->found[base + l] = (int32_t)found;
        *matched += found > 0;
        *pairs += found;
    }
}

/* What the voxels contribute to one point, one point per lane. */
struct point_sums {
    wide_f score, best, A[3], S[6];
};

static inline void add_pairs(const struct ndt_wide_job *job, const wide_f w[12], const wide_f near_m[3],
                             wide_i active, struct point_sums *p)
{
    const float leaf_m = (float)job->level->leaf_m, d2 = (float)job->level->d2;
    const float d1d2 = (float)(job->level->d1 * job->level->d2);
    wide_f q[3], u[3], v[3];
    for (int k = 0; k < 3; k++) {
        const wide_f corner_m = wide_to_float((wide_i)w[9 + k] - job->near_cell[k]) * leaf_m;
        q[k] = (near_m[k] - corner_m) - w[k];
    }
    u[0] = (w[3] * q[0] + w[4] * q[1]) + w[5] * q[2];
    u[1] = (w[4] * q[0] + w[6] * q[1]) + w[7] * q[2];
    u[2] = (w[5] * q[0] + w[7] * q[1]) + w[8] * q[2];
    const wide_f qu = (q[0] * u[0] + q[1] * u[1]) + q[2] * u[2];
    const wide_f e = (wide_f)((wide_i)wide_exp(qu * (-0.5f * d2)) & active);
    const wide_f weight = e * d1d2;
    p->score += e;
    p->best = wide_max(p->best, e);
    for (int k = 0; k < 3; k++) {
        const wide_f wu = weight * u[k];
        p->A[k] += wu;
        v[k] = wu * d2;
    }
    p->S[0] += weight * w[3] - v[0] * u[0];
    p->S[1] += weight * w[4] - v[0] * u[1];
    p->S[2] += weight * w[5] - v[0] * u[2];
    p->S[3] += weight * w[6] - v[1] * u[1];
    p->S[4] += weight * w[7] - v[1] * u[2];
    p->S[5] += weight * w[8] - v[2] * u[2];
}

/* The sums of the point itself, added to lanes `lane` .. of the chunk's accumulators. */
static inline void add_point(const struct point_sums *p, const wide_f y[3], float sums[][LANES], size_t lane)
{
    wide_f out[NDT_SUM_FLOATS], *N = out + NDT_SUM_N, *K = out + NDT_SUM_K, *L = out + NDT_SUM_L;
    const wide_f *S = p->S;
    const wide_f rows[3][3] = {{S[0], S[1], S[2]}, {S[1], S[3], S[4]}, {S[2], S[4], S[5]}};
    out[NDT_SUM_SCORE] = p->score;
    out[NDT_SUM_BEST] = p->best;
    for (int i = 0; i < 3; i++) {
        out[NDT_SUM_A + i] = p->A[i];
        for (int j = 0; j < 3; j++)
            N[3 * i + j] = p->A[i] * y[j];
        K[3 * i] = rows[i][2] * y[1] - rows[i][1] * y[2];
        K[3 * i + 1] = rows[i][0] * y[2] - rows[i][2] * y[0];
        K[3 * i + 2] = rows[i][1] * y[0] - rows[i][0] * y[1];
    }
    for (int i = 0; i < 6; i++)
        out[NDT_SUM_S + i] = S[i];
    L[0] = K[6] * y[1] - K[3] * y[2];
    L[1] = K[7] * y[1] - K[4] * y[2];
    L[2] = K[8] * y[1] - K[5] * y[2];
    L[3] = K[1] * y[2] - K[7] * y[0];
    L[4] = K[2] * y[2] - K[8] * y[0];
    L[5] = K[5] * y[0] - K[2] * y[1];
    for (int i = 0; i < NDT_SUM_FLOATS; i++)
        wide_store(&sums[i][lane], wide_load(&sums[i][lane]) + out[i]);
}

/* All pairs of WIDE points: step k takes each point's k-th voxel; lanes that have fewer are masked. */
static inline void add_points(const struct ndt_wide_job *job, struct chunk *c, size_t base, size_t lane)
{
    const wide_i found = wide_load_i(&c->found[base + lane]);
    int32_t steps = 0;
    for (size_t l = 0; l < WIDE; l++)
        steps = c->found[base + lane + l] > steps ? c->found[base + lane + l] : steps;
    if (steps == 0)
        return;
    wide_f y[3], near_m[3];
    for (int k = 0; k < 3; k++) {
        y[k] = wide_load(&c->y_m[k][base + lane]);
        near_m[k] = wide_load(&c->near_m[k][base + lane]);
    }
    struct point_sums p = {0};
    for (int32_t k = 0; k < steps; k++) {
        const float *record[WIDE];
        wide_f words[12];
        for (size_t l = 0; l < WIDE; l++)
            record[l] = job->level->voxels[c->ids[lane + l][k]].mean_m;
        wide_load_quads(record, 0, words);
        wide_load_quads(record, 1, words + 4);
        wide_load_quads(record, 2, words + 8);
        add_pairs(job, words, near_m, found > k, &p);
    }
    add_point(&p, y, c->sums, lane);
}

void PASTE(ndt_eval_chunk_, NDT_ISA)(const struct ndt_wide_job *job, size_t chunk, double *sums)
{
    struct chunk c;
    const size_t first = chunk * POINTS;
    const size_t count = job->count - first < POINTS ? job->count - first : POINTS;
    uint32_t matched = 0, pairs = 0;
    memset(c.ids, 0, sizeof(c.ids)); /* stale entries are masked, but must be numbers of voxels */
    memset(c.sums, 0, sizeof(c.sums));
    for (size_t i = 0; i < count; i += WIDE)
        locate(job, &c, first, i);
    find_lists(job->level, &c, count);
    for (size_t base = 0; base < count; base += LANES) {
        find_neighbours(job, &c, base, count, &matched, &pairs);
        for (size_t lane = 0; lane < LANES; lane += WIDE)
            add_points(job, &c, base, lane);
    }
    for (int i = 0; i < NDT_SUM_FLOATS; i++) {
        sums[i] = 0;
        for (int l = 0; l < LANES; l++)
            sums[i] += (double)c.sums[i][l];
    }
    sums[NDT_SUM_MATCHED] = matched;
    sums[NDT_SUM_PAIRS] = pairs;
}
