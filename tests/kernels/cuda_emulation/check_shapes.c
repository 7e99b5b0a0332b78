/** @file
 * @brief Choice of the shape of `resident` by the device, clusters of a batch, and graphs that are kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "check_harness.h"
#include "cuda_graphs.h"
#include "cuda_shape.h"
#include "device_kernels.h"
#include "emulated_device.h"

/* ---- shapes ---- */

static const struct ndt_cuda_facts hopper = {.major = 9, .processors = 132, .largest_cluster = 8, .has_loops = 1};
static const struct ndt_cuda_facts old_hopper = {.major = 9, .processors = 132, .largest_cluster = 8};
static const struct ndt_cuda_facts ada = {.major = 8, .processors = 128, .largest_cluster = 1, .has_loops = 1};
static const struct ndt_cuda_facts jetpack_6_0 = {.major = 8, .processors = 16, .largest_cluster = 1};

/* Every shape is the choice of some class of device. */
static const struct choice {
    const char *device;
    const struct ndt_cuda_facts *facts;
    unsigned largest_cluster;
    size_t items, points;
    enum ndt_cuda_shape shape;
    unsigned size, threads; /* size of a cluster */
} choices[] = {
    {"Hopper", &hopper, 16, 1, 100, NDT_CUDA_BLOCK, 0, 0},
    {"Hopper", &hopper, 16, 1, 756, NDT_CUDA_CLUSTER, 8, 128},
    {"Hopper", &hopper, 16, 1, 1500, NDT_CUDA_CLUSTER, 8, 256},
    {"Hopper", &hopper, 16, 1, 3072, NDT_CUDA_CLUSTER, 8, 384},
    {"Hopper", &hopper, 16, 1, 5000, NDT_CUDA_CLUSTER, 16, 384},
    {"Hopper", &hopper, 16, 1, 10240, NDT_CUDA_CLUSTER, 16, 384},
    {"Hopper", &hopper, 16, 1, 10241, NDT_CUDA_LOOP, 0, 0},
    {"Hopper without room for 16", &hopper, 8, 1, 5000, NDT_CUDA_CLUSTER, 8, 384},
    {"Hopper without room for 16", &hopper, 8, 1, 5121, NDT_CUDA_LOOP, 0, 0},
    {"Hopper", &hopper, 16, 3, 1500, NDT_CUDA_CLUSTER, 8, 256},
    {"Hopper", &hopper, 16, 60, 1500, NDT_CUDA_LOOP, 0, 0},
    {"Hopper", &hopper, 16, 67, 1500, NDT_CUDA_BLOCK, 0, 0},
    {"Hopper", &hopper, 16, 200, 20000, NDT_CUDA_BLOCK, 0, 0},
    {"Hopper, driver before 12.4", &old_hopper, 16, 1, 20000, NDT_CUDA_CHAIN, 0, 0},
    {"Ada", &ada, 1, 1, 756, NDT_CUDA_BLOCK, 0, 0},
    {"Ada", &ada, 1, 1, 1500, NDT_CUDA_LOOP, 0, 0},
    {"Ada", &ada, 1, 200, 1500, NDT_CUDA_BLOCK, 0, 0},
    {"JetPack 6.0", &jetpack_6_0, 1, 1, 756, NDT_CUDA_BLOCK, 0, 0},
    {"JetPack 6.0", &jetpack_6_0, 1, 1, 1500, NDT_CUDA_CHAIN, 0, 0},
    {"JetPack 6.0", &jetpack_6_0, 1, 9, 5000, NDT_CUDA_BLOCK, 0, 0},
};

static void check_choices(void)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        const struct choice *c = &choices[i];
        const unsigned blocks = ndt_cuda_blocks(c->points);
        const enum ndt_cuda_shape shape = ndt_cuda_choose_shape(c->facts, c->largest_cluster, c->items, blocks);
        const struct ndt_cuda_team team = ndt_cuda_cluster_team(c->facts, c->largest_cluster, c->items, blocks);
        char line[160];
        snprintf(line, sizeof(line), "%s, %zu x %zu points: %s, %u blocks of %u", c->device, c->items, c->points,
                 ndt_cuda_shape_name(shape), team.size, team.threads);
        check_expect(shape == c->shape && (c->size == 0 || (team.size == c->size && team.threads == c->threads)),
                     line, "");
    }
}

/* A cluster has room for so many rows; a pipeline with that name hands larger scans to the whole device. */
static void check_fallback(void)
{
    const unsigned most = NDT_GPU_CLUSTER_ROWS;
    check_expect(ndt_cuda_shape_for(NDT_CUDA_CLUSTER, &hopper, 8, 1, most) == NDT_CUDA_CLUSTER &&
                     ndt_cuda_shape_for(NDT_CUDA_CLUSTER, &hopper, 8, 1, most + 1) == NDT_CUDA_LOOP &&
                     ndt_cuda_shape_for(NDT_CUDA_CLUSTER, &old_hopper, 8, 1, most + 1) == NDT_CUDA_CHAIN,
                 "resident-cluster with more rows than a cluster takes", "");
    check_expect(ndt_cuda_shape_for(NDT_CUDA_BLOCK, &hopper, 8, 1, 1000) == NDT_CUDA_BLOCK,
                 "resident-block with any number of rows", "");
}

