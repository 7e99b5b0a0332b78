/* What a compute backend must offer: five functions. Newton's method exists once, above `eval`.
 *
 * A backend evaluates the NDT score of a scan at a pose against one level of a map, with first and second
 * derivatives (Magnusson 2009, eq. 6.9-6.13), as 31 sums in double.
 *
 * Threads: a backend is used by one thread at a time. Determinism: the same backend on the same machine
 * gives bit-equal sums for the same inputs, for any number of worker threads. After set_scan has seen
 * its largest scan nothing allocates. */
#ifndef NDT_BACKEND_H
#define NDT_BACKEND_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ndt/cloud.h"
#include "ndt/eval.h"
#include "ndt/preprocess_plan.h"
#include "ndt/map.h"
#include "ndt/newton.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndt_backend_config {
    int threads;       /* 0: min(cores, 4) */
    double spin_us;    /* how long idle workers spin before they sleep; default 100 */
    int pin_threads;   /* 1: worker i stays on the i-th allowed core */
    const char *isa;   /* "auto", "baseline", "avx2", "avx512", "neon"; NULL = $NDT_CPU_ISA, else auto */
    size_t max_points; /* scans beyond are refused with NDT_ERR_LIMIT; default 1 << 20 */
    /* Backends on devices only. */
    const char *pipeline; /* one of ops->pipelines; NULL or "auto": the first */
    int device;           /* index, 0 .. */
    int preprocess;       /* 1: with memory for `front`, where the pipeline has searches; else without */
};

void ndt_backend_config_default(struct ndt_backend_config *config);

/* What evaluations cost besides time; counted, not claimed. */
struct ndt_backend_counters {
    uint64_t evaluations;
    uint64_t h2d_bytes, d2h_bytes, launches, synchronisations, allocations;
    uint64_t h2d_copies, d2h_copies;
    double kernel_us; /* time on the device; for the CPU equal to the wall time of eval */
};

/* What an evaluation on a device costs without its work; medians [us], each with the wait for it. */
struct ndt_overheads {
    double copies_us;      /* 24 bytes up, the sums down */
    double launch_us;      /* one kernel that does nothing, started and waited for */
    double queue_us;       /* the part of it that the host spends to queue the kernel */
    double synchronise_us; /* a wait when there is nothing to wait for */
};

/* One search of a call to `search`: what it starts from, and what came of it. */
struct ndt_solve_item {
    uint32_t scan;            /* number of it in the last set_scans */
    int32_t row_capacity;     /* of `rows`; 0: not wanted */
    int32_t row_count;        /* out: how many were written; a device may keep fewer than there were */
    struct ndt_newton newton; /* in: guess, R0 and levers; out: the answer */
    double coverage;          /* out; see struct ndt_scores */
    uint32_t points;          /* out: of the scan */
    struct ndt_newton_row *rows;
};

struct ndt_backend; /* each backend's own; starts with a pointer to its ops */

