/* Private to ndt_track: indices of the error state and small helpers. */
#ifndef NDT_TRACK_INTERNAL_H
#define NDT_TRACK_INTERNAL_H

#include "ndt_track/track.h"

/* Error states: pose (translation, rotation), twist (linear, angular), scale, bias. */
enum { AT_POSE = 0, AT_ROTATION = 3, AT_TWIST = 6, AT_TURN = 9, AT_SCALE = 12, AT_BIAS = 13, N = NDT_TRACK_STATES };

/* Motion of the base between two stamps, from an input. */
struct ndt_track_motion {
    struct ndt_pose D;      /* as measured: neither scale nor bias is applied */
    struct ndt_twist twist; /* at the end; gyro: the angular part only */
    double extrapolated_s;  /* beyond the last sample */
    int has_pose;           /* odometry with poses, not integrated twists */
};

/* Whether a twist or a pose can be of this world: finite, and within ndt/limits.h. */
int ndt_track_is_plausible(const struct ndt_pose *pose, const struct ndt_twist *twist);
/* 1 when odometry reaches both stamps. */
int ndt_track_odometry_between(const struct ndt_track *track, int64_t from_ns, int64_t to_ns,
                               struct ndt_track_motion *out);
/* 1 when the gyro reaches both stamps. The rotation is that of the measured rates minus `bias`; the translation is
 * that of the velocity v_mps, constant in the base frame. */
int ndt_track_gyro_between(const struct ndt_track *track, int64_t from_ns, int64_t to_ns, const double bias[3],
                           const double v_mps[3], struct ndt_track_motion *out);
/* Sets the distortion of a state that a measurement has updated. before: the state that the prediction began at. */
void ndt_track_set_distortion(const struct ndt_track_state *before, const struct ndt_track_measurement *measurement,
                              struct ndt_track_state *state);
/* Adds x to the state and sets the covariance. */
void ndt_track_apply(struct ndt_track_state *state, const double x[N], const double P[N * N]);

#endif
