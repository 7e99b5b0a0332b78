/* Score, gradient and Hessian sums of one chunk of points; see eval_wide.h for the sums and wide.h for the
 * instruction sets. Four steps: cells of all points (vectors), neighbours of each point (one list, read
 * contiguously), points ordered by their number of neighbours, then pairs and points, one point per lane. */
#include "eval_wide.h"

#include "ndt/eval.h"

#include "wide.h"

#define LOG2_E 1.44269504088896341f
enum { LANES = 16, ROW = 32, MOST = 27, AHEAD = 8, POINTS = NDT_CHUNK_POINTS };
#define PASTE2(a, b) a##b
#define PASTE(a, b)  PASTE2(a, b)

struct chunk {
    float inside_m[3][POINTS]; /* position relative to the corner of the point's own cell */
    int32_t slot[POINTS];      /* in the brick table (dense) or 0 (hashed); -1: no voxel can be near */
    int32_t inner[POINTS];     /* cell number within the brick */
    int32_t cell[3][POINTS];   /* for the hashed index */
    struct ndt_cell_ref ref[POINTS];
    uint8_t found[POINTS];
    uint32_t ids[POINTS][ROW]; /* voxels of each point; the rest of a row holds valid voxel numbers, too */
    /* Points with neighbours, sorted by their number, most first: the lanes of a vector then end together. */
    float x_m[3][POINTS];
    float time_s[POINTS];
    int32_t steps[POINTS]; /* their number of neighbours */
    uint32_t *row[POINTS]; /* in ids */
    uint32_t none[ROW];    /* the row of an empty lane */
    float sums[NDT_SUM_FLOATS][LANES];
    float informed[NDT_INFORM_COUNT][LANES];
};

/* Evaluation and information are two instances of the same functions: `inform` is a constant in each. */
#define EACH static inline __attribute__((always_inline))

/* y = R x, and near_m = y + t: the position relative to near_cell's corner. */
static inline void move_points(const struct ndt_wide_job *job, const wide_f x[3], wide_f y[3], wide_f near_m[3])
{
    for (int k = 0; k < 3; k++) {
        const float *R = job->R + 3 * k;
        y[k] = wide_fma(x[2], wide_set(R[2]), wide_fma(x[1], wide_set(R[1]), x[0] * R[0]));
        near_m[k] = y[k] + job->t_m[k];
    }
}

/* Cells of WIDE points and their places in the index. */
static inline void locate(const struct ndt_wide_job *job, struct chunk *c, size_t first, size_t i)
{
    const struct ndt_map_level *level = job->level;
    const wide_f x[3] = {wide_load(job->x_m + first + i), wide_load(job->y_m + first + i),
                         wide_load(job->z_m + first + i)};
    const float leaf_m = (float)level->leaf_m, per_leaf = (float)(1.0 / level->leaf_m);
    wide_i valid = wide_set_i(-1), inner = wide_set_i(0);
    wide_u slot = {0}; /* wraps around far off the map, where it is masked */
    wide_f y[3], near_m[3];
    move_points(job, x, y, near_m);
    for (int k = 2; k >= 0; k--) {
        const wide_i usable = (near_m[k] < wide_set(1e6f)) & (near_m[k] > wide_set(-1e6f)); /* false for NaN */
        const wide_f near = (wide_f)((wide_i)near_m[k] & usable);
        const wide_i steps = wide_floor(near * per_leaf);
        const wide_i cell = (wide_i)((wide_u)steps + (uint32_t)job->near_cell[k]);
        wide_i brick = cell >> 3;
        wide_store(&c->inside_m[k][i], wide_fma(-wide_to_float(steps), wide_set(leaf_m), near));
        wide_store_i(&c->cell[k][i], cell);
        inner = (inner << 3) | (cell & 7);
        brick = (wide_i)((wide_u)brick - (uint32_t)level->brick_min[k]);
        valid &= (brick >= 0) & (brick < level->brick_dim[k]);
        slot = slot * (uint32_t)level->brick_dim[k] + (wide_u)brick;
        valid &= usable;
    }
    wide_store_i(&c->slot[i], (level->hashed ? valid ^ -1 : ((wide_i)slot & valid) | ~valid));
    wide_store_i(&c->inner[i], inner);
}

