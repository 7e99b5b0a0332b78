/** @file
 * @brief The recording of received frames: a thread "ndt-record" writes them, so that no other thread waits
 * for the disk.
 *
 * The receiver hands over every valid frame without waiting and without copying it: the queue holds references to
 * the messages. The queue is bounded in bytes (recording.queue_mb; a small frame counts as NDTD_RECORDER_SMALL, the
 * memory that it keeps) and by NDTD_RECORDER_FRAMES. Frames that do not fit, because the disk is slower than the
 * input, are left out of the recording, counted, and logged once per throttling interval. Frames are in the bag in
 * the order of their arrival.
 *
 * Opening a file, writing, fsync and close are done by the thread. start and stop are requests: they return at once
 * and take effect for the frames that are pushed afterwards; ndtd_recorder_done has the result once the file is
 * open, or complete and on the disk. One request at a time.
 *
 * `transform` messages are also kept while nothing is recorded: a recording begins with the earlier ones.
 *
 * A recording ends by a stop, by a failed write, or at a limit (recording.max_file_mb, recording.min_free_mb;
 * checked every 16 MB). In each case the file has whole records only. Frames in the queue are lost when the process
 * is killed.
 *
 * Threads: push by one thread; start, stop, done, wait and destroy by one thread; status by any. Source:
 * recorder.c. */
#ifndef NDTD_RECORDER_H
#define NDTD_RECORDER_H

#include <stdint.h>
#include <zmq.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_RECORDER_FRAMES 4096 /**< largest number of frames that wait */
#define NDTD_RECORDER_SMALL  8192 /**< least bytes that a frame counts: libzmq keeps small messages in blocks */

/** Place and limits of recordings. */
struct ndtd_recorder_config {
    char directory[1024];    /**< directory of recordings that are requested by name */
    uint64_t queue_bytes;    /**< bytes of frames that may wait; a larger frame is taken when no other waits */
    uint64_t max_file_bytes; /**< a recording ends before it is larger; 0 = no limit */
    uint64_t min_free_bytes; /**< free space on its disk below which a recording ends */
};

/** State of the recorder. */
enum ndtd_recorder_state {
    NDTD_RECORDER_IDLE,
    NDTD_RECORDER_STARTING,
    NDTD_RECORDER_RUNNING,
    NDTD_RECORDER_FINISHING
};
/** `idle`, `starting`, `recording`, `finishing`. */
const char *ndtd_recorder_state_name(enum ndtd_recorder_state state);

/** Status of the recorder. */
struct ndtd_recorder_status {
    enum ndtd_recorder_state state;
    char file[1024];                 /**< current or last recording; empty = none yet */
    uint64_t frames, bytes;          /**< written to that file */
    uint64_t missing;                /**< frames that it lacks, because they did not fit into the queue */
    uint64_t waiting, waiting_bytes; /**< frames and bytes in the queue */
    uint64_t recorded, dropped;      /**< frames written, and left out, since the start of the daemon */
    uint64_t failures;               /**< recordings that ended by an error or a limit */
    char error[512];                 /**< reason of the last failure; empty after a good start */
};

struct ndtd_recorder;
/** Starts the thread. */
NDT_MUST_CHECK enum ndt_status
ndtd_recorder_create(struct ndtd_recorder **out, const struct ndtd_recorder_config *config, struct ndt_error *err);
/** Writes the waiting frames, for at most 5 s, and leaves the rest out; finishes the file and ends the thread. The
 * result of a request can still be taken. `recorder` may be NULL. */
void ndtd_recorder_finish(struct ndtd_recorder *recorder);
/** Finishes, and frees everything; `recorder` may be NULL. */
void ndtd_recorder_destroy(struct ndtd_recorder *recorder);

/** Requests a new recording. name: a plain file name in the recording directory, which is created if it is missing
 * (mode 0750): no '/', no control character, no '.' at its begin. The file is new (never an existing one, never
 * through a link) and has mode 0640. NDT_ERR_ARGUMENT: a bad name, or a recording runs. */
NDT_MUST_CHECK enum ndt_status ndtd_recorder_start(struct ndtd_recorder *recorder, const char *name,
                                                   struct ndt_error *err);
/** Requests a new recording at any path: for the command line. */
NDT_MUST_CHECK enum ndt_status ndtd_recorder_start_at(struct ndtd_recorder *recorder, const char *path,
                                                      struct ndt_error *err);
/** Requests the end of the recording. NDT_ERR_ARGUMENT: no recording runs. */
NDT_MUST_CHECK enum ndt_status ndtd_recorder_stop(struct ndtd_recorder *recorder, struct ndt_error *err);
/** Returns 1 when the last request is done, once per request: *result and err are its outcome. */
int ndtd_recorder_done(struct ndtd_recorder *recorder, enum ndt_status *result, struct ndt_error *err);
/** A descriptor for polling, readable while ndtd_recorder_done would return 1. */
int ndtd_recorder_fd(const struct ndtd_recorder *recorder);
/** Waits until the last request is done and returns its outcome. */
NDT_MUST_CHECK enum ndt_status ndtd_recorder_wait(struct ndtd_recorder *recorder, struct ndt_error *err);

/** Records a frame if a recording runs; never waits for the disk. The message stays the caller's; its bytes must
 * not change any more. */
void ndtd_recorder_push(struct ndtd_recorder *recorder, uint32_t type, zmq_msg_t *message);

/** Copies the status. */
void ndtd_recorder_status(struct ndtd_recorder *recorder, struct ndtd_recorder_status *out);

/** The recording directory: `configured`, else `recordings` in the first directory of $STATE_DIRECTORY (systemd),
 * else `recordings` in the working directory. */
NDT_MUST_CHECK enum ndt_status ndtd_recording_directory(char *out, size_t size, const char *configured,
                                                        struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
