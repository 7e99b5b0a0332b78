/* The plane of the ground below the origin: RANSAC (Fischler & Bolles 1981), then least squares over its inliers.
 */
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/random.h"
#include "scan_view.h"

enum { TRIES = 400, TESTED = 600, PICKED = 4096, FITS = 3, LEAST_INLIERS = 25 };
static const double NEAR_M = 20, INLIER_M = 0.15, BELOW_M = 0.5, LEAST_RATIO = 0.04, MOST_BELOW = 0.08;
static const double LEAST_AREA_M2 = 0.5, LEAST_HEIGHT_M = 0.15;

/* Points near the sensor, evenly sampled. */
struct sample {
    double p[PICKED][3];
    int count, low[PICKED], low_count; /* low: may be ground */
};

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void take_sample(struct sample *sample, const struct ndt_cloud *points, double most_m)
{
    size_t near = 0, taken = 0;
    for (int pass = 0; pass < 2; pass++) {
        const size_t every = near / PICKED + 1;
        size_t number = 0;
        for (size_t i = 0; i < points->count; i++) {
            const double p[3] = {(double)points->x_m[i], (double)points->y_m[i], (double)points->z_m[i]};
            const double up_m = p[2], across_m2 = dot(p, p) - up_m * up_m;
            if (across_m2 > NEAR_M * NEAR_M)
                continue;
            if (pass == 0) {
                near++;
            } else if (number++ % every == 0 && taken < PICKED) {
                memcpy(sample->p[taken], p, sizeof(p));
                if (up_m < -LEAST_HEIGHT_M && up_m > -1.5 * most_m)
                    sample->low[sample->low_count++] = (int)taken;
                taken++;
            }
        }
    }
    sample->count = (int)taken;
}

/* Fits a plane to three random points of the sample; 0 when it cannot be ground. */
static int try_plane(const struct sample *sample, struct ndt_random *random, const struct ndt_search_params *params,
                     struct ndt_ground_plane *out)
{
    const double *p[3];
    double a[3], b[3];
    for (int i = 0; i < 3; i++)
        p[i] = sample->p[sample->low[ndt_random_next(random) % (uint64_t)sample->low_count]];
    for (int i = 0; i < 3; i++) {
        a[i] = p[1][i] - p[0][i];
        b[i] = p[2][i] - p[0][i];
    }
    double n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    const double size = sqrt(dot(n, n));
    if (size < LEAST_AREA_M2)
        return 0;
    const double sign = n[2] < 0 ? -1 / size : 1 / size;
    for (int i = 0; i < 3; i++)
        out->normal[i] = sign * n[i];
    out->height_m = -dot(out->normal, p[0]);
    return out->normal[2] >= cos(params->max_tilt_deg * (3.14159265358979323846 / 180)) &&
           out->height_m >= LEAST_HEIGHT_M && out->height_m <= params->max_height_m;
}

static int count_inliers(const struct sample *sample, const struct ndt_ground_plane *plane, int every)
{
    int count = 0;
    for (int i = 0; i < sample->count; i += every)
        count += fabs(dot(plane->normal, sample->p[i]) + plane->height_m) < INLIER_M;
    return count;
}

/* Fits a plane to the inliers by least squares: the normal is the direction of least spread. */
static void fit(const struct sample *sample, struct ndt_ground_plane *plane)
{
    double mean[3] = {0}, moments[6] = {0}, values[3], V[9];
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < sample->count; i++) {
            const double *p = sample->p[i];
            if (fabs(dot(plane->normal, p) + plane->height_m) >= INLIER_M)
                continue;
            count += pass == 0;
            for (int r = 0, at = 0; r < 3; r++) {
                mean[r] += pass == 0 ? p[r] : 0;
                for (int c = r; pass == 1 && c < 3; c++)
                    moments[at++] += (p[r] - mean[r] / count) * (p[c] - mean[c] / count);
            }
        }
    if (count < LEAST_INLIERS)
        return;
    ndt_eigen_symmetric(3, moments, values, V);
    const double n[3] = {V[0], V[3], V[6]}, sign = dot(n, plane->normal) < 0 ? -1 : 1;
    plane->height_m = 0;
    for (int i = 0; i < 3; i++) {
        plane->normal[i] = sign * n[i];
        plane->height_m -= plane->normal[i] * mean[i] / count;
    }
}

/* Whether few points lie below the plane, as for ground. */
static int is_lowest(const struct sample *sample, const struct ndt_ground_plane *plane)
{
    int below = 0;
    for (int i = 0; i < sample->count; i++)
        below += dot(plane->normal, sample->p[i]) + plane->height_m < -BELOW_M;
    return below <= MOST_BELOW * sample->count;
}

int ndt_scan_ground(const struct ndt_cloud *points, const struct ndt_search_params *params,
                    struct ndt_ground_plane *out)
{
    struct sample sample = {.count = 0};
    struct ndt_random random = ndt_random_stream(params->seed, 0, 0);
    struct ndt_ground_plane plane;
    int best = 0;
    take_sample(&sample, points, params->max_height_m);
    if (sample.low_count < LEAST_INLIERS)
        return 0;
    const int every = sample.count / TESTED + 1;
    for (int i = 0; i < TRIES; i++) {
        if (!try_plane(&sample, &random, params, &plane))
            continue;
        const int inliers = count_inliers(&sample, &plane, every);
        if (inliers > best) {
            best = inliers;
            *out = plane;
        }
    }
    if (best == 0)
        return 0;
    for (int i = 0; i < FITS; i++)
        fit(&sample, out);
    const int inliers = count_inliers(&sample, out, 1);
    out->ratio = (double)inliers / sample.count;
    return inliers >= LEAST_INLIERS && out->ratio >= LEAST_RATIO && is_lowest(&sample, out) &&
           out->height_m >= LEAST_HEIGHT_M && out->height_m <= params->max_height_m;
}
