/* Private: the objects that a pipeline owns, shared by the files that are parts of it. */
#ifndef NDTD_PIPELINE_STATE_H
#define NDTD_PIPELINE_STATE_H

#include "extension.h"
#include "integrity.h"
#include "lookahead.h"
#include "ndtd/moment.h"
#include "ndtd/pipeline.h"
#include "ndtd/scan_merge.h"
#include "ndtd/scan_times.h"
#include "ndtd/transforms.h"
#include "odometry_mode.h"
#include "points_view.h"
#include "relocalizer.h"
#include "scan_odometry.h"

/* The last scan that was matched, see scan_order.h. */
struct ndtd_last_scan {
    int is_known;
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
};

/* The difference between the force that an IMU measures and the one that the poses expect, summed between scans. */
struct ndtd_lean {
    int64_t last_ns;                 /* stamp of the last scan that is tracked; 0: none */
    double last_mps[3], expected[3]; /* velocity and expected force there */
    double sum_mps[3], duration_s;   /* integral of the difference, and its time */
};

struct ndtd_pipeline {
    const struct ndtd_settings_snapshot *snapshot;
    struct ndtd_settings fitted;          /* settings of the snapshot, with the levels that the map fills */
    const struct ndtd_settings *settings; /* `fitted` */
    int is_stopped;
    enum ndt_state state; /* state after the last scan */
    struct ndtd_pipeline_events events;
    struct ndtd_lean lean;

    /* Inputs. */
    struct ndtd_transforms transforms;
    struct ndtd_gnss_fix gnss;
    struct ndtd_scan_times times;
    struct ndtd_scan_merge *merge;
    struct ndtd_last_scan last_scan;
    int has_start; /* `start` gets the stamp of the next scan */
    struct ndt_pose_message start;

    /* Parts that a scan passes. */
    struct ndt_track track;
    struct ndt_track_window window; /* states after the last scans */
    int is_followed;                /* the scan in work goes on from the state that the window kept last */
    int has_late;                   /* motion from before the last scan has come after it */
    struct ndt_track_input_check inputs[NDT_TRACK_INPUT_COUNT];
    struct ndtd_matcher matcher;
    struct ndtd_searcher *searcher; /* NULL: searches are not possible */
    struct ndtd_relocalizer *relocalizer;
    struct ndtd_lookahead *lookahead; /* waiting scans that were aligned ahead */
    struct ndtd_odometry_mode
        *odometry; /* odometry in place of all parts above; NULL: there is, or may be, a map */

    struct ndtd_scan_odometry *scan_odometry; /* tells the motion of scans that are hard to localise; NULL:
                                                 recovery.enable is false, or there is no map */
    struct ndtd_extension *extension; /* carries the pose on beyond the edge of the map; NULL: map.extend is off */

    struct ndtd_integrity *integrity; /* bounds the errors of poses; NULL: integrity.risk is 0 */

    /* Measured costs. */
    double scan_us;     /* mean time of a scan, without odometry of the scans: */
    double odometry_us; /* time of that for the last scan */
    int together;       /* number of waiting scans to align at once, as measured; 0: any number */

    /* The last scan, for users outside of the pipeline. */
    int has_answered; /* `answered` is set: a request continues its search with it */
    struct ndtd_answered_scan answered;
    int is_watched; /* `view` keeps the scans */
    struct ndtd_points_view *view;
};

/* Makes a pose the estimate. In pipeline_messages.c. */
void ndtd_pipeline_set_pose_at(struct ndtd_pipeline *pipeline, const struct ndt_pose_message *start,
                               int64_t stamp_ns);
/* Computes the state after the last scan again, if motion from before it has come after it. In
 * pipeline_messages.c. */
void ndtd_pipeline_take_late(struct ndtd_pipeline *pipeline);
/* Keeps the state after a scan in the window. In pipeline_report.c. */
void ndtd_pipeline_keep_state(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment);
/* Ends the intervals over which inputs are compared, because the pose was set. In pipeline_messages.c. */
void ndtd_pipeline_break_intervals(struct ndtd_pipeline *pipeline);
/* Takes in a message that is no scan. In pipeline_messages.c. */
enum ndt_status ndtd_pipeline_take_in(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame,
                                      struct ndt_error *err);
/* Lets the estimator and the relocaliser follow a scan and writes the result into its record: the estimate, carried
 * to the stamp, or the pose of an alignment that the estimator did not take. In pipeline_report.c. */
void ndtd_pipeline_conclude(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                            struct ndtd_scan_record *record);
/* Writes a state of the estimator, carried to the stamp, as the result. In pipeline_report.c. */
void ndtd_pipeline_report_estimate(const struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                                   const struct ndt_track_state *estimate, struct ndtd_scan_record *record);
/* Rejects results and estimates that are not finite. In pipeline_report.c. */
void ndtd_pipeline_make_sound(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record);
/* Sets the state after a scan, of the pipeline and in the record, and the guess of the record. In scan_state.c. */
void ndtd_pipeline_follow_state(struct ndtd_pipeline *pipeline, const struct ndtd_alignment *alignment,
                                struct ndtd_scan_record *record);

#endif
