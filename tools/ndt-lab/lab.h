/* ndt-lab: one experiment at a time, as A against B in one run. Prints lines of CSV that tools/lab collects:
 *     experiment,case,variant,role,unit,samples
 * role: `base` (what the others are compared with; one per case), `variant`, `fact` (a number that is no
 * comparison) or `curve` (case: name of the series, variant: x). samples: one number per repetition, separated by
 * blanks; the k-th sample of the variants of a case were measured right after each other. */
#ifndef LAB_H
#define LAB_H

#include <stdint.h>

#include "bench_input.h"
#include "ndt/align.h"
#include "ndt/map.h"
#include "ndtd/settings.h"

enum { LAB_MAX_VARIANTS = 16, LAB_MAX_REPETITIONS = 101 };

struct lab {
    struct ndtd_settings settings;
    const char *bag;     /* NULL: none */
    const char *backend; /* of `batch` */
    const char *folder;  /* scratch space of `tiles`; NULL: those are left out */
    uint64_t seed;
    int repetitions;
    int quick; /* small sizes: only to see that it runs */
};

struct lab_experiment {
    const char *name;
    enum ndt_status (*run)(const struct lab *lab, struct ndt_error *err);
};
/* The table, ending with name NULL. */
extern const struct lab_experiment lab_experiments[];

enum ndt_status lab_vector_width(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_threads(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_spin(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_pinning(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_batch(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_chunking(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_prefetch(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_order(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_lists(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_layout(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_accumulation(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_fusing(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_huge_pages(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_solve(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_tiles(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_cost(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_roofline(const struct lab *lab, struct ndt_error *err);
enum ndt_status lab_count(const struct lab *lab, struct ndt_error *err);

/* ---- comparing ---- */

/* What is compared, the base first. `measure` gives the time of variant `variant` in `unit`; the same `repetition`
 * means the same work. Below 0: it could not be measured, and is left out. */
struct lab_comparison {
    const char *experiment, *what, *unit;
    const char *names[LAB_MAX_VARIANTS];
    int count;
    double (*measure)(void *context, int variant, int repetition);
    void *context;
};
/* Once each to warm up, then all in turn, in another seeded order in every repetition. */
void lab_compare(const struct lab *lab, const struct lab_comparison *comparison);
void lab_print(const char *experiment, const char *what, const char *variant, const char *role, const char *unit,
               const double *samples, int count);
void lab_fact(const char *experiment, const char *what, const char *name, const char *unit, double value);
/* 0 .. 2^64 - 1 (splitmix64), and 0 .. 1. */
uint64_t lab_random(uint64_t *state);
double lab_uniform(uint64_t *state);
/* Sorts the values. */
double lab_median(double *values, int count);

/* ---- what is matched ---- */

struct lab_scene {
    struct bench_input input;
    struct bench_filtered scans;
    struct ndt_map *map;
};
/* Scans of the bag, filtered to so many points, and the map. `scene` is zeroed; close it also after a failure. */
NDT_MUST_CHECK enum ndt_status lab_scene_open(struct lab_scene *scene, const struct lab *lab, uint32_t points,
                                              struct ndt_error *err);
void lab_scene_close(struct lab_scene *scene);

/* A made-up hilly floor for sizes that no recording has: on it, one voxel per 2 m cell. Its points, side_m wide
 * around the origin; a map of one level of 2 m from them; both at once. */
NDT_MUST_CHECK enum ndt_status lab_world_cloud(struct ndt_cloud *out, double side_m, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status lab_world_build(struct ndt_map **out, const struct ndt_cloud *cloud,
                                               struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status lab_world_map(struct ndt_map **out, double side_m, struct ndt_error *err);
/* Points on the floor within radius_m of a sensor above (x, y), sensor frame. */
NDT_MUST_CHECK enum ndt_status lab_world_scan(struct ndt_cloud *out, size_t points, const double at_m[2],
                                              double radius_m, uint64_t seed, struct ndt_error *err);
struct ndt_pose lab_world_pose(const double at_m[2]);
double lab_world_height_m(double x_m, double y_m);

#endif
