/** @file
 * @brief The emulated device: its abilities and random choices.
 *
 * NDT_EMULATION_SEED=N: the seed of all random choices (1).
 * NDT_EMULATION_CLUSTERS=0: no thread-block clusters. NDT_EMULATION_LOOPS=0: no conditional nodes in graphs.
 * NDT_EMULATION_CLUSTER_ROOM=N: no room for clusters of more than N blocks (8), as on a part of a device.
 * NDT_EMULATION_MAPPED=0: kernels cannot write memory of the host. */
#include "emulated_device.h"

#include <stdlib.h>
#include <string.h>

#include "ndt/random.h"

static struct ndt_random chance;
static int is_seeded;

void emulated_set_seed(unsigned seed)
{
    chance.state = seed;
    is_seeded = 1;
}

unsigned emulated_chance(unsigned limit)
{
    const char *seed = is_seeded ? NULL : getenv("NDT_EMULATION_SEED");
    if (!is_seeded)
        chance.state = seed ? strtoull(seed, NULL, 10) : 1;
    is_seeded = 1;
    /* Multiply instead of divide: a division takes longer than a switch of fibers. */
    return (unsigned)((ndt_random_next(&chance) >> 32) * limit >> 32);
}

static int is_left_out(const char *variable)
{
    const char *text = getenv(variable);
    return text && strcmp(text, "0") == 0;
}

int emulated_has_clusters(void)
{
    return !is_left_out("NDT_EMULATION_CLUSTERS");
}

unsigned emulated_cluster_room(void)
{
    const char *text = getenv("NDT_EMULATION_CLUSTER_ROOM");
    return text ? (unsigned)strtoul(text, NULL, 10) : EMULATED_MOST_CLUSTER;
}

int emulated_has_loops(void)
{
    return !is_left_out("NDT_EMULATION_LOOPS");
}

int emulated_can_map(void)
{
    return !is_left_out("NDT_EMULATION_MAPPED");
}
