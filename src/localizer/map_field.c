#include "ndtd/map_field.h"

#include <stdlib.h>
#include <string.h>

#include "ndt_io/compiled_map.h"

enum ndt_status ndtd_map_field(struct ndt_field **out, const struct ndt_map *map, struct ndt_error *err)
{
    const void *data;
    const size_t size = ndt_map_attachment(map, &data);
    if (size > 0 && ndt_field_decode(out, data, size, NULL) == NDT_OK) {
        if ((*out)->map_id == map->id && memcmp((*out)->origin_m, map->origin_m, sizeof(map->origin_m)) == 0)
            return NDT_OK;
        ndt_field_release(*out);
    }
    return ndt_field_build(out, map, err);
}

enum ndt_status ndtd_map_save(const struct ndt_map *map, const char *path, struct ndt_error *err)
{
    struct ndt_field *field;
    enum ndt_status status = ndtd_map_field(&field, map, err);
    if (status == NDT_ERR_UNSUPPORTED)
        return ndt_map_save(map, path, err);
    if (status != NDT_OK)
        return status;
    const size_t size = ndt_field_encoded_bytes(field);
    uint8_t *bytes = malloc(size);
    if (bytes) {
        ndt_field_encode(field, bytes);
        status = ndt_map_save_with(map, bytes, size, path, err);
    } else {
        status = ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for a field of %zu bytes", path, size);
    }
    free(bytes);
    ndt_field_release(field);
    return status;
}
