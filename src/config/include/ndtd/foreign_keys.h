/** @file
 * @brief The parameters of Autoware's ndt_scan_matcher that are no options of ndtd, from one table
 * (foreign_keys.c): each sets an option of another name, or a note says what takes its place here.
 *
 * A file with one of them, wrapped in ros__parameters, is a file of Autoware. What such a file takes for granted
 * (the step rule, for one) is set by it too, where it does not say otherwise. Pure, no allocation; any thread. */
#ifndef NDTD_FOREIGN_KEYS_H
#define NDTD_FOREIGN_KEYS_H

#include "ndtd/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rows at most, for finding duplicates. */
#define NDTD_FOREIGN_KEYS_MAX 64

/** One row. */
struct ndtd_foreign_key {
    const char *name;
    const char *option;            /**< the option that the key sets; NULL: none */
    const struct ndt_label *words; /**< ours in the order of its numbers, ends with a NULL name; NULL: the same */
    const char *note;              /**< one line, no full stop: what takes its place or differs; may be NULL */
    int is_switch;                 /**< see ndtd_foreign_covariance */
};

/** NULL if there is none of this name. */
const struct ndtd_foreign_key *ndtd_foreign_key_find(const char *name);
/** NULL after the last. */
const struct ndtd_foreign_key *ndtd_foreign_key_at(size_t i);
/** The text that sets key->option, for a value of the key. */
const char *ndtd_foreign_key_value(const struct ndtd_foreign_key *key, const char *text);

/** An option that every file of Autoware sets, in words of its own or by being one. */
struct ndtd_foreign_default {
    const char *option, *value;
};
/** NULL after the last. */
const struct ndtd_foreign_default *ndtd_foreign_default_at(size_t i);

/** The option that the switch is about. */
#define NDTD_FOREIGN_COVARIANCE "covariance.covariance_estimation.covariance_estimation_type"
/** Up to 2024-06 a switch turned the estimation of the covariance on, and the types were counted from laplace on.
 * is_on: that switch; has_type: the file names a type, which the settings have by today's count. */
void ndtd_foreign_covariance(struct ndtd_settings *settings, int is_on, int has_type);

#ifdef __cplusplus
}
#endif
#endif
