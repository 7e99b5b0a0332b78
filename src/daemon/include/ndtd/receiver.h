/** @file
 * @brief The `scans` socket: a thread that moves frames from the socket into the queue and never waits for the
 * matching thread.
 *
 * The header of every frame is decoded once (struct ndtd_frame); valid frames are recorded when a recording runs,
 * and queued. Malformed frames are counted, logged (throttled per kind of error) and discarded; a malformed scan
 * whose seq and stamp can be read is answered as rejected. A scan that a full queue pushes out is answered as
 * dropped. Source: receiver.c. */
#ifndef NDTD_RECEIVER_H
#define NDTD_RECEIVER_H

#include "ndtd/frame_queue.h"
#include "ndtd/publisher.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Type of the socket. */
enum ndtd_receiver_kind { NDTD_RECEIVE_SUB, NDTD_RECEIVE_PULL };

/** Counters since the start. */
struct ndtd_receiver_counters {
    uint64_t frames, scans, bytes;
    uint64_t bad; /**< malformed frames, and those of other types */
    uint64_t recorded, record_failures;
    int is_recording;
};

struct ndtd_receiver;
/** Binds the socket and starts the thread. Queue, publisher and sockets are borrowed. */
NDT_MUST_CHECK enum ndt_status ndtd_receiver_open(struct ndtd_receiver **out, struct ndtd_sockets *sockets,
                                                  const struct ndtd_endpoint *endpoint,
                                                  enum ndtd_receiver_kind kind, struct ndtd_queue *queue,
                                                  struct ndtd_publisher *publisher, struct ndt_error *err);
/** Stops receiving, finishes a recording and closes the socket; queued frames stay in the queue. */
void ndtd_receiver_close(struct ndtd_receiver *receiver);
/** Starts a recording; may be called by any thread. The caller's thread creates the bag (an existing file is an
 * error), the receiver's writes it. A write that fails ends the recording, is logged and counted.
 * NDT_ERR_ARGUMENT: a recording runs already. */
NDT_MUST_CHECK enum ndt_status ndtd_receiver_record(struct ndtd_receiver *receiver, const char *path,
                                                    struct ndt_error *err);
/** Ends the recording. NDT_ERR_ARGUMENT: no recording runs. May be called by any thread. */
NDT_MUST_CHECK enum ndt_status ndtd_receiver_stop_recording(struct ndtd_receiver *receiver, struct ndt_error *err);
/** Sets map id and configuration hash of rejected and dropped answers. */
void ndtd_receiver_set_identity(struct ndtd_receiver *receiver, uint64_t map_id, uint64_t config_hash);
/** Copies the counters; any thread. */
struct ndtd_receiver_counters ndtd_receiver_counters(struct ndtd_receiver *receiver);

#ifdef __cplusplus
}
#endif
#endif
