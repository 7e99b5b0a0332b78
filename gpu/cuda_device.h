/** @file
 * @brief One CUDA device.
 *
 * cuda_device.c is the only file that calls the CUDA runtime (facts and the reset have their own), so that every
 * copy, byte, launch, synchronisation and allocation is counted, and every call checked.
 *
 * Work is queued on streams: NDT_CUDA_MAIN for everything that belongs to an evaluation or an alignment, and
 * NDT_CUDA_MAP for the upload of the next map, which overlaps with it. Functions that name no stream use
 * NDT_CUDA_MAIN.
 *
 * Errors: a call that runs out of memory, whichever it is, returns NDT_ERR_MEMORY, and the instance goes on. Every
 * other failure loses the instance: from then on its functions return NDT_ERR_DEVICE with that first reason. A
 * failure that corrupts the context loses all instances of the process, and the device is reset: see
 * cuda_context.h.
 *
 * No wait is without limit: see until_us. Work that has not ended by then counts as such a failure, and the device
 * as corrupt until it has.
 *
 * An instance has one owner and is used by one thread at a time; instances on one device do not hinder each other.
 * Pinned memory is the process's own, registered with the device: the host may touch it after a reset. */
#ifndef NDT_CUDA_DEVICE_H
#define NDT_CUDA_DEVICE_H

#include <stddef.h>

#include "gpu_job.h"
#include "ndt/backend.h"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

/* Longest wait without a deadline: more than any launch takes, even under compute-sanitizer. */
#ifndef NDT_CUDA_PATIENCE_US /* a test build has less */
#define NDT_CUDA_PATIENCE_US 60e6
#endif

enum ndt_cuda_stream { NDT_CUDA_MAIN, NDT_CUDA_MAP, NDT_CUDA_STREAMS };
enum { NDT_CUDA_MARKS = 4 }; /**< marks of the map: see cuda_map.h */

struct ndt_cuda_device {
    int index;
    int is_open, is_lost;
    unsigned epoch;       /**< epoch of the context when the device was opened */
    double until_us;      /**< end of waits, by ndt_clock_us; 0: after NDT_CUDA_PATIENCE_US */
    unsigned wait_flags;  /**< activity of the host in a wait: cudaDeviceSchedule... */
    uint64_t waits;       /**< successful waits for NDT_CUDA_MAIN: see ndt_cuda_has_waited */
    struct ndt_error why; /**< reason, once the instance is lost */
    struct CUstream_st *streams[NDT_CUDA_STREAMS];
    struct CUevent_st *end;          /**< end of the work that a wait is for */
    struct CUevent_st *start, *stop; /**< begin and end of the kernels of an evaluation */
    int has_clock; /**< 1: the functions of the clock measure; set by the owner, 0 after opening */
    struct CUevent_st *marks[NDT_CUDA_MARKS];
    struct ndt_backend_counters counters;
};

/** Properties of a device that need no context on it. */
struct ndt_cuda_facts {
    char name[128];
    int major, minor;         /**< compute capability */
    int driver, runtime;      /**< as CUDA numbers its versions: 13000 is 13.0 */
    int processors;           /**< multiprocessors */
    int threads;              /**< threads that can be resident on all processors together */
    int largest_cluster;      /**< blocks that may form a cluster: 8 where there are clusters, else 1 */
    int has_loops;            /**< graphs with conditional nodes: driver and this build's toolkit know them */
    unsigned long long bytes; /**< total memory */
};

/** Reads the facts of a device. NDT_ERR_UNSUPPORTED and one line with the reason: no driver, no device, too old.
 * Creates no context. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_facts(struct ndt_cuda_facts *out, int index, struct ndt_error *err);

/** Sets the way in which the host waits for this device, in the whole process. To be called before
 * ndt_cuda_device_open; NDT_WAIT_AUTO changes nothing. *taken 0: the device is in use already and keeps its way of
 * waiting. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_choose_wait(int index, enum ndt_wait wait, int *taken,
                                                    struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_cuda_device_open(struct ndt_cuda_device *device, int index,
                                                    struct ndt_error *err);
/** Closes a device; no effect on a zero-initialised or closed one. Resets a device whose context is corrupt. */
void ndt_cuda_device_close(struct ndt_cuda_device *device);

/** Number of bytes that could be allocated now. It is too small on devices that share the memory of the host, where
 * reclaimable pages do not count: for messages, not for decisions. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_free_bytes(struct ndt_cuda_device *device, size_t *out,
                                                   struct ndt_error *err);
/** Bytes of local memory per thread of the kernel: its stack and spilled registers. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_stack_bytes(struct ndt_cuda_device *device, const void *kernel, size_t *out,
                                                    struct ndt_error *err);
/** Allocates memory aligned to 256 bytes, not cleared. `what` appears in the error. Releasing NULL has no effect;
 * releasing anything else first waits for all streams of the instance. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_allocate(struct ndt_cuda_device *device, void **out, size_t bytes,
                                                 const char *what, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_cuda_allocate_pinned(struct ndt_cuda_device *device, void **out, size_t bytes,
                                                        const char *what, struct ndt_error *err);
/** The address by which kernels write pinned memory; NULL: the device cannot. The written data are there after
 * ndt_cuda_wait. */
