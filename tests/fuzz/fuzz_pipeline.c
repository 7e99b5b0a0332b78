/* Sequences of messages through a pipeline with a map: good scans, hostile messages, deadlines that have passed
 * (message_storm.h). The first byte chooses the settings, the others what comes. Every scan is answered with finite
 * numbers, the estimate stays finite, and a scan whose time is over is not aligned. */
#include "fuzz.h"
#include "message_storm.h"

enum { MOST_STEPS = 24, DEADLINE = 250 };

/* The settings of the storm, without and with searches for a lost pose, which take a thousand times longer. */
enum { KINDS = 2 * STORM_VARIANTS };
static struct storm storms[KINDS];

/* A good scan whose time is over is answered without an alignment. */
static const char *late_scan(struct storm *storm)
{
    ndtd_pipeline_set_deadline(storm->pipeline, 1);
    const char *failure = storm_good_scan(storm);
    ndtd_pipeline_set_deadline(storm->pipeline, 0);
    if (!failure && storm->last.result.evaluations > 0)
        failure = "a scan was aligned behind its deadline";
    return failure;
}

/* Fewer points than usual, so that an execution takes milliseconds. */
static const char *open_storm(struct storm *storm, int kind)
{
    const char *failure = storm_open(storm, kind % STORM_VARIANTS);
    storm->settings.preprocess.sample_count = 150;
    storm->settings.recovery.enable = kind >= STORM_VARIANTS;
    if (kind < STORM_VARIANTS)
        storm->settings.initial_pose_mode = NDTD_POSE_GIVEN;
    return failure ? failure : storm_restart(storm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const int kind = data[0] % KINDS;
    struct storm *storm = &storms[kind];
    struct storm_choices choices = storm_choices_from(data + 1, size - 1);
    const char *failure = storm->map ? storm_restart(storm) : open_storm(storm, kind);
    for (int i = 0; !failure && i < MOST_STEPS && storm_has_choices(&choices); i++) {
        if (choices.data[choices.at] >= DEADLINE) {
            choices.at++;
            failure = late_scan(storm);
        } else {
            failure = storm_step(storm, &choices);
        }
    }
    FUZZ_REQUIRE(!failure, "%s", failure);
    return 0;
}
