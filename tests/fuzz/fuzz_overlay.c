/* A file of changes of an overlay. What is read has as many points as its head says, all of them finite. */
#include <math.h>

#include "fuzz.h"
#include "fuzz_file.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"

static struct fuzz_file map, change;
static struct ndt_cloud cloud;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char points[] = "FIELDS x y z\nPOINTS 4\nDATA ascii\n1 2 3\n-4 5 6\n7 8 -9\n0.5 0.25 0\n";
    (void)argc;
    (void)argv;
    fuzz_file_open(&map, "map.pcd");
    fuzz_file_write(&map, points, sizeof(points) - 1);
    fuzz_file_open(&change, "map.pcd.change");
    ndt_cloud_init(&cloud);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ndt_error err = {""};
    uint64_t counts[2]; /* gone, new */
    fuzz_file_write(&change, data, size);
    if (ndt_tile_read(&cloud, map.path, change.path, NULL, &err) != NDT_OK) {
        FUZZ_REQUIRE(err.text[0] && cloud.count == 0, "a failure that left points");
        return 0;
    }
    memcpy(counts, data + 32, sizeof(counts));
    FUZZ_REQUIRE(cloud.count == 4 - counts[0] + counts[1], "%zu points", cloud.count);
    for (size_t i = 0; i < cloud.count; i++)
        FUZZ_REQUIRE(!isnan(cloud.x_m[i]) && !isnan(cloud.y_m[i]) && !isnan(cloud.z_m[i]), "point %zu", i);
    return 0;
}
