/** @file
 * @brief Tests of the daemon's sockets: addresses, paths, ports, modes, keys. */
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "live_peer.h"
#include "ndtd/curve_keys.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndtd_sockets *sockets;
static struct ndt_error err;

static void set_up(void)
{
    temp_dir_make();
    err.text[0] = '\0';
    ck_assert_int_eq(ndtd_sockets_open(&sockets, NULL, &err), NDT_OK);
}

static void tear_down(void)
{
    ndtd_sockets_close(sockets);
    temp_dir_remove();
}

static struct ndtd_endpoint ipc(const char *name)
{
    return live_endpoint("ipc://%s", temp_path(name));
}

static unsigned mode_of(const char *path)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void says(const char *words)
{
    ck_assert_msg(strstr(err.text, words) != NULL, "no '%s' in '%s'", words, err.text);
    ck_assert_msg(strchr(err.text, '\n') == NULL, "more than one line: '%s'", err.text);
}

/* Sends one message from a new client through a bound PULL socket. */
static void passes(void *bound, const char *address)
{
    char text[8] = "";
    void *context = zmq_ctx_new(), *client = live_connect(context, ZMQ_PUSH, address);
    live_int(bound, ZMQ_RCVTIMEO, LIVE_WAIT_MS);
    ck_assert_int_eq(zmq_send(client, "hello", 5, 0), 5);
    ck_assert_int_eq(zmq_recv(bound, text, sizeof(text), 0), 5);
    ck_assert_str_eq(text, "hello");
    zmq_close(client);
    zmq_ctx_term(context);
}

FIXTURE(set_up, tear_down)

TEST(test_addresses)
{
    static const struct {
        const char *address, *words; /* NULL: good */
    } cases[] = {
        {"ipc:///run/ndtd/scans", NULL},
        {"ipc://@ndtd.scans", NULL},
        {"tcp://127.0.0.1:5555", NULL},
        {"tcp://127.9.8.7:5555", NULL},
        {"tcp://localhost:5555", NULL},
        {"tcp://[::1]:5555", NULL},
        {"inproc://x", "is not the address"},
        {"", "is not the address"},
        {"/run/ndtd/scans", "is not the address"},
        {"udp://127.0.0.1:1", "is not the address"},
        {"ipc://", "a path is missing"},
        {"ipc://@", "a path is missing"},
        {"ipc://*", "cannot be found by clients"},
        {"ipc:///run/", "is a directory"},
        {"ipc:///"
         "12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678",
         NULL},
        {"ipc:///"
         "123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
         "0123456789",
         "at most 107"},
        {"tcp://127.0.0.1", "is not tcp://HOST:PORT"},
        {"tcp://:5555", "is not tcp://HOST:PORT"},
        {"tcp://127.0.0.1:", "is not a port"},
        {"tcp://127.0.0.1:0", "is not a port"},
        {"tcp://127.0.0.1:65536", "is not a port"},
        {"tcp://127.0.0.1:-1", "is not a port"},
        {"tcp://127.0.0.1:x", "is not a port"},
        {"tcp://::1:5555", "needs brackets"},
        {"tcp://[::g]:5555", "is not an IPv6 address"},
        {"tcp://[abc]:5555", "'abc' is not an IPv6 address"},
        {"tcp://[::1:5555", "needs brackets"},
        {"tcp://127.0.0.1:1", NULL},
        {"tcp://127.0.0.1:65535", NULL},
        {"tcp://126.255.255.255:5555", "without keys"},
        {"tcp://127.0.0.1:5555\n", "non-printable byte"},
        {"tcp://*:5555", "without keys"},
        {"tcp://0.0.0.0:5555", "without keys"},
        {"tcp://128.0.0.1:5555", "without keys"},
        {"tcp://192.168.1.1:5555", "ipc://"},
        {"tcp://eth0:5555", "without keys"},
        {"tcp://localhost.example.org:5555", "without keys"},
        {"tcp://127.0.0.1.example.org:5555", "without keys"},
        {"tcp://[::]:5555", "without keys"},
        {"tcp://[::ffff:10.0.0.1]:5555", "without keys"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ndtd_endpoint endpoint = live_endpoint("%s", cases[i].address);
        const enum ndt_status status = ndtd_endpoint_check(&endpoint, NULL, &err);
        ck_assert_msg(status == (cases[i].words ? NDT_ERR_ARGUMENT : NDT_OK), "%s: %s", cases[i].address, err.text);
        if (cases[i].words)
            says(cases[i].words);
    }
    for (int length = 107; length <= 108; length++) { /* of a path, without the NUL */
        struct ndtd_endpoint endpoint = live_endpoint("%s", "ipc:///");
        memset(endpoint.address + 7, 'x', (size_t)length - 1);
        endpoint.address[6 + length] = '\0';
        ck_assert_int_eq(ndtd_endpoint_check(&endpoint, NULL, &err) == NDT_OK, length == 107);
    }
}

TEST(test_limits)
{
    void *socket;
    struct ndtd_endpoint endpoint = ipc("s");
    endpoint.receive_high_water_mark = 0;
    ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_ARGUMENT);
    says("high-water mark of 0");
    endpoint = ipc("s");
    endpoint.max_message_bytes = -1;
    ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_ARGUMENT);
    says("is not positive");
    endpoint = ipc("s");
    endpoint.ipc_mode = 0777;
    ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_ARGUMENT);
    says("mode 0777");
    ck_assert(!temp_exists(temp_path("s")));
}

