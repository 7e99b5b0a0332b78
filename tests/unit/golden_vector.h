/* Reads the vectors of proto/golden: hex bytes, '#' starts a comment. One comment and the bytes behind it are one
 * part: part 0 the head of the map, every other part a key and its value. */
#ifndef NDT_TEST_GOLDEN_VECTOR_H
#define NDT_TEST_GOLDEN_VECTOR_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct golden_vector {
    uint8_t bytes[2048];
    size_t size;
    size_t parts[40]; /* begin of each part */
    size_t part_count;
};

static inline void golden_add_line(struct golden_vector *golden, const char *line, int *in_comment)
{
    if (line[0] == '#') {
        *in_comment = 1;
        return;
    }
    if (*in_comment)
        golden->parts[golden->part_count++] = golden->size;
    *in_comment = 0;
    unsigned byte;
    int used;
    while (sscanf(line, " %2x%n", &byte, &used) == 1) {
        ck_assert_uint_lt(golden->size, sizeof(golden->bytes));
        golden->bytes[golden->size++] = (uint8_t)byte;
        line += used;
    }
}

static inline struct golden_vector golden_read(const char *name)
{
    struct golden_vector golden = {.size = 0};
    char path[1024], line[512];
    snprintf(path, sizeof(path), "%s/../proto/golden/%s.hex", NDT_TEST_DIR, name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    int in_comment = 0;
    while (fgets(line, sizeof(line), file))
        golden_add_line(&golden, line, &in_comment);
    fclose(file);
    ck_assert_uint_gt(golden.size, 0);
    return golden;
}

/* The key of a part, terminated. */
static inline void golden_key(const struct golden_vector *golden, size_t part, char key[32])
{
    const uint8_t *at = golden->bytes + golden->parts[part];
    const size_t length = at[0] & 0x1f;
    ck_assert_uint_eq(at[0] & 0xe0, 0xa0);
    memcpy(key, at + 1, length);
    key[length] = '\0';
}

#endif
