#include "ndtd/scan_turn.h"

#include <math.h>
#include <string.h>

static const double DEG = 0.017453292519943295;

/* Parts of the scan, in its order, and pairs of neighbours that are examined in each. */
enum { PARTS = 64, PAIRS = 8 };
static const double NEAREST_M = 0.5; /* nearer points are of the sensor itself */

/* ---- what a turn in the order of firing has ---- */

static const double PART_TURNED_DEG = 60, BACK_DEG = 4;        /* limits from one part to the next */
static const double LEAST_TURN_DEG = 330, MOST_TURN_DEG = 368; /* limits from the first part to the last */
static const double BEHIND_DEG = 20;                           /* where a turn begins and ends */
static const double ALONG = 0.9;                               /* least length of the mean direction of a part */
static const double UPRIGHT_DEG = 0.02, UPRIGHT_PART = 0.8;    /* azimuth of neighbours; part of pairs within it */
static const double STEP_DEG = 0.3, STEP_PART = 0.7; /* elevation of neighbours; part of pairs beyond it */
static const double USUAL_PART = 0.5;                /* least part of pairs with one of the three usual steps */
enum { LEAST_PARTS = 48, LEAST_POINTS = 2 * PARTS * PAIRS, STEPS = 181 };

struct look {
    int parts, pairs, upright, steps;
    int counts[STEPS];          /* pairs by their step of elevation, in degrees */
    double first_deg;           /* direction of the first pair */
    double last_deg, turn_deg;  /* direction of the last part; angle since the first */
    double forth_deg, back_deg; /* largest steps from part to part, either way */
};

static double wrapped_deg(double angle_deg)
{
    return angle_deg - 360 * floor(angle_deg / 360 + 0.5);
}

/* Azimuth and elevation [deg] of a point; 0: it has no return, or is too near. */
static int direction_of(const struct ndt_cloud *scan, size_t i, double *azimuth_deg, double *elevation_deg)
{
    const double x = (double)scan->x_m[i], y = (double)scan->y_m[i], z = (double)scan->z_m[i], away_m = hypot(x, y);
    if (!(away_m >= NEAREST_M) || !isfinite(away_m) || !isfinite(z))
        return 0;
    *azimuth_deg = atan2(y, x) / DEG;
    *elevation_deg = atan2(z, away_m) / DEG;
    return 1;
}

static void add_step(struct look *look, double turned_deg, double step_deg)
{
    look->pairs++;
    look->upright += fabs(turned_deg) <= UPRIGHT_DEG;
    look->steps += fabs(step_deg) >= STEP_DEG;
    look->counts[(int)lround(step_deg / 2) + STEPS / 2]++;
}

/* The mean direction of a part; 0: its points have no common direction. */
static int look_at_part(struct look *look, const struct ndt_cloud *scan, size_t part, double *mean_deg)
{
    const size_t begin = scan->count * part / PARTS, end = scan->count * (part + 1) / PARTS;
    double sum[2] = {0, 0}, azimuth_deg[2], elevation_deg[2];
    int seen = 0;
    for (size_t k = 0; k < PAIRS; k++) {
        const size_t i = begin + (end - begin) * k / PAIRS;
        if (i + 1 >= scan->count || !direction_of(scan, i, &azimuth_deg[0], &elevation_deg[0]) ||
            !direction_of(scan, i + 1, &azimuth_deg[1], &elevation_deg[1]))
            continue;
        add_step(look, wrapped_deg(azimuth_deg[1] - azimuth_deg[0]), elevation_deg[1] - elevation_deg[0]);
        if (look->parts == 0 && seen == 0)
            look->first_deg = azimuth_deg[0];
        sum[0] += cos(azimuth_deg[0] * DEG);
        sum[1] += sin(azimuth_deg[0] * DEG);
        seen++;
    }
    *mean_deg = atan2(sum[1], sum[0]) / DEG;
    return seen > 0 && hypot(sum[0], sum[1]) >= ALONG * seen;
}

/* Examines all parts. Returns 0 when a part has no direction: the points have another order. */
static int look_at_all(struct look *look, const struct ndt_cloud *scan)
{
    double mean_deg = 0;
    for (size_t part = 0; part < PARTS; part++) {
        const int pairs = look->pairs;
        const int is_along = look_at_part(look, scan, part, &mean_deg);
        if (look->pairs == pairs)
            continue;
        if (!is_along)
            return 0;
        if (look->parts++ > 0) {
            const double turned_deg = wrapped_deg(mean_deg - look->last_deg);
            look->forth_deg = fmax(look->forth_deg, turned_deg);
            look->back_deg = fmax(look->back_deg, -turned_deg);
            look->turn_deg += turned_deg;
        }
        look->last_deg = mean_deg;
    }
    return look->parts >= LEAST_PARTS;
}

/* Number of pairs with one of the most frequent steps: lasers fire in the same order in every column. */
static int usual_steps(struct look *look)
{
    int sum = 0;
    for (int k = 0; k < 3; k++) {
        int most = 0;
        for (int i = 1; i < STEPS; i++)
            most = look->counts[i] > look->counts[most] ? i : most;
        sum += look->counts[most];
        look->counts[most] = 0;
    }
    return sum;
}

static int is_behind(double azimuth_deg)
{
    return fabs(wrapped_deg(azimuth_deg - 180)) <= BEHIND_DEG;
}

enum ndtd_turn ndtd_scan_turn(const struct ndt_cloud *scan)
{
    struct look look = {0};
    if (scan->count < LEAST_POINTS || !look_at_all(&look, scan))
        return NDTD_TURN_UNKNOWN;
    const int is_clockwise = look.turn_deg < 0;
    const double turn_deg = fabs(look.turn_deg), on_deg = is_clockwise ? look.back_deg : look.forth_deg,
                 against_deg = is_clockwise ? look.forth_deg : look.back_deg;
    if (turn_deg < LEAST_TURN_DEG || turn_deg > MOST_TURN_DEG || on_deg > PART_TURNED_DEG || against_deg > BACK_DEG)
        return NDTD_TURN_UNKNOWN;
    if (!is_behind(look.first_deg) || !is_behind(look.last_deg))
        return NDTD_TURN_UNKNOWN;
    if (look.upright < UPRIGHT_PART * look.pairs || look.steps < STEP_PART * look.pairs ||
        usual_steps(&look) < USUAL_PART * look.pairs)
        return NDTD_TURN_UNKNOWN;
    return is_clockwise ? NDTD_TURN_CLOCKWISE : NDTD_TURN_COUNTER_CLOCKWISE;
}
