/** @file
 * @brief Tests of the default directory of sockets and of lists of cores. */
#define _GNU_SOURCE /* CPU sets */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ndtd/realtime.h"
#include "ndtd/runtime_dir.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndt_error err;
static char path[256];
enum { USER = 12345 };

static void setup(void)
{
    temp_dir_make();
    unsetenv("RUNTIME_DIRECTORY");
    unsetenv("XDG_RUNTIME_DIR");
}

FIXTURE(setup, temp_dir_remove)

TEST(systemd_directory_has_priority)
{
    char list[600];
    snprintf(list, sizeof(list), "%s:/elsewhere", temp_dir);
    setenv("RUNTIME_DIRECTORY", list, 1);
    ck_assert_int_eq(ndtd_runtime_dir(path, sizeof(path), 1, &err), NDT_OK);
    ck_assert_str_eq(path, temp_dir);
    char address[300], want[400];
    ck_assert_int_eq(ndtd_default_address(address, sizeof(address), "", "poses", 1, &err), NDT_OK);
    snprintf(want, sizeof(want), "ipc://%s/poses.ipc", temp_dir);
    ck_assert_str_eq(address, want);
    ck_assert_int_eq(ndtd_default_address(address, sizeof(address), "tcp://127.0.0.1:1", "poses", 1, &err), NDT_OK);
    ck_assert_str_eq(address, "tcp://127.0.0.1:1");
}

TEST(path_too_long_is_an_error)
{
    char little[8];
    setenv("RUNTIME_DIRECTORY", temp_dir, 1);
    ck_assert_int_eq(ndtd_runtime_dir(little, sizeof(little), 1, &err), NDT_ERR_LIMIT);
}

TEST(user_directory_is_created)
{
    struct stat info;
    if (access("/run/ndtd", F_OK) == 0 || access("/run", W_OK) == 0)
        return; /* the directory of the system has priority */
    setenv("XDG_RUNTIME_DIR", temp_dir, 1);
    ck_assert_int_eq(ndtd_runtime_dir(path, sizeof(path), 1, &err), NDT_OK);
    ck_assert_str_eq(path, temp_path("ndtd"));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
}

/* A named directory is used, or refused. */
TEST(a_runtime_directory_that_cannot_be_used_is_an_error)
{
    char file[600];
    snprintf(file, sizeof(file), "%s/below", temp_text("file", "x"));
    setenv("RUNTIME_DIRECTORY", file, 1);
    ck_assert_int_eq(ndtd_runtime_dir(path, sizeof(path), 1, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "RUNTIME_DIRECTORY"));
    ck_assert_ptr_nonnull(strstr(err.text, "Not a directory"));
    ck_assert_int_eq(ndtd_runtime_dir(path, sizeof(path), 0, &err), NDT_OK); /* the daemon may not run yet */
    ck_assert_str_eq(path, file);
}

/* Calls ndtd_runtime_dir in another process, as a user without privileges; returns its status and log. */
static enum ndt_status as_user(int create, char said[1024])
{
    int pipes[2], ended = -1;
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        if (getuid() == 0 && setuid(USER) != 0)
            _exit(99);
        const enum ndt_status status = ndtd_runtime_dir(path, sizeof(path), create, &err);
        dprintf(STDERR_FILENO, "%s\n", path);
        _exit((int)status);
    }
    close(pipes[1]);
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    const ssize_t size = read(pipes[0], said, 1023);
    said[size > 0 ? size : 0] = '\0';
    close(pipes[0]);
    ck_assert(WIFEXITED(ended) && WEXITSTATUS(ended) != 99);
    return (enum ndt_status)WEXITSTATUS(ended);
}

/* The last directory of the list. */
static char *home(void)
{
    static char name[64];
    snprintf(name, sizeof(name), "/tmp/ndtd-%u", getuid() == 0 ? USER : getuid());
    return name;
}

