/* ndt-send: plays a bag into the scans socket of a running daemon. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "live_connection.h"
#include "ndt_io/bag.h"
#include "ndt_proto/message.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "ndtd/stopwatch.h"
#include "tool_main.h"

enum send_option { BAG, RATE, ENDPOINT, PUSH, LOOP, SKIP, LIMIT, WAIT, SERVER_KEY, KEYS };
/* A frame that is not taken: without a pace the end, with one it is lost after a moment, and those that follow at
 * once, until one is taken again. */
enum { SEND_WAIT_MS = 10000, PACED_WAIT_MS = 500, CLOSE_LINGER_MS = 5000 };

static const struct bag_option options[] = {
    [BAG] = {"bag", "FILE", "the bag to play", 1},
    [RATE] = {"rate", "R",
              "1.0: at the pace of its receive times, 2.0: twice that, max: as fast as it is taken (1.0)", 0},
    [ENDPOINT] = {"endpoint", "ADDRESS", "the scans socket (scans.ipc in the runtime directory)", 0},
    [PUSH] = {"push", NULL, "the socket is a PULL socket (sockets.scans_kind: pull)", 0},
    [LOOP] = {"loop", "N", "play it N times, 0: until interrupted (1)", 0},
    [SKIP] = {"skip", "N", "leave out the first N scans and what comes with them", 0},
    [LIMIT] = {"limit", "N", "stop after N scans of each round", 0},
    [WAIT] = {"wait", "S", "wait S seconds for the daemon before the first frame, 0: not at all (10)", 0},
    [SERVER_KEY] = LIVE_SERVER_KEY_OPTION,
    [KEYS] = LIVE_KEYS_OPTION,
};

struct sender {
    struct live_connection connection;
    struct ndt_bag_reader *bag;
    int is_push;
    double rate; /* 0: no pace */
    uint64_t loops, skip, limit;
    int64_t wait_ns;
    char endpoint[NDTD_ENDPOINT_MAX];
    /* while playing */
    long subscribers; /* PUB */
    double begin_us;  /* when the first frame of this round was due */
    int64_t begin_ns; /* its receive time */
    uint64_t scans, messages, bytes, unheard;
    int stalled;      /* the last frame was not taken */
    double latest_us; /* how late a frame was, at most */
};

static enum ndt_status parse_rate(const char *text, double *rate, struct ndt_error *err)
{
    char *end;
    if (strcmp(text, "max") == 0) {
        *rate = 0;
        return NDT_OK;
    }
    *rate = strtod(text, &end);
    if (end == text || *end || !(*rate >= 0.001 && *rate <= 1000))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--rate: '%s' is neither max nor a number from 0.001 to 1000", text);
    return NDT_OK;
}

static enum ndt_status parse(struct sender *sender, const struct bag_args *args, struct ndt_error *err)
{
    const char *const *values = args->values;
    const char *address = values[ENDPOINT] ? values[ENDPOINT] : "";
    *sender = (struct sender){
        .is_push = values[PUSH] != NULL, .rate = 1, .loops = 1, .limit = UINT64_MAX, .wait_ns = 10000000000};
    enum ndt_status status = NDT_OK;
    if (values[RATE])
        status = parse_rate(values[RATE], &sender->rate, err);
    if (status == NDT_OK && values[LOOP])
        status = bag_parse_count("loop", values[LOOP], 0, UINT64_MAX, &sender->loops, err);
    if (status == NDT_OK && values[SKIP])
        status = bag_parse_count("skip", values[SKIP], 0, UINT64_MAX - 1, &sender->skip, err);
    if (status == NDT_OK && values[LIMIT])
        status = bag_parse_count("limit", values[LIMIT], 1, UINT64_MAX, &sender->limit, err);
    if (status == NDT_OK && values[WAIT])
        status = bag_parse_seconds("wait", values[WAIT], &sender->wait_ns, err);
    if (status == NDT_OK)
        status = ndtd_default_address(sender->endpoint, sizeof(sender->endpoint), address, "scans", 0, err);
    return status;
}

/* Subscriptions that came: the daemon's SUB socket says that it is there. */
static void hear_subscribers(struct sender *sender)
{
    uint8_t message[64];
    while (zmq_recv(sender->connection.socket, message, sizeof(message), ZMQ_DONTWAIT) > 0)
        sender->subscribers += message[0] == 1 ? 1 : message[0] == 0 ? -1 : 0;
}

static enum ndt_status wait_for_daemon(struct sender *sender, struct ndt_error *err)
{
    const short event = sender->is_push ? ZMQ_POLLOUT : ZMQ_POLLIN;
    zmq_pollitem_t item = {.socket = sender->connection.socket, .events = event};
    if (sender->wait_ns == 0)
        return NDT_OK;
    const int64_t wait_ms = sender->wait_ns / 1000000 + 1;
    const int ready = zmq_poll(&item, 1, wait_ms);
    if (ready > 0)
        return NDT_OK;
    if (tool_interrupted())
        return ndt_fail(err, NDT_ERR_IO, "interrupted before the daemon was there");
    return ndt_fail(err, NDT_ERR_IO, "%s: no daemon took the connection within %.3g s", sender->endpoint,
                    (double)sender->wait_ns * 1e-9);
}

