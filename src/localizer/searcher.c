/** @file
 * @brief Searches beside the matching. */
#define _GNU_SOURCE /* scheduling */
#include "ndtd/searcher.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ndt/clock.h"
#include "backends.h"
#include "ndtd/log.h"
#include "ndtd/map_field.h"
#include "ndtd/realtime.h"
#include "search_aligner.h"
#include "search_choice.h"

enum { NICENESS = 19 };
/* Time after which a device that has not aligned the places of a search is left for the threads. */
static const double ALIGNER_LIMIT_US = 20e6;

enum phase { IDLE, WANTED, RUNNING, DONE };

/* The matching thread never waits for the searcher's: it uses the atomic members at any time, and the others only
 * in the phases that are its own. */
struct ndtd_searcher {
    struct ndt_search_config config;
    const char *backend; /* in the table of backends; NULL: no device aligns */
    struct ndt_backend_config compute;
    int is_background, is_eager;
    pthread_t thread;
    sem_t wake;
    atomic_int quit;
    _Atomic int phase;
    _Atomic(struct ndt_map *) fresh;   /* reference to a new map that was not taken yet; &no_new_map: none */
    _Atomic(struct ndt_field *) ready; /* reference to a field that was built; NULL: none, or taken */

    /* Members of the caller. */
    int has_map;
    uint64_t map_id;

    /* Members of the thread, or of the caller if there is none. */
    struct ndt_map *map; /* map that was taken last */
    struct ndt_search *search;
    struct ndt_map *prepared; /* the map that `search` uses */
    int is_prepared;          /* 0 with `prepared`: its field could not be built */
    struct ndt_search_params params;
    struct ndt_search_control control;
    struct ndtd_search_measurement choice; /* limit_us 0: the choice is made */
    struct ndt_search_control choosing;    /* cancelled by a search that is wanted */
    int has_reported;                      /* the failure of the engine was logged */
    struct ndtd_search_aligner aligner;    /* lent to `search` */

    /* Members of the caller while IDLE or DONE, otherwise of the thread. */
    struct ndt_cloud scan;
    struct ndtd_search_answer answer;
};

static struct ndt_map no_new_map;

static void replace_fresh(struct ndtd_searcher *searcher, struct ndt_map *replacement)
{
    struct ndt_map *untaken = atomic_exchange(&searcher->fresh, replacement);
    if (untaken != &no_new_map)
        ndt_map_release(untaken);
}

/* Takes the new map. Returns 0 when none was set since the last call. */
static int take_fresh(struct ndtd_searcher *searcher)
{
    struct ndt_map *map = atomic_exchange(&searcher->fresh, &no_new_map);
    if (map == &no_new_map)
        return 0;
    ndt_map_release(searcher->map);
    searcher->map = map;
    return 1;
}

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
    if (status == NDT_OK && searcher->choice.limit_us > 0)
        ndt_search_use_engine(searcher->search, 0);
    if (status == NDT_OK && map)
        status = ndtd_map_field(&field, map, err);
    if (status == NDT_OK)
        status = ndt_search_set_map(searcher->search, map, field, err);
    ndt_field_release(atomic_exchange(&searcher->ready, status == NDT_OK ? ndt_field_retain(field) : NULL));
    ndt_field_release(field);
    ndt_map_retain(map);
    ndt_map_release(searcher->prepared);
    searcher->prepared = map;
    searcher->is_prepared = status == NDT_OK;
    return status;
}

/* Logs a failure of the engine once: the results are the same without the device. */
static void report_engine(struct ndtd_searcher *searcher)
{
    const char *failure = searcher->search ? ndt_search_engine_failure(searcher->search) : NULL;
    if (failure && !searcher->has_reported)
        ndtd_log(NDTD_LOG_WARNING, "searches are scored on the CPU: %s", failure);
    searcher->has_reported = failure != NULL;
}

/* Leaves alignments to the threads for good: the poses are the same but for the last digits. why: NULL: measured.
 */
