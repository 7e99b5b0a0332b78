/* LD_PRELOAD library: calls of a program fail, are short or slow as the page in the file $NDT_FAULT_PAGE tells
 * (fault_page.h). Only calls that the program itself, libyaml or liblzf make count, also through the C library:
 * libzmq and libstdc++ abort by design when their own allocations or system calls fail (zmq_assert, alloc_assert,
 * std::bad_alloc), which no caller can repair. What libzmq reports to its caller is injected at its functions. */
#define _GNU_SOURCE
#include "fault_page.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>
#include <zmq.h>

enum { RANGES = 64, BOOT_BYTES = 16384 };

enum owner { OTHERS, OURS, PASSES }; /* PASSES: the C library; its caller counts */

struct range {
    uintptr_t begin, end;
    enum owner owner;
};

static struct fault_page *page;
static struct range ranges[RANGES];
static int range_count;
static _Atomic int64_t written; /* bytes, for FAULT_SPACE */
static _Atomic int in_main;     /* constructors and destructors, such as those of the CUDA runtime, never fail */

/* ---- who calls ---- */

static enum owner owner_of_module(const char *name)
{
    static const char *const ours[] = {"libyaml", "liblzf"};
    static const char *const passing[] = {"libc.so", "libc-", "libasan",   "libubsan",
                                          "libtsan", "libm.", "fault_shim"};
    if (!*name)
        return OURS; /* the program itself */
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strstr(name, ours[i]))
            return OURS;
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (strstr(name, passing[i]))
            return PASSES;
    return OTHERS;
}

static int note_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    if (!*info->dlpi_name && page->base == 0)
        page->base = (int64_t)info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        ranges[range_count++] = (struct range){begin, begin + segment->p_memsz, owner_of_module(info->dlpi_name)};
    }
    return 0;
}

static enum owner owner_of(uintptr_t address)
{
    for (int i = 0; i < range_count; i++)
        if (address >= ranges[i].begin && address < ranges[i].end)
            return ranges[i].owner;
    return OTHERS;
}

