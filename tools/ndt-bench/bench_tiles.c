/** @file
 * @brief tiles: drives across a folder of tiles, with the times and the memory of the map loader. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "ndt/clock.h"
#include "ndt/random.h"
#include "ndt_io/map_file.h"
#include "ndt_io/output_file.h"
#include "ndtd/map_loader.h"
#include "ndtd/process_memory.h"

/* ---- a town as a folder of tiles ---- */

/* Every tile has two crossing streets, 6 m wide and slightly uneven, and facades of 3 m along one of them. The
 * points are the same in every run. */
struct tile_world {
    size_t side;        /* side x side tiles */
    double tile_m;      /* edge of one */
    size_t tile_points; /* in every tile */
    char folder[512];   /* with pointcloud_map_metadata.yaml */
};

static const double STREET_M = 6, FACADE_M = 3, FACADE_PART = 0.4, FACADE_STEP_M = 0.25;
enum { PATH_SIZE = 640 };

struct tile_points {
    double low_m[2]; /* lower corner of the tile */
    float (*xyz_m)[3];
    size_t count;
};

/* `along` runs over the tile, `beside` over the width of the street. Houses do not stand in one line. */
static void fill_tile(struct tile_points *tile, const struct tile_world *world, size_t column, size_t row)
{
    const size_t facades = (size_t)(FACADE_PART * (double)world->tile_points);
    const double tile_m = world->tile_m;
    struct ndt_random random = {(uint64_t)row * world->side + column + 1};
    tile->low_m[0] = tile_m * (double)column;
    tile->low_m[1] = tile_m * (double)row;
    for (tile->count = 0; tile->count < world->tile_points; tile->count++) {
        const int is_odd = (int)(tile->count & 1), is_facade = tile->count < facades;
        const double along_m = ndt_random_between(&random, 0, tile_m);
        double beside_m, z_m;
        if (is_facade) {
            const double step_m = fmod(floor(along_m / 7), 2) * FACADE_STEP_M;
            const double away_m = 0.5 * STREET_M + 1 + step_m + ndt_random_between(&random, 0, 0.01);
            beside_m = is_odd ? away_m : -away_m;
            z_m = ndt_random_between(&random, 0, FACADE_M);
        } else {
            beside_m = ndt_random_between(&random, -0.5 * STREET_M, 0.5 * STREET_M);
            z_m = 0.05 * sin(0.9 * along_m) + ndt_random_between(&random, 0, 0.01);
        }
        const int axis = !is_facade && is_odd;   /* along which the street runs */
        float *point = tile->xyz_m[tile->count]; /* float keeps a millimetre over 10 km */
        point[axis] = (float)(tile->low_m[axis] + along_m);
        point[1 - axis] = (float)(tile->low_m[1 - axis] + 0.5 * tile_m + beside_m);
        point[2] = (float)z_m;
    }
}

/* ndt_pcd_write waits for the disk, which is too slow for thousands of temporary files. */
static enum ndt_status write_tile(const struct tile_points *tile, const char *path, struct ndt_error *err)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    fprintf(file,
            "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH %zu\nHEIGHT 1\n"
            "POINTS %zu\nDATA binary\n",
            tile->count, tile->count);
    const size_t written = fwrite(tile->xyz_m, sizeof(tile->xyz_m[0]), tile->count, file);
    if (fclose(file) != 0 || written != tile->count)
        return ndt_fail(err, NDT_ERR_IO, "%s: write failed: %s", path, strerror(errno));
    return NDT_OK;
}

static enum ndt_status write_tiles(const struct tile_world *world, FILE *metadata, struct ndt_error *err)
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

static enum ndt_status write_world(struct tile_world *world, struct ndt_error *err)
{
    char path[PATH_SIZE];
    enum ndt_status status = bench_temporary_folder(world->folder, sizeof(world->folder), err);
    if (status != NDT_OK)
        return status;
    snprintf(path, sizeof(path), "%s/pointcloud_map_metadata.yaml", world->folder);
    struct ndt_output output;
    status = ndt_output_open(&output, path, err);
    if (status != NDT_OK)
        return status;
    status = write_tiles(world, output.file, err);
    if (status == NDT_OK)
        return ndt_output_commit(&output, err);
    ndt_output_discard(&output);
    return status;
}

