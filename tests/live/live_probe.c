/** @file
 * live_probe: a client of ndtd for the scripts in this folder. Sends scans of a bag, synthetic scans or malformed
 * frames, collects the results and prints statistics as `key value` lines. */
/* clang-format off */
/*   live_probe load     CONTROL PATH                               another map is requested
 *   live_probe view     POINTS                                     a viewer, until SIGTERM
 *   live_probe motion   MOTION                                     poses between scans, until SIGTERM
 *   live_probe idle     POINTS                                     a viewer that never reads, until SIGTERM
 *   live_probe answers  SCANS POSES BAG RATE_HZ [PID]              is every scan answered exactly once?
 *   live_probe dense    SCANS POSES BAG RATE_HZ POINTS             the same with so many points in every scan: those of the
 *                                                                  bag, repeated
 *   live_probe overload SCANS POSES PID POINTS RATE_HZ SECONDS ROUNDS    overload after at most so many rounds of warm-up;
 *                                                                  memory of PID before and after; recovery
 *   live_probe hostile  SCANS POSES BAG COUNT SEED                 COUNT malformed frames before every scan of a bag;
 *                                                                  a PUSH socket, so that no frame is lost */
/* clang-format on */
/* The scans of a bag are sent at RATE_HZ at most, with at most two unanswered, so that a busy machine delays scans
 * but does not drop them. With PID the scheduling delay of the daemon's threads and of this program is measured:
 * the next scan waits for as long as the daemon waited for a core, and latencies are printed with and without it.
 * SIGTERM ends the run with the results so far. Exit code 0: the run is complete; the scripts check the numbers. */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "ndt/clock.h"
#include "ndt/quantile.h"
#include "ndt/random.h"
#include "ndt_io/bag.h"
#include "ndt_proto/control_message.h"
#include "ndt_proto/message.h"

enum { MAX_SCANS = 65536, MOST_OPEN = 2 };

struct probe {
    void *context, *out, *in;
    double sent_us[MAX_SCANS];
    double delay_us[MAX_SCANS]; /* scheduling_delay_us() when the scan was sent */
    double latency_us[MAX_SCANS];
    double running_us[MAX_SCANS]; /* latency less the scheduling delay */
    double stages_us[MAX_SCANS];  /* all stages, as the daemon reports them */
    double work_us[MAX_SCANS];    /* time without the wait in its queue */
    unsigned answers[MAX_SCANS];
    uint8_t outcome[MAX_SCANS]; /* enum ndt_outcome of the latest answer */
    unsigned sent, answered, twice, unknown;
    unsigned outcomes[NDT_OUTCOME_COUNT];
    struct ndt_pose truth[MAX_SCANS]; /* truth of the scan with that number, which precedes the scan in the bag */
    int has_truth[MAX_SCANS], next_has_truth;
    struct ndt_pose next_truth;
    double error_max_m;
    uint64_t first_seq;
    int64_t last_stamp_ns;
    const char *daemon; /* process id of the daemon; may be NULL (not measured) */
    size_t points;      /* points of every scan; 0: those of the bag */
    int hostile;
    unsigned refused; /* hostile mode: malformed frames with readable seq are answered too */
};

static const double ANSWER_US = 20e6; /* an answer that takes longer counts as missing */

static struct probe probe;
static struct ndt_error err;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* Total time that the threads of a process were runnable without running, since their start. */
static double process_delay_us(const char *pid)
{
    char path[300];
    double sum_us = 0;
    snprintf(path, sizeof(path), "/proc/%s/task", pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *task; tasks && (task = readdir(tasks));) {
        unsigned long long run_ns, wait_ns;
        snprintf(path, sizeof(path), "/proc/%.20s/task/%.20s/schedstat", pid, task->d_name);
        FILE *file = *task->d_name == '.' ? NULL : fopen(path, "r");
        if (file && fscanf(file, "%llu %llu", &run_ns, &wait_ns) == 2)
            sum_us += (double)wait_ns * 1e-3;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return sum_us;
}

static double scheduling_delay_us(void)
{
    return probe.daemon ? process_delay_us(probe.daemon) + process_delay_us("self") : 0;
}

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "live_probe: %s: %s\n", what, *err.text ? err.text : zmq_strerror(zmq_errno()));
    exit(3);
}

