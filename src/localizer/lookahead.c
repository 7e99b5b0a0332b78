#include "lookahead.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "ndtd/extrinsics.h"
#include "pipeline_state.h"

enum { MOST = NDTD_QUEUE_MAX_DEPTH };
/* Distance [m] by which a motion has to move a typical point within half a sweep to deskew differently. */
static const double MOTION_M = 0.05;
/* Factor of the variances above which a prior searches elsewhere. */
static const double WIDER = 1.5;
/* Squared Mahalanobis distance above which a prior around that pose searches elsewhere, too: the median of
 * chi-square with 6 degrees of freedom. */
static const double AWAY = 5.3;
/* Factor by which the time that the first scan has left must exceed the work ahead. */
static const double TIME_MARGIN = 2;

/* One scan that is processed ahead. */
struct slot {
    const struct ndtd_message *frame; /* NULL: free */
    struct ndt_scan_header header;    /* header with the points that are read */
    enum ndt_status status;           /* status of the last step */
    struct ndtd_scan scan;
    struct ndt_cloud raw;
    struct ndt_preprocessor *preprocessor;
    const struct ndt_cloud *points; /* points of the preprocessor */
    struct ndtd_sweep_motion motion;
    struct ndt_prior prior; /* prior from the prediction */
    struct ndt_align_result result;
    double decode_us, preprocess_us;
};

struct ndtd_lookahead {
    struct slot slots[MOST];
    size_t count;         /* slots in use, in the order of the scans */
    struct slot *current; /* slot of the scan in process; NULL: it was not decoded ahead */
    struct ndt_track kept;
    struct ndt_align_item items[MOST];
    struct ndt_align_result results[MOST];
    /* The work of the lanes on every slot. */
    void (*step)(struct slot *slot);
    _Atomic size_t next;
};

enum ndt_status ndtd_lookahead_create(struct ndtd_lookahead **out, struct ndt_error *err)
{
    struct ndtd_lookahead *lookahead = *out = calloc(1, sizeof(*lookahead));
    enum ndt_status status =
        lookahead ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for scans that are aligned together");
    for (int i = 0; i < MOST && status == NDT_OK; i++) {
        ndt_cloud_init(&lookahead->slots[i].raw);
        status = ndt_preprocessor_create(&lookahead->slots[i].preprocessor, err);
    }
    return status;
}

void ndtd_lookahead_destroy(struct ndtd_lookahead *lookahead)
{
    for (int i = 0; lookahead && i < MOST; i++) {
        ndt_cloud_free(&lookahead->slots[i].raw);
        ndt_preprocessor_destroy(lookahead->slots[i].preprocessor);
    }
    free(lookahead);
}

void ndtd_lookahead_forget(struct ndtd_lookahead *lookahead)
{
    if (!lookahead)
        return;
    lookahead->count = 0;
    lookahead->current = NULL;
}

void ndtd_lookahead_release(struct ndtd_lookahead *lookahead)
{
    ndtd_lookahead_forget(lookahead);
    for (int i = 0; i < MOST; i++) {
        ndt_cloud_free(&lookahead->slots[i].raw);
        ndt_preprocessor_release(lookahead->slots[i].preprocessor);
    }
}

/* ---- ahead ---- */

static size_t lanes_of(const struct ndt_backend *backend)
{
    return backend->ops->lane_count ? backend->ops->lane_count(backend) : 0;
}

static void work(void *context, size_t index, struct ndt_backend *lane)
{
    struct ndtd_lookahead *lookahead = context;
    size_t i;
    (void)index, (void)lane;
    while ((i = atomic_fetch_add(&lookahead->next, 1)) < lookahead->count)
        if (lookahead->slots[i].status == NDT_OK)
            lookahead->step(&lookahead->slots[i]);
}

static void each_slot(struct ndtd_pipeline *pipeline, void (*step)(struct slot *slot))
{
    struct ndtd_lookahead *lookahead = pipeline->lookahead;
    struct ndt_backend *backend = pipeline->matcher.backend;
    lookahead->step = step;
    lookahead->next = 0;
    if (lanes_of(backend) < 2 || backend->ops->run_lanes(backend, 0, work, lookahead, NULL) != NDT_OK)
        work(lookahead, 0, NULL);
}

