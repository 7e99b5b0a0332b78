/** @file
 * @brief Scores of one scan at many poses, without derivatives: to rank guesses before some of them are aligned.
 *
 * Every backend gives the bits of ndt_score_poses_plain, for any number of threads and any way in which the work is
 * divided: the value of a pair of point and voxel is computed with the same rounded operations everywhere
 * (ndt/score_math.h) and becomes a whole number, and whole numbers add up to the same sum in any order.
 *
 * A score differs from that of ndt_backend_ops.eval at the same pose by at most a few 1e-7 per pair; the numbers of
 * points and pairs are those of the CPU backend. */
#ifndef NDT_POSE_SCORES_H
#define NDT_POSE_SCORES_H

#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndt/score_types.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** x_map = R x + t_m: R row-major, t_m relative to the origin of the map [m]. */
struct ndt_score_pose {
    double R[9], t_m[3];
};

/** As in struct ndt_eval. */
struct ndt_pose_score {
    double score, nearest_score;
    uint32_t matched, pairs;
};

/** Where to score. */
struct ndt_score_request {
    int level; /**< index into map->levels */
    enum ndt_neighbours neighbours;
    uint32_t scan; /**< its index in the last set_scans; 0 after set_scan */
    size_t count;
    const struct ndt_score_pose *poses; /**< finite */
    /** Asked between parts of the work, with the number of poses scored so far: 0 stops. NULL: never. */
    int (*goes_on)(void *context, size_t done);
    void *context; /**< of goes_on */
};

/** @name For backends
 * @{ */
/** NDT_ERR_ARGUMENT, with the reason: no map, no such level or neighbours, a pose that is not finite. */
NDT_MUST_CHECK enum ndt_status ndt_score_check(const struct ndt_map *map, const struct ndt_score_request *request,
                                               struct ndt_error *err);
/** The constants of a level. */
struct ndt_score_scale ndt_score_scale_of(const struct ndt_map_level *level);
/** Splits the translation into a whole cell and the rest, so that floats hold only coordinates near the sensor. */
void ndt_score_pack(const struct ndt_score_pose *pose, double leaf_m, struct ndt_packed_pose *out);
/** From whole numbers to scores. */
void ndt_score_unpack(const struct ndt_score_sums *sums, const struct ndt_map_level *level,
                      struct ndt_pose_score *out);
/** @} */

/** The plain C: one thread, no vectors. Sets *done to the number of poses that were scored: all, unless goes_on
 * stopped it; the others are zero. request->scan is not read. */
NDT_MUST_CHECK enum ndt_status ndt_score_poses_plain(const struct ndt_map *map, const struct ndt_cloud *scan,
                                                     const struct ndt_score_request *request,
                                                     struct ndt_pose_score *out, size_t *done,
                                                     struct ndt_error *err);

/** The score of each point at one pose, over -d1: the sum of its pairs, 0 without one. Every `stride`-th point
 * counts, from the first on. The differences between two poses tell how certain it is that one fits better. level:
 * index into map->levels. values: (scan->count + stride - 1) / stride. No checks. isa: the CPU variant, as in
 * struct ndt_backend_config; the best one where that does not run. All give the bits of the plain C. */
void ndt_score_points(const struct ndt_map *map, int level, enum ndt_neighbours neighbours,
                      const struct ndt_cloud *scan, size_t stride, const struct ndt_score_pose *pose,
                      const char *isa, float *values);
/** The same in plain C. */
void ndt_score_points_plain(const struct ndt_map *map, int level, enum ndt_neighbours neighbours,
                            const struct ndt_cloud *scan, size_t stride, const struct ndt_score_pose *pose,
                            float *values);

#ifdef __cplusplus
}
#endif
#endif
