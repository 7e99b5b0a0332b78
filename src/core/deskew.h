/* Private to the core: the motion of the sensor during a sweep. */
#ifndef NDT_DESKEW_H
#define NDT_DESKEW_H

#include "ndt/pose.h"
#include "ndt/preprocess.h"
#include "point_block.h"

enum { NDT_DESKEW_SEGMENTS = 64 };

/* A transform: the columns of its rotation and its translation, each padded by 0. */
struct ndt_deskew_segment {
    float columns[4][4];
};

/* Transforms to the reference moment at evenly spaced times; points between two knots interpolate linearly
 * (the error is that of a chord: below 2e-5 rad at 1 rad per sweep). */
struct ndt_deskew {
    float start_s, per_s; /* knot = (time - start) * per_s */
    struct ndt_deskew_segment segments[NDT_DESKEW_SEGMENTS + 2];
};

/* p_reference = exp(twist (t - reference)) p_t for t in [start, end] */
void ndt_deskew_set(struct ndt_deskew *deskew, const struct ndt_twist *twist, double start_s, double end_s,
                    double reference_s);
/* The correction from a sweep undone with one motion to the same sweep undone with another. */
void ndt_deskew_set_change(struct ndt_deskew *deskew, const struct ndt_twist *from, const struct ndt_twist *to,
                           double start_s, double end_s, double reference_s);
/* Moves the points of `in` to `out`, which may be the same; their times and the number of points stay as they
 * are in `out`. Reads and writes whole vectors, up to NDT_BLOCK_PAD points behind the last. */
void ndt_deskew_apply(const struct ndt_deskew *deskew, const struct ndt_point_block *in,
                      struct ndt_point_block *out);

#endif
