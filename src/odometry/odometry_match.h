/* Private: aligns one scan with the local map, and weighs the alignment. */
#ifndef NDT_ODOMETRY_MATCH_H
#define NDT_ODOMETRY_MATCH_H

#include "ndt_odometry/odometry.h"

enum { NDT_ODOMETRY_GUESSES = 32, NDT_ODOMETRY_FITS = 50 };

/* Whether wheels measured the motion since the scan before. */
int ndt_odometry_has_wheels(const struct ndt_track_state *state);

/* Fits of the last scans. */
struct ndt_recent_fits {
    double values[NDT_ODOMETRY_FITS];
    size_t next, count;
};
void ndt_recent_fits_add(struct ndt_recent_fits *fits, double fit);

/* Points and motion of one scan, and the memory behind them. */
struct ndt_odometry_scan {
    struct ndt_preprocessor *for_map, *for_match;
    struct ndt_sweep sweep;
    int64_t reference_ns;
    uint64_t sequence;
    struct ndt_preprocess_params preprocess; /* deskew is decided */
    struct ndt_sweep_motion motion;          /* sensor motion that has deskewed the points */
    struct ndt_twist twist;                  /* twist of the base for that motion */
    const struct ndt_cloud *map_points;      /* thinned for keyframes; borrowed from for_map */
    const struct ndt_cloud *points;          /* points of the alignment; borrowed from for_match */
};
/* Deskews with the motion of the state and thins: first for keyframes, and from those points for the alignment. */
NDT_MUST_CHECK enum ndt_status ndt_odometry_scan_prepare(struct ndt_odometry_scan *scan,
                                                         const struct ndt_odometry_params *params,
                                                         const struct ndt_track *track,
                                                         const struct ndt_track_state *state,
                                                         const struct ndt_cloud *raw, struct ndt_error *err);

/* An alignment and the estimate that follows from it. */
struct ndt_odometry_match {
    struct ndt_align_result result;
    struct ndt_track_state updated;
    double fit, innovation, weakest;
    int guesses;
    int is_usable;
    int is_doubtful; /* it fits worse than usual, and is not at the expected pose */
};

/* Buffers for alignments from many guesses at once. */
struct ndt_odometry_batch {
    struct ndt_align_item items[NDT_ODOMETRY_GUESSES];
    struct ndt_align_result results[NDT_ODOMETRY_GUESSES];
};

/* The parts that an alignment needs besides the scan. */
struct ndt_odometry_matcher {
    const struct ndt_odometry_params *params;
    struct ndt_aligner *aligner;
    const struct ndt_track *track;
    const struct ndt_recent_fits *fits;
    struct ndt_odometry_batch *batch;
};
/* Aligns from the prediction, in doubt from many guesses, and again where another motion within the sweep is found.
 */
NDT_MUST_CHECK enum ndt_status ndt_odometry_match(const struct ndt_odometry_matcher *matcher,
                                                  struct ndt_odometry_scan *scan,
                                                  const struct ndt_track_state *predicted,
                                                  struct ndt_odometry_match *out, struct ndt_error *err);

#endif
