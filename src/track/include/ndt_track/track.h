/** @file
 * @brief An error-state Kalman filter on SE(3) between the scans: predicts the pose at which a scan is aligned,
 * with its covariance, and takes in the observation of the alignment.
 *
 *     ndt_track_init(&track, &params);
 *     ndt_track_reset(&track, stamp_ns, &T_map_base, NULL, NULL);
 *     ndt_track_odometry(&track, &sample);                     // also ndt_track_imu, ndt_track_gnss
 *     ndt_track_predict(&track, stamp_ns, &predicted);         // at the reference moment of the sweep
 *     // align from predicted.T_map_base with the prior ndt_track_pose_covariance(&predicted, ...)
 *     ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
 *     ndt_track_commit(&track, &updated);
 *
 * State at `stamp_ns`: pose T_map_base, twist of the base in the base frame, scale of the odometry, bias of the
 * source of rotation in use (odometry or gyro). Error: x = (d, dv, ds, db), 16 numbers: T = T^ Exp(d) (right error,
 * d in the base frame, translation before rotation), the others additive. The covariance P is row-major 16 x 16.
 *
 * Prediction over dt with D = T(t)^-1 T(t + dt), by the first source that reaches:
 *
 *   odometry poses    D = difference of the odometry, translation (1 - s), rotation minus b dt
 *   odometry twists   the same with the integrated twists, and their noise
 *   LiDAR odometry    difference of its poses, in place of the two above: samples with is_of_scans
 *   gyro              rotation of the gyro minus b dt, translation with constant velocity
 *   constant twist    D = Exp(v dt), white noise on the acceleration: Q = q^2 [dt^3/3 dt^2/2; dt^2/2 dt] per axis
 *
 * and d <- Ad(D^-1) d plus the parts of dv, ds and db (Sola, Deray, Atchuthan 2018, "A micro Lie theory", with the
 * right error throughout).
 *
 * A stamp that is not newer than the state (duplicate, out of order) gets a prediction and changes nothing. A gap
 * above max_prediction_s without odometry keeps the pose and forgets the velocity; where the pose is found again
 * then tells the mean velocity. A stamp more than max_prediction_s earlier means that time restarted.
 *
 * Only data stamps count: no clock, no allocation. Plain data: a track can be copied. One thread at a time. Equal
 * inputs give equal bits. */
#ifndef NDT_TRACK_H
#define NDT_TRACK_H

#include <stdint.h>

#include "ndt/observation.h"
#include "ndt/pose.h"
#include "ndt/preprocess.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Largest time [s] between a GNSS position and a scan for which it counts: receivers send once a second. */
#define NDT_TRACK_GNSS_REACH_S 1.0

/** Largest delay [s] of a sample of odometry or of the IMU behind newer ones of the same input, with which it is
 * put in its place. */
#define NDT_TRACK_LATE_S 2.0

enum {
    NDT_TRACK_STATES = 16,
    NDT_TRACK_SAMPLES = 1024 /**< kept samples of odometry and, separately, of the IMU: 1 s at 1 kHz */
};

/** Parameters; ndt_track_params_default gives the values in brackets. All deviations are one sigma. */
struct ndt_track_params {
    double acceleration_noise;                               /**< noise of the linear velocity [1 m/s^1.5] */
    double turn_noise;                                       /**< noise of the angular velocity [0.2 rad/s^1.5] */
    double stamp_deviation_s;                                /**< deviation of stamps, times the velocity [3 ms] */
    double odometry_noise_m, odometry_noise_rad;             /**< per square root of a second [0.02, 0.002] */
    double odometry_deviation_mps, odometry_deviation_radps; /**< deviation of the odometry's twist [0.05, 0.005] */
    double twist_noise_m, twist_noise_rad; /**< odometry_noise for odometry without poses [0.05, 0.005] */
    double scale_deviation;                /**< initial, of the odometry's distances [0.01] */
    double odometry_bias_radps;            /**< initial, of the odometry's rotation [0.001] */
    double gyro_noise_rad;                 /**< per square root of a second [0.002] */
    double gyro_bias_radps;                /**< initial deviation [0.02] */
    double pose_deviation_m,
        pose_deviation_rad;        /**< deviation of an initial pose without a covariance [1, 10 deg] */
    double start_mps, start_radps; /**< deviation of an unknown twist [10, 0.5] */
    double lost_deviation_m;       /**< deviation along any axis above which a position is lost [2] */
    double max_prediction_s;       /**< longest prediction, see above [1] */
    /** innovation above which a prediction counts as overconfident, chi-square with 6 degrees of freedom: its
     * covariance grows until the innovation is the expected one [22.5: 99.9 %] */
    double gate;
    struct ndt_observation_noise noise; /**< noise of alignments */
};
/** Sets the defaults. */
void ndt_track_params_default(struct ndt_track_params *params);

