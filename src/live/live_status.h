/* Private: the reply to `status`. */
#ifndef NDTD_LIVE_STATUS_H
#define NDTD_LIVE_STATUS_H

struct ndt_reply_writer;
struct ndtd_live;
struct ndtd_worker_timing;

/* Writes the members of a reply to `status`. timings: room for NDTD_TIMINGS_KEPT. While the first map loads there
 * is neither worker nor receiver: their counters are 0. */
void ndtd_live_write_status(struct ndtd_live *live, struct ndtd_worker_timing *timings,
                            struct ndt_reply_writer *writer);

#endif
