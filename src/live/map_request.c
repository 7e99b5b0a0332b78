#include "map_request.h"

#include <stdlib.h>
#include <string.h>

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

void ndtd_map_request_free(struct ndtd_map_request *request)
{
    free(request->path);
    free(request);
}
