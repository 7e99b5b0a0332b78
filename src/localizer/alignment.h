/* Private: an alignment of a scan, the estimate that follows from it, and what speaks for it.
 *
 * A scan has one alignment whose pose becomes its result, and while it is ambiguous one for each pose hypothesis.
 */
#ifndef NDTD_ALIGNMENT_H
#define NDTD_ALIGNMENT_H

#include "ndt/align.h"
#include "scan.h"

/* A direction of the error of a pose: see ndt_observation_directions and ndt_observation_step. */
struct ndtd_direction {
    double axis[6], step[6];
};

struct ndtd_alignment {
    const struct ndt_track_state *before; /* the state that its prediction starts from; NULL: no pose is known */
    struct ndt_track_state predicted;     /* at the reference moment of the sweep */
    struct ndt_prior prior;               /* around the guess from which it was aligned, of the sensor */
    struct ndt_align_result result;
    int has_trace;        /* the trace of the aligner belongs to the result */
    int degenerate_count; /* directions along which the scan fits elsewhere as well, see relocalizer.h */
    struct ndtd_direction degenerate[6];
    int is_updated;                 /* the members below are set: the estimator may take it */
    struct ndt_track_state updated; /* the estimate after it */
    int has_innovation;             /* aligned with a prior */
    double innovation;              /* squared Mahalanobis distance from the prediction, 6 degrees of freedom */
    double weakest;                 /* see struct ndt_weighed_observation */
    int has_covariance;             /* `covariance` takes the place of that of the estimator */
    double covariance[36];          /* of the base, axes of the map */
};

/* Begins with a prediction, as guess and prior. */
void ndtd_alignment_begin(struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                          const struct ndt_track_state *before, const struct ndt_track_state *predicted);
/* Sets the outcome of a scan without an alignment; the pose stays as it is. */
void ndtd_refuse(struct ndt_align_result *result, enum ndt_outcome outcome, const char *reason);
/* Whether an alignment with this outcome may update the estimate: one that the deadline has stopped may not, for
 * nobody knows where it was going. */
int ndtd_outcome_is_usable(enum ndt_outcome outcome);
/* Updates the estimate with the result. motion: of the base, which deskewing has undone. */
void ndtd_alignment_update(struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                           const struct ndt_track *track, const struct ndt_twist *motion);
/* The confidence in the result; NAN: unknown. *fits: whether the scan fits the map there, along whatever it may
 * slide and however far it is from the prediction. */
double ndtd_alignment_confidence(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                                 const struct ndtd_settings *settings, int *fits);
/* Whether the scan fits and agrees with the prediction: then nothing else has to be tried. */
int ndtd_alignment_is_confirmed(const struct ndtd_alignment *alignment, const struct ndtd_scan *scan,
                                const struct ndtd_settings *settings);
/* The probability that the prediction alone is right: an alignment that was cut short
 * tells no more. */
double ndtd_prediction_confidence(const struct ndt_track_state *predicted);

#endif
