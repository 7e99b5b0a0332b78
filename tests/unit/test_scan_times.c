/* Tests of the meaning of point times, and of the sense of rotation from their order. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_counter.h"
#include "ndt/random.h"
#include "ndtd/pipeline_events.h"
#include "ndtd/scan_times.h"
#include "run_tests.h"

static struct ndt_error err;
static struct ndt_cloud cloud;
static struct ndtd_scan_times times;
static struct ndtd_pipeline_events events;
static struct ndt_preprocess_params wanted, found;
static struct ndt_sweep sweep;
static int64_t now_ns;

static void setup(void)
{
    ndt_cloud_free(&cloud); /* also between the cases of a test */
    memset(&times, 0, sizeof(times));
    memset(&events, 0, sizeof(events));
    ndt_preprocess_params_default(&wanted);
    wanted.deskew = NDT_DESKEW_AUTO;
    now_ns = INT64_C(1700000000000000000);
}

static void teardown(void)
{
    ndt_cloud_free(&cloud);
}

/* ---- scans ---- */

enum { LASERS = 16, COLUMNS = 360, POINTS = LASERS * COLUMNS };

static void set_point(size_t i, int column, int laser, double turn)
{
    const double azimuth = M_PI - turn * 2 * M_PI * (column + 0.5) / COLUMNS;
    const double range_m = (8 + 3 * sin(3 * azimuth)) * (1 + laser % 3),
                 elevation = (2.0 * laser - 15) * M_PI / 180;
    cloud.x_m[i] = (float)(range_m * cos(elevation) * cos(azimuth));
    cloud.y_m[i] = (float)(range_m * cos(elevation) * sin(azimuth));
    cloud.z_m[i] = (float)(range_m * sin(elevation));
}

/* Columns one after the other; turn: 1 clockwise, -1 counter-clockwise, parts of it less than a turn. */
static void fire(double turn, int has_times)
{
    cloud.count = 0;
    must(ndt_cloud_reserve(&cloud, POINTS, has_times ? NDT_CLOUD_TIME : 0, &err));
    cloud.count = POINTS;
    cloud.time_offset_s = 0;
    if (!has_times)
        ndtd_scan_times_drop(&cloud);
    for (size_t i = 0; i < POINTS; i++)
        set_point(i, (int)i / LASERS, (int)i % LASERS, turn);
}

/* Times from first_s to last_s. */
static void tell(double first_s, double last_s)
{
    fire(1, 1);
    for (size_t i = 0; i < POINTS; i++)
        cloud.time_s[i] = (float)(first_s + (last_s - first_s) * (double)i / (POINTS - 1));
}

static enum ndt_status take(double gap_s)
{
    const struct ndtd_timed_scan scan = {.frame_id = "lidar", .stamp_ns = now_ns, .points = &cloud};
    now_ns += llround(gap_s * 1e9);
    found = wanted;
    return ndtd_scan_times_find(&times, &scan, &found, &sweep, &events.times, &err);
}

static void expect_sweep(double middle_s, double length_s)
{
    ck_assert_int_eq(found.deskew, NDT_DESKEW_TIME);
    ck_assert_double_eq_tol(sweep.reference_s, middle_s, 2e-6);
    ck_assert_double_eq_tol(sweep.end_s - sweep.begin_s, length_s, 3e-6);
}

/* The lines of a report; NULL: none. */
static void expect_line(const char *part)
{
    struct ndtd_pipeline_events none = {.thinned = 0};
    char text[NDTD_EVENT_BYTES], first[NDTD_EVENT_BYTES] = "";
    size_t kind = 0, lines = 0;
    while (ndtd_pipeline_event(&events, &none, &kind, text))
        if (lines++ == 0)
            memcpy(first, text, sizeof(first));
    ck_assert_msg(lines == (part ? 1 : 0) && (!part || strstr(first, part)), "%zu lines: %s", lines, first);
}

/* ---- times ---- */

FIXTURE(setup, teardown)

