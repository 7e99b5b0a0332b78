/** @file
 * @brief The context of a device, which all instances (struct ndt_cuda_device) of the process share: the right to
 * call the runtime, failures that end the context, and its reset.
 *
 * The backend in use, candidates that are measured and searches are instances in threads of their own, on one
 * primary context. cudaDeviceReset frees what all of them have, and no other thread may be inside a call meanwhile
 * ("it is the caller's responsibility", says its documentation). Hence, per device:
 * - `epoch` is even while the context is usable, and odd from a sticky failure to the reset, which begins the next
 *   even one. An instance is lost as soon as the epoch is not the one that it was opened in. From then on none of
 * its handles and device pointers reaches the runtime, neither to be used nor to be freed: the reset frees them.
 * - `inside` counts the threads inside a call. A call raises it before it reads the epoch; who changes the epoch
 * does so before reading `inside`. Both are sequentially consistent: either the call sees the new epoch and does
 * not happen, or the reset sees the call and waits for its end, which comes at once, because a corrupt context
 * fails the calls of all threads.
 * - a corrupt device is reset by the next thread that opens or closes an instance, frees pinned memory or asks for
 *   facts, if the process allows it (ndt_cuda_allow_reset): the reset ends the contexts of the whole process, those
 *   of a program that embeds ndtd included. Without it, and where the reset fails, the device stays lost, and what
 *   was allocated on it, pinned memory included, is kept.
 * - a device that has not answered in time is corrupt, too, as far as all of this is concerned, but is not reset
 * while its work goes on: who tries is refused at once. One lock serves the resets only; no call of the runtime but
 * the reset is made under it.
 *
 * A failure is sticky when cudaDeviceSynchronize still fails after cudaGetLastError has cleared it, twice: that is
 * found out, not looked up. (The documentation of cudaError says "an inconsistent state" of 226, 700, 702, 714 to
 * 719 and 911, and recommends a new process; where the reset does not help either, the CPU takes over.) */
#ifndef NDT_CUDA_CONTEXT_H
#define NDT_CUDA_CONTEXT_H

#include "ndt/status.h"

enum { NDT_CUDA_MOST_DEVICES = 64 };

/** Resets the device if it is corrupt, after waiting for the threads inside a call. 0: the device is still corrupt,
 * because a thread has not left within a second, work on the device goes on, the reset has failed, or resets are
 * not allowed. */
int ndt_cuda_context_reset_if_corrupt(int index);
/** Enters a call in the current epoch. Resets the device if it is corrupt; 0: it stays corrupt, and the thread is
 * not inside. */
int ndt_cuda_context_join(int index, unsigned *epoch);
/** Enters a call as ndt_cuda_context_join does, for a number that the caller did not check: NDT_ERR_UNSUPPORTED
 * beyond the limit, NDT_ERR_DEVICE if the device stays corrupt. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_context_open(int index, unsigned *epoch, struct ndt_error *err);
/** Enters a call in a known epoch; 0: the epoch has ended, and the thread is not inside. */
int ndt_cuda_context_enter(int index, unsigned epoch);
void ndt_cuda_context_leave(int index);
struct CUevent_st;
/** Ends this epoch, from inside a call, because the work before `event` does not end. The event is never destroyed;
 * it tells when the work has ended after all. */
void ndt_cuda_context_give_up(int index, unsigned epoch, struct CUevent_st *event);
/** Ends this epoch, from inside a call, if the result of the runtime (cudaError_t) is sticky. */
void ndt_cuda_context_inspect(int index, unsigned epoch, int code);

#endif
