/** @file
 * @brief set_map_async while another map is in use, on the emulated device, whose streams run as late as possible
 * and in a random order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends.h"
#include "check_harness.h"
#include "cuda_runtime_api.h"
#include "emulated_device.h"
#include "ndt/align.h"
#include "street_world.h"

enum { MAPS = 3, SCAN_POINTS = 300, SEEDS = 6, MOST_CALLS = 10000, ROUND_BYTES = 2 << 20 };

static const char *const NAME = "cuda-emulated";
static const struct ndt_backend_ops *ops;
static struct ndt_map *maps[MAPS]; /* maps of decreasing size, each larger than the upload of one call */
static struct ndt_cloud scan;
static struct ndt_eval wanted[MAPS]; /* sums after set_map */
/* ---- a backend at work ---- */

static struct ndt_backend_config plain_config(const char *pipeline)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.pipeline = pipeline;
    config.max_points = 4000;
    return config;
}

static struct ndt_backend_counters counters_of(const struct ndt_backend *backend)
{
    struct ndt_backend_counters counters;
    backend->ops->counters(backend, &counters);
    return counters;
}

static enum ndt_status evaluate(struct ndt_backend *backend, struct ndt_eval *sums, struct ndt_error *err)
{
    const struct ndt_eval_request request = {
        .level = 2, .neighbours = NDT_RADIUS, .p = {100, 0.4, 2.1, 0.01, 0, 0.02}};
    return backend->ops->eval(backend, &request, sums, err);
}

static int uses(struct ndt_backend *backend, int number)
{
    struct ndt_eval sums;
    return evaluate(backend, &sums, NULL) == NDT_OK && memcmp(&sums, &wanted[number], sizeof(sums)) == 0;
}

/* Opens a backend with the first map in use. */
static struct ndt_backend *start(const char *pipeline, int is_failover)
{
    const struct ndt_backend_config config = plain_config(pipeline);
    struct ndt_backend *backend = NULL;
    struct ndt_error err = {""};
    enum ndt_status status =
        is_failover ? ndt_backend_open_failover(&backend, NAME, &config, &err) : ops->open(&backend, &config, &err);
    if (status == NDT_OK)
        status = backend->ops->set_map(backend, maps[0], &err);
    if (status == NDT_OK)
        status = backend->ops->set_scan(backend, &scan, &err);
    if (status == NDT_OK)
        return backend;
    check_expect(0, "the backend starts", err.text);
    exit(1);
}

/* The calls of set_map_async until the map was in use. */
struct offer {
    enum ndt_status status;
    struct ndt_error err;
    int calls, taken;
    int kept_old;            /* between all calls the old map was in use */
    uint64_t waits, largest; /* synchronisations; most bytes of a call */
    uint64_t allocations;
};

static void offer_once(struct ndt_backend *backend, int number, struct offer *offer)
{
    const struct ndt_backend_counters before = counters_of(backend);
    offer->status = backend->ops->set_map_async(backend, maps[number], &offer->taken, &offer->err);
    const struct ndt_backend_counters after = counters_of(backend);
    offer->calls++;
    offer->waits += after.synchronisations - before.synchronisations;
    offer->allocations += after.allocations - before.allocations;
    if (after.h2d_bytes - before.h2d_bytes > offer->largest)
        offer->largest = after.h2d_bytes - before.h2d_bytes;
}

/* Evaluates between calls when `old` is not -1, which lets the device continue; otherwise only the calls do. */
static struct offer offer_until_taken(struct ndt_backend *backend, int number, int old)
{
    struct offer offer = {.kept_old = 1};
    while (offer.status == NDT_OK && !offer.taken && offer.calls < MOST_CALLS) {
        offer_once(backend, number, &offer);
        if (old >= 0 && !offer.taken)
            offer.kept_old &= uses(backend, old);
    }
    return offer;
}

static void begin(struct ndt_backend *backend, int number, int calls)
{
    struct offer offer = {.status = NDT_OK};
    for (int i = 0; i < calls; i++)
        offer_once(backend, number, &offer);
    if (offer.status != NDT_OK || offer.taken)
        check_expect(0, "an upload is in progress", offer.err.text);
}