static void remove_world(const struct tile_world *world)
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

/* ---- one drive ---- */

/* A drive from one corner of the map to the opposite one, in a process of its own, so that its memory is measured.
 */
struct row {
    size_t tiles, tile_points;
    double tile_m, radius_m;
    double list_ms;                  /* listing the folder */
    double open_ms;                  /* from the request to the first map */
    uint64_t open_tiles, open_reads; /* tiles in the first map, files read for it */
    uint64_t changes, moved, reads;  /* new maps during the drive, tiles in or out, files read */
    double change_median_ms, change_p95_ms, change_max_ms;
    size_t most_tiles, most_points;                 /* in a map */
    size_t most_map_bytes, most_sums_bytes;         /* as counted by the loader */
    size_t start_rss, open_rss, most_rss, peak_rss; /* resident bytes: before, with the first map, largest
                                                       between changes, largest ever */
};

enum { PATIENCE_S = 600 };

struct drive {
    const struct bench_options *options;
    const struct tile_world *world;
    double radius_m;
    struct ndtd_map_loader *loader;
    struct ndt_map *map; /* as the matcher holds it */
    struct ndtd_map_loader_status status;
    unsigned char *in; /* per tile: in reach at the last position */
    struct bench_samples change_ms;
    struct row *row;
};

/* Tiles that come into or go out of reach: the least number of files that a change has to read. */
static uint64_t count_moved(struct drive *drive, const double at_m[2])
{
    const size_t side = drive->world->side;
    const double tile_m = drive->world->tile_m;
    uint64_t moved = 0;
    for (size_t i = 0; i < side * side; i++) {
        const double x_m = tile_m * (double)(i % side), y_m = tile_m * (double)(i / side);
        const double dx_m = fmax(0, fmax(x_m - at_m[0], at_m[0] - (x_m + tile_m)));
        const double dy_m = fmax(0, fmax(y_m - at_m[1], at_m[1] - (y_m + tile_m)));
        const unsigned char in = hypot(dx_m, dy_m) <= drive->radius_m;
        moved += in != drive->in[i];
        drive->in[i] = in;
    }
    return moved;
}

/* Waits for the loader and takes its map, as the matcher does between two scans. *changed: whether there is one. */
static enum ndt_status settle(struct drive *drive, int *changed, struct ndt_error *err)
{
    struct ndt_map *map;
    if (!ndtd_map_loader_wait(drive->loader, PATIENCE_S))
        return ndt_fail(err, NDT_ERR_IO, "the map loader took more than %d s", PATIENCE_S);
    ndtd_map_loader_status(drive->loader, &drive->status);
    if (drive->status.failed)
        return ndt_fail(err, NDT_ERR_IO, "%s", drive->status.error);
    *changed = ndtd_map_loader_take(drive->loader, &map);
    if (!*changed)
        return NDT_OK;
    ndt_map_release(drive->map);
    drive->map = map;
    return NDT_OK;
}

static void raise_to(size_t *most, size_t value)
{
    *most = *most < value ? value : *most;
}

static void note_most(struct drive *drive)
{
    struct row *row = drive->row;
    raise_to(&row->most_tiles, (size_t)drive->status.tiles_loaded);
    raise_to(&row->most_points, (size_t)drive->status.points);
    raise_to(&row->most_sums_bytes, drive->status.sums_bytes);
    raise_to(&row->most_map_bytes, drive->map ? drive->map->bytes : 0);
    raise_to(&row->most_rss, (size_t)ndtd_resident_bytes());
}