/* A PUB drops messages sent before the subscription arrives; an XPUB receives the subscription. */
static void await_subscription(void)
{
    zmq_pollitem_t item = {.socket = probe.out, .events = ZMQ_POLLIN};
    must(zmq_poll(&item, 1, 120000) == 1, "the daemon does not subscribe to scans");
    char topic[16];
    (void)zmq_recv(probe.out, topic, sizeof(topic), 0);
}

/* type: ZMQ_XPUB, which drops what a slow daemon does not take, or ZMQ_PUSH, which waits. */
static void connect_both(int type, const char *scans, const char *poses)
{
    const int zero = 0, deep = 40000;
    probe.context = zmq_ctx_new();
    probe.out = zmq_socket(probe.context, type);
    probe.in = zmq_socket(probe.context, ZMQ_SUB);
    zmq_setsockopt(probe.out, ZMQ_LINGER, &zero, sizeof(zero));
    zmq_setsockopt(probe.in, ZMQ_LINGER, &zero, sizeof(zero));
    zmq_setsockopt(probe.out, ZMQ_SNDHWM, &deep, sizeof(deep));
    zmq_setsockopt(probe.in, ZMQ_RCVHWM, &deep, sizeof(deep));
    zmq_setsockopt(probe.in, ZMQ_SUBSCRIBE, "", 0);
    must(zmq_connect(probe.out, scans) == 0, scans);
    must(zmq_connect(probe.in, poses) == 0, poses);
    if (type == ZMQ_XPUB)
        await_subscription();
    usleep(500000); /* and our own subscription to poses */
    zmq_msg_t old;  /* the last result of an earlier client */
    zmq_msg_init(&old);
    while (zmq_msg_recv(&old, probe.in, ZMQ_DONTWAIT) >= 0)
        ;
    zmq_msg_close(&old);
}

static void disconnect(void)
{
    zmq_close(probe.out);
    zmq_close(probe.in);
    zmq_ctx_term(probe.context);
}

static void note_result(const struct ndt_result_message *m)
{
    const uint64_t at = m->seq - probe.first_seq;
    if (probe.hostile && m->result.outcome == NDT_REJECTED) {
        probe.refused++;
        return;
    }
    if (m->seq < probe.first_seq || at >= MAX_SCANS || probe.sent_us[at] == 0) {
        probe.unknown++;
        return;
    }
    probe.twice += probe.answers[at]++ > 0;
    probe.outcome[at] = (uint8_t)m->result.outcome;
    const double latency_us = ndt_clock_us() - probe.sent_us[at],
                 waited_us = scheduling_delay_us() - probe.delay_us[at];
    probe.latency_us[probe.answered] = latency_us;
    probe.running_us[probe.answered] = latency_us > waited_us ? latency_us - waited_us : 0;
    probe.stages_us[probe.answered] =
        m->queue_us + m->decode_us + m->preprocess_us + m->upload_us + m->result.align_us;
    probe.work_us[probe.answered] = probe.stages_us[probe.answered] - m->queue_us;
    if (probe.has_truth[at]) {
        const double error_m = ndt_pose_distance_m(&probe.truth[at], &m->result.T_map_sensor);
        probe.error_max_m = error_m > probe.error_max_m ? error_m : probe.error_max_m;
    }
    probe.answered++;
    probe.outcomes[m->result.outcome]++;
}

/* Receives results until `until_us`, or until at most `open` scans are unanswered; open < 0: until `until_us`
 * only. */
static void collect(double until_us, int open)
{
    zmq_msg_t frame;
    struct ndt_result_message message;
    zmq_msg_init(&frame);
    while (!stopped && ndt_clock_us() < until_us && !(open >= 0 && probe.answered + (unsigned)open >= probe.sent)) {
        zmq_pollitem_t item = {.socket = probe.in, .events = ZMQ_POLLIN};
        const double left_us = until_us - ndt_clock_us();
        if (zmq_poll(&item, 1, left_us > 1000 ? (long)(left_us / 1000) : 0) <= 0)
            continue;
        if (zmq_msg_recv(&frame, probe.in, ZMQ_DONTWAIT) < 0)
            continue;
        if (ndt_result_decode(zmq_msg_data(&frame), zmq_msg_size(&frame), &message, &err) == NDT_OK)
            note_result(&message);
        else
            probe.unknown++;
    }
    zmq_msg_close(&frame);
}

static void send_frame(const void *data, size_t size)
{
    must(zmq_send(probe.out, data, size, probe.hostile ? 0 : ZMQ_DONTWAIT) >= 0, "send");
}

