/* Numbers as text, read the same way under every locale. Private to ndt_io.
 *
 * All functions work on [*at, end), skip blanks (space, tab) first, and on success leave *at behind
 * what they read, which must be followed by a blank or the end. They return 1, or 0 with *at unchanged. */
#ifndef NDT_IO_NUMBER_TEXT_H
#define NDT_IO_NUMBER_TEXT_H

#include <locale.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a number, correctly rounded; nan and inf, with a sign too, are numbers. */
int ndt_text_real(const char **at, const char *end, double *out);
/* Reads an integer in [-2^63, 2^64); above 2^63 - 1 it wraps to the bits of a uint64_t. */
int ndt_text_whole(const char **at, const char *end, int64_t *out);
/* Reads decimal seconds (exponents allowed) as nanoseconds, never through floating point; digits beyond the ninth
 * decimal are rounded. 0 when out of range. */
int ndt_text_seconds(const char **at, const char *end, int64_t *out_ns);
/* Reads the next word, not terminated; 0 when only blanks are left. */
int ndt_text_word(const char **at, const char *end, const char **word, size_t *length);
int ndt_text_is(const char *word, size_t length, const char *expected);
int ndt_text_done(const char *at, const char *end); /* only blanks are left */

/* The "C" locale, for uselocale() around printf; NULL when it is not available. Never freed. */
locale_t ndt_text_locale(void);

#endif
