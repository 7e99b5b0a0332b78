/* Private to the option sources: the rows themselves. */
#ifndef NDTD_OPTION_TABLE_H
#define NDTD_OPTION_TABLE_H

#include "ndtd/options.h"

extern const struct ndtd_option ndtd_option_table[];
extern const size_t ndtd_option_table_count;

#endif
