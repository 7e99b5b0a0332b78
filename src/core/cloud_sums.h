/* Private to the core: the sums of a cloud's points over the cells of one size. */
#ifndef NDT_CLOUD_SUMS_H
#define NDT_CLOUD_SUMS_H

#include "ndt/cloud.h"
#include "pool.h"
#include "sum_table.h"

/* Point i relative to origin_m; 0 when it is not finite. */
int ndt_cloud_point(const struct ndt_cloud *cloud, size_t i, const double origin_m[3], double x_m[3]);

/* Sums all finite points, *points of them, with the threads of the pool (at most NDT_BUILD_THREADS_MAX). `out` is
 * the caller's to free, also after a failure. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_sums(struct ndt_sum_table *out, uint64_t *points,
                                              const struct ndt_cloud *cloud, const double origin_m[3],
                                              double leaf_m, struct ndt_pool *pool, struct ndt_error *err);

#endif
