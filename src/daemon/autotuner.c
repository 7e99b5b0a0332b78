#define _GNU_SOURCE /* scheduling */
#include "ndtd/autotuner.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "ndtd/autotune.h"
#include "ndtd/log.h"
#include "ndtd/realtime.h"
#include "ndtd/autotune_cache.h"
#include "ndtd/stopwatch.h"

enum { PATH_BYTES = 600 };
/* How long the thread may wait in all, where a start may not. */
static const double BESIDE_US = 60e6, NAP_US = 500, UNKNOWN_US = 5e3, MARGIN_US = 1e3;
/* A scan is expected this part of the usual time after the last one; after several of them none is any more. */
static const double EARLIEST = 0.9, STOPPED = 3, PERIOD_PART = 0.2;
static const double RECHECK_MOST_S = 3600;

struct ndtd_autotuner {
    const struct ndtd_settings_snapshot *snapshot;
    struct ndtd_drift drift;
    double recheck_at_us, recheck_every_us;

    /* Told by the matching thread: odd while a scan is handled; when the last one came and how they follow [us]. */
    atomic_uint work;
    _Atomic double arrival_us, period_us;

    pthread_t thread;
    int is_started;
    atomic_int is_ready, quit;
    /* The thread's while it runs, then the taker's. */
    const struct ndtd_settings_snapshot *measured; /* in force when the measurement started */
    struct ndt_map *map;
    struct ndt_cloud scan;
    struct ndt_pose T_map_sensor;
    struct ndtd_autotune_result tuned;
    struct ndt_backend *opened;
    int found;
    double end_us;
    unsigned work_before;
};

/* ---- quiet moments ---- */

void ndtd_autotuner_enter(struct ndtd_autotuner *tuner, double arrival_us)
{
    const double before_us = atomic_load(&tuner->arrival_us), period_us = atomic_load(&tuner->period_us);
    const double since_us = arrival_us - before_us;
    atomic_fetch_add(&tuner->work, 1);
    atomic_store(&tuner->arrival_us, arrival_us);
    if (before_us > 0 && since_us > 0 && since_us < 10e6)
        atomic_store(&tuner->period_us,
                     period_us > 0 ? period_us + PERIOD_PART * (since_us - period_us) : since_us);
}

void ndtd_autotuner_leave(struct ndtd_autotuner *tuner)
{
    atomic_fetch_add(&tuner->work, 1);
}

static int is_quiet(const struct ndtd_autotuner *tuner, double need_us)
{
    const double since_us = ndtd_now_us() - atomic_load(&tuner->arrival_us);
    const double period_us = atomic_load(&tuner->period_us);
    if (atomic_load(&tuner->work) & 1)
        return 0;
    return period_us <= 0 || since_us + need_us + MARGIN_US < EARLIEST * period_us ||
           since_us > STOPPED * period_us;
}

static enum ndt_status wait_until_quiet(void *context, double expected_us, struct ndt_error *err)
{
    struct ndtd_autotuner *tuner = context;
    const double need_us = expected_us > 0 ? expected_us : UNKNOWN_US;
    for (;;) {
        tuner->work_before = atomic_load(&tuner->work);
        if (atomic_load(&tuner->quit))
            return ndt_fail(err, NDT_ERR_IO, "stopped");
        if (is_quiet(tuner, need_us))
            return NDT_OK;
        if (ndtd_now_us() > tuner->end_us)
            return ndt_fail(err, NDT_ERR_LIMIT, "no quiet moment of %.3g ms between scans", need_us * 1e-3);
        nanosleep(&(struct timespec){.tv_nsec = (long)(NAP_US * 1e3)}, NULL);
    }
}

static int was_disturbed(void *context)
{
    const struct ndtd_autotuner *tuner = context;
    return atomic_load(&tuner->work) != tuner->work_before;
}

/* ---- find ---- */

static int find_cached(const struct ndtd_settings *settings, uint64_t key, struct ndtd_autotune_result *out)
{
    char path[PATH_BYTES];
    struct ndt_error err;
    if (settings->autotune_cache != NDTD_CACHE_ON ||
        ndtd_autotune_cache_path(path, sizeof(path), 0, &err) != NDT_OK)
        return 0;
    return ndtd_autotune_cache_find(path, key, settings->budget_s * 1e6, out);
}

