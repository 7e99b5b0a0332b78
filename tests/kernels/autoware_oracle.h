/** @file
 * @brief Autoware's NDT scan matcher written down once more, in double, for comparison with the product's variant.
 *
 * Everything is its own: voxel Gaussians with the covariance seeded by the identity, neighbours by a search
 * over cells, score, gradient and Hessian pair by pair from the tables of derivatives (Magnusson 2009,
 * eq. 6.12-6.21, with the signs corrected), Newton steps with a clamped length and no line search. It is
 * made to be read next to the formulas, not to be fast: about 5 ms per evaluation of 1500 points. */
#ifndef AUTOWARE_ORACLE_H
#define AUTOWARE_ORACLE_H

#include "ndt/cloud.h"
#include "ndt/pose.h"

struct autoware_oracle_result {
    struct ndt_pose T_map_sensor;
    int iterations;
    double score; /* score at the last pose with derivatives */
    double pairs;
};

struct autoware_oracle;
/* Creates an oracle from map points; NULL when there is no memory. One owner, one thread. */
struct autoware_oracle *autoware_oracle_create(const struct ndt_cloud *points, double leaf_m);
void autoware_oracle_destroy(struct autoware_oracle *oracle);
/* step_size 0.1, epsilon 0.01 and 30 iterations are Autoware's. */
void autoware_oracle_align(const struct autoware_oracle *oracle, const struct ndt_cloud *scan,
                           const struct ndt_pose *T_map_guess, double step_size, double epsilon, int max_iterations,
                           struct autoware_oracle_result *out);

#endif
