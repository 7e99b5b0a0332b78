/** @file
 * @brief Distributed shared memory of a cluster: stores that arrive later, and the barriers that count them.
 *
 * Addresses are those of the running block; `rank` chooses the block of the cluster that is meant. Barriers are
 * words in shared memory. What each call stands for is an instruction of the PTX ISA. */
#ifndef EMULATED_REMOTE_H
#define EMULATED_REMOTE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* mbarrier.init: a phase takes `count` arrivals, and the bytes that are expected during it. */
void emulated_mbarrier_init(uint64_t *barrier, unsigned count);
/* mbarrier.arrive.expect_tx (release): arrives at the block's own barrier, and expects so many bytes more. */
void emulated_mbarrier_expect(uint64_t *barrier, unsigned bytes);
/* mbarrier.arrive.release.cluster: at the barrier of a block of the cluster. */
void emulated_mbarrier_arrive(uint64_t *barrier, unsigned rank);
/* mbarrier.try_wait.parity.acquire.cluster: whether the phase of this parity is complete; phases begin with 0. */
int emulated_mbarrier_test(uint64_t *barrier, unsigned parity);
/* Waits until the phase is complete. */
void emulated_mbarrier_wait(uint64_t *barrier, unsigned parity);

/* st.async.shared::cluster.mbarrier::complete_tx::bytes: up to 16 bytes; they arrive some time later, and count at
 * `barrier` of the same block. */
void emulated_remote_store(void *at, unsigned rank, uint64_t *barrier, const void *value, unsigned bytes);
/* st.shared::cluster and ld.shared::cluster, at once. */
void emulated_remote_write(void *at, unsigned rank, const void *value, unsigned bytes);
void emulated_remote_read(void *out, const void *at, unsigned rank, unsigned bytes);

#ifdef __cplusplus
}
#endif
#endif
