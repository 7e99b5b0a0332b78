/** @file
 * @brief Tests of owner and mode of key files and lists of clients. */
#include <check.h>
#include <zmq.h>

#include "ndtd/curve_keys.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndt_error err;
static char key[NDTD_KEY_TEXT + 1];
static char path[512];

static void setup(void)
{
    char public[NDTD_KEY_TEXT + 1], secret[NDTD_KEY_TEXT + 1];
    temp_dir_make();
    zmq_curve_keypair(public, secret);
    snprintf(path, sizeof(path), "%s", temp_text("key", secret));
}

static enum ndt_status read_list(void)
{
    struct ndtd_client_list list = {0};
    const enum ndt_status status = ndtd_client_list_read(&list, path, &err);
    ndtd_client_list_free(&list);
    return status;
}

/* The line names the file, its owner and its mode. */
static void names_all(unsigned owner, const char *mode)
{
    char words[64];
    snprintf(words, sizeof(words), "owner %u, mode %s", owner, mode);
    ck_assert_msg(strstr(err.text, path) && strstr(err.text, words), "no '%s' in '%s'", words, err.text);
}

FIXTURE(setup, temp_dir_remove)

TEST(secret_keys_are_of_one_user)
{
    static const struct {
        mode_t mode;
        const char *text;
    } refused[] = {{0660, "0660"}, {0620, "0620"}, {0604, "0604"}, {0602, "0602"}, {0644, "0644"}};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        ck_assert_int_eq(chmod(path, refused[i].mode), 0);
        ck_assert_msg(ndtd_key_read(path, 1, key, &err) == NDT_ERR_IO, "mode %s is accepted", refused[i].text);
        names_all(getuid(), refused[i].text);
    }
    /* A group that may read: the file of an administrator for the user of the service. */
    for (mode_t mode = 0600; mode <= 0640; mode += 040) {
        ck_assert_int_eq(chmod(path, mode), 0);
        ck_assert_int_eq(ndtd_key_read(path, 1, key, &err), NDT_OK);
    }
}

TEST(lists_are_not_writable_for_all)
{
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(read_list(), NDT_OK);
    ck_assert_int_eq(chmod(path, 0664), 0);
    ck_assert_int_eq(read_list(), NDT_OK);
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(read_list(), NDT_ERR_IO);
    names_all(getuid(), "0666");
    ck_assert_int_eq(ndtd_key_read(path, 0, key, &err), NDT_ERR_IO);
}

TEST(files_of_others_are_refused)
{
    ck_assert_int_eq(chmod(path, 0644), 0);
    if (chown(path, 12345, (gid_t)-1) != 0)
        return; /* without privileges no file can be given away */
    ck_assert_int_eq(read_list(), NDT_ERR_IO);
    names_all(12345, "0644");
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(ndtd_key_read(path, 1, key, &err), NDT_ERR_IO);
    names_all(12345, "0600");
}

TEST(a_fifo_does_not_block)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(ndtd_key_read(path, 1, key, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "is not a regular file"));
}

/* Sends a request for admission as libzmq does and receives the code of the reply. */
static void ask_for_admission(void *socket, const char *mechanism, const void *credentials, size_t size,
                              char code[4])
{
    const char *parts[] = {"1.0", "1", "", "peer", "", mechanism};
    int more = 1;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        ck_assert_int_ge(zmq_send(socket, parts[i], strlen(parts[i]), ZMQ_SNDMORE), 0);
    ck_assert_int_ge(zmq_send(socket, credentials, size, 0), 0);
    for (int part = 0; more; part++) {
        char text[256];
        size_t option_size = sizeof(more);
        const int got = zmq_recv(socket, text, sizeof(text), 0);
        ck_assert_int_ge(got, 0);
        if (part == 2)
            snprintf(code, 4, "%.*s", got, text);
        ck_assert_int_eq(zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &option_size), 0);
    }
}

TEST(keys_of_the_list_are_admitted)
{
    char public[NDTD_KEY_TEXT + 1], secret[NDTD_KEY_TEXT + 1], code[4] = "";
    uint8_t bytes[2][NDTD_KEY_BYTES];
    struct ndtd_client_list list = {0};
    struct ndtd_zap_handler *handler;
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_REQ);
    for (size_t i = 0; i < 2; i++) {
        zmq_curve_keypair(public, secret);
        zmq_z85_decode(bytes[i], public);
        if (i == 0)
            snprintf(path, sizeof(path), "%s", temp_text("clients", public));
    }
    ck_assert_int_eq(ndtd_client_list_read(&list, path, &err), NDT_OK);
    ck_assert_int_eq(ndtd_zap_start(&handler, context, &list, &err), NDT_OK);
    ck_assert_int_eq(zmq_connect(socket, "inproc://zeromq.zap.01"), 0);
    const struct {
        const char *mechanism, *code;
        size_t key, size;
    } cases[] = {{"CURVE", "200", 0, NDTD_KEY_BYTES},
                 {"CURVE", "400", 1, NDTD_KEY_BYTES},
                 {"CURVE", "400", 0, NDTD_KEY_BYTES - 1},
                 {"NULL", "400", 0, NDTD_KEY_BYTES},
                 {"PLAIN", "400", 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ask_for_admission(socket, cases[i].mechanism, bytes[cases[i].key], cases[i].size, code);
        ck_assert_msg(strcmp(code, cases[i].code) == 0, "request %zu: %s instead of %s", i, code, cases[i].code);
    }
    zmq_close(socket);
    ndtd_zap_stop(handler);
    zmq_ctx_term(context);
}
