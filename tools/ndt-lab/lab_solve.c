/* The step from the sums: Cholesky's factorisation, or the eigenvectors of the Hessian. */
#include <math.h>
#include <string.h>

#include "lab.h"
#include "ndt/clock.h"
#include "ndt/linalg.h"

enum { SYSTEMS = 64, ROUNDS = 20 };

struct systems {
    double upper[SYSTEMS][21], b[SYSTEMS][6];
    double kept; /* of the answers, so that they are computed */
};

/* Positive definite, conditioned like -H of a scan in lever-scaled units: eigenvalues over three decades. */
static void fill(struct systems *s, uint64_t seed)
{
    uint64_t state = seed;
    for (int n = 0; n < SYSTEMS; n++) {
        double rows[12][6];
        for (int r = 0; r < 12; r++)
            for (int k = 0; k < 6; k++)
                rows[r][k] = (lab_uniform(&state) - 0.5) * pow(10, -0.25 * k);
        for (int i = 0, at = 0; i < 6; i++) {
            s->b[n][i] = lab_uniform(&state) - 0.5;
            for (int k = i; k < 6; k++, at++) {
                s->upper[n][at] = 0;
                for (int r = 0; r < 12; r++)
                    s->upper[n][at] += rows[r][i] * rows[r][k];
            }
        }
    }
}

static void by_eigenvectors(const double upper[21], const double b[6], double x[6])
{
    double values[6], V[36];
    ndt_eigen_symmetric(6, upper, values, V);
    memset(x, 0, 6 * sizeof(*x));
    for (int k = 0; k < 6; k++) {
        double along = 0;
        for (int i = 0; i < 6; i++)
            along += V[6 * i + k] * b[i];
        along /= fmax(fabs(values[k]), 1e-6 * fabs(values[5]));
        for (int i = 0; i < 6; i++)
            x[i] += V[6 * i + k] * along;
    }
}

static double measure(void *context, int variant, int repetition)
{
    struct systems *s = context;
    double x[6] = {0};
    (void)repetition;
    const double start_us = ndt_clock_us();
    for (int r = 0; r < ROUNDS; r++)
        for (int n = 0; n < SYSTEMS; n++) {
            if (variant == 0)
                by_eigenvectors(s->upper[n], s->b[n], x);
            else if (!ndt_solve_cholesky6(s->upper[n], s->b[n], 1e-9, x))
                return -1;
            s->kept += x[0];
        }
    return (ndt_clock_us() - start_us) / (ROUNDS * SYSTEMS);
}

enum ndt_status lab_solve(const struct lab *lab, struct ndt_error *err)
{
    static struct systems systems;
    fill(&systems, lab->seed);
    for (int n = 0; n < SYSTEMS; n++) {
        double x[6], y[6];
        by_eigenvectors(systems.upper[n], systems.b[n], x);
        if (!ndt_solve_cholesky6(systems.upper[n], systems.b[n], 1e-9, y) ||
            !(fabs(x[0] - y[0]) <= 1e-6 * fabs(x[0]) + 1e-9))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the two ways do not agree on system %d", n);
    }
    lab_compare(lab, &(struct lab_comparison){.experiment = "solve",
                                              .what = "6x6",
                                              .unit = "us/step",
                                              .names = {"eigenvectors", "Cholesky"},
                                              .count = 2,
                                              .measure = measure,
                                              .context = &systems});
    return NDT_OK;
}
