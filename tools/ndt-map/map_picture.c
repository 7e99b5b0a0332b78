/** @file
 * @brief ndt-map picture: a map seen from above. */
#include <stdio.h>

#include "map_commands.h"
#include "map_measure.h"
#include "map_points.h"
#include "map_raster.h"
#include "ndtd/map_field.h"
#include "output_guard.h"

enum style { HEIGHT, DENSITY, OCCUPANCY };
static const char *const styles[] = {[HEIGHT] = "height", [DENSITY] = "density", [OCCUPANCY] = "occupancy", NULL};

static struct {
    struct tool_operands maps;
    const char *out;
    int style, force;
    double scale_m;
} args;

struct picture {
    struct map_points points;
    struct map_measure measure;
    struct map_image image;
    struct map_raster raster;
};

static enum ndt_status measure(void *context, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    return map_measure_add(&((struct picture *)context)->measure, cloud, err);
}

static enum ndt_status draw(void *context, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    (void)err;
    map_raster_add(&((struct picture *)context)->raster, cloud);
    return NDT_OK;
}

static enum ndt_status open_raster(struct picture *picture, const double min_m[3], const double max_m[3],
                                   struct ndt_error *err)
{
    const enum ndt_status status = map_image_open(&picture->image, min_m, max_m, args.scale_m, err);
    return status == NDT_OK ? map_raster_open(&picture->raster, &picture->image, min_m[2], err) : status;
}

/* Two passes over the files: bounds, then pixels. */
static enum ndt_status draw_points(struct picture *picture, const char *path, struct ndt_error *err)
{
    map_measure_init(&picture->measure);
    enum ndt_status status = map_points_open(&picture->points, path, err);
    if (status == NDT_OK)
        status = map_points_each(&picture->points, "measuring", measure, picture, err);
    if (status == NDT_OK && picture->measure.points == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no finite point", path);
    if (status == NDT_OK)
        status = open_raster(picture, picture->measure.min_m, picture->measure.max_m, err);
    if (status == NDT_OK)
        status = map_points_each(&picture->points, "drawing", draw, picture, err);
    map_points_close(&picture->points);
    map_measure_free(&picture->measure);
    return status;
}

static enum ndt_status draw_compiled(struct picture *picture, const char *path, struct ndt_error *err)
{
    struct ndt_map *map;
    struct map_patches patches = {.count = 0};
    enum ndt_status status = ndt_map_open(&map, path, err);
    if (status != NDT_OK)
        return status;
    status = map_patches_open(&patches, map, err);
    if (status == NDT_OK)
        status = open_raster(picture, patches.min_m, patches.max_m, err);
    if (status == NDT_OK)
        map_raster_add_patches(&picture->raster, &patches);
    map_patches_close(&patches);
    ndt_map_release(map);
    return status;
}

static enum ndt_status draw_occupancy(struct picture *picture, const char *path, struct ndt_error *err)
{
    struct ndt_map *map = NULL;
    struct ndt_field *field = NULL;
    struct map_patches patches = {.count = 0};
    enum ndt_status status = map_load(&map, path, err);
    if (status == NDT_OK)
        status = ndtd_map_field(&field, map, err);
    if (status == NDT_OK)
        status = map_patches_open(&patches, map, err);
    if (status == NDT_OK)
        status = map_image_open(&picture->image, patches.min_m, patches.max_m,
                                args.scale_m > 0 ? args.scale_m : 0.5, err);
    if (status == NDT_OK)
        map_raster_draw_occupancy(&picture->image, field);
    map_patches_close(&patches);
    ndt_field_release(field);
    ndt_map_release(map);
    return status;
}

static enum ndt_status draw_map(struct picture *picture, const char *path, struct ndt_error *err)
{
    if (args.style == OCCUPANCY)
        return draw_occupancy(picture, path, err);
    const enum ndt_status status =
        ndt_map_is_compiled(path) ? draw_compiled(picture, path, err) : draw_points(picture, path, err);
    if (status == NDT_OK && args.style == DENSITY)
        map_raster_draw_density(&picture->raster, 1);
    return status == NDT_OK && args.style == HEIGHT ? map_raster_draw_height(&picture->raster, err) : status;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct picture picture = {.points = {.path = NULL}};
    enum ndt_status status = map_image_supported(err);
    if (status == NDT_OK)
        status = map_image_check(args.out, args.force, err);
    if (status == NDT_OK)
        status = draw_map(&picture, args.maps.words[0], err);
    if (status == NDT_OK)
        status = map_image_write(&picture.image, args.out, err);
    if (status == NDT_OK)
        printf("%s: %u x %u pixels of %g m, lower left corner at %.3f %.3f m\n", args.out, picture.image.width,
               picture.image.height, picture.image.scale_m, picture.image.min_m[0], picture.image.min_m[1]);
    map_raster_close(&picture.raster);
    map_image_close(&picture.image);
    return status;
}

static const struct tool_option options[] = {
    {"out", "FILE", TOOL_TEXT, &args.out, .required = 1, .help = "the PNG to write"},
    {"style", "NAME", TOOL_CHOICE, &args.style, .choices = styles,
     .help = "height: colour by the highest point; density: by the number of points; occupancy: a grid for ROS "
             "map_server, of what stands 0.3 to 2 m above the ground"},
    {"scale", "M", TOOL_REAL, &args.scale_m, 0, 1000,
     .help = "metres per pixel; 0: 0.5 for occupancy, otherwise about 2000 pixels for the longer side"},
    TOOL_FORCE_OPTION(args.force),
};

const struct tool_command map_picture_command = {
    .name = "picture",
    .summary = "draws a map from above as PNG",
    .details =
        "North (y) is up. Beside FILE.png it writes FILE.pgw, the world file of GIS programs, and FILE.yaml with "
        "resolution and origin, as ROS map_server reads it.",
    TOOL_OPERANDS("MAP", 1, 1, &args.maps),
    TOOL_OPTIONS(options),
    .run = run};
