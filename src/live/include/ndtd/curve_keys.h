/** @file
 * @brief CURVE keys for tcp sockets: key files, lists of clients, and the handler that admits clients.
 *
 * Key files are text with Z85 keys of 40 characters. The functions on files have no state and may be called by any
 * thread. */
#ifndef NDTD_CURVE_KEYS_H
#define NDTD_CURVE_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_KEY_TEXT    40   /**< characters of a key as text */
#define NDTD_KEY_BYTES   32   /**< bytes of a decoded key */
#define NDTD_MAX_CLIENTS 4096 /**< keys in a list at most */

/** Creates a key pair: PREFIX.secret (mode 0600) and PREFIX.public. Existing files are not overwritten; on failure
 * neither file remains. */
NDT_MUST_CHECK enum ndt_status ndtd_make_keys(const char *prefix, struct ndt_error *err);

/** Reads the only key of a file. Comments as in a client list. The file has to belong to this user or to root;
 * others may not write to it, and only its group may read a secret key. Otherwise the line names owner and mode. */
NDT_MUST_CHECK enum ndt_status ndtd_key_read(const char *path, int secret, char key[NDTD_KEY_TEXT + 1],
                                             struct ndt_error *err);

/** Public keys of the allowed clients. */
struct ndtd_client_list {
    uint8_t (*keys)[NDTD_KEY_BYTES];
    size_t count;
};
/** Reads one public key per line, optionally followed by '#' and a comment; lines that start with '#' and are not a
 * key are comments ('#' may be the first character of a key). Errors name file and line; a list without keys is an
 * error, because no client could connect. Owner and mode as for a public key. */
NDT_MUST_CHECK enum ndt_status ndtd_client_list_read(struct ndtd_client_list *out, const char *path,
                                                     struct ndt_error *err);
/** Frees the keys; allowed on an empty list. */
void ndtd_client_list_free(struct ndtd_client_list *list);
/** Returns whether the list has this key. */
int ndtd_client_list_has(const struct ndtd_client_list *list, const uint8_t key[NDTD_KEY_BYTES]);

struct ndtd_zap_handler;
/** Starts the thread that answers libzmq's authentication requests (ZAP, ZeroMQ RFC 27) at inproc://zeromq.zap.01:
 * clients in the list are admitted. Stop it before `context` is terminated. Takes ownership of the list. */
NDT_MUST_CHECK enum ndt_status ndtd_zap_start(struct ndtd_zap_handler **out, void *context,
                                              struct ndtd_client_list *clients, struct ndt_error *err);
/** NULL is allowed. */
void ndtd_zap_stop(struct ndtd_zap_handler *handler);

#ifdef __cplusplus
}
#endif
#endif
