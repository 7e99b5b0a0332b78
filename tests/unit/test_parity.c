/* The `autoware` variant against a transcription in double that shares no code with the core: same map points,
 * same scan, same start, so the final poses must agree per scan.
 *
 * Both stop when a step falls below 1 cm, and a step is never below 5 mm: if one of them makes one step more,
 * poses differ by millimetres, hence the second bound. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "autoware_oracle.h"
#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndt/map.h"
#include "ndt/preprocess.h"
#include "ndt/quantile.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/trajectory.h"
#include "run_tests.h"
#include "street_world.h"

enum { MAX_SCANS = 200 };
static const double LEAF_M = 2.0, MEDIAN_M = 1e-4, P95_M = 4e-3;

struct parity {
    struct autoware_oracle *oracle;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_map *map;
    struct ndt_align_params params;
    size_t count;
    double off_m[MAX_SCANS], off_rad[MAX_SCANS];
    size_t other_iterations; /* scans for which the two needed different numbers of steps */
};

static void open_parity(struct parity *parity, const struct ndt_cloud *points)
{
    struct ndt_error err = {""};
    struct ndt_map_config config;
    struct ndt_backend_config compute;
    ndt_map_config_default(&config);
    config.level_count = 1;
    config.leaf_m[0] = LEAF_M;
    config.covariance = NDT_COVARIANCE_AUTOWARE;
    ndt_backend_config_default(&compute);
    ndt_align_params_default(&parity->params);
    parity->params.variant = NDT_AUTOWARE;
    parity->params.level_count = 1;
    parity->params.levels[0] = (struct ndt_align_level){LEAF_M, NDT_RADIUS};
    parity->count = parity->other_iterations = 0;
    parity->oracle = autoware_oracle_create(points, LEAF_M);
    ck_assert_ptr_nonnull(parity->oracle);
    ck_assert_msg(ndt_map_from_cloud(&parity->map, &config, points, &err) == NDT_OK, "%s", err.text);
    ck_assert_msg(ndt_cpu_backend.open(&parity->backend, &compute, &err) == NDT_OK, "%s", err.text);
    ck_assert_msg(ndt_aligner_create(&parity->aligner, parity->backend, &err) == NDT_OK, "%s", err.text);
    ck_assert_msg(ndt_aligner_set_map(parity->aligner, parity->map, &err) == NDT_OK, "%s", err.text);
}

static void close_parity(struct parity *parity)
{
    ndt_aligner_destroy(parity->aligner);
    parity->backend->ops->close(parity->backend);
    ndt_map_release(parity->map);
    autoware_oracle_destroy(parity->oracle);
}

static void compare(struct parity *parity, const struct ndt_cloud *scan, const struct ndt_pose *guess)
{
    struct ndt_error err = {""};
    struct ndt_align_result product;
    struct autoware_oracle_result oracle;
    ck_assert_msg(ndt_align(parity->aligner, &parity->params, scan, guess, &product, &err) == NDT_OK, "%s",
                  err.text);
    autoware_oracle_align(parity->oracle, scan, guess, parity->params.step_size, parity->params.trans_epsilon,
                          parity->params.max_iterations, &oracle);
    ck_assert_uint_lt(parity->count, MAX_SCANS);
    parity->off_m[parity->count] = ndt_pose_distance_m(&product.T_map_sensor, &oracle.T_map_sensor);
    parity->off_rad[parity->count] = ndt_pose_angle_rad(&product.T_map_sensor, &oracle.T_map_sensor);
    parity->other_iterations += product.iterations != oracle.iterations ? 1 : 0;
    parity->count++;
}

static void assess(struct parity *parity, const char *what)
{
    ndt_quantile_sort(parity->off_m, parity->count);
    ndt_quantile_sort(parity->off_rad, parity->count);
    const size_t median = parity->count / 2, p95 = (parity->count * 95 - 1) / 100;
    printf(
        "parity, %s, %zu scans: median %.2e m %.2e rad, p95 %.2e m %.2e rad, max %.2e m; %zu with another number "
        "of steps\n",
        what, parity->count, parity->off_m[median], parity->off_rad[median], parity->off_m[p95],
        parity->off_rad[p95], parity->off_m[parity->count - 1], parity->other_iterations);
    ck_assert_double_le(parity->off_m[median], MEDIAN_M);
    ck_assert_double_le(parity->off_m[p95], P95_M);
    ck_assert_double_le(parity->off_rad[median], 1e-5);
}

