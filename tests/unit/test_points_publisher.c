/* The points socket: nothing without a subscriber, results go first, viewers that never read cost nothing. */
#include <pthread.h>
#include <stdatomic.h>

#include "live_peer.h"
#include "ndtd/publisher.h"
#include "resident_memory.h"
#include "run_tests.h"
#include "temp_dir.h"

enum { POINTS = 20000 };

static struct ndtd_sockets *sockets;
static struct ndtd_publisher *publisher;
static struct ndtd_points_publisher *points;
static struct ndtd_endpoint poses_endpoint, endpoint;
static void *context; /* context of the subscribers */
static struct ndt_error err;

static void set_up(void)
{
    temp_dir_make();
    poses_endpoint = live_endpoint("ipc://%s", temp_path("poses"));
    endpoint = live_endpoint("ipc://%s", temp_path("points"));
    ck_assert_int_eq(ndtd_sockets_open(&sockets, NULL, &err), NDT_OK);
    must(ndtd_points_publisher_open(&points, sockets, &endpoint, &err));
    must(ndtd_publisher_open(&publisher, sockets, &poses_endpoint, points, &err));
    context = zmq_ctx_new();
}

static void tear_down(void)
{
    zmq_ctx_term(context);
    ndtd_publisher_close(publisher);
    ndtd_points_publisher_close(points);
    ndtd_sockets_close(sockets);
    ck_assert(!temp_exists(temp_path("points")));
    temp_dir_remove();
}

static unsigned subscribers(void)
{
    return ndtd_points_publisher_counters(points).subscribers;
}

/* Gives a scan as the matching thread does. Returns 0 if all slots are full. */
static int give(uint64_t seq, size_t count)
{
    struct ndtd_points_slot *slot = ndtd_points_publisher_take(points);
    if (!slot)
        return 0;
    slot->message = (struct ndt_points_message){.seq = seq, .frame_id = "base"};
    ck_assert_int_eq(ndt_cloud_reserve(&slot->points, count, 0, &err), NDT_OK);
    for (size_t i = 0; i < count; i++)
        slot->points.x_m[i] = slot->points.y_m[i] = slot->points.z_m[i] = (float)(seq + i);
    slot->points.count = count;
    ndtd_points_publisher_give(points);
    return 1;
}

/* The seq of the next message, which is whole; -1 without one. */
static long next_seq(void *subscriber)
{
    static struct ndt_points_message message;
    static struct ndt_cloud cloud;
    zmq_msg_t received;
    zmq_msg_init(&received);
    const int size = zmq_msg_recv(&received, subscriber, 0);
    if (size >= 0) {
        must(ndt_points_decode(zmq_msg_data(&received), (size_t)size, &message, &cloud, &err));
        for (size_t i = 0; i < cloud.count; i += 100)
            ck_assert_float_eq(cloud.y_m[i], (float)(message.seq + i));
    }
    zmq_msg_close(&received);
    return size < 0 ? -1 : (long)message.seq;
}

FIXTURE(set_up, tear_down)

TEST(asked_for_while_somebody_listens)
{
    ck_assert(!ndtd_points_publisher_is_wanted(points));
    for (int round = 0; round < 20; round++) {
        void *a = live_connect(context, ZMQ_SUB, endpoint.address);
        live_until(subscribers() == 1);
        ck_assert(ndtd_points_publisher_is_wanted(points));
        void *b = live_connect(context, ZMQ_SUB, endpoint.address);
        live_until(subscribers() == 2);
        ck_assert(give((uint64_t)round, 1000));
        ck_assert_int_eq(next_seq(a), round);
        ck_assert_int_eq(next_seq(b), round);
        zmq_close(a);
        live_until(subscribers() == 1);
        ck_assert(ndtd_points_publisher_is_wanted(points));
        zmq_close(b);
        live_until(!ndtd_points_publisher_is_wanted(points));
    }
    live_until(ndtd_points_publisher_counters(points).published == 20);
    ck_assert_uint_eq(ndtd_points_publisher_counters(points).lost, 0);
}

/* A slot that was taken and not given is taken again; without points the message is whole, too. */
TEST(slots)
{
    struct ndtd_points_slot *slot = ndtd_points_publisher_take(points);
    ck_assert_ptr_nonnull(slot);
    ck_assert_ptr_eq(ndtd_points_publisher_take(points), slot);
    void *subscriber = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(subscribers() == 1);
    ck_assert(give(5, 0));
    ck_assert_int_eq(next_seq(subscriber), 5);
    /* A slot that cannot be sent is lost, and the next one comes through. */
    slot = ndtd_points_publisher_take(points);
    slot->message = (struct ndt_points_message){.candidate_count = NDT_POINTS_MAX_ITEMS + 1};
    ndtd_points_publisher_give(points);
    live_until(ndtd_points_publisher_counters(points).lost == 1);
    ck_assert(give(6, 10));
    ck_assert_int_eq(next_seq(subscriber), 6);
    zmq_close(subscriber);
}

