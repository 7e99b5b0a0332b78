#define _GNU_SOURCE
#include "ndtd/map_loader.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "map_request.h"
#include "map_source.h"
#include "ndtd/log.h"
#include "ndtd/map_reading.h"
#include "ndt/clock.h"
#include "packed_position.h"

/* Limits of requests, which come from clients: further ones are refused when MAX_REQUESTS are waiting. */
enum { MAX_REQUESTS = 1024, MAX_HELD = 8, CHECK_HELD_MS = 100, NICENESS = 10 };
static const double REPORT_S = 3;

/* The matching thread uses the atomic members only, takes no lock and does not wait. */
struct ndtd_map_loader {
    struct ndtd_map_loader_config config;
    pthread_t thread;
    sem_t wake;
    atomic_int quit;
    struct ndt_progress work; /* progress of the current request; cancelled together with `quit` */
    _Atomic double start_us;  /* begin of the current request */
    atomic_int is_working;
    _Atomic(struct ndt_map *) fresh; /* map that was published and not yet taken; &no_new_map: none */
    /* Positions, packed (see pack_position). `centre`: position of the last choice of tiles. */
    _Atomic uint64_t position, centre;
    atomic_int follow_due;
    _Atomic uint64_t requested; /* number of requests and due moves so far */

    pthread_mutex_t mutex; /* guards the members below; not held while maps are read or built */
    pthread_cond_t progress;
    struct ndtd_map_request *first, *last;
    unsigned request_count;
    _Atomic uint64_t done; /* last one of `requested` that is done; read without the mutex too */
    struct ndtd_map_loader_status status;

    /* Members of the thread. */
    char path[1024]; /* path of the map, or of the last request while there is none */
    struct ndtd_map_source *source;
    struct ndt_map *map;            /* last published map */
    struct ndt_map *held[MAX_HELD]; /* earlier published maps, possibly still in use */
};

static struct ndt_map no_new_map;

/* Whether the position has become unknown since the tiles were chosen. */
static int is_nowhere(const struct ndtd_map_loader *loader)
{
    const uint64_t centre = atomic_load(&loader->centre);
    return atomic_load(&loader->position) == NDTD_UNKNOWN_POSITION && centre != NDTD_UNKNOWN_POSITION &&
           centre != NDTD_NOT_FOLLOWING;
}

/* ---- publication of maps ---- */

/* Releases maps that only the loader uses. Freeing 100 MiB would stall the matching thread; therefore the loader
 * keeps a reference to every map until it holds the only one, and frees the map here. */
static void release_unused(struct ndtd_map_loader *loader)
{
    for (size_t i = 0; i < MAX_HELD; i++) {
        struct ndt_map *map = loader->held[i];
        if (!map || __atomic_load_n(&map->references, __ATOMIC_ACQUIRE) > 1)
            continue;
        ndt_map_release(map);
        loader->held[i] = NULL;
    }
}

static void keep_until_unused(struct ndtd_map_loader *loader, struct ndt_map *map)
{
    for (size_t i = 0; i < MAX_HELD; i++) {
        if (loader->held[i])
            continue;
        loader->held[i] = map;
        return;
    }
    ndt_map_release(map); /* MAX_HELD maps are in use: the last user frees this one */
}

static int holds_any(const struct ndtd_map_loader *loader)
{
    for (size_t i = 0; i < MAX_HELD; i++)
        if (loader->held[i])
            return 1;
    return 0;
}

static void replace_fresh(struct ndtd_map_loader *loader, struct ndt_map *replacement)
{
    struct ndt_map *untaken = atomic_exchange(&loader->fresh, replacement);
    if (untaken != &no_new_map)
        ndt_map_release(untaken);
}

/* Publishes a map and takes ownership of the reference. */
static void publish(struct ndtd_map_loader *loader, struct ndt_map *map)
{
    if (loader->map)
        keep_until_unused(loader, loader->map);
    loader->map = map;
    replace_fresh(loader, ndt_map_retain(map));
    release_unused(loader);
}

/* ---- processing of requests ---- */

