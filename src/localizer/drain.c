#include "drain.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "ndtd/frames.h"

enum { MOST = NDTD_QUEUE_MAX_DEPTH };
/* A motion that moves a typical point by more than this within half a sweep deskews differently. */
static const double MOTION_M = 0.05;
/* A prior with larger variances, by this factor, searches elsewhere. */
static const double WIDER = 1.5;
/* A prior around a pose with this squared Mahalanobis distance searches elsewhere, too: the median of chi-square
 * with 6 degrees of freedom. */
static const double AWAY = 5.3;
/* Work ahead has to fit into what the first scan has left, by this factor. */
static const double TIME_MARGIN = 2;

/* One scan. */
struct slot {
    const struct ndtd_frame *frame; /* NULL: free */
    struct ndt_scan_header header;  /* with the points that are read */
    enum ndt_status status;         /* of the last step */
    struct ndtd_scan_record record; /* costs only */
    struct ndtd_scan_job job;
    struct ndt_cloud scan;
    struct ndt_preprocessor *preprocessor;
    struct ndt_sweep_motion motion;
};

struct ndtd_drain {
    struct slot slots[MOST];
    size_t count;         /* slots in use, in the order of the scans */
    struct slot *current; /* of the scan that is processed; NULL: it was not decoded ahead */
    struct ndt_track kept;
    struct ndt_align_item items[MOST];
    struct ndt_align_result results[MOST];
    /* The work of the lanes on every slot. */
    void (*step)(struct slot *slot);
    _Atomic size_t next;
};

enum ndt_status ndtd_drain_create(struct ndtd_drain **out, struct ndt_error *err)
{
    struct ndtd_drain *drain = *out = calloc(1, sizeof(*drain));
    enum ndt_status status =
        drain ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for scans that are aligned together");
    for (int i = 0; i < MOST && status == NDT_OK; i++) {
        ndt_cloud_init(&drain->slots[i].scan);
        status = ndt_preprocessor_create(&drain->slots[i].preprocessor, err);
    }
    return status;
}

void ndtd_drain_destroy(struct ndtd_drain *drain)
{
    for (int i = 0; drain && i < MOST; i++) {
        ndt_cloud_free(&drain->slots[i].scan);
        ndt_preprocessor_destroy(drain->slots[i].preprocessor);
    }
    free(drain);
}

void ndtd_drain_forget(struct ndtd_drain *drain)
{
    if (!drain)
        return;
    drain->count = 0;
    drain->current = NULL;
}

void ndtd_drain_release(struct ndtd_drain *drain)
{
    ndtd_drain_forget(drain);
    for (int i = 0; i < MOST; i++) {
        ndt_cloud_free(&drain->slots[i].scan);
        ndt_preprocessor_release(drain->slots[i].preprocessor);
    }
}

/* ---- ahead ---- */

static size_t lanes_of(const struct ndt_backend *backend)
{
    return backend->ops->lane_count ? backend->ops->lane_count(backend) : 0;
}

static void work(void *context, size_t index, struct ndt_backend *lane)
{
    struct ndtd_drain *drain = context;
    size_t i;
    (void)index, (void)lane;
    while ((i = atomic_fetch_add(&drain->next, 1)) < drain->count)
        if (drain->slots[i].status == NDT_OK)
            drain->step(&drain->slots[i]);
}

static void each_slot(struct ndtd_pipeline *pipeline, void (*step)(struct slot *slot))
{
    struct ndtd_drain *drain = pipeline->drain;
    struct ndt_backend *backend = pipeline->backend;
    drain->step = step;
    drain->next = 0;
    if (lanes_of(backend) < 2 || backend->ops->run_lanes(backend, 0, work, drain, NULL) != NDT_OK)
        work(drain, 0, NULL);
}

/* Only where it is known how its motion is to be undone. */
static void decode(struct slot *slot)
{
    const struct ndtd_frame *frame = slot->frame;
    const double start_us = ndt_clock_us();
    slot->status = ndt_scan_points(frame->data, frame->size, &slot->header, slot->job.preprocess.deadline_us,
                                   &slot->scan, NULL);
    slot->record.decode_us = ndt_clock_us() - start_us;
    if (slot->status == NDT_OK) /* as it will be found in turn */
        slot->status = ndt_preprocess_sweep(&slot->job.preprocess, &slot->scan, &slot->job.sweep, NULL);
}

static void preprocess(struct slot *slot)
{
    const double start_us = ndt_clock_us();
    slot->status = ndt_preprocess(slot->preprocessor, &slot->job.preprocess, &slot->scan, &slot->job.sweep,
                                  slot->record.seq, &slot->motion, &slot->job.points, NULL);
    slot->record.preprocess_us = ndt_clock_us() - start_us;
}

