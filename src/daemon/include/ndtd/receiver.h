/* The `scans` socket: frames in, into the queue. A thread that never waits for the matcher.
 *
 * Every frame is looked at (type, for scans seq and stamp), recorded when recording is on, and given to the queue.
 * Bad frames are counted by kind and logged once per kind and minute; a bad frame that says it is a scan and whose
 * seq can be read is answered as rejected. A scan that a full queue pushes out is answered as dropped, by this
 * thread's outlet. */
#ifndef NDTD_RECEIVER_H
#define NDTD_RECEIVER_H

#include "ndtd/frame_queue.h"
#include "ndtd/publisher.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ndtd_receiver_kind { NDTD_RECEIVE_SUB, NDTD_RECEIVE_PULL };

struct ndtd_receiver_counters {
    uint64_t frames, scans, bytes, bad;
    uint64_t recorded, record_failures;
};

struct ndtd_receiver;
NDT_MUST_CHECK enum ndt_status ndtd_receiver_open(struct ndtd_receiver **out, struct ndtd_sockets *sockets,
                                                  const struct ndtd_endpoint *endpoint,
                                                  enum ndtd_receiver_kind kind, struct ndtd_queue *queue,
                                                  struct ndtd_publisher *publisher, struct ndt_error *err);
/* Stops taking in and closes; what is in the queue stays there. */
void ndtd_receiver_close(struct ndtd_receiver *receiver);
/* From any thread. The bag is opened (append = 0: an existing file is an error) by the caller's thread, written by
 * the receiver's. A write that fails ends the recording, is logged and counted. */
NDT_MUST_CHECK enum ndt_status ndtd_receiver_record(struct ndtd_receiver *receiver, const char *path,
                                                    struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndtd_receiver_stop_recording(struct ndtd_receiver *receiver, struct ndt_error *err);
/* Map id and configuration hash that rejected and dropped answers carry. */
void ndtd_receiver_set_identity(struct ndtd_receiver *receiver, uint64_t map_id, uint64_t config_hash);
struct ndtd_receiver_counters ndtd_receiver_counters(const struct ndtd_receiver *receiver);

#ifdef __cplusplus
}
#endif
#endif