static int only_ours(void)
{
    for (int i = 0; i < MAPS; i++)
        if (maps[i]->references != 1)
            return 0;
    return 1;
}

/* ---- checks ---- */

static int is_good(const struct offer *offer, const char *text)
{
    if (offer->status != NDT_OK || !offer->taken)
        printf("FAIL %s: not taken after %d calls: %s\n", text, offer->calls, offer->err.text);
    return offer->status == NDT_OK && offer->taken && offer->kept_old && offer->waits == 0 && offer->calls > 3 &&
           offer->largest <= ROUND_BYTES;
}

/* Changes to the second map and back, and to the third, in many orders. */
static void check_swaps(const char *pipeline, int with_evaluations)
{
    static const int numbers[] = {1, 0, 2, 1, 0};
    int good = 1, allocations = 0, later = 0, calls = 0;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        emulated_set_seed(seed);
        struct ndt_backend *backend = start(pipeline, 0);
        for (size_t i = 0, old = 0; i < sizeof(numbers) / sizeof(numbers[0]); old = (size_t)numbers[i++]) {
            const struct offer offer = offer_until_taken(backend, numbers[i], with_evaluations ? (int)old : -1);
            good &= is_good(&offer, pipeline) && uses(backend, numbers[i]);
            *(i == 0 ? &allocations : &later) += (int)offer.allocations;
            calls += offer.calls;
        }
        ops->close(backend);
    }
    printf("     %s: %d calls for %d maps\n", pipeline, calls, SEEDS * 5);
    check_expect(good, "offered maps are swapped in without a wait, and the old one serves until then", pipeline);
    check_expect(allocations == SEEDS && later == 0, "memory for the second map is allocated once", pipeline);
    check_expect(only_ours(), "no reference is left", pipeline);
}

/* Evaluations do not differ between pipelines, alignments do. */
static struct ndt_align_result align(struct ndt_aligner *aligner)
{
    const struct ndt_pose guess = {.t_m = {100.2, 0.3, 2.0}, .q_xyzw = {0, 0, 0, 1}};
    struct ndt_align_params params;
    struct ndt_align_result result = {.iterations = 0};
    struct ndt_error err = {""};
    ndt_align_params_default(&params);
    if (ndt_align(aligner, &params, &scan, &guess, &result, &err) != NDT_OK)
        check_expect(0, "a scan is aligned", err.text);
    return result;
}

static int same_pose(const struct ndt_align_result *a, const struct ndt_align_result *b)
{
    return a->iterations == b->iterations &&
           memcmp(&a->T_map_sensor, &b->T_map_sensor, sizeof(a->T_map_sensor)) == 0;
}

static void check_aligner(const char *pipeline, int unused)
{
    (void)unused;
    struct ndt_backend *backend = start(pipeline, 1);
    struct ndt_aligner *aligner;
    struct ndt_align_result with[2];
    int taken = 0, calls = 0, good = ndt_aligner_create(&aligner, backend, NULL) == NDT_OK;
    for (int i = 1; good && i >= 0; i--) {
        good = ndt_aligner_set_map(aligner, maps[i], NULL) == NDT_OK;
        with[i] = align(aligner);
    }
    check_expect(good && !same_pose(&with[0], &with[1]) && with[0].evaluations > 0, "maps differ in results",
                 pipeline);
    for (; good && !taken && calls < MOST_CALLS; calls++) {
        const struct ndt_align_result now = align(aligner);
        good = same_pose(&now, &with[0]) && ndt_aligner_set_map_async(aligner, maps[1], &taken, NULL) == NDT_OK;
    }
    const struct ndt_align_result after = align(aligner);
    check_expect(good && taken && calls > 3 && same_pose(&after, &with[1]), "alignments go on meanwhile", pipeline);
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
}

