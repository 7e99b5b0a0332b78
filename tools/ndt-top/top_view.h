/** @file
 * @brief The results so far and the status of the daemon as text, for ndt-top. One thread, bounded memory. */
#ifndef TOP_VIEW_H
#define TOP_VIEW_H

#include <stdio.h>

#include "ndt_proto/message.h"

enum { TOP_WINDOW = 1000, TOP_STAGES = 5 };

struct top_view {
    uint64_t results, at_last_show; /**< number since the start */
    uint64_t outcomes[NDT_OUTCOME_COUNT];
    uint64_t states[NDT_STATE_COUNT]; /**< states of results that have one */
    uint64_t missing;                 /**< missing results, by gaps in seq */
    double latency_ms[TOP_WINDOW];    /**< ring buffer of the last latencies */
    double stages_ms[TOP_STAGES][TOP_WINDOW];
    size_t next, kept;
    uint32_t most_waiting; /**< largest queue_depth since the last show */
    struct ndt_result_message last;
};

void top_view_add(struct top_view *view, const struct ndt_result_message *message);
/** `seconds` since the last show, for the rate. */
void top_view_show(struct top_view *view, FILE *file, double seconds);

#endif
