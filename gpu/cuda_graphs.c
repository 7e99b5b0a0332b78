#include "cuda_graphs.h"

static unsigned round_up_to_power(unsigned n)
{
    unsigned power = 1;
    while (power < n)
        power *= 2;
    return power;
}

static int is_for(const struct ndt_cuda_cached_graph *entry, const struct ndt_cuda_graph_size *size)
{
    return entry->graph.exec && entry->size.kernel == size->kernel && entry->size.items == size->items &&
           entry->size.blocks == size->blocks && entry->size.length == size->length;
}

static void forget(struct ndt_cuda_graphs *graphs, struct ndt_cuda_device *device,
                   struct ndt_cuda_cached_graph *entry)
{
    if (entry->graph.exec)
        ndt_cuda_graph_free(device, &entry->graph);
    graphs->bytes -= entry->bytes;
    *entry = (struct ndt_cuda_cached_graph){.bytes = 0};
    device->counters.graph_bytes = graphs->bytes;
}

/* An empty place, or the least recently used graph. NULL: there is no graph. */
static struct ndt_cuda_cached_graph *oldest_of(struct ndt_cuda_graphs *graphs, int wants_empty)
{
    struct ndt_cuda_cached_graph *oldest = NULL;
    for (int i = 0; i < NDT_CUDA_GRAPHS; i++) {
        struct ndt_cuda_cached_graph *entry = &graphs->entries[i];
        if (!entry->graph.exec && wants_empty)
            return entry;
        if (entry->graph.exec && (!oldest || entry->used < oldest->used))
            oldest = entry;
    }
    return oldest;
}

static size_t estimate(const struct ndt_cuda_graph_size *size)
{
    return (size_t)(size->length > 0 ? size->length : 2) * NDT_CUDA_GRAPH_NODE_BYTES; /* a loop: two nodes */
}

/* Memory of the graph: the decrease of the free memory, unless something else was allocated or freed meanwhile. */
static size_t measure(const struct ndt_cuda_graph_size *size, size_t free_before, size_t free_after)
{
    const size_t least = estimate(size), gone = free_before > free_after ? free_before - free_after : 0;
    return gone > least && gone <= NDT_CUDA_GRAPH_BYTES ? gone : least;
}

static enum ndt_status make(struct ndt_cuda_graphs *graphs, struct ndt_cuda_device *device,
                            const struct ndt_cuda_graph_size *size, const struct ndt_gpu_job *job,
                            struct ndt_cuda_cached_graph *entry, struct ndt_error *err)
{
    struct ndt_gpu_job own = *job;
    size_t before, after = 0;
    own.blocks = size->blocks;
    enum ndt_status status = ndt_cuda_free_bytes(device, &before, err);
    if (status == NDT_OK)
        status = ndt_cuda_graph_make(device, &entry->graph, size->kernel, size->items * size->blocks, NDT_GPU_BLOCK,
                                     size->length, &own, err);
    if (status == NDT_OK)
        status = ndt_cuda_free_bytes(device, &after, err);
    if (status != NDT_OK)
        return status;
    entry->size = *size;
    entry->bytes = measure(size, before, after);
    graphs->bytes += entry->bytes;
    device->counters.graphs++;
    device->counters.graph_bytes = graphs->bytes;
    return NDT_OK;
}

enum ndt_status ndt_cuda_graphs_find(struct ndt_cuda_graphs *graphs, struct ndt_cuda_device *device,
                                     const struct ndt_cuda_graph_size *size, const struct ndt_gpu_job *job,
                                     struct ndt_cuda_graph **out, struct ndt_error *err)
{
    struct ndt_cuda_graph_size whole = *size;
    whole.items = round_up_to_power(size->items);
    whole.blocks = round_up_to_power(size->blocks);
    struct ndt_cuda_cached_graph *entry = graphs->entries, *const end = entry + NDT_CUDA_GRAPHS;
    while (entry < end && !is_for(entry, &whole))
        entry++;
    enum ndt_status status = NDT_OK;
    if (entry == end) {
        while (graphs->bytes > 0 && graphs->bytes + estimate(&whole) > NDT_CUDA_GRAPH_BYTES)
            forget(graphs, device, oldest_of(graphs, 0));
        entry = oldest_of(graphs, 1);
        forget(graphs, device, entry);
        status = make(graphs, device, &whole, job, entry, err);
    }
    entry->used = ++graphs->now;
    *out = &entry->graph;
    return status;
}

void ndt_cuda_graphs_free(struct ndt_cuda_graphs *graphs, struct ndt_cuda_device *device)
{
    for (int i = 0; i < NDT_CUDA_GRAPHS; i++)
        forget(graphs, device, &graphs->entries[i]);
}
