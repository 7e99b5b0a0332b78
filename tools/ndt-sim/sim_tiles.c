#include "sim_tiles.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt_io/cloud_file.h"
#include "tool_options.h"

static const double FILE_TILE_M = 100.0;
static const char METADATA[] = "pointcloud_map_metadata.yaml";

/* The writing of one folder. */
struct writer {
    struct sim_tiles *tiles;
    const char *folder;
    FILE *metadata;
    struct ndt_cloud sampled, copied, tile;
};

/* The area around the square of the city, in whole tiles about the line of the mirror. */
static struct sim_area whole(const struct sim_tiles *tiles)
{
    const struct sim_city *city = tiles->sampler.city;
    const struct sim_frame *frame = &city->frame;
    struct sim_area area = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
    for (int i = 0; i < 4; i++) {
        const double x = city->low_m[0] + (i & 1 ? city->extent_m : 0.0);
        const double y = city->low_m[1] + (i & 2 ? city->extent_m : 0.0);
        const double at_m[2] = {frame->origin_m[0] + frame->cos_yaw * x - frame->sin_yaw * y,
                                frame->origin_m[1] + frame->sin_yaw * x + frame->cos_yaw * y};
        for (int k = 0; k < 2; k++) {
            area.low_m[k] = fmin(area.low_m[k], at_m[k]);
            area.high_m[k] = fmax(area.high_m[k], at_m[k]);
        }
    }
    area.low_m[0] = floor(area.low_m[0] / FILE_TILE_M) * FILE_TILE_M;
    const double middle_m = tiles->change->mirror_y_m;
    area.low_m[1] = middle_m - ceil((middle_m - area.low_m[1]) / FILE_TILE_M) * FILE_TILE_M;
    return area;
}

static struct sim_area mirrored(const struct sim_change *change, struct sim_area area)
{
    const double low_m = area.low_m[1];
    if (!change->mirror)
        return area;
    area.low_m[1] = 2.0 * change->mirror_y_m - area.high_m[1];
    area.high_m[1] = 2.0 * change->mirror_y_m - low_m;
    return area;
}

/* The points of an area, all changes made but the mirror. */
static enum ndt_status fill(struct writer *writer, const struct sim_area *area, uint64_t number,
                            struct ndt_error *err)
{
    const struct sim_change *change = writer->tiles->change;
    struct ndt_cloud *tile = &writer->tile;
    const struct ndt_cloud *all = &writer->sampled;
    enum ndt_status status =
        sim_surface_sample(&writer->tiles->sampler, area, writer->tiles->caster, number, &writer->sampled, err);
    tile->count = 0;
    if (status == NDT_OK)
        status = ndt_cloud_reserve(tile, all->count, NDT_CLOUD_INTENSITY, err);
    for (size_t i = 0; i < all->count && status == NDT_OK; i++) {
        const double at_m[2] = {(double)all->x_m[i], (double)all->y_m[i]};
        if (sim_near_holds(&change->copied, at_m) || !sim_change_keeps(change, at_m))
            continue;
        tile->x_m[tile->count] = all->x_m[i];
        tile->y_m[tile->count] = all->y_m[i];
        tile->z_m[tile->count] = all->z_m[i];
        tile->intensity[tile->count++] = all->intensity[i];
    }
    return status == NDT_OK ? sim_change_copy(change, &writer->copied, area, tile, err) : status;
}

static enum ndt_status write_tile(struct writer *writer, const struct sim_area *area, uint64_t number,
                                  struct ndt_error *err)
{
    const struct sim_change *change = writer->tiles->change;
    char path[4200], name[64];
    const struct sim_area source = mirrored(change, *area);
    enum ndt_status status = fill(writer, &source, number, err);
    if (status != NDT_OK || writer->tile.count == 0)
        return status;
    for (size_t i = 0; change->mirror && i < writer->tile.count; i++)
        writer->tile.y_m[i] = (float)(2.0 * change->mirror_y_m - (double)writer->tile.y_m[i]);
    snprintf(name, sizeof(name), "tile_%+.0f_%+.0f.pcd", area->low_m[0], area->low_m[1]);
    snprintf(path, sizeof(path), "%s/%s", writer->folder, name);
    fprintf(writer->metadata, "%s: [%.0f, %.0f]\n", name, area->low_m[0], area->low_m[1]);
    writer->tiles->points += writer->tile.count;
    return ndt_pcd_write(&writer->tile, path, NDT_PCD_BINARY, err);
}

static enum ndt_status write_tiles(struct writer *writer, struct ndt_error *err)
{
    const struct sim_change *change = writer->tiles->change;
    const struct sim_area all = whole(writer->tiles);
    enum ndt_status status = NDT_OK;
    uint64_t number = 1;
    if (change->copied.cells) {
        struct sim_area from;
        for (int k = 0; k < 2; k++) {
            from.low_m[k] = change->copied.low_m[k];
            from.high_m[k] = from.low_m[k] + change->copied.dim[k];
        }
        status = sim_surface_sample(&writer->tiles->sampler, &from, writer->tiles->caster, 0, &writer->copied, err);
    }
    fprintf(writer->metadata, "x_resolution: %.0f\ny_resolution: %.0f\n", FILE_TILE_M, FILE_TILE_M);
    for (double y = all.low_m[1]; y < all.high_m[1]; y += FILE_TILE_M)
        for (double x = all.low_m[0]; x < all.high_m[0] && status == NDT_OK; x += FILE_TILE_M) {
            const struct sim_area source = {{x, y}, {x + FILE_TILE_M, y + FILE_TILE_M}};
            const struct sim_area area = mirrored(change, source);
            if (tool_interrupted())
                return ndt_fail(err, NDT_ERR_IO, "interrupted; all files are removed");
            status = write_tile(writer, &area, number++, err);
        }
    return status;
}

enum ndt_status sim_tiles_write(struct sim_tiles *tiles, const char *folder, struct ndt_error *err)
{
    struct writer writer = {.tiles = tiles, .folder = folder};
    char path[4200];
    if (mkdir(folder, 0777) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be made: %s", folder, strerror(errno));
    snprintf(path, sizeof(path), "%s/%s", folder, METADATA);
    writer.metadata = fopen(path, "w");
    if (!writer.metadata)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    ndt_cloud_init(&writer.sampled);
    ndt_cloud_init(&writer.copied);
    ndt_cloud_init(&writer.tile);
    tiles->points = 0;
    enum ndt_status status = write_tiles(&writer, err);
    const int failed = ferror(writer.metadata);
    if ((fclose(writer.metadata) != 0 || failed) && status == NDT_OK)
        status = ndt_fail(err, NDT_ERR_IO, "%s: cannot be written", path);
    ndt_cloud_free(&writer.sampled);
    ndt_cloud_free(&writer.copied);
    ndt_cloud_free(&writer.tile);
    return status;
}

enum ndt_status sim_tiles_remove(const char *folder, struct ndt_error *err)
{
    DIR *listing = opendir(folder);
    if (!listing)
        return errno == ENOENT ? NDT_OK : ndt_fail(err, NDT_ERR_IO, "%s: %s", folder, strerror(errno));
    const struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        char path[4400];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (strncmp(entry->d_name, "tile_", 5) == 0 || strcmp(entry->d_name, METADATA) == 0)
            unlink(path);
    }
    closedir(listing);
    return rmdir(folder) == 0 ? NDT_OK
                              : ndt_fail(err, NDT_ERR_IO, "%s: cannot be removed: %s", folder, strerror(errno));
}