static long long option_of(void *socket, int option)
{
    int value = 0;
    size_t size = sizeof(value);
    ck_assert_int_eq(zmq_getsockopt(socket, option, &value, &size), 0);
    return value;
}

static long long max_bytes_of(void *socket)
{
    int64_t value = 0;
    size_t size = sizeof(value);
    ck_assert_int_eq(zmq_getsockopt(socket, ZMQ_MAXMSGSIZE, &value, &size), 0);
    return value;
}

/* Every type of socket is bounded, does not linger, and detects silent peers. */
TEST(test_options)
{
    static const int types[] = {ZMQ_SUB, ZMQ_PULL, ZMQ_XPUB, ZMQ_ROUTER};
    for (size_t i = 0; i < 4; i++) {
        void *socket;
        struct ndtd_endpoint endpoint = ipc("s");
        endpoint.send_high_water_mark = 17;
        endpoint.receive_high_water_mark = 18;
        ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, types[i], &endpoint, &err), NDT_OK);
        ck_assert_int_eq(option_of(socket, ZMQ_LINGER), 0);
        ck_assert_int_eq(option_of(socket, ZMQ_SNDHWM), 17);
        ck_assert_int_eq(option_of(socket, ZMQ_RCVHWM), 18);
        ck_assert_int_eq(max_bytes_of(socket), 1000000);
        ck_assert_int_eq(option_of(socket, ZMQ_HEARTBEAT_IVL), 0);
        ck_assert_int_eq(option_of(socket, ZMQ_HANDSHAKE_IVL), 2000);
        ndtd_socket_close(socket, &endpoint);
    }
}

/* The mode is the requested one under any umask, and closing the socket removes the file. */
TEST(test_modes)
{
    static const mode_t masks[] = {0, 022, 077};
    for (size_t i = 0; i < 6; i++) {
        void *socket;
        struct ndtd_endpoint endpoint = ipc("s");
        endpoint.ipc_mode = i % 2 ? 0660 : 0600;
        const mode_t before = umask(masks[i / 2]);
        ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
        ck_assert_uint_eq(umask(before), masks[i / 2]);
        ck_assert_uint_eq(mode_of(temp_path("s")), endpoint.ipc_mode);
        passes(socket, endpoint.address);
        ndtd_socket_close(socket, &endpoint);
        ck_assert(!temp_exists(temp_path("s")));
    }
}

