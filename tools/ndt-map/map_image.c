#include "map_image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ndt_io/output_file.h"
#include "output_guard.h"

#ifdef NDT_HAVE_PNG
#include <png.h>
#endif

static const double SIDE_PIXELS = 2000, OPACITY = 0.8;

enum ndt_status map_image_supported(struct ndt_error *err)
{
#ifdef NDT_HAVE_PNG
    (void)err;
    return NDT_OK;
#else
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "pictures need libpng: install libpng-dev and build again");
#endif
}

/* A scale with one digit, such as 0.2. */
static double round_scale(double scale_m)
{
    const double unit = pow(10, floor(log10(scale_m)));
    return unit * ceil(scale_m / unit - 1e-9);
}

enum ndt_status map_image_open(struct map_image *image, const double min_m[2], const double max_m[2],
                               double scale_m, struct ndt_error *err)
{
    const double width_m = max_m[0] - min_m[0], height_m = max_m[1] - min_m[1];
    *image = (struct map_image){.scale_m = scale_m};
    if (!(scale_m > 0))
        image->scale_m = round_scale(fmax(fmax(width_m, height_m) / SIDE_PIXELS, 0.01));
    double pixels[2];
    for (int k = 0; k < 2; k++) {
        image->min_m[k] = image->scale_m * floor(min_m[k] / image->scale_m);
        pixels[k] = floor((max_m[k] - image->min_m[k]) / image->scale_m) + 1;
    }
    if (!(pixels[0] * pixels[1] <= MAP_IMAGE_PIXELS_MAX))
        return ndt_fail(err, NDT_ERR_LIMIT,
                        "%.0f x %.0f pixels, the limit is %d in all: give a larger --scale than %g m", pixels[0],
                        pixels[1], MAP_IMAGE_PIXELS_MAX, image->scale_m);
    image->width = (uint32_t)pixels[0];
    image->height = (uint32_t)pixels[1];
    image->rgb = calloc((size_t)image->width * image->height, sizeof(*image->rgb));
    return image->rgb ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a picture");
}

void map_image_close(struct map_image *image)
{
    free(image->rgb);
    image->rgb = NULL;
}

int map_image_find(const struct map_image *image, double x_m, double y_m, size_t *index)
{
    const double x = floor((x_m - image->min_m[0]) / image->scale_m);
    const double y = floor((y_m - image->min_m[1]) / image->scale_m);
    if (!(x >= 0 && y >= 0 && x < image->width && y < image->height))
        return 0;
    *index = (size_t)(image->height - 1 - (uint32_t)y) * image->width + (size_t)x;
    return 1;
}

void map_image_disc(struct map_image *image, double x_m, double y_m, double radius_m, const uint8_t rgb[3])
{
    const double step_m = image->scale_m, reach_m = fmax(radius_m, 0.5 * step_m);
    const int64_t reach = (int64_t)ceil(reach_m / step_m);
    /* Steps from the centre of the pixel of x y: every pixel once. */
    const double left_m = image->min_m[0] + (floor((x_m - image->min_m[0]) / step_m) + 0.5) * step_m;
    const double low_m = image->min_m[1] + (floor((y_m - image->min_m[1]) / step_m) + 0.5) * step_m;
    for (int64_t row = -reach; row <= reach; row++)
        for (int64_t column = -reach; column <= reach; column++) {
            size_t index;
            const double dx_m = (double)column * step_m, dy_m = (double)row * step_m;
            if (dx_m * dx_m + dy_m * dy_m > reach_m * reach_m ||
                !map_image_find(image, left_m + dx_m, low_m + dy_m, &index))
                continue;
            for (int k = 0; k < 3; k++)
                image->rgb[index][k] =
                    (uint8_t)(OPACITY * rgb[k] + (1 - OPACITY) * (double)image->rgb[index][k] + 0.5);
        }
}

/* ---- colours ---- */

static void interpolate(double value, const uint8_t stops[][3], int count, uint8_t rgb[3])
{
    const double at = fmin(fmax(isnan(value) ? 0 : value, 0), 1) * (count - 1);
    const int low = at >= count - 1 ? count - 2 : (int)at;
    for (int k = 0; k < 3; k++)
        rgb[k] = (uint8_t)((1 - (at - low)) * stops[low][k] + (at - low) * stops[low + 1][k] + 0.5);
}

