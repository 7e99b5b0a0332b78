/* Private to the core: sorting by a 64-bit key. */
#ifndef NDT_KEY_SORT_H
#define NDT_KEY_SORT_H

#include <stddef.h>
#include <stdint.h>

struct ndt_keyed {
    uint64_t key;
    size_t item;
};

/* Ascending; equal keys keep their order. `scratch` has room for as many. Linear in `count`: a pass per eleven bits
 * in which keys differ. */
void ndt_key_sort(struct ndt_keyed *items, struct ndt_keyed *scratch, size_t count);

#endif
