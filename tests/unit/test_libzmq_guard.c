/* Clients of the sockets that made libzmq abort, or could keep what others need. */
#include <netinet/tcp.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "libzmq_guard.h"
#include "live_peer.h"
#include "raw_peer.h"
#include "run_tests.h"
#include "temp_dir.h"

enum { MESSAGES = 64 };

static struct ndtd_sockets *sockets;
static struct ndtd_endpoint endpoint;
static void *bound, *context;
static struct ndt_error err;

static void set_up(void)
{
    temp_dir_make();
    ck_assert_int_eq(ndtd_sockets_open(&sockets, NULL, &err), NDT_OK);
    context = zmq_ctx_new();
}

static void tear_down(void)
{
    zmq_ctx_term(context);
    ndtd_socket_close(bound, &endpoint);
    ndtd_sockets_close(sockets);
    temp_dir_remove();
}

/* A PULL socket at temp_path("s"). */
static void bind_socket(int received, int connections)
{
    endpoint = live_endpoint("ipc://%s", temp_path("s"));
    endpoint.receive_high_water_mark = received;
    endpoint.max_connections = connections;
    must(ndtd_socket_bind(&bound, sockets, ZMQ_PULL, &endpoint, &err));
    live_int(bound, ZMQ_RCVTIMEO, LIVE_WAIT_MS);
}

static void receives(int count)
{
    char text[8];
    for (int i = 0; i < count; i++)
        ck_assert_msg(zmq_recv(bound, text, sizeof(text), 0) == 5, "message %d of %d", i, count);
}

/* Sends one message from a new client. */
static void is_alive(void)
{
    void *client = live_connect(context, ZMQ_PUSH, endpoint.address);
    ck_assert_int_eq(zmq_send(client, "hello", 5, 0), 5);
    receives(1);
    zmq_close(client);
}

/* A client sends more than the queue takes, in one piece with a PING behind the 16th message, and leaves; its
 * messages wait for the reader for `wait_ms`. */
static void leave_messages(int with_ping, int wait_ms)
{
    uint8_t out[1024];
    size_t size = 0;
    const int fd = raw_open(temp_path("s"), "PUSH");
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < MESSAGES; i++) {
        size = raw_frame(out, size, 0, "hello", 5);
        if (with_ping && i == 15)
            size = raw_frame(out, size, 4, "\4PING\0\0", 7);
    }
    ck_assert(raw_write(fd, out, size));
    close(fd);
    live_pause(wait_ms);
    receives(MESSAGES);
    is_alive();
}

FIXTURE(set_up, tear_down)

/* Two seconds: heartbeats, where a socket has them, are due. */
TEST(test_client_leaves)
{
    bind_socket(4, 64);
    leave_messages(0, 2500);
}

TEST(test_client_with_heartbeats_leaves)
{
    bind_socket(4, 64);
    for (int i = 0; i < 20; i++)
        leave_messages(1, 5);
}

/* libzmq closes its side of a connection a little later than the client. */
static int open_when_admitted(void)
{
    int fd = raw_open(temp_path("s"), "PUSH");
    for (int i = 0; i < LIVE_WAIT_MS / 10 && fd < 0; i++) {
        live_pause(10);
        fd = raw_open(temp_path("s"), "PUSH");
    }
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* A client stays while others come and go; the one beyond the limit is closed. */
TEST(test_connection_limit)
{
    int clients[3];
    bind_socket(1000, 3);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++)
            clients[i] = open_when_admitted();
        const int refused = raw_connect(temp_path("s"));
        ck_assert(raw_is_closed(refused, RAW_WAIT_MS));
        close(refused);
        for (int i = 0; i < 3; i++) {
            ck_assert(raw_write(clients[i], (const uint8_t *)"\0\5hello", 7));
            receives(1);
        }
        for (int i = 0; i < 3; i++)
            close(clients[i]);
    }
    is_alive();
}

/* A client of libzmq beyond the limit connects again until there is a place. */
TEST(test_refused_client_gets_in_later)
{
    bind_socket(1000, 1);
    const unsigned long long before = ndtd_guard_refused();
    const int first = open_when_admitted();
    void *second = live_connect(context, ZMQ_PUSH, endpoint.address);
    for (int i = 0; i < 500 && ndtd_guard_refused() < before + 2; i++)
        live_pause(10);
    ck_assert_uint_ge(ndtd_guard_refused(), before + 2);
    ck_assert_int_lt(zmq_send(second, "hello", 5, ZMQ_DONTWAIT), 0);
    close(first);
    ck_assert_int_eq(zmq_send(second, "hello", 5, 0), 5);
    receives(1);
    zmq_close(second);
}

