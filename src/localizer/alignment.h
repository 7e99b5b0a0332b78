/* Private: an alignment of a scan, the estimate that follows from it, and its confidence.
 *
 * A scan has one alignment whose pose becomes its result, and while it is ambiguous one for each pose hypothesis.
 */
#ifndef NDTD_ALIGNMENT_H
#define NDTD_ALIGNMENT_H

#include "ndt/align.h"
#include "ndt_track/track_window.h"
#include "scan.h"

/* A direction of the error of a pose: see ndt_observation_directions and ndt_observation_step. */
struct ndtd_direction {
    double axis[6], step[6];
};

struct ndtd_alignment {
    const struct ndt_track_state *before; /* state that the prediction starts from; NULL: no pose is known */
    struct ndt_track_state predicted;     /* prediction at the reference moment of the sweep */
    struct ndt_prior prior;               /* prior of the sensor pose, around the initial guess of the alignment */
    struct ndt_align_result result;
    int has_trace;        /* the trace of the aligner belongs to the result */
    int degenerate_count; /* directions along which the scan fits elsewhere as well, see relocalizer.h */
    struct ndtd_direction degenerate[6];
    int is_updated;                 /* `updated` and the members below it are set */
    struct ndt_track_state updated; /* estimate after the update with this alignment */
    struct ndt_track_step step;     /* the measurement that the update took in, and what it found: */
    struct ndt_track_state found;   /* `updated` may have been corrected since */
    int has_innovation;             /* the scan was aligned with a prior */
    double innovation;              /* squared Mahalanobis distance from the prediction, 6 degrees of freedom */
    double weakest;                 /* see struct ndt_weighed_observation */
    int has_covariance;             /* `covariance` replaces that of the estimator */
    double covariance[36];          /* covariance of the base pose, axes of the map */
};

/* Starts an alignment: the prediction becomes its guess and its prior. */
void ndtd_alignment_begin(struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                          const struct ndt_track_state *before, const struct ndt_track_state *predicted);
/* Sets the outcome of a scan without an alignment; the pose stays as it is. */
void ndtd_refuse(struct ndt_align_result *result, enum ndt_outcome outcome, const char *reason);
/* Whether an alignment with this outcome may update the estimate. One that the deadline stopped may not: it has not
 * converged, and its error is unknown. */
int ndtd_outcome_is_usable(enum ndt_outcome outcome);
/* The result as a measurement of the base, with an observation of the sensor at the pose of the result, less the
 * degenerate directions; NULL: without one. of_base: room for that of the base, which the measurement borrows. */
void ndtd_alignment_measure(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                            const struct ndt_twist *motion, struct ndt_observation *observation,
                            struct ndt_observation *of_base, struct ndt_track_measurement *out);
/* Updates the estimate with the result. motion: twist of the base that deskewing has undone. */
void ndtd_alignment_update(struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                           const struct ndt_track *track, const struct ndt_twist *motion);
/* Confidence in the result; NAN: unknown. *fits: whether the scan fits the map there, regardless of degenerate
 * directions and of the distance from the prediction. */
double ndtd_alignment_confidence(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                                 const struct ndtd_settings *settings, int *fits);
/* Whether the scan fits the map and agrees with the prediction, so that no other guess and no other motion has to
 * be tried. */
int ndtd_alignment_is_confirmed(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                                const struct ndtd_settings *settings);
/* Probability that the prediction alone is right; the confidence in an alignment that was cut short. */
double ndtd_prediction_confidence(const struct ndt_track_state *predicted);

#endif
