/* Evaluations by the lab's own kernels: scans at their true poses on one level of a map. */
#ifndef LAB_VIEW_H
#define LAB_VIEW_H

#include "lab.h"
#include "lab_kernel.h"

enum { LAB_VIEW_SCANS = 16 };

struct lab_view {
    size_t count;
    struct lab_job jobs[LAB_VIEW_SCANS];
    struct ndt_cloud clouds[LAB_VIEW_SCANS]; /* own, so that their order can be changed */
    float *columns;
    uint32_t *own;
};

/* On the level with edges of leaf_m. `view` is zeroed; close it also after a failure. Keeps no reference to the
 * map. */
NDT_MUST_CHECK enum ndt_status lab_view_of_scene(struct lab_view *view, const struct lab_scene *scene,
                                                 double leaf_m, enum ndt_neighbours neighbours,
                                                 struct ndt_error *err);
/* Scans of the made-up world along its diagonal. */
NDT_MUST_CHECK enum ndt_status lab_view_of_world(struct lab_view *view, const struct ndt_map *map, double side_m,
                                                 size_t points, double radius_m, uint64_t seed,
                                                 struct ndt_error *err);
/* What LAB_COLUMNS and LAB_PROBED need. */
NDT_MUST_CHECK enum ndt_status lab_view_prepare(struct lab_view *view, struct ndt_error *err);
void lab_view_close(struct lab_view *view);

/* Microseconds per evaluation: the quickest of three passes over the scans. */
double lab_view_time_us(const struct lab_view *view, lab_chunk_fn *chunk);
/* The same, each evaluation with caches that hold something else, as after 100 ms of other programs; one pass. */
double lab_view_cold_us(const struct lab_view *view, lab_chunk_fn *chunk);
double lab_view_part_us(const struct lab_view *view, lab_part_fn *part, enum lab_kernel kernel);
/* Sums of scan `i`, NDT_SUM_COUNT of them. */
void lab_view_sums(const struct lab_view *view, size_t i, lab_chunk_fn *chunk, double *sums);
void lab_view_part_sums(const struct lab_view *view, size_t i, lab_part_fn *part, enum lab_kernel kernel,
                        double *sums);

#endif
