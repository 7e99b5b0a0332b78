/* Inputs whose surroundings are watched: a kernel that reads or writes beyond what it was given is caught. */
#ifndef KERNEL_GUARD_H
#define KERNEL_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/map.h"

/* A cloud as the contract promises it (64-byte aligned arrays, padded to 16 elements) and not a byte more: an
 * unreadable page begins right behind the padding of every array, guard bytes lie before it. The padding
 * holds copies of the first point, which must not be counted. */
struct guarded_cloud {
    struct ndt_cloud cloud;
    unsigned char *region;
    size_t region_bytes;
    unsigned char *copy; /* of the readable part, to compare with */
    size_t array_bytes;  /* readable bytes per array, guard included */
    size_t stride;       /* from one array's readable part to the next */
};

/* Returns 0 when memory could not be had. */
int guarded_cloud_make(struct guarded_cloud *guarded, const struct ndt_cloud *source);
void guarded_cloud_free(struct guarded_cloud *guarded);
/* 1 when neither the points nor the bytes around them have changed since guarded_cloud_make. */
int guarded_cloud_intact(const struct guarded_cloud *guarded);
/* Overwrites the points: who copied them must not care. */
void guarded_cloud_spoil(struct guarded_cloud *guarded);
void guarded_cloud_restore(struct guarded_cloud *guarded);

/* Not cryptographic, eight bytes at a time; start with hash = 0. */
uint64_t guard_hash(uint64_t hash, const void *data, size_t size);
/* Over every array of every level of the map. */
uint64_t guard_hash_map(const struct ndt_map *map);

#endif
