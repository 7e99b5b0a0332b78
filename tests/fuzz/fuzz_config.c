/* Configuration files. What is accepted is printed and read again: every option has the same value. */
#include <string.h>

#include "fuzz.h"
#include "ndt/hash.h"
#include "ndtd/config_file.h"
#include "ndtd/log.h"
#include "text_mutator.h"

static struct ndtd_settings first, second;
static struct ndt_error err;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    ndtd_log_set_level(NDTD_LOG_ERROR);
    return 0;
}

static void compare_settings(void)
{
    char before[8192], after[8192];
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        ndtd_option_format(&first, option, before, sizeof(before));
        ndtd_option_format(&second, option, after, sizeof(after));
        FUZZ_REQUIRE(strcmp(before, after) == 0, "%s: %s, then %s", option->name, before, after);
    }
}

static void check_round_trip(void)
{
    static char text[262144];
    FILE *file = fmemopen(text, sizeof(text), "w");
    ndtd_options_print_config(file, &first, NDTD_ALL_OPTIONS);
    const long size = ftell(file);
    FUZZ_REQUIRE(fclose(file) == 0 && size > 0 && (size_t)size < sizeof(text), "%ld bytes", size);
    ndtd_settings_default(&second);
    FUZZ_REQUIRE(ndtd_config_parse(&second, "printed", text, (size_t)size, &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(ndtd_settings_finish(&second, &err) == NDT_OK, "%s", err.text);
    compare_settings();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ndtd_settings_default(&first);
    err.text[0] = '\0';
    const enum ndt_status status = ndtd_config_parse(&first, "fuzz.yaml", data, size, &err);
    FUZZ_REQUIRE((status == NDT_OK) == (err.text[0] == '\0'), "%s", err.text);
    FUZZ_REQUIRE(strpbrk(err.text, "\n\r") == NULL, "more than one line");
    /* Printing takes much longer than parsing: a part of the inputs. */
    if (status == NDT_OK && ndtd_settings_finish(&first, &err) == NDT_OK && ndt_hash64(data, size, 0) % 8 == 0)
        check_round_trip();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    return text_mutate(data, size, max_size, &random);
}
