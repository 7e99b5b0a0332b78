/** @file
 * @brief ndt-map quality: where a map determines the pose, and from how far an alignment finds it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "map_commands.h"
#include "map_legend.h"
#include "map_places.h"
#include "map_points.h"
#include "map_raster.h"
#include "map_rate.h"
#include "ndt/quantile.h"
#include "ndt_io/output_file.h"
#include "ndtd/map_field.h"
#include "ndtd/progress_line.h"
#include "output_guard.h"
#include "result_print.h"

enum format { TSV, JSON };
static const char *const formats[] = {[TSV] = "tsv", [JSON] = "json", NULL};
enum shown { BASIN, DEVIATION, CONDITION };
static const char *const shown_names[] = {
    [BASIN] = "basin", [DEVIATION] = "deviation", [CONDITION] = "condition", NULL};

static struct {
    struct tool_operands maps;
    const char *trajectory, *out, *picture;
    int format, shown, force;
    double step_m, height_m, range_m, scale_m;
} args = {.out = "-", .step_m = 5, .height_m = 1.8, .range_m = 60};

struct quality {
    struct ndt_map *map;
    struct map_patches patches;
    struct map_places places;
    struct map_rating *ratings;
};

/* ---- rating ---- */

static enum ndt_status find_places(struct quality *quality, struct ndt_error *err)
{
    struct ndt_field *field = NULL;
    if (args.trajectory)
        return map_places_along(&quality->places, args.trajectory, args.step_m, err);
    enum ndt_status status = ndtd_map_field(&field, quality->map, err);
    if (status == NDT_OK)
        status = map_places_over(&quality->places, field, args.step_m, args.height_m, err);
    ndt_field_release(field);
    return status;
}

static enum ndt_status rate_all(struct quality *quality, struct ndt_error *err)
{
    struct ndtd_progress_line line;
    struct map_rater rater;
    const size_t count = quality->places.count;
    quality->ratings = calloc(count, sizeof(*quality->ratings));
    if (!quality->ratings)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu places", count);
    enum ndt_status status = map_rater_open(&rater, quality->map, &quality->patches, args.range_m, err);
    if (status != NDT_OK)
        return status;
    ndtd_progress_line_begin(&line, "rating", "places");
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        status = tool_interrupted()
                     ? ndt_fail(err, NDT_ERR_IO, "interrupted")
                     : map_rate(&rater, &quality->places.T_map_sensor[i], i, &quality->ratings[i], err);
        ndtd_progress_line_show(&line, i + 1, count);
    }
    ndtd_progress_line_end(&line);
    map_rater_close(&rater);
    return status;
}

/* ---- the table ---- */

static const char header[] =
    "x_m\ty_m\tz_m\tyaw_deg\tpoints\taligned\tcondition\tweak_axes\tdeviation_m\tdirection_deg\t"
    "vertical\tbasin_m\tbasin_deg\n";

static void print_row(FILE *file, const struct ndt_pose *pose, const struct map_rating *rating)
{
    fprintf(file, "%.3f\t%.3f\t%.3f\t%.2f\t%zu\t%d\t%.3g\t%d\t%.4f\t%.1f\t%.2f\t%g\t%g\n", pose->t_m[0],
            pose->t_m[1], pose->t_m[2], ndt_pose_heading_rad(pose) * 57.29577951308232, rating->points,
            rating->is_aligned, rating->condition, rating->weak_count, rating->deviation_m, rating->direction_deg,
            rating->is_vertical, rating->basin_m, rating->basin_deg);
}

static void print_object(FILE *file, const struct ndt_pose *pose, const struct map_rating *rating)
{
    fprintf(file, "{\"points\":%zu,\"aligned\":%s,\"weak_axes\":%d", rating->points,
            rating->is_aligned ? "true" : "false", rating->weak_count);
    json_pose(file, pose);
    json_real(file, "condition", rating->condition);
    json_real(file, "deviation_m", rating->deviation_m);
    json_real(file, "direction_deg", rating->direction_deg);
    json_real(file, "vertical", rating->is_vertical);
    json_real(file, "basin_m", rating->basin_m);
    json_real(file, "basin_deg", rating->basin_deg);
    fputs("}\n", file);
}

