/* Scores of one scan at many poses: the plain C against the evaluation in double, and the aligner. The bits of the
 * backends: tests/kernels/kernel_scores.h and check_scores. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndt/map.h"
#include "run_tests.h"
#include "street_world.h"

enum { POINTS = 400, POSES = 40, THREADS = 3 };

static const double ZERO_M[3] = {0, 0, 0};
static const struct world STREET = {WORLD_STREET, 3, 60.0, 0.02};

static struct ndt_map *map;
static struct ndt_cloud scan;
static struct ndt_pose poses[POSES];
static struct ndt_score_pose packed[POSES];
static struct ndt_error err;

static void make_inputs(void)
{
    const struct ndt_pose truth = world_pose(&STREET, 0.5, 0.3);
    struct ndt_random random = {11};
    struct ndt_map_config config;
    struct ndt_cloud points;
    ndt_cloud_init(&points);
    ndt_cloud_init(&scan);
    ndt_map_config_default(&config);
    ck_assert_int_eq(world_map(&points, &STREET, 40000, ZERO_M, &err), NDT_OK);
    ck_assert_int_eq(ndt_map_from_cloud(&map, &config, &points, &err), NDT_OK);
    ck_assert_int_eq(world_scan(&scan, &STREET, 1, POINTS, &truth, 25.0, &err), NDT_OK);
    ndt_cloud_free(&points);
    for (int i = 0; i < POSES; i++) {
        poses[i] = i == 0 ? truth : world_perturb(&random, &truth, 3, 0.3);
        ndt_pose_rotation(&poses[i], packed[i].R);
        for (int k = 0; k < 3; k++)
            packed[i].t_m[k] = poses[i].t_m[k] - map->origin_m[k];
    }
}

static struct ndt_backend *open_backend(const struct ndt_backend_ops *ops)
{
    struct ndt_backend_config config;
    struct ndt_backend *backend = NULL;
    ndt_backend_config_default(&config);
    config.threads = THREADS;
    ck_assert_int_eq(ops->open(&backend, &config, &err), NDT_OK);
    return backend;
}

static struct ndt_score_job job_of(double leaf_m)
{
    return (struct ndt_score_job){
        .leaf_m = leaf_m, .neighbours = NDT_DIRECT7, .scan = &scan, .count = POSES, .T_map_sensor = poses};
}

static void free_inputs(void)
{
    ndt_map_release(map);
    ndt_cloud_free(&scan);
}

FIXTURE_ONCE(make_inputs, free_inputs)

/* The parts of the points are over -d1 of the level. */
TEST_EACH(points_add_up_to_the_score, 0, 12)
{
    struct ndt_pose_score out[POSES];
    struct ndt_score_request request = {
        .level = _i / 4, .neighbours = (enum ndt_neighbours)(_i % 4), .count = POSES, .poses = packed};
    static float values[POINTS], third[POINTS];
    size_t done;
    ck_assert_int_eq(ndt_score_poses_plain(map, &scan, &request, out, &done, &err), NDT_OK);
    for (int i = 0; i < POSES; i++) {
        double sum = 0;
        size_t matched = 0;
        ndt_score_points(map, request.level, request.neighbours, &scan, 1, &packed[i], NULL, values);
        ndt_score_points(map, request.level, request.neighbours, &scan, 3, &packed[i], NULL, third);
        for (size_t j = 0; j < scan.count; j++) {
            sum += (double)values[j];
            matched += values[j] > 0;
            if (j % 3 == 0)
                ck_assert_float_eq(third[j / 3], values[j]);
        }
        ck_assert_uint_le(matched, out[i].matched);
        ck_assert_double_eq_tol(-map->levels[request.level].d1 * sum, out[i].score, 1e-3 + 1e-5 * out[i].score);
    }
}

