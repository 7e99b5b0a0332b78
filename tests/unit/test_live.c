/* The whole daemon in a child process, over ipc sockets: every scan is answered once, requests, reload, signals,
 * and a recording that replays bit-identically. */
#define _GNU_SOURCE /* memmem */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_proto/control_message.h"
#include "ndtd/config_file.h"
#include "ndtd/live.h"
#include "ndtd/pipeline.h"
#include "ndtd/replay_sinks.h"
#include "ndtd/settings_snapshot.h"
#include "run_tests.h"
#include "street_drive.h"
#include "temp_dir.h"

enum { PATIENCE_MS = 60000 };

static pid_t daemon_pid;
static char config_path[512], bag_path[512];
static void *context, *scans, *poses, *control;
static uint64_t request_id;

static void setup(void)
{
    street_drive_make();
    temp_dir_make();
    snprintf(config_path, sizeof(config_path), "%s/ndtd.yaml", temp_dir);
    snprintf(bag_path, sizeof(bag_path), "%s/live.bag", temp_dir);
    must(ndt_pcd_write(&drive.map_points, temp_path("map.pcd"), NDT_PCD_BINARY, &err));
    daemon_pid = 0;
}

static void close_socket(void **socket)
{
    if (*socket)
        zmq_close(*socket);
    *socket = NULL;
}

static void teardown(void)
{
    if (daemon_pid > 0) {
        kill(daemon_pid, SIGKILL);
        waitpid(daemon_pid, NULL, 0);
    }
    close_socket(&scans);
    close_socket(&poses);
    close_socket(&control);
    if (context)
        zmq_ctx_term(context);
    context = NULL;
    temp_dir_remove();
    street_drive_free();
}

/* `more` is appended to the configuration. */
static void write_config(const char *more)
{
    char text[4096];
    snprintf(
        text, sizeof(text),
        "cpu: {threads: 1}\n"
        "sockets:\n"
        "  scans: \"ipc://%s/scans.ipc\"\n  poses: \"ipc://%s/poses.ipc\"\n  control: \"ipc://%s/control.ipc\"\n"
        "%s",
        temp_dir, temp_dir, temp_dir, more);
    (void)temp_text("ndtd.yaml", text);
}

static enum ndt_status reread(void *unused, struct ndtd_settings *settings, struct ndt_error *why)
{
    (void)unused;
    ndtd_settings_default(settings);
    enum ndt_status status = ndtd_config_read(settings, config_path, why);
    if (status == NDT_OK && access(temp_path("use_map"), F_OK) == 0)
        snprintf(settings->map_path, sizeof(settings->map_path), "%s/map.pcd", temp_dir);
    return status == NDT_OK ? ndtd_settings_finish(settings, why) : status;
}

static void run_daemon(const char *record)
{
    const struct ndtd_live_options options = {.record = record, .reread = reread};
    struct ndtd_settings settings;
    struct ndt_error why = {""};
    enum ndt_status status = reread(NULL, &settings, &why);
    if (status == NDT_OK)
        status = ndtd_live(&settings, &options, &why);
    if (status != NDT_OK)
        fprintf(stderr, "daemon: %s\n", why.text);
#ifdef NDT_MEASURES_COVERAGE
    __gcov_dump(); /* _exit does not */
#endif
    _exit(status == NDT_OK ? 0 : 3);
}

/* Appends what a MessagePack value is made of: {key,key{...},key[...]} for maps and arrays, nothing for other
 * values. Returns what follows the value. */
