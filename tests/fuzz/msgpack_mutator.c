#include "msgpack_mutator.h"

#include <string.h>

#include "fuzz.h"

/* ---- where the items are ---- */

enum { MAX_ITEMS = 512, MAX_DEPTH = 16, MAX_NEW = 512 };

struct item {
    size_t at, body, end; /* head, what follows the head, and the byte behind the item */
    int is_key;           /* the next item is its value */
};

struct item_list {
    struct item items[MAX_ITEMS];
    size_t count;
};

static uint64_t big_endian(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* Contents of a head: bytes of the head, bytes of the body, items that follow. */
struct head {
    size_t bytes, body, items;
    int is_map;
};

static struct head read_head(const uint8_t *at, size_t left)
{
    static const uint8_t sizes[32] = {/* c0 */ 0, 0, 0, 0, 1, 2, 4, 1, 2,  4, 4, 8, 1, 2, 4, 8,
                                      /* d0 */ 1, 2, 4, 8, 1, 2, 4, 8, 16, 1, 2, 4, 2, 4, 2, 4};
    const uint8_t byte = at[0];
    if (byte < 0x80 || byte >= 0xe0)
        return (struct head){.bytes = 1};
    if (byte < 0x90)
        return (struct head){.bytes = 1, .items = 2u * (byte & 15), .is_map = 1};
    if (byte < 0xa0)
        return (struct head){.bytes = 1, .items = byte & 15};
    if (byte < 0xc0)
        return (struct head){.bytes = 1, .body = byte & 31};
    const size_t length = sizes[byte - 0xc0];
    if (left < 1 + length)
        return (struct head){.bytes = left};
    const uint64_t value = big_endian(at + 1, length > 8 ? 8 : length);
    if ((byte >= 0xc4 && byte <= 0xc6) || (byte >= 0xd9 && byte <= 0xdb))
        return (struct head){.bytes = 1 + length, .body = (size_t)value};
    if (byte >= 0xc7 && byte <= 0xc9)
        return (struct head){.bytes = 1 + length, .body = (size_t)value + 1};
    if (byte >= 0xdc && byte <= 0xdd)
        return (struct head){.bytes = 1 + length, .items = (size_t)value};
    if (byte >= 0xde)
        return (struct head){.bytes = 1 + length, .items = 2 * (size_t)value, .is_map = 1};
    const size_t extension = byte >= 0xd4 && byte <= 0xd8 ? 1 : 0;
    return (struct head){.bytes = 1 + length + extension};
}

/* Adds the item at `at` and those within it; returns its end. */
static size_t list_items(struct item_list *list, const uint8_t *data, size_t size, size_t at, int is_key, int depth)
{
    if (at >= size || list->count == MAX_ITEMS || depth == MAX_DEPTH)
        return size;
    const struct head head = read_head(data + at, size - at);
    struct item *item = &list->items[list->count++];
    size_t end = at + head.bytes;
    end = head.body < size - (end < size ? end : size) ? end + head.body : size;
    *item = (struct item){.at = at, .body = at + head.bytes < end ? at + head.bytes : end, .is_key = is_key};
    for (size_t i = 0; i < head.items && end < size; i++)
        end = list_items(list, data, size, end, head.is_map && i % 2 == 0, depth + 1);
    item->end = end < size ? end : size;
    return item->end;
}

/* ---- new items ---- */

static size_t put_number(uint8_t *out, uint8_t head, uint64_t value, size_t bytes)
{
    out[0] = head;
    for (size_t i = 0; i < bytes; i++)
        out[1 + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    return 1 + bytes;
}

static size_t put_real(uint8_t *out, struct ndt_random *random)
{
    static const double limits[] = {0,    -0.0,  1,     -1,   0.5,     1e-300, 5e-324, 1e300, -1e300,
                                    1e18, 1e308, 1e154, 1e19, -9.3e18, 3e38,   1e4,    1e3,   1e6};
    double value = limits[fuzz_below(random, sizeof(limits) / sizeof(limits[0]))];
    uint64_t bits;
    if (fuzz_below(random, 4) == 0)
        value = ndt_random_normal(random) * 100;
    memcpy(&bits, &value, sizeof(bits));
    if (fuzz_below(random, 8) == 0) /* NaN of either sign, infinities */
        bits = (uint64_t)(0x7ff0 | fuzz_below(random, 2) << 15 | fuzz_below(random, 2) << 3) << 48;
    if (fuzz_below(random, 4) == 0)
        return put_number(out, 0xca, fuzz_below(random, 2) ? 0x7fc00000u : (uint64_t)(bits >> 29), 4);
    return put_number(out, 0xcb, bits, 8);
}

static size_t put_whole(uint8_t *out, struct ndt_random *random)
{
    static const uint64_t limits[] = {0,
                                      1,
                                      2,
                                      31,
                                      127,
                                      128,
                                      255,
                                      256,
                                      65535,
                                      65536,
                                      INT32_MAX,
                                      0x80000000u,
                                      UINT32_MAX,
                                      1000000000,
                                      268435456,
                                      INT64_MAX,
                                      (uint64_t)INT64_MIN,
                                      UINT64_MAX};
    const uint64_t value = limits[fuzz_below(random, sizeof(limits) / sizeof(limits[0]))];
    const size_t log = fuzz_below(random, 4);
    return put_number(out, (uint8_t)((fuzz_below(random, 2) ? 0xcc : 0xd0) + log), value, (size_t)1 << log);
}

static size_t put_text(uint8_t *out, struct ndt_random *random)
{
    static const char *const words[] = {"",        "map",      "lidar",    "v",       "type",     "scan",
                                        "pose",    "x",        "time",     "request", "localize", "reply",
                                        "start\n", "\xff\xfe", "stamp_ns", "odometry"};
    const char *word = words[fuzz_below(random, sizeof(words) / sizeof(words[0]))];
    const size_t length = fuzz_below(random, 8) ? strlen(word) : fuzz_below(random, 300);
    const size_t head = put_number(out, fuzz_below(random, 4) ? 0xda : 0xc5, length, 2);
    memset(out + head, 'a', length);
    if (strlen(word) <= length)
        memcpy(out + head, word, strlen(word));
    return head + length;
}

static size_t put_nest(uint8_t *out, struct ndt_random *random)
{
    const size_t depth = 1 + fuzz_below(random, 40);
    const int is_map = fuzz_below(random, 2) == 0;
    size_t at = 0;
    for (size_t i = 0; i < depth; i++) {
        out[at++] = is_map ? 0x81 : 0x91;
        if (is_map)
            out[at++] = 0xa0;
    }
    out[at++] = 0xc0;
    return at;
}

/* Writes any item; `out` has room for MAX_NEW bytes. */
static size_t put_item(uint8_t *out, struct ndt_random *random)
{
    switch (fuzz_below(random, 8)) {
    case 0:
    case 1:
        return put_real(out, random);
    case 2:
    case 3:
        return put_whole(out, random);
    case 4:
        return put_text(out, random);
    case 5:
        return put_nest(out, random);
    case 6:
        out[0] = (uint8_t)(0xc0 + fuzz_below(random, 4)); /* nil, the unused one, false, true */
        return 1;
    default:
        out[0] = (uint8_t)(fuzz_below(random, 2) ? 0x90 : 0x80);
        return 1;
    }
}

/* ---- mutations ---- */

/* The count of the map or array at `at`, where it is in one byte, follows a pair or an item. */
static void adjust_count(uint8_t *head, int by)
{
    const int is_small = *head >= 0x80 && *head < 0xa0;
    const int count = (*head & 15) + by;
    if (is_small && count >= 0 && count <= 15)
        *head = (uint8_t)((*head & 0xf0) | count);
}

/* Repeats, removes or moves a key with its value. */
static size_t mutate_pair(uint8_t *data, size_t size, size_t max_size, const struct item_list *list, size_t index,
                          struct ndt_random *random)
{
    uint8_t copy[MAX_NEW];
    const struct item *key = &list->items[index];
    const size_t end = index + 1 < list->count ? list->items[index + 1].end : size;
    const size_t bytes = end - key->at;
    const int honest = fuzz_below(random, 4) != 0;
    if (!key->is_key || bytes > sizeof(copy))
        return size;
    memcpy(copy, data + key->at, bytes);
    if (fuzz_below(random, 2)) {
        const size_t removed = fuzz_replace(data, size, max_size, key->at, end, copy, 0);
        if (honest)
            adjust_count(data, -1);
        if (fuzz_below(random, 2))
            return removed;
        if (honest)
            adjust_count(data, 1);
        return fuzz_replace(data, removed, max_size, removed, removed, copy, bytes); /* to the end */
    }
    const size_t repeated = fuzz_replace(data, size, max_size, key->at, key->at, copy, bytes);
    if (repeated > size && honest)
        adjust_count(data, 1);
    return repeated;
}

static size_t mutate_once(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random)
{
    static struct item_list list; /* used by one thread */
    uint8_t fresh[MAX_NEW];
    list.count = 0;
    (void)list_items(&list, data, size, 0, 0, 0);
    if (list.count == 0)
        return fuzz_replace(data, size, max_size, 0, size, fresh, put_item(fresh, random));
    const size_t index = fuzz_below(random, list.count);
    const struct item item = list.items[index];
    switch (fuzz_below(random, 8)) {
    case 0:
    case 1:
    case 2: /* another value */
        return fuzz_replace(data, size, max_size, item.at, item.end, fresh, put_item(fresh, random));
    case 3: /* one more item */
        return fuzz_replace(data, size, max_size, item.at, item.at, fresh, put_item(fresh, random));
    case 4:
    case 5:
        return mutate_pair(data, size, max_size, &list, index, random);
    case 6: /* a head that lies */
        data[item.at] = (uint8_t)(data[item.at] + 1 - 2 * (int)fuzz_below(random, 2));
        return size;
    default: /* the bytes of a text, a number or a blob */
        if (item.end > item.body)
            (void)LLVMFuzzerMutate(data + item.body, item.end - item.body, item.end - item.body);
        return size;
    }
}

size_t msgpack_mutate(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random)
{
    for (size_t left = 1 + fuzz_below(random, 4); left > 0; left--)
        size = mutate_once(data, size, max_size, random);
    return size;
}
