/** @file
 * @brief Takes from the live daemon what it does not need: files (Landlock) and system calls (seccomp).
 *
 * Two steps, both one-way. Landlock covers only threads that start later; the system calls of the start (bind,
 * setrlimit) are not needed after it:
 *   ndtd_isolation_restrict_files   before the first thread
 *   ndtd_isolation_restrict_calls   for all threads, when the sockets are bound and the first map is loaded
 * What this machine lacks is said in the log, the rest is in force. With security.isolation off nothing is done.
 * Used by the main thread. Sources: landlock(7), seccomp(2), seccomp_rule_add(3). */
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
    unsigned thread_count; /**< threads that the process had before; the others are not restricted in their files */
};

enum { NDTD_ISOLATION_PATHS = 5 };
/** Paths besides those of the settings. NULL and empty ones are skipped; those that do not exist stay forbidden. */
struct ndtd_isolation_paths {
    const struct ndtd_config_files *configs;   /**< the directories of these may be read; may be NULL */
    const char *written[NDTD_ISOLATION_PATHS]; /**< files; all of their directories may be read and written */
    const char
        *sockets[NDTD_ISOLATION_PATHS]; /**< addresses; ipc sockets are made and removed in their directories */
};

/** NDT_ERR_ARGUMENT, with one line, when the settings contradict the isolation: backend.name cuda without `gpu`, or
 * a directory of security.map_paths that does not exist. */
NDT_MUST_CHECK enum ndt_status ndtd_isolation_check(const struct ndtd_settings *settings, struct ndt_error *err);
/** Readable: the directory of map.path, security.map_paths, the directories of the configuration, key files,
 * libraries and what the C library reads under /proc, /sys and /etc; with `gpu` also what the driver of NVIDIA
 * reads there, and its devices, which may be written and controlled. Fails as ndtd_isolation_check, or when the
 * kernel refuses a rule. */
NDT_MUST_CHECK enum ndt_status ndtd_isolation_restrict_files(struct ndtd_isolation *isolation,
                                                             const struct ndtd_settings *settings,
                                                             const struct ndtd_isolation_paths *paths,
                                                             struct ndt_error *err);
/** Logs one line about what is in force and what is missing. */
void ndtd_isolation_restrict_calls(const struct ndtd_isolation *isolation);
/** For maps and tiles that clients name: NDT_ERR_ARGUMENT, with the option to set, when the isolation forbids to
 * read the path. Other reasons are left to the loader. */
NDT_MUST_CHECK enum ndt_status ndtd_isolation_check_map(const struct ndtd_isolation *isolation, const char *path,
                                                        struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
