/** @file
 * @brief guard_newton_host FOLDER: inputs and answers of Newton steps for the interpreter of
 * tools/dev/sass-guard/sass-guard.
 *
 * A solve on a smooth hill, and for each of its steps the files STEP.newton, .sums, .rows and .answer; rules; and
 * on stdout one line per step: its number and "ordinary", "last" (the level ends there) or "shorter". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/newton_steps.h"
#include "ndt/random.h"

enum { CAPACITY = 48, MOST_STEPS = 20 };

static double uniform(struct ndt_random *random)
{
    return (double)(ndt_random_next(random) >> 11) * 0x1p-52 - 1;
}

/* The score 1000 exp(-q / 2000), q = d^T A d, d = p - top, with its derivatives. */
static void evaluate(const double p[6], double A[6][6], struct ndt_eval *out)
{
    static const double top[6] = {0.4, -0.3, 0.1, 0.01, -0.012, 0.03};
    double q = 0, g[6] = {0};
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++)
            g[i] += A[i][j] * (p[j] - top[j]);
        q += g[i] * (p[i] - top[i]);
    }
    out->score = 1000 * exp(-q / 2000);
    for (int i = 0, at = 0; i < 6; i++) {
        out->gradient[i] = -out->score * g[i] / 1000;
        for (int j = i; j < 6; j++)
            out->hessian[at++] = out->score * (g[i] * g[j] / 1e6 - A[i][j] / 1000);
    }
    out->matched = 1400;
    out->pairs = 6000;
    out->nearest_score = 0.6 * out->score;
}

/* Symmetric and positive definite; rotations weigh more than translations. */
static void make_curvature(double A[6][6])
{
    struct ndt_random random = {3};
    double B[6][6];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            B[i][j] = uniform(&random) * (i < 3 ? 20 : 200);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            A[i][j] = i != j ? 0 : i < 3 ? 400 : 40000;
            for (int k = 0; k < 6; k++)
                A[i][j] += B[i][k] * B[j][k] / 6;
        }
}

static void set_up(struct ndt_newton *newton, struct ndt_newton_rules *rules)
{
    memset(newton, 0, sizeof(*newton));
    memset(rules, 0, sizeof(*rules));
    rules->level_count = 1;
    rules->max_iterations = 30;
    rules->max_line_search_steps = 5;
    rules->step_limit_m = 2;
    rules->step_limit_rad = 0.2;
    rules->eigenvalue_floor = 1e-3;
    rules->coarse = (struct ndt_newton_limits){0.02, 0.002, 1e-3};
    rules->fine = (struct ndt_newton_limits){0.005, 0.0005, 1e-4};
    rules->weak_eigenvalue_ratio = 0.0125;
    rules->trans_epsilon = 0.01;
    rules->step_size = 0.1;
    for (int i = 0; i < 9; i += 4) {
        newton->R0[i] = 1;
        newton->rotation_scale_m[i] = 10;
        newton->inverse_rotation_scale[i] = 0.1;
    }
}

static void write_file(const char *folder, int step, const char *what, const void *data, size_t bytes)
{
    char path[4096];
    if (step < 0)
        snprintf(path, sizeof(path), "%s/%s", folder, what);
    else
        snprintf(path, sizeof(path), "%s/%d.%s", folder, step, what);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static struct ndt_newton_row rows[CAPACITY];
    struct ndt_newton newton;
    struct ndt_newton_rules rules;
    double A[6][6];
    if (argc != 2)
        return 2;
    make_curvature(A);
    set_up(&newton, &rules);
    newton_begin(&newton, &rules);
    write_file(argv[1], -1, "rules", &rules, sizeof(rules));
    for (int step = 0; newton.wants_eval && step < MOST_STEPS; step++) {
        struct ndt_eval sums;
        evaluate(newton.query_pose, A, &sums);
        write_file(argv[1], step, "newton", &newton, sizeof(newton));
        write_file(argv[1], step, "sums", &sums, sizeof(sums));
        write_file(argv[1], step, "rows", rows, sizeof(rows));
        newton_step(&newton, &rules, rows, CAPACITY, &sums);
        write_file(argv[1], step, "answer", &newton, sizeof(newton));
        printf("%d %s\n", step, !newton.wants_eval ? "last" : newton.line_search_step ? "shorter" : "ordinary");
    }
    return 0;
}
