#define _GNU_SOURCE /* dlinfo, O_PATH */
#include "ndtd/isolation.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "landlock.h"
#include "ndt_io/map_file.h"
#include "ndtd/log.h"
#include "socket_address.h"
#include "syscall_filter.h"

/* Files that the C library and libzmq read while the daemon runs: libraries loaded late, names of users for sockets
 * that filter by group, the number of cores, the mode of overcommit. */
static const char *const system_files[] = {
    "/usr/lib",       "/usr/lib32",          "/usr/lib64",          "/usr/local/lib", "/lib",
    "/lib64",         "/etc/ld.so.cache",    "/etc/nsswitch.conf",  "/etc/passwd",    "/etc/group",
    "/etc/protocols", "/etc/localtime",      "/usr/share/zoneinfo", "/proc/self",     "/proc/meminfo",
    "/proc/sys/vm",   "/sys/devices/system", "/dev/urandom",
};

/* Further files of the driver of NVIDIA (libcuda): its devices and modules, and their settings. */
static const char *const gpu_files[] = {
    "/proc/driver", "/proc/devices", "/proc/modules", "/proc/cpuinfo", "/sys/module",
    "/sys/bus/pci", "/sys/class",    "/sys/devices",  "/etc/nvidia",   "/usr/share/nvidia",
};
/* Devices of NVIDIA: of cards, then of Jetson. Devices that appear only after the start stay forbidden. */
static const char *const gpu_devices[] = {"/dev/nvidia*", "/dev/nvhost*", "/dev/nvmap", "/dev/nvgpu*",
                                          "/dev/nvsciipc"};

/* Calls `take` for every part of a list with ':'. */
static enum ndt_status for_each_path(const char *list, void *context,
                                     enum ndt_status (*take)(void *, const char *, struct ndt_error *),
                                     struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    while (status == NDT_OK && *list) {
        char path[NDTD_PATH_MAX];
        const size_t length = strcspn(list, ":");
        snprintf(path, sizeof(path), "%.*s", (int)length, list);
        if (length > 0)
            status = take(context, path, err);
        list += length + (list[length] == ':');
    }
    return status;
}

static enum ndt_status check_directory(void *context, const char *path, struct ndt_error *err)
{
    struct stat info;
    (void)context;
    const int failure = stat(path, &info) == 0 ? ENOTDIR : errno;
    if (failure == ENOTDIR && S_ISDIR(info.st_mode))
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_ARGUMENT, "security.map_paths: '%.200s': %s", path, strerror(failure));
}

enum ndt_status ndtd_isolation_check(const struct ndtd_settings *settings, struct ndt_error *err)
{
    if (settings->isolation == NDTD_ISOLATION_OFF)
        return NDT_OK;
    if (!ndtd_settings_allow_backend(settings, settings->backend))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "backend.name: %s needs devices that security.isolation: on leaves no way to; gpu does",
                        settings->backend);
    return for_each_path(settings->map_paths, NULL, check_directory, err);
}

/* ---- files ---- */

static enum ndt_status allow_read(void *rules, const char *path, struct ndt_error *err)
{
    return *path ? ndtd_landlock_allow(*(const int *)rules, path, NDTD_LANDLOCK_READ, err) : NDT_OK;
}

/* The directory that contains the file behind `path`, so that a replacement of the file can be used, too. A
 * directory, or anything else that is no regular file, stands for itself. */
static void containing(const char *path, char out[PATH_MAX])
{
    struct stat info;
    const int exists = stat(path, &info) == 0;
    if (!exists || !realpath(path, out))
        snprintf(out, PATH_MAX, "%s", path);
    if (!exists || S_ISREG(info.st_mode)) {
        char copy[PATH_MAX];
        snprintf(copy, sizeof(copy), "%s", out);
        snprintf(out, PATH_MAX, "%s", dirname(copy));
    }
}

static enum ndt_status allow_containing(int rules, const char *path, enum ndtd_landlock_use use,
                                        struct ndt_error *err)
{
    char folder[PATH_MAX];
    if (!path || !*path)
        return NDT_OK;
    containing(path, folder);
    return ndtd_landlock_allow(rules, folder, use, err);
}