/* As in ndt_map_lookup, for levels whose index is a hash table. */
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

/* Looks up the neighbour list of every point. */
static void find_lists(const struct ndt_map_level *level, struct chunk *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t brick = 0;
        if (c->slot[i] != -1)
            brick = level->hashed ? hashed_brick(level, c, i) : level->bricks[c->slot[i]];
        c->ref[i] = level->cells[(size_t)brick * 512 + (size_t)c->inner[i]];
    }
}

/* Copies all voxels of a list and clears the rest of the row. */
static inline void copy_ids(uint32_t *out, const float *ids, uint32_t padded)
{
    wide_clear(out);
    for (uint32_t i = 0; i < padded; i += 8)
        memcpy(out + i, ids + i, 8 * sizeof(*out));
}

static inline void prefetch_list(const struct ndt_map_level *level, struct ndt_cell_ref ref)
{
    const uint32_t *list = level->lists + (size_t)ref.offset * 8;
    for (int i = 0; i < 5; i++)
        __builtin_prefetch(list + 16 * i);
}

/* Writes the voxels of every point to its row while the lists of later points are prefetched, and counts the points
 * by their number of voxels. */
static void find_neighbours(const struct ndt_wide_job *job, struct chunk *c, size_t count,
                            uint32_t having[MOST + 1])
{
    const struct ndt_map_level *level = job->level;
    const float r2 = (float)(level->leaf_m * level->leaf_m);
    for (size_t i = 0; i < count; i++) {
        const struct ndt_cell_ref ref = c->ref[i];
        const float *list = (const float *)level->lists + (size_t)ref.offset * 8;
        uint32_t found = 0;
        prefetch_list(level, c->ref[i + AHEAD < count ? i + AHEAD : i]);
        if (job->neighbours == NDT_RADIUS) {
            const float p_m[3] = {c->inside_m[0][i], c->inside_m[1][i], c->inside_m[2][i]};
            found = wide_within(list, ref.padded, p_m, r2, c->ids[i]);
        } else {
            found = job->neighbours == NDT_DIRECT1 ? ref.n1 : job->neighbours == NDT_DIRECT7 ? ref.n7 : ref.n27;
            copy_ids(c->ids[i], list + 3 * ref.padded, ref.padded);
        }
        c->found[i] = (uint8_t)found;
        having[found]++;
    }
}

/* Sorts the points by their number of neighbours, most first, and pads to a whole vector with empty lanes. */
EACH size_t order_points(const struct ndt_wide_job *job, struct chunk *c, size_t first, size_t count,
                         const uint32_t having[MOST + 1], int inform)
{
    uint32_t at[MOST + 1], begun = 0;
    for (int n = MOST; n >= 0; n--) {
        at[n] = begun;
        begun += having[n];
    }
    const size_t matched = at[0];
    for (size_t i = 0; i < count; i++) {
        const size_t to = at[c->found[i]]++;
        c->x_m[0][to] = job->x_m[first + i];
        c->x_m[1][to] = job->y_m[first + i];
        c->x_m[2][to] = job->z_m[first + i];
        if (inform)
            c->time_s[to] = job->time_s ? job->time_s[first + i] : 0;
        c->steps[to] = c->found[i];
        c->row[to] = c->ids[i];
    }
    for (size_t i = matched; i % LANES != 0; i++) {
        c->x_m[0][i] = c->x_m[1][i] = c->x_m[2][i] = 0;
        if (inform)
            c->time_s[i] = 0;
        c->steps[i] = 0;
        c->row[i] = c->none;
    }
    return matched;
}

/* Sums over the voxels of a point, one point per lane. */
struct point_sums {
    wide_f score, best, A[3], S[6];
};

