/** @file
 * @brief ndt-map tile: any map to Autoware's folder of tiles.
 *
 * The points of each file are appended to one spill file per tile; then each tile is read and written as a PCD. In
 * memory are the points of one file, or of one tile. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "map_commands.h"
#include "map_points.h"
#include "ndt/limits.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/output_file.h"
#include "ndtd/progress_line.h"
#include "output_guard.h"
#include "tile_folder.h"

enum { MAX_TILES = 1000000, BLOCK_POINTS = 1 << 21 };

static struct {
    struct tool_operands maps;
    const char *out;
    double size_m;
    int force;
} args = {.size_m = 20};

/* A point in a spill file. */
struct spilled {
    double xyz_m[3];
    float intensity;
    uint32_t number; /* number in the order of the file, so that the same input gives the same bytes */
};

struct cut_tile {
    int32_t x, y; /* square of the tile, in units of its size */
    uint64_t count;
};

struct cut {
    struct tile_folder folder;
    struct cut_tile *tiles; /* sorted by x, y */
    size_t tile_count, tile_capacity;
    uint64_t points, left_out;
    int has_origin, has_intensity; /* doubles are needed; every file has intensities */
    struct spilled *records;       /* records of the current file */
    size_t record_capacity;
};

/* ---- dividing ---- */

static int32_t index_of(double value_m)
{
    return (int32_t)floor(value_m / args.size_m);
}

static int compare_records(const void *a, const void *b)
{
    const struct spilled *p = a, *q = b;
    for (int k = 0; k < 2; k++) {
        const int32_t i = index_of(p->xyz_m[k]), j = index_of(q->xyz_m[k]);
        if (i != j)
            return i < j ? -1 : 1;
    }
    return 0;
}

static int compare_in_order(const void *a, const void *b)
{
    const struct spilled *p = a, *q = b;
    const int tiles = compare_records(a, b);
    return tiles ? tiles : (p->number > q->number) - (p->number < q->number);
}

/* Index of the tile, or where it belongs. */
static size_t search(const struct cut *cut, int32_t x, int32_t y)
{
    size_t low = 0, high = cut->tile_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const struct cut_tile *tile = &cut->tiles[middle];
        if (tile->x < x || (tile->x == x && tile->y < y))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum ndt_status find_tile(struct cut *cut, int32_t x, int32_t y, struct cut_tile **out,
                                 struct ndt_error *err)
{
    const size_t at = search(cut, x, y);
    *out = &cut->tiles[at];
    if (at < cut->tile_count && cut->tiles[at].x == x && cut->tiles[at].y == y)
        return NDT_OK;
    if (cut->tile_count == MAX_TILES)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d tiles of %g m: give a larger --size", MAX_TILES,
                        args.size_m);
    if (cut->tile_count == cut->tile_capacity) {
        const size_t capacity = cut->tile_capacity ? 2 * cut->tile_capacity : 64;
        struct cut_tile *tiles = realloc(cut->tiles, capacity * sizeof(*tiles));
        if (!tiles)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu tiles", capacity);
        cut->tiles = tiles;
        cut->tile_capacity = capacity;
    }
    memmove(&cut->tiles[at + 1], &cut->tiles[at], (cut->tile_count - at) * sizeof(*cut->tiles));
    cut->tile_count++;
    cut->tiles[at] = (struct cut_tile){.x = x, .y = y};
    *out = &cut->tiles[at];
    return NDT_OK;
}

static enum ndt_status append(struct cut *cut, struct cut_tile *tile, const struct spilled *records, size_t count,
                              struct ndt_error *err)
{
    char path[PATH_MAX];
    tile_folder_spill(&cut->folder, tile->x, tile->y, path);
    FILE *file = fopen(path, "ab");
    const int is_written = file && fwrite(records, sizeof(*records), count, file) == count;
    if ((file && fclose(file) != 0) || !is_written)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
    tile->count += count;
    cut->points += count;
    return NDT_OK;
}

static enum ndt_status reserve(struct cut *cut, uint64_t count, struct ndt_error *err)
{
    if (count <= cut->record_capacity)
        return NDT_OK;
    free(cut->records);
    cut->record_capacity = 0;
    cut->records = malloc(count * sizeof(*cut->records));
    if (!cut->records)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %" PRIu64 " points", count);
    cut->record_capacity = count;
    return NDT_OK;
}

