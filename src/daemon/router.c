#define _GNU_SOURCE /* scheduling */
#include "ndtd/router.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "ndtd/calibration.h"
#include "ndtd/log.h"
#include "ndtd/realtime.h"
#include "ndtd/route_cache.h"
#include "ndtd/stopwatch.h"

enum { PATH_BYTES = 600 };
/* How long the thread may wait in all, where a start may not. */
static const double BESIDE_US = 60e6, NAP_US = 500, UNKNOWN_US = 5e3, MARGIN_US = 1e3;
/* A scan is expected this part of the usual time after the last one; after several of them none is any more. */
static const double EARLIEST = 0.9, STOPPED = 3, PERIOD_PART = 0.2;
static const double RECHECK_MOST_S = 3600;

struct ndtd_router {
    struct ndtd_settings settings;
    struct ndtd_drift drift;
    double recheck_at_us, recheck_every_us;

    /* Told by the matching thread: odd while a scan is handled; when the last one came and how they follow [us]. */
    atomic_uint work;
    _Atomic double arrival_us, period_us;

    pthread_t thread;
    int is_started;
    atomic_int is_ready, quit;
    /* The thread's while it runs, then the taker's. */
    struct ndt_map *map;
    struct ndt_cloud scan;
    struct ndt_pose T_map_sensor;
    struct ndtd_route route;
    struct ndt_backend *opened;
    int found;
    double end_us;
    unsigned work_before;
};

/* ---- quiet moments ---- */

void ndtd_router_enter(struct ndtd_router *router, double arrival_us)
{
    const double before_us = atomic_load(&router->arrival_us), period_us = atomic_load(&router->period_us);
    const double since_us = arrival_us - before_us;
    atomic_fetch_add(&router->work, 1);
    atomic_store(&router->arrival_us, arrival_us);
    if (before_us > 0 && since_us > 0 && since_us < 10e6)
        atomic_store(&router->period_us,
                     period_us > 0 ? period_us + PERIOD_PART * (since_us - period_us) : since_us);
}

void ndtd_router_leave(struct ndtd_router *router)
{
    atomic_fetch_add(&router->work, 1);
}

static int is_quiet(const struct ndtd_router *router, double need_us)
{
    const double since_us = ndtd_now_us() - atomic_load(&router->arrival_us);
    const double period_us = atomic_load(&router->period_us);
    if (atomic_load(&router->work) & 1)
        return 0;
    return period_us <= 0 || since_us + need_us + MARGIN_US < EARLIEST * period_us ||
           since_us > STOPPED * period_us;
}

static enum ndt_status wait_until_quiet(void *context, double expected_us, struct ndt_error *err)
{
    struct ndtd_router *router = context;
    const double need_us = expected_us > 0 ? expected_us : UNKNOWN_US;
    for (;;) {
        router->work_before = atomic_load(&router->work);
        if (atomic_load(&router->quit))
            return ndt_fail(err, NDT_ERR_IO, "stopped");
        if (is_quiet(router, need_us))
            return NDT_OK;
        if (ndtd_now_us() > router->end_us)
            return ndt_fail(err, NDT_ERR_LIMIT, "no quiet moment of %.3g ms between scans", need_us * 1e-3);
        nanosleep(&(struct timespec){.tv_nsec = (long)(NAP_US * 1e3)}, NULL);
    }
}

static int was_disturbed(void *context)
{
    const struct ndtd_router *router = context;
    return atomic_load(&router->work) != router->work_before;
}

/* ---- find ---- */

static int find_cached(const struct ndtd_router *router, uint64_t key, struct ndtd_route *out)
{
    char path[PATH_BYTES];
    struct ndt_error err;
    if (router->settings.route_cache != NDTD_CACHE_ON ||
        ndtd_route_cache_path(path, sizeof(path), 0, &err) != NDT_OK)
        return 0;
    return ndtd_route_cache_find(path, key, router->settings.budget_s * 1e6, out);
}

static void store(const struct ndtd_router *router, uint64_t key, const struct ndtd_route *route)
{
    char path[PATH_BYTES];
    struct ndt_error err;
    if (router->settings.route_cache == NDTD_CACHE_OFF || route->choice.row < 0)
        return;
    enum ndt_status status = ndtd_route_cache_path(path, sizeof(path), 1, &err);
    if (status == NDT_OK)
        status = ndtd_route_cache_store(path, key, route, &err);
    if (status != NDT_OK)
        ndtd_log(NDTD_LOG_INFO, "what was measured is not kept for the next start: %s", err.text);
}

/* 1: found. What stands in the way is one line. */
static int find(struct ndtd_router *router, const struct ndtd_calibration *request, int may_be_cached,
                struct ndtd_route *out)
{
    struct ndt_error err = {""};
    const double start_us = ndtd_now_us();
    const uint64_t key = ndtd_route_key(&router->settings, request->map->id);
    if (may_be_cached && find_cached(router, key, out)) {
        out->took_us = ndtd_now_us() - start_us;
        return 1;
    }
    const enum ndt_status status = ndtd_calibrate(request, out, &err);
    if (status != NDT_OK && !atomic_load(&router->quit))
        ndtd_log(NDTD_LOG_WARNING, "route: not measured, what computes stays: %s", err.text);
    else if (status == NDT_OK && out->choice.row < 0)
        ndtd_log(NDTD_LOG_WARNING, "route: nothing could be measured: %s",
                 out->row_count ? out->rows[0].why : "there is no backend");
    if (status != NDT_OK || out->choice.row < 0)
        return 0;
    store(router, key, out);
    return 1;
}

