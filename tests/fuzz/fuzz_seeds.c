/* Writes small seeds for the fuzz targets with the project's own writers, so that they follow the formats:
 *
 *     fuzz_seeds FOLDER        writes FOLDER/TARGET/NAME
 *
 * Seeds of crashes that were repaired, which nothing generates, are in tests/fuzz/seeds. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "ndt/random.h"
#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/compiled_map.h"
#include "ndt_proto/message.h"
#include "ndtd/curve_keys.h"
#include "ndtd/map_field.h"
#include "ndtd/options.h"

static const char *folder;
static struct ndt_error err;

static void must(enum ndt_status status)
{
    FUZZ_REQUIRE(status == NDT_OK, "%s", err.text);
}

/* The path of a seed; makes the folder of its target. Valid until the next call. */
static const char *path_of(const char *target, const char *name)
{
    static char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, target);
    FUZZ_REQUIRE(mkdir(path, 0777) == 0 || errno == EEXIST, "%s", path);
    snprintf(path, sizeof(path), "%s/%s/%s", folder, target, name);
    (void)unlink(path);
    return path;
}

static void write_bytes(const char *target, const char *name, const void *data, size_t size)
{
    FILE *file = fopen(path_of(target, name), "wb");
    FUZZ_REQUIRE(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "%s/%s", target, name);
}

/* ---- messages, and a bag of them ---- */

/* The bytes of a vector of proto/golden; returns their number. */
static size_t read_golden(const char *name, uint8_t *bytes, size_t capacity)
{
    char path[1024], line[512];
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/%s", NDT_GOLDEN_DIR, name);
    FILE *file = fopen(path, "r");
    FUZZ_REQUIRE(file, "%s", path);
    while (fgets(line, sizeof(line), file)) {
        unsigned byte;
        int used;
        for (const char *at = line; *at != '#' && size < capacity && sscanf(at, " %2x%n", &byte, &used) == 1;
             at += used)
            bytes[size++] = (uint8_t)byte;
    }
    fclose(file);
    return size;
}

/* All messages, one behind the other, with their sizes. */
static void add_to_sequence(const uint8_t *bytes, size_t size, int is_last)
{
    static uint8_t sequence[16384];
    static size_t at;
    sequence[at++] = (uint8_t)(size >> 8);
    sequence[at++] = (uint8_t)size;
    memcpy(sequence + at, bytes, size);
    at += size;
    if (is_last)
        write_bytes("sequence", "messages", sequence, at);
}

static void write_messages(void)
{
    struct ndt_bag_writer *bag;
    struct dirent **names;
    uint8_t bytes[4096];
    const int count = scandir(NDT_GOLDEN_DIR, &names, NULL, alphasort);
    must(ndt_bag_create(&bag, path_of("bag", "messages"), 0, &err));
    for (int i = 0; i < count; i++) {
        struct ndt_bag_record record = {.payload = bytes, .receive_time_ns = 1000 + i};
        enum ndt_message_type type;
        if (strstr(names[i]->d_name, ".hex")) {
            record.length = (uint32_t)read_golden(names[i]->d_name, bytes, sizeof(bytes));
            write_bytes("message", names[i]->d_name, bytes, record.length);
            must(ndt_message_peek(bytes, record.length, &type, &err));
            record.type = (uint32_t)type;
            if (record.length < 256)
                must(ndt_bag_write(bag, &record, &err));
            if (type != NDT_MESSAGE_REQUEST && type != NDT_MESSAGE_REPLY && type != NDT_MESSAGE_RESULT)
                add_to_sequence(bytes, record.length, i == count - 1);
        }
        free(names[i]);
    }
    free(names);
    must(ndt_bag_finish(bag, &err));
    write_bytes("bag", "empty", "NDTBAG\r\n\1\0\0\0\0\0\0", 16);
}

/* ---- clouds ---- */

static void make_cloud(struct ndt_cloud *cloud, size_t count, unsigned fields)
{
    struct ndt_random random = {5};
    ndt_cloud_init(cloud);
    must(ndt_cloud_reserve(cloud, count, fields, &err));
    cloud->count = count;
    for (size_t i = 0; i < count; i++) {
        cloud->x_m[i] = (float)(i % 4);
        cloud->y_m[i] = (float)ndt_random_between(&random, -5, 5);
        cloud->z_m[i] = i == 3 ? NAN : 1.5f;
        if (cloud->intensity)
            cloud->intensity[i] = (float)i;
        if (cloud->time_s)
            cloud->time_s[i] = 0.01f * (float)i;
    }
}

