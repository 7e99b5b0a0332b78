/** @file
 * @brief Withdraws unneeded rights from the live daemon: files (Landlock) and system calls (seccomp).
 *
 * Two steps, both one-way. Landlock covers only threads that start later; the system calls of the start (bind,
 * setrlimit) are not needed after it:
 *   ndtd_isolation_restrict_files   before the first thread
 *   ndtd_isolation_restrict_calls   for all threads, when the sockets are bound and the first map is loaded The log
 *   names restrictions that this machine lacks; the others are in force. With security.isolation off nothing is
 *   done. The main thread calls the functions. Sources: landlock(7), seccomp(2), seccomp_rule_add(3). */
#ifndef NDTD_ISOLATION_H
#define NDTD_ISOLATION_H

#include "ndtd/config_file.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The restrictions in force. Zero-initialised: none. */
struct ndtd_isolation {
    int is_on;
    int has_gpu;           /**< security.isolation: gpu */
    int landlock_version;  /**< 0: files are not restricted */
    unsigned thread_count; /**< number of earlier threads, whose files are not restricted */
};

enum { NDTD_ISOLATION_PATHS = 5 };
/** Paths besides those of the settings. NULL and empty ones are skipped; missing ones stay forbidden. */
struct ndtd_isolation_paths {
    const struct ndtd_config_files *configs;   /**< files whose directories may be read; may be NULL */
    const char *written[NDTD_ISOLATION_PATHS]; /**< files; all of their directories may be read and written */
    const char
        *sockets[NDTD_ISOLATION_PATHS]; /**< addresses; ipc sockets are made and removed in their directories */
};

/** Checks the settings. NDT_ERR_ARGUMENT, with one line, when they contradict the isolation: backend.name cuda
 * without `gpu`, or a directory of security.map_paths that does not exist. */
NDT_MUST_CHECK enum ndt_status ndtd_isolation_check(const struct ndtd_settings *settings, struct ndt_error *err);
/** Restricts files. Readable are the directory of map.path, security.map_paths, the directories of the
 * configuration, key files, libraries and the files that the C library needs under /proc, /sys and /etc; with `gpu`
 * also those of the driver of NVIDIA, and its devices, which may be written and controlled. Fails as
 * ndtd_isolation_check, or when the kernel refuses a rule. */
NDT_MUST_CHECK enum ndt_status ndtd_isolation_restrict_files(struct ndtd_isolation *isolation,
                                                             const struct ndtd_settings *settings,
                                                             const struct ndtd_isolation_paths *paths,
                                                             struct ndt_error *err);
/** Restricts system calls, and logs one line about the restrictions in force and the missing ones. */
void ndtd_isolation_restrict_calls(const struct ndtd_isolation *isolation);
/** Checks maps and tiles that clients name: NDT_ERR_ARGUMENT, with the option to set, when the isolation forbids to
 * read the path. The loader reports other reasons. */
NDT_MUST_CHECK enum ndt_status ndtd_isolation_check_map(const struct ndtd_isolation *isolation, const char *path,
                                                        struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
