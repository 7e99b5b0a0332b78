/* ndt-sim: a simulated drive with exact truth, and the map to find it in. */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim_record.h"
#include "sim_scene.h"

/* Exit codes, as of every program of the house. */
enum { DONE = 0, USAGE = 2, FAILED = 3 };

static const char HELP[] =
    "usage: ndt-sim --seed N --out DIR [options]\n"
    "\n"
    "Simulates a drive with a spinning LiDAR. Writes DIR/map.pcd, a prior map surveyed apart from the drive,\n"
    "and DIR/drive.bag: initial pose with twist, then the exact truth and the scan of every sweep. The same\n"
    "seed and options give the same bytes.\n"
    "\n"
    "  --seed N           seed of everything that is random (1)\n"
    "  --out DIR          where to write; made when it does not exist\n"
    "  --world NAME       street (houses, trees, parked and moving cars, slopes, turns), utm (the same far from\n"
    "                     the origin, at 389000 4970000 120), corridor or tunnel (weakly observed along their "
    "axis)\n"
    "  --scans N          number of scans, 1 .. 20000 (150)\n"
    "  --rate HZ          sweeps per second, 1 .. 50 (10)\n"
    "  --beams N          16, 32 or 64 (32)\n"
    "  --columns N        firings per sweep, 36 .. 4096 (1800)\n"
    "  --noise M          standard deviation of a range, 0 .. 1 m (0.02)\n"
    "  --dropout P        part of the returns that is lost, 0 .. 0.95 (0.03)\n"
    "  --map-spacing M    distance between points of the map, 0.05 .. 2 m (0.15; corridor 0.08)\n"
    "  --odometry         add noisy odometry at 50 Hz\n"
    "  --force            overwrite files of an earlier run\n"
    "  --help             this text\n"
    "\n"
    "A sweep is one clockwise turn that starts and ends behind the sensor; its stamp is its middle. Points carry\n"
    "their time relative to the stamp, so a replay undoes the motion with preprocess.deskew=time.\n"
    "Exit codes: 0 done, 2 usage, 3 failure while running.\n";

struct options {
    uint64_t seed;
    const char *out;
    const char *world;
    double scans, rate, beams, columns, noise, dropout, spacing;
    int odometry, force, help;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- options ---- */

/* Options with a number; getopt_long calls the i-th of them FIRST_NUMBER + i. */
struct number_option {
    const char *name;
    double low, high;
    int whole;
    size_t offset; /* of its double in struct options */
};

enum { FIRST_NUMBER = 1000 };

static const struct number_option NUMBERS[] = {
    {"scans", 1, 20000, 1, offsetof(struct options, scans)},
    {"rate", 1, 50, 0, offsetof(struct options, rate)},
    {"beams", 16, 64, 1, offsetof(struct options, beams)},
    {"columns", 36, 4096, 1, offsetof(struct options, columns)},
    {"noise", 0, 1, 0, offsetof(struct options, noise)},
    {"dropout", 0, 0.95, 0, offsetof(struct options, dropout)},
    {"map-spacing", 0.05, 2, 0, offsetof(struct options, spacing)},
};
enum { NUMBER_COUNT = sizeof(NUMBERS) / sizeof(NUMBERS[0]) };

static enum ndt_status parse_number(const struct number_option *option, const char *text, struct options *options,
                                    struct ndt_error *err)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= option->low && value <= option->high) ||
        (option->whole && value != floor(value)))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: '%s' is not a %snumber from %g to %g", option->name, text,
                        option->whole ? "whole " : "", option->low, option->high);
    *(double *)((char *)options + option->offset) = value;
    return NDT_OK;
}

static enum ndt_status parse_seed(const char *text, uint64_t *out, struct ndt_error *err)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (end == text || *end || errno || strchr(text, '-'))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--seed: '%s' is not a whole number from 0 to 2^64 - 1", text);
    return NDT_OK;
}