struct trace {
    uintptr_t frames[64];
    int count;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *out)
{
    struct trace *trace = out;
    if (trace->count == 64)
        return _URC_END_OF_STACK;
    trace->frames[trace->count++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

static int is_ours(const void *caller)
{
    enum owner owner = owner_of((uintptr_t)caller);
    struct trace trace = {.count = 0};
    if (owner != PASSES)
        return owner == OURS;
    _Unwind_Backtrace(note_frame, &trace);
    for (int i = 0; i < trace.count; i++) {
        owner = owner_of(trace.frames[i]);
        if (owner != PASSES)
            return owner == OURS;
    }
    return 0;
}

static void keep_trace(void)
{
    struct trace trace = {.count = 0};
    int kept = 0;
    _Unwind_Backtrace(note_frame, &trace);
    for (int i = 0; i < trace.count && kept < FAULT_TRACE; i++)
        if (owner_of(trace.frames[i]) == OURS)
            page->trace[kept++] = (int64_t)trace.frames[i];
    if (kept < FAULT_TRACE)
        page->trace[kept] = 0;
}

/* ---- what happens ---- */

/* The rule to be applied to this call, or NULL. */
static const struct fault_rule *rule_for(enum fault_kind kind, const void *caller)
{
    static __thread int inside __attribute__((tls_model("initial-exec")));
    if (!page || !page->armed || !in_main || inside || !is_ours(caller))
        return NULL;
    struct fault_rule *rule = &page->rules[kind];
    const int64_t first = rule->first, every = rule->every;
    const int64_t after = atomic_fetch_add(&rule->calls, 1) + 1 - first;
    if (first == 0 || after < 0 || (after > 0 && (every == 0 || after % every != 0)))
        return NULL;
    if (rule->most > 0 && rule->injected >= rule->most)
        return NULL;
    atomic_fetch_add(&rule->injected, 1);
    inside = 1;
    keep_trace();
    inside = 0;
    return rule;
}

static int is_file(int fd)
{
    struct stat info;
    const int kept = errno;
    const int is = syscall(SYS_fstat, fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
    errno = kept;
    return is;
}

/* Pipes, sockets and eventfds of the machine do not fail with EIO or ENOSPC; they are interrupted. The log, whose
 * lines tell the driver what happened, does not fail either. */
static const struct fault_rule *rule_for_fd(enum fault_kind kind, int fd, const void *caller)
{
    if (!page || (page->rules[kind].error != EINTR && (fd == STDERR_FILENO || !is_file(fd))))
        return NULL;
    return rule_for(kind, caller);
}

/* Whether the call fails with errno, after a pause if the rule says so. */
static int fails(const struct fault_rule *rule)
{
    if (!rule)
        return 0;
    if (rule->mode == FAULT_SLOW)
        (void)syscall(SYS_nanosleep, &(struct timespec){rule->amount / 1000000, rule->amount % 1000000 * 1000},
                      NULL);
    if (rule->mode != FAULT_FAILS)
        return 0;
    errno = (int)rule->error;
    return 1;
}

static size_t shortened(const struct fault_rule *rule, size_t size)
{
    return rule && rule->mode == FAULT_SHORT && size > 1 ? size / 2 : size;
}

/* FAULT_SPACE: how much of `size` there is room for; 0 with errno if there is none. */
static size_t room_for(const struct fault_rule *rule, size_t size)
{
    if (!rule || rule->mode != FAULT_SPACE)
        return size;
    const int64_t left = rule->amount - written;
    if (left <= 0)
        errno = (int)rule->error;
    const size_t taken = left <= 0 ? 0 : (int64_t)size < left ? size : (size_t)left;
    atomic_fetch_add(&written, (int64_t)taken);
    return taken;
}

__attribute__((constructor)) static void open_page(void)
{
    const char *path = getenv("NDT_FAULT_PAGE");
    const int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    void *at = (void *)syscall(SYS_mmap, NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
    (void)syscall(SYS_close, fd);
    if (at == MAP_FAILED)
        return;
    page = at;
    dl_iterate_phdr(note_module, NULL);
}

/* The function of this name in the next library. dlsym itself may allocate: from `boot`. */
#define NEXT(name)                                                                                                 \
    static __typeof__(name) *next;                                                                                 \
    if (!next)                                                                                                     \
    find((void **)&next, #name)
#define CALLER __builtin_return_address(0)

static __thread volatile int finding __attribute__((tls_model("initial-exec")));

static void find(void **function, const char *name)
{
    finding++;
    *function = dlsym(RTLD_NEXT, name);
    finding--;
}

static int (*main_of_program)(int, char **, char **);

static int run_main(int argc, char **argv, char **environment)
{
    in_main = 1;
    const int code = main_of_program(argc, argv, environment);
    in_main = 0;
    return code;
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    NEXT(__libc_start_main);
    main_of_program = main;
    return next(run_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* ---- memory ---- */

static char boot[BOOT_BYTES] __attribute__((aligned(16)));
static size_t boot_used;
static void *boot_allocate(size_t size)
{
    void *at = boot + boot_used;
    boot_used += (size + 15) / 16 * 16;
    return boot_used <= BOOT_BYTES ? at : NULL;
}

static int is_boot(const void *at)
{
    return (const char *)at >= boot && (const char *)at < boot + BOOT_BYTES;
}

static int is_refused(const void *caller)
{
    const struct fault_rule *rule = rule_for(FAULT_MEMORY, caller);
    if (rule && rule->mode == FAULT_LEAKS) {
        const size_t size = (size_t)rule->amount;
        void *lost =
            (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
        if (lost != MAP_FAILED)
            memset(lost, 1, size);
    }
    return fails(rule);
}

void *malloc(size_t size)
{
    if (finding)
        return boot_allocate(size);
    NEXT(malloc);
    return is_refused(CALLER) ? NULL : next(size);
}

void *calloc(size_t count, size_t size)
{
    if (finding)
        return boot_allocate(count * size); /* never used before, hence zero */
    NEXT(calloc);
    return is_refused(CALLER) ? NULL : next(count, size);
}

void *realloc(void *old, size_t size)
{
    NEXT(realloc);
    if (is_boot(old)) {
        void *moved = malloc(size);
        return moved ? memcpy(moved, old, size) : NULL;
    }
    return is_refused(CALLER) ? NULL : next(old, size);
}

void free(void *at)
{
    if (finding || is_boot(at)) /* dlsym frees the text of an earlier error */
        return;
    NEXT(free);
    next(at);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    NEXT(aligned_alloc);
    return is_refused(CALLER) ? NULL : next(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    NEXT(posix_memalign);
    return is_refused(CALLER) ? ENOMEM : next(out, alignment, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    NEXT(mmap);
    return fails(rule_for(FAULT_MAP, CALLER)) ? MAP_FAILED : next(at, size, protection, flags, fd, offset);
}

/* ---- opening ---- */

static int open_with(const char *name, const char *path, int flags, mode_t mode, const void *caller)
{
    int (*next)(const char *, int, ...) = NULL;
    find((void **)&next, name);
    const struct fault_rule *rule = rule_for(FAULT_OPEN, caller);
    if (rule && rule->mode == FAULT_LEAKS)
        (void)next("/dev/null", O_RDONLY);
    return fails(rule) ? -1 : next(path, flags, mode);
}

#define OPEN(name)                                                                                                 \
    int name(const char *path, int flags, ...)                                                                     \
    {                                                                                                              \
        va_list more;                                                                                              \
        va_start(more, flags);                                                                                     \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                              \
        va_end(more);                                                                                              \
        return open_with(#name, path, flags, mode, CALLER);                                                        \
    }
OPEN(open)
OPEN(open64)

int __open_2(const char *path, int flags); /* `open` of programs compiled with _FORTIFY_SOURCE */
int __open_2(const char *path, int flags)
{
    return open_with("open", path, flags, 0, CALLER);
}

/* RESULT NAME(PARAMETERS) that returns FAILED where the rule of KIND says so, else NAME(ARGUMENTS). */
#define FAILING(kind, result, failed, name, parameters, arguments)                                                 \
    result name parameters                                                                                         \
    {                                                                                                              \
        NEXT(name);                                                                                                \
        return fails(rule_for(kind, CALLER)) ? (failed) : next arguments;                                          \
    }

FAILING(FAULT_OPEN, FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
FAILING(FAULT_OPEN, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
FAILING(FAULT_OPEN, FILE *, NULL, fdopen, (int fd, const char *mode), (fd, mode))
FAILING(FAULT_OPEN, FILE *, NULL, open_memstream, (char **text, size_t *size), (text, size))
FAILING(FAULT_OPEN, DIR *, NULL, opendir, (const char *path), (path))
FAILING(FAULT_OPEN, int, -1, eventfd, (unsigned count, int flags), (count, flags))
FAILING(FAULT_OPEN, int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))

/* ---- files ---- */

#define READ(name, parameters, arguments)                                                                          \
    ssize_t name parameters;                                                                                       \
    ssize_t name parameters                                                                                        \
    {                                                                                                              \
        NEXT(name);                                                                                                \
        const struct fault_rule *rule = rule_for_fd(FAULT_READ, fd, CALLER);                                       \
        if (fails(rule))                                                                                           \
            return -1;                                                                                             \
        size = shortened(rule, size);                                                                              \
        return next arguments;                                                                                     \
    }
/* The names with _chk are those of programs compiled with _FORTIFY_SOURCE. */
READ(read, (int fd, void *out, size_t size), (fd, out, size))
READ(pread, (int fd, void *out, size_t size, off_t at), (fd, out, size, at))
READ(pread64, (int fd, void *out, size_t size, off64_t at), (fd, out, size, at))
READ(__read_chk, (int fd, void *out, size_t size, size_t most), (fd, out, size, most))
READ(__pread_chk, (int fd, void *out, size_t size, off_t at, size_t most), (fd, out, size, at, most))
READ(__pread64_chk, (int fd, void *out, size_t size, off64_t at, size_t most), (fd, out, size, at, most))

/* A stream that has failed says so: ferror. */
static int breaks(FILE *file, enum fault_kind kind, const void *caller)
{
    const int is_broken = fails(rule_for_fd(kind, fileno(file), caller));
    if (is_broken)
        file->_flags |= 0x20; /* _IO_ERR_SEEN of glibc */
    return is_broken;
}

size_t fread(void *out, size_t size, size_t count, FILE *file)
{
    NEXT(fread);
    return breaks(file, FAULT_READ, CALLER) ? 0 : next(out, size, count, file);
}

size_t __fread_chk(void *out, size_t most, size_t size, size_t count, FILE *file);
size_t __fread_chk(void *out, size_t most, size_t size, size_t count, FILE *file)
{
    NEXT(__fread_chk);
    return breaks(file, FAULT_READ, CALLER) ? 0 : next(out, most, size, count, file);
}

char *fgets(char *out, int size, FILE *file)
{
    NEXT(fgets);
    return breaks(file, FAULT_READ, CALLER) ? NULL : next(out, size, file);
}

char *__fgets_chk(char *out, size_t most, int size, FILE *file);
char *__fgets_chk(char *out, size_t most, int size, FILE *file)
{
    NEXT(__fgets_chk);
    return breaks(file, FAULT_READ, CALLER) ? NULL : next(out, most, size, file);
}

int fgetc(FILE *file)
{
    NEXT(fgetc);
    return breaks(file, FAULT_READ, CALLER) ? EOF : next(file);
}

ssize_t write(int fd, const void *data, size_t size)
{
    NEXT(write);
    const struct fault_rule *rule = rule_for_fd(FAULT_WRITE, fd, CALLER);
    const size_t room = shortened(rule, room_for(rule, size));
    return fails(rule) || (size > 0 && room == 0) ? -1 : next(fd, data, room);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    NEXT(writev);
    const struct fault_rule *rule = rule_for_fd(FAULT_WRITE, fd, CALLER);
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    const size_t room = shortened(rule, room_for(rule, size));
    if (fails(rule) || (size > 0 && room == 0))
        return -1;
    if (room == size)
        return next(fd, parts, count);
    while (parts->iov_len == 0)
        parts++;
    const struct iovec part = {parts->iov_base, room < parts->iov_len ? room : parts->iov_len};
    atomic_fetch_sub(&written, rule->mode == FAULT_SPACE ? (int64_t)(room - part.iov_len) : 0);
    return next(fd, &part, 1);
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    NEXT(fwrite);
    return breaks(file, FAULT_WRITE, CALLER) ? 0 : next(data, size, count, file);
}

int fflush(FILE *file)
{
    NEXT(fflush);
    return file && breaks(file, FAULT_WRITE, CALLER) ? EOF : next(file);
}

FAILING(FAULT_SYNC, int, -1, fsync, (int fd), (fd))
FAILING(FAULT_SYNC, int, -1, fdatasync, (int fd), (fd))
FAILING(FAULT_RENAME, int, -1, rename, (const char *from, const char *to), (from, to))
FAILING(FAULT_RENAME, int, -1, link, (const char *from, const char *to), (from, to))
FAILING(FAULT_FILE, int, -1, fstat, (int fd, struct stat *info), (fd, info))
FAILING(FAULT_FILE, int, -1, ftruncate, (int fd, off_t size), (fd, size))
FAILING(FAULT_FILE, int, -1, flock, (int fd, int operation), (fd, operation))
FAILING(FAULT_FILE, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
FAILING(FAULT_FILE, int, -1, chmod, (const char *path, mode_t mode), (path, mode))
FAILING(FAULT_FILE, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
FAILING(FAULT_FILE, char *, NULL, realpath, (const char *path, char *out), (path, out))

/* ---- threads, waits, sockets ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    NEXT(pthread_create);
    return fails(rule_for(FAULT_THREAD, CALLER)) ? errno : next(thread, attributes, run, argument);
}

FAILING(FAULT_WAIT, int, -1, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
FAILING(FAULT_WAIT, int, -1, poll, (struct pollfd * items, nfds_t count, int ms), (items, count, ms))
FAILING(FAULT_WAIT, int, -1, sem_wait, (sem_t * semaphore), (semaphore))
FAILING(FAULT_WAIT, int, -1, sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until),
        (semaphore, clock, until))
FAILING(FAULT_WAIT, int, -1, zmq_poll, (zmq_pollitem_t * items, int count, long ms), (items, count, ms))

FAILING(FAULT_SOCKET, void *, NULL, zmq_ctx_new, (void), ())
FAILING(FAULT_SOCKET, void *, NULL, zmq_socket, (void *context, int type), (context, type))
FAILING(FAULT_SOCKET, int, -1, zmq_bind, (void *socket, const char *address), (socket, address))
FAILING(FAULT_SOCKET, int, -1, zmq_connect, (void *socket, const char *address), (socket, address))
FAILING(FAULT_SOCKET, int, -1, zmq_setsockopt, (void *socket, int option, const void *value, size_t size),
        (socket, option, value, size))
FAILING(FAULT_SOCKET, int, -1, zmq_getsockopt, (void *socket, int option, void *value, size_t *size),
        (socket, option, value, size))
FAILING(FAULT_SOCKET, int, -1, zmq_msg_init_size, (zmq_msg_t * message, size_t size), (message, size))
FAILING(FAULT_SOCKET, int, -1, zmq_msg_copy, (zmq_msg_t * to, zmq_msg_t *from), (to, from))
FAILING(FAULT_MESSAGE, int, -1, zmq_msg_recv, (zmq_msg_t * message, void *socket, int flags),
        (message, socket, flags))
FAILING(FAULT_MESSAGE, int, -1, zmq_msg_send, (zmq_msg_t * message, void *socket, int flags),
        (message, socket, flags))
FAILING(FAULT_MESSAGE, int, -1, zmq_send, (void *socket, const void *data, size_t size, int flags),
        (socket, data, size, flags))

/* ---- clocks ---- */

/* All callers see the same time. */
static void change_time(struct timespec *now, enum fault_kind kind)
{
    static _Atomic int64_t begin_ns;
    struct fault_rule *rule = page && page->armed ? &page->rules[kind] : NULL;
    if (!rule || rule->first == 0 || atomic_fetch_add(&rule->calls, 1) + 1 < rule->first)
        return;
    rule->injected++;
    if (rule->mode == FAULT_JUMPS) {
        now->tv_sec += rule->amount;
        return;
    }
    const int64_t now_ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec;
    int64_t expected = 0;
    atomic_compare_exchange_strong(&begin_ns, &expected, now_ns);
    const int64_t slow_ns = begin_ns + (now_ns - begin_ns) / rule->amount;
    *now = (struct timespec){slow_ns / 1000000000, slow_ns % 1000000000};
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    NEXT(clock_gettime);
    const int result = next(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME)
        change_time(now, FAULT_WALL);
    if (result == 0 && clock == CLOCK_MONOTONIC)
        change_time(now, FAULT_STEADY);
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