TEST(a_user_directory_that_cannot_be_used_is_said)
{
    char said[1024];
    if (access("/run/ndtd", F_OK) == 0 && getuid() != 0 && access("/run/ndtd", W_OK) == 0)
        return;
    setenv("XDG_RUNTIME_DIR", "/proc", 1);
    ck_assert_int_eq(as_user(1, said), NDT_OK);
    rmdir(home());
    ck_assert_msg(strstr(said, "XDG_RUNTIME_DIR") && strstr(said, "/proc/ndtd"), "it says '%s'", said);
}

TEST(a_client_that_is_first_takes_the_directory_of_the_daemon)
{
    char before[1024], made[1024];
    if (access("/run/ndtd", X_OK) == 0)
        return; /* the directory of the system has priority */
    ck_assert_int_eq(chmod(temp_dir, 0777), 0);
    setenv("XDG_RUNTIME_DIR", temp_dir, 1);
    ck_assert_int_eq(as_user(0, before), NDT_OK);
    ck_assert_int_eq(as_user(1, made), NDT_OK);
    ck_assert_str_eq(before, made);
}

/* A daemon that was started without $XDG_RUNTIME_DIR is found by a client with it. */
TEST(a_directory_that_exists_comes_first)
{
    char said[1024], before[1024];
    if (access("/run/ndtd", X_OK) == 0 || access(home(), F_OK) == 0)
        return;                                   /* a daemon runs here */
    ck_assert_int_eq(as_user(1, before), NDT_OK); /* makes the last one of the list */
    ck_assert_int_eq(chmod(temp_dir, 0777), 0);
    setenv("XDG_RUNTIME_DIR", temp_dir, 1);
    ck_assert_int_eq(as_user(0, said), NDT_OK);
    (void)rmdir(home());
    ck_assert_str_eq(said, before);
}

/* In /tmp any user can make the directory first. */
TEST(tools_refuse_a_directory_of_others)
{
    char said[1024];
    struct stat info;
    if ((stat("/run/ndtd", &info) == 0 && (info.st_mode & S_IXOTH)) || lstat(home(), &info) == 0)
        return; /* a daemon runs here */
    ck_assert_int_eq(mkdir(home(), 0700), 0);
    ck_assert_int_eq(chmod(home(), 0777), 0);
    const enum ndt_status foreign = as_user(0, said);
    ck_assert_int_eq(chown(home(), getuid() == 0 ? USER : getuid(), (gid_t)-1), 0);
    const enum ndt_status writable = as_user(0, said);
    ck_assert_int_eq(chmod(home(), 0700), 0);
    const enum ndt_status good = as_user(0, said);
    ck_assert_int_eq(rmdir(home()), 0);
    ck_assert_int_eq(symlink(temp_dir, home()), 0);
    const enum ndt_status link = as_user(0, said);
    ck_assert_int_eq(unlink(home()), 0);
    const enum ndt_status missing = as_user(0, said);
    const int taken = lstat(home(), &info) == 0;
    (void)rmdir(home());
    ck_assert_int_eq(foreign, NDT_ERR_IO);
    ck_assert_int_eq(writable, NDT_ERR_IO);
    ck_assert_int_eq(good, NDT_OK);
    ck_assert_int_eq(link, NDT_ERR_IO);
    ck_assert_int_eq(missing, NDT_OK);
    ck_assert_msg(taken && (info.st_mode & 0777) == 0700, "others can make the directory before the daemon");
}

static const char *cores(const char *text)
{
    static char out[64];
    cpu_set_t set;
    size_t used = 0;
    out[0] = '\0';
    if (ndtd_cpu_list_parse(text, &set, &err) != NDT_OK)
        return "error";
    for (size_t i = 0; i < 16; i++)
        if (CPU_ISSET(i, &set))
            used += (size_t)snprintf(out + used, sizeof(out) - used, "%zu ", i);
    return out;
}

TEST(lists_of_cores)
{
    ck_assert_str_eq(cores(""), "");
    ck_assert_str_eq(cores("3"), "3 ");
    ck_assert_str_eq(cores("0,2-4,9"), "0 2 3 4 9 ");
    const char *const wrong[] = {",", "1,", "a", "1-", "-1", "3-2", "1 2", "99999", "5000", "1-2-3"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_str_eq(cores(wrong[i]), "error");
}
