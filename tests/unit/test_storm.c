/* Storms of messages with a fixed seed: every scan is answered, nothing is ever not finite, and good scans are
 * localised again, see message_storm.h. */
#include <check.h>
#include <stdlib.h>

#include "message_storm.h"
#include "run_tests.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* ten times as slow */
enum { SEEDS = 1, NUMBERS = 1200 };
#else
enum { SEEDS = 2, NUMBERS = 4000 };
#endif

static struct storm storm;

/* NDT_STORM_SEEDS=1000: more storms than fit into a test. */
static uint64_t seeds(void)
{
    const char *text = getenv("NDT_STORM_SEEDS");
    return text ? strtoull(text, NULL, 10) : SEEDS;
}

static void teardown(void)
{
    storm_close(&storm);
}

FIXTURE(NULL, teardown)

TEST_EACH(storms_are_survived, 0, STORM_VARIANTS)
{
    const int variant = _i;
    const char *failure = storm_open(&storm, variant);
    for (uint64_t seed = 1; seed <= seeds() && !failure; seed++) {
        struct storm_choices choices = storm_choices_seeded(seed + 1000 * (uint64_t)variant, NUMBERS);
        failure = storm_restart(&storm);
        if (!failure)
            failure = storm_good_pose(&storm);
        while (!failure && storm_has_choices(&choices))
            failure = storm_step(&storm, &choices);
        if (!failure)
            failure = storm_recovers(&storm, 1, 5);
        ck_assert_msg(!failure, "variant %d, seed %llu: %s", variant, (unsigned long long)seed, failure);
    }
    ck_assert_msg(!failure, "%s", failure);
}
