/* Regularisation by a position: its terms against plain arithmetic, and its effect on a pose. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "align_state.h"
#include "ndt/newton_steps.h"
#include "ndtd/pipeline.h"
#include "run_tests.h"
#include "street_drive.h"

static struct ndt_backend *backend;
static struct ndt_aligner *aligner;
static struct ndt_align_params params;
static struct ndt_cloud scan;

static void setup(void)
{
    struct ndt_scan_message message;
    street_drive_make();
    ndt_align_params_default(&params);
    must(ndt_reference_backend.open(&backend, &drive.settings.compute, &err));
    must(ndt_aligner_create(&aligner, backend, &err));
    must(ndt_aligner_set_map(aligner, drive.map, &err));
    ndt_cloud_init(&scan);
    must(ndt_scan_decode(drive.scans[0].data, drive.scans[0].size, &message, &scan, &err));
    scan.count = 300;
    must(backend->ops->set_scan(backend, &scan, &err));
}

static void teardown(void)
{
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
    ndt_cloud_free(&scan);
    street_drive_free();
}

/* A solve of variant `robust`: the scan has been turned by R0. */
static struct ndt_solve solve_at(double heading_rad)
{
    const double p[6] = {0, 0, 0, 0.1, -0.2, heading_rad};
    const struct ndt_pose turn = ndt_pose_from_euler(p);
    struct ndt_solve solve = {.aligner = aligner, .params = &params};
    ndt_pose_rotation(&turn, solve.newton.R0);
    return solve;
}

static struct ndt_eval eval_at(struct ndt_solve *solve, const double p[6], int has_gnss)
{
    struct ndt_eval_request request = {.level = ndt_map_find_level(drive.map, 1.0), .neighbours = NDT_RADIUS};
    struct ndt_newton_rules rules;
    struct ndt_eval eval;
    params.has_gnss = has_gnss;
    must(ndt_rules_from(&rules, &params, drive.map, &err));
    memcpy(request.p, p, sizeof(request.p));
    memcpy(solve->newton.query_pose, p, sizeof(request.p));
    must(backend->ops->eval(backend, &request, &eval, &err));
    regularize(&solve->newton, &rules, &eval);
    return eval;
}

static double heading_of(const struct ndt_pose *pose)
{
    const double ahead[3] = {1, 0, 0};
    double x_m[3];
    ndt_pose_apply(pose, ahead, x_m);
    return atan2(x_m[1] - pose->t_m[1], x_m[0] - pose->t_m[0]);
}

FIXTURE(setup, teardown)

TEST(terms_match_the_formula)
{
    for (int k = 0; k < 8; k++) {
        struct ndt_solve solve = solve_at(k * 0.8);
        const double p[6] = {30.2 - drive.map->origin_m[0],
                             0.5 - drive.map->origin_m[1],
                             1.8 - drive.map->origin_m[2],
                             0.02,
                             0.01,
                             -0.03};
        memcpy(params.gnss_position_m, (double[3]){33, -2, 99}, sizeof(params.gnss_position_m));
        params.gnss_scale = 0.02;
        const struct ndt_eval with = eval_at(&solve, p, 1), without = eval_at(&solve, p, 0);
        const struct ndt_pose pose = ndt_solve_pose(&solve, p);
        const double h = heading_of(&pose), K = without.pairs, e = (33 - 30.2) * cos(h) + (-2 - 0.5) * sin(h);
        ck_assert_double_gt(K, 50);
        ck_assert_double_eq_tol(with.score - without.score, -0.02 * K * e * e, 1e-9 * K);
        ck_assert_double_eq_tol(with.gradient[0] - without.gradient[0], 2 * 0.02 * K * e * cos(h), 1e-9 * K);
        ck_assert_double_eq_tol(with.gradient[1] - without.gradient[1], 2 * 0.02 * K * e * sin(h), 1e-9 * K);
        ck_assert_double_eq_tol(with.hessian[0] - without.hessian[0], -2 * 0.02 * K * cos(h) * cos(h), 1e-9 * K);
        ck_assert_double_eq_tol(with.hessian[1] - without.hessian[1], -2 * 0.02 * K * cos(h) * sin(h), 1e-9 * K);
        ck_assert_double_eq_tol(with.hessian[6] - without.hessian[6], -2 * 0.02 * K * sin(h) * sin(h), 1e-9 * K);
        for (int i = 2; i < 6; i++)
            ck_assert_double_eq(with.gradient[i], without.gradient[i]);
        ck_assert_double_eq(with.nearest_score, without.nearest_score);
    }
}

