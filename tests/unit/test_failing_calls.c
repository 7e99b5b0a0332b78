/** @file
 * @brief Tests of what happens when calls of the system or of libzmq fail. The functions below stand before those
 * of the libraries; tests/faults does the same to the whole daemon, at random. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "live_peer.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"
#include "ndtd/curve_keys.h"
#include "ndtd/map_field.h"
#include "run_tests.h"
#include "temp_dir.h"

/* ---- the calls ---- */

/* `count` calls of `name` fail, after `skip` that do not. */
static struct {
    const char *name;
    int skip, count, error;
} failing;

static int fails(const char *name)
{
    if (!failing.name || strcmp(failing.name, name) != 0 || failing.count <= 0 || failing.skip-- > 0)
        return 0;
    failing.count--;
    if (failing.error)
        errno = failing.error;
    return 1;
}

static void let_fail(const char *name, int skip, int count, int error)
{
    failing.skip = skip;
    failing.count = count;
    failing.error = error;
    failing.name = name;
}

/* Sets `call` to the function that a program without those below calls. */
static void find_next(void *call, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(call, &found, sizeof(found));
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    ssize_t (*call)(int, void *, size_t, off_t);
    find_next(&call, "pread");
    return fails("pread") ? -1 : call(fd, buffer, size, offset);
}

/* Fails as a full disk does: the last byte is not written. */
ssize_t write(int fd, const void *buffer, size_t size)
{
    ssize_t (*call)(int, const void *, size_t);
    find_next(&call, "write");
    return call(fd, buffer, fails("write") ? size - 1 : size);
}

int unlink(const char *path)
{
    int (*call)(const char *);
    find_next(&call, "unlink");
    return fails("unlink") ? -1 : call(path);
}

char *strdup(const char *text)
{
    char *(*call)(const char *);
    find_next(&call, "strdup");
    return fails("strdup") ? NULL : call(text);
}

int zmq_curve_keypair(char *public_key, char *secret_key)
{
    int (*call)(char *, char *);
    find_next(&call, "zmq_curve_keypair");
    return fails("zmq_curve_keypair") ? -1 : call(public_key, secret_key);
}

void *zmq_socket(void *context, int type)
{
    void *(*call)(void *, int);
    find_next(&call, "zmq_socket");
    return fails("zmq_socket") ? NULL : call(context, type);
}