/* Any number of points, each n-th of them, and points that are nowhere. */
TEST_EACH(every_variant_scores_points_as_plain_c, 0, 12)
{
    static float values[POINTS], plain[POINTS];
    static const size_t counts[] = {0, 1, 15, 128, 129, POINTS}, strides[] = {1, 3, 7};
    char names[128], *rest = names;
    struct ndt_cloud odd;
    ndt_cloud_init(&odd);
    ck_assert_int_eq(ndt_cloud_copy(&odd, &scan, &err), NDT_OK);
    odd.x_m[0] = NAN;
    odd.y_m[7] = INFINITY;
    odd.z_m[130] = -1e9f;
    ndt_cpu_variants(names, sizeof(names));
    for (const char *isa; (isa = strtok_r(rest, ",", &rest)) != NULL;)
        for (size_t k = 0; k < sizeof(counts) / sizeof(*counts) * 3; k++) {
            const size_t stride = strides[k % 3];
            odd.count = counts[k / 3] < scan.count ? counts[k / 3] : scan.count;
            memset(values, -1, sizeof(values));
            memset(plain, -1, sizeof(plain));
            ndt_score_points(map, _i / 4, (enum ndt_neighbours)(_i % 4), &odd, stride, &packed[k % POSES], isa,
                             values);
            ndt_score_points_plain(map, _i / 4, (enum ndt_neighbours)(_i % 4), &odd, stride, &packed[k % POSES],
                                   plain);
            ck_assert_mem_eq(values, plain, sizeof(values));
        }
    ndt_cloud_free(&odd);
}

/* Points on the border of a cell or of the radius may count in one of both only. */
TEST_EACH(plain_scores_are_those_of_the_evaluation, 0, 12)
{
    struct ndt_backend *reference = open_backend(&ndt_reference_backend);
    struct ndt_pose_score out[POSES];
    struct ndt_score_request request = {.count = POSES, .poses = packed};
    size_t done;
    ck_assert_int_eq(reference->ops->set_map(reference, map, &err), NDT_OK);
    ck_assert_int_eq(reference->ops->set_scan(reference, &scan, &err), NDT_OK);
    request.level = _i / 4;
    request.neighbours = (enum ndt_neighbours)(_i % 4);
    ck_assert_int_eq(ndt_score_poses_plain(map, &scan, &request, out, &done, &err), NDT_OK);
    ck_assert_uint_eq(done, POSES);
    for (int i = 0; i < POSES; i++) {
        struct ndt_eval_request at = {.level = request.level, .neighbours = request.neighbours};
        struct ndt_eval sums;
        ndt_pose_to_euler(&poses[i], at.p);
        for (int k = 0; k < 3; k++)
            at.p[k] -= map->origin_m[k];
        ck_assert_int_eq(reference->ops->eval(reference, &at, &sums, &err), NDT_OK);
        ck_assert_double_eq_tol(out[i].pairs, sums.pairs, 3);
        ck_assert_double_eq_tol(out[i].matched, sums.matched, 2);
        ck_assert_double_eq_tol(out[i].score, sums.score, 0.3 + 2e-5 * sums.score);
        ck_assert_double_eq_tol(out[i].nearest_score, sums.nearest_score, 0.3 + 2e-5 * sums.score);
        if (i > 0)
            ck_assert_double_gt(out[0].nearest_score, out[i].nearest_score);
    }
    reference->ops->close(reference);
}

TEST(an_aligner_scores_with_the_bits_of_the_plain_c)
{
    struct ndt_backend *backend = open_backend(&ndt_cpu_backend);
    struct ndt_aligner *aligner = NULL;
    struct ndt_pose_score out[POSES], plain[POSES];
    const struct ndt_score_request request = {
        .level = ndt_map_find_level(map, 2), .neighbours = NDT_DIRECT7, .count = POSES, .poses = packed};
    const struct ndt_score_job job = job_of(2);
    size_t done;
    ck_assert_int_eq(ndt_aligner_create(&aligner, backend, &err), NDT_OK);
    ck_assert_int_eq(ndt_aligner_set_map(aligner, map, &err), NDT_OK);
    ck_assert_int_eq(ndt_score_poses_plain(map, &scan, &request, plain, &done, &err), NDT_OK);
    for (int round = 0; round < 2; round++) {
        memset(out, 0xff, sizeof(out));
        ck_assert_int_eq(ndt_aligner_score(aligner, &job, out, &done, &err), NDT_OK);
        ck_assert_uint_eq(done, POSES);
        ck_assert_mem_eq(out, plain, sizeof(out));
    }
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
}

