/* Events for the page: greeting, order, slow readers, ring of results; and connections that take too long. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run_tests.h"
#include "web_control.h"
#include "web_events.h"
#include "web_peers.h"

static struct ndt_error err;
static struct web_hub *hub;
static int asleep, woken;

static void on_sleep(void *user)
{
    (void)user;
    asleep++;
}

static void on_wake(void *user)
{
    (void)user;
    woken++;
}

static const struct web_waiter waiter = {on_sleep, on_wake, NULL};

static void setup(void)
{
    const struct web_hello hello = {.mode = "live", .allow_control = 1};
    asleep = woken = 0;
    ck_assert_int_eq(web_hub_open(&hub, &hello, 10, &err), NDT_OK);
}

static void teardown(void)
{
    web_hub_close(hub);
}

static struct web_blob *text_blob(const char *text)
{
    struct web_blob *blob = web_blob_make(strlen(text));
    memcpy(blob->data, text, strlen(text));
    return blob;
}

static void publish(enum web_event event, const char *text)
{
    web_hub_publish(hub, event, text_blob(text));
}

/* Reads everything there is, in blocks of `block`. */
static char *read_all(struct web_client *client, size_t block)
{
    static char text[200000];
    size_t used = 0;
    for (ssize_t count; (count = web_client_read(client, text + used, block)) > 0; used += (size_t)count)
        ck_assert_uint_lt(used, sizeof(text) - 1000);
    text[used] = '\0';
    return text;
}

FIXTURE(setup, teardown)

TEST(a_reader_begins_with_the_last_values)
{
    publish(WEB_STATUS, "{\"s\":1}");
    publish(WEB_STATUS, "{\"s\":2}");
    publish(WEB_RESULT, "{\"r\":0}");
    publish(WEB_LOG, "{\"l\":0}");
    struct web_client *client = web_client_open(hub, &waiter);
    const char *text = read_all(client, 1000);
    ck_assert_ptr_eq(strstr(text, "retry: 1000\nevent: hello\ndata: {\"mode\":\"live\",\"version\":\""), text);
    ck_assert_ptr_nonnull(strstr(text, "\"allow_control\":true,\"history\":1,\"first\":0,\"age_s\":0."));
    ck_assert_ptr_null(strstr(text, "{\"s\":1}"));
    ck_assert_ptr_nonnull(strstr(text, "event: status\ndata: {\"s\":2}\n\nevent: log\ndata: {\"l\":0}\n\n"));
    ck_assert_ptr_null(strstr(text, "event: result"));
    ck_assert_int_eq(asleep, 1);
    publish(WEB_RESULT, "{\"r\":1}");
    publish(WEB_SCAN, "{\"c\":1}");
    ck_assert_int_eq(woken, 1);
    ck_assert_str_eq(read_all(client, 1000),
                     "event: result\nid: 1\ndata: {\"r\":1}\n\nevent: scan\ndata: {\"c\":1}\n\n");
    web_client_close(client);
    ck_assert_int_eq(woken, 1);
}

TEST(blocks_of_any_size_give_the_same)
{
    static const size_t blocks[] = {1, 2, 3, 7, 64};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        struct web_client *client = web_client_open(hub, &waiter);
        (void)read_all(client, 1000);
        publish(WEB_MAP, "{\"state\":\"none\"}");
        publish(WEB_LOG, "{}");
        ck_assert_str_eq(read_all(client, blocks[i]),
                         "event: map\ndata: {\"state\":\"none\"}\n\nevent: log\ndata: {}\n\n");
        web_client_close(client);
    }
}

TEST(a_slow_reader_misses_events_and_is_told)
{
    struct web_client *client = web_client_open(hub, &waiter);
    struct web_hub_counters counters;
    struct web_blob *first = text_blob("{\"first\":1}");
    (void)read_all(client, 1000);
    web_hub_publish(hub, WEB_SCAN, web_blob_share(first));
    for (int i = 1; i < WEB_QUEUE; i++)
        publish(WEB_SCAN, "{}");
    web_hub_counters(hub, &counters);
    ck_assert_uint_eq(counters.lost, 0);
    ck_assert_int_eq(web_blob_references(first), 2);
    publish(WEB_SCAN, "{\"last\":1}");
    ck_assert_int_eq(web_blob_references(first), 1);
    web_hub_counters(hub, &counters);
    ck_assert_uint_eq(counters.lost, WEB_QUEUE);
    ck_assert_str_eq(read_all(client, 1000),
                     "event: resync\ndata: {\"lost\":256}\n\nevent: scan\ndata: {\"last\":1}\n\n");
    web_client_close(client);
    web_blob_drop(first);
}

TEST(results_are_a_ring)
{
    uint64_t first;
    char text[32];
    ck_assert_uint_eq(web_hub_results(hub, &first), 0);
    for (int i = 0; i < 25; i++) {
        snprintf(text, sizeof(text), "{\"r\":%d}", i);
        publish(WEB_RESULT, text);
    }
    ck_assert_uint_eq(web_hub_results(hub, &first), 25);
    ck_assert_uint_eq(first, 15);
    ck_assert_ptr_null(web_hub_result(hub, 14));
    ck_assert_ptr_null(web_hub_result(hub, 25));
    struct web_blob *result = web_hub_result(hub, 15);
    ck_assert_str_eq((const char *)result->data, "{\"r\":15}");
    web_blob_drop(result);
}

