/* Private: localisation beyond the edge of the map (map.extend).
 *
 * Where fewer points of the verified scans meet the map, odometry (ndt_odometry) starts at the estimate, in the
 * frame of the map, and runs beside the estimator; each verified scan sets T_map_odom anew. A scan that is not
 * confirmed while hardly any of its points meets a voxel leaves the map: the state is `extending`, and the pose
 * that of odometry. The covariance is that of the last verified pose, carried along the path, plus the drift along
 * it and the uncertainty of odometry itself; the pose is trusted like a coasting one, up to
 * estimator.lost_deviation_m.
 *
 * Where enough points meet the map again, a scan is aligned with it as any other, with the extended pose as prior
 * and with the other guesses that so wide a prior asks for; several accepted scans in a row that lie within the
 * covariance and agree on T_map_odom attach the track: tracking goes on at the map's pose. Where scans meet the map
 * and do not fit, or odometry is lost, the pose is unknown and searched for.
 *
 * A changed map is not taken for an edge: its ground and walls are still met. One owner, one thread. */
#ifndef NDTD_EXTENSION_H
#define NDTD_EXTENSION_H

#include "alignment.h"
#include "ndtd/pipeline.h"
#include "relocalizer.h"

/* ---- the decision ---- */

/* Facts about a scan near the edge of the map or beyond it. */
struct ndtd_edge_facts {
    double part;     /* share of its points that meet the map at odometry's pose, relative to the usual share */
    int is_refuted;  /* the scan fits the map at a pose farther from odometry's than odometry's error allows */
    int is_accepted; /* its alignment with the map is accepted: its pose in the map and in the frame of odometry: */
    struct ndt_pose T_map_base, T_odom_base;
};
struct ndtd_edge {
    int is_beyond;
    int accepted, refuted, contradicted; /* scans in a row; contradicted: they meet the map, not accepted */
    struct ndt_pose T_map_odom;          /* from the first of the accepted scans */
};
enum ndtd_edge_step {
    NDTD_EDGE_STAY,    /* no change: the vehicle stays inside, or stays beyond */
    NDTD_EDGE_LEAVE,   /* from inside to beyond */
    NDTD_EDGE_ATTACH,  /* from beyond to inside: the map is met again */
    NDTD_EDGE_GIVE_UP, /* the extended pose or the map is wrong: from beyond, the pose is unknown */
};
/* Decides about a scan: inside, about one that is not confirmed; beyond, about every one. */
enum ndtd_edge_step ndtd_edge_decide(struct ndtd_edge *edge, const struct ndtd_edge_facts *facts);
/* Whether enough points meet the map for an alignment with it to be worth its time. */
int ndtd_edge_is_met(double part);
/* Carries the covariance of a pose error d (T = T^ Exp(d), row-major) along the motion D and adds the drift of
 * odometry. */
void ndtd_edge_carry(const struct ndt_pose *D, double covariance[36]);

/* ---- the steps of a scan in the pipeline ---- */

struct ndtd_extension;
struct ndtd_pipeline;

NDT_MUST_CHECK enum ndt_status ndtd_extension_create(struct ndtd_extension **out,
                                                     const struct ndtd_settings *settings, struct ndt_error *err);
/* `extension`, or that of the pipeline, may be NULL in this function and all below: nothing happens. */
void ndtd_extension_destroy(struct ndtd_extension *extension);
/* Gives the memory of the largest scan back. */
void ndtd_extension_release(struct ndtd_extension *extension);
/* Ends odometry, because the estimate starts anew. */
void ndtd_extension_stop(struct ndtd_extension *extension);
/* Whether odometry runs beside the estimator, inside the map or beyond its edge. */
int ndtd_extension_runs(const struct ndtd_extension *extension);
int ndtd_extension_is_extending(const struct ndtd_extension *extension);
/* Samples between scans, in the base frame. */
void ndtd_extension_imu(struct ndtd_extension *extension, const struct ndt_track_imu_sample *sample);
void ndtd_extension_wheels(struct ndtd_extension *extension, const struct ndt_track_odometry_sample *sample);

/* Gives the scan to odometry, before the prediction and once the sweep is known. Beyond the edge, the estimator
 * goes on from odometry's pose. Without enough time, the scan is predicted like any other. */
void ndtd_extension_follow(struct ndtd_pipeline *pipeline);
/* Decides after preprocessing, beyond the edge, whether enough points meet the map. *meets = 0: too few do for an
 * alignment, which is refused. */
NDT_MUST_CHECK enum ndt_status ndtd_extension_meets_map(struct ndtd_pipeline *pipeline,
                                                        struct ndtd_alignment *alignment, int *meets,
                                                        struct ndt_error *err);
/* Judges a scan after its assessment. Inside, a scan that is not accepted may be beyond the edge: the extended pose
 * is then its prediction, and becomes its pose. Beyond, the scan attaches, or its alignment is refused. */
NDT_MUST_CHECK enum ndt_status ndtd_extension_judge(struct ndtd_pipeline *pipeline,
                                                    struct ndtd_alignment *alignment,
                                                    struct ndtd_decision *decision, struct ndtd_scan_record *record,
                                                    struct ndt_error *err);
/* Starts or ends odometry after the answer to a scan, or updates T_map_odom. */
void ndtd_extension_watch(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                          const struct ndtd_scan_record *record);

#endif
