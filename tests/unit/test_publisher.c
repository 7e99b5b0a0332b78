/* The poses socket: results, the last one for late subscribers, slow subscribers do not delay the others. */
#include <pthread.h>
#include <stdatomic.h>

#include "live_peer.h"
#include "ndtd/publisher.h"
#include "raw_peer.h"
#include "resident_memory.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndtd_sockets *sockets;
static struct ndtd_publisher *publisher;
static struct ndtd_endpoint endpoint;
static void *context; /* context of the subscribers */
static struct ndt_error err;

static void set_up(void)
{
    temp_dir_make();
    endpoint = live_endpoint("ipc://%s", temp_path("poses"));
    ck_assert_int_eq(ndtd_sockets_open(&sockets, NULL, &err), NDT_OK);
    must(ndtd_publisher_open(&publisher, sockets, &endpoint, NULL, &err));
    context = zmq_ctx_new();
}

static void tear_down(void)
{
    zmq_ctx_term(context);
    ndtd_publisher_close(publisher);
    ndtd_sockets_close(sockets);
    ck_assert(!temp_exists(temp_path("poses")));
    temp_dir_remove();
}

static struct ndt_result_message result(uint64_t seq)
{
    struct ndt_result_message message = {.seq = seq, .stamp_ns = (int64_t)seq * 100, .frame_id = "map"};
    message.result.outcome = NDT_CONVERGED;
    message.result.T_map_sensor = ndt_pose_identity();
    return message;
}

static void send_one(struct ndtd_result_sender *sender, uint64_t seq)
{
    const struct ndt_result_message message = result(seq);
    must(ndtd_result_send(sender, &message, &err));
}

/* The seq of the next result; -1 without one. */
static long next_seq(void *subscriber)
{
    static uint8_t data[65536];
    struct ndt_result_message message;
    const int size = zmq_recv(subscriber, data, sizeof(data), 0);
    if (size < 0)
        return -1;
    must(ndt_result_decode(data, (size_t)size, &message, &err));
    ck_assert_str_eq(message.frame_id, "map");
    return (long)message.seq;
}

static void no_more(void *subscriber)
{
    live_int(subscriber, ZMQ_RCVTIMEO, 50);
    ck_assert_int_eq(next_seq(subscriber), -1);
    live_int(subscriber, ZMQ_RCVTIMEO, LIVE_WAIT_MS);
}

FIXTURE(set_up, tear_down)

TEST(test_all_subscribers_get_all_results)
{
    struct ndtd_result_sender *sender;
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    void *a = live_connect(context, ZMQ_SUB, endpoint.address),
         *b = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 2);
    for (uint64_t seq = 1; seq <= 100; seq++)
        send_one(sender, seq);
    for (long seq = 1; seq <= 100; seq++) {
        ck_assert_int_eq(next_seq(a), seq);
        ck_assert_int_eq(next_seq(b), seq);
    }
    live_until(ndtd_publisher_counters(publisher).published == 100);
    ck_assert_uint_eq(ndtd_publisher_counters(publisher).lost, 0);
    zmq_close(a);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    send_one(sender, 101);
    ck_assert_int_eq(next_seq(b), 101);
    zmq_close(b);
    live_until(ndtd_publisher_counters(publisher).subscribers == 0);
    ndtd_result_sender_close(sender);
}

/* A late subscriber gets the last result once; the others do not get it again. */
TEST(test_last_value)
{
    struct ndtd_result_sender *sender;
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    void *early = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    no_more(early); /* there is no last value yet */
    send_one(sender, 1);
    send_one(sender, 2);
    ck_assert_int_eq(next_seq(early), 1);
    ck_assert_int_eq(next_seq(early), 2);
    for (int i = 0; i < 3; i++) {
        void *late = live_connect(context, ZMQ_SUB, endpoint.address);
        ck_assert_int_eq(next_seq(late), 2);
        no_more(late);
        zmq_close(late);
        live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    }
    no_more(early);
    void *late = live_connect(context, ZMQ_SUB, endpoint.address);
    ck_assert_int_eq(next_seq(late), 2);
    send_one(sender, 3);
    ck_assert_int_eq(next_seq(late), 3);
    ck_assert_int_eq(next_seq(early), 3);
    no_more(late);
    zmq_close(early);
    zmq_close(late);
    ndtd_result_sender_close(sender);
}