/* Loads all tiles, if they are few enough, or no map, while the position is unknown. */
static enum ndt_status load_everywhere(const struct ndtd_map_loader *loader, struct ndtd_map_source *source,
                                       struct ndtd_map_change *change, struct ndt_error *err)
{
    const uint64_t bytes = ndtd_map_source_bytes(source);
    if (bytes <= loader->config.search_limit_bytes)
        return ndtd_map_source_all(source, change, err);
    if (loader->config.search_limit_bytes > 0)
        ndtd_log(
            NDTD_LOG_WARNING,
            "map: tiles of %.0f MB are above dynamic_map_loading.search_limit_mb, %.0f: without a pose or a GNSS "
            "position there is no map to search in",
            (double)bytes * 1e-6, (double)loader->config.search_limit_bytes * 1e-6);
    change->changed = !loader->map;
    return NDT_OK;
}

static enum ndt_status fill(struct ndtd_map_loader *loader, struct ndtd_map_source *source,
                            const struct ndtd_map_request *request, struct ndtd_map_change *change,
                            struct ndt_error *err)
{
    uint64_t position = atomic_load(&loader->position);
    double position_m[2];
    if (!ndtd_map_source_follows(source))
        return ndtd_map_source_all(source, change, err);
    atomic_store(&loader->centre, NDTD_UNKNOWN_POSITION);
    if (request->has_near && !ndtd_pack_position(request->near_m, &position))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: (%g, %g) is not a valid position for loading tiles",
                        request->path, request->near_m[0], request->near_m[1]);
    atomic_store(&loader->centre, position);
    if (position == NDTD_UNKNOWN_POSITION)
        return load_everywhere(loader, source, change, err);
    ndtd_unpack_position(position, position_m);
    return ndtd_map_source_near(source, position_m, 1, change, err);
}

static void adopt(struct ndtd_map_loader *loader, struct ndtd_map_source *source)
{
    ndtd_map_source_close(loader->source);
    loader->source = source;
    if (!source || !ndtd_map_source_follows(source))
        atomic_store(&loader->centre, NDTD_NOT_FOLLOWING);
}

static void warn_coarse(const char *path, const struct ndt_map *map)
{
    char text[1280];
    if (map && ndtd_map_coarse_text(text, sizeof(text), path, map->spacing_m))
        ndtd_log(NDTD_LOG_WARNING, "map %s", text);
}

/* Loads a map. A directory without a tile near the position is kept when there is no other map: the position may
 * change. */
static enum ndt_status load(struct ndtd_map_loader *loader, const struct ndtd_map_request *request,
                            struct ndtd_map_change *change, struct ndt_error *err)
{
    struct ndtd_map_source *source;
    const uint64_t centre = atomic_load(&loader->centre);
    enum ndt_status status = ndtd_map_source_open(&source, request->path, &loader->config, &loader->work, err);
    if (status != NDT_OK)
        return status;
    status = fill(loader, source, request, change, err);
    warn_coarse(request->path, change->map);
    if (status == NDT_OK || (!loader->map && ndtd_map_source_follows(source))) {
        adopt(loader, source);
    } else {
        atomic_store(&loader->centre, centre);
        ndtd_map_source_close(source);
    }
    return status;
}

static enum ndt_status change_tile(struct ndtd_map_loader *loader, const struct ndtd_map_request *request,
                                   struct ndtd_map_change *change, struct ndt_error *err)
{
    struct ndtd_map_source *source = loader->source;
    if (!source) {
        enum ndt_status status = ndtd_map_source_open(&source, NULL, &loader->config, &loader->work, err);
        if (status != NDT_OK)
            return status;
        adopt(loader, source);
    }
    return request->kind == NDTD_MAP_ADD_TILE ? ndtd_map_source_add(source, request->path, change, err)
                                              : ndtd_map_source_remove(source, request->path, change, err);
}

static enum ndt_status process(struct ndtd_map_loader *loader, const struct ndtd_map_request *request,
                               struct ndtd_map_change *change, struct ndt_error *err)
{
    *change = (struct ndtd_map_change){0};
    if (request->kind != NDTD_MAP_LOAD)
        return change_tile(loader, request, change, err);
    if (request->path)
        return load(loader, request, change, err);
    adopt(loader, NULL);
    change->changed = 1;
    return NDT_OK;
}

