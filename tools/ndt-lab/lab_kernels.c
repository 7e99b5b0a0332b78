/* Experiments on one evaluation: the product's kernel against others on the same scans and map. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lab_view.h"
#include "ndt/clock.h"

enum { SIZES = 2 };
static const double LEAF_M = 2;
static const size_t HUGE = (size_t)2 << 20;

static uint32_t size_of(const struct lab *lab, int i)
{
    static const uint32_t sizes[SIZES] = {1500, 5000};
    return lab->quick ? 300 : sizes[i];
}

/* Kernels that take turns: either a changed whole, or a part. */
struct contest {
    const struct lab_view *view;
    const struct lab_isa *isa;
    lab_chunk_fn *whole[2];
    enum lab_kernel part[2];
    int cold;
};

static double measure_contest(void *context, int variant, int repetition)
{
    const struct contest *it = context;
    (void)repetition;
    if (it->cold)
        return lab_view_cold_us(it->view, it->whole[variant]);
    return it->whole[variant] ? lab_view_time_us(it->view, it->whole[variant])
                              : lab_view_part_us(it->view, it->isa->part, it->part[variant]);
}

/* A variant that finds other sums than the product would be no variant. */
static enum ndt_status check_sums(const struct contest *it, double tolerance, struct ndt_error *err)
{
    double sums[2][NDT_SUM_COUNT];
    for (size_t i = 0; i < it->view->count; i++) {
        for (int v = 0; v < 2; v++) {
            if (it->whole[v])
                lab_view_sums(it->view, i, it->whole[v], sums[v]);
            else
                lab_view_part_sums(it->view, i, it->isa->part, it->part[v], sums[v]);
        }
        const double off = fabs(sums[1][NDT_SUM_SCORE] / sums[0][NDT_SUM_SCORE] - 1);
        if (!(off <= tolerance) || sums[0][NDT_SUM_PAIRS] != sums[1][NDT_SUM_PAIRS])
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the variants do not agree: score off by %g, pairs %g and %g",
                            off, sums[0][NDT_SUM_PAIRS], sums[1][NDT_SUM_PAIRS]);
    }
    return NDT_OK;
}

static enum ndt_status compare_view(const struct lab *lab, struct contest *it, const char *experiment,
                                    const char *what, const char *base, const char *variant, double tolerance,
                                    struct ndt_error *err)
{
    it->isa = lab_isa_best();
    if (!it->isa)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "no CPU variant of the lab runs here");
    enum ndt_status status = check_sums(it, tolerance, err);
    if (status == NDT_OK)
        lab_compare(lab, &(struct lab_comparison){.experiment = experiment,
                                                  .what = what,
                                                  .unit = "us/evaluation",
                                                  .names = {base, variant},
                                                  .count = 2,
                                                  .measure = measure_contest,
                                                  .context = it});
    return status;
}

/* On the scans of the bag. */
static enum ndt_status compare_scene(const struct lab *lab, struct contest *it, const char *experiment,
                                     enum ndt_neighbours neighbours, const char *base, const char *variant,
                                     double tolerance, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < SIZES; i++) {
        struct lab_scene scene;
        struct lab_view view = {0};
        char what[64];
        snprintf(what, sizeof(what), "%u points%s", size_of(lab, i), it->cold ? "; cold caches" : "");
        status = lab_scene_open(&scene, lab, size_of(lab, i), err);
        if (status == NDT_OK)
            status = lab_view_of_scene(&view, &scene, LEAF_M, neighbours, err);
        if (status == NDT_OK)
            status = lab_view_prepare(&view, err);
        it->view = &view;
        if (status == NDT_OK)
            status = compare_view(lab, it, experiment, what, base, variant, tolerance, err);
        lab_view_close(&view);
        lab_scene_close(&scene);
        if (lab->quick)
            break;
    }
    return status;
}

