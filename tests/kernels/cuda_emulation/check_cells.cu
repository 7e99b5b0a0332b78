/* The cell of a point at a pose: in float where that is certain, and always the one of double arithmetic. */
#include <math.h>
#include <stdio.h>

#include "cell_device.cuh"
#include "ndt/pose.h"
#include "ndt/random.h"

struct tried {
    struct ndt_gpu_job view;
    struct ndt_tables_f tables;
    double R[9], p[3], leaf_m;
    float x[3];
};

static void set_pose(struct tried *t, const double angles[3])
{
    const double sa = sin(angles[0]), ca = cos(angles[0]), sb = sin(angles[1]), cb = cos(angles[1]);
    const double sc = sin(angles[2]), cc = cos(angles[2]);
    const float turns[6] = {(float)sa, (float)ca, (float)sb, (float)cb, (float)sc, (float)cc};
    const double p[6] = {0, 0, 0, angles[0], angles[1], angles[2]};
    const struct ndt_pose pose = ndt_pose_from_euler(p);
    ndt_pose_rotation(&pose, t->R);
    make_tables(turns, &t->tables);
}

/* Splits a pose as ndt_cuda_split_pose does. */
static void split(struct tried *t)
{
    for (int k = 0; k < 3; k++) {
        const double near = fmax(-1e9, fmin(1e9, floor(t->p[k] / t->leaf_m)));
        t->view.near_cell[k] = (int32_t)near;
        t->view.t_m[k] = (float)(t->p[k] - near * t->leaf_m);
    }
}

static double moved_m(const struct tried *t, int k)
{
    const double *R = t->R + 3 * k;
    return R[0] * (double)t->x[0] + R[1] * (double)t->x[1] + R[2] * (double)t->x[2];
}

/* A pose near the guess, on maps up to 300 km wide, and a point. on_border: the point is a few bits off a border.
 */
static void draw(struct ndt_random *random, double leaf_m, double reach_m, bool on_border, struct tried *t)
{
    double angles[3];
    t->leaf_m = leaf_m;
    t->view.level.leaf_m = (float)leaf_m;
    for (int k = 0; k < 3; k++) {
        angles[k] = ndt_random_between(random, -0.3, 0.3);
        t->p[k] = ndt_random_between(random, -1.5e5, 1.5e5);
        t->x[k] = (float)ndt_random_between(random, -reach_m, reach_m);
    }
    set_pose(t, angles);
    for (int k = 0; k < 3 && on_border; k++) {
        const double border_m = floor((moved_m(t, k) + t->p[k]) / leaf_m) * leaf_m;
        const double off = ndt_random_unit(random) < 0.5 ? 3e-16 : 3e-7;
        t->p[k] = border_m - moved_m(t, k) + off * ndt_random_between(random, -1, 1) * fabs(border_m);
    }
    split(t);
}

/* Returns whether the cells are those of double arithmetic; counts the certain ones. */
static bool check(const struct tried *t, unsigned *certain)
{
    for (int k = 0; k < 3; k++) {
        const double exact = floor((moved_m(t, k) + t->p[k]) / t->leaf_m);
        const struct exact_axis axis = {t->R + 3 * k, t->p[k], t->leaf_m};
        const float *R = t->tables.R + 3 * k;
        int32_t cell = 0, same;
        const bool found = find_cell(t->view, R, axis, t->x, k, &cell);
        *certain += is_certain_cell(t->view, R, t->x, k, &same);
        if (found != (fabs(exact) < 1e6) || (found && cell != exact)) {
            printf("FAIL leaf %g m, axis %d: cell %d, should be %.0f: x %a %a %a p %a\n", t->leaf_m, k, (int)cell,
                   exact, (double)t->x[0], (double)t->x[1], (double)t->x[2], t->p[k]);
            return false;
        }
    }
    return true;
}

static bool check_leaf(double leaf_m, double reach_m, double least_certain)
{
    enum { POINTS = 100000 };
    struct ndt_random random = ndt_random_stream(17, (uint64_t)(leaf_m * 1000), (uint64_t)reach_m);
    struct tried t = {};
    unsigned certain = 0, ignored = 0;
    for (int i = 0; i < POINTS; i++) {
        draw(&random, leaf_m, reach_m, false, &t);
        if (!check(&t, &certain))
            return false;
        draw(&random, leaf_m, reach_m, true, &t);
        if (!check(&t, &ignored))
            return false;
    }
    const double part = certain / (3.0 * POINTS);
    printf("%s leaf %g m, points up to %g m away: %.4f of the cells certain in float\n",
           part > least_certain ? "ok  " : "FAIL", leaf_m, reach_m, part);
    return part > least_certain;
}

static bool check_odd_points(void)
{
    const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e30f, 1e9f, 2.1e6f, 1e-45f};
    struct ndt_random random = ndt_random_stream(19, 0, 0);
    struct tried t = {};
    unsigned ignored = 0;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++) {
            draw(&random, 0.5, 100, false, &t);
            t.x[k] = odd[i];
            if (!check(&t, &ignored))
                return false;
            t.p[k] = (double)odd[i];
            t.x[k] = 1;
            split(&t);
            if (isfinite(odd[i]) && !check(&t, &ignored))
                return false;
        }
    printf("ok   points and poses that are not finite or far off\n");
    return true;
}

int main(void)
{
    bool good = check_odd_points();
    const double leaves_m[] = {0.3, 0.5, 1, 2, 3.7, 10};
    for (int i = 0; i < 6; i++) {
        good = check_leaf(leaves_m[i], 30, 0.99) && good;
        good = check_leaf(leaves_m[i], 200, leaves_m[i] < 1 ? 0.98 : 0.99) && good;
        good = check_leaf(leaves_m[i], 1e5, 0) && good;
    }
    return good ? 0 : 1;
}