static const uint8_t *append_shape(const uint8_t *at, char *out, size_t capacity)
{
    const uint8_t tag = *at++;
    const int is_map = tag >> 4 == 8 || tag == 0xde || tag == 0xdf;
    const int is_array = tag >> 4 == 9 || tag == 0xdc || tag == 0xdd;
    static const uint8_t sizes[32] = {[0x0a] = 4, [0x0b] = 8, [0x0c] = 1, [0x0d] = 2, [0x0e] = 4,
                                      [0x0f] = 8, [0x10] = 1, [0x11] = 2, [0x12] = 4, [0x13] = 8};
    size_t length = tag & 15;
    if (tag == 0xd9 || tag == 0xda || tag == 0xdc || tag == 0xdd || tag == 0xde || tag == 0xdf) {
        length = 0;
        for (int i = tag == 0xd9 ? 1 : tag == 0xdd || tag == 0xdf ? 4 : 2; i > 0; i--)
            length = length << 8 | *at++;
    }
    if (is_map || is_array) {
        const size_t used = strlen(out);
        snprintf(out + used, capacity - used, is_map ? "{" : "[");
        for (size_t i = 0; i < length; i++) {
            if (i > 0)
                strcat(out, ",");
            if (is_map) {
                ck_assert_uint_eq(*at >> 5, 5); /* keys are short texts */
                strncat(out, (const char *)at + 1, *at & 31);
                at += 1 + (*at & 31);
            }
            at = append_shape(at, out, capacity);
        }
        strcat(out, is_map ? "}" : "]");
        return at;
    }
    if (tag >> 5 == 5)
        return at + (tag & 31);
    if (tag == 0xd9 || tag == 0xda)
        return at + length;
    return at + (tag >= 0xc0 && tag < 0xe0 ? sizes[tag - 0xc0] : 0);
}

/* The reply begins so. */
static void assert_shape(const struct ndt_buffer *reply, const char *expected)
{
    static char shape[8192];
    shape[0] = '\0';
    ck_assert_ptr_eq(append_shape(reply->data, shape, sizeof(shape)), reply->data + reply->size);
    shape[strlen(expected)] = '\0';
    ck_assert_str_eq(shape, expected);
}

static void *open_socket(int type, const char *name)
{
    char address[600];
    const int none = 0;
    void *socket = zmq_socket(context, type);
    ck_assert_ptr_nonnull(socket);
    snprintf(address, sizeof(address), "ipc://%s/%s.ipc", temp_dir, name);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    if (type == ZMQ_SUB)
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
    ck_assert_int_eq(zmq_connect(socket, address), 0);
    return socket;
}

/* Returns 0 after the timeout. */
static int receive(void *socket, struct ndt_buffer *frame, int patience_ms)
{
    zmq_msg_t message;
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms));
    zmq_msg_init(&message);
    const int got = zmq_msg_recv(&message, socket, 0) >= 0;
    if (got) {
        free(frame->data);
        frame->size = frame->capacity = zmq_msg_size(&message);
        frame->data = malloc(frame->size + 1);
        memcpy(frame->data, zmq_msg_data(&message), frame->size);
    }
    zmq_msg_close(&message);
    return got;
}

static const uint8_t *find(const struct ndt_buffer *frame, const char *text)
{
    return memmem(frame->data, frame->size, text, strlen(text));
}

/* Sends one request and receives its reply; the memory of `reply` is reused. */
static void send_request(const struct ndt_request_message *request, struct ndt_buffer *reply)
{
    struct ndt_buffer frame;
    ndt_buffer_init(&frame);
    must(ndt_request_encode(&frame, request, &err));
    ck_assert_int_ge(zmq_send(control, frame.data, frame.size, 0), 0);
    ck_assert_msg(receive(control, reply, PATIENCE_MS), "no reply to %s", ndt_operation_name(request->op));
    ndt_buffer_free(&frame);
}

static void request_simple(enum ndt_operation op, struct ndt_buffer *reply)
{
    const struct ndt_request_message request = {.id = ++request_id, .op = op, .count = 10};
    send_request(&request, reply);
}

static int is_ok(const struct ndt_buffer *reply)
{
    return find(reply, "\xa2ok\xc3") != NULL; /* key "ok", true */
}

/* The unsigned value of the first key of that name. */
static uint64_t number(const struct ndt_buffer *reply, const char *key)
{
    char head[80];
    snprintf(head, sizeof(head), "%c%s", (char)(0xa0 | strlen(key)), key);
    const uint8_t *at = find(reply, head);
    ck_assert_msg(at != NULL, "no %s in the reply", key);
    at += strlen(head);
    if (*at < 0x80)
        return *at;
    ck_assert_msg(*at >= 0xcc && *at <= 0xcf, "%s is no unsigned number", key);
    uint64_t value = 0;
    for (int i = 0; i < 1 << (*at - 0xcc); i++)
        value = value << 8 | at[1 + i];
    return value;
}

