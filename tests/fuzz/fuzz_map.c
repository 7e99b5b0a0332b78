/* Compiled maps with the field that is attached to them. The mutator changes what indexes and sizes depend on and
 * puts the right hashes in. A map that opens survives evaluations on every level, with every kind of neighbours and
 * every CPU variant, and a search in its field. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_file.h"
#include "map_mutator.h"
#include "ndt/backend.h"
#include "ndt/hash.h"
#include "ndt_io/compiled_map.h"
#include "ndt_search/search.h"
#include "ndtd/map_field.h"

enum { POINTS = 64, MAX_BACKENDS = 6 };

static struct fuzz_file file;
static struct ndt_error err;
static struct ndt_backend *backends[MAX_BACKENDS];
static size_t backend_count;
static struct ndt_cloud scan;
static struct ndt_search *search;
static struct ndt_search_params params;

static void open_backend(const struct ndt_backend_ops *ops, const char *isa)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.threads = 1;
    config.isa = isa;
    FUZZ_REQUIRE(ops->open(&backends[backend_count++], &config, &err) == NDT_OK, "%s", err.text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const struct ndt_search_config config = {.threads = 1};
    static char names[128]; /* the configurations borrow them */
    char *rest = names;
    (void)argc;
    (void)argv;
    fuzz_file_open(&file, "fuzz.ndtmap");
    ndt_cpu_variants(names, sizeof(names));
    for (char *isa; (isa = strsep(&rest, ",")) != NULL;)
        open_backend(&ndt_cpu_backend, isa);
    open_backend(&ndt_reference_backend, NULL);
    ndt_cloud_init(&scan);
    FUZZ_REQUIRE(ndt_cloud_reserve(&scan, POINTS, 0, &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(ndt_search_create(&search, &config, &err) == NDT_OK, "%s", err.text);
    ndt_search_params_default(&params);
    return 0;
}

/* Points in and beside cells of the level, and some that are nowhere. */
static void make_scan(const struct ndt_map_level *level)
{
    static const float nowhere_m[] = {0, -1e-3f, 1e6f, -1e9f, 3e38f, INFINITY, NAN};
    float *const axes[] = {scan.x_m, scan.y_m, scan.z_m};
    scan.count = POINTS;
    for (size_t i = 0; i < POINTS; i++) {
        const struct ndt_voxel *voxel = &level->voxels[i * level->voxel_count / POINTS];
        for (size_t k = 0; k < 3; k++)
            axes[k][i] = i % 8 == 7 ? nowhere_m[(i / 8 + k) % 7]
                                    : (float)(level->leaf_m * (voxel->cell[k] + (double)(i * (k + 3) % 5) / 2 - 1));
    }
}

static void evaluate(const struct ndt_map *map)
{
    static const double poses[3][6] = {{0}, {0.3, -0.2, 0.1, 0.05, -0.03, 1.2}, {1e5, -1e7, 1e9, 3, -3, 2}};
    struct ndt_eval sums;
    for (size_t l = 0; l < map->level_count; l++) {
        make_scan(&map->levels[l]);
        for (size_t b = 0; b < backend_count; b++) {
            if (backends[b]->ops->set_scan(backends[b], &scan, &err) != NDT_OK)
                continue;
            for (int n = 0; n < 12; n++) {
                struct ndt_eval_request request = {.level = (int)l, .neighbours = (enum ndt_neighbours)(n % 4)};
                memcpy(request.p, poses[n / 4], sizeof(request.p));
                if (backends[b]->ops->eval(backends[b], &request, &sums, &err) == NDT_OK)
                    FUZZ_REQUIRE(sums.matched <= POINTS && sums.pairs <= 27 * POINTS, "%g points, %g pairs",
                                 sums.matched, sums.pairs);
            }
        }
    }
}

static void search_field(struct ndt_map *map, struct ndt_field *field)
{
    static struct ndt_search_result result;
    const struct ndt_search_region region = {.has_position = 1,
                                             .position_m = {map->origin_m[0] + 3, map->origin_m[1] + 3, 0},
                                             .radius_m = 3,
                                             .has_heading = 1,
                                             .heading_reach_rad = 0.1};
    if (ndt_search_set_map(search, map, field, &err) != NDT_OK)
        return;
    make_scan(&map->levels[map->level_count - 1]);
    (void)ndt_search_run(search, &params, &scan, NULL, &region, NULL, &result, &err);
    (void)ndt_search_set_map(search, NULL, NULL, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ndt_map *map;
    struct ndt_field *field;
    fuzz_file_write(&file, data, size);
    if (ndt_map_open(&map, file.path, &err) != NDT_OK)
        return 0;
    map_keep(data, size);
    for (size_t b = 0; b < backend_count; b++)
        FUZZ_REQUIRE(backends[b]->ops->set_map(backends[b], map, &err) == NDT_OK, "%s", err.text);
    evaluate(map);
    for (size_t b = 0; b < backend_count; b++)
        (void)backends[b]->ops->set_map(backends[b], NULL, &err);
    if (ndtd_map_field(&field, map, &err) == NDT_OK) {
        if (ndt_hash64(data, size, 1) % 8 == 0) /* takes much longer than all evaluations */
            search_field(map, field);
        ndt_field_release(field);
    }
    ndt_map_release(map);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    return map_mutate(data, size, max_size, &random);
}