static void open_slot(struct ndtd_pipeline *pipeline, struct slot *slot, const struct ndtd_frame *frame)
{
    slot->frame = frame;
    slot->status = NDT_OK;
    slot->record = (struct ndtd_scan_record){.seq = frame->scan.seq, .stamp_ns = frame->scan.stamp_ns};
    slot->job =
        (struct ndtd_scan_job){.record = &slot->record,
                               .preprocess = pipeline->settings->preprocess,
                               .T_base_sensor = ndtd_transforms_sensor(
                                   &pipeline->transforms, &pipeline->settings->frames, frame->scan.frame_id)};
    slot->job.preprocess.deadline_us = pipeline->deadline_us;
    if (!ndtd_scan_times_expect(&pipeline->times, frame->scan.frame_id, &slot->job.preprocess))
        slot->status = NDT_ERR_UNSUPPORTED;
}

/* Whether scans can go together at all: several of them work at once, nothing but the prediction changes from one
 * to the next, and the prediction can be believed. */
static int can_go(const struct ndtd_pipeline *pipeline)
{
    const struct ndtd_settings *settings = pipeline->settings;
    const struct ndt_backend *backend = pipeline->backend;
    const int at_once =
        lanes_of(backend) > 1 || (backend->ops->solve_limit && backend->ops->solve_limit(backend) > 1);
    return settings->batch_together && at_once && pipeline->map && !pipeline->is_stopped && !pipeline->has_start &&
           pipeline->state == NDT_STATE_TRACKING && !settings->frames.merge_sensors && !settings->use_gnss &&
           ndt_aligner_raw_limit(pipeline->aligner) == 0;
}

static int has_time(const struct ndtd_pipeline *pipeline, size_t scans)
{
    return pipeline->deadline_us <= 0 ||
           pipeline->deadline_us - ndt_clock_us() > TIME_MARGIN * (double)scans * pipeline->scan_us;
}

/* Whether the frame changes more for the scans behind it than the prediction. */
static int is_turn(const struct ndtd_frame *frame)
{
    return frame->type == NDT_MESSAGE_INITIAL_POSE || frame->type == NDT_MESSAGE_TRANSFORM;
}

size_t ndtd_drain_begin(struct ndtd_pipeline *pipeline, struct ndtd_frame *const *frames, size_t count)
{
    struct ndtd_drain *drain = pipeline->drain;
    const size_t most = pipeline->together > 0 && pipeline->together < MOST ? (size_t)pipeline->together : MOST;
    size_t together = 0;
    ndtd_drain_forget(drain);
    if (!can_go(pipeline))
        return 0;
    for (size_t i = 0; i < count && drain->count < most && !is_turn(frames[i]); i++)
        if (frames[i]->type == NDT_MESSAGE_SCAN) {
            open_slot(pipeline, &drain->slots[drain->count++], frames[i]);
            together = i + 1;
        }
    if (drain->count < 2 || !has_time(pipeline, drain->count)) {
        ndtd_drain_forget(drain);
        return 0;
    }
    for (size_t i = 0; i < drain->count; i++)
        drain->slots[i].header = ndtd_scan_thinned(pipeline, &drain->slots[i].frame->scan, drain->count);
    drain->kept = pipeline->track;
    each_slot(pipeline, decode);
    return together;
}

static struct slot *find_slot(struct ndtd_drain *drain, const struct ndtd_frame *frame)
{
    for (size_t i = 0; i < drain->count; i++)
        if (drain->slots[i].frame == frame && drain->slots[i].record.seq == frame->scan.seq &&
            drain->slots[i].record.stamp_ns == frame->scan.stamp_ns)
            return &drain->slots[i];
    return NULL;
}

void ndtd_drain_predict(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame)
{
    struct slot *slot = find_slot(pipeline->drain, frame);
    if (!slot || slot->status != NDT_OK)
        return;
    if (!ndtd_scan_predict(pipeline, &slot->job)) {
        slot->status = NDT_ERR_UNSUPPORTED;
        return;
    }
    slot->motion = pipeline->motion[FIRST_PASS];
    ndt_track_coast(&pipeline->track, &slot->job.predicted);
    /* The scan is expected to leave the estimate as certain as the one before it did. */
    memcpy(pipeline->track.state.P, pipeline->drain->kept.state.P, sizeof(pipeline->track.state.P));
}

void ndtd_drain_align(struct ndtd_pipeline *pipeline)
{
    struct ndtd_drain *drain = pipeline->drain;
    struct ndt_align_params params = ndtd_scan_params(pipeline, &drain->slots[0].job);
    struct slot *of[MOST];
    size_t count = 0;
    pipeline->track = drain->kept;
    each_slot(pipeline, preprocess);
    for (size_t i = 0; i < drain->count; i++) {
        struct slot *slot = &drain->slots[i];
        if (slot->status != NDT_OK)
            continue;
        drain->items[count] = (struct ndt_align_item){.scan = slot->job.points,
                                                      .T_map_guess = slot->job.prior.T_map_sensor,
                                                      .prior = params.prior ? &slot->job.prior : NULL};
        of[count++] = slot;
    }
    if (count < 2 || !ndtd_scan_has_time(pipeline, &params) ||
        ndt_align_batch(pipeline->aligner, &params, drain->items, count, drain->results, NULL) != NDT_OK) {
        ndtd_drain_forget(drain); /* what is wrong is found again when it is the turn of the scan */
        return;
    }
    for (size_t i = 0; i < count; i++)
        of[i]->record.result = drain->results[i];
}