/* On a made-up map too large for the caches. */
static enum ndt_status compare_wide(const struct lab *lab, struct contest *it, const char *experiment,
                                    const char *base, const char *variant, struct ndt_error *err)
{
    const double side_m = lab->quick ? 120 : 600;
    struct ndt_map *map;
    struct lab_view view = {0};
    enum ndt_status status = lab_world_map(&map, side_m, err);
    if (status == NDT_OK)
        status = lab_view_of_world(&view, map, side_m, size_of(lab, 1), lab->quick ? 30 : 100, lab->seed, err);
    if (status == NDT_OK) {
        char what[64];
        snprintf(what, sizeof(what), "%u points on %u voxels%s", size_of(lab, 1), map->levels[0].voxel_count,
                 it->cold ? "; cold caches" : "");
        it->view = &view;
        status = compare_view(lab, it, experiment, what, base, variant, 0, err);
    }
    lab_view_close(&view);
    ndt_map_release(map);
    return status;
}

enum ndt_status lab_prefetch(const struct lab *lab, struct ndt_error *err)
{
    const struct lab_isa *isa = lab_isa_best();
    struct contest it = {.whole = {isa ? isa->unfetched : NULL, isa ? isa->whole : NULL}};
    enum ndt_status status = NDT_OK;
    for (it.cold = 0; status == NDT_OK && it.cold < 2; it.cold++) {
        status = compare_scene(lab, &it, "prefetch", NDT_RADIUS, "without", "lists prefetched", 0, err);
        if (status == NDT_OK)
            status = compare_wide(lab, &it, "prefetch", "without", "lists prefetched", err);
    }
    return status;
}

enum ndt_status lab_fusing(const struct lab *lab, struct ndt_error *err)
{
    const struct lab_isa *isa = lab_isa_best();
    struct contest it = {.whole = {isa ? isa->apart : NULL, isa ? isa->whole : NULL}};
    return compare_scene(lab, &it, "fusing", NDT_RADIUS, "multiplied and added apart", "fused in all variants",
                         1e-4, err);
}

enum ndt_status lab_lists(const struct lab *lab, struct ndt_error *err)
{
    struct contest it = {.part = {LAB_PROBED, LAB_WHOLE}};
    return compare_scene(lab, &it, "lists", NDT_DIRECT7, "seven look-ups per point", "neighbour lists", 1e-4, err);
}

enum ndt_status lab_layout(const struct lab *lab, struct ndt_error *err)
{
    struct contest it = {.part = {LAB_COLUMNS, LAB_WHOLE}};
    return compare_scene(lab, &it, "layout", NDT_RADIUS, "structure of arrays (gathered)", "array of structures", 0,
                         err);
}

enum ndt_status lab_accumulation(const struct lab *lab, struct ndt_error *err)
{
    struct contest it = {.part = {LAB_DOUBLE, LAB_WHOLE}};
    return compare_scene(lab, &it, "accumulation", NDT_RADIUS, "double over points", "float in chunks of 128", 1e-4,
                         err);
}

/* ---- order of points ---- */

