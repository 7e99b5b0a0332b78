/** @file
 * @brief Searches beside the matching. */
#define _GNU_SOURCE /* scheduling */
#include "ndtd/searcher.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndtd/log.h"
#include "ndtd/realtime.h"

enum phase { IDLE, WANTED, RUNNING, DONE };

struct ndtd_searcher {
    struct ndt_search_config config;
    int is_background;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by the lock. */
    int quit;
    struct ndt_map *map;
    _Atomic int phase;

    /* Of the thread, or of the caller without one. */
    struct ndt_search *search;
    struct ndt_map *prepared; /* that `search` uses */
    int is_prepared;          /* 0 with `prepared`: its field could not be built */
    struct ndt_search_params params;
    struct ndt_search_control control;
    int has_reported; /* that the engine has failed */

    /* The caller's while IDLE or DONE, otherwise of the thread. */
    struct ndt_cloud scan;
    struct ndtd_search_answer answer;
};

/* Builds the field of a map; a failure is remembered, so that it is reported once. */
static enum ndt_status prepare(struct ndtd_searcher *searcher, struct ndt_map *map, struct ndt_error *err)
{
    struct ndt_field *field = NULL;
    enum ndt_status status = NDT_OK;
    if (map == searcher->prepared && searcher->is_prepared)
        return NDT_OK;
    if (map == searcher->prepared && map)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "the map has no field to search in");
    if (!searcher->search)
        status = ndt_search_create(&searcher->search, &searcher->config, err);
    if (status == NDT_OK && map)
        status = ndt_field_build(&field, map, err);
    if (status == NDT_OK)
        status = ndt_search_set_map(searcher->search, map, field, err);
    ndt_field_release(field);
    ndt_map_retain(map);
    ndt_map_release(searcher->prepared);
    searcher->prepared = map;
    searcher->is_prepared = status == NDT_OK;
    return status;
}

/* Once: the results are the same without the device. */
static void report_engine(struct ndtd_searcher *searcher)
{
    const char *failure = searcher->search ? ndt_search_engine_failure(searcher->search) : NULL;
    if (failure && !searcher->has_reported)
        ndtd_log(NDTD_LOG_WARNING, "searches are scored on the CPU: %s", failure);
    searcher->has_reported = failure != NULL;
}

static void run(struct ndtd_searcher *searcher, struct ndt_map *map)
{
    struct ndtd_search_answer *answer = &searcher->answer;
    const struct ndtd_search_request *request = &answer->request;
    answer->why = (struct ndt_error){""};
    answer->result.count = 0;
    answer->status = prepare(searcher, map, &answer->why);
    if (answer->status == NDT_OK)
        answer->status = ndt_search_run(searcher->search, &searcher->params, &searcher->scan,
                                        request->has_up ? request->up_in_sensor : NULL, &request->window,
                                        &searcher->control, &answer->result, &answer->why);
    report_engine(searcher);
}

/* The map to work with, as a reference, and whether a search is wanted; waits for something to do. 0: quit. */
static int wait_for_work(struct ndtd_searcher *searcher, struct ndt_map **map, int *is_wanted)
{
    pthread_mutex_lock(&searcher->lock);
    while (!searcher->quit && searcher->phase != WANTED && searcher->map == searcher->prepared)
        pthread_cond_wait(&searcher->changed, &searcher->lock);
    *map = ndt_map_retain(searcher->map);
    *is_wanted = searcher->phase == WANTED;
    if (*is_wanted)
        searcher->phase = RUNNING;
    const int goes_on = !searcher->quit;
    pthread_mutex_unlock(&searcher->lock);
    return goes_on;
}

static void *run_thread(void *argument)
{
    struct ndtd_searcher *searcher = argument;
    struct ndt_map *map;
    struct ndt_error err = {""};
    int is_wanted;
    ndtd_thread_name("ndtd-search");
    while (wait_for_work(searcher, &map, &is_wanted)) {
        if (is_wanted) {
            run(searcher, map);
            atomic_store(&searcher->phase, DONE);
        } else if (prepare(searcher, map, &err) != NDT_OK) {
            ndtd_log(NDTD_LOG_WARNING, "no search over this map: %s", err.text);
        }
        ndt_map_release(map);
    }
    ndt_map_release(map);
    return NULL;
}

