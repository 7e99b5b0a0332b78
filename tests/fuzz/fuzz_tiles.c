/* The metadata of a directory of tiles. Tiles that are listed exist and have a finite square. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_file.h"
#include "ndt_io/map_file.h"
#include "text_mutator.h"

static struct fuzz_file metadata, tiles[3];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const names[] = {"a.pcd", "b.pcd", "0_20.pcd"};
    (void)argc;
    (void)argv;
    fuzz_file_open(&metadata, "pointcloud_map_metadata.yaml");
    for (size_t i = 0; i < 3; i++)
        fuzz_file_open(&tiles[i], names[i]);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ndt_tile_set set;
    struct ndt_error err = {""};
    fuzz_file_write(&metadata, data, size);
    if (ndt_tile_set_open(&set, fuzz_folder(), &err) != NDT_OK) {
        FUZZ_REQUIRE(err.text[0] && !set.tiles && set.count == 0, "a failure that left tiles");
        return 0;
    }
    FUZZ_REQUIRE(set.count > 0, "no tile");
    for (size_t i = 0; i < set.count; i++) {
        const struct ndt_tile *tile = &set.tiles[i];
        FUZZ_REQUIRE(tile->path && isfinite(tile->min_m[0] + tile->min_m[1] + tile->size_m[0] + tile->size_m[1]) &&
                         tile->size_m[0] > 0 && tile->size_m[1] > 0,
                     "tile %zu", i);
        FUZZ_REQUIRE(i == 0 || strcmp(set.tiles[i - 1].path, tile->path) < 0, "tile %zu twice", i);
    }
    ndt_tile_set_close(&set);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    return text_mutate(data, size, max_size, &random);
}
