/* Maps that follow the vehicle: does what the sensor reaches lie in the map when it is looked at, for which margin?
 * And what loading costs over the number of tiles. Time runs ten times as fast as on a road: 2 m every 10 ms. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lab.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/output_file.h"
#include "ndtd/map_loader.h"

enum { COLUMNS = 16, ROWS = 6, STEPS = 120, RING = 72, PATIENCE_S = 60 };
static const double TILE_M = 50, SPACING_M = 0.68, STEP_M = 2, REACH_M = 60, PI = 3.14159265358979323846;

static enum ndt_status write_tile(const char *folder, int column, int row, struct ndt_cloud *cloud,
                                  struct ndt_error *err)
{
    char path[1200];
    const size_t side = (size_t)(TILE_M / SPACING_M);
    enum ndt_status status = ndt_cloud_reserve(cloud, side * side, 0, err);
    cloud->count = status == NDT_OK ? side * side : 0;
    for (size_t i = 0; i < cloud->count; i++) {
        const double x_m = TILE_M * (column + ((double)(i % side) + 0.5) / (double)side);
        const double y_m = TILE_M * (row - ROWS / 2 + ((double)(i / side) + 0.5) / (double)side);
        cloud->x_m[i] = (float)x_m;
        cloud->y_m[i] = (float)y_m;
        cloud->z_m[i] = (float)lab_world_height_m(x_m, y_m);
    }
    snprintf(path, sizeof(path), "%s/lab_%d_%d.pcd", folder, column, row);
    return status == NDT_OK ? ndt_pcd_write(cloud, path, NDT_PCD_BINARY, err) : status;
}

static enum ndt_status write_tiles(const char *folder, struct ndt_error *err)
{
    char path[1200];
    struct ndt_cloud cloud;
    struct ndt_output out;
    ndt_cloud_init(&cloud);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return ndt_fail(err, NDT_ERR_IO, "%.200s: %s", folder, strerror(errno));
    snprintf(path, sizeof(path), "%s/pointcloud_map_metadata.yaml", folder);
    enum ndt_status status = ndt_output_open(&out, path, err);
    if (status != NDT_OK)
        return status;
    fprintf(out.file, "x_resolution: %g\ny_resolution: %g\n", TILE_M, TILE_M);
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < ROWS; r++) {
            fprintf(out.file, "lab_%d_%d.pcd: [%g, %g]\n", c, r, TILE_M * c, TILE_M * (r - ROWS / 2));
            if (status == NDT_OK)
                status = write_tile(folder, c, r, &cloud, err);
        }
    ndt_cloud_free(&cloud);
    const enum ndt_status written = ndt_output_commit(&out, err);
    return status == NDT_OK ? written : status;
}

static struct ndtd_map_loader_config config_of(const struct lab *lab, double radius_m, double margin_m)
{
    struct ndtd_map_loader_config config = {.map = lab->settings.map,
                                            .dynamic = 1,
                                            .update_distance_m = 20,
                                            .map_radius_m = radius_m,
                                            .lidar_radius_m = margin_m};
    config.map.level_count = 1;
    config.map.leaf_m[0] = 2;
    return config;
}

/* Part of the floor on a ring of REACH_M around the vehicle that the map knows nothing of. */
static double missed(const struct ndt_map *map, double x_m)
{
    int missing = 0;
    for (int i = 0; i < RING; i++) {
        const double a = 2 * PI * i / RING, p_m[2] = {x_m + REACH_M * cos(a), REACH_M * sin(a)};
        const double at_m[3] = {p_m[0], p_m[1], lab_world_height_m(p_m[0], p_m[1])};
        int32_t cell[3];
        for (int k = 0; map && k < 3; k++)
            cell[k] = (int32_t)floor((at_m[k] - map->origin_m[k]) / map->levels[0].leaf_m);
        missing += !map || ndt_map_lookup(&map->levels[0], cell).n27 == 0;
    }
    return (double)missing / RING;
}

struct drive {
    const struct lab *lab;
    char folder[1100];
};
/* lead: position told to the loader is that of one second (of the road) ahead. */
static const struct {
    const char *name;
    double margin_m;
    int lead;
} kinds[] = {{"no margin", 0, 0},
             {"margin 20 m", 20, 0},
             {"margin 40 m", 40, 0},
             {"margin 100 m (default)", 100, 0},
             {"no margin; position 20 m ahead", 0, 1},
             {"margin 20 m; position 20 m ahead", 20, 1}};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Percent of the ring that was missing, over the drive. */