static enum ndt_status write_table(const struct quality *quality, struct ndt_error *err)
{
    struct ndt_output out;
    const enum ndt_status status = ndt_output_open(&out, args.out, err);
    if (status != NDT_OK)
        return status;
    if (args.format == TSV)
        fputs(header, out.file);
    for (size_t i = 0; i < quality->places.count; i++)
        (args.format == TSV ? print_row : print_object)(out.file, &quality->places.T_map_sensor[i],
                                                        &quality->ratings[i]);
    return ndt_output_commit(&out, err);
}

static enum ndt_status summarise(const struct quality *quality, struct ndt_error *err)
{
    const size_t count = quality->places.count;
    size_t aligned = 0, weak = 0;
    double *basins_m = malloc(count * sizeof(*basins_m));
    if (!basins_m)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu places", count);
    for (size_t i = 0; i < count; i++) {
        aligned += quality->ratings[i].is_aligned != 0;
        weak += quality->ratings[i].weak_count > 0;
        basins_m[i] = quality->ratings[i].basin_m;
    }
    ndt_quantile_sort(basins_m, count);
    fprintf(stderr, "%zu places, %zu aligned, %zu with weak axes; basin: median %g, lowest tenth %g m\n", count,
            aligned, weak, ndt_quantile_sorted(basins_m, count, 0.5), ndt_quantile_sorted(basins_m, count, 0.1));
    free(basins_m);
    return NDT_OK;
}

/* ---- the picture ---- */

/* 0 bad, 1 good: a basin of 2 m, a deviation of 1 cm (10 cm is bad), a condition of 1/10 (1/1000 is bad). */
static double value_of(const struct map_rating *rating)
{
    if (!rating->is_aligned)
        return 0;
    if (args.shown == BASIN)
        return rating->basin_m / 2;
    return args.shown == DEVIATION ? 1 - log10(fmax(rating->deviation_m, 1e-6) / 0.01)
                                   : 1 + log10(fmax(rating->condition, 1e-9) / 0.1) / 2;
}

/* Values that value_of maps to 0 and 1. */
static const struct map_legend legends[] = {[BASIN] = {"basin", "0 m", "2 m or more"},
                                            [DEVIATION] = {"deviation", "10 cm or more", "1 cm or less"},
                                            [CONDITION] = {"condition", "1/1000 or less", "1/10 or more"}};

static enum ndt_status write_picture(const struct quality *quality, struct ndt_error *err)
{
    static const double BACKGROUND = 0.5;
    const struct map_legend *legend = &legends[args.shown];
    struct map_image image = {.rgb = NULL};
    struct map_raster raster = {.pixels = NULL};
    const struct map_patches *patches = &quality->patches;
    const double side_m = fmax(patches->max_m[0] - patches->min_m[0], patches->max_m[1] - patches->min_m[1]);
    /* the samples of a patch are up to half a metre apart */
    const double scale_m = args.scale_m > 0 ? args.scale_m : fmax(side_m / 2000, 0.3);
    double min_m[2] = {patches->min_m[0], patches->min_m[1]}, max_m[2] = {patches->max_m[0], patches->max_m[1]};
    const int dot = map_legend_room(legend, min_m, max_m, scale_m);
    enum ndt_status status = map_image_open(&image, min_m, max_m, scale_m, err);
    if (status == NDT_OK)
        status = map_raster_open(&raster, &image, patches->min_m[2], err);
    if (status == NDT_OK) {
        map_raster_add_patches(&raster, patches);
        map_raster_draw_density(&raster, BACKGROUND);
        for (size_t i = 0; i < quality->places.count; i++) {
            uint8_t rgb[3];
            map_image_rating(value_of(&quality->ratings[i]), rgb);
            map_image_disc(&image, quality->places.T_map_sensor[i].t_m[0], quality->places.T_map_sensor[i].t_m[1],
                           0.45 * args.step_m, rgb);
        }
        map_legend_draw(legend, &image, dot);
        status = map_image_write(&image, args.picture, err);
    }
    map_raster_close(&raster);
    map_image_close(&image);
    return status;
}

