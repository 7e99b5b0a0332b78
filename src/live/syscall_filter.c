#define _GNU_SOURCE /* CLONE_* */
#include "syscall_filter.h"

#ifndef NDT_HAVE_SECCOMP

enum ndt_status ndtd_syscall_filter_enforce(int has_gpu, unsigned *allowed, struct ndt_error *err)
{
    (void)has_gpu;
    *allowed = 0;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "built without libseccomp");
}

#else

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Calls that the daemon, glibc and libzmq make after the start, including those of later threads. A name that this
 * architecture or libseccomp does not know is skipped. */
static const char *const allowed_calls[] = {
    /* memory; mmap and mprotect: see below */
    "brk", "munmap", "mremap", "madvise", "mlock", "mlock2", "munlock", "mlockall", "munlockall", "msync",
    "mincore", "membarrier", "memfd_create",
    /* threads; clone: see below */
    "exit", "exit_group", "futex", "futex_waitv", "set_robust_list", "get_robust_list", "rseq", "set_tid_address",
    "restart_syscall", "sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_setparam",
    "sched_getscheduler", "sched_setscheduler", "sched_getattr", "sched_setattr", "sched_get_priority_max",
    "sched_get_priority_min", "getpriority", "setpriority", "ioprio_get", "ioprio_set", "getcpu", "gettid",
    "getpid", "getppid",
    /* signals of its own only, see below */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "sigaltstack",
    "signalfd4",
    /* time */
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "timerfd_create",
    "timerfd_settime", "timerfd_gettime",
    /* files that Landlock allows */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "lseek",
    "open", "openat", "openat2", "close", "close_range", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs",
    "fstatfs", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd", "unlink",
    "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "ftruncate", "fallocate", "fadvise64",
    "readahead", "fsync", "fdatasync", "sync_file_range", "flock", "fcntl", "dup", "dup2", "dup3", "fchmod",
    "copy_file_range", "sendfile", "pipe", "pipe2",
    /* waiting */
    "poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait",
    "epoll_pwait", "epoll_pwait2", "eventfd2",
    /* sockets: no bind and no listen; socket: see below */
    "connect", "accept", "accept4", "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "shutdown",
    "getsockname", "getpeername", "getsockopt", "setsockopt", "socketpair",
    /* facts about itself */
    "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid", "uname", "sysinfo",
    "getrlimit", "getrusage", "times", "getrandom"};

/* Calls that no part of the daemon makes, but an attacker who has taken it over. */
static const char *const deadly_calls[] = {
    /* programs and other processes */
    "execve", "execveat", "fork", "vfork", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp",
    /* files behind Landlock */
    "mount", "umount2", "move_mount", "open_tree", "fsopen", "pivot_root", "chroot", "open_by_handle_at",
    /* the kernel */
    "unshare", "setns", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "init_module", "finit_module",
    "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "iopl", "ioperm", "modify_ldt",
    "quotactl", "acct", "syslog", "personality", "sethostname", "setdomainname", "settimeofday", "clock_settime",
    "adjtimex", "clock_adjtime", "keyctl", "add_key", "request_key",
    /* users */
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid",
    "capset"};

/* Further calls of the driver of NVIDIA (libcuda): many requests to its devices, memory that it writes and
 * executes, its placement on nodes, and a local socket of its own. */
static const char *const gpu_calls[] = {"ioctl",         "mmap", "mprotect", "mbind",   "get_mempolicy",
                                        "set_mempolicy", "bind", "listen",   "getpgrp", "capget"};
/* Calls of the driver to start a program that makes missing device files: they fail, and are no attack. */
static const char *const programs[] = {"execve", "execveat", "fork", "vfork"};

struct rules {
    scmp_filter_ctx filter;
    unsigned allowed;
    int failure; /* first failure; negative errno */
    int has_gpu;
};

static void note(struct rules *rules, int result)
{
    /* EDOM: not on this architecture. */
    if (result < 0 && result != -EDOM && rules->failure == 0)
        rules->failure = result;
}

/* Adds a call with `count` conditions, all of which have to hold. */
static void add(struct rules *rules, uint32_t action, const char *name, unsigned count,
                const struct scmp_arg_cmp *conditions)
{
    const int number = seccomp_syscall_resolve_name(name);
    if (number != __NR_SCMP_ERROR)
        note(rules, seccomp_rule_add_array(rules->filter, action, number, count, conditions));
}