static enum ndt_status follow(struct ndtd_map_loader *loader, struct ndtd_map_change *change, struct ndt_error *err)
{
    const uint64_t position = atomic_load(&loader->position);
    double position_m[2];
    *change = (struct ndtd_map_change){0};
    if (!ndtd_is_far(position, atomic_load(&loader->centre), loader->config.update_distance_m) &&
        !is_nowhere(loader))
        return NDT_OK;
    /* The centre is also set after a failure: the next attempt is due after update_distance_m, not with the next
     * scan. */
    atomic_store(&loader->centre, position);
    if (position == NDTD_UNKNOWN_POSITION)
        return load_everywhere(loader, loader->source, change, err);
    ndtd_unpack_position(position, position_m);
    return ndtd_map_source_near(loader->source, position_m, 0, change, err);
}

static void note_map(struct ndtd_map_loader_status *status, const struct ndt_map *map)
{
    status->map_id = map ? map->id : 0;
    status->points = map ? map->points : 0;
    status->loads += map != NULL;
}

static void note_source(struct ndtd_map_loader_status *status, const struct ndtd_map_source *source)
{
    struct ndtd_map_source_counts counts = {0};
    if (source)
        counts = ndtd_map_source_count(source);
    status->tiles_loaded = counts.loaded;
    status->tiles_known = counts.known;
    status->tile_reads = counts.reads;
    status->sums_bytes = counts.sums_bytes;
}

/* A map that stays because another one cannot be loaded keeps its path. */
static void note_path(struct ndtd_map_loader *loader, const struct ndtd_map_request *request,
                      enum ndt_status result)
{
    if (request->kind != NDTD_MAP_LOAD)
        return;
    if (result == NDT_OK || !loader->map)
        snprintf(loader->path, sizeof(loader->path), "%s", request->path ? request->path : "");
    pthread_mutex_lock(&loader->mutex);
    memcpy(loader->status.path, loader->path, sizeof(loader->path));
    pthread_mutex_unlock(&loader->mutex);
}

/* ---- progress ---- */

static void read_progress(const struct ndtd_map_loader *loader, struct ndtd_map_loader_progress *out)
{
    const struct ndt_progress *work = &loader->work;
    *out = (struct ndtd_map_loader_progress){
        .busy = atomic_load(&loader->is_working),
        .elapsed_s = (ndt_clock_us() - atomic_load(&loader->start_us)) * 1e-6,
        .tiles = ndt_progress_get(work, NDT_PROGRESS_TILES),
        .all_tiles = ndt_progress_get(work, NDT_PROGRESS_ALL_TILES),
        .bytes = ndt_progress_get(work, NDT_PROGRESS_BYTES),
        .all_bytes = ndt_progress_get(work, NDT_PROGRESS_ALL_BYTES),
        .points = ndt_progress_get(work, NDT_PROGRESS_POINTS),
        .all_points = ndt_progress_get(work, NDT_PROGRESS_ALL_POINTS),
        .levels = ndt_progress_get(work, NDT_PROGRESS_LEVELS),
        .all_levels = ndt_progress_get(work, NDT_PROGRESS_ALL_LEVELS),
    };
}

static void report(void *context, const struct ndt_progress *work)
{
    struct ndtd_map_loader_progress now;
    (void)work;
    read_progress(context, &now);
    ndtd_log_always(
        NDTD_LOG_INFO,
        "map: loading for %.0f s: file %llu of %llu (%.0f of %.0f MB), %.1f of %.1f million points summed, "
        "%llu of %llu levels",
        now.elapsed_s, (unsigned long long)now.tiles + (now.tiles < now.all_tiles),
        (unsigned long long)now.all_tiles, (double)now.bytes * 1e-6, (double)now.all_bytes * 1e-6,
        (double)now.points * 1e-6, (double)now.all_points * 1e-6, (unsigned long long)now.levels,
        (unsigned long long)now.all_levels);
}

