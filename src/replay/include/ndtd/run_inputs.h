/** @file
 * @brief What a replay was given, for its summary. Plain data; texts are borrowed. */
#ifndef NDTD_RUN_INPUTS_H
#define NDTD_RUN_INPUTS_H

#include "ndtd/config_file.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_OVERRIDES_KEPT = 64 };

/** An option that the command line sets. */
struct ndtd_override {
    const char *key; /**< NULL: `value` is KEY=VALUE */
    const char *value;
};

/** All zero: nothing. */
struct ndtd_run_inputs {
    const char *bag, *map;                               /**< as they were named */
    struct ndtd_config_files files;                      /**< --config, in their order */
    struct ndtd_override overrides[NDTD_OVERRIDES_KEPT]; /**< --set and its short forms but --map, in their order */
    size_t override_count;                               /**< the first ones are kept */
};

#ifdef __cplusplus
}
#endif
#endif