/* The finite points of [begin, end) as records; returns their number. */
static size_t collect(struct cut *cut, const struct ndt_cloud *cloud, size_t begin, size_t end)
{
    size_t count = 0;
    for (size_t i = begin; i < end; i++) {
        const struct spilled record = {.xyz_m = {cloud->origin_m[0] + (double)cloud->x_m[i],
                                                 cloud->origin_m[1] + (double)cloud->y_m[i],
                                                 cloud->origin_m[2] + (double)cloud->z_m[i]},
                                       .intensity = cloud->intensity ? cloud->intensity[i] : 0,
                                       .number = (uint32_t)(i - begin)};
        if (fabs(record.xyz_m[0]) <= NDT_LIMIT_POSITION_M && fabs(record.xyz_m[1]) <= NDT_LIMIT_POSITION_M &&
            fabs(record.xyz_m[2]) <= NDT_LIMIT_POSITION_M)
            cut->records[count++] = record;
        else
            cut->left_out++;
    }
    return count;
}

static enum ndt_status divide_records(struct cut *cut, size_t count, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    qsort(cut->records, count, sizeof(*cut->records), compare_in_order);
    for (size_t begin = 0, end; status == NDT_OK && begin < count; begin = end) {
        struct cut_tile *tile;
        if (tool_interrupted())
            return ndt_fail(err, NDT_ERR_IO, "%s: interrupted", args.out);
        for (end = begin + 1; end < count && compare_records(&cut->records[begin], &cut->records[end]) == 0;)
            end++;
        status = find_tile(cut, index_of(cut->records[begin].xyz_m[0]), index_of(cut->records[begin].xyz_m[1]),
                           &tile, err);
        if (status == NDT_OK)
            status = append(cut, tile, &cut->records[begin], end - begin, err);
    }
    return status;
}

static enum ndt_status divide(void *context, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct cut *cut = context;
    const size_t block = cloud->count < BLOCK_POINTS ? cloud->count : BLOCK_POINTS;
    cut->has_origin |= cloud->origin_m[0] != 0 || cloud->origin_m[1] != 0 || cloud->origin_m[2] != 0;
    cut->has_intensity &= (cloud->fields & NDT_CLOUD_INTENSITY) != 0;
    enum ndt_status status = reserve(cut, block, err);
    for (size_t begin = 0; status == NDT_OK && begin < cloud->count; begin += block) {
        const size_t end = begin + block < cloud->count ? begin + block : cloud->count;
        status = divide_records(cut, collect(cut, cloud, begin, end), err);
    }
    return status;
}

/* ---- writing ---- */

/* float32 stays as it was; doubles become floats relative to an origin near the tile, as when they are read. */
static void fill(const struct cut *cut, const struct cut_tile *tile, struct ndt_cloud *cloud)
{
    static const double GRID_M = 1024;
    const double corner_m[3] = {tile->x * args.size_m, tile->y * args.size_m, cut->records[0].xyz_m[2]};
    for (int k = 0; k < 3; k++)
        cloud->origin_m[k] = cut->has_origin ? GRID_M * round(corner_m[k] / GRID_M) : 0;
    cloud->count = tile->count;
    for (size_t i = 0; i < tile->count; i++) {
        const struct spilled *record = &cut->records[i];
        cloud->x_m[i] = (float)(record->xyz_m[0] - cloud->origin_m[0]);
        cloud->y_m[i] = (float)(record->xyz_m[1] - cloud->origin_m[1]);
        cloud->z_m[i] = (float)(record->xyz_m[2] - cloud->origin_m[2]);
        if (cut->has_intensity)
            cloud->intensity[i] = record->intensity;
    }
}

static enum ndt_status read_spill(struct cut *cut, const struct cut_tile *tile, struct ndt_error *err)
{
    char path[PATH_MAX];
    tile_folder_spill(&cut->folder, tile->x, tile->y, path);
    const enum ndt_status status = reserve(cut, tile->count, err);
    if (status != NDT_OK)
        return status;
    FILE *file = fopen(path, "rb");
    const int is_read = file && fread(cut->records, sizeof(*cut->records), tile->count, file) == tile->count;
    if (file)
        fclose(file);
    unlink(path);
    return is_read ? NDT_OK : ndt_fail(err, NDT_ERR_IO, "%s: cannot read: %s", path, strerror(errno));
}