static void give_up_aligner(struct ndtd_searcher *searcher, const char *why)
{
    if (why)
        ndtd_log(NDTD_LOG_WARNING, "searches are aligned on the CPU: %s", why);
    ndt_search_lend_aligner(searcher->search, NULL, 0);
    ndtd_search_aligner_close(&searcher->aligner);
    searcher->backend = NULL;
}

/* Makes the aligner ready for the prepared map; a backend that does not solve is no failure. */
static void prepare_aligner(struct ndtd_searcher *searcher)
{
    struct ndt_error why = {""};
    if (!searcher->backend || !searcher->is_prepared || !searcher->prepared)
        return;
    const enum ndt_status status = ndtd_search_aligner_ready(&searcher->aligner, searcher->backend,
                                                             &searcher->compute, searcher->prepared, &why);
    if (status != NDT_OK)
        give_up_aligner(searcher, status == NDT_ERR_UNSUPPORTED ? NULL : why.text);
}

/* Lends it to the search, unless it has to be chosen first. */
static void lend_aligner(struct ndtd_searcher *searcher)
{
    if (searcher->choice.limit_us > 0)
        return;
    prepare_aligner(searcher);
    ndt_search_lend_aligner(searcher->search, searcher->aligner.aligner, ndt_clock_us() + ALIGNER_LIMIT_US);
}

static void run(struct ndtd_searcher *searcher)
{
    struct ndtd_search_answer *answer = &searcher->answer;
    const struct ndtd_search_request *request = &answer->request;
    const double start_us = ndt_clock_us();
    (void)take_fresh(searcher);
    answer->why = (struct ndt_error){""};
    answer->result = (struct ndt_search_result){0};
    answer->map_id = searcher->map ? searcher->map->id : 0;
    answer->status = prepare(searcher, searcher->map, &answer->why);
    if (answer->status == NDT_OK) {
        lend_aligner(searcher);
        answer->status =
            ndt_search_run(searcher->search, &searcher->params, &searcher->scan, &request->T_upright_sensor,
                           &request->region, &searcher->control, &answer->result, &answer->why);
    }
    answer->search_us = ndt_clock_us() - start_us;
    report_engine(searcher);
    if (searcher->search && ndt_search_lent_failure(searcher->search))
        give_up_aligner(searcher, ndt_search_lent_failure(searcher->search));
}

static void report_choice(const struct ndtd_searcher *searcher, const struct ndtd_search_choice *choice)
{
    char threads[100], device[200];
    ndt_search_use_engine(searcher->search, 0);
    ndt_search_describe(searcher->search, threads, sizeof(threads));
    ndt_search_use_engine(searcher->search, 1);
    ndt_search_describe(searcher->search, device, sizeof(device));
    const double engine_ms = choice->engine_us * 1e-3, threads_ms = choice->threads_us * 1e-3;
    ndtd_log_always(NDTD_LOG_INFO, "autotune: searches are scored by %s: %.4g ms, %.4g ms by %s",
                    choice->is_engine ? device : threads, choice->is_engine ? engine_ms : threads_ms,
                    choice->is_engine ? threads_ms : engine_ms, choice->is_engine ? threads : device);
    if (!searcher->aligner.backend || choice->aligner_failure.text[0])
        return;
    searcher->aligner.backend->ops->describe(searcher->aligner.backend, device, sizeof(device));
    const double aligner_ms = choice->aligner_us * 1e-3, align_ms = choice->align_threads_us * 1e-3;
    ndtd_log_always(NDTD_LOG_INFO, "autotune: searches are aligned by %s: %.4g ms, %.4g ms by %s",
                    choice->is_aligner ? device : threads, choice->is_aligner ? aligner_ms : align_ms,
                    choice->is_aligner ? align_ms : aligner_ms, choice->is_aligner ? threads : device);
}