/* The scan with as many points as asked for: every point several times in a row, as a denser sensor meets it. */
static void make_dense(const struct ndt_bag_record *record, struct ndt_buffer *frame)
{
    struct ndt_scan_message header;
    struct ndt_cloud from, to;
    ndt_cloud_init(&from);
    ndt_cloud_init(&to);
    must(ndt_scan_decode(record->payload, record->length, &header, &from, &err) == NDT_OK, "scan in the bag");
    must(ndt_cloud_reserve(&to, probe.points, from.fields, &err) == NDT_OK, "cloud");
    for (size_t i = 0; i < probe.points; i++) {
        const size_t at = i * from.count / probe.points;
        to.x_m[i] = from.x_m[at];
        to.y_m[i] = from.y_m[at];
        to.z_m[i] = from.z_m[at];
        if (from.intensity)
            to.intensity[i] = from.intensity[at];
        if (from.time_s)
            to.time_s[i] = from.time_s[at];
    }
    to.count = from.count > 0 ? probe.points : 0;
    must(ndt_scan_encode(frame, &header, &to, &err) == NDT_OK, "scan");
    ndt_cloud_free(&from);
    ndt_cloud_free(&to);
}

static void send_scan(const struct ndt_bag_record *record)
{
    struct ndt_scan_message header;
    struct ndt_buffer dense;
    ndt_buffer_init(&dense);
    if (probe.points > 0)
        make_dense(record, &dense);
    must(ndt_scan_identify(record->payload, record->length, &header, &err) == NDT_OK, "scan in the bag");
    if (probe.sent == 0)
        probe.first_seq = header.seq;
    const uint64_t at = header.seq - probe.first_seq;
    must(at < MAX_SCANS, "seq");
    probe.truth[at] = probe.next_truth;
    probe.has_truth[at] = probe.next_has_truth;
    probe.next_has_truth = 0;
    probe.delay_us[at] = scheduling_delay_us();
    probe.sent_us[at] = ndt_clock_us();
    probe.sent++;
    send_frame(probe.points > 0 ? dense.data : record->payload, probe.points > 0 ? dense.size : record->length);
    ndt_buffer_free(&dense);
}

static double quantile_ms(double *values_us, double q)
{
    return ndt_quantile(values_us, probe.answered, q) / 1000;
}

static void report(void)
{
    printf("sent %u\nanswered %u\ntwice %u\nunknown %u\nrefused %u\n", probe.sent, probe.answered, probe.twice,
           probe.unknown, probe.refused);
    for (int i = 0; i < NDT_OUTCOME_COUNT; i++)
        if (probe.outcomes[i])
            printf("%s %u\n", ndt_outcome_name((enum ndt_outcome)i), probe.outcomes[i]);
    printf("error_max_m %.4f\n", probe.error_max_m);
    if (probe.points > 0)
        printf("latency_first_ms %.3f\n", probe.latency_us[0] / 1000);
    printf("latency_p50_ms %.3f\n", quantile_ms(probe.latency_us, 0.5));
    printf("latency_p99_ms %.3f\n", quantile_ms(probe.latency_us, 0.99));
    printf("latency_max_ms %.3f\n", quantile_ms(probe.latency_us, 1));
    printf("running_p50_ms %.3f\n", quantile_ms(probe.running_us, 0.5));
    printf("running_p99_ms %.3f\n", quantile_ms(probe.running_us, 0.99));
    printf("stages_p99_ms %.3f\n", quantile_ms(probe.stages_us, 0.99));
    printf("work_max_ms %.3f\n", quantile_ms(probe.work_us, 1));
    printf("stages_max_ms %.3f\n", quantile_ms(probe.stages_us, 1));
}

static void send_malformed(struct ndt_random *random, const struct ndt_bag_record *good);

static void keep_truth(const struct ndt_bag_record *record)
{
    struct ndt_pose_message message;
    must(ndt_pose_message_decode(record->payload, record->length, NDT_MESSAGE_TRUTH, &message, &err) == NDT_OK,
         "truth in the bag");
    probe.next_truth = message.pose;
    probe.next_has_truth = 1;
}

/* Waits until next_us, and longer by the time in which the daemon's threads wait for a core from now on: work
 * beside the matching, such as a search, then has the same processor time between two scans as on an idle machine.
 */
static void pace(double next_us)
{
    const double before_us = probe.daemon ? process_delay_us(probe.daemon) : 0, limit_us = next_us + ANSWER_US;
    collect(next_us, -1);
    while (probe.daemon && !stopped && ndt_clock_us() < limit_us &&
           ndt_clock_us() < next_us + process_delay_us(probe.daemon) - before_us)
        collect(ndt_clock_us() + 1e4, -1);
}

