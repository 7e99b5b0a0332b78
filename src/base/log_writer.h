/* Private to the log: writes whole lines to standard error, by a thread where it runs. */
#ifndef NDTD_LOG_WRITER_H
#define NDTD_LOG_WRITER_H

#include <stddef.h>

enum { NDTD_LOG_LINE_BYTES = 1024 };

/* Takes a line of at most NDTD_LOG_LINE_BYTES with its line break; never waits while the thread runs. */
void ndtd_log_put(const char *line, size_t size);

#endif
