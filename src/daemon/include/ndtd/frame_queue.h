/* What waits between the receiver and the matcher: frames in the order in which they arrived.
 *
 * At most `depth` scans wait. A scan that finds the queue full pushes the oldest scan out, which is handed back to
 * the giver to be answered as dropped. Small messages (odometry, GNSS, initial pose) keep their place in the order
 * and do not count as scans; NDTD_QUEUE_SMALL of them wait at most, then the oldest is lost and counted.
 *
 * Memory: slots are allocated at create, their buffers grow with the largest frame and are then reused.
 * Threads: one giver, one taker, any number of askers. The lock is held for pointer moves only, never over I/O or
 * copies: give copies into a free slot first, take hands the slot out until it is put back. */
#ifndef NDTD_FRAME_QUEUE_H
#define NDTD_FRAME_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"
#include "ndt_proto/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_QUEUE_MAX_DEPTH 8
#define NDTD_QUEUE_SMALL     1024

struct ndtd_waiting_frame {
    enum ndt_message_type type;
    uint8_t *data; /* owned by the queue */
    size_t size, capacity;
    double arrival_us; /* monotonic clock, when the last byte had arrived */
    uint64_t seq;      /* scans: from the message */
    int64_t stamp_ns;  /* scans: from the message */
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    uint64_t dropped_before; /* scans dropped since the start, when this one was given */
};

struct ndtd_queue;
NDT_MUST_CHECK enum ndt_status ndtd_queue_create(struct ndtd_queue **out, unsigned depth, struct ndt_error *err);
void ndtd_queue_destroy(struct ndtd_queue *queue);

/* Copies the frame in. header: seq, stamp and frame of a scan, ignored for others. *dropped becomes 1 when a scan
 * was pushed out, described (without data) in `out`. Never waits for the taker. */
NDT_MUST_CHECK enum ndt_status ndtd_queue_give(struct ndtd_queue *queue, const struct ndtd_waiting_frame *frame,
                                               int *dropped, struct ndtd_waiting_frame *out, struct ndt_error *err);
/* Waits up to timeout_us for a frame. Returns how many of the oldest frames were put into `frames` (0: none came,
 * or the queue was closed): all that wait, in order, up to and including the `max_scans`-th scan. They stay the
 * taker's until ndtd_queue_put_back. */
size_t ndtd_queue_take(struct ndtd_queue *queue, double timeout_us, unsigned max_scans,
                       struct ndtd_waiting_frame **frames, size_t max_frames);
void ndtd_queue_put_back(struct ndtd_queue *queue, struct ndtd_waiting_frame **frames, size_t count);
/* No more frames are taken in; the taker still gets those that wait (drain), then 0 at once. */
void ndtd_queue_close(struct ndtd_queue *queue);
int ndtd_queue_closed(const struct ndtd_queue *queue);
/* Wakes the taker although nothing came. */
void ndtd_queue_wake(struct ndtd_queue *queue);

struct ndtd_queue_counters {
    uint64_t given, dropped, small_lost;
    unsigned depth, scans_waiting;
};
struct ndtd_queue_counters ndtd_queue_counters(struct ndtd_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