static enum ndt_status check_options(const struct options *options, struct ndt_error *err)
{
    double elevation_rad[SIM_MAX_BEAMS];
    if (!*options->out)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--out DIR is missing; --help explains");
    if (!sim_lidar_elevations((int)options->beams, elevation_rad))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--beams: no LiDAR has %.0f beams; 16, 32 and 64 are known",
                        options->beams);
    if (strcmp(options->world, "street") && strcmp(options->world, "utm") && strcmp(options->world, "corridor") &&
        strcmp(options->world, "tunnel"))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--world: '%s' is none of street, utm, corridor, tunnel",
                        options->world);
    if (options->scans / options->rate > 600.0 && options->world[0] != 's' && options->world[0] != 'u')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--scans: a %s is built for drives of up to 600 s, not %.0f s",
                        options->world, options->scans / options->rate);
    return NDT_OK;
}

static enum ndt_status parse_option(int code, struct options *options, struct ndt_error *err)
{
    if (code >= FIRST_NUMBER)
        return parse_number(&NUMBERS[code - FIRST_NUMBER], optarg, options, err);
    switch (code) {
    case 's':
        return parse_seed(optarg, &options->seed, err);
    case 'o':
        options->out = optarg;
        return NDT_OK;
    case 'w':
        options->world = optarg;
        return NDT_OK;
    case 'd':
        options->odometry = 1;
        return NDT_OK;
    case 'f':
        options->force = 1;
        return NDT_OK;
    default:
        options->help = 1;
        return NDT_OK;
    }
}

/* What getopt_long knows: the named ones, then the numbers. */
static void list_options(struct option known[])
{
    static const struct option named[] = {{"seed", 1, NULL, 's'},  {"out", 1, NULL, 'o'},
                                          {"world", 1, NULL, 'w'}, {"odometry", 0, NULL, 'd'},
                                          {"force", 0, NULL, 'f'}, {"help", 0, NULL, 'h'}};
    memcpy(known, named, sizeof(named));
    known += sizeof(named) / sizeof(named[0]);
    for (int i = 0; i < NUMBER_COUNT; i++)
        known[i] = (struct option){NUMBERS[i].name, 1, NULL, FIRST_NUMBER + i};
    known[NUMBER_COUNT] = (struct option){NULL, 0, NULL, 0};
}

static enum ndt_status parse_options(int argc, char **argv, struct options *options, struct ndt_error *err)
{
    struct option known[NUMBER_COUNT + 7];
    list_options(known);
    int code;
    opterr = 0;
    while ((code = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (code == ':')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a value is missing", argv[optind - 1]);
        if (code == '?')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: not an option of ndt-sim; --help lists them",
                            argv[optind - 1]);
        enum ndt_status status = parse_option(code, options, err);
        if (status != NDT_OK || options->help)
            return status;
    }
    if (optind < argc)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: not an option of ndt-sim; --help lists them", argv[optind]);
    return check_options(options, err);
}

/* ---- simulation ---- */

static enum sim_place place_of(const char *world)
{
    return strcmp(world, "corridor") == 0 ? SIM_CORRIDOR : strcmp(world, "tunnel") == 0 ? SIM_TUNNEL : SIM_STREET;
}

static void report(const struct options *options, const struct sim_recording *recording)
{
    const struct sim_drive *drive = recording->drive;
    const double end_s = sim_record_time_s(sim_record_stamp_ns(recording, recording->scans - 1));
    printf("%s: %zu points\n", recording->map_path, recording->map_points);
    printf("%s: %d scans of %s, %.1f m in %.1f s, %zu points per scan%s\n", recording->bag_path, recording->scans,
           options->world, sim_drive_length(drive, end_s) - sim_drive_length(drive, 0.0),
           recording->scans / options->rate, recording->scan_points / (size_t)recording->scans,
           recording->odometry ? ", with odometry" : "");
}

