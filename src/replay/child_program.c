#include "ndtd/child_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static int is_beside_us(char path[PATH_MAX], const char *program)
{
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = '\0';
    char *name = strrchr(path, '/') + 1;
    const size_t room = (size_t)(path + PATH_MAX - name);
    return (size_t)snprintf(name, room, "%s", program) < room && is_program(path);
}

static int is_on_path(char path[PATH_MAX], const char *program)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        const size_t length = strcspn(at, ":");
        if (length > 0 && snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, program) < PATH_MAX &&
            is_program(path))
            return 1;
        at += length + (at[length] == ':');
    }
    return 0;
}

enum ndt_status ndtd_child_program_find(char path[PATH_MAX], const char *variable, const char *name,
                                        struct ndt_error *err)
{
    const char *named = getenv(variable);
    if (named && *named) {
        snprintf(path, PATH_MAX, "%s", named);
        return is_program(path) ? NDT_OK
                                : ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s=%s is not a program", variable, named);
    }
    return is_beside_us(path, name) || is_on_path(path, name) ? NDT_OK : NDT_ERR_UNSUPPORTED;
}
