/* Tests beyond the edge of the map: when a scan leaves it, when the track is attached again, and how the
 * uncertainty grows on the way. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "extension.h"
#include "run_tests.h"

static struct ndtd_edge edge;

static struct ndt_pose pose_at(double x_m, double yaw_deg)
{
    return ndt_pose_from_rpy((double[3]){x_m, 0, 0}, (double[3]){0, 0, yaw_deg * M_PI / 180});
}

static enum ndtd_edge_step unmatched(double part)
{
    return ndtd_edge_decide(&edge, &(struct ndtd_edge_facts){.part = part});
}

/* A scan whose alignment is accepted: odometry has the base at x_m, the map `off_m` and `off_deg` beside that. */
static enum ndtd_edge_step accepted(double x_m, double off_m, double off_deg)
{
    const struct ndt_pose off = pose_at(off_m, off_deg), T_odom_base = pose_at(x_m, 0);
    const struct ndtd_edge_facts facts = {.part = 0.5,
                                          .is_accepted = 1,
                                          .T_map_base = ndt_pose_compose(&T_odom_base, &off),
                                          .T_odom_base = T_odom_base};
    return ndtd_edge_decide(&edge, &facts);
}

static void inside(void)
{
    memset(&edge, 0, sizeof(edge));
}

static void beyond(void)
{
    edge = (struct ndtd_edge){.is_beyond = 1};
}

FIXTURE(inside, NULL)

TEST(hardly_any_point_in_the_map_is_an_edge)
{
    ck_assert_int_eq(unmatched(0.2), NDTD_EDGE_LEAVE);
    ck_assert(edge.is_beyond);
    ck_assert_int_eq(unmatched(0.0), NDTD_EDGE_STAY);
    ck_assert(edge.is_beyond);
}

/* A scan that fits nothing, though its points meet voxels: what is mapped there has changed, or the pose is wrong.
 */
TEST(a_changed_map_is_no_edge)
{
    for (int i = 1; i < 20; i++)
        ck_assert_int_eq(unmatched(0.9), NDTD_EDGE_STAY);
    ck_assert_int_eq(unmatched(0.9), NDTD_EDGE_GIVE_UP); /* odometry need not go along any more */
    ck_assert(!edge.is_beyond);
}

TEST(scans_that_agree_attach)
{
    beyond();
    ck_assert_int_eq(accepted(0, 0.5, 1), NDTD_EDGE_STAY);
    ck_assert_int_eq(accepted(1, 0.5, 1), NDTD_EDGE_STAY);
    ck_assert_int_eq(accepted(2, 0.6, 1), NDTD_EDGE_ATTACH);
    ck_assert(!edge.is_beyond);
}

TEST(one_scan_that_disagrees_begins_anew)
{
    beyond();
    ck_assert_int_eq(accepted(0, 0, 0), NDTD_EDGE_STAY);
    ck_assert_int_eq(accepted(1, 0, 0), NDTD_EDGE_STAY);
    ck_assert_int_eq(accepted(2, 0.5, 0), NDTD_EDGE_STAY);
    ck_assert_int_eq(accepted(3, 0.5, 3), NDTD_EDGE_STAY);
    ck_assert_int_eq(unmatched(0.4), NDTD_EDGE_STAY);
    ck_assert_int_eq(accepted(4, 0.5, 3), NDTD_EDGE_STAY);
    ck_assert_int_eq(accepted(5, 0.5, 3), NDTD_EDGE_STAY);
    ck_assert_int_eq(accepted(6, 0.5, 3), NDTD_EDGE_ATTACH);
}

TEST(scans_that_meet_the_map_in_vain_give_up)
{
    int scans = 1;
    beyond();
    ck_assert_int_eq(unmatched(0.95), NDTD_EDGE_STAY);
    ck_assert_int_eq(unmatched(0.1), NDTD_EDGE_STAY); /* beyond again: nothing speaks against the pose */
    while (scans < 100 && unmatched(0.95) == NDTD_EDGE_STAY)
        scans++;
    ck_assert_int_eq(scans, 20);
    ck_assert(!edge.is_beyond);
}

/* The map contradicts odometry: it has slipped, or taken one place for another. */
TEST(scans_that_fit_elsewhere_give_up)
{
    const struct ndtd_edge_facts elsewhere = {.part = 0.5, .is_refuted = 1};
    beyond();
    ck_assert_int_eq(ndtd_edge_decide(&edge, &elsewhere), NDTD_EDGE_STAY);
    ck_assert_int_eq(ndtd_edge_decide(&edge, &elsewhere), NDTD_EDGE_STAY);
    ck_assert_int_eq(unmatched(0.5), NDTD_EDGE_STAY);
    ck_assert_int_eq(ndtd_edge_decide(&edge, &elsewhere), NDTD_EDGE_STAY);
    ck_assert_int_eq(ndtd_edge_decide(&edge, &elsewhere), NDTD_EDGE_STAY);
    ck_assert_int_eq(ndtd_edge_decide(&edge, &elsewhere), NDTD_EDGE_GIVE_UP);
}

TEST(few_points_are_not_worth_an_alignment)
{
    ck_assert(!ndtd_edge_is_met(0.39));
    ck_assert(ndtd_edge_is_met(0.41));
}

/* Deviations of position across the heading and of yaw. */
static void drive(double step_m, double turn_deg, int steps, double covariance[36])
{
    const struct ndt_pose D = pose_at(step_m, turn_deg);
    for (int i = 0; i < steps; i++)
        ndtd_edge_carry(&D, covariance);
}

TEST(certainty_is_lost_along_the_way)
{
    double covariance[36] = {0};
    ndtd_edge_carry(&(struct ndt_pose){.q_xyzw = {0, 0, 0, 1}}, covariance);
    ck_assert_double_eq(covariance[0], 0); /* at rest */
    drive(1, 0, 100, covariance);
    const double along_m = sqrt(covariance[0]), across_m = sqrt(covariance[7]), yaw_rad = sqrt(covariance[35]);
    ck_assert_double_gt(along_m, 0.1);
    ck_assert_double_lt(along_m, 1);
    ck_assert_double_gt(across_m, along_m); /* the drift of the heading as well */
    drive(1, 0, 300, covariance);
    ck_assert_double_eq_tol(sqrt(covariance[0]), 2 * along_m, 1e-9);
    ck_assert_double_eq_tol(sqrt(covariance[35]), 2 * yaw_rad, 1e-12);
    ck_assert_double_gt(sqrt(covariance[7]), 4 * across_m);
}

/* A wrong heading at the edge moves the far end aside, and no longer the pose back at the edge. */
TEST(a_wrong_heading_cancels_on_the_way_back)
{
    double covariance[36] = {0}, drift[36] = {0};
    covariance[35] = 1e-4;
    drive(1, 0, 100, covariance);
    drive(1, 0, 100, drift);
    ck_assert_double_eq_tol(covariance[7] - drift[7], 1, 1e-9); /* (100 m)^2 times 1e-4 */
    drive(0, 180, 1, covariance);
    drive(0, 180, 1, drift);
    drive(1, 0, 100, covariance);
    drive(1, 0, 100, drift);
    ck_assert_double_eq_tol(covariance[7] - drift[7], 0, 1e-9);
}
