#include "replay_report.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ndtd/child_program.h"

extern char **environ;

enum ndt_status ndtd_replay_report_find(char program[PATH_MAX], struct ndt_error *err)
{
    struct ndt_error why = {""};
    if (ndtd_child_program_find(program, "NDT_REPORT", "ndt-report", &why) == NDT_OK)
        return NDT_OK;
    if (*why.text)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "--report: %s", why.text);
    return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                    "--report: ndt-report, which writes it, is not installed: in the sources of ndtd, "
                    "pip install './tools/python[report]'");
}

enum ndt_status ndtd_replay_report_check(const char *file, struct ndt_error *err)
{
    struct stat info;
    char folder[PATH_MAX];
    const char *slash = strrchr(file, '/');
    const int length = slash ? (int)(slash - file) + 1 : 0;
    if (stat(file, &info) == 0 && S_ISDIR(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "--report %s: is a folder", file);
    if (length >= PATH_MAX)
        return ndt_fail(err, NDT_ERR_IO, "--report: %s", strerror(ENAMETOOLONG));
    snprintf(folder, sizeof(folder), "%.*s", length, file);
    return length == 0 || (stat(folder, &info) == 0 && S_ISDIR(info.st_mode))
               ? NDT_OK
               : ndt_fail(err, NDT_ERR_IO, "--report %s: there is no folder %s", file, folder);
}

/* Starts the program; returns 0 or the number of the error. */
static int spawn(pid_t *process, const char *program, char *const *argv)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t reset;
    sigemptyset(&reset);
    sigaddset(&reset, SIGXFSZ);
    sigaddset(&reset, SIGINT);
    sigaddset(&reset, SIGTERM);
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &reset);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int failure = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    if (failure == 0)
        failure = posix_spawn(process, program, &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return failure;
}

static enum ndt_status result_of(int status, struct ndt_error *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NDT_OK;
    return WIFSIGNALED(status)
               ? ndt_fail(err, NDT_ERR_IO, "--report: ndt-report was ended by signal %d (%s)", WTERMSIG(status),
                          strsignal(WTERMSIG(status)))
               : ndt_fail(err, NDT_ERR_IO, "--report: ndt-report failed (exit status %d)", WEXITSTATUS(status));
}

enum ndt_status ndtd_replay_report_run(const char *program, const char *folder, const char *file,
                                       struct ndt_error *err)
{
    char name[] = "ndt-report", from[PATH_MAX + 2], out[PATH_MAX + 8];
    pid_t process;
    int status = 0;
    snprintf(from, sizeof(from), "%s%s", folder[0] == '-' ? "./" : "", folder);
    snprintf(out, sizeof(out), "--out=%s", file);
    char *const argv[] = {name, from, out, NULL};
    fflush(NULL);
    const int failure = spawn(&process, program, argv);
    if (failure != 0)
        return ndt_fail(err, NDT_ERR_IO, "--report: cannot start %s: %s", program, strerror(failure));
    while (waitpid(process, &status, 0) < 0) {
        if (errno != EINTR)
            return ndt_fail(err, NDT_ERR_IO, "--report: %s", strerror(errno));
        kill(process, SIGTERM);
    }
    return result_of(status, err);
}
