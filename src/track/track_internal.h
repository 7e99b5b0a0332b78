/* Private to ndt_track: indices of the error state and small helpers. */
#ifndef NDT_TRACK_INTERNAL_H
#define NDT_TRACK_INTERNAL_H

#include "ndt_track/track.h"

/* Error states: pose (translation, rotation), twist (linear, angular), scale, bias. */
enum { AT_POSE = 0, AT_ROTATION = 3, AT_TWIST = 6, AT_TURN = 9, AT_SCALE = 12, AT_BIAS = 13, N = NDT_TRACK_STATES };

/* Motion of the base between two stamps, from an input. */
struct ndt_track_motion {
    struct ndt_pose D;      /* measured motion: neither scale nor bias is applied */
    struct ndt_twist twist; /* twist at the end; gyro: the angular part only */
    double extrapolated_s;  /* time beyond the last sample */
    int has_pose;           /* odometry has poses, not integrated twists */
    int is_of_scans;        /* LiDAR odometry tells it */
};

/* Whether a twist or a pose is plausible: finite, and within ndt/limits.h. */
int ndt_track_is_plausible(const struct ndt_pose *pose, const struct ndt_twist *twist);
/* Sets the motion by odometry; 1 when odometry reaches both stamps. */
int ndt_track_odometry_between(const struct ndt_track *track, int64_t from_ns, int64_t to_ns,
                               struct ndt_track_motion *out);
/* Sets the motion by the gyro; 1 when the gyro reaches both stamps. The rotation is that of the measured rates
 * minus `bias`; the translation is that of the velocity v_mps, constant in the base frame. */
int ndt_track_gyro_between(const struct ndt_track *track, int64_t from_ns, int64_t to_ns, const double bias[3],
                           const double v_mps[3], struct ndt_track_motion *out);
/* Sets the distortion of a state that a measurement has updated. before: state at which the prediction began. */
void ndt_track_set_distortion(const struct ndt_track_state *before, const struct ndt_track_measurement *measurement,
                              struct ndt_track_state *state);
/* Predicts as ndt_track_predict_from, with the transition F of the errors, from those of `before` to those of
 * `out`. Returns 0, with F zero, where the motion is unknown: later scans then tell nothing about the earlier
 * state. is_of_scan: 0: without the error of a scan's stamp. */
int ndt_track_propagate(const struct ndt_track *track, const struct ndt_track_state *before, int64_t stamp_ns,
                        int is_of_scan, struct ndt_track_state *out, double F[N * N]);
/* Predicts as ndt_track_propagate for a scan, without LiDAR odometry. */
void ndt_track_predict_without_scans(const struct ndt_track *track, const struct ndt_track_state *before,
                                     int64_t stamp_ns, struct ndt_track_state *out);
/* Stamp of the newest sample of an input that predictions use; INT64_MIN: there is none. */
int64_t ndt_track_newest_sample_ns(const struct ndt_track *track);
/* Whether a ring is full, and soon loses samples that are newer than a stamp. */
int ndt_track_ring_ends_after(const struct ndt_track *track, int64_t stamp_ns);
/* Updates a prediction with a GNSS sample, as ndt_track_use_gnss. */
int ndt_track_add_gnss(const struct ndt_track *track, const struct ndt_track_gnss_sample *gnss,
                       struct ndt_track_state *predicted);
/* Error of the last gyro rate when it is carried on for ahead_s: the mean square per axis [rad^2] of the same error
 * at samples of the last 2 s. 0: there are too few samples. */
void ndt_track_gyro_astray(const struct ndt_track *track, double ahead_s, double square[3]);
/* Adds x to the state and sets the covariance. */
void ndt_track_apply(struct ndt_track_state *state, const double x[N], const double P[N * N]);

#endif
