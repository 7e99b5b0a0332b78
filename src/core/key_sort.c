#include "key_sort.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static size_t digit_of(uint64_t key, int shift)
{
    return (size_t)(key >> shift) & (DIGITS - 1);
}

static void sort_by_digit(const struct ndt_keyed *from, struct ndt_keyed *to, size_t count, int shift)
{
    size_t place[DIGITS] = {0}, next = 0;
    for (size_t i = 0; i < count; i++)
        place[digit_of(from[i].key, shift)]++;
    for (size_t d = 0; d < DIGITS; d++) {
        const size_t here = place[d];
        place[d] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        to[place[digit_of(from[i].key, shift)]++] = from[i];
}

void ndt_key_sort(struct ndt_keyed *items, struct ndt_keyed *scratch, size_t count)
{
    uint64_t differ = 0;
    struct ndt_keyed *from = items, *to = scratch;
    for (size_t i = 1; i < count; i++)
        differ |= items[i].key ^ items[0].key;
    for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (digit_of(differ, shift) == 0)
            continue;
        sort_by_digit(from, to, count, shift);
        struct ndt_keyed *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != items)
        memcpy(items, from, count * sizeof(*items));
}