/* q.Bq of a pair, and u = B q. */
static inline wide_f square_distance(const struct ndt_wide_job *job, const wide_f w[12], const wide_f near_m[3],
                                     wide_f u[3])
{
    const wide_f leaf_m = wide_set((float)job->level->leaf_m);
    wide_f q[3];
    for (int k = 0; k < 3; k++) {
        const wide_f cells = wide_to_float((wide_i)w[9 + k] - job->near_cell[k]);
        q[k] = wide_fma(-cells, leaf_m, near_m[k]) - w[k];
    }
    u[0] = wide_fma(w[5], q[2], wide_fma(w[4], q[1], w[3] * q[0]));
    u[1] = wide_fma(w[7], q[2], wide_fma(w[6], q[1], w[4] * q[0]));
    u[2] = wide_fma(w[8], q[2], wide_fma(w[7], q[1], w[5] * q[0]));
    return wide_fma(q[2], u[2], wide_fma(q[1], u[1], q[0] * u[0]));
}

/* Returns exp(-d2/2 q.Bq), zero in lanes that are not active. */
static inline wide_f add_pairs(const struct ndt_wide_job *job, const wide_f w[12], const wide_f near_m[3],
                               wide_i active, struct point_sums *p)
{
    const wide_f d2 = wide_set((float)job->level->d2);
    wide_f u[3], v[3];
    const wide_f qu = square_distance(job, w, near_m, u);
    const wide_f e = (wide_f)((wide_i)wide_exp2(qu * (d2 * (-0.5f * LOG2_E))) & active);
    p->score += e;
    p->best = wide_max(p->best, e);
    for (int k = 0; k < 3; k++) {
        p->A[k] = wide_fma(e, u[k], p->A[k]);
        v[k] = (e * d2) * -u[k];
    }
    p->S[0] = wide_fma(v[0], u[0], wide_fma(e, w[3], p->S[0]));
    p->S[1] = wide_fma(v[0], u[1], wide_fma(e, w[4], p->S[1]));
    p->S[2] = wide_fma(v[0], u[2], wide_fma(e, w[5], p->S[2]));
    p->S[3] = wide_fma(v[1], u[1], wide_fma(e, w[6], p->S[3]));
    p->S[4] = wide_fma(v[1], u[2], wide_fma(e, w[7], p->S[4]));
    p->S[5] = wide_fma(v[2], u[2], wide_fma(e, w[8], p->S[5]));
    return e;
}

/* Adds e ((b3 - b2) n n^T - s^2 b3 (I - n n^T)) of the inverse covariance B to K, see struct ndt_information.
 *
 * With D = B - trace/3 I, whose eigenvalues are l1 <= l2 <= l3, n n^T is (D - l1 I)(D - l2 I) / ((l3 - l1)(l3 -
 * l2)) = (D^2 + l3 D + (l3^2 - h) I) / ((l3 - l1)(l3 - l2)) by Cayley and Hamilton, where 2 h is the trace of D^2.
 * The characteristic polynomial l^3 - h l - det D has the root l3 = 2 s cos(acos(r) / 3) with s^2 = h / 3 and r =
 * det D / (2 s^3). As a function of t = sqrt((1 + r) / 2) the cosine is smooth on all of 0 .. 1: a polynomial of
 * degree 6 (Chebyshev) is within 2e-7 of it. */
