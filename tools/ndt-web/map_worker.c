/* The thread that loads maps for the page, and what the other threads see of it.
 *
 * The thread is niced, and works on one request at a time; another request or the end cancels it. The mutex guards
 * the request, the state and the pointer to the tree, and is never held while something is read, built or sent. */
#define _GNU_SOURCE
#include "web_map.h"

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "map_tree.h"
#include "result_print.h"

enum { NICENESS = 10 };
static const double REPORT_S = 0.1;
/* Percent of the work when all is read: sorting and building are the rest. */
static const double READ_PERCENT = 60;

/* A tree that answers may still need when another one has taken its place. */
struct held_tree {
    struct web_tree *tree;
    int references;
    char source[1024];
};

enum state { STATE_NONE, STATE_LOADING, STATE_READY, STATE_FAILED };

struct web_map {
    pthread_t thread;
    void (*changed)(void *user);
    void *user;
    struct ndt_progress progress;

    pthread_mutex_t mutex;
    pthread_cond_t wake;
    int quit;
    int is_building; /* all is read */
    char *wanted;    /* path of the next request; NULL: none */
    char *loading;   /* path of the current one */
    enum state state;
    char error[512];
    struct held_tree *held; /* NULL: no map has been loaded */
    uint64_t nodes_served;
};

/* ---- trees in use ---- */

static struct held_tree *hold(struct web_map *map)
{
    pthread_mutex_lock(&map->mutex);
    struct held_tree *held = map->held;
    if (held)
        held->references++;
    pthread_mutex_unlock(&map->mutex);
    return held;
}

static void drop(struct web_map *map, struct held_tree *held)
{
    if (!held)
        return;
    pthread_mutex_lock(&map->mutex);
    const int is_last = --held->references == 0;
    pthread_mutex_unlock(&map->mutex);
    if (!is_last)
        return;
    web_tree_free(held->tree);
    free(held);
}

/* ---- the thread ---- */

static void tell(struct web_map *map)
{
    if (map->changed)
        map->changed(map->user);
}

static void report(void *context, const struct ndt_progress *progress)
{
    (void)progress;
    tell(context);
}

static enum ndt_status make_tree(struct web_map *map, const char *path, struct web_tree **out,
                                 struct ndt_error *err)
{
    struct web_keys keys;
    enum ndt_status status = web_keys_read(&keys, path, &map->progress, err);
    if (status != NDT_OK)
        return status;
    if (keys.count == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no finite point", path);
    ndt_progress_begin(&map->progress); /* points count twice: when they are sorted, and when a node has them */
    ndt_progress_set(&map->progress, NDT_PROGRESS_ALL_POINTS, 2 * (uint64_t)keys.count);
    pthread_mutex_lock(&map->mutex);
    map->is_building = 1;
    pthread_mutex_unlock(&map->mutex);
    if (status == NDT_OK)
        status = web_keys_sort(&keys, &map->progress, err);
    if (status == NDT_OK)
        return web_tree_build(out, &keys, &map->progress, err);
    web_keys_free(&keys);
    return status;
}

/* Puts the outcome of a request in place; a request that was replaced has none. */
static void finish(struct web_map *map, enum ndt_status status, struct held_tree *fresh,
                   const struct ndt_error *err)
{
    struct held_tree *former = NULL;
    pthread_mutex_lock(&map->mutex);
    if (status == NDT_OK) {
        former = map->held;
        map->held = fresh;
        map->state = STATE_READY;
    } else if (status != NDT_ERR_CANCELLED) {
        map->state = STATE_FAILED;
        snprintf(map->error, sizeof(map->error), "%s", err->text);
    }
    free(map->loading);
    map->loading = NULL;
    pthread_mutex_unlock(&map->mutex);
    drop(map, former);
    malloc_trim(0); /* returns the memory of the build */
}

static void work(struct web_map *map, const char *path)
{
    struct ndt_error err = {""};
    struct held_tree *fresh = calloc(1, sizeof(*fresh));
    enum ndt_status status = NDT_OK;
    tell(map);
    if (!fresh) {
        status = ndt_fail(&err, NDT_ERR_MEMORY, "%s: no memory", path);
    } else {
        fresh->references = 1;
        snprintf(fresh->source, sizeof(fresh->source), "%s", path);
        status = make_tree(map, path, &fresh->tree, &err);
    }
    if (status != NDT_OK) {
        free(fresh);
        fresh = NULL;
    }
    finish(map, status, fresh, &err);
    tell(map);
}

/* Waits for a request and makes it the current one; 0: the end. */
static int next_request(struct web_map *map)
{
    pthread_mutex_lock(&map->mutex);
    while (!map->quit && !map->wanted)
        pthread_cond_wait(&map->wake, &map->mutex);
    const int goes_on = !map->quit;
    if (goes_on) {
        map->loading = map->wanted;
        map->wanted = NULL;
        map->state = STATE_LOADING;
        map->is_building = 0;
        ndt_progress_init(&map->progress, report, map, REPORT_S);
    }
    pthread_mutex_unlock(&map->mutex);
    return goes_on;
}

static void *run(void *argument)
{
    struct web_map *map = argument;
    setpriority(PRIO_PROCESS, 0, NICENESS); /* on Linux, of this thread only */
    while (next_request(map))
        work(map, map->loading);
    return NULL;
}

/* ---- the other threads ---- */

static int start_thread(struct web_map *map)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(&map->thread, NULL, run, map);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure == 0)
        pthread_setname_np(map->thread, "ndt-web-map");
    return failure;
}