static void allow_if(struct rules *rules, const char *name, unsigned argument, uint64_t mask, uint64_t value)
{
    const struct scmp_arg_cmp condition = SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, value);
    add(rules, SCMP_ACT_ALLOW, name, 1, &condition);
}

/* Adds the calls that are allowed in a narrower form without a GPU. */
static void add_narrow(struct rules *rules)
{
    static const uint64_t terminal_calls[] = {TCGETS, FIONREAD, FIONBIO};
    /* No memory is writable and executable; code comes from files, by mmap. */
    allow_if(rules, "mmap", 2, PROT_EXEC, 0);
    allow_if(rules, "mmap", 2, PROT_WRITE | PROT_EXEC, PROT_EXEC);
    allow_if(rules, "mprotect", 2, PROT_EXEC, 0);
    for (size_t i = 0; i < sizeof(terminal_calls) / sizeof(terminal_calls[0]); i++)
        allow_if(rules, "ioctl", 1, UINT32_MAX, terminal_calls[i]);
}

/* Adds calls whose arguments decide. The upper half of an argument of type int is not checked. */
static void add_conditional(struct rules *rules)
{
    static const uint64_t own[] = {PR_SET_NAME, PR_GET_NAME};
    const uint64_t number = 0xffffffff, process = (uint64_t)getpid() & number;
    /* Threads, no processes. glibc falls back to clone, whose flags can be seen. */
    allow_if(rules, "clone", 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM);
    add(rules, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
    /* abort(), and limits that are read. */
    allow_if(rules, "tgkill", 0, number, process);
    allow_if(rules, "prlimit64", 2, UINT64_MAX, 0);
    allow_if(rules, "socket", 0, number, AF_UNIX);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        allow_if(rules, "prctl", 0, number, own[i]);
}

static void allow(struct rules *rules, const char *name)
{
    add(rules, SCMP_ACT_ALLOW, name, 0, NULL);
    rules->allowed += seccomp_syscall_resolve_name(name) >= 0;
}

/* Whether a call ends the process. */
static int is_deadly(const struct rules *rules, const char *name)
{
    for (size_t i = 0; rules->has_gpu && i < sizeof(programs) / sizeof(programs[0]); i++)
        if (strcmp(name, programs[i]) == 0)
            return 0;
    return 1;
}

static void add_all(struct rules *rules)
{
    for (size_t i = 0; i < sizeof(allowed_calls) / sizeof(allowed_calls[0]); i++)
        allow(rules, allowed_calls[i]);
    for (size_t i = 0; i < sizeof(deadly_calls) / sizeof(deadly_calls[0]); i++)
        if (is_deadly(rules, deadly_calls[i]))
            add(rules, SCMP_ACT_KILL_PROCESS, deadly_calls[i], 0, NULL);
    add_conditional(rules);
    if (!rules->has_gpu)
        add_narrow(rules);
    for (size_t i = 0; rules->has_gpu && i < sizeof(gpu_calls) / sizeof(gpu_calls[0]); i++)
        allow(rules, gpu_calls[i]);
}

enum ndt_status ndtd_syscall_filter_enforce(int has_gpu, unsigned *allowed, struct ndt_error *err)
{
    struct rules rules = {.filter = seccomp_init(SCMP_ACT_ERRNO(EPERM)), .has_gpu = has_gpu};
    if (!rules.filter)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the filter of system calls");
    note(&rules, seccomp_attr_set(rules.filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
    note(&rules, seccomp_attr_set(rules.filter, SCMP_FLTATR_CTL_TSYNC, 1));
    (void)seccomp_attr_set(rules.filter, SCMP_FLTATR_CTL_LOG, 1);      /* older kernels cannot log */
    (void)seccomp_attr_set(rules.filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree instead of a list */
    add_all(&rules);
    if (rules.failure == 0)
        note(&rules, seccomp_load(rules.filter));
    seccomp_release(rules.filter);
    *allowed = rules.allowed;
    return rules.failure == 0
               ? NDT_OK
               : ndt_fail(err, NDT_ERR_UNSUPPORTED, "the kernel refuses the filter of system calls: %s",
                          strerror(-rules.failure));
}

#endif
