/** @file
 * @brief Inputs of a replay, for its summary. Plain data; texts are borrowed. */
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

/** Inputs of a replay; all zero: none. */
struct ndtd_run_inputs {
    const char *bag, *map;                               /**< as named on the command line or in the settings */
    struct ndtd_config_files files;                      /**< files of --config, in their order */
    struct ndtd_override overrides[NDTD_OVERRIDES_KEPT]; /**< --set and its short forms but --map, in their order */
    size_t override_count;                               /**< number in all; the first ones are kept */
};

#ifdef __cplusplus
}
#endif
#endif
