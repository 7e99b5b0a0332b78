/** @file
 * @brief Rating of a place: how well the map determines the pose there. */
#ifndef MAP_RATE_H
#define MAP_RATE_H

#include "map_scan.h"
#include "ndt/align.h"

enum { MAP_RATE_DISTANCES = 6, MAP_RATE_DIRECTIONS = 8, MAP_RATE_TURNS = 5 };

struct map_rating {
    size_t points;        /**< points of the simulated scan */
    int is_aligned;       /**< the alignment from the place itself converged nearby; the rest is 0 otherwise */
    double condition;     /**< smallest over largest information, 0 to 1; see ndt_observation_directions */
    int weak_count;       /**< directions with less than 1/80 of the best one */
    double deviation_m;   /**< standard deviation of the position along its worst direction; infinite: above 10 m */
    double direction_deg; /**< that direction seen from above, 0 to 180 from the x axis; 90 from it: vertical */
    double is_vertical;   /**< size of its vertical part, 0 to 1 */
    double basin_m, basin_deg; /**< offsets up to which all directions lead back */
};

struct map_rater {
    struct map_scanner scanner;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_align_params params;
    struct ndt_cloud scan;
};

NDT_MUST_CHECK enum ndt_status map_rater_open(struct map_rater *rater, struct ndt_map *map,
                                              const struct map_patches *patches, double range_m,
                                              struct ndt_error *err);
void map_rater_close(struct map_rater *rater);
/** Simulates a scan at the pose, aligns it from there and from around. */
NDT_MUST_CHECK enum ndt_status map_rate(struct map_rater *rater, const struct ndt_pose *T_map_sensor, uint64_t seed,
                                        struct map_rating *out, struct ndt_error *err);

#endif