void map_image_rating(double value, uint8_t rgb[3])
{
    static const uint8_t stops[][3] = {
        {200, 30, 30}, {245, 125, 60}, {250, 230, 150}, {120, 190, 230}, {40, 110, 200}}; /* no red against green */
    interpolate(value, stops, 5, rgb);
}

void map_image_scale(double value, uint8_t rgb[3])
{
    static const uint8_t stops[][3] = {{60, 30, 110}, {50, 90, 150}, {35, 145, 140}, {95, 200, 95}, {250, 230, 60}};
    interpolate(value, stops, 5, rgb);
}

/* ---- files ---- */

/* Name of a file beside the picture: `path` without .png, with `extension`. 0: too long. */
static int name_beside(const char *path, const char *extension, char *out, size_t size)
{
    const size_t length = strlen(path);
    const size_t base = length > 4 && strcasecmp(path + length - 4, ".png") == 0 ? length - 4 : length;
    const int used = snprintf(out, size, "%.*s%s", (int)base, path, extension);
    return used > 0 && (size_t)used < size;
}

#ifdef NDT_HAVE_PNG
static enum ndt_status write_png(const struct map_image *image, const char *path, struct ndt_error *err)
{
    struct ndt_output out;
    png_image png = {
        .version = PNG_IMAGE_VERSION, .width = image->width, .height = image->height, .format = PNG_FORMAT_RGB};
    const enum ndt_status status = ndt_output_open(&out, path, err);
    if (status != NDT_OK)
        return status;
    const int is_written =
        png_image_write_to_stdio(&png, out.file, 0, image->rgb, (png_int_32)(3 * image->width), NULL);
    if (is_written)
        return ndt_output_commit(&out, err);
    ndt_output_discard(&out);
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot write: %s", path, png.message);
}
#else
static enum ndt_status write_png(const struct map_image *image, const char *path, struct ndt_error *err)
{
    (void)image, (void)path;
    return map_image_supported(err);
}
#endif

/* Edge of a pixel, rotations, centre of the upper left pixel. */
static void write_world(const struct map_image *image, FILE *file)
{
    fprintf(file, "%.10g\n0\n0\n%.10g\n%.10g\n%.10g\n", image->scale_m, -image->scale_m,
            image->min_m[0] + 0.5 * image->scale_m, image->min_m[1] + (image->height - 0.5) * image->scale_m);
}

static void write_yaml(const struct map_image *image, const char *path, FILE *file)
{
    const char *slash = strrchr(path, '/');
    fprintf(file,
            "image: %s\nmode: trinary\nresolution: %.10g\norigin: [%.10g, %.10g, 0]\nnegate: 0\n"
            "occupied_thresh: 0.65\nfree_thresh: 0.196\n",
            slash ? slash + 1 : path, image->scale_m, image->min_m[0], image->min_m[1]);
}

static const char *const beside_extensions[] = {".pgw", ".yaml", NULL};

enum ndt_status map_image_check(const char *path, int force, struct ndt_error *err)
{
    char beside[4096];
    enum ndt_status status = tool_output_check(path, TOOL_OUTPUT_FILE, force, err);
    for (int i = 0; status == NDT_OK && beside_extensions[i]; i++)
        status = name_beside(path, beside_extensions[i], beside, sizeof(beside))
                     ? tool_output_check(beside, TOOL_OUTPUT_FILE, force, err)
                     : ndt_fail(err, NDT_ERR_LIMIT, "%.100s...: the name is too long", path);
    return status;
}

enum ndt_status map_image_write(const struct map_image *image, const char *path, struct ndt_error *err)
{
    enum ndt_status status = write_png(image, path, err);
    for (int i = 0; status == NDT_OK && beside_extensions[i]; i++) {
        struct ndt_output out;
        char beside[4096];
        if (!name_beside(path, beside_extensions[i], beside, sizeof(beside)))
            return ndt_fail(err, NDT_ERR_LIMIT, "%.100s...: the name is too long", path);
        status = ndt_output_open(&out, beside, err);
        if (status != NDT_OK)
            break;
        if (i == 0)
            write_world(image, out.file);
        else
            write_yaml(image, path, out.file);
        status = ndt_output_commit(&out, err);
    }
    return status;
}
