/* Text of one option to its place in memory and back; options.h is the way in. */
#ifndef NDTD_OPTION_VALUE_H
#define NDTD_OPTION_VALUE_H

#include "ndtd/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `base` is the struct ndtd_settings. Nothing is written unless the whole value is right. */
NDT_MUST_CHECK enum ndt_status ndtd_option_store(void *base, const struct ndtd_option *option,
                                                 const struct ndtd_value *value, struct ndt_error *err);
void ndtd_option_load(const void *base, const struct ndtd_option *option, char *text, size_t size);
/* Shortest decimal that reads back as the same double, with a point or an exponent. */
void ndtd_format_real(double value, char *text, size_t size);
/* "0.1 .. 100.0 m", "auto, cpu", or an empty text when everything goes. */
void ndtd_option_range(const struct ndtd_option *option, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