static double measure_drive(void *context, int variant, int repetition)
{
    struct drive *drive = context;
    const struct ndtd_map_loader_config config = config_of(drive->lab, REACH_M, kinds[variant].margin_m);
    const double from_m = 100, near_m[2] = {from_m, 0};
    const int steps = drive->lab->quick ? 20 : STEPS;
    struct ndtd_map_loader *loader;
    struct ndt_map *map = NULL;
    struct ndtd_map_loader_status status;
    double sum = 0;
    (void)repetition;
    if (ndtd_map_loader_create(&loader, &config, NULL) != NDT_OK)
        return -1;
    ndtd_map_loader_load(loader, drive->folder, near_m);
    int good = ndtd_map_loader_wait(loader, PATIENCE_S);
    for (int i = 0; good && i < steps; i++) {
        const struct timespec tick = {0, 10000000};
        const double x_m = from_m + STEP_M * i, told_m[2] = {x_m + (kinds[variant].lead ? 20 : 0), 0};
        struct ndt_map *newest;
        if (ndtd_map_loader_take(loader, &newest)) {
            ndt_map_release(map);
            map = newest;
        }
        sum += missed(map, x_m);
        ndtd_map_loader_follow(loader, told_m);
        nanosleep(&tick, NULL);
    }
    ndtd_map_loader_wait(loader, PATIENCE_S);
    ndtd_map_loader_status(loader, &status);
    good = good && !status.failed;
    ndtd_map_loader_destroy(loader);
    ndt_map_release(map);
    return good ? 100 * sum / steps : -1;
}

/* Loads of more and more tiles, from nothing. */
static enum ndt_status over_tiles(const struct lab *lab, const char *folder, struct ndt_error *err)
{
    static const double radii_m[] = {10, 45, 90, 145, 210, 320};
    for (int i = 0; i < (lab->quick ? 2 : 6); i++) {
        const struct ndtd_map_loader_config config = config_of(lab, radii_m[i], 0);
        const double near_m[2] = {TILE_M * COLUMNS / 2 + 25, 25};
        double samples[3];
        struct ndtd_map_loader_status told = {0};
        for (int r = 0; r < 3; r++) {
            struct ndtd_map_loader *loader;
            enum ndt_status status = ndtd_map_loader_create(&loader, &config, err);
            if (status != NDT_OK)
                return status;
            ndtd_map_loader_load(loader, folder, near_m);
            const int good = ndtd_map_loader_wait(loader, PATIENCE_S);
            ndtd_map_loader_status(loader, &told);
            samples[r] = told.last_load_ms;
            ndtd_map_loader_destroy(loader);
            if (!good || told.failed)
                return ndt_fail(err, NDT_ERR_IO, "tiles could not be loaded: %.200s", told.error);
        }
        char tiles[32];
        snprintf(tiles, sizeof(tiles), "%llu", (unsigned long long)told.tiles_loaded);
        lab_print("tiles", "first load over tiles", tiles, "curve", "ms", samples, 3);
    }
    return NDT_OK;
}

enum ndt_status lab_tiles(const struct lab *lab, struct ndt_error *err)
{
    static struct drive drive;
    struct lab quicker = *lab;
    struct lab_comparison it = {.experiment = "tiles",
                                .what = "20 m/s in fast motion",
                                .unit = "% missed",
                                .count = KINDS,
                                .measure = measure_drive,
                                .context = &drive};
    drive.lab = lab;
    if (!lab->folder)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "tiles needs --folder");
    snprintf(drive.folder, sizeof(drive.folder), "%s/tiles", lab->folder);
    enum ndt_status status = write_tiles(drive.folder, err);
    if (status != NDT_OK)
        return status;
    for (int i = 0; i < KINDS; i++)
        it.names[i] = kinds[i].name;
    quicker.repetitions = lab->repetitions > 3 ? 3 : lab->repetitions;
    lab_compare(&quicker, &it);
    return over_tiles(lab, drive.folder, err);
}