static inline void add_normal(const wide_f B[6], wide_f e, wide_f K[6])
{
    const wide_f tiny = wide_set(1e-30f); /* a null voxel adds zero, not NaN */
    const wide_f third = (B[0] + B[3] + B[5]) * (1.0f / 3);
    const wide_f D[6] = {B[0] - third, B[1], B[2], B[3] - third, B[4], B[5] - third};
    const wide_f xy = D[1] * D[1], xz = D[2] * D[2], yz = D[4] * D[4];
    const wide_f squared[6] = {wide_fma(D[0], D[0], xy + xz),        wide_fma(D[2], D[4], -(D[1] * D[5])),
                               wide_fma(D[1], D[4], -(D[2] * D[3])), wide_fma(D[3], D[3], xy + yz),
                               wide_fma(D[1], D[2], -(D[4] * D[0])), wide_fma(D[5], D[5], xz + yz)};
    const wide_f h = (squared[0] + squared[3] + squared[5]) * 0.5f, s2 = h * (1.0f / 3), s = wide_root(s2);
    const wide_f det = wide_fma(D[0], squared[0] - h, wide_fma(D[1], squared[1], D[2] * squared[2]));
    const wide_f cubed = wide_max(s2 * s, tiny);
    const wide_f t = wide_root(wide_max(wide_fma(det / cubed, wide_set(0.25f), wide_set(0.5f)), wide_set(0)));
    wide_f cosine = wide_fma(t, wide_set(-0.00210349f), wide_set(0.01050175f));
    cosine = wide_fma(t, cosine, wide_set(-0.02639975f));
    cosine = wide_fma(t, cosine, wide_set(0.05147476f));
    cosine = wide_fma(t, cosine, wide_set(-0.11080547f));
    cosine = wide_fma(t, cosine, wide_set(0.5773319f));
    cosine = wide_fma(t, cosine, wide_set(0.50000019f));
    const wide_f l3 = (s + s) * cosine, l3_squared = l3 * l3;
    const wide_f half = wide_root(wide_max(wide_fma(wide_set(-0.75f), l3_squared, h), wide_set(0)));
    const wide_f b3 = l3 + third, turn = b3 * (float)(NDT_NORMAL_DEVIATION_RAD * NDT_NORMAL_DEVIATION_RAD);
    const wide_f gap = wide_max(wide_fma(wide_set(1.5f), l3, -half), b3 * 1e-3f);
    const wide_f apart = wide_max(wide_fma(wide_set(1.5f), l3, half), b3 * 1e-6f);
    const wide_f along = e * (gap + turn) / wide_max(gap * apart, tiny), within = e * turn, last = l3_squared - h;
    for (int i = 0; i < 6; i++) {
        const int diagonal = i == 0 || i == 3 || i == 5;
        const wide_f part = wide_fma(l3, D[i], diagonal ? squared[i] + last : squared[i]);
        K[i] = wide_fma(along, part, diagonal ? K[i] - within : K[i]);
    }
}

/* Adds the sums of WIDE points to lanes `lane` .. of the chunk's accumulators. */
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
        K[3 * i] = wide_fma(rows[i][2], y[1], -(rows[i][1] * y[2]));
        K[3 * i + 1] = wide_fma(rows[i][0], y[2], -(rows[i][2] * y[0]));
        K[3 * i + 2] = wide_fma(rows[i][1], y[0], -(rows[i][0] * y[1]));
    }
    for (int i = 0; i < 6; i++)
        out[NDT_SUM_S + i] = S[i];
    L[0] = wide_fma(K[6], y[1], -(K[3] * y[2]));
    L[1] = wide_fma(K[7], y[1], -(K[4] * y[2]));
    L[2] = wide_fma(K[8], y[1], -(K[5] * y[2]));
    L[3] = wide_fma(K[1], y[2], -(K[7] * y[0]));
    L[4] = wide_fma(K[2], y[2], -(K[8] * y[0]));
    L[5] = wide_fma(K[5], y[0], -(K[2] * y[1]));
    for (int i = 0; i < NDT_SUM_FLOATS; i++)
        wide_store(&sums[i][lane], wide_load(&sums[i][lane]) + out[i]);
}

/* Adds the information of WIDE points to lanes `lane` .. of its accumulators. */
static inline void add_information(const wide_f A[3], const wide_f K[6], const wide_f y[3], wide_f time_s,
                                   float sums[][LANES], size_t lane)
{
    wide_f out[NDT_INFORM_COUNT], *C = out + NDT_INFORM_BLOCKS + 6, *R = C + 9;
    const wide_f rows[3][3] = {{K[0], K[1], K[2]}, {K[1], K[3], K[4]}, {K[2], K[4], K[5]}};
    for (int i = 0; i < 6; i++)
        out[NDT_INFORM_BLOCKS + i] = K[i];
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        out[NDT_INFORM_A + i] = time_s * A[i];
        out[NDT_INFORM_TORQUE + i] = time_s * wide_fma(y[j], A[k], -(y[k] * A[j]));
        for (int l = 0; l < 3; l++) {
            const int m = (l + 1) % 3, n = (l + 2) % 3;
            C[3 * i + l] = wide_fma(rows[i][n], y[m], -(rows[i][m] * y[n]));
        }
    }
    for (int i = 0, at = 0; i < 3; i++)
        for (int l = i; l < 3; l++, at++) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;
            R[at] = wide_fma(C[3 * k + l], y[j], -(C[3 * j + l] * y[k]));
        }
    for (int i = NDT_INFORM_BLOCKS; i < NDT_INFORM_BLOCKS + 2 * NDT_INFORM_BLOCK; i++)
        out[i + NDT_INFORM_BLOCK] = time_s * out[i];
    for (int i = 0; i < NDT_INFORM_COUNT; i++)
        wide_store(&sums[i][lane], wide_load(&sums[i][lane]) + out[i]);
}