/* Allows the directory of the map, and for a folder of tiles the metadata above it. */
static enum ndt_status allow_points(int rules, const char *path, struct ndt_error *err)
{
    char folder[PATH_MAX], metadata[PATH_MAX + 64];
    struct stat info;
    enum ndt_status status = allow_containing(rules, path, NDTD_LANDLOCK_READ, err);
    if (status != NDT_OK || !path || stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return status;
    containing(path, folder);
    snprintf(metadata, sizeof(metadata), "%s/../" NDT_TILE_METADATA, folder);
    return stat(metadata, &info) == 0 ? allow_read(&rules, metadata, err) : NDT_OK;
}

/* Allows a map; an overlay also needs the map that it changes. */
static enum ndt_status allow_map(int rules, const char *path, struct ndt_error *err)
{
    struct ndt_map_overlay overlay;
    enum ndt_status status = allow_points(rules, path, err);
    if (status != NDT_OK || !path || !ndt_map_is_overlay(path))
        return status;
    status = ndt_map_overlay_open(&overlay, path, err);
    return status == NDT_OK ? allow_points(rules, overlay.map, err) : status;
}

static enum ndt_status allow_socket(int rules, const char *text, struct ndt_error *err)
{
    struct ndtd_socket_address address;
    if (!text || ndtd_socket_address_parse(&address, text, NULL) != NDT_OK || address.transport != NDTD_IPC)
        return NDT_OK;
    return ndtd_landlock_allow(rules, dirname(address.path), NDTD_LANDLOCK_SOCKETS, err);
}

/* Allows what libcuda itself reads and writes: it names its threads by /proc/self/task/TID/comm, and no device can
 * be used where it cannot; it loads its compiler of PTX from its own folder, and keeps what that compiled. */
static enum ndt_status allow_driver(int rules, struct ndt_error *err)
{
    struct link_map *library = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const char *cache = getenv("CUDA_CACHE_PATH");
    /* Stays open: a rule is for an inode, and the kernel forgets those of /proc that nothing uses. */
    const int tasks = open("/proc/self/task", O_PATH | O_CLOEXEC);
    enum ndt_status status =
        tasks < 0 ? NDT_OK : ndtd_landlock_allow(rules, "/proc/self/task", NDTD_LANDLOCK_DEVICE, err);
    if (status == NDT_OK && driver && dlinfo(driver, RTLD_DI_LINKMAP, &library) == 0)
        status = allow_containing(rules, library->l_name, NDTD_LANDLOCK_READ, err);
    if (driver)
        dlclose(driver);
    return status == NDT_OK && cache ? ndtd_landlock_allow(rules, cache, NDTD_LANDLOCK_TREE, err) : status;
}

static enum ndt_status allow_gpu(int rules, struct ndt_error *err)
{
    enum ndt_status status = allow_driver(rules, err);
    for (size_t i = 0; status == NDT_OK && i < sizeof(gpu_files) / sizeof(gpu_files[0]); i++)
        status = allow_read(&rules, gpu_files[i], err);
    for (size_t i = 0; status == NDT_OK && i < sizeof(gpu_devices) / sizeof(gpu_devices[0]); i++) {
        glob_t found;
        if (glob(gpu_devices[i], 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; status == NDT_OK && k < found.gl_pathc; k++)
            status = ndtd_landlock_allow(rules, found.gl_pathv[k], NDTD_LANDLOCK_CONTROL, err);
        globfree(&found);
    }
    return status;
}

static enum ndt_status allow_all(int rules, const struct ndtd_settings *settings,
                                 const struct ndtd_isolation_paths *paths, struct ndt_error *err)
{
    enum ndt_status status = ndtd_landlock_allow(rules, "/dev/null", NDTD_LANDLOCK_DEVICE, err);
    for (size_t i = 0; status == NDT_OK && i < sizeof(system_files) / sizeof(system_files[0]); i++)
        status = allow_read(&rules, system_files[i], err);
    if (status == NDT_OK && settings->isolation == NDTD_ISOLATION_GPU)
        status = allow_gpu(rules, err);
    if (status == NDT_OK)
        status = allow_read(&rules, settings->server_secret_key_file, err);
    if (status == NDT_OK)
        status = allow_read(&rules, settings->allowed_clients_file, err);
    for (size_t i = 0; status == NDT_OK && paths->configs && i < paths->configs->count; i++)
        status = allow_containing(rules, paths->configs->paths[i], NDTD_LANDLOCK_READ, err);
    if (status == NDT_OK && !ndtd_settings_has_no_map(settings))
        status = allow_map(rules, settings->map_path, err);
    if (status == NDT_OK)
        status = for_each_path(settings->map_paths, &rules, allow_read, err);
    for (int i = 0; status == NDT_OK && i < NDTD_ISOLATION_PATHS; i++)
        status = allow_containing(rules, paths->written[i], NDTD_LANDLOCK_WRITE, err);
    for (int i = 0; status == NDT_OK && i < NDTD_ISOLATION_PATHS; i++)
        status = allow_socket(rules, paths->sockets[i], err);
    return status;
}

static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return 1;
    for (const struct dirent *task = readdir(tasks); task; task = readdir(tasks))
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

enum ndt_status ndtd_isolation_restrict_files(struct ndtd_isolation *isolation,
                                              const struct ndtd_settings *settings,
                                              const struct ndtd_isolation_paths *paths, struct ndt_error *err)
{
    const char *manager = getenv("NOTIFY_SOCKET");
    *isolation = (struct ndtd_isolation){.is_on = settings->isolation != NDTD_ISOLATION_OFF,
                                         .has_gpu = settings->isolation == NDTD_ISOLATION_GPU};
    enum ndt_status status = ndtd_isolation_check(settings, err);
    if (status != NDT_OK || !isolation->is_on || ndtd_landlock_version() == 0)
        return status;
    isolation->thread_count = count_threads();
    const int rules = ndtd_landlock_open(manager && *manager == '@');
    if (rules < 0)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "security.isolation: Landlock cannot be used: %s",
                        strerror(errno));
    status = allow_all(rules, settings, paths, err);
    if (status != NDT_OK) {
        close(rules);
        return status;
    }
    status = ndtd_landlock_enforce(rules, err);
    if (status == NDT_OK)
        isolation->landlock_version = ndtd_landlock_version();
    return status;
}

/* ---- system calls ---- */

void ndtd_isolation_restrict_calls(const struct ndtd_isolation *isolation)
{
    struct ndt_error why = {""};
    char files[160], calls[sizeof(why.text) + 80];
    unsigned allowed;
    if (!isolation->is_on)
        return;
    const int is_filtered = ndtd_syscall_filter_enforce(isolation->has_gpu, &allowed, &why) == NDT_OK;
    const int has_all_threads = isolation->thread_count <= 1;
    if (isolation->landlock_version == 0)
        snprintf(files, sizeof(files),
                 "files are not restricted: this kernel has no Landlock, or it is switched off");
    else
        snprintf(files, sizeof(files), "files are restricted (Landlock %d)%s", isolation->landlock_version,
                 has_all_threads ? "" : ", not for threads that ran before");
    if (is_filtered)
        snprintf(calls, sizeof(calls), "system calls are restricted (seccomp, %u are left)", allowed);
    else
        snprintf(calls, sizeof(calls), "system calls are not restricted: %s", why.text);
    const int is_whole = is_filtered && isolation->landlock_version > 0 && has_all_threads;
    ndtd_log_always(is_whole ? NDTD_LOG_INFO : NDTD_LOG_WARNING, "isolation: %s; %s%s", files, calls,
                    isolation->has_gpu ? "; both less, for a GPU" : "");
}

/* ---- requests ---- */

enum ndt_status ndtd_isolation_check_map(const struct ndtd_isolation *isolation, const char *path,
                                         struct ndt_error *err)
{
    if (isolation->landlock_version == 0)
        return NDT_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || errno != EACCES)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_ARGUMENT,
                    "%.200s: may not be read: security.isolation leaves the directory of map.path and those of "
                    "security.map_paths",
                    path);
}