/* Measures once, when there is a map, whether the engine and the aligner are faster than the threads. */
static void choose_engine(struct ndtd_searcher *searcher)
{
    struct ndtd_search_choice choice;
    struct ndt_error err = {""};
    if (searcher->choice.limit_us <= 0 || !searcher->is_prepared || !searcher->prepared ||
        atomic_load(&searcher->quit))
        return;
    prepare_aligner(searcher);
    searcher->choice.aligner = searcher->aligner.aligner;
    searcher->choice.search = searcher->search;
    searcher->choice.map = searcher->prepared;
    searcher->choice.control = &searcher->choosing;
    const enum ndt_status status = ndtd_search_choose(&searcher->choice, &choice, &err);
    if (status == NDT_ERR_CANCELLED)
        return;
    searcher->choice.limit_us = 0;
    report_engine(searcher);
    if (status == NDT_OK)
        report_choice(searcher, &choice);
    if (status != NDT_OK || !choice.is_engine)
        ndt_search_drop_engine(searcher->search);
    if (status != NDT_OK || !choice.is_aligner)
        give_up_aligner(searcher, choice.aligner_failure.text[0] ? choice.aligner_failure.text : NULL);
}

/* ---- the thread ---- */

static void sleep_until_woken(struct ndtd_searcher *searcher)
{
    while (sem_wait(&searcher->wake) != 0 && errno == EINTR)
        ;
}

/* Builds a field as soon as there is a map, so that the first search takes no longer than the others. */
static void prepare_ahead(struct ndtd_searcher *searcher)
{
    struct ndt_error err = {""};
    if (!take_fresh(searcher) || (!searcher->is_eager && !searcher->search))
        return;
    if (prepare(searcher, searcher->map, &err) != NDT_OK)
        ndtd_log(NDTD_LOG_WARNING, "no search over this map: %s", err.text);
    else if (searcher->choice.limit_us <= 0)
        prepare_aligner(searcher);
}

/* Lowers the priority of the thread, which the workers of the search inherit. The cores are those of the process,
 * not those of rt.cpus. */
static void step_back(void)
{
    cpu_set_t cpus;
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &(struct sched_param){0});
    (void)!setpriority(PRIO_PROCESS, 0, NICENESS); /* on Linux of this thread only */
    if (sched_getaffinity(getpid(), sizeof(cpus), &cpus) == 0)
        (void)pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

static void *run_thread(void *context)
{
    struct ndtd_searcher *searcher = context;
    ndtd_thread_name("ndt-search");
    step_back();
    while (!atomic_load(&searcher->quit)) {
        int wanted = WANTED;
        sleep_until_woken(searcher);
        if (atomic_load(&searcher->quit))
            break;
        if (atomic_compare_exchange_strong(&searcher->phase, &wanted, RUNNING)) {
            ndt_search_rearm(&searcher->choosing);
            run(searcher);
            atomic_store(&searcher->phase, DONE);
        } else
            prepare_ahead(searcher);
        choose_engine(searcher);
    }
    return NULL;
}

/* Starts the thread without the real-time class of its creator, and with all signals blocked: the main thread
 * handles signals. */