static uint64_t status_number(const char *key)
{
    struct ndt_buffer reply = {0};
    request_simple(NDT_OP_STATUS, &reply);
    const uint64_t value = number(&reply, key);
    ndt_buffer_free(&reply);
    return value;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void await_number(const char *key, uint64_t value)
{
    for (int i = 0; i < PATIENCE_MS / 5 && status_number(key) < value; i++)
        nap();
    ck_assert_uint_ge(status_number(key), value);
}

/* Starts the daemon and returns when it answers requests and the subscription to its results is established. */
static void start_daemon(int with_map, const char *more, const char *record)
{
    struct ndt_buffer reply = {0};
    write_config(more);
    if (with_map)
        (void)temp_text("use_map", "");
    fflush(NULL);
    daemon_pid = fork();
    ck_assert_int_ge(daemon_pid, 0);
    if (daemon_pid == 0)
        run_daemon(record);
    context = zmq_ctx_new();
    control = open_socket(ZMQ_REQ, "control");
    poses = open_socket(ZMQ_SUB, "poses");
    scans = open_socket(strstr(more, "pull") ? ZMQ_PUSH : ZMQ_XPUB, "scans");
    request_simple(NDT_OP_HELLO, &reply);
    ck_assert(is_ok(&reply));
    await_number("subscribers", 1);
    if (!strstr(more, "pull")) /* wait for the subscription of the daemon */
        ck_assert(receive(scans, &reply, PATIENCE_MS));
    ndt_buffer_free(&reply);
}

/* The exit code; -1 when a signal ended it. */
static int end_daemon(int signal_number)
{
    int how;
    if (signal_number)
        kill(daemon_pid, signal_number);
    ck_assert_int_eq(waitpid(daemon_pid, &how, 0), daemon_pid);
    daemon_pid = 0;
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void send_frame(const struct ndt_buffer *frame)
{
    ck_assert_int_ge(zmq_send(scans, frame->data, frame->size, 0), 0);
}

static struct ndt_result_message next_result(void)
{
    struct ndt_buffer frame = {0};
    struct ndt_result_message result;
    ck_assert_msg(receive(poses, &frame, PATIENCE_MS), "a scan was not answered");
    must(ndt_result_decode(frame.data, frame.size, &result, &err));
    ndt_buffer_free(&frame);
    return result;
}

static struct ndt_result_message localise(size_t i)
{
    send_frame(&drive.scans[i]);
    const struct ndt_result_message result = next_result();
    ck_assert_uint_eq(result.seq, i);
    return result;
}

static const char *const PATIENT = "live: {budget_ms: 60000}\n";

FIXTURE(setup, teardown)

TEST(a_drive_is_answered)
{
    struct ndt_buffer frame = {0};
    start_daemon(1, PATIENT, NULL);
    send_frame(&drive.start);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        const struct ndt_result_message result = localise(i);
        ck_assert_msg(result.result.outcome == NDT_CONVERGED, "scan %zu: %s", i, result.result.reason);
        ck_assert_double_le(ndt_pose_distance_m(&result.result.T_map_sensor, &drive.truth[i]), 0.06);
        ck_assert_uint_ne(result.map_id, 0);
        ck_assert_uint_ne(result.config_hash, 0);
        ck_assert_str_eq(result.frame_id, "map");
    }
    ck_assert_int_eq(receive(poses, &frame, 50), 0); /* one each, no more */
    ck_assert_uint_eq(status_number("converged"), DRIVE_SCANS);
    ck_assert_uint_eq(status_number("threads"), 1); /* of the backend, as configured */
    ck_assert_uint_ge(status_number("samples"), 1); /* and its measurements */
    ck_assert_int_eq(end_daemon(SIGTERM), 0);
    ck_assert(!temp_exists(temp_path("scans.ipc")));
    ck_assert(!temp_exists(temp_path("control.ipc")));
}

/* A burst of more scans than the queue holds, and a slow aligner: each is answered, the newest is aligned. */
TEST(overload_is_answered)
{
    unsigned seen[DRIVE_SCANS] = {0}, dropped = 0;
    start_daemon(1, "live: {budget_ms: 60000}\nsockets.scans_kind: pull\ndebug: {align_delay_ms: 50}\n", NULL);
    send_frame(&drive.start);
    for (size_t i = 0; i < DRIVE_SCANS; i++)
        send_frame(&drive.scans[i]);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        const struct ndt_result_message result = next_result();
        ck_assert_uint_lt(result.seq, DRIVE_SCANS);
        seen[result.seq]++;
        dropped += result.result.outcome == NDT_DROPPED;
        if (result.seq == DRIVE_SCANS - 1)
            ck_assert_int_eq(result.result.outcome, NDT_CONVERGED);
    }
    for (size_t i = 0; i < DRIVE_SCANS; i++)
        ck_assert_uint_eq(seen[i], 1);
    ck_assert_uint_ge(dropped, 1);
    ck_assert_uint_eq(status_number("dropped"), dropped);
    ck_assert_int_eq(end_daemon(SIGTERM), 0);
}

