/* CRC-32C: known values, and every implementation against the plain one. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ndt_io/bag.h"
#include "run_tests.h"

static void expect_crc(const void *data, size_t size, uint32_t expected)
{
    ck_assert_uint_eq(ndt_crc32c(0, data, size), expected);
    ck_assert_uint_eq(ndt_crc32c_plain(0, data, size), expected);
}

/* RFC 3720, appendix B.4, and the usual check value. */
TEST(test_known_values)
{
    static const uint8_t read_command[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    uint8_t bytes[32];
    memset(bytes, 0, sizeof(bytes));
    expect_crc(bytes, sizeof(bytes), 0x8a9136aau);
    memset(bytes, 0xff, sizeof(bytes));
    expect_crc(bytes, sizeof(bytes), 0x62a8ab43u);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    expect_crc(bytes, sizeof(bytes), 0x46dd794eu);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(31 - i);
    expect_crc(bytes, sizeof(bytes), 0x113fdb5cu);
    expect_crc(read_command, sizeof(read_command), 0xd9963a56u);
    expect_crc("123456789", 9, 0xe3069283u);
    expect_crc(NULL, 0, 0);
}

TEST(test_all_sizes_and_alignments)
{
    uint8_t bytes[160];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    for (size_t offset = 0; offset < 9; offset++)
        for (size_t size = 0; offset + size <= sizeof(bytes); size++)
            ck_assert_uint_eq(ndt_crc32c(7, bytes + offset, size), ndt_crc32c_plain(7, bytes + offset, size));
}

TEST(test_in_parts)
{
    static const char text[] = "a record is its head and its payload";
    const size_t size = sizeof(text) - 1;
    const uint32_t whole = ndt_crc32c(0, text, size);
    for (size_t cut = 0; cut <= size; cut++) {
        ck_assert_uint_eq(ndt_crc32c(ndt_crc32c(0, text, cut), text + cut, size - cut), whole);
        ck_assert_uint_eq(ndt_crc32c_plain(ndt_crc32c_plain(0, text, cut), text + cut, size - cut), whole);
    }
}
