/* Coordinates that float32 has rounded: those of UTM, for example. */
#include <math.h>
#include <stdio.h>

#include "cloud_reader.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"

/* Beyond, floats are more than 1 cm apart: a step is 2^-23 of the power of two below. */
static const double COARSE_M = 131072;
enum { MOST_POINTS = 1000 };

/* The largest coordinate as it was stored; points beside an origin were doubles. */
static double largest_float_m(const struct ndt_cloud *cloud)
{
    double largest_m = 0;
    if (cloud->origin_m[0] != 0 || cloud->origin_m[1] != 0 || cloud->origin_m[2] != 0)
        return 0;
    for (size_t i = 0; i < cloud->count; i++) {
        const double x_m = (double)cloud->x_m[i], y_m = (double)cloud->y_m[i], z_m = (double)cloud->z_m[i];
        const double point_m = fmax(fabs(x_m), fmax(fabs(y_m), fabs(z_m)));
        if (isfinite(x_m) && isfinite(y_m) && isfinite(z_m) && point_m > largest_m)
            largest_m = point_m;
    }
    return largest_m;
}

static double file_largest_m(const char *path)
{
    struct ndt_cloud cloud;
    struct ndt_error unread;
    double largest_m = 0;
    ndt_cloud_init(&cloud);
    if (ndt_cloud_format_find(path) && ndt_cloud_read_begin(&cloud, path, MOST_POINTS, &unread) == NDT_OK)
        largest_m = largest_float_m(&cloud);
    ndt_cloud_free(&cloud);
    return largest_m;
}

static int tell(const char *path, double largest_m, char *line, size_t size)
{
    if (!(largest_m >= COARSE_M))
        return 0;
    snprintf(line, size,
             "%.400s: coordinates of up to %.0f km as float32 are %.2g cm apart: store doubles (PCD with SIZE 8), "
             "or take "
             "an offset off, as ndt-import map does",
             path, largest_m * 1e-3, 100 * ldexp(1, ilogb(largest_m) - 23));
    return 1;
}

int ndt_map_is_coarse(const char *path, char *line, size_t size)
{
    struct ndt_tile_set set;
    struct ndt_error unread;
    line[0] = '\0';
    if (!ndt_map_is_tile_set(path))
        return tell(path, file_largest_m(path), line, size);
    if (ndt_tile_set_open(&set, path, &unread) != NDT_OK)
        return 0;
    const int is_coarse = set.count > 0 && tell(set.tiles[0].path, file_largest_m(set.tiles[0].path), line, size);
    ndt_tile_set_close(&set);
    return is_coarse;
}
