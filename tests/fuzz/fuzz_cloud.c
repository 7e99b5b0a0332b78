/* Point cloud files; FUZZ_CLOUD_EXTENSION is the format. A cloud that was read has its arrays, and fits into the
 * next one that is read with it. */
#include <math.h>

#include "fuzz.h"
#include "fuzz_file.h"
#include "ndt_io/cloud_file.h"
#include "text_mutator.h"

static struct fuzz_file file;
static struct ndt_cloud reused;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_file_open(&file, "fuzz" FUZZ_CLOUD_EXTENSION);
    ndt_cloud_init(&reused);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ndt_error err = {""};
    float sum = 0;
    fuzz_file_write(&file, data, size);
    const enum ndt_status status = ndt_cloud_read(&reused, file.path, &err);
    FUZZ_REQUIRE((status == NDT_OK) == (err.text[0] == '\0'), "%s", err.text);
    FUZZ_REQUIRE(status == NDT_OK || reused.count == 0, "points after a failure");
    for (size_t i = 0; i < reused.count; i++)
        sum += reused.x_m[i] + reused.y_m[i] + reused.z_m[i] + (reused.intensity ? reused.intensity[i] : 0) +
               (reused.time_s ? reused.time_s[i] : 0);
    for (int k = 0; k < 3; k++)
        FUZZ_REQUIRE(isfinite(reused.origin_m[k]), "origin");
    static volatile float sink; /* the sums are computed */
    sink = sum;
    (void)sink;
    return 0;
}

/* Headers, and the points of some files, are text. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    if (ndt_random_next(&random) % 2)
        return LLVMFuzzerMutate(data, size, max_size);
    return text_mutate(data, size, max_size, &random);
}