static enum ndt_status score_with(const struct ndt_backend_ops *ops, struct ndt_map *with,
                                  const struct ndt_score_job *job, size_t *done)
{
    struct ndt_backend *backend = open_backend(&ndt_cpu_backend);
    struct ndt_aligner *aligner = NULL;
    struct ndt_pose_score out[POSES], nothing[POSES] = {{0}};
    memset(out, 0xff, sizeof(out));
    ck_assert_int_eq(ndt_aligner_create(&aligner, backend, &err), NDT_OK);
    ck_assert(!with || ndt_aligner_set_map(aligner, with, &err) == NDT_OK);
    backend->ops = ops;
    err.text[0] = '\0';
    const enum ndt_status status = ndt_aligner_score(aligner, job, out, done, &err);
    if (status != NDT_OK)
        ck_assert_mem_eq(out, nothing, sizeof(out));
    backend->ops = &ndt_cpu_backend;
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
    return status;
}

TEST(an_aligner_refuses)
{
    struct ndt_backend_ops without = ndt_cpu_backend;
    struct ndt_score_job job = job_of(2);
    size_t done = 1;
    ck_assert_int_eq(score_with(&ndt_cpu_backend, NULL, &job, &done), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(done, 0);
    job.leaf_m = 3;
    ck_assert_int_eq(score_with(&ndt_cpu_backend, map, &job, &done), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(err.text, "the map has no level of 3 m to score poses on");
    job.leaf_m = 2;
    const struct ndt_pose kept = poses[5];
    poses[5].t_m[1] = NAN;
    ck_assert_int_eq(score_with(&ndt_cpu_backend, map, &job, &done), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(err.text, "pose 5 of 40 to score at is not finite");
    poses[5] = kept;
    without.score_poses = NULL;
    ck_assert_int_eq(score_with(&without, map, &job, &done), NDT_ERR_UNSUPPORTED);
    ck_assert_int_eq(score_with(&ndt_cpu_backend, map, &job, &done), NDT_OK);
    ck_assert_uint_eq(done, POSES);
}

struct lane_scores {
    struct ndt_pose_score out[THREADS][POSES];
    int failed[THREADS];
};

static void score_in_lane(void *context, size_t index, struct ndt_backend *lane)
{
    struct lane_scores *scores = context;
    const struct ndt_score_request request = {
        .level = 1, .neighbours = NDT_RADIUS, .count = POSES, .poses = packed};
    struct ndt_error why;
    size_t done;
    scores->failed[index] = lane->ops->set_scan(lane, &scan, &why) != NDT_OK ||
                            lane->ops->score_poses(lane, &request, scores->out[index], &done, &why) != NDT_OK;
}

TEST(lanes_score)
{
    static struct lane_scores scores;
    struct ndt_backend *backend = open_backend(&ndt_cpu_backend);
    const struct ndt_score_request request = {
        .level = 1, .neighbours = NDT_RADIUS, .count = POSES, .poses = packed};
    struct ndt_pose_score plain[POSES];
    size_t done;
    ck_assert_int_eq(backend->ops->set_map(backend, map, &err), NDT_OK);
    ck_assert_int_eq(backend->ops->run_lanes(backend, POINTS, score_in_lane, &scores, &err), NDT_OK);
    ck_assert_int_eq(ndt_score_poses_plain(map, &scan, &request, plain, &done, &err), NDT_OK);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(scores.failed[i], 0);
        ck_assert_mem_eq(scores.out[i], plain, sizeof(plain));
    }
    backend->ops->close(backend);
}