static int start_thread(struct ndtd_searcher *searcher)
{
    pthread_attr_t attributes;
    const struct sched_param normal = {0};
    sigset_t all, before;
    int failure = pthread_attr_init(&attributes);
    if (failure)
        return failure;
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    pthread_attr_setschedparam(&attributes, &normal);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    failure = pthread_create(&searcher->thread, &attributes, run_thread, searcher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failure;
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
    searcher->backend = searcher->config.engine ? searcher->config.engine->name : NULL;
    searcher->compute = *config->compute;
    searcher->is_eager = config->is_eager;
    searcher->choice = (struct ndtd_search_measurement){
        .limit_us = config->is_background && searcher->config.engine ? config->choice_limit_us : 0,
        .pause_s = config->choice_pause_s,
        .now_us = config->now_us ? config->now_us : ndt_clock_us,
        .align_us = config->align_us};
    ndt_search_params_default(&searcher->params);
    ndt_cloud_init(&searcher->scan);
    atomic_init(&searcher->fresh, &no_new_map);
    atomic_init(&searcher->ready, NULL);
    sem_init(&searcher->wake, 0, 0);
    const int failure = config->is_background ? start_thread(searcher) : 0;
    searcher->is_background = config->is_background && !failure;
    if (failure) {
        ndtd_searcher_destroy(searcher);
        return ndt_fail(err, NDT_ERR_MEMORY, "the thread of the searcher cannot be started: %s", strerror(failure));
    }
    *out = searcher;
    return NDT_OK;
}

void ndtd_searcher_destroy(struct ndtd_searcher *searcher)
{
    if (!searcher)
        return;
    if (searcher->is_background) {
        atomic_store(&searcher->quit, 1);
        ndt_search_cancel(&searcher->control);
        ndt_search_cancel(&searcher->choosing);
        sem_post(&searcher->wake);
        pthread_join(searcher->thread, NULL);
    }
    ndt_search_destroy(searcher->search);
    ndtd_search_aligner_close(&searcher->aligner);
    ndt_map_release(searcher->prepared);
    ndt_map_release(searcher->map);
    replace_fresh(searcher, NULL);
    ndt_field_release(atomic_exchange(&searcher->ready, NULL));
    ndt_cloud_free(&searcher->scan);
    sem_destroy(&searcher->wake);
    free(searcher);
}

void ndtd_searcher_set_map(struct ndtd_searcher *searcher, struct ndt_map *map)
{
    const uint64_t map_id = map ? map->id : 0;
    const int is_other = map_id != searcher->map_id;
    searcher->has_map = map != NULL;
    searcher->map_id = map_id;
    replace_fresh(searcher, ndt_map_retain(map));
    if (is_other)
        ndtd_searcher_cancel(searcher);
    if (searcher->is_background)
        sem_post(&searcher->wake);
}

void ndtd_searcher_cancel(struct ndtd_searcher *searcher)
{
    const int phase = atomic_load(&searcher->phase);
    if (phase == WANTED || phase == RUNNING)
        ndt_search_cancel(&searcher->control);
}

int ndtd_searcher_claim(struct ndtd_searcher *searcher, enum ndtd_search_owner owner)
{
    const int phase = atomic_load(&searcher->phase);
    const enum ndtd_search_owner last = searcher->answer.request.owner;
    if (last == NDTD_SEARCH_WATCH && owner != last)
        ndtd_searcher_cancel(searcher);
    return searcher->has_map && (phase == IDLE || (phase == DONE && (last == owner || last == NDTD_SEARCH_WATCH)));
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
        run(searcher);
        atomic_store(&searcher->phase, DONE);
        return NDT_OK;
    }
    if (request->owner != NDTD_SEARCH_WATCH)
        ndt_search_cancel(&searcher->choosing);
    atomic_store(&searcher->phase, WANTED);
    sem_post(&searcher->wake);
    return NDT_OK;
}

const struct ndtd_search_answer *ndtd_searcher_take(struct ndtd_searcher *searcher, enum ndtd_search_owner owner)
{
    if (atomic_load(&searcher->phase) != DONE || searcher->answer.request.owner != owner)
        return NULL;
    atomic_store(&searcher->phase, IDLE);
    if (searcher->answer.map_id != searcher->map_id)
        searcher->answer.result = (struct ndt_search_result){.is_cancelled = 1};
    return &searcher->answer;
}

struct ndt_field *ndtd_searcher_take_field(struct ndtd_searcher *searcher)
{
    struct ndt_error ignored; /* reported by the search that needs the field */
    if (!searcher->is_background && (take_fresh(searcher) || !searcher->search))
        (void)!prepare(searcher, searcher->map, &ignored);
    return atomic_exchange(&searcher->ready, NULL);
}

int ndtd_searcher_progress(const struct ndtd_searcher *searcher, unsigned *percent)
{
    const int phase = atomic_load(&searcher->phase);
    *percent = phase == RUNNING ? ndt_search_progress(&searcher->control) : 0;
    return phase == WANTED || phase == RUNNING;
}
