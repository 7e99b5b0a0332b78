#include "output_guard.h"

#include <string.h>
#include <sys/stat.h>

enum ndt_status tool_output_check(const char *path, int is_folder, int force, struct ndt_error *err)
{
    struct stat info;
    if (strcmp(path, "-") == 0 || stat(path, &info) != 0)
        return NDT_OK;
    if (!is_folder && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)))
        return NDT_OK;
    if (is_folder ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "%s: exists and is not a %s", path, is_folder ? "folder" : "plain file");
    return force ? NDT_OK : ndt_fail(err, NDT_ERR_IO, "%s: exists already; --force replaces it", path);
}