void *ndt_cuda_mapped(struct ndt_cuda_device *device, void *pinned);
void ndt_cuda_release(struct ndt_cuda_device *device, void *memory);
void ndt_cuda_release_pinned(struct ndt_cuda_device *device, void *memory);

/** Queues a copy; the memory of the host must not change until the next ndt_cuda_wait. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_upload(struct ndt_cuda_device *device, void *to, const void *from,
                                               size_t bytes, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_cuda_download(struct ndt_cuda_device *device, void *to, const void *from,
                                                 size_t bytes, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_cuda_clear(struct ndt_cuda_device *device, void *memory, size_t bytes,
                                              struct ndt_error *err);
/** Launches a kernel of kernels.h, with NDT_GPU_BLOCK threads per block. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_launch(struct ndt_cuda_device *device, const void *kernel, unsigned blocks,
                                               const struct ndt_gpu_job *job, struct ndt_error *err);
/** Launches a kernel in any shape: `blocks` of `threads`, clusters of `cluster` blocks (1: none;
 * facts.largest_cluster at most). */
NDT_MUST_CHECK enum ndt_status ndt_cuda_launch_team(struct ndt_cuda_device *device, const void *kernel,
                                                    unsigned blocks, unsigned threads, unsigned cluster,
                                                    const struct ndt_gpu_job *job, struct ndt_error *err);

/** ndt_cuda_launch_team for a kernel with a second argument; NULL: it has none. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_launch_single(struct ndt_cuda_device *device, const void *kernel,
                                                      unsigned blocks, unsigned threads, unsigned cluster,
                                                      const struct ndt_gpu_job *job,
                                                      const struct ndt_gpu_single *single, struct ndt_error *err);
/** Finds the largest number of blocks of `threads` that may form a cluster with this kernel: NDT_GPU_CLUSTER where
 * the device has room for such a cluster, else `portable` (facts.largest_cluster), or half of it and so on; 1:
 * there is no room for two. Loads the kernel. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_largest_cluster(struct ndt_cuda_device *device, const void *kernel,
                                                        unsigned threads, unsigned portable, unsigned *out,
                                                        struct ndt_error *err);

/** A graph that is made once and launched often; its kernels read everything that varies from device memory. It
 * launches one kernel `length` times in a row or, with length 0, until the kernel calls
 * cudaGraphSetConditional(job.loop, 0); every launch begins with 1. Making a graph allocates. */
struct ndt_cuda_graph {
    struct CUgraphExec_st *exec; /**< NULL: none */
};
NDT_MUST_CHECK enum ndt_status ndt_cuda_graph_make(struct ndt_cuda_device *device, struct ndt_cuda_graph *out,
                                                   const void *kernel, unsigned blocks, unsigned threads,
                                                   unsigned length, const struct ndt_gpu_job *job,
                                                   struct ndt_error *err);
/** Launches a graph, which counts as one launch. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_graph_launch(struct ndt_cuda_device *device,
                                                     const struct ndt_cuda_graph *graph, struct ndt_error *err);
void ndt_cuda_graph_free(struct ndt_cuda_device *device, struct ndt_cuda_graph *graph);

/** Copies on another stream. `from` has to be pinned, or the copy does not overlap with anything. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_upload_on(struct ndt_cuda_device *device, enum ndt_cuda_stream stream,
                                                  void *to, const void *from, size_t bytes, struct ndt_error *err);
/** Sets mark 0 .. NDT_CUDA_MARKS - 1 to the current end of the queue of the stream. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_set_mark(struct ndt_cuda_device *device, int mark,
                                                 enum ndt_cuda_stream stream, struct ndt_error *err);
/** Whether everything before the mark is done; does not wait. A mark that was never set counts as reached. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_mark_reached(struct ndt_cuda_device *device, int mark, int *out,
                                                     struct ndt_error *err);

/** Records the begin and the end of an evaluation's kernels; called before the first and after the last of them.
 * Without device->has_clock no event is recorded, and the counters stay. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_clock_start(struct ndt_cuda_device *device, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_cuda_clock_stop(struct ndt_cuda_device *device, struct ndt_error *err);
/** The moment at which waits give up for work that is due at deadline_us (ndt_clock_us; 0: there is no deadline):
 * after this part of the remaining time, because the rest is for the CPU, but after 10 ms at least, because giving
 * up loses the device. */
double ndt_cuda_give_up_at(double deadline_us, double part);
/** Waits for everything queued on NDT_CUDA_MAIN. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_wait(struct ndt_cuda_device *device, struct ndt_error *err);
/** Ends a sequence of calls that has failed with `status`: waits for its work queued on `stream`, so that the
 * pinned memory of the sequence can be written again. Does nothing after NDT_OK and on a lost device. Returns
 * `status`. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_settle(struct ndt_cuda_device *device, enum ndt_cuda_stream stream,
                                               enum ndt_status status);

/** Whether the device has done the work that was queued on NDT_CUDA_MAIN when device->waits was `queued_at`. Pinned
 * memory is written again only then, or after a mark. */
static inline int ndt_cuda_has_waited(const struct ndt_cuda_device *device, uint64_t queued_at)
{
    return device->waits != queued_at;
}
/** Adds the time between start and stop to the counters; call after ndt_cuda_wait. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_add_kernel_time(struct ndt_cuda_device *device, struct ndt_error *err);

#endif