/* ---- the command ---- */

static enum ndt_status check_outputs(struct ndt_error *err)
{
    enum ndt_status status = tool_output_check(args.out, TOOL_OUTPUT_STREAM, args.force, err);
    if (status == NDT_OK && args.picture)
        status = map_image_supported(err);
    return status == NDT_OK && args.picture ? map_image_check(args.picture, args.force, err) : status;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct quality quality = {.map = NULL};
    enum ndt_status status = check_outputs(err);
    if (status == NDT_OK)
        status = map_load(&quality.map, args.maps.words[0], err);
    if (status == NDT_OK)
        status = map_patches_open(&quality.patches, quality.map, err);
    if (status == NDT_OK)
        status = find_places(&quality, err);
    if (status == NDT_OK)
        status = rate_all(&quality, err);
    if (status == NDT_OK)
        status = write_table(&quality, err);
    if (status == NDT_OK && args.picture)
        status = write_picture(&quality, err);
    if (status == NDT_OK)
        status = summarise(&quality, err);
    free(quality.ratings);
    map_places_free(&quality.places);
    map_patches_close(&quality.patches);
    ndt_map_release(quality.map);
    return status;
}

static const struct tool_option options[] = {
    {"trajectory", "FILE", TOOL_TEXT, &args.trajectory,
     .help = "rate the poses of this TUM file; otherwise the free ground of the map"},
    {"step", "M", TOOL_REAL, &args.step_m, 0.5, 1000, .help = "distance of the places [m]"},
    {"height", "M", TOOL_REAL, &args.height_m, 0, 20,
     .help = "of the sensor above the ground, without --trajectory [m]"},
    {"range", "M", TOOL_REAL, &args.range_m, 5, 300, .help = "of the simulated scans [m]"},
    {"out", "FILE", TOOL_TEXT, &args.out, .help = "where the table goes"},
    {"format", "NAME", TOOL_CHOICE, &args.format, .choices = formats, .help = "tsv, or json (one object per line)"},
    {"picture", "FILE", TOOL_TEXT, &args.picture,
     .help = "also draw the places over the map, from red to blue with a legend, as PNG"},
    {"show", "NAME", TOOL_CHOICE, &args.shown, .choices = shown_names,
     .help = "with --picture: basin (0 to 2 m), deviation (10 to 1 cm) or condition (1/1000 to 1/10)"},
    {"scale", "M", TOOL_REAL, &args.scale_m, 0, 1000,
     .help = "with --picture: metres per pixel; 0: at most about 2000 pixels for the longer side"},
    TOOL_FORCE_OPTION(args.force),
};

const struct tool_command map_quality_command = {
    .name = "quality",
    .summary = "rates places of a map by simulated scans: weak axes, deviation, basin",
    .details =
        "At every place a scan is simulated from the voxels of the map that are in sight, and aligned with the "
        "map: "
        "from the place itself, from 0.5 to 4 m away in 8 directions, and turned by 3 to 25 degrees. A row per "
        "place: "
        "its pose, points of the scan, whether it aligned; condition: smallest over largest information; "
        "weak_axes: "
        "directions with less than 1/80 of the best one (1 in corridors); deviation_m: one sigma of the position "
        "along its worst direction (inf: not determined); direction_deg: that direction from above, from the x "
        "axis; vertical: how far "
        "it "
        "points upwards, 0 to 1; basin_m, basin_deg: the offset up to which all directions lead back.\n\n"
        "Real scans see what the map lacks, and lack what it has: the numbers compare places, and are bounds for "
        "real drives.",
    TOOL_OPERANDS("MAP", 1, 1, &args.maps),
    TOOL_OPTIONS(options),
    .run = run};
