#define _GNU_SOURCE /* explicit_bzero */

#include "ndtd/curve_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "ndtd/log.h"
#include "socket_thread.h"
#include "zmq_calls.h"

enum { LINE_MAX_BYTES = 512 };

/* ---- files ---- */

static enum ndt_status write_key(const char *path, const char *key, mode_t mode, struct ndt_error *err)
{
    char line[NDTD_KEY_TEXT + 2];
    const int size = snprintf(line, sizeof(line), "%.*s\n", NDTD_KEY_TEXT, key);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return errno == EEXIST ? ndt_fail(err, NDT_ERR_IO, "%s: exists and is not overwritten", path)
                               : ndt_fail(err, NDT_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    errno = 0;
    int whole = write(fd, line, (size_t)size) == size && fsync(fd) == 0;
    const int failure = errno ? errno : EIO;
    if (close(fd) == 0 && whole)
        return NDT_OK;
    unlink(path);
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot be written: %s", path, strerror(failure));
}

enum ndt_status ndtd_make_keys(const char *prefix, struct ndt_error *err)
{
    char secret_path[1024], public_path[1024], public_key[NDTD_KEY_TEXT + 1], secret_key[NDTD_KEY_TEXT + 1];
    if (!*prefix || strlen(prefix) > sizeof(secret_path) - 8)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "names of key files have 1 to %zu bytes", sizeof(secret_path) - 8);
    snprintf(secret_path, sizeof(secret_path), "%s.secret", prefix);
    snprintf(public_path, sizeof(public_path), "%s.public", prefix);
    if (zmq_curve_keypair(public_key, secret_key) != 0)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "this libzmq was built without CURVE");
    enum ndt_status status = write_key(secret_path, secret_key, 0600, err);
    if (status == NDT_OK) {
        status = write_key(public_path, public_key, 0644, err);
        if (status != NDT_OK)
            unlink(secret_path);
    }
    explicit_bzero(secret_key, sizeof(secret_key));
    return status;
}

/* Returns 1 and the key, 0 for a comment or an empty line, -1 for anything else. '#' is a character of Z85, so a
 * key is tried first. */
static int parse_line(char *line, char key[NDTD_KEY_TEXT + 1])
{
    uint8_t bytes[NDTD_KEY_BYTES];
    char *word = line + strspn(line, " \t");
    const size_t length = strcspn(word, " \t\r\n");
    const char *rest = word + length + strspn(word + length, " \t\r\n");
    if (length == NDTD_KEY_TEXT) {
        memcpy(key, word, length);
        key[length] = '\0';
        if (zmq_z85_decode(bytes, key))
            return *rest == '\0' || *rest == '#' ? 1 : -1;
    }
    return length == 0 || *word == '#' ? 0 : -1;
}

/* Calls `take` for every key. */
static enum ndt_status read_keys(const char *path, FILE *file, void *list,
                                 enum ndt_status (*take)(void *, const char *key, struct ndt_error *),
                                 struct ndt_error *err)
{
    char line[LINE_MAX_BYTES], key[NDTD_KEY_TEXT + 1];
    enum ndt_status status = NDT_OK;
    for (unsigned number = 1; status == NDT_OK && fgets(line, sizeof(line), file); number++) {
        const int whole = strchr(line, '\n') || feof(file);
        const int kind = whole ? parse_line(line, key) : -1;
        if (kind < 0)
            status = ndt_fail(err, NDT_ERR_FORMAT, "%s:%u: is not a Z85 key of %d characters", path, number,
                              NDTD_KEY_TEXT);
        else if (kind)
            status = take(list, key, err);
        if (status != NDT_OK && kind > 0)
            return ndt_fail_prefix(err, status, "%s:%u", path, number);
    }
    explicit_bzero(line, sizeof(line));
    explicit_bzero(key, sizeof(key));
    if (status == NDT_OK && ferror(file))
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    return status;
}

static enum ndt_status store_single_key(void *list, const char *key, struct ndt_error *err)
{
    char *out = list;
    if (*out)
        return ndt_fail(err, NDT_ERR_FORMAT, "a second key in a file that holds only one");
    memcpy(out, key, NDTD_KEY_TEXT + 1);
    return NDT_OK;
}