/* Sixteen blocks, eight, four, two, or no cluster, as the device has room. The emulation runs eight. */
static void check_room(void)
{
    static const struct {
        const char *room;
        unsigned portable, largest;
    } rooms[] = {{NULL, 8, 8}, {"7", 8, 4}, {"4", 8, 4}, {"3", 8, 2}, {"2", 8, 2}, {"1", 8, 1}, {"8", 2, 2}};
    struct ndt_cuda_device device;
    struct ndt_error err = {""};
    check_expect(ndt_cuda_device_open(&device, 0, &err) == NDT_OK, "a device", err.text);
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        unsigned largest = 0;
        char line[80];
        if (rooms[i].room)
            setenv("NDT_EMULATION_CLUSTER_ROOM", rooms[i].room, 1);
        const enum ndt_status status =
            ndt_cuda_largest_cluster(&device, kernel_take(), 384, rooms[i].portable, &largest, &err);
        snprintf(line, sizeof(line), "room for %s blocks, of at most %u: clusters of %u",
                 rooms[i].room ? rooms[i].room : "8", rooms[i].portable, largest);
        check_expect(status == NDT_OK && largest == rooms[i].largest, line, err.text);
    }
    unsetenv("NDT_EMULATION_CLUSTER_ROOM");
    ndt_cuda_device_close(&device);
}

/* A pipeline is opened with what there is room for; `cluster` is refused without. */
static void check_no_room(void)
{
    static const char *const rooms[] = {"8", "4", "2", "1"};
    struct ndt_backend_config config;
    struct ndt_error err = {""};
    ndt_backend_config_default(&config);
    config.max_points = 2000;
    for (int i = 0; i < 4; i++) {
        struct ndt_backend *backend = NULL;
        setenv("NDT_EMULATION_CLUSTER_ROOM", rooms[i], 1);
        config.pipeline = "resident";
        check_expect(ndt_backend_open(&backend, "cuda-emulated", &config, &err) == NDT_OK, "resident is opened",
                     err.text);
        if (backend)
            backend->ops->close(backend);
        config.pipeline = "resident-cluster";
        backend = NULL;
        const enum ndt_status status = ndt_backend_open(&backend, "cuda-emulated", &config, &err);
        check_expect(i < 3 ? status == NDT_OK : status == NDT_ERR_UNSUPPORTED && strstr(err.text, "no room"),
                     "resident-cluster with room, and without", err.text);
        if (backend)
            backend->ops->close(backend);
    }
    unsetenv("NDT_EMULATION_CLUSTER_ROOM");
}

/* ---- graphs ---- */

struct kept {
    struct ndt_cuda_device device;
    struct ndt_cuda_graphs graphs;
    struct ndt_gpu_job job;
    struct ndt_error err;
};

/* Whether the graph had to be made. */
static int find(struct kept *k, unsigned items, unsigned blocks, unsigned length)
{
    const uint64_t before = k->device.counters.graphs;
    const struct ndt_cuda_graph_size size = {kernel_count_up(), items, blocks, length};
    struct ndt_cuda_graph *graph = NULL;
    const enum ndt_status status = ndt_cuda_graphs_find(&k->graphs, &k->device, &size, &k->job, &graph, &k->err);
    check_expect(status == NDT_OK && graph && graph->exec, "a graph", k->err.text);
    return k->device.counters.graphs > before;
}

static void check_graphs(void)
{
    struct kept k = {.err = {""}};
    const uint64_t *bytes = &k.device.counters.graph_bytes;
    emulated_set_seed(1);
    check_expect(ndt_cuda_device_open(&k.device, 0, &k.err) == NDT_OK, "a device", k.err.text);
    check_expect(find(&k, 1, 3, 4) && !find(&k, 1, 4, 4) && !find(&k, 1, 3, 4), "sizes are rounded up to powers",
                 "");
    check_expect(*bytes >= 4 * NDT_CUDA_GRAPH_NODE_BYTES && find(&k, 1, 3, 5) && find(&k, 2, 3, 4),
                 "another length, or more items: another graph", "");
    unsigned made = 0;
    for (unsigned i = 0; i < NDT_CUDA_GRAPHS; i++) {
        made += (unsigned)find(&k, 1, 1, 10 + i);
        (void)find(&k, 1, 3, 4); /* keeps this graph in use */
    }
    check_expect(made == NDT_CUDA_GRAPHS && !find(&k, 1, 3, 4), "the graph that is used stays", "");
    check_expect(find(&k, 2, 3, 4), "the least recently used one went", "");
    const unsigned large = NDT_CUDA_GRAPH_BYTES / NDT_CUDA_GRAPH_NODE_BYTES / 2 - 100;
    check_expect(find(&k, 4, 1, large) && find(&k, 5, 1, large) && *bytes <= NDT_CUDA_GRAPH_BYTES,
                 "graphs go when their memory is needed", "");
    check_expect(!find(&k, 5, 1, large) && !find(&k, 1, 3, 4) && find(&k, 1, 1, 12),
                 "and only those not used lately", "");
    check_expect(find(&k, 1, 1, 2 * large + 1000) && *bytes > NDT_CUDA_GRAPH_BYTES &&
                     !find(&k, 1, 1, 2 * large + 1000),
                 "one graph is kept, however large", "");
    ndt_cuda_graphs_free(&k.graphs, &k.device);
    check_expect(*bytes == 0, "no bytes remain", "");
    ndt_cuda_device_close(&k.device);
}

int main(int argc, char **argv)
{
    check_start(argc, argv, NULL);
    if (check_begin("choices"))
        check_choices();
    if (check_begin("fallback"))
        check_fallback();
    if (check_begin("room"))
        check_room();
    if (check_begin("no_room"))
        check_no_room();
    if (check_begin("graphs"))
        check_graphs();
    return check_finish(1);
}
