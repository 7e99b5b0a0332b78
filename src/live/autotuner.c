/** @file
 * @brief Keeps the live daemon on its best backend: measurement at the start, or in a thread between scans. */
#define _GNU_SOURCE /* scheduling */
#include "ndtd/autotuner.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "ndtd/log.h"
#include "ndtd/realtime.h"
#include "ndt/clock.h"

/* Limits of a measurement between scans: alignments, and all of it with the waiting. */
static const double MEASURE_US = 30e6, MEASURE_AND_WAIT_US = 60e6;
static const double POLL_US = 500, UNKNOWN_US = 5e3, MARGIN_US = 1e3;
/* In periods of the scans: the next one is expected from EARLIEST on, and none any more after STOPPED. */
static const double EARLIEST = 0.9, STOPPED = 3, PERIOD_GAIN = 0.2;
static const double MAX_PERIOD_US = 10e6, MAX_RECHECK_US = 3600e6;

struct ndtd_autotuner {
    const struct ndtd_settings_snapshot *snapshot;
    struct ndtd_drift drift;
    double recheck_at_us, recheck_every_us;

    /* Written by the matching thread. `work` is odd while a scan is handled. */
    atomic_uint work;
    _Atomic double arrival_us, period_us;

    pthread_t thread;
    int is_started;
    atomic_int is_ready, quit;
    /* Owned by the thread while it runs. */
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
    if (before_us > 0 && since_us > 0 && since_us < MAX_PERIOD_US)
        atomic_store(&tuner->period_us,
                     period_us > 0 ? period_us + PERIOD_GAIN * (since_us - period_us) : since_us);
}

void ndtd_autotuner_leave(struct ndtd_autotuner *tuner)
{
    atomic_fetch_add(&tuner->work, 1);
}

static int is_quiet(const struct ndtd_autotuner *tuner, double need_us)
{
    const double since_us = ndt_clock_us() - atomic_load(&tuner->arrival_us);
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
        if (ndt_clock_us() > tuner->end_us)
            return ndt_fail(err, NDT_ERR_LIMIT, "no quiet moment of %.3g ms between scans", need_us * 1e-3);
        nanosleep(&(struct timespec){.tv_nsec = (long)(POLL_US * 1e3)}, NULL);
    }
}

static int was_disturbed(void *context)
{
    const struct ndtd_autotuner *tuner = context;
    return atomic_load(&tuner->work) != tuner->work_before;
}

/* ---- cache or measurement ---- */

/* Looks in the cache, else measures and stores. Returns 1 when there is a result; failures are logged. */
static int find(struct ndtd_autotuner *tuner, const struct ndtd_autotune_request *request, int use_cache,
                struct ndtd_autotune_result *out)
{
    const struct ndtd_settings *settings = request->settings;
    struct ndt_error err = {""};
    if (use_cache && settings->autotune_cache == NDTD_CACHE_ON &&
        ndtd_autotune_cache_find(settings, request->map->id, out))
        return 1;
    enum ndt_status status = ndtd_autotune_measure(request, out, &err);
    if (status != NDT_OK) {
        if (!atomic_load(&tuner->quit))
            ndtd_log(NDTD_LOG_WARNING, "autotune: not measured, the backend stays: %s", err.text);
        return 0;
    }
    if (out->choice.row < 0) {
        ndtd_log(NDTD_LOG_WARNING, "autotune: nothing could be measured: %s",
                 out->row_count ? out->rows[0].why : "there is no backend");
        return 0;
    }
    if (settings->autotune_cache != NDTD_CACHE_OFF && ndtd_autotune_cache_store(settings, out, &err) != NDT_OK)
        ndtd_log(NDTD_LOG_INFO, "autotune: the result is not stored for the next start: %s", err.text);
    return 1;
}

int ndtd_autotuner_find(struct ndtd_autotuner *tuner, struct ndt_map *map, struct ndtd_autotune_result *out)
{
    const struct ndtd_settings *settings = &tuner->snapshot->settings;
    const struct ndtd_autotune_request request = {
        .settings = settings, .map = map, .time_us = settings->autotune_limit_s * 1e6};
    return settings->autotune && find(tuner, &request, 1, out);
}

/* ---- measurement between scans ---- */

/* Opens the chosen device in this thread, because it takes long, and sets its map. The CPU backend is left to the
 * matching thread, which must own its workers. */