/* Checks owner and mode of a file. Whoever can replace a list of clients decides who may connect, and whoever can
 * read a secret key can pose as the server. The group may read it, so that it can belong to an administrator. */
static enum ndt_status check_access(const char *path, const struct stat *info, int secret, struct ndt_error *err)
{
    const unsigned mode = (unsigned)(info->st_mode & 07777);
    const unsigned long owner = info->st_uid;
    if (!S_ISREG(info->st_mode))
        return ndt_fail(err, NDT_ERR_IO, "%s: is not a regular file", path);
    if (info->st_uid != geteuid() && info->st_uid != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: owner %lu, mode %04o: belongs to another user; chown it", path, owner,
                        mode);
    if (secret && (mode & (S_IRWXO | S_IWGRP | S_IXGRP)))
        return ndt_fail(err, NDT_ERR_IO,
                        "%s: owner %lu, mode %04o: other users have access to this secret key; chmod 600 it", path,
                        owner, mode);
    if (mode & S_IWOTH)
        return ndt_fail(err, NDT_ERR_IO, "%s: owner %lu, mode %04o: every user can write to it; chmod 644 it", path,
                        owner, mode);
    return NDT_OK;
}

static enum ndt_status open_keys(const char *path, int secret, FILE **file, struct ndt_error *err)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO must not block */
    *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!*file && fd >= 0)
        close(fd);
    if (!*file)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    const enum ndt_status status = fstat(fileno(*file), &info) == 0
                                       ? check_access(path, &info, secret, err)
                                       : ndt_fail(err, NDT_ERR_IO, "%s: %s", path, strerror(errno));
    if (status != NDT_OK)
        fclose(*file);
    return status;
}

enum ndt_status ndtd_key_read(const char *path, int secret, char key[NDTD_KEY_TEXT + 1], struct ndt_error *err)
{
    FILE *file;
    key[0] = '\0';
    enum ndt_status status = open_keys(path, secret, &file, err);
    if (status != NDT_OK)
        return status;
    status = read_keys(path, file, key, store_single_key, err);
    fclose(file);
    if (status == NDT_OK && !*key)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no key", path);
    return status;
}