static void begin(struct ndtd_map_loader *loader, double start_us)
{
    ndt_progress_begin(&loader->work);
    atomic_store(&loader->start_us, start_us);
    atomic_store(&loader->is_working, 1);
}

/* Finishes a request that began at start_us. */
static void finish(struct ndtd_map_loader *loader, const struct ndtd_map_change *change, enum ndt_status result,
                   const struct ndt_error *err, double start_us)
{
    struct ndtd_map_loader_status *status = &loader->status;
    atomic_store(&loader->is_working, 0);
    malloc_trim(
        0); /* the C library keeps some of the buffers of reading and building, which are larger than the map */
    if (result != NDT_OK && result != NDT_ERR_CANCELLED)
        ndtd_log(NDTD_LOG_ERROR, "map: %s", err->text);
    if (change->changed)
        publish(loader, change->map);
    pthread_mutex_lock(&loader->mutex);
    if (change->changed)
        note_map(status, change->map);
    status->failed = result != NDT_OK;
    memcpy(status->error, err->text, sizeof(status->error));
    status->last_load_ms = (ndt_clock_us() - start_us) * 1e-3;
    note_source(status, loader->source);
    pthread_mutex_unlock(&loader->mutex);
}

/* ---- the thread ---- */

static struct ndtd_map_request *next_request(struct ndtd_map_loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    struct ndtd_map_request *request = loader->first;
    if (request) {
        loader->first = request->next;
        loader->request_count--;
    }
    if (!loader->first)
        loader->last = NULL;
    pthread_mutex_unlock(&loader->mutex);
    return request;
}

/* Processes all requests. `requested` is read first: requests that arrive during this round may be processed too,
 * but count in the next round. */
static void process_all(struct ndtd_map_loader *loader)
{
    struct ndtd_map_change change;
    const uint64_t requested = atomic_load(&loader->requested);
    for (struct ndtd_map_request *request = next_request(loader); request; request = next_request(loader)) {
        struct ndt_error err = {""};
        const double start_us = ndt_clock_us();
        if (!atomic_load(&loader->quit)) {
            begin(loader, start_us);
            enum ndt_status result = process(loader, request, &change, &err);
            note_path(loader, request, result);
            finish(loader, &change, result, &err, start_us);
        }
        ndtd_map_request_free(request);
    }
    if (atomic_exchange(&loader->follow_due, 0) && !atomic_load(&loader->quit)) {
        struct ndt_error err = {""};
        const double start_us = ndt_clock_us();
        begin(loader, start_us);
        enum ndt_status result = follow(loader, &change, &err);
        if (result != NDT_OK || change.changed)
            finish(loader, &change, result, &err, start_us);
        atomic_store(&loader->is_working, 0);
    }
    pthread_mutex_lock(&loader->mutex);
    loader->done = requested;
    pthread_cond_broadcast(&loader->progress);
    pthread_mutex_unlock(&loader->mutex);
}

/* Waits until `wake` is posted or `WAKE_CLOCK` shows `until`. */
#if __GLIBC_PREREQ(2, 30)
#define WAKE_CLOCK CLOCK_MONOTONIC
static int wait_until(sem_t *wake, const struct timespec *until)
{
    return sem_clockwait(wake, WAKE_CLOCK, until);
}
#else /* RHEL 8: a step of the clock delays the release of maps */
#define WAKE_CLOCK CLOCK_REALTIME
static int wait_until(sem_t *wake, const struct timespec *until)
{
    return sem_timedwait(wake, until);
}
#endif

static void sleep_until_woken(struct ndtd_map_loader *loader)
{
    struct timespec until;
    if (!holds_any(loader)) {
        while (sem_wait(&loader->wake) != 0 && errno == EINTR)
            ;
        return;
    }
    clock_gettime(WAKE_CLOCK, &until);
    until.tv_nsec += CHECK_HELD_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)wait_until(&loader->wake, &until);
    release_unused(loader);
}

static void *run(void *context)
{
    struct ndtd_map_loader *loader = context;
    pthread_setname_np(pthread_self(), "ndt-map");
    (void)!setpriority(PRIO_PROCESS, 0,
                       NICENESS); /* on Linux of this thread only; the matching thread has precedence */
    while (!atomic_load(&loader->quit)) {
        sleep_until_woken(loader);
        process_all(loader);
    }
    return NULL;
}