static int tcp_connect(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    name.sin_port = htons((uint16_t)atoi(strrchr(endpoint.address, ':') + 1));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    return fd;
}

/* The limit also holds over tcp, for peers that have shown no key, and with two sockets, each with a limit of its
 * own. */
TEST(test_connection_limit_over_tcp)
{
    void *other;
    int clients[3];
    const struct ndtd_endpoint local = live_endpoint("ipc://%s", temp_path("s"));
    ck_assert_int_eq(ndtd_socket_bind(&other, sockets, ZMQ_PULL, &local, &err), NDT_OK);
    endpoint = live_tcp();
    endpoint.max_connections = 2;
    ck_assert_int_eq(ndtd_socket_bind(&bound, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    live_int(bound, ZMQ_RCVTIMEO, LIVE_WAIT_MS);
    for (int i = 0; i < 3; i++)
        clients[i] = tcp_connect();
    ck_assert(raw_is_closed(clients[2], 1000)); /* sooner than by the limit of the handshake */
    for (int i = 0; i < 3; i++)
        ck_assert_int_ge(raw_open(temp_path("s"), "PUSH"), 0);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    live_pause(20);
    is_alive();
    ndtd_socket_close(other, &local);
}

/* More connections than descriptors: some are refused, the reserve stays, and nothing ends. */
TEST(test_no_descriptors)
{
    enum { CLIENTS = 400, FILES = 128 };
    static int clients[CLIENTS];
    struct rlimit all, few;
    bind_socket(1000, 1000);
    void *early = live_connect(context, ZMQ_PUSH, endpoint.address);
    ck_assert_int_eq(zmq_send(early, "hello", 5, 0), 5);
    receives(1);
    /* The clients are in this process: their descriptors come first, then the limit sinks for those of libzmq. */
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    ck_assert_uint_ge(all.rlim_cur, 2 * CLIENTS + FILES);
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_ge(clients[i] = socket(AF_UNIX, SOCK_STREAM, 0), 0);
    few = all;
    few.rlim_cur = CLIENTS + FILES;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", temp_path("s"));
    for (int i = 0; i < CLIENTS; i++)
        (void)!connect(clients[i], (const struct sockaddr *)&name, sizeof(name));
    live_pause(100);
    const int file = open("/dev/null", O_RDONLY);
    ck_assert_int_ge(file, 0); /* of the reserve */
    ck_assert_int_eq(zmq_send(early, "hello", 5, 0), 5);
    receives(1);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    close(file);
    live_pause(100);
    is_alive();
    zmq_close(early);
}

/* A peer that says nothing does not keep its place. */
TEST(test_silent_peer)
{
    bind_socket(1000, 64);
    const int fd = raw_connect(temp_path("s"));
    ck_assert_int_ge(fd, 0);
    ck_assert(raw_is_closed(fd, RAW_WAIT_MS));
    close(fd);
    is_alive();
}

static int tcp_option(int fd, int level, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);
    ck_assert_int_eq(getsockopt(fd, level, option, &value, &size), 0);
    return value;
}

/* The system finds out within 10 s that a tcp peer is gone: while nothing is sent, and while something is. */
TEST(test_keepalive)
{
    zmq_msg_t message;
    endpoint = live_tcp();
    ck_assert_int_eq(ndtd_socket_bind(&bound, sockets, ZMQ_PULL, &endpoint, &err), NDT_OK);
    live_int(bound, ZMQ_RCVTIMEO, LIVE_WAIT_MS);
    void *client = live_connect(context, ZMQ_PUSH, endpoint.address);
    ck_assert_int_eq(zmq_send(client, "hello", 5, 0), 5);
    zmq_msg_init(&message);
    ck_assert_int_eq(zmq_msg_recv(&message, bound, 0), 5);
    const int fd = zmq_msg_get(&message, ZMQ_SRCFD);
    ck_assert_int_eq(tcp_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_le(tcp_option(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
                         tcp_option(fd, IPPROTO_TCP, TCP_KEEPINTVL) * tcp_option(fd, IPPROTO_TCP, TCP_KEEPCNT),
                     10);
    ck_assert_int_le(tcp_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 10000);
    ck_assert_int_ge(tcp_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 6000);
    zmq_msg_close(&message);
    zmq_close(client);
}
