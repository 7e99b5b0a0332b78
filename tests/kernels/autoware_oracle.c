#include "autoware_oracle.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_POINTS = 6 };

/* Sums of a cell while points come in, a Gaussian afterwards. */
struct oracle_voxel {
    int64_t cell[3];
    int used, valid;
    double n, sum[3], square[9];
    double mean_m[3], B[9];
};

struct autoware_oracle {
    double leaf_m, d1, d2;
    struct oracle_voxel *slots; /* open addressing */
    size_t slot_count;
};

/* First and second derivatives of one transformed point. */
struct point_derivatives {
    double J[6][3];
    double H[6][6][3];
};

struct sums {
    double score, pairs, g[6], H[6][6];
};

static size_t hash_cell(const int64_t cell[3])
{
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < 3; i++)
        h = (h ^ (uint64_t)cell[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static struct oracle_voxel *slot_of(const struct autoware_oracle *oracle, const int64_t cell[3])
{
    size_t at = hash_cell(cell) & (oracle->slot_count - 1);
    while (oracle->slots[at].used && memcmp(oracle->slots[at].cell, cell, sizeof(int64_t[3])) != 0)
        at = (at + 1) & (oracle->slot_count - 1);
    return &oracle->slots[at];
}

static void add_map_point(struct autoware_oracle *oracle, const double x[3])
{
    int64_t cell[3];
    for (int i = 0; i < 3; i++)
        cell[i] = (int64_t)floor(x[i] / oracle->leaf_m);
    struct oracle_voxel *voxel = slot_of(oracle, cell);
    if (!voxel->used) {
        voxel->used = 1;
        memcpy(voxel->cell, cell, sizeof(cell));
        for (int i = 0; i < 3; i++)
            voxel->square[4 * i] = 1.0; /* the seed */
    }
    voxel->n += 1.0;
    for (int i = 0; i < 3; i++) {
        const double yi = x[i] - ((double)cell[i] + 0.5) * oracle->leaf_m;
        voxel->sum[i] += yi;
        for (int j = 0; j < 3; j++)
            voxel->square[3 * i + j] += yi * (x[j] - ((double)cell[j] + 0.5) * oracle->leaf_m);
    }
}

/* Jacobi rotations: A becomes diagonal, the columns of V its eigenvectors. */
static void diagonalize(double A[9], double V[9])
{
    for (int i = 0; i < 9; i++)
        V[i] = i % 4 == 0 ? 1.0 : 0.0;
    for (int sweep = 0; sweep < 30; sweep++) {
        for (int p = 0; p < 2; p++) {
            for (int q = p + 1; q < 3; q++) {
                if (A[3 * p + q] == 0.0)
                    continue;
                const double angle = 0.5 * atan2(2.0 * A[3 * p + q], A[4 * p] - A[4 * q]);
                const double c = cos(angle), s = sin(angle);
                for (int k = 0; k < 3; k++) {
                    const double x = A[3 * k + p], y = A[3 * k + q];
                    A[3 * k + p] = c * x + s * y;
                    A[3 * k + q] = c * y - s * x;
                }
                for (int k = 0; k < 3; k++) {
                    const double x = A[3 * p + k], y = A[3 * q + k], v = V[3 * k + p], w = V[3 * k + q];
                    A[3 * p + k] = c * x + s * y;
                    A[3 * q + k] = c * y - s * x;
                    V[3 * k + p] = c * v + s * w;
                    V[3 * k + q] = c * w - s * v;
                }
                A[3 * p + q] = A[3 * q + p] = 0.0;
            }
        }
    }
}

/* Raises small eigenvalues to 1 % of the largest and inverts; leaves the voxel invalid when it cannot. */
static void invert_covariance(struct oracle_voxel *voxel, const double covariance[9])
{
    double A[9], V[9];
    memcpy(A, covariance, sizeof(A));
    diagonalize(A, V);
    const double lambda[3] = {A[0], A[4], A[8]};
    const double largest = fmax(lambda[0], fmax(lambda[1], lambda[2]));
    const double smallest = fmin(lambda[0], fmin(lambda[1], lambda[2]));
    if (!(largest > 0.0) || smallest < 0.0)
        return;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            voxel->B[3 * i + j] = 0.0;
            for (int k = 0; k < 3; k++)
                voxel->B[3 * i + j] += V[3 * i + k] * V[3 * j + k] / fmax(lambda[k], 0.01 * largest);
        }
    }
    voxel->valid = 1;
}