static enum ndt_status record(const struct options *options, struct sim_drive *drive, struct sim_caster *caster,
                              struct ndt_error *err)
{
    char map_path[4000], bag_path[4000];
    const struct sim_lidar lidar = {(int)options->beams, (int)options->columns, options->rate, 0.9, 100.0,
                                    options->noise,      options->dropout,      options->seed};
    struct sim_recording recording = {.map_path = map_path,
                                      .bag_path = bag_path,
                                      .drive = drive,
                                      .caster = caster,
                                      .lidar = &lidar,
                                      .survey = {options->spacing, 0.01, 100.0, options->seed},
                                      .scans = (int)options->scans,
                                      .odometry = options->odometry,
                                      .overwrite = options->force,
                                      .interrupted = &interrupted};
    if (strcmp(options->world, "utm") == 0) {
        static const double utm_m[3] = {389000.0, 4970000.0, 120.0};
        memcpy(recording.origin_m, utm_m, sizeof(utm_m));
    }
    const int length = snprintf(map_path, sizeof(map_path), "%s/map.pcd", options->out);
    if (length >= (int)sizeof(map_path) - 2)
        return ndt_fail(err, NDT_ERR_LIMIT, "--out: the path is longer than %zu bytes", sizeof(map_path) - 12);
    snprintf(bag_path, sizeof(bag_path), "%.*s/drive.bag", (int)strlen(options->out), options->out);
    enum ndt_status status = sim_record(&recording, err);
    if (status == NDT_OK)
        report(options, &recording);
    return status;
}

static enum ndt_status simulate(const struct options *options, struct ndt_error *err)
{
    struct sim_course course;
    struct sim_world world;
    struct sim_drive drive = {0};
    struct sim_caster caster = {0};
    sim_world_init(&world);
    sim_course_init(&course, place_of(options->world), options->seed);
    sim_scene_ground(&world.ground, course.place, options->seed);
    enum ndt_status status =
        sim_drive_open(&drive, &course, &world.ground, options->scans / options->rate, options->seed, err);
    if (status == NDT_OK) {
        sim_scene_build(&world, &course, sim_drive_length(&drive, options->scans / options->rate), options->seed);
        status = sim_world_finish(&world, err);
    }
    if (status == NDT_OK)
        status = sim_caster_open(&caster, &world, err);
    if (status == NDT_OK)
        status = record(options, &drive, &caster, err);
    sim_caster_close(&caster);
    sim_drive_close(&drive);
    sim_world_free(&world);
    return status;
}

/* Makes the folder and, when the simulation fails, takes it away again if it was made here. */
static enum ndt_status simulate_into(const struct options *options, struct ndt_error *err)
{
    struct stat info;
    const int made = mkdir(options->out, 0777) == 0;
    if (!made && errno == EEXIST && stat(options->out, &info) == 0 && !S_ISDIR(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "%s: is not a folder", options->out);
    if (!made && errno != EEXIST)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be made: %s", options->out, strerror(errno));
    const enum ndt_status status = simulate(options, err);
    if (status != NDT_OK && made)
        rmdir(options->out);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1,
                              .out = "",
                              .world = "street",
                              .scans = 150,
                              .rate = 10,
                              .beams = 32,
                              .columns = 1800,
                              .noise = 0.02,
                              .dropout = 0.03,
                              .spacing = 0.0};
    struct ndt_error err = {""};
    enum ndt_status status = parse_options(argc, argv, &options, &err);
    if (options.spacing == 0.0)
        options.spacing = strcmp(options.world, "corridor") == 0 ? 0.08 : 0.15;
    if (status == NDT_OK && options.help)
        return fputs(HELP, stdout) < 0 ? FAILED : DONE;
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (status == NDT_OK)
        status = simulate_into(&options, &err);
    if (status == NDT_OK && fflush(stdout) != 0)
        status = ndt_fail(&err, NDT_ERR_IO, "standard output: %s", strerror(errno));
    if (status == NDT_OK)
        return DONE;
    fprintf(stderr, "ndt-sim: %s\n", err.text);
    return status == NDT_ERR_ARGUMENT ? USAGE : FAILED;
}