/* A subscriber with a topic, and one that unsubscribes from a topic, keep their other subscriptions. */
TEST(test_topics)
{
    struct ndtd_result_sender *sender;
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    void *subscriber = live_connect(context, ZMQ_SUB, endpoint.address);
    ck_assert_int_eq(zmq_setsockopt(subscriber, ZMQ_SUBSCRIBE, "topic", 5), 0);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    ck_assert_int_eq(zmq_setsockopt(subscriber, ZMQ_UNSUBSCRIBE, "topic", 5), 0);
    send_one(sender, 7);
    ck_assert_int_eq(next_seq(subscriber), 7);
    live_pause(50);
    ck_assert_uint_eq(ndtd_publisher_counters(publisher).subscribers, 1);
    send_one(sender, 8);
    ck_assert_int_eq(next_seq(subscriber), 8);
    zmq_close(subscriber);
    live_until(ndtd_publisher_counters(publisher).subscribers == 0);
    ndtd_result_sender_close(sender);
}

/* One subscriber never reads; the other one gets all results, and sending is not slower. */
TEST(test_slow_subscriber)
{
    struct ndtd_result_sender *sender;
    ndtd_publisher_close(publisher);
    /* libzmq learns up to a millisecond late what a subscriber has read: the queue has to hold what the quick one
     * reads meanwhile, and less than 2000 results together with the buffers of the connection. */
    endpoint.send_high_water_mark = 200;
    must(ndtd_publisher_open(&publisher, sockets, &endpoint, NULL, &err));
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    void *slow = live_socket(context, ZMQ_SUB, LIVE_WAIT_MS);
    live_int(slow, ZMQ_RCVHWM, 1);
    ck_assert_int_eq(zmq_connect(slow, endpoint.address), 0);
    void *quick = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 2);
    for (long seq = 1; seq <= 2000; seq++) {
        send_one(sender, (uint64_t)seq);
        ck_assert_int_eq(next_seq(quick), seq);
    }
    ck_assert_uint_eq(ndtd_publisher_counters(publisher).lost, 0);
    /* The slow one has lost some results; the others are in order. */
    long last = 0, count = 0;
    live_int(slow, ZMQ_RCVTIMEO, 100);
    for (long seq = next_seq(slow); seq >= 0; seq = next_seq(slow)) {
        ck_assert_int_gt(seq, last);
        last = seq;
        count++;
    }
    ck_assert_int_gt(count, 0);
    ck_assert_int_lt(count, 2000);
    zmq_close(slow);
    zmq_close(quick);
    ndtd_result_sender_close(sender);
}

static void *send_many(void *argument)
{
    struct ndtd_result_sender *sender;
    struct ndt_error why = {""};
    const uint64_t first = *(const uint64_t *)argument;
    if (ndtd_result_sender_open(&sender, publisher, &why) != NDT_OK)
        return NULL;
    for (uint64_t i = 0; i < 200; i++) {
        const struct ndt_result_message message = result(first + i);
        if (ndtd_result_send(sender, &message, &why) != NDT_OK)
            break;
    }
    ndtd_result_sender_close(sender);
    return argument;
}

/* Worker and receiver publish at the same time; results that were handed over outlive their sender. */
TEST(test_two_senders)
{
    uint64_t firsts[2] = {1000, 2000};
    pthread_t threads[2];
    long next[2] = {1000, 2000};
    void *subscriber = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_many, &firsts[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *good;
        pthread_join(threads[i], &good);
        ck_assert_ptr_nonnull(good);
    }
    for (int i = 0; i < 400; i++) {
        const long seq = next_seq(subscriber);
        ck_assert_int_ge(seq, 1000);
        ck_assert_int_eq(seq, next[seq / 2000]++);
    }
    zmq_close(subscriber);
}

/* Results handed over before close arrive. */
TEST(test_close_sends)
{
    struct ndtd_result_sender *sender;
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    void *subscriber = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    for (uint64_t seq = 1; seq <= 500; seq++)
        send_one(sender, seq);
    ndtd_result_sender_close(sender);
    ndtd_publisher_close(publisher);
    publisher = NULL;
    for (long seq = 1; seq <= 500; seq++)
        ck_assert_int_eq(next_seq(subscriber), seq);
    zmq_close(subscriber);
}

/* A subscriber reconnects after a restart of the publisher. */
TEST(test_restart)
{
    struct ndtd_result_sender *sender;
    void *subscriber = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    ndtd_publisher_close(publisher);
    must(ndtd_publisher_open(&publisher, sockets, &endpoint, NULL, &err));
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    send_one(sender, 1); /* both for connected and for late subscribers */
    ck_assert_int_eq(next_seq(subscriber), 1);
    ndtd_result_sender_close(sender);
    zmq_close(subscriber);
}

static atomic_int flooding;
static char poses_path[512];