static enum ndt_status open_folder(struct drive *drive, const double at_m[2], struct ndt_error *err)
{
    struct row *row = drive->row;
    struct ndt_tile_set set;
    int changed;
    double start_us = ndt_clock_us();
    enum ndt_status status = ndt_tile_set_open(&set, drive->world->folder, err);
    if (status != NDT_OK)
        return status;
    row->list_ms = (ndt_clock_us() - start_us) * 1e-3;
    ndt_tile_set_close(&set);
    start_us = ndt_clock_us();
    ndtd_map_loader_load(drive->loader, drive->world->folder, at_m);
    status = settle(drive, &changed, err);
    row->open_ms = (ndt_clock_us() - start_us) * 1e-3;
    row->open_tiles = drive->status.tiles_loaded;
    row->open_reads = drive->status.tile_reads;
    row->open_rss = (size_t)ndtd_resident_bytes();
    (void)count_moved(drive, at_m);
    note_most(drive);
    return status;
}

static enum ndt_status drive_on(struct drive *drive, const double at_m[2], struct ndt_error *err)
{
    int changed;
    const double start_us = ndt_clock_us();
    ndtd_map_loader_follow(drive->loader, at_m);
    enum ndt_status status = settle(drive, &changed, err);
    if (status != NDT_OK)
        return status;
    if (changed) {
        drive->row->changes++;
        bench_samples_add(&drive->change_ms, (ndt_clock_us() - start_us) * 1e-3);
    }
    drive->row->moved += count_moved(drive, at_m);
    note_most(drive);
    return status;
}

/* From 5 % to 95 % of the diagonal, one step per update distance. */
static enum ndt_status drive_across(struct drive *drive, struct ndt_error *err)
{
    const double edge_m = drive->world->tile_m * (double)drive->world->side;
    const double step_m =
        drive->options->settings.update_distance_m / sqrt(2) + 0.02; /* positions are kept in cm */
    double at_m[2] = {0.05 * edge_m, 0.05 * edge_m};
    drive->row->start_rss = (size_t)ndtd_resident_bytes();
    enum ndt_status status = open_folder(drive, at_m, err);
    while (status == NDT_OK && at_m[0] + step_m < 0.95 * edge_m) {
        at_m[0] += step_m;
        at_m[1] += step_m;
        status = drive_on(drive, at_m, err);
    }
    drive->row->reads = drive->status.tile_reads - drive->row->open_reads;
    drive->row->change_median_ms = bench_quantile(&drive->change_ms, 0.5);
    drive->row->change_p95_ms = bench_quantile(&drive->change_ms, 0.95);
    drive->row->change_max_ms = bench_quantile(&drive->change_ms, 1);
    drive->row->peak_rss = (size_t)ndtd_peak_resident_bytes();
    return status;
}

static enum ndt_status measure(struct row *row, const struct bench_options *options, const struct tile_world *world,
                               double radius_m, struct ndt_error *err)
{
    const struct ndtd_map_loader_config config = {.map = options->settings.map,
                                                  .dynamic = 1,
                                                  .update_distance_m = options->settings.update_distance_m,
                                                  .map_radius_m = radius_m};
    struct drive drive = {.options = options, .world = world, .radius_m = radius_m, .row = row};
    drive.in = calloc(world->side * world->side, 1);
    if (!drive.in)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu tiles", world->side * world->side);
    enum ndt_status status = ndtd_map_loader_create(&drive.loader, &config, err);
    if (status == NDT_OK)
        status = drive_across(&drive, err);
    ndt_map_release(drive.map);
    ndtd_map_loader_destroy(drive.loader);
    bench_samples_free(&drive.change_ms, 1);
    free(drive.in);
    return status;
}

/* ---- processes ---- */

struct answer {
    int is_complete;
    enum ndt_status status;
    struct ndt_error err;
    struct row row;
};

