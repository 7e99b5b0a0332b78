#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include "ndtd/importer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ndt_io/map_file.h"
#include "ndtd/child_program.h"

enum {
    LINE_BYTES = 400,
    PIPE_BYTES = 1 << 20, /* so that the import works on while a scan is matched */
    LOG_PIPE_BYTES = PIPE_BYTES / 16,
    WAIT_MS = 20,
    KILL_MS = 2000, /* time between SIGTERM and SIGKILL */
    LINES_SHOWN = 1000,
    FIXED_ARGS = 6 /* number of fixed arguments: ndt-import RECORDING -o - --quiet NULL */
};
static const char PROGRAM[] = "ndt-import", PREFIX[] = "ndt-import: ";

extern char **environ;

struct ndtd_importer {
    char recording[PATH_MAX];
    pid_t process; /* 0: it has ended and was waited for */
    int exit_status;
    int is_unknown; /* the exit status is unknown */
    int log_fd;
    pthread_t log_thread;
    atomic_int is_over; /* the process has ended: the pipe has all its output */
    /* Members of the thread until it is joined. */
    char line[LINE_BYTES]; /* part of a line read so far */
    size_t length;
    char last[LINE_BYTES]; /* last whole line, not shown yet */
    uint64_t lines;        /* number of lines; those beyond LINES_SHOWN are only counted */
};

/* ---- what is imported, and with what ---- */

int ndtd_import_is_needed(const char *path)
{
    static const char magic[] = {'N', 'D', 'T', 'B', 'A', 'G'};
    char begin[sizeof(magic)];
    struct stat info;
    if (strcmp(path, "-") == 0 || stat(path, &info) != 0)
        return 0;
    if (S_ISDIR(info.st_mode))
        return 1;
    const int fd = S_ISREG(info.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    if (fd < 0)
        return 0;
    const ssize_t got = read(fd, begin, sizeof(begin));
    close(fd);
    return got > 0 && memcmp(begin, magic, (size_t)got) != 0;
}

static enum ndt_status find_program(const char *recording, char path[PATH_MAX], struct ndt_error *err)
{
    struct ndt_error why = {""};
    struct stat info;
    if (ndtd_child_program_find(path, "NDT_IMPORT", PROGRAM, &why) == NDT_OK)
        return NDT_OK;
    if (*why.text)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: %s", recording, why.text);
    if (stat(recording, &info) == 0 && S_ISREG(info.st_mode) && ndt_map_path_check(recording, NULL) == NDT_OK)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "%s: a map or a point cloud, not a recording; ndt-bag pack makes a bag of scans",
                        recording);
    return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                    "%s: is not a bag.bin, and ndt-import, which reads other recordings, is not installed: in "
                    "the sources of ndtd, pip install './tools/python[ros]'",
                    recording);
}

/* ---- what it says ---- */

static void show(const char *line)
{
    if (*line)
        fprintf(stderr, "%s%s\n", strncmp(line, PREFIX, strlen(PREFIX)) == 0 ? "" : PREFIX, line);
}

static void end_line(struct ndtd_importer *importer)
{
    importer->line[importer->length] = '\0';
    if (importer->length > 0) {
        if (importer->lines++ <= LINES_SHOWN)
            show(importer->last);
        memcpy(importer->last, importer->line, importer->length + 1);
    }
    importer->length = 0;
}

/* Adds text to the current line. Longer lines are cut; control characters do not reach the terminal. */
static void add_text(struct ndtd_importer *importer, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n' || c == '\r')
            end_line(importer);
        else if (importer->length < LINE_BYTES - 1)
            importer->line[importer->length++] = (char)(c < 0x20 || c == 0x7f ? ' ' : c);
    }
}

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

/* Whether the process has ended; its number stays taken until the process is waited for. */
static int has_ended(const struct ndtd_importer *importer, siginfo_t *info)
{
    *info = (siginfo_t){0};
    return waitid(P_PID, (id_t)importer->process, info, WEXITED | WNOHANG | WNOWAIT) == 0 && info->si_pid != 0;
}

/* Ends processes that a failed import has started, which would keep the pipe of the bag open. Returns whether the
 * import has ended. */
static int end_the_rest(const struct ndtd_importer *importer)
{
    siginfo_t info;
    if (!has_ended(importer, &info))
        return 0;
    if (info.si_code != CLD_EXITED || info.si_status != 0)
        kill(-importer->process, SIGKILL);
    return 1;
}

/* Reads the log until the end of the pipe or of the process: a process that the import has started may keep the
 * pipe open, and write on. */