TEST(right_times_stay_as_they_are)
{
    static const double FIRST_S[] = {0, -0.05, -0.1, -0.2, 0.1}; /* begin, middle, end, a sweep late, early */
    for (size_t k = 0; k < sizeof(FIRST_S) / sizeof(FIRST_S[0]); k++) {
        setup();
        for (int i = 0; i < 10; i++) {
            tell(FIRST_S[k], FIRST_S[k] + 0.1);
            must(take(0.1));
            expect_sweep(FIRST_S[k] + 0.05, 0.1);
            ck_assert_float_eq(cloud.time_s[0], (float)FIRST_S[k]);
        }
        expect_line(NULL);
    }
}

/* 1 Hz of a sensor of 10 Hz, a part of a turn, 20 Hz, 1 Hz; scans that are missing or come in pairs. */
TEST(every_usual_sweep_is_believed)
{
    static const double CASES[][3] = {
        {1, 0, 0.1}, {0.1, 0.08, 0.1}, {0.05, 0, 0.05}, {1, -0.5, 0.5}, {0.1, 0, 0.02}};
    for (size_t k = 0; k < sizeof(CASES) / sizeof(CASES[0]); k++) {
        setup();
        for (int i = 0; i < 30; i++) {
            tell(CASES[k][1], CASES[k][2]);
            must(take(CASES[k][0] * (i % 10 == 7 ? 6 : 1)));
            expect_sweep((CASES[k][1] + CASES[k][2]) / 2, CASES[k][2] - CASES[k][1]);
        }
        expect_line(NULL);
    }
    setup();
    for (int i = 0; i < 30; i++) { /* two sensors of one name */
        tell(0, 0.1);
        must(take(i % 2 ? 0.01 : 0.09));
        expect_sweep(0.05, 0.1);
    }
    expect_line(NULL);
}

TEST(another_clock_is_told_once)
{
    static const double OFF_S[] = {-5, -1, -0.2, 0.2, 3, 9.97, 10, -3600};
    for (size_t k = 0; k < sizeof(OFF_S) / sizeof(OFF_S[0]); k++) {
        setup();
        for (int i = 0; i < 10; i++) {
            tell(OFF_S[k] - 0.05, OFF_S[k] + 0.05);
            must(take(0.1));
            ck_assert_double_eq_tol(sweep.reference_s, 0, 3e-4); /* a float of an hour */
            ck_assert_double_eq_tol(sweep.end_s - sweep.begin_s, 0.1, 5e-4);
        }
        expect_line(OFF_S[k] < 0 ? "before the stamps" : "after the stamps");
        ck_assert_uint_eq(events.times.moves, 1);
        ck_assert_double_eq_tol(events.times.moved_s, -OFF_S[k], 1e-3);
    }
}

/* Times as a decoder leaves them if no float can hold them. */
TEST(a_clock_that_the_decoder_has_taken_out)
{
    tell(0, 0.1);
    cloud.time_offset_s = 1e6;
    must(take(0.1));
    expect_sweep(0, 0.1);
    expect_line("1e+06 s after the stamps");
    ck_assert_double_eq(cloud.time_offset_s, 0);
}

TEST(moved_times_lie_as_told)
{
    static const struct {
        enum ndt_sweep_stamp stamp;
        double middle_s;
        const char *text;
    } cases[] = {{NDT_STAMP_MIDDLE, 0, "in the middle (preprocess.sweep_stamp)"},
                 {NDT_STAMP_BEGIN, 0.05, "at the begin (preprocess.sweep_stamp)"},
                 {NDT_STAMP_END, -0.05, "at the end (preprocess.sweep_stamp)"}};
    for (size_t k = 0; k < 3; k++) {
        setup();
        wanted.sweep_stamp = cases[k].stamp;
        tell(4, 4.1);
        must(take(0.1));
        expect_sweep(cases[k].middle_s, 0.1);
        expect_line(cases[k].text);
    }
    setup();
    for (int i = 0; i < 10; i++) { /* and as before, where that was right */
        tell(i == 5 ? 4 : 0, i == 5 ? 4.1 : 0.1);
        must(take(0.1));
        expect_sweep(0.05, 0.1);
    }
    expect_line("where it was (in scans before)");
}

