/* Private: requests of clients to the map loader. */
#ifndef NDTD_MAP_REQUEST_H
#define NDTD_MAP_REQUEST_H

enum ndtd_map_request_kind { NDTD_MAP_LOAD, NDTD_MAP_ADD_TILE, NDTD_MAP_REMOVE_TILE };

struct ndtd_map_request {
    enum ndtd_map_request_kind kind;
    char *path; /* NULL: unload */
    int has_near;
    double near_m[2];
    struct ndtd_map_request *next;
};

/* Copies the path; path and near_m may be NULL. NULL: no memory. */
struct ndtd_map_request *ndtd_map_request_create(enum ndtd_map_request_kind kind, const char *path,
                                                 const double near_m[2]);
void ndtd_map_request_free(struct ndtd_map_request *request);

#endif