TEST(readers_are_limited_and_end)
{
    struct web_client *clients[WEB_MAX_CLIENTS];
    char text[10];
    for (size_t i = 0; i < WEB_MAX_CLIENTS; i++)
        ck_assert_ptr_nonnull(clients[i] = web_client_open(hub, &waiter));
    ck_assert_ptr_null(web_client_open(hub, &waiter));
    web_client_close(clients[5]);
    ck_assert_ptr_nonnull(clients[5] = web_client_open(hub, &waiter));
    web_hub_stop(hub);
    ck_assert_int_eq(web_client_read(clients[0], text, sizeof(text)), -1);
    for (size_t i = 0; i < WEB_MAX_CLIENTS; i++)
        web_client_close(clients[i]);
    ck_assert_ptr_null(web_client_open(hub, &waiter));
}

TEST(quiet_streams_get_a_comment)
{
    struct web_client *client = web_client_open(hub, &waiter);
    (void)read_all(client, 1000);
    web_hub_beat(hub);
    ck_assert_int_eq(woken, 0);
    web_hub_beat(hub);
    ck_assert_int_eq(woken, 1);
    ck_assert_str_eq(read_all(client, 2), ":\n\n\n");
    web_client_close(client);
}

TEST(the_log_is_bounded)
{
    struct web_client *client = web_client_open(hub, &waiter);
    (void)read_all(client, 1000);
    for (int i = 0; i < 1000; i++)
        web_hub_log(hub, WEB_LOG_EVENT, WEB_WARNING, "line %d \"\n\x80", i);
    const char *text = read_all(client, 1000);
    size_t lines = 0;
    for (const char *at = text; (at = strstr(at, "event: log")); at++)
        lines++;
    ck_assert_uint_ge(lines, 5);
    ck_assert_uint_le(lines, 50); /* a few per second, on a slow machine too */
    ck_assert_ptr_nonnull(strstr(text, "\"level\":\"warning\",\"text\":\"line 0 \\\"??\"}"));
    web_client_close(client);
}

/* Refusals use up neither the lines of events nor those of changes. */
TEST(refusals_hide_no_change)
{
    struct web_client *client = web_client_open(hub, &waiter);
    (void)read_all(client, 1000);
    for (int i = 0; i < 1000; i++)
        web_hub_log(hub, WEB_LOG_REFUSAL, WEB_WARNING, "refusal");
    web_hub_log(hub, WEB_LOG_EVENT, WEB_INFO, "event");
    for (int i = 0; i < 20; i++)
        web_hub_log(hub, WEB_LOG_CHANGE, WEB_INFO, "change %d", i);
    const char *text = read_all(client, 1000);
    ck_assert_ptr_nonnull(strstr(text, "\"text\":\"event\"}"));
    for (int i = 0; i < 20; i++) {
        char line[32];
        snprintf(line, sizeof(line), "\"change %d\"}", i);
        ck_assert_msg(strstr(text, line) != NULL, "%s is missing", line);
    }
    web_client_close(client);
}

static void *publish_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5000; i++)
        publish(i % 2 ? WEB_RESULT : WEB_SCAN, "{\"value\":12345}");
    return NULL;
}

/* For the thread sanitizer. */
TEST(threads_publish_and_read)
{
    pthread_t threads[2];
    char block[100];
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, publish_many, NULL), 0);
    for (int i = 0; i < 100; i++) {
        struct web_client *client = web_client_open(hub, &waiter);
        for (int k = 0; k < 50; k++)
            ck_assert_int_ge(web_client_read(client, block, sizeof(block)), 0);
        web_client_close(client);
    }
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    uint64_t first;
    ck_assert_uint_eq(web_hub_results(hub, &first), 5000);
}

/* ---- connections ---- */

