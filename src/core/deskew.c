#include "deskew.h"

#include <string.h>

#include "cpu/wide.h"

static void set_segment(struct ndt_deskew_segment *segment, const struct ndt_pose *T)
{
    double R[9];
    ndt_pose_rotation(T, R);
    *segment = (struct ndt_deskew_segment){0};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            segment->columns[k][i] = (float)R[3 * i + k];
        segment->columns[3][i] = (float)T->t_m[i];
    }
}

static double segment_time(struct ndt_deskew *deskew, double start_s, double end_s, int i)
{
    const double length_s = end_s - start_s > 1e-9 ? end_s - start_s : 1e-9;
    deskew->start_s = (float)start_s;
    deskew->per_s = (float)(NDT_DESKEW_SEGMENTS / length_s);
    return start_s + length_s * i / NDT_DESKEW_SEGMENTS;
}

void ndt_deskew_set(struct ndt_deskew *deskew, const struct ndt_twist *twist, double start_s, double end_s,
                    double reference_s)
{
    for (int i = 0; i < NDT_DESKEW_SEGMENTS + 2; i++) {
        const double t_s = segment_time(deskew, start_s, end_s, i);
        const struct ndt_pose T = ndt_pose_exp(twist, t_s - reference_s);
        set_segment(&deskew->segments[i], &T);
    }
}

void ndt_deskew_set_change(struct ndt_deskew *deskew, const struct ndt_twist *from, const struct ndt_twist *to,
                           double start_s, double end_s, double reference_s)
{
    for (int i = 0; i < NDT_DESKEW_SEGMENTS + 2; i++) {
        const double t_s = segment_time(deskew, start_s, end_s, i);
        const struct ndt_pose before = ndt_pose_exp(from, t_s - reference_s);
        const struct ndt_pose after = ndt_pose_exp(to, t_s - reference_s);
        const struct ndt_pose undone = ndt_pose_inverse(&before);
        const struct ndt_pose T = ndt_pose_compose(&after, &undone);
        set_segment(&deskew->segments[i], &T);
    }
}

static inline quad_f transformed(const struct ndt_deskew_segment *segment, float x, float y, float z)
{
    quad_f column[4];
    memcpy(column, segment->columns, sizeof(column));
    return column[0] * x + column[1] * y + column[2] * z + column[3];
}

/* Lanes between different knots: point by point, all coordinates at once. */
static void move_apart(const struct ndt_deskew *deskew, wide_i segments, wide_f s, wide_f p_m[3])
{
    for (int lane = 0; lane < WIDE; lane++) {
        const struct ndt_deskew_segment *segment = &deskew->segments[segments[lane]];
        const quad_f first = transformed(segment, p_m[0][lane], p_m[1][lane], p_m[2][lane]);
        const quad_f second = transformed(segment + 1, p_m[0][lane], p_m[1][lane], p_m[2][lane]);
        const quad_f moved = first + s[lane] * (second - first);
        for (int k = 0; k < 3; k++)
            p_m[k][lane] = moved[k];
    }
}

/* A knot and the next one, with every number in all lanes. */
struct span {
    int32_t segment;
    wide_f columns[2][4][3];
};

static void set_span(struct span *span, const struct ndt_deskew *deskew, int32_t segment)
{
    span->segment = segment;
    for (int i = 0; i < 2; i++)
        for (int column = 0; column < 4; column++)
            for (int row = 0; row < 3; row++)
                span->columns[i][column][row] = wide_set(deskew->segments[segment + i].columns[column][row]);
}

static inline wide_f moved_along(const wide_f columns[4][3], int row, const wide_f p_m[3])
{
    return columns[0][row] * p_m[0] + columns[1][row] * p_m[1] + columns[2][row] * p_m[2] + columns[3][row];
}

/* Lanes between the same two knots. */
static inline void move_together(const struct span *span, wide_f s, wide_f p_m[3])
{
    const wide_f before[3] = {p_m[0], p_m[1], p_m[2]};
    for (int row = 0; row < 3; row++) {
        const wide_f first = moved_along(span->columns[0], row, before);
        const wide_f second = moved_along(span->columns[1], row, before);
        p_m[row] = first + s * (second - first);
    }
}

void ndt_deskew_apply(const struct ndt_deskew *deskew, const struct ndt_point_block *in,
                      struct ndt_point_block *out)
{
    const wide_f last = wide_set(NDT_DESKEW_SEGMENTS), start_s = wide_set(deskew->start_s),
                 per_s = wide_set(deskew->per_s);
    const struct ndt_point_block from = *in, to = *out;
    struct span span = {.segment = -1};
    for (size_t i = 0; i < from.count; i += WIDE) {
        wide_f p_m[3] = {wide_load(from.x_m + i), wide_load(from.y_m + i), wide_load(from.z_m + i)};
        wide_f at = (wide_load(from.time_s + i) - start_s) * per_s;
        if (from.count - i < WIDE) /* what is behind the last point goes with the first */
            at = wide_select(wide_first(from.count - i), at, wide_set(at[0]));
        at = wide_max(at, (wide_f){0});
        at = wide_select(at < last, at, last);
        const wide_i segments = __builtin_convertvector(at, wide_i);
        const wide_f s = at - wide_to_float(segments);
        if (wide_any(segments ^ wide_set_i(segments[0]))) {
            move_apart(deskew, segments, s, p_m);
        } else {
            if (segments[0] != span.segment)
                set_span(&span, deskew, segments[0]);
            move_together(&span, s, p_m);
        }
        wide_store(to.x_m + i, p_m[0]);
        wide_store(to.y_m + i, p_m[1]);
        wide_store(to.z_m + i, p_m[2]);
    }
}