static void finish_voxel(struct oracle_voxel *voxel, double leaf_m)
{
    if (!voxel->used || voxel->n < MIN_POINTS)
        return;
    double covariance[9], mean[3];
    for (int i = 0; i < 3; i++) {
        mean[i] = voxel->sum[i] / voxel->n;
        voxel->mean_m[i] = mean[i] + ((double)voxel->cell[i] + 0.5) * leaf_m;
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            covariance[3 * i + j] = (voxel->square[3 * i + j] - voxel->sum[i] * mean[j]) / (voxel->n - 1.0);
    invert_covariance(voxel, covariance);
}

static void set_constants(struct autoware_oracle *oracle)
{
    const double outlier_ratio = 0.55;
    const double c1 = 10.0 * (1.0 - outlier_ratio), c2 = outlier_ratio / pow(oracle->leaf_m, 3.0);
    const double d3 = -log(c2);
    oracle->d1 = -log(c1 + c2) - d3;
    oracle->d2 = -2.0 * log((-log(c1 * exp(-0.5) + c2) - d3) / oracle->d1);
}

struct autoware_oracle *autoware_oracle_create(const struct ndt_cloud *points, double leaf_m)
{
    struct autoware_oracle *oracle = calloc(1, sizeof(*oracle));
    if (!oracle)
        return NULL;
    oracle->leaf_m = leaf_m;
    set_constants(oracle);
    for (oracle->slot_count = 64; oracle->slot_count < 2 * points->count; oracle->slot_count *= 2)
        ;
    oracle->slots = calloc(oracle->slot_count, sizeof(*oracle->slots));
    if (!oracle->slots) {
        autoware_oracle_destroy(oracle);
        return NULL;
    }
    for (size_t i = 0; i < points->count; i++)
        add_map_point(oracle, (double[3]){points->origin_m[0] + (double)points->x_m[i],
                                          points->origin_m[1] + (double)points->y_m[i],
                                          points->origin_m[2] + (double)points->z_m[i]});
    for (size_t i = 0; i < oracle->slot_count; i++)
        finish_voxel(&oracle->slots[i], leaf_m);
    return oracle;
}

void autoware_oracle_destroy(struct autoware_oracle *oracle)
{
    if (!oracle)
        return;
    free(oracle->slots);
    free(oracle);
}

/* Sines and cosines of a, b, c. */
struct angles {
    double sx, cx, sy, cy, sz, cz;
};

static double dot3(double a, double b, double c, const double x[3])
{
    return a * x[0] + b * x[1] + c * x[2];
}

static void set3(double out[3], double x, double y, double z)
{
    out[0] = x;
    out[1] = y;
    out[2] = z;
}

static void rotate(const struct angles *t, const double x[3], double out[3])
{
    const double sx = t->sx, cx = t->cx, sy = t->sy, cy = t->cy, sz = t->sz, cz = t->cz;
    out[0] = dot3(cy * cz, -cy * sz, sy, x);
    out[1] = dot3(cx * sz + sx * sy * cz, cx * cz - sx * sy * sz, -sx * cy, x);
    out[2] = dot3(sx * sz - cx * sy * cz, sx * cz + cx * sy * sz, cx * cy, x);
}

/* The eight rows of first derivatives. */
static void jacobian(const struct angles *t, const double x[3], double J[6][3])
{
    const double sx = t->sx, cx = t->cx, sy = t->sy, cy = t->cy, sz = t->sz, cz = t->cz;
    set3(J[0], 1, 0, 0);
    set3(J[1], 0, 1, 0);
    set3(J[2], 0, 0, 1);
    set3(J[3], 0, dot3(-sx * sz + cx * sy * cz, -sx * cz - cx * sy * sz, -cx * cy, x),
         dot3(cx * sz + sx * sy * cz, cx * cz - sx * sy * sz, -sx * cy, x));
    set3(J[4], dot3(-sy * cz, sy * sz, cy, x), dot3(sx * cy * cz, -sx * cy * sz, sx * sy, x),
         dot3(-cx * cy * cz, cx * cy * sz, -cx * sy, x));
    set3(J[5], dot3(-cy * sz, -cy * cz, 0, x), dot3(cx * cz - sx * sy * sz, -cx * sz - sx * sy * cz, 0, x),
         dot3(sx * cz + cx * sy * sz, cx * sy * cz - sx * sz, 0, x));
}

/* The fifteen rows of second derivatives. */
static void second_derivatives(const struct angles *t, const double x[3], double H[6][6][3])
{
    const double sx = t->sx, cx = t->cx, sy = t->sy, cy = t->cy, sz = t->sz, cz = t->cz;
    memset(H, 0, sizeof(double[6][6][3]));
    set3(H[3][3], 0, dot3(-cx * sz - sx * sy * cz, -cx * cz + sx * sy * sz, sx * cy, x),
         dot3(-sx * sz + cx * sy * cz, -sx * cz - cx * sy * sz, -cx * cy, x));
    set3(H[3][4], 0, dot3(cx * cy * cz, -cx * cy * sz, cx * sy, x), dot3(sx * cy * cz, -sx * cy * sz, sx * sy, x));
    set3(H[3][5], 0, dot3(-sx * cz - cx * sy * sz, sx * sz - cx * sy * cz, 0, x),
         dot3(cx * cz - sx * sy * sz, -cx * sz - sx * sy * cz, 0, x));
    set3(H[4][4], dot3(-cy * cz, cy * sz, -sy, x), dot3(-sx * sy * cz, sx * sy * sz, sx * cy, x),
         dot3(cx * sy * cz, -cx * sy * sz, -cx * cy, x));
    set3(H[4][5], dot3(sy * sz, sy * cz, 0, x), dot3(-sx * cy * sz, -sx * cy * cz, 0, x),
         dot3(cx * cy * sz, cx * cy * cz, 0, x));
    set3(H[5][5], dot3(-cy * cz, cy * sz, 0, x), dot3(-cx * sz - sx * sy * cz, -cx * cz + sx * sy * sz, 0, x),
         dot3(-sx * sz + cx * sy * cz, -sx * cz - cx * sy * sz, 0, x));
    for (int i = 3; i < 6; i++)
        for (int j = 3; j < i; j++)
            memcpy(H[i][j], H[j][i], sizeof(H[i][j]));
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void multiply(const double B[9], const double x[3], double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = dot(B + 3 * i, x);
}

static void add_pair(const struct autoware_oracle *oracle, const struct oracle_voxel *voxel, const double mapped[3],
                     const struct point_derivatives *point, struct sums *out)
{
    double q[3], u[3], BJ[6][3];
    for (int i = 0; i < 3; i++)
        q[i] = mapped[i] - voxel->mean_m[i];
    multiply(voxel->B, q, u);
    const double d2 = oracle->d2, E = exp(-0.5 * d2 * dot(q, u)), w = oracle->d1 * d2 * E;
    out->score += -oracle->d1 * E;
    out->pairs += 1.0;
    for (int i = 0; i < 6; i++)
        multiply(voxel->B, point->J[i], BJ[i]);
    for (int i = 0; i < 6; i++) {
        out->g[i] += w * dot(u, point->J[i]);
        for (int j = 0; j < 6; j++)
            out->H[i][j] += w * (-d2 * dot(u, point->J[i]) * dot(u, point->J[j]) + dot(u, point->H[i][j]) +
                                 dot(point->J[j], BJ[i]));
    }
}

/* All voxels whose mean lies within one leaf: a mean lies in its own cell, so 27 cells hold them all. */
static void add_point(const struct autoware_oracle *oracle, const double mapped[3],
                      const struct point_derivatives *point, struct sums *out)
{
    int64_t own[3], cell[3];
    for (int i = 0; i < 3; i++)
        own[i] = (int64_t)floor(mapped[i] / oracle->leaf_m);
    for (int k = 0; k < 27; k++) {
        cell[0] = own[0] + k % 3 - 1;
        cell[1] = own[1] + k / 3 % 3 - 1;
        cell[2] = own[2] + k / 9 - 1;
        const struct oracle_voxel *voxel = slot_of(oracle, cell);
        if (!voxel->valid)
            continue;
        const double q[3] = {mapped[0] - voxel->mean_m[0], mapped[1] - voxel->mean_m[1],
                             mapped[2] - voxel->mean_m[2]};
        if (dot(q, q) <= oracle->leaf_m * oracle->leaf_m)
            add_pair(oracle, voxel, mapped, point, out);
    }
}

static void evaluate(const struct autoware_oracle *oracle, const struct ndt_cloud *scan, const double p[6],
                     struct sums *out)
{
    memset(out, 0, sizeof(*out));
    const struct angles t = {sin(p[3]), cos(p[3]), sin(p[4]), cos(p[4]), sin(p[5]), cos(p[5])};
    for (size_t i = 0; i < scan->count; i++) {
        const double x[3] = {scan->x_m[i], scan->y_m[i], scan->z_m[i]};
        struct point_derivatives point;
        double mapped[3];
        rotate(&t, x, mapped);
        for (int k = 0; k < 3; k++)
            mapped[k] += p[k];
        jacobian(&t, x, point.J);
        second_derivatives(&t, x, point.H);
        add_point(oracle, mapped, &point, out);
    }
}

/* Gaussian elimination with row exchange. */
static void solve6(double A[6][6], double b[6])
{
    for (int k = 0; k < 6; k++) {
        int pivot = k;
        for (int i = k + 1; i < 6; i++)
            pivot = fabs(A[i][k]) > fabs(A[pivot][k]) ? i : pivot;
        for (int j = 0; j < 6; j++) {
            const double kept = A[k][j];
            A[k][j] = A[pivot][j];
            A[pivot][j] = kept;
        }
        const double kept = b[k];
        b[k] = b[pivot];
        b[pivot] = kept;
        for (int i = k + 1; i < 6; i++) {
            const double factor = A[i][k] / A[k][k];
            for (int j = k; j < 6; j++)
                A[i][j] -= factor * A[k][j];
            b[i] -= factor * b[k];
        }
    }
    for (int k = 5; k >= 0; k--) {
        for (int j = k + 1; j < 6; j++)
            b[k] -= A[k][j] * b[j];
        b[k] /= A[k][k];
    }
}

/* Moves p; returns the length of the step, or 0 when there is no direction. */
static double newton_direction(struct sums *sums, double step_size, double epsilon, double p[6])
{
    double d[6], norm2 = 0.0, slope = 0.0;
    for (int i = 0; i < 6; i++)
        d[i] = -sums->g[i];
    solve6(sums->H, d);
    for (int i = 0; i < 6; i++) {
        norm2 += d[i] * d[i];
        slope += sums->g[i] * d[i];
    }
    const double norm = sqrt(norm2), alpha = fmin(fmax(norm, 0.5 * epsilon), step_size);
    if (!(norm > 0.0) || !isfinite(norm))
        return 0.0;
    for (int i = 0; i < 6; i++)
        p[i] += (slope < 0.0 ? -alpha : alpha) * d[i] / norm;
    return alpha;
}

void autoware_oracle_align(const struct autoware_oracle *oracle, const struct ndt_cloud *scan,
                           const struct ndt_pose *T_map_guess, double step_size, double epsilon, int max_iterations,
                           struct autoware_oracle_result *out)
{
    double p[6], alpha = step_size;
    struct sums sums;
    ndt_pose_to_euler(T_map_guess, p);
    memset(out, 0, sizeof(*out));
    while (out->iterations < max_iterations && alpha >= epsilon) {
        evaluate(oracle, scan, p, &sums);
        out->score = sums.score;
        out->pairs = sums.pairs;
        alpha = newton_direction(&sums, step_size, epsilon, p);
        out->iterations++;
    }
    out->T_map_sensor = ndt_pose_from_euler(p);
}
