/* Everything that can be set, in one struct, filled by the option table (options.h). */
#ifndef NDTD_SETTINGS_H
#define NDTD_SETTINGS_H

#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndt/preprocess.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_PATH_MAX 1024

struct ndtd_settings {
    char backend[32];                 /* backend.name: auto, cpu, reference, cuda */
    struct ndt_backend_config compute; /* cpu.threads, cpu.spin_us, cpu.pin_threads, cpu.isa, cuda.* */
    char isa[16];                     /* cpu.isa as written; compute.isa follows from it */
    char cuda_pipeline[16];           /* cuda.pipeline as written; compute.pipeline follows from it */
    struct ndt_map_config map;        /* ndt.covariance, ndt.min_points ...; leaves follow ndt.levels */
    char map_path[NDTD_PATH_MAX];     /* map.path */
    struct ndt_align_params align;    /* ndt.* */
    /* ndt.neighbours as written, from coarse to fine; spread over align.levels at the end */
    enum ndt_neighbours neighbours[NDT_MAX_LEVELS];
    size_t neighbours_count;
    struct ndt_preprocess_params preprocess; /* preprocess.* */
    int deskew_passes;                /* preprocess.deskew_passes: 1 or 2 */
    int has_initial_pose;             /* initial_pose: given */
    double initial_pose[7];           /* x y z qx qy qz qw */
    double max_prediction_s;          /* tracker.max_prediction_s: longer gaps keep the last pose without motion */
};

#ifdef __cplusplus
}
#endif
#endif