/** Sources of a prediction. */
enum ndt_track_source {
    NDT_TRACK_ODOMETRY,
    NDT_TRACK_ODOMETRY_TWIST,
    NDT_TRACK_GYRO,
    NDT_TRACK_TWIST,
    NDT_TRACK_POSE /**< the last pose: the velocity is unknown */
};

/** The estimate at one moment. */
struct ndt_track_state {
    int64_t stamp_ns;
    struct ndt_pose T_map_base;
    int has_twist; /**< 0: the twist is unknown, and zero */
    struct ndt_twist twist;
    /** @name Since the measurement before, for poses between the two; since_s = 0: unknown
     * @{ */
    double since_s;
    struct ndt_twist mean_twist, acceleration; /**< acceleration: change of the twist per second */
    /** @} */
    double scale; /**< scale of the odometry: true distance = (1 - scale) times its distance */
    double bias_radps[3];
    enum ndt_track_source source; /**< source of the last prediction */
    int is_of_scans; /**< LiDAR odometry told the motion of the last prediction, beside a gyro the translation alone
                      */
    /** Factor of the variance, at least 1, by which the vehicle turns and accelerates more than acceleration_noise
     * and turn_noise say: the running mean of innovation / 6. A person with a sensor needs 10 and more. */
    double process_noise_scale;
    int bias_of_gyro; /**< source of the bias: 1 gyro, 0 odometry */
    double P[NDT_TRACK_STATES * NDT_TRACK_STATES];
    /** Variances of the pose error d from motion within the sweep that was not undone; zero where it was undone.
     * Neighbouring scans share that error, so averaging does not reduce it: P and the filter leave it out, and
     * ndt_track_map_covariance adds it. */
    double distortion[6];
};

/** Odometry of the base: a pose in a frame of its own, a twist in the base frame, or both. A sample without a twist
 * gets the mean twist since the previous sample. */
struct ndt_track_odometry_sample {
    int64_t stamp_ns;
    int has_pose, has_twist;
    int is_of_scans; /**< LiDAR odometry tells it: it has noise of its own, and neither scale nor bias */
    struct ndt_pose T_odom_base;
    struct ndt_twist twist;
};

/** A sample of an IMU, already in the base frame. */
struct ndt_track_imu_sample {
    int64_t stamp_ns;
    double angular_velocity_radps[3];
    int has_acceleration;
    double acceleration_mps2[3]; /**< specific force: +9.81 upwards at rest */
};

/** A position of an antenna in the map. */
struct ndt_track_gnss_sample {
    int64_t stamp_ns;
    double position_m[3];
    double deviation_m[3]; /**< an axis without a finite, positive deviation is not used */
    double antenna_m[3];   /**< antenna in the base frame */
};

/** Restarts of odometry, which show as jumps of its pose. */
struct ndt_track_restarts {
    uint64_t count;
    int64_t stamp_ns;           /**< last restart, and the jump of the pose there: */
    double moved_m, turned_rad; /**< jump since the previous sample */
    double gap_s;               /**< time since the previous sample */
};

/** A sample that is older than the newest one by more than max_prediction_s: it is late, or time restarted. The
 * next sample decides. */
struct ndt_track_aside {
    int is_used;
    int64_t stamp_ns;
};

/** Samples that came too late to be put in their place, and are dropped. */
struct ndt_track_too_late {
    uint64_t count;
    double last_s; /**< delay of the last one behind the newest */
};

/** Inputs of motion that can be wrong as a whole. */
enum ndt_track_input { NDT_TRACK_INPUT_ODOMETRY, NDT_TRACK_INPUT_GYRO, NDT_TRACK_INPUT_COUNT };

/** The estimator. The members are internal but for params, has_pose, odometry_restarts and too_late. */
struct ndt_track {
    struct ndt_track_params params;
    int has_pose;
    struct ndt_track_restarts odometry_restarts;
    struct ndt_track_too_late too_late;
    struct ndt_track_state state;
    int64_t fixed_ns; /**< stamp of the last reset or measurement */
    int is_measured;  /**< the state contains a scan of its stamp */
    uint32_t starts;  /**< number of times that the state was set, not followed: reset and adopt */
    struct ndt_track_odometry_ring {
        /** By stamp, each completed from the previous one. */
        struct ndt_track_odometry_sample samples[NDT_TRACK_SAMPLES];
        uint8_t has_own_twist[NDT_TRACK_SAMPLES];
        uint32_t head, count;
        struct ndt_track_aside aside;
        struct ndt_track_odometry_sample aside_sample;
    } odometry;
    struct ndt_track_imu_ring {
        struct ndt_track_imu_sample samples[NDT_TRACK_SAMPLES];
        uint32_t head, count;
        struct ndt_track_aside aside;
        struct ndt_track_imu_sample aside_sample;
    } imu;
    int ignores[NDT_TRACK_INPUT_COUNT]; /**< 1: predictions leave this input out, see ndt_track_ignore */
    int has_gnss;                       /**< a sample waits for the next prediction */
    struct ndt_track_gnss_sample gnss;
};