TEST(shutdown_answers_waiting_scans)
{
    start_daemon(1, "live: {budget_ms: 60000}\nsockets.scans_kind: pull\ndebug: {align_delay_ms: 100}\n", NULL);
    send_frame(&drive.start);
    for (size_t i = 0; i < 3; i++)
        send_frame(&drive.scans[i]);
    await_number("given", 4);
    kill(daemon_pid, SIGTERM);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(next_result().seq, i);
    ck_assert_int_eq(end_daemon(0), 0);
}

TEST(missing_map_is_reported)
{
    struct ndt_buffer reply = {0};
    struct ndt_request_message load = {.id = 77, .op = NDT_OP_LOAD_MAP};
    start_daemon(0, PATIENT, NULL);
    send_frame(&drive.start);
    ck_assert_int_eq(localise(0).result.outcome, NDT_NO_MAP);
    snprintf(load.path, sizeof(load.path), "%s/none.pcd", temp_dir);
    send_request(&load, &reply);
    ck_assert(!is_ok(&reply)); /* said at once, not only in the status */
    load.op = NDT_OP_LOAD_TILE;
    send_request(&load, &reply);
    ck_assert(!is_ok(&reply));
    load.op = NDT_OP_LOAD_MAP;
    snprintf(load.path, sizeof(load.path), "%s/map.pcd", temp_dir);
    send_request(&load, &reply);
    ck_assert(is_ok(&reply));
    ck_assert_uint_eq(number(&reply, "id"), 77);
    await_number("loads", 1);
    for (int i = 0; i < PATIENCE_MS / 5 && status_number("map_id") == 0; i++)
        nap();
    ck_assert_int_eq(localise(1).result.outcome, NDT_CONVERGED);
    request_simple(NDT_OP_UNLOAD_MAP, &reply);
    for (int i = 0; i < PATIENCE_MS / 5 && status_number("map_id") != 0; i++)
        nap();
    ck_assert_int_eq(localise(2).result.outcome, NDT_NO_MAP);
    ndt_buffer_free(&reply);
    ck_assert_int_eq(end_daemon(SIGINT), 0);
}

/* Sections and keys of the replies, in their order. */
static const char timings_shape[] =
    "{v,type,id,ok,timings[{seq,stamp_ns,iteration,evaluations,tx,ty,tz,qx,qy,qz,qw,outcome,points_raw,"
    "points_thinned,points_used,transform_probability,nvtl,nvtl_normalized,match_ratio,coverage,state,"
    "hypotheses,margin,confidence,innovation,reference_s,reference_tx,reference_ty,reference_tz,"
    "reference_qx,reference_qy,reference_qz,reference_qw,vx,vy,vz,wx,wy,wz,oscillation,decode_us,"
    "queue_us,preprocess_us,upload_us,align_us,publish_us,protection_lateral,protection_longitudinal,"
    "protection_vertical,protection_heading,unsafe,latency_us,queue_depth}";