enum ndt_status web_map_open(struct web_map **out, void (*changed)(void *user), void *user, struct ndt_error *err)
{
    struct web_map *map = *out = calloc(1, sizeof(*map));
    if (!map)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    map->changed = changed;
    map->user = user;
    pthread_mutex_init(&map->mutex, NULL);
    pthread_cond_init(&map->wake, NULL);
    const int failure = start_thread(map);
    if (failure == 0)
        return NDT_OK;
    free(map);
    *out = NULL;
    return ndt_fail(err, NDT_ERR_IO, "cannot start the thread that loads maps: %s", strerror(failure));
}

void web_map_close(struct web_map *map)
{
    if (!map)
        return;
    pthread_mutex_lock(&map->mutex);
    map->quit = 1;
    ndt_progress_cancel(&map->progress);
    pthread_cond_signal(&map->wake);
    pthread_mutex_unlock(&map->mutex);
    pthread_join(map->thread, NULL);
    drop(map, map->held);
    free(map->wanted);
    pthread_cond_destroy(&map->wake);
    pthread_mutex_destroy(&map->mutex);
    free(map);
}

void web_map_load(struct web_map *map, const char *path)
{
    char *copy = strdup(path);
    pthread_mutex_lock(&map->mutex);
    if (copy) {
        free(map->wanted);
        map->wanted = copy;
        if (map->loading)
            ndt_progress_cancel(&map->progress);
        pthread_cond_signal(&map->wake);
    }
    pthread_mutex_unlock(&map->mutex);
}

static double part_of(const struct ndt_progress *progress, enum ndt_progress_item done, enum ndt_progress_item all)
{
    const uint64_t total = ndt_progress_get(progress, all), value = ndt_progress_get(progress, done);
    return total == 0 ? 0 : value >= total ? 1 : (double)value / (double)total;
}

static double percent_of(const struct ndt_progress *progress, int is_building)
{
    if (is_building)
        return READ_PERCENT +
               (100 - READ_PERCENT) * part_of(progress, NDT_PROGRESS_POINTS, NDT_PROGRESS_ALL_POINTS);
    return READ_PERCENT * (ndt_progress_get(progress, NDT_PROGRESS_ALL_TILES) > 0
                               ? part_of(progress, NDT_PROGRESS_TILES, NDT_PROGRESS_ALL_TILES)
                               : part_of(progress, NDT_PROGRESS_BYTES, NDT_PROGRESS_ALL_BYTES));
}

/* Texts of JSON are printable ASCII; a path may hold anything. */
static void print_text(FILE *file, const char *key, const char *text)
{
    char plain[1024];
    size_t length = 0;
    for (; text[length] && length + 1 < sizeof(plain); length++)
        plain[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    plain[length] = '\0';
    json_text(file, key, plain);
}

static void print_tree(FILE *file, const struct held_tree *held)
{
    const struct web_tree_info *info = web_tree_describe(held->tree);
    fprintf(file, ",\"id\":\"%016" PRIx64 "\",\"kind\":\"%s\",\"root\":\"r\"", info->id,
            info->is_voxels ? "voxels" : "points");
    json_reals(file, "origin", info->origin_m, 3);
    json_reals(file, "min", info->min_m, 3);
    json_reals(file, "max", info->max_m, 3);
    fprintf(file, ",\"points\":%" PRIu64 ",\"nodes\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"left_out\":%" PRIu64,
            info->points, info->nodes, info->bytes, info->left_out);
    json_real(file, "spacing_m", info->spacing_m);
    fprintf(file, ",\"has_intensity\":%s", info->has_intensity ? "true" : "false");
}

void web_map_describe(struct web_map *map, FILE *file)
{
    static const char *const names[] = {"none", "loading", "ready", "failed"};
    char source[1024] = "", error[sizeof(map->error)];
    struct held_tree *held = hold(map);
    pthread_mutex_lock(&map->mutex);
    const enum state state = map->state;
    const double percent = percent_of(&map->progress, map->is_building);
    if (map->loading)
        snprintf(source, sizeof(source), "%s", map->loading);
    memcpy(error, map->error, sizeof(error));
    pthread_mutex_unlock(&map->mutex);
    fprintf(file, "{\"state\":\"%s\",\"percent\":%d", names[state],
            state == STATE_LOADING ? (int)percent
            : state == STATE_READY ? 100
                                   : 0);
    print_text(file, "source", state == STATE_LOADING || !held ? source : held->source);
    if (state == STATE_FAILED)
        print_text(file, "error", error);
    if (held)
        print_tree(file, held);
    fputc('}', file);
    drop(map, held);
}

void web_map_why(struct web_map *map, char *why, size_t size)
{
    pthread_mutex_lock(&map->mutex);
    snprintf(why, size, "%s", map->state == STATE_FAILED ? map->error : "");
    pthread_mutex_unlock(&map->mutex);
}

struct web_blob *web_map_node(struct web_map *map, const char *name, char id[64])
{
    struct held_tree *held = hold(map);
    struct web_blob *blob = held ? web_tree_node(held->tree, name) : NULL;
    if (id)
        id[0] = '\0';
    if (id && held)
        snprintf(id, 64, "%016" PRIx64, web_tree_describe(held->tree)->id);
    if (blob) {
        pthread_mutex_lock(&map->mutex);
        map->nodes_served++;
        pthread_mutex_unlock(&map->mutex);
    }
    drop(map, held);
    return blob;
}

void web_map_counters(struct web_map *map, struct web_map_counters *out)
{
    *out = (struct web_map_counters){0};
    pthread_mutex_lock(&map->mutex);
    out->nodes_served = map->nodes_served;
    if (map->held) {
        const struct web_tree_info *info = web_tree_describe(map->held->tree);
        out->points = info->points;
        out->nodes = info->nodes;
        out->bytes = info->bytes;
    }
    pthread_mutex_unlock(&map->mutex);
}
