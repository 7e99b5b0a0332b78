/* Not there yet. */
#include "ndt_search/search.h"

#include <string.h>

enum ndt_status ndt_field_build(struct ndt_field **out, const struct ndt_map *map, struct ndt_error *err)
{
    (void)map;
    *out = NULL;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "fields cannot be built yet");
}

size_t ndt_field_encoded_bytes(const struct ndt_field *field)
{
    (void)field;
    return 0;
}

void ndt_field_encode(const struct ndt_field *field, uint8_t *out)
{
    (void)field, (void)out;
}

enum ndt_status ndt_field_decode(struct ndt_field **out, const uint8_t *data, size_t size, struct ndt_error *err)
{
    (void)data, (void)size;
    *out = NULL;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "fields cannot be decoded yet");
}

void ndt_search_params_default(struct ndt_search_params *params)
{
    memset(params, 0, sizeof(*params));
}

enum ndt_status ndt_search_create(struct ndt_search **out, const struct ndt_search_config *config,
                                  struct ndt_error *err)
{
    (void)config;
    *out = NULL;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "there is no search yet");
}

void ndt_search_destroy(struct ndt_search *search)
{
    (void)search;
}

enum ndt_status ndt_search_set_map(struct ndt_search *search, struct ndt_map *map, struct ndt_field *field,
                                   struct ndt_error *err)
{
    (void)search, (void)map, (void)field;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "there is no search yet");
}

enum ndt_status ndt_search_run(struct ndt_search *search, const struct ndt_search_params *params,
                               const struct ndt_cloud *scan, const double up_in_sensor[3],
                               const struct ndt_search_window *window, struct ndt_search_control *control,
                               struct ndt_search_result *result, struct ndt_error *err)
{
    (void)search, (void)params, (void)scan, (void)up_in_sensor, (void)window, (void)control;
    memset(result, 0, sizeof(*result));
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "there is no search yet");
}

void ndt_search_cancel(struct ndt_search_control *control)
{
    __atomic_store_n(&control->is_cancelled, 1, __ATOMIC_RELAXED);
}

unsigned ndt_search_progress(const struct ndt_search_control *control)
{
    return __atomic_load_n(&control->done_percent, __ATOMIC_RELAXED);
}

void ndt_search_variants(char *text, size_t size)
{
    if (size > 0)
        text[0] = '\0';
}