int ndtd_router_find(struct ndtd_router *router, struct ndt_map *map, struct ndtd_route *out)
{
    const struct ndtd_calibration request = {
        .settings = &router->settings, .map = map, .time_us = router->settings.calibration_limit_s * 1e6};
    return router->settings.calibrate && find(router, &request, 1, out);
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
static void open_device(struct ndtd_router *router)
{
    const struct ndtd_way *way = &router->route.rows[router->route.choice.row].way;
    struct ndt_backend_config config = router->settings.compute;
    const struct ndt_backend_ops *ops = ndtd_way_config(way, &config);
    struct ndt_error err = {""};
    if (!ops || ops == &ndt_cpu_backend || strcmp(router->settings.backend, "auto") != 0)
        return;
    enum ndt_status status = ndt_backend_open_lasting(&router->opened, way->backend, &config, &err);
    if (status == NDT_OK) /* the map is there already when it is told to use it */
        status = router->opened->ops->set_map(router->opened, router->map, &err);
    if (status == NDT_OK)
        return;
    ndtd_log(NDTD_LOG_WARNING, "route: %s was chosen but cannot be opened, what computes stays: %s", way->backend,
             err.text);
    if (router->opened)
        router->opened->ops->close(router->opened);
    router->opened = NULL;
    router->found = 0;
}

static void *work(void *context)
{
    struct ndtd_router *router = context;
    const int has_scan = router->scan.count > 0;
    const struct ndtd_calibration request = {
        .settings = &router->settings,
        .map = router->map,
        .scan = has_scan ? &router->scan : NULL,
        .T_map_sensor = router->T_map_sensor,
        .time_us = BESIDE_US / 2,
        .gate = {.context = router, .wait = wait_until_quiet, .was_disturbed = was_disturbed}};
    ndtd_thread_name("ndt-route");
    step_back(&router->settings);
    router->end_us = ndtd_now_us() + BESIDE_US;
    router->found = find(router, &request, !has_scan, &router->route);
    if (router->found)
        open_device(router);
    ndt_map_release(router->map);
    router->map = NULL;
    atomic_store(&router->is_ready, 1);
    return NULL;
}

static void join(struct ndtd_router *router)
{
    if (!router->is_started)
        return;
    pthread_join(router->thread, NULL);
    router->is_started = 0;
    atomic_store(&router->is_ready, 0);
}

void ndtd_router_start(struct ndtd_router *router, struct ndt_map *map, const struct ndt_cloud *scan,
                       const struct ndt_pose *T_map_sensor)
{
    struct ndt_error err;
    if (router->is_started || !router->settings.calibrate || !map)
        return;
    router->scan.count = 0;
    if (scan && ndt_cloud_copy(&router->scan, scan, &err) != NDT_OK)
        return;
    if (T_map_sensor)
        router->T_map_sensor = *T_map_sensor;
    router->map = ndt_map_retain(map);
    router->is_started = pthread_create(&router->thread, NULL, work, router) == 0;
    if (router->is_started)
        return;
    ndtd_log(NDTD_LOG_WARNING, "route: no thread to measure in, what computes stays");
    ndt_map_release(router->map);
    router->map = NULL;
}

int ndtd_router_take(struct ndtd_router *router, struct ndtd_route *out, struct ndt_backend **opened)
{
    *opened = NULL;
    if (!atomic_load(&router->is_ready))
        return 0;
    const double need_us = router->found ? router->route.rows[router->route.choice.row].open_us : 0;
    if (router->found && !is_quiet(router, router->opened ? UNKNOWN_US : need_us))
        return 0;
    join(router);
    *out = router->route;
    *opened = router->opened;
    router->opened = NULL;
    return router->found;
}

/* ---- drift ---- */

int ndtd_router_see(struct ndtd_router *router, const struct ndtd_route *route,
                    const struct ndtd_scan_record *record)
{
    const struct ndt_align_result *result = &record->result;
    if (router->recheck_every_us <= 0 || result->evaluations < 1)
        return 0;
    const double expected_us = ndtd_route_align_us(route, record->points_used, result->evaluations);
    if (!ndtd_drift_see(&router->drift, result->align_us, expected_us) || router->is_started)
        return 0;
    const double now_us = ndtd_now_us();
    if (now_us < router->recheck_at_us)
        return 0;
    router->recheck_at_us = now_us + router->recheck_every_us;
    router->drift = (struct ndtd_drift){0};
    router->recheck_every_us = fmin(2 * router->recheck_every_us, RECHECK_MOST_S * 1e6);
    ndtd_log_always(NDTD_LOG_INFO,
                    "route: scans take %.1f times as long as measured; measuring again between scans",
                    result->align_us / expected_us);
    return 1;
}

enum ndt_status ndtd_router_create(struct ndtd_router **out, const struct ndtd_settings *settings,
                                   struct ndt_error *err)
{
    struct ndtd_router *router = calloc(1, sizeof(*router));
    *out = router;
    if (!router)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the choice of what computes");
    router->settings = *settings;
    router->recheck_every_us = settings->recheck_s * 1e6;
    router->recheck_at_us = ndtd_now_us() + router->recheck_every_us;
    ndt_cloud_init(&router->scan);
    return NDT_OK;
}

void ndtd_router_destroy(struct ndtd_router *router)
{
    if (!router)
        return;
    atomic_store(&router->quit, 1);
    join(router);
    if (router->opened)
        router->opened->ops->close(router->opened);
    ndt_cloud_free(&router->scan);
    free(router);
}
