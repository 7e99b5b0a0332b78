#include "ndtd/localizer.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ndt/clock.h"
#include "ndtd/scan_state.h"

struct ndtd_localizer {
    pthread_mutex_t lock; /* guards the members up to `report` */
    int has_request, is_cancelled;
    double begun_us;
    struct ndt_request_message request;
    struct ndt_localize_report report;
    atomic_int is_running; /* read without the lock */

    /* Members of the matching thread. */
    int is_held; /* the request waits for its tiles */
    struct ndt_request_message held;
};

enum ndt_status ndtd_localizer_create(struct ndtd_localizer **out, struct ndt_error *err)
{
    pthread_mutexattr_t attributes;
    struct ndtd_localizer *localizer = *out = calloc(1, sizeof(*localizer));
    if (!localizer)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for requests");
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&localizer->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return NDT_OK;
}

void ndtd_localizer_destroy(struct ndtd_localizer *localizer)
{
    if (!localizer)
        return;
    pthread_mutex_destroy(&localizer->lock);
    free(localizer);
}

/* ---- any thread ---- */

enum ndt_status ndtd_localizer_begin(struct ndtd_localizer *localizer, const struct ndt_request_message *request,
                                     struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    pthread_mutex_lock(&localizer->lock);
    if (localizer->report.running) {
        status = ndt_fail(err, NDT_ERR_ARGUMENT, "search %llu is running; cancel_search ends it",
                          (unsigned long long)localizer->report.search_id);
    } else {
        localizer->report =
            (struct ndt_localize_report){.search_id = localizer->report.search_id + 1, .running = 1};
        localizer->request = *request;
        localizer->has_request = 1;
        localizer->is_cancelled = 0;
        localizer->begun_us = ndt_clock_us();
        atomic_store(&localizer->is_running, 1);
    }
    pthread_mutex_unlock(&localizer->lock);
    return status;
}

void ndtd_localizer_report(struct ndtd_localizer *localizer, struct ndt_localize_report *out)
{
    pthread_mutex_lock(&localizer->lock);
    *out = localizer->report;
    if (out->running)
        out->elapsed_ms = (ndt_clock_us() - localizer->begun_us) * 1e-3;
    pthread_mutex_unlock(&localizer->lock);
}

void ndtd_localizer_cancel(struct ndtd_localizer *localizer)
{
    pthread_mutex_lock(&localizer->lock);
    localizer->is_cancelled = localizer->report.running;
    pthread_mutex_unlock(&localizer->lock);
}

/* ---- the matching thread ---- */

/* Returns whether the request is to be cancelled. */
static int take_request(struct ndtd_localizer *localizer)
{
    pthread_mutex_lock(&localizer->lock);
    const int is_new = localizer->has_request, is_cancelled = localizer->is_cancelled;
    if (is_new)
        localizer->held = localizer->request;
    localizer->has_request = localizer->is_cancelled = 0;
    pthread_mutex_unlock(&localizer->lock);
    if (!is_new)
        return is_cancelled;
    localizer->is_held = 1;
    return is_cancelled;
}

/* Loads the tiles around the position of the request, unless the tiles around a tracked pose are needed. */
static void load_tiles(const struct ndt_request_message *request, const struct ndtd_pipeline *pipeline,
                       struct ndtd_map_loader *loader)
{
    if (ndtd_state_is_trusted(ndtd_pipeline_state(pipeline)))
        return;
    if (request->pose.has_pose)
        ndtd_map_loader_follow(loader, request->pose.pose.t_m);
    else if (request->hint.has_position)
        ndtd_map_loader_follow(loader, request->hint.position_m);
}

static void publish(struct ndtd_localizer *localizer, const struct ndtd_pipeline *pipeline)
{
    struct ndt_localize_report report;
    const int has_ended = !localizer->is_held && ndtd_pipeline_localize_report(pipeline, &report);
    const unsigned percent = ndtd_pipeline_search_progress(pipeline);
    pthread_mutex_lock(&localizer->lock);
    if (has_ended) {
        report.search_id = localizer->report.search_id;
        report.percent = 100;
        report.elapsed_ms = (ndt_clock_us() - localizer->begun_us) * 1e-3;
        report.queue_ms = fmax(0, report.elapsed_ms - report.search_ms - report.verification_ms);
        localizer->report = report;
        atomic_store(&localizer->is_running, 0);
    } else if (percent > localizer->report.percent && percent < 100) {
        localizer->report.percent = percent;
    }
    pthread_mutex_unlock(&localizer->lock);
}

void ndtd_localizer_serve(struct ndtd_localizer *localizer, struct ndtd_pipeline *pipeline,
                          struct ndtd_map_loader *loader, int is_map_new)
{
    if (!localizer || !atomic_load(&localizer->is_running))
        return;
    const int was_held = localizer->is_held, is_cancelled = take_request(localizer);
    if (loader && localizer->is_held && !was_held)
        load_tiles(&localizer->held, pipeline, loader);
    if (localizer->is_held && (is_cancelled || !loader || (!is_map_new && ndtd_map_loader_is_settled(loader)))) {
        ndtd_pipeline_localize(pipeline, &localizer->held);
        localizer->is_held = 0;
    }
    if (is_cancelled)
        ndtd_pipeline_cancel_localize(pipeline);
    publish(localizer, pipeline);
}