/* Checks that a map is set at once without a map in use, and on backends without the function. */
static void check_at_once(const char *name, int unused)
{
    (void)unused;
    struct ndt_backend_config config = plain_config(NULL);
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    int taken = 0;
    config.threads = 1;
    if (ndt_backend_open(&backend, name, &config, NULL) != NDT_OK ||
        ndt_aligner_create(&aligner, backend, NULL) != NDT_OK)
        exit(1);
    check_expect(ndt_aligner_set_map_async(aligner, maps[0], &taken, NULL) == NDT_OK && taken &&
                     align(aligner).evaluations > 0,
                 "a first map is taken at once", name);
    if (!backend->ops->set_map_async)
        check_expect(ndt_aligner_set_map_async(aligner, maps[1], &taken, NULL) == NDT_OK && taken,
                     "and so is a second", name);
    check_expect(ndt_aligner_set_map_async(aligner, NULL, &taken, NULL) == NDT_OK && taken &&
                     align(aligner).outcome == NDT_NO_MAP,
                 "no map is taken at once", name);
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
    check_expect(only_ours(), "no reference is left", name);
}

/* A newer map cancels the upload; `calls` so that parts of it are in the buffers, on the device, or complete. */
static void check_replaced(void)
{
    int newer = 1, set = 1, same = 1, released = 1;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        emulated_set_seed(seed);
        struct ndt_backend *backend = start("fused", 0);
        begin(backend, 1, 1 + (int)seed % 4);
        struct offer offer = offer_until_taken(backend, 2, 0);
        newer &= is_good(&offer, "a newer map") && uses(backend, 2);
        begin(backend, 1, 1 + (int)seed % 4);
        set &= ops->set_map(backend, maps[0], NULL) == NDT_OK && uses(backend, 0);
        released &= maps[1]->references == 1;
        begin(backend, 1, 1 + (int)seed % 4);
        offer_once(backend, 0, &offer); /* the one in use */
        same &= offer.taken && uses(backend, 0);
        released &= maps[1]->references == 1;
        offer = offer_until_taken(backend, 1, 0);
        same &= is_good(&offer, "a map offered again") && uses(backend, 1);
        begin(backend, 2, 2);
        ops->close(backend);
    }
    check_expect(newer, "a newer map cancels the upload of another", "");
    check_expect(set, "so does set_map", "");
    check_expect(same && released, "and the map in use, after which it can be offered again", "");
    check_expect(only_ours(), "a backend that is closed meanwhile leaves no reference", "");
}

/* Counts the warnings that the calls write to stderr. */
static size_t count_warnings(void (*act)(void))
{
    char text[2000] = "";
    size_t count = 0;
    FILE *file = tmpfile();
    const int kept = dup(STDERR_FILENO);
    if (!file || kept < 0)
        exit(1);
    dup2(fileno(file), STDERR_FILENO);
    act();
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    printf("     %s", text);
    for (const char *at = text; (at = strstr(at, "without room for two maps")); at++)
        count++;
    return count;
}

/* Offers a map where one map and a half fit. */
static void offer_without_room(void)
{
    struct ndt_backend *backend = start("fused", 0);
    struct offer offer = offer_until_taken(backend, 1, 0);
    check_expect(offer.status == NDT_OK && offer.calls == 1 && uses(backend, 1), "without room it is set_map",
                 offer.err.text);
    check_expect(offer.waits == 1, "which waits", "");
    offer = offer_until_taken(backend, 0, 1);
    check_expect(offer.status == NDT_OK && offer.calls == 1 && uses(backend, 0), "and so once more",
                 offer.err.text);
    ops->close(backend);
}

static void offer_too_large(void)
{
    struct ndt_backend *backend = start("fused", 0);
    struct offer offer = offer_until_taken(backend, 2, 0);
    check_expect(offer.taken && uses(backend, 2), "a smaller map", offer.err.text);
    struct ndt_map huge = *maps[1];
    struct ndt_map_level *level = &huge.levels[0];
    level->brick_count += 1 << 16; /* more than the device has; never read */
    huge.id = 1;
    huge.release = NULL;
    offer.status = ops->set_map_async(backend, &huge, &offer.taken, &offer.err);
    check_expect(offer.status == NDT_ERR_LIMIT && !offer.taken && strstr(offer.err.text, "would fit"),
                 "a map that does not fit at all is refused", offer.err.text);
    check_expect(huge.references == 1 && uses(backend, 2), "and the one before stays", "");
    offer = offer_until_taken(backend, 1, -1);
    check_expect(offer.taken && uses(backend, 1), "until the next one", offer.err.text);
    ops->close(backend);
}

