/** @file
 * @brief Request and result of an evaluation of the NDT score. Plain data, for gcc and nvcc. */
#ifndef NDT_EVAL_H
#define NDT_EVAL_H

#include "ndt/map.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where to evaluate. */
struct ndt_eval_request {
    int level; /**< index into map->levels */
    enum ndt_neighbours neighbours;
    /** (tx, ty, tz, a, b, c): x_map = Rx(a) Ry(b) Rz(c) x + t with t relative to the origin of the map [m, rad]. */
    double p[6];
};

/** The 31 sums over the points of a scan. The score is positive and is maximised. */
struct ndt_eval {
    double score;
    double gradient[6];
    double hessian[21];   /**< upper triangle by rows: 00 01 .. 05 11 12 .. 55 */
    double nearest_score; /**< sum over the matched points of the score of their best voxel */
    double matched;       /**< points with at least one voxel */
    double pairs;         /**< pairs of a point and a voxel */
};

#ifdef __cplusplus
}
#endif
#endif
