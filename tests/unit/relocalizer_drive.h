/* The relocaliser by itself: a matcher, an estimator and a map, without pipeline and daemon. */
#ifndef RELOCALIZER_DRIVE_H
#define RELOCALIZER_DRIVE_H

#include <math.h>
#include <stdlib.h>

#include "backends.h"
#include "relocalizer_state.h"
#include "street_drive.h"

/* Parts of a pipeline that the relocaliser uses. */
static struct {
    struct ndt_track track;
    struct ndtd_gnss_fix gnss;
    struct ndtd_matcher *matcher;
    struct ndtd_searcher *searcher;
    struct ndtd_relocalizer *relocalizer;
    struct ndtd_alignment alignment;
    struct ndtd_decision decision;
} here;

static void open_parts(int has_searcher)
{
    struct ndtd_matcher *matcher = here.matcher = calloc(1, sizeof(*matcher));
    const struct ndtd_searcher_config config = {.compute = &drive.settings.compute, .backend = "cpu"};
    ck_assert_ptr_nonnull(matcher);
    ndt_track_init(&here.track, &drive.settings.track);
    matcher->settings = &drive.settings;
    matcher->track = &here.track;
    matcher->gnss = &here.gnss;
    matcher->map = drive.map;
    ndt_cloud_init(&matcher->raw);
    must(ndt_backend_open_failover(&matcher->backend, drive.settings.backend, &drive.settings.compute, &err));
    must(ndt_aligner_create(&matcher->aligner, matcher->backend, &err));
    must(ndt_aligner_set_map(matcher->aligner, drive.map, &err));
    must(ndt_preprocessor_create(&matcher->preprocessor, &err));
    if (has_searcher)
        must(ndtd_searcher_create(&here.searcher, &config, &err));
    const struct ndtd_relocalizer_parts parts = {.matcher = matcher,
                                                 .track = &here.track,
                                                 .gnss = &here.gnss,
                                                 .searcher = here.searcher,
                                                 .compute = &drive.settings.compute};
    must(ndtd_relocalizer_create(&here.relocalizer, &parts, &err));
    ndtd_relocalizer_set_settings(here.relocalizer, &drive.settings);
    ndtd_relocalizer_set_map(here.relocalizer, NULL, drive.map);
}

static void close_parts(void)
{
    ndtd_relocalizer_destroy(here.relocalizer);
    ndtd_searcher_destroy(here.searcher);
    ndt_aligner_destroy(here.matcher->aligner);
    here.matcher->backend->ops->close(here.matcher->backend);
    ndt_preprocessor_destroy(here.matcher->preprocessor);
    ndt_cloud_free(&here.matcher->raw);
    free(here.matcher);
}

/* An initial pose at the stamp of a scan, off along and across the street, as a pipeline takes it. */
__attribute__((unused)) static void give_pose(size_t scan, double along_m, double turn_rad)
{
    const int64_t stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)scan;
    const struct ndt_pose off = ndt_pose_from_rpy((double[3]){along_m, 0, 0}, (double[3]){0, 0, turn_rad});
    const struct ndt_pose pose = ndt_pose_compose(&drive.truth[scan], &off);
    const struct ndt_twist twist = {{8, 0, 0}, {0, 0, 0.05}};
    (void)ndtd_relocalizer_keep_track(here.relocalizer, stamp_ns, 1);
    ndt_track_reset(&here.track, stamp_ns, &pose, &twist, NULL);
    ndtd_relocalizer_start_at(here.relocalizer, &here.track.state);
}

/* Takes one scan up to its prediction and what the relocaliser begins with. Returns whether there is a pose. */
static int begin(size_t number)
{
    struct ndtd_matcher *matcher = here.matcher;
    struct ndtd_alignment *alignment = &here.alignment;
    struct ndt_scan_header header;
    must(ndt_scan_header_decode(drive.scans[number].data, drive.scans[number].size, &header, &err));
    must(ndt_scan_points(drive.scans[number].data, drive.scans[number].size, &header, 0, &matcher->raw, &err));
    *alignment = (struct ndtd_alignment){.is_updated = 0};
    matcher->scan = (struct ndtd_scan){.seq = header.seq,
                                       .stamp_ns = header.stamp_ns,
                                       .frame_id = "lidar",
                                       .T_base_sensor = ndt_pose_identity(),
                                       .preprocess = drive.settings.preprocess};
    matcher->scan.preprocess.deskew = NDT_DESKEW_OFF;
    must(ndt_preprocess_sweep(&matcher->scan.preprocess, &matcher->raw, &matcher->scan.sweep, &err));
    const int has_pose = ndtd_scan_predict(&matcher->scan, &here.track, 0);
    ndtd_matcher_begin(matcher);
    ndtd_alignment_begin(alignment, &matcher->scan, has_pose ? &here.track.state : NULL, &matcher->scan.predicted);
    must(ndtd_matcher_preprocess(matcher, &err));
    must(ndtd_relocalizer_begin(here.relocalizer, &here.decision, &err));
    return has_pose;
}

/* One scan, as a pipeline takes it from its points to the estimator. */
static void take(size_t number)
{
    struct ndtd_matcher *matcher = here.matcher;
    struct ndtd_alignment *alignment = &here.alignment;
    const int has_pose = begin(number);
    const struct ndt_align_params params = ndtd_matcher_params(matcher, &alignment->prior);
    if (has_pose) {
        must(ndtd_matcher_align(matcher, FIRST_PASS, &params, &alignment->prior.T_map_sensor, alignment, &err));
        if (ndtd_outcome_is_usable(alignment->result.outcome))
            ndtd_alignment_update(alignment, &matcher->scan, &here.track, &matcher->motion[FIRST_PASS].twist);
    }
    must(ndtd_relocalizer_decide(here.relocalizer, alignment, &here.decision, &err));
    ndtd_relocalizer_report(here.relocalizer, &here.decision, &alignment->result);
}

/* The estimator follows the decision. */
static void follow(void)
{
    if (here.decision.is_replaced)
        ndt_track_adopt(&here.track, &here.decision.replacement, 0);
    if (!here.alignment.is_updated) {
        ndt_track_coast(&here.track, &here.alignment.predicted);
        return;
    }
    ndt_track_commit(&here.track, &here.alignment.updated);
    if (here.alignment.result.outcome == NDT_CONVERGED)
        ndtd_relocalizer_verify(here.relocalizer, &here.alignment.updated, &here.alignment.result);
}

static double error_m(size_t scan)
{
    return ndt_pose_distance_m(&here.alignment.updated.T_map_base, &drive.truth[scan]);
}

/* The first scan, whose pose is right, is verified. */
__attribute__((unused)) static void verify_start(void)
{
    const struct ndt_align_result good = {.outcome = NDT_CONVERGED,
                                          .scores = {.nvtl_normalized = 0.6, .match_ratio = 1}};
    give_pose(0, 0, 0);
    take(0);
    follow();
    ndtd_relocalizer_verify(here.relocalizer, &here.track.state, &good);
}

/* The same scan is predicted metres off, by an estimator that knows it. */
__attribute__((unused)) static void predict_wide(void)
{
    const struct ndt_pose off = ndt_pose_from_rpy((double[3]){2.5, -1, 0}, (double[3]){0, 0, 0.25});
    here.alignment.predicted.T_map_base = ndt_pose_compose(&drive.truth[0], &off);
    for (int i = 0; i < 6; i++)
        here.alignment.predicted.P[(NDT_TRACK_STATES + 1) * i] = i < 3 ? 1 : 0.01;
}

#endif