TEST(synthetic_scans_reach_the_same_poses)
{
    static const double zero[3];
    const struct world world = {WORLD_STREET, 5, 80.0, 0.02};
    struct ndt_error err = {""};
    struct ndt_cloud points, scan;
    struct parity parity;
    struct ndt_random random = {7};
    ndt_cloud_init(&points);
    ndt_cloud_init(&scan);
    ck_assert_int_eq(world_map(&points, &world, 40000, zero, &err), NDT_OK);
    open_parity(&parity, &points);
    for (uint64_t i = 0; i < 24; i++) {
        const struct ndt_pose truth = world_pose(&world, 0.2 + 0.025 * (double)i, 0.3 * (double)i);
        const struct ndt_pose guess = world_perturb(&random, &truth, 0.5, 2.0 * 0.0174533);
        ck_assert_int_eq(world_scan(&scan, &world, i, 1000, &truth, 30.0, &err), NDT_OK);
        compare(&parity, &scan, &guess);
    }
    assess(&parity, "synthetic street");
    close_parity(&parity);
    ndt_cloud_free(&scan);
    ndt_cloud_free(&points);
}

static void compare_real_scan(struct parity *parity, struct ndt_preprocessor *pre, const char *dir, size_t number,
                              const struct ndt_pose *truth, struct ndt_random *random)
{
    char path[1024];
    struct ndt_error err = {""};
    struct ndt_cloud raw;
    const struct ndt_cloud *scan;
    struct ndt_preprocess_params params;
    struct ndt_sweep sweep;
    ndt_cloud_init(&raw);
    ndt_preprocess_params_default(&params);
    params.voxel_m = 0.5;
    params.sample_count = 1500;
    snprintf(path, sizeof(path), "%s/kitti0005_lite/scans/%06zu.pcd", dir, number);
    ck_assert_msg(ndt_cloud_read(&raw, path, &err) == NDT_OK, "%s", err.text);
    ck_assert_msg(ndt_preprocess_sweep(&params, &raw, &sweep, &err) == NDT_OK, "%s", err.text);
    ck_assert_msg(ndt_preprocess(pre, &params, &raw, &sweep, number, NULL, &scan, &err) == NDT_OK, "%s", err.text);
    const struct ndt_pose guess = world_perturb(random, truth, 0.5, 2.0 * 0.0174533);
    compare(parity, scan, &guess);
    ndt_cloud_free(&raw);
}

TEST(real_scans_reach_the_same_poses)
{
    const char *dir = getenv("NDT_SHARED_DATA");
    if (!dir || !dir[0]) {
        printf("skipped: NDT_SHARED_DATA is not set, no real scans to compare on\n");
        return;
    }
    char path[1024];
    struct ndt_error err = {""};
    struct ndt_cloud points;
    struct ndt_trajectory truth;
    struct ndt_preprocessor *pre;
    struct parity parity;
    struct ndt_random random = {11};
    ndt_cloud_init(&points);
    snprintf(path, sizeof(path), "%s/kitti0005_lite/map_from_even_scans_0.20m.pcd", dir);
    ck_assert_msg(ndt_cloud_read(&points, path, &err) == NDT_OK, "%s", err.text);
    snprintf(path, sizeof(path), "%s/kitti0005_lite/poses_velo_lidar_refined.txt", dir);
    ck_assert_msg(ndt_trajectory_read(&truth, path, NDT_KITTI, &err) == NDT_OK, "%s", err.text);
    ck_assert_int_eq(ndt_preprocessor_create(&pre, &err), NDT_OK);
    open_parity(&parity, &points);
    for (size_t i = 1; i < truth.count; i += 2)
        compare_real_scan(&parity, pre, dir, i, &truth.poses[i].T_map_sensor, &random);
    assess(&parity, "KITTI 0005, odd scans");
    close_parity(&parity);
    ndt_preprocessor_destroy(pre);
    ndt_trajectory_free(&truth);
    ndt_cloud_free(&points);
}
