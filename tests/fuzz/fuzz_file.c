#define _GNU_SOURCE /* memfd_create */
#include "fuzz_file.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

static char folder[256];

static void remove_folder(void)
{
    char path[600];
    DIR *entries = opendir(folder);
    for (struct dirent *entry = entries ? readdir(entries) : NULL; entry; entry = readdir(entries)) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        (void)unlink(path); /* fails for "." and ".." */
    }
    if (entries)
        closedir(entries);
    (void)rmdir(folder);
}

const char *fuzz_folder(void)
{
    const char *base = getenv("TMPDIR");
    if (folder[0])
        return folder;
    snprintf(folder, sizeof(folder), "%.200s/ndtd-fuzz-XXXXXX", base && base[0] == '/' ? base : "/tmp");
    FUZZ_REQUIRE(mkdtemp(folder), "no temporary folder");
    (void)atexit(remove_folder);
    return folder;
}

void fuzz_file_open(struct fuzz_file *file, const char *name)
{
    char target[64];
    file->fd = memfd_create(name, 0);
    FUZZ_REQUIRE(file->fd >= 0, "no file in memory");
    FUZZ_REQUIRE(fchmod(file->fd, 0600) == 0, "no mode"); /* mode that secret keys need */
    snprintf(target, sizeof(target), "/proc/self/fd/%d", file->fd);
    snprintf(file->path, sizeof(file->path), "%s/%s", fuzz_folder(), name);
    FUZZ_REQUIRE(symlink(target, file->path) == 0, "%s", file->path);
}

void fuzz_file_write(struct fuzz_file *file, const void *data, size_t size)
{
    FUZZ_REQUIRE(ftruncate(file->fd, (off_t)size) == 0, "%zu bytes", size);
    FUZZ_REQUIRE(pwrite(file->fd, data, size, 0) == (ssize_t)size, "%zu bytes", size);
}