static void *read_log(void *context)
{
    struct ndtd_importer *importer = context;
    struct pollfd wanted = {.fd = importer->log_fd, .events = POLLIN};
    char text[1024];
    for (size_t left = LOG_PIPE_BYTES; left >= sizeof(text);) {
        const int is_over = atomic_load(&importer->is_over);
        if (!is_over)
            (void)end_the_rest(importer);
        const int ready = poll(&wanted, 1, is_over ? 0 : 5 * WAIT_MS);
        if (ready == 0 && is_over)
            break;
        if (ready <= 0)
            continue;
        const ssize_t got = read(importer->log_fd, text, sizeof(text));
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        add_text(importer, text, got > 0 ? (size_t)got : 0);
        left -= is_over && got > 0 ? (size_t)got : 0;
    }
    end_line(importer);
    while (!atomic_load(&importer->is_over) && !end_the_rest(importer))
        sleep_ms(WAIT_MS);
    return NULL;
}

/* ---- start ---- */

static int make_pipe(int ends[2], int bytes)
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return 0;
    (void)fcntl(ends[1], F_SETPIPE_SZ, bytes); /* fails beyond the limit of the user */
    return 1;
}

/* Starts the import; returns 0 or the number of the error. */
static int spawn(pid_t *process, const char *program, char *const *argv, int bag_fd, int log_fd)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, reset;
    sigemptyset(&none);
    sigemptyset(&reset);
    sigaddset(&reset, SIGPIPE);
    sigaddset(&reset, SIGXFSZ);
    sigaddset(&reset, SIGCHLD);
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &reset);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0); /* Ctrl-C reaches this program only, which ends the import */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int failure = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (failure == 0)
        failure = posix_spawn_file_actions_adddup2(&files, bag_fd, STDOUT_FILENO);
    if (failure == 0)
        failure = posix_spawn_file_actions_adddup2(&files, log_fd, STDERR_FILENO);
    if (failure == 0)
        failure = posix_spawn(process, program, &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return failure;
}

/* Refuses arguments that the replay sets itself, or that write no bag. */
static enum ndt_status check_arguments(const char *recording, const char *const *args, size_t count,
                                       struct ndt_error *err)
{
    static const char *const alone[] = {"--out", "--list", "--json", "--help"};
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(args[i], "=");
        int is_alone = strncmp(args[i], "-o", 2) == 0 || strcmp(args[i], "-h") == 0;
        for (size_t k = 0; k < sizeof(alone) / sizeof(alone[0]); k++)
            is_alone |= length > 2 && strncmp(args[i], alone[k], length) == 0;
        if (is_alone)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: %s is not for a replay: ndt-import %s %s", recording,
                            args[i], recording, args[i]);
    }
    return NDT_OK;
}

/* Makes argv of the import; a name that begins with '-' is not taken for an option. NULL: no memory. */
static char **make_arguments(char *recording, size_t room, const char *const *args, size_t arg_count)
{
    char **argv = calloc(arg_count + FIXED_ARGS, sizeof(*argv));
    size_t count = 0;
    if (!argv)
        return NULL;
    if (recording[0] == '-' && strlen(recording) + 3 <= room) {
        memmove(recording + 2, recording, strlen(recording) + 1);
        memcpy(recording, "./", 2);
    }
    argv[count++] = (char *)(uintptr_t)PROGRAM;
    argv[count++] = recording;
    argv[count++] = (char *)(uintptr_t) "-o";
    argv[count++] = (char *)(uintptr_t) "-";
    argv[count++] = (char *)(uintptr_t) "--quiet";
    for (size_t i = 0; i < arg_count; i++)
        argv[count++] = (char *)(uintptr_t)args[i];
    return argv;
}

static enum ndt_status start(struct ndtd_importer *importer, const char *program, char *const *argv, int *fd,
                             struct ndt_error *err)
{
    int bag[2] = {-1, -1}, log[2] = {-1, -1};
    int failure = make_pipe(bag, PIPE_BYTES) && make_pipe(log, LOG_PIPE_BYTES) ? 0 : errno;
    if (failure == 0)
        failure = spawn(&importer->process, program, argv, bag[1], log[1]);
    importer->log_fd = log[0];
    if (bag[1] >= 0)
        close(bag[1]);
    if (log[1] >= 0)
        close(log[1]);
    if (failure == 0)
        failure = pthread_create(&importer->log_thread, NULL, read_log, importer);
    if (failure == 0) {
        *fd = bag[0];
        return NDT_OK;
    }
    if (bag[0] >= 0)
        close(bag[0]);
    if (importer->process > 0) {
        kill(-importer->process, SIGKILL);
        waitpid(importer->process, NULL, 0);
    }
    importer->process = 0;
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot start %s: %s", importer->recording, program, strerror(failure));
}