TEST(units_are_recognised)
{
    static const struct {
        double per_s;
        const char *text;
    } cases[] = {{1e3, "taken for milliseconds"}, {1e6, "taken for microseconds"}, {1e9, "taken for nanoseconds"}};
    static const double GAPS_S[] = {0.05, 0.1, 1};
    for (size_t k = 0; k < 9; k++) {
        const double span_s = fmin(GAPS_S[k / 3], 0.1), per_s = cases[k % 3].per_s;
        setup();
        for (int i = 0; i < 10; i++) {
            tell(-0.3 * span_s * per_s, 0.7 * span_s * per_s);
            must(take(GAPS_S[k / 3]));
            expect_sweep(0.2 * span_s, span_s);
        }
        expect_line(cases[k % 3].text);
    }
}

/* A scan of a few points has the unit of those before it. */
TEST(a_unit_is_kept)
{
    for (int i = 0; i < 10; i++) {
        const double last_ms = i < 6 ? 100 : 1.5;
        tell(0, last_ms);
        must(take(0.1));
        expect_sweep(last_ms * 5e-4, last_ms * 1e-3);
    }
    expect_line("taken for milliseconds");
}

TEST(milliseconds_of_another_clock)
{
    tell(57, 157);
    cloud.time_offset_s = 4e5;
    must(take(0.1));
    expect_sweep(0, 0.1);
    ck_assert(events.times.units == 1 && events.times.moves == 1);
}

/* The times are a sweep in no unit: auto does without them, `time` is the word of the user. */
TEST(times_that_cannot_be_are_not_used)
{
    for (int i = 0; i < 10; i++) {
        tell(0, 1.5);
        must(take(0.1));
        ck_assert_int_eq(found.deskew, NDT_DESKEW_OFF);
    }
    expect_line("span 1.5, in no unit a sweep");
    setup();
    wanted.deskew = NDT_DESKEW_TIME;
    tell(0, 1.5);
    must(take(0.1));
    expect_sweep(0.75, 1.5);
}

TEST(strays_are_dropped_and_counted)
{
    for (int k = 0; k < 3; k++) {
        setup();
        tell(-0.05, 0.05);
        for (size_t i = 0; i < POINTS; i += k == 0 ? POINTS : k == 1 ? 100 : 8)
            cloud.time_s[i + 5] += i % 16 ? 8 : -12;
        must(take(0.1));
        expect_sweep(0, 0.1);
        expect_line("points so far have none, or one far outside");
        ck_assert_uint_eq(events.times.stray_points, k == 0 ? 1 : k == 1 ? 58 : 720);
    }
}

TEST(times_that_are_not_numbers)
{
    tell(NAN, NAN);
    must(take(0.1));
    ck_assert_int_eq(found.deskew, NDT_DESKEW_OFF);
    wanted.deskew = NDT_DESKEW_TIME;
    tell(INFINITY, INFINITY);
    ck_assert_int_eq(take(0.1), NDT_ERR_FORMAT);
    tell(-3e38, 3e38);
    (void)take(0.1);
    tell(-0.05, 0.05);
    must(take(0.1));
    expect_sweep(0, 0.1);
}

TEST(stamps_that_stand_still_or_run_backwards)
{
    for (int i = 0; i < 40; i++) {
        tell(0, 0.1);
        must(take(i % 4 == 0 ? 0 : i % 4 == 1 ? -0.3 : 0.1));
        expect_sweep(0.05, 0.1);
    }
    now_ns = INT64_MIN;
    tell(0, 0.1);
    must(take(0));
    now_ns = INT64_MAX;
    must(take(0));
    expect_line(NULL);
}