/* The thread that creates the searcher may have real-time priority; searching takes what is left. */
static int start_thread(struct ndtd_searcher *searcher)
{
    pthread_attr_t attributes;
    const struct sched_param normal = {0};
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_BATCH);
    pthread_attr_setschedparam(&attributes, &normal);
    const int error = pthread_create(&searcher->thread, &attributes, run_thread, searcher);
    pthread_attr_destroy(&attributes);
    return error;
}

enum ndt_status ndtd_searcher_create(struct ndtd_searcher **out, const struct ndtd_searcher_config *config,
                                     struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_searcher *searcher = calloc(1, sizeof(*searcher));
    if (!searcher)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the searcher");
    searcher->config = (struct ndt_search_config){.threads = config->compute->threads,
                                                  .isa = config->compute->isa,
                                                  .engine = ndt_backend_search_engine(config->backend),
                                                  .device = config->compute->device};
    ndt_search_params_default(&searcher->params);
    ndt_cloud_init(&searcher->scan);
    pthread_mutex_init(&searcher->lock, NULL);
    pthread_cond_init(&searcher->changed, NULL);
    searcher->is_background = config->is_background;
    if (searcher->is_background && start_thread(searcher) != 0) {
        searcher->is_background = 0;
        ndtd_searcher_destroy(searcher);
        return ndt_fail(err, NDT_ERR_MEMORY, "the thread of the searcher cannot be started");
    }
    *out = searcher;
    return NDT_OK;
}

void ndtd_searcher_destroy(struct ndtd_searcher *searcher)
{
    if (!searcher)
        return;
    if (searcher->is_background) {
        pthread_mutex_lock(&searcher->lock);
        searcher->quit = 1;
        pthread_cond_signal(&searcher->changed);
        pthread_mutex_unlock(&searcher->lock);
        ndt_search_cancel(&searcher->control);
        pthread_join(searcher->thread, NULL);
    }
    ndt_search_destroy(searcher->search);
    ndt_map_release(searcher->prepared);
    ndt_map_release(searcher->map);
    ndt_cloud_free(&searcher->scan);
    pthread_cond_destroy(&searcher->changed);
    pthread_mutex_destroy(&searcher->lock);
    free(searcher);
}

void ndtd_searcher_set_map(struct ndtd_searcher *searcher, struct ndt_map *map)
{
    pthread_mutex_lock(&searcher->lock);
    ndt_map_retain(map);
    ndt_map_release(searcher->map);
    searcher->map = map;
    pthread_cond_signal(&searcher->changed);
    pthread_mutex_unlock(&searcher->lock);
    if (atomic_load(&searcher->phase) == RUNNING)
        ndt_search_cancel(&searcher->control);
}

int ndtd_searcher_is_free(const struct ndtd_searcher *searcher)
{
    const int phase = atomic_load(&searcher->phase);
    return searcher->map && (phase == IDLE || phase == DONE);
}

enum ndt_status ndtd_searcher_start(struct ndtd_searcher *searcher, const struct ndtd_search_request *request,
                                    struct ndt_error *err)
{
    enum ndt_status status = ndt_cloud_copy(&searcher->scan, request->scan, err);
    if (status != NDT_OK)
        return status;
    searcher->answer.request = *request;
    searcher->answer.request.scan = NULL;
    searcher->control = (struct ndt_search_control){0};
    if (!searcher->is_background) {
        run(searcher, searcher->map);
        atomic_store(&searcher->phase, DONE);
        return NDT_OK;
    }
    pthread_mutex_lock(&searcher->lock);
    searcher->phase = WANTED;
    pthread_cond_signal(&searcher->changed);
    pthread_mutex_unlock(&searcher->lock);
    return NDT_OK;
}

const struct ndtd_search_answer *ndtd_searcher_take(struct ndtd_searcher *searcher)
{
    if (atomic_load(&searcher->phase) != DONE)
        return NULL;
    atomic_store(&searcher->phase, IDLE);
    return &searcher->answer;
}

int ndtd_searcher_progress(const struct ndtd_searcher *searcher, unsigned *percent)
{
    const int phase = atomic_load(&searcher->phase);
    *percent = phase == RUNNING ? ndt_search_progress(&searcher->control) : 0;
    return phase == WANTED || phase == RUNNING;
}
