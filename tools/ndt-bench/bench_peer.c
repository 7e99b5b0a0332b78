#include "bench_peer.h"

#include <string.h>

static const struct bench_peer_ops *const peers[] = {
#ifdef NDT_HAVE_PCL
    &bench_peer_pcl,
#endif
    NULL,
};

const struct bench_peer_ops *bench_peer_find(const char *name)
{
    for (size_t i = 0; peers[i]; i++)
        if (strcmp(peers[i]->name, name) == 0)
            return peers[i];
    return NULL;
}