TEST(what_the_next_scan_is_expected_to_be)
{
    struct ndt_preprocess_params expected = wanted;
    ck_assert(!ndtd_scan_times_expect(&times, "lidar", &expected));
    tell(0, 0.1);
    must(take(0.1));
    expected = wanted;
    ck_assert(ndtd_scan_times_expect(&times, "lidar", &expected) && expected.deskew == NDT_DESKEW_TIME);
    expected = wanted;
    ck_assert(!ndtd_scan_times_expect(&times, "other", &expected));
    tell(5, 5.1);
    must(take(0.1));
    expected = wanted;
    ck_assert(!ndtd_scan_times_expect(&times, "lidar", &expected)); /* they have to be changed again */
    expected.deskew = NDT_DESKEW_OFF;
    ck_assert(ndtd_scan_times_expect(&times, "lidar", &expected) && expected.deskew == NDT_DESKEW_OFF);
}

TEST(many_sensors_and_no_allocation)
{
    char frame_id[16];
    int wrong = 0;
    const struct ndtd_timed_scan scan = {.frame_id = frame_id, .stamp_ns = 1, .points = &cloud};
    tell(0, 100);
    strcpy(frame_id, "00");
    const unsigned long before = allocations;
    for (int i = 0; i < 100; i++) {
        frame_id[0] = (char)('0' + i / 10);
        frame_id[1] = (char)('0' + i % 10);
        found = wanted;
        wrong += ndtd_scan_times_find(&times, &scan, &found, &sweep, &events.times, &err) != NDT_OK ||
                 found.deskew != NDT_DESKEW_TIME;
    }
    ck_assert_uint_eq(allocations, before); /* an assertion allocates */
    ck_assert_int_eq(wrong, 0);
}

/* ---- the sense of rotation ---- */

TEST(the_order_of_firing_tells_the_turn)
{
    static const enum ndt_deskew_mode MODES[] = {NDT_DESKEW_AZIMUTH_CW, NDT_DESKEW_AZIMUTH_CCW};
    for (int k = 0; k < 2; k++) {
        setup();
        for (int i = 0; i < 8; i++) {
            fire(k ? -1 : 1, 0);
            must(take(0.2)); /* every second scan of a sensor of 10 Hz */
            ck_assert_int_eq(found.deskew, i + 1 < NDTD_TURNS_NEEDED ? NDT_DESKEW_OFF : MODES[k]);
        }
        ck_assert_double_eq(found.sweep_s, 0.1);
        ck_assert_double_eq_tol(sweep.end_s - sweep.begin_s, 0.1, 1e-9);
        expect_line(k ? "turns counter-clockwise, once in 0.1 s: as preprocess.deskew=azimuth_ccw"
                      : "turns clockwise, once in 0.1 s: as preprocess.deskew=azimuth_cw");
        fire(k ? 1 : -1, 0); /* the other sense: begins anew */
        must(take(0.2));
        ck_assert_int_eq(found.deskew, NDT_DESKEW_OFF);
    }
    setup();
    for (int i = 0; i < 8; i++) { /* 20 Hz */
        fire(1, 0);
        must(take(0.05));
    }
    ck_assert_double_eq_tol(found.sweep_s, 0.05, 1e-9);
}

/* Without times a sweep lasts sweep_s, as every second scan shows nothing else, or the time between scans. */
TEST(a_sweep_without_times_is_no_longer_than_the_gaps)
{
    static const double GAPS_S[] = {0.05, 0.1, 0.2, 1}, SWEEPS_S[] = {0.05, 0.1, 0.1, 0.1};
    for (size_t k = 0; k < sizeof(GAPS_S) / sizeof(GAPS_S[0]); k++) {
        setup();
        ck_assert_double_eq(ndtd_scan_times_sweep_s(&times, "lidar", 0.1), 0.1);
        for (int i = 0; i < 8; i++) {
            fire(0.5, 0);
            must(take(GAPS_S[k]));
        }
        ck_assert_int_eq(found.deskew, NDT_DESKEW_OFF);
        ck_assert_double_eq_tol(ndtd_scan_times_sweep_s(&times, "lidar", 0.1), SWEEPS_S[k], 1e-9);
        ck_assert_double_eq(ndtd_scan_times_sweep_s(&times, "another", 0.1), 0.1);
        ck_assert_double_eq(ndtd_scan_times_sweep_s(&times, NULL, 0.1), 0.1);
    }
}

