/* Mutations of msgpack messages that keep most of the structure: values become others of any type and limit, pairs
 * are repeated, removed, exchanged and nested, heads lie about their counts. */
#ifndef MSGPACK_MUTATOR_H
#define MSGPACK_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/random.h"

/* Makes one to four mutations of the message in `data`, in place; returns the new size, at most max_size. Bytes
 * that are not msgpack are mutated as plain bytes. */
size_t msgpack_mutate(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random);

#endif
