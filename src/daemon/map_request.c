#include "map_request.h"

#include <stdlib.h>
#include <string.h>

#include "ndt_io/cloud_file.h"
#include "ndtd/log.h"

struct ndtd_map_request *ndtd_map_request_create(enum ndtd_map_request_kind kind, const char *path,
                                                 const double near_m[2])
{
    struct ndtd_map_request *request = calloc(1, sizeof(*request));
    char *copy = path && request ? strdup(path) : NULL;
    if (!request || (path && !copy)) {
        free(request);
        return NULL;
    }
    *request = (struct ndtd_map_request){.kind = kind, .path = copy, .has_near = near_m != NULL};
    if (near_m)
        memcpy(request->near_m, near_m, sizeof(request->near_m));
    return request;
}

void ndtd_map_request_warn(const struct ndtd_map_request *request)
{
    char line[700];
    if (request->kind != NDTD_MAP_REMOVE_TILE && request->path &&
        ndt_map_is_coarse(request->path, line, sizeof(line)))
        ndtd_log(NDTD_LOG_WARNING, "map: %s", line);
}

void ndtd_map_request_free(struct ndtd_map_request *request)
{
    free(request->path);
    free(request);
}
