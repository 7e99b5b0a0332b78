/** @file
 * @brief The `scans` socket: a thread that moves frames from the socket into the queue and never waits for the
 * matching thread.
 *
 * The header of every frame is decoded once (struct ndtd_message); valid frames are handed to the recorder and
 * queued. The thread waits for neither. Malformed frames are counted, logged (throttled per kind of error) and
 * discarded; a malformed scan whose seq and stamp can be read is answered as rejected. A scan that a full queue
 * pushes out is answered as dropped.
 *
 * Arrival of a frame (ndtd_message.arrival_us): when the socket became readable, as far as this thread can tell. A
 * frame that arrives while the thread waits for it has the moment at which the thread wakes. A frame that arrived
 * while the thread was held up has the moment at which the thread last looked: its waiting time is never too short,
 * and too long by that delay at most. Not included are the time in the sender, in the network and the kernel, in
 * libzmq beyond the high-water mark, from the readiness of the socket until the operating system runs this thread,
 * and the delay of frames beyond 64 or 8 MB held up at once. Source: receiver.c. */
#ifndef NDTD_RECEIVER_H
#define NDTD_RECEIVER_H

#include "ndtd/message_queue.h"
#include "ndtd/pose_stream.h"
#include "ndtd/publisher.h"
#include "ndtd/recorder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Type of the socket. */
enum ndtd_receiver_kind { NDTD_RECEIVE_SUB, NDTD_RECEIVE_PULL };

/** Counters since the start. */
struct ndtd_receiver_counters {
    uint64_t frames, scans, bytes;
    uint64_t bad; /**< malformed frames, and those of other types */
};

struct ndtd_receiver;
/** Binds the socket and starts the thread. Queue, publisher, recorder (may be NULL: nothing is recorded), stream
 * (may be NULL: no poses between scans) and sockets are borrowed. */
NDT_MUST_CHECK enum ndt_status ndtd_receiver_open(struct ndtd_receiver **out, struct ndtd_sockets *sockets,
                                                  const struct ndtd_endpoint *endpoint,
                                                  enum ndtd_receiver_kind kind, struct ndtd_queue *queue,
                                                  struct ndtd_publisher *publisher, struct ndtd_recorder *recorder,
                                                  struct ndtd_pose_stream *stream, struct ndt_error *err);
/** Stops receiving and closes the socket; queued frames stay in the queue. */
void ndtd_receiver_close(struct ndtd_receiver *receiver);
/** Sets map id and configuration hash of rejected and dropped answers. */
void ndtd_receiver_set_identity(struct ndtd_receiver *receiver, uint64_t map_id, uint64_t config_hash);
/** Copies the counters; any thread. */
struct ndtd_receiver_counters ndtd_receiver_counters(const struct ndtd_receiver *receiver);
/** A counter that grows at least four times a second while the thread works, also without frames. Any thread. */
uint64_t ndtd_receiver_beats(const struct ndtd_receiver *receiver);

#ifdef __cplusplus
}
#endif
#endif
