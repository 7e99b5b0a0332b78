/* Experiments through the public interface: options of the CPU backend, batches, large clouds. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "bench_start.h"
#include "lab.h"
#include "ndt/clock.h"

/* ---- whole aligns and evaluations with differently configured backends ---- */

struct candidate {
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
};
struct candidates {
    const struct lab *lab;
    struct lab_scene scene;
    struct candidate items[LAB_MAX_VARIANTS];
    int count;
    double pause_s; /* before each align: workers fall asleep, as between scans */
};

static enum ndt_status open_candidate(struct candidates *candidates, const char *backend,
                                      const struct ndt_backend_config *config, struct ndt_error *err)
{
    struct candidate *candidate = &candidates->items[candidates->count++];
    enum ndt_status status = ndt_backend_open(&candidate->backend, backend, config, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&candidate->aligner, candidate->backend, err);
    return status == NDT_OK ? ndt_aligner_set_map(candidate->aligner, candidates->scene.map, err) : status;
}

static void close_candidates(struct candidates *candidates)
{
    for (int i = 0; i < candidates->count; i++) {
        ndt_aligner_destroy(candidates->items[i].aligner);
        if (candidates->items[i].backend)
            candidates->items[i].backend->ops->close(candidates->items[i].backend);
    }
    lab_scene_close(&candidates->scene);
}

static struct ndt_pose start_of(const struct candidates *candidates, size_t scan, int repetition)
{
    return bench_start(candidates->lab->seed, (uint64_t)repetition * 64 + scan,
                       &candidates->scene.scans.scans[scan].T_map_sensor, 0.5, 2 * 3.14159265358979323846 / 180);
}

static void sleep_s(double s)
{
    const struct timespec t = {0, (long)(s * 1e9)};
    nanosleep(&t, NULL);
}

/* Median over all scans, each from a seeded wrong start. */
static double measure_align(void *context, int variant, int repetition)
{
    struct candidates *candidates = context;
    struct candidate *candidate = &candidates->items[variant];
    double took_us[LAB_MAX_REPETITIONS];
    const int count = (int)candidates->scene.scans.count;
    for (size_t i = 0; i < candidates->scene.scans.count; i++) {
        struct ndt_align_result result;
        const struct ndt_pose start = start_of(candidates, i, repetition);
        if (candidates->pause_s > 0)
            sleep_s(candidates->pause_s);
        const double begin_us = ndt_clock_us();
        if (ndt_align(candidate->aligner, &candidates->lab->settings.align, &candidates->scene.scans.scans[i].cloud,
                      &start, &result, NULL) != NDT_OK)
            return -1;
        took_us[i] = ndt_clock_us() - begin_us;
    }
    return lab_median(took_us, count);
}

static enum ndt_status compare_candidates(struct candidates *candidates, const char *experiment,
                                          const char *const *names, const struct ndt_backend_config *configs,
                                          int count, struct ndt_error *err)
{
    static const uint32_t sizes[] = {1500, 5000};
    enum ndt_status status = NDT_OK;
    for (int s = 0; status == NDT_OK && s < (candidates->lab->quick ? 1 : 2); s++) {
        const uint32_t points = candidates->lab->quick ? 300 : sizes[s];
        struct lab_comparison it = {
            .experiment = experiment, .unit = "us/align", .measure = measure_align, .context = candidates};
        char what[64];
        snprintf(what, sizeof(what), "%u points", points);
        it.what = what;
        candidates->count = 0;
        status = lab_scene_open(&candidates->scene, candidates->lab, points, err);
        for (int i = 0; status == NDT_OK && i < count; i++) {
            status = open_candidate(candidates, "cpu", &configs[i], err);
            it.names[it.count++] = names[i];
        }
        if (status == NDT_OK)
            lab_compare(candidates->lab, &it);
        close_candidates(candidates);
    }
    return status;
}

enum ndt_status lab_vector_width(const struct lab *lab, struct ndt_error *err)
{
    struct candidates candidates = {.lab = lab};
    struct ndt_backend_config configs[LAB_MAX_VARIANTS];
    const char *names[LAB_MAX_VARIANTS];
    char here[128], *rest = here;
    int count = 0;
    ndt_cpu_variants(here, sizeof(here));
    for (char *name; (name = strtok_r(rest, ",", &rest)) && count < LAB_MAX_VARIANTS; count++) {
        configs[count] = lab->settings.compute;
        configs[count].threads = 1;
        configs[count].isa = names[count] = name;
    }
    return compare_candidates(&candidates, "vector-width", names, configs, count, err);
}

