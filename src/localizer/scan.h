/* Private: one scan before it is aligned: its time, its sensor, and the prediction of the estimator for it.
 *
 * Functions of this file read the estimator and change only the scan. */
#ifndef NDTD_SCAN_H
#define NDTD_SCAN_H

#include "ndt/preprocess.h"
#include "ndt_proto/message.h"
#include "ndt_track/track.h"
#include "ndtd/settings.h"

/* Range of a typical point [m]: the lever with which a turn moves points, in streets as in halls. */
static const double NDTD_TYPICAL_RANGE_M = 15;

struct ndtd_scan {
    uint64_t seq;
    int64_t stamp_ns;
    const char *frame_id; /* NULL: merged from several sensors; valid until the scan is answered */
    struct ndt_pose T_base_sensor;
    struct ndt_preprocess_params preprocess; /* deskew: decided with the sweep */
    struct ndt_sweep sweep;
    double distorted_s;               /* duration of a sweep whose motion nothing undoes; 0: it is undone */
    int has_prediction;               /* a pose is known; otherwise the prediction is the origin, at rest */
    struct ndt_track_state predicted; /* prediction at the reference moment of the sweep */
    int uses_gnss;                    /* the prediction took in the waiting GNSS sample */
    int is_late;                      /* the scan is older than the state of the estimator, which stays */
    double usual_fit;                 /* usual fit of verified scans; 0: not known */
};

/* The motion within a sweep that deskewing undoes. */
struct ndtd_sweep_motion {
    struct ndt_twist twist;         /* twist of the base */
    struct ndt_sweep_motion sensor; /* motion of the sensor: piece by piece with the gyro, else a constant twist */
};

/* The newest GNSS position. */
struct ndtd_gnss_fix {
    int is_known;
    struct ndt_gnss_message message;
    double antenna_m[3]; /* antenna in the base frame */
};

/* Predicts pose and motion from the estimator; uses_gnss: a waiting GNSS sample is used up. Returns
 * scan->has_prediction. */
int ndtd_scan_predict(struct ndtd_scan *scan, struct ndt_track *track, int uses_gnss);
/* The prior from a state: the pose of the sensor and its covariance. */
void ndtd_scan_prior(const struct ndtd_scan *scan, const struct ndt_track_state *state, struct ndt_prior *prior);
/* The motion of base and sensor around a state. */
void ndtd_scan_motion(const struct ndtd_scan *scan, const struct ndt_track *track,
                      const struct ndt_track_state *state, struct ndtd_sweep_motion *motion);
/* Distance [m] by which two motions of the base move a typical point apart within half a sweep. */
double ndtd_scan_motion_difference_m(const struct ndt_sweep *sweep, const struct ndt_twist *a,
                                     const struct ndt_twist *b);
/* Whether the GNSS position counts at the stamp: see NDT_TRACK_GNSS_REACH_S. */
int ndtd_gnss_reaches(const struct ndtd_gnss_fix *gnss, int64_t stamp_ns);

#endif
