/** @file
 * @brief The values of the metrics as text. Pure functions. */
#ifndef WEB_METRICS_TEXT_H
#define WEB_METRICS_TEXT_H

#include <stdio.h>

#include "web_metrics_table.h"

/** Prints every metric that has a value. */
void web_values_print(const struct web_values *values, enum web_metrics_format format, FILE *file);

#endif
