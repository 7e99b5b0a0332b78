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
    /** By ndt_clock_us: when the sums are needed; 0: there is no deadline. A device without an answer in most of
     * the time until then counts as lost; nothing else depends on it. */
    double until_us;
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

/** Standard deviation of the normals of voxels [rad]. */
#define NDT_NORMAL_DEVIATION_RAD 0.02

/** Information of a scan about the pose at which it was evaluated, for an estimator.
 *
 * The curvature of the NDT score overstates what is known: the lattice of voxels seems to observe directions within
 * a plane. Here a pair of a point and a voxel informs along the normal n of the voxel only, with
 *
 *     K = w ((b3 - b2) n n^T - s^2 b3 (I - n n^T)),   w = -d1 d2 E,
 *
 * where b1 <= b2 <= b3 are the eigenvalues of the inverse covariance, n belongs to b3, E is the value of the pair
 * (ndt/point_math.h) and s = NDT_NORMAL_DEVIATION_RAD the uncertainty of normals. A pair within a plane or a line
 * may subtract: the sums are not always positive semidefinite. With the Jacobian J of the moved point by p:
 *
 *     information[k] = sum over the points of a^k J^T (sum of K) J,  k = 0, 1, 2,
 *
 * a the time of the point [s] (cloud->time_s; zero where the scan has none). A change dv of the twist that
 * deskewing has undone moves a point as a change a dv of the pose does, hence information[1] and [2]: cross and own
 * part of the information about the twist. */
struct ndt_information {
    struct ndt_eval eval;      /**< at the same pose, as by `eval` */
    double time_gradient[6];   /**< sum of a times the gradient of the point */
    double information[3][21]; /**< upper triangles */
};

#ifdef __cplusplus
}
#endif
#endif
