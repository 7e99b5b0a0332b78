#include "output_guard.h"

#include <string.h>
#include <sys/stat.h>

enum ndt_status tool_output_check(const char *path, enum tool_output kind, int force, struct ndt_error *err)
{
    struct stat info;
    const int is_stream = kind == TOOL_OUTPUT_STREAM;
    if ((is_stream && strcmp(path, "-") == 0) || stat(path, &info) != 0)
        return NDT_OK;
    if (is_stream && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)))
        return NDT_OK;
    if (kind == TOOL_OUTPUT_FOLDER ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: exists and is not a %s", path,
                        kind == TOOL_OUTPUT_FOLDER ? "folder" : "regular file");
    return force ? NDT_OK : ndt_fail(err, NDT_ERR_ARGUMENT, "%s: exists already; --force overwrites it", path);
}