/* Decodes the points of a slot and finds its sweep with the expected deskewing. */
static void decode(struct slot *slot)
{
    const struct ndtd_message *frame = slot->frame;
    struct ndtd_scan *scan = &slot->scan;
    const double start_us = ndt_clock_us();
    slot->status =
        ndt_scan_points(frame->data, frame->size, &slot->header, scan->preprocess.deadline_us, &slot->raw, NULL);
    slot->decode_us = ndt_clock_us() - start_us;
    if (slot->status == NDT_OK) /* the sweep, as it will be found in turn */
        slot->status = ndt_preprocess_sweep(&scan->preprocess, &slot->raw, &scan->sweep, NULL);
}

static void preprocess(struct slot *slot)
{
    const double start_us = ndt_clock_us();
    slot->status = ndt_preprocess(slot->preprocessor, &slot->scan.preprocess, &slot->raw, &slot->scan.sweep,
                                  slot->scan.seq, &slot->motion.sensor, &slot->points, NULL);
    slot->preprocess_us = ndt_clock_us() - start_us;
}

static void open_slot(struct ndtd_pipeline *pipeline, struct slot *slot, const struct ndtd_message *frame)
{
    const struct ndtd_settings *settings = pipeline->settings;
    slot->frame = frame;
    slot->status = NDT_OK;
    slot->result = (struct ndt_align_result){.iterations = 0};
    slot->scan = (struct ndtd_scan){
        .seq = frame->scan.seq,
        .stamp_ns = frame->scan.stamp_ns,
        .frame_id = frame->scan.frame_id,
        .preprocess = settings->preprocess,
        .T_base_sensor = *ndtd_transforms_sensor(&pipeline->transforms, &settings->frames, frame->scan.frame_id)};
    slot->scan.preprocess.deadline_us = pipeline->matcher.deadline_us;
    if (!ndtd_scan_times_expect(&pipeline->times, frame->scan.frame_id, &slot->scan.preprocess))
        slot->status = NDT_ERR_UNSUPPORTED;
}

/* Whether scans can go together at all: several are worked on at once, only the prediction changes from one scan to
 * the next, and the prediction is trusted. */
static int can_go(const struct ndtd_pipeline *pipeline)
{
    const struct ndtd_settings *settings = pipeline->settings;
    const struct ndt_backend *backend = pipeline->matcher.backend;
    const int at_once =
        lanes_of(backend) > 1 || (backend->ops->solve_limit && backend->ops->solve_limit(backend) > 1);
    return settings->batch_together && at_once && pipeline->matcher.map && !pipeline->is_stopped &&
           !pipeline->has_start && pipeline->state == NDT_STATE_TRACKING && !settings->frames.merge_sensors &&
           !settings->use_gnss && ndt_aligner_raw_limit(pipeline->matcher.aligner) == 0;
}

static int has_time(const struct ndtd_pipeline *pipeline, size_t scans)
{
    const double deadline_us = pipeline->matcher.deadline_us;
    return deadline_us <= 0 || deadline_us - ndt_clock_us() > TIME_MARGIN * (double)scans * pipeline->scan_us;
}

/* Whether a frame changes more for later scans than their prediction. */
static int is_turn(const struct ndtd_message *frame)
{
    return frame->type == NDT_MESSAGE_INITIAL_POSE || frame->type == NDT_MESSAGE_TRANSFORM;
}

size_t ndtd_lookahead_begin(struct ndtd_pipeline *pipeline, struct ndtd_message *const *frames, size_t count)
{
    struct ndtd_lookahead *lookahead = pipeline->lookahead;
    const size_t most = pipeline->together > 0 && pipeline->together < MOST ? (size_t)pipeline->together : MOST;
    size_t together = 0;
    ndtd_lookahead_forget(lookahead);
    if (!can_go(pipeline))
        return 0;
    for (size_t i = 0; i < count && lookahead->count < most && !is_turn(frames[i]); i++)
        if (frames[i]->type == NDT_MESSAGE_SCAN) {
            open_slot(pipeline, &lookahead->slots[lookahead->count++], frames[i]);
            together = i + 1;
        }
    if (lookahead->count < 2 || !has_time(pipeline, lookahead->count)) {
        ndtd_lookahead_forget(lookahead);
        return 0;
    }
    for (size_t i = 0; i < lookahead->count; i++)
        lookahead->slots[i].header =
            ndtd_matcher_thinned(&pipeline->matcher, &lookahead->slots[i].frame->scan, lookahead->count);
    lookahead->kept = pipeline->track;
    each_slot(pipeline, decode);
    return together;
}

