/* Keys of CURVE (tcp sockets off the loopback): text files with Z85 keys of 40 characters. No state, any thread. */
#ifndef NDTD_CURVE_KEYS_H
#define NDTD_CURVE_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_KEY_TEXT    40 /* characters */
#define NDTD_KEY_BYTES   32
#define NDTD_MAX_CLIENTS 4096

/* Makes a new pair: PREFIX.secret (mode 0600) and PREFIX.public. Existing files are not overwritten; on failure
 * neither is left. */
NDT_MUST_CHECK enum ndt_status ndtd_make_keys(const char *prefix, struct ndt_error *err);

/* The one key in a file. secret: the file must not be readable for others. Comments as in a list of clients. */
NDT_MUST_CHECK enum ndt_status ndtd_key_read(const char *path, int secret, char key[NDTD_KEY_TEXT + 1],
                                             struct ndt_error *err);

struct ndtd_client_list {
    uint8_t (*keys)[NDTD_KEY_BYTES];
    size_t count;
};
/* One public key per line, then what you like behind a '#'; lines that start with '#' and are no key are comments
 * ('#' may be the first character of a key). Errors name file and line; a list without keys lets nobody in and is
 * an error. */
NDT_MUST_CHECK enum ndt_status ndtd_client_list_read(struct ndtd_client_list *out, const char *path,
                                                     struct ndt_error *err);
void ndtd_client_list_free(struct ndtd_client_list *list);
int ndtd_client_list_has(const struct ndtd_client_list *list, const uint8_t key[NDTD_KEY_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
