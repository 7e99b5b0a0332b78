/** @file
 * @brief Queue of frames between the receiver and the matching thread, in the order of their arrival.
 *
 * At most `depth` scans wait. A scan that arrives at a full queue pushes the oldest scan out, which is returned to
 * the producer to be answered as dropped. Small messages (odometry, IMU, GNSS, initial pose) keep their place in
 * the order and do not count as scans; at most NDTD_QUEUE_SMALL of them wait, then the oldest is lost and counted.
 *
 * Ownership: a message is moved into a slot, not copied. The slot keeps it until the producer reuses the slot, so
 * that memory is returned by the producer's thread and never by the consumer's. All slots are allocated at create.
 * Threads: one producer, one consumer; the other functions may be called by any thread. The lock is held for
 * pointer moves only. */
#ifndef NDTD_MESSAGE_QUEUE_H
#define NDTD_MESSAGE_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <zmq.h>

#include "ndtd/queued_message.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_QUEUE_SMALL 1024 /**< largest number of small messages that wait */

struct ndtd_queue;
/** Creates a queue. depth: 1 to NDTD_QUEUE_MAX_DEPTH. */
NDT_MUST_CHECK enum ndt_status ndtd_queue_create(struct ndtd_queue **out, unsigned depth, struct ndt_error *err);
/** Frees the queue and its messages; may be NULL. */
void ndtd_queue_destroy(struct ndtd_queue *queue);

/** Appends a frame. Its bytes are those of `message`, which is moved into the queue; `data` and `size` are ignored.
 * *dropped becomes 1 when a scan was pushed out, which `pushed_out` then describes, without data. Never waits for
 * the consumer. NDT_END: the queue is closed; the message may have been moved or not, the caller closes it either
 * way. */
NDT_MUST_CHECK enum ndt_status ndtd_queue_push(struct ndtd_queue *queue, const struct ndtd_message *frame,
                                               zmq_msg_t *message, int *dropped, struct ndtd_message *pushed_out,
                                               struct ndt_error *err);
/** Waits up to timeout_us for a frame. Returns the number of frames written to `frames`: the oldest ones, in order,
 * up to and including the `max_scans`-th scan; 0 when none arrived, or the queue is closed. They belong to the
 * consumer until ndtd_queue_release. */
size_t ndtd_queue_pop(struct ndtd_queue *queue, double timeout_us, unsigned max_scans, struct ndtd_message **frames,
                      size_t max_frames);
/** Returns frames to the queue; their contents become invalid. */
void ndtd_queue_release(struct ndtd_queue *queue, struct ndtd_message **frames, size_t count);
/** Refuses further frames. The consumer still gets the waiting ones, then 0 at once. */
void ndtd_queue_close(struct ndtd_queue *queue);
/** Returns whether the queue is closed. */
int ndtd_queue_closed(const struct ndtd_queue *queue);
/** Ends the current or the next wait of the consumer without a frame. */
void ndtd_queue_wake(struct ndtd_queue *queue);

/** Counters since the creation, and the current number of waiting scans. */
struct ndtd_queue_counters {
    uint64_t given, dropped, messages_lost; /**< frames pushed; scans pushed out; small messages lost */
    unsigned depth, scans_waiting;
};
/** Copies the counters. */
struct ndtd_queue_counters ndtd_queue_counters(struct ndtd_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