static void check_little_memory(void)
{
    char text[32];
    struct ndt_backend *backend = start("fused", 0);
    const uint64_t bytes = counters_of(backend).h2d_bytes;
    ops->close(backend);
    snprintf(text, sizeof(text), "%" PRIu64, bytes + bytes / 2);
    setenv("NDT_EMULATION_MEMORY", text, 1);
    check_expect(count_warnings(offer_without_room) == 1, "with one warning", "");
    check_expect(count_warnings(offer_too_large) == 1, "a refusal names the memory", "");
    unsetenv("NDT_EMULATION_MEMORY");
    check_expect(only_ours(), "no reference is left", "");
}

/* No memory for the mark behind a buffer: nothing guards it, and it is filled again at once. The emulation ends the
 * program when that is too early. */
static void check_no_mark(void)
{
    struct offer offer = {.taken = 0};
    struct ndt_backend *backend = start("fused", 0);
    emulated_fail_calls("cudaEventRecord", 1, 1, cudaErrorMemoryAllocation);
    offer_once(backend, 1, &offer);
    check_expect(offer.status == NDT_OK && offer.taken && uses(backend, 1), "without a mark it is set_map",
                 offer.err.text);
    offer = offer_until_taken(backend, 2, -1);
    check_expect(is_good(&offer, "the next map") && uses(backend, 2), "and the next map arrives whole",
                 offer.err.text);
    ops->close(backend);
    check_expect(only_ours(), "no reference is left", "");
}

static void check_plain_loss(void)
{
    struct ndt_backend *backend = start("fused", 0);
    struct offer offer = {.taken = 7};
    begin(backend, 1, 2);
    emulated_fail_launches(0, 1);
    check_expect(!uses(backend, 0), "the device is lost during the upload", "");
    offer_once(backend, 1, &offer);
    check_expect(offer.status == NDT_ERR_DEVICE && !offer.taken, "the offer says so", offer.err.text);
    check_expect(maps[1]->references == 1, "and is forgotten", "");
    ops->close(backend);
    emulated_fail_launches(0, 0);
}

/* The device fails in a call of another backend, so that set_map_async detects it; or in an evaluation. */
static void check_failover_loss(const char *unused, int by_offer)
{
    (void)unused;
    struct ndt_backend *other = start("fused", 0), *backend = start("fused", 1);
    begin(backend, 1, 2);
    emulated_fail_launches(0, 1);
    if (by_offer)
        check_expect(!uses(other, 0), "the device fails", "");
    else
        check_expect(uses(backend, 0), "the map in use survives", "");
    struct offer offer = offer_until_taken(backend, 1, 0);
    check_expect(offer.taken && offer.kept_old && offer.calls > 3 && uses(backend, 1),
                 "the offered one arrives after all", offer.err.text);
    check_expect(strcmp(backend->ops->name, NAME) == 0, "on the same backend", "");
    struct ndt_eval sums;
    emulated_fail_launches(0, 1);
    check_expect(evaluate(backend, &sums, NULL) == NDT_OK && sums.pairs == wanted[1].pairs,
                 "and stays when it is lost again", backend->ops->name);
    backend->ops->close(backend);
    ops->close(other);
    check_expect(only_ours(), "no reference is left", "");
}

