#include "map_raster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/quantile.h"

static const double LOW_PART = 0.02, HIGH_PART = 0.98;
enum { SAMPLES_MAX = 200000, OBSTACLE_BITS = 0x7 /* bands from 0.3 to 2 m */, UNKNOWN = 205, FREE = 254 };

static size_t pixel_count(const struct map_raster *raster)
{
    return (size_t)raster->image->width * raster->image->height;
}

enum ndt_status map_raster_open(struct map_raster *raster, struct map_image *image, double base_m,
                                struct ndt_error *err)
{
    *raster = (struct map_raster){.image = image, .base_m = base_m};
    raster->pixels = calloc(pixel_count(raster), sizeof(*raster->pixels));
    return raster->pixels ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a picture");
}

void map_raster_close(struct map_raster *raster)
{
    free(raster->pixels);
    raster->pixels = NULL;
}

static void add(struct map_raster *raster, double x_m, double y_m, double z_m)
{
    size_t index;
    if (!map_image_find(raster->image, x_m, y_m, &index)) /* also when it is not finite */
        return;
    struct map_pixel *pixel = &raster->pixels[index];
    const float top_m = (float)(z_m - raster->base_m);
    if (isnan(top_m))
        return;
    pixel->top_m = pixel->count && pixel->top_m > top_m ? pixel->top_m : top_m;
    pixel->count += pixel->count < UINT32_MAX;
}

void map_raster_add(struct map_raster *raster, const struct ndt_cloud *cloud)
{
    for (size_t i = 0; i < cloud->count; i++)
        add(raster, cloud->origin_m[0] + (double)cloud->x_m[i], cloud->origin_m[1] + (double)cloud->y_m[i],
            cloud->origin_m[2] + (double)cloud->z_m[i]);
}

void map_raster_add_patches(struct map_raster *raster, const struct map_patches *patches)
{
    for (size_t i = 0; i < patches->count; i++)
        for (int k = 0; k < MAP_PATCH_SAMPLES; k++) {
            float point_m[3];
            map_patch_sample(&patches->items[i], k, point_m);
            add(raster, patches->origin_m[0] + (double)point_m[0], patches->origin_m[1] + (double)point_m[1],
                patches->origin_m[2] + (double)point_m[2]);
        }
}

/* ---- drawing ---- */

static enum ndt_status height_limits(const struct map_raster *raster, double limits_m[2], struct ndt_error *err)
{
    const size_t count = pixel_count(raster), stride = count / SAMPLES_MAX + 1;
    double *heights_m = malloc((count / stride + 1) * sizeof(*heights_m));
    size_t used = 0;
    if (!heights_m)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a picture");
    for (size_t i = 0; i < count; i += stride)
        if (raster->pixels[i].count)
            heights_m[used++] = (double)raster->pixels[i].top_m;
    limits_m[0] = used ? ndt_quantile(heights_m, used, LOW_PART) : 0;
    limits_m[1] = used ? ndt_quantile(heights_m, used, HIGH_PART) : 1;
    free(heights_m);
    return NDT_OK;
}

/* 1 on level ground; darker where it falls to the south east. */
static double shade(const struct map_raster *raster, size_t i)
{
    const size_t width = raster->image->width;
    const struct map_pixel *here = &raster->pixels[i], *west = here - 1, *north = here - width;
    if (i < width || i % width == 0 || !west->count || !north->count)
        return 1;
    const double slope = ((double)here->top_m - (double)west->top_m + (double)here->top_m - (double)north->top_m) /
                         (2 * raster->image->scale_m);
    return fmin(fmax(1 + 0.25 * slope, 0.45), 1.3);
}

enum ndt_status map_raster_draw_height(const struct map_raster *raster, struct ndt_error *err)
{
    double limits_m[2] = {0, 1};
    const enum ndt_status status = height_limits(raster, limits_m, err);
    if (status != NDT_OK)
        return status;
    const double range_m = fmax(limits_m[1] - limits_m[0], 0.1);
    for (size_t i = 0; i < pixel_count(raster); i++) {
        uint8_t *rgb = raster->image->rgb[i];
        if (!raster->pixels[i].count)
            continue;
        map_image_scale(((double)raster->pixels[i].top_m - limits_m[0]) / range_m, rgb);
        const double light = shade(raster, i);
        for (int k = 0; k < 3; k++)
            rgb[k] = (uint8_t)fmin(255, light * rgb[k]);
    }
    return NDT_OK;
}

void map_raster_draw_density(const struct map_raster *raster, double part)
{
    uint32_t most = 1;
    for (size_t i = 0; i < pixel_count(raster); i++)
        if (raster->pixels[i].count > most)
            most = raster->pixels[i].count;
    for (size_t i = 0; i < pixel_count(raster); i++) {
        const uint32_t count = raster->pixels[i].count;
        if (count)
            memset(raster->image->rgb[i],
                   (int)(part * (60 + 195 * log((double)count) / fmax(log((double)most), 1e-9))), 3);
    }
}

/* The bits of the cell of 1 m, and whether the ground there is known. */
static int look_up(const struct ndt_field *field, double x_m, double y_m, int *bits)
{
    const double local_m[2] = {x_m - field->origin_m[0], y_m - field->origin_m[1]};
    int32_t tile[2], cell[2];
    for (int k = 0; k < 2; k++) {
        tile[k] = (int32_t)floor(local_m[k] / NDT_FIELD_TILE_M);
        cell[k] = (int32_t)floor(local_m[k]) - tile[k] * NDT_FIELD_TILE_M;
    }
    const struct ndt_field_tile *at = ndt_field_tile(field, 0, tile[1], tile[0]);
    if (!at)
        return 0;
    const int32_t index = cell[1] * NDT_FIELD_TILE_M + cell[0];
    const int32_t fine = (int32_t)floor(2 * local_m[1] - 2.0 * tile[1] * NDT_FIELD_TILE_M) * 2 * NDT_FIELD_TILE_M +
                         (int32_t)floor(2 * local_m[0] - 2.0 * tile[0] * NDT_FIELD_TILE_M);
    *bits = at->bits_05m[fine];
    return at->known[index / 8] >> (index % 8) & 1;
}

void map_raster_draw_occupancy(struct map_image *image, const struct ndt_field *field)
{
    for (uint32_t row = 0; row < image->height; row++)
        for (uint32_t column = 0; column < image->width; column++) {
            int bits = 0;
            const double x_m = image->min_m[0] + (column + 0.5) * image->scale_m;
            const double y_m = image->min_m[1] + (image->height - row - 0.5) * image->scale_m;
            const int is_known = look_up(field, x_m, y_m, &bits);
            memset(image->rgb[(size_t)row * image->width + column],
                   bits & OBSTACLE_BITS ? 0
                   : is_known           ? FREE
                                        : UNKNOWN,
                   3);
        }
}
