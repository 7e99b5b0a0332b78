#include "cloud_sink.h"

#include <math.h>
#include <string.h>

static const double origin_step_m = 1024.0;
static const double float_range_m = 2048.0; /* half a step of float below it is 0.06 mm */
static const double clock_s = 10.0;         /* no sweep lasts that long */

enum ndt_status ndt_sink_open(struct ndt_cloud_sink *out, struct ndt_cloud *cloud, size_t count, unsigned fields,
                              struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->cloud = cloud;
    cloud->count = 0;
    memset(cloud->origin_m, 0, sizeof(cloud->origin_m));
    enum ndt_status status = ndt_cloud_reserve(cloud, count, fields, err);
    if (status != NDT_OK)
        return status;
    if (cloud->intensity && count)
        memset(cloud->intensity, 0, count * sizeof(float));
    if (cloud->time_s && count)
        memset(cloud->time_s, 0, count * sizeof(float));
    cloud->count = count;
    return NDT_OK;
}

static int is_finite_point(double x, double y, double z)
{
    return isfinite(x) && isfinite(y) && isfinite(z);
}

static double round_to_step(double value_m)
{
    return rint(value_m / origin_step_m) * origin_step_m + 0.0; /* never -0 */
}

static void choose_origin(struct ndt_cloud_sink *sink, size_t count, const double *x_m, const double *y_m,
                          const double *z_m)
{
    for (size_t i = 0; i < count && !sink->has_origin; i++) {
        if (!is_finite_point(x_m[i], y_m[i], z_m[i]))
            continue;
        sink->cloud->origin_m[0] = round_to_step(x_m[i]);
        sink->cloud->origin_m[1] = round_to_step(y_m[i]);
        sink->cloud->origin_m[2] = round_to_step(z_m[i]);
        sink->has_origin = 1;
    }
}

void ndt_sink_coordinates(struct ndt_cloud_sink *sink, size_t at, size_t count, const double *x_m,
                          const double *y_m, const double *z_m)
{
    struct ndt_cloud *cloud = sink->cloud;
    choose_origin(sink, count, x_m, y_m, z_m);
    for (size_t i = 0; i < count; i++) {
        if (is_finite_point(x_m[i], y_m[i], z_m[i])) {
            const double largest_m = fmax(fabs(x_m[i]), fmax(fabs(y_m[i]), fabs(z_m[i])));
            sink->largest_m = fmax(sink->largest_m, largest_m);
            cloud->x_m[at + i] = (float)(x_m[i] - cloud->origin_m[0]);
            cloud->y_m[at + i] = (float)(y_m[i] - cloud->origin_m[1]);
            cloud->z_m[at + i] = (float)(z_m[i] - cloud->origin_m[2]);
        } else {
            cloud->x_m[at + i] = cloud->y_m[at + i] = cloud->z_m[at + i] = NAN;
        }
    }
}

void ndt_sink_times_s(struct ndt_cloud_sink *sink, size_t at, size_t count, const double *time_s)
{
    for (size_t i = 0; i < count; i++) {
        if (!sink->has_base && isfinite(time_s[i])) {
            sink->base_s = fabs(time_s[i]) >= clock_s ? time_s[i] : 0.0;
            sink->has_base = 1;
        }
        sink->cloud->time_s[at + i] = (float)(time_s[i] - sink->base_s);
    }
}

void ndt_sink_times_ns(struct ndt_cloud_sink *sink, size_t at, size_t count, const int64_t *time_ns)
{
    for (size_t i = 0; i < count; i++) {
        if (!sink->has_base) {
            sink->base_ns = fabs((double)time_ns[i]) >= clock_s * 1e9 ? time_ns[i] : 0;
            sink->has_base = 1;
        }
        /* Unsigned: the difference of hostile times may leave int64. */
        const int64_t since_ns = (int64_t)((uint64_t)time_ns[i] - (uint64_t)sink->base_ns);
        sink->cloud->time_s[at + i] = (float)((double)since_ns * 1e-9);
    }
}

int ndt_sink_again(struct ndt_cloud_sink *sink)
{
    double *origin_m = sink->cloud->origin_m;
    if ((origin_m[0] == 0.0 && origin_m[1] == 0.0 && origin_m[2] == 0.0) || sink->largest_m >= float_range_m)
        return 0;
    memset(origin_m, 0, sizeof(sink->cloud->origin_m));
    sink->has_base = 0;
    return 1;
}
