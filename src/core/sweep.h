/* Private to the core: the motion of the sensor during a sweep, and when in the sweep a point was seen. */
#ifndef NDT_SWEEP_H
#define NDT_SWEEP_H

#include "ndt/pose.h"
#include "ndt/preprocess.h"

enum { NDT_SWEEP_KNOTS = 64 };

/* Transforms to the reference moment at evenly spaced times; points between two knots interpolate linearly
 * (the error is that of a chord: below 2e-5 rad at 1 rad per sweep). */
struct ndt_sweep {
    float start_s, per_s; /* knot = (time - start) * per_s */
    float knots[NDT_SWEEP_KNOTS + 2][12];
};

/* p_reference = exp(twist (t - reference)) p_t for t in [start, end] */
void ndt_sweep_set(struct ndt_sweep *sweep, const struct ndt_twist *twist, double start_s, double end_s,
                   double reference_s);
/* The correction from a sweep undone with one motion to the same sweep undone with another. */
void ndt_sweep_set_change(struct ndt_sweep *sweep, const struct ndt_twist *from, const struct ndt_twist *to,
                          double start_s, double end_s, double reference_s);
void ndt_sweep_apply(const struct ndt_sweep *sweep, float time_s, float p_m[3]);

/* Seconds relative to mid-sweep of a point seen at this azimuth by a sensor that turns once per sweep_s, starting
 * and ending behind itself; the arc tangent is good to 1e-5 rad. */
float ndt_sweep_azimuth_time(float x_m, float y_m, double sweep_s, int clockwise);

#endif
