#include "cuda_shape.h"

/* Rows that a block of a team adds per pass before a pass of the whole device takes less time. */
enum { CLUSTER_ROUND = 5, BLOCK_ROWS = 2 * NDT_GPU_GROUPS };

static unsigned divide_up(unsigned a, unsigned b)
{
    return (a + b - 1) / b;
}

static unsigned processors_of(const struct ndt_cuda_facts *facts)
{
    return facts->processors > 0 ? (unsigned)facts->processors : 1;
}

/* A shape that uses the whole device for every pass. */
static enum ndt_cuda_shape pass_shape(const struct ndt_cuda_facts *facts)
{
    return facts->has_loops ? NDT_CUDA_LOOP : NDT_CUDA_CHAIN;
}

enum ndt_cuda_shape ndt_cuda_choose_shape(const struct ndt_cuda_facts *facts, unsigned largest_cluster,
                                          size_t items, unsigned blocks)
{
    const int is_many = items * 2 > processors_of(facts);
    if (is_many || blocks <= 1)
        return NDT_CUDA_BLOCK;
    if (largest_cluster > 1) {
        const unsigned size = ndt_cuda_cluster_team(facts, largest_cluster, items, blocks).size;
        if (blocks <= CLUSTER_ROUND * size && blocks <= NDT_GPU_CLUSTER_ROWS)
            return NDT_CUDA_CLUSTER;
    } else if (blocks <= BLOCK_ROWS) {
        return NDT_CUDA_BLOCK;
    }
    return pass_shape(facts);
}

enum ndt_cuda_shape ndt_cuda_shape_for(enum ndt_cuda_shape wanted, const struct ndt_cuda_facts *facts,
                                       unsigned largest_cluster, size_t items, unsigned blocks)
{
    if (wanted == NDT_CUDA_AUTOMATIC)
        return ndt_cuda_choose_shape(facts, largest_cluster, items, blocks);
    return wanted == NDT_CUDA_CLUSTER && blocks > NDT_GPU_CLUSTER_ROWS ? pass_shape(facts) : wanted;
}

struct ndt_cuda_team ndt_cuda_cluster_team(const struct ndt_cuda_facts *facts, unsigned largest_cluster,
                                           size_t items, unsigned blocks)
{
    unsigned size = (unsigned)facts->largest_cluster;
    if (blocks > size * NDT_GPU_CLUSTER_GROUPS) /* more than every device allows: only if it saves a round */
        size = largest_cluster;
    while (size > 2 && size * items > processors_of(facts))
        size /= 2;
    const unsigned rounds = divide_up(blocks, size * NDT_GPU_CLUSTER_GROUPS);
    return (struct ndt_cuda_team){size, divide_up(blocks, size * rounds) * NDT_GPU_BLOCK};
}
