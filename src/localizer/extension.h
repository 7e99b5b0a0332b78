/* Private: beyond the edge of the map (map.extend).
 *
 * Where fewer points of the verified scans meet the map, odometry (ndt_odometry) begins at the estimate, in the
 * frame of the map, and goes along: as long as scans are verified, each says anew where its frame lies. A scan that
 * is not confirmed while hardly any of its points meets a voxel leaves the map: the state is `extending`, and the
 * pose that of odometry. Its covariance is that of the last verified pose, carried along the way, with the drift of
 * the way and what odometry itself leaves open; it is trusted like a coasting one, up to
 * estimator.lost_deviation_m.
 *
 * Where enough points meet the map again, a scan is aligned with it as any other, with the extended pose as prior
 * and with the other guesses that so wide a prior asks for; several in a row that are accepted, within the
 * covariance and agreeing about where odometry's frame lies, attach it: tracking goes on at the map's pose. Where
 * they meet the map and do not fit, or odometry loses its way, nothing is known: the pose is searched.
 *
 * A map that has changed is no edge: its ground and walls are met all the same. One owner, one thread. */
#ifndef NDTD_EXTENSION_H
#define NDTD_EXTENSION_H

#include "alignment.h"
#include "ndtd/pipeline.h"
#include "relocalizer.h"

/* ---- the decision ---- */

/* A scan beside the edge, or beyond it. */
struct ndtd_edge_facts {
    double part;     /* share of its points that meet the map where odometry has it, as a part of the usual one */
    int is_refuted;  /* it fits the map at another pose than odometry can be wrong by */
    int is_accepted; /* its alignment with the map is: its pose there, and the same in odometry's own frame: */
    struct ndt_pose T_map_base, T_odom_base;
};
struct ndtd_edge {
    int is_beyond;
    int accepted, refuted, contradicted; /* scans in a row; contradicted: they meet the map and are not accepted */
    struct ndt_pose T_map_odom;          /* by the first of those accepted */
};
enum ndtd_edge_step {
    NDTD_EDGE_STAY,    /* inside, or beyond */
    NDTD_EDGE_LEAVE,   /* from inside */
    NDTD_EDGE_ATTACH,  /* from beyond: the map is met again */
    NDTD_EDGE_GIVE_UP, /* the extended pose is wrong, or the map is: nothing is known from beyond */
};
/* The decision about a scan that is not confirmed, inside, or any scan, beyond. */
enum ndtd_edge_step ndtd_edge_decide(struct ndtd_edge *edge, const struct ndtd_edge_facts *facts);
/* Whether so many points meet the map that it is worth to align them. */
int ndtd_edge_is_met(double part);
/* The covariance of the error d of a pose (T = T^ Exp(d), row-major) after the way D, with the drift of odometry.
 */
void ndtd_edge_carry(const struct ndt_pose *D, double covariance[36]);

/* ---- the steps of a scan in the pipeline ---- */

struct ndtd_extension;
struct ndtd_pipeline;

NDT_MUST_CHECK enum ndt_status ndtd_extension_create(struct ndtd_extension **out,
                                                     const struct ndtd_settings *settings, struct ndt_error *err);
/* In this and all that follow `extension`, or that of the pipeline, may be NULL: nothing happens. */
void ndtd_extension_destroy(struct ndtd_extension *extension);
/* Gives the memory of the largest scan back. */
void ndtd_extension_release(struct ndtd_extension *extension);
/* The estimate starts anew: odometry ends. */
void ndtd_extension_stop(struct ndtd_extension *extension);
/* Whether odometry goes along, inside or beyond. */
int ndtd_extension_runs(const struct ndtd_extension *extension);
int ndtd_extension_is_extending(const struct ndtd_extension *extension);
/* Samples between scans, in the base frame. */
void ndtd_extension_imu(struct ndtd_extension *extension, const struct ndt_track_imu_sample *sample);
void ndtd_extension_wheels(struct ndtd_extension *extension, const struct ndt_track_odometry_sample *sample);

/* Before the prediction, when the sweep is known: odometry takes the scan in. Beyond, the estimator goes on from
 * its pose. Where there is no time, the scan is predicted like any other. */
void ndtd_extension_follow(struct ndtd_pipeline *pipeline);
/* After preprocessing, beyond: 0: too few points meet the map to align them; the alignment is refused. */
NDT_MUST_CHECK enum ndt_status ndtd_extension_meets_map(struct ndtd_pipeline *pipeline,
                                                        struct ndtd_alignment *alignment, int *meets,
                                                        struct ndt_error *err);
/* After the assessment. Inside, a scan that is not accepted may be beyond the edge: the extended pose is then its
 * prediction, which becomes its pose. Beyond, it attaches, or its alignment is refused. */
NDT_MUST_CHECK enum ndt_status ndtd_extension_judge(struct ndtd_pipeline *pipeline,
                                                    struct ndtd_alignment *alignment,
                                                    struct ndtd_decision *decision, struct ndtd_scan_record *record,
                                                    struct ndt_error *err);
/* After the answer: odometry begins, ends, or learns where its frame lies. */
void ndtd_extension_watch(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                          const struct ndtd_scan_record *record);

#endif
