#include "kernel_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_differences.h"
#include "kernel_information.h"

enum {
    SIGMA_CLASSES = 40,
    SIGMA_LOWEST = -28,
    RANGE_CLASSES = 20,
    DERIVED = 28,
    STEP_BITS = LDBL_MANT_DIG / 8,
    MAX_CANDIDATES = 5 * 5 * 5,
    INFORMED = KERNEL_ALL - KERNEL_SUMS
};

static const long double rounding_unit[KERNEL_ROUNDINGS] = {0x1p-24L, 0x1p-53L};

/* A voxel as the reference sees it. */
struct voxel {
    int32_t cell[3];
    long double mean_m[3]; /* mean in the map frame */
    long double B[6];      /* xx xy xz yy yz zz */
    long double sigma_m;   /* at most the smallest deviation */
    struct kernel_normal normal;
};

struct kernel_reference {
    const struct ndt_map_level *level;
    struct voxel *voxels;
    uint32_t *slots; /* open addressing by cell; 0 = free */
    uint32_t slot_count;
    struct kernel_finite_difference *stencils[SIGMA_CLASSES][RANGE_CLASSES];
    int made[SIGMA_CLASSES][RANGE_CLASSES]; /* made for the pose of the present question */
    struct kernel_quarter_turns turns;      /* quarter turns of that pose */
};

struct candidate {
    uint32_t voxel;
    int member, unsure[KERNEL_ROUNDINGS];
};

/* One point of the question, and its place. */
struct placed_point {
    long double x_m[3];                     /* sensor frame */
    long double map_m[3];                   /* map frame */
    long double range_m, offset_m;          /* of the point from the sensor; of the sensor from the map's origin */
    long double border_m[KERNEL_ROUNDINGS]; /* closer to a border than this is unsure */
    int near_border[KERNEL_ROUNDINGS];      /* closer than that to the border of its cell */
    long double time_s;
    long double weight; /* weight of all its terms */
    long double J[6][3];
};

/* Share of one pair in score, gradient and Hessian. */
struct pair_terms {
    long double value[DERIVED], weight[DERIVED];
    long double own[DERIVED];
    long double inner, rotation_scale, shift; /* factors on the weights */
};

/* The share of the sums behind KERNEL_SUMS. */
struct informed_terms {
    long double value[INFORMED], weight[INFORMED], own[INFORMED];
    long double condition[KERNEL_ROUNDINGS];
};

