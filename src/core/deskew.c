/* Deskewing: moves every point to its position at the reference time of the sweep. */
#include "preprocess_steps.h"

#include <string.h>

#include "cpu/wide.h"

static void set_transform(struct ndt_deskew_transform *out, const struct ndt_pose *T)
{
    double R[9];
    ndt_pose_rotation(T, R);
    *out = (struct ndt_deskew_transform){0};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            out->columns[k][i] = (float)R[3 * i + k];
        out->columns[3][i] = (float)T->t_m[i];
    }
}

static double length_of(const struct ndt_sweep *sweep)
{
    return sweep->end_s - sweep->begin_s > 1e-9 ? sweep->end_s - sweep->begin_s : 1e-9;
}

double ndt_sweep_boundary_s(const struct ndt_sweep *sweep, int i)
{
    return sweep->begin_s + length_of(sweep) * i / NDT_PREPROCESS_SEGMENTS;
}

static void set_times(struct ndt_deskew *deskew, const struct ndt_sweep *sweep)
{
    deskew->start_s = (float)sweep->begin_s;
    deskew->segments_per_s = (float)(NDT_PREPROCESS_SEGMENTS / length_of(sweep));
}

/* The pose at boundary i, in the frame of the reference moment. A piecewise motion ends with the sweep: no point
 * lies beyond. */
static struct ndt_pose pose_at(const struct ndt_sweep_motion *motion, const struct ndt_sweep *sweep, int i)
{
    const struct ndt_twist still = {{0}, {0}};
    if (motion && motion->is_piecewise)
        return motion->T_reference_at[i < NDT_PREPROCESS_SEGMENTS ? i : NDT_PREPROCESS_SEGMENTS];
    return ndt_pose_exp(motion ? &motion->twist : &still, ndt_sweep_boundary_s(sweep, i));
}

void ndt_deskew_set(struct ndt_deskew *deskew, const struct ndt_sweep_motion *motion, const struct ndt_sweep *sweep)
{
    set_times(deskew, sweep);
    for (int i = 0; i < NDT_PREPROCESS_BOUNDARIES; i++) {
        const struct ndt_pose T = pose_at(motion, sweep, i);
        set_transform(&deskew->boundaries[i], &T);
    }
}

void ndt_deskew_set_change(struct ndt_deskew *deskew, const struct ndt_sweep_motion *from,
                           const struct ndt_sweep_motion *to, const struct ndt_sweep *sweep)
{
    set_times(deskew, sweep);
    for (int i = 0; i < NDT_PREPROCESS_BOUNDARIES; i++) {
        const struct ndt_pose before = pose_at(from, sweep, i), after = pose_at(to, sweep, i);
        const struct ndt_pose undone = ndt_pose_inverse(&before);
        const struct ndt_pose T = ndt_pose_compose(&after, &undone);
        set_transform(&deskew->boundaries[i], &T);
    }
}

static inline quad_f transformed(const struct ndt_deskew_transform *T, float x, float y, float z)
{
    quad_f column[4];
    memcpy(column, T->columns, sizeof(column));
    return column[0] * x + column[1] * y + column[2] * z + column[3];
}

/* Lanes in different segments: point by point, all coordinates at once. */
static void move_apart(const struct ndt_deskew *deskew, wide_i segments, wide_f s, wide_f p_m[3])
{
    for (int lane = 0; lane < WIDE; lane++) {
        const struct ndt_deskew_transform *begin = &deskew->boundaries[segments[lane]];
        const quad_f first = transformed(begin, p_m[0][lane], p_m[1][lane], p_m[2][lane]);
        const quad_f second = transformed(begin + 1, p_m[0][lane], p_m[1][lane], p_m[2][lane]);
        const quad_f moved = first + s[lane] * (second - first);
        for (int k = 0; k < 3; k++)
            p_m[k][lane] = moved[k];
    }
}

/* The transforms at both ends of a segment, every number in all lanes. */
struct wide_segment {
    int32_t number; /* -1: none yet */
    wide_f columns[2][4][3];
};

static void load_segment(struct wide_segment *out, const struct ndt_deskew *deskew, int32_t number)
{
    out->number = number;
    for (int i = 0; i < 2; i++)
        for (int column = 0; column < 4; column++)
            for (int row = 0; row < 3; row++)
                out->columns[i][column][row] = wide_set(deskew->boundaries[number + i].columns[column][row]);
}

static inline wide_f transform_row(const wide_f columns[4][3], int row, const wide_f p_m[3])
{
    return columns[0][row] * p_m[0] + columns[1][row] * p_m[1] + columns[2][row] * p_m[2] + columns[3][row];
}

/* All lanes in the same segment. */
static inline void move_together(const struct wide_segment *segment, wide_f s, wide_f p_m[3])
{
    const wide_f before[3] = {p_m[0], p_m[1], p_m[2]};
    for (int row = 0; row < 3; row++) {
        const wide_f first = transform_row(segment->columns[0], row, before);
        const wide_f second = transform_row(segment->columns[1], row, before);
        p_m[row] = first + s * (second - first);
    }
}

void ndt_deskew_apply(const struct ndt_deskew *deskew, const struct ndt_point_block *in,
                      struct ndt_point_block *out)
{
    const wide_f last = wide_set(NDT_PREPROCESS_SEGMENTS), start_s = wide_set(deskew->start_s),
                 per_s = wide_set(deskew->segments_per_s);
    const struct ndt_point_block from = *in, to = *out;
    struct wide_segment segment = {.number = -1};
    for (size_t i = 0; i < from.count; i += WIDE) {
        wide_f p_m[3] = {wide_load(from.x_m + i), wide_load(from.y_m + i), wide_load(from.z_m + i)};
        wide_f at = (wide_load(from.time_s + i) - start_s) * per_s;
        if (from.count - i < WIDE) /* lanes behind the last point follow the first one */
            at = wide_select(wide_first(from.count - i), at, wide_set(at[0]));
        at = wide_max(at, (wide_f){0});
        at = wide_select(at < last, at, last);
        const wide_i segments = __builtin_convertvector(at, wide_i);
        const wide_f s = at - wide_to_float(segments);
        if (wide_any(segments ^ wide_set_i(segments[0]))) {
            move_apart(deskew, segments, s, p_m);
        } else {
            if (segments[0] != segment.number)
                load_segment(&segment, deskew, segments[0]);
            move_together(&segment, s, p_m);
        }
        wide_store(to.x_m + i, p_m[0]);
        wide_store(to.y_m + i, p_m[1]);
        wide_store(to.z_m + i, p_m[2]);
    }
}