TEST(test_ipc_in_use)
{
    void *first, *second;
    const struct ndtd_endpoint endpoint = ipc("s");
    ck_assert_int_eq(ndtd_socket_bind(&first, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    ck_assert_int_eq(ndtd_socket_bind(&second, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_IO);
    says("is in use by process");
    says("needs RUNTIME_DIRECTORY=DIR, or sockets.* of its own");
    says(endpoint.address);
    passes(first, endpoint.address);
    ndtd_socket_close(first, &endpoint);
    ck_assert_int_eq(ndtd_socket_bind(&second, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    passes(second, endpoint.address);
    /* The first socket is closed; its late cleanup must not remove the path. */
    live_pause(50);
    ck_assert(temp_exists(temp_path("s")));
    ndtd_socket_close(second, &endpoint);
}

static void leave_socket_file(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    close(fd);
    ck_assert(temp_exists(path));
}

TEST(test_ipc_stale)
{
    void *socket;
    const struct ndtd_endpoint endpoint = ipc("s");
    leave_socket_file(temp_path("s"));
    ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    passes(socket, endpoint.address);
    ndtd_socket_close(socket, &endpoint);
}

TEST(test_ipc_refusals)
{
    void *socket;
    struct ndtd_endpoint endpoint = ipc("file");
    temp_text("file", "precious");
    ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_IO);
    says("is not a socket");
    ck_assert(temp_exists(temp_path("file")));
    endpoint = ipc("nosuch/s");
    ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_IO);
    says("cannot open its directory");
    says("nosuch");
}

/* A path that another process has replaced remains after close. */
TEST(test_ipc_taken_over)
{
    void *bound;
    int ready[2];
    const struct ndtd_endpoint endpoint = ipc("s");
    ck_assert_int_eq(ndtd_socket_bind(&bound, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    ck_assert_int_eq(unlink(temp_path("s")), 0);
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        snprintf(name.sun_path, sizeof(name.sun_path), "%s", temp_path("s"));
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        const char ok = bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && listen(fd, 5) == 0 ? 'y' : 'n';
        if (write(ready[1], &ok, 1) == 1)
            pause();
        _exit(0);
    }
    char ok = 0;
    ck_assert_int_eq(read(ready[0], &ok, 1), 1);
    ck_assert_int_eq(ok, 'y');
    ndtd_socket_close(bound, &endpoint);
    ck_assert(temp_exists(temp_path("s")));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

TEST(test_abstract)
{
    void *first, *second;
    char name[64];
    snprintf(name, sizeof(name), "ndtd.test.%ld", (long)getpid());
    const struct ndtd_endpoint endpoint = live_endpoint("ipc://@%s", name);
    ck_assert_int_eq(ndtd_socket_bind(&first, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    passes(first, endpoint.address);
    ck_assert_int_eq(ndtd_socket_bind(&second, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_IO);
    says("is in use");
    ndtd_socket_close(first, &endpoint);
}

TEST(test_tcp_in_use)
{
    void *first, *second;
    const struct ndtd_endpoint endpoint = live_tcp();
    ck_assert_int_eq(ndtd_socket_bind(&first, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    passes(first, endpoint.address);
    ck_assert_int_eq(ndtd_socket_bind(&second, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_IO);
    says("is in use");
    says(endpoint.address);
    ndtd_socket_close(first, &endpoint);
    const struct ndtd_endpoint open = live_endpoint("%s", "tcp://0.0.0.0:5555");
    ck_assert_int_eq(ndtd_socket_bind(&second, sockets, ZMQ_PULL, &open, &err), NDT_ERR_ARGUMENT);
    says("without keys");
}

TEST(test_localhost)
{
    void *socket;
    struct ndtd_endpoint numeric = live_tcp();
    const struct ndtd_endpoint endpoint = live_endpoint("tcp://localhost:%s", strrchr(numeric.address, ':') + 1);
    ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    passes(socket, numeric.address);
    ndtd_socket_close(socket, &endpoint);
}

/* A message beyond the limit is not received and does not affect other clients. */
TEST(test_oversize)
{
    void *socket;
    static char big[5000];
    struct ndtd_endpoint endpoint = ipc("s");
    endpoint.max_message_bytes = 1000;
    ck_assert_int_eq(ndtd_socket_bind(&socket, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    void *context = zmq_ctx_new(), *client = live_connect(context, ZMQ_PUSH, endpoint.address);
    ck_assert_int_eq(zmq_send(client, big, sizeof(big), 0), (int)sizeof(big));
    live_int(socket, ZMQ_RCVTIMEO, 100);
    ck_assert_int_eq(zmq_recv(socket, big, sizeof(big), 0), -1);
    zmq_close(client);
    zmq_ctx_term(context);
    passes(socket, endpoint.address);
    ndtd_socket_close(socket, &endpoint);
}

TEST(test_make_keys)
{
    char prefix[512], secret[NDTD_KEY_TEXT + 1], public[NDTD_KEY_TEXT + 1], derived[NDTD_KEY_TEXT + 1];
    snprintf(prefix, sizeof(prefix), "%s", temp_path("server"));
    const mode_t before = umask(022);
    ck_assert_int_eq(ndtd_make_keys(prefix, &err), NDT_OK);
    umask(before);
    ck_assert_uint_eq(mode_of(temp_path("server.secret")), 0600);
    ck_assert_int_eq(ndtd_key_read(temp_path("server.secret"), 1, secret, &err), NDT_OK);
    ck_assert_int_eq(ndtd_key_read(temp_path("server.public"), 0, public, &err), NDT_OK);
    ck_assert_int_eq(zmq_curve_public(derived, secret), 0);
    ck_assert_str_eq(public, derived);
    ck_assert_int_eq(ndtd_make_keys(prefix, &err), NDT_ERR_IO);
    says("not overwritten");
    ck_assert_int_eq(unlink(temp_path("server.secret")), 0);
    ck_assert_int_eq(ndtd_make_keys(prefix, &err), NDT_ERR_IO);
    says("server.public");
    ck_assert(!temp_exists(temp_path("server.secret")));
    ck_assert_int_eq(ndtd_make_keys(temp_path("nosuch/x"), &err), NDT_ERR_IO);
}

#define KEY_A "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define KEY_B "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"

TEST(test_key_files)
{
    char key[NDTD_KEY_TEXT + 1];
    struct ndtd_client_list list;
    temp_text("good",
              "# clients\n\n" KEY_A "\n  " KEY_B "   # the robot\r\n########################################\n");
    ck_assert_int_eq(ndtd_client_list_read(&list, temp_path("good"), &err), NDT_OK);
    ck_assert_uint_eq(list.count, 2);
    uint8_t bytes[NDTD_KEY_BYTES];
    zmq_z85_decode(bytes, KEY_B);
    ck_assert(ndtd_client_list_has(&list, bytes));
    bytes[31] ^= 1;
    ck_assert(!ndtd_client_list_has(&list, bytes));
    ndtd_client_list_free(&list);
    temp_text("bad", KEY_A "\n" KEY_B "x\n");
    ck_assert_int_eq(ndtd_client_list_read(&list, temp_path("bad"), &err), NDT_ERR_FORMAT);
    says("bad:2: is not a Z85 key");
    temp_text("empty", "# no clients\n");
    ck_assert_int_eq(ndtd_client_list_read(&list, temp_path("empty"), &err), NDT_ERR_FORMAT);
    says("no client could connect");
    ck_assert_int_eq(ndtd_client_list_read(&list, temp_path("nosuch"), &err), NDT_ERR_IO);
    temp_text("key", KEY_A "\n");
    ck_assert_int_eq(chmod(temp_path("key"), 0644), 0);
    ck_assert_int_eq(ndtd_key_read(temp_path("key"), 1, key, &err), NDT_ERR_IO);
    says("chmod 600");
    ck_assert_int_eq(ndtd_key_read(temp_path("key"), 0, key, &err), NDT_OK);
    ck_assert_int_eq(ndtd_key_read(temp_path("good"), 0, key, &err), NDT_ERR_FORMAT);
    says("good:4: a second key");
    ck_assert_int_eq(ndtd_key_read(temp_path("empty"), 0, key, &err), NDT_ERR_FORMAT);
    says("contains no key");
}

TEST(test_number_of_clients)
{
    struct ndtd_client_list list;
    char reason[64];
    FILE *file = fopen(temp_path("many"), "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < NDTD_MAX_CLIENTS; i++)
        fputs(KEY_A "\n", file);
    fflush(file);
    ck_assert_int_eq(ndtd_client_list_read(&list, temp_path("many"), &err), NDT_OK);
    ck_assert_uint_eq(list.count, NDTD_MAX_CLIENTS);
    ndtd_client_list_free(&list);
    fputs(KEY_B "\n", file);
    fclose(file);
    ck_assert_int_eq(ndtd_client_list_read(&list, temp_path("many"), &err), NDT_ERR_LIMIT);
    snprintf(reason, sizeof(reason), "many:%d: more than %d keys", NDTD_MAX_CLIENTS + 1, NDTD_MAX_CLIENTS);
    says(reason);
}

struct pair {
    char public[NDTD_KEY_TEXT + 1], secret[NDTD_KEY_TEXT + 1];
};

/* Whether a client with these keys (NULL: none) gets a message through. */
static int gets_in(void *bound, const char *address, const char *server_key, const struct pair *keys, int wait_ms)
{
    char text[8];
    void *context = zmq_ctx_new(), *client = live_socket(context, ZMQ_PUSH, wait_ms);
    if (keys) {
        ck_assert_int_eq(zmq_setsockopt(client, ZMQ_CURVE_SERVERKEY, server_key, NDTD_KEY_TEXT + 1), 0);
        ck_assert_int_eq(zmq_setsockopt(client, ZMQ_CURVE_PUBLICKEY, keys->public, NDTD_KEY_TEXT + 1), 0);
        ck_assert_int_eq(zmq_setsockopt(client, ZMQ_CURVE_SECRETKEY, keys->secret, NDTD_KEY_TEXT + 1), 0);
    }
    ck_assert_int_eq(zmq_connect(client, address), 0);
    live_int(bound, ZMQ_RCVTIMEO, wait_ms);
    /* The client considers a connection established before the server has answered; only the arrival of the
     * message counts. */
    const int in = zmq_send(client, "hello", 5, 0) == 5 && zmq_recv(bound, text, sizeof(text), 0) == 5;
    zmq_close(client);
    zmq_ctx_term(context);
    return in;
}

TEST(test_curve)
{
    struct pair server, friend, stranger;
    struct ndtd_security security = {"", ""};
    struct ndtd_sockets *secured;
    char list[128];
    void *socket;
    zmq_curve_keypair(server.public, server.secret);
    zmq_curve_keypair(friend.public, friend.secret);
    zmq_curve_keypair(stranger.public, stranger.secret);
    snprintf(security.server_secret_key_file, sizeof(security.server_secret_key_file), "%s",
             temp_text("server.secret", server.secret));
    chmod(security.server_secret_key_file, 0600);
    ck_assert_int_eq(ndtd_sockets_open(&secured, &security, &err), NDT_ERR_ARGUMENT);
    says("the list of clients is missing");
    snprintf(security.allowed_clients_file, sizeof(security.allowed_clients_file), "%s", temp_path("nosuch"));
    ck_assert_int_eq(ndtd_sockets_open(&secured, &security, &err), NDT_ERR_IO);
    says("nosuch: cannot be opened");
    snprintf(list, sizeof(list), "# may connect\n%s\n", friend.public);
    snprintf(security.allowed_clients_file, sizeof(security.allowed_clients_file), "%s",
             temp_text("clients", list));
    const struct ndtd_endpoint open = live_endpoint("%s", "tcp://0.0.0.0:5555"), endpoint = live_tcp();
    ck_assert_int_eq(ndtd_endpoint_check(&open, &security, &err), NDT_OK);
    ck_assert_int_eq(ndtd_sockets_open(&secured, &security, &err), NDT_OK);
    ck_assert_int_eq(ndtd_socket_bind(&socket, secured, ZMQ_PULL, &endpoint, &err), NDT_OK);
    ck_assert(gets_in(socket, endpoint.address, server.public, &friend, LIVE_WAIT_MS));
    ck_assert(!gets_in(socket, endpoint.address, server.public, &stranger, 150));
    ck_assert(!gets_in(socket, endpoint.address, stranger.public, &friend, 150));
    ck_assert(!gets_in(socket, endpoint.address, server.public, NULL, 150));
    ck_assert(gets_in(socket, endpoint.address, server.public, &friend, LIVE_WAIT_MS));
    ndtd_socket_close(socket, &endpoint);
    /* ipc needs no keys: access is controlled by the mode of the path. */
    const struct ndtd_endpoint local = ipc("s");
    ck_assert_int_eq(ndtd_socket_bind(&socket, secured, ZMQ_PULL, &local, &err), NDT_OK);
    passes(socket, local.address);
    ndtd_socket_close(socket, &local);
    ndtd_sockets_close(secured);
}
