/* What stands along the course: facades with windows and balconies, trees, bushes, lamp posts, signs and
 * parked cars for a street; bare walls with shallow doors for a corridor; a bore with a few lamps for a tunnel.
 * Corridor and tunnel tell little about the position along their axis, on purpose. */
#ifndef SIM_SCENE_H
#define SIM_SCENE_H

#include "sim_drive.h"

/* Fills an initialised world. The ground must have been set by sim_scene_ground. The straight places are
 * built for courses from 0 to length_m. */
void sim_scene_ground(struct sim_ground *ground, enum sim_place place, uint64_t seed);
void sim_scene_build(struct sim_world *world, const struct sim_course *course, double length_m, uint64_t seed);

#endif
