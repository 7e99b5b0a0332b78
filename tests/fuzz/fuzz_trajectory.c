/* Trajectories and lists of times. The first byte chooses the reader: T TUM, K KITTI, S times, anything else a
 * reference trajectory. What was read is written and read again; TUM keeps every bit. */
#include <string.h>

#include "fuzz.h"
#include "fuzz_file.h"
#include "ndt_io/trajectory.h"
#include "ndtd/reference_trajectory.h"
#include "text_mutator.h"

static struct fuzz_file file;
static struct ndt_error err;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_file_open(&file, "trajectory.txt");
    return 0;
}

static void check_round_trip(const struct ndt_trajectory *before, enum ndt_trajectory_format format)
{
    struct ndt_trajectory after;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    for (size_t i = 0; i < before->count; i++)
        FUZZ_REQUIRE(ndt_trajectory_write_pose(stream, format, before->poses[i].stamp_ns,
                                               &before->poses[i].T_map_sensor) > 0,
                     "cannot write");
    fclose(stream);
    fuzz_file_write(&file, text, size);
    FUZZ_REQUIRE(ndt_trajectory_read(&after, file.path, format, &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(after.count == before->count, "%zu poses of %zu", after.count, before->count);
    FUZZ_REQUIRE(format == NDT_KITTI || memcmp(after.poses, before->poses, after.count * sizeof(*after.poses)) == 0,
                 "other poses");
    ndt_trajectory_free(&after);
    free(text);
}

static void read_poses(enum ndt_trajectory_format format)
{
    struct ndt_trajectory found;
    if (ndt_trajectory_read(&found, file.path, format, &err) != NDT_OK)
        return;
    check_round_trip(&found, format);
    ndt_trajectory_free(&found);
}

static void read_times(void)
{
    int64_t *times = NULL;
    size_t count = 0;
    if (ndt_times_read(&times, &count, file.path, &err) == NDT_OK)
        FUZZ_REQUIRE(count > 0, "no time");
    free(times);
}

static void read_reference(void)
{
    static const struct ndt_pose identity = {.q_xyzw = {0, 0, 0, 1}};
    struct ndtd_reference_trajectory reference;
    if (ndtd_reference_trajectory_read(&reference, file.path, &err) != NDT_OK)
        return;
    ndtd_reference_trajectory_compare(&reference, 1000000000, &identity);
    (void)ndtd_reference_trajectory_matches(&reference, NDTD_TRAJECTORY_HASH_START);
    ndtd_reference_trajectory_free(&reference);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    fuzz_file_write(&file, data + 1, size - 1);
    if (data[0] == 'T')
        read_poses(NDT_TUM);
    else if (data[0] == 'K')
        read_poses(NDT_KITTI);
    else if (data[0] == 'S')
        read_times();
    else
        read_reference();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    if (size == 0 || ndt_random_next(&random) % 32 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return 1 + text_mutate(data + 1, size - 1, max_size - 1, &random); /* the reader stays */
}