/* A field of times that was never set is none. */
TEST(times_that_are_all_equal_are_none)
{
    for (int i = 0; i < 8; i++) {
        tell(0, 0);
        must(take(0.1));
    }
    ck_assert_int_eq(found.deskew, NDT_DESKEW_AZIMUTH_CW);
}

static void swap_points(size_t i, size_t k)
{
    float *const columns[] = {cloud.x_m, cloud.y_m, cloud.z_m};
    for (int c = 0; c < 3; c++) {
        const float value = columns[c][i];
        columns[c][i] = columns[c][k];
        columns[c][k] = value;
    }
}

static void shuffle(size_t within)
{
    struct ndt_random random = {7};
    for (size_t begin = 0; begin < cloud.count; begin += within)
        for (size_t i = 0; i < within && begin + i < cloud.count; i++)
            swap_points(begin + i, begin + ndt_random_next(&random) % (i + 1));
}

static void expect_no_turn(const char *what)
{
    ck_assert_msg(ndtd_scan_turn(&cloud) == NDTD_TURN_UNKNOWN, "%s", what);
}

/* Moves points as if the motion of 10 m/s were undone. */
static void undo_motion(void)
{
    for (size_t i = 0; i < cloud.count; i++)
        cloud.x_m[i] += (float)(10 * 0.1 * ((double)i / POINTS - 0.5));
}

TEST(other_orders_tell_no_turn)
{
    fire(1, 0);
    ck_assert_int_eq(ndtd_scan_turn(&cloud), NDTD_TURN_CLOCKWISE);
    shuffle(POINTS);
    expect_no_turn("shuffled");
    fire(1, 0);
    shuffle(LASERS); /* as if sorted by azimuth */
    expect_no_turn("sorted by azimuth");
    for (int turn = -1; turn <= 1; turn += 2) { /* KITTI: its rings run against the rotation */
        for (size_t i = 0; i < POINTS; i++)
            set_point(i, (int)(i % COLUMNS), (int)(i / COLUMNS), turn);
        expect_no_turn("ring after ring");
        for (size_t i = 0; i < POINTS; i++)
            set_point(i, (int)(i * COLUMNS / POINTS), 7, turn);
        expect_no_turn("a single ring");
    }
    fire(0.5, 0);
    expect_no_turn("half a turn");
    fire(2, 0);
    expect_no_turn("two turns");
    fire(1, 0);
    undo_motion();
    expect_no_turn("its motion is undone");
    fire(1, 0);
    for (size_t i = 0; i < POINTS; i++) { /* begins in front */
        cloud.x_m[i] = -cloud.x_m[i];
        cloud.y_m[i] = -cloud.y_m[i];
    }
    expect_no_turn("begins in front");
    fire(1, 0);
    cloud.count = 200;
    expect_no_turn("few points");
    cloud.count = 0;
    expect_no_turn("none");
    fire(1, 0);
    for (size_t i = 0; i < POINTS; i++)
        cloud.x_m[i] = i % 2 ? NAN : INFINITY;
    expect_no_turn("not finite");
}

/* Drop-outs and thinned scans keep the order. */
TEST(gaps_do_not_hide_the_turn)
{
    size_t kept = 0;
    fire(1, 0);
    for (size_t i = 0; i < POINTS; i++)
        if (i * 2654435761u % 100 >= 10 && (i < POINTS / 3 || i > POINTS / 3 + POINTS / 12)) { /* open sky, too */
            swap_points(kept, i);
            kept++;
        }
    cloud.count = kept;
    ck_assert_int_eq(ndtd_scan_turn(&cloud), NDTD_TURN_CLOCKWISE);
}