struct keyed {
    uint64_t key;
    uint32_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static uint64_t spread_bits(uint64_t v)
{
    uint64_t out = 0;
    for (int bit = 0; bit < 20; bit++)
        out |= (v >> bit & 1) << (3 * bit);
    return out;
}

/* Morton number of the cell a point falls into when it is matched at the true pose. */
static uint64_t morton(const struct ndt_wide_job *job, size_t i)
{
    uint64_t key = 0;
    for (int k = 0; k < 3; k++) {
        const double near_m = (double)job->R[3 * k] * (double)job->x_m[i] +
                              (double)job->R[3 * k + 1] * (double)job->y_m[i] +
                              (double)job->R[3 * k + 2] * (double)job->z_m[i] + (double)job->t_m[k];
        const int64_t cell = (int64_t)floor(near_m / job->level->leaf_m) + job->near_cell[k] + (1 << 19);
        key |= spread_bits((uint64_t)cell & 0xfffff) << k;
    }
    return key;
}

enum { AS_SAMPLED, SHUFFLED, SORTED, SORTED_EACH_SCAN, ORDERS };

/* Time to sort counts where `took_us` is asked for. */
static enum ndt_status reorder(struct lab_view *view, int order, uint64_t seed, double *took_us,
                               struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    uint64_t state = seed;
    const double start_us = ndt_clock_us();
    for (size_t s = 0; status == NDT_OK && s < view->count; s++) {
        struct ndt_cloud *cloud = &view->clouds[s], copy;
        struct keyed *keys = malloc((cloud->count + 1) * sizeof(*keys));
        ndt_cloud_init(&copy);
        status = keys ? ndt_cloud_copy(&copy, cloud, err) : ndt_fail(err, NDT_ERR_MEMORY, "no memory for keys");
        for (size_t i = 0; status == NDT_OK && i < cloud->count; i++)
            keys[i] = (struct keyed){order == SHUFFLED ? lab_random(&state) : morton(&view->jobs[s].wide, i),
                                     (uint32_t)i};
        if (status == NDT_OK)
            qsort(keys, cloud->count, sizeof(*keys), by_key);
        for (size_t i = 0; status == NDT_OK && i < cloud->count; i++) {
            cloud->x_m[i] = copy.x_m[keys[i].index];
            cloud->y_m[i] = copy.y_m[keys[i].index];
            cloud->z_m[i] = copy.z_m[keys[i].index];
        }
        ndt_cloud_free(&copy);
        free(keys);
    }
    if (took_us)
        *took_us = (ndt_clock_us() - start_us) / (double)(view->count ? view->count : 1);
    return status;
}

struct order_contest {
    struct lab_view views[SORTED + 1];
    double sort_us;
    const struct lab_isa *isa;
};

/* Of ten evaluations, as many as a scan takes. */
static double measure_order(void *context, int variant, int repetition)
{
    const struct order_contest *it = context;
    (void)repetition;
    const int view = variant < SORTED ? variant : SORTED;
    return 10 * lab_view_time_us(&it->views[view], it->isa->whole) +
           (variant == SORTED_EACH_SCAN ? it->sort_us : 0);
}

static enum ndt_status compare_orders(const struct lab *lab, struct order_contest *it, const char *what,
                                      struct ndt_error *err)
{
    it->isa = lab_isa_best();
    if (!it->isa)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "no CPU variant of the lab runs here");
    enum ndt_status status = reorder(&it->views[SHUFFLED], SHUFFLED, lab->seed, NULL, err);
    if (status == NDT_OK)
        status = reorder(&it->views[SORTED], SORTED, 0, &it->sort_us, err);
    if (status == NDT_OK)
        lab_compare(lab,
                    &(struct lab_comparison){.experiment = "order",
                                             .what = what,
                                             .unit = "us/10 evaluations",
                                             .names = {"as sampled", "shuffled", "by cell (Morton; sorting free)",
                                                       "by cell (sorted each scan)"},
                                             .count = ORDERS,
                                             .measure = measure_order,
                                             .context = it});
    return status;
}

enum ndt_status lab_order(const struct lab *lab, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < SIZES; i++) {
        struct lab_scene scene;
        static struct order_contest it;
        char what[64];
        memset(&it, 0, sizeof(it));
        snprintf(what, sizeof(what), "%u points", size_of(lab, i));
        status = lab_scene_open(&scene, lab, size_of(lab, i), err);
        for (int v = 0; status == NDT_OK && v <= SORTED; v++)
            status = lab_view_of_scene(&it.views[v], &scene, LEAF_M, NDT_RADIUS, err);
        if (status == NDT_OK)
            status = compare_orders(lab, &it, what, err);
        for (int v = 0; v <= SORTED; v++)
            lab_view_close(&it.views[v]);
        lab_scene_close(&scene);
        if (lab->quick)
            break;
    }
    return status;
}

/* ---- huge pages ---- */

struct page_copy {
    void *memory;
    size_t bytes;
    struct ndt_map_level level;
};

static const void *take(char **at, const void *from, size_t bytes)
{
    void *to = *at;
    memcpy(to, from, bytes);
    *at += (bytes + 63) / 64 * 64;
    return to;
}