/* Subscribes to more and more topics, until the connection is closed; then again with a new one. */
static void *flood(void *unused)
{
    static const uint8_t name[] = "\tSUBSCRIBE";
    uint8_t out[2048];
    unsigned topic = 0;
    (void)unused;
    while (atomic_load(&flooding)) {
        const int fd = raw_open(poses_path, "SUB");
        for (int good = fd >= 0; good && atomic_load(&flooding);) {
            size_t size = 0;
            for (int i = 0; i < 64; i++, topic++) {
                memcpy(out + size, (uint8_t[]){4, 20}, 2);
                memcpy(out + size + 2, name, 10);
                for (size_t k = 0; k < 10; k++) /* the topics share nothing */
                    out[size + 12 + k] = (uint8_t)((topic * 2654435761u) >> (k % 4 * 8));
                size += 22;
            }
            good = raw_write(fd, out, size);
        }
        close(fd);
    }
    return NULL;
}

/* Four connections flood the socket with subscriptions: the results come through, and memory stays. */
TEST(test_flood_of_subscriptions)
{
    enum { FLOODERS = 4 };
    pthread_t threads[FLOODERS];
    struct ndtd_result_sender *sender;
    long last = 0;
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    void *subscriber = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    snprintf(poses_path, sizeof(poses_path), "%s", temp_path("poses"));
    const long before_kib = resident_kib();
    atomic_store(&flooding, 1);
    for (int i = 0; i < FLOODERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, flood, NULL), 0);
    for (uint64_t seq = 1; seq <= 100; seq++) {
        send_one(sender, seq);
        last = next_seq(subscriber);
        if (last != (long)seq)
            break;
        live_pause(10);
    }
    const long grown_kib = resident_kib() - before_kib;
    atomic_store(&flooding, 0);
    for (int i = 0; i < FLOODERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(last, 100);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep what is freed */
    ck_assert_int_lt(grown_kib, 64 * 1024);
#else
    (void)grown_kib;
#endif
    ck_assert_uint_eq(ndtd_publisher_counters(publisher).lost, 0);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    zmq_close(subscriber);
    ndtd_result_sender_close(sender);
}

/* Subscribers that leave at once: nothing of them stays. */
TEST(test_subscribers_that_leave)
{
    struct ndtd_result_sender *sender;
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    void *subscriber = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    for (uint64_t seq = 1; seq <= 300; seq++) {
        const int fd = raw_open(temp_path("poses"), "SUB");
        ck_assert(fd >= 0 && raw_write(fd, (const uint8_t *)"\4\12\tSUBSCRIBE\0\1\1", 15));
        close(fd);
        send_one(sender, seq);
        ck_assert_int_eq(next_seq(subscriber), (long)seq);
    }
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    zmq_close(subscriber);
    ndtd_result_sender_close(sender);
}

/* The limit of received bytes leaves room for CURVE's handshake with the longest routing id. */
TEST(test_curve)
{
    struct ndtd_publisher *secured;
    struct ndtd_sockets *keyed;
    struct ndtd_result_sender *sender;
    struct ndtd_security security;
    char server[41], server_secret[41], client[41], client_secret[41], id[255];
    const struct ndtd_endpoint tcp = live_tcp();
    zmq_curve_keypair(server, server_secret);
    zmq_curve_keypair(client, client_secret);
    memset(id, 'i', sizeof(id));
    snprintf(security.server_secret_key_file, sizeof(security.server_secret_key_file), "%s",
             temp_text("secret", server_secret));
    snprintf(security.allowed_clients_file, sizeof(security.allowed_clients_file), "%s",
             temp_text("clients", client));
    chmod(security.server_secret_key_file, 0600);
    must(ndtd_sockets_open(&keyed, &security, &err));
    must(ndtd_publisher_open(&secured, keyed, &tcp, NULL, &err));
    ck_assert_int_eq(ndtd_result_sender_open(&sender, secured, &err), NDT_OK);
    send_one(sender, 5);
    void *subscriber = live_socket(context, ZMQ_SUB, LIVE_WAIT_MS);
    ck_assert_int_eq(zmq_setsockopt(subscriber, ZMQ_CURVE_SERVERKEY, server, sizeof(server)), 0);
    ck_assert_int_eq(zmq_setsockopt(subscriber, ZMQ_CURVE_PUBLICKEY, client, sizeof(client)), 0);
    ck_assert_int_eq(zmq_setsockopt(subscriber, ZMQ_CURVE_SECRETKEY, client_secret, sizeof(client_secret)), 0);
    ck_assert_int_eq(zmq_setsockopt(subscriber, ZMQ_ROUTING_ID, id, sizeof(id)), 0);
    ck_assert_int_eq(zmq_connect(subscriber, tcp.address), 0);
    ck_assert_int_eq(next_seq(subscriber), 5);
    zmq_close(subscriber);
    ndtd_result_sender_close(sender);
    ndtd_publisher_close(secured);
    ndtd_sockets_close(keyed);
}

TEST(test_in_use)
{
    struct ndtd_publisher *second;
    ck_assert_int_eq(ndtd_publisher_open(&second, sockets, &endpoint, NULL, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "is in use"));
}
