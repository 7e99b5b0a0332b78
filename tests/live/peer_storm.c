/** @file
 * peer_storm: clients of ndtd that behave badly, for peers.sh. */
/* clang-format off */
/*   peer_storm leave   SCANS SECONDS            eight clients that send fast, and leave after up to 20 ms, again and again
 *   peer_storm hoard   CONTROL CLIENTS PID      clients that ask for `timings` and never read; memory of PID
 *   peer_storm topics  POSES SECONDS            a subscriber to ever more topics
 *   peer_storm connect ADDRESS COUNT SECONDS    connections that say nothing
 *   peer_storm scans   SCANS SENDERS BYTES PID  senders of messages of BYTES each, which are no scans; memory of PID */
/* clang-format on */
/* Exit code 0: the run is complete; the script checks the numbers. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "ndt/clock.h"
#include "ndt/random.h"
#include "ndt_proto/control_message.h"
#include "raw_peer.h"

enum { LEAVERS = 8, REQUESTS = 100, HOARD_MOST = 64 };

static double end_us;
static const char *address;

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "peer_storm: %s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(3);
}

static void *open_client(void *context, int type, const char *where, int mark)
{
    const int none = 0;
    void *socket = zmq_socket(context, type);
    must(socket != NULL, "socket");
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_SNDHWM, &mark, sizeof(mark));
    zmq_setsockopt(socket, ZMQ_RCVHWM, &mark, sizeof(mark));
    must(zmq_connect(socket, where) == 0, where);
    return socket;
}

static long resident_kib(const char *pid, const char *key)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtol(line + strlen(key) + 1, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

static void *leave(void *argument)
{
    struct ndt_random random = {*(uint64_t *)argument};
    const int heartbeat_ms = 5;
    uint64_t *clients = argument;
    for (*clients = 0; ndt_clock_us() < end_us; ++*clients) {
        void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUB);
        const int none = 0, mark = 100000;
        zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
        zmq_setsockopt(socket, ZMQ_SNDHWM, &mark, sizeof(mark));
        if (*clients % 2)
            zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &heartbeat_ms, sizeof(heartbeat_ms));
        must(zmq_connect(socket, address) == 0, address);
        const double leave_us = ndt_clock_us() + 1000 + (double)(ndt_random_next(&random) % 20000);
        while (ndt_clock_us() < leave_us)
            (void)zmq_send(socket, "no scan", 7, ZMQ_DONTWAIT);
        zmq_close(socket);
        zmq_ctx_term(context);
    }
    return NULL;
}

static void leavers(void)
{
    pthread_t threads[LEAVERS];
    uint64_t counts[LEAVERS], clients = 0;
    for (uint64_t i = 0; i < LEAVERS; i++) {
        counts[i] = i + 1;
        must(pthread_create(&threads[i], NULL, leave, &counts[i]) == 0, "thread");
    }
    for (int i = 0; i < LEAVERS; i++) {
        pthread_join(threads[i], NULL);
        clients += counts[i];
    }
    printf("clients %llu\n", (unsigned long long)clients);
}

static void hoard(void *context, int clients, const char *pid)
{
    struct ndt_buffer frame;
    struct ndt_error err;
    const struct ndt_request_message request = {.id = 1, .op = NDT_OP_TIMINGS, .count = 100000};
    const int small = 4096;
    void *sockets[HOARD_MOST];
    ndt_buffer_init(&frame);
    must(clients <= HOARD_MOST && ndt_request_encode(&frame, &request, &err) == NDT_OK, "request");
    printf("before_kib %ld\n", resident_kib(pid, "VmRSS:"));
    for (int i = 0; i < clients; i++) {
        sockets[i] = zmq_socket(context, ZMQ_DEALER);
        const int none = 0, one = 1, many = REQUESTS;
        zmq_setsockopt(sockets[i], ZMQ_LINGER, &none, sizeof(none));
        zmq_setsockopt(sockets[i], ZMQ_RCVHWM, &one, sizeof(one));
        zmq_setsockopt(sockets[i], ZMQ_RCVBUF, &small, sizeof(small));
        zmq_setsockopt(sockets[i], ZMQ_SNDHWM, &many, sizeof(many));
        must(zmq_connect(sockets[i], address) == 0, address);
        for (int k = 0; k < REQUESTS; k++)
            (void)zmq_send(sockets[i], frame.data, frame.size, ZMQ_DONTWAIT);
    }
    for (long last = -1, now = 0; now != last; usleep(1000000)) { /* until all requests are answered */
        last = now;
        now = resident_kib(pid, "VmRSS:");
    }
    printf("after_kib %ld\n", resident_kib(pid, "VmRSS:"));
    for (int i = 0; i < clients; i++)
        zmq_close(sockets[i]);
    ndt_buffer_free(&frame);
}

