/* Private: one scan while it is processed, and its way from the prediction to the pose. */
#ifndef NDTD_SCAN_MATCH_H
#define NDTD_SCAN_MATCH_H

#include "pipeline_state.h"

enum ndtd_place { ON_HOST, ON_BACKEND };

/* A scan while it is processed. */
struct ndtd_scan_job {
    struct ndtd_scan_record *record;
    const struct ndt_pose *T_base_sensor;
    struct ndt_preprocess_params preprocess;
    struct ndt_sweep sweep;
    struct ndt_track_state predicted; /* at the reference moment */
    struct ndt_track_state updated;   /* with is_updated */
    int is_updated;
    enum pass last;                     /* that aligned */
    int has_covariance;                 /* `covariance` takes the place of that of the estimator */
    double covariance[36];              /* of the base, axes of the map */
    struct ndt_twist twist[PASS_COUNT]; /* of the base during the sweep, which deskewing undoes */
    struct ndt_prior prior;             /* the prediction, of the sensor */
    enum ndtd_place preprocessed;
    const struct ndt_cloud *points; /* the result of preprocessing on the host */
};

/* Otherwise the prediction is where the search starts, and the estimator takes the pose that is found. */
int ndtd_scan_has_prior(const struct ndtd_pipeline *pipeline);
/* Sets the outcome of a scan without an alignment; the pose stays the prediction. */
void ndtd_scan_refuse(struct ndtd_scan_record *record, enum ndt_outcome outcome, const char *reason);
/* From the prediction to the pose. A failure concerns the scan, memory or the device. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_match(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                               struct ndt_error *err);
/* Sets the state after a scan, of the pipeline and in the record, and the guess of the record. In scan_state.c. */
void ndtd_scan_follow_state(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job);

#endif
