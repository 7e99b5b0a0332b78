#include "web_map.h"

#include <stdlib.h>

struct web_map {
    int unused;
};

enum ndt_status web_map_open(struct web_map **out, void (*changed)(void *user), void *user, struct ndt_error *err)
{
    (void)changed;
    (void)user;
    *out = calloc(1, sizeof(**out));
    return *out ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory");
}

void web_map_close(struct web_map *map)
{
    free(map);
}

void web_map_load(struct web_map *map, const char *path)
{
    (void)map;
    (void)path;
}

void web_map_describe(struct web_map *map, FILE *file)
{
    (void)map;
    fputs("{\"state\":\"none\"}", file);
}

struct web_blob *web_map_node(struct web_map *map, const char *name, char id[64])
{
    (void)map;
    (void)name;
    if (id)
        id[0] = '\0';
    return NULL;
}

void web_map_counters(struct web_map *map, struct web_map_counters *out)
{
    (void)map;
    *out = (struct web_map_counters){0};
}
