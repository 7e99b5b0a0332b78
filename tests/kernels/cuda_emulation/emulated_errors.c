/** @file
 * @brief Errors of the emulated device.
 *
 * NDT_EMULATION_FAIL=AFTER,COUNT[,KIND]: after AFTER good launches COUNT fail; a graph is one launch. KIND:
 * `launch` (the default): when it runs, not when it is queued, and sticky: then all calls fail until the device is
 * reset. `memory`, `configuration`: when it is queued, which then does not happen, and not sticky. `hang`: it runs
 * without an end; a wait for it that has no limit ends the program.
 *
 * The last error belongs to a thread. cudaGetLastError returns it and forgets it unless it is sticky. */
#define _GNU_SOURCE /* a recursive mutex */
#include "emulated_errors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static atomic_int threads_inside;
static _Thread_local int depth;
static _Thread_local unsigned long calls;
static _Thread_local cudaError_t last;

struct failure {
    const char *call; /* NULL: launches */
    long after, count;
    cudaError_t code;
};
static struct failure of_launches, of_calls, of_ends;
static cudaError_t sticky;
static int knows_environment;

/* ---- calls ---- */

int emulated_begin_call(void)
{
    if (depth++ == 0) {
        atomic_fetch_add(&threads_inside, 1);
        calls++;
    }
    return pthread_mutex_lock(&lock);
}

void emulated_end_call(const int *unused)
{
    (void)unused;
    pthread_mutex_unlock(&lock);
    if (--depth == 0)
        atomic_fetch_sub(&threads_inside, 1);
}

unsigned long emulated_calls(void)
{
    return calls;
}

int emulated_is_shared(void)
{
    return atomic_load(&threads_inside) > 1;
}

void emulated_misuse(const char *what, const char *why)
{
    fprintf(stderr, "CUDA emulation: %s %s\n", what, why);
    abort();
}

void emulated_check_handle(const void *handle, enum emulated_handle state, const char *what)
{
    if (!handle || state == EMULATED_CLOSED)
        emulated_misuse(what, handle ? "is used that was closed" : "is used that was not opened");
    if (state == EMULATED_RESET)
        emulated_misuse(what, "is used that a reset of the device has closed");
}

/* ---- failures that a test asks for ---- */

void emulated_fail_launches_with(int after, int count, cudaError_t code)
{
    knows_environment = 1;
    of_launches = (struct failure){NULL, after, count, code};
}

void emulated_fail_launches(int after, int count)
{
    emulated_fail_launches_with(after, count, cudaErrorLaunchFailure);
}

void emulated_hang_launches(int after, int count)
{
    knows_environment = 1;
    of_ends = (struct failure){NULL, after, count, cudaSuccess};
}

void emulated_fail_calls(const char *call, int after, int count, cudaError_t code)
{
    of_calls = (struct failure){call, after, count, code};
}

static void read_environment(void)
{
    const char *text = knows_environment ? NULL : getenv("NDT_EMULATION_FAIL");
    char kind[16] = "launch";
    long after, count;
    knows_environment = 1;
    if (!text || sscanf(text, "%ld,%ld,%15s", &after, &count, kind) < 2)
        return;
    if (strcmp(kind, "hang") == 0) {
        of_ends = (struct failure){NULL, after, count, cudaSuccess};
        return;
    }
    of_launches = (struct failure){NULL, after, count, cudaErrorLaunchFailure};
    if (strcmp(kind, "memory") == 0)
        of_launches.code = cudaErrorMemoryAllocation;
    else if (strcmp(kind, "configuration") == 0)
        of_launches.code = cudaErrorInvalidConfiguration;
    else if (strcmp(kind, "launch") != 0)
        emulated_misuse("NDT_EMULATION_FAIL: launch, memory, configuration or hang, not", kind);
}

/* Whether it is this one that fails; counts it. */
static int fails(struct failure *failure)
{
    if (failure->count <= 0 || failure->after-- > 0)
        return 0;
    failure->after = 0;
    failure->count--;
    return 1;
}

static int is_sticky(cudaError_t code)
{
    return code == cudaErrorLaunchFailure || code == cudaErrorIllegalAddress;
}

cudaError_t emulated_queues(void)
{
    read_environment();
    if (is_sticky(of_launches.code) || !fails(&of_launches))
        return cudaSuccess;
    return emulated_note(of_launches.code);
}

int emulated_begins(void)
{
    read_environment();
    if (is_sticky(of_launches.code) && fails(&of_launches))
        sticky = of_launches.code;
    return sticky == cudaSuccess;
}

int emulated_hangs(void)
{
    read_environment();
    return fails(&of_ends);
}

cudaError_t emulated_planted(const char *call)
{
    const int is_planted = of_calls.call && strcmp(of_calls.call, call) == 0 && fails(&of_calls);
    return emulated_note(is_planted ? of_calls.code : cudaSuccess);
}

cudaError_t emulated_refusal(const char *call)
{
    if (sticky == cudaSuccess && of_calls.call && strcmp(of_calls.call, call) == 0 && fails(&of_calls)) {
        if (is_sticky(of_calls.code))
            sticky = of_calls.code;
        return emulated_note(of_calls.code);
    }
    return emulated_result();
}

/* ---- errors ---- */

cudaError_t emulated_note(cudaError_t code)
{
    last = code == cudaSuccess ? last : code;
    return code;
}

cudaError_t emulated_result(void)
{
    return emulated_note(sticky);
}

int emulated_works(void)
{
    return sticky == cudaSuccess;
}

void emulated_repair(void)
{
    sticky = last = cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
    EMULATED_CALL;
    return sticky != cudaSuccess ? sticky : last;
}

cudaError_t cudaGetLastError(void)
{
    EMULATED_CALL;
    const cudaError_t code = sticky != cudaSuccess ? sticky : last;
    last = cudaSuccess;
    return code;
}

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInvalidMemcpyDirection:
        return "invalid copy direction for memcpy";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorSetOnActiveProcess:
        return "cannot set while device is active in this process";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorNotSupported:
        return "operation not supported";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorLaunchOutOfResources:
        return "too many resources requested for launch";
    case cudaErrorHostMemoryAlreadyRegistered:
        return "part or all of the requested memory range is already mapped";
    case cudaErrorHostMemoryNotRegistered:
        return "pointer does not correspond to a registered memory region";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    default:
        return "invalid device";
    }
}