static void write_clouds(void)
{
    static const char *const names[] = {"ascii", "binary", "compressed"};
    static const char ply[] =
        "ply\nformat %s 1.0\ncomment a\nelement vertex 2\nproperty %s x\nproperty %s y\nproperty float z\n"
        "property uchar intensity\nproperty uint t\nelement face 1\nproperty list uchar int "
        "vertex_indices\nend_header\n";
    struct ndt_cloud cloud;
    char text[1024];
    for (int kind = NDT_PCD_ASCII; kind <= NDT_PCD_COMPRESSED; kind++)
        for (int wide = 0; wide < 2; wide++) {
            make_cloud(&cloud, 12, wide ? NDT_CLOUD_INTENSITY | NDT_CLOUD_TIME : 0);
            cloud.origin_m[0] = wide ? 400384 : 0;
            snprintf(text, sizeof(text), "%s%s.pcd", names[kind], wide ? "_wide" : "");
            must(ndt_pcd_write(&cloud, path_of("pcd", text), (enum ndt_pcd_data)kind, &err));
            ndt_cloud_free(&cloud);
        }
    for (int wide = 0; wide < 2; wide++) {
        int size = snprintf(text, sizeof(text), ply, "ascii", wide ? "double" : "float", "float");
        size += snprintf(text + size, sizeof(text) - (size_t)size, "%s", "1 2 3 4 5\n-1e3 2.5 nan 0 9\n3 0 1 1\n");
        write_bytes("ply", wide ? "ascii_wide" : "ascii", text, (size_t)size);
        size = snprintf(text, sizeof(text), ply, "binary_little_endian", wide ? "double" : "float", "float");
        const size_t body = 2 * (wide ? 21 : 17) + 13;
        memset(text + size, 1, body);
        write_bytes("ply", wide ? "binary_wide" : "binary", text, (size_t)size + body);
    }
    const float points[] = {1, 2, 3, 0.5f, -4, 5, NAN, 1, 2e6f, 0, 1, 0};
    write_bytes("kitti", "three", points, sizeof(points));
}

/* ---- changes of a map: of the four points that fuzz_overlay has, one goes and one comes ---- */

static void write_overlay(void)
{
    static const double points_m[] = {1, 2, 3, -4, 5, 6, 7, 8, -9, 0.5, 0.25, 0};
    uint64_t words[9] = {0, 1, 4, 0, 1, 1};
    uint8_t bytes[76];
    memcpy(words, "NDTDCHG1", 8);
    for (size_t i = 0; i < 12; i++) {
        uint64_t bits;
        memcpy(&bits, &points_m[i], sizeof(bits));
        words[3] += bits;
    }
    memcpy(words + 6, points_m, 24);
    memcpy(bytes, words, 48);
    memcpy(bytes + 48, (const uint32_t[]){2}, 4);
    memcpy(bytes + 52, words + 6, 24);
    write_bytes("overlay", "change", bytes, sizeof(bytes));
}

/* ---- text ---- */

struct text_seed {
    const char *target, *name, *text;
};
static const struct text_seed texts[] = {
    {"pipeline", "steps", "ACCCDDEEFFGGHHIIJJKKLLMMCCCC"},
    {"pipeline", "drive", "@D@@@@@@"},
    {"build", "points",
     "\1\2\4\1aabbccaabbccddaabbaabbddccbbaaabbacccbacaabbccaabbaaaaaaaaaabbbbccccddddcdcdcdaabbaa"},
    {"pipeline", "late", "BD@\377@\376@@"},
    {"trajectory", "tum", "T# stamp\n1317042272.349000 1 2 3 0 0 0 1\n-0.5 1e3 -2.25 0 0.5 -0.5 0.5 -0.5\n"},
    {"trajectory", "kitti", "K1 0 0 5 0 1 0 -6 0 0 1 7\n0 -1 0 1 1 0 0 2 0 0 1 3 # turned\n"},
    {"trajectory", "times", "S0.000000\n1.5e0\n1317042272.349000000\n\n# end\n-2\n"},
    {"trajectory", "reference",
     "R# trajectory_hash 0123456789abcdef\n# tolerance_m 0.1\n# tolerance_deg 1\n1 0 0 0 0 0 0 1\n"},
    {"trajectory", "hash", "R0123456789abcdef\n"},
    {"trajectory", "summary", "R{\"scans\": 5, \"trajectory_hash\": \"0123456789abcdef\"}"},
    {"tiles", "metadata", "x_resolution: 20.0\ny_resolution: 20\na.pcd: [0, 0]\nb.pcd: [20, -20.5]\n"},
    {"tiles", "names", "# tiles\n0_20.pcd: [0, 20]\nx_resolution: 20\ny_resolution: 20\n"},
    {"config", "ros",
     "/**:\n  ros__parameters:\n    ndt:\n      levels: [2.0, 1.0]\n    frames.T_base_sensor: [0, 0, 1.8, 0, 0, "
     "0]\n"},
    {"config", "flow", "{ndt: {levels: [4, 2, 1], resolution: 1.0}, map.path: 'a b.pcd', live: {budget_ms: 50}}\n"},
    {"config", "frames",
     "frames:\n  sensors: [\"left 0 1 0 0 0 0\", \"right 0 -1 0 0 0 1.57\"]\n  merge_sensors: true\n"},
    {"config", "words",
     "recovery: {enable: off}\nbackend.name: \"cpu\"\nlog.level: debug\ninitial_pose.pose: [1, 2, 3, 0, 0, 0, "
     "1]\n"},
    {"config", "autoware",
     "/**:\n  ros__parameters:\n    frame: {map_frame: map}\n    ndt: {resolution: 2.0, num_threads: 4}\n    "
     "score_estimation: {converged_param_type: 1}\n    covariance:\n      covariance_estimation: {enable: true, "
     "covariance_estimation_type: 2}\n    validation: {skipping_publish_num: 5}\n"},
    {"config", "autoware_flat",
     "/a/ndt_scan_matcher:\n  ros__parameters: {step_size: 0.1, neighborhood_search_method: 2, offset_array_x: "
     "[0.5], "
     "offset_array_y: [0.5], use_covariance_estimation: true, lidar_radius: 90}\n"},
    {"config", "faults",
     "? {a: [b]}\n: {c: [1, {d: 2}]}\nndt: {levls: [1, [2]], variant: {a: 1}}\n/**: {x: {y: 1}}\ncpu: *a\n"},
    {"config", "empty", "---\n"},
    {"web_json", "pose",
     "{\"op\":\"initial_pose\",\"pose\":[1.5,-2e3,0.1,0,0,0.6,0.8],\"stamp_ns\":\"1700000000000000001\",\"frame_"
     "id\":\"map\"}"},
    {"web_json", "localize",
     "{\"op\": \"localize\", \"position\": [1, 2, 3], \"deviation\": [1, 1, 1], \"heading\": 0.5, \"apply\": "
     "false}"},
    {"web_json", "record", "{\"op\":\"start_recording\",\"path\":\"drive\\u002d1.bag\"}"},
    {"web_json", "summary",
     "{\"map_id\":14632668149701939649,\"stamp_ns\":1700000000050000001,\"rows\":[[null,true,-0.5e-7,\"\\n\\\"\"],{"
     "}]}\n"},
};