/* Gradient and Hessian against finite differences of the added score at a fixed weight. */
TEST(terms_match_finite_differences)
{
    struct ndt_solve solve = solve_at(0.7);
    const double p[6] = {30 - drive.map->origin_m[0], 0.3 - drive.map->origin_m[1], 1.8 - drive.map->origin_m[2]};
    memcpy(params.gnss_position_m, (double[3]){31, 1, 0}, sizeof(params.gnss_position_m));
    const struct ndt_eval with = eval_at(&solve, p, 1), without = eval_at(&solve, p, 0);
    for (int axis = 0; axis < 2; axis++) {
        double added[2];
        for (int side = 0; side < 2; side++) {
            double moved[6];
            memcpy(moved, p, sizeof(moved));
            moved[axis] += side ? 1e-3 : -1e-3;
            const struct ndt_eval a = eval_at(&solve, moved, 1), b = eval_at(&solve, moved, 0);
            added[side] = (a.score - b.score) / b.pairs;
        }
        const double slope = (with.gradient[axis] - without.gradient[axis]) / without.pairs;
        ck_assert_double_eq_tol((added[1] - added[0]) / 2e-3, slope, 1e-6);
    }
}

static struct ndt_pose align_towards(double x_m, double scale)
{
    struct ndt_align_result result;
    params.has_gnss = scale > 0;
    params.gnss_scale = scale;
    memcpy(params.gnss_position_m, (double[3]){x_m, 0.3, 0}, sizeof(params.gnss_position_m));
    must(ndt_align(aligner, &params, &scan, &drive.truth[0], &result, &err));
    return result.T_map_sensor;
}

TEST(position_corrects_the_pose_along_the_heading)
{
    const struct ndt_pose free = align_towards(0, 0), weak = align_towards(31, 0.01), strong = align_towards(31, 1);
    ck_assert_double_gt(weak.t_m[0], free.t_m[0]);
    ck_assert_double_gt(strong.t_m[0], weak.t_m[0] + 0.05);
    ck_assert_double_lt(strong.t_m[0], 31.05);
    ck_assert_double_lt(fabs(weak.t_m[1] - free.t_m[1]), 0.02);
}

/* A corridor hardly constrains its axis: the pose stays near the guess there, unless a position is given. */
TEST(corridor_pose_follows_the_position)
{
    const struct world corridor = {WORLD_CORRIDOR, 4, 80, 0.02};
    const struct ndt_pose truth = {.t_m = {40, 0, 1.8}, .q_xyzw = {0, 0, 0, 1}};
    struct ndt_cloud points;
    struct ndt_map *map;
    ndt_cloud_init(&points);
    must(world_map(&points, &corridor, 40000, (double[3]){0, 0, 0}, &err));
    must(ndt_map_from_cloud(&map, &drive.settings.map, &points, &err));
    must(world_scan(&scan, &corridor, 9, 800, &truth, 20, &err));
    must(ndt_aligner_set_map(aligner, map, &err));
    drive.truth[0] = truth;
    drive.truth[0].t_m[0] = 39;
    const struct ndt_pose free = align_towards(0, 0), held = align_towards(40, 0.1);
    ck_assert_double_eq_tol(free.t_m[0], 39, 0.3);
    ck_assert_double_eq_tol(held.t_m[0], 40, 0.3);
    ndt_map_release(map);
    ndt_cloud_free(&points);
}

/* The pipeline uses a position only when configured, and only for scans of the same second. */
static struct ndt_pose drive_with_gnss(int use, double age_s)
{
    struct ndt_gnss_message message = {.frame_id = "map", .position_m = {30.5, 0.3, 0}};
    struct ndtd_pipeline *pipeline;
    struct ndtd_scan_record record;
    struct ndt_buffer frame;
    message.stamp_ns = DRIVE_START_NS - (int64_t)(age_s * 1e9);
    drive.settings.use_gnss = use;
    drive.settings.align.gnss_scale = 2;
    ndt_buffer_init(&frame);
    must(ndt_gnss_encode(&frame, &message, &err));
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    const struct ndtd_message frames[] = {street_drive_frame(NDT_MESSAGE_INITIAL_POSE, &drive.start),
                                          street_drive_frame(NDT_MESSAGE_GNSS, &frame),
                                          street_drive_frame(NDT_MESSAGE_SCAN, &drive.scans[0])};
    for (size_t i = 0; i < 3; i++)
        must(ndtd_pipeline_process(pipeline, &frames[i], &record, &err));
    ndtd_pipeline_destroy(pipeline);
    ndt_buffer_free(&frame);
    return record.result.T_map_sensor;
}

TEST(pipeline_uses_recent_positions_when_enabled)
{
    const struct ndt_pose off = drive_with_gnss(0, 0), fresh = drive_with_gnss(1, 0.9);
    const struct ndt_pose stale = drive_with_gnss(1, 1.1), future = drive_with_gnss(1, -1.1);
    ck_assert_mem_eq(&off, &stale, sizeof(off));
    ck_assert_mem_eq(&off, &future, sizeof(off));
    ck_assert_double_gt(fresh.t_m[0], off.t_m[0] + 0.02);
}

