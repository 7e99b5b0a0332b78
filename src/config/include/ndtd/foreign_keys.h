/** @file
 * @brief The parameters of Autoware's ndt_scan_matcher that are no options of ndtd, from one table
 * (foreign_keys.c): each sets an option of another name, or a note says what takes its place here.
 *
 * A file with one of them, wrapped in ros__parameters, is a file of Autoware. Such a file also sets the defaults of
 * Autoware's node (the step rule, for one) that it does not set otherwise. Pure, no allocation; any thread. */
#ifndef NDTD_FOREIGN_KEYS_H
#define NDTD_FOREIGN_KEYS_H

#include "ndtd/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Largest number of rows, for finding duplicates. */
#define NDTD_FOREIGN_KEYS_MAX 64

/** A row of the table. */
struct ndtd_foreign_key {
    const char *name;
    const char *option;            /**< the option that the key sets; NULL: none */
    const struct ndt_label *words; /**< our words by its numbers, ends with a NULL name; NULL: equal values */
    const char *note;              /**< one line, no full stop, about its replacement or difference; may be NULL */
    int is_switch;                 /**< see ndtd_foreign_covariance */
};

/** Finds the row of a name; NULL: there is none. */
const struct ndtd_foreign_key *ndtd_foreign_key_find(const char *name);
/** Row i; NULL after the last. */
const struct ndtd_foreign_key *ndtd_foreign_key_at(size_t i);
/** The text that sets key->option, for a value of the key. */
const char *ndtd_foreign_key_value(const struct ndtd_foreign_key *key, const char *text);

/** An option that every file of Autoware sets, explicitly or because it is a file of Autoware. */
struct ndtd_foreign_default {
    const char *option, *value;
};
/** Default i; NULL after the last. */
const struct ndtd_foreign_default *ndtd_foreign_default_at(size_t i);

/** Option that the switch of the covariance sets. */
#define NDTD_FOREIGN_COVARIANCE "covariance.covariance_estimation.covariance_estimation_type"
/** Applies the switch of the covariance: up to 2024-06 it turned the estimation on, and the types were counted from
 * laplace on. is_on: that switch; has_type: the file names a type, which the settings have by today's count. */
void ndtd_foreign_covariance(struct ndtd_settings *settings, int is_on, int has_type);

#ifdef __cplusplus
}
#endif
#endif