struct ndt_backend_ops {
    const char *name;
    const char *about; /* one line */
    /* NDT_OK, or NDT_ERR_UNSUPPORTED and one line why not. */
    enum ndt_status (*probe)(struct ndt_error *why);
    enum ndt_status (*open)(struct ndt_backend **out, const struct ndt_backend_config *config,
                            struct ndt_error *err);
    void (*close)(struct ndt_backend *backend);
    /* Keeps a reference to the map until the next one or close. After NDT_ERR_LIMIT the map before stays. */
    enum ndt_status (*set_map)(struct ndt_backend *backend, struct ndt_map *map, struct ndt_error *err);
    /* Copies the points (count, x_m, y_m, z_m; the cloud's origin is ignored). Non-finite points match nothing. */
    enum ndt_status (*set_scan)(struct ndt_backend *backend, const struct ndt_cloud *scan, struct ndt_error *err);
    enum ndt_status (*eval)(struct ndt_backend *backend, const struct ndt_eval_request *request,
                            struct ndt_eval *out, struct ndt_error *err);
    /* Optional from here on. */
    void (*counters)(const struct ndt_backend *backend, struct ndt_backend_counters *out);
    /* One line: variant, threads, device. */
    void (*describe)(const struct ndt_backend *backend, char *text, size_t size);
    /* Names for config->pipeline, the default first, NULL after the last. */
    const char *const *pipelines;
    /* What would be allocated for this configuration, in lines. Needs no open backend and no device. */
    void (*plan)(const struct ndt_backend_config *config, char *text, size_t size);
    /* Evaluates and writes what lies between points and sums, one line of CSV per point. NDT_ERR_UNSUPPORTED where
     * the pipeline keeps nothing; whether the file took it is for the caller to see. */
    enum ndt_status (*dump)(struct ndt_backend *backend, const struct ndt_eval_request *request, FILE *file,
                            struct ndt_error *err);
    /* Whole searches without the host between evaluations, for pipelines that keep them on the device. Together or
     * not at all; solve_limit says whether the backend, as it was opened, has them.
     *
     * Most searches that one call takes; 0: none. */
    size_t (*solve_limit)(const struct ndt_backend *backend);
    /* In place of set_scan: scans 0 .. count - 1 as they came from the sensor; a search turns its own by newton.R0.
     * Copies the points. NDT_ERR_LIMIT: together more than config.max_points, each rounded up to whole blocks. */
    enum ndt_status (*set_scans)(struct ndt_backend *backend, const struct ndt_cloud *const *scans, size_t count,
                                 struct ndt_error *err);
    /* Runs all of them at once; each comes out bit for bit as if it had been alone. until_us: by ndt_clock_us, when
     * those that are not done give up; 0: never. A scan without points ends as off the map. NDT_ERR_UNSUPPORTED:
     * look at solve_limit again, the device was lost and replaced. */
    enum ndt_status (*solve)(struct ndt_backend *backend, const struct ndt_newton_rules *rules,
                             struct ndt_solve_item *items, size_t count, double until_us, struct ndt_error *err);
    /* Preprocessing without the host. Together or not at all, and only beside `search`.
     *
     * Most raw points that `front` takes; 0: the backend, as it was opened, has none. */
    size_t (*preprocess_limit)(const struct ndt_backend *backend);
    /* In place of set_scans: scan 0 becomes what ndt_preprocess would have made of `raw`, bit for bit. Copies the
     * points. Does not wait: how many points are left, and with them the levers of the searches
     * (newton.rotation_scale_m and inverse_rotation_scale of items that follow are not read), is known to the
     * device only and comes back with the search. For `search` only: `eval` sees a scan without points.
     * NDT_ERR_LIMIT: more than preprocess_limit; NDT_ERR_UNSUPPORTED: look at preprocess_limit again. */
    enum ndt_status (*preprocess)(struct ndt_backend *backend, const struct ndt_preprocess_plan *plan,
                                  const struct ndt_cloud *raw, struct ndt_error *err);
    /* The points of the last `front` as ndt_preprocess_again would move them; `front` went through
     * ndt_front_set_again. NDT_ERR_UNSUPPORTED: there are none, or the device was lost and with it those. */
    enum ndt_status (*preprocess_again)(struct ndt_backend *backend, const struct ndt_preprocess_plan *plan,
                                        struct ndt_error *err);
    /* Measures over so many rounds; counts them in the counters as well. */
    enum ndt_status (*overheads)(struct ndt_backend *backend, int rounds, struct ndt_overheads *out,
                                 struct ndt_error *err);
    /* set_map without waiting, for maps that come while scans are matched: begins or goes on with the upload of
     * `map`, a bounded part of it per call, and returns; call it with the same map between scans until *taken is 1.
     * Until then everything is computed on the map before, from then on with the results that set_map would have
     * led to. Holds a reference meanwhile. Another map than the last offered one, or set_map, ends what was on its
     * way; NULL or the map in use is taken at once. Allocates when the map is larger than those before. Both maps
     * have to fit on the device: where they do not, it says so once on stderr and does what set_map does, the old
     * map first. After an error the offer is forgotten and errors are those of set_map; *taken is 0 then. */
    enum ndt_status (*set_map_async)(struct ndt_backend *backend, struct ndt_map *map, int *taken,
                                     struct ndt_error *err);
};

struct ndt_backend {
    const struct ndt_backend_ops *ops;
};

/* Backends of the core library. */
extern const struct ndt_backend_ops ndt_cpu_backend;       /* float, SIMD, threads */
extern const struct ndt_backend_ops ndt_reference_backend; /* plain double, one thread, slow: the truth for tests */

/* Comma-separated CPU variants compiled in and runnable here, such as "baseline,avx2,avx512". */
void ndt_cpu_variants(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