/* Waits until the frame is due. A receive time before the last one's starts the count anew. */
static void keep_pace(struct sender *sender, int64_t receive_time_ns)
{
    int64_t after_ns;
    const double now_us = ndtd_now_us();
    if (sender->rate == 0)
        return;
    if (sender->begin_us == 0 || __builtin_sub_overflow(receive_time_ns, sender->begin_ns, &after_ns) ||
        after_ns < 0) {
        sender->begin_us = now_us;
        sender->begin_ns = receive_time_ns;
        return;
    }
    const double due_us = sender->begin_us + (double)after_ns * 1e-3 / sender->rate;
    const struct timespec due = {.tv_sec = (time_t)(due_us * 1e-6),
                                 .tv_nsec = (long)((due_us - 1e6 * (double)(time_t)(due_us * 1e-6)) * 1e3)};
    while (due_us > now_us && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
        if (tool_interrupted())
            return;
    const double late_us = ndtd_now_us() - due_us;
    if (late_us > sender->latest_us)
        sender->latest_us = late_us;
}

static enum ndt_status send_frame(struct sender *sender, const struct ndt_bag_record *record, struct ndt_error *err)
{
    if (!sender->is_push)
        hear_subscribers(sender);
    if (zmq_send(sender->connection.socket, record->payload, record->length, sender->stalled ? ZMQ_DONTWAIT : 0) <
        0) {
        if (errno == EINTR && tool_interrupted())
            return NDT_END;
        if (errno != EAGAIN || sender->rate == 0)
            return ndt_fail(err, NDT_ERR_IO, "%s: %s", sender->endpoint,
                            errno == EAGAIN ? "nothing was taken for 10 s" : zmq_strerror(errno));
        sender->stalled = 1;
        sender->unheard++;
        return NDT_OK;
    }
    sender->stalled = 0;
    if (!sender->is_push && sender->subscribers <= 0)
        sender->unheard++;
    sender->messages++;
    sender->bytes += record->length;
    sender->scans += record->type == NDT_MESSAGE_SCAN;
    return NDT_OK;
}

/* One round; NDT_END when it was interrupted. */
static enum ndt_status play(struct sender *sender, struct ndt_error *err)
{
    uint64_t begun = 0; /* scans before this record */
    struct ndt_bag_record record;
    enum ndt_status status;
    ndt_bag_rewind(sender->bag);
    sender->begin_us = 0;
    while ((status = ndt_bag_next(sender->bag, &record, err)) == NDT_OK) {
        const uint64_t number = begun; /* of the scan that the record belongs to, from 0 */
        begun += record.type == NDT_MESSAGE_SCAN;
        if (number >= sender->skip && number - sender->skip >= sender->limit)
            return NDT_OK;
        if (number < sender->skip || record.type == NDT_MESSAGE_TRUTH || record.type == NDT_MESSAGE_RESULT)
            continue;
        keep_pace(sender, record.receive_time_ns);
        if (tool_interrupted())
            return NDT_END;
        status = send_frame(sender, &record, err);
        if (status != NDT_OK)
            return status;
    }
    return status == NDT_END ? NDT_OK : status;
}

static void report(const struct sender *sender, double seconds)
{
    printf("%" PRIu64 " scans, %" PRIu64 " messages, %.1f MB in %.3f s: %.2f scans/s, %.1f MB/s", sender->scans,
           sender->messages, (double)sender->bytes * 1e-6, seconds,
           seconds > 0 ? (double)sender->scans / seconds : 0,
           seconds > 0 ? (double)sender->bytes * 1e-6 / seconds : 0);
    if (sender->rate > 0)
        printf("; at most %.1f ms late", sender->latest_us * 1e-3);
    if (sender->unheard)
        printf("; %" PRIu64 " messages went to nobody", sender->unheard);
    puts(tool_interrupted() ? "; interrupted" : "");
}

static enum ndt_status play_all(struct sender *sender, struct ndt_error *err)
{
    enum ndt_status status = wait_for_daemon(sender, err);
    const double start_us = ndtd_now_us();
    if (status != NDT_OK)
        return status;
    for (uint64_t i = 0; status == NDT_OK && (sender->loops == 0 || i < sender->loops); i++) {
        const uint64_t before = sender->messages + sender->unheard;
        status = play(sender, err);
        if (status == NDT_OK && sender->messages + sender->unheard == before)
            return ndt_fail(err, NDT_ERR_FORMAT, "nothing of the bag is left to send");
    }
    report(sender, (ndtd_now_us() - start_us) * 1e-6);
    return status == NDT_END ? NDT_OK : status;
}

static enum ndt_status run(const struct bag_args *args, struct ndt_error *err)
{
    struct sender sender;
    const int yes = 1;
    const struct live_keys keys = {args->values[SERVER_KEY], args->values[KEYS]};
    enum ndt_status status = parse(&sender, args, err);
    if (status == NDT_OK)
        status = ndt_bag_open(&sender.bag, args->values[BAG], err);
    if (status != NDT_OK)
        return status;
    /* XPUB instead of PUB: it hears of subscribers, and can wait for a slow one instead of losing frames. */
    const int wait_ms = sender.rate == 0 ? SEND_WAIT_MS : PACED_WAIT_MS;
    status =
        live_open(&sender.connection, sender.is_push ? ZMQ_PUSH : ZMQ_XPUB, sender.endpoint, &keys, wait_ms, err);
    if (status == NDT_OK && !sender.is_push)
        (void)zmq_setsockopt(sender.connection.socket, ZMQ_XPUB_NODROP, &yes, sizeof(yes));
    if (status == NDT_OK)
        status = play_all(&sender, err);
    live_close(&sender.connection, tool_interrupted() ? 0 : CLOSE_LINGER_MS);
    ndt_bag_close(sender.bag);
    return status;
}

static const struct bag_command command = {
    .name = "ndt-send",
    .summary = "plays a bag into a running ndtd",
    .details =
        "\n"
        "Frames go out as they were recorded, in their order; true poses and results stay at home. The pace is\n"
        "that of the receive times in the bag. Every round sends the bag's stamps again, so that time jumps\n"
        "back where a round ends. Prints how many scans and messages went out, and how fast.\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
