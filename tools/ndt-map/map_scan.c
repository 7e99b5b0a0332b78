#include "map_scan.h"

#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 360, ROWS = 40, POINTS_MAX = 2000, SPLAT_MAX = 12 };
static const double LOWEST_DEG = -25, DEG = 57.29577951308232;
static const double NEAREST_M = 1.5, HALF_SPACING_M = 0.25, MARGIN_M = 0.6, MARGIN_PART = 0.02, NOISE_M = 0.02;

/* Visitor of every sample of the surface in range, with its place in the frame of the sensor. */
typedef void visit_sample(void *context, const double point_m[3], double range_m, int column, int row);

enum ndt_status map_scanner_open(struct map_scanner *scanner, const struct map_patches *patches, double range_m,
                                 struct ndt_error *err)
{
    *scanner =
        (struct map_scanner){.patches = patches, .range_m = range_m, .noise_m = NOISE_M, .limit = POINTS_MAX};
    scanner->depth_m = malloc(sizeof(*scanner->depth_m) * COLUMNS * ROWS);
    return scanner->depth_m ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory");
}

void map_scanner_close(struct map_scanner *scanner)
{
    free(scanner->depth_m);
    scanner->depth_m = NULL;
}

static void visit_patch(const struct map_scanner *scanner, const struct map_patch *patch,
                        const struct ndt_pose *T_sensor_map, visit_sample *visit, void *context)
{
    for (int i = 0; i < MAP_PATCH_SAMPLES; i++) {
        float sample_m[3];
        double map_m[3], point_m[3];
        map_patch_sample(patch, i, sample_m);
        for (int k = 0; k < 3; k++)
            map_m[k] = scanner->patches->origin_m[k] + (double)sample_m[k];
        ndt_pose_apply(T_sensor_map, map_m, point_m);
        const double flat_m = hypot(point_m[0], point_m[1]), range_m = hypot(flat_m, point_m[2]);
        const double row = atan2(point_m[2], flat_m) * DEG - LOWEST_DEG;
        if (range_m < NEAREST_M || range_m > scanner->range_m || !(row >= 0 && row < ROWS))
            continue;
        const int column = (int)(atan2(point_m[1], point_m[0]) * DEG + 180);
        visit(context, point_m, range_m, column < COLUMNS ? column : COLUMNS - 1, (int)row);
    }
}

static void visit_all(const struct map_scanner *scanner, const struct ndt_pose *T_map_sensor, visit_sample *visit,
                      void *context)
{
    const struct ndt_pose T_sensor_map = ndt_pose_inverse(T_map_sensor);
    int32_t low[2], high[2];
    for (int k = 0; k < 2; k++) {
        const double at_m = T_map_sensor->t_m[k] - scanner->patches->origin_m[k];
        low[k] = (int32_t)floor((at_m - scanner->range_m) / MAP_PATCH_TILE_M);
        high[k] = (int32_t)floor((at_m + scanner->range_m) / MAP_PATCH_TILE_M);
    }
    for (int32_t y = low[1]; y <= high[1]; y++)
        for (int32_t x = low[0]; x <= high[0]; x++) {
            size_t begin, end;
            map_patches_tile(scanner->patches, x, y, &begin, &end);
            for (size_t i = begin; i < end; i++)
                visit_patch(scanner, &scanner->patches->items[i], &T_sensor_map, visit, context);
        }
}

/* A sample hides what lies behind its surroundings: samples are up to half a metre apart. */
static void hide(void *context, const double point_m[3], double range_m, int column, int row)
{
    float *depth_m = context;
    const int reach = (int)fmin(atan(HALF_SPACING_M / range_m) * DEG, SPLAT_MAX);
    (void)point_m;
    for (int y = row - reach < 0 ? 0 : row - reach; y <= row + reach && y < ROWS; y++)
        for (int x = column - reach; x <= column + reach; x++) {
            float *at_m = &depth_m[y * COLUMNS + (x + COLUMNS) % COLUMNS];
            *at_m = fminf(*at_m, (float)range_m);
        }
}

struct collecting {
    const struct map_scanner *scanner;
    struct ndt_cloud *scan; /* NULL: only counts */
    struct ndt_random random;
    size_t seen, every;
};

static void collect(void *context, const double point_m[3], double range_m, int column, int row)
{
    struct collecting *collecting = context;
    const double depth_m = (double)collecting->scanner->depth_m[row * COLUMNS + column];
    if (range_m > depth_m + MARGIN_M + MARGIN_PART * depth_m || collecting->seen++ % collecting->every != 0 ||
        !collecting->scan)
        return;
    struct ndt_cloud *scan = collecting->scan;
    const double part = 1 + collecting->scanner->noise_m * ndt_random_normal(&collecting->random) / range_m;
    scan->x_m[scan->count] = (float)(part * point_m[0]);
    scan->y_m[scan->count] = (float)(part * point_m[1]);
    scan->z_m[scan->count] = (float)(part * point_m[2]);
    scan->count++;
}

enum ndt_status map_scanner_scan(struct map_scanner *scanner, const struct ndt_pose *T_map_sensor, uint64_t seed,
                                 struct ndt_cloud *scan, struct ndt_error *err)
{
    struct collecting collecting = {.scanner = scanner, .every = 1};
    for (int i = 0; i < COLUMNS * ROWS; i++)
        scanner->depth_m[i] = INFINITY;
    visit_all(scanner, T_map_sensor, hide, scanner->depth_m);
    visit_all(scanner, T_map_sensor, collect, &collecting);
    const size_t seen = collecting.seen;
    collecting = (struct collecting){.scanner = scanner, .scan = scan, .every = seen / scanner->limit + 1};
    collecting.random = ndt_random_stream(seed, 0, 0);
    scan->count = 0;
    const enum ndt_status status = ndt_cloud_reserve(scan, scanner->limit + 1, 0, err);
    if (status == NDT_OK)
        visit_all(scanner, T_map_sensor, collect, &collecting);
    return status;
}
