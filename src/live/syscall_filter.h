/* seccomp: the system calls that the daemon may use after its start. Private to isolation.c. See seccomp(2). */
#ifndef NDTD_SYSCALL_FILTER_H
#define NDTD_SYSCALL_FILTER_H

#include "ndt/status.h"

/* Restricts every thread of the process, including later ones. has_gpu: allows the calls of the driver of NVIDIA.
 * *allowed: number of system calls on the list. Others fail with EPERM; those of an attacker (execve, ptrace, mount
 * ...) end the process with SIGSYS. NDT_ERR_UNSUPPORTED: the kernel has no filters, or refuses this one. */
NDT_MUST_CHECK enum ndt_status ndtd_syscall_filter_enforce(int has_gpu, unsigned *allowed, struct ndt_error *err);

#endif
