/* Overlays of maps, written by hand: the format as docs/maps.md states it, not by the code that reads it. */
#ifndef OVERLAY_FILES_H
#define OVERLAY_FILES_H

#include "ndt_io/cloud_file.h"
#include "temp_dir.h"

struct overlay_change {
    char magic[8];
    uint64_t overlay_id, base_points, base_sum, removed, added;
    uint32_t gone[8];
    double points_m[4][3];
};

/* The head for the cloud `base`, with one point gone and none new. */
__attribute__((unused)) static struct overlay_change overlay_change_of(const char *base, uint64_t id)
{
    struct overlay_change change = {.overlay_id = id, .removed = 1};
    struct ndt_cloud cloud;
    memcpy(change.magic, "NDTDCHG1", 8);
    ndt_cloud_init(&cloud);
    ck_assert_int_eq(ndt_cloud_read(&cloud, base, NULL), NDT_OK);
    change.base_points = cloud.count;
    for (size_t i = 0; i < cloud.count; i++) {
        const float *const columns[] = {cloud.x_m, cloud.y_m, cloud.z_m};
        for (int k = 0; k < 3; k++) {
            const double value = cloud.origin_m[k] + (double)columns[k][i];
            uint64_t bits;
            memcpy(&bits, &value, sizeof(bits));
            change.base_sum += bits;
        }
    }
    ndt_cloud_free(&cloud);
    return change;
}

/* Writes it as `name`, followed by `more` bytes that do not belong there. */
__attribute__((unused)) static void overlay_write_change(const char *name, const struct overlay_change *change,
                                                         size_t more)
{
    uint8_t bytes[sizeof(*change) + 16] = {0};
    size_t size = 48;
    memcpy(bytes, change, size);
    memcpy(bytes + size, change->gone, 4 * change->removed);
    size += 4 * change->removed;
    memcpy(bytes + size, change->points_m, 24 * change->added);
    temp_write(name, bytes, size + 24 * change->added + more);
}

#endif