static void store(const struct ndtd_settings *settings, uint64_t key, const struct ndtd_autotune_result *tuned)
{
    char path[PATH_BYTES];
    struct ndt_error err;
    if (settings->autotune_cache == NDTD_CACHE_OFF || tuned->choice.row < 0)
        return;
    enum ndt_status status = ndtd_autotune_cache_path(path, sizeof(path), 1, &err);
    if (status == NDT_OK)
        status = ndtd_autotune_cache_store(path, key, tuned, &err);
    if (status != NDT_OK)
        ndtd_log(NDTD_LOG_INFO, "what was measured is not kept for the next start: %s", err.text);
}

/* 1: found. What stands in the way is one line. */
static int find(struct ndtd_autotuner *tuner, const struct ndtd_autotune_request *request, int may_be_cached,
                struct ndtd_autotune_result *out)
{
    struct ndt_error err = {""};
    const double start_us = ndtd_now_us();
    const uint64_t key = ndtd_autotune_key(request->settings, request->map->id);
    if (may_be_cached && find_cached(request->settings, key, out)) {
        out->took_us = ndtd_now_us() - start_us;
        return 1;
    }
    const enum ndt_status status = ndtd_autotune(request, out, &err);
    if (status != NDT_OK && !atomic_load(&tuner->quit))
        ndtd_log(NDTD_LOG_WARNING, "route: not measured, what computes stays: %s", err.text);
    else if (status == NDT_OK && out->choice.row < 0)
        ndtd_log(NDTD_LOG_WARNING, "route: nothing could be measured: %s",
                 out->row_count ? out->rows[0].why : "there is no backend");
    if (status != NDT_OK || out->choice.row < 0)
        return 0;
    store(request->settings, key, out);
    return 1;
}

int ndtd_autotuner_find(struct ndtd_autotuner *tuner, struct ndt_map *map, struct ndtd_autotune_result *out)
{
    const struct ndtd_settings *settings = &tuner->snapshot->settings;
    const struct ndtd_autotune_request request = {
        .settings = settings, .map = map, .time_us = settings->autotune_limit_s * 1e6};
    return settings->autotune && find(tuner, &request, 1, out);
}

/* ---- beside the work ---- */

/* Behind the matching thread, whose priority this one has inherited. */
static void step_back(const struct ndtd_settings *settings)
{
    const struct sched_param lower = {.sched_priority = settings->rt_priority > 1 ? settings->rt_priority - 1 : 0};
    if (settings->rt_priority > 0)
        (void)pthread_setschedparam(pthread_self(), lower.sched_priority ? SCHED_FIFO : SCHED_OTHER, &lower);
}

/* Opening a device takes its time, and is done here; the CPU's workers have to be those of the matching thread. */
static void open_device(struct ndtd_autotuner *tuner)
{
    const struct ndtd_backend_candidate *candidate = &tuner->tuned.rows[tuner->tuned.choice.row].candidate;
    const struct ndtd_settings *settings = &tuner->measured->settings;
    struct ndt_backend_config config = settings->compute;
    const struct ndt_backend_ops *ops = ndtd_backend_candidate_config(candidate, &config);
    struct ndt_error err = {""};
    if (!ops || ops == &ndt_cpu_backend || strcmp(settings->backend, "auto") != 0)
        return;
    enum ndt_status status = ndt_backend_open_failover(&tuner->opened, candidate->backend, &config, &err);
    if (status == NDT_OK) /* the map is there already when it is told to use it */
        status = tuner->opened->ops->set_map(tuner->opened, tuner->map, &err);
    if (status == NDT_OK)
        return;
    ndtd_log(NDTD_LOG_WARNING, "route: %s was chosen but cannot be opened, what computes stays: %s",
             candidate->backend, err.text);
    if (tuner->opened)
        tuner->opened->ops->close(tuner->opened);
    tuner->opened = NULL;
    tuner->found = 0;
}

static void *work(void *context)
{
    struct ndtd_autotuner *tuner = context;
    const int has_scan = tuner->scan.count > 0;
    const struct ndtd_autotune_request request = {
        .settings = &tuner->measured->settings,
        .map = tuner->map,
        .scan = has_scan ? &tuner->scan : NULL,
        .T_map_sensor = tuner->T_map_sensor,
        .time_us = BESIDE_US / 2,
        .gate = {.context = tuner, .wait = wait_until_quiet, .was_disturbed = was_disturbed}};
    ndtd_thread_name("ndt-route");
    step_back(&tuner->measured->settings);
    tuner->end_us = ndtd_now_us() + BESIDE_US;
    tuner->found = find(tuner, &request, !has_scan, &tuner->tuned);
    if (tuner->found)
        open_device(tuner);
    ndt_map_release(tuner->map);
    tuner->map = NULL;
    atomic_store(&tuner->is_ready, 1);
    return NULL;
}

