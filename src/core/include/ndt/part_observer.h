/** @file
 * @brief What each part of a scan tells about the pose, apart from the others: to see how far the pose would go
 * without one of them.
 *
 *     ndt_part_observer_create(&observer, isa, &err);
 *     ndt_part_observer_set_map(observer, map);
 *     ndt_part_observer_observe(observer, &parts, observations, &err);
 *
 * The points are evaluated once, on the CPU backend and one thread, part by part. The observations of all parts add
 * up to that of an alignment that ended at the pose, but for rounding. Newton's step without a part, to first
 * order, is that of the sum of the others (ndt_observation_weigh).
 *
 * Threads: an observer is used by one thread at a time. Memory: allocates in create, and for a scan that is larger
 * than any before. Determinism: equal inputs give equal bits. Source: part_observer.c. */
#ifndef NDT_PART_OBSERVER_H
#define NDT_PART_OBSERVER_H

#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndt/observation.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A scan in parts, at a pose. */
struct ndt_parts {
    const struct ndt_cloud *scan; /**< frame of the sensor; its origin is ignored */
    const uint8_t *part_of;       /**< number of the part of each point; points of other numbers are left out */
    size_t count;                 /**< number of parts */
    struct ndt_pose T_map_sensor;
    double leaf_m; /**< level of the map, which has it */
    enum ndt_neighbours neighbours;
};

struct ndt_part_observer;

/** Opens the backend. isa: the CPU variant, as in struct ndt_backend_config. On failure *out is NULL. */
NDT_MUST_CHECK enum ndt_status ndt_part_observer_create(struct ndt_part_observer **out, const char *isa,
                                                        struct ndt_error *err);
/** `observer` may be NULL. */
void ndt_part_observer_destroy(struct ndt_part_observer *observer);
/** Acquires a reference to the map, which may be NULL (none), and releases the one before. Cheap for the same map.
 */
void ndt_part_observer_set_map(struct ndt_part_observer *observer, struct ndt_map *map);
/** Writes the observation of each part, at the pose and by its error; those of parts without points are zero.
 * NDT_ERR_ARGUMENT: no map, or no such level. NDT_ERR_MEMORY: as it says. */
NDT_MUST_CHECK enum ndt_status ndt_part_observer_observe(struct ndt_part_observer *observer,
                                                         const struct ndt_parts *parts, struct ndt_observation *out,
                                                         struct ndt_error *err);
/** Adds `factor` times an observation to a sum of observations at one pose. */
void ndt_observation_add(struct ndt_observation *sum, double factor, const struct ndt_observation *part);

#ifdef __cplusplus
}
#endif
#endif