/* The k-th voxel of each of WIDE points. */
static inline void load_voxels(const struct ndt_wide_job *job, const struct chunk *c, size_t base, int32_t k,
                               wide_f words[12])
{
    const float *record[WIDE];
    for (size_t l = 0; l < WIDE; l++)
        record[l] = job->level->voxels[c->row[base + l][k]].mean_m;
    wide_load_quads(record, 0, words);
    wide_load_quads(record, 1, words + 4);
    wide_load_quads(record, 2, words + 8);
}

/* All pairs of WIDE points: step k takes each point's k-th voxel; lanes that have fewer are masked. */
EACH void add_points(const struct ndt_wide_job *job, struct chunk *c, size_t base, int inform)
{
    const wide_i found = wide_load_i(&c->steps[base]);
    const int32_t steps = c->steps[base];
    const wide_f x[3] = {wide_load(&c->x_m[0][base]), wide_load(&c->x_m[1][base]), wide_load(&c->x_m[2][base])};
    wide_f y[3], near_m[3], K[6] = {{0}};
    struct point_sums p = {0};
    move_points(job, x, y, near_m);
    for (int32_t k = 0; k < steps; k++) {
        wide_f words[12];
        load_voxels(job, c, base, k, words);
        const wide_f e = add_pairs(job, words, near_m, found > k, &p);
        if (inform)
            add_normal(words + 3, e, K);
    }
    const size_t lane = base % LANES;
    add_point(&p, y, c->sums, lane);
    if (inform)
        add_information(p.A, K, y, wide_load(&c->time_s[base]), c->informed, lane);
}

/* Adds the lanes; all sums but the scores still lack the factor d1 d2. */
static void add_lanes(const struct chunk *c, double d1d2, double *sums)
{
    for (int i = 0; i < NDT_SUM_FLOATS; i++) {
        sums[i] = 0;
        for (int l = 0; l < LANES; l++)
            sums[i] += (double)c->sums[i][l];
        sums[i] *= i < NDT_SUM_A ? 1 : d1d2;
    }
}

EACH void sum_chunk(const struct ndt_wide_job *job, size_t chunk, double *sums, double *informed, int inform)
{
    struct chunk c;
    const size_t first = chunk * POINTS;
    const size_t count = job->count - first < POINTS ? job->count - first : POINTS;
    uint32_t having[MOST + 1] = {0}, pairs = 0;
    memset(c.sums, 0, sizeof(c.sums));
    memset(c.none, 0, sizeof(c.none));
    if (inform)
        memset(c.informed, 0, sizeof(c.informed));
    for (size_t i = 0; i < count; i += WIDE)
        locate(job, &c, first, i);
    find_lists(job->level, &c, count);
    find_neighbours(job, &c, count, having);
    const size_t matched = order_points(job, &c, first, count, having, inform);
    for (size_t base = 0; base < matched; base += WIDE)
        add_points(job, &c, base, inform);
    for (uint32_t n = 1; n <= MOST; n++)
        pairs += n * having[n];
    add_lanes(&c, job->level->d1 * job->level->d2, sums);
    sums[NDT_SUM_MATCHED] = (double)matched;
    sums[NDT_SUM_PAIRS] = pairs;
    for (int i = 0; inform && i < NDT_INFORM_COUNT; i++) {
        informed[i] = 0;
        for (int l = 0; l < LANES; l++)
            informed[i] += (double)c.informed[i][l];
    }
}

/* ---- scores without derivatives, in units of 1 / NDT_SCORE_UNITS ---- */