/* Plays a bag at a rate, or as fast as it is answered; sends `bad_per_scan` malformed frames before every scan. */
static void play(const char *path, double rate_hz, uint32_t bad_per_scan, uint64_t seed)
{
    struct ndt_bag_reader *bag;
    struct ndt_bag_record record;
    struct ndt_random random = {seed};
    double next_us = ndt_clock_us();
    must(ndt_bag_open(&bag, path, &err) == NDT_OK, path);
    while (!stopped && ndt_bag_next(bag, &record, &err) == NDT_OK) {
        if (record.type == NDT_MESSAGE_TRUTH)
            keep_truth(&record);
        if (record.type == NDT_MESSAGE_TRUTH || record.type == NDT_MESSAGE_RESULT)
            continue;
        if (record.type != NDT_MESSAGE_SCAN) {
            send_frame(record.payload, record.length);
            continue;
        }
        for (uint32_t i = 0; i < bad_per_scan; i++)
            send_malformed(&random, &record);
        pace(next_us);
        collect(ndt_clock_us() + ANSWER_US, MOST_OPEN - 1);
        if (probe.answered + MOST_OPEN <= probe.sent) /* the daemon has ended, or an answer is missing */
            break;
        next_us = (next_us > ndt_clock_us() ? next_us : ndt_clock_us()) + 1e6 / rate_hz;
        send_scan(&record);
    }
    ndt_bag_close(bag);
    collect(ndt_clock_us() + ANSWER_US, 0);
}

static void damage(uint8_t *data, size_t size, struct ndt_random *random)
{
    const size_t at = ndt_random_next(random) % size;
    data[at] = (uint8_t)ndt_random_next(random);
}

/* Sends one malformed frame: random bytes, a truncated scan, a scan with some changed bytes in its header, a header
 * that declares gigabytes, nested containers, or an empty frame. */
static void send_malformed(struct ndt_random *random, const struct ndt_bag_record *good)
{
    static uint8_t frame[4096];
    const uint64_t kind = ndt_random_next(random) % 6;
    size_t size = ndt_random_next(random) % sizeof(frame);
    if (kind == 0) {
        for (size_t i = 0; i < size; i++)
            frame[i] = (uint8_t)ndt_random_next(random);
    } else if (kind <= 2) {
        size = size < good->length ? size : good->length - 1;
        memcpy(frame, good->payload, size);
        for (int i = 0; kind == 2 && i < 4 && size > 0; i++)
            damage(frame, size < 200 ? size : 200, random);
    } else if (kind == 3) {
        static const uint8_t huge[] = {0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1, 'v', 1,
                                       0xa4, 'd',  'a',  't',  'a',  0xc6, 0xff};
        memcpy(frame, huge, size = sizeof(huge));
    } else if (kind == 4) {
        memset(frame, 0x91, size);
    } else {
        size = 0;
    }
    send_frame(frame, size);
}

static long resident_kib(const char *pid)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static void make_scan(struct ndt_buffer *frame, uint64_t seq, uint32_t points)
{
    struct ndt_cloud cloud;
    struct ndt_scan_message message = {.seq = seq, .frame_id = "lidar"};
    ndt_cloud_init(&cloud);
    must(ndt_cloud_reserve(&cloud, points, 0, &err) == NDT_OK, "cloud");
    message.stamp_ns = probe.last_stamp_ns += 10000000;
    for (uint32_t i = 0; i < points; i++) {
        cloud.x_m[i] = (float)(i % 400) * 0.1f - 20;
        cloud.y_m[i] = (float)(i / 400) * 0.1f - 15;
        cloud.z_m[i] = (float)(i % 7) * 0.3f;
    }
    cloud.count = points;
    must(ndt_scan_encode(frame, &message, &cloud, &err) == NDT_OK, "scan");
    ndt_cloud_free(&cloud);
}

static void flood(uint32_t points, double rate_hz, double seconds)
{
    struct ndt_buffer frame;
    ndt_buffer_init(&frame);
    const double end_us = ndt_clock_us() + seconds * 1e6;
    for (double next_us = ndt_clock_us(); next_us < end_us; next_us += 1e6 / rate_hz) {
        make_scan(&frame, probe.sent, points);
        collect(next_us, -1);
        probe.sent_us[probe.sent++] = ndt_clock_us();
        send_frame(frame.data, frame.size);
    }
    ndt_buffer_free(&frame);
}