int zmq_poll(zmq_pollitem_t *items, int count, long timeout_ms)
{
    int (*call)(zmq_pollitem_t *, int, long);
    find_next(&call, "zmq_poll");
    return fails("zmq_poll") ? -1 : call(items, count, timeout_ms);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define ALLOCATIONS_FAIL 1
extern void *__libc_calloc(size_t count, size_t size);

void *calloc(size_t count, size_t size)
{
    return fails("calloc") ? NULL : __libc_calloc(count, size);
}
#else
#define ALLOCATIONS_FAIL 0 /* sanitizers have allocators of their own */
#endif

/* ---- tests ---- */

static struct ndt_error err;

static void set_up(void)
{
    temp_dir_make();
    err.text[0] = '\0';
}

static void tear_down(void)
{
    failing.name = NULL;
    temp_dir_remove();
}

static void says(const char *words)
{
    ck_assert_msg(strstr(err.text, words) != NULL, "no '%s' in '%s'", words, err.text);
}

static void put_cloud(const char *name)
{
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    ck_assert_int_eq(ndt_cloud_reserve(&cloud, 4000, 0, NULL), NDT_OK);
    for (size_t i = 0; i < 4000; i++) {
        cloud.x_m[i] = 0.07f * (float)(i % 97);
        cloud.y_m[i] = 0.05f * (float)(i / 97);
        cloud.z_m[i] = 0.01f * (float)(i % 13);
    }
    cloud.count = 4000;
    ck_assert_int_eq(ndt_pcd_write(&cloud, temp_path(name), NDT_PCD_BINARY, NULL), NDT_OK);
    ndt_cloud_free(&cloud);
}

FIXTURE(set_up, tear_down)

TEST(interrupted_reads_go_on)
{
    struct ndt_map_config config;
    struct ndt_map *map;
    ndt_map_config_default(&config);
    put_cloud("a.pcd");
    let_fail("pread", 0, 5, EINTR);
    must(ndt_map_load(&map, temp_path("a.pcd"), &config, &err));
    ck_assert_int_eq(failing.count, 0);
    ndt_map_release(map);
}

TEST(metadata_without_memory)
{
    struct ndt_tile_set set;
    int without_memory = 0;
    put_cloud("A.pcd");
    temp_text("pointcloud_map_metadata.yaml", "x_resolution: 20\ny_resolution: 20\nA.pcd: [0, 0]\n");
    for (int skip = 0, was_whole = 0; !was_whole; skip++) {
        let_fail("strdup", skip, 1, ENOMEM);
        const enum ndt_status status = ndt_tile_set_open(&set, temp_dir, &err);
        was_whole = failing.count > 0;
        ck_assert_int_eq(status == NDT_OK, was_whole);
        without_memory += status == NDT_ERR_MEMORY;
        ck_assert_uint_eq(set.count, (size_t)was_whole);
        ndt_tile_set_close(&set);
    }
    ck_assert_int_eq(without_memory, 3); /* the keys; libyaml, whose calls come first, gives no reason */
}

/* Each allocation fails once: the map is loaded and saved whole, or not at all. */
TEST(maps_without_memory)
{
    struct ndt_map_config config;
    int failed[2] = {0};
    if (!ALLOCATIONS_FAIL)
        return;
    ndt_map_config_default(&config);
    put_cloud("a.pcd");
    for (int saves = 0; saves < 2; saves++)
        for (int skip = 0, was_whole = 0; !was_whole; skip++) {
            struct ndt_map *map = NULL;
            if (!saves)
                let_fail("calloc", skip, 1, ENOMEM);
            enum ndt_status status = ndt_map_load(&map, temp_path("a.pcd"), &config, &err);
            if (saves) {
                ck_assert_int_eq(status, NDT_OK);
                let_fail("calloc", skip, 1, ENOMEM);
                status = ndtd_map_save(map, temp_path("a.ndtmap"), &err);
            }
            was_whole = failing.count > 0;
            failing.name = NULL;
            failed[saves] += !was_whole;
            ck_assert_msg(status == (was_whole ? NDT_OK : NDT_ERR_MEMORY), "calloc %d: %d", skip, status);
            ck_assert_int_eq(temp_exists(temp_path("a.ndtmap")), saves && was_whole);
            if (map)
                ndt_map_release(map);
        }
    ck_assert_int_gt(failed[0], 0);
}

TEST(keys_are_whole_or_absent)
{
    let_fail("zmq_curve_keypair", 0, 1, ENOTSUP);
    ck_assert_int_eq(ndtd_make_keys(temp_path("k"), &err), NDT_ERR_UNSUPPORTED);
    says("without CURVE");
    ck_assert(!temp_exists(temp_path("k.secret")) && !temp_exists(temp_path("k.public")));
    for (int file = 0; file < 2; file++) {
        let_fail("write", file, 1, 0);
        ck_assert_int_eq(ndtd_make_keys(temp_path("k"), &err), NDT_ERR_IO);
        says(strerror(EIO));
        ck_assert(!temp_exists(temp_path("k.secret")) && !temp_exists(temp_path("k.public")));
    }
    ck_assert_int_eq(ndtd_make_keys(temp_path("k"), &err), NDT_OK);
}

TEST(admission_outlasts_signals)
{
    const char *parts[] = {"1.0", "1", "", "peer", "", "NULL", ""};
    const int patience_ms = 20000, no_linger = 0;
    struct ndtd_client_list list = {0};
    struct ndtd_zap_handler *handler;
    char text[64];
    void *context = zmq_ctx_new();
    if (ALLOCATIONS_FAIL) {
        let_fail("calloc", 0, 1, ENOMEM);
        ck_assert_int_eq(ndtd_zap_start(&handler, context, &list, &err), NDT_ERR_MEMORY);
    }
    let_fail("zmq_poll", 0, 3, EINTR);
    ck_assert_int_eq(ndtd_zap_start(&handler, context, &list, &err), NDT_OK);
    void *socket = zmq_socket(context, ZMQ_REQ);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms));
    zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof(no_linger));
    ck_assert_int_eq(zmq_connect(socket, "inproc://zeromq.zap.01"), 0);
    for (int i = 0; i < 7; i++)
        ck_assert_int_ge(zmq_send(socket, parts[i], strlen(parts[i]), i < 6 ? ZMQ_SNDMORE : 0), 0);
    ck_assert_msg(zmq_recv(socket, text, sizeof(text), 0) == 3, "no answer");
    zmq_close(socket);
    ndtd_zap_stop(handler);
    zmq_ctx_term(context);
}

TEST(sockets_that_cannot_be_opened)
{
    struct ndtd_sockets *sockets;
    const struct ndtd_endpoint endpoint = live_endpoint("ipc://%s", temp_path("s"));
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    void *socket_of = NULL;
    ck_assert_int_eq(ndtd_sockets_open(&sockets, NULL, &err), NDT_OK);
    let_fail("zmq_socket", 0, 1, EMFILE);
    ck_assert_int_eq(ndtd_socket_bind(&socket_of, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_IO);
    says("cannot create a socket");
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0); /* of a dead process, in a folder that became read-only */
    strcpy(name.sun_path, temp_path("s"));
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
    close(fd);
    let_fail("unlink", 0, 1, EACCES);
    ck_assert_int_eq(ndtd_socket_bind(&socket_of, sockets, ZMQ_PULL, &endpoint, &err), NDT_ERR_IO);
    says("cannot remove the socket of a dead process");
    ndtd_sockets_close(sockets);
}