/** Whether a state is plausible: finite, and within ndt/limits.h. Only plausible states are stored: the functions
 * below ignore others, and a prediction that would end in one keeps the pose that it began with. */
int ndt_track_state_is_plausible(const struct ndt_track_state *state);

/** Clears everything. */
void ndt_track_init(struct ndt_track *track, const struct ndt_track_params *params);
/** Sets a pose. twist: NULL when unknown; its deviations are 2 m/s and 0.1 rad/s. covariance: of the pose, map
 * axes, row-major 6x6 in the order x y z rx ry rz; NULL, or not positive definite: pose_deviation_*. The
 * acceleration levels roll and pitch if the IMU is at rest. */
void ndt_track_reset(struct ndt_track *track, int64_t stamp_ns, const struct ndt_pose *T_map_base,
                     const struct ndt_twist *twist, const double covariance[36]);

/** The state that ndt_track_reset would set. */
void ndt_track_start_state(const struct ndt_track *track, int64_t stamp_ns, const struct ndt_pose *T_map_base,
                           const struct ndt_twist *twist, const double covariance[36], struct ndt_track_state *out);
/** Continues from another state, such as that of a hypothesis. is_measured: the state contains the scan of its
 * stamp; 0: it is a prediction, which a measurement of that stamp may update. */
void ndt_track_adopt(struct ndt_track *track, const struct ndt_track_state *state, int is_measured);

/** @name Inputs Samples that are not finite, or faster than 1000 m/s or 100 rad/s, are ignored. Odometry that jumps
 * farther than its velocity and any acceleration of a vehicle allow, or is back at its origin after a pause, has
 * restarted: its earlier samples tell nothing about the later ones. See struct ndt_track_restarts. A late
 * sample, older than the newest one by up to NDT_TRACK_LATE_S, is put in its place by stamp, as if it had come in
 * time, where the ring reaches back so far; too_late counts the others, which are dropped. Odometry that jumps from
 * the samples beside it, and a second sample of the same stamp, are dropped, too. Two samples in a row that are
 * more than max_prediction_s older mean that time restarted, and replace all others; odometry of another source
 * replaces all others, too. Samples of the GNSS are measurements of the next prediction. The limits are those of
 * ndt/limits.h.
 * @{ */
void ndt_track_odometry(struct ndt_track *track, const struct ndt_track_odometry_sample *sample);
/** Time from the newest sample of wheels or of the IMU to a stamp [s]; infinite where there is none. */
double ndt_track_input_age_s(const struct ndt_track *track, int64_t stamp_ns);
/** Forgets the odometry of scans, which begins anew; that of wheels stays. */
void ndt_track_forget_scans(struct ndt_track *track);
void ndt_track_imu(struct ndt_track *track, const struct ndt_track_imu_sample *sample);
void ndt_track_gnss(struct ndt_track *track, const struct ndt_track_gnss_sample *sample);
/** @} */

/** Sets whether predictions leave an input out, as if it had no samples. A change forgets the estimated scale and
 * bias of the input. seen: twist that the scans found instead; NULL: that of the state. */
void ndt_track_ignore(struct ndt_track *track, enum ndt_track_input input, int is_ignored,
                      const struct ndt_twist *seen);

/** The estimate at a stamp, before the scan of that stamp. Returns 0 when no pose is known; `out` is then the
 * identity.
 */
int ndt_track_predict(const struct ndt_track *track, int64_t stamp_ns, struct ndt_track_state *out);
/** Predicts from another state than that of the track, with the same inputs: for pose hypotheses. */
void ndt_track_predict_from(const struct ndt_track *track, const struct ndt_track_state *before, int64_t stamp_ns,
                            struct ndt_track_state *out);
/** Updates a prediction with the waiting GNSS sample, if it lies within NDT_TRACK_GNSS_REACH_S of it and its
 * innovation within the gate (chi-square, 99.9 %). Returns 1 when the sample was used, -1 when it was rejected, 0
 * when there was none. */
