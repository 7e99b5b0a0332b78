/* What an evaluation of the NDT score is asked for and what it gives. Plain data, for gcc and nvcc. */
#ifndef NDT_EVAL_H
#define NDT_EVAL_H

#include "ndt/map.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where to evaluate. p = (tx, ty, tz, a, b, c): x_map = Rx(a) Ry(b) Rz(c) x + t, with t relative to
 * the origin of the map [m, rad]. */
struct ndt_eval_request {
    int level; /* index into map->levels */
    enum ndt_neighbours neighbours;
    double p[6];
};

/* The 31 reduced sums (ndt score is positive and maximised). */
struct ndt_eval {
    double score;
    double gradient[6];
    double hessian[21];   /* upper triangle by rows: 00 01 .. 05 11 12 .. 55 */
    double nearest_score; /* sum over matched points of their best voxel's score */
    double matched;       /* points with at least one voxel */
    double pairs;
};

#ifdef __cplusplus
}
#endif
#endif
