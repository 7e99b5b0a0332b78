/* Not there yet. */
#include "ndt_search/field.h"

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
