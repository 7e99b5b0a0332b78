/* Private to the option sources: the rows, and the range of a value as text. */
#ifndef NDTD_OPTION_TABLE_H
#define NDTD_OPTION_TABLE_H

#include "ndtd/options.h"

extern const struct ndtd_option ndtd_option_table[];
extern const size_t ndtd_option_table_count;

/* Writes "0.1 .. 100.0 m", "auto, cpu", or an empty text when there is no limit. */
void ndtd_option_range(const struct ndtd_option *option, char *text, size_t size);

#endif
