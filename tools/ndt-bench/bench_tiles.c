#include "bench_tiles.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_tile_world.h"
#include "ndt_io/map_file.h"
#include "ndtd/map_loader.h"
#include "ndtd/samples.h"
#include "ndt/clock.h"

enum { PATIENCE_S = 600 };

/* ---- memory of this process ---- */

/* A line such as "VmRSS:  1234 kB"; 0 where the system has none. */
static size_t read_status_bytes(const char *name)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && kib == 0 && fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoull(line + strlen(name), NULL, 10);
    if (file)
        fclose(file);
    return 1024 * kib;
}

static size_t resident(void)
{
    return read_status_bytes("VmRSS:");
}

/* ---- one drive ---- */

struct drive {
    const struct bench_tiles_request *request;
    const struct bench_tile_world *world;
    double radius_m;
    struct ndtd_map_loader *loader;
    struct ndt_map *map; /* as the matcher holds it */
    struct ndtd_map_loader_status status;
    unsigned char *in; /* per tile: in reach at the last position */
    struct ndtd_samples change_ms;
    struct bench_tiles_row *row;
};

/* How many tiles come into or go out of reach: what a change has to read at the least. */
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

/* Waits for the loader and takes what it has, as the matcher would between two scans; 1 when there is a new map. */
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

static void note_most(struct drive *drive)
{
    struct bench_tiles_row *row = drive->row;
    const struct ndtd_map_loader_status *status = &drive->status;
    const size_t rss = resident();
    row->most_tiles = status->tiles_loaded > row->most_tiles ? status->tiles_loaded : row->most_tiles;
    row->most_points = status->points > row->most_points ? status->points : row->most_points;
    row->most_sums_bytes = status->sums_bytes > row->most_sums_bytes ? status->sums_bytes : row->most_sums_bytes;
    if (drive->map && drive->map->bytes > row->most_map_bytes)
        row->most_map_bytes = drive->map->bytes;
    row->most_rss = rss > row->most_rss ? rss : row->most_rss;
}

static enum ndt_status open_folder(struct drive *drive, const double at_m[2], struct ndt_error *err)
{
    struct bench_tiles_row *row = drive->row;
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
    row->open_rss = resident();
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
        status = ndtd_samples_add(&drive->change_ms, (ndt_clock_us() - start_us) * 1e-3, err);
    }
    drive->row->moved += count_moved(drive, at_m);
    note_most(drive);
    return status;
}

/* From 5 % to 95 % of the diagonal, a step every update distance. */
static enum ndt_status drive_across(struct drive *drive, struct ndt_error *err)
{
    const double edge_m = drive->world->tile_m * (double)drive->world->side;
    const double step_m =
        drive->request->settings->update_distance_m / sqrt(2) + 0.02; /* positions are kept in cm */
    double at_m[2] = {0.05 * edge_m, 0.05 * edge_m};
    drive->row->start_rss = resident();
    enum ndt_status status = open_folder(drive, at_m, err);
    while (status == NDT_OK && at_m[0] + step_m < 0.95 * edge_m) {
        at_m[0] += step_m;
        at_m[1] += step_m;
        status = drive_on(drive, at_m, err);
    }
    drive->row->reads = drive->status.tile_reads - drive->row->open_reads;
    drive->row->change_median_ms = ndtd_samples_quantile(&drive->change_ms, 0.5);
    drive->row->change_p95_ms = ndtd_samples_quantile(&drive->change_ms, 0.95);
    drive->row->change_max_ms = ndtd_samples_quantile(&drive->change_ms, 1);
    drive->row->peak_rss = read_status_bytes("VmHWM:");
    return status;
}

static enum ndt_status measure(struct bench_tiles_row *row, const struct bench_tiles_request *request,
                               const struct bench_tile_world *world, double radius_m, struct ndt_error *err)
{
    const struct ndtd_map_loader_config config = {.map = request->settings->map,
                                                  .dynamic = 1,
                                                  .update_distance_m = request->settings->update_distance_m,
                                                  .map_radius_m = radius_m};
    struct drive drive = {.request = request, .world = world, .radius_m = radius_m, .row = row};
    drive.in = calloc(world->side * world->side, 1);
    if (!drive.in)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu tiles", world->side * world->side);
    enum ndt_status status = ndtd_map_loader_create(&drive.loader, &config, err);
    if (status == NDT_OK)
        status = drive_across(&drive, err);
    ndt_map_release(drive.map);
    ndtd_map_loader_destroy(drive.loader);
    ndtd_samples_free(&drive.change_ms);
    free(drive.in);
    return status;
}

/* ---- processes ---- */

struct answer {
    enum ndt_status status;
    struct ndt_error err;
    struct bench_tiles_row row;
};

static enum ndt_status read_answer(int fd, struct answer *out, struct ndt_error *err)
{
    size_t got = 0;
    while (got < sizeof(*out)) {
        const ssize_t more = read(fd, (char *)out + got, sizeof(*out) - got);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return ndt_fail(err, NDT_ERR_IO, "the process that drives ended without an answer");
        got += (size_t)more;
    }
    if (out->status != NDT_OK && err)
        *err = out->err;
    return out->status;
}

static enum ndt_status measure_apart(struct bench_tiles_row *row, const struct bench_tiles_request *request,
                                     const struct bench_tile_world *world, double radius_m, struct ndt_error *err)
{
    static struct answer answer;
    int ends[2];
    if (pipe(ends) != 0)
        return ndt_fail(err, NDT_ERR_IO, "no pipe: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        answer = (struct answer){.row = *row};
        answer.status = measure(&answer.row, request, world, radius_m, &answer.err);
        _exit(write(ends[1], &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
    }
    close(ends[1]);
    enum ndt_status status = child > 0 ? read_answer(ends[0], &answer, err)
                                       : ndt_fail(err, NDT_ERR_IO, "no process: %s", strerror(errno));
    close(ends[0]);
    if (child > 0)
        (void)waitpid(child, NULL, 0);
    if (status == NDT_OK)
        *row = answer.row;
    return status;
}

static enum ndt_status run_world(struct bench_tiles *out, const struct bench_tiles_request *request, size_t side,
                                 struct ndt_error *err)
{
    struct bench_tile_world world = {.side = side, .tile_m = request->tile_m, .tile_points = request->tile_points};
    enum ndt_status status = bench_tile_world_write(&world, err);
    for (size_t i = 0; status == NDT_OK && i < request->radius_count; i++) {
        struct bench_tiles_row *row = &out->rows[out->count];
        *row = (struct bench_tiles_row){.tiles = side * side,
                                        .tile_points = request->tile_points,
                                        .tile_m = request->tile_m,
                                        .radius_m = request->radii_m[i]};
        status = measure_apart(row, request, &world, request->radii_m[i], err);
        out->count += status == NDT_OK;
    }
    bench_tile_world_remove(&world);
    return status;
}

enum ndt_status bench_tiles_run(struct bench_tiles *out, const struct bench_tiles_request *request,
                                struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    out->count = 0;
    for (size_t i = 0; status == NDT_OK && i < request->side_count; i++)
        status = run_world(out, request, request->sides[i], err);
    return status;
}
