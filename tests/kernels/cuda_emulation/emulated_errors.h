/** @file
 * @brief Begin and end of every emulated call of the runtime, its errors, and those that a test asks for. */
#ifndef EMULATED_ERRORS_H
#define EMULATED_ERRORS_H

#include "cuda_runtime_api.h"

/* Begins a call, one at a time; calls call one another. */
#define EMULATED_CALL                                                                                              \
    __attribute__((cleanup(emulated_end_call), unused)) const int emulated_call = emulated_begin_call()
/* The begin of every call that works on the context: a corrupt one fails it. */
#define EMULATED_CONTEXT_CALL                                                                                      \
    EMULATED_CALL;                                                                                                 \
    do {                                                                                                           \
        const cudaError_t emulated_code = emulated_refusal(__func__);                                              \
        if (emulated_code != cudaSuccess)                                                                          \
            return emulated_code;                                                                                  \
    } while (0)

int emulated_begin_call(void);
void emulated_end_call(const int *unused);
/* Whether another thread is inside a call, or waits for one to begin. */
int emulated_is_shared(void);

/* The error that this call has to return. */
cudaError_t emulated_refusal(const char *call);
/* The error that a test wants of a call that a corrupt context does not fail, or cudaSuccess. */
cudaError_t emulated_planted(const char *call);
/* Returns the code and makes it the last error of this thread. */
cudaError_t emulated_note(cudaError_t code);
/* The sticky error of the context, or cudaSuccess. */
cudaError_t emulated_result(void);
int emulated_works(void);
void emulated_repair(void);

/* Calls of this thread so far, those within calls not counted. */
unsigned long emulated_calls(void);
/* A queued launch begins: whether it never ends. */
int emulated_hangs(void);
/* A launch is queued: what it returns. A queued launch begins: whether it runs. */
cudaError_t emulated_queues(void);
int emulated_begins(void);

/* A message about a call that a program must never make, and the end of the program. */
void emulated_misuse(const char *what, const char *why) __attribute__((noreturn));

/* Whether a handle may be used. */
enum emulated_handle { EMULATED_CLOSED, EMULATED_OPEN, EMULATED_RESET };
/* Ends the program unless it may. what: "a stream". */
void emulated_check_handle(const void *handle, enum emulated_handle state, const char *what);

#endif
