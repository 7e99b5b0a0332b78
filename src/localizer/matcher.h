/* Private: aligns one scan at a time to the map: from one guess or from many, on the backend, within the time left.
 *
 * A matcher holds the points of its scan and the motion that deskewing has undone; everything that decides from
 * which guess to align, and what an alignment means, is elsewhere. One owner, one thread; no allocation once the
 * buffers have held the largest scan. */
#ifndef NDTD_MATCHER_H
#define NDTD_MATCHER_H

#include "alignment.h"
#include "guesses.h"
#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndtd/settings.h"

enum ndtd_pass { FIRST_PASS, SECOND_PASS, PASS_COUNT };
enum ndtd_preprocessed { NOT_PREPROCESSED, ON_HOST, ON_BACKEND };

/* Room for many alignments of one scan at once. */
struct ndtd_batch {
    struct ndt_prior priors[NDTD_GUESSES_MAX];
    struct ndt_align_item items[NDTD_GUESSES_MAX];
    struct ndt_align_result results[NDTD_GUESSES_MAX];
};

/* Fit of each point of a scan at two poses; large scans have every second or third point. */
enum { NDTD_POINT_FITS = 2048, NDTD_FIT_BLOCKS = 1024 };
struct ndtd_point_fits {
    float at_a[NDTD_POINT_FITS], at_b[NDTD_POINT_FITS];
    struct ndtd_fit_block {
        double sum; /* sum of the differences */
        double count;
    } blocks[NDTD_FIT_BLOCKS];
};

struct ndtd_matcher {
    /* Set by the owner. */
    const struct ndtd_settings *settings;
    const struct ndt_track *track;
    const struct ndtd_gnss_fix *gnss;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_preprocessor *preprocessor;
    struct ndt_map *map;
    double deadline_us; /* deadline of the scan; 0: none */

    /* The scan. */
    struct ndt_cloud raw; /* points of the scan, in the frame of the sensor */
    struct ndtd_scan scan;
    enum ndtd_preprocessed preprocessed;
    const struct ndt_cloud *points;              /* the result of preprocessing on the host */
    struct ndt_preprocess_plan plan;             /* plan for a backend that preprocesses */
    enum ndtd_pass pass;                         /* pass whose motion has deskewed the points */
    struct ndtd_sweep_motion motion[PASS_COUNT]; /* motion that deskewing undoes */
    int is_aligned_ahead;                        /* the first alignment was done ahead: see lookahead.h */
    double preprocess_us;
    uint64_t points_used;
    int32_t guesses;                /* guesses that were aligned */
    struct ndt_align_result beside; /* costs of batches and searches, in evaluations of all points */

    /* Costs so far. */
    double point_us;          /* mean time of preprocessing per point */
    double evaluation_us;     /* mean duration of an evaluation in the last alignment, with everything around it */
    size_t evaluation_points; /* number of points that evaluation_us belongs to; 0: not known */

    struct ndtd_batch batch;
    struct ndtd_point_fits fits;
};

/* The header of a scan, limited to the points that it may have: preprocess.max_points, and with a deadline as many
 * as `together` such scans can preprocess within half of the time that is left. */
struct ndt_scan_header ndtd_matcher_thinned(const struct ndtd_matcher *matcher,
                                            const struct ndt_scan_header *header, size_t together);
/* Begins with matcher->scan, whose points are in matcher->raw and whose prediction and sweep are known. */
void ndtd_matcher_begin(struct ndtd_matcher *matcher);
/* Whether alignments have a prior. Without one the optimisation starts at the prediction, and the estimator takes
 * the pose that it finds. */
int ndtd_has_prior(const struct ndtd_settings *settings);
/* The configured parameters, with a prior (borrowed) and the GNSS position for this scan. */
struct ndt_align_params ndtd_matcher_params(const struct ndtd_matcher *matcher, const struct ndt_prior *prior);
/* Restricts an alignment to the finest level, for a pose that is nearly right already. */
void ndtd_use_finest_level(struct ndt_align_params *params);
/* Sets the time left for the aligner. Returns 0 when it is less than one evaluation takes. */
int ndtd_matcher_has_time(struct ndtd_matcher *matcher, struct ndt_align_params *params);
/* Crop, deskew, voxel filter and sampling: on the host, or as a plan for a backend that does it. */
NDT_MUST_CHECK enum ndt_status ndtd_matcher_preprocess(struct ndtd_matcher *matcher, struct ndt_error *err);
/* Deskews the points again, with matcher->motion[SECOND_PASS]. */
NDT_MUST_CHECK enum ndt_status ndtd_matcher_deskew_again(struct ndtd_matcher *matcher, struct ndt_error *err);
/* Fetches the points to the host, where a backend preprocessed them. */
NDT_MUST_CHECK enum ndt_status ndtd_matcher_need_points(struct ndtd_matcher *matcher, struct ndt_error *err);
/* Aligns from one guess and writes the result. If the backend can no longer preprocess (its device was lost), the
 * host preprocesses now. */
NDT_MUST_CHECK enum ndt_status ndtd_matcher_align(struct ndtd_matcher *matcher, enum ndtd_pass pass,
                                                  const struct ndt_align_params *params,
                                                  const struct ndt_pose *guess, struct ndtd_alignment *alignment,
                                                  struct ndt_error *err);
/* Aligns from the first `count` priors of matcher->batch at once; params->deadline_s holds for all. Results in
 * matcher->batch. */
NDT_MUST_CHECK enum ndt_status ndtd_matcher_align_batch(struct ndtd_matcher *matcher,
                                                        const struct ndt_align_params *params, size_t count,
                                                        struct ndt_error *err);
/* The covariance of a guess, as wide as that of an initial pose without one. */
void ndtd_matcher_wide_covariance(const struct ndtd_matcher *matcher, double covariance[36]);
/* Share of the points that meet a voxel of the finest level with the sensor at a pose, regardless of their place in
 * the voxel; 0 without a map. The points are on the host. */
double ndtd_matcher_share(const struct ndtd_matcher *matcher, const struct ndt_pose *T_map_sensor);
/* Number of standard deviations by which the scan fits better at sensor pose a than at b. The points are on the
 * host. */
double ndtd_matcher_significance(struct ndtd_matcher *matcher, const struct ndt_pose *a, const struct ndt_pose *b);
/* ndtd_matcher_significance in two steps, between which the points may be deskewed again: each pose with its own
 * motion. */
void ndtd_matcher_keep_fits(struct ndtd_matcher *matcher, const struct ndt_pose *a);
double ndtd_matcher_lead_of_kept(struct ndtd_matcher *matcher, const struct ndt_pose *b);
/* Logarithm of the odds that speak for a pose with such a lead over another. Motion that nothing has undone moves
 * the points of one view together: the blocks are not independent then, and half of the lead may be its doing. */
double ndtd_matcher_log_odds(const struct ndtd_matcher *matcher, double lead);
/* Standard deviations by which a pose must fit better than another to count as the right one. */
#define NDTD_SIGNIFICANT 3.0

#endif