int ndt_track_use_gnss(struct ndt_track *track, struct ndt_track_state *predicted);
/** Poses of the base by the gyro, at moments relative to the stamp of `state`, in the base frame there:
 * T_reference_at[i] for time_s[i], ascending. Returns 0, and writes nothing, where the gyro does not reach and the
 * twist of the state describes the motion. */
int ndt_track_motion(const struct ndt_track *track, const struct ndt_track_state *state, const double *time_s,
                     int count, struct ndt_pose *T_reference_at);
/** The motion within a sweep around the state, for ndt_preprocess, of a sensor that the base carries: piece by
 * piece by the gyro where it reaches, else with the twist of the state. */
void ndt_track_sweep_motion(const struct ndt_track *track, const struct ndt_track_state *state,
                            const struct ndt_sweep *sweep, const struct ndt_pose *T_base_sensor,
                            struct ndt_sweep_motion *out);

/** An alignment as a measurement, in the base frame. */
struct ndt_track_measurement {
    struct ndt_pose T_map_base;                /**< aligned pose */
    const struct ndt_observation *observation; /**< of the base; NULL: the pose counts as exact to the floor */
    struct ndt_twist twist;                    /**< motion that deskewing has undone */
    double sweep_s;                            /**< duration of the sweep; 0: all points are of one moment */
    /** duration of a sweep whose motion was not undone; 0: it was undone */
    double distorted_s;
    int is_converged; /**< 0: the remaining step to the maximum counts as uncertainty */
};
/** Computes the estimate after an alignment. The prior of the alignment is subtracted from its result, so that it
 * does not count twice. *innovation: squared Mahalanobis distance from the prediction (6 degrees of freedom); may
 * be NULL. *weakest: see struct ndt_weighed_observation; may be NULL. */
void ndt_track_update(const struct ndt_track *track, const struct ndt_track_state *predicted,
                      const struct ndt_track_measurement *measurement, struct ndt_track_state *out,
                      double *innovation, double *weakest);
/** ndt_track_update for a prediction that began at `before`. */
void ndt_track_update_from(const struct ndt_track *track, const struct ndt_track_state *before,
                           const struct ndt_track_state *predicted, const struct ndt_track_measurement *measurement,
                           struct ndt_track_state *out, double *innovation, double *weakest);
/** Whether a moment is before that of the state, without a restart of time: a measurement then changes nothing. A
 * pose that was given counts from a sweep (0.1 s) before its stamp on, until a scan confirms it. */
int ndt_track_is_late(const struct ndt_track *track, int64_t stamp_ns);
/** Makes an updated state the current one, unless it is late. */
void ndt_track_commit(struct ndt_track *track, const struct ndt_track_state *updated);
/** Makes the prediction the state, because the scan told nothing. */
void ndt_track_coast(struct ndt_track *track, const struct ndt_track_state *predicted);

/** Shifts an estimate by dt_s, later or earlier, for output: pose and covariance. The motion is that of odometry or
 * gyro where they reach, else the mean since the previous measurement, or ahead the twist. */
void ndt_track_shift(const struct ndt_track *track, const struct ndt_track_state *state, double dt_s,
                     struct ndt_track_state *out);
/** Covariance of the pose for the error of struct ndt_prior, of a frame on the base: T_base_sensor, or the
 * identity. */
void ndt_track_pose_covariance(const struct ndt_track_state *state, const struct ndt_pose *T_base_sensor,
                               double covariance[36]);
/** Covariance for output: of the pose with its distortion, in the axes of the map, about the base. */
void ndt_track_map_covariance(const struct ndt_track_state *state, double covariance[36]);

/** Standard deviation of the position along its least certain axis [m]. */
double ndt_track_position_deviation(const struct ndt_track_state *state);
/** Standard deviation of the attitude about its least certain axis [rad]. */
double ndt_track_attitude_deviation(const struct ndt_track_state *state);
/** Standard deviation of the velocity along its least certain axis [m/s]. */
double ndt_track_velocity_deviation(const struct ndt_track_state *state);

/** The direction of gravity's opposite in the base frame: mean specific force of an IMU within half a second of a
 * stamp, of unit length. Returns 0 where there is no IMU, or the IMU turns or accelerates. */
int ndt_track_gravity(const struct ndt_track *track, int64_t stamp_ns, double up[3]);

/** Mean specific force of the IMU in the base frame [m/s^2] over its samples after one stamp, up to another.
 * Returns 0 where there are none with an acceleration. */
int ndt_track_specific_force(const struct ndt_track *track, int64_t after_ns, int64_t to_ns, double mean_mps2[3]);

/** Seconds from one stamp to another, exact to well below a microsecond for all gaps in use. */
double ndt_track_seconds(int64_t from_ns, int64_t to_ns);

#ifdef __cplusplus
}
#endif
#endif