/* ---- a position that is wrong, while the pose is searched for ---- */

enum lie { NO_LIE, FAR_AWAY, ANOTHER_PLACE, JUMPING, LIES };
enum { LIE_SCANS = 60, LIE_LOST_AT = 10 };
static const double LIE_STEP_M = 0.6, LIE_GAP_M = 25, LIE_GAP_S = 15;

static struct ndt_pose lie_pose(int i, int is_lost)
{
    const double gap_m = is_lost && i >= LIE_LOST_AT ? LIE_GAP_M : 0;
    return (struct ndt_pose){.t_m = {30 + LIE_STEP_M * i + gap_m, 0.3, 1.8}, .q_xyzw = {0, 0, 0, 1}};
}

static void lie_position(enum lie lie, int i, const struct ndt_pose *truth, struct ndt_gnss_message *message)
{
    const double jump_m[3] = {i % 3 == 0 ? 70 : -40, i % 2 ? 45 : -30, 0};
    const double else_m[3] = {truth->t_m[0] < 60 ? 110 : 5, 0, 1.8};
    memcpy(message->position_m, truth->t_m, sizeof(message->position_m));
    message->has_deviation = 1;
    for (int k = 0; k < 3; k++) {
        message->deviation_m[k] = 0.5;
        message->position_m[k] += lie == FAR_AWAY ? 500 : lie == JUMPING ? jump_m[k] : 0;
        message->position_m[k] = lie == ANOTHER_PLACE ? else_m[k] : message->position_m[k];
    }
}

static void give(struct ndtd_pipeline *pipeline, enum ndt_message_type type, const struct ndt_buffer *encoded,
                 struct ndtd_scan_record *record)
{
    struct ndtd_message frame = street_drive_frame(type, encoded);
    must(ndtd_pipeline_process(pipeline, &frame, record, &err));
}

/* Returns the number of scans until the pose is tracked for good, and checks that none before was wrong. */
static int scans_until_tracking(enum lie lie, int is_lost)
{
    const struct world world = {WORLD_STREET, 5, 120, 0.02};
    struct ndtd_pipeline *pipeline;
    struct ndtd_scan_record record;
    struct ndt_buffer scan_frame, gnss_frame;
    struct ndt_cloud cloud;
    int needed = 0;
    ndt_cloud_init(&cloud);
    ndt_buffer_init(&scan_frame);
    ndt_buffer_init(&gnss_frame);
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    if (is_lost)
        give(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start, &record);
    for (int i = 0; i < LIE_SCANS; i++) {
        const double gap_s = is_lost && i >= LIE_LOST_AT ? LIE_GAP_S : 0;
        const struct ndt_pose truth = lie_pose(i, is_lost);
        const struct ndt_scan_message message = {.seq = (uint64_t)i,
                                                 .stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)i +
                                                             (int64_t)(gap_s * 1e9),
                                                 .frame_id = "lidar"};
        struct ndt_gnss_message gnss = {.stamp_ns = message.stamp_ns, .frame_id = "map"};
        lie_position(lie, i, &truth, &gnss);
        must(ndt_gnss_encode(&gnss_frame, &gnss, &err));
        give(pipeline, NDT_MESSAGE_GNSS, &gnss_frame, &record);
        must(world_scan(&cloud, &world, 500 + (uint64_t)i, 6000, &truth, 40, &err));
        must(ndt_scan_encode(&scan_frame, &message, &cloud, &err));
        give(pipeline, NDT_MESSAGE_SCAN, &scan_frame, &record);
        const double off_m = ndt_pose_distance_m(&record.result.T_map_sensor, &truth);
        if (record.result.outcome == NDT_CONVERGED)
            ck_assert_msg(off_m < 0.5, "lie %d: scan %d is %.1f m off, and believed", (int)lie, i, off_m);
        else
            needed = i + 1;
    }
    ndtd_pipeline_destroy(pipeline);
    ndt_cloud_free(&cloud);
    ndt_buffer_free(&scan_frame);
    ndt_buffer_free(&gnss_frame);
    return is_lost ? needed - LIE_LOST_AT : needed;
}

TEST_EACH(a_wrong_position_does_not_keep_the_pose_away, 0, 2 * LIES)
{
    const int is_lost = _i / LIES, needed = scans_until_tracking((enum lie)(_i % LIES), is_lost);
    ck_assert_msg(needed <= (_i % LIES == NO_LIE ? 1 : 12), "lie %d, %s: %d scans", _i % LIES,
                  is_lost ? "lost" : "without a first pose", needed);
}