/* Sends five scans after the overload, each after the answer to the previous one, and returns the number of those
 * that were neither lost nor dropped. */
static unsigned recovery(uint32_t points)
{
    struct ndt_buffer frame;
    unsigned good = 0;
    const double begin_us = ndt_clock_us();
    ndt_buffer_init(&frame);
    for (int i = 0; i < 5; i++) {
        const unsigned at = probe.sent;
        make_scan(&frame, at, points);
        probe.sent_us[probe.sent++] = ndt_clock_us();
        send_frame(frame.data, frame.size);
        while (probe.answers[at] == 0 && ndt_clock_us() < probe.sent_us[at] + ANSWER_US)
            collect(ndt_clock_us() + 1e4, -1);
        good += probe.answers[at] > 0 && probe.outcome[at] != NDT_DROPPED;
        if (i == 0)
            printf("recovered_after_ms %.1f\n", (ndt_clock_us() - begin_us) / 1000);
    }
    ndt_buffer_free(&frame);
    return good;
}

static unsigned count_outcome(int outcome)
{
    unsigned count = 0;
    for (unsigned i = 0; i < probe.sent; i++)
        count += probe.answers[i] > 0 && probe.outcome[i] == outcome;
    return count;
}

static int overload(char **arguments)
{
    const uint32_t points = (uint32_t)strtoul(arguments[1], NULL, 10);
    const int rounds = atoi(arguments[4]);
    /* Warm-up: buffers reach their final size, those of a lost pose included, which a slow machine reaches late. */
    for (int round = 0; round < rounds && (round == 0 || count_outcome(NDT_LOST) < 2); round++) {
        flood(points, strtod(arguments[2], NULL), 1);
        collect(ndt_clock_us() + 2e6, 0);
    }
    printf("resident_before_kib %ld\n", resident_kib(arguments[0]));
    flood(points, strtod(arguments[2], NULL), strtod(arguments[3], NULL));
    const unsigned good = recovery(points);
    collect(ndt_clock_us() + 3e6, 0);
    printf("resident_after_kib %ld\nrecovered_of_5 %u\n", resident_kib(arguments[0]), good);
    return 0;
}

/* Sends a request and waits for the reply; returns whether that contains some bytes. */
static int ask(const struct ndt_request_message *request, const char *bytes)
{
    struct ndt_buffer frame;
    zmq_msg_t reply;
    ndt_buffer_init(&frame);
    zmq_msg_init(&reply);
    must(ndt_request_encode(&frame, request, &err) == NDT_OK, "request");
    must(zmq_send(probe.out, frame.data, frame.size, 0) >= 0, "send");
    must(zmq_msg_recv(&reply, probe.out, 0) > 0, "reply");
    const char *at = zmq_msg_data(&reply), *end = at + zmq_msg_size(&reply);
    const size_t length = strlen(bytes);
    while (at + length <= end && memcmp(at, bytes, length) != 0)
        at++;
    const int found = at + length <= end;
    zmq_msg_close(&reply);
    ndt_buffer_free(&frame);
    return found;
}