static int is_shut(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

FIXTURE(NULL, NULL)

TEST(the_oldest_connection_makes_room)
{
    struct web_peers *peers = web_peers_open();
    struct web_peer *list[WEB_PEERS_ROOM + 2];
    struct web_peers_counters counters;
    int pair[WEB_PEERS_ROOM + 2][2];
    for (size_t i = 0; i < WEB_PEERS_ROOM + 2; i++)
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
    for (size_t i = 0; i < WEB_PEERS_ROOM; i++)
        list[i] = web_peer_join(peers, pair[i][0]);
    web_peer_enter(peers, list[0], WEB_STREAMING);
    web_peer_enter(peers, list[1], WEB_WAITING);
    web_peer_enter(peers, list[2], WEB_IDLE); /* moved on: younger than the next */
    web_peers_counters(peers, &counters);
    ck_assert_uint_eq(counters.evicted, 0);
    list[WEB_PEERS_ROOM] = web_peer_join(peers, pair[WEB_PEERS_ROOM][0]);
    list[WEB_PEERS_ROOM + 1] = web_peer_join(peers, pair[WEB_PEERS_ROOM + 1][0]);
    web_peers_counters(peers, &counters);
    ck_assert_uint_eq(counters.evicted, 2);
    ck_assert_uint_eq(counters.open, WEB_PEERS_ROOM + 2);
    for (size_t i = 0; i < WEB_PEERS_ROOM + 2; i++)
        ck_assert_int_eq(is_shut(pair[i][1]), i == 3 || i == 4);
    web_peers_expire(peers); /* none is too late yet */
    web_peers_counters(peers, &counters);
    ck_assert_uint_eq(counters.evicted, 2);
    for (size_t i = 0; i < WEB_PEERS_ROOM + 2; i++) {
        web_peer_leave(peers, list[i]);
        close(pair[i][0]);
        close(pair[i][1]);
    }
    web_peers_counters(peers, &counters);
    ck_assert_uint_eq(counters.open, 0);
    web_peers_close(peers);
}

/* ---- requests ---- */

struct answer {
    int count;
    char text[256], why[256];
};

static void on_answer(void *user, struct web_blob *reply, const char *why)
{
    struct answer *answer = user;
    answer->count++;
    snprintf(answer->text, sizeof(answer->text), "%s", reply ? (const char *)reply->data : "");
    snprintf(answer->why, sizeof(answer->why), "%s", reply ? "" : why);
    web_blob_drop(reply);
}

TEST(requests_get_their_answers)
{
    struct web_control *control = web_control_open();
    struct answer answers[WEB_CONTROL_WAITING + 1] = {0};
    struct ndt_buffer frame, reply;
    struct ndt_reply_writer writer;
    struct ndt_request_message request = {.op = NDT_OP_STOP};
    uint64_t id = 0;
    ndt_buffer_init(&frame);
    ndt_buffer_init(&reply);
    for (int i = 0; i < WEB_CONTROL_WAITING + 1; i++) {
        const struct web_asker asker = {on_answer, &answers[i]};
        ck_assert_int_eq(web_control_add(control, &request, &asker, &err),
                         i < WEB_CONTROL_WAITING ? NDT_OK : NDT_ERR_LIMIT);
    }
    ck_assert(web_control_take(control, &frame));
    ck_assert_int_eq(ndt_request_decode(frame.data, frame.size, &request, &id, &err), NDT_OK);
    ck_assert_uint_gt(id, WEB_CONTROL_FIRST_ID);
    ndt_reply_begin(&writer, &reply, id, NULL);
    ck_assert_int_eq(ndt_reply_finish(&writer, &err), NDT_OK);
    ck_assert(!web_control_answer(control, id + 100, reply.data, reply.size));
    ck_assert(!web_control_answer(control, 0, reply.data, reply.size));
    ck_assert(web_control_answer(control, id, reply.data, reply.size));
    ck_assert(!web_control_answer(control, id, reply.data, reply.size));
    ck_assert_int_eq(answers[0].count, 1);
    ck_assert_ptr_nonnull(strstr(answers[0].text, "\"ok\":true"));
    ck_assert(web_control_expire(control));
    web_control_fail(control, "the end");
    ck_assert(!web_control_expire(control));
    for (int i = 1; i < WEB_CONTROL_WAITING; i++) {
        ck_assert_int_eq(answers[i].count, 1);
        ck_assert_str_eq(answers[i].why, "the end");
    }
    ck_assert_int_eq(answers[WEB_CONTROL_WAITING].count, 0);
    ck_assert(!web_control_take(control, &frame));
    ndt_buffer_free(&frame);
    ndt_buffer_free(&reply);
    web_control_close(control);
}

TEST(invalid_requests_are_not_sent)
{
    struct web_control *control = web_control_open();
    struct answer answer = {0};
    struct ndt_buffer frame;
    const struct web_asker asker = {on_answer, &answer};
    const struct ndt_request_message no_pose = {.op = NDT_OP_INITIAL_POSE, .pose.frame_id = "map"};
    struct ndt_request_message far = no_pose;
    far.pose.has_pose = 1;
    far.pose.pose = (struct ndt_pose){{1e9, 0, 0}, {0, 0, 0, 1}};
    ndt_buffer_init(&frame);
    ck_assert_int_ne(web_control_add(control, &no_pose, &asker, &err), NDT_OK);
    ck_assert_ptr_nonnull(strstr(err.text, "pose"));
    ck_assert_int_ne(web_control_add(control, &far, &asker, &err), NDT_OK);
    ck_assert(!web_control_take(control, &frame));
    ck_assert_int_eq(answer.count, 0);
    ck_assert(web_control_is_allowed(NDT_OP_LOCALIZE) && web_control_is_allowed(NDT_OP_STOP_RECORDING));
    ck_assert(!web_control_is_allowed(NDT_OP_SHUTDOWN) && !web_control_is_allowed(NDT_OP_LOAD_MAP));
    ndt_buffer_free(&frame);
    web_control_close(control);
}
