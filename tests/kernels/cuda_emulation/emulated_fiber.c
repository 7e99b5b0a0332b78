#include "emulated_fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

/* Stacks begin at different offsets: with the same one all of them would share a few cache lines, which makes
 * switches several times as slow. */
enum { PAGE_BYTES = 4096, STACK_COLOURS = 64, COLOUR_BYTES = 576 };

const char *emulated_stacks, *emulated_stacks_end;

static struct emulated_fiber *entered;
static void (*start_of_all)(void);
#ifdef WITH_ASAN
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
#endif

static void first_steps(void)
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_bytes);
#endif
    start_of_all();
    abort();
}

/* Saves the context in *from and continues at `to`. A shuffle of one warp is 32 switches; swapcontext, which calls
 * the kernel for the signal mask each time, takes twenty times as long. */
#if defined(__x86_64__)
void emulated_switch(void **from, void *to);
__asm__(".text\n"
        ".globl emulated_switch\n"
        ".hidden emulated_switch\n"
        ".type emulated_switch, @function\n"
        "emulated_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size emulated_switch, . - emulated_switch\n");

static void *scheduler_context;

/* The initial stack: six registers, all zero, the address to start at, and no caller. */
static void make_context(struct emulated_fiber *fiber)
{
    enum { REGISTERS = 6 };
    uint64_t words[REGISTERS + 2] = {0};
    words[REGISTERS] = (uint64_t)(uintptr_t)first_steps;
    fiber->context = fiber->stack + EMULATED_STACK_BYTES - fiber->unused_bytes - sizeof(words);
    memcpy(fiber->context, words, sizeof(words));
}

static void to_fiber(struct emulated_fiber *fiber)
{
    emulated_switch(&scheduler_context, fiber->context);
}

static void to_scheduler(struct emulated_fiber *fiber)
{
    emulated_switch(&fiber->context, scheduler_context);
}
#else
#include <ucontext.h>

static ucontext_t scheduler_context;

static void make_context(struct emulated_fiber *fiber)
{
    ucontext_t *context = fiber->context ? fiber->context : malloc(sizeof(*context));
    if (!context || getcontext(context) != 0)
        abort();
    context->uc_stack.ss_sp = fiber->stack;
    context->uc_stack.ss_size = EMULATED_STACK_BYTES - fiber->unused_bytes;
    context->uc_link = NULL;
    makecontext(context, first_steps, 0);
    fiber->context = context;
}

static void to_fiber(struct emulated_fiber *fiber)
{
    if (swapcontext(&scheduler_context, fiber->context) != 0)
        abort();
}

static void to_scheduler(struct emulated_fiber *fiber)
{
    if (swapcontext(fiber->context, &scheduler_context) != 0)
        abort();
}
#endif

void emulated_fiber_stacks(struct emulated_fiber *fibers, size_t count)
{
    char *stacks = mmap(NULL, count * EMULATED_STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED)
        abort();
    emulated_stacks = stacks;
    emulated_stacks_end = stacks + count * EMULATED_STACK_BYTES;
    for (size_t i = 0; i < count; i++)
        fibers[i] = (struct emulated_fiber){.stack = stacks + i * EMULATED_STACK_BYTES,
                                            .unused_bytes = i % STACK_COLOURS * COLOUR_BYTES};
}

void emulated_fiber_prepare(struct emulated_fiber *fiber, void (*start)(void))
{
    if (!fiber->context && mprotect(fiber->stack, PAGE_BYTES, PROT_NONE) != 0)
        abort();
    start_of_all = start;
    make_context(fiber);
}

void emulated_fiber_enter(struct emulated_fiber *fiber)
{
    entered = fiber;
#ifdef WITH_ASAN
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, fiber->stack, EMULATED_STACK_BYTES);
#endif
    to_fiber(fiber);
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
#endif
}

void emulated_fiber_leave(int for_good)
{
    struct emulated_fiber *fiber = entered;
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(for_good ? NULL : &fiber->fake_stack, scheduler_stack, scheduler_stack_bytes);
#else
    (void)for_good;
#endif
    to_scheduler(fiber);
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
}