enum ndt_status lab_threads(const struct lab *lab, struct ndt_error *err)
{
    static const char *const names[] = {"1 thread", "2 threads", "3 threads", "4 threads"};
    struct candidates candidates = {.lab = lab};
    struct ndt_backend_config configs[4];
    for (int i = 0; i < 4; i++) {
        configs[i] = lab->settings.compute;
        configs[i].threads = i + 1;
    }
    return compare_candidates(&candidates, "threads", names, configs, 4, err);
}

enum ndt_status lab_spin(const struct lab *lab, struct ndt_error *err)
{
    static const char *const names[] = {"0 us", "20 us", "50 us", "100 us", "200 us", "500 us"};
    static const double spin_us[] = {0, 20, 50, 100, 200, 500};
    struct candidates candidates = {.lab = lab, .pause_s = 0.002};
    struct ndt_backend_config configs[6];
    for (int i = 0; i < 6; i++) {
        configs[i] = lab->settings.compute;
        configs[i].threads = 2;
        configs[i].spin_us = spin_us[i];
    }
    return compare_candidates(&candidates, "spin", names, configs, 6, err);
}

enum ndt_status lab_pinning(const struct lab *lab, struct ndt_error *err)
{
    static const char *const names[] = {"workers float", "workers pinned"};
    struct candidates candidates = {.lab = lab, .pause_s = 0.002};
    struct ndt_backend_config configs[2];
    for (int i = 0; i < 2; i++) {
        configs[i] = lab->settings.compute;
        configs[i].threads = 2;
        configs[i].pin_threads = i;
    }
    return compare_candidates(&candidates, "pinning", names, configs, 2, err);
}

/* ---- batches: guesses for one scan ---- */

enum { BATCH_MOST = 200 };

struct batch_contest {
    struct candidates candidates;
    size_t size;
};

static double measure_batch(void *context, int variant, int repetition)
{
    static struct ndt_align_item items[BATCH_MOST];
    static struct ndt_align_result results[BATCH_MOST];
    struct batch_contest *it = context;
    const struct ndt_align_params *params = &it->candidates.lab->settings.align;
    const struct ndt_cloud *scan = &it->candidates.scene.scans.scans[0].cloud;
    for (size_t i = 0; i < it->size; i++) {
        items[i].scan = scan;
        items[i].T_map_guess = bench_start(it->candidates.lab->seed + (uint64_t)repetition, i,
                                           &it->candidates.scene.scans.scans[0].T_map_sensor, 0.5, 0.035);
    }
    enum ndt_status status = NDT_OK;
    const double start_us = ndt_clock_us();
    if (variant == 1)
        status = ndt_align_batch(it->candidates.items[0].aligner, params, items, it->size, results, NULL);
    for (size_t i = 0; variant == 0 && status == NDT_OK && i < it->size; i++)
        status = ndt_align(it->candidates.items[0].aligner, params, scan, &items[i].T_map_guess, &results[i], NULL);
    return status == NDT_OK ? (ndt_clock_us() - start_us) / (double)it->size : -1;
}

/* `--backend cuda:resident` and the like: what follows the colon is the pipeline. */
static enum ndt_status open_named(struct candidates *candidates, const char *text, struct ndt_error *err)
{
    char name[32];
    const char *colon = strchr(text, ':');
    struct ndt_backend_config config = candidates->lab->settings.compute;
    config.pipeline = colon ? colon + 1 : NULL;
    config.threads = 1;
    snprintf(name, sizeof(name), "%.*s", (int)(colon ? colon - text : (long)strlen(text)), text);
    return open_candidate(candidates, name, &config, err);
}

enum ndt_status lab_batch(const struct lab *lab, struct ndt_error *err)
{
    static const size_t sizes[] = {1, 2, 3, 8, 64, 200};
    struct batch_contest it = {.candidates.lab = lab};
    enum ndt_status status = lab_scene_open(&it.candidates.scene, lab, lab->quick ? 300 : 756, err);
    if (status == NDT_OK)
        status = open_named(&it.candidates, lab->backend, err);
    for (size_t i = 0; status == NDT_OK && i < (lab->quick ? 3 : 6); i++) {
        struct lab quicker = *lab;
        char what[96];
        it.size = sizes[i];
        quicker.repetitions = it.size > 8 && lab->repetitions > 7 ? 7 : lab->repetitions;
        snprintf(what, sizeof(what), "%s batch of %zu", lab->backend, it.size);
        lab_compare(&quicker, &(struct lab_comparison){.experiment = "batch",
                                                       .what = what,
                                                       .unit = "us/item",
                                                       .names = {"one after the other", "ndt_align_batch"},
                                                       .count = 2,
                                                       .measure = measure_batch,
                                                       .context = &it});
    }
    close_candidates(&it.candidates);
    return status;
}