static const char status_shape[] =
    "{v,type,id,ok,version,uptime_s,state,backend,config_hash,needs_restart,map_id,scans,frames_refused,"
    "send_failures,scans_thinned,odometry_restarts,results_not_finite,estimates_not_finite,"
    "memory_released,poses_far,scans_slow,row_not_converged,map_checks,fits_elsewhere,log_lines_lost,connections_"
    "refused,pose[,,,,,,],"
    "localisation{state,changes,from,since_seq,"
    "since_stamp_ns,reason},states{initialising,tracking,coasting,lost,recovering,extending},search{search_id,"
    "running,percent,elapsed_ms},outcomes{converged,iteration_limit,deadline,dropped,rejected,low_score,"
    "degenerate,no_map,no_guess,off_map,lost,merged},latency_ms{scans,p50,p90,p99,max,budget},map{path,busy,"
    "failed,error,map_id,points,tiles_loaded,tiles_known,loads,last_load_ms},queue{depth,waiting,given,"
    "dropped,messages_lost},receiver{frames,scans,bytes,bad,recorded,record_failures,recording},"
    "recorder{state,file,frames,bytes,missing,waiting,waiting_bytes,dropped,error},publisher{published,"
    "lost,subscribers},points{published,lost,subscribers},motion{published,lost,subscribers},process{resident_"
    "bytes,peak_resident_bytes,cpu_s},route{"
    "source,backend,pipeline,threads,batch,reason,meets_budget,budget_ms,points,"
    "measured_s,";

TEST(requests_are_answered)
{
    struct ndt_buffer reply = {0};
    start_daemon(1, PATIENT, NULL);
    request_simple(NDT_OP_HELLO, &reply);
    ck_assert_uint_eq(number(&reply, "protocol"), NDT_PROTO_VERSION);
    ck_assert_ptr_nonnull(find(&reply, "start_recording"));
    assert_shape(&reply,
                 "{v,type,id,ok,name,version,protocol,operations[,,,,,,,,,,,,,,,,,],scans,poses,points,motion}");
    ck_assert_int_eq(localise(0).result.outcome, NDT_NO_GUESS);
    struct ndt_request_message pose = {.id = 5, .op = NDT_OP_INITIAL_POSE};
    pose.pose = (struct ndt_pose_message){.has_pose = 1, .pose = drive.truth[1], .frame_id = "map"};
    send_request(&pose, &reply);
    ck_assert(is_ok(&reply));
    ck_assert_int_eq(localise(1).result.outcome, NDT_CONVERGED);
    request_simple(NDT_OP_STOP, &reply);
    ck_assert_int_eq(localise(2).result.outcome, NDT_REJECTED);
    request_simple(NDT_OP_START, &reply);
    ck_assert_int_eq(localise(2).result.outcome, NDT_CONVERGED);
    for (int i = 0; i < PATIENCE_MS / 5 && status_number("scans") < 4; i++)
        nap();
    request_simple(NDT_OP_TIMINGS, &reply);
    ck_assert_ptr_nonnull(find(&reply, "latency_us"));
    ck_assert_ptr_nonnull(find(&reply, "no_guess"));
    assert_shape(&reply, timings_shape);
    const uint64_t seq = number(&reply, "seq"), raw = number(&reply, "points_raw");
    ck_assert_uint_le(seq, 2);
    ck_assert_uint_eq(number(&reply, "stamp_ns"), DRIVE_START_NS + DRIVE_STEP_NS * seq);
    ck_assert(raw > 100 && raw < 1000000);
    request_simple(NDT_OP_LOCALIZE, &reply);
    ck_assert(is_ok(&reply));
    ck_assert_uint_eq(number(&reply, "search_id"), 1);
    request_simple(NDT_OP_LOCALIZE, &reply); /* no scan has come: the first one waits */
    ck_assert(!is_ok(&reply));
    ck_assert_ptr_nonnull(find(&reply, "search 1 is running; cancel_search ends it"));
    request_simple(NDT_OP_CANCEL_SEARCH, &reply);
    for (int i = 0; i < PATIENCE_MS / 5 && !find(&reply, "cancelled"); i++, nap())
        request_simple(NDT_OP_SEARCH, &reply);
    ck_assert_ptr_nonnull(find(&reply, "cancelled"));
    request_simple(NDT_OP_STATUS, &reply);
    ck_assert_ptr_nonnull(find(&reply, "localising"));
    ck_assert_uint_eq(number(&reply, "changes"), 1); /* initialising -> tracking; a stop changes no state */
    ck_assert_uint_eq(number(&reply, "rejected"), 1);
    assert_shape(&reply, status_shape);
    ck_assert_uint_eq(number(&reply, "frames"), 4);
    ck_assert_uint_eq(number(&reply, "published"), 4);
    request_simple(NDT_OP_SHUTDOWN, &reply);
    ck_assert(is_ok(&reply));
    ndt_buffer_free(&reply);
    ck_assert_int_eq(end_daemon(0), 0);
}

