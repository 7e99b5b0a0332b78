/* Private: one scan while it is processed, and its way through preprocessor and aligner. */
#ifndef NDTD_SCAN_ALIGN_H
#define NDTD_SCAN_ALIGN_H

#include "hypotheses.h"
#include "pipeline_state.h"

enum ndtd_place { ON_HOST, ON_BACKEND };
/* Range of a typical point [m]: the lever with which a turn moves points, in streets as in halls. */
static const double NDTD_TYPICAL_RANGE_M = 15;

/* A direction of the error of a pose: see ndt_observation_directions and ndt_observation_step. */
struct ndtd_direction {
    double axis[6], step[6];
};

/* A scan while it is processed. */
struct ndtd_scan_job {
    struct ndtd_scan_record *record;
    const struct ndt_pose *T_base_sensor;
    const char *frame_id; /* of the scan; NULL: merged from several; valid until it is answered */
    struct ndt_preprocess_params preprocess; /* deskew: decided with the sweep */
    struct ndt_sweep sweep;
    const struct ndt_track_state *before; /* where the prediction begins; NULL: the state of the estimator */
    struct ndt_track_state predicted;     /* at the reference moment */
    struct ndt_track_state updated;       /* with is_updated */
    int is_updated;
    int is_late;               /* older than the state of the estimator, which stays */
    enum pass last;            /* that aligned */
    int is_unbelieved;         /* the estimator follows a place that other scans have to confirm */
    struct ndt_prior expected; /* the prediction, while job->prior is that of a guess */
    double margin;             /* of the result over other optima, with is_sought; see ndtd_optima_margin */
    int is_sought;             /* other guesses were tried */
    int has_trace;             /* that of the aligner belongs to the result */
    int is_cut;                /* no time was left to look for other places */
    int is_open;               /* more places are possible than were tried: searches have to tell */
    int blind_count;           /* directions about which the scan tells nothing, see scan_rivals.h */
    struct ndtd_direction blind[6];
    int has_covariance;                 /* `covariance` takes the place of that of the estimator */
    double covariance[36];              /* of the base, axes of the map */
    struct ndt_twist twist[PASS_COUNT]; /* of the base during the sweep, which deskewing undoes */
    struct ndt_prior prior;             /* the prediction, of the sensor */
    enum ndtd_place preprocessed;
    const struct ndt_cloud *points;  /* the result of preprocessing on the host */
    int is_preprocessed, is_aligned; /* ahead of its turn, see drain.h; is_aligned: the first pass is made */
};

/* The header of a scan with as many points as it may have: preprocess.max_points, and with a deadline those that
 * `together` such scans can preprocess within half of the time that is left. */
struct ndt_scan_header ndtd_scan_thinned(const struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan,
                                         size_t together);
/* Sets job->sweep, and how the motion within it is undone. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_find_sweep(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                    struct ndt_error *err);
/* Otherwise the prediction is where the search starts, and the estimator takes the pose that is found. */
int ndtd_scan_has_prior(const struct ndtd_pipeline *pipeline);
/* Sets the outcome of a scan without an alignment; the pose stays the prediction. */
void ndtd_scan_refuse(struct ndtd_scan_record *record, enum ndt_outcome outcome, const char *reason);
/* Whether the last GNSS position counts at the stamp: see NDT_TRACK_GNSS_REACH_S. */
int ndtd_scan_has_gnss(const struct ndtd_pipeline *pipeline, int64_t stamp_ns);
/* How far two motions of the base move a typical point apart within half a sweep [m]. */
double ndtd_scan_motion_difference_m(const struct ndtd_scan_job *job, const struct ndt_twist *a,
                                     const struct ndt_twist *b);
/* The configured parameters, with the prior and the GNSS position that are valid for this scan. */
struct ndt_align_params ndtd_scan_params(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job);
/* Sets the time left for the aligner. Returns 0 when it is less than an evaluation takes. */
int ndtd_scan_has_time(struct ndtd_pipeline *pipeline, struct ndt_align_params *params);
/* Predicts the scan: job->predicted, motion and prior. Returns 0 when no pose is known. */
int ndtd_scan_predict(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job);
/* Without a pose: at the origin, at rest. */
void ndtd_scan_predict_nothing(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job);
/* The motion that deskewing undoes: piece by piece with the gyro, otherwise as a constant twist. */
void ndtd_scan_set_motion(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum pass pass,
                          const struct ndt_track_state *state);
/* On the host, or a plan for a backend that does it. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_preprocess(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                    struct ndt_error *err);
/* Sets job->points. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_preprocess_on_host(struct ndtd_pipeline *pipeline,
                                                            struct ndtd_scan_job *job, struct ndt_error *err);
/* Deskews the points of the first pass again, with the motion of the second. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_preprocess_again(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                          struct ndt_error *err);
/* Aligns the preprocessed scan. If the backend can no longer preprocess (its device was lost), the host
 * preprocesses now. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_align(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                               enum pass pass, const struct ndt_align_params *params,
                                               const struct ndt_pose *guess, struct ndt_error *err);
/* Has the points on the host, where a backend preprocessed them. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_points_needed(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                       struct ndt_error *err);
/* The covariance of a guess, which is worth as much as an initial pose without one. */
void ndtd_scan_wide_covariance(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                               double covariance[36]);
/* Whether a pose heads where the initial pose that no scan has confirmed yet does, as far as that can be wrong: a
 * hall looks much the same to who has turned around. 1 without such a pose. */
int ndtd_scan_heads_as_told(const struct ndtd_pipeline *pipeline, const struct ndt_pose *T_map_base);
/* How far the vehicle can come in dt_s, by recovery.max_speed_mps and max_acceleration_mps2. */
double ndtd_scan_reach_m(const struct ndtd_pipeline *pipeline, double speed_mps, double dt_s);
/* Aligns the scan from the first `count` priors of pipeline->many at once; params->deadline_s holds for all.
 * Results in pipeline->many. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_align_many(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                    const struct ndt_align_params *params, size_t count,
                                                    struct ndt_error *err);

#endif
