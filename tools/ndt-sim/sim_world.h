/* What stands around: solids on a gently rolling ground, and the ray caster that finds the first of them.
 *
 * Frame: the local map, z up, metres. Solids are convex: boxes turned about z, upright cylinders,
 * upright ellipsoids. A uniform grid over x and y keeps, for every cell, the solids that touch it.
 * A world is built once (init, add ..., finish) and only read from then on; a caster belongs to one thread. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"
#include "sim_random.h"

enum sim_shape { SIM_BOX, SIM_CYLINDER, SIM_ELLIPSOID };

/* Openings let into the upright faces of a box, in rows and columns; period_m = 0: none. */
struct sim_windows {
    double period_m, width_m;          /* along the face */
    double storey_m, sill_m, height_m; /* upwards, from the foot of the box */
    double recess_m;                   /* how deep */
    double lost;                       /* part of the rays that the pane swallows */
};

struct sim_solid {
    enum sim_shape shape;
    double centre_m[3];
    double half_m[3]; /* half edges, or semi-axes; cylinder: radius, radius, half height */
    double cos_yaw, sin_yaw;
    double free_path_m; /* foliage: mean way of a ray inside before it meets a leaf; 0 = opaque */
    double foot_m;      /* z from which storeys are counted */
    float reflectance;  /* 0..1 */
    struct sim_windows windows;
};

/* z = slope . (x, y) + sum of waves */
struct sim_ground {
    double slope[2];
    double amplitude_m[2], k_radpm[2][2], phase_rad[2];
    double steepest; /* bound of the gradient's length */
};

struct sim_world {
    struct sim_ground ground;
    double bore_radius_m; /* a tunnel along x around (bore_y_m, bore_z_m); 0 = none */
    double bore_y_m, bore_z_m;
    struct sim_solid *solids;
    uint32_t count, capacity;
    int out_of_memory; /* an add failed; finish reports it */
    /* the grid, from sim_world_finish on */
    double grid_min_m[2], cell_m;
    int grid_dim[2];
    uint32_t *cell_first; /* per cell, and one more */
    uint32_t *cell_solids;
    double *cell_top_m;
    double top_m;
};

void sim_world_init(struct sim_world *world);
void sim_world_free(struct sim_world *world);
/* Copies the solid. Memory that runs out is reported by sim_world_finish. */
void sim_world_add(struct sim_world *world, const struct sim_solid *solid);
NDT_MUST_CHECK enum ndt_status sim_world_finish(struct sim_world *world, struct ndt_error *err);

/* Height at (x, y); gradient may be NULL. */
double sim_ground_height(const struct sim_ground *ground, double x_m, double y_m, double gradient[2]);

struct sim_solid sim_box(const double centre_m[3], const double half_m[3], double yaw_rad);
struct sim_solid sim_round(enum sim_shape shape, const double centre_m[3], const double half_m[3]);

struct sim_ray {
    double origin_m[3];
    double direction[3]; /* unit length */
};

struct sim_hit {
    double range_m;
    float reflectance;
};

struct sim_caster {
    const struct sim_world *world;
    const struct sim_solid *movers; /* tested one by one; may be NULL */
    uint32_t mover_count;
    uint32_t *seen; /* per solid: the last ray that met it */
    uint32_t ray;
};
NDT_MUST_CHECK enum ndt_status sim_caster_open(struct sim_caster *caster, const struct sim_world *world,
                                               struct ndt_error *err);
void sim_caster_close(struct sim_caster *caster);
/* 1 and the first hit within max_range_m, or 0. `random` decides about leaves and panes. */
int sim_cast(struct sim_caster *caster, const struct sim_ray *ray, double max_range_m, struct sim_random *random,
             struct sim_hit *hit);

#endif
