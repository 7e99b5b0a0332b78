/* The seeded generator gives the published sequence, and quantiles interpolate. */
#include <check.h>
#include <stdlib.h>

#include "ndt/quantile.h"
#include "ndt/random.h"
#include "run_tests.h"

/* First outputs of the reference implementation of splitmix64 (Vigna 2015) for the seeds 0 and 1234567. */
TEST(sequence_of_splitmix64)
{
    struct ndt_random random = {0};
    ck_assert_uint_eq(ndt_random_next(&random), 0xe220a8397b1dcdafu);
    ck_assert_uint_eq(ndt_random_next(&random), 0x6e789e6aa1b965f4u);
    ck_assert_uint_eq(ndt_random_next(&random), 0x06c45d188009454fu);
    random = (struct ndt_random){1234567};
    ck_assert_uint_eq(ndt_random_next(&random), 6457827717110365317u);
    ck_assert_uint_eq(ndt_random_next(&random), 3203168211198807973u);
}

TEST(streams_differ)
{
    struct ndt_random same = ndt_random_stream(7, 1, 2), again = ndt_random_stream(7, 1, 2);
    struct ndt_random other = ndt_random_stream(7, 2, 1), seed = ndt_random_stream(8, 1, 2);
    const uint64_t value = ndt_random_next(&same);
    ck_assert_uint_eq(value, ndt_random_next(&again));
    ck_assert_uint_ne(value, ndt_random_next(&other));
    ck_assert_uint_ne(value, ndt_random_next(&seed));
}

TEST(distributions)
{
    enum { DRAWS = 100000 };
    struct ndt_random random = {3};
    double sum = 0, normal_sum = 0, normal_squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double between = ndt_random_between(&random, -2, 4), normal = ndt_random_normal(&random);
        ck_assert(between >= -2 && between < 4);
        sum += between;
        normal_sum += normal;
        normal_squares += normal * normal;
    }
    ck_assert_double_eq_tol(sum / DRAWS, 1, 0.03);
    ck_assert_double_eq_tol(normal_sum / DRAWS, 0, 0.02);
    ck_assert_double_eq_tol(normal_squares / DRAWS, 1, 0.03);
}

TEST(quantiles)
{
    double values[] = {4, 1, 3, 2};
    ck_assert_double_eq(ndt_quantile(values, 4, 0), 1);
    ck_assert_double_eq(values[3], 4); /* sorted now */
    ck_assert_double_eq(ndt_quantile_sorted(values, 4, 1), 4);
    ck_assert_double_eq(ndt_quantile_sorted(values, 4, 0.5), 2.5);
    ck_assert_double_eq_tol(ndt_quantile_sorted(values, 4, 0.95), 3.85, 1e-12);
    ck_assert_double_eq(ndt_quantile(values, 1, 0.7), 1);
    ck_assert_double_eq(ndt_quantile(NULL, 0, 0.5), 0);
}
