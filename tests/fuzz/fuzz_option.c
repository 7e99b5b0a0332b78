/* Options as text, NAME=VALUE, as after --set. A value that is accepted is formatted and set again: nothing
 * changes. */
#include <string.h>

#include "fuzz.h"
#include "ndtd/log.h"
#include "ndtd/options.h"
#include "text_mutator.h"

static struct ndtd_settings defaults, settings;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    ndtd_log_set_level(NDTD_LOG_ERROR);
    ndtd_settings_default(&defaults);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096], before[8192], after[8192];
    struct ndt_error err = {""};
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    char *value = strchr(text, '=');
    if (!value)
        return 0;
    *value++ = '\0';
    settings = defaults;
    if (ndtd_option_set_text(&settings, text, value, &err) != NDT_OK) {
        FUZZ_REQUIRE(err.text[0], "refused without a reason");
        return 0;
    }
    const struct ndtd_option *option = ndtd_option_find(text);
    FUZZ_REQUIRE(option, "%s: set, but not found", text);
    option = ndtd_option_target(option);
    ndtd_option_format(&settings, option, before, sizeof(before));
    if (option->type == NDTD_STRING || option->type == NDTD_PATH) /* quoted for YAML, not for --set */
        return 0;
    settings = defaults;
    FUZZ_REQUIRE(ndtd_option_set_text(&settings, option->name, before, &err) == NDT_OK, "%s=%s: %s", option->name,
                 before, err.text);
    ndtd_option_format(&settings, option, after, sizeof(after));
    FUZZ_REQUIRE(strcmp(before, after) == 0, "%s: %s, then %s", option->name, before, after);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    return text_mutate(data, size, max_size, &random);
}
