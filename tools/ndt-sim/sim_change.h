/** @file
 * @brief Changes of the map: the place of the drive missing, a second copy of it, the mirror image of everything.
 */
#ifndef SIM_CHANGE_H
#define SIM_CHANGE_H

#include "sim.h"

/* The places within a distance of a drive: a bit for every square metre. */
struct sim_near {
    double low_m[2];
    int dim[2];
    uint8_t *cells; /* NULL: no place */
};

struct sim_change {
    double cut_out_m, twin_m; /* distances from the drive; 0: none */
    int mirror;
    /* set by sim_change_open() */
    struct sim_near cut, copied;
    double mirror_y_m;         /* y becomes 2 mirror_y_m - y */
    double from_m[3], to_m[3]; /* the copy turns about from_m, which goes to to_m */
    double cos_turn, sin_turn;
};

/* `city` may be NULL: the copy then lies beside everything, otherwise within the city. */
NDT_MUST_CHECK enum ndt_status sim_change_open(struct sim_change *change, const struct sim_drive *drive,
                                               double duration_s, const struct sim_city *city, uint64_t seed,
                                               struct ndt_error *err);
void sim_change_close(struct sim_change *change);
int sim_near_holds(const struct sim_near *near, const double at_m[2]);
/* 0 for a place that is cut out or where the copy lies. */
int sim_change_keeps(const struct sim_change *change, const double at_m[2]);
/* All changes, on a whole map. */
NDT_MUST_CHECK enum ndt_status sim_change_apply(const struct sim_change *change, struct ndt_cloud *cloud,
                                                struct ndt_error *err);
/* A copied point that lies within `area`, and its twin, are added to the cloud. */
NDT_MUST_CHECK enum ndt_status sim_change_copy(const struct sim_change *change, const struct ndt_cloud *copied,
                                               const struct sim_area *area, struct ndt_cloud *cloud,
                                               struct ndt_error *err);

#endif
