/* The cache of autotune results. The mutator puts the key of this machine and right checksums into the lines; a
 * result that is found has a row that was measured. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_file.h"
#include "ndt/hash.h"
#include "ndt/random.h"
#include "ndtd/autotune.h"
#include "ndtd/log.h"
#include "text_mutator.h"

enum { MAP_ID = 7, HASH_CHARS = 16, KEY_AT = 17 };

static struct fuzz_file file;
static struct ndtd_settings settings;
static uint64_t key;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct ndt_error err;
    (void)argc;
    (void)argv;
    ndtd_log_set_level(NDTD_LOG_ERROR);
    fuzz_file_open(&file, "autotune");
    FUZZ_REQUIRE(setenv("CACHE_DIRECTORY", fuzz_folder(), 1) == 0, "environment");
    ndtd_settings_default(&settings);
    settings.max_threads = 4;
    FUZZ_REQUIRE(ndtd_settings_finish(&settings, &err) == NDT_OK, "%s", err.text);
    key = ndtd_autotune_key(&settings, MAP_ID);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ndtd_autotune_result found;
    char line[4096];
    fuzz_file_write(&file, data, size);
    if (!ndtd_autotune_cache_find(&settings, MAP_ID, &found))
        return 0;
    FUZZ_REQUIRE(found.choice.row >= 0 && (size_t)found.choice.row < found.row_count, "row %d", found.choice.row);
    FUZZ_REQUIRE(found.rows[found.choice.row].samples > 0, "row %d was not measured", found.choice.row);
    (void)ndtd_autotune_line(&found, line, sizeof(line));
    const double align_us = ndtd_autotune_align_us(&found, 1500, 20);
    FUZZ_REQUIRE(!isnan(align_us), "an alignment takes NaN");
    return 0;
}

/* Of every line behind the first: "HASH KEY VALUES". */
static void fix_lines(char *text, size_t size, int with_key)
{
    char digits[HASH_CHARS + 1];
    char *end = text + size;
    char *line = memchr(text, '\n', size);
    while (line && ++line < end) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)((next ? next : end) - line);
        if (length > KEY_AT + HASH_CHARS && with_key) {
            line[HASH_CHARS] = ' ';
            snprintf(digits, sizeof(digits), "%016" PRIx64, key);
            memcpy(line + KEY_AT, digits, HASH_CHARS);
        }
        if (length > HASH_CHARS) {
            snprintf(digits, sizeof(digits), "%016" PRIx64, ndt_hash64(line + HASH_CHARS, length - HASH_CHARS, 0));
            memcpy(line, digits, HASH_CHARS);
        }
        line = next;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    const size_t mutated = text_mutate(data, size, max_size, &random);
    const uint64_t choice = ndt_random_next(&random) % 16;
    if (choice > 0)
        fix_lines((char *)data, mutated, choice > 1);
    return mutated;
}
