/* Measures on the map in use what every way of computing takes here: whole alignments of one scan from starts that
 * are off as they are while tracking, each way in turns, workers asleep before each as they are when a scan
 * arrives.
 *
 * The ways follow from the tables: backend.name auto stands for the CPU with 1, 2, 3, 4, 6, 8 ... threads up to the
 * cores there are (autotune.max_threads; cpu.threads leaves only that one) and for every pipeline in
 * ndt_backend_ops.pipelines of every other backend whose probe succeeds (cuda.pipeline leaves only that one); a
 * backend with a name stands for itself. The reference backend is never among those of auto.
 *
 * One thread; allocates. The calling thread's cores and priority are those that are measured. */
#ifndef NDTD_AUTOTUNE_H
#define NDTD_AUTOTUNE_H

#include "ndtd/autotune_result.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps measurements out of the way of scans; all may be NULL. */
struct ndtd_autotune_gate {
    void *context;
    /* Returns when an alignment of about so long disturbs nobody; a failure ends the calibration. */
    enum ndt_status (*wait)(void *context, double expected_us, struct ndt_error *err);
    /* Whether somebody else worked since `wait` returned: then that alignment does not count. */
    int (*was_disturbed)(void *context);
};

struct ndtd_autotune_request {
    const struct ndtd_settings *settings;
    struct ndt_map *map;
    const struct ndt_cloud
        *scan; /* preprocessed, sensor frame; NULL: one is drawn from the map, see probe_scan.h */
    struct ndt_pose T_map_sensor; /* where it was taken */
    size_t points;                /* of a drawn one; 0: ndtd_autotune_points */
    double time_us;               /* the measuring ends soon after this time */
    size_t samples;               /* alignments per way; 0: 250, and 15 where there is only one way */
    struct ndtd_autotune_gate gate;
};

/* preprocess.sample_count, or 10000 where all points are taken: their number is not known before the first scan. */
size_t ndtd_autotune_points(const struct ndtd_settings *settings);
/* The ways that the settings leave open; returns how many. */
size_t ndtd_autotune_candidates(const struct ndtd_settings *settings,
                                struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS]);
/* The backend's table, and `config` completed for this way; NULL: there is no such backend or pipeline. */
const struct ndt_backend_ops *ndtd_backend_candidate_config(const struct ndtd_backend_candidate *candidate,
                                                            struct ndt_backend_config *config);
/* A way that fails has a row that says why. Failures: no memory, no voxels, the gate. */
NDT_MUST_CHECK enum ndt_status ndtd_autotune(const struct ndtd_autotune_request *request,
                                             struct ndtd_autotune_result *out, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
