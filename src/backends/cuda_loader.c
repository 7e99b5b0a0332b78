/** @file
 * @brief Finds and loads the module with the CUDA backend. */
#define _GNU_SOURCE /* dladdr1, secure_getenv */
#include "cuda_loader.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndt/version.h"

/* Folders of the module, relative to the folder of the program or library. The package of its wheel lies beside the
 * packages of the programs and of the Python module, and is looked for from there alone: elsewhere others may
 * write. */
static const struct {
    const char *own_end, *module;
} folders[] = {{"", "."},
               {"", "ndtd"},
               {"", NDT_CUDA_FOLDER},
               {"/ndtd_programs/bin", "../../ndtd_cuda"},
               {"-packages/ndtd", "../ndtd_cuda"}};

static int ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
    const struct ndt_cuda_module *module; /* NULL: see `why` */
    struct ndt_error why;
} loaded;

enum ndt_status ndt_cuda_find_driver(struct ndt_error *why)
{
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) /* stays open: the runtime in the module opens it as well */
        return NDT_OK;
    return ndt_fail(why, NDT_ERR_UNSUPPORTED, "no NVIDIA driver");
}

/* The folder of the file that contains this code: of the program, or of the shared library that it is part of. The
 * loader knows a library by its path, but the program by the word that called it. */
static const char *own_folder(char path[PATH_MAX])
{
    Dl_info unused;
    struct link_map *map = NULL;
    if (dladdr1((const void *)folders, &unused, (void **)&map, RTLD_DL_LINKMAP) != 0 && map && *map->l_name)
        snprintf(path, PATH_MAX, "%s", map->l_name);
    else {
        const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
        path[length > 0 ? length : 0] = '\0';
    }
    char *last = strrchr(path, '/');
    if (last)
        *last = '\0';
    return last ? path : ".";
}

static int find(char path[PATH_MAX])
{
    char own[PATH_MAX];
    const char *folder = own_folder(own);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (ends_with(folder, folders[i].own_end) &&
            snprintf(path, PATH_MAX, "%s/%s/" NDT_CUDA_MODULE_FILE, folder, folders[i].module) < PATH_MAX &&
            access(path, R_OK) == 0)
            return 1;
#ifdef NDT_CUDA_INSTALLED
    snprintf(path, PATH_MAX, "%s/" NDT_CUDA_MODULE_FILE, NDT_CUDA_INSTALLED);
    return access(path, R_OK) == 0;
#else
    return 0;
#endif
}

static enum ndt_status load_file(const char *path, struct ndt_error *why)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return ndt_fail(why, NDT_ERR_UNSUPPORTED, "the CUDA module cannot be loaded: %s", dlerror());
    const struct ndt_cuda_module *module = dlsym(library, NDT_CUDA_MODULE_SYMBOL);
    if (module && strcmp(module->version(), ndt_version()) == 0 && strcmp(module->commit(), ndt_commit()) == 0) {
        loaded.module = module;
        return NDT_OK;
    }
    if (!module)
        ndt_fail(why, NDT_ERR_UNSUPPORTED, "%s is no CUDA module of ndtd", path);
    else
        ndt_fail(why, NDT_ERR_UNSUPPORTED, "the CUDA module is of ndtd %s (%s), not %s (%s): %s", module->version(),
                 module->commit(), ndt_version(), ndt_commit(), path);
    dlclose(library);
    return NDT_ERR_UNSUPPORTED;
}

static void load(void)
{
    const char *named = secure_getenv("NDT_CUDA_MODULE");
    char path[PATH_MAX];
    if (named && *named)
        (void)load_file(named, &loaded.why);
    else if (find(path))
        (void)load_file(path, &loaded.why);
    else
        ndt_fail(&loaded.why, NDT_ERR_UNSUPPORTED,
                 "the CUDA module " NDT_CUDA_MODULE_FILE " is not installed (Debian and pip: ndtd-cuda)");
}

enum ndt_status ndt_cuda_load(const struct ndt_cuda_module **out, struct ndt_error *why)
{
    pthread_once(&once, load);
    *out = loaded.module;
    return loaded.module ? NDT_OK : ndt_fail(why, NDT_ERR_UNSUPPORTED, "%s", loaded.why.text);
}