/* Starts the thread without the creator's real-time class, and with all signals blocked: the main thread handles
 * signals. */
static int start_thread(struct ndtd_map_loader *loader)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int failure = pthread_attr_init(&attributes);
    if (failure)
        return failure;
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED); /* SCHED_OTHER is the default */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    failure = pthread_create(&loader->thread, &attributes, run, loader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failure;
}

static enum ndt_status check_config(const struct ndtd_map_loader_config *config, struct ndt_error *err)
{
    const struct {
        const char *name;
        double value_m, least_m;
    } lengths[] = {{"update_distance", config->update_distance_m, 0.01},
                   {"map_radius", config->map_radius_m, 0.01},
                   {"lidar_radius", config->lidar_radius_m, 0}};
    for (size_t i = 0; config->dynamic && i < sizeof(lengths) / sizeof(lengths[0]); i++)
        if (!(lengths[i].value_m >= lengths[i].least_m && lengths[i].value_m <= 1e6))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "dynamic_map_loading.%s: %g m is outside %g .. 1e6 m",
                            lengths[i].name, lengths[i].value_m, lengths[i].least_m);
    return NDT_OK;
}

static void init_locks(struct ndtd_map_loader *loader)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&loader->progress, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&loader->mutex, NULL);
    sem_init(&loader->wake, 0, 0);
}

static void free_loader(struct ndtd_map_loader *loader)
{
    for (struct ndtd_map_request *request = loader->first, *next; request; request = next) {
        next = request->next;
        ndtd_map_request_free(request);
    }
    replace_fresh(loader, NULL);
    ndt_map_release(loader->map);
    for (size_t i = 0; i < MAX_HELD; i++)
        ndt_map_release(loader->held[i]);
    ndtd_map_source_close(loader->source);
    pthread_mutex_destroy(&loader->mutex);
    pthread_cond_destroy(&loader->progress);
    sem_destroy(&loader->wake);
    free(loader);
}

enum ndt_status ndtd_map_loader_create(struct ndtd_map_loader **out, const struct ndtd_map_loader_config *config,
                                       struct ndt_error *err)
{
    *out = NULL;
    enum ndt_status status = check_config(config, err);
    if (status != NDT_OK)
        return status;
    struct ndtd_map_loader *loader = calloc(1, sizeof(*loader));
    if (!loader)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the map loader");
    loader->config = *config;
    ndt_progress_init(&loader->work, report, loader, REPORT_S);
    atomic_init(&loader->fresh, &no_new_map);
    atomic_init(&loader->position, NDTD_UNKNOWN_POSITION);
    atomic_init(&loader->centre, NDTD_NOT_FOLLOWING);
    init_locks(loader);
    const int failure = start_thread(loader);
    if (failure) {
        free_loader(loader);
        return ndt_fail(err, NDT_ERR_MEMORY, "cannot start the map loader's thread: %s", strerror(failure));
    }
    *out = loader;
    return NDT_OK;
}

void ndtd_map_loader_destroy(struct ndtd_map_loader *loader)
{
    if (!loader)
        return;
    atomic_store(&loader->quit, 1);
    ndt_progress_cancel(&loader->work);
    sem_post(&loader->wake);
    pthread_join(loader->thread, NULL);
    free_loader(loader);
}

/* ---- requests ---- */

static void refuse(struct ndtd_map_loader *loader, const char *path)
{
    struct ndt_error err;
    ndt_fail(&err, NDT_ERR_LIMIT, "%.400s: refused, memory is exhausted or %d requests are waiting",
             path ? path : "unload", MAX_REQUESTS);
    pthread_mutex_lock(&loader->mutex);
    loader->status.failed = 1;
    memcpy(loader->status.error, err.text, sizeof(loader->status.error));
    pthread_mutex_unlock(&loader->mutex);
    ndtd_log(NDTD_LOG_ERROR, "map: %s", err.text);
}

