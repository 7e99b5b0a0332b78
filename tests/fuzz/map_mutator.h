/* Mutations of compiled maps (ndt_io/compiled_map.h): sizes, offsets, references of cells, lists, voxels and the
 * attached field get other values; sizes and hashes are made right again, so that the file is not refused for them.
 */
#ifndef MAP_MUTATOR_H
#define MAP_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/random.h"

/* Makes one to four mutations in place; returns the new size, at most max_size. */
size_t map_mutate(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random);
/* Remembers a map that opens; some mutations begin with the last ones. */
void map_keep(const uint8_t *data, size_t size);

#endif
