/* Mutations of text that keep most words: values become other numbers and words, lines and words are repeated,
 * removed and exchanged. Names before ':' and '=' mostly stay, since a name that is not known ends the reading. */
#ifndef TEXT_MUTATOR_H
#define TEXT_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/random.h"

/* Makes one to four mutations in place; returns the new size, at most max_size. */
size_t text_mutate(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random);

#endif
