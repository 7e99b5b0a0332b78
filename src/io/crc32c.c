/* CRC-32C, for the records of bags. */
#include <pthread.h>
#include <string.h>

#include "ndt_io/bag.h"

/* Castagnoli's polynomial, bits reversed. */
#define POLYNOMIAL 0x82f63b78u

/* tables[k][b]: the CRC of byte b followed by k zero bytes, so that 8 bytes take 8 independent look-ups. */
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t byte = 0; byte < 256; byte++)
            tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 255];
}

static uint64_t load_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

uint32_t ndt_crc32c_plain(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;
    pthread_once(&tables_once, make_tables);
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        const uint64_t word = load_u64(at) ^ crc;
        crc = 0;
        for (unsigned k = 0; k < 8; k++)
            crc ^= tables[7 - k][(word >> 8 * k) & 255];
    }
    for (; size > 0; size--, at++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 255];
    return ~crc;
}

#if defined(__x86_64__)
#if defined(__clang__) /* for which the instruction is a feature of its own */
#define CRC32_FEATURES "sse4.2,crc32"
#else
#define CRC32_FEATURES "sse4.2"
#endif

__attribute__((target(CRC32_FEATURES))) static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t state = (uint32_t)~crc;
    for (; size >= 8; size -= 8, at += 8)
        state = __builtin_ia32_crc32di(state, load_u64(at));
    uint32_t rest = (uint32_t)state;
    for (; size > 0; size--, at++)
        rest = __builtin_ia32_crc32qi(rest, *at);
    return ~rest;
}

uint32_t ndt_crc32c(uint32_t crc, const void *data, size_t size)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, data, size) : ndt_crc32c_plain(crc, data, size);
}
#else
uint32_t ndt_crc32c(uint32_t crc, const void *data, size_t size)
{
    return ndt_crc32c_plain(crc, data, size);
}
#endif
