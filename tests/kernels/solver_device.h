/** @file
 * @brief Backends whose pipelines solve whole alignments, and calls to them that detect writes outside of the
 * results. */
#ifndef SOLVE_DEVICE_H
#define SOLVE_DEVICE_H

#include "solve_cases.h"

/* Comparison of two alignments: bit for bit, or within the tolerance for different rounding.
 *
 * The tolerance. A device may round sines, square roots and products that are added at once differently in the last
 * digit of a double. Kernels take the pose as floats (translation within a cell, sines and cosines), so that all
 * but one in some hundred thousand evaluations use the same floats, and then sums have the same bits. Where a float
 * changes, by an ulp at 4 m or of a sine, it belongs to a pose that differs by 5e-7 m or 6e-8 rad (2e-6 m at 30 m),
 * and the next step differs as much. So: 5e-6 m, 5e-7 rad for poses and steps, and for sums what such a shift
 * makes of them by their own gradient and Hessian, plus 1e-5 of the score. Counts, levels, reasons have to be
 * equal. */
#define SOLVE_POSE_M   5e-6
#define SOLVE_POSE_RAD 5e-7

/* Describes a difference; empty when there is none. */
struct solve_difference {
    char text[240];
};

/* Compares the result bit for bit: pose, sums, counts, reasons, weak directions, coverage, information, and of the
 * rows that were kept (`rows`, at most) everything but took_us. 1: equal. */
int solve_same_bits(const struct solve_result *is, const struct solve_result *wanted, int rows,
                    struct solve_difference *out);
/* Compares results within the tolerance above. */
int solve_close(const struct solve_result *is, const struct solve_result *wanted, int rows,
                struct solve_difference *out);
/* Sums at one place, by a float backend and in double. */
int solve_sums_close(const struct ndt_eval *is, const struct ndt_eval *wanted, struct solve_difference *out);
/* The information at one place, up to a part of what the points say about each axis. */
int solve_information_close(const struct ndt_information *is, const struct ndt_information *wanted, double part,
                            struct solve_difference *out);

enum { SOLVE_PLANS = 16, SOLVE_MOST = 200, SOLVE_MAX_POINTS = 8192 };

/* A pipeline, and a host that evaluates on the same device. */
struct solve_plan {
    const struct ndt_backend_ops *ops;
    const char *pipeline;
    struct ndt_backend *backend;
    size_t limit; /* alignments per call */
    struct solve_host *host;
    char name[64];
};

/* Opens a pipeline; NDT_OK with limit 0 where it cannot solve alignments. */
NDT_MUST_CHECK enum ndt_status solve_plan_open(struct solve_plan *out, const struct ndt_backend_ops *ops,
                                               const char *pipeline, struct ndt_map *map, struct ndt_error *err);
void solve_plan_close(struct solve_plan *plan);
/* A host on `ops`, evaluating with its pipeline `fused` where it has one. */
NDT_MUST_CHECK enum ndt_status solve_host_open(struct solve_host *out, const struct ndt_backend_ops *ops,
                                               struct ndt_map *map, struct ndt_error *err);
void solve_host_close(struct solve_host *host);

/* A call of solve: problems[i] with capacity for rows[i] (NULL: SOLVE_ROWS each). */
struct solve_call {
    const struct solve_scene *scene;
    const struct ndt_newton_rules *rules;
    const struct solve_problem *const *problems;
    const int32_t *rows;
    size_t count;
    double until_us;
};
/* set_scans of all of the scene's scans, or of this one only (>= 0); then the call counts its scans accordingly. */
NDT_MUST_CHECK enum ndt_status solve_set_scans(const struct solve_plan *plan, const struct solve_scene *scene,
                                               int only, struct ndt_error *err);
/* Makes one call of solve. NDT_ERR_FORMAT: it wrote outside of the results, or a result is not valid. */
NDT_MUST_CHECK enum ndt_status solve_on_device(const struct solve_plan *plan, const struct solve_call *call,
                                               int only, struct solve_result *out, struct ndt_error *err);

/* A simulated device on the CPU for check_solver --self-test; the host drives its solves. One fault can be planted.
 */
extern const struct ndt_backend_ops solve_fake_backend;

/* The name of fault i (0: no fault), NULL after the last. */
const char *solve_fault_name(int i);
/* The prefix of the cases that have to detect fault i. */
const char *solve_fault_case(int i);
/* Plants a fault in all calls of solve_fake_backend from now on. */
void solve_fault_plant(int i);

#endif