/* A client that asks again at once, more often than libzmq looks for what its peers have read. */
TEST(every_request_in_a_row_is_answered)
{
    struct ndt_buffer reply = {0};
    start_daemon(0, "", NULL);
    for (int i = 0; i < 20000; i++)
        request_simple(NDT_OP_START, &reply); /* fails where there is no reply */
    ndt_buffer_free(&reply);
    ck_assert_int_eq(end_daemon(SIGTERM), 0);
}

TEST(bad_requests_are_answered_with_an_error)
{
    struct ndt_buffer reply = {0};
    start_daemon(0, PATIENT, NULL);
    const char *const junk[] = {"", "x", "\x81\xa1v\x01", "\xdf\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
        ck_assert_int_ge(zmq_send(control, junk[i], strlen(junk[i]), 0), 0);
        ck_assert(receive(control, &reply, PATIENCE_MS));
        ck_assert(!is_ok(&reply));
        ck_assert_ptr_nonnull(find(&reply, "error"));
    }
    void *dealer = open_socket(ZMQ_DEALER, "control"); /* no delimiter; then a part too many */
    ck_assert_int_ge(zmq_send(dealer, "x", 1, 0), 0);
    ck_assert(receive(dealer, &reply, PATIENCE_MS));
    ck_assert(!is_ok(&reply) && find(&reply, "error"));
    for (int i = 0; i < 9; i++)
        ck_assert_int_ge(zmq_send(dealer, "x", 1, i < 8 ? ZMQ_SNDMORE : 0), 0);
    ck_assert(receive(dealer, &reply, PATIENCE_MS));
    ck_assert(!is_ok(&reply) && find(&reply, "error"));
    zmq_close(dealer);
    request_simple(NDT_OP_STOP_RECORDING, &reply);
    ck_assert(!is_ok(&reply));
    request_simple(NDT_OP_STATUS, &reply);
    ck_assert(is_ok(&reply));
    ndt_buffer_free(&reply);
    ck_assert_int_eq(end_daemon(SIGTERM), 0);
}

TEST(configuration_is_reloaded)
{
    struct ndt_buffer reply = {0};
    start_daemon(1, PATIENT, NULL);
    send_frame(&drive.start);
    const struct ndt_result_message before = localise(0);
    ck_assert_int_eq(before.result.outcome, NDT_CONVERGED);
    write_config("live: {budget_ms: 60000, queue_depth: 5}\nscore_estimation: {score_threshold: 1.0}\n");
    request_simple(NDT_OP_RELOAD, &reply);
    ck_assert(is_ok(&reply));
    ck_assert_ptr_nonnull(find(&reply, "live.queue_depth"));
    const struct ndt_result_message after = localise(1);
    ck_assert_int_eq(after.result.outcome, NDT_LOW_SCORE);
    ck_assert_uint_ne(after.config_hash, before.config_hash);
    write_config("live: {budget_ms: never}\n");
    request_simple(NDT_OP_RELOAD, &reply);
    ck_assert(!is_ok(&reply));
    ck_assert_ptr_nonnull(find(&reply, "budget_ms"));
    ck_assert_uint_eq(localise(2).config_hash, after.config_hash);
    write_config(PATIENT);
    kill(daemon_pid, SIGHUP);
    for (int i = 0; i < PATIENCE_MS / 5 && status_number("config_hash") != before.config_hash; i++)
        nap();
    ck_assert_uint_eq(localise(3).config_hash, before.config_hash);
    ndt_buffer_free(&reply);
    ck_assert_int_eq(end_daemon(SIGTERM), 0);
}

