/* Sequences of messages of any type through a pipeline without a map: decoders, frames, estimator, many thousand
 * times a second. The input is one msgpack message behind the other, with 16 bits of its size before each; the
 * mutator changes, repeats, removes and exchanges messages. Oracles: message_storm.h. */
#include "fuzz.h"
#include "message_storm.h"
#include "msgpack_mutator.h"

enum { MOST_MESSAGES = 64, SIZE_BYTES = 2, MOST_BYTES = 8192 };

static struct storm storm;
static const struct ndtd_settings_snapshot *snapshot;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const char *failure = storm_open(&storm, 0);
    FUZZ_REQUIRE(!failure, "%s", failure);
    ndt_map_release(storm.map);
    storm.map = NULL;
    FUZZ_REQUIRE(ndtd_settings_snapshot_create(&snapshot, &storm.settings, &storm.err) == NDT_OK, "%s",
                 storm.err.text);
    return 0;
}

/* Restarts as storm_restart does, with one snapshot for all executions: making one takes longer than all messages.
 */
static void restart(void)
{
    ndtd_pipeline_destroy(storm.pipeline);
    FUZZ_REQUIRE(ndtd_pipeline_create(&storm.pipeline, snapshot, NULL, 0, &storm.err) == NDT_OK, "%s",
                 storm.err.text);
}

struct part {
    size_t at, size; /* range of the message, without its size */
};

static size_t split(const uint8_t *data, size_t size, struct part parts[MOST_MESSAGES])
{
    size_t count = 0;
    for (size_t at = 0; count < MOST_MESSAGES && at + SIZE_BYTES <= size; count++) {
        const size_t wanted = (size_t)data[at] << 8 | data[at + 1], left = size - at - SIZE_BYTES;
        parts[count] = (struct part){at + SIZE_BYTES, wanted < left ? wanted : left};
        at += SIZE_BYTES + parts[count].size;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct part parts[MOST_MESSAGES];
    const size_t count = split(data, size, parts);
    const char *failure = NULL;
    restart();
    for (size_t i = 0; !failure && i < count; i++)
        failure = storm_feed(&storm, data + parts[i].at, parts[i].size);
    FUZZ_REQUIRE(!failure, "%s", failure);
    return 0;
}

static size_t put_part(uint8_t *out, size_t at, const uint8_t *bytes, size_t size)
{
    if (at + SIZE_BYTES + size > MOST_BYTES)
        return at;
    out[at] = (uint8_t)(size >> 8);
    out[at + 1] = (uint8_t)size;
    memmove(out + at + SIZE_BYTES, bytes, size);
    return at + SIZE_BYTES + size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    static uint8_t out[MOST_BYTES], message[MOST_BYTES];
    struct ndt_random random = {seed};
    struct part parts[MOST_MESSAGES];
    const size_t count = split(data, size, parts);
    if (count == 0 || ndt_random_next(&random) % 16 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    const size_t chosen = ndt_random_next(&random) % count, other = ndt_random_next(&random) % count;
    const uint64_t kind = ndt_random_next(&random) % 8;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct part *part = &parts[kind == 0 && i == chosen ? other : i];
        size_t bytes = part->size < 2048 ? part->size : 2048;
        memcpy(message, data + part->at, bytes);
        if (i == chosen && kind == 1)
            continue;
        if (i == chosen && kind == 2)
            at = put_part(out, at, data + parts[other].at, parts[other].size);
        if (i == chosen && kind > 2)
            bytes = msgpack_mutate(message, bytes, 2048, &random);
        at = put_part(out, at, message, bytes);
    }
    at = at < max_size ? at : max_size;
    memcpy(data, out, at);
    return at;
}
