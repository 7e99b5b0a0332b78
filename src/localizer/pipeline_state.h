/* Private: the objects that a pipeline owns, shared by pipeline.c (one frame) and pipeline_setup.c (life cycle). */
#ifndef NDTD_PIPELINE_STATE_H
#define NDTD_PIPELINE_STATE_H

#include "candidates.h"
#include "hypotheses.h"
#include "ndt_proto/control_message.h"
#include "ndtd/pipeline.h"
#include "ndtd/scan_merge.h"
#include "ndtd/scan_times.h"
#include "ndtd/searcher.h"
#include "ndtd/transforms.h"

/* Room for many alignments of one scan at once. */
struct ndtd_many {
    struct ndt_prior priors[NDTD_HYPOTHESES_MAX];
    struct ndt_align_item items[NDTD_HYPOTHESES_MAX];
    struct ndt_align_result results[NDTD_HYPOTHESES_MAX];
};

/* How well each point of a scan fits at two places; of larger scans, every second or third point. */
enum { NDTD_POINT_FITS = 2048, NDTD_FIT_BLOCKS = 1024 };
struct ndtd_point_fits {
    float of_one[NDTD_POINT_FITS], of_other[NDTD_POINT_FITS];
    struct ndtd_fit_block {
        double sum; /* of the differences */
        double count;
    } blocks[NDTD_FIT_BLOCKS];
};

/* The way back after the pose was lost, or to the first one. */
struct ndtd_recovery {
    struct ndtd_searcher *searcher; /* NULL: none, there is nothing to search with */
    int is_active;                  /* the last scan was not confirmed */
    uint32_t scans;                 /* since then */
    uint32_t searches;              /* since then, of all that is possible */
    uint32_t gnss_searches;         /* since then, that a GNSS position could limit */
    struct ndtd_candidate lead;     /* the place that the estimator follows */
    struct ndtd_candidates others;
};

/* A track that an initial pose has ended: it is followed as well until a scan confirms one of them. */
struct ndtd_former {
    struct ndtd_candidates track;    /* one, or none */
    struct ndt_track_state verified; /* of it */
};

/* The search for the pose on request. */
struct ndtd_localize {
    int is_active;
    int serial; /* of the request; that of its searches */
    struct ndt_request_message request;
    struct ndtd_candidates places;
    int has_scan; /* `scan` was not looked at yet */
    struct ndtd_localize_scan *scan;
    int is_near;      /* a position was told */
    int is_searching; /* the answer of the searcher is awaited */
    uint64_t seq;     /* of the last scan that was searched */
    int scans, empty; /* scans since the first place; searches without one */
    double begun_us, started_us, silent_us, search_us;
    struct ndt_localize_report report;
};

struct ndtd_scan_points; /* what viewers get of a scan, see scan_points.h */

enum pass { FIRST_PASS, SECOND_PASS, PASS_COUNT };

/* Lists of guesses, the likely ones first. */
enum ndtd_list { NDTD_LIST_OBVIOUS, NDTD_LIST_NEAR, NDTD_LIST_SPREAD, NDTD_LIST_COUNT };

/* The last scan that was matched, see scan_order.h. */
struct ndtd_last_scan {
    int is_known;
    int64_t stamp_ns;
    char frame_id[NDT_PROTO_MAX_NAME + 1];
};

struct ndtd_pipeline {
    const struct ndtd_settings_snapshot *snapshot;
    const struct ndtd_settings *settings; /* the snapshot's */
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_map *map;
    struct ndt_preprocessor *preprocessor;
    struct ndt_track track;
    struct ndt_track_input_check inputs[NDT_TRACK_INPUT_COUNT];
    struct ndtd_scan_merge *merge;
    struct ndt_cloud scan;                      /* the points of the current scan */
    struct ndt_sweep_motion motion[PASS_COUNT]; /* of the sensor during the current sweep */
    struct ndt_preprocess_plan plan;            /* of the current scan, when the backend preprocesses it */
    int is_stopped;
    enum ndt_state state; /* after the last scan */
    double deadline_us;   /* 0 = none */
    double evaluation_us; /* mean duration of an evaluation in the last alignment, including everything around it */
    size_t evaluation_points; /* that it is for; 0: not known */
    int together;             /* scans that wait to align at once, as measured; 0: any number */
    struct ndtd_last_scan last_scan;
    int has_start; /* `start` gets the stamp of the next scan */
    struct ndt_pose_message start;
    struct ndtd_transforms transforms;
    struct ndtd_scan_times times;
    int has_gnss;
    struct ndt_gnss_message gnss;        /* the newest */
    double antenna_m[3];                 /* of its antenna, in the base frame */
    const struct ndt_cloud *last_points; /* the preprocessor's; NULL unless the last scan converged on them */
    struct ndt_pose T_map_last;
    int is_verified; /* `verified` is the estimate at the last scan that was confirmed */
    struct ndt_track_state verified;
    double fastest_mps; /* of the verified scans */
    int has_told;       /* `told` is an initial pose that no scan has confirmed yet */
    struct ndt_track_state told;
    struct ndtd_former former; /* the track that `told` has ended */
    struct ndtd_hypotheses hypotheses;
    size_t tried[NDTD_LIST_COUNT]; /* guesses of each list that scans before had time for, modulo its size */
    struct ndtd_optima optima;     /* of the scan */
    struct ndtd_many many;
    struct ndtd_point_fits fits;
    struct ndtd_recovery recovery;
    struct ndtd_localize localize;
    struct ndtd_drain *drain; /* scans that wait, aligned ahead */
    double scan_us;           /* mean time that a scan takes */
    double point_us;          /* mean time that a point takes until it is preprocessed */
    int is_watched;           /* `view` follows the scans */
    struct ndtd_scan_points *view;
    struct ndtd_pipeline_events events;
};

/* Where the GNSS antenna is in the base frame. */
static inline const double *ndtd_pipeline_antenna_m(const struct ndtd_pipeline *pipeline)
{
    return pipeline->has_gnss ? pipeline->antenna_m : pipeline->settings->frames.gnss_antenna_m;
}

#endif