/* Pipeline (iterations), worker and receiver (configuration hash of results and of rejections) and status follow.
 */
TEST(a_reload_reaches_every_part)
{
    struct ndt_buffer reply = {0};
    start_daemon(1, PATIENT, NULL);
    send_frame(&drive.start);
    const struct ndt_result_message before = localise(0);
    ck_assert_int_eq(before.result.outcome, NDT_CONVERGED);
    write_config("live: {budget_ms: 50000}\nndt: {max_iterations: 1, prior: off}\nscore_estimation: "
                 "{score_threshold: 1.0}\n");
    request_simple(NDT_OP_RELOAD, &reply);
    ck_assert(is_ok(&reply));
    const uint64_t hash = number(&reply, "config_hash");
    ck_assert_uint_ne(hash, before.config_hash);
    struct ndt_buffer cut = drive.scans[1];
    cut.size -= 8;
    send_frame(&cut);
    const struct ndt_result_message rejected = next_result();
    ck_assert_int_eq(rejected.result.outcome, NDT_REJECTED);
    ck_assert_uint_eq(rejected.config_hash, hash);
    const struct ndt_result_message after = localise(2);
    ck_assert_int_eq(after.result.iterations, 1);
    ck_assert_int_eq(after.result.outcome, NDT_LOW_SCORE);
    ck_assert_uint_eq(after.config_hash, hash);
    ck_assert_uint_eq(status_number("config_hash"), hash);
    ndt_buffer_free(&reply);
    ck_assert_int_eq(end_daemon(SIGTERM), 0);
}

/* The street in squares of 10 m along x. */
static void write_tiles(void)
{
    char text[4096] = "x_resolution: 10.0\ny_resolution: 200.0\n";
    struct ndt_cloud tile;
    ndt_cloud_init(&tile);
    ck_assert_int_eq(mkdir(temp_path("tiles"), 0700), 0);
    for (int k = 0; k < 12; k++) {
        char name[64];
        must(ndt_cloud_reserve(&tile, drive.map_points.count, 0, &err));
        tile.count = 0;
        for (size_t i = 0; i < drive.map_points.count; i++) {
            if ((int)floor((double)drive.map_points.x_m[i] / 10) != k)
                continue;
            tile.x_m[tile.count] = drive.map_points.x_m[i];
            tile.y_m[tile.count] = drive.map_points.y_m[i];
            tile.z_m[tile.count++] = drive.map_points.z_m[i];
        }
        snprintf(name, sizeof(name), "tiles/t%02d.pcd", k);
        must(ndt_pcd_write(&tile, temp_path(name), NDT_PCD_BINARY, &err));
        snprintf(text + strlen(text), 64, "t%02d.pcd: [%d, -100]\n", k, 10 * k);
    }
    (void)temp_text("tiles/pointcloud_map_metadata.yaml", text);
    ndt_cloud_free(&tile);
}