static void open_device(struct ndtd_autotuner *tuner)
{
    const struct ndtd_settings *settings = &tuner->measured->settings;
    const struct ndtd_backend_candidate *candidate = &tuner->tuned.rows[tuner->tuned.choice.row].candidate;
    struct ndt_backend_config config = settings->compute;
    struct ndt_error err = {""};
    if (ndtd_backend_candidate_config(candidate, &config) == &ndt_cpu_backend ||
        strcmp(settings->backend, "auto") != 0)
        return;
    enum ndt_status status = ndt_backend_open_failover(&tuner->opened, candidate->backend, &config, &err);
    if (status == NDT_OK)
        status = tuner->opened->ops->set_map(tuner->opened, tuner->map, &err);
    if (status == NDT_OK)
        return;
    ndtd_log(NDTD_LOG_WARNING, "autotune: %s was chosen but cannot be opened, the backend stays: %s",
             candidate->backend, err.text);
    if (tuner->opened)
        tuner->opened->ops->close(tuner->opened);
    tuner->opened = NULL;
    tuner->found = 0;
}

static void *run(void *context)
{
    struct ndtd_autotuner *tuner = context;
    const struct ndtd_settings *settings = &tuner->measured->settings;
    const int has_scan = tuner->scan.count > 0,
              priority = settings->rt_priority > 1 ? settings->rt_priority - 1 : 0;
    const struct ndtd_autotune_request request = {.settings = settings,
                                                  .map = tuner->map,
                                                  .scan = has_scan ? &tuner->scan : NULL,
                                                  .T_map_sensor = tuner->T_map_sensor,
                                                  .time_us = MEASURE_US,
                                                  .wait = wait_until_quiet,
                                                  .was_disturbed = was_disturbed,
                                                  .context = tuner};
    ndtd_thread_name("ndt-autotune");
    if (settings->rt_priority > 0) /* inherited from the matching thread, and lowered */
        (void)pthread_setschedparam(pthread_self(), priority ? SCHED_FIFO : SCHED_OTHER,
                                    &(struct sched_param){.sched_priority = priority});
    tuner->end_us = ndt_clock_us() + MEASURE_AND_WAIT_US;
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
    ndtd_settings_snapshot_replace(&tuner->measured, tuner->snapshot);
    tuner->map = ndt_map_retain(map);
    tuner->is_started = pthread_create(&tuner->thread, NULL, run, tuner) == 0;
    if (tuner->is_started)
        return;
    ndtd_log(NDTD_LOG_WARNING, "autotune: the measuring thread cannot be started, the backend stays");
    ndt_map_release(tuner->map);
    tuner->map = NULL;
}

int ndtd_autotuner_take(struct ndtd_autotuner *tuner, struct ndtd_autotune_result *out, struct ndt_backend **opened)
{
    *opened = NULL;
    if (!atomic_load(&tuner->is_ready))
        return 0;
    const double open_us = tuner->found ? tuner->tuned.rows[tuner->tuned.choice.row].open_us : 0;
    if (tuner->found && !is_quiet(tuner, tuner->opened ? UNKNOWN_US : open_us))
        return 0;
    join(tuner);
    *out = tuner->tuned;
    *opened = tuner->opened;
    tuner->opened = NULL;
    return tuner->found;
}

/* ---- drift ---- */

int ndtd_autotuner_watch(struct ndtd_autotuner *tuner, const struct ndtd_autotune_result *tuned,
                         const struct ndtd_scan_record *record)
{
    const struct ndt_align_result *result = &record->result;
    const double expected_us = ndtd_autotune_align_us(tuned, record->points_used, result->evaluations);
    if (tuner->recheck_every_us <= 0 || result->evaluations < 1 ||
        !ndtd_drift_add(&tuner->drift, result->align_us, expected_us) || tuner->is_started ||
        ndt_clock_us() < tuner->recheck_at_us)
        return 0;
    tuner->recheck_at_us = ndt_clock_us() + tuner->recheck_every_us;
    tuner->recheck_every_us = fmin(2 * tuner->recheck_every_us, MAX_RECHECK_US);
    tuner->drift = (struct ndtd_drift){0};
    ndtd_log_always(NDTD_LOG_INFO,
                    "autotune: scans take %.1f times as long as measured; measuring again between scans",
                    result->align_us / expected_us);
    return 1;
}

/* ---- lifetime ---- */

void ndtd_autotuner_apply(struct ndtd_autotuner *tuner, const struct ndtd_settings_snapshot *snapshot)
{
    const double recheck_s = snapshot->settings.recheck_s;
    if (!tuner->snapshot || recheck_s != tuner->snapshot->settings.recheck_s) {
        tuner->recheck_every_us = recheck_s * 1e6;
        tuner->recheck_at_us = ndt_clock_us() + tuner->recheck_every_us;
    }
    ndtd_settings_snapshot_replace(&tuner->snapshot, snapshot);
}

enum ndt_status ndtd_autotuner_create(struct ndtd_autotuner **out, const struct ndtd_settings_snapshot *snapshot,
                                      struct ndt_error *err)
{
    struct ndtd_autotuner *tuner = calloc(1, sizeof(*tuner));
    *out = tuner;
    if (!tuner)
        return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for the autotuner");
    ndtd_autotuner_apply(tuner, snapshot);
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
