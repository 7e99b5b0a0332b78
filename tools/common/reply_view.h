/** @file
 * @brief A reply of the daemon: its values by name, and as text. */
#ifndef REPLY_VIEW_H
#define REPLY_VIEW_H

#include <stdint.h>
#include <stdio.h>

#include "ndt/status.h"

struct reply_view;

/** Reads a reply of at most 1 MB; the bytes may go afterwards. NDT_ERR_FORMAT for other bytes. */
NDT_MUST_CHECK enum ndt_status reply_view_read(struct reply_view **out, const uint8_t *data, size_t size,
                                               struct ndt_error *err);
/** Allowed on NULL. */
void reply_view_free(struct reply_view *view);

/** Prints its values without those that every reply has, a line each; of a map all values in one line, of an array
 * a line per map. Only printable characters. */
void reply_view_print(const struct reply_view *view, FILE *file);

/** A value by its path, such as "map.error"; absent or of another type: "", 0. Text is cut to `size`. */
const char *reply_view_text(const struct reply_view *view, const char *path, char *out, size_t size);
/** Numbers and booleans. */
double reply_view_number(const struct reply_view *view, const char *path);
/** Whether there is a number or a boolean, which *out becomes; otherwise *out is 0. */
int reply_view_find_number(const struct reply_view *view, const char *path, double *out);
/** Whether there is an array of `count` numbers, which `out` becomes. */
int reply_view_reals(const struct reply_view *view, const char *path, double *out, uint32_t count);
/** Whether there is a value, of any type. */
int reply_view_has(const struct reply_view *view, const char *path);
/** A whole number of 0 or more as decimal digits, all 64 bits of it; absent or another value: "". */
const char *reply_view_digits(const struct reply_view *view, const char *path, char *out, size_t size);

#endif
