/** @file
 * @brief ndt-send: plays a bag into the scans socket of a running daemon. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "live_connection.h"
#include "ndt_io/bag.h"
#include "ndt_proto/message.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "ndt/clock.h"
#include "tool_options.h"

/* Limits of waiting for the daemon. Without a pace (--rate max) a frame that the daemon does not accept ends the
 * program. With a pace it is lost after PACED_WAIT_MS, and the following frames immediately, until one is accepted.
 */
enum { SEND_WAIT_MS = 10000, PACED_WAIT_MS = 500, CLOSE_LINGER_MS = 5000 };

static struct {
    const char *bag, *endpoint;
    double rate; /* 0: no pace */
    int push;
    uint64_t loops, skip, limit;
    int64_t wait_ns;
    struct live_keys keys;
} args = {.endpoint = "", .rate = 1, .loops = 1, .limit = UINT64_MAX, .wait_ns = 10000000000};

struct sender {
    struct live_connection connection;
    struct ndt_bag_reader *bag;
    char endpoint[NDTD_ENDPOINT_MAX];
    /* Members while playing. */
    long subscribers; /* PUB */
    double begin_us;  /* due time of the first frame of this round */
    int64_t begin_ns; /* receive time of that frame */
    uint64_t scans, messages, bytes, unreceived;
    int stalled;      /* the last frame was not taken */
    double latest_us; /* largest delay of a frame */
};

/* Counts subscriptions; that of the daemon's SUB socket indicates that it is connected. */
static void receive_subscriptions(struct sender *sender)
{
    uint8_t message[64];
    while (zmq_recv(sender->connection.socket, message, sizeof(message), ZMQ_DONTWAIT) > 0)
        sender->subscribers += message[0] == 1 ? 1 : message[0] == 0 ? -1 : 0;
}

static enum ndt_status wait_for_daemon(struct sender *sender, struct ndt_error *err)
{
    const short event = args.push ? ZMQ_POLLOUT : ZMQ_POLLIN;
    zmq_pollitem_t item = {.socket = sender->connection.socket, .events = event};
    if (args.wait_ns == 0)
        return NDT_OK;
    const int64_t wait_ms = args.wait_ns / 1000000 + 1;
    const int ready = zmq_poll(&item, 1, wait_ms);
    if (ready > 0)
        return NDT_OK;
    if (tool_interrupted())
        return ndt_fail(err, NDT_ERR_IO, "interrupted while waiting for the daemon");
    return ndt_fail(err, NDT_ERR_IO, "%s: no daemon connected within %.3g s", sender->endpoint,
                    (double)args.wait_ns * 1e-9);
}

