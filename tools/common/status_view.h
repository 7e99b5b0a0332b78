/** @file
 * @brief The state of a daemon in a dozen lines for people. */
#ifndef STATUS_VIEW_H
#define STATUS_VIEW_H

#include "reply_view.h"

/** Prints a reply to `status` on standard output: version and load, backend, map, state, pose, scans, latency, what
 * was received, queue. Lines for a search, a recording, counters that should be 0 and options that wait for a
 * restart appear where there are any. */
void status_view_print(const struct reply_view *view);

#endif
