#include "bench_tile_world.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndt_io/output_file.h"

static const double STREET_M = 6, FRONT_M = 3, PREPROCESS_PART = 0.4, FRONT_STEP_M = 0.25;
enum { PATH_SIZE = 640 };

/* Uniform in [0, 1). */
static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / 16777216.0;
}

struct tile_points {
    double low_m[2]; /* lower corner of the tile */
    float (*xyz_m)[3];
    size_t count;
};

/* From tile to map coordinates; float keeps a millimetre over 10 km. */
static void add_point(struct tile_points *tile, double x_m, double y_m, double z_m)
{
    float *point = tile->xyz_m[tile->count++];
    point[0] = (float)(tile->low_m[0] + x_m);
    point[1] = (float)(tile->low_m[1] + y_m);
    point[2] = (float)z_m;
}

/* `along` runs over the tile, `beside` over the width of the street. */
static void add_street_point(struct tile_points *tile, double tile_m, int axis, uint64_t *state)
{
    const double along_m = tile_m * next_random(state);
    const double beside_m = 0.5 * tile_m + STREET_M * (next_random(state) - 0.5);
    const double z_m = 0.05 * sin(0.9 * along_m) + 0.01 * next_random(state);
    add_point(tile, axis ? beside_m : along_m, axis ? along_m : beside_m, z_m);
}

static void add_plan_point(struct tile_points *tile, double tile_m, int side, uint64_t *state)
{
    const double along_m = tile_m * next_random(state);
    const double step_m = fmod(floor(along_m / 7), 2) * FRONT_STEP_M; /* houses stand a little apart */
    const double away_m = 0.5 * STREET_M + 1 + step_m + 0.01 * next_random(state);
    add_point(tile, along_m, 0.5 * tile_m + (side ? away_m : -away_m), FRONT_M * next_random(state));
}

static void fill_tile(struct tile_points *tile, const struct bench_tile_world *world, size_t column, size_t row)
{
    const size_t fronts = (size_t)(PREPROCESS_PART * (double)world->tile_points);
    uint64_t state = (uint64_t)row * world->side + column + 1;
    tile->count = 0;
    tile->low_m[0] = world->tile_m * (double)column;
    tile->low_m[1] = world->tile_m * (double)row;
    for (size_t i = 0; i < world->tile_points; i++)
        if (i < fronts)
            add_plan_point(tile, world->tile_m, (int)(i & 1), &state);
        else
            add_street_point(tile, world->tile_m, (int)(i & 1), &state);
}

/* Not through ndt_pcd_write, which waits for the disk: thousands of files that live for a minute. */
static enum ndt_status write_tile(const struct tile_points *tile, const char *path, struct ndt_error *err)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
    fprintf(file,
            "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH %zu\nHEIGHT 1\n"
            "POINTS %zu\nDATA binary\n",
            tile->count, tile->count);
    const size_t written = fwrite(tile->xyz_m, sizeof(tile->xyz_m[0]), tile->count, file);
    if (fclose(file) != 0 || written != tile->count)
        return ndt_fail(err, NDT_ERR_IO, "%s: write failed: %s", path, strerror(errno));
    return NDT_OK;
}

static enum ndt_status write_tiles(const struct bench_tile_world *world, FILE *metadata, struct ndt_error *err)
{
    struct tile_points tile = {.xyz_m = malloc((world->tile_points + 1) * sizeof(tile.xyz_m[0]))};
    char path[PATH_SIZE];
    enum ndt_status status =
        tile.xyz_m ? NDT_OK
                   : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a tile of %zu points", world->tile_points);
    fprintf(metadata, "x_resolution: %.9g\ny_resolution: %.9g\n", world->tile_m, world->tile_m);
    for (size_t i = 0; status == NDT_OK && i < world->side * world->side; i++) {
        const size_t column = i % world->side, row = i / world->side;
        fill_tile(&tile, world, column, row);
        fprintf(metadata, "%zu_%zu.pcd: [%.9g, %.9g]\n", column, row, tile.low_m[0], tile.low_m[1]);
        snprintf(path, sizeof(path), "%s/%zu_%zu.pcd", world->folder, column, row);
        status = write_tile(&tile, path, err);
    }
    free(tile.xyz_m);
    return status;
}

enum ndt_status bench_tile_world_write(struct bench_tile_world *world, struct ndt_error *err)
{
    const char *base = getenv("TMPDIR");
    char path[PATH_SIZE];
    snprintf(world->folder, sizeof(world->folder), "%.400s/ndt-bench-tiles-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(world->folder)) {
        const int reason = errno;
        enum ndt_status status =
            ndt_fail(err, NDT_ERR_IO, "%s: cannot be made: %s", world->folder, strerror(reason));
        world->folder[0] = '\0';
        return status;
    }
    snprintf(path, sizeof(path), "%s/pointcloud_map_metadata.yaml", world->folder);
    struct ndt_output output;
    enum ndt_status status = ndt_output_open(&output, path, err);
    if (status != NDT_OK)
        return status;
    status = write_tiles(world, output.file, err);
    if (status == NDT_OK)
        return ndt_output_commit(&output, err);
    ndt_output_discard(&output);
    return status;
}

void bench_tile_world_remove(const struct bench_tile_world *world)
{
    DIR *folder = world->folder[0] ? opendir(world->folder) : NULL;
    char path[PATH_SIZE + 256];
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        snprintf(path, sizeof(path), "%s/%s", world->folder, entry->d_name);
        if (entry->d_name[0] != '.')
            (void)!unlink(path);
    }
    if (!folder)
        return;
    closedir(folder);
    (void)!rmdir(world->folder);
}