/* Waits until the frame is due. A receive time before that of the last frame restarts the pace. */
static void keep_pace(struct sender *sender, int64_t receive_time_ns)
{
    int64_t after_ns;
    const double now_us = ndt_clock_us();
    if (args.rate == 0)
        return;
    if (sender->begin_us == 0 || __builtin_sub_overflow(receive_time_ns, sender->begin_ns, &after_ns) ||
        after_ns < 0) {
        sender->begin_us = now_us;
        sender->begin_ns = receive_time_ns;
        return;
    }
    const double due_us = sender->begin_us + (double)after_ns * 1e-3 / args.rate;
    const struct timespec due = {.tv_sec = (time_t)(due_us * 1e-6),
                                 .tv_nsec = (long)((due_us - 1e6 * (double)(time_t)(due_us * 1e-6)) * 1e3)};
    while (due_us > now_us && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
        if (tool_interrupted())
            return;
    const double late_us = ndt_clock_us() - due_us;
    if (late_us > sender->latest_us)
        sender->latest_us = late_us;
}

static enum ndt_status send_frame(struct sender *sender, const struct ndt_bag_record *record, struct ndt_error *err)
{
    if (!args.push)
        receive_subscriptions(sender);
    if (zmq_send(sender->connection.socket, record->payload, record->length, sender->stalled ? ZMQ_DONTWAIT : 0) <
        0) {
        if (errno == EINTR && tool_interrupted())
            return NDT_END;
        if (errno != EAGAIN || args.rate == 0)
            return ndt_fail(err, NDT_ERR_IO, "%s: %s", sender->endpoint,
                            errno == EAGAIN ? "no frame was accepted for 10 s" : zmq_strerror(errno));
        sender->stalled = 1;
        sender->unreceived++;
        return NDT_OK;
    }
    sender->stalled = 0;
    if (!args.push && sender->subscribers <= 0)
        sender->unreceived++;
    sender->messages++;
    sender->bytes += record->length;
    sender->scans += record->type == NDT_MESSAGE_SCAN;
    return NDT_OK;
}

/* Plays one round; NDT_END when it was interrupted. */
static enum ndt_status play(struct sender *sender, struct ndt_error *err)
{
    uint64_t begun = 0; /* scans before this record */
    struct ndt_bag_record record;
    enum ndt_status status;
    ndt_bag_rewind(sender->bag);
    sender->begin_us = 0;
    while ((status = ndt_bag_next(sender->bag, &record, err)) == NDT_OK) {
        const uint64_t number = begun; /* scan that the record belongs to, from 0 */
        begun += record.type == NDT_MESSAGE_SCAN;
        if (number >= args.skip && number - args.skip >= args.limit)
            return NDT_OK;
        const int is_skipped = number < args.skip;
        if ((is_skipped && record.type != NDT_MESSAGE_TRANSFORM) || record.type == NDT_MESSAGE_TRUTH ||
            record.type == NDT_MESSAGE_RESULT || record.type == NDT_MESSAGE_POINTS)
            continue;
        if (!is_skipped)
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
    if (args.rate > 0)
        printf("; at most %.1f ms late", sender->latest_us * 1e-3);
    if (sender->unreceived)
        printf("; %" PRIu64 " messages had no receiver", sender->unreceived);
    puts(tool_interrupted() ? "; interrupted" : "");
}

static enum ndt_status play_all(struct sender *sender, struct ndt_error *err)
{
    enum ndt_status status = wait_for_daemon(sender, err);
    const double start_us = ndt_clock_us();
    if (status != NDT_OK)
        return status;
    for (uint64_t i = 0; status == NDT_OK && (args.loops == 0 || i < args.loops); i++) {
        const uint64_t before = sender->messages + sender->unreceived;
        status = play(sender, err);
        if (status == NDT_OK && sender->messages + sender->unreceived == before)
            return ndt_fail(err, NDT_ERR_FORMAT, "no record of the bag is to be sent");
    }
    report(sender, (ndt_clock_us() - start_us) * 1e-6);
    return status == NDT_END ? NDT_OK : status;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct sender sender = {0};
    const int yes = 1;
    enum ndt_status status =
        ndtd_default_address(sender.endpoint, sizeof(sender.endpoint), args.endpoint, "scans", 0, err);
    if (status == NDT_OK)
        status = ndt_bag_open(&sender.bag, args.bag, err);
    if (status != NDT_OK)
        return status;
    /* XPUB instead of PUB: it receives subscriptions, and can wait for a slow subscriber instead of losing frames.
     */
    const int wait_ms = args.rate == 0 ? SEND_WAIT_MS : PACED_WAIT_MS;
    status =
        live_open(&sender.connection, args.push ? ZMQ_PUSH : ZMQ_XPUB, sender.endpoint, &args.keys, wait_ms, err);
    if (status == NDT_OK && !args.push)
        (void)zmq_setsockopt(sender.connection.socket, ZMQ_XPUB_NODROP, &yes, sizeof(yes));
    if (status == NDT_OK)
        status = play_all(&sender, err);
    live_close(&sender.connection, tool_interrupted() ? 0 : CLOSE_LINGER_MS);
    ndt_bag_close(sender.bag);
    return status;
}

static enum ndt_status parse_rate(void *value, const char *text, struct ndt_error *err)
{
    if (strcmp(text, "max") == 0) {
        *(double *)value = 0;
        return NDT_OK;
    }
    if (tool_parse_real(text, 0.001, 1000, value, NULL) != NDT_OK)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is neither max nor a number from 0.001 to 1000", text);
    return NDT_OK;
}

static const struct tool_option options[] = {
    {"bag", "FILE", TOOL_TEXT, &args.bag, .required = 1, .help = "the bag to play"},
    {"rate", "R", TOOL_CUSTOM, &args.rate, .parse = parse_rate,
     .help = "times the pace of the recording, no Hz: 1 as it was, 2 twice as fast; max: as frames are accepted "
             "(default: 1)"},
    {"endpoint", "ADDRESS", TOOL_TEXT, &args.endpoint,
     .help = "the scans socket (default: scans.ipc in the runtime directory)"},
    {"push", NULL, TOOL_FLAG, &args.push, .help = "the socket is a PULL socket (sockets.scans_kind: pull)"},
    {"loop", "N", TOOL_COUNT, &args.loops, 0, INFINITY, .help = "play it N times; 0: until interrupted"},
    {"skip", "N", TOOL_COUNT, &args.skip, 0, INFINITY, .help = "leave out the first N scans and their records"},
    {"limit", "N", TOOL_COUNT, &args.limit, 1, INFINITY, .help = "stop after N scans of each round"},
    {"wait", "S", TOOL_SECONDS, &args.wait_ns,
     .help = "wait S seconds for the daemon before the first frame; 0: do not wait"},
    LIVE_KEY_OPTIONS(args.keys),
};

static const struct tool_command command = {
    .name = "ndt-send",
    .summary = "plays a bag into a running ndtd",
    .details = "Sends the recorded frames in their order, without true poses and results. The pace is "
               "that of the receive times in the bag. Every round sends the same stamps, so that time jumps back "
               "where a round ends. Prints how many scans and messages were sent, and how fast.",
    TOOL_OPTIONS(options),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