enum ndt_status ndtd_importer_start(struct ndtd_importer **out, int *fd, const char *recording,
                                    const char *const *args, size_t arg_count, struct ndt_error *err)
{
    char program[PATH_MAX];
    *out = NULL;
    *fd = -1;
    enum ndt_status status = check_arguments(recording, args, arg_count, err);
    if (status == NDT_OK)
        status = find_program(recording, program, err);
    if (status != NDT_OK)
        return status;
    struct ndtd_importer *importer = calloc(1, sizeof(*importer));
    if (importer) {
        importer->log_fd = -1;
        snprintf(importer->recording, sizeof(importer->recording), "%s", recording);
    }
    char **argv =
        importer ? make_arguments(importer->recording, sizeof(importer->recording), args, arg_count) : NULL;
    status = argv ? start(importer, program, argv, fd, err)
                  : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for its import", recording);
    free(argv);
    if (status == NDT_OK) {
        *out = importer;
        return NDT_OK;
    }
    if (importer && importer->log_fd >= 0)
        close(importer->log_fd);
    free(importer);
    return status;
}

/* ---- end ---- */

/* Whether the process has ended; its status is then known and the log complete. */
static int is_ended(struct ndtd_importer *importer)
{
    if (importer->process == 0)
        return 1;
    siginfo_t info = {0};
    const int found = waitid(P_PID, (id_t)importer->process, &info, WEXITED | WNOHANG | WNOWAIT);
    if (found == 0 ? info.si_pid == 0 : errno == EINTR)
        return 0;
    if (found == 0) /* its children end with it */
        kill(-importer->process, info.si_code == CLD_EXITED && info.si_status == 0 ? SIGTERM : SIGKILL);
    atomic_store(&importer->is_over, 1);
    pthread_join(importer->log_thread, NULL);
    close(importer->log_fd);
    importer->is_unknown = waitpid(importer->process, &importer->exit_status, 0) < 0;
    importer->process = 0;
    if (importer->lines > LINES_SHOWN + 1)
        fprintf(stderr, "%s%" PRIu64 " more lines\n", PREFIX, importer->lines - LINES_SHOWN - 1);
    return 1;
}

static enum ndt_status result_of(const struct ndtd_importer *importer, struct ndt_error *err)
{
    const int status = importer->exit_status;
    const char *reason = importer->last;
    const size_t name = strlen(importer->recording);
    if (strncmp(reason, PREFIX, strlen(PREFIX)) == 0)
        reason += strlen(PREFIX);
    if (strncmp(reason, importer->recording, name) == 0 && strncmp(reason + name, ": ", 2) == 0)
        reason += name + 2; /* the message has it already */
    if (importer->is_unknown)
        return ndt_fail(err, NDT_ERR_IO, "%s: whether ndt-import failed is not known: this process ignores SIGCHLD",
                        importer->recording);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NDT_OK;
    if (WIFSIGNALED(status))
        return ndt_fail(err, NDT_ERR_IO, "%s: ndt-import was ended by signal %d (%s)%s%s", importer->recording,
                        WTERMSIG(status), strsignal(WTERMSIG(status)), *reason ? ": " : "", reason);
    return ndt_fail(err, WEXITSTATUS(status) == 2 ? NDT_ERR_ARGUMENT : NDT_ERR_IO,
                    "%s: ndt-import failed (exit status %d)%s%s", importer->recording, WEXITSTATUS(status),
                    *reason ? ": " : "", reason);
}

enum ndt_status ndtd_importer_finish(struct ndtd_importer *importer, struct ndt_progress *progress,
                                     struct ndt_error *err)
{
    while (!is_ended(importer)) {
        const enum ndt_status status = ndt_progress_check(progress, err);
        if (status != NDT_OK)
            return ndt_fail_prefix(err, status, "%s", importer->recording);
        sleep_ms(WAIT_MS);
    }
    const enum ndt_status status = result_of(importer, err);
    if (status == NDT_OK)
        show(importer->last);
    importer->last[0] = '\0';
    return status;
}

void ndtd_importer_destroy(struct ndtd_importer *importer)
{
    if (!importer)
        return;
    if (!is_ended(importer)) {
        const pid_t group = -importer->process;
        kill(group, SIGTERM);
        for (int waited_ms = 0; !is_ended(importer); waited_ms += WAIT_MS) {
            if (waited_ms >= KILL_MS)
                kill(group, SIGKILL);
            sleep_ms(WAIT_MS);
        }
    }
    if (!strstr(importer->last, strerror(EPIPE))) /* the replay has stopped reading */
        show(importer->last);
    free(importer);
}