static struct slot *find_slot(struct ndtd_lookahead *lookahead, const struct ndtd_message *frame)
{
    for (size_t i = 0; i < lookahead->count; i++)
        if (lookahead->slots[i].frame == frame && lookahead->slots[i].scan.seq == frame->scan.seq &&
            lookahead->slots[i].scan.stamp_ns == frame->scan.stamp_ns)
            return &lookahead->slots[i];
    return NULL;
}

void ndtd_lookahead_predict(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame)
{
    struct ndt_track *track = &pipeline->track;
    struct slot *slot = find_slot(pipeline->lookahead, frame);
    if (!slot || slot->status != NDT_OK)
        return;
    if (!ndtd_scan_predict(&slot->scan, track, ndtd_has_prior(pipeline->settings))) {
        slot->status = NDT_ERR_UNSUPPORTED;
        return;
    }
    ndtd_scan_motion(&slot->scan, track, &slot->scan.predicted, &slot->motion);
    ndtd_scan_prior(&slot->scan, &slot->scan.predicted, &slot->prior);
    ndt_track_coast(track, &slot->scan.predicted);
    /* Each scan is expected to leave the estimate as certain as the previous one did. */
    memcpy(track->state.P, pipeline->lookahead->kept.state.P, sizeof(track->state.P));
}

void ndtd_lookahead_align(struct ndtd_pipeline *pipeline)
{
    struct ndtd_lookahead *lookahead = pipeline->lookahead;
    struct ndtd_matcher *matcher = &pipeline->matcher;
    struct ndt_align_params params = ndtd_matcher_params(matcher, &lookahead->slots[0].prior);
    struct slot *of[MOST];
    size_t count = 0;
    pipeline->track = lookahead->kept;
    each_slot(pipeline, preprocess);
    for (size_t i = 0; i < lookahead->count; i++) {
        struct slot *slot = &lookahead->slots[i];
        if (slot->status != NDT_OK)
            continue;
        lookahead->items[count] = (struct ndt_align_item){.scan = slot->points,
                                                          .T_map_guess = slot->prior.T_map_sensor,
                                                          .prior = params.prior ? &slot->prior : NULL};
        of[count++] = slot;
    }
    if (count < 2 || !ndtd_matcher_has_time(matcher, &params) ||
        ndt_align_batch(matcher->aligner, &params, lookahead->items, count, lookahead->results, NULL) != NDT_OK) {
        ndtd_lookahead_forget(lookahead); /* the fault shows again when the scan has its turn */
        return;
    }
    for (size_t i = 0; i < count; i++)
        of[i]->result = lookahead->results[i];
}

/* ---- in turn ---- */

int ndtd_lookahead_take_points(struct ndtd_lookahead *lookahead, const struct ndtd_message *frame,
                               struct ndtd_matcher *matcher, struct ndtd_scan_record *record)
{
    struct slot *slot = lookahead->current = find_slot(lookahead, frame);
    if (!slot)
        return 0;
    slot->frame = NULL;
    if (slot->status != NDT_OK) {
        lookahead->current = NULL;
        return 0;
    }
    const struct ndt_cloud points = slot->raw;
    slot->raw = matcher->raw;
    matcher->raw = points;
    record->decode_us = slot->decode_us;
    return 1;
}

static int same_motion(const struct ndt_sweep_motion *a, const struct ndt_sweep_motion *b)
{
    return a->is_piecewise == b->is_piecewise &&
           (a->is_piecewise ? memcmp(a->T_reference_at, b->T_reference_at, sizeof(a->T_reference_at)) == 0
                            : memcmp(&a->twist, &b->twist, sizeof(a->twist)) == 0);
}

