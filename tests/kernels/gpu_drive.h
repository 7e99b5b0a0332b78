/* A synthetic drive along a street, scan by scan from the pose before, on the CPU backend and on every pipeline of
 * every backend on a device: each has to give the CPU's trajectory within 1 mm and 0.01 deg, and the same hash in
 * two runs. Needs the core and the backends only. */
#ifndef GPU_DRIVE_H
#define GPU_DRIVE_H

#include <stdint.h>
#include <stdio.h>

#include "ndt/align.h"

enum { GPU_DRIVE_CANDIDATES = 16, GPU_DRIVE_SCANS = 100 };

struct gpu_drive_candidate {
    char name[64];   /* "cpu", "cuda staged" */
    char about[256]; /* as the backend describes itself */
    int is_here, is_good;
    struct ndt_error why; /* when it is not here, or failed on the way */
    struct ndt_pose poses[GPU_DRIVE_SCANS];
    uint64_t hash, hash_again;
    double most_m, most_deg; /* away from the CPU's poses */
    double align_us;         /* median of a whole alignment */
    double iteration_us;     /* median of an iteration: its evaluations and the step */
    double evaluations;      /* mean per alignment */
};
struct gpu_drive {
    size_t scans, points;
    int threads; /* of the CPU backend; 0 as its own choice */
    struct ndt_map *map;
    struct ndt_cloud clouds[GPU_DRIVE_SCANS];
    struct ndt_pose start;
    struct gpu_drive_candidate candidates[GPU_DRIVE_CANDIDATES];
    size_t candidate_count;
};

/* The map is there before; the scans are made anew for each number of points. */
NDT_MUST_CHECK enum ndt_status gpu_drive_map(struct ndt_map **out, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status gpu_drive_scan(struct ndt_cloud *out, struct ndt_pose *T_map_sensor, size_t number,
                                              size_t points, struct ndt_error *err);
/* scans, points, threads and map are given; what failed on one way stands there. */
NDT_MUST_CHECK enum ndt_status gpu_drive_run(struct gpu_drive *drive, struct ndt_error *err);
void gpu_drive_free(struct gpu_drive *drive); /* not the map */
void gpu_drive_markdown(const struct gpu_drive *drives, size_t count, FILE *file);
/* An array. */
void gpu_drive_json(const struct gpu_drive *drives, size_t count, FILE *file);
/* Ways on a device that were driven; *bad: those, and the CPU's, that were no good. */
size_t gpu_drive_assess(const struct gpu_drive *drives, size_t count, size_t *bad);

#endif
