/* A temporary folder for one test, and files in it. Use temp_dir_make and temp_dir_remove as a checked fixture;
 * one test at a time. */
#ifndef TEMP_DIR_H
#define TEMP_DIR_H

#include <check.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char temp_dir[256];

__attribute__((unused)) static void temp_dir_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(temp_dir, sizeof(temp_dir), "%.200s/ndt-test-XXXXXX", base && base[0] ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(temp_dir));
}

__attribute__((unused)) static void temp_dir_drop(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        char child[1024];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(child, sizeof(child), "%.500s/%s", path, entry->d_name);
        if (unlink(child) != 0)
            temp_dir_drop(child);
    }
    if (folder)
        closedir(folder);
    ck_assert_int_eq(remove(path), 0);
}

__attribute__((unused)) static void temp_dir_remove(void)
{
    temp_dir_drop(temp_dir);
}

/* The path of a file in the folder; valid until the fourth following call. */
__attribute__((unused)) static const char *temp_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", temp_dir, name);
    return path;
}

__attribute__((unused)) static const char *temp_write(const char *name, const void *data, size_t size)
{
    const char *path = temp_path(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

__attribute__((unused)) static const char *temp_text(const char *name, const char *text)
{
    return temp_write(name, text, strlen(text));
}

/* The bytes of a file, to be freed; NULL when it cannot be opened. */
__attribute__((unused)) static uint8_t *temp_read(const char *path, size_t *size)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    ck_assert_int_eq(fstat(fileno(file), &info), 0);
    uint8_t *data = malloc((size_t)info.st_size + 1);
    ck_assert_ptr_nonnull(data);
    *size = fread(data, 1, (size_t)info.st_size, file);
    data[*size] = 0;
    fclose(file);
    return data;
}

__attribute__((unused)) static int temp_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

#endif