static void join(struct ndtd_autotuner *tuner)
{
    if (!tuner->is_started)
        return;
    pthread_join(tuner->thread, NULL);
    tuner->is_started = 0;
    atomic_store(&tuner->is_ready, 0);
}

void ndtd_autotuner_start(struct ndtd_autotuner *tuner, struct ndt_map *map, const struct ndt_cloud *scan,
                          const struct ndt_pose *T_map_sensor)
{
    struct ndt_error err;
    if (tuner->is_started || !tuner->snapshot->settings.autotune || !map)
        return;
    tuner->scan.count = 0;
    if (scan && ndt_cloud_copy(&tuner->scan, scan, &err) != NDT_OK)
        return;
    if (T_map_sensor)
        tuner->T_map_sensor = *T_map_sensor;
    tuner->map = ndt_map_retain(map);
    ndtd_settings_snapshot_replace(&tuner->measured, tuner->snapshot);
    tuner->is_started = pthread_create(&tuner->thread, NULL, work, tuner) == 0;
    if (tuner->is_started)
        return;
    ndtd_log(NDTD_LOG_WARNING, "route: no thread to measure in, what computes stays");
    ndt_map_release(tuner->map);
    tuner->map = NULL;
}

int ndtd_autotuner_take(struct ndtd_autotuner *tuner, struct ndtd_autotune_result *out, struct ndt_backend **opened)
{
    *opened = NULL;
    if (!atomic_load(&tuner->is_ready))
        return 0;
    const double need_us = tuner->found ? tuner->tuned.rows[tuner->tuned.choice.row].open_us : 0;
    if (tuner->found && !is_quiet(tuner, tuner->opened ? UNKNOWN_US : need_us))
        return 0;
    join(tuner);
    *out = tuner->tuned;
    *opened = tuner->opened;
    tuner->opened = NULL;
    return tuner->found;
}

/* ---- drift ---- */

int ndtd_autotuner_see(struct ndtd_autotuner *tuner, const struct ndtd_autotune_result *tuned,
                       const struct ndtd_scan_record *record)
{
    const struct ndt_align_result *result = &record->result;
    if (tuner->recheck_every_us <= 0 || result->evaluations < 1)
        return 0;
    const double expected_us = ndtd_autotune_align_us(tuned, record->points_used, result->evaluations);
    if (!ndtd_drift_see(&tuner->drift, result->align_us, expected_us) || tuner->is_started)
        return 0;
    const double now_us = ndtd_now_us();
    if (now_us < tuner->recheck_at_us)
        return 0;
    tuner->recheck_at_us = now_us + tuner->recheck_every_us;
    tuner->drift = (struct ndtd_drift){0};
    tuner->recheck_every_us = fmin(2 * tuner->recheck_every_us, RECHECK_MOST_S * 1e6);
    ndtd_log_always(NDTD_LOG_INFO,
                    "route: scans take %.1f times as long as measured; measuring again between scans",
                    result->align_us / expected_us);
    return 1;
}

void ndtd_autotuner_apply(struct ndtd_autotuner *tuner, const struct ndtd_settings_snapshot *snapshot)
{
    ndtd_settings_snapshot_replace(&tuner->snapshot, snapshot);
}

enum ndt_status ndtd_autotuner_create(struct ndtd_autotuner **out, const struct ndtd_settings_snapshot *snapshot,
                                      struct ndt_error *err)
{
    struct ndtd_autotuner *tuner = calloc(1, sizeof(*tuner));
    *out = tuner;
    if (!tuner)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the choice of what computes");
    tuner->snapshot = ndtd_settings_snapshot_acquire(snapshot);
    tuner->recheck_every_us = snapshot->settings.recheck_s * 1e6;
    tuner->recheck_at_us = ndtd_now_us() + tuner->recheck_every_us;
    ndt_cloud_init(&tuner->scan);
    return NDT_OK;
}

void ndtd_autotuner_destroy(struct ndtd_autotuner *tuner)
{
    if (!tuner)
        return;
    atomic_store(&tuner->quit, 1);
    join(tuner);
    if (tuner->opened)
        tuner->opened->ops->close(tuner->opened);
    ndt_cloud_free(&tuner->scan);
    ndtd_settings_snapshot_release(tuner->measured);
    ndtd_settings_snapshot_release(tuner->snapshot);
    free(tuner);
}
