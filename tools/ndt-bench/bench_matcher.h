/* One way to match: settings with a backend, an aligner and a map. */
#ifndef BENCH_MATCHER_H
#define BENCH_MATCHER_H

#include "bench_maps.h"
#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndtd/settings.h"

struct bench_matcher {
    struct ndtd_settings settings;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_map *map; /* borrowed from bench_maps */
};

/* What differs from the settings of the command line; NULL: as they are. `levels` is "4-2-1", the others are
 * words of ndtd's options. `backend` may be BACKEND:PIPELINE. */
struct bench_choice {
    const char *variant, *levels, *neighbours, *backend, *threads;
};
/* The variant autoware brings one level of 2 m, radius and seeded covariances where the choice names none. */
NDT_MUST_CHECK enum ndt_status bench_matcher_settings(struct ndtd_settings *out, const struct ndtd_settings *base,
                                                      const struct bench_choice *choice, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_matcher_open(struct bench_matcher *matcher,
                                                  const struct ndtd_settings *settings, struct bench_maps *maps,
                                                  struct ndt_error *err);
void bench_matcher_close(struct bench_matcher *matcher);
/* A whole align, upload included, by the caller's clock. */
NDT_MUST_CHECK enum ndt_status bench_matcher_align(struct bench_matcher *matcher, const struct ndt_cloud *points,
                                                   const struct ndt_pose *guess, struct ndt_align_result *result,
                                                   double *took_us, struct ndt_error *err);
/* One evaluation on the finest level, after one that warms up. */
NDT_MUST_CHECK enum ndt_status bench_matcher_eval(struct bench_matcher *matcher, const struct ndt_cloud *points,
                                                  const struct ndt_pose *pose, double *took_us, double *pairs,
                                                  struct ndt_error *err);
/* "4-2-1" and "direct7-direct7-radius" of the settings; returns `text`. */
const char *bench_levels_text(const struct ndt_align_params *params, char *text, size_t size);
const char *bench_neighbours_text(const struct ndt_align_params *params, char *text, size_t size);

#endif