/* The level once more, in memory of its own with that advice. */
static enum ndt_status copy_level(struct page_copy *copy, const struct ndt_map_level *from, int advice,
                                  struct ndt_error *err)
{
    const size_t voxels = from->voxel_count * sizeof(*from->voxels), bricks = from->brick_slots * sizeof(uint32_t);
    const size_t cells = (size_t)from->brick_count * 512 * sizeof(*from->cells);
    const size_t lists = from->list_words * sizeof(uint32_t);
    copy->bytes = voxels + bricks + cells + lists + 4 * 64 + 2 * HUGE;
    copy->memory = mmap(NULL, copy->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy->memory == MAP_FAILED)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a second copy of the map");
    char *at = (char *)(((uintptr_t)copy->memory + HUGE - 1) / HUGE * HUGE);
    if (madvise(at, copy->bytes - HUGE, advice) != 0)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "this system has no transparent huge pages");
    copy->level = *from;
    copy->level.voxels = take(&at, from->voxels, voxels);
    copy->level.bricks = take(&at, from->bricks, bricks);
    copy->level.cells = take(&at, from->cells, cells);
    copy->level.lists = take(&at, from->lists, lists);
    return NDT_OK;
}

/* Of this process, MiB. */
static double huge_mib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = 0;
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "AnonHugePages: %lf", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib / 1024;
}

struct page_contest {
    struct lab_view views[2];
    const struct lab_isa *isa;
};

static double measure_pages(void *context, int variant, int repetition)
{
    const struct page_contest *it = context;
    (void)repetition;
    return lab_view_time_us(&it->views[variant], it->isa->whole);
}

static enum ndt_status compare_pages(const struct lab *lab, struct page_contest *it,
                                     const struct ndt_map_level *level, size_t points, struct ndt_error *err)
{
    struct page_copy copies[2] = {{0}};
    char what[64];
    enum ndt_status status = copy_level(&copies[0], level, MADV_NOHUGEPAGE, err);
    const double before = huge_mib();
    if (status == NDT_OK)
        status = copy_level(&copies[1], level, MADV_HUGEPAGE, err);
    snprintf(what, sizeof(what), "%zu points on %u voxels", points, level->voxel_count);
    if (status == NDT_OK) {
        lab_fact("huge-pages", what, "given by the kernel", "MiB", huge_mib() - before);
        lab_fact("huge-pages", what, "asked for", "MiB", (double)copies[1].bytes / 1048576);
        for (int v = 0; v < 2; v++)
            for (size_t i = 0; i < it->views[v].count; i++)
                it->views[v].jobs[i].wide.level = &copies[v].level;
        lab_compare(lab, &(struct lab_comparison){.experiment = "huge-pages",
                                                  .what = what,
                                                  .unit = "us/evaluation",
                                                  .names = {"pages of 4 KiB", "huge pages"},
                                                  .count = 2,
                                                  .measure = measure_pages,
                                                  .context = it});
    }
    for (int v = 0; v < 2; v++)
        if (copies[v].memory && copies[v].memory != MAP_FAILED)
            munmap(copies[v].memory, copies[v].bytes);
    return status;
}

enum ndt_status lab_huge_pages(const struct lab *lab, struct ndt_error *err)
{
    static const double sides_m[2] = {120, 700};
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < (lab->quick ? 1 : 2); i++) {
        struct ndt_map *map;
        static struct page_contest it;
        it = (struct page_contest){.isa = lab_isa_best()};
        status = it.isa ? lab_world_map(&map, sides_m[i], err)
                        : ndt_fail(err, NDT_ERR_UNSUPPORTED, "no CPU variant of the lab runs here");
        for (int v = 0; status == NDT_OK && v < 2; v++)
            status = lab_view_of_world(&it.views[v], map, sides_m[i], size_of(lab, 1), 50, lab->seed, err);
        if (status == NDT_OK)
            status = compare_pages(lab, &it, &map->levels[0], size_of(lab, 1), err);
        for (int v = 0; v < 2; v++)
            lab_view_close(&it.views[v]);
        if (it.isa)
            ndt_map_release(map);
    }
    return status;
}
