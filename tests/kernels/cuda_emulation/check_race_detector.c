/** @file
 * @brief The race detector on small patterns: it reports those without order, in every order of the threads that
 * shows it, and none of the others; and loads of what nothing has written. */
#include <stdio.h>
#include <string.h>

#include "check_harness.h"
#include "emulated_device.h"
#include "emulated_grid.h"
#include "emulated_memory.h"
#include "race_detector.h"
#include "race_kernels.h"

enum { SEEDS = 40, WORDS = 256, FOUND = 7 };

static struct {
    const char *name;
    int races;
} patterns[RACE_PATTERNS] = {
    [RACE_BARRIER] = {"a barrier between store and load", 0},
    [RACE_NO_BARRIER] = {"no barrier between store and load", 1},
    [RACE_WARP_BARRIER] = {"a barrier of the warp", 0},
    [RACE_SHUFFLE] = {"a shuffle orders no memory", 1},
    [RACE_LOAD_THEN_STORE] = {"a store after the load of another thread", 1},
    [RACE_SEPARATE_BYTES] = {"bytes of one word", 0},
    [RACE_SAME_BYTE] = {"one byte", 1},
    [RACE_CONSTANT_WRITTEN] = {"a constant load of what the launch wrote", 1},
    [RACE_UNWRITTEN] = {"a load of what nothing has written", 1},
    [RACE_MESSAGE] = {"a message: fence, atomic; atomic, fence", 0},
    [RACE_MESSAGE_PLAIN_FLAG] = {"a message with a plain flag", 1},
    [RACE_MESSAGE_VOLATILE_FLAG] = {"a message with a volatile flag", 0},
    [RACE_MESSAGE_NO_RELEASE] = {"a message without the writer's fence", 1},
    [RACE_MESSAGE_NO_ACQUIRE] = {"a message without the reader's fence", 1},
    [RACE_MESSAGE_NO_ACQUIRE_LDCG] = {"the same past the L1 cache", 1},
    [RACE_MESSAGE_VOLATILE] = {"a volatile message", 0},
    [RACE_MESSAGE_VOLATILE_UNFENCED] = {"a volatile message without fences", 0},
    [RACE_LAST_BLOCK] = {"the last block adds", 0},
    [RACE_LAST_BLOCK_NO_BARRIER] = {"the last block, without a barrier before it counts", 1},
    [RACE_LAST_BLOCK_NO_FENCE] = {"the last block, without the writers' fences", 1},
    [RACE_CLUSTER] = {"a barrier of the cluster", 0},
    [RACE_CLUSTER_NO_BARRIER] = {"no barrier of the cluster", 1},
    [RACE_SENT] = {"a word that was sent", 0},
    [RACE_SENT_NO_WAIT] = {"a word that was sent, without waiting", 1},
    [RACE_SENT_GLOBAL] = {"global memory, after waiting for a word that was sent", 1},
};

static char first_line[512];
static int reports;

static void count_report(const char *line)
{
    if (reports++ == 0)
        snprintf(first_line, sizeof(first_line), "%s", line);
}

/* Runs a pattern with many orders of the threads; whether messages that arrived were always the new ones. */
static int run_pattern(enum race_pattern pattern)
{
    static double sums[WORDS], block_sums[WORDS];
    static uint32_t ticket;
    const unsigned blocks = pattern < RACE_MESSAGE ? 1 : 2;
    double *unwritten = emulated_allocate(sizeof(sums), EMULATED_DEVICE);
    int is_new = unwritten != NULL;
    reports = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct emulated_launch launch = {.kernel = kernel_race_pattern(),
                                         .grid = {blocks, 1, 1},
                                         .block = {32, 1, 1},
                                         .cluster = pattern >= RACE_CLUSTER ? 2 : 1};
        launch.job.count = pattern;
        launch.job.sums = sums;
        launch.job.block_sums = pattern == RACE_UNWRITTEN ? unwritten : block_sums;
        launch.job.ticket = &ticket;
        memset(sums, 0, sizeof(sums));
        memset(block_sums, 0, sizeof(block_sums));
        ticket = 0;
        emulated_set_seed(seed);
        emulated_run(&launch);
        is_new &= sums[1] == 0 || sums[0] == FOUND;
    }
    emulated_release(unwritten, EMULATED_DEVICE);
    return is_new;
}

int main(int argc, char **argv)
{
    check_start(argc, argv, NULL);
    race_reported = count_report;
    for (enum race_pattern pattern = 0; pattern < RACE_PATTERNS; pattern++) {
        const int is_new = run_pattern(pattern);
        check_expect((reports > 0) == patterns[pattern].races, patterns[pattern].name, reports ? first_line : "");
        if (pattern == RACE_MESSAGE_VOLATILE)
            check_expect(is_new, "with fences a volatile message is the new one", "");
        if (pattern == RACE_MESSAGE_VOLATILE_UNFENCED)
            check_expect(!is_new, "without fences it may be an older one", "");
    }
    return check_finish(1);
}