/* Measures in a child process, whose answer lies in shared memory. */
static enum ndt_status measure_apart(struct row *row, const struct bench_options *options,
                                     const struct tile_world *world, double radius_m, struct ndt_error *err)
{
    struct answer *answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answer == MAP_FAILED)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the answer of a process");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        answer->row = *row;
        answer->status = measure(&answer->row, options, world, radius_m, &answer->err);
        answer->is_complete = 1;
        _exit(0);
    }
    enum ndt_status status = NDT_OK;
    if (child < 0)
        status = ndt_fail(err, NDT_ERR_IO, "no process: %s", strerror(errno));
    else if (waitpid(child, NULL, 0) != child || !answer->is_complete)
        status = ndt_fail(err, NDT_ERR_IO, "the child process ended without an answer");
    else if (answer->status != NDT_OK)
        status = ndt_fail(err, answer->status, "%s", answer->err.text);
    *row = answer->row;
    (void)munmap(answer, sizeof(*answer));
    return status;
}

static void put_row(const struct row *row, struct bench_report *report, struct bench_table *table)
{
    static const double mib = 1048576.0;
    bench_row(report, table);
    bench_number(table, "tiles", 0, (double)row->tiles);
    bench_number(table, "tile_m", 0, row->tile_m);
    bench_number(table, "tile_points", 0, (double)row->tile_points);
    bench_number(table, "radius_m", 0, row->radius_m);
    bench_number(table, "list_ms", 1, row->list_ms);
    bench_number(table, "open_ms", 1, row->open_ms);
    bench_number(table, "open_tiles", 0, (double)row->open_tiles);
    bench_number(table, "open_reads", 0, (double)row->open_reads);
    bench_number(table, "changes", 0, (double)row->changes);
    bench_number(table, "moved", 0, (double)row->moved);
    bench_number(table, "reads", 0, (double)row->reads);
    bench_number(table, "change_median_ms", 1, row->change_median_ms);
    bench_number(table, "change_p95_ms", 1, row->change_p95_ms);
    bench_number(table, "change_max_ms", 1, row->change_max_ms);
    bench_number(table, "most_tiles", 0, (double)row->most_tiles);
    bench_number(table, "most_points", 0, (double)row->most_points);
    bench_number(table, "map_mib", 1, (double)row->most_map_bytes / mib);
    bench_number(table, "sums_mib", 1, (double)row->most_sums_bytes / mib);
    bench_number(table, "start_mib", 1, (double)row->start_rss / mib);
    bench_number(table, "open_mib", 1, (double)row->open_rss / mib);
    bench_number(table, "most_mib", 1, (double)row->most_rss / mib);
    bench_number(table, "peak_mib", 1, (double)row->peak_rss / mib);
}

static enum ndt_status run_world(const struct bench_options *options, size_t side, const struct tool_reals *radii_m,
                                 struct bench_report *report, struct bench_table *table, struct ndt_error *err)
{
    struct tile_world world = {
        .side = side, .tile_m = options->tile_m, .tile_points = (size_t)options->tile_points};
    enum ndt_status status = write_world(&world, err);
    for (size_t i = 0; status == NDT_OK && i < radii_m->count; i++) {
        struct row row = {.tiles = side * side,
                          .tile_points = world.tile_points,
                          .tile_m = world.tile_m,
                          .radius_m = radii_m->values[i]};
        status = measure_apart(&row, options, &world, row.radius_m, err);
        if (status == NDT_OK)
            put_row(&row, report, table);
    }
    remove_world(&world);
    return status;
}

enum ndt_status bench_tiles(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    struct tool_reals radii_m = options->radii_m;
    enum ndt_status status = NDT_OK;
    if (radii_m.count == 0)
        radii_m.values[radii_m.count++] = options->settings.map_radius_m + options->settings.lidar_radius_m;
    bench_source_report(source, report);
    struct bench_table *table = bench_report_table(
        report, "tiles", "Tiles: a drive across a folder of tiles, from one corner to the opposite one");
    for (size_t i = 0; status == NDT_OK && i < options->tiles.count; i++) {
        const size_t tiles = options->tiles.values[i], side = (size_t)lround(sqrt((double)tiles));
        if (side * side != tiles)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--tiles %zu: the map must be a square, such as of %zu tiles",
                            tiles, side * side);
        status = run_world(options, side, &radii_m, report, table, err);
    }
    return status;
}