static void check_final_loss(void)
{
    struct offer offer = {.taken = 0};
    struct ndt_eval sums;
    struct ndt_backend *backend = start("fused", 1);
    begin(backend, 2, 3);
    emulated_fail_launches(0, 2);
    check_expect(evaluate(backend, &(struct ndt_eval){0}, NULL) == NDT_OK, "lost for good", "");
    offer_once(backend, 2, &offer);
    check_expect(offer.taken && strcmp(backend->ops->name, "cpu") == 0, "the CPU sets the map at once",
                 offer.err.text);
    check_expect(evaluate(backend, &sums, NULL) == NDT_OK && sums.pairs == wanted[2].pairs, "and computes on it",
                 "");
    backend->ops->close(backend);
    emulated_fail_launches(0, 0);
    check_expect(only_ours(), "no reference is left", "");
}

/* ---- inputs ---- */

static struct ndt_map *make_map(uint64_t seed, double length_m)
{
    static const double zero[3];
    const struct world world = {WORLD_STREET, seed, length_m, 0.02};
    struct ndt_map *map = NULL;
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    ndt_map_config_default(&config);
    ndt_cloud_init(&cloud);
    if (world_map(&cloud, &world, 150000, zero, NULL) != NDT_OK ||
        ndt_map_from_cloud(&map, &config, &cloud, NULL) != NDT_OK)
        exit(1);
    ndt_cloud_free(&cloud);
    return map;
}

static void make_inputs(void)
{
    const struct world world = {WORLD_STREET, 3, 300, 0.02};
    const struct ndt_pose pose = {.t_m = {100, 0.4, 2.1}, .q_xyzw = {0, 0, 0, 1}};
    for (int i = 0; i < MAPS; i++)
        maps[i] = make_map(3 + (uint64_t)i, 300 - 20 * i);
    ndt_cloud_init(&scan);
    if (world_scan(&scan, &world, 1, SCAN_POINTS, &pose, 30.0, NULL) != NDT_OK)
        exit(1);
    for (size_t i = 0; ndt_backend_at(i); i++)
        ops = strcmp(ndt_backend_at(i)->name, NAME) == 0 ? ndt_backend_at(i) : ops;
    for (int i = 0; ops && i < MAPS; i++) {
        struct ndt_backend *backend = start("fused", 0);
        if (ops->set_map(backend, maps[i], NULL) != NDT_OK || evaluate(backend, &wanted[i], NULL) != NDT_OK)
            exit(1);
        ops->close(backend);
    }
}

static void check_inputs(void)
{
    check_expect(ops && wanted[0].pairs > 0 && wanted[1].pairs > 0 && wanted[0].pairs != wanted[1].pairs &&
                     wanted[2].pairs != wanted[1].pairs && wanted[2].pairs != wanted[0].pairs,
                 "three maps that differ", "");
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {.name = "inputs", .run = check_inputs},
        {.name = "swaps/fused/evaluations", .run_with = check_swaps, .text = "fused", .value = 1},
        {.name = "swaps/fused/idle", .run_with = check_swaps, .text = "fused", .value = 0},
        {.name = "swaps/resident/evaluations", .run_with = check_swaps, .text = "resident", .value = 1},
        {.name = "aligner/fused", .run_with = check_aligner, .text = "fused"},
        {.name = "aligner/resident", .run_with = check_aligner, .text = "resident"},
        {.name = "at_once/cuda-emulated", .run_with = check_at_once, .text = "cuda-emulated"},
        {.name = "at_once/cpu", .run_with = check_at_once, .text = "cpu"},
        {.name = "at_once/reference", .run_with = check_at_once, .text = "reference"},
        {.name = "replaced", .run = check_replaced},
        {.name = "little_memory", .run = check_little_memory},
        {.name = "no_mark", .run = check_no_mark},
        {.name = "loss/plain", .run = check_plain_loss},
        {.name = "loss/failover_by_evaluation", .run_with = check_failover_loss, .value = 0},
        {.name = "loss/failover_by_offer", .run_with = check_failover_loss, .value = 1},
        {.name = "loss/final", .run = check_final_loss},
        {.name = NULL},
    };
    ndt_backends_own_process();
    ndt_backends_load();
    make_inputs();
    const int code = check_main(argc, argv, cases);
    for (int i = 0; i < MAPS; i++)
        ndt_map_release(maps[i]);
    ndt_cloud_free(&scan);
    return code;
}