/* Eight viewers never read: a result per scan comes through, and so do points to the viewer that reads. */
TEST(viewers_that_never_read)
{
    enum { IDLE = 8, SCANS = 600 };
    struct ndtd_result_sender *sender;
    struct ndt_result_message result = {.frame_id = "map"};
    void *idle[IDLE];
    uint8_t data[4096];
    long viewed = 0, newest = -1;
    result.result.T_map_sensor = ndt_pose_identity();
    ck_assert_int_eq(ndtd_result_sender_open(&sender, publisher, &err), NDT_OK);
    for (int i = 0; i < IDLE; i++) {
        idle[i] = live_socket(context, ZMQ_SUB, LIVE_WAIT_MS);
        live_int(idle[i], ZMQ_RCVHWM, 1);
        ck_assert_int_eq(zmq_connect(idle[i], endpoint.address), 0);
    }
    void *poses = live_connect(context, ZMQ_SUB, poses_endpoint.address),
         *viewer = live_connect(context, ZMQ_SUB, endpoint.address);
    live_until(subscribers() == IDLE + 1 && ndtd_publisher_counters(publisher).subscribers == 1);
    live_int(viewer, ZMQ_RCVTIMEO, 0);
    const long before_kib = resident_kib();
    for (uint64_t seq = 0; seq < SCANS; seq++) {
        result.seq = seq;
        ck_assert_int_eq(ndtd_result_send(sender, &result, &err), NDT_OK);
        (void)give(seq, POINTS);
        ck_assert_int_gt(zmq_recv(poses, data, sizeof(data), 0), 0);
        for (long got; (got = next_seq(viewer)) >= 0; newest = got) {
            ck_assert_int_gt(got, newest);
            viewed++;
        }
    }
    const long grown_kib = resident_kib() - before_kib;
    ck_assert_int_gt(viewed, 10);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep what is freed */
    ck_assert_int_lt(grown_kib, 64 * 1024);                         /* 600 messages would be 144 MB each */
#else
    (void)grown_kib;
#endif
    ck_assert_uint_eq(ndtd_publisher_counters(publisher).lost, 0);
    for (int i = 0; i < IDLE; i++)
        zmq_close(idle[i]);
    zmq_close(viewer);
    zmq_close(poses);
    ndtd_result_sender_close(sender);
}

static atomic_int is_matching;

static void *match(void *unused)
{
    uint64_t seq = 0;
    (void)unused;
    while (atomic_load(&is_matching)) {
        if (ndtd_points_publisher_is_wanted(points))
            (void)give(seq++, 3000);
        live_pause(1);
    }
    return NULL;
}

/* Viewers come and go in the middle of everything, some of them without a word. */
TEST(viewers_come_and_go)
{
    pthread_t thread;
    atomic_store(&is_matching, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, match, NULL), 0);
    for (int round = 0; round < 30; round++) {
        void *viewer = live_connect(context, ZMQ_SUB, endpoint.address);
        for (int i = 0; i < round % 3; i++)
            ck_assert_int_ge(next_seq(viewer), 0);
        if (round % 2)
            live_pause(3);
        zmq_close(viewer);
    }
    live_until(!ndtd_points_publisher_is_wanted(points));
    atomic_store(&is_matching, 0);
    pthread_join(thread, NULL);
    ck_assert_uint_gt(ndtd_points_publisher_counters(points).published, 10);
}

/* Slots that wait and viewers that do not read do not hold up the end. */
TEST(close_does_not_wait)
{
    void *idle = live_socket(context, ZMQ_SUB, LIVE_WAIT_MS);
    live_int(idle, ZMQ_RCVHWM, 1);
    ck_assert_int_eq(zmq_connect(idle, endpoint.address), 0);
    live_until(subscribers() == 1);
    for (uint64_t seq = 0; seq < 100; seq++)
        (void)give(seq, POINTS);
    ndtd_publisher_close(publisher);
    ndtd_points_publisher_close(points);
    points = NULL;
    publisher = NULL;
    zmq_close(idle);
}

TEST(one_address_for_one)
{
    struct ndtd_points_publisher *second = NULL;
    ck_assert_int_eq(ndtd_points_publisher_open(&second, sockets, &endpoint, &err), NDT_ERR_IO);
    ck_assert_ptr_null(second);
    ck_assert_ptr_nonnull(strstr(err.text, "points"));
}