/* Sends topics in ZMTP of its own, since a client of libzmq is slower. Connects again when it is disconnected. */
static void topics(void)
{
    uint8_t out[4096], topic[30] = "\tSUBSCRIBE";
    struct ndt_random random = {7};
    while (ndt_clock_us() < end_us) {
        const int fd = raw_open(address + strlen("ipc://"), "SUB");
        for (int good = fd >= 0; good && ndt_clock_us() < end_us;) {
            size_t size = 0;
            while (size + 2 + sizeof(topic) <= sizeof(out)) {
                for (size_t i = 10; i < sizeof(topic); i++)
                    topic[i] = (uint8_t)ndt_random_next(&random);
                size = raw_frame(out, size, 4, topic, sizeof(topic));
            }
            good = raw_write(fd, out, size);
        }
        if (fd >= 0)
            close(fd);
    }
}

static void connect_silently(int count)
{
    int connected = 0;
    for (int i = 0; i < count; i++)
        connected += raw_connect(address + strlen("ipc://")) >= 0;
    printf("connected %d\n", connected);
    fflush(stdout);
    while (ndt_clock_us() < end_us)
        usleep(10000);
}

static void scans(void *context, int senders, size_t bytes, const char *pid)
{
    void *sockets[HOARD_MOST];
    char *data = calloc(1, bytes);
    must(data && senders <= HOARD_MOST, "senders");
    printf("before_kib %ld\n", resident_kib(pid, "VmRSS:"));
    for (int i = 0; i < senders; i++)
        sockets[i] = open_client(context, ZMQ_PUB, address, 2);
    usleep(500000); /* until the daemon has subscribed */
    for (int k = 0; k < 3; k++, usleep(300000))
        for (int i = 0; i < senders; i++)
            (void)zmq_send(sockets[i], data, bytes, ZMQ_DONTWAIT);
    printf("after_kib %ld\n", resident_kib(pid, "VmHWM:"));
    for (int i = 0; i < senders; i++)
        zmq_close(sockets[i]);
    free(data);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 3 ? argv[1] : "";
    void *context = zmq_ctx_new();
    address = argc > 3 ? argv[2] : NULL;
    end_us = ndt_clock_us() + 1e6 * (argc > 3 ? strtod(argv[3], NULL) : 0);
    if (argc == 4 && strcmp(mode, "leave") == 0)
        leavers();
    else if (argc == 5 && strcmp(mode, "hoard") == 0)
        hoard(context, atoi(argv[3]), argv[4]);
    else if (argc == 4 && strcmp(mode, "topics") == 0)
        topics();
    else if (argc == 5 && strcmp(mode, "connect") == 0) {
        end_us = ndt_clock_us() + 1e6 * strtod(argv[4], NULL);
        connect_silently(atoi(argv[3]));
    } else if (argc == 6 && strcmp(mode, "scans") == 0)
        scans(context, atoi(argv[3]), strtoul(argv[4], NULL, 10), argv[5]);
    else {
        fprintf(stderr, "usage: peer_storm leave|hoard|topics|scans ADDRESS ... (see peer_storm.c)\n");
        return 2;
    }
    zmq_ctx_term(context);
    return 0;
}
