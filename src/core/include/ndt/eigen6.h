/** @file
 * @brief Private: eigenvalues and eigenvectors of a symmetric 6x6 matrix, by one thread of a host or by the lanes
 * of a warp, with the same operations.
 *
 * Jacobi's method with three rotations at a time (Brent & Luk, SIAM J. Sci. Stat. Comput. 6, 1985): those of
 * disjoint pairs of rows do not need one another's results, and five rounds of three pairs, as a tournament of six
 * has them, meet every pair once. A round has two phases: the angles, by three lanes; and what they change, by
 * EIGEN6_LANES. Within a phase no lane reads or writes what another one writes. A host runs the lanes of a phase
 * one after the other, a warp at once, with a barrier behind each phase.
 *
 * Elements are to be below 1e150; beside the diagonal those below 1e-140 count as zero. */
#ifndef NDT_EIGEN6_H
#define NDT_EIGEN6_H

#include <math.h>

#include "ndt/device_code.h"

enum { EIGEN6_PAIRS = 3, EIGEN6_ROUNDS = 5, EIGEN6_SWEEPS = 30, EIGEN6_LANES = EIGEN6_PAIRS + 6 * EIGEN6_PAIRS };

struct eigen6 {
    double A[36];       /**< the matrix, its upper triangle; destroyed */
    double values[6];   /**< ascending */
    double vectors[36]; /**< in columns, row-major */
    double V[36], c[3], s[3];
    int turned[EIGEN6_PAIRS]; /**< in this round */
    int is_wanted;            /**< of a warp: the matrix is there */
};

/** Rows p < q of pair `i` of a round. */
NDT_INLINED void eigen6_pair(int round, int i, int *p, int *q)
{
    const int a = i == 0 ? 5 : (round + i) % 5, b = (round + 5 - i) % 5;
    *p = a < b ? a : b;
    *q = a < b ? b : a;
}

NDT_INLINED double *eigen6_at(struct eigen6 *e, int i, int j)
{
    return e->A + (i < j ? 6 * i + j : 6 * j + i);
}

NDT_INLINED void eigen6_load(struct eigen6 *e, const double upper[21])
{
    NDT_FOR (int i = 0, at = 0; i < 6; i++)
        NDT_FOR (int j = i; j < 6; j++)
            e->A[6 * i + j] = upper[at++];
}

/** First phase of all, by all lanes. */
NDT_INLINED void eigen6_begin(struct eigen6 *e, int lane)
{
    for (int i = lane; i < 36; i += EIGEN6_LANES)
        e->V[i] = i % 7 == 0;
}

/** First phase of a round, by the lanes of the pairs: the rotation that makes A[p][q] zero. With h the distance of
 * the eigenvalues of the 2x2 matrix and d that of its diagonal, the square of the cosine is (1 + d / h) / 2. */
NDT_INLINED void eigen6_turn(struct eigen6 *e, int round, int i)
{
    int p, q;
    eigen6_pair(round, i, &p, &q);
    double *const at = e->A + 6 * p + q, *const first = e->A + 7 * p, *const second = e->A + 7 * q;
    const double apq = *at, app = *first, aqq = *second;
    const int turned = apq * apq > 1e-32 * fabs(app * aqq) && fabs(apq) > 1e-140;
    double c = 1, s = 0;
    if (turned) {
        const double d = aqq - app, b = 2 * apq, per_h = NDT_INVERSE_ROOT(d * d + b * b);
        const double square = 0.5 + 0.5 * (fabs(d) * per_h), per_c = NDT_INVERSE_ROOT(square);
        c = square * per_c;
        s = (d >= 0 ? 0.5 : -0.5) * (b * per_h) * per_c;
        const double moved = s * per_c * apq;
        *first = app - moved;
        *second = aqq + moved;
        *at = 0;
    }
    e->c[i] = c;
    e->s[i] = s;
    e->turned[i] = turned;
}

/** The four elements between two pairs. */
NDT_INLINED void eigen6_turn_between(struct eigen6 *e, int round, int i, int j)
{
    int pi, qi, pj, qj;
    eigen6_pair(round, i, &pi, &qi);
    eigen6_pair(round, j, &pj, &qj);
    double *const pp = eigen6_at(e, pi, pj), *const pq = eigen6_at(e, pi, qj);
    double *const qp = eigen6_at(e, qi, pj), *const qq = eigen6_at(e, qi, qj);
    const double ci = e->c[i], si = e->s[i], cj = e->c[j], sj = e->s[j];
    const double a = ci * *pp - si * *qp, b = ci * *pq - si * *qq;
    const double f = si * *pp + ci * *qp, g = si * *pq + ci * *qq;
    *pp = cj * a - sj * b;
    *pq = sj * a + cj * b;
    *qp = cj * f - sj * g;
    *qq = sj * f + cj * g;
}

/** Second phase of a round, by all lanes, if any pair has turned. */
NDT_INLINED void eigen6_apply(struct eigen6 *e, int round, int lane)
{
    if (lane < EIGEN6_PAIRS) {
        eigen6_turn_between(e, round, lane == 2, lane == 0 ? 1 : 2);
        return;
    }
    const int row = (lane - EIGEN6_PAIRS) / EIGEN6_PAIRS, i = lane % EIGEN6_PAIRS;
    int p, q;
    eigen6_pair(round, i, &p, &q);
    double *const vp = e->V + 6 * row + p, *const vq = e->V + 6 * row + q;
    const double c = e->c[i], s = e->s[i], was_p = *vp, was_q = *vq;
    *vp = c * was_p - s * was_q;
    *vq = s * was_p + c * was_q;
}

NDT_INLINED int eigen6_has_turned(const struct eigen6 *e)
{
    return e->turned[0] | e->turned[1] | e->turned[2];
}

/** Last phase of all, by six lanes: the place of an eigenvalue is the number of those before it. Those that are no
 * numbers have no order, and stay where they are. */
NDT_INLINED void eigen6_sort(struct eigen6 *e, int lane)
{
    const double value = e->A[7 * lane];
    int place = 0, are_numbers = 1;
    NDT_FOR (int i = 0; i < 6; i++) {
        const double other = e->A[7 * i];
        are_numbers &= other == other;
        place += other < value || (other == value && i < lane);
    }
    place = are_numbers ? place : lane;
    e->values[place] = value;
    NDT_FOR (int i = 0; i < 6; i++)
        e->vectors[6 * i + place] = e->V[6 * i + lane];
}

/** By one thread. */
NDT_INLINED void eigen6_run_alone(struct eigen6 *e)
{
    int has_turned = 1;
    for (int lane = 0; lane < EIGEN6_LANES; lane++)
        eigen6_begin(e, lane);
    for (int sweep = 0; has_turned && sweep < EIGEN6_SWEEPS; sweep++) {
        has_turned = 0;
        for (int round = 0; round < EIGEN6_ROUNDS; round++) {
            for (int i = 0; i < EIGEN6_PAIRS; i++)
                eigen6_turn(e, round, i);
            if (!eigen6_has_turned(e))
                continue;
            has_turned = 1;
            for (int lane = 0; lane < EIGEN6_LANES; lane++)
                eigen6_apply(e, round, lane);
        }
    }
    for (int lane = 0; lane < 6; lane++)
        eigen6_sort(e, lane);
}

#endif