/* Sums of lanes: pairs of lanes widen to 64 bits. */
typedef uint64_t wide_l __attribute__((vector_size(sizeof(float) * WIDE)));

static inline wide_l add_halves(wide_l sums, wide_i lanes)
{
    return sums + ((wide_l)lanes & UINT32_MAX) + ((wide_l)lanes >> 32);
}

/* The sum over the voxels of each of WIDE points; *best: the largest value of each. */
static inline wide_i score_points(const struct ndt_wide_job *job, const struct chunk *c, size_t base, wide_i *best)
{
    const wide_f factor = wide_set((float)job->level->d2 * (-0.5f * LOG2_E)), one = wide_set(1.0f);
    const wide_i found = wide_load_i(&c->steps[base]);
    const int32_t steps = c->steps[base];
    const wide_f x[3] = {wide_load(&c->x_m[0][base]), wide_load(&c->x_m[1][base]), wide_load(&c->x_m[2][base])};
    wide_f y[3], near_m[3], u[3];
    wide_i score = {0};
    *best = (wide_i){0};
    move_points(job, x, y, near_m);
    for (int32_t k = 0; k < steps; k++) {
        wide_f words[12];
        load_voxels(job, c, base, k, words);
        const wide_f exponent = wide_min(square_distance(job, words, near_m, u) * factor, wide_set(0));
        const wide_i units = ((wide_i)(wide_exp2(exponent) + one) - (wide_i)one) & (found > k);
        score += units;
        *best = (wide_i)wide_select(units > *best, (wide_f)units, (wide_f)*best);
    }
    return score;
}

/* Finds the voxels of the points of a chunk and orders them. Returns the number of points that have any. */
static inline size_t find_pairs(const struct ndt_wide_job *job, struct chunk *c, size_t first, size_t count,
                                uint32_t having[MOST + 1])
{
    memset(c->none, 0, sizeof(c->none));
    for (size_t i = 0; i < count; i += WIDE)
        locate(job, c, first, i);
    find_lists(job->level, c, count);
    find_neighbours(job, c, count, having);
    return order_points(job, c, first, count, having, 0);
}

void PASTE(ndt_score_chunk_, NDT_ISA)(const struct ndt_wide_job *job, size_t chunk, struct ndt_score_sums *sums)
{
    struct chunk c;
    const size_t first = chunk * POINTS;
    const size_t count = job->count - first < POINTS ? job->count - first : POINTS;
    uint32_t having[MOST + 1] = {0};
    wide_l score = {0}, nearest = {0};
    const size_t matched = find_pairs(job, &c, first, count, having);
    for (size_t base = 0; base < matched; base += WIDE) {
        wide_i best;
        score = add_halves(score, score_points(job, &c, base, &best));
        nearest = add_halves(nearest, best);
    }
    for (size_t i = 0; i < WIDE / 2; i++) {
        sums->score += score[i];
        sums->nearest += nearest[i];
    }
    sums->matched += (uint32_t)matched;
    for (uint32_t n = 1; n <= MOST; n++)
        sums->pairs += n * having[n];
}

void PASTE(ndt_score_each_, NDT_ISA)(const struct ndt_wide_job *job, uint32_t *units)
{
    struct chunk c;
    uint32_t having[MOST + 1] = {0};
    const size_t matched = find_pairs(job, &c, 0, job->count, having);
    memset(units, 0, job->count * sizeof(*units));
    for (size_t base = 0; base < matched; base += WIDE) {
        wide_i best;
        const wide_i score = score_points(job, &c, base, &best);
        for (size_t lane = 0; lane < WIDE && base + lane < matched; lane++)
            units[(size_t)(c.row[base + lane] - c.ids[0]) / ROW] = (uint32_t)score[lane];
    }
}

void PASTE(ndt_eval_chunk_, NDT_ISA)(const struct ndt_wide_job *job, size_t chunk, double *sums)
{
    sum_chunk(job, chunk, sums, NULL, 0);
}

void PASTE(ndt_inform_chunk_, NDT_ISA)(const struct ndt_wide_job *job, size_t chunk, double *sums, double *informed)
{
    sum_chunk(job, chunk, sums, informed, 1);
}