/* Whether the points were preprocessed with the sweep that is known by now. */
static int same_sweep(const struct ndtd_scan *a, const struct ndtd_scan *b)
{
    return a->preprocess.deskew == b->preprocess.deskew && a->preprocess.sweep_s == b->preprocess.sweep_s &&
           a->sweep.reference_s == b->sweep.reference_s && a->sweep.begin_s == b->sweep.begin_s &&
           a->sweep.end_s == b->sweep.end_s && a->sweep.strays == b->sweep.strays;
}

/* Whether the alignment made ahead finds the pose that one from the real prediction would find. */
static int counts(const struct ndtd_matcher *matcher, const struct slot *slot, const struct ndt_prior *now)
{
    const struct ndtd_settings *settings = matcher->settings;
    const struct ndt_align_params *align = &settings->align;
    const struct ndt_prior *then = &slot->prior;
    const struct ndt_sweep_motion *motion = &matcher->motion[FIRST_PASS].sensor;
    const int is_same_guess = memcmp(&now->T_map_sensor, &then->T_map_sensor, sizeof(now->T_map_sensor)) == 0;
    const int is_same_prior = memcmp(now->covariance, then->covariance, sizeof(now->covariance)) == 0;
    if (is_same_guess && (is_same_prior || !ndtd_has_prior(settings)) && same_motion(motion, &slot->motion.sensor))
        return slot->result.outcome != NDT_DEADLINE;
    const double off_m = ndt_pose_distance_m(&now->T_map_sensor, &then->T_map_sensor) +
                         NDTD_TYPICAL_RANGE_M * ndt_pose_angle_rad(&now->T_map_sensor, &then->T_map_sensor);
    int is_wider = 0;
    for (int i = 0; i < 6; i++)
        is_wider |= now->covariance[7 * i] > WIDER * then->covariance[7 * i];
    if (ndtd_has_prior(settings) && (is_wider || ndt_pose_squared_mahalanobis(&then->T_map_sensor, then->covariance,
                                                                              &now->T_map_sensor) > AWAY))
        return 0;
    return slot->result.outcome == NDT_CONVERGED &&
           off_m <= align->basin * align->levels[align->level_count - 1].leaf_m &&
           ndtd_scan_motion_difference_m(&matcher->scan.sweep, &motion->twist, &slot->motion.sensor.twist) <=
               MOTION_M;
}

/* Exchanges the preprocessors of slot and matcher, so that a second pass moves these points. */
static void take_preprocessed(struct ndtd_matcher *matcher, struct slot *slot)
{
    struct ndt_preprocessor *preprocessor = matcher->preprocessor;
    matcher->preprocessor = slot->preprocessor;
    slot->preprocessor = preprocessor;
    matcher->points = slot->points;
    matcher->preprocessed = ON_HOST;
    matcher->points_used = slot->points->count;
    matcher->preprocess_us += slot->preprocess_us;
}

enum ndt_status ndtd_lookahead_take(struct ndtd_lookahead *lookahead, struct ndtd_matcher *matcher,
                                    struct ndtd_alignment *alignment, struct ndt_error *err)
{
    struct slot *slot = lookahead->current;
    struct ndtd_sweep_motion *motion = &matcher->motion[FIRST_PASS];
    lookahead->current = NULL;
    if (!slot || !same_sweep(&slot->scan, &matcher->scan))
        return NDT_OK;
    take_preprocessed(matcher, slot);
    if (counts(matcher, slot, &alignment->prior)) {
        *motion = slot->motion;
        alignment->prior = slot->prior;
        alignment->result = slot->result;
        matcher->is_aligned_ahead = 1;
        return NDT_OK;
    }
    if (same_motion(&motion->sensor, &slot->motion.sensor))
        return NDT_OK;
    const double start_us = ndt_clock_us();
    const enum ndt_status status =
        ndt_preprocess_again(matcher->preprocessor, &motion->sensor, &matcher->points, err);
    matcher->preprocess_us += ndt_clock_us() - start_us;
    return status;
}