static void enqueue(struct ndtd_map_loader *loader, enum ndtd_map_request_kind kind, const char *path,
                    const double near_m[2])
{
    struct ndtd_map_request *request = ndtd_map_request_create(kind, path, near_m);
    pthread_mutex_lock(&loader->mutex);
    if (!request || loader->request_count == MAX_REQUESTS) {
        pthread_mutex_unlock(&loader->mutex);
        refuse(loader, path);
        if (request)
            ndtd_map_request_free(request);
        return;
    }
    if (loader->last)
        loader->last->next = request;
    else
        loader->first = request;
    loader->last = request;
    loader->request_count++;
    if (kind == NDTD_MAP_LOAD)
        snprintf(loader->status.path, sizeof(loader->status.path), "%s", path ? path : "");
    atomic_fetch_add(&loader->requested, 1);
    pthread_mutex_unlock(&loader->mutex);
    sem_post(&loader->wake);
}

void ndtd_map_loader_load(struct ndtd_map_loader *loader, const char *path, const double near_m[2])
{
    enqueue(loader, NDTD_MAP_LOAD, path, near_m);
}

void ndtd_map_loader_add_tile(struct ndtd_map_loader *loader, const char *path)
{
    enqueue(loader, NDTD_MAP_ADD_TILE, path, NULL);
}

void ndtd_map_loader_remove_tile(struct ndtd_map_loader *loader, const char *path)
{
    enqueue(loader, NDTD_MAP_REMOVE_TILE, path, NULL);
}

void ndtd_map_loader_follow(struct ndtd_map_loader *loader, const double position_m[2])
{
    uint64_t position;
    if (!ndtd_pack_position(position_m, &position))
        return;
    atomic_store(&loader->position, position);
    if (!ndtd_is_far(position, atomic_load(&loader->centre), loader->config.update_distance_m) ||
        atomic_exchange(&loader->follow_due, 1))
        return;
    atomic_fetch_add(&loader->requested, 1);
    sem_post(&loader->wake);
}

void ndtd_map_loader_lose(struct ndtd_map_loader *loader)
{
    if (loader->config.search_limit_bytes == 0)
        return;
    atomic_store(&loader->position, NDTD_UNKNOWN_POSITION);
    if (!is_nowhere(loader) || atomic_exchange(&loader->follow_due, 1))
        return;
    atomic_fetch_add(&loader->requested, 1);
    sem_post(&loader->wake);
}

/* ---- results ---- */

int ndtd_map_loader_take(struct ndtd_map_loader *loader, struct ndt_map **map)
{
    *map = NULL;
    if (atomic_load(&loader->fresh) == &no_new_map)
        return 0;
    struct ndt_map *fresh = atomic_exchange(&loader->fresh, &no_new_map);
    if (fresh == &no_new_map)
        return 0;
    *map = fresh;
    return 1;
}

int ndtd_map_loader_is_settled(const struct ndtd_map_loader *loader)
{
    const uint64_t requested = atomic_load(&loader->requested);
    return atomic_load(&loader->done) >= requested && atomic_load(&loader->fresh) == &no_new_map;
}

int ndtd_map_loader_wait(struct ndtd_map_loader *loader, double timeout_s)
{
    struct timespec until;
    const uint64_t requested = atomic_load(&loader->requested);
    const double whole_s = floor(fmin(fmax(timeout_s, 0), 1e9));
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)whole_s;
    until.tv_nsec += (long)((fmin(fmax(timeout_s, 0), 1e9) - whole_s) * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    int failure = 0;
    pthread_mutex_lock(&loader->mutex);
    while (loader->done < requested && failure != ETIMEDOUT)
        failure = pthread_cond_timedwait(&loader->progress, &loader->mutex, &until);
    const int done = loader->done >= requested;
    pthread_mutex_unlock(&loader->mutex);
    return done;
}

void ndtd_map_loader_status(struct ndtd_map_loader *loader, struct ndtd_map_loader_status *out)
{
    pthread_mutex_lock(&loader->mutex);
    *out = loader->status;
    read_progress(loader, &out->progress);
    out->busy = loader->done < atomic_load(&loader->requested);
    pthread_mutex_unlock(&loader->mutex);
}
