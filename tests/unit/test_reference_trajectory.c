/* The reference trajectory (--expect): the formats of its file, and the first difference. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndtd/reference_trajectory.h"
#include "run_tests.h"

static char directory[32], path[64];
static struct ndtd_reference_trajectory reference;
static struct ndt_error err;

static void setup(void)
{
    strcpy(directory, "/tmp/ndtd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/e", directory);
    reference = (struct ndtd_reference_trajectory){0};
}

static void teardown(void)
{
    ndtd_reference_trajectory_free(&reference);
    unlink(path);
    rmdir(directory);
}

static enum ndt_status read_text(const char *text)
{
    FILE *file = fopen(path, "wb");
    fputs(text, file);
    fclose(file);
    return ndtd_reference_trajectory_read(&reference, path, &err);
}

static void must_read(const char *text)
{
    must(read_text(text));
}

static void must_refuse(const char *text, enum ndt_status status, const char *part)
{
    ck_assert_int_eq(read_text(text), status);
    ck_assert_msg(strstr(err.text, part) && strstr(err.text, path), "'%s' without '%s'", err.text, part);
}

static void pose(int64_t stamp_ns, double x_m)
{
    struct ndt_pose at = ndt_pose_identity();
    at.t_m[0] = x_m;
    ndtd_reference_trajectory_compare(&reference, stamp_ns, &at);
}

static const char TWO_POSES[] = "1.0 0.5 0 0 0 0 0 1\n2.0 1.5 0 0 0 0 0 1\n";

FIXTURE(setup, teardown)

TEST(hash_in_three_formats)
{
    must_read(" 0123456789abcdef\n");
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 0x0123456789abcdef), 1);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 1), 0);
    ck_assert_str_eq(reference.difference, "trajectory hash 0000000000000001, expected 0123456789abcdef");
    ndtd_reference_trajectory_free(&reference);
    must_read("{\"scans\": 2,\n \"trajectory_hash\": \"0123456789ABCDEF\"}\n");
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 0x0123456789abcdef), 1);
    ndtd_reference_trajectory_free(&reference);
    must_read("# no scan got a pose\n# trajectory_hash 0123456789abcdef\n");
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 0x0123456789abcdef), 1);
    ndtd_reference_trajectory_free(&reference);
    must_read("1.0 0 0 0 0 0 0 1\n# trajectory_hash 0123456789abcdef\n");
    ck_assert_uint_eq(reference.poses.count, 1);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 0x0123456789abcdef), 1);
}

TEST(poses_without_hash_are_compared)
{
    must_read(TWO_POSES);
    pose(1000000000, 0.5);
    pose(2000000000, 1.5);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 5), 1);
}

TEST(first_difference_is_reported)
{
    must_read(TWO_POSES);
    pose(1000000000, 0.5);
    pose(2000000000, 1.51);
    pose(3000000000, 9);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 5), 0);
    ck_assert_ptr_nonnull(strstr(reference.difference, "pose 2 (stamp 2000000000 ns) is off by 0.01 m"));
}

TEST(missing_extra_and_shifted_poses_differ)
{
    must_read(TWO_POSES);
    pose(1000000000, 0.5);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 5), 0);
    ck_assert_str_eq(reference.difference, "1 poses, expected 2");
    ndtd_reference_trajectory_free(&reference);
    must_read(TWO_POSES);
    pose(1000000000, 0.5);
    pose(2000000000, 1.5);
    pose(3000000000, 2.5);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 5), 0);
    ck_assert_ptr_nonnull(strstr(reference.difference, "pose 3 (stamp 3000000000 ns) is one too many"));
    ndtd_reference_trajectory_free(&reference);
    must_read(TWO_POSES);
    pose(1000000001, 0.5);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 5), 0);
    ck_assert_ptr_nonnull(strstr(reference.difference, "has stamp 1000000001 ns"));
}

TEST(hash_overrides_poses_and_tolerance_overrides_hash)
{
    must_read("1.0 0.5 0 0 0 0 0 1\n# trajectory_hash 0123456789abcdef\n");
    pose(1000000000, 0.5);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 5), 0); /* a bit, a seq or an outcome */
    ndtd_reference_trajectory_free(&reference);
    must_read("# tolerance_m 0.01\n# tolerance_deg 0.1\n1.0 0.5 0 0 0 0 0 1\n"
              "# trajectory_hash 0123456789abcdef\n");
    pose(1000000000, 0.509);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 5), 1);
    ndtd_reference_trajectory_free(&reference);
    must_read("# tolerance_m 0.01\n# tolerance_deg 0.1\n1.0 0.5 0 0 0 0 0 1\n");
    pose(1000000000, 0.52);
    ck_assert_int_eq(ndtd_reference_trajectory_matches(&reference, 5), 0);
}

TEST(wrong_files_are_refused)
{
    must_refuse("", NDT_ERR_FORMAT, "neither a hash nor poses");
    must_refuse("{\"scans\": 2}\n", NDT_ERR_FORMAT, "no trajectory_hash");
    must_refuse("{\"trajectory_hash\": \"xyz\"}\n", NDT_ERR_FORMAT, "not followed by 16");
    must_refuse("{\"trajectory_hash\": \"0123456789abcdef0\"}\n", NDT_ERR_FORMAT, "not followed by 16");
    must_refuse("# tolerance_m 1\n1.0 0 0 0 0 0 0 1\n", NDT_ERR_FORMAT, "come together");
    must_refuse("hello\n", NDT_ERR_FORMAT, "line 1");
    ck_assert_int_eq(ndtd_reference_trajectory_read(&reference, directory, &err), NDT_ERR_IO);
    ck_assert_int_eq(ndtd_reference_trajectory_read(&reference, "/nonexistent/file", &err), NDT_ERR_IO);
}
