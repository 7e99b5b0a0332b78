/** @file
 * @brief Whatever is named as a file to be read: pipes, sockets and devices are refused at once by every reader. */
#include "ndt_io/input_file.h"

#include <check.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"
#include "ndt_io/trajectory.h"
#include "ndtd/config_file.h"
#include "ndtd/curve_keys.h"
#include "ndtd/reference_trajectory.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndt_error err;

/* ---- what is not a file ---- */

static void make_pipe(const char *path)
{
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* it has no writer */
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_uint_lt(strlen(path), sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

static void make_device(const char *path)
{
    ck_assert_int_eq(symlink("/dev/zero", path), 0);
}

static void make_folder(const char *path)
{
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

/* ---- who reads ---- */

static enum ndt_status read_map(const char *path)
{
    struct ndt_map_config config;
    struct ndt_map *map;
    ndt_map_config_default(&config);
    return ndt_map_load(&map, path, &config, &err);
}

static enum ndt_status read_cloud(const char *path)
{
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    const enum ndt_status status = ndt_cloud_read(&cloud, path, &err);
    ndt_cloud_free(&cloud);
    return status;
}

static enum ndt_status read_tiles(const char *path)
{
    struct ndt_tile_set set;
    (void)path;
    return ndt_tile_set_open(&set, temp_path("tiles"), &err); /* the metadata in there */
}

static enum ndt_status read_bag(const char *path)
{
    struct ndt_bag_reader *reader;
    return ndt_bag_open(&reader, path, &err);
}

static enum ndt_status read_poses(const char *path)
{
    struct ndt_trajectory poses;
    return ndt_trajectory_read(&poses, path, NDT_TUM, &err);
}

static enum ndt_status read_reference(const char *path)
{
    struct ndtd_reference_trajectory reference;
    return ndtd_reference_trajectory_read(&reference, path, &err);
}

static enum ndt_status read_config(const char *path)
{
    static struct ndtd_settings settings;
    return ndtd_config_read(&settings, path, &err);
}

static enum ndt_status read_key(const char *path)
{
    char key[NDTD_KEY_TEXT + 1];
    return ndtd_key_read(path, 0, key, &err);
}

static const struct {
    const char *name;
    enum ndt_status (*read)(const char *path);
} readers[] = {{"map.ndtmap", read_map},
               {"map.pcd", read_map},
               {"cloud.ply", read_cloud},
               {"cloud.bin", read_cloud},
               {"tiles/pointcloud_map_metadata.yaml", read_tiles},
               {"drive.bag", read_bag},
               {"poses.tum", read_poses},
               {"truth.tum", read_reference},
               {"ndtd.yaml", read_config},
               {"server.secret", read_key}};
static const struct {
    const char *name;
    void (*make)(const char *path);
    int may_be_map; /* a map may be a folder */
} kinds[] = {
    {"pipe", make_pipe, 0}, {"socket", make_socket, 0}, {"device", make_device, 0}, {"directory", make_folder, 1}};
enum {
    READERS = sizeof(readers) / sizeof(readers[0]),
    KINDS = sizeof(kinds) / sizeof(kinds[0]),
    PAIRS = READERS * KINDS
};

FIXTURE(temp_dir_make, temp_dir_remove)

/* The alarm ends the test if a reader waits. */
TEST_EACH(what_is_not_a_file_is_refused_at_once, 0, PAIRS)
{
    const int reader = _i / KINDS, kind = _i % KINDS;
    const char *path = temp_path(readers[reader].name);
    alarm(30);
    ck_assert_int_eq(mkdir(temp_path("tiles"), 0700), 0);
    kinds[kind].make(path);
    strcpy(err.text, "");
    ck_assert_msg(readers[reader].read(path) != NDT_OK, "%s reads a %s", readers[reader].name, kinds[kind].name);
    ck_assert_msg(strstr(err.text, readers[reader].name) || kinds[kind].may_be_map, "%s", err.text);
    if (!kinds[kind].may_be_map && readers[reader].read != read_key)
        ck_assert_msg(strstr(err.text, kinds[kind].name) != NULL, "%s: '%s' does not say %s", readers[reader].name,
                      err.text, kinds[kind].name);
}

TEST(a_path_can_be_checked)
{
    temp_text("file", "text");
    ck_assert_int_eq(ndt_input_file_check(temp_path("file"), 0, &err), NDT_OK);
    ck_assert_int_eq(ndt_input_file_check(temp_path("none"), 1, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "No such file"));
    ck_assert_int_eq(ndt_input_file_check(temp_dir, 0, &err), NDT_ERR_IO);
    ck_assert_int_eq(ndt_input_file_check(temp_dir, 1, &err), NDT_OK);
    make_pipe(temp_path("pipe"));
    ck_assert_int_eq(ndt_input_file_check(temp_path("pipe"), 1, &err), NDT_ERR_IO);
}

TEST(a_whole_file_is_read_up_to_a_limit)
{
    char *text;
    size_t size;
    temp_write("file", "a\0b", 3);
    ck_assert_int_eq(ndt_input_file_read(&text, &size, temp_path("file"), 3, &err), NDT_OK);
    ck_assert_uint_eq(size, 3);
    ck_assert_mem_eq(text, "a\0b", 4);
    free(text);
    ck_assert_int_eq(ndt_input_file_read(&text, &size, temp_path("file"), 2, &err), NDT_ERR_LIMIT);
    ck_assert_ptr_null(text);
    ck_assert_ptr_nonnull(strstr(err.text, "3 bytes"));
}