/* ---- in turn ---- */

int ndtd_drain_take_points(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                           struct ndtd_scan_record *record)
{
    struct ndtd_drain *drain = pipeline->drain;
    struct slot *slot = drain->current = find_slot(drain, frame);
    if (!slot)
        return 0;
    slot->frame = NULL;
    if (slot->status != NDT_OK) {
        drain->current = NULL;
        return 0;
    }
    const struct ndt_cloud points = slot->scan;
    slot->scan = pipeline->scan;
    pipeline->scan = points;
    record->decode_us = slot->record.decode_us;
    return 1;
}

static int same_motion(const struct ndt_sweep_motion *a, const struct ndt_sweep_motion *b)
{
    return a->is_piecewise == b->is_piecewise &&
           (a->is_piecewise ? memcmp(a->T_reference_at, b->T_reference_at, sizeof(a->T_reference_at)) == 0
                            : memcmp(&a->twist, &b->twist, sizeof(a->twist)) == 0);
}

/* Whether the points were preprocessed as has been decided by now. */
static int same_sweep(const struct ndtd_scan_job *a, const struct ndtd_scan_job *b)
{
    return a->preprocess.deskew == b->preprocess.deskew && a->preprocess.sweep_s == b->preprocess.sweep_s &&
           a->sweep.reference_s == b->sweep.reference_s && a->sweep.begin_s == b->sweep.begin_s &&
           a->sweep.end_s == b->sweep.end_s && a->sweep.strays == b->sweep.strays;
}

/* Whether the alignment that was made ahead finds what an alignment from the real prediction would find. */
static int counts(const struct ndtd_pipeline *pipeline, const struct slot *slot, const struct ndtd_scan_job *job)
{
    const struct ndt_align_params *align = &pipeline->settings->align;
    const struct ndt_prior *now = &job->prior, *then = &slot->job.prior;
    const struct ndt_sweep_motion *motion = &pipeline->motion[FIRST_PASS];
    const int is_same_guess = memcmp(&now->T_map_sensor, &then->T_map_sensor, sizeof(now->T_map_sensor)) == 0;
    const int is_same_prior = memcmp(now->covariance, then->covariance, sizeof(now->covariance)) == 0;
    if (is_same_guess && (is_same_prior || !ndtd_scan_has_prior(pipeline)) && same_motion(motion, &slot->motion))
        return slot->record.result.outcome != NDT_DEADLINE;
    const double off_m = ndt_pose_distance_m(&now->T_map_sensor, &then->T_map_sensor) +
                         NDTD_TYPICAL_RANGE_M * ndt_pose_angle_rad(&now->T_map_sensor, &then->T_map_sensor);
    int is_wider = 0;
    for (int i = 0; i < 6; i++)
        is_wider |= now->covariance[7 * i] > WIDER * then->covariance[7 * i];
    if (ndtd_scan_has_prior(pipeline) &&
        (is_wider || ndtd_squared_mahalanobis(&then->T_map_sensor, then->covariance, &now->T_map_sensor) > AWAY))
        return 0;
    return slot->record.result.outcome == NDT_CONVERGED &&
           off_m <= align->basin * align->levels[align->level_count - 1].leaf_m &&
           ndtd_scan_motion_difference_m(job, &motion->twist, &slot->motion.twist) <= MOTION_M;
}

/* The preprocessor of the slot becomes that of the pipeline: a second pass moves its points. */
static void take_preprocessed(struct ndtd_pipeline *pipeline, struct slot *slot, struct ndtd_scan_job *job)
{
    struct ndt_preprocessor *preprocessor = pipeline->preprocessor;
    pipeline->preprocessor = slot->preprocessor;
    slot->preprocessor = preprocessor;
    job->points = slot->job.points;
    job->preprocessed = ON_HOST;
    job->is_preprocessed = 1;
    job->record->points_used = job->points->count;
    job->record->preprocess_us += slot->record.preprocess_us;
}

enum ndt_status ndtd_drain_take(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    struct slot *slot = pipeline->drain->current;
    struct ndt_sweep_motion *motion = &pipeline->motion[FIRST_PASS];
    pipeline->drain->current = NULL;
    if (!slot || !same_sweep(&slot->job, job))
        return NDT_OK;
    take_preprocessed(pipeline, slot, job);
    if (counts(pipeline, slot, job)) {
        *motion = slot->motion;
        job->twist[FIRST_PASS] = slot->job.twist[FIRST_PASS];
        job->prior = slot->job.prior;
        job->is_aligned = 1;
        job->record->result = slot->record.result;
        return NDT_OK;
    }
    if (same_motion(motion, &slot->motion))
        return NDT_OK;
    const double start_us = ndt_clock_us();
    const enum ndt_status status = ndt_preprocess_again(pipeline->preprocessor, motion, &job->points, err);
    job->record->preprocess_us += ndt_clock_us() - start_us;
    return status;
}