static enum ndt_status add_client(void *list, const char *key, struct ndt_error *err)
{
    struct ndtd_client_list *clients = list;
    if (clients->count == NDTD_MAX_CLIENTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d keys", NDTD_MAX_CLIENTS);
    uint8_t(*keys)[NDTD_KEY_BYTES] = realloc(clients->keys, (clients->count + 1) * sizeof(*keys));
    if (!keys)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu keys", clients->count + 1);
    clients->keys = keys;
    (void)zmq_z85_decode(keys[clients->count++], key);
    return NDT_OK;
}

enum ndt_status ndtd_client_list_read(struct ndtd_client_list *out, const char *path, struct ndt_error *err)
{
    FILE *file;
    *out = (struct ndtd_client_list){NULL, 0};
    enum ndt_status status = open_keys(path, 0, &file, err);
    if (status != NDT_OK)
        return status;
    status = read_keys(path, file, out, add_client, err);
    fclose(file);
    if (status == NDT_OK && out->count == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no key, so no client could connect", path);
    if (status != NDT_OK)
        ndtd_client_list_free(out);
    return status;
}

void ndtd_client_list_free(struct ndtd_client_list *list)
{
    free(list->keys);
    *list = (struct ndtd_client_list){NULL, 0};
}

int ndtd_client_list_has(const struct ndtd_client_list *list, const uint8_t key[NDTD_KEY_BYTES])
{
    for (size_t i = 0; i < list->count; i++)
        if (memcmp(list->keys[i], key, NDTD_KEY_BYTES) == 0)
            return 1;
    return 0;
}

/* ---- authentication (ZAP) ---- */

/* Message parts of a ZAP request, in order. */
enum { VERSION, REQUEST_ID, DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS, PARTS };

struct ndtd_zap_handler {
    void *socket;
    struct ndtd_client_list clients;
    struct ndtd_socket_thread thread;
};

static int is_text(zmq_msg_t *part, const char *text)
{
    return zmq_msg_size(part) == strlen(text) && memcmp(zmq_msg_data(part), text, strlen(text)) == 0;
}

/* Receives a whole request and returns its number of parts; parts beyond PARTS are dropped. */
static int receive_request(void *socket, zmq_msg_t *parts)
{
    int count = 0, more = 1;
    while (more) {
        zmq_msg_t extra;
        zmq_msg_t *part = count < PARTS ? &parts[count] : &extra;
        if (part == &extra)
            zmq_msg_init(&extra);
        if (ndtd_recv(part, socket) < 0)
            return -1;
        more = zmq_msg_more(part);
        if (part == &extra)
            zmq_msg_close(&extra);
        count++;
    }
    return count;
}

static int may_connect(const struct ndtd_zap_handler *handler, zmq_msg_t *parts, char *key_text)
{
    if (!is_text(&parts[MECHANISM], "CURVE") || zmq_msg_size(&parts[CREDENTIALS]) != NDTD_KEY_BYTES)
        return 0;
    const uint8_t *key = zmq_msg_data(&parts[CREDENTIALS]);
    zmq_z85_encode(key_text, key, NDTD_KEY_BYTES);
    return ndtd_client_list_has(&handler->clients, key);
}

static void reply(void *socket, zmq_msg_t *request_id, int allowed, const char *user)
{
    const char *code = allowed ? "200" : "400", *text = allowed ? "OK" : "not in the list of clients";
    ndtd_send(socket, "1.0", 3, ZMQ_SNDMORE);
    ndtd_send(socket, zmq_msg_data(request_id), zmq_msg_size(request_id), ZMQ_SNDMORE);
    ndtd_send(socket, code, 3, ZMQ_SNDMORE);
    ndtd_send(socket, text, strlen(text), ZMQ_SNDMORE);
    ndtd_send(socket, user, strlen(user), ZMQ_SNDMORE);
    ndtd_send(socket, "", 0, 0);
}

static void answer(const struct ndtd_zap_handler *handler)
{
    zmq_msg_t parts[PARTS];
    char key[NDTD_KEY_TEXT + 1] = "";
    for (int i = 0; i < PARTS; i++)
        zmq_msg_init(&parts[i]);
    const int count = receive_request(handler->socket, parts);
    if (count >= 0) {
        const int allowed = count == PARTS && is_text(&parts[VERSION], "1.0") && may_connect(handler, parts, key);
        if (!allowed)
            ndtd_log(NDTD_LOG_WARNING, "a client at %.*s is refused: its key %s is not in the list of clients",
                     (int)zmq_msg_size(&parts[ADDRESS]), (const char *)zmq_msg_data(&parts[ADDRESS]), key);
        reply(handler->socket, &parts[REQUEST_ID], allowed, allowed ? key : "");
    }
    for (int i = 0; i < PARTS; i++)
        zmq_msg_close(&parts[i]);
}

static void *run(void *argument)
{
    const struct ndtd_zap_handler *handler = argument;
    while (ndtd_socket_thread_wait(&handler->thread, handler->socket))
        answer(handler);
    return NULL;
}

enum ndt_status ndtd_zap_start(struct ndtd_zap_handler **out, void *context, struct ndtd_client_list *clients,
                               struct ndt_error *err)
{
    const int no_linger = 0;
    struct ndtd_zap_handler *handler = calloc(1, sizeof(*handler));
    if (!handler)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the ZAP handler");
    enum ndt_status status = NDT_OK;
    handler->socket = zmq_socket(context, ZMQ_REP);
    if (!handler->socket || zmq_setsockopt(handler->socket, ZMQ_LINGER, &no_linger, sizeof(no_linger)) != 0 ||
        zmq_bind(handler->socket, "inproc://zeromq.zap.01") != 0)
        status = ndt_fail(err, NDT_ERR_IO, "ZAP handler: %s", zmq_strerror(errno));
    handler->clients = *clients;
    if (status == NDT_OK)
        status = ndtd_socket_thread_start(&handler->thread, "ndt-keys", run, handler, err);
    if (status != NDT_OK) {
        if (handler->socket)
            zmq_close(handler->socket);
        free(handler);
        return status;
    }
    *clients = (struct ndtd_client_list){NULL, 0};
    *out = handler;
    return NDT_OK;
}

void ndtd_zap_stop(struct ndtd_zap_handler *handler)
{
    if (!handler)
        return;
    ndtd_socket_thread_stop(&handler->thread);
    zmq_close(handler->socket);
    ndtd_client_list_free(&handler->clients);
    free(handler);
}
