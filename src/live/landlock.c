#define _GNU_SOURCE /* O_PATH, syscall */
#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Definitions of linux/landlock.h, which older systems lack; the numbers are the same on all architectures. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, GET_VERSION = 1, PATH_BENEATH = 1 };
struct ruleset {
    uint64_t handled_fs, handled_net, scoped;
};
struct path_rule {
    uint64_t allowed;
    int32_t directory;
} __attribute__((packed));

#define EXECUTE     (1ull << 0)
#define WRITE_FILE  (1ull << 1)
#define READ_FILE   (1ull << 2)
#define READ_DIR    (1ull << 3)
#define REMOVE_DIR  (1ull << 4)
#define REMOVE_FILE (1ull << 5)
#define MAKE_DIR    (1ull << 7)
#define MAKE_REG    (1ull << 8)
#define MAKE_SOCK   (1ull << 9)
#define TRUNCATE    (1ull << 14)
#define IOCTL_DEV   (1ull << 15)
#define CONNECT_TCP (1ull << 1)
#define ABSTRACT    (1ull << 0)
#define SIGNAL      (1ull << 1)
/* Rights of a file; the kernel refuses other rights in a rule for a file. */
#define OF_FILES (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)

int ndtd_landlock_version(void)
{
    const long version = syscall(CREATE_RULESET, NULL, 0, GET_VERSION);
    return version > 0 ? (int)version : 0;
}

/* All rights on files that a version knows. */
static uint64_t known_rights(int version)
{
    if (version >= 5)
        return (IOCTL_DEV << 1) - 1;
    return version >= 3 ? (TRUNCATE << 1) - 1 : version == 2 ? TRUNCATE - 1 : (1ull << 13) - 1;
}

int ndtd_landlock_open(int keep_abstract_sockets)
{
    const int version = ndtd_landlock_version();
    const struct ruleset rules = {.handled_fs = known_rights(version),
                                  .handled_net = version >= 4 ? CONNECT_TCP : 0,
                                  .scoped = version >= 6 ? SIGNAL | (keep_abstract_sockets ? 0 : ABSTRACT) : 0};
    const size_t size = version >= 6   ? sizeof(rules)
                        : version >= 4 ? 2 * sizeof(uint64_t)
                                       : sizeof(uint64_t); /* older kernels refuse unknown members */
    return version > 0 ? (int)syscall(CREATE_RULESET, &rules, size, 0) : -1;
}

enum ndt_status ndtd_landlock_allow(int rules, const char *path, enum ndtd_landlock_use use, struct ndt_error *err)
{
    static const uint64_t rights[] = {
        [NDTD_LANDLOCK_READ] = READ_FILE | READ_DIR,
        [NDTD_LANDLOCK_WRITE] = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE,
        [NDTD_LANDLOCK_TREE] =
            READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE | MAKE_DIR | REMOVE_DIR,
        [NDTD_LANDLOCK_SOCKETS] = READ_DIR | MAKE_SOCK | REMOVE_FILE,
        [NDTD_LANDLOCK_DEVICE] = READ_FILE | WRITE_FILE | TRUNCATE,
        [NDTD_LANDLOCK_CONTROL] = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | IOCTL_DEV,
    };
    struct path_rule rule = {.allowed = rights[use] & known_rights(ndtd_landlock_version())};
    struct stat info;
    rule.directory = open(path, O_PATH | O_CLOEXEC);
    if (rule.directory < 0 || fstat(rule.directory, &info) != 0) {
        if (rule.directory >= 0)
            close(rule.directory);
        return NDT_OK;
    }
    if (!S_ISDIR(info.st_mode))
        rule.allowed &= OF_FILES;
    const int failed = syscall(ADD_RULE, rules, PATH_BENEATH, &rule, 0) != 0;
    const int failure = errno;
    close(rule.directory);
    return failed ? ndt_fail(err, NDT_ERR_UNSUPPORTED, "security.isolation: Landlock refuses a rule for %.200s: %s",
                             path, strerror(failure))
                  : NDT_OK;
}

enum ndt_status ndtd_landlock_enforce(int rules, struct ndt_error *err)
{
    const int failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(RESTRICT_SELF, rules, 0) != 0;
    const int failure = errno;
    close(rules);
    return failed ? ndt_fail(err, NDT_ERR_UNSUPPORTED, "security.isolation: Landlock is refused: %s",
                             strerror(failure))
                  : NDT_OK;
}