/* ---- large clouds ---- */

struct large {
    struct ndt_backend *backend;
    struct ndt_cloud cloud;
    struct ndt_eval_request request;
    size_t slices[3];
    size_t most;
};

/* Hands over and evaluates slice after slice; sums would be added. ns per point. */
static double measure_slices(void *context, int variant, int repetition)
{
    struct large *it = context;
    (void)repetition;
    const double start_us = ndt_clock_us();
    for (size_t first = 0; first < it->cloud.count; first += it->slices[variant]) {
        struct ndt_eval sums;
        struct ndt_cloud slice = it->cloud;
        const size_t left = it->cloud.count - first;
        slice.x_m += first;
        slice.y_m += first;
        slice.z_m += first;
        slice.count = left < it->slices[variant] ? left : it->slices[variant];
        if (it->backend->ops->set_scan(it->backend, &slice, NULL) != NDT_OK ||
            it->backend->ops->eval(it->backend, &it->request, &sums, NULL) != NDT_OK)
            return -1;
    }
    return (ndt_clock_us() - start_us) * 1e3 / (double)it->cloud.count;
}

static double measure_whole(void *context, int variant, int repetition)
{
    struct large *it = context;
    struct ndt_eval sums;
    (void)variant, (void)repetition;
    const double start_us = ndt_clock_us();
    if (it->backend->ops->eval(it->backend, &it->request, &sums, NULL) != NDT_OK)
        return -1;
    return (ndt_clock_us() - start_us) * 1e3 / (double)it->cloud.count;
}

static enum ndt_status time_sizes(const struct lab *lab, struct large *it, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    const size_t all = it->cloud.count;
    for (size_t points = 1000; status == NDT_OK && points <= all; points *= 10) {
        double samples[LAB_MAX_REPETITIONS];
        char x[32];
        const int rounds = points > 1000000 ? 3 : lab->repetitions;
        it->cloud.count = points;
        status = it->backend->ops->set_scan(it->backend, &it->cloud, err);
        for (int r = 0; status == NDT_OK && r < rounds; r++)
            samples[r] = measure_whole(it, 0, r);
        snprintf(x, sizeof(x), "%zu", points);
        if (status == NDT_OK)
            lab_print("chunking", "one evaluation over points", x, "curve", "ns/point", samples, rounds);
    }
    it->cloud.count = all;
    return status;
}

enum ndt_status lab_chunking(const struct lab *lab, struct ndt_error *err)
{
    struct large it = {.most = lab->quick ? 100000 : 10000000};
    struct ndt_backend_config config = lab->settings.compute;
    const double side_m = 200, at_m[2] = {0, 0};
    struct ndt_map *map;
    const struct ndt_pose pose = lab_world_pose(at_m);
    struct lab quicker = *lab;
    config.max_points = it.most;
    config.threads = 1;
    quicker.repetitions = lab->repetitions > 5 ? 5 : lab->repetitions;
    it.slices[0] = it.most;
    it.slices[1] = it.most / 10;
    it.slices[2] = it.most / 100 / 16 * 16;
    it.request = (struct ndt_eval_request){.level = 0, .neighbours = NDT_RADIUS};
    ndt_pose_to_euler(&pose, it.request.p);
    ndt_cloud_init(&it.cloud);
    enum ndt_status status = lab_world_map(&map, side_m, err);
    for (int i = 0; i < 3 && status == NDT_OK; i++)
        it.request.p[i] -= map->origin_m[i];
    if (status == NDT_OK)
        status = lab_world_scan(&it.cloud, it.most, at_m, 90, lab->seed, err);
    if (status == NDT_OK)
        status = ndt_backend_open(&it.backend, "cpu", &config, err);
    if (status == NDT_OK)
        status = it.backend->ops->set_map(it.backend, map, err);
    if (status == NDT_OK)
        lab_compare(&quicker, &(struct lab_comparison){.experiment = "chunking",
                                                       .what = lab->quick ? "100 000 points" : "10 million points",
                                                       .unit = "ns/point",
                                                       .names = {"one piece", "10 pieces", "100 pieces"},
                                                       .count = 3,
                                                       .measure = measure_slices,
                                                       .context = &it});
    if (status == NDT_OK)
        status = time_sizes(lab, &it, err);
    if (it.backend)
        it.backend->ops->close(it.backend);
    ndt_cloud_free(&it.cloud);
    ndt_map_release(map);
    return status;
}