/* Asks for another map and waits until it is loaded; returns the exit code. */
static int load_map(const char *control, const char *path)
{
    const int wait_ms = 20000;
    struct ndt_request_message request = {.id = 1, .op = NDT_OP_LOAD_MAP};
    const struct ndt_request_message status = {.id = 2, .op = NDT_OP_STATUS};
    snprintf(request.path, sizeof(request.path), "%s", path);
    probe.context = zmq_ctx_new();
    probe.out = zmq_socket(probe.context, ZMQ_DEALER);
    zmq_setsockopt(probe.out, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    must(zmq_connect(probe.out, control) == 0, control);
    const int is_taken = ask(&request, "\xa2ok\xc3");
    while (is_taken && !ask(&status, "\xa4"
                                     "busy\xc2"))
        usleep(20000);
    zmq_close(probe.out);
    zmq_ctx_term(probe.context);
    return is_taken ? 0 : 1;
}

static void subscribe(const char *address, int waiting)
{
    const int wait_ms = 20, none = 0;
    probe.context = zmq_ctx_new();
    probe.in = zmq_socket(probe.context, ZMQ_SUB);
    zmq_setsockopt(probe.in, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(probe.in, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    zmq_setsockopt(probe.in, ZMQ_RCVHWM, &waiting, sizeof(waiting));
    zmq_setsockopt(probe.in, ZMQ_SUBSCRIBE, "", 0);
    must(zmq_connect(probe.in, address) == 0, address);
}

/* Counts the messages with points; all of them have to be whole and in order. */
static int view(const char *address, int reads)
{
    static struct ndt_points_message message;
    static struct ndt_cloud cloud;
    unsigned long messages = 0, points = 0, disorder = 0;
    zmq_msg_t frame;
    subscribe(address, 2);
    zmq_msg_init(&frame);
    while (!stopped) {
        if (!reads)
            usleep(20000);
        if (!reads || zmq_msg_recv(&frame, probe.in, 0) < 0)
            continue;
        const uint64_t before = message.seq;
        must(ndt_points_decode(zmq_msg_data(&frame), zmq_msg_size(&frame), &message, &cloud, &err) == NDT_OK,
             "points");
        disorder += messages++ > 0 && message.seq <= before;
        points = cloud.count > points ? cloud.count : points;
    }
    printf("messages %lu\nmost_points %lu\ndisorder %lu\n", messages, points, disorder);
    zmq_close(probe.in);
    zmq_ctx_term(probe.context);
    return 0;
}

/* Counts poses between scans; their stamps have to grow, and their states to be trusted. */
static int follow(const char *address)
{
    struct ndt_moment_message pose = {0};
    unsigned long kinds[NDT_POSE_KIND_COUNT] = {0}, messages = 0, disorder = 0, untrusted = 0;
    double farthest_m = 0;
    zmq_msg_t frame;
    subscribe(address, 1000);
    zmq_msg_init(&frame);
    while (!stopped) {
        if (zmq_msg_recv(&frame, probe.in, 0) < 0)
            continue;
        const struct ndt_moment_message before = pose;
        must(ndt_moment_decode(zmq_msg_data(&frame), zmq_msg_size(&frame), &pose, &err) == NDT_OK, "pose");
        kinds[pose.kind]++;
        untrusted += pose.state != NDT_STATE_TRACKING && pose.state != NDT_STATE_COASTING;
        if (messages++ == 0)
            continue;
        const double moved_m = ndt_pose_distance_m(&before.T_map_base, &pose.T_map_base);
        disorder += pose.stamp_ns <= before.stamp_ns;
        farthest_m = moved_m > farthest_m ? moved_m : farthest_m;
    }
    printf("messages %lu\nsmoothed %lu\nfiltered %lu\npredicted %lu\ndisorder %lu\nuntrusted %lu\nmost_mm %.0f\n",
           messages, kinds[NDT_POSE_SMOOTHED], kinds[NDT_POSE_FILTERED], kinds[NDT_POSE_PREDICTED], disorder,
           untrusted, farthest_m * 1e3);
    zmq_msg_close(&frame);
    zmq_close(probe.in);
    zmq_ctx_term(probe.context);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (argc == 4 && strcmp(mode, "load") == 0)
        return load_map(argv[2], argv[3]);
    signal(SIGTERM, on_signal);
    if (argc == 3 && strcmp(mode, "motion") == 0)
        return follow(argv[2]);
    if (argc == 3 && (strcmp(mode, "view") == 0 || strcmp(mode, "idle") == 0))
        return view(argv[2], strcmp(mode, "view") == 0);
    if ((argc == 6 || argc == 7) && strcmp(mode, "answers") == 0) {
        probe.daemon = argc == 7 ? argv[6] : NULL;
        connect_both(ZMQ_XPUB, argv[2], argv[3]);
        play(argv[4], strtod(argv[5], NULL), 0, 0);
    } else if (argc == 7 && strcmp(mode, "dense") == 0) {
        probe.points = strtoull(argv[6], NULL, 10);
        connect_both(ZMQ_XPUB, argv[2], argv[3]);
        play(argv[4], strtod(argv[5], NULL), 0, 0);
    } else if (argc == 9 && strcmp(mode, "overload") == 0) {
        connect_both(ZMQ_XPUB, argv[2], argv[3]);
        (void)overload(argv + 4);
    } else if (argc == 7 && strcmp(mode, "hostile") == 0) {
        probe.hostile = 1;
        connect_both(ZMQ_PUSH, argv[2], argv[3]);
        play(argv[4], 20, (uint32_t)strtoul(argv[5], NULL, 10), strtoull(argv[6], NULL, 10));
    } else {
        fprintf(stderr,
                "usage: live_probe answers|dense|overload|hostile|view|motion|idle ... (see live_probe.c)\n");
        return 2;
    }
    report();
    disconnect();
    return 0;
}