static void write_texts(void)
{
    static struct ndtd_settings settings;
    char text[16384], name[32];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        write_bytes(texts[i].target, texts[i].name, texts[i].text, strlen(texts[i].text));
    ndtd_settings_default(&settings);
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        size_t size = (size_t)snprintf(text, sizeof(text), "%s=", option->name);
        ndtd_option_format(&settings, option, text + size, sizeof(text) - size);
        snprintf(name, sizeof(name), "%zu", i);
        write_bytes("option", name, text, strlen(text));
    }
    static const char transform[] =
        "frames.T_base_sensor=[1, 0, 1.8, 0, 0, 0.7071067811865476, 0.7071067811865476]";
    write_bytes("option", "transform", transform, strlen(transform));
}

static void write_keys(void)
{
    static const char key[] = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    char text[256];
    write_bytes("keys", "one", key, strlen(key));
    snprintf(text, sizeof(text), "# clients\n%s # a robot\n\n\t%s\r\n", key, key);
    write_bytes("keys", "list", text, strlen(text));
}

/* ---- maps: small boxes of points, as few cells as possible ---- */

static void add_box(struct ndt_cloud *cloud, const double at_m[3], const double size_m[3])
{
    struct ndt_random random = {cloud->count + 1};
    const size_t more = 12;
    must(ndt_cloud_reserve(cloud, cloud->count + more, 0, &err));
    for (size_t i = cloud->count; i < cloud->count + more; i++) {
        cloud->x_m[i] = (float)(at_m[0] + size_m[0] * ndt_random_unit(&random));
        cloud->y_m[i] = (float)(at_m[1] + size_m[1] * ndt_random_unit(&random));
        cloud->z_m[i] = (float)(at_m[2] + size_m[2] * ndt_random_unit(&random));
    }
    cloud->count += more;
}

static void write_map(const char *name, size_t levels, double far_m, int is_plain)
{
    static const double flat_m[3] = {0.9, 0.9, 0.02}, wall_m[3] = {0.02, 0.9, 0.9};
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    struct ndt_map *map;
    ndt_map_config_default(&config);
    config.level_count = levels;
    for (size_t i = 0; i < levels; i++)
        config.leaf_m[i] = (double)(1u << (levels - 1 - i));
    ndt_cloud_init(&cloud);
    add_box(&cloud, (double[3]){3, 3, 3.2}, flat_m);
    add_box(&cloud, (double[3]){4, 3, 3.2}, flat_m);
    add_box(&cloud, (double[3]){4.5, 4, 3.6}, wall_m);
    if (far_m > 0)
        add_box(&cloud, (double[3]){far_m, far_m, 3.2}, flat_m);
    must(ndt_map_from_cloud(&map, &config, &cloud, &err));
    if (is_plain)
        must(ndt_map_save(map, path_of("map", name), &err));
    else
        must(ndtd_map_save(map, path_of("map", name), &err));
    ndt_map_release(map);
    ndt_cloud_free(&cloud);
}

int main(int argc, char **argv)
{
    FUZZ_REQUIRE(argc == 2, "usage: fuzz_seeds FOLDER");
    folder = argv[1];
    FUZZ_REQUIRE(mkdir(folder, 0777) == 0 || errno == EEXIST, "%s", folder);
    write_messages();
    write_clouds();
    write_texts();
    write_overlay();
    write_keys();
    write_map("one", 1, 0, 1);
    write_map("field", 1, 0, 0);
    write_map("two_levels", 2, 0, 1);
    write_map("hashed", 1, 65000, 1);
    return 0;
}