static enum ndt_status write_tile(struct cut *cut, const struct cut_tile *tile, struct ndt_error *err)
{
    char path[PATH_MAX];
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    enum ndt_status status = read_spill(cut, tile, err);
    if (status == NDT_OK)
        status = ndt_cloud_reserve(&cloud, tile->count, cut->has_intensity ? NDT_CLOUD_INTENSITY : 0, err);
    if (status == NDT_OK) {
        fill(cut, tile, &cloud);
        tile_folder_tile(&cut->folder, tile->x * args.size_m, tile->y * args.size_m, path);
        status = ndt_pcd_write(&cloud, path, NDT_PCD_BINARY, err);
    }
    ndt_cloud_free(&cloud);
    return status;
}

static enum ndt_status write_metadata(const struct cut *cut, struct ndt_error *err)
{
    char path[PATH_MAX];
    struct ndt_output out;
    tile_folder_metadata(&cut->folder, path);
    const enum ndt_status status = ndt_output_open(&out, path, err);
    if (status != NDT_OK)
        return status;
    fprintf(out.file, "x_resolution: %.17g\ny_resolution: %.17g\n", args.size_m, args.size_m);
    for (size_t i = 0; i < cut->tile_count; i++) {
        const double x_m = cut->tiles[i].x * args.size_m, y_m = cut->tiles[i].y * args.size_m;
        tile_folder_tile(&cut->folder, x_m, y_m, path);
        fprintf(out.file, "%s: [%.17g, %.17g]\n", strrchr(path, '/') + 1, x_m, y_m);
    }
    return ndt_output_commit(&out, err);
}

static enum ndt_status write_tiles(struct cut *cut, struct ndt_error *err)
{
    struct ndtd_progress_line line;
    enum ndt_status status = NDT_OK;
    uint64_t done = 0;
    ndtd_progress_line_begin(&line, "writing tiles", NULL);
    for (size_t i = 0; status == NDT_OK && i < cut->tile_count; i++) {
        status = tool_interrupted() ? ndt_fail(err, NDT_ERR_IO, "%s: interrupted", args.out)
                                    : write_tile(cut, &cut->tiles[i], err);
        done += cut->tiles[i].count;
        ndtd_progress_line_show(&line, done * sizeof(*cut->records), cut->points * sizeof(*cut->records));
    }
    ndtd_progress_line_end(&line);
    return status == NDT_OK ? write_metadata(cut, err) : status;
}

/* ---- the command ---- */

static enum ndt_status run(struct ndt_error *err)
{
    struct map_points points;
    struct cut cut = {.has_intensity = 1};
    enum ndt_status status = tool_output_check(args.out, TOOL_OUTPUT_FOLDER, args.force, err);
    if (status == NDT_OK)
        status = map_points_open(&points, args.maps.words[0], err);
    if (status != NDT_OK)
        return status;
    status = tile_folder_open(&cut.folder, args.out, err);
    if (status == NDT_OK)
        status = map_points_each(&points, "reading", divide, &cut, err);
    if (status == NDT_OK && cut.points == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no finite point", points.path);
    if (status == NDT_OK)
        status = write_tiles(&cut, err);
    status = tile_folder_close(&cut.folder, status, err);
    if (status == NDT_OK)
        printf("%s: %zu tiles of %g m, %" PRIu64 " points\n", args.out, cut.tile_count, args.size_m, cut.points);
    if (status == NDT_OK && cut.left_out)
        fprintf(stderr, "ndt-map: warning: %" PRIu64 " points that are not finite are left out\n", cut.left_out);
    map_points_close(&points);
    free(cut.tiles);
    free(cut.records);
    return status;
}

static const struct tool_option options[] = {
    {"out", "DIR", TOOL_TEXT, &args.out, .required = 1, .help = "the folder to write"},
    {"size", "M", TOOL_REAL, &args.size_m, 1, 2000, .help = "edge of a tile [m]"},
    TOOL_FORCE_OPTION(args.force),
};

const struct tool_command map_tile_command = {
    .name = "tile",
    .summary = "cuts a map into tiles, as Autoware has them",
    .details =
        "Writes DIR with one PCD per tile, X_Y.pcd after its lower corner, and pointcloud_map_metadata.yaml. Every "
        "point keeps its coordinates, so that the tiles make the same map as before; 'ndt-import map' also thins "
        "and shifts, and reads LAS and LAZ. The memory is that of the largest file, or tile; the disk holds the "
        "points once more (32 bytes each) meanwhile.",
    TOOL_OPERANDS("MAP", 1, 1, &args.maps),
    TOOL_OPTIONS(options),
    .run = run};