static uint32_t cell_hash(const int32_t cell[3])
{
    uint64_t h = (uint32_t)cell[0];
    h = h * 0x100000001b3u ^ (uint32_t)cell[1];
    h = h * 0x100000001b3u ^ (uint32_t)cell[2];
    h *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static void index_voxel(struct kernel_reference *reference, uint32_t number)
{
    uint32_t slot = cell_hash(reference->voxels[number].cell) & (reference->slot_count - 1u);
    while (reference->slots[slot])
        slot = (slot + 1u) & (reference->slot_count - 1u);
    reference->slots[slot] = number;
}

static uint32_t find_voxel(const struct kernel_reference *reference, const int32_t cell[3])
{
    uint32_t slot = cell_hash(cell) & (reference->slot_count - 1u);
    for (; reference->slots[slot]; slot = (slot + 1u) & (reference->slot_count - 1u))
        if (memcmp(reference->voxels[reference->slots[slot]].cell, cell, sizeof(int32_t[3])) == 0)
            return reference->slots[slot];
    return 0;
}

static void take_voxel(struct voxel *voxel, const struct ndt_voxel *record, double leaf_m)
{
    for (int i = 0; i < 3; i++) {
        voxel->cell[i] = record->cell[i];
        voxel->mean_m[i] = (long double)record->cell[i] * leaf_m + record->mean_m[i];
    }
    for (int i = 0; i < 6; i++)
        voxel->B[i] = record->icov[i];
    voxel->sigma_m = 1.0L / sqrtl(voxel->B[0] + voxel->B[3] + voxel->B[5]);
}

struct kernel_reference *kernel_reference_create(const struct ndt_map_level *level)
{
    struct kernel_reference *reference = calloc(1, sizeof(*reference));
    if (!reference)
        return NULL;
    reference->level = level;
    reference->slot_count = 16;
    while (reference->slot_count < 2u * level->voxel_count)
        reference->slot_count *= 2u;
    reference->voxels = calloc(level->voxel_count + 1u, sizeof(*reference->voxels));
    reference->slots = calloc(reference->slot_count, sizeof(*reference->slots));
    if (!reference->voxels || !reference->slots) {
        kernel_reference_destroy(reference);
        return NULL;
    }
    for (uint32_t i = 1; i < level->voxel_count; i++) {
        take_voxel(&reference->voxels[i], &level->voxels[i], level->leaf_m);
        index_voxel(reference, i);
    }
    return reference;
}

void kernel_reference_destroy(struct kernel_reference *reference)
{
    if (!reference)
        return;
    for (int i = 0; i < SIGMA_CLASSES; i++)
        for (int j = 0; j < RANGE_CLASSES; j++)
            free(reference->stencils[i][j]);
    free(reference->slots);
    free(reference->voxels);
    free(reference);
}

static int clamp_class(int value, int count)
{
    return value < 0 ? 0 : value >= count ? count - 1 : value;
}

/* Steps are powers of two, the same part of the deviation for every voxel: small enough that the truncation of
 * the differences stays near 1e-12 of the terms, and no smaller, because rounding grows with their square. */
static const struct kernel_finite_difference *finite_difference_for(struct kernel_reference *reference,
                                                                    const double p[6], long double sigma_m,
                                                                    long double range_m)
{
    int sigma_exponent, range_exponent;
    frexpl(sigma_m, &sigma_exponent);
    frexpl(range_m + 1.0L, &range_exponent);
    const int i = clamp_class(sigma_exponent - SIGMA_LOWEST, SIGMA_CLASSES);
    const int j = clamp_class(range_exponent, RANGE_CLASSES);
    if (!reference->stencils[i][j])
        reference->stencils[i][j] = malloc(sizeof(struct kernel_finite_difference));
    if (reference->stencils[i][j] && !reference->made[i][j]) {
        const long double step_m = ldexpl(1.0L, i + SIGMA_LOWEST - STEP_BITS);
        kernel_finite_difference_make(reference->stencils[i][j], p, step_m, ldexpl(step_m, -j));
        reference->made[i][j] = 1;
    }
    return reference->stencils[i][j];
}

/* q B q for the point seen from `T`; *length_m = |q|. */
static long double mahalanobis2(const struct voxel *voxel, const struct kernel_transform *T, const long double x[3],
                                long double *length_m)
{
    long double q[3];
    kernel_transform_point(T, x, q);
    for (int i = 0; i < 3; i++)
        q[i] -= voxel->mean_m[i];
    *length_m = sqrtl(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
    const long double *B = voxel->B;
    return B[0] * q[0] * q[0] + B[3] * q[1] * q[1] + B[5] * q[2] * q[2] +
           2.0L * (B[1] * q[0] * q[1] + B[2] * q[0] * q[2] + B[4] * q[1] * q[2]);
}

/* The one formula: Magnusson 2009, eq. 6.9. */
static long double pair_score(const struct ndt_map_level *level, const struct placed_point *point,
                              long double distance2)
{
    return point->weight * -(long double)level->d1 * expl(-0.5L * (long double)level->d2 * distance2);
}

/* Bounds the error of the differences: truncation, by the fourth power of the step, and the rounding of places,
 * LDBL_EPSILON of their coordinates, divided by the steps. */
static void bound_own_error(const struct kernel_finite_difference *points, const struct placed_point *point,
                            const struct voxel *voxel, long double slope, struct pair_terms *terms)
{
    const long double places_m = point->range_m + point->offset_m;
    const long double noise =
        terms->value[KERNEL_SCORE] * LDBL_EPSILON * (1.0L + slope * places_m / voxel->sigma_m);
    const long double truncation = ldexpl(1.0L, -4 * STEP_BITS - 5);
    terms->own[KERNEL_SCORE] = 4.0L * noise;
    for (int i = 0, k = KERNEL_HESSIAN; i < 6; i++) {
        terms->own[KERNEL_GRADIENT + i] =
            truncation * terms->weight[KERNEL_GRADIENT + i] + 4.0L * noise / points->step[i];
        for (int j = i; j < 6; j++, k++)
            terms->own[k] = truncation * terms->weight[k] + 16.0L * noise / (points->step[i] * points->step[j]);
    }
}

/* Gradient and Hessian terms by differencing, and the bounds on their size. */
static int derive_pair(struct kernel_reference *reference, const double p[6], const struct placed_point *point,
                       const struct voxel *voxel, struct pair_terms *terms)
{
    const struct kernel_finite_difference *points =
        finite_difference_for(reference, p, voxel->sigma_m, point->range_m);
    if (!points)
        return 0;
    long double distance2[KERNEL_FINITE_DIFFERENCE_POSES], score[KERNEL_FINITE_DIFFERENCE_POSES], curvature[6],
        length_m;
    for (int k = 0; k < KERNEL_FINITE_DIFFERENCE_POSES; k++) {
        distance2[k] = mahalanobis2(voxel, &points->at[k], point->x_m, &length_m);
        score[k] = pair_score(reference->level, point, distance2[k]);
    }
    kernel_finite_difference_derive(points, score, terms->value + KERNEL_GRADIENT, terms->value + KERNEL_HESSIAN);
    kernel_finite_difference_curvature(points, distance2, curvature);
    const long double d2 = reference->level->d2, reach = fmaxl(1.0L, distance2[0]);
    for (int i = 0, k = KERNEL_HESSIAN; i < 6; i++) {
        const long double stiffness = sqrtl(fabsl(curvature[i]) / 2.0L);
        terms->weight[KERNEL_GRADIENT + i] = score[0] * d2 * sqrtl(reach) * stiffness;
        for (int j = i; j < 6; j++)
            terms->weight[k++] =
                score[0] * d2 * (d2 * reach + 1.0L) * stiffness * sqrtl(fabsl(curvature[j]) / 2.0L);
    }
    const long double deviations = sqrtl(fmaxl(0.0L, distance2[0])) + ldexpl(1.0L, -STEP_BITS);
    bound_own_error(points, point, voxel, d2 * deviations, terms);
    return 1;
}

/* The pair's share of the sums and of what tolerances are made of. */
static int weigh_pair(struct kernel_reference *reference, const double p[6], const struct kernel_transform *centre,
                      const struct placed_point *point, uint32_t number, int derive, struct pair_terms *terms)
{
    memset(terms, 0, sizeof(*terms));
    const struct voxel *voxel = &reference->voxels[number];
    const long double d2 = reference->level->d2;
    long double length_m;
    const long double distance2 = mahalanobis2(voxel, centre, point->x_m, &length_m);
    terms->value[KERNEL_SCORE] = terms->weight[KERNEL_SCORE] = pair_score(reference->level, point, distance2);
    const long double relative = (1.0L + d2 * sqrtl(fmaxl(0.0L, distance2))) / voxel->sigma_m;
    terms->inner = 1.0L + 0.5L * d2 * length_m * length_m / (voxel->sigma_m * voxel->sigma_m);
    terms->rotation_scale = relative * point->range_m;
    terms->shift = relative;
    if (!derive || d2 * distance2 > 200.0L) /* below 1e-43: nothing any float or sum could show */
        return 1;
    return derive_pair(reference, p, point, voxel, terms);
}

/* Terms are bounded by the trace of the voxel, and rotations move a point by at most its range. */
static void inform_pair(struct kernel_reference *reference, const struct placed_point *point, uint32_t number,
                        const struct pair_terms *terms, struct informed_terms *out)
{
    struct kernel_normal *normal = &reference->voxels[number].normal;
    const long double w = (long double)reference->level->d2 * terms->value[KERNEL_SCORE], a = point->time_s;
    const long double powers[3] = {1.0L, a, a * a};
    long double J[6][3], value[21];
    memset(out, 0, sizeof(*out));
    memcpy(J, point->J, sizeof(J));
    if (!normal->known)
        kernel_normal_of(reference->voxels[number].B, normal);
    kernel_information_of(normal->K, J, value);
    for (int i = 0; i < 6; i++) {
        out->value[i] = a * terms->value[KERNEL_GRADIENT + i];
        out->weight[i] = fabsl(a) * terms->weight[KERNEL_GRADIENT + i];
        out->own[i] = fabsl(a) * terms->own[KERNEL_GRADIENT + i];
    }
    for (int power = 0, at = 6; power < 3; power++)
        for (int i = 0, k = 0; i < 6; i++)
            for (int j = i; j < 6; j++, k++, at++) {
                const long double size =
                    w * fabsl(powers[power]) * (i < 3 ? 1.0L : point->range_m) * (j < 3 ? 1.0L : point->range_m);
                out->value[at] = w * powers[power] * value[k];
                out->weight[at] = size * normal->trace;
                out->own[at] = size * (normal->ambiguous + 64.0L * LDBL_EPSILON * normal->trace);
            }
    for (int r = 0; r < KERNEL_ROUNDINGS; r++)
        out->condition[r] = kernel_normal_condition(normal, rounding_unit[r]);
}

static int cells_touch(enum ndt_neighbours neighbours, const int32_t voxel[3], const int32_t own[3])
{
    int steps = 0, longest = 0;
    for (int i = 0; i < 3; i++) {
        const int step = abs(voxel[i] - own[i]);
        steps += step;
        longest = step > longest ? step : longest;
    }
    if (neighbours == NDT_DIRECT1)
        return steps == 0;
    return neighbours == NDT_DIRECT7 ? steps <= 1 : longest <= 1;
}

static int32_t cell_of(long double x_m, long double leaf_m)
{
    return (int32_t)floorl(x_m / leaf_m);
}

static int is_near_border(const long double map_m[3], long double leaf_m, long double border_m)
{
    for (int i = 0; i < 3; i++)
        if (cell_of(map_m[i] - border_m, leaf_m) != cell_of(map_m[i] + border_m, leaf_m))
            return 1;
    return 0;
}

/* Whether membership of the voxel depends on the side of a border on which the point falls. */
static int border_matters(const struct kernel_reference *reference, const struct placed_point *point,
                          enum ndt_neighbours neighbours, const struct voxel *voxel, int rounding, int member)
{
    const long double leaf_m = reference->level->leaf_m, border_m = point->border_m[rounding];
    for (int corner = 0; corner < 8 && point->near_border[rounding]; corner++) {
        int32_t own[3];
        for (int i = 0; i < 3; i++)
            own[i] = cell_of(point->map_m[i] + (corner >> i & 1 ? border_m : -border_m), leaf_m);
        if (cells_touch(neighbours, voxel->cell, own) != member)
            return 1;
    }
    return 0;
}

/* Sets membership; 0 when the voxel has nothing to do with the point. */
static int assess(const struct kernel_reference *reference, const struct placed_point *point,
                  enum ndt_neighbours neighbours, const int32_t own[3], struct candidate *candidate)
{
    const struct voxel *voxel = &reference->voxels[candidate->voxel];
    long double distance2 = 0.0L;
    for (int i = 0; i < 3; i++)
        distance2 += (point->map_m[i] - voxel->mean_m[i]) * (point->map_m[i] - voxel->mean_m[i]);
    const long double beyond_m = sqrtl(distance2) - reference->level->leaf_m;
    candidate->member = neighbours == NDT_RADIUS ? beyond_m <= 0.0L : cells_touch(neighbours, voxel->cell, own);
    int concerned = candidate->member;
    for (int r = 0; r < KERNEL_ROUNDINGS; r++) {
        if (neighbours == NDT_RADIUS)
            candidate->unsure[r] = fabsl(beyond_m) < point->border_m[r];
        else
            candidate->unsure[r] = border_matters(reference, point, neighbours, voxel, r, candidate->member);
        concerned |= candidate->unsure[r];
    }
    return concerned;
}

static int collect(const struct kernel_reference *reference, struct placed_point *point,
                   enum ndt_neighbours neighbours, struct candidate out[MAX_CANDIDATES])
{
    const long double leaf_m = reference->level->leaf_m;
    int32_t own[3], cell[3];
    for (int i = 0; i < 3; i++) {
        if (fabsl(point->map_m[i]) / leaf_m > 1e9L)
            return 0;
        own[i] = cell_of(point->map_m[i], leaf_m);
    }
    for (int r = 0; r < KERNEL_ROUNDINGS; r++)
        point->near_border[r] = is_near_border(point->map_m, leaf_m, point->border_m[r]);
    int count = 0;
    for (cell[2] = own[2] - 2; cell[2] <= own[2] + 2; cell[2]++)
        for (cell[1] = own[1] - 2; cell[1] <= own[1] + 2; cell[1]++)
            for (cell[0] = own[0] - 2; cell[0] <= own[0] + 2; cell[0]++) {
                struct candidate candidate = {find_voxel(reference, cell), 0, {0, 0}};
                if (candidate.voxel && assess(reference, point, neighbours, own, &candidate))
                    out[count++] = candidate;
            }
    return count;
}

static void add_member(struct kernel_expected *out, const struct pair_terms *terms,
                       const struct informed_terms *informed)
{
    for (int k = 0, i = KERNEL_SUMS; k < INFORMED; k++, i++) {
        out->value[i] += informed->value[k];
        out->weight[i] += informed->weight[k];
        out->inner[i] += informed->weight[k] * terms->inner;
        out->rotation_scale[i] += informed->weight[k] * terms->rotation_scale;
        out->shift[i] += informed->weight[k] * terms->shift;
        out->own[i] += informed->own[k];
        for (int r = 0; r < KERNEL_ROUNDINGS && i >= KERNEL_INFORMATION; r++)
            out->normal[r][i] += informed->weight[k] * informed->condition[r];
    }
    for (int i = 0; i < DERIVED; i++) {
        out->value[i] += terms->value[i];
        out->weight[i] += terms->weight[i];
        out->inner[i] += terms->weight[i] * terms->inner;
        out->rotation_scale[i] += terms->weight[i] * terms->rotation_scale;
        out->shift[i] += terms->weight[i] * terms->shift;
        out->own[i] += terms->own[i];
    }
    out->value[KERNEL_PAIRS] += 1.0L;
}

static void add_slack(long double slack[KERNEL_ALL], const struct pair_terms *terms,
                      const struct informed_terms *informed)
{
    for (int k = 0; k < INFORMED; k++)
        slack[KERNEL_SUMS + k] += fabsl(informed->value[k]);
    for (int i = 0; i < DERIVED; i++)
        slack[i] += fabsl(terms->value[i]);
    slack[KERNEL_PAIRS] += 1.0L;
}

/* Adds the point to the sums over matched points. */
static void add_nearest(struct kernel_expected *out, const struct pair_terms *best, int members)
{
    if (members == 0)
        return;
    const long double score = best->value[KERNEL_SCORE];
    out->value[KERNEL_MATCHED] += 1.0L;
    out->value[KERNEL_NEAREST] += score;
    out->weight[KERNEL_NEAREST] += score;
    out->inner[KERNEL_NEAREST] += score * best->inner;
    out->rotation_scale[KERNEL_NEAREST] += score * best->rotation_scale;
    out->shift[KERNEL_NEAREST] += score * best->shift;
    out->own[KERNEL_NEAREST] += best->own[KERNEL_SCORE];
}

static int add_point(struct kernel_reference *reference, const struct kernel_question *question,
                     const struct kernel_transform *centre, struct placed_point *point, int derive,
                     struct kernel_expected *out)
{
    struct candidate candidates[MAX_CANDIDATES];
    const int count = collect(reference, point, question->neighbours, candidates);
    struct pair_terms terms, best = {.value = {0}};
    struct informed_terms informed;
    int members = 0, sure[KERNEL_ROUNDINGS] = {0}, unsure[KERNEL_ROUNDINGS] = {0};
    long double unsure_score[KERNEL_ROUNDINGS] = {0};
    for (int k = 0; k < count; k++) {
        const int any_unsure = candidates[k].unsure[KERNEL_FLOAT] || candidates[k].unsure[KERNEL_DOUBLE];
        if (!weigh_pair(reference, question->p, centre, point, candidates[k].voxel, derive || any_unsure, &terms))
            return 0;
        if (!derive) /* derived only for the slack */
            memset(terms.weight + KERNEL_GRADIENT, 0, sizeof(terms.weight) - sizeof(terms.weight[0]));
        inform_pair(reference, point, candidates[k].voxel, &terms, &informed);
        if (candidates[k].member) {
            add_member(out, &terms, &informed);
            if (members++ == 0 || terms.value[KERNEL_SCORE] > best.value[KERNEL_SCORE])
                best = terms;
        }
        for (int r = 0; r < KERNEL_ROUNDINGS; r++) {
            if (candidates[k].unsure[r]) {
                add_slack(out->slack[r], &terms, &informed);
                unsure_score[r] = fmaxl(unsure_score[r], terms.value[KERNEL_SCORE]);
                unsure[r]++;
            } else if (candidates[k].member) {
                sure[r]++;
            }
        }
    }
    add_nearest(out, &best, members);
    for (int r = 0; r < KERNEL_ROUNDINGS; r++) {
        out->slack[r][KERNEL_MATCHED] += unsure[r] > 0 && sure[r] == 0 ? 1.0L : 0.0L;
        out->slack[r][KERNEL_NEAREST] += unsure_score[r];
    }
    return 1;
}

/* 0 for a point that is not finite. */
static int place(const struct kernel_question *question, const struct kernel_transform *centre, double leaf_m,
                 size_t i, struct placed_point *out)
{
    const struct ndt_cloud *scan = question->scan;
    const float x[3] = {scan->x_m[i], scan->y_m[i], scan->z_m[i]};
    out->range_m = out->offset_m = 0.0L;
    out->time_s = scan->time_s && isfinite(scan->time_s[i]) ? scan->time_s[i] : 0.0L;
    for (int k = 0; k < 3; k++) {
        if (!isfinite(x[k]))
            return 0;
        out->x_m[k] = x[k];
        out->range_m += fabsl(out->x_m[k]);
        out->offset_m += fabs(question->p[k]);
    }
    out->weight = 1.0L;
    kernel_transform_point(centre, out->x_m, out->map_m);
    for (int r = 0; r < KERNEL_ROUNDINGS; r++) {
        const long double scale_m = out->range_m + leaf_m + (r == KERNEL_DOUBLE ? out->offset_m : 0.0L);
        out->border_m[r] = question->exact ? 0.0L : 8.0L * rounding_unit[r] * scale_m;
    }
    return 1;
}

/* Weights of derivatives were gathered from a part of the points: scale them up to all. */
static void scale_weights(struct kernel_expected *out, int from, int to, long double factor)
{
    for (int i = from; i < to; i++) {
        out->weight[i] *= factor;
        out->inner[i] *= factor;
        out->rotation_scale[i] *= factor;
        out->shift[i] *= factor;
        out->own[i] *= factor;
        out->value[i] = 0.0L;
    }
}

int kernel_reference_eval(struct kernel_reference *reference, const struct kernel_question *question,
                          struct kernel_expected *out)
{
    memset(out, 0, sizeof(*out));
    memset(reference->made, 0, sizeof(reference->made));
    const size_t count = question->scan->count;
    out->derivatives = count <= question->full_points;
    long double p[6];
    for (int i = 0; i < 6; i++)
        p[i] = question->p[i];
    struct kernel_transform centre;
    kernel_transform_at(p, &centre);
    kernel_quarter_turns_make(question->p, &reference->turns);
    for (size_t i = 0; i < count; i++) {
        struct placed_point point;
        if (!place(question, &centre, reference->level->leaf_m, i, &point))
            continue;
        kernel_jacobian(&reference->turns, point.x_m, point.J);
        if (!add_point(reference, question, &centre, &point, i < question->full_points, out))
            return 0;
    }
    if (!out->derivatives) {
        const long double factor = (long double)count / (long double)question->full_points;
        scale_weights(out, KERNEL_GRADIENT, KERNEL_NEAREST, factor);
        scale_weights(out, KERNEL_TIME_GRADIENT, KERNEL_INFORMATION, factor);
    }
    return 1;
}