/* Tiles are loaded before the first scan and follow the sensor, while every scan is aligned. */
TEST(tiles_follow_the_sensor)
{
    char more[1024];
    write_tiles();
    snprintf(more, sizeof(more),
             "%smap: {path: \"%s/tiles\"}\n"
             "dynamic_map_loading: {update_distance: 2, map_radius: 15, lidar_radius: 5}\n",
             PATIENT, temp_dir);
    start_daemon(0, more, NULL);
    ck_assert_uint_eq(status_number("tiles_loaded"), 12); /* to search in, as the position is unknown */
    const uint64_t all = status_number("map_id");
    send_frame(&drive.start);
    for (int i = 0; i < PATIENCE_MS / 5 && status_number("map_id") == all; i++)
        nap();
    const uint64_t first = status_number("map_id"), loaded = status_number("tiles_loaded");
    ck_assert_uint_ge(loaded, 4);
    ck_assert_uint_lt(loaded, 8);
    ck_assert_uint_eq(status_number("tiles_known"), 12);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        const struct ndt_result_message result = localise(i);
        ck_assert_msg(result.result.outcome == NDT_CONVERGED, "scan %zu: %s", i, result.result.reason);
    }
    for (int i = 0; i < PATIENCE_MS / 5 && status_number("map_id") == first; i++)
        nap();
    ck_assert_uint_ne(status_number("map_id"), first);
    ck_assert_int_eq(end_daemon(SIGTERM), 0);
}

/* Feeds the recording to a pipeline, as the replay does. */
static void replay_and_compare(const struct ndt_result_message *live, size_t count)
{
    struct ndt_bag_reader *bag;
    struct ndt_bag_record line;
    struct ndtd_pipeline *pipeline;
    struct ndtd_scan_record record;
    size_t at = 0;
    must(ndt_bag_open(&bag, bag_path, &err));
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    while (ndt_bag_next(bag, &line, &err) == NDT_OK) {
        struct ndtd_message frame = {
            .type = (enum ndt_message_type)line.type, .data = line.payload, .size = line.length};
        if (frame.type == NDT_MESSAGE_SCAN)
            must(ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err));
        must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
        if (frame.type != NDT_MESSAGE_SCAN)
            continue;
        ck_assert_uint_lt(at, count);
        ck_assert_uint_eq(record.seq, live[at].seq);
        ck_assert_int_eq(record.result.outcome, live[at].result.outcome);
        ck_assert_mem_eq(&record.result.T_map_sensor, &live[at].result.T_map_sensor, sizeof(struct ndt_pose));
        ck_assert_mem_eq(record.result.covariance, live[at].result.covariance, sizeof(record.result.covariance));
        ck_assert_mem_eq(&record.result.scores, &live[at].result.scores, sizeof(record.result.scores));
        at++;
    }
    ck_assert_uint_eq(at, count);
    ndtd_pipeline_destroy(pipeline);
    ndt_bag_close(bag);
}

TEST(recording_replays_bit_identically)
{
    static struct ndt_result_message live[DRIVE_SCANS];
    struct ndt_pose_message message = {.frame_id = "odom", .has_twist = 1, .twist = {{8, 0.1, 0}, {0, 0, 0.05}}};
    struct ndt_buffer frame;
    ndt_buffer_init(&frame);
    start_daemon(1, PATIENT, bag_path);
    send_frame(&drive.start);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        message.stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)i - 1000;
        must(ndt_pose_message_encode(&frame, NDT_MESSAGE_ODOMETRY, &message, &err));
        send_frame(&frame);
        live[i] = localise(i);
        ck_assert_int_eq(live[i].result.outcome, NDT_CONVERGED);
    }
    ck_assert_int_eq(end_daemon(SIGTERM), 0);
    replay_and_compare(live, DRIVE_SCANS);
    ndt_buffer_free(&frame);
}

TEST(invalid_start_fails_with_one_line)
{
    (void)temp_text("map.pcd", "this is no cloud");
    write_config(PATIENT);
    (void)temp_text("use_map", "");
    fflush(NULL);
    daemon_pid = fork();
    ck_assert_int_ge(daemon_pid, 0);
    if (daemon_pid == 0) {
        ck_assert_ptr_nonnull(freopen(temp_path("stderr"), "w", stderr));
        run_daemon(NULL);
    }
    ck_assert_int_eq(end_daemon(0), 3);
    size_t size;
    char *text = (char *)temp_read(temp_path("stderr"), &size);
    ck_assert_msg(strstr(text, "map.pcd") != NULL, "%s", text);
    free(text);
    ck_assert(!temp_exists(temp_path("poses.ipc")));
}
